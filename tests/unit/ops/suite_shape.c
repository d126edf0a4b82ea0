// SPDX-License-Identifier: Apache-2.0
// Fill, copy and transpose: elements move or are set, bit for bit.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = {1, 2, 3, 4, 5, 63, 64, 65, 255, 256, 257, 1000003};
#define SIZE_COUNT (sizeof sizes / sizeof sizes[0])

static bool too_large(size_t count) {
    return test.small && count > 1000;
}

// ---- fill ----

struct fill {
    const struct grt_tensor *y;
    float value;
};

static void record_fill(struct grt_graph *graph, void *context) {
    const struct fill *f = context;
    grt_op_fill(graph, f->y, f->value);
}

static void check_fill(enum grt_dtype dtype, struct oracle_format format, float value,
                       size_t count) {
    struct test_tensor y = test_tensor(test.dev, dtype, count, 0);
    struct fill f = {&y.tensor, value};
    unsigned char *got = test_run_filled(&y, record_fill, &f);
    struct test_compare c = test_compare(test.dev, "fill %s of %zu with %g", grt_dtype_text(dtype),
                                         count, (double)value);
    uint32_t want = oracle_narrow(format, (double)value);
    uint32_t size = grt_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, got + i * size, size);
        if (!isnan(value) || !oracle_is_nan(format, bits)) {
            test_compare_bits(&c, i, bits, want);
        }
    }
    test_compare_end(&c);
    free(got);
    test_tensor_end(&y);
}

static void fill(void **state) {
    (void)state;
    const float values[] = {1.5f,      -0.0f,   0.1f,      65504.0f,  65519.0f,  65520.0f, 70000.0f,
                            1e-8f,     5.9e-8f, 3e-8f,     -6.1e-5f,  1e-40f,    3.4e38f,  INFINITY,
                            -INFINITY, NAN,     0x1.01p0f, 0x1.03p0f, 6.0976e-5f};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        check_fill(GRT_F32, oracle_f32, values[i], 5);
        check_fill(GRT_F16, oracle_f16, values[i], 5);
        check_fill(GRT_BF16, oracle_bf16, values[i], 5);
    }
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        if (!too_large(sizes[i])) {
            check_fill(GRT_F32, oracle_f32, 1.5f, sizes[i]);
            check_fill(GRT_F16, oracle_f16, 1.5f, sizes[i]);
            check_fill(GRT_BF16, oracle_bf16, 1.5f, sizes[i]);
        }
    }
}

// ---- copy ----

struct pair {
    const struct grt_tensor *y, *x;
};

static void record_copy(struct grt_graph *graph, void *context) {
    const struct pair *p = context;
    grt_op_copy(graph, p->y, p->x);
}

static void check_copy(enum grt_dtype dtype, size_t count) {
    size_t size = grt_dtype_size(dtype);
    float *data = test_floats(count, TEST_BITS, count);
    struct test_tensor x = test_tensor(test.dev, dtype, count, 0);
    struct test_tensor y = test_tensor(test.dev, dtype, count, 0);
    test_tensor_write(&x, data);
    struct pair p = {&y.tensor, &x.tensor};
    void *got = test_run_filled(&y, record_copy, &p);
    char what[64];
    snprintf(what, sizeof what, "copy %s of %zu", grt_dtype_text(dtype), count);
    if (size == 1) {
        assert_memory_equal(got, data, count);
    } else {
        test_same(test.dev, what, got, data, size, count);
    }
    free(got);
    free(data);
    test_tensor_end(&x);
    test_tensor_end(&y);
}

static void copy_words(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        if (!too_large(sizes[i])) {
            check_copy(GRT_F32, sizes[i]);
            check_copy(GRT_U32, sizes[i]);
            check_copy(GRT_F16, 2 * sizes[i]);
        }
    }
}

// Sizes that are no whole number of words.
static void copy_odd_sizes(void **state) {
    (void)state;
    static const size_t odd[] = {1, 3, 63, 65, 257, 4097};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        check_copy(GRT_F16, odd[i]);
        check_copy(GRT_BF16, odd[i]);
    }
}

// ---- transpose ----

static void record_transpose(struct grt_graph *graph, void *context) {
    const struct pair *p = context;
    grt_op_transpose(graph, p->y, p->x);
}

// `once`: under one pre-fill alone, for cases that take long.
static void check_transpose(enum grt_dtype dtype, size_t batch, size_t rows, size_t cols,
                            bool once) {
    size_t size = grt_dtype_size(dtype);
    size_t count = batch * rows * cols;
    uint64_t shape_x[3] = {batch, rows, cols};
    uint64_t shape_y[3] = {batch, cols, rows};
    uint32_t skip = batch == 1 ? 1 : 0;
    struct test_tensor x = test_tensor_shape(test.dev, dtype, 3 - skip, shape_x + skip);
    struct test_tensor y = test_tensor_shape(test.dev, dtype, 3 - skip, shape_y + skip);
    float *data = test_floats(count, TEST_BITS, count);
    unsigned char *want = test_alloc(count * size);
    for (size_t b = 0; b < batch; b++) {
        size_t at = b * rows * cols * size;
        oracle_transpose(want + at, (unsigned char *)data + at, rows, cols, size);
    }
    test_tensor_write(&x, data);
    struct pair p = {&y.tensor, &x.tensor};
    void *got;
    if (once) {
        got = test_alloc(y.bytes);
        test_run(test.dev, record_transpose, &p);
        test_tensor_read(&y, got);
    } else {
        got = test_run_filled(&y, record_transpose, &p);
    }
    char what[80];
    snprintf(what, sizeof what, "transpose %s of %zu x %zu x %zu", grt_dtype_text(dtype), batch,
             rows, cols);
    test_same(test.dev, what, got, want, size, count);
    free(got);
    free(want);
    free(data);
    test_tensor_end(&x);
    test_tensor_end(&y);
}

