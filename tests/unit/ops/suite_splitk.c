// SPDX-License-Identifier: Apache-2.0
// Products with a long k: cut into parts where that pays, with all that follows a product; and sums
// in f32 that are as exact as f32's, however they are made.
#include "kits/gemm_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- k in parts ----

// The last k is no multiple of anything: its last part is shorter than the others.
static const uint64_t shapes[][3] = {{16, 32, 2048}, {5, 3, 4096}, {40, 17, 2819}};

static void cut(void **state) {
    (void)state;
    static const enum grt_dtype types[][2] = {
        {GRT_F32, GRT_F32}, {GRT_F16, GRT_F32}, {GRT_BF16, GRT_BF16}, {GRT_F16, GRT_F16}};
    for (size_t i = 0; i < 12; i++) {
        const uint64_t *shape = shapes[i / 4];
        struct product p = {.m = shape[0], .n = shape[1], .k = shape[2]};
        // A weight's gradient first: a transposed, b not.
        p.a_transposed = i % 4 == 0 || i % 4 == 3;
        p.b_transposed = i % 4 == 2 || i % 4 == 3;
        p.in = types[i % 4][0];
        p.out = types[i % 4][1];
        p.beta = i % 4 == 0 ? 1.0f : 0.0f;
        if (i % 4 == 2) {
            p.alpha = -0.5f;
            p.bias = p.add = true;
            p.act = GRT_ACT_TANH;
        }
        if (!test.small || i == 0) {
            product_check(&p);
        }
    }
}

// The same product with scratch, without, and with too little.
static void scratch(void **state) {
    (void)state;
    const struct product p = {
        .m = 16, .n = 32, .k = 2048, .a_transposed = true, .in = GRT_F32, .out = GRT_F32};
    struct made x;
    made_begin(&x, &p);
    uint64_t bytes = grt_op_gemm_scratch(test.dev, &x.desc);
    bool cores = grt_dev_info(test.dev)->caps.compute_units != 1;
    assert_true(!cores || bytes >= 2 * p.m * p.n * 4);
    struct oracle_value *want = made_want(&x);
    struct grt_range given = x.desc.scratch;
    x.desc.scratch = (struct grt_range){0};
    void *got = made_run(&x, NULL);
    made_compare(&x, want, "in one piece", got);
    free(got);
    free(want);
    // Some variants fill a device all the same and use none.
    const char *variant = made_variant(&x, 0);
    x.desc.variant = NULL;
    if (bytes > 0 && strcmp(variant, "wgmma") != 0 && strcmp(variant, "lanes") != 0) {
        x.desc.scratch = given;
        x.desc.scratch.size = bytes / 2;
        struct grt_graph *graph = grt_graph_create(test.dev, "too little");
        assert_non_null(graph);
        grt_op_gemm(graph, &x.desc);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "scratch");
        grt_graph_destroy(&graph);
    }
    // Products that no part of a device would be idle for, and what is no product.
    struct product wide = {.m = 64, .n = 64, .k = 64, .in = GRT_F32, .out = GRT_F32};
    struct made y;
    made_begin(&y, &wide);
    assert_int_equal(grt_op_gemm_scratch(test.dev, &y.desc), 0);
    assert_int_equal(grt_op_gemm_scratch(NULL, &x.desc), 0);
    assert_int_equal(grt_op_gemm_scratch(test.dev, NULL), 0);
    y.desc.b = &x.b.t.tensor;
    assert_int_equal(grt_op_gemm_scratch(test.dev, &y.desc), 0);
    made_end(&y);
    made_end(&x);
    test_usable(test.dev);
}

// Whoever ends last adds up the parts, in the same order: the same bits on every run.
static void same_bits(void **state) {
    (void)state;
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    // A copy engine is a GPU's, and so is an order of groups that is another at every run.
    const bool software = grt_dev_info(test.dev)->caps.software;
    // The reference does not cut.
    const bool cuts = software && grt_dev_info(test.dev)->backend != GRT_BACKEND_REF;
    const int times = test.small ? 1 : software ? 2 : 4;
    // An eighth of a GPU's product is cut into parts on a few cores.
    const uint64_t m = software ? 24 : 48, n = software ? 20 : 40, k = software ? 2048 : 4096;
    for (size_t i = 0; i < (test.small ? 1 : sizeof types / sizeof *types); i++) {
        // Rows that the copy engine takes, then others.
        for (uint64_t odd = 0; odd < (software && i > 0 ? 1 : 2); odd++) {
            const struct product p = {
                .m = m + odd, .n = n + odd, .k = k + odd, .in = types[i], .out = GRT_F32};
            struct made x;
            made_begin(&x, &p);
            assert_true(!cuts || x.desc.scratch.size > 0);
            const char *variant = NULL;
            for (uint32_t v = 0; (variant = made_variant(&x, v)); v++) {
                void *first = made_run(&x, variant);
                for (int again = 0; again < times; again++) {
                    void *got = made_run(&x, variant);
                    if (memcmp(first, got, x.c.t.bytes) != 0) {
                        print_error("gemm %s of %s: other sums in another run\n", variant,
                                    grt_dtype_text(p.in));
                        fail();
                    }
                    free(got);
                }
                free(first);
            }
            made_end(&x);
        }
    }
}

