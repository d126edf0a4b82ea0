// SPDX-License-Identifier: Apache-2.0
// A tensor past 2^31 elements and 8 GiB: fill, copy, sum. Only with GPURT_TEST_BIG=1, for it takes
// 17 GiB of device memory; the chunk suite covers the same paths with small buffers. A device that
// cannot make such a buffer must say so, always, and the largest it can make is tried instead.
#include "harness/harness.h"

#include <stdlib.h>

#define WANTED (((uint64_t)1 << 31) + 4099)

static void beyond_2_to_the_31(void **state) {
    (void)state;
    uint64_t count = WANTED;
    uint64_t most = grt_dev_info(test.dev)->caps.max_buffer / 4;
    if (most > 0 && most < count) {
        TEST_REFUSED(grt_buf_create(test.dev, grt_buf_desc(.size = 4 * WANTED, .label = "x")),
                     GRT_NO_MEMORY, "makes buffers of at most");
        count = most - 4099;
    }
    if (!test.big) {
        print_message("# GPURT_TEST_BIG is not 1: nothing allocated\n");
        return;
    }
    struct grt_plan *plan = grt_plan_create(test.dev);
    assert_non_null(plan);
    const struct grt_tensor *x =
        grt_plan_tensor(plan, grt_tensor_desc(.label = "x", .group = "x", .shape = {count}));
    const struct grt_tensor *y =
        grt_plan_tensor(plan, grt_tensor_desc(.label = "y", .group = "y", .shape = {count}));
    const struct grt_tensor *sum =
        grt_plan_tensor(plan, grt_tensor_desc(.label = "sum", .shape = {1}));
    struct grt_reduce_desc desc = {.reduce = GRT_REDUCE_SUM, .y = sum, .x = y};
    const struct grt_tensor *scratch =
        grt_plan_tensor(plan, grt_tensor_desc(.label = "scratch", .dtype = GRT_U8,
                                              .shape = {grt_op_reduce_scratch(test.dev, &desc)}));
    if (!x || !y || !sum || !scratch) {
        fail();
        return;
    }
    if (!grt_plan_alloc(plan)) {
        print_error("GPURT_TEST_BIG=1 wants %.1f GiB: %s\n",
                    (double)grt_plan_bytes(plan, NULL) * 0x1p-30, grt_last_error());
        fail();
    }
    desc.scratch = scratch->range;
    struct grt_graph *graph = grt_graph_create(test.dev, "big");
    grt_op_fill(graph, x, 0.5f);
    grt_op_fill(graph, y, -1.0f);
    grt_op_copy(graph, y, x);
    grt_op_reduce(graph, &desc);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    print_message("# %llu elements\n", (unsigned long long)count);
    // Sums of halves below 2^23 are exact; above, each partial sum is, and the last ones nearly.
    float got = 0;
    assert_true(grt_buf_read(sum->range.buf, sum->range.offset, &got, sizeof got));
    struct test_compare c = test_compare(test.dev, "sum of halves");
    double want = 0.5 * (double)count;
    test_compare_value(&c, 0, got, (struct oracle_value){want, want * 512 * ORACLE_U});
    // The ends, and the places where pieces meet.
    const uint64_t places[] = {
        0,        (uint64_t)1 << 29, (uint64_t)1 << 30, ((uint64_t)1 << 31) - 1, (uint64_t)1 << 31,
        count - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        float value = 0;
        if (places[i] >= count) {
            continue;
        }
        assert_true(grt_buf_read(y->range.buf, y->range.offset + 4 * places[i], &value, 4));
        test_compare_exact(&c, places[i], (double)value, 0.5);
    }
    test_compare_end(&c);
    grt_plan_destroy(&plan);
}

static const struct CMUnitTest cases[] = {TEST_CASE(beyond_2_to_the_31)};
TEST_SUITE(big, true, cases);
