// SPDX-License-Identifier: Apache-2.0
// Reductions, over all of a tensor and over its rows: against the oracle's bound, exactly where
// every sum is a whole number, and to the same bits each time.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t lengths[] = {1,    2,    3,     15,    16,    17,    63,
                                 64,   65,   255,   256,   257,   1023,  4095,
                                 4096, 4097, 16383, 16384, 16385, 65537, 1000003};
static const size_t matrices[][2] = {{1, 1},      {1, 257},  {257, 1},  {7, 13},
                                     {31, 61},    {64, 64},  {3, 1025}, {1009, 17},
                                     {2, 100003}, {2003, 3}, {5, 16},   {65, 255}};
#define LENGTH_COUNT (sizeof lengths / sizeof lengths[0])
#define MATRIX_COUNT (sizeof matrices / sizeof matrices[0])

struct reduce_case {
    enum grt_reduce reduce;
    size_t rows, cols;  // rows 0: all of `cols` numbers
    const float *x;
};

static void record(struct grt_graph *graph, void *context) {
    grt_op_reduce(graph, context);
}

// The results, allocated: floats, or indices for argmax.
static void *run(struct grt_dev *dev, const struct reduce_case *c) {
    struct test_tensor x = c->rows > 0 ? test_tensor(dev, GRT_F32, c->rows, c->cols)
                                       : test_tensor(dev, GRT_F32, c->cols, 0);
    enum grt_dtype dtype = c->reduce == GRT_REDUCE_ARGMAX ? GRT_U32 : GRT_F32;
    struct test_tensor y = test_tensor(dev, dtype, c->rows > 0 ? c->rows : 1, 0);
    test_tensor_write(&x, c->x);
    struct grt_reduce_desc desc = {
        .reduce = c->reduce, .y = &y.tensor, .x = &x.tensor, .rows = c->rows > 0};
    // Exactly as much scratch as asked for, between canaries.
    uint64_t bytes = grt_op_reduce_scratch(dev, &desc);
    struct test_tensor scratch = {0};
    if (bytes > 0) {
        scratch = test_tensor(dev, GRT_U8, bytes, 0);
        desc.scratch = scratch.tensor.range;
    }
    void *result = test_run_filled(&y, record, &desc);
    if (bytes > 0) {
        void *used = test_alloc(bytes);
        test_tensor_read(&scratch, used);
        free(used);
        test_tensor_end(&scratch);
    }
    test_tensor_end(&x);
    test_tensor_end(&y);
    return result;
}

static void check(const struct reduce_case *c, bool whole_numbers) {
    const char *name = grt_reduce_text(c->reduce);
    size_t rows = c->rows > 0 ? c->rows : 1;
    void *got = run(test.dev, c);
    struct test_compare compare = test_compare(test.dev, "%s over %s, %zu x %zu", name,
                                               c->rows > 0 ? "rows" : "all", rows, c->cols);
    for (size_t r = 0; r < rows; r++) {
        const float *x = c->x + r * c->cols;
        if (c->reduce == GRT_REDUCE_ARGMAX) {
            double index = (double)((const uint32_t *)got)[r];
            test_compare_exact(&compare, r, index, (double)oracle_argmax(x, c->cols));
            continue;
        }
        float value = ((const float *)got)[r];
        struct oracle_value want = oracle_reduce(name, x, c->cols);
        test_compare_value(&compare, r, value, want);
        // Partial sums of small whole numbers are exact in any order: an element left out or taken
        // twice shows, whatever the bound.
        if (whole_numbers && c->reduce == GRT_REDUCE_SUM) {
            test_compare_exact(&compare, r, (double)value, want.value);
        }
    }
    test_compare_end(&compare);
    free(got);
}

static void check_inputs(size_t rows, size_t cols) {
    size_t count = rows > 0 ? rows * cols : cols;
    if (test.small && count > 1024) {
        return;
    }
    static const enum test_input inputs[] = {TEST_PLAIN, TEST_INTEGER, TEST_WIDE};
    for (int i = 0; i < 3; i++) {
        float *x = test_floats(rows + cols, inputs[i], count);
        for (int reduce = 0; reduce < GRT_REDUCE_COUNT; reduce++) {
            // Squares of wide numbers overflow: a norm scales nothing.
            if (inputs[i] != TEST_WIDE || reduce != GRT_REDUCE_NORM) {
                struct reduce_case c = {(enum grt_reduce)reduce, rows, cols, x};
                check(&c, inputs[i] == TEST_INTEGER);
            }
        }
        free(x);
    }
}

