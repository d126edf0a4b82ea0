// SPDX-License-Identifier: Apache-2.0
// Learners by fused kernels and in 16 bits: fused kernels learn what layer by layer does; 16-bit
// runs arrive where f32 does; an overflow costs one step, and a number that is none ends the run
// and is named.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/fused/mlp_fused.h"

// ---- fused ----

// Whether a learner of learn_small() takes the fused kernels when it is free to.
static bool fused_usable(enum grt_dtype precision) {
    const struct learn_desc d = learn_small(precision);
    return grt_mlp_fused_usable(test.dev, grt_mlp_fused_desc(.model = {.inputs = d.model.inputs,
                                                                       .depth = d.model.depth,
                                                                       .hidden = d.model.hidden,
                                                                       .outputs = d.model.outputs,
                                                                       .act = d.model.act},
                                                             .loss = d.loss, .dtype = precision,
                                                             .rows = d.batch));
}

// By the norm of the difference, as in suite_fused.c: another order of additions may put a unit on
// the other side of relu's edge, or a sum onto the next 16-bit number.
static void near(const char *what, const float *got, const float *want, size_t count,
                 double allowed) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        double e = (double)got[i] - (double)want[i];
        difference += e * e;
        norm += (double)want[i] * (double)want[i];
    }
    assert_true(norm > 0);
    if (!(sqrt(difference) <= allowed * sqrt(norm))) {
        print_error("%s: off by %g of %g, the share allowed is %g\n", what, sqrt(difference),
                    sqrt(norm), allowed);
        fail();
    }
}

// Losses of every step, gradients of the last one, parameters: two learners that differ in how a
// step is done, by plain descent. Both are as far from the right gradient as suite_fused.c allows
// one to be, and each step adds as much.
static void check_fused(enum grt_dtype precision, uint32_t steps) {
    enum { MOST = 8 };
    struct learn_desc d = learn_small(precision);
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    d.optim.lr = 0.1;
    struct learn layers = learn_begin(&d, LEARN_BATCH);
    d.variant = "fused";
    struct learn fused = learn_begin(&d, LEARN_BATCH);
    assert_string_equal(grt_learner_variant(layers.learner), "layers");
    assert_string_not_equal(grt_learner_variant(fused.learner), "layers");
    const double passes = d.model.depth + 1.0;
    const double one = precision == GRT_F32   ? (LEARN_BATCH + d.model.hidden * passes) * ORACLE_U
                       : precision == GRT_F16 ? 4 * passes * 0x1p-11
                                              : 4 * passes * 0x1p-8;
    const double allowed = 2 * one * steps;
    learn_train(&layers, steps);
    learn_train(&fused, steps);
    assert_int_equal(learn_state(&layers).updates, steps);
    assert_int_equal(learn_state(&fused).updates, steps);

    struct grt_learn_row want_rows[MOST], got_rows[MOST];
    uint32_t first = 0;
    assert_in_range(steps, 1, MOST);
    assert_int_equal(grt_learner_history(layers.learner, &first, want_rows, MOST), steps);
    assert_int_equal(grt_learner_history(fused.learner, &first, got_rows, MOST), steps);
    for (uint32_t i = 0; i < steps; i++) {
        near("loss", &got_rows[i].loss, &want_rows[i].loss, 1, allowed);
    }
    static const enum grt_tensor_role roles[] = {GRT_TENSOR_GRAD, GRT_TENSOR_PARAM};
    for (uint32_t i = 0; i < 2 * 2 * (d.model.depth + 1); i++) {
        const char *name;
        const struct grt_tensor *w = grt_learner_tensor(layers.learner, roles[i % 2], i / 2, &name);
        const struct grt_tensor *g = grt_learner_tensor(fused.learner, roles[i % 2], i / 2, NULL);
        assert_true(w && g);
        float *want = learn_read(w), *got = learn_read(g);
        near(name, got, want, (size_t)grt_tensor_count(w), allowed);
        free(want);
        free(got);
    }
    learn_end(&layers);
    learn_end(&fused);
}

static void fused_as_layers(void **state) {
    (void)state;
    static const enum grt_dtype precisions[] = {GRT_F32, GRT_F16, GRT_BF16};
    assert_true(fused_usable(GRT_F32) || !grt_dev_info(test.dev)->caps.software);
    uint32_t ran = 0;
    for (int i = 0; i < 3; i++) {
        if (!fused_usable(precisions[i])) {
            continue;
        }
        check_fused(precisions[i], 1);
        check_fused(precisions[i], 5);
        ran++;
    }
    if (ran == 0) {
        skip();
    }
}

// ---- 16 bits ----

// The mean loss of `steps` steps over the same batch, begun from the same parameters.
static float last_loss(enum grt_dtype precision, uint32_t steps, struct grt_learn_state *end) {
    struct learn_desc d = learn_small(precision);
    d.optim.growth_interval = 20;
    struct learn l = learn_begin(&d, LEARN_BATCH);
    learn_train(&l, steps);
    *end = learn_state(&l);
    learn_end(&l);
    return end->loss;
}

