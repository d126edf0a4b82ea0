// SPDX-License-Identifier: Apache-2.0
// What ops share: checking operands, cutting a tensor into pieces, and the size of a launch.
#ifndef GRT_OP_SUPPORT_H
#define GRT_OP_SUPPORT_H

#include "gpurt/plan.h"

// Whether a tensor can be used here; rejects the graph otherwise.
bool grt_op_tensor(struct grt_graph *graph, const char *op, const char *name,
                   const struct grt_tensor *tensor);
// Extent of the last axis: how long a row is.
uint64_t grt_op_cols(const struct grt_tensor *x);
// `size` bytes of a range, from `offset` on.
struct grt_range grt_op_part(struct grt_range range, uint64_t offset, uint64_t size);
// What offsets within scratch are multiples of: enough for every device (NVIDIA's OpenCL asks for
// it).
#define GRT_OP_PART_ALIGN 512u
// Dummy buffer for unused bindings; buf NULL, and the graph rejected, when there is no memory for
// it.
struct grt_range grt_op_unused(struct grt_graph *graph);
// The i-th of GRT_OP_UNUSED dummies that do not overlap, for kernels with several unused bindings
// that they could write.
#define GRT_OP_UNUSED 4u
struct grt_range grt_op_unused_at(struct grt_graph *graph, uint32_t i);
// Bytes of a range of a buffer: a size of 0 means all from the offset on.
uint64_t grt_op_room(struct grt_range range);
// Whether the scratch given has the bytes wanted for an op of what `of` names; rejects the graph
// otherwise.
bool grt_op_scratch(struct grt_graph *graph, const char *op, const char *of,
                    struct grt_range scratch, uint64_t wanted);
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

// Numbers of 4 bytes that a binding reaches, counted in 32 bits with room to step.
uint64_t grt_op_reach(const struct grt_dev *dev);
// Rows that a launch begins at are multiples of this: their results then lie at offsets a binding
// may have, and so do the rows themselves.
uint64_t grt_op_row_unit(const struct grt_dev *dev);
// Pieces of `total` rows of `cols` numbers, each reachable through one binding. Where not even a
// few rows are, the graph is rejected and there is no piece.
struct grt_pieces grt_op_rows(struct grt_graph *graph, const char *op, uint64_t total,
                              uint64_t cols);
// A grid of at least `count` workgroups, counted GROUP(1) * GROUPS(0) + GROUP(0).
void grt_op_row_grid(const struct grt_dev *dev, uint64_t count, uint32_t groups[3]);

// Records a kernel that walks the piece with a grid of its own size: one lane takes several
// elements.
void grt_op_stream(struct grt_graph *graph, const struct grt_pieces *pieces,
                   const struct grt_kernel_desc *kernel, const void *params, uint32_t params_size,
                   const struct grt_range *ranges, uint32_t range_count);
// The smallest power of two that is not below, from 1 to `most`.
uint32_t grt_op_power_above(uint64_t value, uint32_t most);
// Records a kernel made of shaders/lib/rows.k: WG and LANES are added to its constants.
void grt_op_launch_rows(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                        uint64_t rows, uint64_t cols, const void *params, uint32_t params_size,
                        const struct grt_range *ranges, uint32_t range_count);
// The same where nothing is summed over a row's lanes: a CPU's lanes are side by side too.
void grt_op_launch_apart(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                         uint64_t rows, uint64_t cols, const void *params, uint32_t params_size,
                         const struct grt_range *ranges, uint32_t range_count);
// Records a kernel over a grid.
void grt_op_launch(struct grt_graph *graph, const struct grt_kernel_desc *kernel,
                   const void *params, uint32_t params_size, const struct grt_range *ranges,
                   uint32_t range_count, const uint32_t groups[3]);

#endif
