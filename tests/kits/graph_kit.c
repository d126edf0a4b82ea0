// SPDX-License-Identifier: Apache-2.0
// See graph_kit.h.
#include "graph_kit.h"

struct kit kit;

int kit_begin(void **state) {
    int rc = test_case_begin(state);
    kit.a = test_buf(test.dev, KIT_BYTES, GRT_BUF_DEVICE);
    kit.b = test_buf(test.dev, KIT_BYTES, GRT_BUF_DEVICE);
    kit.up = test_buf(test.dev, KIT_BYTES, GRT_BUF_UPLOAD);
    kit.down = test_buf(test.dev, KIT_BYTES, GRT_BUF_READBACK);
    kit.copy = grt_kernel_get(test.dev, grt_kernel_desc(.name = "copy"));
    uint32_t align = grt_dev_info(test.dev)->caps.align;
    kit.step = align > 256 ? align : 256;
    return kit.copy ? rc : -1;
}

int kit_end(void **state) {
    grt_buf_destroy(&kit.a);
    grt_buf_destroy(&kit.b);
    grt_buf_destroy(&kit.up);
    grt_buf_destroy(&kit.down);
    return test_case_end(state);
}

struct grt_range kit_part(struct grt_buf *buf, uint64_t offset, uint64_t size) {
    return (struct grt_range){buf, offset, size};
}

struct grt_range kit_whole(struct grt_buf *buf) {
    return kit_part(buf, 0, 0);
}

void kit_copy(struct grt_graph *graph, struct grt_range y, struct grt_range x, uint32_t words) {
    uint32_t params[1] = {words};
    grt_graph_dispatch(graph,
                       grt_dispatch(.kernel = kit.copy, .bindings = {x, y}, .params = params,
                                    .params_size = sizeof params, .groups = {(words + 63) / 64}));
}

struct grt_graph *kit_graph(void) {
    struct grt_graph *graph = grt_graph_create(test.dev, "kit");
    assert_non_null(graph);
    assert_ptr_equal(grt_graph_dev(graph), test.dev);
    return graph;
}
