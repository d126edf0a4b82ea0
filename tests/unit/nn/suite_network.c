// SPDX-License-Identifier: Apache-2.0
// Networks as lists of layers: loss and gradients against central differences of a double-precision oracle, the same
// steps as an mlp by another name, dropout against its random words, shapes that do not fit, and a module of a user's own.
#include "harness/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/network.h"
#include "gpurt/ops.h"

#define SAMPLES 10

struct network_case {
    const char *text;
    struct oracle_network oracle;
    uint32_t outputs;
    double bound;  // roundings on the way, in units of the largest gradient, for f32
    bool driver;   // on drivers too: every case there is kernels to compile
};

static struct grt_shape shape_of(const struct network_case *c) {
    return c->oracle.rows > 1 ? (struct grt_shape){2, {c->oracle.rows, c->oracle.cols}}
                              : (struct grt_shape){1, {c->oracle.cols}};
}

static enum grt_loss loss_of(const char *name) {
    return strcmp(name, "mse") == 0  ? GRT_LOSS_MSE
           : strcmp(name, "l1") == 0 ? GRT_LOSS_L1
                                     : GRT_LOSS_CROSS_ENTROPY;
}

static struct grt_learner *create(const struct network_case *c, enum grt_dtype dtype,
                                  uint32_t accumulate, const char *variant) {
    const struct grt_network_desc network = {.text = c->text, .outputs = c->outputs};
    return grt_learner_create(
        test.dev, grt_learner_desc(.make = grt_network_make, .of = &network, .input = shape_of(c),
                                   .outputs = c->outputs, .loss = loss_of(c->oracle.loss),
                                   .label_smoothing = (float)c->oracle.smoothing,
                                   .optim = grt_optim_defaults(GRT_OPTIM_SGD), .precision = dtype,
                                   .batch = SAMPLES, .accumulate = accumulate, .variant = variant));
}

static double rounded(enum grt_dtype dtype, double v) {
    struct oracle_format format = dtype == GRT_F16 ? oracle_f16 : oracle_bf16;
    return dtype == GRT_F32 ? v : oracle_widen(format, oracle_narrow(format, v));
}

// Samples and targets of a case, in the numbers that the device computes with, and in upload buffers.
struct samples {
    double *x, *y;
    struct grt_buf *bx, *by;
};

static struct samples make_samples(const struct network_case *c, enum grt_dtype dtype) {
    bool classes = strcmp(c->oracle.loss, "cross_entropy") == 0;
    size_t width = c->oracle.rows * c->oracle.cols, outputs = classes ? 1 : c->outputs;
    struct samples s = {.x = test_alloc(SAMPLES * width * sizeof(double)),
                        .y = test_alloc(SAMPLES * outputs * sizeof(double)),
                        .bx = test_buf(test.dev, SAMPLES * width * 4, GRT_BUF_UPLOAD),
                        .by = test_buf(test.dev, SAMPLES * outputs * 4, GRT_BUF_UPLOAD)};
    for (uint32_t i = 0; i < SAMPLES * width; i++) {
        float v = learn_number(1, i);
        ((float *)grt_buf_host(s.bx))[i] = v;
        s.x[i] = rounded(dtype, (double)v);
    }
    for (uint32_t i = 0; i < SAMPLES * outputs; i++) {
        uint32_t class = learn_hash(2, i) % c->outputs;
        float v = learn_number(2, i);
        s.y[i] = classes ? class : (double)v;
        if (classes) {
            ((uint32_t *)grt_buf_host(s.by))[i] = class;
        } else {
            ((float *)grt_buf_host(s.by))[i] = v;
        }
    }
    return s;
}

static void end_samples(struct samples *s) {
    free(s->x);
    free(s->y);
    grt_buf_destroy(&s->bx);
    grt_buf_destroy(&s->by);
}

