// SPDX-License-Identifier: Apache-2.0
// OpenCL's buffers by their addresses (backends/opencl/address.c) and as arguments give the same
// results; where a driver hands out addresses, GPURT_ADDRESSES chooses.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl.h"

#define COUNT 1000u

// c = 2 a + c in two buffers, each range with something before and behind it.
static void run_on(struct grt_dev *dev) {
    struct grt_buf *bufs[2];
    float values[3 * COUNT], got[3 * COUNT];
    uint64_t at = COUNT * sizeof(float) / 256 * 256, size = COUNT * sizeof(float);
    uint64_t first = at / sizeof(float);
    for (uint32_t i = 0; i < 3 * COUNT; i++) {
        values[i] = (float)i;
    }
    for (uint32_t i = 0; i < 2; i++) {
        bufs[i] = grt_buf_create(dev, grt_buf_desc(.size = sizeof values, .label = "here"));
        assert_non_null(bufs[i]);
        assert_true(grt_buf_write(bufs[i], 0, values, sizeof values));
    }
    struct grt_tensor a = {.label = "a", .rank = 1, .shape = {COUNT}, .range = {bufs[0], at, size}};
    struct grt_tensor c = {.label = "c", .rank = 1, .shape = {COUNT}, .range = {bufs[1], 0, size}};
    struct grt_graph *graph = grt_graph_create(dev, "addresses");
    grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &c, .a = &a, .b = &c, .alpha = 2.0f,
                                   .beta = 1.0f));
    assert_true(grt_graph_finish(graph));
    assert_true(grt_buf_read(bufs[1], 0, got, sizeof got));
    for (uint32_t i = 0; i < 3 * COUNT; i++) {
        float want = i < COUNT ? 2.0f * (float)(i + first) + (float)i : (float)i;
        assert_true(got[i] == want);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&bufs[0]);
    grt_buf_destroy(&bufs[1]);
}

static void either_way(void **state) {
    (void)state;
    const char *before = getenv("GPURT_ADDRESSES");
    char kept[16] = "";
    strncpy(kept, before ? before : "", sizeof kept - 1);
    for (int ask = 0; ask < 2; ask++) {
        setenv("GPURT_ADDRESSES", ask ? "1" : "0", 1);
        struct grt_dev *dev = grt_dev_create(grt_dev_desc(.backend = "opencl"));
        if (!dev) {
            skip();
            return;  // skip() does not come back: for the analyzer
        }
        // PoCL and NVIDIA hand addresses out.
        assert_int_equal(((struct gcl_dev *)dev)->by_address, ask);
        run_on(dev);
        grt_dev_destroy(&dev);
    }
    if (before) {
        setenv("GPURT_ADDRESSES", kept, 1);
    } else {
        unsetenv("GPURT_ADDRESSES");
    }
}

static const struct CMUnitTest cases[] = {cmocka_unit_test(either_way)};
TEST_SUITE(address, false, cases);
