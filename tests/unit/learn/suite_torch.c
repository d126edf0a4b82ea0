// SPDX-License-Identifier: Apache-2.0
// Lists of layers beside PyTorch's: the losses of 50 steps from the same parameters and samples.
#include <stdio.h>

#include "golden/network_torch.h"
#include "gpurt/network.h"
#include "kits/learn_kit.h"

static const struct grt_network_desc network = {
    .text = "[{linear: 64}, {norm: layer}, gelu,"
            " {residual: [{linear: 64}, relu, {dropout: 0}, {linear: 64}]},"
            " {repeat: {times: 3, of: [{linear: 32}, relu]}},"
            " {residual: {of: [{linear: 32}, tanh], activation: silu}},"
            " {linear: out}]",
    .outputs = TORCH_OUTPUTS};

static struct grt_learner_desc desc_of(enum grt_optim optim, double lr) {
    struct grt_learner_desc d = {.make = grt_network_make,
                                 .of = &network,
                                 .input = {1, {TORCH_INPUTS}},
                                 .optim = grt_optim_defaults(optim),
                                 .batch = TORCH_BATCH};
    d.optim.lr = lr;
    return d;
}

// Samples in the order of their index, batch after batch, over and over.
static void check(const char *name, const struct grt_learner_desc *desc, const double *losses) {
    struct grt_learner *learner = grt_learner_create(test.dev, desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    learn_set_parameters(learner);
    struct grt_buf *x = test_buf(test.dev, TORCH_SAMPLES * TORCH_INPUTS * 4, GRT_BUF_UPLOAD);
    struct grt_buf *y = test_buf(test.dev, TORCH_SAMPLES * TORCH_OUTPUTS * 4, GRT_BUF_UPLOAD);
    for (uint32_t i = 0; i < TORCH_SAMPLES * TORCH_INPUTS; i++) {
        ((float *)grt_buf_host(x))[i] = learn_number(1, i);
    }
    for (uint32_t i = 0; i < TORCH_SAMPLES * TORCH_OUTPUTS; i++) {
        if (desc->loss == GRT_LOSS_CROSS_ENTROPY) {
            ((uint32_t *)grt_buf_host(y))[i] = learn_hash(2, i) % TORCH_OUTPUTS;
        } else {
            ((float *)grt_buf_host(y))[i] = learn_number(2, i);
        }
    }
    struct grt_graph *steps[TORCH_SAMPLES / TORCH_BATCH];
    const uint32_t batches = TORCH_SAMPLES / TORCH_BATCH;
    uint64_t x_bytes = TORCH_BATCH * grt_learner_x_bytes(learner);
    uint64_t y_bytes = TORCH_BATCH * grt_learner_y_bytes(learner);
    for (uint32_t i = 0; i < batches; i++) {
        steps[i] = grt_learner_step(
            learner, grt_step_desc(.x = {x, i * x_bytes, x_bytes}, .y = {y, i * y_bytes, y_bytes}));
        assert_non_null(steps[i]);
    }
    for (uint32_t i = 0; i < TORCH_STEPS; i++) {
        assert_true(grt_graph_run(steps[i % batches]));
    }
    struct grt_learn_row rows[TORCH_STEPS];
    uint32_t first = 0;
    assert_int_equal(grt_learner_history(learner, &first, rows, TORCH_STEPS), TORCH_STEPS);
    struct test_compare compare = test_compare(test.dev, "losses of %s", name);
    for (uint32_t i = 0; i < TORCH_STEPS; i++) {
        test_compare_value(&compare, i, rows[i].loss,
                           (struct oracle_value){losses[i], 1e-4 * losses[i]});
    }
    test_compare_end(&compare);
    for (uint32_t i = 0; i < batches; i++) {
        grt_graph_destroy(&steps[i]);
    }
    grt_buf_destroy(&x);
    grt_buf_destroy(&y);
    grt_learner_destroy(&learner);
}

static void two_residuals(void **state) {
    (void)state;
    struct grt_learner_desc d = desc_of(GRT_OPTIM_ADAMW, 1e-3);
    check("a list of layers", &d, torch_network);
}

static struct grt_optim_group group(const char *match, double lr) {
    struct grt_optim_group g = {.own_lr = true, .lr = lr};
    snprintf(g.match, sizeof g.match, "%s", match);
    return g;
}

static void groups(void **state) {
    (void)state;
    struct grt_learner_desc d = desc_of(GRT_OPTIM_ADAMW, 1e-3);
    d.optim.weight_decay = 0.05;
    d.optim.decay_matrices = true;
    d.optim.groups[0] = group("3.*", 5e-4);
    d.optim.groups[1] = group("6.*", 3e-3);
    d.optim.groups[1].own_decay = true;
    d.optim.groups[1].weight_decay = 0.2;
    d.optim.groups[2] = group("*.2.weight", 5e-5);
    d.optim.group_count = 3;
    d.optim.max_norm = 0.5;
    d.optim.schedule = GRT_SCHEDULE_COSINE;
    d.optim.total = TORCH_STEPS;
    d.optim.min_lr = 1e-4;
    check("groups of parameters", &d, torch_groups);
}

static void class_weights(void **state) {
    (void)state;
    struct grt_learner_desc d = desc_of(GRT_OPTIM_SGD, 0.05);
    d.optim.momentum = 0.9;
    d.loss = GRT_LOSS_CROSS_ENTROPY;
    d.label_smoothing = 0.1f;
    d.class_weights = (const float[TORCH_OUTPUTS]){1, 2.5f, 0.25f, 4};
    check("class weights", &d, torch_class_weights);
    d.accumulate = 3;
    check("class weights, in micro-batches", &d, torch_class_weights);
}

static const struct CMUnitTest cases[] = {TEST_CASE(two_residuals), TEST_CASE(groups),
                                          TEST_CASE(class_weights)};
TEST_SUITE(torch, true, cases);
