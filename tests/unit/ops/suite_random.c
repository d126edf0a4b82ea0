// SPDX-License-Identifier: Apache-2.0
// Random numbers: the published vectors through the device, every element against the oracle, the
// shape of the distributions, and new numbers on every replay.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct grt_buf *state_of(struct grt_dev *dev, const struct grt_rng_state *rng) {
    struct grt_buf *buf = test_buf(dev, sizeof *rng, GRT_BUF_DEVICE);
    assert_true(grt_buf_write(buf, 0, rng, sizeof *rng));
    return buf;
}

// The kernel itself can begin at any block, so all three published vectors fit.
static void known_answers(void **state) {
    (void)state;
    static const uint32_t rows[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    const struct grt_kernel *kernel = grt_kernel_get(test.dev, grt_kernel_desc(.name = "random"));
    assert_non_null(kernel);
    for (int row = 0; row < 3; row++) {
        const uint32_t *counter = rows[row];
        struct grt_rng_state rng = {{counter[4], counter[5]}, {counter[2], counter[3]}};
        struct grt_buf *buf = state_of(test.dev, &rng);
        struct test_tensor y = test_tensor(test.dev, GRT_U32, 4, 0);
        const struct { uint32_t n, first, stream; } params = {4, counter[0], counter[1]};
        struct grt_graph *graph = grt_graph_create(test.dev, "known answers");
        grt_graph_dispatch(graph,
                           grt_dispatch(.kernel = kernel, .bindings = {{buf}, y.tensor.range},
                                        .params = &params, .params_size = sizeof params));
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        uint32_t got[4];
        test_tensor_read(&y, got);
        test_same(test.dev, "philox4x32-10", got, rows[row] + 6, 4, 4);
        test_tensor_end(&y);
        grt_buf_destroy(&buf);
    }
}

static void record(struct grt_graph *graph, void *context) {
    grt_op_random(graph, context);
}

static void *draw(struct grt_dev *dev, enum grt_dist dist, const struct grt_rng_state *rng,
                  uint32_t stream, size_t count) {
    struct grt_buf *buf = state_of(dev, rng);
    enum grt_dtype dtype = dist == GRT_DIST_BITS ? GRT_U32 : GRT_F32;
    struct test_tensor y = test_tensor(dev, dtype, count, 0);
    struct grt_random_desc desc = {.dist = dist, .y = &y.tensor, .state = {buf}, .stream = stream};
    void *result = test_run_filled(&y, record, &desc);
    struct grt_rng_state after;
    assert_true(grt_buf_read(buf, 0, &after, sizeof after));
    assert_memory_equal(&after, rng, sizeof after);
    test_tensor_end(&y);
    grt_buf_destroy(&buf);
    return result;
}

static struct oracle_value normal_at(const struct grt_rng_state *rng, uint32_t stream, uint64_t i) {
    uint64_t even = i / 2 * 2;
    return oracle_normal(oracle_bits(rng->seed, rng->step, stream, even),
                         oracle_bits(rng->seed, rng->step, stream, even + 1), i % 2 == 1);
}

static void every_element(void **state) {
    (void)state;
    static const size_t counts[] = {1, 2, 3, 4, 5, 63, 64, 65, 255, 256, 257, 100003};
    static const struct grt_rng_state rngs[] = {
        {{0, 0}, {0, 0}}, {{1, 2}, {3, 4}}, {{0xdeadbeef, 0x12345678}, {0xffffffff, 7}}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (test.small && counts[i] > 1000) {
            continue;
        }
        const struct grt_rng_state *rng = &rngs[i % 3];
        uint32_t stream = (uint32_t)i * 0x10001;
        size_t n = counts[i];
        uint32_t *bits = draw(test.dev, GRT_DIST_BITS, rng, stream, n);
        float *uniform = draw(test.dev, GRT_DIST_UNIFORM, rng, stream, n);
        float *normal = draw(test.dev, GRT_DIST_NORMAL, rng, stream, n);
        float *ref = draw(test.ref, GRT_DIST_NORMAL, rng, stream, n);
        struct test_compare c = test_compare(test.dev, "random of %zu", n);
        for (size_t k = 0; k < n; k++) {
            uint32_t word = oracle_bits(rng->seed, rng->step, stream, k);
            test_compare_bits(&c, k, bits[k], word);
            test_compare_exact(&c, k, (double)uniform[k], oracle_uniform(word));
            test_compare_value(&c, k, normal[k], normal_at(rng, stream, k));
        }
        test_compare_end(&c);
        test_same_floats(test.dev, "normal, ref", normal, ref, n);
        free(bits);
        free(uniform);
        free(normal);
        free(ref);
    }
}

// Each run of a graph that advances draws the numbers of the next step, the carry included.
static void replay_draws_anew(void **state) {
    (void)state;
    enum { COUNT = 37, RUNS = 5 };
    struct grt_rng_state rng = {{5, 6}, {0xfffffffe, 8}};
    struct grt_buf *buf = state_of(test.dev, &rng);
    struct test_tensor first = test_tensor(test.dev, GRT_U32, COUNT, 0);
    struct test_tensor second = test_tensor(test.dev, GRT_U32, COUNT, 0);
    struct grt_graph *graph = grt_graph_create(test.dev, "replay");
    grt_op_random(graph, grt_random_desc(.dist = GRT_DIST_BITS, .y = &first.tensor, .state = {buf},
                                         .stream = 1));
    grt_op_random(graph, grt_random_desc(.dist = GRT_DIST_BITS, .y = &second.tensor, .state = {buf},
                                         .stream = 2, .advance = true));
    assert_true(grt_graph_bake(graph));
    for (int run = 0; run < RUNS; run++) {
        assert_true(grt_graph_run(graph));
        uint32_t got[2][COUNT];
        test_tensor_read(&first, got[0]);
        test_tensor_read(&second, got[1]);
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_int_equal(got[0][i], oracle_bits(rng.seed, rng.step, 1, i));
            assert_int_equal(got[1][i], oracle_bits(rng.seed, rng.step, 2, i));
        }
        rng.step[0]++;
        rng.step[1] += rng.step[0] == 0 ? 1 : 0;
        struct grt_rng_state after;
        assert_true(grt_buf_read(buf, 0, &after, sizeof after));
        assert_memory_equal(&after, &rng, sizeof after);
    }
    grt_graph_destroy(&graph);
    test_tensor_end(&first);
    test_tensor_end(&second);
    grt_buf_destroy(&buf);
}

