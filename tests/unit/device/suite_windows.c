// SPDX-License-Identifier: Apache-2.0
// Which commands of a list are timed in which run: made-up lists, and times that are known.
#include "harness/harness.h"

#include <math.h>
#include <string.h>

#include "device/timed_windows.h"

#define MOST 512u

static struct {
    struct grt_windows windows;
    struct grt_command_time commands[MOST];
    bool marks[MOST], chosen[MOST];
    double stands[MOST], begin[MOST], end[MOST];
    uint32_t times[MOST];  // how often each command was chosen
    double sum[MOST];      // seconds that the times of each name stand for, and the calls
    double calls[MOST];
    uint32_t runs;
} made;

// A list of `count` commands: so many names in turn.
static void make(uint32_t count, uint32_t names, bool apart) {
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < count; i++) {
        made.commands[i].name = i % names;
    }
    assert_true(grt_windows_begin(&made.windows, made.commands, made.marks, count, apart));
}

// A run in which command i takes 1 + its name seconds. Returns how many were timed.
static uint32_t run(double share) {
    uint32_t timed = 0;
    uint32_t told = grt_windows_choose(&made.windows, share, made.chosen, made.stands);
    for (uint32_t i = 0; i < made.windows.count; i++) {
        made.begin[i] = made.chosen[i] ? 100.0 * i : NAN;
        made.end[i] = 100.0 * i + 1.0 + made.commands[i].name;
        made.times[i] += made.chosen[i];
        timed += made.chosen[i];
        if (made.chosen[i]) {
            uint32_t name = made.commands[i].name;
            double stands = made.stands[made.windows.kind_of[i]];
            made.sum[name] += stands * (made.end[i] - made.begin[i]);
            made.calls[name] += stands;
        }
    }
    assert_int_equal(timed, told);
    grt_windows_tell(&made.windows, made.chosen, made.begin, made.end);
    made.runs++;
    return timed;
}

static void least_and_most(uint32_t name, uint32_t *least, uint32_t *most) {
    *least = UINT32_MAX;
    *most = 0;
    for (uint32_t i = 0; i < made.windows.count; i++) {
        if (made.commands[i].name == name && !made.marks[i]) {
            *least = made.times[i] < *least ? made.times[i] : *least;
            *most = made.times[i] > *most ? made.times[i] : *most;
        }
    }
}

// Lists of different lengths and shares: none of a kind is timed twice before all were once, the
// first run has each kind, and what is timed is the share that was allowed.
static void every_command_before_any_again(void **state) {
    (void)state;
    const uint32_t counts[] = {1, 2, 63, 64, 65, 100, 257, 500}, names[] = {1, 3, 4, 60};
    const double shares[] = {0.0, 0.01, 0.0625, 0.3, 0.9};
    for (uint32_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
            for (uint32_t s = 0; s < sizeof shares / sizeof *shares; s++) {
                uint32_t kinds = names[n] < counts[c] ? names[n] : counts[c], sum = 0;
                make(counts[c], names[n], true);
                assert_int_equal(made.windows.kinds, kinds);
                uint32_t first = run(shares[s]);
                assert_true(first >= kinds && first <= GRT_WINDOWS_FIRST + kinds);
                assert_true(counts[c] > GRT_WINDOWS_FIRST || first == counts[c]);
                for (uint32_t r = 1; r < 300; r++) {
                    sum += run(shares[s]);
                    for (uint32_t name = 0; name < kinds; name++) {
                        uint32_t least, most;
                        least_and_most(name, &least, &most);
                        assert_true(most >= 1 && most - least <= 1);
                    }
                }
                double allowed = fmax(shares[s] * counts[c], (double)kinds / GRT_WINDOWS_PERIOD);
                assert_true(first + sum <= 299 * allowed * 1.001 + first);
                assert_true(first + sum >= 299 * fmin(shares[s] * counts[c], allowed) - kinds);
                grt_windows_finish(&made.windows);
            }
        }
    }
}

// No run behind the first takes more than its share, rounded up for each kind.
static void no_run_pays_for_all(void **state) {
    (void)state;
    make(500, 4, true);
    assert_int_equal(run(0.02), 64);  // 16 of each
    uint32_t sum = 64;
    for (uint32_t r = 1; r < 60; r++) {
        uint32_t timed = run(0.02);
        assert_true(timed <= 10 + 4);
        sum += timed;
    }
    assert_true(sum >= 590 && sum <= 600);  // ten a run: what the first took is paid back
    uint32_t least, most;
    least_and_most(2, &least, &most);
    assert_true(least == 1 && most == 2);
    grt_windows_finish(&made.windows);
}

