// SPDX-License-Identifier: Apache-2.0
// Layers by themselves: what none can be made of, and that parts are let go of then; first values;
// memory of a perceptron's plan; how launches are cut; and passes that only some layers take.
#include "kits/learn_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "gpurt/archive.h"
#include "gpurt/network.h"
#include "learn/learner_parts.h"
#include "nn/eights.h"
#include "nn/image_ops.h"

// ---- making ----

static uint32_t let_go;

static struct grt_shape same(struct grt_module *module, struct grt_net *net, const char *prefix,
                             const struct grt_shape *in) {
    (void)module;
    (void)net;
    (void)prefix;
    return *in;
}

static void forget(struct grt_module *module) {
    let_go++;
    free(module);
}

static const struct grt_module_fns counted_fns = {"counted", same, NULL, NULL, forget};

static struct grt_module *counted(void) {
    struct grt_module *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->fns = &counted_fns;
    return m;
}

static void what_none_is_made_of(void **state) {
    (void)state;
    const struct grt_mlp_desc each = {.depth = 1, .hidden = 4};
    const struct grt_points_desc points[] = {
        {.each = {.depth = 1, .hidden = 4, .outputs = 2}, .head = {.outputs = 1}},
        {.each = {.hidden = 4}, .head = {.outputs = 1}},
        {.each = each, .pool = GRT_POOL_COUNT, .head = {.outputs = 1}},
        {.each = each, .head = {.inputs = 5, .outputs = 1}},
        {.each = {.depth = 2, .widths = {4, 3}}, .head = {.inputs = 4, .outputs = 1}}};
    const char *const wants =
        "points: wants hidden layers over each point, no outputs there, a known pooling, and a "
        "head as wide as those layers";
    for (int i = 0; i < 5; i++) {
        TEST_REFUSED(grt_points_create(&points[i]), GRT_INVALID, wants);
    }
    TEST_REFUSED(grt_points_create(NULL), GRT_INVALID, "points: no desc");
    struct grt_module *good =
        grt_points_create(grt_points_desc(.each = {.depth = 2, .widths = {4, 3}},
                                          .head = {.inputs = 3, .outputs = 1}));
    assert_non_null(good);
    grt_module_destroy(&good);
    assert_null(good);
    grt_module_destroy(&good);
    grt_module_destroy(NULL);
    // A head that can be made of nothing.
    TEST_REFUSED(grt_points_create(grt_points_desc(.each = each)), GRT_INVALID,
                 "mlp: neither hidden layers nor outputs");
    static const struct {
        struct grt_mlp_desc desc;
        const char *why;
    } mlps[] = {
        {{.depth = 1, .outputs = 1}, "mlp: hidden must be at least 1"},
        {{.depth = 0}, "mlp: neither hidden layers nor outputs"},
        {{.depth = 257, .hidden = 2, .outputs = 1}, "mlp: more than 256 hidden layers"},
        {{.depth = 1, .hidden = 2, .act = GRT_ACT_COUNT}, "mlp: no such activation"},
        {{.depth = 2, .outputs = 1, .widths = {3}}, "mlp: a list of widths has one for each"},
        {{.depth = 33, .outputs = 1, .widths = {3}}, "mlp: a list of widths has one for each"},
        {{.depth = 1, .outputs = 1, .widths = {3}, .residual = true}, "and no residual"},
    };
    for (size_t i = 0; i < sizeof mlps / sizeof *mlps; i++) {
        TEST_REFUSED(grt_mlp_create(&mlps[i].desc), GRT_INVALID, mlps[i].why);
    }
    TEST_REFUSED(grt_mlp_create(NULL), GRT_INVALID, "mlp: no desc");
    TEST_REFUSED(grt_mlp_make(NULL), GRT_INVALID, "mlp: no desc");
    const struct grt_mlp_desc most[] = {{.depth = 256, .hidden = 1}, {.outputs = 1}};
    for (int i = 0; i < 2; i++) {
        good = grt_mlp_create(&most[i]);
        assert_non_null(good);
        grt_module_destroy(&good);
    }
    TEST_REFUSED(grt_linear_create(NULL), GRT_INVALID, "linear: no desc");
    TEST_REFUSED(grt_linear_create(grt_linear_desc(.inputs = 3)), GRT_INVALID,
                 "linear: outputs must be at least 1");
    static const struct {
        struct grt_window_pool_desc desc;
        const char *why;
    } windows[] = {
        {{.pool = GRT_POOL_COUNT, .size = 2}, "window pool: no such pooling"},
        {{.size = 0}, "window pool: size must be at least 1"},
        {{.size = 1, .padding = 1}, "window pool: padding is more than half the size"},
    };
    for (int i = 0; i < 3; i++) {
        TEST_REFUSED(grt_window_pool_create(&windows[i].desc), GRT_INVALID, windows[i].why);
    }
    static const struct {
        struct grt_conv_desc desc;
        const char *why;
    } convs[] = {
        {{.size = 3}, "conv: outputs must be at least 1"},
        {{.outputs = 3}, "conv: size must be at least 1"},
        {{.outputs = 3, .size = 1, .padding = 1}, "conv: padding must be below the size"},
    };
    for (int i = 0; i < 3; i++) {
        TEST_REFUSED(grt_conv_create(&convs[i].desc), GRT_INVALID, convs[i].why);
    }
    TEST_REFUSED(grt_activation_create(GRT_ACT_COUNT), GRT_INVALID, "activation: no such one");
    TEST_REFUSED(grt_pool_create(GRT_POOL_COUNT), GRT_INVALID, "pool: no such pooling");
    TEST_REFUSED(grt_dropout_create(1), GRT_INVALID,
                 "dropout: the probability must be from 0 to below 1, not 1");
    TEST_REFUSED(grt_dropout_create(-0.5), GRT_INVALID, "not -0.5");
    TEST_REFUSED(grt_dropout_create((double)NAN), GRT_INVALID, "dropout: the probability must be");
    TEST_REFUSED(grt_columns_create(3, 0), GRT_INVALID, "columns: none are wanted");
    TEST_REFUSED(grt_input_create(NULL), GRT_INVALID, "input: none are wanted");
    TEST_REFUSED(grt_input_create(&(struct grt_input){"a", 0, {1, {0}}}), GRT_INVALID,
                 "input: none are wanted");
    const struct {
        struct grt_wideresnet_desc desc;
        const char *why;
    } wide[] = {
        {{.depth = 304, .width = 1024}, NULL},
        {{.depth = 310}, "wideresnet: depth is at most 304"},
        {{.depth = 4}, "wideresnet: depth is 10, 16, 22, 28, ..."},
        {{.depth = 11}, "wideresnet: depth is 10, 16, 22, 28, ..."},
        {{.width = 1025}, "wideresnet: width is at most 1024"},
        {{.dropout = 1}, "wideresnet: dropout is from 0 to below 1"},
        {{.dropout = -0.1}, "wideresnet: dropout is from 0 to below 1"},
        {{.dropout = 0.9}, NULL},
    };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (wide[i].why) {
            TEST_REFUSED(grt_wideresnet_create(&wide[i].desc), GRT_INVALID, wide[i].why);
            continue;
        }
        good = grt_wideresnet_create(&wide[i].desc);
        assert_non_null(good);
        grt_module_destroy(&good);
    }
    TEST_REFUSED(grt_wideresnet_create(NULL), GRT_INVALID, "wideresnet: no desc");
    TEST_REFUSED(grt_resnet_create(grt_resnet_desc(.depth = 18, .stem = GRT_STEM_COUNT)),
                 GRT_INVALID, "resnet: no such stem");
    TEST_REFUSED(grt_resnet_create(grt_resnet_desc(.depth = 0)), GRT_INVALID,
                 "resnet: depth is 18, 34, 50, 101 or 152");
}

