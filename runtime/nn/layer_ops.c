// SPDX-License-Identifier: Apache-2.0
#include "layer_ops.h"

#include <stdio.h>
#include <string.h>

#include "eights.h"
#include "gpurt/device.h"
#include "ops/op_support.h"
#include "gpurt/ops.h"
#include "gpurt/learner.h"
#include "shaders/host.h"
#include "shaders/nn/lib/layer_params.k"

#define MAX_CHUNKS 256u  // what a second launch sums without scratch of its own
#define GATHER_GROUPS 16384u
#define GATHER_EACH 16u  // numbers that a lane copies before its workgroup looks for other rows
#define CHUNK_ROWS 64u   // at least, where there are more

struct grt_tensor grt_nn_rows(const struct grt_tensor *tensor, uint64_t rows) {
    struct grt_tensor view = *tensor;
    view.range.size = grt_tensor_bytes(tensor) / view.shape[0] * rows;
    view.shape[0] = rows;
    return view;
}

struct grt_tensor grt_nn_matrix(const struct grt_tensor *tensor, uint64_t rows, uint64_t cols) {
    struct grt_tensor view = *tensor;
    view.rank = 2;
    view.shape[0] = rows;
    view.shape[1] = cols;
    memset(view.shape + 2, 0, sizeof view.shape - 2 * sizeof *view.shape);
    return view;
}

struct grt_tensor grt_nn_flat(const struct grt_tensor *tensor) {
    uint64_t cols = tensor->shape[tensor->rank - 1];
    return grt_nn_matrix(tensor, grt_tensor_count(tensor) / cols, cols);
}

uint32_t grt_nn_kind(const struct grt_tensor *x) {
    return x->dtype == GRT_BF16;
}

const char *grt_nn_kernel(char name[GRT_NN_KERNEL], const char *stem, const struct grt_tensor *x) {
    snprintf(name, GRT_NN_KERNEL, "%s_%s", stem, x->dtype == GRT_F32 ? "f32" : "16");
    return name;
}

bool grt_nn_reachable(struct grt_graph *graph, const struct grt_tensor *x) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    if (grt_tensor_count(x) <= grt_op_reach(dev)) {
        return true;
    }
    grt_graph_reject(graph, GRT_UNSUPPORTED,
                     "'%s' has %llu numbers, %s reaches %llu at once; use smaller micro-batches",
                     x->label, (unsigned long long)grt_tensor_count(x), grt_dev_info(dev)->selector,
                     (unsigned long long)grt_op_reach(dev));
    return false;
}

// The kernels' NORM.
static uint32_t norm_of(const struct grt_block *b) {
    return !b->weight ? 0 : b->by_column ? 2 : 1;
}

// Only the norm of rows sums over their lanes.
static void launch_block(struct grt_graph *graph, const struct grt_block *b,
                         const struct grt_kernel_desc *kernel, const void *params, uint32_t size,
                         const struct grt_range *ranges, uint32_t count) {
    bool by_row = b->weight && !b->by_column;
    (by_row ? grt_op_launch_rows : grt_op_launch_apart)(
        graph, kernel, b->z->shape[0], b->z->shape[1], params, size, ranges, count);
}

// The kernels' ADD.
static uint32_t add_of(const struct grt_block *b) {
    return !b->x ? 0 : b->act_last ? 2 : 1;
}

static bool same_place(const struct grt_tensor *a, const struct grt_tensor *b) {
    return a->range.buf == b->range.buf && a->range.offset == b->range.offset;
}

// Whether something is read where something is written.
static bool is_on(const struct grt_tensor *read, const struct grt_tensor *written) {
    return read && written && same_place(read, written);
}

static void block_eights(struct grt_graph *graph, const struct grt_block *b) {
    struct grt_dev *dev = grt_graph_dev(graph);
    struct grt_eights e = grt_eights_of(dev, b->z->shape[0], b->z->shape[1], 0);
    const struct block8_params params = {
        .rows = (uint32_t)b->z->shape[0], .cols = (uint32_t)b->z->shape[1], .chunk = e.chunk};
    struct grt_range z = b->z->range;
    const struct grt_range ranges[] = {
        z,
        b->weight ? b->weight->master.range : z,
        b->weight ? b->bias->master.range : z,
        b->x && !is_on(b->x, b->h) ? b->x->range : z,
        b->h->range,
        b->weight ? b->stats->range : z,
    };
    char name[GRT_NN_KERNEL];
    grt_op_launch(graph,
                  grt_kernel_desc(.name = grt_eights_kernel(dev, name, "block8", b->z->dtype),
                                  .specs = {{"WG", e.wg},
                                            {"ACROSS", e.across},
                                            {"KIND", grt_nn_kind(b->z)},
                                            {"ACT", (uint32_t)b->act},
                                            {"NORM", norm_of(b)},
                                            {"ADD", add_of(b)},
                                            {"IN_PLACE", is_on(b->x, b->h)}}),
                  &params, sizeof params, ranges, 6, e.groups);
}

