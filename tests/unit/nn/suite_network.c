// SPDX-License-Identifier: Apache-2.0
// Networks as lists of layers: loss and gradients against central differences of a double-precision
// oracle, in training and in inference.
#include "kits/network_kit.h"

#include <math.h>
#include <stdlib.h>

// A learner for inference keeps no activations: outputs take turns in two tensors. Its loss is the
// same.
static void check_inference(const struct network_case *c, struct grt_learner *trained,
                            const struct network_samples *s, struct oracle_value loss) {
    struct grt_learner_desc desc = *grt_learner_desc_of(trained);
    const struct grt_network_desc network = {.text = c->text, .outputs = c->outputs};
    desc.of = &network;
    desc.inference = true;
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = network_set_parameters(learner, desc.precision, &tensors);
    struct grt_graph *graph =
        grt_learner_evaluate(learner, grt_step_desc(.x = {s->bx}, .y = {s->by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    struct grt_learn_state state;
    assert_true(grt_learner_state(learner, &state));
    struct test_compare compare = test_compare(test.dev, "%s, inference", c->text);
    test_compare_value(&compare, 0, state.eval_loss / NETWORK_SAMPLES, loss);
    test_compare_end(&compare);
    network_free_parameters(params, tensors);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

static void check(const struct network_case *c, enum grt_dtype dtype, uint32_t accumulate) {
    struct grt_learner *learner = network_create(c, dtype, accumulate, "layers");
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **params = network_set_parameters(learner, dtype, &tensors);
    struct network_samples s = network_samples_make(c, dtype);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    learn_run(graph, 1);
    struct grt_learn_state state;
    assert_true(grt_learner_state(learner, &state));
    struct test_compare compare = test_compare(test.dev, "%s, %s, %u micro-batches", c->text,
                                               grt_dtype_text(dtype), accumulate);
    double u = dtype == GRT_F32 ? 0x1p-23 : dtype == GRT_F16 ? 0x1p-11 : 0x1p-8;
    double bound = c->bound * u + 1e-8;
    double loss = oracle_network_loss(&c->oracle, params, s.x, s.y, NETWORK_SAMPLES);
    test_compare_value(&compare, 0, state.loss, (struct oracle_value){loss, bound * (1 + loss)});
    double largest = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (size_t k = 0; k < tensors; k++) {
            const struct grt_tensor *t =
                grt_learner_tensor(learner, GRT_TENSOR_GRAD, (uint32_t)k, NULL);
            float *got = learn_read(t);
            for (size_t i = 0; i < grt_tensor_count(t); i++, at++) {
                double want =
                    oracle_network_slope(&c->oracle, params, k, i, s.x, s.y, NETWORK_SAMPLES);
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
    // Evaluations are without label smoothing and class weights.
    struct oracle_network plain_loss = c->oracle;
    plain_loss.smoothing = 0;
    plain_loss.weights = NULL;
    double evaluated = oracle_network_loss(&plain_loss, params, s.x, s.y, NETWORK_SAMPLES);
    check_inference(c, learner, &s, (struct oracle_value){evaluated, bound * (1 + evaluated)});
    network_free_parameters(params, tensors);
    network_samples_end(&s);
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
    const double weights[] = {1, 0.25, 3, 0};
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
        // Weighted means, whichever micro-batch a sample is in.
        {"[{linear: 7}, tanh, {linear: out}]",
         {L({"linear", 7}, {"tanh"}, {"linear", 4}), 1, 5, "cross_entropy", 0, weights},
         4,
         100,
         false},
        {"[{linear: 8}, relu, {linear: out}]",
         {L({"linear", 8}, {"relu"}, {"linear", 4}), 1, 5, "cross_entropy", 0.3, weights},
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
        // The gradient of a residual that comes first is not wanted, and a residual in a residual
        // is added to.
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

// Branches one behind the other, those that read some columns too; in the middle, where gradients
// of x are added, and at the begin.
static void side_by_side(void **state) {
    (void)state;
    const struct oracle_layer *wide = L({"linear", 5}, {"tanh"}), *narrow = L({"linear", 2});
    const struct oracle_layer *front = L({"columns", 4, .from = 0}, {"linear", 3}, {"relu"});
    const struct oracle_layer *back = L({"columns", 2, .from = 4});
    const struct oracle_layer *curve = L({"silu"});
    const struct network_case cases[] = {
        {"[{linear: 6}, {branches: {of: [[{linear: 5}, tanh], [{linear: 2}]], merge: concat}}, "
         "{linear: out}]",
         {L({"linear", 6}, {"concat", 0, NULL, wide, narrow}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         true},
        {"[{branches: {merge: concat, of: [[{columns: {first: 0, count: 4}}, {linear: 3}, relu], "
         "[{columns: {first: 4, count: 2}}]]}}, {linear: out}]",
         {L({"concat", 0, NULL, front, back}, {"linear", 2}), 1, 6, "mse", 0},
         2,
         200,
         false},
        {"[{linear: 6}, {branches: {merge: concat, of: [[{columns: {count: 4}}, {linear: 3}, "
         "relu], [{columns: {first: 4, count: 2}}]]}}, {linear: out}]",
         {L({"linear", 6}, {"concat", 0, NULL, front, back}, {"linear", 2}), 1, 3, "mse", 0},
         2,
         200,
         true},
        // Of points; and neither part adds by itself.
        {"[{linear: 4}, {branches: {of: [[silu], [{linear: 2}]], merge: concat}}, {pool: mean}, "
         "{linear: out}]",
         {L({"linear", 4}, {"concat", 0, NULL, curve, narrow}, {"pool", 0, "mean"}, {"linear", 2}),
          5, 3, "mse", 0},
         2,
         200,
         true},
        // What ends with branches ends in the net's type.
        {"[{branches: {of: [[{linear: 5}, tanh], [{linear: 2}]], merge: concat}}]",
         {L({"concat", 0, NULL, wide, narrow}), 1, 3, "mse", 0},
         7,
         200,
         false},
    };
    check_all(cases, sizeof cases / sizeof *cases);
}

// Samples of four axes: layers go over the last, and flatten takes all.
static void of_four_axes(void **state) {
    (void)state;
    const struct network_case c = {
        "[{linear: 3}, tanh, flatten, {linear: out}]",
        {L({"linear", 3}, {"tanh"}, {"flatten"}, {"linear", 2}), 12, 5, "mse", 0},
        2,
        200,
        true};
    const struct grt_network_desc network = {.text = c.text, .outputs = 2};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    float *parameters[2];
    size_t count = 0;
    for (int four = 0; four < 2; four++) {
        struct grt_learner *learner = grt_learner_create(
            test.dev, grt_learner_desc(.make = grt_network_make, .of = &network,
                                       .input = four ? (struct grt_shape){4, {2, 3, 2, 5}}
                                                     : (struct grt_shape){2, {12, 5}},
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                       .batch = NETWORK_SAMPLES, .accumulate = 2));
        assert_non_null(learner);
        if (four) {
            char text[GRT_SHAPE_TEXT];
            assert_string_equal(grt_shape_text(&grt_learner_layer(learner, 1)->out, text),
                                "[2][3][2][3]");
        }
        assert_true(grt_learner_alloc(learner));
        struct learn l = {.learner = learner};
        size_t tensors = 0;
        double **set = network_set_parameters(learner, GRT_F32, &tensors);
        network_free_parameters(set, tensors);
        struct grt_graph *graph =
            grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
        assert_non_null(graph);
        learn_run(graph, 3);
        parameters[four] = learn_parameters(&l, &count);
        grt_graph_destroy(&graph);
        grt_learner_destroy(&learner);
    }
    test_same_floats(test.dev, "four axes and two", parameters[1], parameters[0], (uint32_t)count);
    free(parameters[0]);
    free(parameters[1]);
    network_samples_end(&s);
}

// ---- in place ----

static double loss_with(struct grt_learner *learner, struct grt_graph *graph,
                        const struct grt_tensor *param, const float *values) {
    struct grt_learn_state state;
    assert_true(
        grt_buf_write(param->range.buf, param->range.offset, values, grt_tensor_bytes(param)));
    assert_true(grt_learner_sync(learner));
    learn_run(graph, 1);
    assert_true(grt_learner_state(learner, &state));
    return (double)state.loss;
}

// The loss that the device itself gives to either side of the parameters, along the gradient of one
// tensor, against the length of that gradient.
static void check_slopes(const char *text, bool recompute) {
    const struct network_case c = {text, {NULL, 1, 6, "mse", 0}, 3, 0, true};
    const struct grt_network_desc network = {.text = text, .outputs = 3};
    struct grt_optim_desc still = grt_optim_defaults(GRT_OPTIM_SGD);
    still.lr = 1e-30;
    struct grt_learner *learner = grt_learner_create(
        test.dev, grt_learner_desc(.make = grt_network_make, .of = &network, .input = {1, {6}},
                                   .optim = still, .batch = NETWORK_SAMPLES, .variant = "layers",
                                   .recompute = recompute));
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    size_t tensors = 0;
    double **set = network_set_parameters(learner, GRT_F32, &tensors);
    network_free_parameters(set, tensors);
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_graph *graph = grt_learner_step(learner, grt_step_desc(.x = {s.bx}, .y = {s.by}));
    assert_non_null(graph);
    struct test_compare compare =
        test_compare(test.dev, "%s%s", text, recompute ? ", computed again" : "");
    uint32_t checked = 0;
    const uint32_t every = test.small ? 4 : 1;  // under a slow checker
    for (uint32_t k = 0; k < tensors; k += every) {
        const struct grt_tensor *param = grt_learner_tensor(learner, GRT_TENSOR_PARAM, k, NULL);
        size_t count = (size_t)grt_tensor_count(param);
        float *values = learn_read(param), *moved = test_alloc(count * sizeof *moved);
        loss_with(learner, graph, param, values);
        float *slope = learn_read(grt_learner_tensor(learner, GRT_TENSOR_GRAD, k, NULL));
        double squares = 0, side[2];
        for (size_t i = 0; i < count; i++) {
            squares += (double)slope[i] * (double)slope[i];
        }
        double length = sqrt(squares), step = 1e-3;
        for (int up = 0; up < 2 && length > 1e-3; up++) {
            for (size_t i = 0; i < count; i++) {
                moved[i] = values[i] + (float)((up ? step : -step) * (double)slope[i] / length);
            }
            side[up] = loss_with(learner, graph, param, moved);
        }
        // A bias before a batch norm has no gradient.
        if (length > 1e-3) {
            test_compare_value(
                &compare, k, (float)length,
                (struct oracle_value){(side[1] - side[0]) / (2 * step), 0.01 * length + 1e-3});
            checked++;
        }
        loss_with(learner, graph, param, values);
        free(values);
        free(moved);
        free(slope);
    }
    assert_true(checked >= tensors / every / 2);
    test_compare_end(&compare);
    network_samples_end(&s);
    grt_graph_destroy(&graph);
    grt_learner_destroy(&learner);
}

// Compositions that give memory to two tensors, one in the other, around what reads its output or
// its gradient again in backward.
static void in_place(void **state) {
    (void)state;
    static const char *const texts[] = {
        "[{residual: {of: [{linear: 16}, {norm: batch}], shortcut: [{linear: 16}, {residual: {of: "
        "[{linear: 16}], activation: relu}}], activation: relu}}, {linear: out}]",
        "[{branches: [[{linear: 16}, {norm: batch}], [{linear: 16}, {residual: {of: [{linear: "
        "16}], activation: relu}}]]}, {linear: out}]",
        "[{linear: 16}, {residual: {of: [{linear: 16}, {norm: batch}], shortcut: [{linear: 16}, "
        "{branches: [[{linear: 16}, {norm: batch}], [{linear: 16}, {residual: {of: [{linear: 16}, "
        "{norm: batch}], activation: relu}}]]}], activation: relu}}, {norm: batch}, {linear: out}]",
        "[{linear: 16}, {residual: {of: [{linear: 16}, {norm: batch}], shortcut: [{linear: 16}, "
        "{norm: batch}], activation: relu}}, {norm: batch}, relu, {residual: {of: [{norm: batch}, "
        "{linear: 16}, {norm: batch}], activation: gelu}}, {norm: batch}, {norm: batch}, flatten, "
        "{dropout: 0}, {norm: layer}, {residual: {of: [{norm: batch}, relu, {residual: {of: "
        "[{linear: 16}, {norm: batch}], activation: relu}}], activation: relu}}, {norm: batch}, "
        "{branches: {of: [[{norm: batch}], [{norm: batch}, relu]], merge: concat}}, {norm: batch}, "
        "{linear: out}]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_slopes(texts[i], false);
        check_slopes(texts[i], true);
    }
}

static const struct CMUnitTest cases[] = {TEST_CASE(side_by_side), TEST_CASE(of_four_axes),
                                          TEST_CASE(plain),        TEST_CASE(composed),
                                          TEST_CASE(of_points),    TEST_CASE(in_place)};
TEST_SUITE(network, true, cases);
