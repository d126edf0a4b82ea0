// SPDX-License-Identifier: Apache-2.0
// The actions that `gpurt play` shows beside what a policy saw: every kind of policy, by its
// formula.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpurt/archive.h"
#include "verbs/play.h"

#define OBS 3
#define ACT 2
#define HIDDEN 16
#define FRAMES 3

// Some numbers from -0.4 to 0.4.
static float number(uint32_t i) {
    return (float)((i * 37u + 11u) % 41u) / 50.0f - 0.4f;
}

static const float *add(struct grt_archive *archive, const char *name, uint32_t rows, uint32_t cols,
                        uint32_t from) {
    const uint64_t shape[2] = {rows, cols};
    struct grt_archive_tensor *t =
        grt_archive_add(archive, name, GRT_F32, cols > 1 ? 2 : 1, shape, NULL);
    assert_non_null(t);
    float *data = t->data;
    for (uint32_t i = 0; i < rows * cols; i++) {
        data[i] = number(from + i);
    }
    return data;
}

static double row_of(const float *w, const float *b, uint32_t row, uint32_t cols, const double *x) {
    double sum = b ? (double)b[row] : 0;
    for (uint32_t i = 0; i < cols; i++) {
        sum += (double)w[row * cols + i] * x[i];
    }
    return sum;
}

static void actions(void **state) {
    static const struct grt_env_info env = {.name = "made up", .obs = OBS, .act = ACT};
    static const char *const texts[] = {"linear", "affine", "mlp16", "mlp16-tanh"};
    // Beyond what a linear policy may answer, and within.
    static const float seen[FRAMES * OBS] = {0.1f, 0.2f, -0.3f, 9, -8, 7, -9, 8, -7};
    (void)state;
    for (size_t p = 0; p < sizeof texts / sizeof *texts; p++) {
        struct grt_policy policy;
        struct grt_archive *archive = grt_archive_create();
        assert_non_null(archive);
        assert_true(grt_policy_parse(texts[p], &policy));
        const float *norm = add(archive, "normalizer/mean_rstd_variance", 3, OBS, 1);
        bool deep = policy.hidden > 0;
        const float *w = add(archive, deep ? "model/layers.0.weight" : "model/weight",
                             deep ? HIDDEN : ACT, OBS, 20);
        const float *b = policy.bias ? add(archive, deep ? "model/layers.0.bias" : "model/bias",
                                           deep ? HIDDEN : ACT, 1, 300)
                                     : NULL;
        const float *v = deep ? add(archive, "model/layers.1.weight", ACT, HIDDEN, 500) : NULL;
        const float *c = deep ? add(archive, "model/layers.1.bias", ACT, 1, 700) : NULL;
        float *got = play_actions(&policy, &env, archive, seen, FRAMES);
        assert_non_null(got);
        bool bent = false, within = false;
        for (uint32_t f = 0; f < FRAMES; f++) {
            double x[OBS], h[HIDDEN];
            for (uint32_t i = 0; i < OBS; i++) {
                x[i] = ((double)seen[f * OBS + i] - (double)norm[i]) * (double)norm[OBS + i];
            }
            for (uint32_t i = 0; deep && i < HIDDEN; i++) {
                h[i] = row_of(w, b, i, OBS, x);
                h[i] = policy.tanh ? tanh(h[i]) : fmax(h[i], 0);
            }
            for (uint32_t a = 0; a < ACT; a++) {
                double sum = deep ? row_of(v, c, a, HIDDEN, h) : row_of(w, b, a, OBS, x);
                double want = deep ? tanh(sum) : fmin(fmax(sum, -1), 1);
                bent = bent || fabs(sum - want) > 0.01;
                within = within || fabs(want) <= 0.9;
                assert_true(fabs((double)got[f * ACT + a] - want) < 1e-6);
            }
        }
        assert_true(bent && within);
        free(got);
        grt_archive_destroy(&archive);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(actions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
