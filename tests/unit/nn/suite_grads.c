// SPDX-License-Identifier: Apache-2.0
// Loss and gradients of every module and loss, in every precision, against central differences of a
// double-precision model.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct grad_case {
    struct learn_model model;
    enum grt_loss loss;
    uint32_t rows;
    float delta;
    enum { NOT, F32, F32_CUT, F16_CUT, BF16 } driver;  // how it is checked on drivers
};

static struct oracle_model oracle_of(const struct grad_case *c) {
    const struct learn_model *m = &c->model;
    bool points = m->kind == LEARN_POINTS;
    return (struct oracle_model){
        .inputs = m->inputs,
        .points = points ? m->points : 0,
        .depth = m->kind == LEARN_LINEAR ? 0 : m->depth,
        .hidden = m->hidden,
        .outputs = m->outputs,
        .head_depth = m->head_depth,
        .act = grt_act_text(m->act),
        .residual = m->residual,
        .norm = m->layer_norm,
        .pool_max = m->pool == GRT_POOL_MAX,
        .loss = grt_loss_text(c->loss),
        .delta = c->delta > 0 ? (double)c->delta : 1.0,
    };
}

static double rounded(enum grt_dtype dtype, float v) {
    if (dtype == GRT_F32) {
        return (double)v;
    }
    struct oracle_format format = dtype == GRT_F16 ? oracle_f16 : oracle_bf16;
    return oracle_widen(format, oracle_narrow(format, (double)v));
}

// The numbers that the device computes with: 16-bit weights and inputs, biases and norms as they
// are.
static double *widened(const float *v, size_t count, enum grt_dtype dtype) {
    double *d = test_alloc(count * sizeof *d);
    for (size_t i = 0; i < count; i++) {
        d[i] = rounded(dtype, v[i]);
    }
    return d;
}

static double *targets_of(const struct learn_data *data) {
    double *t = test_alloc(data->samples * data->y_size * sizeof *t);
    for (size_t i = 0; i < data->samples * data->y_size; i++) {
        t[i] = data->y ? (double)data->y[i] : (double)data->classes[i];
    }
    return t;
}

// Roundings on the way, each of the activations' type u: forward and backward through every layer,
// twice where a block follows; and in f32 sums as long as the layers are wide and the batch has
// rows. All relative to the largest gradient: smaller ones come out of cancelling sums of such
// numbers.
static double bound_of(const struct grad_case *c, enum grt_dtype dtype) {
    const struct learn_model *m = &c->model;
    double layers = 2.0 * (m->depth + m->head_depth + 2);
    double points = m->kind == LEARN_POINTS ? m->points : 1;
    double sums = layers * (m->hidden + m->inputs) + c->rows * points;
    double u = dtype == GRT_F32 ? 0 : dtype == GRT_F16 ? 0x1p-11 : 0x1p-8;
    return 2 * layers * u + 4 * sums * ORACLE_U + 1e-8;
}

