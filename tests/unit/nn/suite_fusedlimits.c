// SPDX-License-Identifier: Apache-2.0
// Several layers in one kernel: which networks are taken for perceptrons, both sides of each limit
// of the kernels, what their operands must be, how many numbers an evaluation leaves, and when an
// MLP over rows is none.
#include "kits/mlp_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "gpurt/network.h"
#include "gpurt/optim.h"
#include "nn/fused/fused.h"
#include "nn/fused/mlp_case.h"
#include "nn/fused/mlp_fused.h"
#include "nn/fused/mlp_reference.h"
#include "nn/fused/mlp_rows.h"

// ---- which networks ----

static void perceptrons_by_other_names(void **state) {
    (void)state;
    const struct grt_shape flat = {1, {6}}, points = {2, {4, 6}}, wide = {1, {1ull << 32}};
    static const struct {
        const char *text;
        uint32_t depth, hidden, outputs;  // depth 0: it is none
        enum grt_act act;
    } rows[] = {
        {"[{linear: 5}, relu, {linear: 2}]", 1, 5, 2, GRT_ACT_RELU},
        {"[{linear: 5}, silu, {linear: 5}, silu, {linear: 2}]", 2, 5, 2, GRT_ACT_SILU},
        {"[{linear: 5}, tanh, {linear: 5}, tanh, {linear: 5}, tanh, {linear: 5}]", 3, 5, 5,
         GRT_ACT_TANH},
        {"[{linear: 5}]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: 5}, relu]", 0, 0, 0, GRT_ACT_NONE},
        {"[relu, {linear: 5}, relu]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: 5}, relu, {linear: 4}, relu, {linear: 2}]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: 5}, relu, {linear: 5}, tanh, {linear: 2}]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: 5}, {dropout: 0}, {linear: 2}]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: {outputs: 5, bias: false}}, relu, {linear: 2}]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: 5}, relu, {linear: {outputs: 2, bias: false}}]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: 5}, relu, {norm: layer}]", 0, 0, 0, GRT_ACT_NONE},
        {"[{linear: 5}, {linear: 5}, {linear: 2}]", 0, 0, 0, GRT_ACT_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_module *m = grt_network_create(grt_network_desc(.text = rows[i].text));
        struct grt_mlp_desc mlp;
        assert_non_null(m);
        assert_int_equal(grt_mlp_of(m, &flat, &mlp), rows[i].depth > 0);
        if (rows[i].depth > 0) {
            assert_true(mlp.depth == rows[i].depth && mlp.hidden == rows[i].hidden &&
                        mlp.outputs == rows[i].outputs && mlp.act == rows[i].act &&
                        mlp.inputs == 6);
        }
        assert_false(grt_mlp_of(m, &points, &mlp));
        assert_false(grt_mlp_of(m, &wide, &mlp));
        grt_module_destroy(&m);
    }
    for (uint32_t inputs = 0; inputs < 8; inputs++) {
        const struct grt_mlp_desc own = {.inputs = inputs, .depth = 1, .hidden = 3, .outputs = 2};
        struct grt_module *m = grt_mlp_create(&own);
        struct grt_mlp_desc mlp;
        assert_int_equal(grt_mlp_of(m, &flat, &mlp), inputs == 0 || inputs == 6);
        assert_true((inputs != 0 && inputs != 6) || mlp.inputs == 6);
        grt_module_destroy(&m);
    }
}

// ---- limits ----

static void limits_of_kernels(void **state) {
    (void)state;
    for (int i = 0; i < 34; i++) {
        struct grt_mlp_fused_desc d = {
            .model = {.inputs = 6, .depth = 2, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU},
            .dtype = GRT_F32,
            .rows = 10};
        bool there = false, better = false;
        // Each pair: the last one that there are kernels for, and the first that there are none.
        switch (i) {
        case 0:
            there = better = true;
            break;
        case 1:
            d.model.inputs = 128, there = better = true;
            break;
        case 2:
            d.model.inputs = 129;
            break;
        case 3:
            d.model.inputs = 1, there = better = true;
            break;
        case 4:
            d.model.inputs = 0;
            break;
        case 5:
            d.model.outputs = 16, there = better = true;
            break;
        case 6:
            d.model.outputs = 17;
            break;
        case 7:
            d.model.outputs = 0;
            break;
        case 8:
            d.model.depth = 12, there = better = true;
            break;
        case 9:
            d.model.depth = 13;
            break;
        case 10:
            d.model.depth = 1, there = better = true;
            break;
        case 11:
            d.model.depth = 0;
            break;
        case 12:
            d.model.hidden = 32, there = better = true;
            break;
        case 13:
            d.model.hidden = 64, there = true;
            break;
        case 14:
            d.model.hidden = 128, there = true;
            break;
        case 15:
            d.model.hidden = 256;
            break;
        case 16:
            d.model.hidden = 8;
            break;
        case 17:
            d.model.hidden = 24;
            break;
        case 18:
            d.model.residual = true;
            break;
        case 19:
            d.model.layer_norm = true;
            break;
        case 20:
            d.model.widths[0] = 16;
            break;
        case 21:
            d.model.act = GRT_ACT_NONE;
            break;
        case 22:
            d.model.act = GRT_ACT_TANH, there = better = true;
            break;
        case 23:
            d.model.act = GRT_ACT_GELU_EXACT;
            break;
        case 24:
            d.loss = GRT_LOSS_BCE, there = better = true;
            break;
        case 25:
            d.loss = GRT_LOSS_L1;
            break;
        case 26:
            d.rows = 1, there = better = true;
            break;
        case 27:
            d.rows = 0;
            break;
        case 28:
            d.rows = MLP_MOST_ROWS + 1;
            break;
        case 29:
            d.dtype = GRT_F16;
            break;
        case 30:
            d.variant = "plain", there = better = true;
            break;
        case 31:
            d.variant = "step";
            break;
        case 32:
            d.model.act = GRT_ACT_GELU, there = better = true;
            break;
        default:
            d.loss = GRT_LOSS_NT_XENT;
            break;
        }
        const char *name = grt_mlp_fused_variant(test.dev, &d, 0);
        assert_int_equal(name != NULL, there);
        assert_true(!name || strcmp(name, "plain") == 0);
        assert_null(grt_mlp_fused_variant(test.dev, &d, 1));
        assert_int_equal(grt_mlp_fused_usable(test.dev, &d), better);
        assert_int_equal(grt_mlp_forward_usable(test.dev, &d, false), better);
        assert_int_equal(grt_mlp_forward_usable(test.dev, &d, true), better);
        assert_int_equal(grt_mlp_judge_blocks(test.dev, &d, true) > 0,
                         false);                                   // 10 rows or 1 fill none
        assert_int_equal(grt_mlp_fused_scratch(test.dev, &d), 0);  // without parameters
    }
    assert_null(grt_mlp_fused_variant(NULL, NULL, 0));
    assert_null(grt_mlp_fused_variant(test.dev, NULL, 0));
}

// A GPU has no kernels in f32.
static void none_for_gpus(void **state) {
    (void)state;
    const struct grt_mlp_fused_desc d = {
        .model = {.inputs = 6, .depth = 2, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU},
        .dtype = GRT_F32,
        .rows = 16};
    assert_null(grt_mlp_fused_variant(test.dev, &d, 0));
    assert_false(grt_mlp_fused_usable(test.dev, &d));
}

// Numbers of losses: room for one of four rows each, and how many there are where rows fill them.
static void numbers_of_losses(void **state) {
    (void)state;
    assert_int_equal(grt_mlp_judge_numbers(0), 8192);
    assert_int_equal(grt_mlp_judge_numbers(7), 8193);
    assert_int_equal(grt_fused_judge_numbers(4096), 1024 + 8192);
    struct grt_caps *caps = &test.dev->info.caps;
    const uint32_t was = caps->compute_units;
    caps->compute_units = 2;  // of 8 groups each, a lane of four rows
    // With the last one filled, and with fewer rows in it.
    static const uint64_t rows[][3] = {{4, 1, 1},  {8, 2, 2},   {10, 0, 3},
                                       {11, 0, 3}, {1, 0, 1},   {64, 16, 16},
                                       {68, 0, 0}, {63, 0, 16}, {60, 15, 15}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_mlp_fused_desc d = {
            .model = {.inputs = 6, .depth = 2, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU},
            .dtype = GRT_F32,
            .rows = rows[i][0]};
        assert_int_equal(grt_mlp_judge_blocks(test.dev, &d, true), rows[i][1]);
        assert_int_equal(grt_mlp_judge_blocks(test.dev, &d, false), rows[i][2]);
    }
    caps->compute_units = was;
    struct mlp_plan p = {.padded = 100};
    static const uint32_t cuts[][5] = {// wanted, piece: chunk, parts, most
                                       {1, 8, 104, 1, 1},
                                       {0, 8, 104, 1, 1},
                                       {4, 8, 32, 4, 4},
                                       {50, 8, 16, 7, 50},
                                       {3, 1, 34, 3, 3}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        mlp_cut(&p, cuts[i][0], cuts[i][1]);
        assert_int_equal(p.chunk, cuts[i][2]);
        assert_int_equal(p.parts, cuts[i][3]);
        assert_int_equal(p.most_parts, cuts[i][4]);
    }
    assert_true(mlp_ceil_div(0, 4) == 0 && mlp_ceil_div(4, 4) == 1 && mlp_ceil_div(5, 4) == 2);
}

// ---- operands ----

struct operands {
    struct mlp_kit kit;
    struct test_tensor x, target, classes, y, parts, own, order, scratch;
};

static const struct grt_mlp_desc model = {
    .inputs = 6, .depth = 4, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU};
enum { ROWS = 12 };

static void operands_begin(struct operands *o) {
    mlp_kit_begin(&o->kit, GRT_F32, &model, 5);
    o->x = test_tensor(test.dev, GRT_F32, ROWS, 6);
    o->target = test_tensor(test.dev, GRT_F32, ROWS, 3);
    o->classes = test_tensor(test.dev, GRT_U32, ROWS, 0);
    o->y = test_tensor(test.dev, GRT_F32, ROWS, 3);
    o->parts = test_tensor(test.dev, GRT_F32, 9000, 0);
    o->own = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    o->order = test_tensor(test.dev, GRT_U32, ROWS + 5, 0);
    o->scratch = test_tensor(test.dev, GRT_F32, 1u << 18, 0);
}

static void operands_end(struct operands *o) {
    struct test_tensor *all[] = {&o->x,     &o->target, &o->classes, &o->y,
                                 &o->parts, &o->own,    &o->order,   &o->scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        test_tensor_end(all[i]);
    }
    mlp_kit_end(&o->kit);
}

// What is recorded, of three ops; `count`: numbers of losses that the third says.
static struct grt_graph *recorded(int way, const struct grt_mlp_fused_desc *d, uint32_t *count) {
    struct grt_graph *graph = grt_graph_create(test.dev, "fused");
    *count = 0;
    if (way == 0) {
        grt_op_mlp_fused(graph, d);
    } else if (way == 1) {
        grt_op_mlp_forward(graph, d);
    } else {
        *count = grt_op_mlp_judge(graph, d);
    }
    return graph;
}

static void wrong_operands(void **state) {
    (void)state;
    struct operands o;
    operands_begin(&o);
    struct grt_params none = o.kit.params, bare = o.kit.params, many = o.kit.params;
    none.count -= 1;
    bare.grad = NULL;
    many.elements = UINT32_MAX / 64 + 1ull;
    // Hidden layers that are not equally far apart: a weight, a bias.
    struct grt_params moved[2] = {o.kit.params, o.kit.params};
    struct grt_param other[2][MLP_KIT_PARAMS], *list[2][MLP_KIT_PARAMS];
    for (uint32_t k = 0; k < 2 * o.kit.params.count; k++) {
        uint32_t i = k / 2;
        other[k % 2][i] = o.kit.param[i];
        other[k % 2][i].first += i == (k % 2 ? 7 : 6) ? 64 : 0;
        list[k % 2][i] = &other[k % 2][i];
    }
    moved[0].list = list[0];
    moved[1].list = list[1];
    static const char *const other_params = "the parameters are not those of the model";
    static const char *const types = "the parameters have no tensors of the type";
    static const char *const rows = "x must be f32 [rows][inputs]";
    static const char *const order = "the order must have a number for each row";
    static const char *const targets =
        "the target must be f32 [rows][outputs], for cross-entropy u32 [rows]";
    static const char *const parts = "no parts of the loss, or no state";
    static const char *const y = "y must be f32 [rows][outputs]";
    static const char *const whole = "y must be f32 [rows][outputs], and there must be a state";
    for (int i = 0; i < 23; i++) {
        struct grt_mlp_fused_desc d = {.model = model,
                                       .loss = GRT_LOSS_MSE,
                                       .dtype = GRT_F32,
                                       .rows = ROWS,
                                       .params = &o.kit.params,
                                       .x = &o.x.tensor,
                                       .target = &o.target.tensor,
                                       .y = &o.y.tensor,
                                       .parts = o.parts.tensor.range,
                                       .state = o.own.tensor.range,
                                       .scratch = o.scratch.tensor.range};
        // There and back, forward alone, losses alone; NULL: it does not mind.
        const char *why[3] = {NULL, NULL, NULL};
        switch (i) {
        case 0:
            break;
        case 1:
            d.params = &none, why[0] = why[1] = why[2] = other_params;
            break;
        case 2:
            d.params = &many, why[0] = why[1] = why[2] = other_params;
            break;
        case 3:
            d.params = &moved[0], why[0] = why[1] = why[2] = other_params;
            break;
        case 4:
            d.params = &bare, why[0] = types;
            break;
        case 5:
            d.first = 2, why[0] = why[1] = why[2] = other_params;
            break;
        case 6:
            d.model.inputs = 5, why[0] = why[1] = why[2] = other_params;
            break;
        case 7:
            d.model.outputs = 2, why[0] = why[1] = why[2] = other_params;
            break;
        case 8:
            d.model.depth = 2, why[0] = why[1] = why[2] = other_params;
            break;
        case 9:
            d.x = &o.target.tensor, why[0] = why[1] = why[2] = rows;
            break;
        case 10:
            d.rows = ROWS - 1, why[0] = why[1] = why[2] = rows;
            break;
        case 11:
            d.x = &o.classes.tensor, why[0] = why[1] = why[2] = rows;
            break;
        case 12:
            d.target = &o.x.tensor, why[0] = why[2] = targets;
            break;
        case 13:
            d.target = &o.classes.tensor, why[0] = why[2] = targets;
            break;
        case 14:
            d.loss = GRT_LOSS_CROSS_ENTROPY, why[0] = why[2] = targets;
            break;
        case 15:
            d.loss = GRT_LOSS_CROSS_ENTROPY, d.target = &o.classes.tensor;
            break;
        case 16:
            d.y = &o.x.tensor, why[0] = why[2] = y, why[1] = whole;
            break;
        case 17:
            d.y = NULL, why[1] = "no tensor y";
            break;
        case 18:
            d.state.buf = NULL, why[0] = why[2] = parts, why[1] = whole;
            break;
        case 19:
            d.parts.buf = NULL, why[0] = why[2] = parts;
            break;
        case 21:
            d.params = &moved[1], why[0] = why[1] = why[2] = other_params;
            break;
        case 20:
            d.ordered = true, d.order = o.order.tensor.range, d.order_first = 6;
            why[0] = why[1] = why[2] = order;
            break;
        default:
            d.ordered = true, d.order = o.order.tensor.range, d.order_first = 5;
            break;
        }
        for (int way = 0; way < 3; way++) {
            uint32_t count;
            struct grt_graph *graph = recorded(way, &d, &count);
            assert_int_equal(count, way == 2 && !why[way] ? ROWS / 4 : 0);
            if (why[way]) {
                TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, why[way]);
            } else {
                assert_true(grt_graph_bake(graph));
            }
            grt_graph_destroy(&graph);
        }
    }
    // Scratch: as many bytes as are said, and one fewer.
    struct grt_mlp_fused_desc d = {.model = model,
                                   .dtype = GRT_F32,
                                   .rows = ROWS,
                                   .params = &o.kit.params,
                                   .x = &o.x.tensor,
                                   .target = &o.target.tensor,
                                   .parts = o.parts.tensor.range,
                                   .state = o.own.tensor.range,
                                   .scratch = o.scratch.tensor.range};
    uint64_t bytes = grt_mlp_fused_scratch(test.dev, &d);
    assert_true(bytes > 0 && bytes < o.scratch.bytes);
    for (int less = 0; less < 2; less++) {
        d.scratch.size = bytes - (uint64_t)less;
        uint32_t count;
        struct grt_graph *graph = recorded(0, &d, &count);
        if (less) {
            TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "bytes of scratch");
        } else {
            assert_true(grt_graph_bake(graph));
        }
        grt_graph_destroy(&graph);
    }
    // Norms lie in the scratch; nothing without one.
    uint32_t count = 9;
    d.scratch.size = 0;
    struct grt_range norms = grt_mlp_fused_norms(test.dev, &d, &count);
    assert_true(count > 0 && norms.buf == o.scratch.tensor.range.buf && norms.size == count * 4);
    assert_true(norms.offset + norms.size <= o.scratch.tensor.range.offset + bytes);
    d.scratch.buf = NULL;
    norms = grt_mlp_fused_norms(test.dev, &d, &count);
    assert_true(count == 0 && !norms.buf);
    TEST_REFUSED((grt_op_mlp_fused(NULL, &d), false), GRT_INVALID, "fused mlp: no graph");
    struct grt_graph *graph = grt_graph_create(test.dev, "no desc");
    grt_op_mlp_fused(graph, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "fused mlp: no desc");
    grt_graph_destroy(&graph);
    operands_end(&o);
}

