// SPDX-License-Identifier: Apache-2.0
// Modules, their parameters and the net around them, by themselves: shapes, places, first values,
// what is refused and what becomes of the parts then, and launches by hand.
#include "kits/learn_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "gpurt/archive.h"
#include "gpurt/profile.h"
#include "nn/eights.h"
#include "nn/layer_ops.h"

// ---- shapes ----

static void shapes(void **state) {
    (void)state;
    static const struct {
        struct grt_shape shape;
        uint64_t count;
        const char *text;
    } rows[] = {{{0}, 0, ""},
                {{1, {7}}, 7, "[7]"},
                {{3, {2, 3, 5}}, 30, "[2][3][5]"},
                {{2, {4, 0}}, 0, "[4][0]"},
                {{2, {1ull << 33, 3}}, 3ull << 33, "[8589934592][3]"}};
    char text[GRT_SHAPE_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(grt_shape_count(&rows[i].shape), rows[i].count);
        assert_string_equal(grt_shape_text(&rows[i].shape, text), rows[i].text);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            assert_int_equal(grt_shape_equal(&rows[i].shape, &rows[k].shape), i == k);
        }
    }
    assert_int_equal(grt_shape_count(NULL), 0);
    // Numbers behind the rank are not looked at, those before it are.
    const struct grt_shape a = {1, {3, 9}}, b = {1, {3, 8}}, c = {1, {4, 9}}, d = {2, {3, 9}};
    assert_true(grt_shape_equal(&a, &b) && !grt_shape_equal(&a, &c) && !grt_shape_equal(&a, &d));
    assert_string_equal(grt_pool_text(GRT_POOL_MEAN), "mean");
    assert_string_equal(grt_pool_text(GRT_POOL_MAX), "max");
    assert_string_equal(grt_pool_text(GRT_POOL_COUNT), "unknown pooling");
    struct grt_module part = {.name = "conv1"}, bare = {.name = ""}, none = {.nameless = true};
    static const struct {
        const char *prefix, *own, *named, *unnamed, *nameless;
    } prefixes[] = {{"", "0", "conv1.", "0.", ""},
                    {"head.", "3", "head.conv1.", "head.3.", "head."}};
    for (int i = 0; i < 2; i++) {
        char name[GRT_PARAM_NAME];
        grt_module_prefix(&part, prefixes[i].prefix, prefixes[i].own, name);
        assert_string_equal(name, prefixes[i].named);
        grt_module_prefix(&bare, prefixes[i].prefix, prefixes[i].own, name);
        assert_string_equal(name, prefixes[i].unnamed);
        grt_module_prefix(NULL, prefixes[i].prefix, prefixes[i].own, name);
        assert_string_equal(name, prefixes[i].unnamed);
        grt_module_prefix(&none, prefixes[i].prefix, prefixes[i].own, name);
        assert_string_equal(name, prefixes[i].nameless);
    }
}

