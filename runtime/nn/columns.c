// SPDX-License-Identifier: Apache-2.0
// Some columns of what comes in: for branches that read a part of it.
#include <stdlib.h>

#include "base/log.h"
#include "gpurt/ops.h"
#include "layer_ops.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/nn/lib/layer_params.k"

void grt_nn_columns(struct grt_graph *graph, const struct grt_tensor *y, uint64_t y_first,
                    const struct grt_tensor *x, uint64_t x_first, uint64_t cols) {
    uint64_t x_cols = grt_op_cols(x), y_cols = grt_op_cols(y);
    uint64_t rows = grt_tensor_count(x) / x_cols;
    const struct columns_params params = {.n = (uint32_t)(rows * cols),
                                          .cols = (uint32_t)cols,
                                          .x_cols = (uint32_t)x_cols,
                                          .x_first = (uint32_t)x_first,
                                          .y_cols = (uint32_t)y_cols,
                                          .y_first = (uint32_t)y_first};
    const struct grt_range ranges[2] = {x->range, y->range};
    const struct grt_kernel_desc kernel = {.name = grt_dtype_size(x->dtype) == 4 ? "columns"
                                                                                 : "columns16"};
    uint64_t most = rows * (x_cols > y_cols ? x_cols : y_cols);
    struct grt_pieces pieces = grt_op_pieces(graph, most, 4);
    if (grt_op_next(&pieces) && pieces.count == most) {
        grt_op_stream(graph, &pieces, &kernel, &params, sizeof params, ranges, 2);
    } else {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "columns of '%s': too many numbers at once; use smaller micro-batches",
                         x->label);
    }
}

// ---- the module ----

struct columns {
    struct grt_module base;
    uint32_t first, count;
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    (void)net;
    (void)prefix;
    const struct columns *c = (struct columns *)module;
    char text[GRT_SHAPE_TEXT];
    struct grt_shape out = *in;
    if ((uint64_t)c->first + c->count > in->dim[in->rank - 1]) {
        return grt_module_refuse(module, "%u from %u on are not in %s", c->count, c->first,
                                 grt_shape_text(in, text));
    }
    out.dim[out.rank - 1] = c->count;
    return out;
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct columns *c = (struct columns *)module;
    grt_nn_columns(pass->graph, y, 0, x, c->first, c->count);
}

// What was not read has no part in the loss.
static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    const struct columns *c = (struct columns *)module;
    (void)x;
    (void)add_dx;
    if (dx) {
        grt_op_fill(pass->graph, dx, 0.0f);
        grt_nn_columns(pass->graph, dx, c->first, dy, 0, c->count);
    }
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns columns_fns = {"columns", declare, forward, backward, destroy};

struct grt_module *grt_columns_create(uint32_t first, uint32_t count) {
    struct columns *c = count > 0 ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        grt_fail(count > 0 ? GRT_NO_MEMORY : GRT_INVALID, "columns: %s",
                 count > 0 ? "no host memory" : "none are wanted");
        return NULL;
    }
    c->base.fns = &columns_fns;
    c->first = first;
    c->count = count;
    return &c->base;
}