// Every parameter a number of its own place, those of norms around 1 and 0.
static double **set_parameters(struct grt_learner *learner, enum grt_dtype dtype, size_t *count) {
    const struct grt_tensor *t;
    const char *name;
    for (*count = 0; grt_learner_tensor(learner, GRT_TENSOR_PARAM, (uint32_t)*count, NULL);) {
        ++*count;
    }
    double **params = test_alloc(*count * sizeof *params);
    for (uint32_t k = 0; k < *count; k++) {
        t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, k, &name);
        bool weight = strstr(name, "weight") != NULL, norm = weight && t->rank == 1;
        size_t numbers = (size_t)grt_tensor_count(t);
        float *v = test_alloc(numbers * sizeof *v);
        params[k] = test_alloc(numbers * sizeof **params);
        for (uint32_t i = 0; i < numbers; i++) {
            float n = learn_number(100 + k, i);
            v[i] = norm ? 1.0f + 0.25f * n : n * (t->rank == 2 ? 0.7f : 0.3f);
            params[k][i] = t->rank == 2 ? rounded(dtype, (double)v[i]) : (double)v[i];
        }
        assert_true(grt_buf_write(t->range.buf, t->range.offset, v, numbers * sizeof *v));
        free(v);
    }
    assert_true(grt_learner_sync(learner));
    return params;
}

