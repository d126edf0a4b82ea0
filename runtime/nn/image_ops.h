// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: windows over images (ops/windows.h), and ops that only modules of images use.
#ifndef GRT_NN_IMAGE_OPS_H
#define GRT_NN_IMAGE_OPS_H

#include "layer_ops.h"
#include "ops/windows.h"

// Fills in what follows from the shape of a sample; false, with the module's sentence, where no
// window fits.
bool grt_window_fit(struct grt_window *window, const struct grt_module *module,
                    const struct grt_shape *in);

// y [rows][out_height][out_width][channels]: the mean of each window, padding being zeros, or the
// largest; then which [the same], u32, keeps where it was.
void grt_op_window(struct grt_graph *graph, const struct grt_window *window, enum grt_pool pool,
                   const struct grt_tensor *x, const struct grt_tensor *y,
                   const struct grt_tensor *which);
void grt_op_window_backward(struct grt_graph *graph, const struct grt_window *window,
                            enum grt_pool pool, const struct grt_tensor *dy,
                            const struct grt_tensor *which, const struct grt_tensor *dx, bool add);

// Mean and 1 / deviation of each column of x.
struct grt_batch_stats {
    const struct grt_tensor *x;      // [rows][cols]
    const struct grt_tensor *stats;  // f32 [2][cols], out
    const struct grt_param *running_mean, *running_var, *batches;
    enum { GRT_STATS_OF_BATCH, GRT_STATS_KEPT, GRT_STATS_RUNNING } from;
    const struct grt_tensor *scratch;  // grt_block_scratch() bytes
    const struct grt_norm_sync *sync;  // NULL: of these rows alone
};
// OF_BATCH, KEPT: of x, and the running statistics follow; RUNNING: those are taken.
void grt_op_batch_stats(struct grt_graph *graph, const struct grt_batch_stats *batch);
// The node of a window over images: Conv, MaxPool or AveragePool, but for its other inputs.
struct grt_onnx_node grt_window_onnx(const struct grt_window *window, const char *op,
                                     struct grt_onnx_value x);

#endif
