// SPDX-License-Identifier: Apache-2.0
// Some columns of what comes in, for branches that read a part of it: by number, or one of the
// inputs that samples are made of.
#include <stdlib.h>

#include "base/log.h"
#include "gpurt/ops.h"
#include "nn/layer_ops.h"
#include "nn/onnx_ops.h"
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

// ---- the modules ----

struct columns {
    struct grt_module base;
    uint64_t first, count;
    struct grt_shape shape;  // of an input
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    (void)net;
    (void)prefix;
    const struct columns *c = (struct columns *)module;
    char text[GRT_SHAPE_TEXT];
    struct grt_shape out = *in;
    if (c->first + c->count > in->dim[in->rank - 1]) {
        return grt_module_refuse(module, "%llu from %llu on are not in %s",
                                 (unsigned long long)c->count, (unsigned long long)c->first,
                                 grt_shape_text(in, text));
    }
    out.dim[out.rank - 1] = c->count;
    return out;
}

static struct grt_shape declare_input(struct grt_module *module, struct grt_net *net,
                                      const char *prefix, const struct grt_shape *in) {
    (void)net;
    (void)prefix;
    struct columns *c = (struct columns *)module;
    char text[GRT_SHAPE_TEXT], own[GRT_SHAPE_TEXT];
    struct grt_shape part = *in;
    c->count = in->rank == 1 ? grt_shape_count(&c->shape) : c->shape.dim[c->shape.rank - 1];
    part.dim[part.rank - 1] = c->count;
    if (c->first + c->count > in->dim[in->rank - 1] ||
        (in->rank > 1 && !grt_shape_equal(&part, &c->shape))) {
        return grt_module_refuse(module, "its %s from %llu on is not in %s",
                                 grt_shape_text(&c->shape, own), (unsigned long long)c->first,
                                 grt_shape_text(in, text));
    }
    return c->shape;
}

// A tensor as rows of what is read.
static struct grt_tensor rows_of(const struct columns *c, const struct grt_tensor *tensor) {
    struct grt_tensor rows = *tensor;
    rows.rank = 2;
    rows.shape[0] = grt_tensor_count(tensor) / c->count;
    rows.shape[1] = c->count;
    return rows;
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct columns *c = (struct columns *)module;
    struct grt_tensor rows = rows_of(c, y);
    grt_nn_columns(pass->graph, &rows, 0, x, c->first, c->count);
}

// What was not read has no part in the loss.
static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    const struct columns *c = (struct columns *)module;
    (void)x;
    (void)add_dx;
    if (dx) {
        struct grt_tensor rows = rows_of(c, dy);
        grt_op_fill(pass->graph, dx, 0.0f);
        grt_nn_columns(pass->graph, dx, c->first, &rows, 0, c->count);
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct columns *c = (const struct columns *)module;
    int64_t shape[1 + GRT_SHAPE_RANK] = {0};  // as many samples as there are
    bool bent = module->in.rank != module->out.rank;
    x = grt_nn_onnx_columns(to, x, c->first, c->first + c->count);
    for (uint32_t i = 0; i < module->out.rank; i++) {
        shape[1 + i] = (int64_t)module->out.dim[i];
    }
    if (bent) {
        x.name = grt_onnx_add(
            to,
            grt_onnx_node(.op = "Reshape",
                          .inputs = {x.name, grt_onnx_wholes(to, shape, module->out.rank + 1)}));
        x.rank = module->out.rank;
    }
    return x;
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns columns_fns = {"columns", declare, forward,
                                                  backward,  destroy, onnx};
static const struct grt_module_fns input_fns = {"input",  declare_input, forward,
                                                backward, destroy,       onnx};

static struct grt_module *create(const struct columns *as) {
    struct columns *c = as->count > 0 ? malloc(sizeof *c) : NULL;
    if (!c) {
        grt_fail(as->count > 0 ? GRT_NO_MEMORY : GRT_INVALID, "%s: %s", as->base.fns->kind,
                 as->count > 0 ? "no host memory" : "none are wanted");
        return NULL;
    }
    *c = *as;
    return &c->base;
}

struct grt_module *grt_columns_create(uint32_t first, uint32_t count) {
    return create(&(struct columns){{.fns = &columns_fns}, .first = first, .count = count});
}

struct grt_module *grt_input_create(const struct grt_input *input) {
    const struct grt_shape none = {0};
    const struct grt_shape *shape = input ? &input->shape : &none;
    return create(&(struct columns){{.fns = &input_fns},
                                    .first = input ? input->first : 0,
                                    .count = grt_shape_count(shape),
                                    .shape = *shape});
}
