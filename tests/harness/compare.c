// SPDX-License-Identifier: Apache-2.0
// Comparisons: each difference prints device, kernel, index, both values and the bound; after a few
// of them only their number.
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 5

struct test_compare test_compare(const struct grt_dev *dev, const char *format, ...) {
    // Lives as long as the comparison: one at a time.
    static char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return (struct test_compare){.dev = dev, .what = what};
}

static bool shown(struct test_compare *c, uint64_t index) {
    c->bad++;
    if (c->bad <= SHOWN) {
        print_error("%s %s [%llu]: ", c->dev ? grt_dev_info(c->dev)->selector : "host", c->what,
                    (unsigned long long)index);
    }
    return c->bad <= SHOWN;
}

void test_compare_value(struct test_compare *c, uint64_t index, float got,
                        struct oracle_value want) {
    if (!oracle_agrees(got, want) && shown(c, index)) {
        print_error("got %.9g (%08x), want %.17g within %.3g, off by %.3g\n", (double)got,
                    test_as_u32(got), want.value, want.bound, (double)got - want.value);
    }
}

void test_compare_exact(struct test_compare *c, uint64_t index, double got, double want) {
    if (!(got == want) && shown(c, index)) {
        print_error("got %.17g, want %.17g exactly\n", got, want);
    }
}

void test_compare_bits(struct test_compare *c, uint64_t index, uint32_t got, uint32_t want) {
    if (got != want && shown(c, index)) {
        print_error("got %08x (%.9g), want the bits %08x (%.9g)\n", got, (double)test_as_f32(got),
                    want, (double)test_as_f32(want));
    }
}

void test_compare_end(const struct test_compare *c) {
    if (c->bad > 0) {
        print_error("%s %s: %llu differences\n", c->dev ? grt_dev_info(c->dev)->selector : "host",
                    c->what, (unsigned long long)c->bad);
    }
    assert_int_equal(c->bad, 0);
}

void test_same(const struct grt_dev *dev, const char *what, const void *got, const void *want,
               size_t element, size_t count) {
    if (memcmp(got, want, element * count) == 0) {
        return;
    }
    struct test_compare c = {.dev = dev, .what = what};
    for (size_t i = 0; i < count; i++) {
        uint32_t a = 0;
        uint32_t b = 0;
        memcpy(&a, (const unsigned char *)got + i * element, element);
        memcpy(&b, (const unsigned char *)want + i * element, element);
        test_compare_bits(&c, i, a, b);
    }
    test_compare_end(&c);
}

static bool same_float(float a, float b) {
    bool flushed = fabs((double)a) < ORACLE_TINY && fabs((double)b) < ORACLE_TINY;
    return test_as_u32(a) == test_as_u32(b) || (isnan(a) && isnan(b)) || flushed;
}

void test_same_floats(const struct grt_dev *dev, const char *what, const float *got,
                      const float *want, size_t count) {
    struct test_compare c = {.dev = dev, .what = what};
    for (size_t i = 0; i < count; i++) {
        if (!same_float(got[i], want[i])) {
            test_compare_bits(&c, i, test_as_u32(got[i]), test_as_u32(want[i]));
        }
    }
    test_compare_end(&c);
}
