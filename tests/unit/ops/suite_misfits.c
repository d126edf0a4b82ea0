// SPDX-License-Identifier: Apache-2.0
// Products and convolutions whose operands do not fit together: which sentence each gets, and that
// what lies just within is taken; where memory and grids decide about products. On the C reading.
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "device/graph_parts.h"
#include "ops/conv/case.h"
#include "ops/gemm/case.h"
#include "ops/op_support.h"

static struct grt_dev *dev;
static struct grt_buf *bufs[6];

static int begin(void **state) {
    dev = grt_dev_create(grt_dev_desc(.backend = "ref"));
    if (!dev) {
        return -1;
    }
    for (int i = 0; i < 6; i++) {
        bufs[i] = grt_buf_create(dev, grt_buf_desc(.size = 1 << 16, .label = "here"));
    }
    return test_case_begin(state);
}
static int end(void **state) {
    for (int i = 0; i < 6; i++) {
        grt_buf_destroy(&bufs[i]);
    }
    grt_dev_destroy(&dev);
    return test_case_end(state);
}
#define MISFIT_CASE(function)                                                                      \
    { #function, function, begin, end, NULL }

static struct grt_tensor of(const char *label, int buf, enum grt_dtype dtype, uint64_t x,
                            uint64_t y, uint64_t z, uint64_t u) {
    struct grt_tensor t = {.label = "", .dtype = dtype, .shape = {x, y, z, u}};
    snprintf(t.label, sizeof t.label, "%s", label);
    t.rank = u ? 4 : z ? 3 : y ? 2 : 1;
    t.range = (struct grt_range){bufs[buf], 0, grt_tensor_bytes(&t)};
    return t;
}

// ---- products ----

static struct grt_tensor a, b, c, bias, add, saved;
static struct grt_gemm_desc good(void) {
    a = of("a", 0, GRT_F32, 4, 8, 0, 0);
    b = of("b", 1, GRT_F32, 8, 6, 0, 0);
    c = of("c", 2, GRT_F32, 4, 6, 0, 0);
    bias = of("bias", 3, GRT_F32, 6, 0, 0, 0);
    add = of("add", 4, GRT_F32, 4, 6, 0, 0);
    saved = of("saved", 5, GRT_F32, 4, 6, 0, 0);
    return (struct grt_gemm_desc){.a = &a, .b = &b, .c = &c};
}

static void expect(const struct grt_gemm_desc *d, const char *why) {
    struct grt_graph *graph = grt_graph_create(dev, "misfits");
    grt_op_gemm(graph, d);
    if (why) {
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, why);
    } else if (!grt_graph_bake(graph)) {
        fail_msg("%s", grt_last_error());
    }
    grt_graph_destroy(&graph);
    assert_true((grt_gemm_variant(dev, d, 0) == NULL) == (why != NULL));
}

#define OF "gemm of 'a' and 'b' into 'c': "
#define AXES OF "a, b and c have two axes, or three for a batch"
#define SHAPES OF "the shapes do not fit: [m][k] times [k][n] is [m][n]"

static void products(void **state) {
    (void)state;
    struct grt_gemm_desc d = good();
    expect(&d, NULL);
    // Axes, types, shapes, batches.
    struct grt_tensor *const all[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        for (uint32_t rank = 1; rank <= 4; rank += 3) {
            d = good();
            all[i]->rank = rank;
            all[i]->shape[2] = all[i]->shape[3] = 1;
            expect(&d, AXES);
        }
        d = good();
        all[i]->dtype = GRT_I32;
        expect(&d, i < 2 ? OF "a and b must both be f32, f16 or bf16"
                         : OF "c must have the type of a and b, or be f32");
        d = good();
        all[i]->shape[0]++;
        all[i]->range.size = 0;
        expect(&d, SHAPES);
        d = good();
        all[i]->shape[1]++;
        all[i]->range.size = 0;
        expect(&d, SHAPES);
    }
    d = good();
    a.dtype = GRT_F16;
    expect(&d, OF "a and b must both be f32, f16 or bf16");
    b.dtype = GRT_F16;
    expect(&d, NULL);  // into f32
    c.dtype = GRT_BF16;
    expect(&d, OF "c must have the type of a and b, or be f32");
    c.dtype = GRT_F16;
    expect(&d, NULL);
    d = good();
    a.dtype = b.dtype = GRT_U8;
    expect(&d, OF "a and b must both be f32, f16 or bf16");
    // Transposed, extents change places.
    d = good();
    d.a_transposed = true;
    expect(&d, SHAPES);
    a.shape[0] = 8;
    a.shape[1] = 4;
    expect(&d, NULL);
    d.b_transposed = true;
    expect(&d, SHAPES);
    b.shape[0] = 6;
    b.shape[1] = 8;
    expect(&d, NULL);
    // Batches: of c, and of each operand that has one.
    d = good();
    c = of("c", 2, GRT_F32, 3, 4, 6, 0);
    expect(&d, NULL);
    for (int i = 0; i < 2; i++) {
        for (uint64_t batch = 2; batch <= 3; batch++) {
            d = good();
            c = of("c", 2, GRT_F32, 3, 4, 6, 0);
            *all[i] = i ? of("b", 1, GRT_F32, batch, 8, 6, 0) : of("a", 0, GRT_F32, batch, 4, 8, 0);
            expect(&d, batch == 3 ? NULL : OF "the batches differ");
        }
    }
    d = good();
    a = of("a", 0, GRT_F32, 3, 4, 8, 0);
    expect(&d, OF "the batches differ");
}

