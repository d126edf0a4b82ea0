// SPDX-License-Identifier: Apache-2.0
// See mlp_rows.h. Kernels: cl/nvidia/mlp_rows_forward.k and mlp_rows_backward.k.
#include "mlp_rows.h"

#include "mlp_case.h"
#include "mlp_rows_parts.h"
#include "ops/op_support.h"
#include "shaders/mlp/lib/mlp_rows_params.k"

#define WIDTH 64u  // hidden units of a layer: eight warps have eight each
#define MAX_DEPTH 3u
#define MAX_OUTPUTS 16u
#define CHUNK 8u   // numbers of 16 bytes
#define PIECE 16u  // rows that a warp or a workgroup takes at a time
#define FORWARD_LANES 128u
#define BACKWARD_LANES 256u
#define STAGES 3u
#define SHARED_BYTES (48u << 10)  // that Vulkan lends to an imported kernel
// Workgroups of a processor. Backward, one where the sums of its weights fill the registers.
#define FORWARD_GROUPS 3u
#define FEW_CHUNKS 24u

static uint32_t chunks(uint32_t numbers) {
    return (numbers + CHUNK - 1) / CHUNK;
}

static uint32_t row_chunks(const struct grt_mlp_rows_desc *d) {
    return chunks(d->places.near.numbers) + chunks(d->places.far.numbers);
}

// As the kernels count it.
static uint64_t forward_shared(const struct grt_mlp_rows_desc *d) {
    uint64_t pitch = (row_chunks(d) + 3) / 4 * 4 + 1;
    return 16 * pitch * WIDTH + 2ull * WIDTH * ((d->model.depth - 1) * WIDTH + MAX_OUTPUTS);
}

static uint64_t backward_shared(const struct grt_mlp_rows_desc *d) {
    uint64_t hidden = 2ull * PIECE * WIDTH * d->model.depth;
    uint64_t piece = 16ull * PIECE * (row_chunks(d) | 1) + hidden + 2ull * PIECE * MAX_OUTPUTS;
    return STAGES * piece + hidden;
}

static bool could(const struct grt_mlp_rows_desc *d) {
    const struct grt_mlp_desc *m = &d->model;
    return (d->dtype == GRT_F16 || d->dtype == GRT_BF16) && m->hidden == WIDTH && m->depth >= 1 &&
           m->depth <= MAX_DEPTH && m->outputs >= 1 && m->outputs <= MAX_OUTPUTS &&
           (m->act == GRT_ACT_RELU || m->act == GRT_ACT_TANH) && !m->residual && !m->layer_norm &&
           m->widths[0] == 0 && d->places.near.numbers > 0 &&
           m->inputs == d->places.near.numbers + d->places.far.numbers &&
           forward_shared(d) <= SHARED_BYTES && backward_shared(d) <= SHARED_BYTES;
}

bool grt_mlp_rows_usable(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc) {
    return dev && desc && could(desc) && grt_kernel_builds(dev, "mlp_rows_forward") &&
           mlp_rows_trusted(dev, desc);
}

static uint64_t padded(const struct grt_mlp_rows_desc *d) {
    return (d->rows + PIECE - 1) / PIECE * PIECE;
}

uint64_t grt_mlp_rows_hidden(const struct grt_mlp_rows_desc *desc) {
    return padded(desc) * WIDTH * desc->model.depth * 2;
}

// ---- recording ----

struct rows_call {
    struct grt_mlp_fused_desc desc;
    struct mlp_case c;
    struct mlp_rows_params params;
    uint64_t pieces;
};

static uint32_t backward_groups(const struct mlp_case *c, const struct grt_mlp_rows_desc *d) {
    uint64_t pieces = padded(d) / PIECE;
    uint64_t most = mlp_units(c) * (row_chunks(d) <= FEW_CHUNKS ? 2ull : 1ull);
    return (uint32_t)(pieces < most ? pieces : most);
}

static void fill_case(struct rows_call *call, struct grt_dev *dev,
                      const struct grt_mlp_rows_desc *d) {
    const struct grt_mlp_desc *m = &d->model;
    call->desc = (struct grt_mlp_fused_desc){
        .model = *m, .dtype = d->dtype, .rows = d->rows, .params = d->params, .first = d->first};
    call->c = (struct mlp_case){.dev = dev,
                                .desc = &call->desc,
                                .rows = (uint32_t)d->rows,
                                .inputs = m->inputs,
                                .depth = m->depth,
                                .width = m->hidden,
                                .outputs = m->outputs};
}

uint64_t grt_mlp_rows_scratch(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc) {
    struct rows_call call;
    fill_case(&call, dev, desc);
    return grt_dev_align_up(dev, backward_groups(&call.c, desc) * desc->params->elements * 4) +
           mlp_norm_count(&call.c) * 4ull;
}

// In chunks; false: they are no whole ones, or too many to count.
static bool in_chunks(const struct grt_row_part *part, uint32_t *pitch, uint32_t *step) {
    *pitch = (uint32_t)(part->pitch / CHUNK);
    *step = (uint32_t)(part->step / CHUNK);
    return part->pitch % CHUNK == 0 && part->step % CHUNK == 0 && part->pitch >= part->numbers &&
           part->step / CHUNK <= UINT32_MAX && part->range.buf && part->range.offset % 16 == 0;
}

