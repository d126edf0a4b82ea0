// SPDX-License-Identifier: Apache-2.0
// Which setting `gpurt tune` tries next, on a grid of two knobs whose times are given: every one
// that is allowed once, neighbours of the best first, and the best is found.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tune/tune.h"

static const struct grt_tunable grid = {
    .op = "gemm",
    .variant = "made up",
    .classes = 1,
    .knobs = {{.name = "a", .values = {1, 2, 4, 8, 16}}, {.name = "b", .values = {1, 3, 5, 7}}},
};
#define POINTS 20

// In place of the library's: one corner is too much for the device.
bool grt_tunable_sensible(const struct grt_tunable *tunable, const struct grt_dev_info *info,
                          const uint32_t *values, char why[GRT_TUNABLE_WHY]) {
    (void)tunable;
    (void)info;
    why[0] = '\0';
    return values[0] != 16 || values[1] != 7;
}

static struct tune_search begin(uint32_t a, uint32_t b, uint64_t seed) {
    struct tune_search search;
    const uint32_t start[GRT_PROFILE_NUMBERS] = {a, b};
    assert_true(tune_search_begin(&search, &grid, NULL, start, seed));
    return search;
}

// Steps of the grid between two settings.
static int apart(const uint32_t *x, const uint32_t *y) {
    int steps = 0;
    for (int k = 0; k < 2; k++) {
        int at[2] = {0, 0};
        for (int i = 0; i < GRT_KNOB_VALUES && grid.knobs[k].values[i]; i++) {
            at[0] = grid.knobs[k].values[i] == x[k] ? i : at[0];
            at[1] = grid.knobs[k].values[i] == y[k] ? i : at[1];
        }
        steps += abs(at[0] - at[1]);
    }
    return steps;
}

static void every_setting_once(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct tune_search search = begin(4, 3, seed);
        bool seen[POINTS] = {false};
        size_t candidate = 0, count = 0;
        int before = 0;
        assert_int_equal(search.count, POINTS - 1);
        while (tune_search_next(&search, &candidate)) {
            const uint32_t *values = search.all[candidate].values;
            assert_false(seen[candidate]);
            assert_false(values[0] == 16 && values[1] == 7);
            seen[candidate] = true;
            // What is in use first, then one step, then two, then anything.
            int steps = apart(values, search.all[0].values);
            assert_true(count > 0 || candidate == 0);
            assert_true(steps >= (before > 3 ? 3 : before));
            before = steps > 3 ? 3 : steps;
            count++;
        }
        assert_int_equal(count, POINTS - 1);
        tune_search_end(&search);
    }
}

// From the worst corner to the best setting, by the neighbours of each better one.
static void the_best_is_reached(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct tune_search search = begin(1, 7, seed);
        double least = 1e9;
        size_t candidate = 0, tried = 0;
        const uint32_t goal[2] = {16, 1};
        while (least > 0 && tune_search_next(&search, &candidate)) {
            double seconds = apart(search.all[candidate].values, goal);
            if (seconds < least) {
                search.best = candidate;
                least = seconds;
            }
            tried++;
        }
        assert_true(least == 0 && tried < POINTS - 1);
        tune_search_end(&search);
    }
}

// A setting of a profile that is not on the grid is tried, and has neighbours.
static void a_start_off_the_grid(void **state) {
    (void)state;
    struct tune_search search = begin(3, 5, 1);
    size_t candidate = 9;
    assert_int_equal(search.count, POINTS);
    assert_true(tune_search_next(&search, &candidate));
    assert_int_equal(candidate, 0);
    assert_true(tune_search_next(&search, &candidate));
    const uint32_t *values = search.all[candidate].values;
    assert_true(values[0] == 4 && values[1] == 5);
    tune_search_end(&search);
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_setting_once),
        cmocka_unit_test(the_best_is_reached),
        cmocka_unit_test(a_start_off_the_grid),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