// Views of tensors.
static void views(void **state) {
    (void)state;
    struct test_tensor t = test_tensor_shape(test.dev, GRT_F16, 3, (const uint64_t[]){6, 4, 5});
    struct grt_tensor rows = grt_nn_rows(&t.tensor, 2), flat = grt_nn_flat(&t.tensor);
    struct grt_tensor matrix = grt_nn_matrix(&t.tensor, 3, 40);
    assert_true(rows.rank == 3 && rows.shape[0] == 2 && rows.shape[1] == 4 && rows.shape[2] == 5);
    assert_true(rows.range.size == 2 * 20 * 2 && rows.range.offset == t.tensor.range.offset);
    assert_true(flat.rank == 2 && flat.shape[0] == 24 && flat.shape[1] == 5 && flat.shape[2] == 0);
    assert_true(matrix.rank == 2 && matrix.shape[0] == 3 && matrix.shape[1] == 40 &&
                matrix.shape[2] == 0 && matrix.dtype == GRT_F16);
    assert_int_equal(grt_nn_kind(&t.tensor), 0);
    char name[GRT_NN_KERNEL];
    assert_string_equal(grt_nn_kernel(name, "block", &t.tensor), "block_16");
    t.tensor.dtype = GRT_BF16;
    assert_int_equal(grt_nn_kind(&t.tensor), 1);
    assert_string_equal(grt_nn_kernel(name, "pool", &t.tensor), "pool_16");
    t.tensor.dtype = GRT_F32;
    assert_int_equal(grt_nn_kind(&t.tensor), 0);
    assert_string_equal(grt_nn_kernel(name, "pool", &t.tensor), "pool_f32");
    // As far as a binding reaches, and one number further.
    struct grt_caps *caps = &test.dev->info.caps;
    const uint64_t reach = caps->max_binding;
    for (int far = 0; far < 2; far++) {
        caps->max_binding = far ? 119 * 4 : 120 * 4;
        struct grt_graph *graph = grt_graph_create(test.dev, "reach");
        assert_int_equal(grt_nn_reachable(graph, &t.tensor), !far);
        caps->max_binding = reach;
        if (far) {
            char want[128];
            snprintf(want, sizeof want,
                     "'%s' has 120 numbers, ref:0 reaches 119 at once; use "
                     "smaller micro-batches",
                     t.tensor.label);
            TEST_REFUSED(grt_graph_bake(graph), GRT_UNSUPPORTED, want);
        }
        grt_graph_destroy(&graph);
    }
    t.tensor.dtype = GRT_F16;
    test_tensor_end(&t);
}

// ---- parameters ----

