// SPDX-License-Identifier: Apache-2.0
// What ops share: checking operands, cutting a tensor into pieces, and the size of a launch.
#ifndef GRT_OP_SUPPORT_H
#define GRT_OP_SUPPORT_H

#include "plan.h"

// Whether a tensor can be used here; rejects the graph otherwise.
bool grt_op_tensor(struct grt_graph *graph, const char *op, const char *name,
                   const struct grt_tensor *tensor);
// Bytes that a binding's offset must be a multiple of, at least 16.
uint64_t grt_op_align(const struct grt_graph *graph);
// A small device buffer to bind where a kernel does not look; buf NULL, and the graph rejected, when
// there is no memory for it.
struct grt_range grt_op_unused(struct grt_graph *graph);
// Lanes of a workgroup for work without shared memory, and with a tree over it.
uint32_t grt_op_wg(const struct grt_dev *dev);
uint32_t grt_op_tree_wg(const struct grt_dev *dev);

// Pieces of `total` elements, each reachable through one binding at `size` bytes an element.
//     for (pieces = grt_op_pieces(...); grt_op_next(&pieces);) { first, count }
struct grt_pieces {
    uint64_t first, count;  // the current piece
    uint64_t total, largest;
};
struct grt_pieces grt_op_pieces(const struct grt_graph *graph, uint64_t total, uint32_t size);
bool grt_op_next(struct grt_pieces *pieces);
// The current piece of a tensor that has one element for each counted.
struct grt_range grt_op_piece(const struct grt_tensor *tensor, const struct grt_pieces *pieces);

// Records a kernel that walks the piece with a grid of its own size: one lane takes several elements.
void grt_op_stream(struct grt_graph *graph, const struct grt_pieces *pieces,
                   const struct grt_kernel_desc *kernel, const void *params, uint32_t params_size,
                   const struct grt_range *ranges, uint32_t range_count);
// Records a kernel with one workgroup per row; `wg` 0 leaves the kernel's own.
void grt_op_launch(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                   const void *params, uint32_t params_size, const struct grt_range *ranges,
                   uint32_t range_count, const uint32_t groups[3]);

#endif
