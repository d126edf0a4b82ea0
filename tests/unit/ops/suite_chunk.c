// SPDX-License-Identifier: Apache-2.0
// Tensors larger than a binding reaches. The reach of the device is lowered to a few KiB, so what
// ops do with 8 GiB on a GPU happens here with 100 KiB: they split, and results stay the same.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

static uint64_t real_reach;

static int begin(void **state) {
    real_reach = test.dev->info.caps.max_binding;
    uint64_t align = test.dev->info.caps.align;
    test.dev->info.caps.max_binding = align * 128 > 4096 ? align * 128 : 4096;
    return test_case_begin(state);
}

static int end(void **state) {
    test.dev->info.caps.max_binding = real_reach;
    return test_case_end(state);
}

#define CHUNK_CASE(function)                                                                       \
    { #function, function, begin, end, NULL }

struct op {
    const struct grt_tensor *y, *a, *b;
    struct grt_range extra;  // scratch or generator
    enum grt_reduce reduce;
    bool rows;
    uint32_t dispatches;  // out
};

// Numbers that take several pieces, and a bit.
static size_t lots(void) {
    size_t reach = (size_t)test.dev->info.caps.max_binding / 4;
    return reach * (test.small ? 2 : 7) + 11;
}

static void *run(struct test_tensor *y, test_record_fn *record, struct op *op) {
    void *result = test_run_filled(y, record, op);
    assert_in_range(op->dispatches, 2, 100000);
    return result;
}

// Each record function notes how many dispatches the op made.
static void note(struct grt_graph *graph, struct op *op) {
    op->dispatches = grt_graph_stats(graph).dispatches;
}

static void record_fill(struct grt_graph *graph, void *context) {
    struct op *op = context;
    grt_op_fill(graph, op->y, 2.5f);
    note(graph, op);
}

static void record_copy(struct grt_graph *graph, void *context) {
    struct op *op = context;
    grt_op_copy(graph, op->y, op->a);
    note(graph, op);
}

static void record_convert(struct grt_graph *graph, void *context) {
    struct op *op = context;
    grt_op_convert(graph, op->y, op->a);
    note(graph, op);
}

static void record_map(struct grt_graph *graph, void *context) {
    struct op *op = context;
    grt_op_map(graph, grt_map_desc(.map = GRT_MAP_MUL, .y = op->y, .a = op->a, .b = op->b));
    note(graph, op);
}

static void record_random(struct grt_graph *graph, void *context) {
    struct op *op = context;
    grt_op_random(
        graph, grt_random_desc(.dist = GRT_DIST_BITS, .y = op->y, .state = op->extra, .stream = 9));
    note(graph, op);
}

static void record_reduce(struct grt_graph *graph, void *context) {
    struct op *op = context;
    grt_op_reduce(graph, grt_reduce_desc(.reduce = op->reduce, .y = op->y, .x = op->a,
                                         .rows = op->rows, .scratch = op->extra));
    note(graph, op);
}

static void record_transpose(struct grt_graph *graph, void *context) {
    struct op *op = context;
    grt_op_transpose(graph, op->y, op->a);
    note(graph, op);
}

static void fill_and_copy(void **state) {
    (void)state;
    size_t n = lots();
    float *data = test_floats(1, TEST_BITS, n);
    struct test_tensor x = test_tensor(test.dev, GRT_F32, n, 0);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, n, 0);
    test_tensor_write(&x, data);
    struct op op = {.y = &y.tensor, .a = &x.tensor};
    // lavapipe copies by the driver, whatever the size.
    const struct grt_caps *caps = &grt_dev_info(test.dev)->caps;
    bool by_driver = caps->software && caps->subgroup > 1;
    float *got = by_driver ? test_run_filled(&y, record_copy, &op) : run(&y, record_copy, &op);
    test_same(test.dev, "copy in pieces", got, data, 4, n);
    free(got);
    got = run(&y, record_fill, &op);
    for (size_t i = 0; i < n; i++) {
        assert_true(got[i] == 2.5f);
    }
    free(got);
    free(data);
    test_tensor_end(&x);
    test_tensor_end(&y);
}