// Compositions own their parts, also when they cannot be made.
static void parts_are_let_go(void **state) {
    (void)state;
    const struct {
        struct grt_module *(*make)(struct grt_module **parts, uint32_t count);
        const char *why;
        uint32_t least;
    } rows[] = {{grt_sequence_create, "sequence: no parts, or one is missing", 1},
                {grt_branches_create, "branches: fewer than two parts, or one is missing", 2},
                {grt_concat_create, "concat: fewer than two parts, or one is missing", 2}};
    for (int i = 0; i < 3; i++) {
        TEST_REFUSED(rows[i].make(NULL, 2), GRT_INVALID, rows[i].why);
        for (uint32_t count = 0; count < 4; count++) {
            for (uint32_t missing = 0; missing <= count; missing++) {
                struct grt_module *parts[4] = {NULL};
                uint32_t there = 0;
                for (uint32_t k = 0; k < count; k++) {
                    parts[k] = k + 1 == missing ? NULL : counted();
                    there += parts[k] != NULL;
                }
                let_go = 0;
                if (missing > 0 || count < rows[i].least) {
                    TEST_REFUSED(rows[i].make(parts, count), GRT_INVALID, rows[i].why);
                } else {
                    struct grt_module *made = rows[i].make(parts, count);
                    assert_true(made && let_go == 0 && made->has_parts);
                    grt_module_destroy(&made);
                }
                assert_int_equal(let_go, there);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        let_go = 0;
        struct grt_module *body = i == 1 ? NULL : counted();
        struct grt_module *shortcut = i == 3 ? NULL : counted();
        enum grt_act act = i == 0 ? GRT_ACT_COUNT : GRT_ACT_RELU;
        if (i < 2) {
            TEST_REFUSED(grt_residual_create(body, shortcut, act), GRT_INVALID,
                         i == 0 ? "residual: no such activation" : "residual: no body");
        } else {
            struct grt_module *made = grt_residual_create(body, shortcut, act);
            assert_non_null(made);
            grt_module_destroy(&made);
        }
        assert_int_equal(let_go, i == 1 || i == 3 ? 1 : 2);
    }
}

// What compositions are told of a layer: an f32 output, gradients of x that are added, rows with
// zeros behind them, memory that may be shared.
static void flags(void **state) {
    (void)state;
    enum { F32 = 1, ADDS = 2, WIDE = 4, VIEW = 8, PARTS = 16, OVER = 32, X = 64, Y = 128 };
    const struct grt_mlp_desc each = {.depth = 1, .hidden = 3};
    struct grt_module *ends[] = {grt_geglu_create(),
                                 grt_linear_create(grt_linear_desc(.outputs = 2))};
    struct grt_module *begins[] = {grt_linear_create(grt_linear_desc(.outputs = 2)),
                                   grt_geglu_create()};
    struct grt_module *sums[] = {grt_linear_create(grt_linear_desc(.outputs = 2)),
                                 grt_geglu_create()};
    struct grt_module *joined[] = {grt_geglu_create(),
                                   grt_linear_create(grt_linear_desc(.outputs = 2))};
    const struct {
        struct grt_module *module;
        uint32_t flags;
    } rows[] = {
        {grt_linear_create(grt_linear_desc(.outputs = 2)), F32 | ADDS | WIDE},
        {grt_conv_create(grt_conv_desc(.outputs = 2, .size = 3)), F32 | ADDS | Y},
        {grt_layer_norm_create(), 0},
        {grt_activation_create(GRT_ACT_RELU), 0},
        {grt_batch_norm_create(NULL), OVER | Y},
        {grt_dropout_create(0.5), 0},
        {grt_flatten_create(), VIEW | X | Y},
        {grt_geglu_create(), 0},
        {grt_pool_create(GRT_POOL_MAX), X | Y},
        {grt_window_pool_create(grt_window_pool_desc(.size = 2)), ADDS | X | Y},
        {grt_columns_create(0, 1), 0},
        {grt_mlp_create(grt_mlp_desc(.depth = 1, .hidden = 3, .outputs = 1)), F32 | ADDS | WIDE},
        {grt_mlp_create(&each), ADDS | WIDE},
        {grt_points_create(grt_points_desc(.each = each, .head = {.outputs = 2})),
         F32 | ADDS | PARTS},
        {grt_points_create(grt_points_desc(.each = each, .head = each)), ADDS | PARTS},
        {grt_resnet_create(grt_resnet_desc(.depth = 18)), ADDS | PARTS},
        {grt_resnet_create(grt_resnet_desc(.depth = 18, .outputs = 2)), F32 | ADDS | PARTS},
        {grt_wideresnet_create(grt_wideresnet_desc(.outputs = 2)), F32 | ADDS | PARTS},
        {grt_transform_create(grt_network_desc(.text = "[normalize]")), ADDS},
        {grt_sequence_create(ends, 2), F32 | PARTS},
        {grt_sequence_create(begins, 2), ADDS | WIDE | PARTS},
        {grt_branches_create(sums, 2), ADDS | PARTS},
        {grt_concat_create(joined, 2), PARTS},
        {grt_residual_create(grt_geglu_create(), NULL, GRT_ACT_RELU), PARTS},
        {grt_residual_create(grt_linear_create(grt_linear_desc(.outputs = 2)), grt_geglu_create(),
                             GRT_ACT_RELU),
         ADDS | PARTS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_module *m = rows[i].module;
        assert_non_null(m);
        uint32_t got = (m->f32_output ? F32 : 0u) | (m->adds_dx ? ADDS : 0u) |
                       (m->wide_rows ? WIDE : 0u) | (m->is_view ? VIEW : 0u) |
                       (m->has_parts ? PARTS : 0u) | (m->dx_on_dy ? OVER : 0u) |
                       (m->forgets_x ? X : 0u) | (m->forgets_y ? Y : 0u);
        assert_int_equal(got, rows[i].flags);
        assert_true(m->name[0] == 0 && !m->nameless && !m->net);
        grt_module_destroy(&m);
    }
}

// ---- first values ----

// Within 1 / sqrt(inputs) either way, biases too, and near it; norms begin as nothing done.
static void first_values(void **state) {
    (void)state;
    const struct grt_network_desc network = {
        .text = "[{conv: {outputs: 6, size: 2}}, {norm: batch}, flatten, {linear: 40}, "
                "{norm: layer}, {linear: {outputs: 9, bias: false}}]"};
    struct grt_learner *l = grt_learner_create(
        test.dev,
        grt_learner_desc(.make = grt_network_make, .of = &network, .input = {3, {4, 4, 5}},
                         .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 2));
    assert_true(l && grt_learner_alloc(l));
    static const struct {
        const char *name;
        double inputs, least;  // 0 inputs: `least` everywhere
    } rows[] = {{"0.weight", 2 * 2 * 5, 0.9},
                {"0.bias", 2 * 2 * 5, 0.2},
                {"1.weight", 0, 1},
                {"1.bias", 0, 0},
                {"3.weight", 3 * 3 * 6, 0.95},
                {"3.bias", 3 * 3 * 6, 0.8},
                {"4.weight", 0, 1},
                {"4.bias", 0, 0},
                {"5.weight", 40, 0.95}};
    const struct grt_tensor *t;
    uint32_t i = 0;
    const char *name;
    for (; (t = grt_learner_tensor(l, GRT_TENSOR_PARAM, i, &name)); i++) {
        assert_true(i < sizeof rows / sizeof *rows);
        assert_string_equal(name, rows[i].name);
        float *v = learn_read(t);
        double bound = rows[i].inputs > 0 ? 1 / sqrt(rows[i].inputs) : 0, most = 0;
        for (uint64_t n = 0; n < grt_tensor_count(t); n++) {
            most = fmax(most, fabs((double)v[n]));
            assert_true(bound > 0 || (double)v[n] == rows[i].least);
        }
        assert_true(most <= bound + 1e-7 || bound == 0);
        assert_true(most >= rows[i].least * bound);
        free(v);
    }
    assert_int_equal(i, sizeof rows / sizeof *rows);
    static const float kept[] = {0, 1, 0};
    static const char *const buffers[] = {"1.running_mean", "1.running_var",
                                          "1.num_batches_tracked"};
    for (i = 0; (t = grt_learner_tensor(l, GRT_TENSOR_BUFFER, i, &name)); i++) {
        float *v = learn_read(t);
        assert_string_equal(name, buffers[i]);
        assert_int_equal(grt_tensor_count(t), i < 2 ? 6 : 1);
        for (uint64_t n = 0; n < grt_tensor_count(t); n++) {
            assert_true(v[n] == kept[i]);
        }
        free(v);
    }
    assert_int_equal(i, 3);
    grt_learner_destroy(&l);
}

// ---- memory of a perceptron ----

static void count_labels(const struct grt_learner *l, char *text, size_t size) {
    const struct grt_tensor *t;
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; (t = grt_plan_at(l->plan, "acts", i)); i++) {
        if (strncmp(t->label, "output", 6) != 0) {
            at += (size_t)snprintf(text + at, size - at, "%s%s %llux%llu", at > 0 ? ", " : "",
                                   t->label, (unsigned long long)t->shape[0],
                                   (unsigned long long)t->shape[1]);
        }
    }
    assert_true(at < size);
}

static void plans_of_perceptrons(void **state) {
    (void)state;
    static const struct {
        struct grt_mlp_desc mlp;
        bool recompute, inference;
        const char *acts;
    } rows[] = {
        {{.depth = 2, .hidden = 4, .outputs = 1, .act = GRT_ACT_TANH},
         false,
         false,
         "h.0 3x4, h.1 3x4, dh.0 3x4, dh.1 3x4"},
        // Without an output layer the last h is what is given.
        {{.depth = 2, .hidden = 4, .act = GRT_ACT_RELU},
         false,
         false,
         "h.0 3x4, dh.0 3x4, dh.1 3x4, dz 3x4"},
        {{.depth = 1, .hidden = 4, .outputs = 1, .act = GRT_ACT_GELU},
         false,
         false,
         "h.0 3x4, z.0 3x4, dh.0 3x4, dh.1 3x4"},
        {{.depth = 1, .hidden = 4, .outputs = 1, .act = GRT_ACT_SILU},
         false,
         false,
         "h.0 3x4, z.0 3x4, dh.0 3x4, dh.1 3x4, dz 3x4"},
        {{.depth = 1, .hidden = 4, .outputs = 1, .layer_norm = true},
         false,
         false,
         "h.0 3x4, z.0 3x4, stats.0 3x2, dh.0 3x4, dh.1 3x4, dz 3x4"},
        {{.depth = 2, .hidden = 4, .outputs = 1, .residual = true},
         false,
         false,
         "h.0 3x4, z.0 3x4, h.1 3x4, z.1 3x4, dh.0 3x4, dh.1 3x4, dz 3x4"},
        {{.depth = 3, .outputs = 1, .widths = {2, 5, 3}},
         false,
         false,
         "h.0 3x5, h.1 3x5, h.2 3x5, dh.0 3x5, dh.1 3x5"},
        // Segments of 3 of 7 layers: two that all share, and what each ends with.
        {{.depth = 7, .hidden = 4, .outputs = 1},
         true,
         false,
         "h.0 3x4, h.1 3x4, h.2 3x4, h.5 3x4, dh.0 3x4, dh.1 3x4"},
        {{.depth = 7, .hidden = 4, .outputs = 1}, false, true, "h.0 3x4, h.1 3x4"},
        {{.depth = 1, .hidden = 4, .outputs = 1}, true, false, "h.0 3x4, dh.0 3x4, dh.1 3x4"},
        {{.depth = 0, .outputs = 1}, false, false, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_learner *l = grt_learner_create(
            test.dev, grt_learner_desc(.make = grt_mlp_make, .of = &rows[i].mlp, .input = {1, {6}},
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 3,
                                       .recompute = rows[i].recompute,
                                       .inference = rows[i].inference, .variant = "layers"));
        assert_non_null(l);
        char text[256];
        count_labels(l, text, sizeof text);
        assert_string_equal(text, rows[i].acts);
        grt_learner_destroy(&l);
    }
}

// ---- launches ----

static void chunks_and_slices(void **state) {
    (void)state;
    static const uint64_t rows[][2] = {{1, 64},     {64, 64},    {65, 64},    {16384, 64},
                                       {16385, 65}, {16640, 65}, {16641, 66}, {1000000, 3907}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(grt_block_chunk(rows[i][0]), rows[i][1]);
    }
    struct grt_caps *caps = &test.dev->info.caps;
    const struct grt_caps was = *caps;
    const struct {
        uint32_t software, subgroup, slices;
    } ways[] = {{1, 0, 1}, {1, 1, 1}, {1, 8, 8}, {0, 0, 8}, {0, 32, 8}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        caps->software = ways[i].software;
        caps->subgroup = ways[i].subgroup;
        struct grt_slices s = grt_block_slices(test.dev);
        assert_int_equal(s.slices, ways[i].slices);
        assert_true(s.slices == 1 || s.wg == 256);
    }
    *caps = was;
}

// Lanes across the vectors of eight numbers of a row, slices of rows in what is left of 256, and
// workgroups for eight of each unit, of 4 to 64 rows a lane.
static void vectors_of_eight(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    const struct grt_caps was = *caps;
    const struct {
        uint32_t software, units, max_wg, most_groups;
        uint64_t rows, cols, chunk;
        struct grt_eights want;
    } ways[] = {
        // 3 vectors: 85 slices; of 8 * 2 + 1 workgroups each less than a row: 4.
        {0, 2, 1024, 65535, 1000, 24, 0, {256, 3, 340, {1, 3, 1}}},
        // 256 vectors: one slice; 100000 rows of 17 workgroups are more than 64 each.
        {0, 2, 1024, 65535, 100000, 2048, 0, {256, 256, 64, {1, 1563, 1}}},
        {0, 2, 1024, 65535, 170, 2048, 0, {256, 256, 10, {1, 17, 1}}},
        // 300 vectors are two tiles.
        {0, 2, 1024, 65535, 90, 2400, 0, {256, 256, 10, {2, 9, 1}}},
        {0, 2, 128, 65535, 170, 2048, 0, {128, 128, 18, {2, 10, 1}}},
        // A grid that ends.
        {0, 2, 1024, 100, 100000, 2048, 0, {256, 256, 1000, {1, 100, 1}}},
        // Without a number of units 64 are taken.
        {0, 0, 1024, 65535, 5130, 2048, 0, {256, 256, 10, {1, 513, 1}}},
        // As it was asked for.
        {0, 2, 1024, 65535, 1000, 24, 64, {256, 3, 64, {1, 16, 1}}},
        // A CPU's lanes are columns alone, 64 at most.
        {1, 2, 1024, 65535, 170, 24, 0, {3, 3, 10, {1, 17, 1}}},
        {1, 2, 1024, 65535, 90, 1024, 0, {64, 64, 10, {2, 9, 1}}},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        caps->software = ways[i].software;
        caps->compute_units = ways[i].units;
        caps->max_wg = ways[i].max_wg;
        caps->max_groups[1] = ways[i].most_groups;
        struct grt_eights got = grt_eights_of(test.dev, ways[i].rows, ways[i].cols, ways[i].chunk);
        assert_memory_equal(&got, &ways[i].want, sizeof got);
    }
    *caps = was;
}

// Vectors of eight serve 16-bit rows of whole vectors at whole places, of all operands.
static void operands_of_eights(void **state) {
    (void)state;
    const struct grt_tensor good = {.dtype = GRT_F16, .rank = 2, .shape = {4, 16}};
    const struct grt_tensor *list[3] = {&good, NULL, &good};
    char name[GRT_NN_KERNEL];
    assert_true(grt_eights_serve(test.dev, "block8", list, 3));
    assert_string_equal(grt_eights_kernel(test.dev, name, "block8", GRT_F16), "block8_16");
    for (int i = 0; i < 6; i++) {
        struct grt_tensor other = good;
        other.dtype = i == 0 ? GRT_F32 : i == 1 ? GRT_BF16 : i == 5 ? GRT_U8 : GRT_F16;
        other.shape[1] = i == 2 ? 12 : 16;
        other.range.offset = i == 3 ? 8 : i == 4 ? 32 : 0;
        list[2] = &other;
        assert_int_equal(grt_eights_serve(test.dev, "block8", list, 3), i == 1 || i == 4);
        assert_true(grt_eights_serve(test.dev, "block8", list, 2));
    }
}

// ---- a file ----

// A module that has no form in a file is named with its place.
static void no_form_in_a_file(void **state) {
    (void)state;
    struct grt_module *m = counted();
    snprintf(m->where, sizeof m->where, "net.yaml:7:5: ");
    struct grt_onnx *onnx = grt_onnx_create();
    struct grt_archive *archive = grt_archive_create();
    const uint64_t shape[] = {3};
    grt_module_onnx(m, onnx, grt_onnx_input(onnx, "x", 1, shape));
    TEST_REFUSED(grt_onnx_save(onnx, archive, "/nowhere"), GRT_UNSUPPORTED,
                 "net.yaml:7:5: counted: this layer has no form in ONNX");
    grt_onnx_destroy(&onnx);
    grt_archive_destroy(&archive);
    grt_module_destroy(&m);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(what_none_is_made_of), REF_CASE(parts_are_let_go),     REF_CASE(flags),
    REF_CASE(first_values),         REF_CASE(plans_of_perceptrons), REF_CASE(chunks_and_slices),
    REF_CASE(vectors_of_eight),     REF_CASE(operands_of_eights),   REF_CASE(no_form_in_a_file),
};
TEST_SUITE(layerfacts, false, cases);
