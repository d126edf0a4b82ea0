// SPDX-License-Identifier: Apache-2.0
// Recording what a learner does: a training step or a half of it, an evaluation, a prediction. All
// feed samples micro-batch by micro-batch; tensors are cut to the rows that are there, so the last
// batch of an epoch may be smaller.
#include <string.h>

#include "gpurt/device.h"
#include "ops/op_support.h"
#include "gpurt/ops.h"
#include "base/log.h"
#include "nn/layer_ops.h"
#include "learner_parts.h"
#include "nn/fused/fused.h"
#include "shaders/host.h"
#include "shaders/nn/lib/loss_params.k"

// One micro-batch of a recording.
struct feed {
    struct grt_learner *l;
    struct grt_graph *graph;
    const struct grt_step_desc *desc;
    uint64_t rows;   // of the step
    uint64_t micro;  // its number within the step
    uint64_t first;  // row of the step that it begins with
    uint64_t step;
    bool evaluates;
    bool again;                          // the micro-batch goes forward a second time
    uint64_t judged_to;                  // steps of an evaluation that are recorded
    struct grt_range out;                // of a prediction
    struct grt_tensor x, target, y, dy;  // cut to its rows; x in f32
    uint32_t order_first;                // of rows by their numbers: place of the first
    struct grt_range norms;              // of the gradients, where the model's op has them
    uint32_t norm_count;
    void (*saw)(void *context, struct grt_graph *graph, const struct grt_tensor *tensor,
                const char *name);
    void *context;
};

static void phase(const struct feed *f, const char *name) {
    if (f->desc->phases) {
        grt_graph_phase(f->graph, name);
    }
}

// Where in the micro-batch's tensor, or in the caller's memory, the samples are.
static struct grt_tensor source(const struct feed *f, const struct grt_tensor *own, uint64_t rows,
                                struct grt_range given) {
    struct grt_tensor t = grt_nn_rows(own, rows);
    if (!given.buf) {
        return t;
    }
    uint64_t bytes = grt_tensor_bytes(own) / own->shape[0];
    struct grt_range from = grt_op_part(
        given, f->desc->part > 0 ? 0 : (f->step * f->rows + f->first) * bytes, rows * bytes);
    const struct grt_caps *caps = &grt_dev_info(f->l->dev)->caps;
    if (grt_buf_kind(given.buf) == GRT_BUF_DEVICE &&
        (caps->align == 0 || from.offset % caps->align == 0)) {
        t.range = from;
    } else {
        grt_graph_copy(f->graph, t.range, from);
    }
    return t;
}

// ---- rows that stay on the device ----

uint64_t grt_learner_stage(const struct grt_learner *l, bool y, uint64_t step) {
    uint64_t bytes = l->desc.batch * (y ? grt_learner_y_bytes(l) : grt_learner_x_bytes(l));
    return step * grt_dev_align_up(l->dev, bytes);
}

// Elements of 4 bytes that the model takes as they are.
static bool plain(const struct grt_tensor *t) {
    return t->dtype == GRT_F32 || t->dtype == GRT_U32;
}

bool grt_learner_draws(const struct grt_learner *l, const struct grt_step_rows *rows,
                       bool evaluates) {
    if (!l || !rows || l->micro < l->desc.batch || !rows->y.range.buf || rows->norm.buf ||
        rows->x.dtype != GRT_F32 || !plain(&rows->y)) {
        return false;
    }
    struct grt_fused_desc fused = grt_learner_fused(l, l->desc.batch);
    fused.ordered = true;
    return evaluates ? l->judged && grt_learner_judges(l, l->desc.batch, true)
                     : l->fused && grt_fused_usable(l->dev, &fused, true);
}