static void mixed_precision(void **state) {
    (void)state;
    const uint32_t steps = 150;
    struct grt_learn_state end;
    float begin = last_loss(GRT_F32, 1, &end);
    float want = last_loss(GRT_F32, steps, &end);
    assert_true(want < begin / 2);
    float half = last_loss(GRT_F16, steps, &end);
    assert_true(fabsf(half - want) < 0.05f * begin);
    assert_int_equal(end.updates + end.skipped, steps);
    assert_true(end.loss_scale != 65536.0f);  // it has grown, or an overflow has halved it
    float bfloat = last_loss(GRT_BF16, steps, &end);
    assert_true(fabsf(bfloat - want) < 0.1f * begin);
    assert_int_equal(end.skipped, 0);
    assert_true(end.loss_scale == 1.0f);
}

static void check_overflow(const char *variant) {
    struct learn_desc d = learn_small(GRT_F16);
    d.variant = variant;
    struct learn l = learn_begin(&d, LEARN_BATCH);
    struct grt_graph *graph = learn_step(&l, 0, 1);
    learn_run(graph, 3);
    struct grt_learn_state s = learn_state(&l);
    assert_int_equal(s.updates, 3);
    size_t count;
    float *before = learn_parameters(&l, &count);
    const float scale = 0x1p40f;  // no half is so large
    s.loss_scale = scale;
    assert_true(grt_learner_set_state(l.learner, &s));
    learn_run(graph, 1);
    s = learn_state(&l);
    assert_int_equal(s.updates, 3);
    assert_int_equal(s.skipped, 1);
    assert_int_equal(s.finite, 0);
    assert_true(s.loss_scale == scale / 2);
    float *after = learn_parameters(&l, &count);
    test_same(test.dev, "parameters of a skipped step", after, before, 4, count);
    // It halves until it fits, then goes on learning.
    float loss = s.loss;
    learn_run(graph, 60);
    s = learn_state(&l);
    assert_in_range(s.skipped, 2, 50);
    assert_int_equal(s.updates + s.skipped, 64);
    assert_int_equal(s.halted, 0);
    assert_true(s.loss < loss);
    free(before);
    free(after);
    grt_graph_destroy(&graph);
    learn_end(&l);
}

static void overflow(void **state) {
    (void)state;
    check_overflow("layers");
}

static void overflow_fused(void **state) {
    (void)state;
    if (!fused_usable(GRT_F16)) {
        skip();
    }
    check_overflow("fused");
}

static void nonfinite(void **state) {
    (void)state;
    const struct learn_desc d = learn_small(GRT_F32);
    struct learn l = learn_begin(&d, LEARN_BATCH);
    struct grt_graph *graph = learn_step(&l, 0, 1);
    learn_run(graph, 2);
    char name[64] = "";
    assert_false(grt_learner_find_nonfinite(l.learner, NULL, NULL, name, sizeof name));
    size_t count;
    float *before = learn_parameters(&l, &count);
    float *x = grt_buf_host(l.x);
    x[5] = NAN;
    learn_run(graph, 2);
    struct grt_learn_state s = learn_state(&l);
    assert_int_equal(s.halted, 3);
    assert_true(isnan(s.loss));
    assert_true(grt_learner_find_nonfinite(l.learner, NULL, NULL, name, sizeof name));
    assert_string_equal(name, "input");
    x[5] = 0.0f;
    learn_run(graph, 1);
    float *after = learn_parameters(&l, &count);
    test_same(test.dev, "parameters after a halt", after, before, 4, count);
    free(before);
    free(after);
    grt_graph_destroy(&graph);
    learn_end(&l);
}

// Parameters, samples and targets that are finite, and a hidden layer that is not: it is named,
// however forward and backward are done.
static void nonfinite_activations(void **state) {
    (void)state;
    const struct {
        enum grt_dtype precision;
        const char *variant;
        bool recompute;
        float huge, x;  // what is large is finite yet
    } ways[] = {{GRT_F32, "layers", false, 3e38f, 100},
                {GRT_F32, NULL, false, 3e38f, 1e37f},
                {GRT_F32, "layers", true, 3e38f, 100},
                {GRT_F16, NULL, false, 6e4f, 100},
                {GRT_BF16, NULL, false, 3e38f, 1e37f}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct learn_desc d = learn_small(ways[i].precision);
        d.variant = ways[i].variant;
        d.recompute = ways[i].recompute;
        struct learn l = learn_begin(&d, LEARN_BATCH);
        const char *text = NULL;
        const struct grt_tensor *w = NULL;
        for (uint32_t k = 0; !text || strcmp(text, "layers.1.weight") != 0; k++) {
            w = grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, k, &text);
            assert_non_null(w);
        }
        float *numbers = test_alloc(grt_tensor_bytes(w));
        for (uint64_t k = 0; k < grt_tensor_count(w); k++) {
            numbers[k] = ways[i].huge;
        }
        assert_true(grt_buf_write(w->range.buf, w->range.offset, numbers, grt_tensor_bytes(w)));
        assert_true(grt_learner_sync(l.learner));
        free(numbers);
        float *x = grt_buf_host(l.x);
        for (uint64_t k = 0; k < grt_buf_size(l.x) / 4; k++) {
            x[k] = ways[i].x;
        }
        struct grt_graph *graph = learn_step(&l, 0, 1);
        learn_run(graph, 1);
        char name[64] = "";
        assert_true(grt_learner_find_nonfinite(l.learner, NULL, NULL, name, sizeof name));
        assert_string_equal(name, "activations of layers.1");
        grt_graph_destroy(&graph);
        learn_end(&l);
    }
}

