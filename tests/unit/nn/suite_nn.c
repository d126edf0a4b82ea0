// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm: against the oracle's bounds, exactly where every number on the way is
// whole, to the same bits as the C reading, and through small windows.
#include "kits/kernel_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"

// Single rows and columns, primes, around the lanes of a row and of a workgroup, and rows that are
// shared by lanes on every device.
static const size_t matrices[][2] = {{1, 1},     {1, 257},  {257, 1},  {7, 13}, {31, 61},
                                     {64, 64},   {3, 1025}, {1009, 6}, {5, 16}, {65, 255},
                                     {2, 10007}, {300, 33}, {9001, 2}};
#define MATRIX_COUNT (sizeof matrices / sizeof matrices[0])

static bool too_large(const size_t size[2]) {
    return test.small && size[0] * size[1] > 1024;
}

// ---- running ----

struct rows_case {
    size_t rows, cols;
    const float *x, *weight, *bias;  // weight and bias for layer norm, or NULL
    float eps;
    float *stats;  // out: mean and rstd of each row, or NULL
};

struct softmax {
    const struct grt_tensor *y, *x;
};

static void record_softmax(struct grt_graph *graph, void *context) {
    const struct softmax *s = context;
    grt_op_softmax(graph, s->y, s->x);
}

static void record_norm(struct grt_graph *graph, void *context) {
    grt_op_layer_norm(graph, context);
}

static struct test_tensor written(size_t rows, size_t cols, const float *data) {
    struct test_tensor t = test_tensor(test.dev, GRT_F32, rows, cols);
    test_tensor_write(&t, data);
    return t;
}

static float *run_softmax(const struct rows_case *c) {
    struct test_tensor x = written(c->rows, c->cols, c->x);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, c->rows, c->cols);
    struct softmax s = {&y.tensor, &x.tensor};
    float *got = test_run_filled(&y, record_softmax, &s);
    test_tensor_end(&x);
    test_tensor_end(&y);
    return got;
}

static float *run_norm(const struct rows_case *c) {
    struct test_tensor x = written(c->rows, c->cols, c->x);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, c->rows, c->cols);
    struct test_tensor weight = {0};
    struct test_tensor bias = {0};
    struct test_tensor stats = {0};
    struct grt_layer_norm_desc desc = {.y = &y.tensor, .x = &x.tensor, .eps = c->eps};
    if (c->weight) {
        weight = written(c->cols, 0, c->weight);
        desc.weight = &weight.tensor;
    }
    if (c->bias) {
        bias = written(c->cols, 0, c->bias);
        desc.bias = &bias.tensor;
    }
    if (c->stats) {
        stats = test_tensor(test.dev, GRT_F32, c->rows, 2);
        desc.stats = &stats.tensor;
    }
    float *got = test_run_filled(&y, record_norm, &desc);
    if (c->stats) {
        test_tensor_read(&stats, c->stats);
    }
    test_tensor_end(&x);
    test_tensor_end(&y);
    test_tensor_end(&weight);
    test_tensor_end(&bias);
    test_tensor_end(&stats);
    return got;
}

// ---- softmax ----

static void check_softmax(const struct rows_case *c) {
    float *got = run_softmax(c);
    struct oracle_value *want = test_alloc(c->cols * sizeof *want);
    struct test_compare compare = test_compare(test.dev, "softmax %zu x %zu", c->rows, c->cols);
    for (size_t i = 0; i < c->rows * c->cols; i++) {
        if (i % c->cols == 0) {
            oracle_softmax(c->x + i, c->cols, want);
        }
        test_compare_value(&compare, i, got[i], want[i % c->cols]);
    }
    test_compare_end(&compare);
    free(want);
    free(got);
}

static void softmax_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < MATRIX_COUNT; i++) {
        if (too_large(matrices[i])) {
            continue;
        }
        struct rows_case c = {.rows = matrices[i][0], .cols = matrices[i][1]};
        float *x = test_floats(i, TEST_PLAIN, c.rows * c.cols);
        c.x = x;
        check_softmax(&c);
        for (size_t k = 0; k < c.rows * c.cols; k++) {
            x[k] *= 60.0f;  // shares from one down to what vanishes
        }
        check_softmax(&c);
        free(x);
    }
}