// Each begins at a multiple of what serves both widths, in the order in which they came; what is
// drawn and what is not, and zeros between them.
static void parameters(void **state) {
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct grt_params p;
        struct grt_plan *plan = grt_plan_create(test.dev);
        grt_params_init(&p, test.dev, half ? GRT_BF16 : GRT_F32);
        const uint64_t unit = grt_dev_align(test.dev) / 2;
        assert_int_equal(p.unit, unit);
        const struct {
            const char *prefix, *name;
            uint64_t shape[GRT_MAX_RANK];
            enum grt_init init;
            float bound;
            uint64_t count;
            uint32_t rank;
        } rows[] = {{"a.", "uniform", {unit + 1}, GRT_INIT_UNIFORM, 0.25f, unit + 1, 1},
                    {"a.", "ones", {unit}, GRT_INIT_ONES, 9, unit, 1},
                    {"", "zeros", {3, 2}, GRT_INIT_ZEROS, 9, 6, 2},
                    {"b.c.", "value", {2, 2, 2}, GRT_INIT_VALUE, -1.5f, 8, 3},
                    {"", "normal", {1000}, GRT_INIT_NORMAL, 2, 1000, 1}};
        uint64_t at = 0, numbers = 0;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const struct grt_param *q = grt_params_add(&p, rows[i].prefix, rows[i].name,
                                                       rows[i].shape, rows[i].init, rows[i].bound);
            char name[GRT_PARAM_NAME];
            snprintf(name, sizeof name, "%s%s", rows[i].prefix, rows[i].name);
            assert_non_null(q);
            assert_string_equal(q->name, name);
            assert_true(q->first == at && q->count == rows[i].count && q->rank == rows[i].rank);
            at += (q->count + unit - 1) / unit * unit;
            numbers += q->count;
            assert_true(p.elements == at && p.numbers == numbers && p.count == i + 1);
        }
        assert_non_null(
            grt_params_add_buffer(&p, "n.", "mean", (const uint64_t[GRT_MAX_RANK]){5}, 0.5f));
        assert_non_null(
            grt_params_add_buffer(&p, "n.", "count", (const uint64_t[GRT_MAX_RANK]){1}, 0));
        // Buffers are beside them.
        assert_true(p.numbers == numbers && p.elements == at && p.count == 5);
        assert_true(p.buffer_count == 2 && p.buffer_elements == 2 * unit);
        assert_true(p.buffers[1]->first == unit && !p.failed);
        grt_params_declare(&p, plan, true);
        assert_int_equal(p.copy != NULL, half);
        assert_true(p.grad && p.buffer && grt_plan_alloc(plan));
        grt_params_place(&p);
        struct grt_graph *graph = grt_graph_create(test.dev, "other numbers");
        grt_graph_fill(graph, p.master->range, 0x40400000);
        grt_graph_fill(graph, p.grad->range, 0x40400000);
        grt_graph_fill(graph, p.buffer->range, 0x40400000);
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        assert_true(grt_params_draw(&p, 5));
        float *all = learn_read(p.master), *grad = learn_read(p.grad);
        double squares = 0, sum = 0, most = 0;
        for (uint32_t i = 0; i < 5; i++) {
            const struct grt_param *q = p.list[i];
            uint64_t end = i + 1 < 5 ? p.list[i + 1]->first : p.elements;
            for (uint64_t n = q->first; n < end; n++) {
                double v = (double)all[n];
                bool inside = n < q->first + q->count;
                assert_true(grad[n] == 0);
                assert_true(inside || v == 0);
                if (inside && i == 0) {
                    assert_true(v >= -0.25 && v < 0.25);
                    most = fmax(most, fabs(v));
                } else if (inside && i == 4) {
                    sum += v;
                    squares += v * v;
                } else if (inside) {
                    assert_true(v == (i == 1 ? 1 : i == 2 ? 0 : -1.5));
                }
            }
        }
        assert_true(most > 0.2 && fabs(sum / 1000) < 0.3 && fabs(squares / 1000 - 4) < 0.9);
        struct grt_buf *buf = p.buffer->range.buf;
        for (uint32_t i = 0; i < 2; i++) {
            float *kept = learn_read(&p.buffers[i]->master);
            assert_ptr_equal(p.buffers[i]->master.range.buf, buf);
            for (uint64_t n = 0; n < p.buffers[i]->count; n++) {
                assert_true(kept[n] == (i == 0 ? 0.5f : 0));
            }
            free(kept);
        }
        // The copy follows where that is asked for; without one there is nothing to do.
        assert_true(
            grt_buf_write(p.master->range.buf, p.master->range.offset, (const float[]){8, -8}, 8));
        assert_true(grt_params_sync(&p));
        if (half) {
            uint16_t *copy = test_alloc(p.elements * 2);
            assert_true(
                grt_buf_read(p.copy->range.buf, p.copy->range.offset, copy, p.elements * 2));
            assert_true(copy[0] == 0x4100 && copy[1] == 0xc100);
            for (uint64_t n = 2; n < p.elements; n++) {
                assert_int_equal(copy[n], oracle_narrow(oracle_bf16, (double)all[n]));
            }
            free(copy);
        }
        free(all);
        free(grad);
        grt_params_finish(&p);
        grt_plan_destroy(&plan);
        assert_true(p.count == 0 && !p.list && !p.buffers && p.elements == 0);
    }
}

// Number n of parameter i is random word n of stream i at step 0, whatever the parameters before it
// are: a seed means the same network in every version.
static void drawn_by_hand(void **state) {
    (void)state;
    const uint64_t seed = 7 + (11ull << 32);
    const uint32_t key[2] = {7, 11}, step[2] = {0, 0};
    struct grt_params p;
    struct grt_plan *plan = grt_plan_create(test.dev);
    grt_params_init(&p, test.dev, GRT_F32);
    for (uint32_t i = 0; i < 4; i++) {
        grt_params_add(&p, "", "p", (const uint64_t[GRT_MAX_RANK]){9 + i},
                       i == 1   ? GRT_INIT_ONES
                       : i == 3 ? GRT_INIT_NORMAL
                                : GRT_INIT_UNIFORM,
                       0.375f);
    }
    grt_params_declare(&p, plan, false);
    assert_true(grt_plan_alloc(plan));
    grt_params_place(&p);
    assert_true(grt_params_draw(&p, seed));
    for (uint32_t i = 0; i < 4; i++) {
        float *v = learn_read(&p.list[i]->master);
        for (uint32_t n = 0; n < 9 + i; n++) {
            double uniform = 2 * oracle_uniform(oracle_bits(key, step, i, n)) - 1;
            double normal = oracle_normal(oracle_bits(key, step, i, n / 2 * 2),
                                          oracle_bits(key, step, i, n / 2 * 2 + 1), n % 2 == 1)
                                .value;
            double want = i == 1 ? 1 : 0.375 * (i == 3 ? normal : uniform);
            assert_true(fabs((double)v[n] - want) <= (i == 3 ? 1e-5 : 1e-7));
        }
        free(v);
    }
    grt_params_finish(&p);
    grt_plan_destroy(&plan);
}