// The norm of rows has kernels of its own.
static bool suits_eights(struct grt_graph *graph, const char *stem, const struct grt_block *b) {
    const struct grt_tensor *operands[] = {b->z, b->x, b->h, b->dh, b->dz};
    return norm_of(b) != 1 && grt_eights_serve(grt_graph_dev(graph), stem, operands, 5);
}

void grt_op_block(struct grt_graph *graph, const struct grt_block *b) {
    if (!grt_nn_reachable(graph, b->z)) {
        return;
    }
    if (suits_eights(graph, "block8", b)) {
        block_eights(graph, b);
        return;
    }
    uint64_t rows = b->z->shape[0], cols = b->z->shape[1];
    const struct block_params params = {
        .rows = (uint32_t)rows, .cols = (uint32_t)cols, .scale = 1.0f / (float)cols, .eps = 1e-5f};
    // An operand that is not there is bound to something harmless.
    struct grt_range z = b->z->range;
    bool by_row = b->weight && !b->by_column;
    const struct grt_range ranges[] = {
        z,
        b->weight ? b->weight->master.range : z,
        b->weight ? b->bias->master.range : z,
        b->x && !is_on(b->x, b->h) ? b->x->range : z,
        b->h->range,
        by_row ? b->stats->range : grt_op_unused(graph),
        b->by_column ? b->stats->range : z,
    };
    char name[GRT_NN_KERNEL];
    const struct grt_kernel_desc kernel = {grt_nn_kernel(name, "block", b->z),
                                           {{"KIND", grt_nn_kind(b->z)},
                                            {"ACT", (uint32_t)b->act},
                                            {"NORM", norm_of(b)},
                                            {"ADD", add_of(b)},
                                            {"IN_PLACE", is_on(b->x, b->h)}}};
    launch_block(graph, b, &kernel, &params, sizeof params, ranges, 7);
}

static void add_to(struct grt_graph *graph, const struct grt_tensor *y,
                   const struct grt_tensor *x) {
    if (!grt_nn_reachable(graph, y)) {
        return;
    }
    const struct grt_tensor *operands[] = {x, y};
    struct grt_dev *dev = grt_graph_dev(graph);
    bool eights = grt_eights_serve(dev, "add_to8", operands, 2);
    uint64_t count = grt_tensor_count(y) / (eights ? 8 : 1);
    const struct add_to_params params = {.n = (uint32_t)count};
    const struct grt_range ranges[2] = {x->range, y->range};
    char name[GRT_NN_KERNEL];
    const struct grt_kernel_desc kernel = {eights
                                               ? grt_eights_kernel(dev, name, "add_to8", y->dtype)
                                               : grt_nn_kernel(name, "add_to", y),
                                           {{"KIND", grt_nn_kind(y)}}};
    struct grt_pieces pieces = grt_op_pieces(graph, count, 4);
    grt_op_next(&pieces);
    grt_op_stream(graph, &pieces, &kernel, &params, sizeof params, ranges, 2);
}

void grt_nn_add(struct grt_graph *graph, const struct grt_tensor *y, const struct grt_tensor *a,
                const struct grt_tensor *b) {
    if (same_place(y, a) || same_place(y, b)) {
        add_to(graph, y, same_place(y, a) ? b : a);
        return;
    }
    struct grt_tensor sum = grt_nn_flat(y), first = grt_nn_flat(a), second = grt_nn_flat(b);
    grt_op_block(graph, &(struct grt_block){.z = &first, .x = &second, .h = &sum});
}

uint64_t grt_block_chunk(uint64_t rows) {
    uint64_t chunk = (rows + MAX_CHUNKS - 1) / MAX_CHUNKS;
    return chunk > CHUNK_ROWS ? chunk : CHUNK_ROWS;
}