static void softmax_special(void **state) {
    (void)state;
    const float x[6][4] = {{0, -INFINITY, 0, -INFINITY},
                           {1e30f, -1e30f, 3e38f, -3e38f},
                           {0, NAN, 1, 2},
                           {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
                           {INFINITY, 0, 0, 0},
                           {-87, -88, -200, 0}};
    struct rows_case c = {.rows = 6, .cols = 4, .x = &x[0][0]};
    float *got = run_softmax(&c);
    assert_true(got[0] == 0.5f && got[1] == 0.0f && got[2] == 0.5f && got[3] == 0.0f);
    assert_true(got[4] == 0.0f && got[5] == 0.0f && got[6] == 1.0f && got[7] == 0.0f);
    for (int i = 8; i < 20; i++) {
        // Of infinity over infinity nothing is known; a share that is certain may be 0.
        assert_true(isnan(got[i]) || (i > 16 && got[i] == 0.0f));
    }
    assert_true(got[22] == 0.0f && got[23] == 1.0f);
    free(got);
}

// A number added to a whole row changes nothing: every difference is exact.
static void softmax_shifted(void **state) {
    (void)state;
    enum { ROWS = 5, COLS = 77 };
    float *x = test_floats(3, TEST_INTEGER, ROWS * COLS);
    struct rows_case c = {.rows = ROWS, .cols = COLS, .x = x};
    float *first = run_softmax(&c);
    for (int i = 0; i < ROWS * COLS; i++) {
        x[i] += 4096.0f;
    }
    float *second = run_softmax(&c);
    test_same(test.dev, "softmax of x and x + 4096", second, first, 4, (size_t)ROWS * COLS);
    free(first);
    free(second);
    free(x);
}

// ---- layer norm ----

static void check_norm(const struct rows_case *given) {
    struct rows_case c = *given;
    c.stats = test_alloc(2 * c.rows * sizeof *c.stats);
    float *got = run_norm(&c);
    double eps = c.eps > 0 ? (double)c.eps : (double)1e-5f;
    struct test_compare compare = test_compare(test.dev, "layer norm %zu x %zu%s%s", c.rows, c.cols,
                                               c.weight ? ", weight" : "", c.bias ? ", bias" : "");
    struct oracle_norm norm = {0};
    for (size_t i = 0; i < c.rows * c.cols; i++) {
        size_t row = i / c.cols;
        size_t col = i % c.cols;
        if (col == 0) {
            norm = oracle_norm(c.x + i, c.cols, eps);
            test_compare_value(&compare, i, c.stats[2 * row], norm.mean);
            test_compare_value(&compare, i, c.stats[2 * row + 1], norm.rstd);
        }
        struct oracle_value want =
            oracle_layer_norm(&norm, (double)c.x[i], c.weight ? (double)c.weight[col] : 1,
                              c.bias ? (double)c.bias[col] : 0);
        test_compare_value(&compare, i, got[i], want);
    }
    test_compare_end(&compare);
    // Without keeping the statistics, the same.
    free(c.stats);
    c.stats = NULL;
    float *again = run_norm(&c);
    test_same(test.dev, "layer norm without stats", again, got, 4, c.rows * c.cols);
    free(again);
    free(got);
}

static void layer_norm(void **state) {
    (void)state;
    for (size_t i = 0; i < MATRIX_COUNT; i++) {
        if (too_large(matrices[i])) {
            continue;
        }
        struct rows_case c = {.rows = matrices[i][0], .cols = matrices[i][1]};
        float *x = test_floats(i, TEST_PLAIN, c.rows * c.cols);
        float *weight = test_floats(i + 100, TEST_PLAIN, c.cols);
        float *bias = test_floats(i + 200, TEST_PLAIN, c.cols);
        c.x = x;
        c.weight = i % 4 < 2 ? weight : NULL;
        c.bias = i % 2 == 0 ? bias : NULL;
        c.eps = i % 3 == 0 ? 0.01f : 0.0f;
        check_norm(&c);
        // Far from zero: a difference of squares would lose the variance.
        for (size_t k = 0; k < c.rows * c.cols; k++) {
            x[k] += 100.0f;
        }
        check_norm(&c);
        free(x);
        free(weight);
        free(bias);
    }
}

// A row of equal whole numbers, their count a power of two, has exactly its value as mean and no
// variance: what is left is the bias.
static void layer_norm_constant(void **state) {
    (void)state;
    enum { ROWS = 3, COLS = 64 };
    float x[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        int row = i / COLS;
        x[i] = (float)row * 7.0f - 3.0f;
    }
    float *bias = test_floats(5, TEST_PLAIN, COLS);
    struct rows_case c = {.rows = ROWS, .cols = COLS, .x = x, .bias = bias};
    float *got = run_norm(&c);
    for (int i = 0; i < ROWS * COLS; i++) {
        assert_true(got[i] == bias[i % COLS]);
    }
    free(got);
    free(bias);
}

// ---- the same in other ways ----

// Rows of which a binding does not reach as many as an offset is aligned to: how many numbers it
// would.
static void rows_beyond_reach(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    uint64_t reach = caps->max_binding;
    struct test_tensor x = test_tensor(test.dev, GRT_F32, 30, 200);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, 30, 200);
    struct grt_graph *graph = grt_graph_create(test.dev, "wide rows");
    char want[96];
    caps->max_binding = 4096;
    snprintf(want, sizeof want, "softmax over rows of 200 numbers: %s reaches %llu at once",
             test.dev->info.selector, (unsigned long long)(1024 / (grt_dev_align(test.dev) / 4)));
    grt_op_softmax(graph, &y.tensor, &x.tensor);
    if (grt_dev_align(test.dev) / 4 > 1024 / 200) {
        TEST_REFUSED(grt_graph_bake(graph), GRT_UNSUPPORTED, want);
    } else {
        assert_true(grt_graph_bake(graph));
    }
    caps->max_binding = reach;
    grt_graph_destroy(&graph);
    test_tensor_end(&x);
    test_tensor_end(&y);
}