static void transpose(void **state) {
    (void)state;
    static const size_t shapes[][3] = {
        {1, 1, 1},     {1, 1, 17},    {1, 17, 1},   {1, 15, 16},  {1, 16, 16},
        {1, 17, 16},   {1, 16, 17},   {1, 31, 33},  {1, 64, 64},  {1, 65, 64},
        {1, 13, 1009}, {1, 1009, 13}, {1, 1, 4099}, {1, 4099, 1}, {1, 997, 1009},
        {3, 5, 7},     {7, 16, 16},   {129, 2, 3},  {2, 33, 17},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (!too_large(shapes[i][0] * shapes[i][1] * shapes[i][2])) {
            check_transpose(GRT_F32, shapes[i][0], shapes[i][1], shapes[i][2], false);
            check_transpose(GRT_BF16, shapes[i][0], shapes[i][1], shapes[i][2], false);
        }
    }
}

// More tiles along one axis, and more matrices, than a device counts workgroups on an axis.
static void transpose_long(void **state) {
    (void)state;
    if (!test.small) {
        check_transpose(GRT_F32, 1, 1100000, 2, true);
        check_transpose(GRT_F32, 1, 2, 1100000, true);
        check_transpose(GRT_F32, 70001, 2, 3, true);
    }
}

static void twice_is_the_identity(void **state) {
    (void)state;
    enum { ROWS = 53, COLS = 37 };
    float *data = test_floats(6, TEST_BITS, ROWS * COLS);
    struct test_tensor x = test_tensor(test.dev, GRT_F32, ROWS, COLS);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, COLS, ROWS);
    test_tensor_write(&x, data);
    struct grt_graph *graph = grt_graph_create(test.dev, "twice");
    grt_op_transpose(graph, &y.tensor, &x.tensor);
    grt_op_transpose(graph, &x.tensor, &y.tensor);
    assert_true(grt_graph_finish(graph));
    assert_int_equal(grt_graph_stats(graph).barriers, 1);
    grt_graph_destroy(&graph);
    float *got = test_alloc(sizeof(float) * ROWS * COLS);
    test_tensor_read(&x, got);
    test_same(test.dev, "transpose twice", got, data, 4, (size_t)ROWS * COLS);
    free(got);
    free(data);
    test_tensor_end(&x);
    test_tensor_end(&y);
}

// ---- mistakes ----

static void refused(test_record_fn *record, const struct grt_tensor *y, const struct grt_tensor *x,
                    const char *part) {
    struct grt_graph *graph = grt_graph_create(test.dev, "bad");
    struct pair p = {y, x};
    record(graph, &p);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, part);
    grt_graph_destroy(&graph);
}

static void refusals(void **state) {
    (void)state;
    struct test_tensor f = test_tensor(test.dev, GRT_F32, 6, 4);
    struct test_tensor g = test_tensor(test.dev, GRT_F32, 4, 6);
    struct test_tensor h = test_tensor(test.dev, GRT_F16, 4, 6);
    struct test_tensor v = test_tensor(test.dev, GRT_F32, 24, 0);
    struct test_tensor s = test_tensor(test.dev, GRT_F32, 23, 0);
    struct test_tensor c = test_tensor(test.dev, GRT_U8, 4, 6);
    struct test_tensor d = test_tensor(test.dev, GRT_U8, 6, 4);
    refused(record_transpose, &f.tensor, &f.tensor, "transpose");
    refused(record_transpose, &h.tensor, &f.tensor, "transpose");
    refused(record_transpose, &v.tensor, &v.tensor, "transpose");
    refused(record_transpose, &c.tensor, &d.tensor, "transpose");
    refused(record_transpose, NULL, &f.tensor, "transpose");
    refused(record_copy, &s.tensor, &v.tensor, "copy");
    refused(record_copy, &h.tensor, &f.tensor, "copy");
    refused(record_copy, &v.tensor, &v.tensor, "overlap");
    refused(record_copy, &v.tensor, NULL, "copy");
    struct grt_graph *graph = grt_graph_create(test.dev, "bad fill");
    grt_op_fill(graph, &c.tensor, 1.0f);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "fill");
    grt_graph_destroy(&graph);
    test_tensor_end(&f);
    test_tensor_end(&g);
    test_tensor_end(&h);
    test_tensor_end(&v);
    test_tensor_end(&s);
    test_tensor_end(&c);
    test_tensor_end(&d);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(fill),      TEST_CASE(copy_words),     TEST_CASE(copy_odd_sizes),
    TEST_CASE(transpose), TEST_CASE(transpose_long), TEST_CASE(twice_is_the_identity),
    TEST_CASE(refusals),
};
TEST_SUITE(shape, true, cases);
