// SPDX-License-Identifier: Apache-2.0
// The fused MLP: the public calls, the table of variants, and the launch that all variants end
// with.
#include "mlp_fused.h"

#include <string.h>

#include "ops/op_support.h"
#include "base/log.h"
#include "device/section.h"
#include "mlp_case.h"
#include "gpurt/optim.h"

static const struct mlp_variant *const variants[] = {
    &mlp_variant_step, &mlp_variant_mma,   &mlp_variant_chain,
    &mlp_variant_coop, &mlp_variant_wgmma, &mlp_variant_plain,
};
#define VARIANT_COUNT (sizeof variants / sizeof variants[0])

#define MAX_INPUTS 128u
#define MAX_OUTPUTS 16u
#define MAX_DEPTH 12u

uint32_t mlp_ceil_div(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

double mlp_operations(const struct mlp_case *c) {
    return 2.0 * c->rows * c->inputs * c->width + mlp_back_operations(c);
}

double mlp_back_operations(const struct mlp_case *c) {
    return 2.0 * c->rows * c->width * ((c->depth - 1.0) * c->width + c->outputs);
}

// Compute units, or a guess.
uint32_t mlp_units(const struct grt_dev *dev) {
    uint32_t units = grt_dev_info(dev)->caps.compute_units;
    return units ? units : 16;
}

void mlp_cut(struct mlp_plan *plan, uint32_t wanted, uint32_t piece) {
    uint32_t most = mlp_ceil_div(plan->padded, 2 * piece);
    uint32_t parts = wanted > most ? most : wanted;
    plan->chunk = mlp_ceil_div(mlp_ceil_div(plan->padded, parts > 1 ? parts : 1), piece) * piece;
    plan->parts = mlp_ceil_div(plan->padded, plan->chunk);
    plan->most_parts = wanted > 1 ? wanted : 1;
}

// Whether any variant could do such a model.
static bool fill_case(struct mlp_case *c, struct grt_dev *dev,
                      const struct grt_mlp_fused_desc *desc) {
    const struct grt_mlp_desc *m = &desc->model;
    uint64_t tiled = desc->tiles_for ? desc->tiles_for : desc->rows;
    *c = (struct mlp_case){.dev = dev,
                           .desc = desc,
                           .rows = (uint32_t)desc->rows,
                           .inputs = m->inputs,
                           .depth = m->depth,
                           .width = m->hidden,
                           .outputs = m->outputs,
                           .tiled = (uint32_t)(tiled < MLP_MOST_ROWS ? tiled : MLP_MOST_ROWS),
                           .ordered = desc->ordered};
    bool width = m->hidden >= 16 && m->hidden <= 512 && (m->hidden & (m->hidden - 1)) == 0;
    return width && m->inputs >= 1 && m->inputs <= MAX_INPUTS && m->outputs >= 1 &&
           m->outputs <= MAX_OUTPUTS && m->depth >= 1 && m->depth <= MAX_DEPTH && !m->residual &&
           !m->layer_norm && m->widths[0] == 0 && m->act != GRT_ACT_NONE &&
           m->act <= GRT_ACT_TANH && desc->loss <= GRT_LOSS_BCE && desc->rows >= 1 &&
           desc->rows <= MLP_MOST_ROWS;
}

static bool is_for(const struct mlp_variant *variant, const struct mlp_case *c) {
    return c->width >= variant->narrowest && c->width <= variant->widest;
}

static bool could(const struct mlp_variant *variant, const struct mlp_case *c) {
    return (!c->desc->variant || strcmp(c->desc->variant, variant->name) == 0) &&
           is_for(variant, c) && variant->usable(c);
}

// Whether a variant serves, with the tiles for so many rows, or else with those for most, which the
// case has then: a model that began with many rows can go on with few. A variant chosen by name
// skips the check of its results.
static bool fits(const struct mlp_variant *variant, struct mlp_case *c) {
    if (!could(variant, c)) {
        return false;
    }
    struct mlp_case other = *c;
    other.tiled = MLP_MOST_ROWS;
    if (c->desc->variant || mlp_trusted(c, variant)) {
        return true;
    }
    bool good = could(variant, &other) && mlp_trusted(&other, variant);
    *c = good ? other : *c;
    return good;
}

// What is asked of a variant: forward, loss and gradients; y alone; losses alone.
enum way { THERE_AND_BACK, FORWARD, JUDGED };

static const struct mlp_variant *choose_for(struct mlp_case *c, struct grt_dev *dev,
                                            const struct grt_mlp_fused_desc *desc, uint32_t i,
                                            enum way way) {
    if (!dev || !desc || !fill_case(c, dev, desc)) {
        return NULL;
    }
    c->alone = way != THERE_AND_BACK;
    c->judged = way == JUDGED;
    for (uint32_t v = 0; v < 2 * VARIANT_COUNT; v++) {
        const struct mlp_variant *variant = variants[v % VARIANT_COUNT];
        bool first = v < VARIANT_COUNT;
        if (is_for(variant, c) && variant->better(c) == first && fits(variant, c) && i-- == 0) {
            return variant;
        }
    }
    return NULL;
}

static const struct mlp_variant *choose(struct mlp_case *c, struct grt_dev *dev,
                                        const struct grt_mlp_fused_desc *desc, uint32_t i) {
    return choose_for(c, dev, desc, i, THERE_AND_BACK);
}

const char *grt_mlp_fused_variant(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                                  uint32_t i) {
    struct mlp_case c;
    const struct mlp_variant *variant = choose(&c, dev, desc, i);
    return variant ? variant->name : NULL;
}

bool grt_mlp_fused_usable(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc) {
    struct mlp_case c;
    const struct mlp_variant *variant = choose(&c, dev, desc, 0);
    return variant && variant->better(&c);
}

// ---- scratch: | units | sums | losses | norms | ----
// As much as any smaller number of rows needs too: the last batch of an epoch.

struct sizes {
    uint64_t units, sums, losses, all;  // where sums, losses and norms begin, and the end
};

// Slices that the parts are cut into by the last launch: a lane waits for the memory for each
// AT_ONCE parts.
#define AT_ONCE 16u
static uint32_t reduce_slices(const struct mlp_case *c, uint32_t parts) {
    uint32_t slices = 1;
    while (slices < 8 && !grt_dev_info(c->dev)->caps.software && parts > slices * AT_ONCE) {
        slices *= 2;
    }
    return slices;
}

// Workgroups of the last launch for a layer, and numbers that they leave of all.
static uint32_t reduce_groups(const struct mlp_case *c, uint32_t parts) {
    uint32_t largest = c->width * (c->depth > 1 && c->width > c->inputs ? c->width : c->inputs);
    uint32_t lanes = grt_op_tree_wg(c->dev) / reduce_slices(c, parts);
    uint32_t groups = mlp_ceil_div(largest + c->width, lanes);
    // Who updates reads what each leaves of the norm.
    uint32_t most = grt_dev_info(c->dev)->caps.software ? 2 * mlp_units(c->dev) : 256;
    return groups < most ? groups : most;
}

uint32_t mlp_norm_count(const struct mlp_case *c, uint32_t parts) {
    return reduce_groups(c, parts) * (c->depth + 1);
}

// Blocks are 4 rows at least; a launch of few rows may have more of them than it fills, and one of
// few rows a step has those of many steps.
uint64_t grt_mlp_judge_numbers(uint64_t rows) {
    return rows / 4 + 8192;
}

static struct sizes scratch_sizes(const struct mlp_case *c, const struct mlp_plan *plan) {
    struct sizes s;
    s.units = grt_dev_align_up(c->dev, plan->most_units);
    s.sums = s.units + grt_dev_align_up(c->dev, plan->most_parts * c->desc->params->elements * 4);
    s.losses = s.sums + grt_dev_align_up(c->dev, (c->rows / 4 + 1024) * 4ull);
    // Fewer rows may be cut into more parts.
    s.all = s.losses + grt_dev_align_up(c->dev, mlp_norm_count(c, plan->most_parts) * 4ull);
    return s;
}

uint64_t mlp_scratch_bytes(const struct mlp_case *c, const struct mlp_variant *variant) {
    struct mlp_plan plan;
    variant->plan(c, &plan);
    return scratch_sizes(c, &plan).all;
}

uint64_t grt_mlp_fused_scratch(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc) {
    struct mlp_case c;
    uint64_t most = 0;
    if (!choose(&c, dev, desc, 0) || !desc->params) {
        return 0;
    }
    // Fewer rows may be better done by another.
    for (uint32_t v = 0; v < VARIANT_COUNT; v++) {
        uint64_t bytes = could(variants[v], &c) ? mlp_scratch_bytes(&c, variants[v]) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

struct grt_range grt_mlp_fused_norms(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                                     uint32_t *count) {
    struct mlp_case c;
    struct mlp_plan plan;
    const struct mlp_variant *variant = choose(&c, dev, desc, 0);
    *count = 0;
    if (!variant || !desc->params || !desc->scratch.buf) {
        return (struct grt_range){0};
    }
    variant->plan(&c, &plan);
    *count = mlp_norm_count(&c, plan.parts);
    return grt_op_part(desc->scratch, scratch_sizes(&c, &plan).losses, *count * 4ull);
}

// ---- recording ----

static bool layer_fits(const struct grt_params *params, uint32_t i, uint32_t from, uint32_t to) {
    const struct grt_param *w = params->list[i], *b = params->list[i + 1];
    return w->rank == 2 && w->shape[0] == to && w->shape[1] == from && b->count == to;
}

bool mlp_find_layers(const struct mlp_case *c, struct mlp_params *out) {
    const struct grt_params *params = c->desc->params;
    uint32_t first = c->desc->first, last = first + 2 * c->depth;
    if (!params || params->count < last + 2 || params->elements > UINT32_MAX / 64 ||
        !layer_fits(params, first, c->inputs, c->width) ||
        !layer_fits(params, last, c->width, c->outputs)) {
        return false;
    }
    struct grt_param *const *list = params->list + first;
    uint32_t l = 2 * c->depth;
    out->elements = (uint32_t)params->elements;
    out->w0 = (uint32_t)list[0]->first;
    out->b0 = (uint32_t)list[1]->first;
    out->wh = (uint32_t)list[2]->first;
    out->bh = (uint32_t)list[3]->first;
    out->wl = (uint32_t)list[l]->first;
    out->bl = (uint32_t)list[l + 1]->first;
    out->stride = c->depth > 2 ? (uint32_t)list[4]->first - out->wh : 0;
    for (uint32_t i = 1; i < c->depth; i++) {
        if (!layer_fits(params, first + 2 * i, c->width, c->width) ||
            list[2 * i]->first != out->wh + (i - 1) * out->stride ||
            list[2 * i + 1]->first != out->bh + (i - 1) * out->stride) {
            return false;
        }
    }
    return true;
}

// All rows of the call, or all that an order may name.
static bool has_rows(const struct mlp_case *c, const struct grt_tensor *t, uint64_t cols) {
    uint64_t count = grt_tensor_count(t);
    return c->ordered ? count % cols == 0 : count == c->desc->rows * cols;
}

static const char *misfit(const struct mlp_case *c, struct mlp_params *params) {
    const struct grt_mlp_fused_desc *d = c->desc;
    if (!mlp_find_layers(c, params)) {
        return "the parameters are not those of the model";
    }
    if (!params->elements || !d->params->master || (!c->alone && !d->params->grad) ||
        (d->dtype != GRT_F32 && (!d->params->copy || d->params->copy->dtype != d->dtype))) {
        return "the parameters have no tensors of the type";
    }
    if (d->x->dtype != GRT_F32 || !has_rows(c, d->x, c->inputs)) {
        return "x must be f32 [rows][inputs]";
    }
    uint64_t numbers = (uint64_t)d->order_first + d->rows + d->order_ahead;
    if (c->ordered && (!d->order.buf || d->order.size / 4 < numbers)) {
        return "the order must have a number for each row";
    }
    if (c->alone && !c->judged) {
        bool there = d->y && d->y->dtype == GRT_F32 && d->state.buf &&
                     grt_tensor_count(d->y) == d->rows * c->outputs;
        return there ? NULL : "y must be f32 [rows][outputs], and there must be a state";
    }
    bool classes = d->loss == GRT_LOSS_CROSS_ENTROPY;
    if (d->target->dtype != (classes ? GRT_U32 : GRT_F32) ||
        !has_rows(c, d->target, classes ? 1 : c->outputs)) {
        return "the target must be f32 [rows][outputs], for cross-entropy u32 [rows]";
    }
    if (d->y && (d->y->dtype != GRT_F32 || grt_tensor_count(d->y) != d->rows * c->outputs)) {
        return "y must be f32 [rows][outputs]";
    }
    if (!d->parts.buf || !d->state.buf) {
        return "no parts of the loss, or no state";
    }
    return NULL;
}

void mlp_launch(struct grt_graph *graph, const struct mlp_call *call, const char *kernel,
                const struct grt_spec *own, uint32_t own_count, const struct grt_range *ranges,
                uint32_t range_count, const uint32_t groups[3]) {
    const struct mlp_case *c = call->c;
    struct grt_kernel_desc desc = {
        kernel,
        {{"INPUTS", c->inputs},
         {"DEPTH", c->depth},
         {"WIDTH", c->width},
         {"OUTPUTS", c->outputs},
         {"ACT", (uint32_t)c->desc->model.act},
         {"LOSS", (uint32_t)c->desc->loss}},
    };
    memcpy(desc.specs + 6, own, own_count * sizeof *own);
    grt_op_launch(graph, &desc, &call->params, sizeof call->params, ranges, range_count, groups);
}

void mlp_record_reduce(struct grt_graph *graph, const struct mlp_call *call,
                       struct grt_range loss_parts, uint32_t layers) {
    const struct mlp_case *c = call->c;
    const struct grt_spec specs[] = {{"WG", grt_op_tree_wg(c->dev)},
                                     {"ADD", c->desc->add},
                                     {"LOSS_PARTS", GRT_LOSS_PARTS},
                                     {"AT_ONCE", grt_dev_info(c->dev)->caps.software ? 2 : AT_ONCE},
                                     {"SLICES", reduce_slices(c, call->params.parts)}};
    const struct grt_range ranges[] = {call->sums, call->losses, call->grads,
                                       loss_parts, call->norms,  call->state};
    const uint32_t grid[3] = {reduce_groups(c, call->params.parts), layers, 1};
    mlp_launch(graph, call, "mlp_reduce", specs, sizeof specs / sizeof specs[0], ranges,
               sizeof ranges / sizeof ranges[0], grid);
}

static struct grt_range range_or(const struct grt_tensor *tensor, struct grt_range other) {
    return tensor ? tensor->range : other;
}

// Everything that the launches need; false with the graph rejected.
static bool fill_call(struct grt_graph *graph, const struct mlp_case *c,
                      const struct mlp_variant *variant, struct mlp_call *call) {
    const struct grt_mlp_fused_desc *d = c->desc;
    *call = (struct mlp_call){.c = c};
    const char *why = misfit(c, &call->params);
    if (why) {
        grt_graph_reject(graph, GRT_INVALID, "fused mlp of '%s': %s", d->x->label, why);
        return false;
    }
    variant->plan(c, &call->plan);
    const struct mlp_plan *plan = &call->plan;
    uint64_t samples = d->samples ? d->samples : d->rows;
    uint64_t numbers = samples * (d->loss == GRT_LOSS_CROSS_ENTROPY ? 1 : c->outputs);
    call->params.rows = c->rows;
    call->params.padded = plan->padded;
    call->params.parts = plan->parts;
    call->params.chunk = plan->chunk;
    call->params.blocks = plan->blocks;
    call->params.share = (float)(1.0 / (double)numbers);
    call->params.delta = d->delta > 0.0f ? d->delta : 1.0f;
    call->x = d->x->range;
    call->y = range_or(c->judged ? NULL : d->y, grt_op_unused(graph));
    call->state = d->state;
    call->order = c->ordered ? d->order : d->x->range;
    call->params.first = c->ordered ? d->order_first : 0;
    call->params.ahead = c->ordered ? d->order_ahead : 0;
    call->masters = d->params->master->range;
    call->weights = d->dtype == GRT_F32 ? call->masters : d->params->copy->range;
    if (c->alone) {
        call->target = c->judged ? d->target->range : call->x;
        call->units = grt_op_unused_at(graph, c->judged ? 1 : 0);
        call->losses = c->judged ? d->parts : grt_op_unused_at(graph, 1);
        return true;
    }
    struct sizes sizes = scratch_sizes(c, plan);
    if (!grt_op_scratch(graph, "fused mlp", d->x->label, d->scratch, sizes.all)) {
        return false;
    }
    call->target = d->target->range;
    call->grads = d->params->grad->range;
    call->units = grt_op_part(d->scratch, 0, plan->units_bytes);
    call->sums = grt_op_part(d->scratch, sizes.units, plan->parts * d->params->elements * 4);
    call->losses = grt_op_part(d->scratch, sizes.sums, (uint64_t)plan->blocks * 4);
    call->norms = grt_op_part(d->scratch, sizes.losses, mlp_norm_count(c, plan->parts) * 4ull);
    return true;
}

static void record_phase(struct grt_graph *graph, const struct grt_mlp_fused_desc *desc,
                         const char *name) {
    if (desc->phases) {
        grt_graph_phase(graph, name);
    } else {
        grt_graph_section(graph, name);
    }
}

// The variant, and what its launches are recorded with; NULL with the graph rejected.
static const struct mlp_variant *open_call(struct grt_graph *graph, struct mlp_case *c,
                                           const struct grt_mlp_fused_desc *desc, enum way way,
                                           struct mlp_call *call) {
    if (!graph) {
        grt_fail(GRT_INVALID, "fused mlp: no graph");
        return NULL;
    }
    if (!desc) {
        grt_graph_reject(graph, GRT_INVALID, "fused mlp: no desc");
        return NULL;
    }
    if (!grt_op_tensor(graph, "fused mlp", "x", desc->x) ||
        (way != FORWARD && !grt_op_tensor(graph, "fused mlp", "target", desc->target)) ||
        ((way == FORWARD || desc->y) && !grt_op_tensor(graph, "fused mlp", "y", desc->y))) {
        return NULL;
    }
    struct grt_dev *dev = grt_graph_dev(graph);
    const struct mlp_variant *variant = choose_for(c, dev, desc, 0, way);
    if (!variant) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "fused mlp: no variant '%s' for %u hidden layers of %u in %s on %s",
                         desc->variant ? desc->variant : "any", desc->model.depth,
                         desc->model.hidden, grt_dtype_text(desc->dtype),
                         grt_dev_info(dev)->selector);
        return NULL;
    }
    return fill_call(graph, c, variant, call) ? variant : NULL;
}

bool grt_mlp_forward_usable(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                            bool judged) {
    struct mlp_case c;
    const struct mlp_variant *variant = choose_for(&c, dev, desc, 0, judged ? JUDGED : FORWARD);
    return variant && variant->better(&c);
}

void grt_op_mlp_forward(struct grt_graph *graph, const struct grt_mlp_fused_desc *desc) {
    struct mlp_case c;
    struct mlp_call call;
    const struct mlp_variant *variant = open_call(graph, &c, desc, FORWARD, &call);
    if (variant) {
        variant->record_pass(graph, &call);
        grt_graph_operations(graph, mlp_operations(&c));
    }
}

uint32_t grt_mlp_judge_blocks(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                              bool filled) {
    struct mlp_case c;
    struct mlp_plan plan;
    const struct mlp_variant *variant = choose_for(&c, dev, desc, 0, JUDGED);
    if (!variant) {
        return 0;
    }
    variant->plan(&c, &plan);
    // A lane of "plain" takes rows in turns where there are more than lanes.
    bool apart = variant != &mlp_variant_plain || (uint64_t)plan.blocks * 4 == plan.padded;
    return apart && (!filled || plan.padded == c.rows) ? plan.blocks : 0;
}

uint32_t grt_op_mlp_judge(struct grt_graph *graph, const struct grt_mlp_fused_desc *desc) {
    struct mlp_case c;
    struct mlp_call call;
    const struct mlp_variant *variant = open_call(graph, &c, desc, JUDGED, &call);
    if (variant) {
        variant->record_pass(graph, &call);
        grt_graph_operations(graph, mlp_operations(&c));
    }
    return variant ? call.plan.blocks : 0;
}

void grt_op_mlp_fused(struct grt_graph *graph, const struct grt_mlp_fused_desc *desc) {
    struct mlp_case c;
    struct mlp_call call;
    const struct mlp_variant *variant = open_call(graph, &c, desc, THERE_AND_BACK, &call);
    if (variant) {
        record_phase(graph, desc, "forward");
        variant->record_pass(graph, &call);
        double there_and_back = mlp_operations(&c) + mlp_back_operations(&c);
        double gradients = mlp_operations(&c);
        grt_graph_operations(graph, there_and_back + (variant->record_grads ? 0 : gradients));
        record_phase(graph, desc, "backward");
        if (variant->record_grads) {
            variant->record_grads(graph, &call);
            grt_graph_operations(graph, gradients);
        }
        mlp_record_reduce(graph, &call, desc->parts, c.depth + 2);
    }
}
