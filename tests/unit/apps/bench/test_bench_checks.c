// SPDX-License-Identifier: Apache-2.0
// The checks of `gpurt bench gemm` and `bench conv` can fail: results that are right, that were not
// written, that are no number, and that are off by a little more or less than is allowed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "bench/bench_conv.h"
#include "bench/gemm/bench_gemm_case.h"
#include "cli/talk.h"

enum bench_outcome bench_failure(void) {
    return BENCH_BROKEN;
}

// Whole numbers from -3 to 3, another sequence for each seed: sums of their products are exact.
static int small(uint32_t seed, uint64_t i) {
    uint32_t x = (uint32_t)(i * 2654435761u) ^ seed * 40503u;
    x ^= x >> 13;
    return (int)(x * 2246822519u >> 16) % 7 - 3;
}

static void store(enum grt_dtype dtype, void *array, uint64_t i, double value) {
    if (dtype == GRT_F32) {
        ((float *)array)[i] = (float)value;
    } else {
        ((uint16_t *)array)[i] = grt_16_of_f32(dtype, (float)value);
    }
}

// ---- products ----

static enum bench_outcome judge(const struct bench_gemm_case *g) {
    double error = -1;
    return bench_gemm_check(g, "made-up", &error);
}

// Two products of 3x5 and 5x4, stored in all four ways: every place of the result is looked at.
static void products(void **state) {
    enum { Z = 2, M = 3, N = 4, K = 5 };
    (void)state;
    for (int way = 0; way < 4; way++) {
        float a[Z * M * K], b[Z * K * N], c[Z * M * N];
        double error = -1;
        struct bench_gemm_case g = {.shape = {M, N, K},
                                    .batch = Z,
                                    .in = GRT_F32,
                                    .out = GRT_F32,
                                    .a_transposed = way & 1,
                                    .b_transposed = way & 2,
                                    .host_a = a,
                                    .host_b = b,
                                    .host_c = c};
        memset(c, 0, sizeof c);
        for (uint64_t z = 0; z < Z; z++) {
            for (uint64_t l = 0; l < K; l++) {
                for (uint64_t i = 0; i < M; i++) {
                    uint64_t at = (z * M + i) * K + l;
                    a[way & 1 ? (z * K + l) * M + i : at] = (float)small(1, at);
                }
                for (uint64_t j = 0; j < N; j++) {
                    uint64_t at = (z * K + l) * N + j;
                    b[way & 2 ? (z * N + j) * K + l : at] = (float)small(2, at);
                }
                for (uint64_t i = 0; i < (uint64_t)M * N; i++) {
                    c[z * M * N + i] += (float)(small(1, (z * M + i / N) * K + l) *
                                                small(2, (z * K + l) * N + i % N));
                }
            }
        }
        assert_int_equal(bench_gemm_check(&g, "made-up", &error), BENCH_GOOD);
        assert_true(error == 0);
        for (int i = 0; i < Z * M * N; i++) {
            float was = c[i];
            c[i] = was + 1;
            assert_int_equal(judge(&g), BENCH_WRONG);
            c[i] = NAN;
            assert_int_equal(judge(&g), BENCH_WRONG);
            memset(&c[i], 0xff, sizeof *c);  // as it was before the product
            assert_int_equal(judge(&g), BENCH_WRONG);
            c[i] = was;
        }
        assert_int_equal(judge(&g), BENCH_GOOD);
        assert_true(bench_gemm_case_flops(&g) == 2.0 * Z * M * N * K);
    }
}

// 1 - 1 + 1 - 1: a sum of nothing whose terms have a root of squares of 2. What is allowed of
// sqrt(4) roundings is four times 2^-24 in f32 and 32 times in others, and the last digit.
static void what_is_allowed(void **state) {
    (void)state;
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    for (size_t t = 0; t < 3; t++) {
        enum grt_dtype dtype = types[t];
        uint32_t a[4], b[4], c[1];
        double error = -1;
        struct bench_gemm_case g = {.shape = {1, 1, 4},
                                    .batch = 1,
                                    .in = dtype,
                                    .out = dtype,
                                    .host_a = a,
                                    .host_b = b,
                                    .host_c = c};
        for (uint64_t l = 0; l < 4; l++) {
            store(dtype, a, l, l % 2 ? -1 : 1);
            store(dtype, b, l, 1);
        }
        double allowed = (dtype == GRT_F32 ? 4 : 32) * 0x1p-24 * 2 * 2;
        allowed += dtype == GRT_F16 ? 0x1p-25 : 0;
        for (int sign = -1; sign <= 1; sign += 2) {
            store(dtype, c, 0, sign * 0.9 * allowed);
            assert_int_equal(bench_gemm_check(&g, "made-up", &error), BENCH_GOOD);
            assert_true(fabs(error - 0.9) < 0.01);
            store(dtype, c, 0, sign * 1.1 * allowed);
            assert_int_equal(bench_gemm_check(&g, "made-up", &error), BENCH_WRONG);
            assert_true(fabs(error - 1.1) < 0.01);
        }
        // 1 times 1: half of the last digit more is allowed of a result in 16 bits.
        double digit = dtype == GRT_F32 ? 0x1p-23 : dtype == GRT_F16 ? 0x1p-10 : 0x1p-7;
        g.shape.k = 1;
        store(dtype, c, 0, 1 - digit / 2);
        assert_int_equal(judge(&g), BENCH_GOOD);
        store(dtype, c, 0, 1 + (dtype == GRT_F32 ? 4 : 1) * digit);
        assert_int_equal(judge(&g), BENCH_WRONG);
    }
}

