// SPDX-License-Identifier: Apache-2.0
// Patience, time, both in a checkpoint, and rates that fall where scores do not improve.
#include "harness/harness.h"

#include <math.h>

#include "gpurt/limits.h"
#include "run/supervised/plateau.h"

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

// ---- rates that fall ----

// Scores one by one: the factor behind each, from the rules of PyTorch's ReduceLROnPlateau by hand.
struct fall {
    double score, factor;
};

// Also with a checkpoint between any two scores: nothing but what it has is known behind it.
static void fall_follows(const struct plateau_desc *d, const struct fall *falls, uint32_t count) {
    struct plateau whole = {0}, cut = {0};
    for (uint32_t i = 0; i < count; i++) {
        double before = plateau_factor(&whole);
        bool falls_now = plateau_add(&whole, d, falls[i].score);
        if (plateau_add(&cut, d, falls[i].score) != falls_now) {
            fail_msg("score %u: %s behind a checkpoint", i, falls_now ? "no fall" : "falls");
        }
        if (fabs(plateau_factor(&whole) - falls[i].factor) > 1e-12) {
            fail_msg("score %u: factor %g, not %g", i, plateau_factor(&whole), falls[i].factor);
        }
        assert_int_equal(falls_now, falls[i].factor < 0.9 * before);
        struct grt_archive *a = grt_archive_create();
        assert_true(plateau_save(&cut, a));
        cut = (struct plateau){.best = 1e9, .bad = 99, .cooling = 99, .factor = 99, .any = true};
        plateau_load(&cut, a);
        grt_archive_destroy(&a);
        assert_true(plateau_factor(&cut) == plateau_factor(&whole));
    }
}

static void plateau(void **state) {
    (void)state;
    struct plateau_desc d = {
        .factor = 0.5, .threshold = 0.1, .patience = 2, .lr = 0.01, .min_lr = 0.002, .loss = true};
    // Losses, which are scores below 0. A tenth better than the best counts, less does not, and
    // three in a row that do not are one more than patience.
    const struct fall losses[] = {
        {-10, 1},     {-9.1, 1},  // 9 would be a tenth better: one
        {-8.9, 1},                // better: none
        {-8.02, 1},   {-20, 1},
        {-8.02, 0.5},             // three: 8.01 would be a tenth better than 8.9
        {-8.02, 0.5}, {-8, 0.5},  // one, and better
        {NAN, 0.5},   {-INFINITY, 0.5},
        {-8, 0.25},  // what is no number is not better
        {-8, 0.25},   {-8, 0.25},
        {-8, 0.2},  // not below the least rate
        {-8, 0.2},    {-8, 0.2},
        {-8, 0.2},  // where it stays
        {-7, 0.2},    {-7, 0.2},
        {-7, 0.2},
    };
    fall_follows(&d, losses, sizeof losses / sizeof *losses);
    // Scores above 0, with no patience: each that is not a tenth better lets it fall. Behind a fall
    // two are not counted.
    d = (struct plateau_desc){.factor = 0.1, .threshold = 0.1, .cooldown = 2, .lr = 1};
    const struct fall scores[] = {
        {1, 1},    {1.11, 1}, {1.22, 0.1},  // 1.221 is wanted
        {1, 0.1},  {1, 0.1},  {1.2, 0.01}, {1.2, 0.01}, {2, 0.01},
        {2, 1e-3}, {3, 1e-3}, {1, 1e-3},   {4, 1e-3},   {1, 1e-4},
    };
    fall_follows(&d, scores, sizeof scores / sizeof *scores);
    // A first one that is no number is no best. A change of nothing is none.
    d = (struct plateau_desc){.factor = 0.5, .lr = 1.5e-8, .loss = true};
    const struct fall tiny[] = {{NAN, 1}, {-5, 1}, {-5, 1}, {-6, 1}};
    fall_follows(&d, tiny, sizeof tiny / sizeof *tiny);
    d.lr = 2.5e-8;
    const struct fall first[] = {{NAN, 0.5}, {-5, 0.5}, {-4, 0.5}, {-4, 0.5}};
    fall_follows(&d, first, sizeof first / sizeof *first);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(patience),
    TEST_CASE(time_is_up),
    TEST_CASE(kept),
    TEST_CASE(plateau),
};
TEST_SUITE(limits, false, cases);
