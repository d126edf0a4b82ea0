// SPDX-License-Identifier: Apache-2.0
// The oracles against known answers: who judges must be judged first.
#include "harness/harness.h"

#include <float.h>
#include <math.h>

// The rows of philox4x32 with 10 rounds in kat_vectors of Random123, the authors' library.
static void philox_known_answers(void **state) {
    (void)state;
    static const uint32_t rows[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int row = 0; row < 3; row++) {
        uint32_t block[4];
        oracle_philox(rows[row], rows[row] + 4, block);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(block[i], rows[row][6 + i]);
        }
    }
}

// IEEE 754-2008 binary16 and bfloat16, by hand.
static void narrow_known_answers(void **state) {
    (void)state;
    static const struct {
        double value;
        uint32_t f16, bf16;
    } rows[] = {
        {0.0, 0x0000, 0x0000},
        {-0.0, 0x8000, 0x8000},
        {1.0, 0x3c00, 0x3f80},
        {-2.0, 0xc000, 0xc000},
        {0.1, 0x2e66, 0x3dcd},
        {65504.0, 0x7bff, 0x4780},  // largest half; bf16 rounds it to 65536
        {65519.0, 0x7bff, 0x4780},
        {65520.0, 0x7c00, 0x4780},  // tie: up to infinity
        {0x1p-24, 0x0001, 0x3380},  // smallest half
        {0x1p-25, 0x0000, 0x3300},  // tie: down to zero
        {0x1.000002p-25, 0x0001, 0x3300},
        {0x1.8p-24, 0x0002, 0x33c0},    // tie: to even
        {0x1.ff8p-15, 0x03ff, 0x3880},  // largest half below the normal ones
        {0x1.ffcp-15, 0x0400, 0x3880},  // tie: up to the smallest normal one
        {0x1.01p0, 0x3c04, 0x3f80},     // tie in bf16: to even
        {0x1.03p0, 0x3c0c, 0x3f82},
        {(double)FLT_MAX, 0x7c00, 0x7f80},
        {0x1p-133, 0x0000, 0x0001},  // smallest bf16
        {0x1p-134, 0x0000, 0x0000},
        {(double)INFINITY, 0x7c00, 0x7f80},
        {-(double)INFINITY, 0xfc00, 0xff80},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(oracle_narrow(oracle_f16, rows[i].value), rows[i].f16);
        assert_int_equal(oracle_narrow(oracle_bf16, rows[i].value), rows[i].bf16);
    }
    assert_true(oracle_is_nan(oracle_f16, oracle_narrow(oracle_f16, (double)NAN)));
    assert_true(oracle_is_nan(oracle_bf16, oracle_narrow(oracle_bf16, (double)NAN)));
}

// The compiler's own float is the judge of f32; every 16-bit pattern comes back.
static void formats_round_trip(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        if (!oracle_is_nan(oracle_f16, bits)) {
            assert_int_equal(oracle_narrow(oracle_f16, oracle_widen(oracle_f16, bits)), bits);
        }
        if (!oracle_is_nan(oracle_bf16, bits)) {
            double wide = (double)test_as_f32(bits << 16);
            assert_true(oracle_widen(oracle_bf16, bits) == wide);
            assert_int_equal(oracle_narrow(oracle_bf16, wide), bits);
        }
    }
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        uint32_t bits = test_next(&seed);
        double exact = (double)test_as_f32(bits);
        if (!isnan(exact)) {
            assert_true(oracle_widen(oracle_f32, bits) == exact);
            double between = exact * (1.0 + test_unit(&seed) * 0x1p-22);
            assert_int_equal(oracle_narrow(oracle_f32, between), test_as_u32((float)between));
        }
    }
}

static void agreement(void **state) {
    (void)state;
    assert_true(oracle_agrees(1.0f, (struct oracle_value){1.0, 0}));
    assert_false(oracle_agrees(1.0f, (struct oracle_value){1.001, 0.0005}));
    assert_true(oracle_agrees(NAN, (struct oracle_value){(double)NAN, 0}));
    assert_false(oracle_agrees(NAN, (struct oracle_value){1.0, 1e9}));
    assert_false(oracle_agrees(1.0f, (struct oracle_value){(double)NAN, 0}));
    assert_true(oracle_agrees(INFINITY, (struct oracle_value){1e39, 1e31}));
    assert_false(oracle_agrees(-INFINITY, (struct oracle_value){1e39, 1e31}));
    assert_false(oracle_agrees(INFINITY, (struct oracle_value){1e38, 1e31}));
    assert_false(oracle_agrees(FLT_MAX, (struct oracle_value){(double)INFINITY, 1}));
}

