// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm over rows, and sums over columns.
//
//     column sums:  x [rows][cols] = chunks of rows -> one partial row each -> y [cols]
//
// How many lanes a row gets and how many rows a chunk has depends on the shape and the kind of
// device alone, so the order of additions does too.
#include "device/internal.h"
#include "op_support.h"
#include "gpurt/ops.h"
#include "base/log.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"

#define MANY_ROWS 256u  // from here on columns are summed in two launches
#define MAX_CHUNKS 256u

// A part of a range, counted in numbers.
static struct grt_range part(struct grt_range range, uint64_t first, uint64_t count) {
    return grt_op_part(range, first * 4, count * 4);
}

static bool is_16bit(enum grt_dtype dtype) {
    return dtype == GRT_F16 || dtype == GRT_BF16;
}

static bool is_f32(struct grt_graph *graph, const char *op, const struct grt_tensor *x,
                   uint64_t count) {
    if (x->dtype == GRT_F32 && grt_tensor_count(x) == count) {
        return true;
    }
    grt_graph_reject(graph, GRT_INVALID, "%s: '%s' must hold %llu of f32", op, x->label,
                     (unsigned long long)count);
    return false;
}

// ---- rows ----

void grt_op_softmax(struct grt_graph *graph, const struct grt_tensor *y,
                    const struct grt_tensor *x) {
    if (!grt_op_tensor(graph, "softmax", "y", y) || !grt_op_tensor(graph, "softmax", "x", x) ||
        !is_f32(graph, "softmax", x, grt_tensor_count(x)) ||
        !is_f32(graph, "softmax", y, grt_tensor_count(x))) {
        return;
    }
    uint64_t cols = grt_op_cols(x);
    struct grt_pieces rows = grt_op_rows(graph, "softmax", grt_tensor_count(x) / cols, cols);
    while (grt_op_next(&rows)) {
        const struct softmax_params params = {.rows = (uint32_t)rows.count, .cols = (uint32_t)cols};
        struct grt_range ranges[] = {part(x->range, rows.first * cols, rows.count * cols),
                                     part(y->range, rows.first * cols, rows.count * cols)};
        grt_op_launch_rows(graph, grt_kernel_desc(.name = "softmax"), rows.count, cols, &params,
                           sizeof params, ranges, 2);
    }
}

static bool check_layer_norm(struct grt_graph *graph, const struct grt_layer_norm_desc *desc) {
    static const char name[] = "layer norm";
    if (!grt_op_tensor(graph, name, "y", desc->y) || !grt_op_tensor(graph, name, "x", desc->x) ||
        (desc->weight && !grt_op_tensor(graph, name, "weight", desc->weight)) ||
        (desc->bias && !grt_op_tensor(graph, name, "bias", desc->bias)) ||
        (desc->stats && !grt_op_tensor(graph, name, "stats", desc->stats))) {
        return false;
    }
    if (!(desc->eps >= 0.0f)) {
        grt_graph_reject(graph, GRT_INVALID, "layer norm of '%s': eps is %g, below 0",
                         desc->x->label, (double)desc->eps);
        return false;
    }
    uint64_t count = grt_tensor_count(desc->x), cols = grt_op_cols(desc->x);
    return is_f32(graph, name, desc->x, count) && is_f32(graph, name, desc->y, count) &&
           (!desc->weight || is_f32(graph, name, desc->weight, cols)) &&
           (!desc->bias || is_f32(graph, name, desc->bias, cols)) &&
           (!desc->stats || is_f32(graph, name, desc->stats, 2 * (count / cols)));
}

