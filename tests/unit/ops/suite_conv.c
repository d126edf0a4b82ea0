// SPDX-License-Identifier: Apache-2.0
// Convolutions against the formulas, by every variant that a device has: shapes at the edge (one
// pixel, a window larger than the image, stride 2 over odd sizes, 1, 3, 17 and 512 channels), the
// same bits under every pre-fill, and what is refused.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "harness/harness.h"
#include "oracle/image.h"
#include "ops/verdict.h"

struct conv_case {
    uint32_t rows, height, width, channels, outputs, size, stride, padding;
    bool driver;  // on drivers too
};

static const struct conv_case shapes[] = {
    {2, 1, 1, 1, 1, 1, 1, 0, false},     {3, 1, 1, 3, 5, 3, 1, 1, true},
    {2, 3, 3, 2, 3, 7, 2, 3, false},     {5, 7, 5, 17, 6, 3, 2, 1, true},
    {2, 4, 4, 512, 8, 3, 1, 1, true},    {3, 9, 7, 8, 16, 3, 2, 1, true},
    {9, 6, 5, 64, 72, 3, 1, 1, true},    {2, 13, 11, 24, 40, 5, 2, 2, false},
    {2, 8, 8, 16, 64, 1, 2, 0, true},    {150, 3, 3, 16, 24, 3, 1, 1, false},
    {2, 9, 7, 8, 24, 1, 1, 0, true},     {2, 2, 9, 1, 1, 2, 3, 1, false},
    {4, 5, 5, 72, 8, 3, 1, 0, true},     {1, 20, 19, 3, 5, 3, 1, 1, true},
    {5, 9, 10, 72, 16, 3, 1, 1, false},  {3, 13, 11, 3, 64, 7, 2, 3, false},
    {2, 10, 9, 4, 24, 5, 2, 2, false},   {4, 6, 7, 96, 160, 3, 1, 1, false},
    {3, 9, 8, 160, 320, 3, 2, 1, false}, {2, 17, 18, 64, 64, 3, 1, 1, false},
    {2, 67, 35, 3, 64, 7, 2, 3, false},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

enum { X, W, Y, B, COUNT };

// One convolution with its numbers and what they must come to.
struct work {
    const struct conv_case *shape;
    enum grt_conv_pass pass;
    enum grt_dtype dtype;
    bool add, bias;
    struct test_tensor tensors[COUNT];
    double *values[COUNT];
    double *want, *size;
    uint32_t written;
    struct grt_buf *scratch;
    const char *variant;
};

static size_t count_of(const struct work *k, uint32_t i) {
    return (size_t)grt_tensor_count(&k->tensors[i].tensor);
}

// Numbers of 6 bits: the type holds them.
static double *drawn(size_t count, uint64_t seed) {
    double *values = test_alloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = floor(64 * test_unit(&seed)) / 16 - 2;
    }
    return values;
}

static void begin(struct work *k) {
    const struct conv_case *s = k->shape;
    const struct oracle_window w = {s->rows, s->height, s->width,  s->channels,
                                    s->size, s->stride, s->padding};
    uint64_t out_height = oracle_window_out(s->height, &w);
    uint64_t out_width = oracle_window_out(s->width, &w);
    const uint64_t axes[COUNT][4] = {{s->rows, s->height, s->width, s->channels},
                                     {s->outputs, s->size, s->size, s->channels},
                                     {s->rows, out_height, out_width, s->outputs},
                                     {s->outputs}};
    k->written = k->pass == GRT_CONV_FORWARD ? Y : k->pass == GRT_CONV_DATA ? X : W;
    for (uint32_t i = 0; i < COUNT; i++) {
        bool wide = i == B || (i == W && k->pass == GRT_CONV_WEIGHT);
        k->tensors[i] =
            test_tensor_shape(test.dev, wide ? GRT_F32 : k->dtype, i == B ? 1 : 4, axes[i]);
        k->values[i] = drawn(count_of(k, i), 7 + i);
        test_tensor_put(&k->tensors[i], k->values[i], count_of(k, i));
    }
    size_t count = count_of(k, k->written);
    k->want = test_alloc(2 * count * sizeof *k->want);
    k->size = k->want + count;
    if (k->pass == GRT_CONV_FORWARD) {
        oracle_conv(&w, s->outputs, k->values[X], k->values[W], k->bias ? k->values[B] : NULL,
                    k->want, k->size);
    } else {
        bool data = k->pass == GRT_CONV_DATA;
        size_t xs = count_of(k, X), ws = count_of(k, W);
        double *dx = test_alloc(2 * xs * sizeof *dx), *dw = test_alloc(2 * ws * sizeof *dw);
        double *db = test_alloc(2 * s->outputs * sizeof *db);
        oracle_conv_backward(
            &w, s->outputs, k->values[X], k->values[W], k->values[Y],
            &(struct oracle_conv_grads){dx, dw, db, dx + xs, dw + ws, db + s->outputs});
        memcpy(k->want, data ? dx : dw, 2 * count * sizeof *k->want);
        free(dx);
        free(dw);
        free(db);
    }
    for (size_t i = 0; k->add && i < count; i++) {
        k->want[i] += k->values[k->written][i];
        k->size[i] += fabs(k->values[k->written][i]);
    }
}

