// SPDX-License-Identifier: Apache-2.0
// Patience, time, and both in a checkpoint.
#include "harness/harness.h"

#include <math.h>

#include "gpurt/limits.h"

// Evaluations up to the one that ends the run; 0: none does.
static uint32_t ends_at(const struct grt_limits *limits, const double *scores, uint32_t count) {
    struct grt_patience p = {0};
    for (uint32_t i = 0; i < count; i++) {
        grt_patience_add(&p, limits, scores[i]);
        if (grt_limits_reached(limits, &p, 0) == GRT_ENDED_PATIENCE) {
            return i + 1;
        }
    }
    return 0;
}

static void patience(void **state) {
    (void)state;
    const double scores[] = {-9, -8, -8, -8.5, -7.5, -7.4, -7.3, -7.2, -7.1, -7.0};
    const uint32_t count = sizeof scores / sizeof *scores;
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 2}, scores, count), 4);
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 3}, scores, count), 0);
    assert_int_equal(ends_at(&(struct grt_limits){0}, scores, count), 0);
    // Small improvements add up to one that counts: -7.5 to -7.2.
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 3, .min_delta = 0.25}, scores, count),
                     0);
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 4, .min_delta = 0.75}, scores, count),
                     6);
    // As large as min_delta is not larger.
    const double exact[] = {1, 1.5, 2, 2.5};
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 1, .min_delta = 0.5}, exact, 4), 2);
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 1, .min_delta = 0.25}, exact, 4), 0);
    const double bad[] = {NAN, -INFINITY, 3, NAN, INFINITY, 4};
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 2}, bad, 6), 2);
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 2}, bad + 2, 4), 3);
    assert_int_equal(ends_at(&(struct grt_limits){.patience = 3}, bad + 2, 4), 0);
}

static void time_is_up(void **state) {
    (void)state;
    struct grt_patience p = {.waited = 7};
    struct grt_limits limits = {.max_time = 10};
    assert_int_equal(grt_limits_reached(&limits, &p, 9.999), GRT_ENDED_NONE);
    assert_int_equal(grt_limits_reached(&limits, &p, 10), GRT_ENDED_MAX_TIME);
    limits.patience = 7;
    assert_int_equal(grt_limits_reached(&limits, &p, 0), GRT_ENDED_PATIENCE);
    assert_int_equal(grt_limits_reached(&(struct grt_limits){0}, &p, 1e9), GRT_ENDED_NONE);
    assert_string_equal(grt_ending_word(GRT_ENDED_MAX_TIME), "max_time");
    assert_string_equal(grt_ending_word(GRT_ENDING_COUNT), "");
}

static void kept(void **state) {
    (void)state;
    struct grt_archive *a = grt_archive_create();
    struct grt_patience p = {.waited = 3, .score = -1.0 / 3, .any = true}, back;
    double seconds = -1;
    grt_limits_load(a, &back, &seconds);
    assert_true(back.waited == 0 && !back.any && seconds == 0);
    assert_true(grt_limits_save(&(struct grt_limits){.patience = 9}, &p, 12.5, a));
    grt_limits_load(a, &back, &seconds);
    assert_true(back.waited == 3 && back.any && back.score == p.score && seconds == 0);
    assert_true(grt_limits_save(&(struct grt_limits){.max_time = 60}, &p, 12.5, a));
    grt_limits_load(a, &back, &seconds);
    assert_true(seconds == 12.5);
    // What is not limited is not kept.
    grt_archive_destroy(&a);
    a = grt_archive_create();
    assert_true(grt_limits_save(&(struct grt_limits){0}, &p, 12.5, a));
    assert_int_equal(a->value_count, 0);
    grt_archive_destroy(&a);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(patience),
    TEST_CASE(time_is_up),
    TEST_CASE(kept),
};
TEST_SUITE(limits, false, cases);