static const char *misfit(struct rows_call *call, const struct grt_mlp_rows_desc *d) {
    const struct grt_row_places *at = &d->places;
    struct mlp_rows_params *p = &call->params;
    if (!could(d)) {
        return "no kernels for this model";
    }
    if (!mlp_find_layers(&call->c, &p->mlp) || !d->params->copy ||
        d->params->copy->dtype != d->dtype) {
        return "the parameters are not those of the model";
    }
    if (d->rows == 0 || d->rows > INT32_MAX || at->period == 0 || at->period > UINT32_MAX ||
        at->first > UINT32_MAX - d->rows) {
        return "no rows, or more than can be counted";
    }
    if (!in_chunks(&at->near, &p->near_pitch, &p->near_step) ||
        (at->far.numbers > 0 &&
         (!in_chunks(&at->far, &p->far_pitch, &p->far_step) || at->share == 0))) {
        return "rows of inputs must be whole runs of 16 bytes";
    }
    return NULL;
}

static bool begin(struct grt_graph *graph, const struct grt_mlp_rows_desc *d,
                  struct rows_call *call) {
    *call = (struct rows_call){0};
    fill_case(call, grt_graph_dev(graph), d);
    const char *why = misfit(call, d);
    if (why) {
        grt_graph_reject(graph, GRT_INVALID, "mlp over rows: %s", why);
        return false;
    }
    struct mlp_rows_params *p = &call->params;
    p->mlp.rows = (uint32_t)d->rows;
    p->mlp.padded = (uint32_t)padded(d);
    p->first = (uint32_t)d->places.first;
    p->period = (uint32_t)d->places.period;
    p->share = d->places.share;
    call->pieces = padded(d) / PIECE;
    return true;
}

static void launch(struct grt_graph *graph, const struct rows_call *call,
                   const struct grt_mlp_rows_desc *d, const char *kernel, struct grt_spec last,
                   uint32_t lanes, const struct grt_range *ranges, uint32_t range_count,
                   uint32_t groups) {
    const struct mlp_case *c = &call->c;
    const struct grt_kernel_desc desc = {kernel,
                                         {{"WG", lanes},
                                          {"INPUTS", c->inputs},
                                          {"DEPTH", c->depth},
                                          {"WIDTH", c->width},
                                          {"OUTPUTS", c->outputs},
                                          {"ACT", (uint32_t)d->model.act},
                                          {"KIND", d->dtype == GRT_BF16},
                                          {"NEAR", d->places.near.numbers},
                                          {"ORDERED", d->places.order.buf != NULL},
                                          last}};
    grt_op_launch(graph, &desc, &call->params, sizeof call->params, ranges, range_count,
                  (const uint32_t[3]){groups, 1, 1});
}

static struct grt_range or_else(struct grt_range range, struct grt_range other) {
    return range.buf ? range : other;
}

void grt_op_mlp_rows_forward(struct grt_graph *graph, const struct grt_mlp_rows_desc *d) {
    struct rows_call call;
    if (!grt_op_tensor(graph, "mlp over rows", "y", d->y) || !begin(graph, d, &call)) {
        return;
    }
    const struct grt_row_places *at = &d->places;
    const struct grt_range ranges[] = {at->near.range,
                                       or_else(at->far.range, at->near.range),
                                       or_else(at->order, at->near.range),
                                       d->params->copy->range,
                                       d->params->master->range,
                                       d->y->range,
                                       or_else(d->hidden, grt_op_unused(graph))};
    uint64_t most = mlp_units(&call.c) * FORWARD_GROUPS;
    uint64_t wanted = (call.pieces + FORWARD_LANES / 32 - 1) / (FORWARD_LANES / 32);
    launch(graph, &call, d, "mlp_rows_forward", (struct grt_spec){"KEEP", d->hidden.buf != NULL},
           FORWARD_LANES, ranges, 7, (uint32_t)(wanted < most ? wanted : most));
}

void grt_op_mlp_rows_backward(struct grt_graph *graph, const struct grt_mlp_rows_desc *d) {
    struct rows_call call;
    if (!grt_op_tensor(graph, "mlp over rows", "dy", d->dy) || !begin(graph, d, &call) ||
        !grt_op_scratch(graph, "mlp over rows", d->dy->label, d->scratch,
                        grt_mlp_rows_scratch(call.c.dev, d))) {
        return;
    }
    uint32_t groups = backward_groups(&call.c, d);
    uint64_t bytes = groups * d->params->elements * 4;
    struct grt_range sums = grt_op_part(d->scratch, 0, bytes);
    const struct grt_row_places *at = &d->places;
    const struct grt_range ranges[] = {at->near.range,
                                       or_else(at->far.range, at->near.range),
                                       or_else(at->order, at->near.range),
                                       d->params->copy->range,
                                       d->hidden,
                                       d->dy->range,
                                       sums};
    launch(graph, &call, d, "mlp_rows_backward", (struct grt_spec){"STAGES", STAGES},
           BACKWARD_LANES, ranges, 7, groups);
    struct mlp_call add = {.c = &call.c, .params = call.params.mlp};
    add.params.parts = groups;
    add.sums = sums;
    add.losses = sums;
    add.grads = d->params->grad->range;
    add.norms = grt_op_part(d->scratch, grt_dev_align_up(call.c.dev, bytes),
                            mlp_norm_count(&call.c) * 4ull);
    add.state = d->state;
    mlp_record_reduce(graph, &add, grt_op_unused(graph), call.c.depth + 1);
}