static void over_all(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH_COUNT; i++) {
        check_inputs(0, lengths[i]);
    }
}

static void over_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < MATRIX_COUNT; i++) {
        check_inputs(matrices[i][0], matrices[i][1]);
    }
}

// More rows than a launch has workgroups on one axis.
static void many_rows(void **state) {
    (void)state;
    uint32_t rows = test.small ? 300 : 33001;
    float *x = test_floats(2, TEST_INTEGER, (size_t)2 * rows);
    struct test_tensor from = test_tensor(test.dev, GRT_F32, rows, 2);
    struct test_tensor to = test_tensor(test.dev, GRT_F32, rows, 0);
    test_tensor_write(&from, x);
    struct grt_reduce_desc desc = {
        .reduce = GRT_REDUCE_SUM, .y = &to.tensor, .x = &from.tensor, .rows = true};
    test_run(test.dev, record, &desc);
    float *got = test_alloc(to.bytes);
    test_tensor_read(&to, got);
    struct test_compare c = test_compare(test.dev, "sum over %u rows of 2", rows);
    for (uint32_t r = 0; r < rows; r++) {
        test_compare_exact(&c, r, (double)got[r], (double)(x[2 * r] + x[2 * r + 1]));
    }
    test_compare_end(&c);
    free(got);
    free(x);
    test_tensor_end(&from);
    test_tensor_end(&to);
}

// The largest wherever it lies; NaN wherever it lies; nothing but minus infinity.
static void largest_anywhere(void **state) {
    (void)state;
    size_t count = test.small ? 300 : 20011;
    float *x = test_alloc(count * sizeof *x);
    static const double places[] = {0, 0.001, 0.3, 0.5, 0.77, 0.999, 1};
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        size_t place = (size_t)(places[p] * (double)(count - 1));
        for (int kind = 0; kind < 4; kind++) {
            for (size_t i = 0; i < count; i++) {
                x[i] = kind == 2 ? -INFINITY : -3.5f;
            }
            x[place] = kind == 0 ? -3.25f : kind == 1 ? INFINITY : kind == 2 ? -INFINITY : NAN;
            struct reduce_case c = {GRT_REDUCE_MAX, 0, count, x};
            check(&c, false);
            c.reduce = GRT_REDUCE_ARGMAX;
            if (kind < 3) {
                check(&c, false);
            } else {  // the first NaN counts as the largest
                uint32_t *got = run(test.dev, &c);
                assert_int_equal(*got, place);
                free(got);
            }
        }
    }
    free(x);
}

static void first_of_equals(void **state) {
    (void)state;
    size_t count = test.small ? 300 : 20011;
    float *x = test_alloc(count * sizeof *x);
    struct reduce_case c = {GRT_REDUCE_ARGMAX, 0, count, x};
    check(&c, false);  // all zero: index 0
    for (size_t first = count - 1; first > 0; first = first * 2 / 3) {
        x[first] = 1.0f;
        check(&c, false);
    }
    free(x);
}

// The kernel with the same workgroup on the device and on ref: the order of additions is its own.
static void same_bits_as_ref(void **state) {
    (void)state;
    enum { ROWS = 9, COLS = 1013 };
    float *x = test_floats(4, TEST_WIDE, ROWS * COLS);
    for (uint32_t op = 0; op < 3; op++) {
        for (uint32_t finish = 0; finish < 3; finish++) {
            float results[2][ROWS];
            struct grt_dev *devs[2] = {test.dev, test.ref};
            for (int d = 0; d < 2; d++) {
                struct test_tensor from = test_tensor(devs[d], GRT_F32, ROWS, COLS);
                struct test_tensor to = test_tensor(devs[d], GRT_F32, ROWS, 0);
                test_tensor_write(&from, x);
                const struct grt_kernel *kernel = grt_kernel_get(
                    devs[d],
                    grt_kernel_desc(.name = "reduce",
                                    .specs = {{"WG", 64}, {"OP", op}, {"FINISH", finish}}));
                assert_non_null(kernel);
                const struct {
                    uint32_t cols, pitch, total;
                    float scale;
                } params = {COLS, COLS, ROWS * COLS, 0.3f};
                struct grt_graph *graph = grt_graph_create(devs[d], "reduce");
                grt_graph_dispatch(graph,
                                   grt_dispatch(.kernel = kernel, .params = &params,
                                                .params_size = sizeof params, .groups = {ROWS},
                                                .bindings = {from.tensor.range, to.tensor.range}));
                assert_true(grt_graph_finish(graph));
                grt_graph_destroy(&graph);
                test_tensor_read(&to, results[d]);
                test_tensor_end(&from);
                test_tensor_end(&to);
            }
            test_same_floats(test.dev, "kernel reduce, ref", results[0], results[1], ROWS);
        }
    }
    free(x);
}

