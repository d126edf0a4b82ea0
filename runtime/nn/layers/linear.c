// SPDX-License-Identifier: Apache-2.0
// y = x weight^T + bias, as PyTorch's Linear: weight [outputs][inputs], both drawn from
// [-1, 1) / sqrt(inputs).
#include "linear.h"

#include <math.h>
#include <stdlib.h>

#include "gpurt/ops.h"
#include "base/log.h"
#include "nn/layer_ops.h"
#include "ops/op_support.h"

// Of a matrix as wide as rows of x with zeros behind them, at the beginning of the scratch.
static uint64_t wide_bytes(const struct grt_net *net, const struct grt_tensor *matrix) {
    return grt_dev_align_up(net->dev, grt_tensor_bytes(matrix));
}

// A matrix of the weights' rows, each as long as those of x, at the beginning of the scratch.
static struct grt_tensor wide_matrix(const struct grt_linear *linear, const struct grt_tensor *x,
                                     enum grt_dtype dtype) {
    struct grt_tensor wide = {
        .dtype = dtype, .rank = 2, .shape = {linear->desc.outputs, x->shape[1]}, .label = "wide"};
    const struct grt_tensor *scratch = linear->base.net->scratch;
    if (scratch) {
        wide.range = grt_op_part(scratch->range, 0, grt_tensor_bytes(&wide));
    }
    return wide;
}

static bool is_wide(const struct grt_linear *linear, const struct grt_tensor *x) {
    return x->shape[1] > linear->desc.inputs;
}

void grt_linear_declare(struct grt_linear *linear, struct grt_net *net, const char *prefix,
                        uint64_t rows_each) {
    const struct grt_linear_desc *d = &linear->desc;
    linear->base.net = net;
    float bound = (float)(1.0 / sqrt((double)d->inputs));
    linear->weight = grt_params_add(net->params, prefix, "weight",
                                    (const uint64_t[GRT_MAX_RANK]){d->outputs, d->inputs},
                                    GRT_INIT_UNIFORM, bound);
    if (!d->no_bias) {
        linear->bias =
            grt_params_add(net->params, prefix, "bias", (const uint64_t[GRT_MAX_RANK]){d->outputs},
                           GRT_INIT_UNIFORM, bound);
    }
    const uint64_t rows = net->rows * rows_each;
    const uint64_t pitch = grt_net_pitch(net, d->inputs);
    const struct grt_tensor dz = {.dtype = net->dtype, .rank = 2, .shape = {rows, d->outputs}};
    for (uint64_t cols = d->inputs; cols > 0; cols = cols < pitch ? pitch : 0) {
        const struct grt_tensor x = {.dtype = net->dtype, .rank = 2, .shape = {rows, cols}};
        const struct grt_tensor dw = {.rank = 2, .shape = {d->outputs, cols}};
        grt_net_scratch(
            net, (cols > d->inputs ? wide_bytes(net, &dw) : 0) +
                     grt_op_gemm_scratch(net->dev, grt_gemm_desc(.a = &dz, .a_transposed = true,
                                                                 .b = &x, .c = &dw)));
    }
    if (!d->no_bias) {
        grt_net_scratch(net, grt_op_colsum_scratch(net->dev, grt_colsum_desc(.x = &dz)));
    }
}

// The weights that products read.
static const struct grt_tensor *weights(const struct grt_linear *linear) {
    return linear->base.net->dtype == GRT_F32 ? &linear->weight->master : &linear->weight->copy;
}

void grt_linear_forward(const struct grt_linear *linear, struct grt_graph *graph,
                        const struct grt_tensor *x, const struct grt_tensor *y, enum grt_act act) {
    const struct grt_tensor *w = weights(linear);
    struct grt_tensor wide = {0};
    if (is_wide(linear, x)) {
        wide = wide_matrix(linear, x, w->dtype);
        grt_graph_fill(graph, wide.range, 0);
        grt_nn_columns(graph, &wide, 0, w, 0, linear->desc.inputs);
        w = &wide;
    }
    grt_op_gemm(graph,
                grt_gemm_desc(.a = x, .b = w, .b_transposed = true, .c = y,
                              .bias = linear->bias ? &linear->bias->master : NULL, .act = act));
}

// The gradient of the weights: dz^T x, or its first columns where x has zeros behind its rows.
static void weight_gradient(const struct grt_linear *linear, struct grt_graph *graph,
                            const struct grt_linear_backward *b, struct grt_range scratch) {
    const struct grt_tensor *grad = &linear->weight->grad;
    struct grt_tensor wide = {0};
    if (is_wide(linear, b->x)) {
        wide = wide_matrix(linear, b->x, grad->dtype);
        uint64_t taken = wide_bytes(linear->base.net, &wide);
        scratch = grt_op_part(scratch, taken, scratch.size - taken);
        if (b->accumulate) {
            grt_graph_fill(graph, wide.range, 0);
            grt_nn_columns(graph, &wide, 0, grad, 0, linear->desc.inputs);
        }
    }
    grt_op_gemm(graph, grt_gemm_desc(.a = b->dz, .a_transposed = true, .b = b->x,
                                     .c = wide.rank > 0 ? &wide : grad, .scratch = scratch,
                                     .beta = b->accumulate ? 1.0f : 0.0f));
    if (wide.rank > 0) {
        grt_nn_columns(graph, grad, 0, &wide, 0, linear->desc.inputs);
    }
}

