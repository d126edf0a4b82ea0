// SPDX-License-Identifier: Apache-2.0
// y = x weight^T + bias, as PyTorch's Linear: weight [outputs][inputs], both drawn from
// [-1, 1) / sqrt(inputs).
#include "linear.h"

#include <math.h>
#include <stdlib.h>

#include "gpurt/ops.h"
#include "base/log.h"
#include "layer_ops.h"

void grt_module_destroy(struct grt_module **module) {
    if (module && *module) {
        (*module)->fns->destroy(*module);
        *module = NULL;
    }
}

struct grt_tensor *grt_net_tensor(struct grt_net *net, const struct grt_tensor_desc *desc) {
    struct grt_tensor *tensor = grt_plan_tensor(net->plan, desc);
    net->params->failed |= !tensor;
    return tensor;
}

static void want_scratch(struct grt_net *net, uint64_t bytes) {
    net->scratch_bytes = bytes > net->scratch_bytes ? bytes : net->scratch_bytes;
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
    const struct grt_tensor x = {.dtype = net->dtype, .rank = 2, .shape = {rows, d->inputs}};
    const struct grt_tensor dz = {.dtype = net->dtype, .rank = 2, .shape = {rows, d->outputs}};
    const struct grt_tensor dw = {.rank = 2, .shape = {d->outputs, d->inputs}};
    want_scratch(net, grt_op_gemm_scratch(net->dev, grt_gemm_desc(.a = &dz, .a_transposed = true,
                                                                  .b = &x, .c = &dw)));
    if (!d->no_bias) {
        want_scratch(net, grt_op_colsum_scratch(net->dev, grt_colsum_desc(.x = &dz)));
    }
}

// The weights that products read.
static const struct grt_tensor *weights(const struct grt_linear *linear) {
    return linear->base.net->dtype == GRT_F32 ? &linear->weight->master : &linear->weight->copy;
}

void grt_linear_forward(const struct grt_linear *linear, struct grt_graph *graph,
                        const struct grt_tensor *x, const struct grt_tensor *y, enum grt_act act) {
    grt_op_gemm(graph,
                grt_gemm_desc(.a = x, .b = weights(linear), .b_transposed = true, .c = y,
                              .bias = linear->bias ? &linear->bias->master : NULL, .act = act));
}

void grt_linear_backward(const struct grt_linear *linear, struct grt_graph *graph,
                         const struct grt_linear_backward *b) {
    if (b->dx) {
        grt_op_gemm(graph, grt_gemm_desc(.a = b->dz, .b = weights(linear), .c = b->dx,
                                         .add = b->add, .grad_act = b->act, .saved = b->saved));
    }
    const struct grt_tensor *scratch = linear->base.net->scratch;
    struct grt_range range = scratch ? scratch->range : (struct grt_range){0};
    grt_op_gemm(graph, grt_gemm_desc(.a = b->dz, .a_transposed = true, .b = b->x,
                                     .c = &linear->weight->grad, .scratch = range,
                                     .beta = b->accumulate ? 1.0f : 0.0f));
    if (linear->bias) {
        grt_op_colsum(graph, grt_colsum_desc(.y = &linear->bias->grad, .x = b->dz,
                                             .add = b->accumulate, .scratch = range));
    }
}

// ---- the module ----

static void declare(struct grt_module *module, struct grt_net *net, const char *prefix) {
    grt_linear_declare((struct grt_linear *)module, net, prefix, 1);
}

static void forward(struct grt_module *module, struct grt_graph *graph, const struct grt_tensor *x,
                    const struct grt_tensor *y) {
    grt_linear_forward((struct grt_linear *)module, graph, x, y, GRT_ACT_NONE);
}

static void backward(struct grt_module *module, struct grt_graph *graph, const struct grt_tensor *x,
                     const struct grt_tensor *dy, const struct grt_tensor *dx, bool add) {
    grt_linear_backward(
        (struct grt_linear *)module, graph,
        &(struct grt_linear_backward){.x = x, .dz = dy, .dx = dx, .accumulate = add});
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns linear_fns = {"linear", declare, forward, backward, destroy};

struct grt_module *grt_linear_create(const struct grt_linear_desc *desc) {
    if (!desc || desc->inputs == 0 || desc->outputs == 0) {
        grt_fail(GRT_INVALID, "linear: %s",
                 desc ? "inputs and outputs must be at least 1" : "no desc");
        return NULL;
    }
    struct grt_linear *linear = calloc(1, sizeof *linear);
    if (!linear) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    linear->base.fns = &linear_fns;
    linear->desc = *desc;
    return &linear->base;
}