void grt_op_layer_norm(struct grt_graph *graph, const struct grt_layer_norm_desc *desc) {
    if (!graph || !desc) {
        grt_graph_reject(graph, GRT_INVALID, "layer norm: no desc");
        return;
    }
    if (!check_layer_norm(graph, desc)) {
        return;
    }
    const struct grt_tensor *x = desc->x, *y = desc->y;
    uint64_t cols = grt_op_cols(x);
    struct grt_pieces rows = grt_op_rows(graph, "layer norm", grt_tensor_count(x) / cols, cols);
    while (grt_op_next(&rows)) {
        const struct layer_norm_params params = {.rows = (uint32_t)rows.count,
                                                 .cols = (uint32_t)cols,
                                                 .scale = 1.0f / (float)cols,
                                                 .eps = desc->eps > 0.0f ? desc->eps : 1e-5f};
        struct grt_range of_x = part(x->range, rows.first * cols, rows.count * cols);
        // An operand that is not there is bound to something harmless.
        struct grt_range ranges[] = {
            of_x,
            desc->weight ? desc->weight->range : of_x,
            desc->bias ? desc->bias->range : of_x,
            part(y->range, rows.first * cols, rows.count * cols),
            desc->stats ? part(desc->stats->range, 2 * rows.first, 2 * rows.count)
                        : grt_op_unused(graph),
        };
        const struct grt_kernel_desc kernel = {"layer_norm",
                                               {{"WEIGHT", desc->weight != NULL},
                                                {"BIAS", desc->bias != NULL},
                                                {"SAVE", desc->stats != NULL}}};
        grt_op_launch_rows(graph, &kernel, rows.count, cols, &params, sizeof params, ranges, 5);
    }
}

// ---- columns ----

// Rows of a chunk, all of them where one launch does. Chunks begin at offsets any binding may have.
// 0: not even a few rows can be reached at once.
static uint64_t chunk_rows(const struct grt_dev *dev, uint64_t rows, uint64_t cols) {
    uint64_t unit = grt_op_row_unit(dev), reach = grt_op_reach(dev) / cols;
    if (rows <= MANY_ROWS && rows <= reach) {
        return rows;
    }
    uint64_t chunk = (rows + MAX_CHUNKS - 1) / MAX_CHUNKS;
    chunk = chunk > MANY_ROWS / 2 ? (chunk + 63) / 64 * 64 : MANY_ROWS / 2;
    return (chunk < reach ? chunk : reach) / unit * unit;
}

uint64_t grt_op_colsum_scratch(const struct grt_dev *dev, const struct grt_colsum_desc *desc) {
    if (!dev || !desc || !desc->x || grt_tensor_count(desc->x) == 0) {
        return 0;
    }
    uint64_t cols = grt_op_cols(desc->x), rows = grt_tensor_count(desc->x) / cols;
    uint64_t chunk = chunk_rows(dev, rows, cols);
    return chunk == 0 || chunk == rows ? 0 : (rows + chunk - 1) / chunk * cols * 4;
}

// What is summed up where, and NULL or a second of the same shapes in the same launch.
struct sums {
    struct grt_range x, y;
    const struct grt_range *x2, *y2;
};

// Sums `rows` rows of x in chunks to rows of y, or adds to them.
static void sum_chunks(struct grt_graph *graph, struct sums s, enum grt_dtype dtype, bool add,
                       uint64_t rows, uint64_t cols, uint64_t chunk) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_caps *caps = &dev->info.caps;
    uint32_t wg = grt_op_tree_wg(dev);
    uint32_t tile = caps->software ? wg : grt_op_power_above(cols, 32);
    uint64_t tiles = (cols + tile - 1) / tile;
    uint64_t at_once = grt_op_reach(dev) / (chunk * cols);
    at_once = at_once < caps->max_groups[1] ? at_once : caps->max_groups[1];
    if (is_16bit(dtype) && at_once > 1) {
        at_once -= at_once % 2;  // chunks are aligned for 4 bytes an element
    }
    for (uint64_t first = 0; first * chunk < rows; first += at_once) {
        uint64_t left = rows - first * chunk;
        uint64_t here = left < at_once * chunk ? left : at_once * chunk;
        const struct colsum_params params = {.rows = (uint32_t)here,
                                             .cols = (uint32_t)cols,
                                             .chunk = (uint32_t)chunk,
                                             .first = (uint32_t)first};
        const uint32_t groups[3] = {
            (uint32_t)(tiles < caps->max_groups[0] ? tiles : caps->max_groups[0]),
            (uint32_t)((here + chunk - 1) / chunk), s.x2 ? 2 : 1};
        uint64_t from = first * chunk * cols * grt_dtype_size(dtype);
        uint64_t bytes = here * cols * grt_dtype_size(dtype);
        struct grt_range ranges[4] = {grt_op_part(s.x, from, bytes), s.y};
        if (s.x2) {
            ranges[2] = grt_op_part(*s.x2, from, bytes);
            ranges[3] = *s.y2;
        }
        const struct grt_kernel_desc kernel = {
            is_16bit(dtype) ? "colsum16"
            : s.x2          ? "colsum_pair"
                            : "colsum",
            {{"WG", wg}, {"COLS", tile}, {"KIND", dtype == GRT_BF16}, {"ADD", add}}};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, s.x2 ? 4 : 2, groups);
    }
}

