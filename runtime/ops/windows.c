// SPDX-License-Identifier: Apache-2.0
#include "windows.h"

#include "op_support.h"
#include "shaders/host.h"
#include "shaders/image/lib/image_params.k"

uint32_t grt_window_places(const struct grt_window *w, uint32_t extent) {
    return (uint32_t)((extent + 2 * (uint64_t)w->padding - w->size) / w->stride + 1);
}

static struct window_params params_of(const struct grt_window *w, uint64_t rows) {
    return (struct window_params){.rows = (uint32_t)rows,
                                  .height = w->height,
                                  .width = w->width,
                                  .channels = w->channels,
                                  .out_height = w->out_height,
                                  .out_width = w->out_width,
                                  .size = w->size,
                                  .stride = w->stride,
                                  .padding = w->padding,
                                  .share = 1.0f / ((float)w->size * (float)w->size)};
}

void grt_op_launch_windows(struct grt_graph *graph, const struct grt_window *w,
                           const struct grt_kernel_desc *k, uint64_t rows, uint64_t cols,
                           const struct grt_range *ranges, uint32_t count) {
    const struct window_params params = params_of(w, rows);
    grt_op_launch_apart(graph, k, rows, cols, &params, sizeof params, ranges, count);
}

void grt_op_stream_windows(struct grt_graph *graph, const struct grt_window *w,
                           const struct grt_kernel_desc *k, uint64_t count,
                           const struct grt_range *ranges, uint32_t range_count) {
    const struct window_params params = params_of(w, count);
    struct grt_pieces pieces = {.total = count, .largest = count, .count = count};
    grt_op_stream(graph, &pieces, k, &params, sizeof params, ranges, range_count);
}