static void higher_ranks(void **state) {
    (void)state;
    const uint64_t shape[3] = {3, 5, 7};
    float *x = test_floats(8, TEST_INTEGER, 105);
    struct test_tensor from = test_tensor_shape(test.dev, GRT_F32, 3, shape);
    struct test_tensor to = test_tensor_shape(test.dev, GRT_F32, 2, shape);
    test_tensor_write(&from, x);
    struct grt_reduce_desc desc = {
        .reduce = GRT_REDUCE_SUM, .y = &to.tensor, .x = &from.tensor, .rows = true};
    assert_int_equal(grt_op_reduce_scratch(test.dev, &desc), 0);
    float *got = test_run_filled(&to, record, &desc);
    for (int r = 0; r < 15; r++) {
        assert_true((double)got[r] == oracle_reduce("sum", x + 7 * r, 7).value);
    }
    free(got);
    free(x);
    test_tensor_end(&from);
    test_tensor_end(&to);
}

static void refusals(void **state) {
    (void)state;
    struct test_tensor x = test_tensor(test.dev, GRT_F32, 200, 100);
    struct test_tensor h = test_tensor(test.dev, GRT_F16, 200, 100);
    struct test_tensor one = test_tensor(test.dev, GRT_F32, 1, 0);
    struct test_tensor index = test_tensor(test.dev, GRT_U32, 1, 0);
    struct test_tensor rows = test_tensor(test.dev, GRT_F32, 199, 0);
    struct test_tensor scratch = test_tensor(test.dev, GRT_F32, 1 << 16, 0);
    struct grt_range space = scratch.tensor.range;
    struct grt_range little = space;
    little.size = 4;
    const struct grt_reduce_desc bad[] = {
        {.reduce = GRT_REDUCE_SUM, .y = &one.tensor, .x = &h.tensor, .scratch = space},
        {.reduce = GRT_REDUCE_SUM, .y = &index.tensor, .x = &x.tensor, .scratch = space},
        {.reduce = GRT_REDUCE_ARGMAX, .y = &one.tensor, .x = &x.tensor, .scratch = space},
        {.reduce = GRT_REDUCE_SUM, .y = &rows.tensor, .x = &x.tensor, .rows = true},
        {.reduce = GRT_REDUCE_SUM, .y = &rows.tensor, .x = &x.tensor, .scratch = space},
        {.reduce = GRT_REDUCE_SUM, .y = &one.tensor, .x = &x.tensor},
        {.reduce = GRT_REDUCE_SUM, .y = &one.tensor, .x = &x.tensor, .scratch = little},
        {.reduce = GRT_REDUCE_SUM, .x = &x.tensor, .scratch = space},
        {.reduce = GRT_REDUCE_SUM, .y = &one.tensor, .scratch = space},
        {.reduce = (enum grt_reduce)99, .y = &one.tensor, .x = &x.tensor, .scratch = space},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "bad reduce");
        grt_op_reduce(graph, &bad[i]);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "bad reduce");
        grt_graph_destroy(&graph);
    }
    assert_int_equal(grt_op_reduce_scratch(test.dev, NULL), 0);
    assert_int_equal(grt_op_reduce_scratch(NULL, &bad[0]), 0);
    test_tensor_end(&x);
    test_tensor_end(&h);
    test_tensor_end(&one);
    test_tensor_end(&index);
    test_tensor_end(&rows);
    test_tensor_end(&scratch);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(over_all),         TEST_CASE(over_rows),       TEST_CASE(many_rows),
    TEST_CASE(largest_anywhere), TEST_CASE(first_of_equals), TEST_CASE(same_bits_as_ref),
    TEST_CASE(higher_ranks),     TEST_CASE(refusals),
};
TEST_SUITE(reduce, true, cases);