// Sums of parts that are zeros, some with a minus, and that are no numbers: k is longer than any
// part, and all of a row of a is 0 or the row has one infinity.
static void odd_sums(void **state) {
    (void)state;
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    const bool software = grt_dev_info(test.dev)->caps.software;
    for (size_t i = 0; i < (test.small ? 1 : sizeof types / sizeof *types); i++) {
        const struct product p = {.m = software ? 12 : 40,
                                  .n = software ? 9 : 72,
                                  .k = software ? 2048 : 8192,
                                  .in = types[i],
                                  .out = GRT_F32};
        struct made x;
        made_begin(&x, &p);
        for (size_t j = 0; j < x.a.count; j++) {
            size_t row = j / p.k;
            x.a.value[j] = row % 4 == 0 ? 0.0 : row % 4 == 1 ? -0.0 : x.a.value[j];
        }
        x.a.value[3 * p.k + p.k / 2] = INFINITY;
        for (size_t j = 0; j < x.b.count; j++) {
            x.b.value[j] = j / p.n == p.k / 2 && j % p.n == 5 ? 0.0 : fabs(x.b.value[j]) + 1;
        }
        operand_write(&x.a);
        operand_write(&x.b);
        const char *variant = NULL;
        for (uint32_t v = 0; (variant = made_variant(&x, v)); v++) {
            void *got = made_run(&x, variant);
            for (size_t j = 0; j < x.c.count; j++) {
                float c = gemm_element(GRT_F32, got, j);
                size_t row = j / p.n;
                bool good = row % 4 < 2 ? c == 0.0f
                            : row == 3  ? (j % p.n == 5 ? isnan(c) : c == INFINITY || isnan(c))
                                        : isfinite(c) && c != 0.0f;
                if (!good) {
                    fail_msg("gemm %s of %s: %g in row %zu, column %zu", variant,
                             grt_dtype_text(p.in), (double)c, row, (size_t)(j % p.n));
                }
            }
            free(got);
        }
        made_end(&x);
    }
}

// ---- the error of f32 ----

// The oracle's bound holds for any sum of k products; this one for a good one. With random signs,
// partial sums have the size of the root of the sum of squares, and k roundings of them, or another
// order of the same sum, make an error of about 2^-24 sqrt(k) of that. Three times that is allowed:
// sums in a row reach 2.1 of it.
static double worst(const struct made *x, const void *got) {
    const struct product *p = x->p;
    double most = 0;
    for (size_t i = 0; i < x->c.count; i++) {
        double sum = 0, squares = 0;
        for (size_t l = 0; l < p->k; l++) {
            double t = x->a.value[i / p->n * p->k + l] * x->b.value[l * p->n + i % p->n];
            sum += t;
            squares += t * t;
        }
        double allowed = 3 * 0x1p-24 * sqrt((double)p->k * squares) + 0x1p-126;
        double off = fabs((double)gemm_element(GRT_F32, got, i) - sum) / allowed;
        most = isnan(most) || off <= most ? most : off;  // a NaN is taken and stays
    }
    return most;
}

static void f32_error(void **state) {
    (void)state;
    static const uint64_t depths[] = {32, 64, 256, 1000};
    for (size_t d = 0; d < (test.small ? 1 : sizeof depths / sizeof *depths); d++) {
        const struct product p = {.m = 64, .n = 72, .k = depths[d], .in = GRT_F32, .out = GRT_F32};
        struct made x;
        made_begin(&x, &p);
        const char *variant = NULL;
        for (uint32_t i = 0; (variant = made_variant(&x, i)); i++) {
            void *got = made_run(&x, variant);
            double off = worst(&x, got);
            print_message("# k %llu, %s: %.3f of what is allowed\n", (unsigned long long)p.k,
                          variant, off);
            assert_true(off <= 1);
            free(got);
        }
        made_end(&x);
    }
}

static const struct CMUnitTest cases[] = {TEST_CASE(cut), TEST_CASE(scratch), TEST_CASE(same_bits),
                                          TEST_CASE(odd_sums), TEST_CASE(f32_error)};
TEST_SUITE(splitk, true, cases);