static void check(const struct grad_case *c, enum grt_dtype dtype, uint32_t accumulate) {
    const struct learn_desc desc = {.model = c->model,
                                    .loss = c->loss,
                                    .huber_delta = c->delta,
                                    .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                    .precision = dtype,
                                    .batch = c->rows,
                                    .accumulate = accumulate,
                                    .variant = "layers"};
    struct learn l = learn_begin(&desc, c->rows);
    struct oracle_model m = oracle_of(c);
    size_t tensors = oracle_model_tensors(&m);
    double **params = test_alloc(tensors * sizeof *params);
    for (size_t k = 0; k < tensors; k++) {
        const struct grt_tensor *t =
            grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, (uint32_t)k, NULL);
        assert_non_null(t);
        assert_int_equal(grt_tensor_count(t), oracle_model_tensor_size(&m, k));
        float *v = learn_read(t);
        params[k] = widened(v, (size_t)grt_tensor_count(t), t->rank == 2 ? dtype : GRT_F32);
        free(v);
    }
    assert_null(grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, (uint32_t)tensors, NULL));
    double *x = widened(l.data.x, c->rows * l.data.x_size, dtype);
    double *target = targets_of(&l.data);
    struct grt_graph *graph = learn_step(&l, 0, 1);
    learn_run(graph, 1);

    const char *what = learn_model_text(c->model.kind);
    struct test_compare compare = test_compare(
        test.dev, "%s %s%s%s, %s, %s, %u micro-batches", what, grt_act_text(c->model.act),
        c->model.residual ? ", residual" : "", c->model.layer_norm ? ", norm" : "",
        grt_loss_text(c->loss), grt_dtype_text(dtype), accumulate);
    struct grt_learn_state state = learn_state(&l);
    assert_int_equal(state.finite, 1);
    double loss = oracle_model_loss(&m, params, x, target, c->rows);
    double bound = bound_of(c, dtype);
    test_compare_value(&compare, 0, state.loss, (struct oracle_value){loss, bound * (1 + loss)});
    double largest = 0;
    double squares = 0;
    for (int pass = 0; pass < 2; pass++) {  // the largest first
        size_t at = 0;
        for (size_t k = 0; k < tensors; k++) {
            const struct grt_tensor *t =
                grt_learner_tensor(l.learner, GRT_TENSOR_GRAD, (uint32_t)k, NULL);
            float *got = learn_read(t);
            for (size_t i = 0; i < grt_tensor_count(t); i += 1, at++) {
                double want = oracle_model_slope(&m, params, k, i, x, target, c->rows);
                double scale = dtype == GRT_F16 ? 65536.0 : 1.0;
                if (pass == 0) {
                    largest = fmax(largest, fabs(want));
                    squares += want * want;
                } else {
                    test_compare_value(&compare, at, (float)((double)got[i] / scale),
                                       (struct oracle_value){want, bound * largest});
                }
            }
            free(got);
        }
    }
    // The norm that the step decides by.
    struct oracle_value norm = {sqrt(squares), bound * largest * sqrt((double)l.data.samples + 9)};
    test_compare_value(&compare, 0, state.grad_norm, norm);
    test_compare_end(&compare);
    for (size_t k = 0; k < tensors; k++) {
        free(params[k]);
    }
    free(params);
    free(x);
    free(target);
    grt_graph_destroy(&graph);
    learn_end(&l);
}

// The C reading goes through all precisions, with and without micro-batches. On a driver every
// precision and every kind of product is a kernel to compile, for half a second: there a case names
// the one way it takes, or none.
enum { WAYS = 4 };

static void check_all(const struct grad_case *cases, size_t count) {
    static const struct {
        enum grt_dtype dtype;
        uint32_t accumulate;
    } ways[WAYS] = {{GRT_F32, 1}, {GRT_F32, 3}, {GRT_F16, 2}, {GRT_BF16, 1}};
    for (size_t i = 0; i < count; i++) {
        for (uint32_t way = 0; way < WAYS; way++) {
            if (test.on_ref || cases[i].driver == way + 1) {
                uint32_t accumulate = ways[way].accumulate;
                check(&cases[i], ways[way].dtype, cases[i].rows < 3 ? 1 : accumulate);
            }
        }
    }
}

static void linear(void **state) {
    (void)state;
    static const struct grad_case cases[] = {
        {.model = {.kind = LEARN_LINEAR, .inputs = 5, .outputs = 3}, .rows = 7, .driver = F32_CUT},
        {.model = {.kind = LEARN_LINEAR, .inputs = 1, .outputs = 1}, .rows = 1},
    };
    check_all(cases, sizeof cases / sizeof cases[0]);
}

static void mlp(void **state) {
    (void)state;
    static const struct grad_case cases[] = {
        {.model = {.inputs = 3, .depth = 2, .hidden = 8, .outputs = 2, .act = GRT_ACT_RELU},
         .rows = 13,
         .driver = F16_CUT},
        {.model = {.inputs = 4, .depth = 3, .hidden = 6, .outputs = 1, .act = GRT_ACT_TANH},
         .rows = 9},
        {.model = {.inputs = 3, .depth = 2, .hidden = 5, .outputs = 2, .act = GRT_ACT_GELU},
         .rows = 11,
         .driver = BF16},
        {.model = {.inputs = 3, .depth = 1, .hidden = 4, .outputs = 2}, .rows = 5},
    };
    check_all(cases, sizeof cases / sizeof cases[0]);
}

