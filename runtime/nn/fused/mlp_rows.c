// SPDX-License-Identifier: Apache-2.0
// See mlp_rows.h. Kernels: cl/nvidia/mlp_rows_forward.k and mlp_rows_backward.k.
#include "mlp_rows.h"

#include <string.h>

#include "mlp_case.h"
#include "mlp_rows_parts.h"
#include "ops/op_support.h"
#include "shaders/mlp/lib/mlp_rows_params.k"

#define WIDTH 64u  // hidden units of a layer: eight warps have eight each
#define MAX_DEPTH 3u
#define MAX_OUTPUTS MLP_ROWS_OUTPUTS
#define CHUNK 8u        // numbers of 16 bytes
#define PIECE 16u       // rows that a warp takes at a time
#define MOST_PIECE 32u  // that a workgroup takes at a time, at most
// Microseconds of 1.3 M rows of 162 numbers, and of 276, on an H200 (driver 580.159.04, 2026-11):
// 384 lanes 253 and 333, 256 lanes 299 and 312, 512 lanes 262 and 358.
#define FORWARD_LANES 384u
#define BACKWARD_LANES 256u       // for each tile of 16 rows
#define SHARED_BYTES (48u << 10)  // that Vulkan lends to an imported kernel
#define ROOMY_BYTES (96u << 10)

static uint32_t chunks(uint32_t numbers) {
    return (numbers + CHUNK - 1) / CHUNK;
}

static uint32_t row_chunks(const struct grt_mlp_rows_desc *d) {
    return chunks(d->places.near.numbers) + chunks(d->places.far.numbers);
}

// As the kernels count it.
static uint64_t forward_shared(const struct grt_mlp_rows_desc *d) {
    uint64_t pitch = (row_chunks(d) + 3) / 4 * 4 + 1;
    uint64_t weights = 8 * pitch * WIDTH + (d->model.depth - 1) * WIDTH * WIDTH;
    return 2 * (weights + MAX_OUTPUTS * WIDTH) + 4ull * d->model.depth * WIDTH;
}

// How a workgroup goes back: tiles of 16 rows at a time, and pieces of as many in shared memory.
struct back {
    uint32_t tiles, stages;
};
// Best first: the same rows back take 492 and 634 with {2, 2}, 537 and 784 with {1, 3}.
static const struct back backs[] = {{2, 2}, {1, 3}, {1, 2}};
#define BACKS (sizeof backs / sizeof backs[0])

static uint64_t backward_shared(const struct grt_mlp_rows_desc *d, const struct back *b) {
    uint64_t rows = b->tiles * PIECE;
    uint64_t hidden = 2 * rows * WIDTH * d->model.depth;
    uint64_t piece = 16 * rows * (row_chunks(d) | 1) + hidden + 2 * rows * MAX_OUTPUTS;
    return b->stages * piece + hidden;
}

// The first that fits; NULL: none does.
static const struct back *choose_back(struct grt_dev *dev, const struct grt_mlp_rows_desc *d) {
    uint64_t room = grt_kernel_builds(dev, "probe_wgmma") ? ROOMY_BYTES : SHARED_BYTES;
    for (uint32_t i = 0; i < BACKS; i++) {
        if (backward_shared(d, &backs[i]) <= room) {
            return &backs[i];
        }
    }
    return NULL;
}

static bool could(const struct grt_mlp_rows_desc *d) {
    const struct grt_mlp_desc *m = &d->model;
    return (d->dtype == GRT_F16 || d->dtype == GRT_BF16) && m->hidden == WIDTH && m->depth >= 1 &&
           m->depth <= MAX_DEPTH && m->outputs >= 1 && m->outputs <= MAX_OUTPUTS &&
           (m->act == GRT_ACT_RELU || m->act == GRT_ACT_TANH) && !m->residual && !m->layer_norm &&
           m->widths[0] == 0 && d->places.near.numbers > 0 &&
           m->inputs == d->places.near.numbers + d->places.far.numbers &&
           forward_shared(d) <= SHARED_BYTES;
}

// Whether rows are whole chunks, and not too many to count.
static bool whole_chunks(const struct grt_row_part *part) {
    return part->pitch % CHUNK == 0 && part->step % CHUNK == 0 && part->pitch >= part->numbers &&
           part->step / CHUNK <= UINT32_MAX;
}

