// SPDX-License-Identifier: Apache-2.0
// Matrix products whose operands are parts of larger arrays: rows and matrices with gaps between
// them, heads that interleave. What lies in the gaps is NaN and must not be seen; the gaps of c
// must stay as they were. And products of shapes that nobody chose, with and without gaps, by the
// variant that serves them.
#include "kits/gemm_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CANARY 7.0

// An operand in a larger array.
struct spread {
    struct operand all;       // the array, flat
    struct grt_tensor shown;  // the matrices in it
    double *packed;           // the same without gaps
    uint64_t rows, cols, batch, ld, step;
};

static size_t place(const struct spread *s, size_t i) {
    size_t z = i / (s->rows * s->cols), row = i / s->cols % s->rows, col = i % s->cols;
    return z * s->step + row * s->ld + col;
}

static size_t count_of(const struct spread *s) {
    return s->batch * s->rows * s->cols;
}

static struct spread spread(enum grt_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols,
                            uint64_t ld, uint64_t step, double gap) {
    struct spread s = {.rows = rows, .cols = cols, .batch = batch ? batch : 1};
    s.ld = ld ? ld : cols;
    s.step = step ? step : rows * s.ld;
    uint64_t span = (s.batch - 1) * s.step + (rows - 1) * s.ld + cols;
    uint64_t state = rows * 131 + cols * 7 + ld;
    s.all = operand(dtype, 0, 1, span);
    s.packed = test_alloc(count_of(&s) * sizeof *s.packed);
    for (size_t i = 0; i < span; i++) {
        s.all.value[i] = gap;
    }
    for (size_t i = 0; i < count_of(&s); i++) {
        s.all.value[place(&s, i)] = (double)test_float(&state, TEST_PLAIN);
    }
    operand_write(&s.all);
    for (size_t i = 0; i < count_of(&s); i++) {
        s.packed[i] = s.all.value[place(&s, i)];
    }
    s.shown = s.all.t.tensor;
    s.shown.rank = batch ? 3 : 2;
    const uint64_t shape[3] = {batch, rows, cols};
    memcpy(s.shown.shape, batch ? shape : shape + 1, s.shown.rank * sizeof shape[0]);
    return s;
}

static void spread_end(struct spread *s) {
    free(s->packed);
    operand_end(&s->all);
}

// A product with the distances of its rows and matrices; 0: none between them.
struct wide {
    uint64_t m, n, k, batch;
    bool a_transposed, b_transposed, add;
    float beta;
    uint32_t lda, ldb, ldc, a_step, b_step, c_step;
};

static void record(struct grt_graph *graph, void *context) {
    grt_op_gemm(graph, context);
}

static void compare(const struct wide *w, enum grt_dtype dtype, const struct spread x[4],
                    const char *variant, const unsigned char *got) {
    struct test_compare c =
        test_compare(test.dev, "gemm %s %s %llux%llux%llu batch %llu with gaps", variant,
                     grt_dtype_text(dtype), (unsigned long long)w->m, (unsigned long long)w->n,
                     (unsigned long long)w->k, (unsigned long long)w->batch);
    const struct oracle_format format = dtype == GRT_F16 ? oracle_f16 : oracle_f32;
    size_t mn = w->m * w->n;
    bool *inside = calloc(x[2].all.count, sizeof *inside);
    assert_non_null(inside);
    for (size_t i = 0; i < count_of(&x[2]); i++) {
        size_t z = i / mn;
        struct oracle_gemm g = {.m = w->m,
                                .n = w->n,
                                .k = w->k,
                                .a_transposed = w->a_transposed,
                                .b_transposed = w->b_transposed,
                                .a = x[0].packed + z * w->m * w->k,
                                .b = x[1].packed + z * w->k * w->n,
                                .alpha = 1,
                                .beta = (double)w->beta,
                                .c = x[2].packed + z * mn,
                                .act = "none",
                                .add = w->add ? x[3].packed + z * mn : NULL,
                                .grad_act = "none",
                                .out = format};
        struct oracle_value want = oracle_gemm(&g, i % mn / w->n, i % mn % w->n);
        test_compare_value(&c, i, gemm_element(dtype, got, place(&x[2], i)), want);
        inside[place(&x[2], i)] = true;
    }
    test_compare_end(&c);
    for (size_t i = 0; i < x[2].all.count; i++) {
        if (!inside[i] && (double)gemm_element(dtype, got, i) != CANARY) {
            print_error("gemm %s wrote element %zu, which lies in a gap of c\n", variant, i);
            fail();
        }
    }
    free(inside);
}

