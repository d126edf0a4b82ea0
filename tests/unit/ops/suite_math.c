// SPDX-License-Identifier: Apache-2.0
// The functions of shaders/lib/math.k: each over the floats of its range, against libm in double
// precision within the bounds of tests/oracle/math.c, and bit for bit against the C reading. The
// bounds hold for every float; here every `step`-th is taken, but for those where all are few
// enough. Those of shaders/lib/quick.k keep their bounds, with other bits on each kind of device.
#include "harness/harness.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define BLOCK (1u << 21)  // floats at a time

// In the order of math_probe.k.
#define FUNCTIONS(X)                                                                               \
    X(RECIP, "recip")                                                                              \
    X(DIV, "div")                                                                                  \
    X(SQRT, "sqrt")                                                                                \
    X(EXP, "exp")                                                                                  \
    X(LOG, "log")                                                                                  \
    X(TANH, "tanh")                                                                                \
    X(SIGMOID, "sigmoid")                                                                          \
    X(ERF, "erf")                                                                                  \
    X(SIN, "sin")                                                                                  \
    X(COS, "cos")                                                                                  \
    X(SIN_TURN, "sin_turn")                                                                        \
    X(COS_TURN, "cos_turn")                                                                        \
    X(QUICK_RCP, "quick_rcp")                                                                      \
    X(QUICK_RSQRT, "quick_rsqrt")                                                                  \
    X(QUICK_SIN, "quick_sin")                                                                      \
    X(QUICK_COS, "quick_cos")                                                                      \
    X(QUICK_TANH, "quick_tanh")

enum function {
#define X(name, text) name,
    FUNCTIONS(X)
#undef X
};
static const char *const names[] = {
#define X(name, text) text,
    FUNCTIONS(X)
#undef X
};

static void evaluate(struct grt_dev *dev, enum function f, const float *a, const float *b,
                     uint32_t count, float *y) {
    const struct grt_kernel *kernel =
        grt_kernel_get(dev, grt_kernel_desc(.name = "math_probe",
                                            .specs = {{"WG", 64}, {"FUNCTION", (uint32_t)f}}));
    assert_non_null(kernel);
    struct test_tensor ta = test_tensor(dev, GRT_F32, count, 0);
    struct test_tensor tb = test_tensor(dev, GRT_F32, count, 0);
    struct test_tensor ty = test_tensor(dev, GRT_F32, count, 0);
    test_tensor_write(&ta, a);
    test_tensor_write(&tb, b);
    uint32_t groups = (count + 63) / 64;
    struct grt_graph *graph = grt_graph_create(dev, "math probe");
    grt_graph_dispatch(
        graph, grt_dispatch(.kernel = kernel, .params = &count, .params_size = sizeof count,
                            .groups = {groups < 1024 ? groups : 1024},
                            .bindings = {ta.tensor.range, tb.tensor.range, ty.tensor.range}));
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    test_tensor_read(&ty, y);
    test_tensor_end(&ta);
    test_tensor_end(&tb);
    test_tensor_end(&ty);
}

static void check(enum function f, const float *a, const float *b, uint32_t count) {
    float *got = test_alloc(count * sizeof *got);
    evaluate(test.dev, f, a, b, count, got);
    if (!test.on_ref && f < QUICK_RCP) {
        // The bits of ref, which has met the oracle at the same numbers.
        float *ref = test_alloc(count * sizeof *ref);
        evaluate(test.ref, f, a, b, count, ref);
        test_same_floats(test.dev, names[f], got, ref, count);
        free(ref);
        free(got);
        return;
    }
    struct test_compare compare = test_compare(test.dev, "%s", names[f]);
    for (uint32_t i = 0; i < count; i++) {
        struct oracle_value want = oracle_math(names[f], (double)a[i], (double)b[i]);
        if (!oracle_agrees(got[i], want)) {
            print_error("of %.9g, %.9g: ", (double)a[i], (double)b[i]);
        }
        test_compare_value(&compare, i, got[i], want);
        assert_false(f == QUICK_TANH && fabsf(got[i]) > 1.0f);
    }
    test_compare_end(&compare);
    free(got);
}