bool grt_mlp_rows_usable(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc) {
    return dev && desc && could(desc) && whole_chunks(&desc->places.near) &&
           whole_chunks(&desc->places.far) && grt_kernel_builds(dev, "mlp_rows_forward") &&
           choose_back(dev, desc) && mlp_rows_trusted(dev, desc);
}

static uint64_t padded(const struct grt_mlp_rows_desc *d) {
    return (d->rows + MOST_PIECE - 1) / MOST_PIECE * MOST_PIECE;
}

uint64_t grt_mlp_rows_hidden(const struct grt_mlp_rows_desc *desc) {
    return padded(desc) * WIDTH * desc->model.depth * 2;
}

// ---- recording ----

struct rows_call {
    struct grt_mlp_fused_desc desc;
    struct mlp_case c;
    struct mlp_rows_params params;
};

// One for each processor: the sums of its weights fill the registers.
static uint32_t backward_groups(const struct mlp_case *c, const struct grt_mlp_rows_desc *d) {
    uint64_t pieces = padded(d) / PIECE;
    uint64_t most = mlp_units(c->dev);
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
    uint32_t groups = backward_groups(&call.c, desc);
    return grt_dev_align_up(dev, groups * desc->params->elements * 4) +
           mlp_norm_count(&call.c, groups) * 4ull;
}

// A part in chunks; false: it is not made of them.
static bool in_chunks(const struct grt_row_part *part, uint32_t *pitch, uint32_t *step) {
    *pitch = (uint32_t)(part->pitch / CHUNK);
    *step = (uint32_t)(part->step / CHUNK);
    return whole_chunks(part) && part->range.buf && part->range.offset % 16 == 0;
}

// Whether a tensor is [rows][outputs] of a type; rejects the graph otherwise.
static bool is_output(struct grt_graph *graph, const struct grt_mlp_rows_desc *d, const char *name,
                      const struct grt_tensor *t, enum grt_dtype dtype) {
    if (!grt_op_tensor(graph, "mlp over rows", name, t)) {
        return false;
    }
    if (t->dtype == dtype && grt_tensor_count(t) == d->rows * d->model.outputs) {
        return true;
    }
    grt_graph_reject(graph, GRT_INVALID, "mlp over rows: %s must be %s [%llu][%u]", name,
                     grt_dtype_text(dtype), (unsigned long long)d->rows, d->model.outputs);
    return false;
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
    p->share = d->places.share > 0 ? d->places.share : 1;
    return true;
}

// `params`: what a kernel is told behind where rows lie.
struct own_params {
    const void *words;
    uint32_t size;
};

static void launch(struct grt_graph *graph, const struct rows_call *call,
                   const struct grt_mlp_rows_desc *d, const char *kernel, uint32_t lanes,
                   const struct grt_spec own[2], const struct grt_range *ranges,
                   uint32_t range_count, uint32_t groups, const struct own_params *more) {
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
                                          own[0],
                                          own[1]}};
    unsigned char params[GRT_MAX_PARAMS];
    uint32_t size = sizeof call->params;
    memcpy(params, &call->params, size);
    if (more) {
        memcpy(params + size, more->words, more->size);
        size += more->size;
    }
    grt_op_launch(graph, &desc, params, size, ranges, range_count,
                  (const uint32_t[3]){groups, 1, 1});
}

static struct grt_range or_else(struct grt_range range, struct grt_range other) {
    return range.buf ? range : other;
}

