// SPDX-License-Identifier: Apache-2.0
#include "image_ops.h"

#include "eights.h"
#include "gpurt/device.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/image/lib/image_params.k"

#define EPS 1e-5f
#define MOMENTUM 0.1f

static struct grt_onnx_attribute sides(const char *name, int64_t side, uint32_t count) {
    return (struct grt_onnx_attribute){
        .name = name, .type = GRT_ONNX_WHOLES, .wholes = {side, side, side, side}, .count = count};
}

struct grt_onnx_node grt_window_onnx(const struct grt_window *w, const char *op,
                                     struct grt_onnx_value x) {
    return (struct grt_onnx_node){.op = op,
                                  .inputs = {x.name},
                                  .attributes = {sides("kernel_shape", w->size, 2),
                                                 sides("strides", w->stride, 2),
                                                 sides("pads", w->padding, 4)}};
}

bool grt_window_fit(struct grt_window *w, const struct grt_module *module,
                    const struct grt_shape *in) {
    char text[GRT_SHAPE_TEXT];
    if (in->rank != 3) {
        return grt_module_refuse(module, "takes images of [height][width][channels], not %s",
                                 grt_shape_text(in, text))
                   .rank > 0;
    }
    uint64_t most = (uint64_t)1 << 30, border = 2 * (uint64_t)w->padding;
    if (in->dim[0] > most || in->dim[1] > most || in->dim[2] > most || grt_shape_count(in) > most) {
        return grt_module_refuse(module, "%s is too large", grt_shape_text(in, text)).rank > 0;
    }
    if (in->dim[0] + border < w->size || in->dim[1] + border < w->size) {
        return grt_module_refuse(module, "%ux%u with padding %u does not fit into %s", w->size,
                                 w->size, w->padding, grt_shape_text(in, text))
                   .rank > 0;
    }
    w->height = (uint32_t)in->dim[0];
    w->width = (uint32_t)in->dim[1];
    w->channels = (uint32_t)in->dim[2];
    w->out_height = grt_window_places(w, w->height);
    w->out_width = grt_window_places(w, w->width);
    return true;
}

// A kernel of a window in vectors of eight channels, of so many.
static void launch_eights(struct grt_graph *graph, const struct grt_window *w,
                          struct grt_kernel_desc *kernel, const struct grt_tensor *of,
                          const struct grt_range *ranges) {
    uint32_t spec = 0;
    while (kernel->specs[spec].name) {
        spec++;
    }
    kernel->specs[spec++] = (struct grt_spec){"ACROSS", w->channels / 8};
    kernel->specs[spec++] = (struct grt_spec){"SIZE", w->size};
    kernel->specs[spec++] = (struct grt_spec){"STRIDE", w->stride};
    grt_op_stream_windows(graph, w, kernel, grt_tensor_count(of) / 8, ranges, 3);
}

void grt_op_window(struct grt_graph *graph, const struct grt_window *w, enum grt_pool pool,
                   const struct grt_tensor *x, const struct grt_tensor *y,
                   const struct grt_tensor *which) {
    if (!grt_nn_reachable(graph, x)) {
        return;
    }
    const struct grt_range ranges[] = {x->range, y->range,
                                       which ? which->range : grt_op_unused(graph)};
    struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_tensor *operands[] = {x, y};
    bool eights = grt_eights_serve(dev, "window8", operands, 2);
    char name[GRT_NN_KERNEL];
    struct grt_kernel_desc kernel = {eights ? grt_eights_kernel(dev, name, "window8", x->dtype)
                                            : grt_nn_kernel(name, "window", x),
                                     {{"KIND", grt_nn_kind(x)}, {"LARGEST", pool == GRT_POOL_MAX}}};
    uint64_t rows = x->shape[0] * w->out_height * w->out_width;
    if (eights) {
        launch_eights(graph, w, &kernel, y, ranges);
    } else {
        grt_op_launch_windows(graph, w, &kernel, rows, w->channels, ranges, 3);
    }
}

void grt_op_window_backward(struct grt_graph *graph, const struct grt_window *w, enum grt_pool pool,
                            const struct grt_tensor *dy, const struct grt_tensor *which,
                            const struct grt_tensor *dx, bool add) {
    if (!grt_nn_reachable(graph, dx)) {
        return;
    }
    const struct grt_range ranges[] = {dy->range, which ? which->range : grt_op_unused(graph),
                                       dx->range};
    struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_tensor *operands[] = {dy, dx};
    bool eights = grt_eights_serve(dev, "window_grad8", operands, 2);
    char name[GRT_NN_KERNEL];
    struct grt_kernel_desc kernel = {
        eights ? grt_eights_kernel(dev, name, "window_grad8", dx->dtype)
               : grt_nn_kernel(name, "window_grad", dx),
        {{"KIND", grt_nn_kind(dx)}, {"ADD", add}, {"LARGEST", pool == GRT_POOL_MAX}}};
    uint64_t rows = dx->shape[0] * w->height * w->width;
    if (eights) {
        launch_eights(graph, w, &kernel, dx, ranges);
    } else {
        grt_op_launch_windows(graph, w, &kernel, rows, w->channels, ranges, 3);
    }
}

