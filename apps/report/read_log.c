// SPDX-License-Identifier: Apache-2.0
// A run is a row `start` and the rows behind it. Of logs that were cut to their rows `evaluate`
// (with seed, phase or api added) each set of those is a run, and one begins where steps fall.
#include "read_log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static void begin(struct report_log *log, struct report *report, const char *file, bool baseline,
                  const json_t *event) {
    char date[32] = "";
    double since = number_of(event, "time");
    time_t seconds = since > 0 && since < 1e11 ? (time_t)since : 0;
    struct tm tm;
    if (seconds && gmtime_r(&seconds, &tm)) {
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    const char *slash = strrchr(file, '/');
    const char *device = text_of(event, "device");
    struct report_contender contender = {.name = *device ? device
                                                 : slash ? slash + 1
                                                         : file,
                                         .backend = text_of(event, "api"),
                                         .baseline = baseline};
    log->contender = report_add_contender(report, &contender);
    // Rows of one file are one source, however many runs they have.
    bool same = log->begun && log->source < report->source_count &&
                report->sources[log->source].contender == log->contender;
    if (!same) {
        struct report_source source = {
            .file = file, .schema = "training log", .date = date, .contender = log->contender};
        log->source = report_add_source(report, &source);
    }
    log->begun = true;
    memset(log->curves, 0, sizeof log->curves);
}

// "seed 1", "phase 2 seed 1"
static void name_text(const json_t *event, char text[REPORT_TEXT]) {
    static const char *const keys[] = {"phase", "seed"};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(event, keys[i]);
        if (json_is_number(value) && used < REPORT_TEXT) {
            used += (size_t)snprintf(text + used, REPORT_TEXT - used, "%s%s %.10g", used ? " " : "",
                                     keys[i], json_number_value(value));
        }
    }
}

enum { CURVE_EVALUATE, CURVE_TRAIN, CURVE_BUSY, CURVE_POWER, CURVE_ENERGY };

// Of what the event has under `key`, if that is a number: "NaN" is a text.
static void add_point(struct report_log *log, struct report *report, int which, const json_t *event,
                      const char *key, const char *what) {
    double step = number_of(event, "step");
    if (!json_is_number(json_object_get(event, key))) {
        return;
    }
    if (!log->curves[which]) {
        struct report_curve curve = {.source = log->source,
                                     .contender = log->contender,
                                     .group = log->group,
                                     .what = what,
                                     .name = log->name};
        bool room = log->source != REPORT_NONE && log->contender != REPORT_NONE;
        log->curves[which] = room && report_add_curve(report, &curve) ? report->curve_count : 0;
    }
    if (log->curves[which]) {
        report_add_point(report, &report->curves[log->curves[which] - 1],
                         (struct report_point){.step = step,
                                               .seconds = number_of(event, "seconds"),
                                               .value = number_of(event, key)});
    }
    log->step[which] = step;
}

bool report_log_event(struct report_log *log, struct report *report, const char *file,
                      bool baseline, json_t *event) {
    const char *what = text_of(event, "event");
    int training = strcmp(what, "train") == 0;
    char name[REPORT_TEXT], followed[REPORT_TEXT];
    if (strcmp(what, "monitor") == 0 && log->begun) {
        add_point(log, report, CURVE_BUSY, event, "utilisation", "utilisation of the device");
        add_point(log, report, CURVE_POWER, event, "power", "power in W");
        add_point(log, report, CURVE_ENERGY, event, "epoch_energy", "energy of an epoch in J");
        return true;
    }
    if (strcmp(what, "start") == 0) {
        const char *env = text_of(event, "env");
        begin(log, report, file, baseline, event);
        snprintf(log->group, sizeof log->group, "%s%s%s", text_of(event, "kind"), *env ? " " : "",
                 env);
        name_text(event, log->name);
        return true;
    }
    if (!training && strcmp(what, "evaluate") != 0) {
        return true;
    }
    name_text(event, name);
    double step = number_of(event, "step");
    bool another = *name && strcmp(name, log->name) != 0;
    if (!log->begun || another || (log->curves[training] && step < log->step[training])) {
        begin(log, report, file, baseline, event);
        snprintf(log->name, sizeof log->name, "%s", name);
        if (!log->group[0]) {
            snprintf(log->group, sizeof log->group, "training");
        }
    }
    const char *key = json_object_get(event, "return") ? "return" : "loss";
    snprintf(followed, sizeof followed, "%s%s", training ? "training " : "", key);
    add_point(log, report, training ? CURVE_TRAIN : CURVE_EVALUATE, event, key, followed);
    return true;
}
