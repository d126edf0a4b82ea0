// SPDX-License-Identifier: Apache-2.0
// What a handful of times says: order statistics, and two works timed in turns on a machine that is
// busy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/stats.h"

#define COUNT 16

static void near(double got, double want) {
    assert_true(got > want - 1e-12 && got < want + 1e-12);
}

static void order(void **state) {
    (void)state;
    double samples[] = {4, 100, 1, 3, 2};
    struct stats s = stats_of(samples, 5);
    near(s.min, 1);
    near(s.lower, 2);
    near(s.median, 3);
    near(s.upper, 4);
    near(s.spread, 1.0 / 3);
    double pair[] = {3, 1};
    near(stats_of(pair, 2).median, 2);
    assert_int_equal(stats_of(pair, 0).count, 0);
}

// Every sample in `hit` of four takes `slower` times as long.
static void noisy(double *samples, double seconds, size_t hit, double slower) {
    for (size_t i = 0; i < COUNT; i++) {
        samples[i] = i % 4 < hit ? seconds * slower : seconds;
    }
}

// The machine slows both down, by turns far more than they differ: the spread of each is larger
// than its median.
static void a_busy_machine_hides_nothing(void **state) {
    (void)state;
    double slow[COUNT], fast[COUNT];
    noisy(slow, 8, 2, 40);
    noisy(fast, 1, 2, 40);
    assert_true(stats_wins(slow, fast, COUNT));
    assert_false(stats_wins(fast, slow, COUNT));
    assert_true(stats_of(slow, COUNT).spread > 0.9 && stats_of(fast, COUNT).spread > 0.9);
    // Hit alone in a quarter of the rounds it is still known as the faster, in half of them no
    // more.
    noisy(slow, 8, 0, 1);
    noisy(fast, 1, 1, 40);
    assert_true(stats_wins(slow, fast, COUNT));
    noisy(fast, 1, 2, 40);
    assert_false(stats_wins(slow, fast, COUNT));
}

static void equals_do_not_win(void **state) {
    (void)state;
    double first[COUNT], second[COUNT];
    noisy(first, 1, 0, 1);
    noisy(second, 1, 0, 1);
    assert_false(stats_wins(first, second, COUNT));
    noisy(second, 0.99, 2, 1.03);  // faster in every second round
    assert_false(stats_wins(first, second, COUNT));
    assert_false(stats_wins(first, second, 0));
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(a_busy_machine_hides_nothing),
        cmocka_unit_test(equals_do_not_win),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