// With the reach of a binding lowered to a few KiB, ops split, and rows keep their bits.
static void small_windows(void **state) {
    (void)state;
    struct grt_caps *caps = &test.dev->info.caps;
    uint64_t reach = caps->max_binding;
    enum { ROWS = 1701, COLS = 12 };
    float *x = test_floats(6, TEST_PLAIN, ROWS * COLS);
    float *stats[2] = {test_alloc(2 * ROWS * sizeof(float)), test_alloc(2 * ROWS * sizeof(float))};
    float *got[2][2];
    struct rows_case c = {.rows = ROWS, .cols = COLS, .x = x, .weight = x, .bias = x + COLS};
    for (int small = 0; small < 2; small++) {
        caps->max_binding = small ? (caps->align > 32 ? caps->align * 128 : 4096) : reach;
        c.stats = stats[small];
        got[small][0] = run_softmax(&c);
        got[small][1] = run_norm(&c);
        caps->max_binding = reach;
    }
    test_same(test.dev, "softmax in windows", got[1][0], got[0][0], 4, (size_t)ROWS * COLS);
    test_same(test.dev, "layer norm in windows", got[1][1], got[0][1], 4, (size_t)ROWS * COLS);
    test_same(test.dev, "statistics in windows", stats[1], stats[0], 4, (size_t)ROWS * 2);
    for (int small = 0; small < 2; small++) {
        free(got[small][0]);
        free(got[small][1]);
        free(stats[small]);
    }
    free(x);
}

static void same_bits_as_ref(void **state) {
    (void)state;
    enum { ROWS = 37, COLS = 301, COUNT = ROWS * COLS };
    float *x = test_floats(4, TEST_PLAIN, COUNT);
    const struct {
        uint32_t rows, cols;
        float scale, eps;
    } params = {ROWS, COLS, 1.0f / COLS, 1e-5f};
    struct kernel_case softmax = {.desc = {"softmax", {{"WG", 64}, {"LANES", 16}}},
                                  .params = &params,
                                  .params_size = 8,
                                  .groups = 10,
                                  .buffers = {{x, COUNT}, {NULL, COUNT}}};
    kernel_same_as_ref(&softmax);
    softmax.desc.specs[1].value = 1;
    kernel_same_as_ref(&softmax);
    const struct kernel_case norm = {
        .desc = {"layer_norm", {{"WG", 64}, {"LANES", 8}, {"WEIGHT", 1}, {"BIAS", 1}, {"SAVE", 1}}},
        .params = &params,
        .params_size = sizeof params,
        .groups = 5,
        .buffers = {{x, COUNT}, {x, COLS}, {x + COLS, COLS}, {NULL, COUNT}, {NULL, 2 * ROWS}}};
    kernel_same_as_ref(&norm);
    free(x);
}

static void refusals(void **state) {
    (void)state;
    struct test_tensor x = test_tensor(test.dev, GRT_F32, 300, 8);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, 300, 8);
    struct test_tensor h = test_tensor(test.dev, GRT_F16, 300, 8);
    struct test_tensor few = test_tensor(test.dev, GRT_F32, 7, 0);
    const struct grt_tensor *pairs[][2] = {{&h.tensor, &x.tensor},   {&y.tensor, &h.tensor},
                                           {&few.tensor, &x.tensor}, {NULL, &x.tensor},
                                           {&y.tensor, NULL},        {&x.tensor, &x.tensor}};
    const struct grt_layer_norm_desc norms[] = {
        {.y = &y.tensor, .x = &x.tensor, .weight = &few.tensor},
        {.y = &y.tensor, .x = &x.tensor, .bias = &few.tensor},
        {.y = &y.tensor, .x = &x.tensor, .stats = &few.tensor},
        {.y = &y.tensor, .x = &x.tensor, .eps = -1.0f},
        {.y = &y.tensor, .x = &x.tensor, .eps = NAN},
        {.y = &few.tensor, .x = &x.tensor},
        {.x = &x.tensor},
    };
    enum { PAIRS = sizeof pairs / sizeof pairs[0], NORMS = sizeof norms / sizeof norms[0] };
    for (size_t i = 0; i < PAIRS + NORMS; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "bad rows");
        if (i < PAIRS) {
            grt_op_softmax(graph, pairs[i][0], pairs[i][1]);
        } else {
            grt_op_layer_norm(graph, &norms[i - PAIRS]);
        }
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "bad rows");
        grt_graph_destroy(&graph);
    }
    struct grt_graph *graph = grt_graph_create(test.dev, "no desc");
    grt_op_layer_norm(graph, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "no desc");
    grt_graph_destroy(&graph);
    test_tensor_end(&x);
    test_tensor_end(&y);
    test_tensor_end(&h);
    test_tensor_end(&few);
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(softmax_rows),      TEST_CASE(softmax_special),     TEST_CASE(softmax_shifted),
    TEST_CASE(layer_norm),        TEST_CASE(layer_norm_constant), TEST_CASE(small_windows),
    TEST_CASE(rows_beyond_reach), TEST_CASE(same_bits_as_ref),    TEST_CASE(refusals),
};
TEST_SUITE(nn, true, cases);
