// SPDX-License-Identifier: Apache-2.0
// Conversions between f32, f16 and bf16: every 16-bit number, every tie between two of them and its
// neighbours, in every direction, exactly as the oracle rounds.
#include "harness/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct operands {
    const struct grt_tensor *y, *x;
};

static void record(struct grt_graph *graph, void *context) {
    const struct operands *o = context;
    grt_op_convert(graph, o->y, o->x);
}

// Converts on `dev`; the result is allocated.
static void *convert(struct grt_dev *dev, enum grt_dtype to, enum grt_dtype from, const void *data,
                     size_t count) {
    struct test_tensor x = test_tensor(dev, from, count, 0);
    struct test_tensor y = test_tensor(dev, to, count, 0);
    test_tensor_write(&x, data);
    struct operands o = {&y.tensor, &x.tensor};
    void *result = test_run_filled(&y, record, &o);
    void *after = test_alloc(x.bytes);
    test_tensor_read(&x, after);
    assert_true(memcmp(after, data, x.bytes) == 0);
    free(after);
    test_tensor_end(&x);
    test_tensor_end(&y);
    return result;
}

static uint32_t element(const void *data, enum grt_dtype dtype, size_t i) {
    return dtype == GRT_F32 ? ((const uint32_t *)data)[i] : ((const uint16_t *)data)[i];
}

// Against the oracle, NaN for NaN, and against the C reading, bit for bit.
static void check(enum grt_dtype to, enum grt_dtype from, const void *data, size_t count) {
    void *got = convert(test.dev, to, from, data, count);
    struct test_compare c = test_compare(test.dev, "convert %s to %s of %zu", grt_dtype_text(from),
                                         grt_dtype_text(to), count);
    for (size_t i = 0; i < count; i++) {
        double value = oracle_widen(test_format(from), element(data, from, i));
        uint32_t want = oracle_narrow(test_format(to), value);
        uint32_t bits = element(got, to, i);
        if (!isnan(value) || !oracle_is_nan(test_format(to), bits)) {
            test_compare_bits(&c, i, bits, want);
        }
    }
    test_compare_end(&c);
    if (!test.on_ref) {
        void *ref = convert(test.ref, to, from, data, count);
        char what[64];
        snprintf(what, sizeof what, "convert %s to %s, ref", grt_dtype_text(from),
                 grt_dtype_text(to));
        test_same(test.dev, what, got, ref, grt_dtype_size(to), count);
        free(ref);
    }
    free(got);
}

static void all_16_bit_numbers(void **state) {
    (void)state;
    static uint16_t all[65536];
    size_t count = 0;
    for (uint32_t i = 0; i < 65536; i += test.small ? 61 : 1) {
        all[count] = (uint16_t)i;
        count++;
    }
    static const enum grt_dtype types[2] = {GRT_F16, GRT_BF16};
    for (int i = 0; i < 2; i++) {
        check(GRT_F32, types[i], all, count);
        check(types[1 - i], types[i], all, count);
    }
}

// For each number of the format: itself, the tie with the next one, and the floats beside that tie.
static void all_ties(void **state) {
    (void)state;
    static const enum grt_dtype types[2] = {GRT_F16, GRT_BF16};
    uint32_t *values = test_alloc(4 * 65536 * sizeof *values);
    for (int t = 0; t < 2; t++) {
        struct oracle_format format = test_format(types[t]);
        size_t count = 0;
        for (uint32_t bits = 0; bits < 65536; bits += test.small ? 61 : 1) {
            double here = oracle_widen(format, bits);
            double next = oracle_widen(format, bits + 1);
            if (isnan(here) || isinf(here)) {
                continue;
            }
            // Past the largest number the tie lies where the next number would be.
            double step = isfinite(next) ? next - here : here - oracle_widen(format, bits - 1);
            uint32_t tie = test_as_u32((float)(here + step / 2));
            values[count] = test_as_u32((float)here);
            values[count + 1] = tie;
            values[count + 2] = tie - 1;
            values[count + 3] = tie + 1;
            count += 4;
        }
        check(types[t], GRT_F32, values, count);
    }
    free(values);
}

static void any_bits(void **state) {
    (void)state;
    size_t count = test.small ? 1000 : 200001;
    float *values = test_floats(11, TEST_BITS, count);
    static const uint32_t special[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff,
                                       0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
                                       0x7f800001, 0xff800001, 0x7fc00000, 0x7fffffff, 0xffffffff};
    memcpy(values, special, sizeof special);
    check(GRT_F16, GRT_F32, values, count);
    check(GRT_BF16, GRT_F32, values, count);
    free(values);
}

static void sizes(void **state) {
    (void)state;
    static const size_t counts[] = {1, 2, 3, 63, 64, 65, 255, 256, 257, 1000003};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (test.small && counts[i] > 1000) {
            continue;
        }
        float *values = test_floats(i, TEST_PLAIN, counts[i]);
        check(GRT_F16, GRT_F32, values, counts[i]);
        check(GRT_BF16, GRT_F16, values, counts[i]);
        check(GRT_F32, GRT_BF16, values, counts[i]);
        check(GRT_F32, GRT_F32, values, counts[i]);
        check(GRT_F16, GRT_F16, values, counts[i]);
        free(values);
    }
}

static void refusals(void **state) {
    (void)state;
    struct test_tensor f = test_tensor(test.dev, GRT_F32, 8, 0);
    struct test_tensor h = test_tensor(test.dev, GRT_F16, 8, 0);
    struct test_tensor u = test_tensor(test.dev, GRT_U32, 8, 0);
    struct test_tensor shorter = test_tensor(test.dev, GRT_F16, 7, 0);
    struct grt_tensor nowhere = h.tensor;
    nowhere.range.buf = NULL;
    struct operands rows[] = {
        {&h.tensor, &u.tensor}, {&u.tensor, &f.tensor}, {&shorter.tensor, &f.tensor},
        {&nowhere, &f.tensor},  {NULL, &f.tensor},      {&h.tensor, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "bad convert");
        record(graph, &rows[i]);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "convert");
        grt_graph_destroy(&graph);
    }
    TEST_REFUSED((grt_op_convert(NULL, &h.tensor, &f.tensor), false), GRT_INVALID, "graph");
    test_tensor_end(&f);
    test_tensor_end(&h);
    test_tensor_end(&u);
    test_tensor_end(&shorter);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(all_16_bit_numbers), TEST_CASE(all_ties), TEST_CASE(any_bits), TEST_CASE(sizes),
    TEST_CASE(refusals),
};
TEST_SUITE(convert, true, cases);