static void convert(void **state) {
    (void)state;
    size_t n = lots();
    float *data = test_floats(2, TEST_PLAIN, n);
    struct test_tensor x = test_tensor(test.dev, GRT_F32, n, 0);
    struct test_tensor h = test_tensor(test.dev, GRT_F16, n, 0);
    struct test_tensor z = test_tensor(test.dev, GRT_BF16, n, 0);
    test_tensor_write(&x, data);
    struct op op = {.y = &h.tensor, .a = &x.tensor};
    uint16_t *half = run(&h, record_convert, &op);
    op = (struct op){.y = &z.tensor, .a = &h.tensor};
    uint16_t *bfloat = run(&z, record_convert, &op);
    struct test_compare c = test_compare(test.dev, "convert in pieces");
    for (size_t i = 0; i < n; i++) {
        uint32_t want = oracle_narrow(oracle_f16, (double)data[i]);
        test_compare_bits(&c, i, half[i], want);
        test_compare_bits(&c, i, bfloat[i],
                          oracle_narrow(oracle_bf16, oracle_widen(oracle_f16, want)));
    }
    test_compare_end(&c);
    free(half);
    free(bfloat);
    free(data);
    test_tensor_end(&x);
    test_tensor_end(&h);
    test_tensor_end(&z);
}

static void map(void **state) {
    (void)state;
    size_t n = lots();
    float *a = test_floats(3, TEST_PLAIN, n);
    float *b = test_floats(4, TEST_PLAIN, n);
    struct test_tensor ta = test_tensor(test.dev, GRT_F32, n, 0);
    struct test_tensor tb = test_tensor(test.dev, GRT_F32, n, 0);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, n, 0);
    test_tensor_write(&ta, a);
    test_tensor_write(&tb, b);
    struct op op = {.y = &y.tensor, .a = &ta.tensor, .b = &tb.tensor};
    float *got = run(&y, record_map, &op);
    struct test_compare c = test_compare(test.dev, "mul in pieces");
    for (size_t i = 0; i < n; i++) {
        test_compare_value(&c, i, got[i], oracle_map("mul", (double)a[i], (double)b[i], 0, 0));
    }
    test_compare_end(&c);
    // In place: every piece is its own.
    op.y = &ta.tensor;
    test_run(test.dev, record_map, &op);
    float *in_place = test_alloc(ta.bytes);
    test_tensor_read(&ta, in_place);
    test_same(test.dev, "mul in place, in pieces", in_place, got, 4, n);
    free(in_place);
    free(got);
    free(a);
    free(b);
    test_tensor_end(&ta);
    test_tensor_end(&tb);
    test_tensor_end(&y);
}

static void random_numbers(void **state) {
    (void)state;
    size_t n = lots();
    struct grt_rng_state rng = {{1, 2}, {3, 4}};
    struct grt_buf *buf = test_buf(test.dev, sizeof rng, GRT_BUF_DEVICE);
    assert_true(grt_buf_write(buf, 0, &rng, sizeof rng));
    struct test_tensor y = test_tensor(test.dev, GRT_U32, n, 0);
    struct op op = {.y = &y.tensor, .extra = {buf}};
    uint32_t *got = run(&y, record_random, &op);
    struct test_compare c = test_compare(test.dev, "random in pieces");
    for (size_t i = 0; i < n; i++) {
        test_compare_bits(&c, i, got[i], oracle_bits(rng.seed, rng.step, 9, i));
    }
    test_compare_end(&c);
    free(got);
    test_tensor_end(&y);
    grt_buf_destroy(&buf);
}