// ---- distributions ----

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

static double uniform_cdf(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}
static double normal_cdf(double x) {
    return 0.5 * erfc(-x / sqrt(2.0));
}

// Mean and variance within five standard errors; Kolmogorov's distance below 1.95 / sqrt(n), which
// a right generator exceeds once in a thousand seeds. The seed is fixed: no chance is involved.
static void check_distribution(enum grt_dist dist, double mean, double variance, double fourth,
                               double (*cdf)(double)) {
    size_t n = test.small ? 1000 : 1000000;
    struct grt_rng_state rng = {{2024, 0}, {17, 0}};
    float *x = draw(test.dev, dist, &rng, 3, n);
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    double root = sqrt((double)n);
    struct test_compare c = test_compare(test.dev, "mean, variance and shape of %zu draws", n);
    test_compare_value(&c, 0, (float)(sum / (double)n),
                       (struct oracle_value){mean, 5 * sqrt(variance) / root});
    test_compare_value(
        &c, 1, (float)(squares / (double)n),
        (struct oracle_value){variance, 5 * sqrt(fourth - variance * variance) / root});
    qsort(x, n, sizeof *x, by_size);
    double distance = 0;
    for (size_t i = 0; i < n; i++) {
        double at = cdf((double)x[i]);
        distance = fmax(distance, fabs(at - (double)i / (double)n));
        distance = fmax(distance, fabs(at - (double)(i + 1) / (double)n));
    }
    test_compare_value(&c, 2, (float)distance, (struct oracle_value){0, 1.95 / root});
    test_compare_end(&c);
    free(x);
}

static void distributions(void **state) {
    (void)state;
    check_distribution(GRT_DIST_UNIFORM, 0.5, 1.0 / 12, 1.0 / 80, uniform_cdf);
    check_distribution(GRT_DIST_NORMAL, 0, 1, 3, normal_cdf);
}

static void refusals(void **state) {
    (void)state;
    struct grt_rng_state rng = {{0}, {0}};
    struct grt_buf *buf = state_of(test.dev, &rng);
    struct grt_buf *tiny = test_buf(test.dev, 8, GRT_BUF_DEVICE);
    struct grt_buf *up = test_buf(test.dev, 64, GRT_BUF_UPLOAD);
    struct test_tensor f = test_tensor(test.dev, GRT_F32, 8, 0);
    struct test_tensor u = test_tensor(test.dev, GRT_U32, 8, 0);
    const struct grt_random_desc bad[] = {
        {.dist = GRT_DIST_BITS, .y = &f.tensor, .state = {buf}},
        {.dist = GRT_DIST_UNIFORM, .y = &u.tensor, .state = {buf}},
        {.dist = GRT_DIST_NORMAL, .state = {buf}},
        {.dist = GRT_DIST_NORMAL, .y = &f.tensor},
        {.dist = GRT_DIST_NORMAL, .y = &f.tensor, .state = {tiny}},
        {.dist = GRT_DIST_NORMAL, .y = &f.tensor, .state = {up}},
        {.dist = GRT_DIST_NORMAL, .y = &f.tensor, .state = {buf, 2, 0}},
        {.dist = GRT_DIST_NORMAL, .y = &f.tensor, .state = f.tensor.range},
        {.dist = (enum grt_dist)99, .y = &f.tensor, .state = {buf}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "bad random");
        grt_op_random(graph, &bad[i]);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "random");
        grt_graph_destroy(&graph);
    }
    grt_buf_destroy(&buf);
    grt_buf_destroy(&tiny);
    grt_buf_destroy(&up);
    test_tensor_end(&f);
    test_tensor_end(&u);
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(known_answers), TEST_CASE(every_element), TEST_CASE(replay_draws_anew),
    TEST_CASE(distributions), TEST_CASE(refusals),
};
TEST_SUITE(random, true, cases);
