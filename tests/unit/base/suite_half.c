// SPDX-License-Identifier: Apache-2.0
// 16-bit floats on the host, against the formats' definition.
#include "harness/harness.h"

#include <math.h>

#include "base/half.h"
#include "oracle/oracle.h"

static const struct {
    enum grt_dtype type;
    struct oracle_format format;
} types[] = {{GRT_F16, {5, 10}}, {GRT_BF16, {8, 7}}};

// Every pattern has its value, and comes back from it; NaN stays NaN.
static void every_pattern(void **state) {
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        for (uint32_t bits = 0; bits < 65536; bits++) {
            float value = grt_f32_of_16(types[t].type, (uint16_t)bits);
            if (oracle_is_nan(types[t].format, bits)) {
                assert_true(isnan(value));
                assert_true(oracle_is_nan(types[t].format, grt_16_of_f32(types[t].type, value)));
                continue;
            }
            assert_true((double)value == oracle_widen(types[t].format, bits));
            assert_int_equal(grt_16_of_f32(types[t].type, value), bits);
        }
    }
}

static void rounds_as_the_definition(size_t t, float value) {
    uint32_t want = oracle_narrow(types[t].format, (double)value);
    uint32_t got = grt_16_of_f32(types[t].type, value);
    if (got != want) {
        fail_msg("%s of %a is %#x, and %#x is right", grt_dtype_text(types[t].type), (double)value,
                 got, want);
    }
}

// Between each number and the next: the middle, which is a tie, and what lies on both sides of it.
static void every_tie(void **state) {
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        uint32_t infinity = types[t].type == GRT_F16 ? 0x7c00 : 0x7f80;
        for (uint32_t bits = 0; bits < infinity; bits++) {
            double low = oracle_widen(types[t].format, bits);
            // The largest number's tie lies where the next one would be.
            double step = bits + 1 < infinity ? oracle_widen(types[t].format, bits + 1) - low
                                              : low - oracle_widen(types[t].format, bits - 1);
            float middle = (float)(low + step / 2);
            for (int sign = -1; sign <= 1; sign += 2) {
                rounds_as_the_definition(t, (float)sign * middle);
                rounds_as_the_definition(t, (float)sign * nextafterf(middle, 0));
                rounds_as_the_definition(t, (float)sign * nextafterf(middle, INFINITY));
            }
        }
    }
}

static void any_number(void **state) {
    (void)state;
    uint64_t seed = 20;
    for (uint32_t i = 0; i < 200000; i++) {
        float value = test_as_f32(test_next(&seed));
        for (size_t t = 0; t < 2 && !isnan(value); t++) {
            rounds_as_the_definition(t, value);
            rounds_as_the_definition(t, value * 0x1p-100f);
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(every_pattern),
    TEST_CASE(every_tie),
    TEST_CASE(any_number),
};
TEST_SUITE(half, false, cases);