static void check_reduce(enum grt_reduce reduce, size_t rows, size_t cols) {
    size_t results = rows > 0 ? rows : 1;
    float *data = test_floats(rows + cols, TEST_INTEGER, results * cols);
    data[results * cols * 2 / 3] = 9.0f;
    struct test_tensor x =
        test_tensor(test.dev, GRT_F32, rows > 0 ? rows : cols, rows > 0 ? cols : 0);
    bool argmax = reduce == GRT_REDUCE_ARGMAX;
    struct test_tensor y = test_tensor(test.dev, argmax ? GRT_U32 : GRT_F32, results, 0);
    test_tensor_write(&x, data);
    struct op op = {.y = &y.tensor, .a = &x.tensor, .reduce = reduce, .rows = rows > 0};
    struct grt_reduce_desc desc = {.reduce = reduce, .y = op.y, .x = op.a, .rows = op.rows};
    struct test_tensor scratch = {0};
    uint64_t bytes = grt_op_reduce_scratch(test.dev, &desc);
    if (bytes > 0) {
        scratch = test_tensor(test.dev, GRT_U8, bytes, 0);
        op.extra = scratch.tensor.range;
    }
    float *got = run(&y, record_reduce, &op);
    const char *name = grt_reduce_text(reduce);
    struct test_compare c = test_compare(test.dev, "%s of %zu x %zu in pieces", name, rows, cols);
    for (size_t r = 0; r < results; r++) {
        const float *row = data + r * cols;
        if (argmax) {
            test_compare_bits(&c, r, test_as_u32(got[r]), (uint32_t)oracle_argmax(row, cols));
        } else {
            test_compare_value(&c, r, got[r], oracle_reduce(name, row, cols));
        }
    }
    test_compare_end(&c);
    if (bytes > 0) {
        void *used = test_alloc(bytes);
        test_tensor_read(&scratch, used);
        free(used);
        test_tensor_end(&scratch);
    }
    free(got);
    free(data);
    test_tensor_end(&x);
    test_tensor_end(&y);
}

static void reduce(void **state) {
    (void)state;
    for (int i = 0; i < GRT_REDUCE_COUNT; i++) {
        check_reduce((enum grt_reduce)i, 0, lots());
        check_reduce((enum grt_reduce)i, lots() / 3, 3);
        check_reduce((enum grt_reduce)i, lots() / 100, 100);
    }
}

static void transpose(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{505, 8, 5}, {2000, 4, 4}, {1000, 7, 3}, {700, 1, 31}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        uint64_t from[3] = {shapes[i][0], shapes[i][1], shapes[i][2]};
        uint64_t to[3] = {shapes[i][0], shapes[i][2], shapes[i][1]};
        size_t matrix = shapes[i][1] * shapes[i][2];
        size_t n = shapes[i][0] * matrix;
        float *data = test_floats(i, TEST_BITS, n);
        float *want = test_alloc(n * sizeof *want);
        for (size_t b = 0; b < shapes[i][0]; b++) {
            oracle_transpose(want + b * matrix, data + b * matrix, shapes[i][1], shapes[i][2], 4);
        }
        struct test_tensor x = test_tensor_shape(test.dev, GRT_F32, 3, from);
        struct test_tensor y = test_tensor_shape(test.dev, GRT_F32, 3, to);
        test_tensor_write(&x, data);
        struct op op = {.y = &y.tensor, .a = &x.tensor};
        float *got = run(&y, record_transpose, &op);
        test_same(test.dev, "transpose in pieces", got, want, 4, n);
        free(got);
        free(want);
        free(data);
        test_tensor_end(&x);
        test_tensor_end(&y);
    }
}

static const struct CMUnitTest cases[] = {
    CHUNK_CASE(fill_and_copy),  CHUNK_CASE(convert), CHUNK_CASE(map),
    CHUNK_CASE(random_numbers), CHUNK_CASE(reduce),  CHUNK_CASE(transpose),
};
TEST_SUITE(chunk, true, cases);
