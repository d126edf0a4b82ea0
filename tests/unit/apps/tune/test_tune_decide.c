// SPDX-License-Identifier: Apache-2.0
// What gpurt tune decides, with times given: which candidate leads, and what is replaced.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune/tune.h"

static void near(double got, double want) {
    assert_true(got > want - 1e-12 && got < want + 1e-12);
}

static void candidates(void **state) {
    (void)state;
    struct tune_time none = {0}, best = {.median = 2, .spread = 0.1, .fastest = 1.5};
    // Ranked by the fastest run: a busy machine only ever adds to the median.
    assert_true(tune_time_leads(&(struct tune_time){.median = 3, .fastest = 1.4}, &best));
    assert_false(tune_time_leads(&(struct tune_time){.median = 1.6, .fastest = 1.6}, &best));
    assert_false(tune_time_leads(&(struct tune_time){.median = 1.9, .fastest = 1.5}, &best));
    // One that did not run leads nobody, and nobody that ran stays behind it.
    assert_false(tune_time_leads(&none, &best));
    assert_true(tune_time_leads(&best, &none));
    assert_false(tune_time_leads(&none, &none));
}

static void sums(void **state) {
    (void)state;
    struct tune_time sum = {.median = 1, .spread = 0.2, .fastest = 0.5};
    tune_time_add(&sum, &(struct tune_time){.median = 2, .spread = 0.1, .fastest = 1.75});
    near(sum.median, 3);
    near(sum.fastest, 2.25);
    near(sum.spread, 0.2);
    tune_time_add(&sum, &(struct tune_time){.median = 1, .spread = 0.3, .fastest = 1});
    near(sum.spread, 0.3);
}

static struct tune_answer duel(double before, double after, double spread, bool wins) {
    return (struct tune_answer){
        .good = true, .times = {{before, spread, before}, {after, spread, after}}, .wins = wins};
}

static void slower(void **state) {
    (void)state;
    // Both spreads count: 5 + 5 % of 100.
    struct tune_answer at = duel(100, 110, 0.05, false), above = duel(100, 110.5, 0.05, false);
    assert_false(tune_duel_slower(&at));
    assert_true(tune_duel_slower(&above));
    struct tune_answer faster = duel(100, 90, 0, true), equal = duel(100, 100, 0, false);
    assert_false(tune_duel_slower(&faster));
    assert_false(tune_duel_slower(&equal));
    // Only one of the two is noisy.
    struct tune_answer noisy = {.times = {{100, 0, 100}, {110, 0.2, 110}}};
    assert_false(tune_duel_slower(&noisy));
}

// Verdict over duels of (before, after, won); -1: one of several shapes became slower.
static int verdict(uint32_t shapes, const double (*rows)[3]) {
    struct tune_verdict v = {.shapes = shapes};
    for (uint32_t i = 0; i < shapes; i++) {
        struct tune_answer answer = duel(rows[i][0], rows[i][1], 0.02, rows[i][2] > 0);
        if (!tune_verdict_add(&v, &answer)) {
            return -1;
        }
    }
    double before = 0, after = 0;
    for (uint32_t i = 0; i < shapes; i++) {
        before += rows[i][0];
        after += rows[i][1];
    }
    near(v.before.median, before);
    near(v.best.median, after);
    return tune_verdict_wins(&v);
}

static void verdicts(void **state) {
    (void)state;
    // One shape: faster by the rounds and by the median, or nothing changes.
    assert_int_equal(verdict(1, (const double[][3]){{10, 8, 1}}), 1);
    assert_int_equal(verdict(1, (const double[][3]){{10, 8, 0}}), 0);
    assert_int_equal(verdict(1, (const double[][3]){{10, 10, 1}}), 0);
    assert_int_equal(verdict(1, (const double[][3]){{10, 12, 1}}), 0);
    // Several: one that wins is enough, wherever it stands; none may be slower.
    assert_int_equal(verdict(2, (const double[][3]){{10, 8, 1}, {20, 20.1, 0}}), 1);
    assert_int_equal(verdict(2, (const double[][3]){{20, 20.1, 0}, {10, 8, 1}}), 1);
    assert_int_equal(verdict(2, (const double[][3]){{20, 19.9, 0}, {10, 9.9, 0}}), 0);
    assert_int_equal(verdict(2, (const double[][3]){{10, 5, 1}, {1, 1.2, 0}}), -1);
    assert_int_equal(verdict(2, (const double[][3]){{10, 9.9, 1}, {20, 20.2, 0}}), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(candidates), cmocka_unit_test(sums),
                                       cmocka_unit_test(slower), cmocka_unit_test(verdicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
