// SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/visible.h"
#include "base/whole_file.h"

// Behind the label of the process, so that the files of several do not say the same of a device.
// The value of a label: backslash, quote and newline are escaped, bytes that are no UTF-8 are made
// visible first.
static void put_label(FILE *file, const char *name, const char *value) {
    char visible[4 * STATE_TEXT + 1];
    grt_visible(value, visible, sizeof visible);
    fprintf(file, ",%s=\"", name);
    for (const char *at = visible; *at; at++) {
        if (*at == '"' || *at == '\\') {
            fputc('\\', file);
        }
        fputc(*at, file);
    }
    fputc('"', file);
}

static void put_head(FILE *file, const char *name, const char *type, const char *help) {
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

// ---- the process ----

static void put_process(FILE *file, const struct state *state, const char *name, const char *help,
                        const char *of, double value) {
    if (!isfinite(value)) {
        return;
    }
    put_head(file, name, "gauge", help);
    fprintf(file, "%s{", name);
    fprintf(file, "pid=\"%ld\"", (long)getpid());
    put_label(file, "app", state->app);
    put_label(file, "device", state->device);
    if (of) {
        put_label(file, "of", of);
    }
    fprintf(file, "} %.15g\n", value);
}

static void put_state(FILE *file, const struct state *s, bool running) {
    const struct {
        const char *name, *help, *of;
        double value;
    } rows[] = {
        {"gpurt_running", "1 while the process works, 0 after its end", NULL, running},
        {"gpurt_updated_seconds", "when its numbers were new, since 1970", NULL, s->updated},
        {"gpurt_step", "steps done", NULL, s->step},
        {"gpurt_steps", "steps in all", NULL, s->steps},
        {"gpurt_epoch", "epoch, from 1", NULL, s->epoch},
        {"gpurt_epochs", "epochs in all", NULL, s->epochs},
        {"gpurt_rate", "samples or steps of environments a second", s->rate_of, s->rate},
        {"gpurt_score", "loss or return", s->score_of, s->score},
        {"gpurt_left_seconds", "time to the end", NULL, s->left},
        {"gpurt_memory_bytes", "memory that it has on the device", NULL, s->memory},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_process(file, s, rows[i].name, rows[i].help, rows[i].of, rows[i].value);
    }
}

// ---- devices ----

static void put_quantity(FILE *file, const struct sensor_sample *sample, enum sensor_quantity which,
                         const char *name, const char *help) {
    bool counter = which == SENSOR_ENERGY;
    bool begun = false;
    char whole[96];
    snprintf(whole, sizeof whole, "gpurt_device_%s%s", name, counter ? "_total" : "");
    for (size_t i = 0; i < sample->count; i++) {
        const struct sensor_device *device = &sample->devices[i];
        if (!isfinite(device->values[which])) {
            continue;
        }
        if (!begun) {
            put_head(file, whole, counter ? "counter" : "gauge", help);
        }
        begun = true;
        fprintf(file, "%s{", whole);
        fprintf(file, "pid=\"%ld\"", (long)getpid());
        put_label(file, "name", device->name);
        put_label(file, "pci", device->pci);
        put_label(file, "reader", device->reader);
        fprintf(file, "} %.15g\n", device->values[which]);
    }
}

bool metrics_write(const char *path, const struct state *state, const struct sensor_sample *sample,
                   bool running) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) {
        return false;
    }
    put_state(file, state, running);
#define X(name, key, unit, help) put_quantity(file, sample, SENSOR_##name, key "_" unit, help);
    SENSOR_QUANTITIES(X)
#undef X
    bool good = fclose(file) == 0 && grt_whole_file_save(path, text, size);
    free(text);
    return good;
}