// Values from the math module of CPython 3.11.
static void map_known_answers(void **state) {
    (void)state;
    assert_true(fabs(oracle_map("gelu", 1.0, 0, 0, 0).value - 0.8411919906082768) < 1e-15);
    assert_true(fabs(oracle_map("gelu", -3.0, 0, 0, 0).value - -0.0036373920817729943) < 1e-15);
    assert_true(fabs(oracle_map("sigmoid", 2.0, 0, 0, 0).value - 0.8807970779778823) < 1e-15);
    assert_true(oracle_map("scale", 3.0, 0, 2, 1).value == 7.0);
    assert_true(oracle_map("add", 3.0, 5.0, 2, -1).value == 1.0);
    assert_true(oracle_map("clamp", 3.0, 0, -1, 2).value == 2.0);
    assert_true(isnan(oracle_map("nonsense", 1, 1, 1, 1).bound));
#define X(name, text, arity) assert_false(isnan(oracle_map(text, 0.5, 0.25, 1, 1).bound));
    GRT_MAPS(X)
#undef X
}

static void reduce_known_answers(void **state) {
    (void)state;
    const float x[5] = {3, -4, 12, 12, 0};
    assert_true(oracle_reduce("sum", x, 5).value == 23);
    assert_true(oracle_reduce("mean", x, 5).value == 4.6);
    assert_true(oracle_reduce("norm", x, 3).value == 13);
    assert_true(oracle_reduce("max", x, 5).value == 12);
    assert_int_equal(oracle_argmax(x, 5), 2);
    const float with_nan[3] = {1, NAN, 5};
    assert_true(isnan(oracle_reduce("max", with_nan, 3).value));
}

static void shape_known_answers(void **state) {
    (void)state;
    const uint16_t x[6] = {1, 2, 3, 4, 5, 6};
    const uint16_t want[6] = {1, 4, 2, 5, 3, 6};
    uint16_t y[6];
    oracle_transpose(y, x, 2, 3, 2);
    assert_memory_equal(y, want, sizeof want);
}

// From rest, a push to the right, worked by hand: 10 / 1.1 N per kg, then -600/41 rad/s^2.
static void cartpole_known_answers(void **state) {
    (void)state;
    struct oracle_cartpole s = oracle_cartpole_step((struct oracle_cartpole){0, 0, 0, 0}, true);
    assert_true(s.x == 0 && s.theta == 0);
    assert_true(fabs(s.x_dot - 0.1951219512195122) < 1e-12);
    assert_true(fabs(s.theta_dot - -0.2926829268292683) < 1e-12);
}

// Steps of Gymnasium; a cart-pole's step gives 1, also the one that ends the episode.
static void gym_known_answers(void **state) {
    (void)state;
    static const double carts[][11] = {
#include "golden/gym_cartpole.inc"
    };
    for (size_t i = 0; i < sizeof carts / sizeof carts[0]; i++) {
        const double *row = carts[i];
        const struct oracle_cartpole from = {row[0], row[1], row[2], row[3]};
        struct oracle_cartpole s = oracle_cartpole_step(from, row[4] == 1);
        bool done = fabs(s.x) > ORACLE_CARTPOLE_X || fabs(s.theta) > ORACLE_CARTPOLE_THETA;
        assert_true(fabs(s.x - row[6]) + fabs(s.x_dot - row[7]) < 1e-12);
        assert_true(fabs(s.theta - row[8]) + fabs(s.theta_dot - row[9]) < 1e-12);
        assert_true(row[5] == 1 && done == (row[10] == 1));
    }
    static const double pendulums[][6] = {
#include "golden/gym_pendulum.inc"
    };
    for (size_t i = 0; i < sizeof pendulums / sizeof pendulums[0]; i++) {
        const double *row = pendulums[i];
        const struct oracle_pendulum from = {row[0], row[1]};
        struct oracle_pendulum s = oracle_pendulum_step(from, row[2]);
        assert_true(fabs(oracle_pendulum_reward(from, row[2]) - row[3]) < 1e-12);
        assert_true(fabs(remainder(s.angle - row[4], 2 * ORACLE_PI)) < 1e-12);
        assert_true(fabs(s.rate - row[5]) < 1e-12);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(philox_known_answers), TEST_CASE(narrow_known_answers),
    TEST_CASE(formats_round_trip),   TEST_CASE(agreement),
    TEST_CASE(map_known_answers),    TEST_CASE(reduce_known_answers),
    TEST_CASE(shape_known_answers),  TEST_CASE(cartpole_known_answers),
    TEST_CASE(gym_known_answers),
};
TEST_SUITE(oracle, false, cases);
