// SPDX-License-Identifier: Apache-2.0
// Column sums: against the oracle's bound, exactly where every
// sum is a whole number, to the same bits as the C reading, and through small windows.
#include "kits/gemm_kit.h"
#include "kits/kernel_kit.h"

#include <stdlib.h>

#include "backends/backend.h"

// Single rows and columns, primes, around the tiles of columns, and around where one launch ends.
static const size_t matrices[][2] = {{1, 1},    {1, 257},  {257, 1},  {7, 13},    {31, 61},
                                     {3, 1025}, {1009, 6}, {65, 255}, {2, 10007}, {256, 33},
                                     {300, 33}, {513, 3},  {9001, 2}, {70001, 1}, {1000, 129}};
#define MATRIX_COUNT (sizeof matrices / sizeof matrices[0])

struct columns {
    size_t rows, cols;
    const float *x;
};

// Whole numbers, in the operand too.
static float *fill_whole(struct operand *x, size_t seed, size_t count) {
    float *plain = test_floats(seed, TEST_INTEGER, count);
    for (size_t k = 0; k < count; k++) {
        x->value[k] = (double)plain[k];
    }
    operand_write(x);
    return plain;
}

static void record(struct grt_graph *graph, void *context) {
    grt_op_colsum(graph, context);
}

static float *run_colsum(const struct columns *c) {
    struct test_tensor x = test_tensor(test.dev, GRT_F32, c->rows, c->cols);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, c->cols, 0);
    test_tensor_write(&x, c->x);
    struct grt_colsum_desc desc = {.y = &y.tensor, .x = &x.tensor};
    // Exactly as much scratch as asked for, between canaries.
    uint64_t bytes = grt_op_colsum_scratch(test.dev, &desc);
    struct test_tensor scratch = {0};
    if (bytes > 0) {
        scratch = test_tensor(test.dev, GRT_F32, bytes / 4, 0);
        desc.scratch = scratch.tensor.range;
    }
    float *got = test_run_filled(&y, record, &desc);
    if (bytes > 0) {
        void *used = test_alloc(bytes);
        test_tensor_read(&scratch, used);
        free(used);
    }
    test_tensor_end(&scratch);
    test_tensor_end(&x);
    test_tensor_end(&y);
    return got;
}

static void check_colsum(const struct columns *c, bool whole_numbers) {
    float *got = run_colsum(c);
    struct test_compare compare = test_compare(test.dev, "column sums %zu x %zu", c->rows, c->cols);
    for (size_t i = 0; i < c->cols; i++) {
        struct oracle_value want = oracle_colsum(c->x, c->rows, c->cols, i);
        test_compare_value(&compare, i, got[i], want);
        if (whole_numbers) {
            test_compare_exact(&compare, i, (double)got[i], want.value);
        }
    }
    test_compare_end(&compare);
    free(got);
}

static void column_sums(void **state) {
    (void)state;
    static const enum test_input inputs[] = {TEST_PLAIN, TEST_INTEGER, TEST_WIDE};
    for (size_t i = 0; i < MATRIX_COUNT * 3; i++) {
        const size_t *size = matrices[i / 3];
        if (!test.small || size[0] * size[1] <= 1024) {
            float *x = test_floats(i, inputs[i % 3], size[0] * size[1]);
            struct columns c = {.rows = size[0], .cols = size[1], .x = x};
            check_colsum(&c, inputs[i % 3] == TEST_INTEGER);
            free(x);
        }
    }
}

// In 16 bits, and added to what is there: whole numbers, so every sum is exact; twice, so three
// times the sums. Of two matrices at once.
static void narrow_and_added(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{7, 13}, {1009, 6}, {300, 33}};
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    for (size_t i = 0; i < 9; i++) {
        size_t rows = sizes[i / 3][0], cols = sizes[i / 3][1];
        enum grt_dtype type = types[i % 3];
        struct operand x[2] = {operand(type, 0, rows, cols), operand(type, 0, rows, cols)};
        float *plain[2] = {fill_whole(&x[0], i, rows * cols),
                           fill_whole(&x[1], 100 + i, rows * cols)};
        struct test_tensor y[2] = {test_tensor(test.dev, GRT_F32, cols, 0),
                                   test_tensor(test.dev, GRT_F32, cols, 0)};
        struct grt_colsum_desc desc = {
            .y = &y[0].tensor, .x = &x[0].t.tensor, .y2 = &y[1].tensor, .x2 = &x[1].t.tensor};
        uint64_t bytes = grt_op_colsum_scratch(test.dev, &desc);
        struct test_tensor scratch = test_tensor(test.dev, GRT_F32, bytes / 4 + 1, 0);
        desc.scratch = scratch.tensor.range;
        test_run(test.dev, record, &desc);
        desc.add = true;
        test_run(test.dev, record, &desc);
        test_run(test.dev, record, &desc);
        float *got = test_alloc(cols * sizeof *got);
        for (size_t of = 0; of < 2; of++) {
            test_tensor_read(&y[of], got);
            struct test_compare compare =
                test_compare(test.dev, "column sums of %s, %zu x %zu, added, matrix %zu",
                             grt_dtype_text(type), rows, cols, of);
            for (size_t c = 0; c < cols; c++) {
                test_compare_exact(&compare, c, (double)got[c],
                                   3 * oracle_colsum(plain[of], rows, cols, c).value);
            }
            test_compare_end(&compare);
            free(plain[of]);
            operand_end(&x[of]);
            test_tensor_end(&y[of]);
        }
        free(got);
        test_tensor_end(&scratch);
    }
}