// A network that is no perceptron has no fused op.
static void other_networks(void **state) {
    (void)state;
    struct grt_module *m = grt_network_create(grt_network_desc(.text = "[{norm: layer}]"));
    assert_non_null(m);
    const struct grt_fused_desc d = {.module = m, .input = {1, {6}}, .rows = 4};
    uint32_t count = 3;
    assert_false(grt_fused_usable(test.dev, &d, true));
    assert_false(grt_fused_usable(test.dev, &d, false));
    assert_false(grt_fused_forward_usable(test.dev, &d, false));
    assert_null(grt_fused_kernels(test.dev, &d));
    assert_int_equal(grt_fused_scratch(test.dev, &d), 0);
    assert_int_equal(grt_fused_judge_blocks(test.dev, &d, false), 0);
    assert_null(grt_fused_norms(test.dev, &d, &count).buf);
    assert_int_equal(count, 0);
    for (int way = 0; way < 3; way++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "none");
        if (way == 0) {
            grt_op_fused(graph, &d);
        } else if (way == 1) {
            grt_op_fused_forward(graph, &d);
        } else {
            assert_int_equal(grt_op_fused_judge(graph, &d), 0);
        }
        TEST_REFUSED(grt_graph_bake(graph), GRT_UNSUPPORTED, "no fused op for this network");
        grt_graph_destroy(&graph);
    }
    grt_module_destroy(&m);
}