// A learner for inference keeps no activations: outputs take turns in two tensors. Its loss is the same.
static void check_inference(const struct network_case *c, struct grt_learner *trained,
                            const struct samples *s, struct oracle_value loss) {
    struct grt_learner_desc desc = *grt_learner_desc_of(trained);
    const struct grt_network_desc network = {.text = c->text, .outputs = c->outputs};
    desc.of = &network;
    desc.inference = true;
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = set_parameters(learner, desc.precision, &tensors);
    struct grt_graph *graph =
        grt_learner_evaluate(learner, grt_step_desc(.x = {s->bx}, .y = {s->by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    struct grt_learn_state state;
    assert_true(grt_learner_state(learner, &state));
    struct test_compare compare = test_compare(test.dev, "%s, inference", c->text);
    test_compare_value(&compare, 0, state.eval_loss / SAMPLES, loss);
    test_compare_end(&compare);
    for (size_t k = 0; k < tensors; k++) {
        free(params[k]);
    }
    free(params);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

static void check(const struct network_case *c, enum grt_dtype dtype, uint32_t accumulate) {
    struct grt_learner *learner = create(c, dtype, accumulate, "layers");
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = set_parameters(learner, dtype, &tensors);
    struct samples s = make_samples(c, dtype);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    struct grt_learn_state state;
    assert_true(grt_learner_state(learner, &state));
    struct test_compare compare = test_compare(test.dev, "%s, %s, %u micro-batches", c->text,
                                               grt_dtype_text(dtype), accumulate);
    double u = dtype == GRT_F32 ? 0x1p-23 : dtype == GRT_F16 ? 0x1p-11 : 0x1p-8;
    double bound = c->bound * u + 1e-8;
    double loss = oracle_network_loss(&c->oracle, params, s.x, s.y, SAMPLES);
    test_compare_value(&compare, 0, state.loss, (struct oracle_value){loss, bound * (1 + loss)});
    double largest = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (size_t k = 0; k < tensors; k++) {
            const struct grt_tensor *t =
                grt_learner_tensor(learner, GRT_TENSOR_GRAD, (uint32_t)k, NULL);
            float *got = learn_read(t);
            for (size_t i = 0; i < grt_tensor_count(t); i++, at++) {
                double want = oracle_network_slope(&c->oracle, params, k, i, s.x, s.y, SAMPLES);
                largest = fmax(largest, fabs(want));
                double scale = dtype == GRT_F16 ? 65536.0 : 1.0;
                if (pass == 1) {
                    test_compare_value(&compare, at, (float)((double)got[i] / scale),
                                       (struct oracle_value){want, bound * largest});
                }
            }
            free(got);
        }
    }
    assert_true(largest > 1e-4);
    test_compare_end(&compare);
    // Evaluations are without label smoothing.
    struct oracle_network plain_loss = c->oracle;
    plain_loss.smoothing = 0;
    double evaluated = oracle_network_loss(&plain_loss, params, s.x, s.y, SAMPLES);
    check_inference(c, learner, &s, (struct oracle_value){evaluated, bound * (1 + evaluated)});
    for (size_t k = 0; k < tensors; k++) {
        free(params[k]);
    }
    free(params);
    end_samples(&s);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

#define L(...) ((const struct oracle_layer[]){__VA_ARGS__, {0}})

static void check_all(const struct network_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (test.on_ref) {
            check(&cases[i], GRT_F32, 1);
            check(&cases[i], GRT_F32, 3);
            check(&cases[i], GRT_F16, 2);
            check(&cases[i], GRT_BF16, 1);
        } else if (cases[i].driver) {
            check(&cases[i], GRT_F32, 2);
            check(&cases[i], GRT_F16, 1);
        }
    }
}

static void plain(void **state) {
    (void)state;
    const struct network_case cases[] = {
        {"[{linear: 5}, relu, {linear: 4}, tanh, {linear: out}]",
         {L({"linear", 5}, {"relu"}, {"linear", 4}, {"tanh"}, {"linear", 3}), 1, 6, "mse", 0},
         3,
         60,
         false},
        {"[{linear: 7}, {norm: layer}, gelu, {linear: out}]",
         {L({"linear", 7}, {"norm"}, {"gelu"}, {"linear", 2}), 1, 4, "mse", 0},
         2,
         200,
         true},
        {"[{linear: 6}, silu, {linear: 6}, sigmoid, {linear: out}]",
         {L({"linear", 6}, {"silu"}, {"linear", 6}, {"sigmoid"}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         100,
         true},
        {"[{linear: 6}, gelu_exact, {linear: out}]",
         {L({"linear", 6}, {"gelu_exact"}, {"linear", 2}), 1, 3, "l1", 0},
         2,
         100,
         true},
        {"[{linear: 10}, geglu, {linear: out}]",
         {L({"linear", 10}, {"geglu"}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         true},
        // What it ends with need not be a linear layer.
        {"[{linear: out}, tanh]", {L({"linear", 3}, {"tanh"}), 1, 5, "mse", 0}, 3, 60, true},
        {"[{norm: layer}, {linear: out}]",
         {L({"norm"}, {"linear", 3}), 1, 5, "cross_entropy", 0},
         3,
         100,
         false},
        {"[{linear: 8}, relu, {linear: out}]",
         {L({"linear", 8}, {"relu"}, {"linear", 4}), 1, 5, "cross_entropy", 0.2},
         4,
         100,
         true},
    };
    check_all(cases, sizeof cases / sizeof *cases);
}

static void composed(void **state) {
    (void)state;
    const struct oracle_layer *body = L({"linear", 6}, {"relu"}, {"linear", 6});
    const struct oracle_layer *tanh_of = L({"tanh"});
    const struct oracle_layer *narrow = L({"linear", 4}, {"tanh"});
    const struct oracle_layer *shortcut = L({"linear", 4});
    const struct oracle_layer *inner = L({"linear", 5});
    const struct oracle_layer *outer = L({"sum", 0, NULL, inner, NULL}, {"linear", 5});
    const struct network_case cases[] = {
        {"[{linear: 6}, {residual: [{linear: 6}, relu, {linear: 6}]}, {linear: out}]",
         {L({"linear", 6}, {"sum", 0, NULL, body, NULL}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         true},
        {"[{linear: 6}, {residual: {of: [{linear: 4}, tanh], shortcut: [{linear: 4}], activation: "
         "silu}}, {linear: out}]",
         {L({"linear", 6}, {"sum", 0, "silu", narrow, shortcut}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         true},
        // The gradient of a residual that comes first is not wanted, and a residual in a residual is added to.
        {"[{residual: [{residual: [{linear: 5}]}, {linear: 5}]}, {linear: out}]",
         {L({"sum", 0, NULL, outer, NULL}, {"linear", 2}), 1, 5, "mse", 0},
         2,
         200,
         false},
        // Neither part adds by itself.
        {"[{linear: 6}, {branches: [[{linear: 4}, tanh], [{linear: 4}]]}, {linear: out}]",
         {L({"linear", 6}, {"sum", 0, NULL, narrow, shortcut}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         false},
        {"[{linear: 6}, {residual: [tanh]}, {linear: out}]",
         {L({"linear", 6}, {"sum", 0, NULL, tanh_of, NULL}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         false},
        {"[{linear: 6}, {branches: [[tanh], [tanh]]}, {linear: out}]",
         {L({"linear", 6}, {"sum", 0, NULL, tanh_of, tanh_of}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         true},
        {"[{repeat: {times: 3, of: [{linear: 4}, relu]}}, {linear: out}]",
         {L({"linear", 4}, {"relu"}, {"linear", 4}, {"relu"}, {"linear", 4}, {"relu"},
            {"linear", 2}),
          1, 3, "mse", 0},
         2,
         200,
         false},
    };
    check_all(cases, sizeof cases / sizeof *cases);
}

static void of_points(void **state) {
    (void)state;
    const struct network_case cases[] = {
        {"[{linear: 6}, relu, {pool: max}, {linear: out}]",
         {L({"linear", 6}, {"relu"}, {"pool", 0, "max"}, {"linear", 2}), 7, 3, "mse", 0},
         2,
         200,
         false},
        {"[{linear: 6}, gelu, {pool: mean}, {linear: out}]",
         {L({"linear", 6}, {"gelu"}, {"pool", 0, "mean"}, {"linear", 2}), 7, 3, "mse", 0},
         2,
         200,
         true},
        // A view in the middle, and one at either end of a way back.
        {"[{linear: 3}, flatten, relu, {linear: out}]",
         {L({"linear", 3}, {"flatten"}, {"relu"}, {"linear", 2}), 4, 5, "mse", 0},
         2,
         200,
         true},
        // The widest comes behind a view: what takes turns must be as wide.
        {"[{linear: 1}, flatten, {linear: 30}, relu, {linear: 2}, tanh, {linear: out}]",
         {L({"linear", 1}, {"flatten"}, {"linear", 30}, {"relu"}, {"linear", 2}, {"tanh"},
            {"linear", 2}),
          4, 5, "mse", 0},
         2,
         200,
         false},
        {"[flatten, {linear: 3}, relu, {linear: out}]",
         {L({"flatten"}, {"linear", 3}, {"relu"}, {"linear", 2}), 4, 5, "mse", 0},
         2,
         200,
         false},
        {"[{linear: 3}, {linear: 2}, flatten]",
         {L({"linear", 3}, {"linear", 2}, {"flatten"}), 4, 5, "mse", 0},
         8,
         200,
         false},
    };
    check_all(cases, sizeof cases / sizeof *cases);
}

// ---- an mlp by another name ----

static float *trained(const struct grt_learner_desc *desc, const struct samples *s, uint32_t steps,
                      size_t *count) {
    struct grt_learner *learner = grt_learner_create(test.dev, desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = set_parameters(learner, GRT_F32, &tensors);
    for (size_t k = 0; k < tensors; k++) {
        free(params[k]);
    }
    free(params);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s->bx}, .y = {s->by}));
    assert_non_null(graph);
    learn_run(graph, steps);
    struct learn l = {.learner = learner};
    float *all = learn_parameters(&l, count);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
    return all;
}

// Layer by layer, and in evaluations, a list does what the mlp does; fused kernels take both.
static void as_an_mlp(void **state) {
    (void)state;
    const struct network_case c = {"[{linear: 16}, relu, {linear: 16}, relu, {linear: out}]",
                                   {NULL, 1, 6, "mse", 0},
                                   3,
                                   0,
                                   true};
    const struct grt_network_desc network = {.text = c.text, .outputs = 3};
    const struct grt_mlp_desc mlp = {.depth = 2, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU};
    struct samples s = make_samples(&c, GRT_F32);
    static const char *const variants[] = {"layers", NULL};
    for (int v = 0; v < 2; v++) {
        struct grt_learner_desc desc = {.make = grt_network_make,
                                        .of = &network,
                                        .input = {1, {6}},
                                        .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                        .batch = SAMPLES,
                                        .variant = variants[v]};
        size_t count = 0, same = 0;
        float *list = trained(&desc, &s, 5, &count);
        desc.make = grt_mlp_make;
        desc.of = &mlp;
        float *own = trained(&desc, &s, 5, &same);
        assert_int_equal(count, same);
        test_same_floats(test.dev, "a list and an mlp", list, own, (uint32_t)count);
        free(list);
        free(own);
    }
    end_samples(&s);
}

// Hidden layers of different widths share tensors; computed again, they still do.
static void widths(void **state) {
    (void)state;
    const struct network_case c = {"[{linear: 9}, relu, {linear: 4}, relu, {linear: 7}, relu, "
                                   "{linear: 2}, relu, {linear: out}]",
                                   {NULL, 1, 6, "mse", 0},
                                   3,
                                   0,
                                   true};
    const struct grt_network_desc network = {.text = c.text, .outputs = 3};
    const struct grt_mlp_desc mlp = {
        .depth = 4, .outputs = 3, .act = GRT_ACT_RELU, .widths = {9, 4, 7, 2}};
    struct samples s = make_samples(&c, GRT_F32);
    struct grt_learner_desc desc = {.make = grt_network_make,
                                    .of = &network,
                                    .input = {1, {6}},
                                    .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                    .batch = SAMPLES};
    size_t count = 0, same = 0;
    float *list = trained(&desc, &s, 5, &count);
    desc.make = grt_mlp_make;
    desc.of = &mlp;
    for (int again = 0; again < 2; again++) {
        desc.recompute = again == 1;
        float *own = trained(&desc, &s, 5, &same);
        assert_int_equal(count, same);
        test_same_floats(test.dev, "a list and an mlp", list, own, (uint32_t)count);
        free(own);
    }
    free(list);
    end_samples(&s);
    TEST_REFUSED(grt_mlp_create(grt_mlp_desc(.depth = 3, .outputs = 1, .widths = {4, 5})),
                 GRT_INVALID, "a list of widths");
}

// ---- dropout ----

// The identity, then dropout: what comes out says what was dropped.
static void dropped(void **state) {
    (void)state;
    enum { WIDTH = 37, SEED = 77, STEPS = 3 };
    const struct network_case c = {
        "[{linear: out}, {dropout: 0.25}]", {NULL, 1, WIDTH, "mse", 0}, WIDTH, 0, true};
    const struct grt_network_desc network = {.text = c.text, .outputs = WIDTH};
    struct grt_optim_desc still = grt_optim_defaults(GRT_OPTIM_SGD);
    still.lr = 1e-30;
    float one[WIDTH * WIDTH] = {0}, none[WIDTH] = {0};
    for (uint32_t i = 0; i < WIDTH; i++) {
        one[i * WIDTH + i] = 1;
    }
    for (int narrow = 0; narrow < 2; narrow++) {
        enum grt_dtype dtype = narrow ? GRT_F16 : GRT_F32;
        struct grt_learner *learner = grt_learner_create(
            test.dev,
            grt_learner_desc(.make = grt_network_make, .of = &network, .input = {1, {WIDTH}},
                             .optim = still, .precision = dtype, .batch = SAMPLES, .seed = SEED));
        assert_non_null(learner);
        assert_true(grt_learner_alloc(learner));
        for (uint32_t k = 0; k < 2; k++) {
            const struct grt_tensor *t = grt_learner_tensor(learner, GRT_TENSOR_PARAM, k, NULL);
            assert_true(grt_buf_write(t->range.buf, t->range.offset, k == 0 ? one : none,
                                      grt_tensor_bytes(t)));
        }
        assert_true(grt_learner_sync(learner));
        struct samples s = make_samples(&c, dtype);
        struct grt_graph *graph =
            grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
        struct grt_graph *look =
            grt_learner_evaluate(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
        assert_true(graph && look);
        uint32_t kept = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            learn_run(graph, 1);
            float *y = learn_read(grt_learner_output(learner));
            for (uint32_t i = 0; i < SAMPLES * WIDTH; i++) {
                uint32_t words[4];
                oracle_philox((const uint32_t[4]){i / 4, 0, step, 0}, (const uint32_t[2]){SEED, 0},
                              words);
                bool drops = oracle_uniform(words[i % 4]) < 0.25;
                double want = drops ? 0 : s.x[i] / 0.75;
                if (!(fabs((double)y[i] - want) <= fabs(want) * (narrow ? 0x1p-10 : 0x1p-22))) {
                    print_error("step %u, number %u: %g, not %g\n", step, i, (double)y[i], want);
                }
                assert_true(fabs((double)y[i] - want) <= fabs(want) * (narrow ? 0x1p-10 : 0x1p-22));
                kept += !drops;
            }
            free(y);
        }
        // A quarter of 1110, five deviations either way.
        assert_true(kept > 760 && kept < 905);
        learn_run(look, 1);
        float *y = learn_read(grt_learner_output(learner));
        for (uint32_t i = 0; i < SAMPLES * WIDTH; i++) {
            assert_true((double)y[i] == s.x[i]);
        }
        free(y);
        end_samples(&s);
        grt_graph_destroy(&graph);
        grt_graph_destroy(&look);
        grt_learner_destroy(&learner);
    }
}

// Behind a dropout only what was kept has a gradient.
static void dropped_backward(void **state) {
    (void)state;
    const struct network_case c = {
        "[{linear: 16}, {dropout: 0.5}, {linear: out}]", {NULL, 1, 3, "mse", 0}, 2, 0, true};
    struct grt_learner *learner = create(&c, GRT_F32, 1, NULL);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = set_parameters(learner, GRT_F32, &tensors);
    struct samples s = make_samples(&c, GRT_F32);
    struct grt_graph *graph =
        grt_learner_step(learner, grt_step_desc(.rows = 1, .x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    float *grads = learn_read(grt_learner_tensor(learner, GRT_TENSOR_GRAD, 1, NULL));
    uint32_t dropped_units = 0;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t words[4];
        oracle_philox((const uint32_t[4]){i / 4, 0, 0, 0}, (const uint32_t[2]){0, 0}, words);
        bool drops = oracle_uniform(words[i % 4]) < 0.5;
        assert_true((grads[i] == 0.0f) == drops);
        dropped_units += drops;
    }
    assert_true(dropped_units > 0 && dropped_units < 16);
    free(grads);
    for (size_t k = 0; k < tensors; k++) {
        free(params[k]);
    }
    free(params);
    end_samples(&s);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

// ---- refusals ----

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[{linear: 5}, {residual: [{linear: 4}]}, {linear: out}]",
         "net.yaml:3:17: residual: body gives [4], the input has [5]"},
        {"- linear: 5\n  - residual: {of: [{linear: 4}], shortcut: [{linear: 3}]}\n",
         "net.yaml:4:5: residual: body gives [4], shortcut [3]"},
        {"[{linear: 5}, {branches: [[{linear: 4}], [{linear: 3}]]}]",
         "net.yaml:3:17: branches: the first branch gives [4], another [3]"},
        {"[{linear: 5}, relu]", "the network gives [5] for a sample, and the targets want 2"},
        {"[{pool: max}]", "net.yaml:3:4: pool: takes samples of [points][features], not [6]"},
        {"[{linear: 5}, geglu]", "net.yaml:3:17: geglu: takes an even number of features, not [5]"},
        {"[{linaer: 5}]", "net.yaml:3:4: no layer 'linaer'; did you mean 'linear'?"},
        {"[reul]", "net.yaml:3:4: no layer 'reul'; did you mean 'relu'?"},
        {"[{linear: 0}]", "net.yaml:3:13: linear wants a whole number from 1 to 1048576, not 0"},
        {"[{linear: many}]", "net.yaml:3:13: linear wants a whole number"},
        {"[linear]", "net.yaml:3:4: linear wants a value: 256, out"},
        {"[{relu: 3}]", "net.yaml:3:11: relu takes no value"},
        {"[{dropout: 1}]", "net.yaml:3:14: dropout wants a probability"},
        {"[{linear: {outputs: 3, baias: true}}]", "net.yaml:3:26: linear has no key 'baias'"},
        {"[{linear: {bias: true}}]", "linear wants outputs"},
        {"[{norm: batch}]", "net.yaml:3:11: norm: batch is none of layer"},
        {"[{repeat: {times: 3}}]", "repeat wants `times` and `of`"},
        {"[{repeat: {times: 9999, of: [relu]}}]", "times wants a whole number from 1 to 4096"},
        {"[{repeat: {times: 4000, of: [relu, tanh]}}]", "more than 4096 layers"},
        {"[{residual: []}]", "residual wants a list of layers"},
        {"[[relu]]", "a layer is one word, or one word with its value"},
        {"[{linear: 3, relu: 1}]", "a layer is one word, or one word with its value"},
        {"[{branches: [[relu]]}]", "branches wants at least two lists"},
        {"[relu]", "the network gives [6]"},
        {"[]", "the network wants a list of layers"},
        {"{linear: 3}", "the network wants a list of layers"},
        {"[{linear: 3}", "net.yaml:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_network_desc network = {
            .text = rows[i].text, .path = "net.yaml", .line = 3, .column = 3, .outputs = 2};
        TEST_REFUSED(grt_learner_create(test.dev,
                                        grt_learner_desc(.make = grt_network_make, .of = &network,
                                                         .input = {1, {6}}, .outputs = 2,
                                                         .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                                         .batch = 4)),
                     GRT_CONFIG, rows[i].why);
    }
    const struct grt_network_desc nothing = {.text = "[relu, tanh]"};
    TEST_REFUSED(
        grt_learner_create(
            test.dev, grt_learner_desc(.make = grt_network_make, .of = &nothing, .input = {1, {6}},
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 4)),
        GRT_CONFIG, "nothing to learn");
    TEST_REFUSED(grt_network_create(NULL), GRT_INVALID, "network: no desc");
    TEST_REFUSED(grt_network_create(grt_network_desc(.text = "[{linear: out}]")), GRT_CONFIG,
                 "nobody says how many `out` are");
}

// ---- a user's own module ----

// y = 3 x, which no layer of gpurt is.
static struct grt_shape triple_declare(struct grt_module *module, struct grt_net *net,
                                       const char *prefix, const struct grt_shape *in) {
    (void)module;
    (void)net;
    (void)prefix;
    return *in;
}

static void triple(const struct grt_pass *pass, const struct grt_tensor *x,
                   const struct grt_tensor *y) {
    grt_op_map(pass->graph,
               grt_map_desc(.map = GRT_MAP_SCALE, .y = y, .a = x, .alpha = 3.0f, .beta = 0.0f));
}

static void triple_forward(struct grt_module *module, const struct grt_pass *pass,
                           const struct grt_tensor *x, const struct grt_tensor *y) {
    (void)module;
    triple(pass, x, y);
}

static void triple_backward(struct grt_module *module, const struct grt_pass *pass,
                            const struct grt_tensor *x, const struct grt_tensor *dy,
                            const struct grt_tensor *dx, bool add_dx) {
    (void)module;
    (void)x;
    assert_false(add_dx);
    if (dx) {
        triple(pass, dy, dx);
    }
}

static void triple_destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns triple_fns = {"triple", triple_declare, triple_forward,
                                                 triple_backward, triple_destroy};

static struct grt_module *make_own(const void *of) {
    (void)of;
    struct grt_module *own = calloc(1, sizeof *own);
    own->fns = &triple_fns;
    struct grt_module *parts[] = {grt_linear_create(grt_linear_desc(.outputs = 4)),
                                  grt_residual_create(own, NULL, GRT_ACT_NONE),
                                  grt_linear_create(grt_linear_desc(.outputs = 2))};
    return grt_sequence_create(parts, 3);
}

// 3 x + x is 4 x: the same as a network whose first layer is four times as large.
static void own_module(void **state) {
    (void)state;
    const struct network_case c = {"", {NULL, 1, 3, "mse", 0}, 2, 0, true};
    struct grt_learner *learner = grt_learner_create(
        test.dev, grt_learner_desc(.make = make_own, .input = {1, {3}},
                                   .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = SAMPLES));
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    assert_string_equal(grt_learner_layer(learner, 0)->kind, "sequence");
    assert_string_equal(grt_learner_layer(learner, 3)->kind, "triple");
    assert_string_equal(grt_learner_layer(learner, 3)->name, "1.body");
    size_t tensors = 0;
    double **params = set_parameters(learner, GRT_F32, &tensors);
    struct samples s = make_samples(&c, GRT_F32);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    float *bias = learn_read(grt_learner_tensor(learner, GRT_TENSOR_GRAD, 1, NULL));
    const struct oracle_network oracle = {L({"linear", 4}, {"linear", 2}), 1, 3, "mse", 0};
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < (k == 0 ? 12u : 4u); i++) {
            params[k][i] *= 4;
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        double want = 4 * oracle_network_slope(&oracle, params, 1, i, s.x, s.y, SAMPLES);
        assert_true(fabs((double)bias[i] - want) < 1e-4 * (1 + fabs(want)));
    }
    free(bias);
    for (size_t k = 0; k < tensors; k++) {
        free(params[k]);
    }
    free(params);
    end_samples(&s);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(plain),      TEST_CASE(composed), TEST_CASE(of_points),        TEST_CASE(as_an_mlp),
    TEST_CASE(widths),     TEST_CASE(dropped),  TEST_CASE(dropped_backward), TEST_CASE(refused),
    TEST_CASE(own_module),
};
TEST_SUITE(network, true, cases);