// With the reach of a binding lowered to a few KiB the op makes many launches of one.
static void small_windows(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    uint64_t reach = caps->max_binding;
    enum { ROWS = 1701, COLS = 12 };
    float *x = test_floats(6, TEST_INTEGER, ROWS * COLS);
    const struct columns c = {ROWS, COLS, x};
    caps->max_binding = caps->align > 32 ? caps->align * 128 : 4096;
    float *got = run_colsum(&c);
    caps->max_binding = reach;
    for (size_t i = 0; i < COLS; i++) {
        assert_true((double)got[i] == oracle_colsum(x, ROWS, COLS, i).value);
    }
    free(got);
    free(x);
}

static void same_bits_as_ref(void **state) {
    (void)state;
    enum { ROWS = 137, COLS = 61 };
    float *x = test_floats(4, TEST_PLAIN, ROWS * COLS);
    const uint32_t params[4] = {ROWS, COLS, ROWS, 0};
    const struct kernel_case c = {.desc = {"colsum", {{"WG", 64}, {"COLS", 8}}},
                                  .params = params,
                                  .params_size = sizeof params,
                                  .groups = 3,
                                  .buffers = {{x, ROWS * COLS}, {NULL, COLS}}};
    kernel_same_as_ref(&c);
    free(x);
}

static void refusals(void **state) {
    (void)state;
    struct test_tensor x = test_tensor(test.dev, GRT_F32, 300, 8);
    struct test_tensor h = test_tensor(test.dev, GRT_U32, 300, 8);
    struct test_tensor few = test_tensor(test.dev, GRT_F32, 7, 0);
    struct test_tensor sums = test_tensor(test.dev, GRT_F32, 8, 0);
    struct grt_range little = {few.tensor.range.buf, few.tensor.range.offset, 4};
    const struct {
        struct grt_colsum_desc desc;
        const char *part;
    } rows[] = {
        {{.y = &few.tensor, .x = &x.tensor}, "must hold 8 of f32"},
        {{.y = &sums.tensor, .x = &h.tensor}, "of f32"},
        {{.y = &sums.tensor, .x = &x.tensor}, "scratch, given 0"},
        {{.y = &sums.tensor, .x = &x.tensor, .scratch = little}, "scratch, given 4"},
        {{.y = &sums.tensor}, "no tensor x"},
        {{.y = &sums.tensor, .x = &x.tensor, .x2 = &x.tensor}, "a second x"},
        {{.y = &sums.tensor, .x = &x.tensor, .x2 = &h.tensor, .y2 = &sums.tensor}, "a second x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "bad columns");
        grt_op_colsum(graph, &rows[i].desc);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, rows[i].part);
        grt_graph_destroy(&graph);
    }
    struct grt_graph *graph = grt_graph_create(test.dev, "no desc");
    grt_op_colsum(graph, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "no desc");
    grt_graph_destroy(&graph);
    assert_int_equal(grt_op_colsum_scratch(test.dev, NULL), 0);
    assert_int_equal(grt_op_colsum_scratch(NULL, &rows[2].desc), 0);
    assert_true(grt_op_colsum_scratch(test.dev, &rows[2].desc) > 4);
    test_tensor_end(&x);
    test_tensor_end(&h);
    test_tensor_end(&few);
    test_tensor_end(&sums);
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(column_sums),      TEST_CASE(narrow_and_added), TEST_CASE(small_windows),
    TEST_CASE(same_bits_as_ref), TEST_CASE(refusals),
};
TEST_SUITE(colsum, true, cases);
