// SPDX-License-Identifier: Apache-2.0
// NT-Xent: rows of length 1, then the loss, then its gradient, a kernel each.
//
//     scratch   unit [rows][cols] | g [rows][cols] | 1 / length [rows] | lse [rows]     f32
#include "gpurt/device.h"
#include "gpurt/optim.h"
#include "loss_parts.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/loss/lib/loss_params.k"

// Products of rows go by tiles of so many rows and columns, a lane for each number. On CPUs smaller
// ones cost less where there are few rows.
struct tiles {
    uint32_t rows, cols, depth;
};

static struct tiles tiles_of(const struct grt_dev *dev) {
    const struct grt_caps *caps = &grt_dev_info(dev)->caps;
    return caps->software           ? (struct tiles){8, 8, 8}
           : caps->shmem < 22 << 10 ? (struct tiles){16, 16, 16}
                                    : (struct tiles){8, 32, 128};
}

static uint64_t aligned(uint64_t bytes) {
    return (bytes + GRT_OP_PART_ALIGN - 1) / GRT_OP_PART_ALIGN * GRT_OP_PART_ALIGN;
}

uint64_t grt_loss_scratch(enum grt_loss loss, uint64_t rows, uint64_t cols) {
    return loss == GRT_LOSS_NT_XENT ? 2 * aligned(rows * cols * 4) + 2 * aligned(rows * 4) : 0;
}

static struct grt_loss_rows among_of(const struct grt_loss_desc *d) {
    return d->among.count > 0 ? d->among : (struct grt_loss_rows){0, d->y->shape[0]};
}

static struct grt_loss_rows own_of(const struct grt_loss_desc *d) {
    return d->own.count > 0 ? d->own : among_of(d);
}

static bool within(struct grt_loss_rows rows, struct grt_loss_rows all) {
    return rows.first >= all.first && rows.first - all.first <= all.count &&
           rows.count <= all.count - (rows.first - all.first);
}

static bool check(struct grt_graph *graph, const struct grt_loss_desc *d) {
    struct grt_loss_rows among = among_of(d), own = own_of(d);
    uint64_t rows = among.count;
    const char *why = NULL;
    if (d->target) {
        why = "there are no targets";
    } else if (rows % 2 != 0 || d->block % 2 != 0) {
        why = "rows come in pairs, two views of each sample";
    } else if (d->class_weights || d->hits.buf) {
        why = "there are no classes";
    } else if (d->temperature != 0.0f && !(d->temperature >= (float)GRT_LEAST_TEMPERATURE)) {
        why = "the temperature is below 0.025";
    } else if (!within(among, (struct grt_loss_rows){0, d->y->shape[0]}) || !within(own, among) ||
               (d->dy && !within(own, (struct grt_loss_rows){d->dy_first, d->dy->shape[0]}))) {
        why = "there are no such rows";
    }
    return loss_accept(graph, d, why) &&
           grt_op_scratch(graph, "loss nt_xent", d->y->label, d->scratch,
                          grt_loss_scratch(GRT_LOSS_NT_XENT, rows, d->y->shape[1]));
}

void loss_nt_xent(struct grt_graph *graph, const struct grt_loss_desc *d) {
    if (!check(graph, d)) {
        return;
    }
    const struct grt_dev *dev = grt_graph_dev(graph);
    struct grt_loss_rows among = among_of(d), own = own_of(d);
    uint64_t rows = among.count, cols = d->y->shape[1], numbers = rows * cols * 4;
    struct tiles tile = tiles_of(dev);
    const struct nt_xent_params params = {
        .rows = (uint32_t)rows,
        .cols = (uint32_t)cols,
        .block = (uint32_t)(d->block > 0 && d->block < rows ? d->block : rows),
        .share = (float)(1.0 / (double)(d->samples ? d->samples : rows)),
        .rate = 1.0f / (d->temperature > 0.0f ? d->temperature : 0.5f),
        .from = (uint32_t)among.first,
        .first = (uint32_t)(own.first - among.first),
        .count = (uint32_t)own.count,
        .to = (uint32_t)among.first - (uint32_t)d->dy_first};
    struct grt_range unit = grt_op_part(d->scratch, 0, numbers);
    struct grt_range g = grt_op_part(d->scratch, aligned(numbers), numbers);
    struct grt_range over = grt_op_part(d->scratch, 2 * aligned(numbers), rows * 4);
    struct grt_range lse =
        grt_op_part(d->scratch, 2 * aligned(numbers) + aligned(rows * 4), rows * 4);
    grt_op_launch_rows(graph, grt_kernel_desc(.name = "nt_xent_unit"), rows, cols, &params,
                       sizeof params, (const struct grt_range[]){d->y->range, unit, over}, 3);
    const uint32_t groups[3] = {GRT_LOSS_PARTS, 1, 1};
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "nt_xent", .specs = {{"WG", tile.rows * tile.cols},
                                                     {"TILE", tile.cols},
                                                     {"ROWS", tile.rows},
                                                     {"DEPTH", tile.depth}}),
        &params, sizeof params,
        (const struct grt_range[]){unit, lse, grt_op_part(d->parts, 0, GRT_LOSS_PARTS * 4)}, 3,
        groups);
    if (!d->dy) {
        return;
    }
    bool narrow = d->dy->dtype != GRT_F32;
    uint64_t tiles = (own.count + tile.rows - 1) / tile.rows;
    const uint32_t grid[3] = {(uint32_t)(tiles < 65535 ? tiles : 65535), 1, 1};
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = narrow ? "nt_xent_grad_16" : "nt_xent_grad_f32",
                        .specs = {{"WG", tile.rows * tile.cols},
                                  {"TILE", tile.cols},
                                  {"KIND", d->dy->dtype == GRT_BF16},
                                  {"ROWS", tile.rows},
                                  {"DEPTH", tile.depth}}),
        &params, sizeof params,
        (const struct grt_range[]){unit, over, lse, g, d->dy->range,
                                   grt_op_part(d->state, 0, sizeof(struct grt_learn_state))},
        6, grid);
}
