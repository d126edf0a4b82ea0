// SPDX-License-Identifier: Apache-2.0
// Which setting is tried next. The knobs span a grid of a few hundred points. From the best point
// so far the search first tries its neighbours, one step of one knob or of two: a tile that is
// twice as tall wants twice the rows a lane. When all neighbours were tried it jumps to a random
// point.
#include <stdlib.h>
#include <string.h>

#include "tune.h"

static uint32_t knob_count(const struct grt_tunable *tunable) {
    uint32_t count = 0;
    while (count < GRT_PROFILE_NUMBERS && tunable->knobs[count].name) {
        count++;
    }
    return count;
}

static uint32_t value_count(const struct grt_knob *knob) {
    uint32_t count = 0;
    while (count < GRT_KNOB_VALUES && knob->values[count]) {
        count++;
    }
    return count;
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

bool tune_search_begin(struct tune_search *search, const struct grt_tunable *tunable,
                       const struct grt_dev_info *info, const uint32_t *start, uint64_t seed) {
    uint32_t knobs = knob_count(tunable);
    size_t points = 1;
    for (uint32_t k = 0; k < knobs; k++) {
        points *= value_count(&tunable->knobs[k]);
    }
    *search = (struct tune_search){.tunable = tunable, .random = seed | 1};
    search->all = calloc(points + 1, sizeof *search->all);
    if (!search->all) {
        return false;
    }
    memcpy(search->all[0].values, start, sizeof search->all[0].values);
    search->count = 1;
    for (size_t point = 0; point < points; point++) {
        uint32_t values[GRT_PROFILE_NUMBERS] = {0};
        char why[GRT_TUNABLE_WHY];
        size_t rest = point;
        for (uint32_t k = 0; k < knobs; k++) {
            uint32_t count = value_count(&tunable->knobs[k]);
            values[k] = tunable->knobs[k].values[rest % count];
            rest /= count;
        }
        if (memcmp(values, start, sizeof values) != 0 &&
            grt_tunable_sensible(tunable, info, values, why)) {
            memcpy(search->all[search->count++].values, values, sizeof values);
        }
    }
    return true;
}

void tune_search_end(struct tune_search *search) {
    free(search->all);
    *search = (struct tune_search){0};
}

// Where a value stands among the knob's; a value of a profile may lie between two.
static int place_of(const struct grt_knob *knob, uint32_t value) {
    int place = 0;
    while (place + 1 < (int)value_count(knob) && knob->values[place] < value) {
        place++;
    }
    return place;
}

static int distance(const struct grt_tunable *tunable, const uint32_t *a, const uint32_t *b) {
    int steps = 0;
    for (uint32_t k = 0; k < knob_count(tunable); k++) {
        steps += abs(place_of(&tunable->knobs[k], a[k]) - place_of(&tunable->knobs[k], b[k]));
    }
    return steps;
}

bool tune_search_next(struct tune_search *search, size_t *candidate) {
    const uint32_t *best = search->all[search->best].values;
    int nearest = 0;
    size_t seen = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (search->all[i].tried) {
            continue;
        }
        // Three steps and more are all the same: anywhere.
        int steps = distance(search->tunable, search->all[i].values, best);
        steps = steps > 2 ? 3 : steps;
        if (seen && steps > nearest) {
            continue;
        }
        // Of equally near ones each has the same chance.
        seen = seen && steps == nearest ? seen + 1 : 1;
        nearest = steps;
        if (next_random(&search->random) % seen == 0) {
            *candidate = i;
        }
    }
    if (seen) {
        search->all[*candidate].tried = true;
    }
    return seen > 0;
}
