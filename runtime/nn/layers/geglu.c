// SPDX-License-Identifier: Apache-2.0
// A gated linear unit (Shazeer 2020): the first half of the last axis times gelu of the second.
#include <stdlib.h>

#include "base/log.h"
#include "nn/layer_ops.h"
#include "nn/onnx_ops.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/nn/lib/layer_params.k"

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    (void)net;
    (void)prefix;
    char text[GRT_SHAPE_TEXT];
    struct grt_shape out = *in;
    if (in->dim[in->rank - 1] % 2 != 0) {
        return grt_module_refuse(module, "takes an even number of features, not %s",
                                 grt_shape_text(in, text));
    }
    out.dim[out.rank - 1] /= 2;
    module->operations = 2.0 * (double)grt_shape_count(&out);
    return out;
}

// `half`: what has half the numbers of a row, y or dy.
static void record(const struct grt_pass *pass, const struct grt_tensor *x,
                   const struct grt_tensor *half, const struct grt_tensor *to, bool gradient) {
    const struct geglu_params params = {.n = (uint32_t)grt_tensor_count(half),
                                        .cols = (uint32_t)grt_op_cols(half)};
    const struct grt_range ranges[3] = {x->range, gradient ? half->range : x->range, to->range};
    const struct grt_kernel_desc kernel = {x->dtype == GRT_F32 ? "geglu_f32" : "geglu_16",
                                           {{"KIND", x->dtype == GRT_BF16}, {"GRAD", gradient}}};
    struct grt_pieces pieces = grt_op_pieces(pass->graph, grt_tensor_count(x), 4);
    if (grt_op_next(&pieces) && pieces.count == grt_tensor_count(x)) {
        grt_op_stream(pass->graph, &pieces, &kernel, &params, sizeof params, ranges, 3);
    } else {
        grt_graph_reject(pass->graph, GRT_UNSUPPORTED,
                         "geglu of '%s': too many numbers at once; use smaller micro-batches",
                         x->label);
    }
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    (void)module;
    record(pass, x, y, y, false);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)module;
    (void)add_dx;
    if (dx) {
        record(pass, x, dy, dx, true);
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    uint64_t half = module->out.dim[module->out.rank - 1];
    struct grt_onnx_value a = grt_nn_onnx_columns(to, x, 0, half);
    struct grt_onnx_value b = grt_nn_onnx_columns(to, x, half, 2 * half);
    b = grt_nn_onnx_act(to, GRT_ACT_GELU, b);
    a.name = grt_onnx_add(to, grt_onnx_node(.op = "Mul", .inputs = {a.name, b.name}));
    return a;
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns geglu_fns = {"geglu", declare, forward, backward, destroy, onnx};

struct grt_module *grt_geglu_create(void) {
    struct grt_module *geglu = calloc(1, sizeof *geglu);
    if (!geglu) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    geglu->fns = &geglu_fns;
    return geglu;
}
