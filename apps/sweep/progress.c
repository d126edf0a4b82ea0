// SPDX-License-Identifier: Apache-2.0
// The log of a trial, read on as it grows. A process that was killed may have left half a line, and
// the one that went on repeats what came after the checkpoint: the first row of an epoch counts.
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "sweep.h"

#define CHUNK 65536

// NaN and infinities are texts in a log.
static bool number(const json_t *row, const char *key, double *value) {
    const json_t *v = json_object_get(row, key);
    const char *text = json_string_value(v);
    if (json_is_number(v)) {
        *value = json_number_value(v);
    } else if (text && (strcasecmp(text, "nan") == 0 || strcasecmp(text, "-nan") == 0)) {
        *value = NAN;
    } else if (text && strncasecmp(text + (*text == '-'), "inf", 3) == 0) {
        *value = *text == '-' ? -INFINITY : INFINITY;
    } else {
        return false;
    }
    return true;
}

static uint64_t whole(const json_t *row, const char *key) {
    double value = 0;
    return number(row, key, &value) && value > 0 && value < 1e18 ? (uint64_t)value : 0;
}

static bool add_point(struct sweep_progress *p, const struct sweep_metric *metric,
                      struct sweep_point point) {
    for (uint32_t i = p->count; i > 0; i--) {
        if (p->points[i - 1].at == point.at) {
            return true;
        }
    }
    if (p->count == p->room) {
        uint32_t room = p->room ? 2 * p->room : 16;
        struct sweep_point *more = realloc(p->points, room * sizeof *more);
        if (!more) {
            return grt_fail(GRT_NO_MEMORY, "no host memory for a log");
        }
        p->points = more;
        p->room = room;
    }
    p->points[p->count++] = point;
    bool better = metric->maximize ? point.value > p->best : point.value < p->best;
    if (!p->any || (isnan(p->best) && !isnan(point.value)) || better) {
        p->best = point.value;
        p->best_at = point.at;
    }
    p->any = true;
    return true;
}

// Which fields such a row has, for who looks for another one.
static void note_fields(struct sweep_progress *p, json_t *row) {
    static const char *const others[] = {"event", "time", "step", "epoch", "best", "seconds"};
    const char *key;
    json_t *value;
    size_t used = 0;
    if (p->had[0]) {
        return;
    }
    json_object_foreach(row, key, value) {
        bool plain = json_is_number(value);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            plain = plain && strcmp(key, others[i]) != 0;
        }
        if (plain && used < sizeof p->had) {
            used += (size_t)snprintf(p->had + used, sizeof p->had - used, "%s%s", used ? ", " : "",
                                     key);
        }
    }
}

static bool read_row(struct sweep_progress *p, json_t *row, const struct sweep_metric *metric) {
    const char *event = json_string_value(json_object_get(row, "event"));
    const char *ended = json_string_value(json_object_get(row, "ended"));
    double value = 0;
    if (!event) {
        return true;
    }
    p->rows++;
    if (strcmp(event, "start") == 0) {
        p->spent += p->seconds;
        p->seconds = 0;
        p->ended[0] = '\0';
        p->first = p->step = whole(row, "step");
        p->steps = whole(row, "steps");
        return true;
    }
    if (strcmp(event, "end") == 0) {
        snprintf(p->ended, sizeof p->ended, "%s", ended ? ended : "failed");
    }
    if (number(row, "seconds", &value) && value > p->seconds) {
        p->seconds = value;
    }
    bool train = strcmp(event, "train") == 0, evaluate = strcmp(event, "evaluate") == 0;
    if (!train && !evaluate) {
        return true;
    }
    uint64_t epoch = whole(row, "epoch"), step = whole(row, "step");
    p->step = step > p->step ? step : p->step;
    p->at = epoch ? epoch : step;
    if (!epoch) {
        p->whole = p->steps;
    } else if (evaluate && step) {
        p->whole = (uint64_t)((double)p->steps * (double)epoch / (double)step + 0.5);
    }
    if (strcmp(event, grt_run_event_word(metric->event)) != 0) {
        return true;
    }
    note_fields(p, row);
    if (epoch == 0 && step == 0) {
        return true;  // a policy before its training
    }
    struct sweep_point point = {.at = p->at};
    number(row, "time", &point.time);
    return !number(row, metric->field, &point.value) || add_point(p, metric, point);
}

bool sweep_progress_read(struct sweep_progress *p, const char *path,
                         const struct sweep_metric *metric) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = true;
    char *text = fd >= 0 ? malloc(CHUNK + 1) : NULL;
    while (text && good) {
        ssize_t got = pread(fd, text, CHUNK, p->read);
        if (got <= 0) {
            break;
        }
        text[got] = '\0';
        char *end = NULL, *at = text;
        while (good && (end = memchr(at, '\n', (size_t)(text + got - at)))) {
            json_t *row = json_loadb(at, (size_t)(end - at), 0, NULL);
            good = !row || read_row(p, row, metric);
            json_decref(row);
            at = end + 1;
        }
        // A line longer than all that is read at once is no row.
        p->read += at > text ? at - text : got == CHUNK ? got : 0;
        if (at == text && got < CHUNK) {
            break;
        }
    }
    free(text);
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

void sweep_progress_finish(struct sweep_progress *p) {
    free(p->points);
    *p = (struct sweep_progress){0};
}

double sweep_progress_left(const struct sweep_progress *p) {
    if (p->step <= p->first || p->steps < p->step) {
        return -1;
    }
    return p->seconds / (double)(p->step - p->first) * (double)(p->steps - p->step);
}