void grt_op_colsum(struct grt_graph *graph, const struct grt_colsum_desc *desc) {
    if (!graph || !desc) {
        grt_graph_reject(graph, GRT_INVALID, "column sums: no desc");
        return;
    }
    const struct grt_tensor *x = desc->x, *y = desc->y;
    if (!grt_op_tensor(graph, "column sums", "y", y) ||
        !grt_op_tensor(graph, "column sums", "x", x) ||
        (!is_16bit(x->dtype) && !is_f32(graph, "column sums", x, grt_tensor_count(x))) ||
        !is_f32(graph, "column sums", y, grt_op_cols(x))) {
        return;
    }
    if ((desc->x2 != NULL) != (desc->y2 != NULL) ||
        (desc->x2 && (desc->x2->dtype != x->dtype || grt_op_cols(desc->x2) != grt_op_cols(x) ||
                      grt_tensor_count(desc->x2) != grt_tensor_count(x)))) {
        grt_graph_reject(
            graph, GRT_INVALID,
            "column sums of '%s': a second x has the first one's shape and type, and a y",
            x->label);
        return;
    }
    if (desc->x2 && (!grt_op_tensor(graph, "column sums", "y2", desc->y2) ||
                     !grt_op_tensor(graph, "column sums", "x2", desc->x2) ||
                     !is_f32(graph, "column sums", desc->y2, grt_op_cols(x)))) {
        return;
    }
    struct grt_dev *dev = grt_graph_dev(graph);
    uint64_t cols = grt_op_cols(x), rows = grt_tensor_count(x) / cols;
    uint64_t chunk = chunk_rows(dev, rows, cols);
    uint64_t scratch = grt_op_colsum_scratch(dev, desc);
    if (chunk == 0 || scratch / 4 > grt_op_reach(dev)) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "column sums of '%s', %llu x %llu: %s reaches %llu numbers at once",
                         x->label, (unsigned long long)rows, (unsigned long long)cols,
                         dev->info.selector, (unsigned long long)grt_op_reach(dev));
        return;
    }
    if (!grt_op_scratch(graph, "column sums", x->label, desc->scratch, scratch)) {
        return;
    }
    if (!scratch && desc->x2 && x->dtype == GRT_F32) {
        struct sums both = {x->range, y->range, &desc->x2->range, &desc->y2->range};
        sum_chunks(graph, both, x->dtype, desc->add, rows, cols, chunk);
        return;
    }
    struct grt_range partial = part(desc->scratch, 0, scratch / 4);
    uint64_t chunks = (rows + chunk - 1) / chunk;
    const struct grt_tensor *from[] = {x, desc->x2}, *to[] = {y, desc->y2};
    for (uint32_t i = 0; i < 2 && from[i]; i++) {
        struct grt_range into = scratch ? partial : to[i]->range;
        sum_chunks(graph, (struct sums){.x = from[i]->range, .y = into}, x->dtype,
                   desc->add && !scratch, rows, cols, chunk);
        if (!scratch) {
            continue;
        }
        sum_chunks(graph, (struct sums){.x = partial, .y = to[i]->range}, GRT_F32, desc->add,
                   chunks, cols, chunks);
    }
}