struct grt_slices grt_block_slices(const struct grt_dev *dev) {
    const struct grt_caps *caps = &grt_dev_info(dev)->caps;
    bool alone = caps->software && caps->subgroup <= 1;  // lanes change at each barrier
    return alone ? (struct grt_slices){grt_op_wg(dev), 1} : (struct grt_slices){256, 8};
}

// One of the two arrays of partial sums, at an offset a binding may have.
static uint64_t sums_bytes(uint64_t rows, uint64_t cols) {
    uint64_t chunks = (rows + grt_block_chunk(rows) - 1) / grt_block_chunk(rows);
    return (chunks * cols * 4 + GRT_OP_PART_ALIGN - 1) / GRT_OP_PART_ALIGN * GRT_OP_PART_ALIGN;
}

// Behind those, for sums of all rows.
uint64_t grt_block_scratch(uint64_t rows, uint64_t cols) {
    return 2 * sums_bytes(rows, cols) + 2 * sums_bytes(1, cols);
}

void grt_block_parts(const struct grt_block *b, struct grt_tensor sums[2],
                     struct grt_tensor totals[2]) {
    uint64_t rows = b->z->shape[0], cols = b->z->shape[1], chunk = grt_block_chunk(rows);
    uint64_t chunks = (rows + chunk - 1) / chunk, first = 2 * sums_bytes(rows, cols);
    for (uint32_t i = 0; i < 2; i++) {
        sums[i] = (struct grt_tensor){.rank = 2, .shape = {chunks, cols}, .label = "sums"};
        sums[i].range =
            grt_op_part(b->scratch->range, i * sums_bytes(rows, cols), chunks * cols * 4);
        totals[i] = (struct grt_tensor){.rank = 1, .shape = {cols}, .label = "totals"};
        totals[i].range = grt_op_part(b->scratch->range, first + i * sums_bytes(1, cols), cols * 4);
    }
}

// Sums over all rows that the gradients of the norm's weight and bias are, into those; where they
// are added there and b asks for the sums too, into totals first.
static void norm_gradients(struct grt_graph *graph, const struct grt_block *b,
                           struct grt_tensor totals[2]) {
    struct grt_dev *dev = grt_graph_dev(graph);
    uint64_t rows = b->z->shape[0], cols = b->z->shape[1], chunk = grt_block_chunk(rows);
    uint64_t chunks = (rows + chunk - 1) / chunk;
    struct grt_tensor sums[2];
    grt_block_parts(b, sums, totals);
    const struct grt_range ranges[] = {
        b->dh->range,          b->z->range,     b->weight->master.range,
        b->bias->master.range, b->stats->range, sums[0].range,
        sums[1].range};
    const struct block_sums_params params = {
        .rows = (uint32_t)rows, .cols = (uint32_t)cols, .chunk = (uint32_t)chunk};
    char name[GRT_NN_KERNEL];
    if (suits_eights(graph, "block_sums8", b)) {
        struct grt_eights e = grt_eights_of(dev, rows, cols, chunk);
        const struct grt_kernel_desc kernel = {
            grt_eights_kernel(dev, name, "block_sums8", b->z->dtype),
            {{"WG", e.wg},
             {"ACROSS", e.across},
             {"KIND", grt_nn_kind(b->z)},
             {"ACT", (uint32_t)b->act}}};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 7, e.groups);
    } else {
        struct grt_slices lanes = grt_block_slices(dev);
        uint32_t across = lanes.wg / lanes.slices;
        const uint32_t groups[3] = {(uint32_t)((cols + across - 1) / across), (uint32_t)chunks, 1};
        const struct grt_kernel_desc kernel = {grt_nn_kernel(name, "block_sums", b->z),
                                               {{"WG", lanes.wg},
                                                {"SLICES", lanes.slices},
                                                {"KIND", grt_nn_kind(b->z)},
                                                {"ACT", (uint32_t)b->act},
                                                {"BY_COLUMN", b->by_column}}};
        grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 7, groups);
    }
    const struct grt_tensor *grads[2] = {&b->weight->grad, &b->bias->grad};
    bool apart = b->by_column && b->add;
    grt_op_colsum(graph, grt_colsum_desc(.y = apart ? &totals[0] : grads[0], .x = &sums[0],
                                         .y2 = apart ? &totals[1] : grads[1], .x2 = &sums[1],
                                         .add = b->add && !apart));
    for (uint32_t i = 0; i < 2; i++) {
        if (apart) {
            grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = grads[i], .a = grads[i],
                                           .b = &totals[i], .alpha = 1.0f, .beta = 1.0f));
        } else {
            totals[i] = *grads[i];
        }
    }
}