static void products_with_more(void **state) {
    (void)state;
    struct grt_gemm_desc d = good();
    d.bias = &bias;
    expect(&d, NULL);
    bias.shape[0] = 5;
    expect(&d, OF "bias must be n numbers of f32");
    bias = of("bias", 3, GRT_F16, 6, 0, 0, 0);
    expect(&d, OF "bias must be n numbers of f32");
    for (int i = 0; i < 2; i++) {
        struct grt_tensor *t = i ? &saved : &add;
        for (int k = 0; k < 5; k++) {
            d = good();
            d.add = i ? NULL : &add;
            d.saved = i ? &saved : NULL;
            d.grad_act = i ? GRT_ACT_TANH : GRT_ACT_NONE;
            if (k == 1) {
                t->shape[0] = 3;
            } else if (k == 2) {
                t->shape[1] = 5;
            } else if (k == 3) {
                t->dtype = GRT_F16;
            } else if (k == 4) {
                *t = of("x", 4, GRT_F32, 1, 4, 6, 0);
            }
            expect(&d, k ? OF "add and saved must have the type and shape of c" : NULL);
        }
    }
    d = good();
    d.grad_act = GRT_ACT_RELU;
    expect(&d, OF "grad_act and saved go together");
    d = good();
    d.saved = &saved;
    expect(&d, OF "grad_act and saved go together");
    d = good();
    d.act = GRT_ACT_TANH;
    expect(&d, NULL);
    d.act = (enum grt_act)(GRT_ACT_TANH + 1);
    expect(&d, OF "no such activation");
    d = good();
    d.saved = &saved;
    d.grad_act = (enum grt_act)(GRT_ACT_TANH + 1);
    expect(&d, OF "no such activation");
    // Without a product there is c alone.
    d = good();
    d.a = d.b = NULL;
    d.bias = &bias;
    expect(&d, NULL);
    c.dtype = GRT_U32;
    d.bias = NULL;
    expect(&d, "gemm of 'nothing' and 'nothing' into 'c': c must be a matrix, or a batch of them");
    d = good();
    d.b = NULL;
    expect(&d, "gemm: no tensor b");
}

