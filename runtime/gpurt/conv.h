// SPDX-License-Identifier: Apache-2.0
// Convolutions over images [rows][height][width][channels] in f32, f16 and bf16, as PyTorch's
// Conv2d with one size, stride and padding both ways: the three products of one layer.
//
//     forward   y  = x * w + bias
//     data      dx = what dy and w hand back to x
//     weight    dw = what dy and x hand back to w
//
// 16-bit numbers are summed in f32, in an order that is the same on every run. Which kernels do it
// is the first row of one table of variants that is usable and pays; one that is wrong in its check
// on a device is left out there, as with matrix products (gemm.h).
#ifndef GRT_CONV_H
#define GRT_CONV_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_CONV_PASSES(X)                                                                         \
    X(FORWARD, "forward")                                                                          \
    X(DATA, "data")                                                                                \
    X(WEIGHT, "weight")

enum grt_conv_pass {
#define X(name, text) GRT_CONV_##name,
    GRT_CONV_PASSES(X)
#undef X
        GRT_CONV_PASS_COUNT,
};
GRT_API const char *grt_conv_pass_text(enum grt_conv_pass pass);

struct grt_conv2d_desc {
    enum grt_conv_pass pass;
    const struct grt_tensor *x;  // [rows][height][width][channels]; data: dx, which is written
    // [outputs][size][size][channels], of x's type; weight: dw, f32, which is written
    const struct grt_tensor *w;
    // [rows][out_height][out_width][outputs], of x's type, or forward f32; data, weight: dy
    const struct grt_tensor *y;
    uint32_t stride;                // 0 means 1
    uint32_t padding;               // below the size
    const struct grt_tensor *bias;  // [outputs], f32, forward only, or NULL
    bool add;                       // data, weight: to what is there
    // grt_op_conv2d_scratch() bytes, all that the variant wants.
    struct grt_range scratch;
    const char *variant;  // this row of the table only, for tests and measurements; or NULL
};
#define grt_conv2d_desc(...) GRT_DESC(struct grt_conv2d_desc, __VA_ARGS__)

GRT_API void grt_op_conv2d(struct grt_graph *graph, const struct grt_conv2d_desc *desc);

// Bytes of scratch that it takes; the ranges of the tensors need not be there yet.
GRT_API uint64_t grt_op_conv2d_scratch(struct grt_dev *dev, const struct grt_conv2d_desc *desc);

// The variants that could do it on this device, best first: the i-th name, or NULL. Behind those
// that pay stand the others, for tests and measurements.
GRT_API const char *grt_conv2d_variant(struct grt_dev *dev, const struct grt_conv2d_desc *desc,
                                       uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