void grt_norm_meet(struct grt_graph *graph, const struct grt_norm_sync *sync) {
    grt_net_gather(sync->net, graph, sync->own->range, sync->all->range);
}

// The sums over the rows of all ranks, in the order of ranks; the gradients of weight and bias stay
// those of this one's.
static void sum_ranks(struct grt_graph *graph, const struct grt_block *b,
                      struct grt_tensor totals[2]) {
    uint64_t cols = b->z->shape[1], ranks = b->sync->net->together.ranks;
    struct grt_tensor own[2], unused[2];
    for (uint32_t i = 0; i < 2; i++) {
        own[i] = *b->sync->own;
        own[i].range = grt_op_part(b->sync->own->range, i * cols * 4, cols * 4);
        totals[i].range.size = cols * 4;
        grt_graph_copy(graph, own[i].range, totals[i].range);
    }
    grt_norm_meet(graph, b->sync);
    struct grt_tensor each = grt_nn_matrix(b->sync->all, ranks, 2 * cols), sum = *b->sync->own;
    sum.rank = 1;
    sum.shape[0] = 2 * cols;
    sum.shape[1] = 0;
    grt_op_colsum(graph, grt_colsum_desc(.y = &sum, .x = &each));
    grt_block_parts(b, unused, totals);
    for (uint32_t i = 0; i < 2; i++) {
        grt_graph_copy(graph, totals[i].range, own[i].range);
    }
}

// Rows that the means of a norm by column are over.
static uint64_t rows_of_all(const struct grt_block *b) {
    return b->z->shape[0] * (b->sync ? b->sync->net->together.ranks : 1);
}

static void gradient_eights(struct grt_graph *graph, const struct grt_block *b,
                            const struct grt_range *ranges) {
    struct grt_dev *dev = grt_graph_dev(graph);
    struct grt_eights e = grt_eights_of(dev, b->z->shape[0], b->z->shape[1], 0);
    const struct block_grad8_params params = {.rows = (uint32_t)b->z->shape[0],
                                              .cols = (uint32_t)b->z->shape[1],
                                              .chunk = e.chunk,
                                              .scale = 1.0f / (float)rows_of_all(b)};
    char name[GRT_NN_KERNEL];
    grt_op_launch(graph,
                  grt_kernel_desc(.name = grt_eights_kernel(dev, name, "block_grad8", b->z->dtype),
                                  .specs = {{"WG", e.wg},
                                            {"ACROSS", e.across},
                                            {"KIND", grt_nn_kind(b->z)},
                                            {"ACT", (uint32_t)b->act},
                                            {"NORM", norm_of(b)},
                                            {"IN_PLACE", is_on(b->dh, b->dz)}}),
                  &params, sizeof params, ranges, 8, e.groups);
}

void grt_op_block_backward(struct grt_graph *graph, const struct grt_block *b) {
    if (!grt_nn_reachable(graph, b->z)) {
        return;
    }
    uint64_t rows = b->z->shape[0], cols = b->z->shape[1];
    const struct block_grad_params params = {
        .rows = (uint32_t)rows,
        .cols = (uint32_t)cols,
        .scale = 1.0f / (float)(b->by_column ? rows_of_all(b) : cols)};
    struct grt_range z = b->z->range;
    struct grt_tensor totals[2];
    if (b->by_column) {
        norm_gradients(graph, b, totals);
        if (b->sync && b->dz) {
            sum_ranks(graph, b, totals);
        }
    }
    const struct grt_range ranges[] = {
        is_on(b->dh, b->dz) ? z : b->dh->range,  z,
        b->weight ? b->weight->master.range : z, b->weight ? b->bias->master.range : z,
        b->weight ? b->stats->range : z,         b->dz ? b->dz->range : z,
        b->by_column ? totals[0].range : z,      b->by_column ? totals[1].range : z,
    };
    char name[GRT_NN_KERNEL];
    const struct grt_kernel_desc kernel = {grt_nn_kernel(name, "block_grad", b->z),
                                           {{"KIND", grt_nn_kind(b->z)},
                                            {"ACT", (uint32_t)b->act},
                                            {"NORM", norm_of(b)},
                                            {"IN_PLACE", is_on(b->dh, b->dz)}}};
    if (b->dz && suits_eights(graph, "block_grad8", b)) {
        gradient_eights(graph, b, ranges);
    } else if (b->dz) {
        launch_block(graph, b, &kernel, &params, sizeof params, ranges, 8);
    }
    if (b->weight && !b->by_column) {
        norm_gradients(graph, b, totals);
    }
}