// Times stand for all calls: with what is owed at the end each name has its exact seconds.
static void what_times_stand_for_is_exact(void **state) {
    (void)state;
    const double shares[] = {0.004, 0.11, 0.5, 1.0};
    for (uint32_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        make(150, 7, s % 2 == 0);
        for (uint32_t r = 0; r < 97; r++) {
            run(r % 3 == 0 ? shares[s] : shares[s] / 2);
        }
        for (uint32_t k = 0; k < made.windows.kinds; k++) {
            const struct grt_window *window = &made.windows.all[k];
            uint32_t name = made.commands[window->example].name;
            double calls = 97.0 * window->members;
            assert_true(window->newest == 1.0 + name && window->least == window->newest);
            assert_true(fabs(made.calls[name] + (double)window->owed - calls) < 1e-6);
            double seconds = made.sum[name] + (double)window->owed * window->newest;
            assert_true(fabs(seconds - calls * (1.0 + name)) < 1e-6);
        }
        grt_windows_finish(&made.windows);
    }
}

// One name with two shapes is two kinds: the rare one is not taken for the other. Marks have none.
static void kinds_are_names_and_shapes(void **state) {
    (void)state;
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < 200; i++) {
        made.commands[i].bytes = i == 130 ? 8 : 4;
    }
    made.marks[0] = made.marks[70] = true;
    assert_true(grt_windows_begin(&made.windows, made.commands, made.marks, 200, true));
    assert_int_equal(made.windows.kinds, 2);
    assert_int_equal(made.windows.timed, 198);
    assert_int_equal(made.windows.kind_of[0], GRT_NO_WINDOW);
    assert_true(isnan(grt_windows_seconds(&made.windows)));
    run(0.0);
    assert_int_equal(made.times[130], 1);
    assert_int_equal(made.times[0] + made.times[70], 0);
    assert_int_equal(made.times[1], 1);
    assert_int_equal(made.times[199], 0);
    assert_true(grt_windows_seconds(&made.windows) == 198.0);
    grt_windows_finish(&made.windows);
}

// Taking no time is not the same as having no time: one kind has none before both are told.
static void no_time_and_none_known(void **state) {
    (void)state;
    make(2, 2, true);
    static const bool both[2] = {true, true};
    grt_windows_tell(&made.windows, both, (const double[]){5.0, NAN}, (const double[]){5.0, 7.0});
    assert_true(isnan(grt_windows_seconds(&made.windows)));
    grt_windows_tell(&made.windows, both, (const double[]){NAN, 7.0}, (const double[]){5.0, 7.0});
    assert_true(grt_windows_seconds(&made.windows) == 0.0);
    grt_windows_finish(&made.windows);
    make(0, 1, true);
    assert_true(grt_windows_seconds(&made.windows) == 0.0);
    grt_windows_finish(&made.windows);
}

// Sums that begin anew begin with a first run, of the commands behind those that were timed before.
static void windows_resume(void **state) {
    (void)state;
    make(320, 1, true);
    assert_int_equal(run(0.0), 64);
    assert_true(made.chosen[0] && made.chosen[63] && !made.chosen[64]);
    assert_int_equal(run(0.0), 0);
    grt_windows_restart(&made.windows);
    assert_int_equal(run(0.0), 64);
    assert_true(!made.chosen[63] && made.chosen[64] && made.chosen[127] && !made.chosen[128]);
    assert_true(made.stands[0] == 5.0);  // of this run alone
    for (uint32_t i = 0; i < 3; i++) {
        grt_windows_restart(&made.windows);
        run(0.0);
    }
    uint32_t least, most;
    least_and_most(0, &least, &most);
    assert_true(least == 1 && most == 1);
    grt_windows_restart(&made.windows);
    run(0.0);  // round the end of the list
    assert_true(made.chosen[0] && made.chosen[63] && !made.chosen[64]);
    grt_windows_finish(&made.windows);
}

// Where a list is timed whole, all of a run are timed or none, as often as the share says.
static void whole_lists(void **state) {
    (void)state;
    make(100, 3, false);
    for (uint32_t r = 0; r < 200; r++) {
        assert_int_equal(run(0.04), r % 25 == 0 ? 100 : 0);
    }
    grt_windows_finish(&made.windows);
    make(100, 3, false);
    for (uint32_t r = 0; r < 200; r++) {
        assert_int_equal(run(0.0), r % GRT_WINDOWS_PERIOD == 0 ? 100 : 0);
    }
    grt_windows_finish(&made.windows);
    make(100, 3, true);
    for (uint32_t r = 0; r < 5; r++) {
        assert_int_equal(run(1.0), 100);
    }
    grt_windows_finish(&made.windows);
    make(0, 1, true);  // of nothing
    assert_int_equal(run(0.5), 0);
    grt_windows_finish(&made.windows);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(every_command_before_any_again),
    cmocka_unit_test(no_run_pays_for_all),
    cmocka_unit_test(what_times_stand_for_is_exact),
    cmocka_unit_test(kinds_are_names_and_shapes),
    cmocka_unit_test(no_time_and_none_known),
    cmocka_unit_test(windows_resume),
    cmocka_unit_test(whole_lists),
};
TEST_SUITE(windows, false, cases);
