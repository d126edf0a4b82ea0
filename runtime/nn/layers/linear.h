// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: a linear layer as other modules use it,
// with what the matrix product does on its way out.
#ifndef GRT_NN_LINEAR_H
#define GRT_NN_LINEAR_H

#include "gpurt/module.h"

struct grt_linear {
    struct grt_module base;
    struct grt_linear_desc desc;
    struct grt_param *weight, *bias;  // bias NULL: there is none
};

// NULL: it is none.
const struct grt_linear_desc *grt_linear_desc_of(const struct grt_module *module);
// `rows_each`: rows of x for one row of the net.
void grt_linear_declare(struct grt_linear *linear, struct grt_net *net, const char *prefix,
                        uint64_t rows_each);
// y = act(x weight^T + bias)
void grt_linear_forward(const struct grt_linear *linear, struct grt_graph *graph,
                        const struct grt_tensor *x, const struct grt_tensor *y, enum grt_act act);

struct grt_linear_backward {
    const struct grt_tensor *x, *dz;  // argument, and gradient of x weight^T + bias
    // dx = (dz weight + add) act'(saved), or NULL; see struct grt_gemm_desc.
    const struct grt_tensor *dx, *add, *saved;
    enum grt_act act;
    bool add_dx;      // dx += ...
    bool accumulate;  // add to the gradients of weight and bias
};
void grt_linear_backward(const struct grt_linear *linear, struct grt_graph *graph,
                         const struct grt_linear_backward *b);
// Recorded into an ONNX file.
struct grt_onnx_value grt_linear_onnx(const struct grt_linear *linear, struct grt_onnx *onnx,
                                      struct grt_onnx_value x);

#endif
