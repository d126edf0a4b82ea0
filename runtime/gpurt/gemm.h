// SPDX-License-Identifier: Apache-2.0
// Matrix products: c = op(a) op(b), single or in batches, in f32, f16 and bf16, with what usually
// follows a product done on the way out.
//
//     c = (act(alpha op(a) op(b) + beta c + bias) + add) * act'(saved)
//
// The same call works on every device. Which kernel does it is the first row of one table of
// variants that is usable and pays; one that does not build on a device, or that gives a wrong
// result in its check there (a small product at first use, remembered for the driver's version), is
// left out with one warning. 16-bit elements are summed in f32. f32 may be done on a matrix unit
// where that has f32's error and is faster (`split*`, the profile's gemm.split.use); an infinite
// operand then gives NaN.
//
// The column sum of c, which is a bias's gradient, is an op of its own, grt_op_colsum(): sums of
// tiles made on the way out would need a second kernel that adds them in a fixed order all the
// same, and every variant a place to keep them, to save one read of what was just written. That
// read takes 1.9 ms beside the 64 of the product (16384 x 128 x 128 in f32 with relu's derivative,
// PoCL on two cores, 2026-11).
#ifndef GRT_GEMM_H
#define GRT_GEMM_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_ACTS(X)                                                                                \
    X(NONE, "none")                                                                                \
    X(RELU, "relu")                                                                                \
    X(GELU, "gelu") /* by tanh, PyTorch's approximate='tanh' */                                    \
    X(TANH, "tanh")                                                                                \
    X(GELU_EXACT, "gelu_exact") /* by erf; from here on no product has them, only modules */       \
    X(SILU, "silu")                                                                                \
    X(SIGMOID, "sigmoid")

enum grt_act {
#define X(name, text) GRT_ACT_##name,
    GRT_ACTS(X)
#undef X
        GRT_ACT_COUNT,
};
GRT_API const char *grt_act_text(enum grt_act act);

struct grt_gemm_desc {
    // Row-major, of rank 2, or of rank 3 for a batch; a or b of rank 2 serves every product of a
    // batch. a and b have one type. c has theirs, or is f32. Both NULL is the product over k = 0,
    // which no tensor can say: the sum is 0, and all that follows it is done.
    const struct grt_tensor *a;  // [m][k], or [k][m] with a_transposed
    const struct grt_tensor *b;  // [k][n], or [n][k] with b_transposed
    const struct grt_tensor *c;  // [m][n]
    bool a_transposed, b_transposed;
    // Of matrices that are parts of larger ones: elements from a stored row to the next, and from a
    // matrix of a batch to the next. 0: no gaps. The ranges of the tensors are what is reached; add
    // and saved lie like c, whose matrices may interleave ([rows][heads][columns]) but not overlap.
    // With gaps those variants of matrix units are left out that read beyond a row.
    uint32_t lda, ldb, ldc;
    uint32_t a_step, b_step, c_step;
    float alpha;  // 0 means 1
    float beta;
    const struct grt_tensor *bias;  // [n], f32, or NULL
    enum grt_act act;
    const struct grt_tensor *add;  // like c, or NULL
    // Backward: multiplies by the derivative of grad_act, from what the forward pass saved: its
    // output (relu, tanh) or its argument (gelu).
    enum grt_act grad_act;
    const struct grt_tensor *saved;  // like c, or NULL
    // Sums of f16 products with an f16 result may be kept in half, where the matrix unit has that:
    // as fast or faster, and only about 11 bits right. Others keep theirs in f32.
    bool half_sums;
    // Partial products, grt_op_gemm_scratch() bytes. Without it a long k is not cut, and the
    // product of few rows and columns leaves most of a device idle.
    struct grt_range scratch;
    const char *variant;  // this row of the table only, for tests and measurements; or NULL
};
#define grt_gemm_desc(...) GRT_DESC(struct grt_gemm_desc, __VA_ARGS__)

GRT_API void grt_op_gemm(struct grt_graph *graph, const struct grt_gemm_desc *desc);

// Bytes of scratch with which this product is fastest; 0 when it needs none.
GRT_API uint64_t grt_op_gemm_scratch(struct grt_dev *dev, const struct grt_gemm_desc *desc);

// The variants that could do this product on this device, best first: the i-th name, or NULL.
// Behind plain stand those that do not pay, for tests and measurements.
GRT_API const char *grt_gemm_variant(struct grt_dev *dev, const struct grt_gemm_desc *desc,
                                     uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