// One that is too large to be looked at everywhere: its ends are always.
static void large_product(void **state) {
    enum { N = 4099, K = 1024 };
    (void)state;
    float *a = malloc(K * sizeof *a), *b = malloc(sizeof *b * N * K), *c = malloc(N * sizeof *c);
    struct bench_gemm_case g = {.shape = {1, N, K},
                                .batch = 1,
                                .in = GRT_F32,
                                .out = GRT_F32,
                                .host_a = a,
                                .host_b = b,
                                .host_c = c};
    assert_true(a && b && c);
    for (size_t i = 0; i < (size_t)N * K; i++) {
        b[i] = 1;
        a[i % K] = 1;
        c[i % N] = K;
    }
    assert_int_equal(judge(&g), BENCH_GOOD);
    for (int i = 0; i < 2; i++) {
        c[i * (N - 1)] = 0;
        assert_int_equal(judge(&g), BENCH_WRONG);
        c[i * (N - 1)] = K;
    }
    memset(&c[N / 2], 0xff, sizeof *c);
    assert_int_equal(judge(&g), BENCH_WRONG);
    free(a);
    free(b);
    free(c);
}

// ---- convolutions ----

enum {
    ROWS = 2,
    HEIGHT = 4,
    WIDTH = 5,
    CHANNELS = 2,
    OUTPUTS = 3,
    SIZE = 3,
    STRIDE = 2,
    PADDING = 1
};
enum { DOWN = 2, ACROSS = 3 };  // pixels of a result

// Windows by their definition: what each pass adds to what, tap by tap.
static void convolve(float *const arrays[3], uint32_t written) {
    float *x = arrays[BENCH_CONV_X], *w = arrays[BENCH_CONV_W], *y = arrays[BENCH_CONV_Y];
    for (int i = 0; i < ROWS * DOWN * ACROSS * OUTPUTS * SIZE * SIZE * CHANNELS; i++) {
        int c = i % CHANNELS, kx = i / CHANNELS % SIZE, ky = i / CHANNELS / SIZE % SIZE;
        int rest = i / CHANNELS / SIZE / SIZE;
        int o = rest % OUTPUTS, ox = rest / OUTPUTS % ACROSS, oy = rest / OUTPUTS / ACROSS % DOWN;
        int n = rest / OUTPUTS / ACROSS / DOWN;
        int top = oy * STRIDE + ky - PADDING, left = ox * STRIDE + kx - PADDING;
        if (top < 0 || left < 0 || top >= HEIGHT || left >= WIDTH) {
            continue;
        }
        float *px = &x[((n * HEIGHT + top) * WIDTH + left) * CHANNELS + c];
        float *pw = &w[((o * SIZE + ky) * SIZE + kx) * CHANNELS + c];
        float *py = &y[((n * DOWN + oy) * ACROSS + ox) * OUTPUTS + o];
        *(written == BENCH_CONV_X   ? px
          : written == BENCH_CONV_W ? pw
                                    : py) += written == BENCH_CONV_X   ? *py * *pw
                                             : written == BENCH_CONV_W ? *py * *px
                                                                       : *px * *pw;
    }
}