static uint64_t scratch_for(struct grt_gemm_desc desc, const char *variant) {
    desc.variant = variant;
    return grt_op_gemm_scratch(test.dev, &desc);
}

// By every variant, or by the one that the device chooses.
static void check(const struct wide *w, enum grt_dtype dtype, bool chosen) {
    struct spread x[4] = {
        spread(dtype, w->batch, w->a_transposed ? w->k : w->m, w->a_transposed ? w->m : w->k,
               w->lda, w->a_step, (double)NAN),
        spread(dtype, w->batch, w->b_transposed ? w->n : w->k, w->b_transposed ? w->k : w->n,
               w->ldb, w->b_step, (double)NAN),
        spread(dtype, w->batch, w->m, w->n, w->ldc, w->c_step, CANARY),
        spread(dtype, w->batch, w->m, w->n, w->ldc, w->c_step, (double)NAN),
    };
    struct grt_gemm_desc desc = {.a = &x[0].shown,
                                 .b = &x[1].shown,
                                 .c = &x[2].shown,
                                 .a_transposed = w->a_transposed,
                                 .b_transposed = w->b_transposed,
                                 .add = w->add ? &x[3].shown : NULL,
                                 .beta = w->beta,
                                 .lda = w->lda,
                                 .ldb = w->ldb,
                                 .ldc = w->ldc,
                                 .a_step = w->a_step,
                                 .b_step = w->b_step,
                                 .c_step = w->c_step};
    struct operand scratch = {0};
    uint64_t bytes = scratch_for(desc, NULL);
    uint64_t for_copies = chosen ? 0 : scratch_for(desc, "padded");
    bytes = for_copies > bytes ? for_copies : bytes;
    if (bytes > 0) {
        scratch = operand(GRT_F32, 0, 1, bytes / 4);
        desc.scratch = scratch.t.tensor.range;
    }
    unsigned char *got = test_alloc(x[2].all.t.bytes);
    assert_non_null(grt_gemm_variant(test.dev, &desc, 0));
    for (uint32_t v = 0; grt_gemm_variant(test.dev, &desc, v) && (v == 0 || !chosen); v++) {
        const char *name = grt_gemm_variant(test.dev, &desc, v);
        if (!chosen && variant_passed_over(v, name)) {
            continue;
        }
        struct grt_gemm_desc one = desc;
        one.variant = chosen ? NULL : name;
        operand_write(&x[2].all);
        test_run(test.dev, record, &one);
        test_tensor_read(&x[2].all.t, got);
        compare(w, dtype, x, name, got);
    }
    free(got);
    operand_end(&scratch);
    for (int i = 0; i < 4; i++) {
        spread_end(&x[i]);
    }
}

static void products(void **state) {
    (void)state;
    static const struct wide rows[] = {
        {.m = 17, .n = 13, .k = 11, .lda = 16, .ldb = 24, .ldc = 19},
        {.m = 33, .n = 36, .k = 30, .lda = 32, .ldb = 40, .ldc = 37, .beta = -0.5f, .add = true},
        // Rows that are whole vectors, of which the last is not all c's.
        {.m = 33, .n = 36, .k = 32, .ldb = 40, .ldc = 40, .add = true},
        {.m = 18,
         .n = 21,
         .k = 14,
         .a_transposed = true,
         .b_transposed = true,
         .lda = 24,
         .ldb = 16},
        // More between matrices than they have; only that.
        {.m = 9, .n = 8, .k = 8, .batch = 3, .a_step = 100, .b_step = 65, .c_step = 83},
        // Matrices of c that begin between vectors, and those of a and b not.
        {.m = 9, .n = 8, .k = 8, .batch = 3, .a_step = 104, .b_step = 72, .c_step = 83},
        // Four heads of 16 columns, side by side: scores of one with another, and their sums.
        {.m = 20,
         .n = 20,
         .k = 16,
         .batch = 4,
         .b_transposed = true,
         .lda = 64,
         .a_step = 16,
         .ldb = 64,
         .b_step = 16},
        {.m = 20,
         .n = 16,
         .k = 20,
         .batch = 4,
         .ldb = 64,
         .b_step = 16,
         .ldc = 64,
         .c_step = 16,
         .add = true},
        // A long k, cut where that pays.
        {.m = 12, .n = 20, .k = 2048, .a_transposed = true, .lda = 16, .ldb = 24, .ldc = 23},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!test.small || i == 0) {
            check(&rows[i], GRT_F32, false);
            check(&rows[i], GRT_F16, false);
        }
    }
}