void grt_linear_backward(const struct grt_linear *linear, struct grt_graph *graph,
                         const struct grt_linear_backward *b) {
    if (b->dx) {
        grt_op_gemm(graph, grt_gemm_desc(.a = b->dz, .b = weights(linear), .c = b->dx,
                                         .beta = b->add_dx ? 1.0f : 0.0f, .add = b->add,
                                         .grad_act = b->act, .saved = b->saved));
    }
    const struct grt_tensor *scratch = linear->base.net->scratch;
    struct grt_range range = scratch ? scratch->range : (struct grt_range){0};
    weight_gradient(linear, graph, b, range);
    if (linear->bias) {
        grt_op_colsum(graph, grt_colsum_desc(.y = &linear->bias->grad, .x = b->dz,
                                             .add = b->accumulate, .scratch = range));
    }
}

struct grt_onnx_value grt_linear_onnx(const struct grt_linear *linear, struct grt_onnx *onnx,
                                      struct grt_onnx_value x) {
    const char *w = grt_onnx_param(onnx, linear->weight);
    const char *b = linear->bias ? grt_onnx_param(onnx, linear->bias) : NULL;
    x = grt_onnx_rows(onnx, x);
    if (x.rank == 1) {
        x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "Gemm", .inputs = {x.name, w, b},
                                                  .attributes = {{.name = "transB", .whole = 1}}));
        return x;
    }
    const char *turned = grt_onnx_add(onnx, grt_onnx_node(.op = "Transpose", .inputs = {w},
                                                          .attributes = {{.name = "perm",
                                                                          .type = GRT_ONNX_WHOLES,
                                                                          .wholes = {1, 0},
                                                                          .count = 2}}));
    x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "MatMul", .inputs = {x.name, turned}));
    if (b) {
        x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "Add", .inputs = {x.name, b}));
    }
    return x;
}

// ---- the module ----

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct grt_linear *linear = (struct grt_linear *)module;
    uint64_t inputs = in->dim[in->rank - 1];
    char text[GRT_SHAPE_TEXT];
    if (linear->desc.inputs != 0 && linear->desc.inputs != inputs) {
        return grt_module_refuse(module, "takes [%u], not %s", linear->desc.inputs,
                                 grt_shape_text(in, text));
    }
    if (inputs > UINT32_MAX) {
        return grt_module_refuse(module, "%s is too wide", grt_shape_text(in, text));
    }
    linear->desc.inputs = (uint32_t)inputs;
    uint64_t rows_each = grt_shape_count(in) / inputs;
    grt_linear_declare(linear, net, prefix, rows_each);
    module->operations = 2.0 * (double)rows_each * (double)inputs * linear->desc.outputs;
    struct grt_shape out = *in;
    out.dim[out.rank - 1] = linear->desc.outputs;
    return out;
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct grt_tensor x2 = grt_nn_flat(x), y2 = grt_nn_flat(y);
    grt_linear_forward((struct grt_linear *)module, pass->graph, &x2, &y2, GRT_ACT_NONE);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    struct grt_tensor x2 = grt_nn_flat(x), dy2 = grt_nn_flat(dy), dx2 = {0};
    if (dx) {
        dx2 = grt_nn_flat(dx);
    }
    grt_linear_backward((struct grt_linear *)module, pass->graph,
                        &(struct grt_linear_backward){.x = &x2,
                                                      .dz = &dy2,
                                                      .dx = dx ? &dx2 : NULL,
                                                      .add_dx = add_dx,
                                                      .accumulate = pass->add_grads});
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    return grt_linear_onnx((const struct grt_linear *)module, to, x);
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns linear_fns = {"linear", declare, forward,
                                                 backward, destroy, onnx};

const struct grt_linear_desc *grt_linear_desc_of(const struct grt_module *module) {
    return module->fns == &linear_fns ? &((const struct grt_linear *)module)->desc : NULL;
}

struct grt_module *grt_linear_create(const struct grt_linear_desc *desc) {
    if (!desc || desc->outputs == 0) {
        grt_fail(GRT_INVALID, "linear: %s", desc ? "outputs must be at least 1" : "no desc");
        return NULL;
    }
    struct grt_linear *linear = calloc(1, sizeof *linear);
    if (!linear) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    linear->base.fns = &linear_fns;
    linear->base.f32_output = true;
    linear->base.adds_dx = linear->base.wide_rows = true;
    linear->desc = *desc;
    return &linear->base;
}
