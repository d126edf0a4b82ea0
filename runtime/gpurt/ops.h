// SPDX-License-Identifier: Apache-2.0
// Ops: tensor operations that record themselves into a graph.
//
// Every op checks shapes and types, and a mistake sticks to the graph like any other. Ops split
// their work where a device cannot reach all of a buffer through one binding, so tensors beyond
// 4 GiB and beyond 2^31 elements work wherever the memory is there.
#ifndef GRT_OPS_H
#define GRT_OPS_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

// y = value; y of f32, f16 or bf16.
GRT_API void grt_op_fill(struct grt_graph *graph, const struct grt_tensor *y, float value);
// y = x, same type and number of elements, at the speed of memory.
GRT_API void grt_op_copy(struct grt_graph *graph, const struct grt_tensor *y,
                         const struct grt_tensor *x);
// y = x in the type of y: f32, f16 and bf16 in any direction, rounded to nearest even.
GRT_API void grt_op_convert(struct grt_graph *graph, const struct grt_tensor *y,
                            const struct grt_tensor *x);

#define GRT_MAPS(X)                                                                                \
    X(SCALE, "scale", 1) /* alpha a + beta */                                                      \
    X(ABS, "abs", 1)                                                                               \
    X(SQUARE, "square", 1)                                                                         \
    X(SQRT, "sqrt", 1)                                                                             \
    X(RECIP, "recip", 1)                                                                           \
    X(EXP, "exp", 1)                                                                               \
    X(LOG, "log", 1)                                                                               \
    X(TANH, "tanh", 1)                                                                             \
    X(SIGMOID, "sigmoid", 1)                                                                       \
    X(RELU, "relu", 1)                                                                             \
    X(GELU, "gelu", 1)   /* a (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))) / 2 */                     \
    X(CLAMP, "clamp", 1) /* between alpha and beta */                                              \
    X(ADD, "add", 2)     /* alpha a + beta b */                                                    \
    X(MUL, "mul", 2)                                                                               \
    X(DIV, "div", 2)                                                                               \
    X(MIN, "min", 2)                                                                               \
    X(MAX, "max", 2)

enum grt_map {
#define X(name, text, arity) GRT_MAP_##name,
    GRT_MAPS(X)
#undef X
        GRT_MAP_COUNT,
};
GRT_API const char *grt_map_text(enum grt_map map);
GRT_API uint32_t grt_map_arity(enum grt_map map);

struct grt_map_desc {
    enum grt_map map;
    const struct grt_tensor *y, *a, *b;  // f32, equally many elements; b only with two operands.
                                         // y may be a or b themselves: in place
    float alpha, beta;                   // scale and add: both 0 means 1 and 0, 1 and 1
};
#define grt_map_desc(...) GRT_DESC(struct grt_map_desc, __VA_ARGS__)
GRT_API void grt_op_map(struct grt_graph *graph, const struct grt_map_desc *desc);

#define GRT_REDUCES(X)                                                                             \
    X(SUM, "sum")                                                                                  \
    X(MEAN, "mean")                                                                                \
    X(MAX, "max")       /* NaN if any is */                                                        \
    X(NORM, "norm")     /* square root of the sum of squares */                                    \
    X(ARGMAX, "argmax") /* first index of the largest; y is u32 */

enum grt_reduce {
#define X(name, text) GRT_REDUCE_##name,
    GRT_REDUCES(X)
#undef X
        GRT_REDUCE_COUNT,
};
GRT_API const char *grt_reduce_text(enum grt_reduce reduce);