void grt_nn_block_backward(const struct grt_pass *pass, const struct grt_block *block,
                           const struct grt_tensor *x, const struct grt_tensor *dy,
                           const struct grt_tensor *dx) {
    struct grt_tensor z = grt_nn_flat(x), dh = grt_nn_flat(dy), dz = {0};
    struct grt_block b = *block;
    if (dx) {
        dz = grt_nn_flat(dx);
        b.dz = &dz;
    }
    b.z = &z;
    b.dh = &dh;
    b.add = pass->add_grads;
    grt_op_block_backward(pass->graph, &b);
}

void grt_op_dropout(struct grt_graph *graph, const struct grt_dropout *d) {
    if (!grt_nn_reachable(graph, d->x)) {
        return;
    }
    uint64_t count = grt_tensor_count(d->x);
    const struct dropout_params params = {.n = (uint32_t)count,
                                          .stream = d->stream,
                                          .micro = d->micro,
                                          .seed0 = (uint32_t)d->seed,
                                          .seed1 = (uint32_t)(d->seed >> 32),
                                          .p = d->p,
                                          .scale = 1.0f / (1.0f - d->p)};
    const struct grt_range ranges[3] = {d->x->range, d->y->range, d->state};
    char name[GRT_NN_KERNEL];
    const struct grt_kernel_desc kernel = {grt_nn_kernel(name, "dropout", d->x),
                                           {{"KIND", grt_nn_kind(d->x)}}};
    struct grt_pieces pieces = grt_op_pieces(graph, count, 4);
    grt_op_next(&pieces);
    grt_op_stream(graph, &pieces, &kernel, &params, sizeof params, ranges, 3);
}

static void pool(struct grt_graph *graph, const struct grt_pooling *p, const char *stem,
                 const struct grt_range ranges[3]) {
    if (!grt_nn_reachable(graph, p->x)) {
        return;
    }
    uint64_t count = grt_tensor_count(p->y), cols = grt_op_cols(p->y);
    const struct pool_params params = {.rows = (uint32_t)(count / cols),
                                       .points = (uint32_t)p->points,
                                       .share = 1.0f / (float)p->points};
    char name[GRT_NN_KERNEL];
    const struct grt_kernel_desc kernel = {grt_nn_kernel(name, stem, p->x),
                                           {{"COLS", (uint32_t)cols},
                                            {"KIND", grt_nn_kind(p->x)},
                                            {"LARGEST", p->pool == GRT_POOL_MAX}}};
    struct grt_pieces pieces = grt_op_pieces(graph, count, 4);
    grt_op_next(&pieces);
    grt_op_stream(graph, &pieces, &kernel, &params, sizeof params, ranges, 3);
}

void grt_op_pool(struct grt_graph *graph, const struct grt_pooling *p) {
    const struct grt_range ranges[3] = {p->x->range, p->y->range,
                                        p->which ? p->which->range : grt_op_unused(graph)};
    pool(graph, p, "pool", ranges);
}

void grt_op_pool_backward(struct grt_graph *graph, const struct grt_pooling *p) {
    const struct grt_range ranges[3] = {
        p->y->range, p->which ? p->which->range : grt_op_unused(graph), p->x->range};
    pool(graph, p, "pool_grad", ranges);
}

// The same of all rows, whose elements need not be words.
static bool all_reachable(struct grt_graph *graph, const struct grt_tensor *x) {
    struct grt_tensor words = *x;
    words.shape[0] = (grt_tensor_bytes(x) + 3) / 4;
    words.rank = 1;
    return grt_nn_reachable(graph, grt_tensor_count(x) <= UINT32_MAX ? &words : x);
}