static void end(struct work *k) {
    for (uint32_t i = 0; i < COUNT; i++) {
        test_tensor_end(&k->tensors[i]);
        free(k->values[i]);
    }
    free(k->want);
    grt_buf_destroy(&k->scratch);
}

static struct grt_conv2d_desc desc_of(const struct work *k) {
    return (struct grt_conv2d_desc){.pass = k->pass,
                                    .x = &k->tensors[X].tensor,
                                    .w = &k->tensors[W].tensor,
                                    .y = &k->tensors[Y].tensor,
                                    .stride = k->shape->stride,
                                    .padding = k->shape->padding,
                                    .bias = k->bias ? &k->tensors[B].tensor : NULL,
                                    .add = k->add,
                                    .scratch = {k->scratch, 0, 0},
                                    .variant = k->variant};
}

static void record(struct grt_graph *graph, void *context) {
    struct grt_conv2d_desc desc = desc_of(context);
    grt_op_conv2d(graph, &desc);
}

static void check_variant(struct work *k) {
    struct grt_conv2d_desc desc = desc_of(k);
    uint64_t bytes = grt_op_conv2d_scratch(test.dev, &desc);
    grt_buf_destroy(&k->scratch);
    k->scratch = bytes ? test_buf(test.dev, bytes, GRT_BUF_DEVICE) : NULL;
    struct test_tensor *out = &k->tensors[k->written];
    size_t count = count_of(k, k->written);
    void *got = NULL;
    if (k->add) {
        test_tensor_put(out, k->values[k->written], count);
        test_run(test.dev, record, k);
        got = test_alloc(count * grt_dtype_size(out->tensor.dtype));
        test_tensor_read(out, got);
    } else {
        got = test_run_filled(out, record, k);
    }
    const struct conv_case *s = k->shape;
    double taps = (double)s->size * s->size;
    double terms = k->pass == GRT_CONV_FORWARD ? taps * s->channels
                   : k->pass == GRT_CONV_DATA  ? taps * s->outputs
                                               : (double)count_of(k, Y) / s->outputs;
    double unit = out->tensor.dtype == GRT_F32 ? 0 : k->dtype == GRT_F16 ? 0x1p-11 : 0x1p-8;
    // By patches the products of each tap are rounded on the way back.
    bool rounded = k->pass == GRT_CONV_DATA && strcmp(k->variant, "patches") == 0;
    struct test_compare c = test_compare(
        test.dev, "conv %s by %s, %s, %ux%ux%ux%ux%u %ux%u/%u+%u%s", grt_conv_pass_text(k->pass),
        k->variant, grt_dtype_text(k->dtype), s->rows, s->height, s->width, s->channels, s->outputs,
        s->size, s->size, s->stride, s->padding, k->add ? " added" : "");
    for (size_t i = 0; i < count; i++) {
        double bound = (2 * terms + 8) * 0x1p-24 * k->size[i] + unit * fabs(k->want[i]) +
                       (rounded ? unit * k->size[i] : 0) + 1e-12;
        test_compare_value(&c, i, (float)test_number(out->tensor.dtype, got, i),
                           (struct oracle_value){k->want[i], bound});
    }
    test_compare_end(&c);
    free(got);
}

static uint32_t check(const struct conv_case *shape, enum grt_conv_pass pass, enum grt_dtype dtype,
                      bool add) {
    struct work k = {.shape = shape, .pass = pass, .dtype = dtype};
    k.add = add && pass != GRT_CONV_FORWARD;
    k.bias = add && pass == GRT_CONV_FORWARD;
    begin(&k);
    uint32_t i = 0;
    for (;; i++) {
        k.variant = NULL;
        struct grt_conv2d_desc desc = desc_of(&k);
        k.variant = grt_conv2d_variant(test.dev, &desc, i);
        if (!k.variant) {
            break;
        }
        check_variant(&k);
    }
    end(&k);
    return i;
}

static uint32_t products(const struct conv_case *s) {
    return s->rows * s->height * s->width * s->size * s->size * s->channels * s->outputs;
}

// Whether a shape is checked in every type. A driver on a CPU compiles each kernel for long; ref
// takes a second for a million products.
static bool all_types(const struct conv_case *s) {
    return !test.small &&
           (test.on_ref ? products(s) < 2000000 : !grt_dev_info(test.dev)->caps.software);
}

