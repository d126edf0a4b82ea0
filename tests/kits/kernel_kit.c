// SPDX-License-Identifier: Apache-2.0
// See kernel_kit.h.
#include "kernel_kit.h"

#include <stdlib.h>

void kernel_run(struct grt_dev *dev, const struct kernel_case *c, float **outs) {
    struct test_tensor tensors[GRT_MAX_BINDINGS];
    struct grt_dispatch dispatch = {.kernel = grt_kernel_get(dev, &c->desc),
                                    .params = c->params,
                                    .params_size = c->params_size,
                                    .groups = {c->groups}};
    assert_non_null(dispatch.kernel);
    uint32_t count = 0;
    for (; count < GRT_MAX_BINDINGS && c->buffers[count].count > 0; count++) {
        tensors[count] = test_tensor(dev, GRT_F32, c->buffers[count].count, 0);
        dispatch.bindings[count] = tensors[count].tensor.range;
        if (c->buffers[count].data) {
            test_tensor_write(&tensors[count], c->buffers[count].data);
        } else {
            test_tensor_prefill(&tensors[count], 0);
        }
    }
    struct grt_graph *graph = grt_graph_create(dev, c->desc.name);
    grt_graph_dispatch(graph, &dispatch);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    for (uint32_t i = 0; i < count; i++) {
        if (!c->buffers[i].data) {
            outs[i] = test_alloc(tensors[i].bytes);
            test_tensor_read(&tensors[i], outs[i]);
        }
        test_tensor_end(&tensors[i]);
    }
}

void kernel_same_as_ref(const struct kernel_case *c) {
    float *got[GRT_MAX_BINDINGS] = {NULL};
    float *want[GRT_MAX_BINDINGS] = {NULL};
    kernel_run(test.dev, c, got);
    kernel_run(test.ref, c, want);
    for (uint32_t i = 0; i < GRT_MAX_BINDINGS; i++) {
        if (got[i]) {
            test_same_floats(test.dev, c->desc.name, got[i], want[i], c->buffers[i].count);
        }
        free(got[i]);
        free(want[i]);
    }
}