// A name that fits, and one that is a letter too long; what is not wanted is not declared.
static void names_and_groups(void **state) {
    (void)state;
    const uint64_t shape[GRT_MAX_RANK] = {1};
    char long_name[GRT_PARAM_NAME];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    for (int more = 0; more < 2; more++) {
        struct grt_params p;
        grt_params_init(&p, test.dev, GRT_F32);
        grt_params_add(&p, more ? "p" : "", long_name, shape, GRT_INIT_ZEROS, 0);
        assert_int_equal(p.failed, more);
        struct grt_plan *plan = grt_plan_create(test.dev);
        grt_params_declare(&p, plan, false);
        assert_true(p.master && !p.copy && !p.grad && !p.buffer);
        struct grt_tensor whole = *p.master;
        struct grt_tensor view = grt_params_view(p.list[0], &whole, 3);
        assert_int_equal(strlen(view.label), 47);
        assert_int_equal(view.range.offset, whole.range.offset + 12);
        assert_int_equal(view.range.size, 4);
        grt_params_finish(&p);
        grt_plan_destroy(&plan);
    }
}

// ---- the net ----

struct net_kit {
    struct grt_params params;
    struct grt_plan *plan;
    struct grt_net net;
};

static void net_begin(struct net_kit *k, enum grt_dtype dtype) {
    grt_params_init(&k->params, test.dev, dtype);
    k->plan = grt_plan_create(test.dev);
    k->net = (struct grt_net){
        .dev = test.dev, .plan = k->plan, .params = &k->params, .dtype = dtype, .rows = 3};
}

static void net_end(struct net_kit *k) {
    grt_net_finish(&k->net);
    grt_params_finish(&k->params);
    grt_plan_destroy(&k->plan);
}