static void mlp_blocks(void **state) {
    (void)state;
    static const enum grt_act acts[] = {GRT_ACT_RELU, GRT_ACT_GELU, GRT_ACT_TANH};
    for (size_t a = 0; a < 3; a++) {
        for (int kind = 1; kind < 4; kind++) {
            const struct grad_case c = {.model = {.inputs = 3,
                                                  .depth = 3,
                                                  .hidden = 6,
                                                  .outputs = 2,
                                                  .act = acts[a],
                                                  .residual = (kind & 1) != 0,
                                                  .layer_norm = (kind & 2) != 0},
                                        .rows = 10,
                                        .driver = a == 0 && kind == 3 ? F16_CUT : NOT};
            check_all(&c, 1);
        }
    }
}

static void points(void **state) {
    (void)state;
    static const enum grt_act acts[] = {GRT_ACT_RELU, GRT_ACT_TANH, GRT_ACT_GELU};
    for (size_t a = 0; a < 3; a++) {
        for (int pool = 0; pool < GRT_POOL_COUNT; pool++) {
            const struct grad_case c = {.model = {.kind = LEARN_POINTS,
                                                  .inputs = 3,
                                                  .points = 5,
                                                  .depth = 2,
                                                  .hidden = 6,
                                                  .outputs = 2,
                                                  .act = acts[a],
                                                  .layer_norm = a == 2,
                                                  .pool = (enum grt_pool)pool,
                                                  .head_depth = (uint32_t)a},
                                        .rows = 4,
                                        .driver = a == 0 && pool == GRT_POOL_MAX ? F16_CUT : NOT};
            check_all(&c, 1);
        }
    }
}

static void losses(void **state) {
    (void)state;
    static const struct grad_case cases[] = {
        {.model = {.inputs = 4, .depth = 1, .hidden = 8, .outputs = 3, .act = GRT_ACT_TANH},
         .loss = GRT_LOSS_HUBER,
         .delta = 0.25f,
         .rows = 12,
         .driver = F32},
        {.model = {.inputs = 4, .depth = 1, .hidden = 8, .outputs = 3, .act = GRT_ACT_TANH},
         .loss = GRT_LOSS_HUBER,
         .rows = 12},
        {.model = {.inputs = 4, .depth = 1, .hidden = 8, .outputs = 5, .act = GRT_ACT_TANH},
         .loss = GRT_LOSS_CROSS_ENTROPY,
         .rows = 12,
         .driver = F16_CUT},
        {.model = {.inputs = 4, .depth = 1, .hidden = 8, .outputs = 3, .act = GRT_ACT_TANH},
         .loss = GRT_LOSS_BCE,
         .rows = 12,
         .driver = F32},
        {.model = {.inputs = 2, .depth = 0, .hidden = 0, .outputs = 150},
         .loss = GRT_LOSS_CROSS_ENTROPY,
         .rows = 70,
         .driver = F32},
    };
    check_all(cases, sizeof cases / sizeof cases[0]);
}

// Targets beside others are read as words: 16 bits each would be too few of them.
static void narrow_targets(void **state) {
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++) {
        struct test_tensor y = test_tensor(test.dev, GRT_F32, 4, 3),
                           target = test_tensor(test.dev, GRT_F16, 4, 2 + 2 * weighted),
                           parts = test_tensor(test.dev, GRT_F32, GRT_LOSS_PARTS, 0),
                           learning = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
        struct grt_graph *graph = grt_graph_create(test.dev, "refused");
        grt_op_loss(
            graph, &(struct grt_loss_desc){.loss = weighted ? GRT_LOSS_MSE : GRT_LOSS_CROSS_ENTROPY,
                                           .y = &y.tensor,
                                           .dy = &y.tensor,
                                           .target = &target.tensor,
                                           .words = 2 + 2 * (uint32_t)weighted,
                                           .sampled = weighted,
                                           .mass = parts.tensor.range,
                                           .parts = parts.tensor.range,
                                           .state = learning.tensor.range});
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "must be words, u32 or f32");
        grt_graph_destroy(&graph);
        test_tensor_end(&y);
        test_tensor_end(&target);
        test_tensor_end(&parts);
        test_tensor_end(&learning);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(linear), TEST_CASE(mlp),    TEST_CASE(mlp_blocks),
    TEST_CASE(points), TEST_CASE(losses), TEST_CASE(narrow_targets),
};
TEST_SUITE(grads, true, cases);
