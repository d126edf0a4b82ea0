// SPDX-License-Identifier: Apache-2.0
// Scores against scikit-learn 1.9.1 with NumPy 2.4.6, to nine digits: the numbers below are its
// mean_absolute_error, mean_squared_error, r2_score, accuracy_score, f1_score(average="macro") and
// roc_auc_score of the numbers that next() makes, of more than two classes each against the rest,
// over shares rounded to 12 digits, so that ties are ties; what they are at their edges.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>

#include "gpurt/scores.h"

#define ROWS 60

// -2 to 2 in steps of 1/500, of a generator that any program can have.
static double next(uint32_t *state) {
    *state = (*state * 1103515245u + 12345u) & 0x7fffffffu;
    return ((int)((*state >> 8) % 2001) - 1000) / 500.0;
}

static bool near(double got, double want) {
    return fabs(got - want) <= 1e-8 * fmax(1, fabs(want));
}

static void numbers(void **state) {
    (void)state;
    static const double places[3] = {1000, 0, -5};
    float y[ROWS * 3], t[ROWS * 3];
    uint32_t random = 12345;
    for (int i = 0; i < ROWS * 3; i++) {
        y[i] = (float)((double)(float)next(&random) * 0.3 + places[i % 3]);
    }
    for (int i = 0; i < ROWS * 3; i++) {
        t[i] = (float)((double)(float)next(&random) + places[i % 3]);
    }
    struct grt_scores s;
    assert_true(grt_scores_numbers(y, t, NULL, ROWS, 3, &s));
    assert_true(s.samples == ROWS && s.classes == 0);
    assert_true(near(s.mae, 0.954937792) && near(s.mse, 1.31149166) && near(s.r2, -0.120750732));
    // Targets that are all alike.
    const float same[4] = {3, 3, 3, 3}, said[4] = {3, 3, 3, 4};
    assert_true(grt_scores_numbers(same, same, NULL, 4, 1, &s) && s.r2 == 1 && s.mae == 0);
    assert_true(grt_scores_numbers(said, same, NULL, 4, 1, &s) && s.r2 == 0 && s.mae == 0.25);
    assert_true(grt_scores_numbers(same, said, NULL, 4, 1, &s) && near(s.r2, -1 / 3.0));
}

static void classes(void **state) {
    (void)state;
    static const struct {
        uint32_t classes;
        double accuracy, f1, auc;
    } want[] = {{2, 0.483333333, 0.47972028, 0.493778281},
                {4, 0.233333333, 0.232275132, 0.515457341}};
    for (size_t c = 0; c < sizeof want / sizeof *want; c++) {
        float logits[ROWS * 4];
        uint32_t truth[ROWS], random = 12345, count = want[c].classes;
        for (uint32_t i = 0; i < ROWS * count; i++) {
            logits[i] = (float)(nearbyint(next(&random) * 2) / 2);  // with many ties
        }
        for (uint32_t i = 0; i < ROWS; i++) {
            truth[i] = (uint32_t)fabs(next(&random) * 500) % count;
        }
        struct grt_scores s;
        assert_true(grt_scores_classes(logits, truth, NULL, ROWS, count, &s));
        assert_true(s.samples == ROWS && s.classes == count);
        assert_true(near(s.accuracy, want[c].accuracy) && near(s.f1, want[c].f1));
        assert_true(near(s.auc, want[c].auc));
    }
    // All right; a class that there is not counts for nothing; one class alone has no area.
    const float clear[9] = {9, 0, 0, 0, 9, 0, 9, 0, 0};
    const uint32_t two[3] = {0, 1, 0}, one[3] = {0, 0, 0};
    struct grt_scores s;
    assert_true(grt_scores_classes(clear, two, NULL, 3, 3, &s));
    assert_true(s.accuracy == 1 && s.f1 == 1 && s.auc == 1);
    assert_true(grt_scores_classes(clear, one, NULL, 3, 3, &s));
    assert_true(near(s.accuracy, 2 / 3.0) && near(s.f1, 0.4) && isnan(s.auc));
    // Numbers without an order have no area.
    const float infinite[6] = {INFINITY, 0, 0, 1, 2, 1};
    assert_true(grt_scores_classes(infinite, two, NULL, 3, 2, &s));
    assert_true(isnan(s.auc));
}