void grt_op_mlp_rows_forward(struct grt_graph *graph, const struct grt_mlp_rows_desc *d) {
    struct rows_call call;
    if (!begin(graph, d, &call) || !is_output(graph, d, "y", d->y, GRT_F32)) {
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
    // One for each processor: all of its lanes share the weights.
    uint64_t most = mlp_units(call.c.dev);
    uint64_t wanted = (padded(d) / PIECE + FORWARD_LANES / 32 - 1) / (FORWARD_LANES / 32);
    launch(graph, &call, d, "mlp_rows_forward", FORWARD_LANES,
           (const struct grt_spec[2]){{"KEEP", d->hidden.buf != NULL}}, ranges, 7,
           (uint32_t)(wanted < most ? wanted : most), NULL);
    grt_graph_operations(graph, mlp_operations(&call.c));
}

// Sums of all workgroups become gradients.
static void add_up(struct grt_graph *graph, const struct rows_call *call,
                   const struct grt_mlp_rows_desc *d, uint32_t groups) {
    uint64_t bytes = groups * d->params->elements * 4;
    struct mlp_call add = {.c = &call->c, .params = call->params.mlp};
    add.params.parts = groups;
    add.sums = grt_op_part(d->scratch, 0, bytes);
    add.losses = add.sums;
    add.grads = d->params->grad->range;
    add.norms = grt_op_part(d->scratch, grt_dev_align_up(call->c.dev, bytes),
                            mlp_norm_count(&call->c, groups) * 4ull);
    add.state = d->state;
    mlp_record_reduce(graph, &add, grt_op_unused(graph), call->c.depth + 1);
}

void grt_op_mlp_rows_backward(struct grt_graph *graph, const struct grt_mlp_rows_desc *d) {
    struct rows_call call;
    if (!begin(graph, d, &call) || !is_output(graph, d, "dy", d->dy, d->dtype) ||
        !grt_op_scratch(graph, "mlp over rows", d->dy->label, d->scratch,
                        grt_mlp_rows_scratch(call.c.dev, d))) {
        return;
    }
    const struct back *back = choose_back(call.c.dev, d);
    if (!back) {
        grt_graph_reject(graph, GRT_UNSUPPORTED, "mlp over rows: too many inputs");
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
    launch(graph, &call, d, "mlp_rows_backward", back->tiles * BACKWARD_LANES,
           (const struct grt_spec[2]){{"TILES", back->tiles}, {"STAGES", back->stages}}, ranges, 7,
           groups, NULL);
    grt_graph_operations(graph, mlp_operations(&call.c) + mlp_back_operations(&call.c));
    add_up(graph, &call, d, groups);
}

// ---- there and back in one launch ----

bool grt_mlp_rows_learns(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc,
                         const struct grt_mlp_rows_learner *learner) {
    // As ppo_learn.k counts it: inputs of two pieces of 32 rows, and 12 KiB.
    uint64_t shared = 2ull * MOST_PIECE * row_chunks(desc) * 16 + (12u << 10);
    return desc->model.depth == 2 && shared <= SHARED_BYTES &&
           grt_kernel_builds(dev, learner->kernel) && mlp_rows_learner_trusted(dev, desc, learner);
}

uint32_t grt_mlp_rows_groups(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc) {
    uint64_t pieces = padded(desc) / MOST_PIECE, most = mlp_units(dev);
    return (uint32_t)(pieces < most ? pieces : most);
}

void grt_op_mlp_rows_learn(struct grt_graph *graph, const struct grt_mlp_rows_desc *d,
                           const struct grt_mlp_rows_kernel *kernel) {
    struct rows_call call;
    if (!begin(graph, d, &call) || !grt_op_scratch(graph, "mlp over rows", kernel->name, d->scratch,
                                                   grt_mlp_rows_scratch(call.c.dev, d))) {
        return;
    }
    uint32_t groups = grt_mlp_rows_groups(call.c.dev, d), count = 6;
    const struct grt_row_places *at = &d->places;
    struct grt_range ranges[GRT_MAX_BINDINGS] = {
        at->near.range,
        or_else(at->far.range, at->near.range),
        or_else(at->order, at->near.range),
        d->params->copy->range,
        d->params->master->range,
        grt_op_part(d->scratch, 0, groups * d->params->elements * 4)};
    for (uint32_t i = 0; i < kernel->range_count && count < GRT_MAX_BINDINGS; i++) {
        ranges[count++] = kernel->ranges[i];
    }
    launch(graph, &call, d, kernel->name, BACKWARD_LANES, (const struct grt_spec[2]){kernel->spec},
           ranges, count, groups, &(struct own_params){kernel->params, kernel->params_size});
    grt_graph_operations(graph, 2.0 * mlp_operations(&call.c) + mlp_back_operations(&call.c));
    add_up(graph, &call, d, groups);
}