// Rows as wide as whole multiples of what the profile says, of 4 at least, and a power of two.
static void pitches(void **state) {
    (void)state;
    const struct {
        uint32_t bytes;
        enum grt_dtype dtype;
        uint64_t inputs, want;
    } rows[] = {{16, GRT_F32, 1, 4},   {16, GRT_F32, 4, 4},     {16, GRT_F32, 5, 8},
                {16, GRT_F16, 5, 8},   {16, GRT_F16, 9, 16},    {1, GRT_F32, 5, 5},
                {1, GRT_BF16, 5, 6},   {4, GRT_F16, 7, 8},      {48, GRT_F32, 9, 16},
                {48, GRT_F16, 17, 32}, {256, GRT_F32, 65, 128}, {256, GRT_F16, 128, 128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct net_kit k;
        net_begin(&k, rows[i].dtype);
        assert_true(grt_dev_profile_set(
            test.dev, GRT_KEY_ROW_BYTES,
            &(struct grt_profile_value){.count = 1, .numbers = {rows[i].bytes}}));
        assert_int_equal(grt_net_pitch(&k.net, rows[i].inputs), rows[i].want);
        net_end(&k);
    }
}

static bool give_each(void *context, void *all, uint64_t each) {
    uint32_t *calls = context;
    memset(all, 7, each);                     // of the first rank,
    memset((char *)all + 2 * each, 9, each);  // and the third; the second is this one
    (*calls)++;
    return true;
}

// Room for the largest of what is exchanged; exchanges alone, of three, and what nobody declared.
static void exchanges(void **state) {
    (void)state;
    struct net_kit k;
    net_begin(&k, GRT_F32);
    grt_net_scratch(&k.net, 100);
    grt_net_scratch(&k.net, 40);
    assert_int_equal(k.net.scratch_bytes, 100);
    grt_net_exchanges(&k.net, 32);
    grt_net_exchanges(&k.net, 16);
    assert_int_equal(k.net.exchanged, 32);
    struct test_tensor own = test_tensor(test.dev, GRT_F32, 8, 0);
    struct test_tensor all = test_tensor(test.dev, GRT_F32, 32, 0);
    uint32_t words[32], calls = 0;
    test_tensor_prefill(&own, 0x01020304);
    struct grt_range to = all.tensor.range;
    for (uint32_t ranks = 0; ranks < 2; ranks++) {
        k.net.together.ranks = ranks;
        assert_true(grt_net_meet(&k.net) && !k.net.up);
        test_tensor_prefill(&all, 0);
        to.size = 32;
        struct grt_graph *graph = grt_graph_create(test.dev, "alone");
        grt_net_gather(&k.net, graph, own.tensor.range, to);
        grt_net_gather(&k.net, graph, to, to);  // it is there already
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        test_tensor_read(&all, words);
        assert_true(words[0] == 0x01020304 && words[7] == 0x01020304 && words[8] == 0);
    }
    k.net.together = (struct grt_together){1, 3, give_each, &calls};
    assert_true(grt_net_meet(&k.net) && k.net.up);
    // 32 bytes of each, then 16 of each, whose places are closer.
    for (uint32_t each = 32; each >= 16; each /= 2) {
        struct grt_range from = own.tensor.range;
        from.size = each;
        to.size = 3 * (uint64_t)each;
        test_tensor_prefill(&all, 0);
        struct grt_graph *graph = grt_graph_create(test.dev, "three");
        grt_net_gather(&k.net, graph, from, to);
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        test_tensor_read(&all, words);
        uint32_t n = each / 4;
        for (uint32_t i = 0; i < 32; i++) {
            assert_int_equal(words[i], i < n       ? 0x07070707
                                       : i < 2 * n ? 0x01020304
                                       : i < 3 * n ? 0x09090909
                                                   : 0);
        }
    }
    assert_int_equal(calls, 2);
    const struct { uint64_t each, all; } wrong[] = {{36, 108}, {32, 64}, {32, 128}};
    for (int i = 0; i < 3; i++) {
        struct grt_range from = all.tensor.range;
        from.size = wrong[i].each;
        to = all.tensor.range;
        to.size = wrong[i].all;
        struct grt_graph *graph = grt_graph_create(test.dev, "undeclared");
        grt_net_gather(&k.net, graph, from, to);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "an exchange that nobody declared");
        grt_graph_destroy(&graph);
    }
    test_tensor_end(&own);
    test_tensor_end(&all);
    net_end(&k);
    assert_true(!k.net.up && !k.net.down && !k.net.all);
}

// ---- what is refused when it is declared ----