#define STATS_CHUNK 3u  // the kernel's FROM

// What statistics are made of: chunks of rows, the last of which may be shorter.
struct moments {
    uint32_t from;
    uint64_t chunks, chunk, last, pitch, squares_at;
    struct grt_range means, squares, to;
};

static void launch_stats(struct grt_graph *graph, const struct grt_batch_stats *b,
                         const struct moments *m) {
    uint64_t rows = (m->chunks - 1) * m->chunk + m->last, cols = b->x->shape[1];
    // One row has no variance: PyTorch refuses it, here it is 0.
    const struct batch_stats_params params = {.cols = (uint32_t)cols,
                                              .chunks = (uint32_t)m->chunks,
                                              .chunk = (float)m->chunk,
                                              .last = (float)m->last,
                                              .share = 1.0f / (float)rows,
                                              .unbiased = rows > 1 ? 1.0f / (float)(rows - 1) : 0,
                                              .eps = EPS,
                                              .momentum = MOMENTUM,
                                              .pitch = (uint32_t)m->pitch,
                                              .squares_at = (uint32_t)m->squares_at};
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "batch_stats",
                        .specs = {{"WG", grt_op_tree_wg(grt_graph_dev(graph))}, {"FROM", m->from}}),
        &params, sizeof params,
        (const struct grt_range[]){m->means, m->squares, m->to, b->running_mean->master.range,
                                   b->running_var->master.range, b->batches->master.range},
        6, (const uint32_t[3]){(uint32_t)cols, 1, 1});
}

void grt_op_batch_stats(struct grt_graph *graph, const struct grt_batch_stats *b) {
    struct grt_dev *dev = grt_graph_dev(graph);
    if (!grt_nn_reachable(graph, b->x)) {
        return;
    }
    uint64_t rows = b->x->shape[0], cols = b->x->shape[1], chunk = grt_block_chunk(rows);
    uint64_t chunks = (rows + chunk - 1) / chunk, last = rows - (chunks - 1) * chunk;
    struct grt_tensor sums[2], totals[2];
    grt_block_parts(&(struct grt_block){.z = b->x, .scratch = b->scratch}, sums, totals);
    if (b->from != GRT_STATS_RUNNING) {
        const struct batch_sums_params params = {.rows = (uint32_t)rows,
                                                 .cols = (uint32_t)cols,
                                                 .chunk = (uint32_t)chunk,
                                                 .share = 1.0f / (float)chunk,
                                                 .last_share = 1.0f / (float)last};
        const struct grt_range ranges[] = {b->x->range, sums[0].range, sums[1].range};
        char name[GRT_NN_KERNEL];
        if (grt_eights_serve(dev, "batch_sums8", &b->x, 1)) {
            struct grt_eights e = grt_eights_of(dev, rows, cols, chunk);
            grt_op_launch(
                graph,
                grt_kernel_desc(.name = grt_eights_kernel(dev, name, "batch_sums8", b->x->dtype),
                                .specs = {{"WG", e.wg},
                                          {"ACROSS", e.across},
                                          {"KIND", grt_nn_kind(b->x)}}),
                &params, sizeof params, ranges, 3, e.groups);
        } else {
            struct grt_slices lanes = grt_block_slices(dev);
            uint32_t across = lanes.wg / lanes.slices;
            grt_op_launch(
                graph,
                grt_kernel_desc(.name = grt_nn_kernel(name, "batch_sums", b->x),
                                .specs = {{"WG", lanes.wg},
                                          {"SLICES", lanes.slices},
                                          {"KIND", grt_nn_kind(b->x)}}),
                &params, sizeof params, ranges, 3,
                (const uint32_t[3]){(uint32_t)((cols + across - 1) / across), (uint32_t)chunks, 1});
        }
    }
    struct moments m = {.from = b->from,
                        .chunks = chunks,
                        .chunk = chunk,
                        .last = last,
                        .pitch = cols,
                        .means = sums[0].range,
                        .squares = sums[1].range,
                        .to = b->stats->range};
    if (b->sync && b->from != GRT_STATS_RUNNING) {
        m.from = STATS_CHUNK;
        m.to = b->sync->own->range;
        launch_stats(graph, b, &m);
        grt_norm_meet(graph, b->sync);
        // Those of the ranks are chunks of one batch.
        m = (struct moments){.from = b->from,
                             .chunks = b->sync->net->together.ranks,
                             .chunk = rows,
                             .last = rows,
                             .pitch = 2 * cols,
                             .squares_at = cols,
                             .means = b->sync->all->range,
                             .squares = b->sync->all->range,
                             .to = b->stats->range};
    }
    launch_stats(graph, b, &m);
}
