// SPDX-License-Identifier: Apache-2.0
// NaN and infinity go through a product, by every variant: into their rows, and into no other. A
// training run finds out that it has diverged by them.
#include "kits/gemm_kit.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64, COLS = 32, DEEP = 32 };
enum { NAN_ROW = 3, NEGATIVE_NAN_ROW = 20, INFINITE_ROW = 41, INFINITE_AT = 7 };

static double at(const struct operand *a, uint64_t row, uint64_t col) {
    return a->value[row * DEEP + col];
}

// Floats in parts of bfloats make NaN of infinity minus infinity.
static bool is_infinite(float got, double factor, enum grt_dtype in) {
    return in == GRT_F32 && isnan(got) ? true : isinf(got) && (got > 0) == (factor > 0);
}

static void check(enum grt_dtype in, enum grt_dtype out) {
    const struct product p = {.m = ROWS, .n = COLS, .k = DEEP, .in = in, .out = out};
    struct made x;
    made_begin(&x, &p);
    for (uint64_t col = 0; col < COLS; col++) {
        x.b.value[INFINITE_AT * COLS + col] = col % 3 == 0 ? -1.0 : 1.5;
    }
    operand_write(&x.b);
    struct oracle_value *want = made_want(&x);
    x.a.value[NAN_ROW * DEEP] = (double)NAN;
    x.a.value[NEGATIVE_NAN_ROW * DEEP + 5] = copysign((double)NAN, -1);
    x.a.value[INFINITE_ROW * DEEP + INFINITE_AT] = (double)INFINITY;
    operand_write(&x.a);
    assert_true(isnan(at(&x.a, NAN_ROW, 0)) && isnan(at(&x.a, NEGATIVE_NAN_ROW, 5)));
    for (uint32_t v = 0; made_variant(&x, v); v++) {
        const char *name = made_variant(&x, v);
        void *got = made_run(&x, name);
        for (uint64_t i = 0; i < ROWS * COLS; i++) {
            uint64_t row = i / COLS, col = i % COLS;
            float c = gemm_element(out, got, i);
            double factor = x.b.value[INFINITE_AT * COLS + col];
            bool right = row == NAN_ROW || row == NEGATIVE_NAN_ROW ? isnan(c)
                         : row == INFINITE_ROW                     ? is_infinite(c, factor, in)
                                               : fabs((double)c - want[i].value) <= want[i].bound;
            if (!right) {
                fail_msg("gemm %s %s>%s: c[%llu][%llu] is %g", name, grt_dtype_text(in),
                         grt_dtype_text(out), (unsigned long long)row, (unsigned long long)col,
                         (double)c);
            }
        }
        free(got);
    }
    free(want);
    made_end(&x);
}

static void products(void **state) {
    (void)state;
    check(GRT_F32, GRT_F32);
    check(GRT_F16, GRT_F16);
    check(GRT_BF16, GRT_BF16);
    check(GRT_BF16, GRT_F32);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(products),
};
TEST_SUITE(nonfinite, true, cases);