static void shapes_that_do_not_fit(void **state) {
    (void)state;
    const struct grt_shape flat = {1, {5}}, points = {2, {4, 5}}, image = {3, {6, 4, 3}};
    const struct grt_shape huge = {3, {1u << 15, 1u << 15, 2}}, wide = {1, {1ull << 32}};
    const struct grt_mlp_desc mlp = {.inputs = 4, .depth = 1, .hidden = 3, .outputs = 2};
    const struct grt_points_desc set = {
        .points = 3, .each = {.depth = 1, .hidden = 3}, .head = {.outputs = 2}};
    const struct {
        struct grt_module *module;
        const struct grt_shape *in;
        const char *why;
    } rows[] = {
        {grt_linear_create(grt_linear_desc(.inputs = 4, .outputs = 2)), &flat,
         "linear: takes [4], not [5]"},
        {grt_linear_create(grt_linear_desc(.outputs = 2)), &wide,
         "linear: [4294967296] is too wide"},
        {grt_mlp_create(&mlp), &points, "mlp: takes [4], not [4][5]"},
        {grt_conv_create(grt_conv_desc(.inputs = 2, .outputs = 2, .size = 3)), &image,
         "conv: takes 2 channels, not [6][4][3]"},
        {grt_conv_create(grt_conv_desc(.outputs = 2, .size = 3)), &points,
         "conv: takes images of [height][width][channels], not [4][5]"},
        {grt_conv_create(grt_conv_desc(.outputs = 2, .size = 5)), &image,
         "conv: 5x5 with padding 0 does not fit into [6][4][3]"},
        {grt_conv_create(grt_conv_desc(.outputs = 2, .size = 7, .padding = 1)), &image,
         "conv: 7x7 with padding 1 does not fit into [6][4][3]"},
        {grt_conv_create(grt_conv_desc(.outputs = 2, .size = 1)), &huge,
         "conv: [32768][32768][2] is too large"},
        {grt_window_pool_create(grt_window_pool_desc(.size = 5)), &image,
         "avg_pool: 5x5 with padding 0 does not fit into [6][4][3]"},
        {grt_pool_create(GRT_POOL_MAX), &flat,
         "pool: takes samples of [points][features], not [5]"},
        {grt_points_create(&set), &points,
         "points: takes samples of [points][features], not [4][5]"},
        {grt_points_create(&set), &flat, "points: takes samples of [points][features], not [5]"},
        {grt_geglu_create(), &flat, "geglu: takes an even number of features, not [5]"},
        {grt_columns_create(3, 3), &flat, "columns: 3 from 3 on are not in [5]"},
        {grt_resnet_create(grt_resnet_desc(.depth = 18)), &points, "resnet: takes images of"},
        {grt_wideresnet_create(grt_wideresnet_desc(.depth = 10)), &flat,
         "wideresnet: takes images of [height][width][channels], not [5]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_module *module = rows[i].module;
        struct net_kit k;
        net_begin(&k, GRT_F32);
        assert_non_null(module);
        TEST_REFUSED(grt_module_declare(module, &k.net, "", rows[i].in).rank > 0, GRT_INVALID,
                     rows[i].why);
        grt_module_destroy(&module);
        net_end(&k);
    }
    // As large as fits: a window that is all of an image and its borders, columns to the last one.
    const struct {
        struct grt_module *module;
        const struct grt_shape *in;
        const char *out;
    } good[] = {
        {grt_conv_create(grt_conv_desc(.outputs = 2, .size = 4)), &image, "[3][1][2]"},
        {grt_conv_create(grt_conv_desc(.outputs = 2, .size = 6, .padding = 1)), &image,
         "[3][1][2]"},
        {grt_conv_create(grt_conv_desc(.inputs = 3, .outputs = 2, .size = 2, .stride = 3)), &image,
         "[2][1][2]"},
        {grt_columns_create(2, 3), &flat, "[3]"},
        {grt_mlp_create(grt_mlp_desc(.inputs = 5, .depth = 1, .hidden = 3)), &points, "[4][3]"},
        {grt_window_pool_create(grt_window_pool_desc(.size = 4)), &image, "[1][1][3]"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct grt_module *module = good[i].module;
        struct net_kit k;
        char text[GRT_SHAPE_TEXT];
        net_begin(&k, GRT_F32);
        struct grt_shape out = grt_module_declare(module, &k.net, "p.", good[i].in);
        assert_string_equal(grt_shape_text(&out, text), good[i].out);
        if (k.params.count > 0) {
            assert_int_equal(strncmp(k.params.list[0]->name, "p.", 2), 0);
        }
        TEST_REFUSED(grt_module_declare(module, &k.net, "", good[i].in).rank > 0, GRT_INVALID,
                     "a module can be declared once");
        grt_module_destroy(&module);
        net_end(&k);
    }
}

static const struct CMUnitTest cases[] = {
    REF_CASE(shapes),           REF_CASE(views),
    REF_CASE(parameters),       REF_CASE(drawn_by_hand),
    REF_CASE(names_and_groups), REF_CASE(pitches),
    REF_CASE(exchanges),        REF_CASE(shapes_that_do_not_fit),
};
TEST_SUITE(modulefacts, false, cases);