// The samples of a micro-batch, or of as many steps as there is room for, all at once with the
// first of them.
static void gather(struct feed *f, bool with_target) {
    const struct grt_step_rows *data = f->desc->data;
    const struct grt_learner *l = f->l;
    struct grt_gathering g = {.from = data,
                              .state = l->state,
                              .evaluates = f->evaluates,
                              .first = f->first,
                              .rows = f->x.shape[0],
                              .batch = f->x.shape[0],
                              .x = f->x.range,
                              .x_step = f->x.range.size,
                              .y_step = f->target.range.size};
    if (with_target) {
        g.y = f->target.range;
    }
    uint64_t at = data->staged > 0 ? f->step % data->staged : 0;
    uint64_t left = (f->desc->steps > 0 ? f->desc->steps : 1) - f->step;
    uint64_t steps = left < data->staged ? left : data->staged;
    if (data->drawn.buf) {
        f->order_first = (uint32_t)(at * f->rows);
        g.rows = steps * f->rows;
        if (at == 0) {
            grt_op_draw(f->graph, &g, grt_op_part(data->drawn, 0, g.rows * 4));
        }
        return;
    }
    if (data->staged > 0) {
        f->x.range = grt_op_part(data->stage_x, grt_learner_stage(l, false, at), f->x.range.size);
        f->target.range =
            grt_op_part(data->stage_y, grt_learner_stage(l, true, at), f->target.range.size);
        g.rows = steps * f->rows;
        g.batch = f->rows;
        g.x_step = grt_learner_stage(l, false, 1);
        g.y_step = grt_learner_stage(l, true, 1);
        g.x = grt_op_part(data->stage_x, 0, steps * g.x_step);
        g.y = with_target ? grt_op_part(data->stage_y, 0, steps * g.y_step) : g.y;
        if (at > 0) {
            return;
        }
    }
    grt_op_gather(f->graph, &g);
}

// The network's rows of so many samples.
static void see(struct feed *f, uint64_t samples) {
    f->y = grt_nn_rows(f->l->y, f->l->views * samples);
    if (f->l->dy) {
        f->dy = grt_nn_rows(f->l->dy, f->l->views * samples);
    }
}

// Brings the samples of a micro-batch to where the model reads them; false when there is none left.
static bool feed(struct feed *f, bool with_target) {
    struct grt_learner *l = f->l;
    const struct grt_step_desc *d = f->desc;
    f->first = f->micro * l->micro;
    if (f->first >= f->rows || (d->part > 0 && f->micro >= d->part)) {
        return false;
    }
    uint64_t left = f->rows - f->first, rows = left < l->micro ? left : l->micro;
    phase(f, "input");
    f->x = source(f, l->x, rows, d->x);
    with_target = with_target && grt_loss_has_targets(l->desc.loss);
    f->target = source(f, l->target, rows, with_target ? d->y : (struct grt_range){0});
    see(f, rows);
    if (d->data) {
        gather(f, with_target);
    }
    return true;
}

// x as the module takes it: in its type, and as often as it sees each sample.
static struct grt_tensor narrow_input(const struct feed *f) {
    if (!f->l->x16) {
        return f->x;
    }
    uint64_t views = f->l->views, samples = f->x.shape[0];
    struct grt_tensor all = grt_nn_rows(f->l->x16, views * samples);
    struct grt_tensor first = grt_nn_rows(f->l->x16, samples);
    if (first.dtype == f->x.dtype) {
        grt_graph_copy(f->graph, first.range, f->x.range);
    } else {
        grt_op_convert(f->graph, &first, &f->x);
    }
    for (uint64_t view = 1; view < views; view++) {
        struct grt_range to = grt_op_part(all.range, view * first.range.size, first.range.size);
        grt_graph_copy(f->graph, to, first.range);
    }
    return all;
}

static struct grt_range parts(const struct feed *f, const struct grt_tensor *of) {
    return grt_op_part(of->range, f->micro * GRT_LOSS_PARTS * 4, GRT_LOSS_PARTS * 4);
}

static struct grt_pass pass_of(const struct feed *f, bool training) {
    return (struct grt_pass){.graph = f->graph,
                             .training = training,
                             .again = f->again,
                             .add_grads = f->micro > 0,
                             .state = f->l->state->range,
                             .micro = (uint32_t)f->micro,
                             .saw = f->saw,
                             .context = f->context};
}

// What a fused op reads: the micro-batch, or rows of all the data by their numbers.
static void give_samples(struct feed *f, struct grt_fused_desc *desc) {
    const struct grt_step_rows *data = f->desc->data;
    desc->ordered = data && data->drawn.buf;
    desc->x = desc->ordered ? &data->x : &f->x;
    desc->target = desc->ordered ? &data->y : &f->target;
    desc->state = f->l->state->range;
    if (desc->ordered) {
        desc->order = grt_op_part(data->drawn, 0, (f->order_first + desc->rows) * 4);
        desc->order_first = f->order_first;
    }
}

