// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: ops that only modules use. Operands are
// the modules' own, checked when those were declared; what a device cannot reach at once is
// rejected to the graph.
#ifndef GRT_NN_LAYER_OPS_H
#define GRT_NN_LAYER_OPS_H

#include "gpurt/module.h"

// The first `rows` rows of a tensor.
struct grt_tensor grt_nn_rows(const struct grt_tensor *tensor, uint64_t rows);
// The same elements as [rows][cols].
struct grt_tensor grt_nn_matrix(const struct grt_tensor *tensor, uint64_t rows, uint64_t cols);

// What kernels of layers call the type of x: their KIND, and "block_f32" or "block_16".
#define GRT_NN_KERNEL 32
uint32_t grt_nn_kind(const struct grt_tensor *x);
const char *grt_nn_kernel(char name[GRT_NN_KERNEL], const char *stem, const struct grt_tensor *x);
// Whether x can be counted in 32 bits through one binding; rejects the graph otherwise.
bool grt_nn_reachable(struct grt_graph *graph, const struct grt_tensor *x);

// A tensor of samples as a matrix: rows are all axes but the last.
struct grt_tensor grt_nn_flat(const struct grt_tensor *tensor);
// y = a + b, all of one type and shape; y may be either of them.
void grt_nn_add(struct grt_graph *graph, const struct grt_tensor *y, const struct grt_tensor *a,
                const struct grt_tensor *b);

// y[..][y_first + c] = x[..][x_first + c] for c below cols, of one type and as many rows.
void grt_nn_columns(struct grt_graph *graph, const struct grt_tensor *y, uint64_t y_first,
                    const struct grt_tensor *x, uint64_t x_first, uint64_t cols);

// A batch norm over the rows of several processes, each of which has as many: what it has, and what
// all have, f32 [2][cols] of each rank.
struct grt_norm_sync {
    struct grt_net *net;
    const struct grt_tensor *own, *all;
};
// Records that all have what own has on each rank.
void grt_norm_meet(struct grt_graph *graph, const struct grt_norm_sync *sync);

// What follows a product in a layer: h = act(norm(z)) + x.
struct grt_block {
    const struct grt_tensor *z, *h;  // [rows][cols], net's dtype
    const struct grt_tensor *x;      // residual, or NULL; may be h
    bool act_last;                   // forward: h = act(norm(z) + x)
    enum grt_act act;
    const struct grt_param *weight, *bias;  // of the norm, or NULL
    const struct grt_tensor *stats;  // with a norm: f32 [rows][2], out in forward, in in backward
    bool by_column;                  // the norm is of each column, stats [2][cols] go in
    // Backward only.
    // dz NULL: only the norm's gradients are wanted; dz may be dh, but for a norm of rows
    const struct grt_tensor *dh, *dz;
    const struct grt_tensor *scratch;  // grt_block_scratch() bytes
    bool add;                          // to the gradients of weight and bias
    const struct grt_norm_sync *sync;  // of a norm by column, or NULL: it is of these rows alone
};
void grt_op_block(struct grt_graph *graph, const struct grt_block *block);
void grt_op_block_backward(struct grt_graph *graph, const struct grt_block *block);
// The same of samples: x, dy and dx, or NULL, take the places of z, dh and dz.
void grt_nn_block_backward(const struct grt_pass *pass, const struct grt_block *block,
                           const struct grt_tensor *x, const struct grt_tensor *dy,
                           const struct grt_tensor *dx);
uint64_t grt_block_scratch(uint64_t rows, uint64_t cols);
// Rows that are summed one after the other, and two tensors of a row for each such chunk, in the
// scratch.
uint64_t grt_block_chunk(uint64_t rows);
// Lanes of a workgroup of kernels made of shaders/lib/slices.k, and how many slices they are: a
// CPU's lanes are columns side by side.
struct grt_slices {
    uint32_t wg, slices;
};
struct grt_slices grt_block_slices(const struct grt_dev *dev);
void grt_block_parts(const struct grt_block *block, struct grt_tensor sums[2],
                     struct grt_tensor totals[2]);

// y = mask of x, see shaders/nn/lib/dropout.k.
struct grt_dropout {
    const struct grt_tensor *x, *y;
    struct grt_range state;
    uint64_t seed;
    uint32_t stream, micro;
    float p;
};
void grt_op_dropout(struct grt_graph *graph, const struct grt_dropout *dropout);

// y [rows][cols] from x [rows][points][cols]; which: u32 like y, for the largest.
struct grt_pooling {
    const struct grt_tensor *x, *y;
    const struct grt_tensor *which;  // NULL for the mean
    enum grt_pool pool;
    uint64_t points;
};
void grt_op_pool(struct grt_graph *graph, const struct grt_pooling *pooling);
// x is dx, y is dy.
void grt_op_pool_backward(struct grt_graph *graph, const struct grt_pooling *pooling);

// Samples first .. first + rows - 1 behind the state's cursor, from rows that stay on the device.
struct grt_step_rows;
struct grt_gathering {
    const struct grt_step_rows *from;
    const struct grt_tensor *state;
    bool evaluates;  // with the cursor of evaluations
    uint64_t first, rows;
    uint64_t batch;           // samples of a step,
    uint64_t x_step, y_step;  // and the bytes from one to the next where they go to
    struct grt_range x, y;    // y without a buffer: targets are not wanted
};
void grt_op_gather(struct grt_graph *graph, const struct grt_gathering *gathering);
// Of the same samples, the numbers of the rows that they are: u32, as many as `rows`; `first` is 0,
// and x and y are not looked at.
void grt_op_draw(struct grt_graph *graph, const struct grt_gathering *drawing,
                 struct grt_range numbers);

#endif
