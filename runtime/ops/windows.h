// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: windows over images [height][width][channels], a batch of them
// [rows][height][width][channels], and the launch of kernels that go over them by pixels.
#ifndef GRT_OP_WINDOWS_H
#define GRT_OP_WINDOWS_H

#include "gpurt/kernel.h"
#include "gpurt/plan.h"

struct grt_window {
    uint32_t size, stride, padding;  // both ways
    uint32_t height, width, channels;
    uint32_t out_height, out_width;
};
// Windows that fit into an extent with padding on both sides.
uint32_t grt_window_places(const struct grt_window *window, uint32_t extent);

// Records a kernel of shaders/image that has window_params: `rows` rows of `cols` numbers that lie
// one behind the other. WG and LANES are added to
// its constants.
void grt_op_launch_windows(struct grt_graph *graph, const struct grt_window *window,
                           const struct grt_kernel_desc *kernel, uint64_t rows, uint64_t cols,
                           const struct grt_range *ranges, uint32_t count);

// The same of a kernel whose lanes take `count` numbers, vectors or the like one by one; WG is
// added to its constants.
void grt_op_stream_windows(struct grt_graph *graph, const struct grt_window *window,
                           const struct grt_kernel_desc *kernel, uint64_t count,
                           const struct grt_range *ranges, uint32_t range_count);

#endif