// As one op where there is one and nobody looks at what is between: no layer's units go to memory.
static bool forward_fused(struct feed *f) {
    struct grt_learner *l = f->l;
    struct grt_fused_desc desc = grt_learner_fused(l, f->x.shape[0]);
    bool layers = l->desc.variant && strcmp(l->desc.variant, "layers") == 0;
    if (f->saw || layers || l->views > 1 || !grt_fused_forward_usable(l->dev, &desc, false)) {
        return false;
    }
    give_samples(f, &desc);
    desc.y = &f->y;
    phase(f, "forward");
    grt_op_fused_forward(f->graph, &desc);
    return true;
}

// Returns x as the network took it.
static struct grt_tensor record_forward(struct feed *f, bool training) {
    if (!training && forward_fused(f)) {
        return f->x;
    }
    struct grt_tensor x = narrow_input(f);
    struct grt_pass pass = pass_of(f, training);
    phase(f, "forward");
    if (!f->l->y16) {
        grt_module_forward(f->l->module, &pass, &x, &f->y);
    } else {
        struct grt_tensor y16 = grt_nn_rows(f->l->y16, f->l->views * f->x.shape[0]);
        grt_module_forward(f->l->module, &pass, &x, &y16);
        grt_op_convert(f->graph, &f->y, &y16);
    }
    grt_pass_saw(&pass, &f->y, "output");
    return x;
}

// Forward, loss and backward as one op. Rows go forward and back in one launch, whose time counts
// as forward.
static void record_fused(struct feed *f) {
    struct grt_learner *l = f->l;
    struct grt_fused_desc desc = grt_learner_fused(l, f->x.shape[0]);
    give_samples(f, &desc);
    desc.y = &f->y;
    desc.add = f->micro > 0;
    desc.samples = f->rows;
    desc.parts = parts(f, l->loss_parts);
    desc.scratch = l->fused_scratch->range;
    desc.phases = f->desc->phases;
    f->norms = grt_fused_norms(l->dev, &desc, &f->norm_count);
    grt_op_fused(f->graph, &desc);
}

// Samples as rows of numbers, as losses take them.
static struct grt_tensor flat(const struct feed *f, const struct grt_tensor *t) {
    return grt_nn_matrix(t, t->shape[0], f->l->outputs);
}

// The loss of rows of the network, a gradient where dy is given, of a mean over `samples`.
static struct grt_loss_desc loss_of(const struct feed *f, const struct grt_tensor *y,
                                    const struct grt_tensor *dy, uint64_t samples) {
    const struct grt_learner *l = f->l;
    struct grt_loss_desc d = {.loss = l->desc.loss,
                              .delta = l->desc.huber_delta,
                              .y = y,
                              .target = &f->target,
                              .dy = dy,
                              .samples = samples,
                              .parts = parts(f, l->loss_parts),
                              .state = l->state->range};
    if (!grt_loss_has_targets(d.loss)) {
        d.target = NULL;
        d.samples = samples * l->views;
        d.temperature = l->desc.temperature;
        d.scratch = l->loss_scratch ? l->loss_scratch->range : (struct grt_range){0};
    }
    return d;
}

static void record_micro(struct feed *f) {
    struct grt_learner *l = f->l;
    if (l->fused) {
        record_fused(f);
        return;
    }
    struct grt_tensor x = record_forward(f, true);
    struct grt_tensor y = flat(f, &f->y), dy = flat(f, &f->dy);
    struct grt_loss_desc loss = loss_of(f, &y, &dy, f->rows);
    loss.label_smoothing = l->desc.label_smoothing;
    loss.class_weights = l->class_weights;
    loss.weight_sum = l->weight_sum;
    loss.mix = l->net.mix;
    loss.hits = l->class_weights ? parts(f, l->hits) : (struct grt_range){0};
    grt_op_loss(f->graph, &loss);
    phase(f, "backward");
    struct grt_pass pass = pass_of(f, true);
    grt_module_backward(l->module, &pass, &x, &f->dy, NULL, false);
}

// The micro-batches of a graph: all, or one.
static uint64_t first_micro(const struct feed *f) {
    return f->desc->part > 0 ? f->desc->part - 1 : 0;
}

// Behind the last one of a graph: whether it was the last of the step.
static bool step_ends(const struct feed *f) {
    return f->micro * f->l->micro >= f->rows;
}

// Bytes of a micro-batch's rows in a tensor of all of them, cut to `samples`.
static struct grt_range share_of(const struct feed *f, const struct grt_tensor *all, uint64_t rows,
                                 uint64_t samples) {
    uint64_t bytes = grt_tensor_bytes(all) / all->shape[0] * rows;
    return grt_op_part(all->range, f->micro * f->l->micro * bytes, samples * bytes);
}