static void layouts(void **state) {
    (void)state;
    struct grt_gemm_desc d = good();
    d.lda = 8;
    expect(&d, NULL);
    d.lda = 7;
    expect(&d, OF "rows of a have 8 elements and begin 7 apart");
    d.lda = 9;  // three rows of 9 and one of 8
    expect(&d, OF "a reaches 140 bytes, its range has 128");
    a.range.size = 140;
    expect(&d, NULL);
    a.range.size = 0;  // all of the buffer
    expect(&d, NULL);
    d = good();
    d.ldc = 7;
    c.range.size = 108;
    expect(&d, NULL);
    d.add = &add;  // lies as c does
    expect(&d, OF "add reaches 108 bytes, its range has 96");
    d = good();
    d.ldc = 5;
    expect(&d, OF "rows of c have 6 elements and begin 5 apart");
    // Matrices of c lie apart, or one in the gaps of another.
    for (uint64_t step = 23; step <= 24; step++) {
        d = good();
        c = of("c", 2, GRT_F32, 2, 4, 6, 0);
        d.c_step = step;
        expect(&d, step == 24 ? NULL : OF "matrices of c that begin 23 apart overlap");
    }
    for (uint64_t step = 5; step <= 7; step++) {
        d = good();
        c = of("c", 2, GRT_F32, 2, 4, 6, 0);
        c.range.size = 0;
        d.ldc = 12;
        d.c_step = step;
        char why[96];
        snprintf(why, sizeof why, OF "matrices of c that begin %d apart overlap", (int)step);
        expect(&d, step == 6 ? NULL : why);
    }
    // Beyond what a binding reaches.
    d = good();
    b = of("b", 1, GRT_F32, 8, 16, 0, 0);
    c = of("c", 2, GRT_F32, 4, 16, 0, 0);
    dev->info.caps.max_binding = 512;
    expect(&d, NULL);
    dev->info.caps.max_binding = 511;
    struct grt_graph *graph = grt_graph_create(dev, "misfits");
    grt_op_gemm(graph, &d);
    TEST_REFUSED(grt_graph_bake(graph), GRT_UNSUPPORTED,
                 "gemm: b 'b' has 512 bytes, ref:0 reaches 511 at once");
    grt_graph_destroy(&graph);
}

// What a case is filled with.
static void cases_of_products(void **state) {
    (void)state;
    struct grt_gemm_desc d = good();
    struct gemm_case g;
    a = of("a", 0, GRT_F16, 3, 8, 4, 0);
    b = of("b", 1, GRT_F16, 6, 8, 0, 0);
    c = of("c", 2, GRT_F32, 3, 4, 6, 0);
    d.a_transposed = d.b_transposed = true;
    d.lda = 5;
    d.a_step = 41;
    d.ldc = 7;
    d.c_step = 50;
    d.alpha = 0.5f;
    d.beta = 2.0f;
    d.scratch = (struct grt_range){bufs[4], 256, 0};
    gemm_fill_case(&g, dev, &d);
    assert_true(g.dev == dev && g.desc == &d);
    assert_true(g.m == 4 && g.n == 6 && g.k == 8 && g.batch == 3);
    assert_true(g.in == GRT_F16 && g.out == GRT_F32 && g.gaps);
    assert_int_equal(g.room, (1 << 16) - 256);
    const struct gemm_params *p = &g.params;
    assert_true(p->m == 4 && p->n == 6 && p->k == 8 && p->batch == 3 && p->parts == 1);
    assert_true(p->lda == 5 && p->ldb == 8 && p->ldc == 7);
    assert_true(p->a_batch == 41 && p->b_batch == 0 && p->c_batch == 50);
    assert_true(p->alpha == 0.5f && p->beta == 2.0f);
    d = good();
    gemm_fill_case(&g, dev, &d);
    assert_true(!g.gaps && g.room == 0 && p->alpha == 1.0f && p->beta == 0.0f);
    assert_true(p->lda == 8 && p->ldb == 6 && p->ldc == 6);
    assert_true(p->a_batch == 0 && p->b_batch == 0 && p->c_batch == 0);
    d.a = d.b = NULL;
    gemm_fill_case(&g, dev, &d);
    assert_true(g.k == 0 && g.in == GRT_F32 && p->lda == 0 && p->ldb == 0 && !g.gaps);
    // One at a time: rows of each, and matrices where there are several.
    for (int i = 0; i < 6; i++) {
        d = good();
        a = of("a", 0, GRT_F32, 2, 4, 8, 0);
        c = of("c", 2, GRT_F32, 2, 4, 6, 0);
        d.lda = i == 1 ? 9 : 0;
        d.ldb = i == 2 ? 7 : 0;
        d.ldc = i == 3 ? 7 : 0;
        d.a_step = i == 4 ? 33 : 32;
        d.c_step = i == 5 ? 25 : 24;
        if (i == 1 || i == 3) {
            d.a_step = d.c_step = 0;
        }
        gemm_fill_case(&g, dev, &d);
        assert_int_equal(g.gaps, i > 0);
    }
}