struct grt_reduce_desc {
    enum grt_reduce reduce;
    const struct grt_tensor *y, *x;  // x f32
    // false: y is one number, over all of x. true: over the last axis, y has the other axes' shape.
    bool rows;
    // Partial results, grt_op_reduce_scratch() bytes; only needed when that is not 0.
    struct grt_range scratch;
};
#define grt_reduce_desc(...) GRT_DESC(struct grt_reduce_desc, __VA_ARGS__)
// The order of the additions is fixed by the shape: the same bits on every run of a device.
GRT_API void grt_op_reduce(struct grt_graph *graph, const struct grt_reduce_desc *desc);
GRT_API uint64_t grt_op_reduce_scratch(const struct grt_dev *dev,
                                       const struct grt_reduce_desc *desc);

// Softmax and the layer norm are for modules and programs of your own, forward only: gpurt's losses
// and layers have them fused with what stands beside them.
//
// y = softmax of x over the last axis: exp(x - max) / sum exp(x - max). f32, equally many elements,
// apart.
GRT_API void grt_op_softmax(struct grt_graph *graph, const struct grt_tensor *y,
                            const struct grt_tensor *x);

struct grt_layer_norm_desc {
    // f32, equally many, apart: y = (x - mean) / sqrt(variance + eps) * weight + bias over the last
    // axis
    const struct grt_tensor *y, *x;
    const struct grt_tensor *weight, *bias;  // one f32 for each column, or NULL
    // Out, or NULL: for each row its mean and 1 / sqrt(variance + eps), two f32, which the backward
    // pass needs.
    const struct grt_tensor *stats;
    float eps;  // 0 means 1e-5
};
#define grt_layer_norm_desc(...) GRT_DESC(struct grt_layer_norm_desc, __VA_ARGS__)
GRT_API void grt_op_layer_norm(struct grt_graph *graph, const struct grt_layer_norm_desc *desc);

struct grt_colsum_desc {
    // y[col] = sum of x[row][col] over all axes but the last; y f32, x f32, f16 or bf16, summed in
    // f32
    const struct grt_tensor *y, *x;
    bool add;  // to what y holds
    // NULL, or the same of a second x of the same shape and type, in one launch where that does.
    const struct grt_tensor *y2, *x2;
    // Partial sums, grt_op_colsum_scratch() bytes; only needed when that is not 0.
    struct grt_range scratch;
};
#define grt_colsum_desc(...) GRT_DESC(struct grt_colsum_desc, __VA_ARGS__)
// The order of the additions is fixed by the shape, as with grt_op_reduce().
GRT_API void grt_op_colsum(struct grt_graph *graph, const struct grt_colsum_desc *desc);
GRT_API uint64_t grt_op_colsum_scratch(const struct grt_dev *dev,
                                       const struct grt_colsum_desc *desc);

// y[..][j][i] = x[..][i][j] over the last two axes; 4-byte or 2-byte elements.
GRT_API void grt_op_transpose(struct grt_graph *graph, const struct grt_tensor *y,
                              const struct grt_tensor *x);

#define GRT_DISTS(X)                                                                               \
    X(BITS, "bits")       /* u32 */                                                                \
    X(UNIFORM, "uniform") /* f32 in [0, 1) */                                                      \
    X(NORMAL, "normal")   /* f32, mean 0, variance 1 */

enum grt_dist {
#define X(name, text) GRT_DIST_##name,
    GRT_DISTS(X)
#undef X
        GRT_DIST_COUNT,
};

// Key and position of the counter-based generator (Philox4x32-10), in a device buffer so that a
// replayed graph draws new numbers each time: element i of a tensor is word i%4 of block (i/4,
// stream, step).
struct grt_rng_state {
    uint32_t seed[2];
    uint32_t step[2];  // low and high word
};

struct grt_random_desc {
    enum grt_dist dist;
    const struct grt_tensor *y;
    struct grt_range state;  // one grt_rng_state
    uint32_t stream;         // tells apart the draws of one step
    bool advance;            // add 1 to the step afterwards
};
#define grt_random_desc(...) GRT_DESC(struct grt_random_desc, __VA_ARGS__)
GRT_API void grt_op_random(struct grt_graph *graph, const struct grt_random_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