// A micro-batch forward, its samples and what became of them kept.
static void record_first(struct feed *f) {
    const struct grt_learner *l = f->l;
    uint64_t samples = f->x.shape[0];
    record_forward(f, true);
    grt_graph_copy(f->graph, share_of(f, l->all_x, 1, samples), f->x.range);
    grt_graph_copy(f->graph, share_of(f, l->all_y, l->views, samples), f->y.range);
}

// The loss over all micro-batches, then each forward again, and back.
static void record_second(struct feed *f) {
    struct grt_learner *l = f->l;
    struct grt_tensor y = grt_nn_rows(l->all_y, l->views * f->rows);
    struct grt_tensor dy = grt_nn_rows(l->all_dy, l->views * f->rows);
    uint64_t count = f->micro;
    f->micro = 0;
    struct grt_loss_desc loss = loss_of(f, &y, &dy, f->rows);
    loss.block = l->views * l->micro;
    grt_op_loss(f->graph, &loss);
    f->again = true;
    for (f->micro = 0; f->micro < count; f->micro++) {
        uint64_t left = f->rows - f->micro * l->micro, rows = left < l->micro ? left : l->micro;
        f->x = grt_nn_rows(l->x, rows);
        see(f, rows);
        grt_graph_copy(f->graph, f->x.range, share_of(f, l->all_x, 1, rows));
        struct grt_tensor x = record_forward(f, true);
        grt_graph_copy(f->graph, f->dy.range, share_of(f, l->all_dy, l->views, rows));
        phase(f, "backward");
        struct grt_pass pass = pass_of(f, true);
        grt_module_backward(l->module, &pass, &x, &f->dy, NULL, false);
    }
    f->again = false;
}

static void record_gradients(struct feed *f) {
    for (f->micro = first_micro(f); feed(f, true); f->micro++) {
        if (f->l->exact) {
            record_first(f);
        } else {
            record_micro(f);
        }
    }
    if (step_ends(f) && f->l->exact) {
        record_second(f);
    }
    if (step_ends(f) && f->l->class_weights) {
        grt_op_weighted_mean(f->graph, f->l->params.grad, f->l->loss_parts->range,
                             f->l->hits->range, (uint32_t)f->micro * GRT_LOSS_PARTS);
    }
}

// By the gradients of f->micro micro-batches.
static void record_update(struct feed *f) {
    struct grt_learner *l = f->l;
    phase(f, "optimizer");
    grt_op_update(
        f->graph,
        grt_update_desc(.optim = &l->desc.optim, .params = &l->params, .kept = l->kept,
                        .state = l->state, .history = l->history,
                        .loss_parts = l->loss_parts->range,
                        .loss_part_count = (l->exact ? 1 : (uint32_t)f->micro) * GRT_LOSS_PARTS,
                        .norm_parts = l->norm_parts, .norms = f->norms, .norm_count = f->norm_count,
                        .cursor_step = f->desc->data ? (uint32_t)f->rows : 0,
                        .cursor_end = f->desc->data ? f->desc->data->epoch : 0,
                        .scaling = l->desc.precision == GRT_F16, .rates = l->rates,
                        .average = l->average, .lengths = l->lengths));
}

static void record_step(struct feed *f) {
    record_gradients(f);
    if (step_ends(f)) {
        record_update(f);
    }
}

static void record_update_alone(struct feed *f) {
    f->micro = (f->rows + f->l->micro - 1) / f->l->micro;
    record_update(f);
}

// Steps of rows by their numbers that one launch can take: those whose numbers are drawn, and whose
// losses there is room for, each step's in blocks of its own, as by a launch for each.
static uint64_t steps_at_once(const struct feed *f, struct grt_fused_desc desc) {
    const struct grt_step_rows *data = f->desc->data;
    const struct grt_learner *l = f->l;
    if (!desc.ordered || f->desc->steps <= 1) {
        return 1;
    }
    desc.tiles_for = f->rows;
    uint64_t one = grt_fused_judge_blocks(l->dev, &desc);
    uint64_t most = one > 0 ? grt_tensor_count(l->judged) / one : 1;
    uint64_t drawn = data->staged - f->step % data->staged, left = f->desc->steps - f->step;
    uint64_t steps = drawn < left ? drawn : left;
    steps = steps < most ? steps : most;
    desc.rows = steps * f->rows;
    return steps > 1 && grt_fused_judge_blocks(l->dev, &desc) == steps * one ? steps : 1;
}