static void convolutions(void **state) {
    static const enum grt_conv_pass passes[3] = {[BENCH_CONV_X] = GRT_CONV_DATA,
                                                 [BENCH_CONV_W] = GRT_CONV_WEIGHT,
                                                 [BENCH_CONV_Y] = GRT_CONV_FORWARD};
    (void)state;
    for (uint32_t written = 0; written < 3; written++) {
        float x[ROWS * HEIGHT * WIDTH * CHANNELS], w[OUTPUTS * SIZE * SIZE * CHANNELS];
        float y[ROWS * DOWN * ACROSS * OUTPUTS];
        float *const arrays[3] = {x, w, y};
        struct bench_conv_run r = {
            .s = {ROWS, HEIGHT, WIDTH, CHANNELS, OUTPUTS, SIZE, STRIDE, PADDING},
            .pass = passes[written],
            .type = GRT_F32,
            .tensors = {{.dtype = GRT_F32, .rank = 4, .shape = {ROWS, HEIGHT, WIDTH, CHANNELS}},
                        {.dtype = GRT_F32, .rank = 4, .shape = {OUTPUTS, SIZE, SIZE, CHANNELS}},
                        {.dtype = GRT_F32, .rank = 4, .shape = {ROWS, DOWN, ACROSS, OUTPUTS}}},
            .host = {x, w, y},
            .written = written,
            .variant = "made-up"};
        for (uint32_t k = 0; k < 3; k++) {
            for (uint64_t i = 0; i < grt_tensor_count(&r.tensors[k]); i++) {
                arrays[k][i] = k == written ? 0 : (float)small(k, i);
            }
        }
        convolve(arrays, written);
        assert_int_equal(bench_conv_compare(&r), BENCH_GOOD);
        assert_true(r.error == 0);
        uint64_t count = grt_tensor_count(&r.tensors[written]);
        for (int i = 0; i < 2; i++) {
            float *at = &arrays[written][i ? count - 1 : 0], was = *at;
            *at = was + 1;
            assert_int_equal(bench_conv_compare(&r), BENCH_WRONG);
            *at = NAN;
            assert_int_equal(bench_conv_compare(&r), BENCH_WRONG);
            *at = was;
        }
        for (uint64_t i = 0; i < count; i++) {  // also where no sum is made
            float was = arrays[written][i];
            memset(&arrays[written][i], 0xff, sizeof(float));
            assert_int_equal(bench_conv_compare(&r), BENCH_WRONG);
            arrays[written][i] = was;
        }
        assert_int_equal(bench_conv_compare(&r), BENCH_GOOD);
    }
}

// A window of one pixel of four channels, 1 - 1 + 1 - 1 as above. Each product of the patches' way
// back may be rounded.
static void what_is_allowed_of_a_window(void **state) {
    static const enum grt_dtype types[] = {GRT_F32, GRT_F16, GRT_BF16};
    (void)state;
    for (size_t t = 0; t < 6; t++) {
        enum grt_dtype dtype = types[t % 3];
        bool back = t >= 3;
        uint32_t x[4], w[4], y[4];
        struct bench_conv_run r = {
            .s = {1, 1, 1, back ? 1 : 4, back ? 4 : 1, 1, 1, 0},
            .pass = back ? GRT_CONV_DATA : GRT_CONV_FORWARD,
            .type = dtype,
            .tensors = {{.dtype = dtype, .rank = 4, .shape = {1, 1, 1, back ? 1 : 4}},
                        {.dtype = dtype, .rank = 4, .shape = {back ? 4 : 1, 1, 1, back ? 1 : 4}},
                        {.dtype = dtype, .rank = 4, .shape = {1, 1, 1, back ? 4 : 1}}},
            .host = {x, w, y},
            .written = back ? BENCH_CONV_X : BENCH_CONV_Y,
            .variant = "patches"};
        for (uint64_t l = 0; l < 4; l++) {
            store(dtype, back ? y : x, l, l % 2 ? -1 : 1);
            store(dtype, w, l, 1);
        }
        double unit = dtype == GRT_F16 ? 0x1p-11 : dtype == GRT_BF16 ? 0x1p-8 : 0;
        double allowed = (dtype == GRT_F32 ? 4 : 32) * 0x1p-24 * sqrt(5) * 2;
        allowed += (unit > 0 ? 0x1p-25 : 0) + (back ? 2 * unit * 2 : 0);
        for (int sign = -1; sign <= 1; sign += 2) {
            store(dtype, r.host[r.written], 0, sign * 0.9 * allowed);
            assert_int_equal(bench_conv_compare(&r), BENCH_GOOD);
            assert_true(fabs(r.error - 0.9) < 0.01);
            store(dtype, r.host[r.written], 0, sign * 1.1 * allowed);
            assert_int_equal(bench_conv_compare(&r), BENCH_WRONG);
        }
        if (back) {
            r.variant = "other";
            store(dtype, x, 0, 0.5 * allowed);
            assert_int_equal(bench_conv_compare(&r), dtype == GRT_F32 ? BENCH_GOOD : BENCH_WRONG);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(what_is_allowed),
        cmocka_unit_test(large_product),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(what_is_allowed_of_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