// Few enough products for a simulator, kernels for a driver on a CPU.
static bool taken(const struct conv_case *s) {
    return test.small ? products(s) < 300 : all_types(s) || test.on_ref || s->driver;
}

static void each_pass(enum grt_conv_pass pass) {
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    for (size_t i = 0; i < SHAPES; i++) {
        for (size_t t = 0; t < 3; t++) {
            bool type = all_types(&shapes[i]) || t == (i + (size_t)pass) % 3;
            if (type && taken(&shapes[i])) {
                assert_true(check(&shapes[i], pass, types[t], (i + t) % 2 == 0) > 0);
            }
        }
    }
}

static void forward(void **state) {
    (void)state;
    each_pass(GRT_CONV_FORWARD);
}

static void data(void **state) {
    (void)state;
    each_pass(GRT_CONV_DATA);
}

static void weight(void **state) {
    (void)state;
    each_pass(GRT_CONV_WEIGHT);
}

static bool listed(struct grt_dev *dev, const struct grt_conv2d_desc *desc, const char *variant) {
    const char *name = NULL;
    for (uint32_t i = 0; (name = grt_conv2d_variant(dev, desc, i)) != NULL; i++) {
        if (strcmp(name, variant) == 0) {
            return true;
        }
    }
    return false;
}

// A variant whose check sees a wrong number is left out, with one warning, for the driver's version
// that it was wrong with; patches are always there.
static void quarantine(void **state) {
    (void)state;
    struct work k = {.shape = &shapes[5], .pass = GRT_CONV_WEIGHT, .dtype = GRT_F16};
    begin(&k);
    struct grt_conv2d_desc desc = desc_of(&k);
    assert_true(listed(test.dev, &desc, "tiled"));
    struct grt_dev *dev = grt_dev_create(grt_dev_desc(.device = grt_dev_info(test.dev)->selector));
    assert_non_null(dev);
    snprintf(dev->info.driver_version, sizeof dev->info.driver_version, "wrong conv %llu",
             (unsigned long long)grt_digest(&k, sizeof k, 1));
    uint32_t before = test_log.lines[GRT_LOG_WARN];
    test_log.quiet = true;
    grt_check_fault(dev, "conv", "tiled");
    assert_false(listed(dev, &desc, "tiled"));
    assert_false(listed(dev, &desc, "tiled"));
    assert_true(listed(dev, &desc, "patches"));
    test_log.quiet = false;
    assert_int_equal(test_log.lines[GRT_LOG_WARN] - before, 1);
    assert_null(grt_conv2d_variant(test.dev, &(struct grt_conv2d_desc){0}, 0));
    assert_null(grt_conv2d_variant(NULL, &desc, 0));
    assert_int_equal(grt_op_conv2d_scratch(NULL, &desc), 0);
    grt_dev_destroy(&dev);
    end(&k);
}

static void refusals(void **state) {
    (void)state;
    struct work k = {.shape = &shapes[5], .pass = GRT_CONV_FORWARD, .dtype = GRT_F32};
    begin(&k);
    struct grt_conv2d_desc good = desc_of(&k), d[7];
    struct grt_tensor flat = k.tensors[X].tensor, half = k.tensors[W].tensor;
    flat.rank = 3;
    half.dtype = GRT_F16;
    for (size_t i = 0; i < 7; i++) {
        d[i] = good;
    }
    d[0].stride = 1;
    d[1].padding = 3;
    d[2].x = &flat;
    d[3].w = &half;
    d[4].add = true;
    d[5].bias = &k.tensors[X].tensor;
    d[6].pass = GRT_CONV_PASS_COUNT;
    static const char *const parts[] = {"other extents", "above the padding", "four axes",
                                        "both be f32",   "adds to nothing",   "one f32 an output",
                                        "no such pass"};
    for (size_t i = 0; i < 7; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "bad conv");
        grt_op_conv2d(graph, &d[i]);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, parts[i]);
        grt_graph_destroy(&graph);
        assert_null(grt_conv2d_variant(test.dev, &d[i], 0));
    }
    struct grt_graph *graph = grt_graph_create(test.dev, "no desc");
    grt_op_conv2d(graph, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "no desc");
    grt_graph_destroy(&graph);
    good.variant = "turbo";
    graph = grt_graph_create(test.dev, "no variant");
    grt_op_conv2d(graph, &good);
    TEST_REFUSED(grt_graph_bake(graph), GRT_UNSUPPORTED, "no variant 'turbo'");
    grt_graph_destroy(&graph);
    good.variant = "patches";
    graph = grt_graph_create(test.dev, "no scratch");
    grt_op_conv2d(graph, &good);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "scratch");
    grt_graph_destroy(&graph);
    end(&k);
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(forward),    TEST_CASE(data),     TEST_CASE(weight),
    TEST_CASE(quarantine), TEST_CASE(refusals),
};
TEST_SUITE(conv, true, cases);