// ---- rows that lie apart ----

// Bytes of what the way there keeps, by whole pieces of 32 rows: 64 units of 2 bytes a layer.
static void rows_apart(void **state) {
    (void)state;
    static const uint64_t rows[][3] = {{1, 1, 32}, {32, 1, 32}, {33, 2, 64}, {64, 3, 64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_mlp_rows_desc d = {.rows = rows[i][0],
                                            .model = {.depth = (uint32_t)rows[i][1]}};
        assert_int_equal(grt_mlp_rows_hidden(&d), rows[i][2] * 64 * rows[i][1] * 2);
    }
    struct grt_caps *caps = &test.dev->info.caps;
    const uint32_t was = caps->compute_units;
    for (uint32_t units = 1; units < 40; units += 19) {
        const struct grt_mlp_rows_desc d = {.rows = 33 * 32 - 5};
        caps->compute_units = units;
        assert_int_equal(grt_mlp_rows_groups(test.dev, &d), units < 33 ? units : 33);
    }
    caps->compute_units = was;
    // No device without NVIDIA's matrix units has kernels for them.
    const struct grt_mlp_rows_desc good = {
        .model = {.inputs = 8, .depth = 2, .hidden = 64, .outputs = 1, .act = GRT_ACT_TANH},
        .dtype = GRT_F16,
        .rows = 5,
        .places = {.near = {.numbers = 8, .pitch = 8, .step = 8}, .period = 1, .share = 1}};
    assert_false(grt_mlp_rows_usable(test.dev, &good));
    assert_false(grt_mlp_rows_usable(NULL, &good));
    assert_false(grt_mlp_rows_usable(test.dev, NULL));
}

// Where parameters of a layer begin among all, and how far two lists of numbers are apart.
static void references(void **state) {
    (void)state;
    static const size_t at[] = {0, 112, 112 + 272, 112 + 544, 112 + 816, 112 + 816 + 51};
    for (uint32_t l = 0; l <= 5; l++) {
        assert_int_equal(grt_mlp_reference_at(&model, l), at[l]);
    }
    const double want[] = {3, -4}, zeros[] = {0, 0};
    assert_true(isinf(grt_mlp_reference_distance((const float[]){INFINITY, 0}, want, 2)));
    assert_true(isinf(grt_mlp_reference_distance((const float[]){NAN, 0}, want, 2)));
    assert_true(grt_mlp_reference_distance((const float[]){3, 4}, want, 2) > 1.59);
    assert_true(grt_mlp_reference_distance((const float[]){3, 4}, want, 1) == 0);
    assert_true(!(grt_mlp_reference_distance((const float[]){1, 0}, zeros, 2) < 1));
}

static const struct CMUnitTest cases[] = {
    REF_CASE(perceptrons_by_other_names),
    REF_CASE(limits_of_kernels),
    REF_GPU_CASE(none_for_gpus),
    REF_CASE(numbers_of_losses),
    REF_CASE(wrong_operands),
    REF_CASE(other_networks),
    REF_CASE(rows_apart),
    REF_CASE(references),
};
TEST_SUITE(fusedlimits, false, cases);