// Both sides of what variants ask of a product.
static void asked_of_products(void **state) {
    (void)state;
    struct grt_gemm_desc d = good();
    struct gemm_case g = {.dev = dev, .desc = &d, .m = 100, .n = 50, .batch = 2, .in = GRT_F16};
    dev->info.caps.compute_units = 4;
    assert_int_equal(gemm_ceil_div(7, 7), 1);
    assert_int_equal(gemm_ceil_div(8, 7), 2);
    assert_int_equal(gemm_units(&g), 4);
    assert_int_equal(gemm_rounds(&g, 50, 50, 1), 1);  // 4 tiles for 4 places
    assert_int_equal(gemm_rounds(&g, 49, 50, 1), 2);
    assert_int_equal(gemm_rounds(&g, 49, 50, 2), 1);
    dev->info.caps.compute_units = 0;
    assert_int_equal(gemm_units(&g), 16);
    static const uint32_t lds[] = {24, 3, 20, 2, 18, 1, 17, 0};
    for (int i = 0; i < 8; i += 2) {
        assert_int_equal(gemm_alignment(lds[i]), lds[i + 1]);
    }
    // Chunks of eight: rows and matrices of a and b, of 16 bits.
    for (int i = 0; i < 7; i++) {
        g.params = (struct gemm_params){.lda = 16, .ldb = 24, .a_batch = 64, .b_batch = 8};
        g.in = i == 5 ? GRT_F32 : i == 6 ? GRT_BF16 : GRT_F16;
        uint32_t *const numbers[] = {&g.params.lda, &g.params.ldb, &g.params.a_batch,
                                     &g.params.b_batch};
        if (i < 4) {
            *numbers[i] += 4;
        }
        assert_int_equal(gemm_in_chunks(&g), i == 4 || i == 6);
    }
    g.in = GRT_F32;
    g.k = 8;
    g.n = 4;
    g.params = (struct gemm_params){.lda = 8, .ldb = 4};
    assert_true(gemm_in_vectors(&g));
    g.n = 6;
    assert_false(gemm_in_vectors(&g));
    g.n = 4;
    g.params.b_batch = 2;
    assert_false(gemm_in_vectors(&g));
    g.params.b_batch = 0;
    g.in = GRT_F16;
    assert_false(gemm_in_vectors(&g));
    // Grids.
    uint32_t *most = dev->info.caps.max_groups;
    most[0] = 10, most[1] = 20, most[2] = 2;
    assert_true(gemm_within(&g, 10, 20));
    assert_false(gemm_within(&g, 11, 20) || gemm_within(&g, 10, 21));
    g.batch = 3;
    assert_false(gemm_within(&g, 10, 20));
}

// ---- convolutions ----

static struct grt_tensor x, w, y;
static struct grt_conv2d_desc conv(enum grt_conv_pass pass) {
    x = of("x", 0, GRT_F32, 2, 7, 5, 3);
    w = of("w", 1, GRT_F32, 4, 3, 3, 3);
    y = of("y", 2, GRT_F32, 2, 4, 3, 4);
    bias = of("bias", 3, GRT_F32, 4, 0, 0, 0);
    return (struct grt_conv2d_desc){
        .pass = pass, .x = &x, .w = &w, .y = &y, .stride = 2, .padding = 1};
}

static void expect_conv(const struct grt_conv2d_desc *d, const char *why) {
    assert_true((grt_conv2d_variant(dev, d, 0) == NULL) == (why != NULL));
    if (why) {
        struct grt_graph *graph = grt_graph_create(dev, "misfits");
        grt_op_conv2d(graph, d);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, why);
        grt_graph_destroy(&graph);
    }
}

#define INTO "conv2d of 'x' and 'w' into 'y': "