// A weight of three is a sample that is there three times; one of none is not there at all.
static void weights(void **state) {
    (void)state;
    enum { ALL = 12, WIDTH = 2, KINDS = 3 };
    static const uint32_t times[ALL] = {1, 0, 3, 2, 1, 1, 0, 2, 4, 1, 1, 2};
    float y[ALL * KINDS], t[ALL * WIDTH], w[ALL];
    float many_y[4 * ALL * KINDS], many_t[4 * ALL * WIDTH];
    uint32_t truth[ALL], many_truth[4 * ALL], random = 777, count = 0;
    for (int i = 0; i < ALL * KINDS; i++) {
        y[i] = (float)(nearbyint(next(&random) * 2) / 2);
    }
    for (int i = 0; i < ALL * WIDTH; i++) {
        t[i] = (float)next(&random);
    }
    for (uint32_t i = 0; i < ALL; i++) {
        truth[i] = i % KINDS;
        w[i] = 0.25f * (float)times[i];
        for (uint32_t k = 0; k < times[i]; k++, count++) {
            for (int c = 0; c < KINDS; c++) {
                many_y[count * KINDS + (uint32_t)c] = y[i * KINDS + (uint32_t)c];
            }
            many_truth[count] = truth[i];
        }
    }
    struct grt_scores a, b;
    assert_true(grt_scores_classes(y, truth, w, ALL, KINDS, &a));
    assert_true(grt_scores_classes(many_y, many_truth, NULL, count, KINDS, &b));
    assert_true(a.samples == ALL && b.samples == count);
    assert_true(near(a.accuracy, b.accuracy) && near(a.f1, b.f1) && near(a.auc, b.auc));
    assert_true(a.accuracy > 0 && a.accuracy < 1 && a.auc > 0 && a.auc < 1);
    count = 0;
    for (uint32_t i = 0; i < ALL; i++) {
        for (uint32_t k = 0; k < times[i]; k++, count++) {
            for (uint32_t c = 0; c < WIDTH; c++) {
                many_y[count * WIDTH + c] = y[i * WIDTH + c];
                many_t[count * WIDTH + c] = t[i * WIDTH + c];
            }
        }
    }
    assert_true(grt_scores_numbers(y, t, w, ALL, WIDTH, &a));
    assert_true(grt_scores_numbers(many_y, many_t, NULL, count, WIDTH, &b));
    assert_true(near(a.mae, b.mae) && near(a.mse, b.mse) && near(a.r2, b.r2) && a.mae > 0);
    // Of logits that are very large nothing is lost; the last of the classes is one too.
    const float large[6] = {1000, 0, 0, 0, 0, 1000};
    const uint32_t ends[2] = {0, 2};
    assert_true(grt_scores_classes(large, ends, NULL, 2, 3, &a));
    assert_true(a.accuracy == 1 && a.f1 == 1 && a.auc == 1);
    TEST_REFUSED(grt_scores_classes(large, ends, NULL, 2, 2, &a), GRT_INVALID, "class 2 of 2");
    TEST_REFUSED(grt_scores_classes(large, ends, NULL, 0, 3, &a), GRT_INVALID, "and samples");
    TEST_REFUSED(grt_scores_numbers(y, t, NULL, 2, 0, &a), GRT_INVALID,
                 "scores want numbers, targets and samples");
}

static void refused(void **state) {
    (void)state;
    const float y[2] = {1, 2};
    const uint32_t past[1] = {2};
    struct grt_scores s;
    TEST_REFUSED(grt_scores_numbers(y, NULL, NULL, 2, 1, &s), GRT_INVALID, "targets");
    TEST_REFUSED(grt_scores_numbers(y, y, NULL, 0, 1, &s), GRT_INVALID, "samples");
    TEST_REFUSED(grt_scores_classes(y, past, NULL, 1, 2, &s), GRT_INVALID, "class 2 of 2");
    TEST_REFUSED(grt_scores_classes(NULL, past, NULL, 1, 2, &s), GRT_INVALID, "numbers");
    // Samples that weigh nothing; one that weighs something is enough.
    const float nothing[2] = {0, 0}, some[2] = {0, 3};
    const uint32_t first[1] = {1};
    TEST_REFUSED(grt_scores_numbers(y, y, nothing, 2, 1, &s), GRT_BAD_DATA, "all 0");
    TEST_REFUSED(grt_scores_classes(y, first, nothing, 1, 2, &s), GRT_BAD_DATA, "all 0");
    assert_true(grt_scores_numbers(y, y, some, 2, 1, &s) && s.mae == 0);
    TEST_REFUSED(grt_score(NULL, NULL, NULL, GRT_PART_ALL, NULL, &s), GRT_INVALID, "a device");
}

static const struct CMUnitTest cases[] = {TEST_CASE(numbers), TEST_CASE(classes),
                                          TEST_CASE(weights), TEST_CASE(refused)};
TEST_SUITE(scores, false, cases);