static void ranges(void **state) {
    (void)state;
    static const struct {
        enum function f;
        uint32_t first, last, step;  // bits of floats
    } rows[] = {
        {RECIP, 0x3f800000, 0x40000000,
         1},  // of every other power of two the fractions are the same
        {RECIP, 0x00800000, 0x7e800000, 1009},
        {RECIP, 0x80800000, 0xfe800000, 1009},
        {SQRT, 0x00000001, 0x007fffff, 1},  // every subnormal number
        {SQRT, 0x3f800000, 0x407fffff, 1},  // every fraction, of both kinds of exponent
        {SQRT, 0x00800000, 0x7f7fffff, 1009},
        {EXP, 0x30000000, 0x42b17217, 211},
        {EXP, 0xb0000000, 0xc2aeac4f, 211},
        {LOG, 0x3f000000, 0x40000000, 7},  // near 1 the result is near 0
        {LOG, 0x00800000, 0x7f7fffff, 1009},
        {TANH, 0x00800000, 0x7f7fffff, 1009},
        {TANH, 0x3e800000, 0x41200000, 41},
        {TANH, 0xbe800000, 0xc1200000, 41},
        {SIGMOID, 0x30000000, 0x42b17218, 211},
        {SIGMOID, 0xb0000000, 0xc2ae0000, 211},
        {ERF, 0x00800000, 0x7f7fffff, 1009},
        {ERF, 0x3d000000, 0x40800000, 41},
        {ERF, 0xbd000000, 0xc0800000, 41},
        {SIN, 0x3f000000, 0x46000000, 101},
        {SIN, 0xb0000000, 0xc6000000, 301},
        {COS, 0x3f000000, 0x46000000, 101},
        {COS, 0xb0000000, 0xc6000000, 301},
        {SIN_TURN, 0x30000000, 0x45800000, 301},
        {SIN_TURN, 0xb0000000, 0xc5800000, 301},
        {COS_TURN, 0x30000000, 0x45800000, 301},
        {QUICK_RCP, 0x3f800000, 0x40000000, 1},
        {QUICK_RCP, 0x00800000, 0x7e7fffff, 1009},  // whose reciprocals are normal too
        {QUICK_RSQRT, 0x3f800000, 0x40ffffff, 3},
        {QUICK_RSQRT, 0x00800000, 0x7f7fffff, 1009},
        {QUICK_SIN, 0x30000000, 0x40000000, 101},
        {QUICK_SIN, 0xb0000000, 0xc0000000, 301},
        {QUICK_COS, 0x30000000, 0x40000000, 101},
        {QUICK_COS, 0xb0000000, 0xc0000000, 301},
        {QUICK_TANH, 0x01000000, 0x7f7fffff, 1009},
        {QUICK_TANH, 0x3c000000, 0x41200000, 41},  // where 1 is not yet the nearest
        {QUICK_TANH, 0xbc000000, 0xc1200000, 41},
    };
    // A driver on the CPU, which takes longer than ref, has the bits of ref at every seventh.
    const bool slow = !test.on_ref && grt_dev_info(test.dev)->caps.software;
    float *a = test_alloc(BLOCK * sizeof *a);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint64_t step = (uint64_t)rows[r].step * (test.small                 ? 4001
                                                  : slow && rows[r].step < 7 ? 7
                                                                             : 1);
        uint64_t next = rows[r].first;
        while (next <= rows[r].last) {
            uint32_t count = 0;
            for (; count < BLOCK && next <= rows[r].last; next += step) {
                a[count] = test_as_f32((uint32_t)next);
                count++;
            }
            check(rows[r].f, a, a, count);
        }
    }
    free(a);
}

// Operands and quotient away from the ends of the range.
static void quotients(void **state) {
    (void)state;
    uint32_t count = test.small ? 1000 : BLOCK;
    float *a = test_alloc(count * sizeof *a);
    float *b = test_alloc(count * sizeof *b);
    uint64_t seed = 5;
    for (uint32_t i = 0; i < count; i++) {
        a[i] = test_float(&seed, TEST_WIDE);
        b[i] = test_float(&seed, TEST_WIDE);
        b[i] = b[i] == 0 ? 3.0f : b[i];
    }
    check(DIV, a, b, count);
    free(a);
    free(b);
}

static void ends(void **state) {
    (void)state;
    static const float values[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, FLT_MIN};
    enum { COUNT = sizeof values / sizeof values[0] };
    for (int f = RECIP; f <= ERF; f++) {
        if (f != DIV) {
            check((enum function)f, values, values, COUNT);
        }
    }
    check(QUICK_TANH, values, values, COUNT - 1);  // the smallest may become 0
    static const float of_root[] = {FLT_MAX, -FLT_MIN, -1e-40f, 1e-40f, 1e-45f, -FLT_MAX};
    check(SQRT, of_root, of_root, sizeof of_root / sizeof of_root[0]);
}

static const struct CMUnitTest cases[] = {TEST_CASE(ranges), TEST_CASE(quotients), TEST_CASE(ends)};
TEST_SUITE(math, true, cases);