static void convolutions(void **state) {
    (void)state;
    struct grt_conv2d_desc d;
    for (int pass = 0; pass < GRT_CONV_PASS_COUNT; pass++) {
        d = conv((enum grt_conv_pass)pass);
        expect_conv(&d, NULL);
        // x, w and y in f16 and bf16; the weights' gradient is f32, forward may be.
        for (int i = 0; i < 8; i++) {
            d = conv((enum grt_conv_pass)pass);
            x.dtype = i & 1 ? GRT_F16 : GRT_F32;
            w.dtype = i & 2 ? GRT_F16 : GRT_F32;
            y.dtype = i & 4 ? GRT_F16 : GRT_F32;
            bool weight = pass == GRT_CONV_WEIGHT, half = i & 1;
            const char *why = !weight && w.dtype != x.dtype ? INTO
                                  "x and w must both be f32, f16 or bf16"
                              : weight && w.dtype != GRT_F32 ? INTO "the weights' gradient is f32"
                              : y.dtype != x.dtype && !(half && pass == GRT_CONV_FORWARD) ? INTO
                                  "y must have the type of x, or forward be f32"
                                                                                          : NULL;
            expect_conv(&d, why);
        }
        d = conv((enum grt_conv_pass)pass);
        d.add = true;
        expect_conv(&d, pass == GRT_CONV_FORWARD ? INTO "forward adds to nothing" : NULL);
        d.add = false;
        d.bias = &bias;
        expect_conv(&d, pass == GRT_CONV_FORWARD ? NULL
                                                 : INTO "bias must be one f32 an output, forward");
    }
    d = conv(GRT_CONV_FORWARD);
    d.bias = &bias;
    bias.shape[0] = 3;
    expect_conv(&d, INTO "bias must be one f32 an output, forward");
    bias = of("bias", 3, GRT_F16, 4, 0, 0, 0);
    expect_conv(&d, INTO "bias must be one f32 an output, forward");
    struct grt_tensor *const all[] = {&x, &w, &y};
    for (int i = 0; i < 3; i++) {
        d = conv(GRT_CONV_FORWARD);
        all[i]->rank = 3;
        expect_conv(&d, INTO "x, w and y have four axes");
        d = conv(GRT_CONV_FORWARD);
        all[i]->shape[3]++;
        all[i]->range.size = 0;
        expect_conv(&d, INTO "x is [rows][height][width][channels], w [outputs][size][size][ch");
        if (i != 1) {
            d = conv(GRT_CONV_FORWARD);
            all[i]->shape[0]++;
            all[i]->range.size = 0;
            expect_conv(&d, INTO "x is [rows]");
        }
    }
    d = conv(GRT_CONV_FORWARD);
    w.shape[2] = 2;
    expect_conv(&d, INTO "x is [rows]");
    // Extents by size, stride and padding; both axes.
    for (int axis = 1; axis < 3; axis++) {
        for (int by = -1; by <= 1; by += 2) {
            d = conv(GRT_CONV_FORWARD);
            y.shape[axis] += (uint64_t)by;
            y.range.size = 0;
            expect_conv(&d, INTO "y has other extents than this size, stride and padding give");
        }
    }
    d = conv(GRT_CONV_FORWARD);
    d.stride = 0;  // one
    y = of("y", 2, GRT_F32, 2, 7, 5, 4);
    expect_conv(&d, NULL);
    d.padding = 2;
    y = of("y", 2, GRT_F32, 2, 9, 7, 4);
    expect_conv(&d, NULL);
    d.padding = 3;
    y = of("y", 2, GRT_F32, 2, 11, 9, 4);
    expect_conv(&d, INTO "the size must be above the padding and fit into a padded image");
    // The largest window that fits: 5 + 2 x 1 wide.
    d = conv(GRT_CONV_FORWARD);
    w = of("w", 1, GRT_F32, 4, 7, 7, 3);
    y = of("y", 2, GRT_F32, 2, 2, 1, 4);
    expect_conv(&d, NULL);
    w = of("w", 1, GRT_F32, 4, 8, 8, 3);
    expect_conv(&d, INTO "the size must be above the padding and fit into a padded image");
    static const char *const texts[] = {"forward", "data", "weight"};
    for (int i = 0; i < GRT_CONV_PASS_COUNT; i++) {
        assert_string_equal(grt_conv_pass_text((enum grt_conv_pass)i), texts[i]);
    }
    assert_string_equal(grt_conv_pass_text(GRT_CONV_PASS_COUNT), "?");
}

