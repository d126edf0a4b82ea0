// SPDX-License-Identifier: Apache-2.0
#include "timed_windows.h"

#include <math.h>
#include <stdlib.h>

// ---- kinds ----

struct place {
    const struct grt_command_time *command;
    uint32_t at;
};

#define COMPARE(x, y) (((x) > (y)) - ((x) < (y)))

static int by_kind(const struct grt_command_time *a, const struct grt_command_time *b) {
    int order = COMPARE(a->name, b->name);
    order = order ? order : COMPARE(a->operations, b->operations);
    order = order ? order : COMPARE(a->bytes, b->bytes);
    return order ? order : COMPARE(a->samples, b->samples);
}

static int by_kind_and_place(const void *x, const void *y) {
    const struct place *a = x, *b = y;
    int order = by_kind(a->command, b->command);
    return order ? order : COMPARE(a->at, b->at);
}

bool grt_windows_begin(struct grt_windows *w, const struct grt_command_time *commands,
                       const bool *marks, uint32_t count, bool apart) {
    *w = (struct grt_windows){.count = count, .apart = apart};
    // One more than needed: calloc(0) may be NULL.
    struct place *places = calloc((size_t)count + 1, sizeof *places);
    w->kind_of = calloc((size_t)count + 1, sizeof *w->kind_of);
    w->rank = calloc((size_t)count + 1, sizeof *w->rank);
    w->all = calloc((size_t)count + 1, sizeof *w->all);
    bool good = places && w->kind_of && w->rank && w->all;
    for (uint32_t i = 0; good && i < count; i++) {
        w->kind_of[i] = GRT_NO_WINDOW;
        if (!marks[i]) {
            places[w->timed++] = (struct place){&commands[i], i};
        }
    }
    if (good) {
        qsort(places, w->timed, sizeof *places, by_kind_and_place);
    }
    for (uint32_t i = 0; good && i < w->timed; i++) {
        uint32_t at = places[i].at;
        if (i == 0 || by_kind(places[i - 1].command, places[i].command) != 0) {
            w->all[w->kinds++] = (struct grt_window){.example = at, .newest = NAN, .least = NAN};
        }
        w->kind_of[at] = w->kinds - 1;
        w->rank[at] = w->all[w->kinds - 1].members++;
    }
    free(places);
    return good;
}

void grt_windows_finish(struct grt_windows *w) {
    free(w->kind_of);
    free(w->rank);
    free(w->all);
    *w = (struct grt_windows){0};
}

void grt_windows_restart(struct grt_windows *w) {
    w->begun = false;
    for (uint32_t k = 0; k < w->kinds; k++) {
        w->all[k].owed = 0;
    }
}

// ---- runs ----

double grt_windows_seconds(const struct grt_windows *w) {
    double sum = 0.0;
    for (uint32_t k = 0; k < w->kinds; k++) {
        sum += w->all[k].members * w->all[k].least;
    }
    return sum;
}

// How many of a kind are timed in the next run. What a first run takes ahead is paid back by the
// runs behind it, and later times of different kinds do not all fall into the same run.
static uint32_t take(struct grt_windows *w, uint32_t kind, double share) {
    struct grt_window *window = &w->all[kind];
    double members = window->members, wanted = 0.0;
    const double rounding = 1e-9;
    if (share >= 1.0) {
        window->earned = 0.0;
        return window->members;
    }
    if (!w->begun) {
        wanted = w->apart ? floor(members * GRT_WINDOWS_FIRST / w->timed) : members;
        wanted = fmin(fmax(wanted, 1.0), members);
        window->earned = w->apart ? 1.0 - wanted - (double)kind / w->kinds : 0.0;
        return (uint32_t)wanted;
    }
    double least = (w->apart ? 1.0 : members) / GRT_WINDOWS_PERIOD;
    window->earned += fmax(share * members, least);
    if (w->apart) {
        wanted = fmin(floor(window->earned + rounding), members);
    } else {
        wanted = window->earned + rounding >= members ? members : 0.0;
    }
    wanted = fmax(wanted, 0.0);
    window->earned -= wanted;
    return (uint32_t)wanted;
}

uint32_t grt_windows_choose(struct grt_windows *w, double share, bool *chosen, double *stands) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < w->kinds; k++) {
        struct grt_window *window = &w->all[k];
        window->first = (uint32_t)(((uint64_t)window->first + window->width) % window->members);
        window->width = take(w, k, share);
        window->owed += window->members;
        stands[k] = window->width > 0 ? (double)window->owed / window->width : 0.0;
        window->owed = window->width > 0 ? 0 : window->owed;
        sum += window->width;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        chosen[i] = false;
        if (w->kind_of[i] != GRT_NO_WINDOW) {
            const struct grt_window *window = &w->all[w->kind_of[i]];
            uint32_t rank = w->rank[i], first = window->first;
            uint32_t behind = rank >= first ? rank - first : window->members - (first - rank);
            chosen[i] = behind < window->width;
        }
    }
    w->begun = true;
    return sum;
}

void grt_windows_tell(struct grt_windows *w, const bool *chosen, const double *begin,
                      const double *end) {
    for (uint32_t k = 0; k < w->kinds; k++) {
        w->all[k].seconds = 0.0;
        w->all[k].told = 0;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        if (chosen[i] && !isnan(begin[i])) {
            w->all[w->kind_of[i]].seconds += end[i] - begin[i];
            w->all[w->kind_of[i]].told++;
        }
    }
    for (uint32_t k = 0; k < w->kinds; k++) {
        struct grt_window *window = &w->all[k];
        if (window->told > 0) {
            window->newest = window->seconds / window->told;
            window->least = fmin(window->least, window->newest);  // the other one where one is NAN
        }
    }
}
