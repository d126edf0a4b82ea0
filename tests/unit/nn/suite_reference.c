// SPDX-License-Identifier: Apache-2.0
// The gradients that fused kernels are checked with (nn/fused/mlp_reference.h) and the oracle's.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/fused/mlp_reference.h"
#include "oracle/mlp.h"

#define MOST 16u  // of a width
#define PERIOD 3u
#define ROWS 8u  // the first two samples three times, the last twice

struct model {
    uint32_t inputs, depth, hidden, outputs;
    enum grt_act act;
    enum grt_loss loss;
};

static void compare(const struct model *c) {
    struct grt_mlp_reference r = {.model = {.inputs = c->inputs,
                                            .depth = c->depth,
                                            .hidden = c->hidden,
                                            .outputs = c->outputs,
                                            .act = c->act},
                                  .loss = c->loss,
                                  .delta = 1,
                                  .dtype = GRT_F32,
                                  .scale = 4,
                                  .rows = ROWS,
                                  .period = PERIOD};
    size_t count = grt_mlp_reference_at(&r.model, c->depth + 1);
    float *params = test_floats(3 + c->hidden, TEST_PLAIN, count);
    float *x = test_floats(5, TEST_PLAIN, (size_t)PERIOD * c->inputs);
    float *target = test_floats(7, TEST_PLAIN, (size_t)PERIOD * c->outputs);
    double wide[4096], got_y[PERIOD * MOST], want_y[ROWS * MOST] = {0}, grads[4096] = {0};
    double xs[ROWS * MOST], targets[ROWS * MOST];
    uint32_t classes[ROWS];
    assert_true(count < 4096);
    for (size_t i = 0; i < count; i++) {
        wide[i] = (double)params[i];
    }
    for (uint32_t s = 0; s < ROWS; s++) {
        classes[s] = (s % PERIOD) % c->outputs;
        for (uint32_t i = 0; i < c->inputs; i++) {
            xs[s * c->inputs + i] = (double)x[s % PERIOD * c->inputs + i];
        }
        for (uint32_t i = 0; i < c->outputs; i++) {
            targets[s * c->outputs + i] = (double)target[s % PERIOD * c->outputs + i];
        }
    }
    struct oracle_mlp o = {.rows = ROWS,
                           .inputs = c->inputs,
                           .depth = c->depth,
                           .hidden = c->hidden,
                           .outputs = c->outputs,
                           .samples = ROWS,
                           .act = grt_act_text(c->act),
                           .loss = grt_loss_text(c->loss),
                           .scale = 4,
                           .x = xs,
                           .target = targets,
                           .classes = classes};
    struct oracle_mlp_result want = {.y = want_y};
    size_t at = 0;
    for (uint32_t l = 0; l <= c->depth; l++) {
        size_t from = l == 0 ? c->inputs : c->hidden, to = l == c->depth ? c->outputs : c->hidden;
        assert_int_equal(grt_mlp_reference_at(&r.model, l), at);
        o.weight[l] = wide + at;
        want.weight[l] = grads + at;
        at += from * to;
        o.bias[l] = wide + at;
        want.bias[l] = grads + at;
        at += to;
    }
    assert_int_equal(at, count);
    oracle_mlp(&o, &want);

    r.params = params;
    r.x = x;
    r.target = c->loss == GRT_LOSS_CROSS_ENTROPY ? (const void *)classes : (const void *)target;
    r.y = got_y;
    assert_true(grt_mlp_reference(&r));
    assert_true(fabs(r.mean - want.loss) <= 1e-9 * (1 + fabs(want.loss)));
    for (uint32_t i = 0; i < PERIOD * c->outputs; i++) {
        assert_true(fabs(got_y[i] - want_y[i]) <= 1e-9 * (1 + fabs(want_y[i])));
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(fabs(r.grads[i] - grads[i]) <= 1e-9 * (1 + fabs(grads[i])));
    }
    free(r.grads);
    free(params);
    free(x);
    free(target);
}

// Widths all alike, so that what lies behind a layer's last unit is another's; and all different.
static void gradients(void **state) {
    (void)state;
    static const struct model models[] = {
        {4, 2, 4, 4, GRT_ACT_TANH, GRT_LOSS_MSE},
        {3, 3, 5, 2, GRT_ACT_GELU, GRT_LOSS_HUBER},
        {6, 1, 3, 1, GRT_ACT_RELU, GRT_LOSS_BCE},
        {2, 2, 16, 7, GRT_ACT_TANH, GRT_LOSS_CROSS_ENTROPY},
        {16, 0, 1, 3, GRT_ACT_RELU, GRT_LOSS_MSE},
        {5, 2, 5, 5, GRT_ACT_RELU, GRT_LOSS_CROSS_ENTROPY},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        compare(&models[i]);
    }
}

// |got - want| / |want|, and what is no number is infinitely far.
static void distances(void **state) {
    (void)state;
    const double want[] = {3, 4};
    assert_true(grt_mlp_reference_distance((const float[]){3, 4}, want, 2) == 0);
    assert_true(fabs(grt_mlp_reference_distance((const float[]){3, 5}, want, 2) - 0.2) < 1e-12);
    assert_true(fabs(grt_mlp_reference_distance((const float[]){0, 0}, want, 2) - 1) < 1e-12);
    assert_true(isinf(grt_mlp_reference_distance((const float[]){3, NAN}, want, 2)));
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(gradients),
    TEST_CASE(distances),
};
TEST_SUITE(reference, false, cases);