// What a case is filled with, and what follows from it.
static void cases_of_convolutions(void **state) {
    (void)state;
    struct grt_conv2d_desc d = conv(GRT_CONV_FORWARD);
    struct conv_case k;
    conv_fill_case(&k, dev, &d);
    const struct grt_window *v = &k.window;
    assert_true(v->size == 3 && v->stride == 2 && v->padding == 1 && v->height == 7);
    assert_true(v->width == 5 && v->channels == 3 && v->out_height == 4 && v->out_width == 3);
    assert_true(k.rows == 2 && k.outputs == 4 && k.type == GRT_F32 && k.out == GRT_F32);
    assert_int_equal(conv_depth(&k), 27);
    assert_int_equal(conv_weights(&k), 108);
    assert_int_equal(conv_pixels(&k), 12);
    assert_true(conv_operations(&k) == 2.0 * 2 * 12 * 27 * 4);
    struct conv_params p = conv_params_of(&k);
    assert_true(p.rows == 2 && p.height == 7 && p.width == 5 && p.channels == 3);
    assert_true(p.out_height == 4 && p.out_width == 3 && p.outputs == 4 && p.size == 3);
    assert_true(p.stride == 2 && p.padding == 1 && p.size_x == 3 && p.pixel == 3 && p.line == 15);
    assert_true(p.beta == 0.0f);
    d.add = true;
    assert_true(conv_params_of(&k).beta == 1.0f);
    k.line = 20;
    k.pixel = 4;
    p = conv_params_of(&k);
    assert_true(p.size_x == 1 && p.pixel == 4 && p.line == 20);
    assert_int_equal(conv_depth(&k), 9);
    dev->info.caps.compute_units = 0;
    assert_int_equal(conv_units(&k), 16);
    dev->info.caps.compute_units = 5;
    assert_int_equal(conv_units(&k), 5);
    // What is written has the type that its tensor has.
    for (int pass = 0; pass < GRT_CONV_PASS_COUNT; pass++) {
        d = conv((enum grt_conv_pass)pass);
        x.dtype = GRT_F16;
        w.dtype = pass == GRT_CONV_WEIGHT ? GRT_F32 : GRT_F16;
        y.dtype = GRT_F16;
        conv_fill_case(&k, dev, &d);
        assert_int_equal(k.out, pass == GRT_CONV_WEIGHT ? GRT_F32 : GRT_F16);
        assert_int_equal(k.type, GRT_F16);
    }
    d = conv(GRT_CONV_FORWARD);
    x.dtype = w.dtype = GRT_F16;
    conv_fill_case(&k, dev, &d);
    assert_int_equal(k.out, GRT_F32);
}

// ---- any tensor ----

static void tensors(void **state) {
    (void)state;
    struct grt_tensor none = of("wing", 0, GRT_F32, 4, 0, 0, 0), *t = &none;
    static const char *const words[] = {
        "fill: tensor 'wing' is not allocated; allocate its plan first",
        "fill: tensor 'wing' has no elements", "fill: tensor 'wing' has 16 bytes, its range 12",
        "fill: tensor 'wing' has 16 bytes, its range 12", "fill: no tensor y"};
    for (int i = 0; i < 6; i++) {
        none = of("wing", 0, GRT_F32, 4, 0, 0, 0);
        if (i == 0) {
            none.range.buf = NULL;
        } else if (i == 1) {
            none.shape[0] = 0;
        } else if (i == 2) {
            none.range.size = 12;
        } else if (i == 3) {
            none.range = (struct grt_range){bufs[0], (1 << 16) - 12, 0};
        } else if (i == 5) {
            none.shape[0] = 128;  // up to the buffer's end
            none.range = (struct grt_range){bufs[0], (1 << 16) - 512, 0};
        }
        struct grt_graph *graph = grt_graph_create(dev, "misfits");
        grt_op_fill(graph, i == 4 ? NULL : t, 1.0f);
        if (i < 5) {
            TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, words[i]);
        } else {
            assert_true(grt_graph_bake(graph));
        }
        grt_graph_destroy(&graph);
    }
    TEST_REFUSED((grt_op_fill(NULL, t, 1.0f), false), GRT_INVALID, "fill: no graph");
    struct grt_range range = {bufs[0], 100, 0};
    assert_int_equal(grt_op_room(range), (1 << 16) - 100);
    range.size = 8;
    assert_int_equal(grt_op_room(range), 8);
    range = (struct grt_range){bufs[0], 1 << 16, 0};
    assert_int_equal(grt_op_room(range), 0);
    assert_int_equal(grt_op_power_above(0, 64), 1);
    assert_int_equal(grt_op_power_above(1, 64), 1);
    assert_int_equal(grt_op_power_above(33, 64), 64);
    assert_int_equal(grt_op_power_above(32, 64), 32);
    assert_int_equal(grt_op_power_above(65, 64), 64);
}

static const struct CMUnitTest cases[] = {
    MISFIT_CASE(products),
    MISFIT_CASE(products_with_more),
    MISFIT_CASE(layouts),
    MISFIT_CASE(cases_of_products),
    MISFIT_CASE(asked_of_products),
    MISFIT_CASE(convolutions),
    MISFIT_CASE(cases_of_convolutions),
    MISFIT_CASE(tensors),
};
TEST_SUITE(misfits, false, cases);