// One sample of a step makes a hidden layer infinite: it is found in whichever micro-batch it is,
// the short last one too.
static void nonfinite_in_any_part(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.accumulate = 5;
    struct learn l = learn_begin(&d, LEARN_BATCH);
    uint32_t inputs = d.model.inputs;
    const struct grt_tensor x = {.range = {l.x, 0, grt_buf_size(l.x)},
                                 .dtype = GRT_F32,
                                 .rank = 2,
                                 .shape = {LEARN_BATCH, inputs}};
    const struct grt_tensor y = {.range = {l.y, 0, grt_buf_size(l.y)},
                                 .dtype = GRT_F32,
                                 .rank = 2,
                                 .shape = {LEARN_BATCH, d.model.outputs}};
    const struct grt_tensor *w = grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, 0, NULL);
    float *numbers = learn_read(w), *samples = grt_buf_host(l.x);
    for (uint64_t i = 0; i < grt_tensor_count(w); i++) {
        numbers[i] = 1e20f;
    }
    assert_true(grt_buf_write(w->range.buf, w->range.offset, numbers, grt_tensor_bytes(w)));
    free(numbers);
    char name[64] = "";
    assert_false(grt_learner_find_nonfinite(l.learner, &x, &y, name, sizeof name));
    static const uint32_t places[] = {0, 4, 5, 19, 20, LEARN_BATCH - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        float *at = &samples[places[i] * inputs], before = *at;
        *at = 1e30f;
        assert_true(grt_learner_find_nonfinite(l.learner, &x, &y, name, sizeof name));
        assert_string_equal(name, "activations of layers.0");
        *at = before;
    }
    learn_end(&l);
}

static double number_loss(enum grt_loss loss, double y, double target) {
    double off = fabs(y - target);
    switch (loss) {
    case GRT_LOSS_MSE:
        return off * off;
    case GRT_LOSS_HUBER:
        return off <= 1 ? 0.5 * off * off : off - 0.5;
    case GRT_LOSS_BCE:
        return log1p(exp(-fabs(y))) + fmax(y, 0) - y * target;
    default:
        return off;
    }
}

// The loss of a sample is the mean over its outputs, whichever kernels evaluate.
static void evaluations_are_means(void **state) {
    (void)state;
    static const enum grt_loss losses[] = {GRT_LOSS_MSE, GRT_LOSS_HUBER, GRT_LOSS_BCE, GRT_LOSS_L1};
    enum { ROWS = 19, OUT = 3 };
    struct grt_buf *out = test_buf(test.dev, ROWS * OUT * 4, GRT_BUF_READBACK);
    for (int i = 0; i < 8; i++) {
        struct learn_desc d = learn_small(GRT_F32);
        d.model.outputs = OUT;
        d.loss = losses[i / 2];
        d.variant = i % 2 ? "layers" : NULL;
        d.batch = ROWS;
        struct learn l = learn_begin(&d, ROWS);
        const struct grt_step_desc step = {.rows = ROWS, .x = {l.x}, .y = {l.y}};
        struct grt_graph *predict = grt_learner_predict(l.learner, &step, (struct grt_range){out});
        struct grt_graph *evaluate = grt_learner_evaluate(l.learner, &step);
        assert_true(predict && evaluate);
        learn_run(predict, 1);
        learn_run(evaluate, 1);
        const float *y = grt_buf_host(out), *target = grt_buf_host(l.y);
        double sum = 0;
        for (size_t k = 0; k < (size_t)ROWS * OUT; k++) {
            sum += number_loss(d.loss, (double)y[k], (double)target[k]) / OUT;
        }
        struct grt_learn_state s = learn_state(&l);
        assert_true(s.eval_samples == (float)ROWS);
        assert_true(fabs((double)s.eval_loss - sum) < 1e-5 * (1 + fabs(sum)));
        grt_graph_destroy(&predict);
        grt_graph_destroy(&evaluate);
        learn_end(&l);
    }
    grt_buf_destroy(&out);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(evaluations_are_means), TEST_CASE(fused_as_layers),
    TEST_CASE(mixed_precision),       TEST_CASE(overflow),
    TEST_CASE(overflow_fused),        TEST_CASE(nonfinite),
    TEST_CASE(nonfinite_activations), TEST_CASE(nonfinite_in_any_part),
};
TEST_SUITE(precision, true, cases);