// Forward and the losses of one or several steps in one launch. How many numbers of a step there
// are to add up; 0: there is no such op, or somebody looks at what is between.
static uint32_t record_judged(struct feed *f, uint32_t *steps) {
    struct grt_learner *l = f->l;
    struct grt_fused_desc desc = grt_learner_fused(l, f->x.shape[0]);
    if (f->saw || !l->judged || l->micro < l->desc.batch) {
        return 0;
    }
    give_samples(f, &desc);
    if (!grt_learner_judges(l, f->x.shape[0], desc.ordered)) {
        return 0;
    }
    *steps = (uint32_t)steps_at_once(f, desc);
    desc.rows = *steps * f->x.shape[0];
    desc.tiles_for = f->x.shape[0];
    give_samples(f, &desc);
    desc.parts = l->judged->range;
    phase(f, "forward");
    f->judged_to = f->step + *steps;
    return grt_op_fused_judge(f->graph, &desc) / *steps;
}

static void record_evaluation(struct feed *f) {
    struct grt_learner *l = f->l;
    bool classes = l->desc.loss == GRT_LOSS_CROSS_ENTROPY;
    uint32_t judged = 0, steps = 1;
    f->evaluates = true;
    if (f->step < f->judged_to) {
        return;
    }
    for (f->micro = first_micro(f); feed(f, true); f->micro++) {
        judged = record_judged(f, &steps);
        if (judged > 0) {
            continue;
        }
        record_forward(f, false);
        struct grt_tensor y = flat(f, &f->y);
        // A mean over one sample is a sum over samples.
        struct grt_loss_desc loss = loss_of(f, &y, NULL, 1);
        if (classes) {
            loss.hits = parts(f, l->hits);
            loss.near = parts(f, l->near);
        }
        grt_op_loss(f->graph, &loss);
    }
    if (!step_ends(f)) {
        return;
    }
    const struct grt_step_rows *data = f->desc->data;
    const struct tally_params params = {.parts =
                                            judged ? judged : (uint32_t)f->micro * GRT_LOSS_PARTS,
                                        .samples = (uint32_t)f->rows,
                                        .steps = steps,
                                        .moved = data ? steps * (uint32_t)f->rows : 0,
                                        .epoch = data ? data->epoch : 0,
                                        .counted = classes};
    const struct grt_range ranges[] = {judged ? l->judged->range : l->loss_parts->range,
                                       l->hits->range, l->state->range, l->near->range};
    grt_op_launch(f->graph,
                  grt_kernel_desc(.name = "tally", .specs = {{"WG", grt_op_tree_wg(l->dev)}}),
                  &params, sizeof params, ranges, 4, (const uint32_t[3]){1, 1, 1});
}

static uint64_t y_row_bytes(const struct grt_learner *l) {
    return l->outputs * 4;
}

static void record_prediction(struct feed *f) {
    for (f->micro = first_micro(f); feed(f, false); f->micro++) {
        record_forward(f, false);
        uint64_t bytes = y_row_bytes(f->l);
        grt_graph_copy(f->graph, grt_op_part(f->out, f->first * bytes, f->y.shape[0] * bytes),
                       f->y.range);
    }
}

// ---- the graphs ----

static bool has_samples(const struct grt_range *range, uint64_t bytes) {
    uint64_t size = range->buf ? grt_buf_size(range->buf) : 0;
    return range->offset <= size && bytes <= (range->size ? range->size : size - range->offset);
}