// ---- shapes that nobody chose ----

#define DRAWN 500u

static uint64_t below(uint64_t *state, uint64_t count) {
    return test_next(state) % count;
}

// From 1 to `most`, as many small ones as large: as it comes, a multiple of 8, or of 32.
static uint64_t drawn_size(uint64_t *state, uint64_t most) {
    static const uint64_t units[] = {1, 1, 8, 32};
    uint64_t size = 1 + below(state, 1 + below(state, most)), unit = units[below(state, 4)];
    return (size + unit - 1) / unit * unit;
}

// Elements from row to row: as many as a row has, or more.
static uint32_t drawn_ld(uint64_t *state, uint64_t cols) {
    return below(state, 3) == 0 ? (uint32_t)(cols + below(state, 20)) : 0;
}

static struct wide draw(uint64_t *state) {
    // Of any kind; few rows or columns with a long k; one row.
    static const uint64_t most[][3] = {{70, 70, 90}, {70, 70, 90}, {20, 20, 1500}, {1, 200, 200}};
    const uint64_t *limit = most[below(state, 4)];
    struct wide w = {.m = drawn_size(state, limit[0]),
                     .n = drawn_size(state, limit[1]),
                     .k = drawn_size(state, limit[2]),
                     .batch = below(state, 4) == 0 ? 1 + below(state, 5) : 0,
                     .a_transposed = below(state, 2),
                     .b_transposed = below(state, 2),
                     .add = below(state, 4) == 0,
                     .beta = below(state, 4) == 0 ? -0.5f : 0.0f};
    w.lda = drawn_ld(state, w.a_transposed ? w.m : w.k);
    w.ldb = drawn_ld(state, w.b_transposed ? w.k : w.n);
    w.ldc = drawn_ld(state, w.n);
    return w;
}

static void drawn(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (uint32_t i = 0; i < (test.small ? DRAWN / 25 : DRAWN); i++) {
        struct wide w = draw(&seed);
        check(&w, below(&seed, 2) ? GRT_F16 : GRT_F32, true);
    }
}

static void refuse(const struct grt_gemm_desc *desc, const char *part) {
    struct grt_graph *graph = grt_graph_create(test.dev, "bad gaps");
    assert_non_null(graph);
    grt_op_gemm(graph, desc);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, part);
    grt_graph_destroy(&graph);
    assert_null(grt_gemm_variant(test.dev, desc, 0));
}

static void refusals(void **state) {
    (void)state;
    const struct product p = {.m = 4, .n = 6, .k = 8, .batch = 2, .in = GRT_F32, .out = GRT_F32};
    struct made x;
    made_begin(&x, &p);
    struct grt_gemm_desc desc = x.desc;
    desc.lda = 7;
    refuse(&desc, "rows of a have 8 elements and begin 7 apart");
    desc = x.desc;
    desc.ldb = 16;
    refuse(&desc, "b reaches 984 bytes, its range has ");
    desc = x.desc;
    desc.c_step = 23;
    refuse(&desc, "matrices of c that begin 23 apart overlap");
    // Operands that are only read may overlap.
    desc = x.desc;
    desc.a_step = 4;
    assert_non_null(grt_gemm_variant(test.dev, &desc, 0));
    made_end(&x);
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {TEST_CASE(products), TEST_CASE(drawn),
                                          TEST_CASE(refusals)};
TEST_SUITE(gaps, true, cases);