// As gather.k calls it.
static uint32_t kept_kind(const struct grt_tensor *x) {
    return x->dtype == GRT_U8 ? 1 : x->dtype == GRT_F16 ? 2 : 0;
}

void grt_op_gather(struct grt_graph *graph, const struct grt_gathering *g) {
    const struct grt_dev *dev = grt_graph_dev(graph);
    const struct grt_step_rows *from = g->from;
    bool targets = g->y.buf != NULL;
    if (!all_reachable(graph, &from->x) || (targets && !all_reachable(graph, &from->y))) {
        return;
    }
    uint32_t wg = grt_op_tree_wg(dev);
    uint64_t x_cols = grt_tensor_count(&from->x) / from->x.shape[0];
    uint32_t features = (uint32_t)from->x.shape[from->x.rank - 1];
    uint64_t y_cols = targets ? grt_tensor_count(&from->y) / from->y.shape[0] : 0;
    // Of images one: with 256 to a workgroup the 2560 of five steps would keep 10 of an H200's 132
    // compute units busy.
    uint64_t together = GATHER_EACH * wg / x_cols;
    together = together < 1 ? 1 : together < wg ? together : wg;
    const struct gather_params params = {
        .rows = (uint32_t)g->rows,
        .first = (uint32_t)g->first,
        .batch = (uint32_t)g->batch,
        .x_pad = (uint32_t)(g->x_step / 4 - g->batch * x_cols),
        .y_pad = targets ? (uint32_t)(g->y_step / 4 - g->batch * y_cols) : 0,
        .record = from->record,
        .together = (uint32_t)together};
    const struct grt_range ranges[] = {
        from->x.range,
        targets ? from->y.range : grt_op_unused(graph),
        from->order.range,
        from->dropped.range.buf ? from->dropped.range : grt_op_unused(graph),
        g->state->range,
        from->norm.buf ? from->norm : grt_op_unused(graph),
        g->x,
        targets ? g->y : grt_op_unused_at(graph, 1),
    };
    // Enough workgroups to fill any device; more rows than that take turns.
    uint64_t groups = (g->rows + together - 1) / together;
    groups = groups < GATHER_GROUPS ? groups : GATHER_GROUPS;
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "gather", .specs = {{"WG", wg},
                                                    {"XCOLS", (uint32_t)x_cols},
                                                    {"YCOLS", (uint32_t)y_cols},
                                                    {"EVAL", g->evaluates},
                                                    {"XKIND", kept_kind(&from->x)},
                                                    {"YKIND", kept_kind(&from->y)},
                                                    {"NORM", from->norm.buf ? features : 0}}),
        &params, sizeof params, ranges, 8, (const uint32_t[3]){(uint32_t)groups, 1, 1});
}

void grt_op_draw(struct grt_graph *graph, const struct grt_gathering *d, struct grt_range numbers) {
    const struct grt_step_rows *from = d->from;
    uint32_t wg = grt_op_tree_wg(grt_graph_dev(graph));
    const struct draw_params params = {.rows = (uint32_t)d->rows, .record = from->record};
    const struct grt_range ranges[] = {
        from->order.range,
        from->dropped.range.buf ? from->dropped.range : grt_op_unused(graph),
        d->state->range,
        numbers,
    };
    // A CPU draws several side by side, which takes it half the time (PoCL, Neoverse N1, 2026-11);
    // lavapipe has lanes for that. On a GPU lanes wait less for each other: us of 1.8 M and 0.2 M
    // rows by 1, 4, 8 of a lane, one behind the other, on an H200, OpenCL 48 7, 32 7, 29 9, Vulkan
    // 44 7, 31 9, 35 14; by 4 of a lane beside those of others 32 and 29.
    const struct grt_dev_info *info = grt_dev_info(grt_graph_dev(graph));
    uint32_t run = info->caps.software ? (info->backend == GRT_BACKEND_VULKAN ? 1 : 16) : 4;
    uint64_t groups = (d->rows + wg * run - 1) / (wg * run);
    groups = groups < GATHER_GROUPS ? groups : GATHER_GROUPS;
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "draw", .specs = {{"WG", wg},
                                                  {"EVAL", d->evaluates},
                                                  {"RUN", run},
                                                  {"STEP", info->caps.software ? 1 : wg}}),
        &params, sizeof params, ranges, 4, (const uint32_t[3]){(uint32_t)groups, 1, 1});
}