// Why the samples cannot be had, or NULL.
static const char *missing(const struct feed *f, uint64_t rows, bool with_target) {
    const struct grt_learner *l = f->l;
    const struct grt_step_desc *d = f->desc;
    uint64_t steps = d->steps > 0 ? d->steps : 1;
    with_target = with_target && grt_loss_has_targets(l->desc.loss);
    if (rows > l->desc.batch) {
        return "more rows than the learner's batch";
    }
    if (l->views > 1 && l->x16->dtype != GRT_F32 && rows % 2 != 0 &&
        grt_learner_x_bytes(l) / 4 % 2 != 0) {
        return "an odd number of samples of an odd number of 16-bit floats cannot be seen twice";
    }
    const struct grt_step_rows *data = d->data;
    if (d->part > 0) {
        uint64_t first = (d->part - 1) * l->micro, left = first < rows ? rows - first : 0;
        if (data || steps > 1 || left == 0) {
            return "no such micro-batch, or several steps, or data on the device";
        }
        rows = left < l->micro ? left : l->micro;
    }
    if (data) {
        if (d->x.buf || !data->order.range.buf || (with_target && !data->y.range.buf)) {
            return "data on the device want an order and targets, and no x";
        }
        if (data->order.dtype != GRT_U32 ||
            grt_tensor_count(&data->x) / data->x.shape[0] * 4 != grt_learner_x_bytes(l) ||
            (with_target &&
             grt_tensor_count(&data->y) / data->y.shape[0] * 4 != grt_learner_y_bytes(l))) {
            return "the data's samples are not the learner's";
        }
        if (data->drawn.buf && (!grt_learner_draws(l, data, f->evaluates) || data->staged == 0 ||
                                data->drawn.size / 4 < (uint64_t)data->staged * rows)) {
            return "rows by their numbers want room for them and fused kernels";
        }
        if (data->staged > 0 && !data->drawn.buf &&
            (l->micro < l->desc.batch ||
             !has_samples(&data->stage_x, grt_learner_stage(l, false, data->staged)) ||
             (with_target &&
              !has_samples(&data->stage_y, grt_learner_stage(l, true, data->staged))))) {
            return "the stage is smaller than its steps, or steps are cut into micro-batches";
        }
        return NULL;
    }
    if (d->x.buf) {
        if (!has_samples(&d->x, steps * rows * grt_learner_x_bytes(l)) ||
            (with_target && !has_samples(&d->y, steps * rows * grt_learner_y_bytes(l)))) {
            return "x or y is smaller than the samples of all steps";
        }
        return NULL;
    }
    return rows > l->micro ? "without x only one micro-batch can be fed" : NULL;
}

typedef void record_fn(struct feed *f);

static struct grt_graph *record(struct feed *f, const char *label, record_fn *one) {
    struct grt_learner *l = f->l;
    const struct grt_step_desc *desc = f->desc;
    if (!l || !desc || !l->allocated) {
        grt_fail(GRT_INVALID, "%s: no desc, or the learner is not allocated", label);
        return NULL;
    }
    uint64_t rows = desc->rows > 0 ? desc->rows : l->desc.batch;
    bool predicts = one == record_prediction, updates = one == record_update_alone;
    const char *why = updates && rows <= l->desc.batch ? NULL : missing(f, rows, !predicts);
    if (!why && (updates || one == record_gradients) && desc->steps > 1) {
        why = "several steps want an update between them";
    }
    if (!why && predicts && (desc->steps > 1 || !has_samples(&f->out, rows * y_row_bytes(l)))) {
        why = "out is smaller than what the model gives, or there are several steps";
    }
    if (why) {
        grt_fail(GRT_INVALID, "%s of %llu rows: %s", label, (unsigned long long)rows, why);
        return NULL;
    }
    struct grt_graph *graph = grt_graph_create(l->dev, desc->label ? desc->label : label);
    if (!graph) {
        return NULL;
    }
    f->graph = graph;
    f->rows = rows;
    for (f->step = 0; f->step < (desc->steps > 0 ? desc->steps : 1); f->step++) {
        one(f);
    }
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

static struct grt_graph *record_training(struct grt_learner *l, const struct grt_step_desc *desc,
                                         const char *label, record_fn *one) {
    if (l && l->desc.inference) {
        grt_fail(GRT_INVALID, "%s: the learner was made for inference", label);
        return NULL;
    }
    return record(&(struct feed){.l = l, .desc = desc}, label, one);
}

struct grt_graph *grt_learner_step(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record_training(l, desc, "training step", record_step);
}

struct grt_graph *grt_learner_gradients(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record_training(l, desc, "gradients", record_gradients);
}

struct grt_graph *grt_learner_update(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record_training(l, desc, "update", record_update_alone);
}

struct grt_graph *grt_learner_evaluate(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record(&(struct feed){.l = l, .desc = desc, .evaluates = true}, "evaluation",
                  record_evaluation);
}

struct grt_graph *grt_learner_predict(struct grt_learner *l, const struct grt_step_desc *desc,
                                      struct grt_range out) {
    return record(&(struct feed){.l = l, .desc = desc, .out = out}, "prediction",
                  record_prediction);
}

struct grt_graph *grt_learner_watched(struct grt_learner *l, const struct grt_step_desc *desc,
                                      grt_learner_saw_fn *saw, void *context) {
    return record(&(struct feed){.l = l, .desc = desc, .saw = saw, .context = context},
                  "evaluation", record_evaluation);
}
