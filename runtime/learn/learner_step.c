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
#include "recording.h"
#include "nn/fused/fused.h"
#include "shaders/host.h"
#include "shaders/loss/lib/loss_params.k"

static struct grt_range parts(const struct recording *f, const struct grt_tensor *of) {
    return grt_op_part(of->range, f->micro * GRT_LOSS_PARTS * 4, GRT_LOSS_PARTS * 4);
}

// Numbers that are the losses of f->micro micro-batches.
static uint32_t loss_numbers(const struct recording *f) {
    return (uint32_t)f->micro * f->l->losses * GRT_LOSS_PARTS;
}

// That loss and gradients are means over.
static uint64_t samples_of(const struct recording *f) {
    return f->desc->samples > 0 ? f->desc->samples : f->rows;
}

static struct grt_pass pass_of(const struct recording *f, bool training) {
    return (struct grt_pass){.graph = f->graph,
                             .training = training,
                             .again = f->again,
                             .add_grads = f->micro > 0,
                             .state = f->l->state->range,
                             .micro = f->desc->micro_first + (uint32_t)f->micro,
                             .saw = f->saw,
                             .context = f->context};
}

// What a fused op reads: the micro-batch, or rows of all the data by their numbers.
static void give_samples(struct recording *f, struct grt_fused_desc *desc) {
    const struct grt_step_rows *data = f->desc->data;
    desc->ordered = data && data->drawn.buf;
    desc->x = desc->ordered ? &data->x : &f->x;
    desc->target = desc->ordered ? &data->y : &f->target;
    desc->state = f->l->state->range;
    if (desc->ordered) {
        uint64_t numbers = f->order_first + desc->rows + f->order_ahead;
        desc->order = grt_op_part(data->drawn, 0, numbers * 4);
        desc->order_first = f->order_first;
        desc->order_ahead = f->order_ahead;
    }
}

// As one op where there is one and nobody looks at what is between: no layer's units go to memory.
static bool forward_fused(struct recording *f) {
    struct grt_learner *l = f->l;
    struct grt_fused_desc desc = grt_learner_fused(l, f->x.shape[0]);
    bool layers = l->desc.variant && strcmp(l->desc.variant, "layers") == 0;
    if (f->saw || layers || l->views > 1 || !grt_fused_forward_usable(l->dev, &desc, false)) {
        return false;
    }
    give_samples(f, &desc);
    desc.y = &f->y;
    recording_phase(f, "forward");
    grt_op_fused_forward(f->graph, &desc);
    return true;
}

// Returns x as the network took it.
static struct grt_tensor record_forward(struct recording *f, bool training) {
    if (!training && forward_fused(f)) {
        return f->x;
    }
    struct grt_tensor x = recording_input(f);
    struct grt_pass pass = pass_of(f, training);
    recording_phase(f, "forward");
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
static void record_fused(struct recording *f) {
    struct grt_learner *l = f->l;
    struct grt_fused_desc desc = grt_learner_fused(l, f->x.shape[0]);
    give_samples(f, &desc);
    desc.y = &f->y;
    desc.add = f->micro > 0;
    desc.samples = samples_of(f);
    desc.parts = parts(f, l->loss_parts);
    desc.scratch = l->fused_scratch->range;
    desc.phases = f->desc->phases;
    f->norms = grt_fused_norms(l->dev, &desc, &f->norm_count);
    grt_op_fused(f->graph, &desc);
}

// Samples as rows of numbers, as losses take them.
static struct grt_tensor flat(const struct recording *f, const struct grt_tensor *t) {
    return grt_nn_matrix(t, t->shape[0], f->l->outputs);
}

// The loss of rows of the network, a gradient where dy is given, of a mean over `samples`.
static struct grt_loss_desc loss_of(const struct recording *f, const struct grt_tensor *y,
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
    if (l->desc.sample_weights) {
        d.sampled = true;
        d.words = (uint32_t)(grt_tensor_count(l->target) / l->micro);
        d.mass = parts(f, l->mass);
    }
    return d;
}

// Each of several losses of its outputs; `all` is what they have in common.
static void record_several(struct recording *f, const struct grt_loss_desc *all) {
    const struct grt_learner *l = f->l;
    uint32_t first = 0, word = 0;
    for (uint32_t i = 0; i < l->losses; i++) {
        const struct grt_loss_share *s = &l->desc.losses[i];
        bool classes = s->loss == GRT_LOSS_CROSS_ENTROPY;
        uint64_t at = (f->micro * l->losses + i) * GRT_LOSS_PARTS * 4;
        struct grt_loss_desc d = *all;
        d.loss = s->loss;
        d.first = first;
        d.cols = s->cols;
        d.words = (uint32_t)(grt_tensor_count(l->target) / l->micro);
        d.word_first = word;
        d.scale = s->scale;
        d.label_smoothing = classes ? all->label_smoothing : 0.0f;
        d.parts = grt_op_part(l->loss_parts->range, at, GRT_LOSS_PARTS * 4);
        if (classes && !d.dy) {
            d.hits = parts(f, l->hits);
        }
        // Samples weigh once; what the other losses say of it is not looked at.
        if (d.sampled) {
            d.mass =
                i == 0 ? grt_op_part(l->mass->range, at, GRT_LOSS_PARTS * 4) : parts(f, l->near);
        }
        grt_op_loss(f->graph, &d);
        first += s->cols;
        word += classes ? 1 : s->cols;
    }
}

// Tells several losses apart: of a step in the history, of an evaluation in the state.
static void record_split(struct recording *f, bool trains) {
    const struct grt_learner *l = f->l;
    const struct loss_split_params params = {.micros = (uint32_t)f->micro,
                                             .losses = l->losses,
                                             .trains = trains,
                                             .epoch = f->desc->data ? f->desc->data->epoch : 0};
    const struct grt_range ranges[] = {l->loss_parts->range, l->state->range, l->history->range};
    if (l->losses > 1) {
        grt_op_launch(
            f->graph,
            grt_kernel_desc(.name = "loss_split", .specs = {{"WG", grt_op_tree_wg(l->dev)}}),
            &params, sizeof params, ranges, 3, (const uint32_t[3]){1, 1, 1});
    }
}

static void record_loss(struct recording *f, const struct grt_loss_desc *d) {
    if (f->l->losses > 1) {
        record_several(f, d);
    } else {
        grt_op_loss(f->graph, d);
    }
}

static void record_micro(struct recording *f) {
    struct grt_learner *l = f->l;
    if (l->fused) {
        record_fused(f);
        return;
    }
    struct grt_tensor x = record_forward(f, true);
    struct grt_tensor y = flat(f, &f->y), dy = flat(f, &f->dy);
    struct grt_loss_desc loss = loss_of(f, &y, &dy, samples_of(f));
    loss.label_smoothing = l->desc.label_smoothing;
    loss.class_weights = l->class_weights;
    loss.weight_sum = l->weight_sum;
    loss.mix = l->net.mix;
    loss.mass = l->mass ? parts(f, l->mass) : (struct grt_range){0};
    record_loss(f, &loss);
    recording_phase(f, "backward");
    struct grt_pass pass = pass_of(f, true);
    grt_module_backward(l->module, &pass, &x, &f->dy, NULL, false);
}

// The micro-batches of a graph: all, or one.
static uint64_t first_micro(const struct recording *f) {
    return f->desc->part > 0 ? f->desc->part - 1 : 0;
}

// Behind the last one of a graph: whether it was the last of the step.
static bool step_ends(const struct recording *f) {
    return f->micro * f->l->micro >= f->rows;
}

// ---- a loss over all samples of a step ----

// Where the micro-batch's first sample lies among those of the step.
static uint64_t place_of(const struct recording *f) {
    return f->desc->place + f->micro * f->l->micro;
}

// The samples of a micro-batch among those of this learner.
static struct grt_range kept_x(const struct recording *f) {
    const struct grt_learner *l = f->l;
    uint64_t bytes = grt_learner_x_bytes(l);
    return grt_op_part(l->all_x->range, (place_of(f) - l->whole.first) * bytes,
                       f->x.shape[0] * bytes);
}

// Rows of the network, which has all samples of a micro-batch, then all again, to or from rows that
// have a sample's views one behind the other, from sample `place` of `all` on:
//
//     | view 1 of samples 0 1 2 .. | view 2 of 0 1 2 .. |      | sample 0 1 2, views 1 2 of each |
//
// So all samples lie in their order, however they are cut into micro-batches.
static void order_views(const struct recording *f, const struct grt_tensor *all, uint64_t place,
                        const struct grt_tensor *rows, bool back) {
    const struct grt_learner *l = f->l;
    uint64_t samples = f->x.shape[0], width = l->outputs;
    struct grt_tensor wide = grt_nn_matrix(all, samples, l->views * width);
    struct grt_tensor narrow = grt_nn_matrix(rows, samples, width);
    for (uint64_t view = 0; view < l->views; view++) {
        uint64_t in_wide = (place * l->views + view) * width, in_narrow = view * samples * width;
        grt_nn_columns(f->graph, back ? &narrow : &wide, back ? in_narrow : in_wide,
                       back ? &wide : &narrow, back ? in_wide : in_narrow, width);
    }
}

// A micro-batch forward, its samples and what became of them kept. Where it goes forward again, it
// is then that norms take their statistics.
static void record_first(struct recording *f) {
    const struct grt_learner *l = f->l;
    f->again = l->twice;
    record_forward(f, true);
    f->again = false;
    if (l->twice) {
        grt_graph_copy(f->graph, kept_x(f), f->x.range);
    }
    order_views(f, l->all_y, place_of(f), &f->y, false);
}

// The loss of this graph's samples and its gradient, by the batches of the step that they are in.
static void record_contrast(struct recording *f) {
    const struct grt_learner *l = f->l;
    uint64_t all = f->desc->whole > 0 ? f->desc->whole : l->shared ? l->whole.samples : f->rows;
    uint64_t place = f->desc->place, end = place + f->rows, views = l->views;
    grt_graph_fill(f->graph, l->loss_parts->range, 0);
    f->micro = 0;
    for (uint64_t at = place / l->whole.batch * l->whole.batch; at < end; at += l->whole.batch) {
        uint64_t count = all - at < l->whole.batch ? all - at : l->whole.batch;
        uint64_t from = at > place ? at : place, to = at + count < end ? at + count : end;
        struct grt_loss_desc loss = loss_of(f, l->all_y, l->all_dy, samples_of(f));
        loss.block = views;
        loss.among = (struct grt_loss_rows){views * at, views * count};
        loss.own = (struct grt_loss_rows){views * from, views * (to - from)};
        loss.dy_first = views * place;
        grt_op_loss(f->graph, &loss);
        f->micro++;
    }
}

// A micro-batch back, forward again before that where there are several.
static void record_back(struct recording *f) {
    struct grt_learner *l = f->l;
    struct grt_tensor x;
    if (l->twice) {
        grt_graph_copy(f->graph, f->x.range, kept_x(f));
        x = record_forward(f, true);
    } else {
        x = l->x16 ? grt_nn_rows(l->x16, l->views * f->x.shape[0]) : f->x;
    }
    order_views(f, l->all_dy, f->micro * l->micro, &f->dy, true);
    recording_phase(f, "backward");
    struct grt_pass pass = pass_of(f, true);
    grt_module_backward(l->module, &pass, &x, &f->dy, NULL, false);
}

// The loss, then each micro-batch.
static void record_second(struct recording *f) {
    struct grt_learner *l = f->l;
    record_contrast(f);
    for (f->micro = 0; f->micro * l->micro < f->rows; f->micro++) {
        uint64_t left = f->rows - f->micro * l->micro, rows = left < l->micro ? left : l->micro;
        f->x = grt_nn_rows(l->x, rows);
        recording_see(f, rows);
        record_back(f);
    }
}

void recording_embedding(struct recording *f) {
    for (f->micro = first_micro(f); recording_feed(f, true); f->micro++) {
        record_first(f);
    }
}

void recording_meeting(struct recording *f) {
    struct grt_learner *l = f->l;
    uint64_t bytes = l->views * l->outputs * 4;
    struct grt_range own =
        grt_op_part(l->all_y->range, l->whole.first * bytes, l->whole.own * bytes);
    if (l->net.together.ranks > 1) {
        grt_net_gather(&l->net, f->graph, own, l->all_y->range);
    }
}

// By the weights of the samples of all micro-batches.
static void record_weighted_mean(struct recording *f) {
    if (f->l->mass) {
        grt_op_weighted_mean(f->graph, f->l->params.grad, f->l->state, f->l->loss_parts->range,
                             f->l->mass->range, loss_numbers(f));
    }
}

void recording_gradients(struct recording *f) {
    if (f->l->shared) {
        record_second(f);
        return;
    }
    for (f->micro = first_micro(f); recording_feed(f, true); f->micro++) {
        if (f->l->exact) {
            record_first(f);
        } else {
            record_micro(f);
        }
    }
    if (step_ends(f) && f->l->exact) {
        record_second(f);
    }
    if (step_ends(f) && f->desc->samples == 0) {
        record_weighted_mean(f);
    }
}

// By the gradients of f->micro micro-batches.
static void record_update(struct recording *f) {
    struct grt_learner *l = f->l;
    recording_phase(f, "optimizer");
    record_split(f, true);
    grt_op_update(f->graph,
                  grt_update_desc(.optim = &l->desc.optim, .params = &l->params, .kept = l->kept,
                                  .state = l->state, .history = l->history,
                                  .loss_parts = l->loss_parts->range,
                                  .loss_part_count = loss_numbers(f), .norm_parts = l->norm_parts,
                                  .norms = f->norms, .norm_count = f->norm_count,
                                  .cursor_step = f->desc->data ? (uint32_t)f->rows : 0,
                                  .cursor_end = f->desc->data ? f->desc->data->epoch : 0,
                                  .scaling = l->desc.precision == GRT_F16, .rates = l->rates,
                                  .average = l->average, .lengths = l->lengths));
}

void recording_step(struct recording *f) {
    recording_gradients(f);
    if (step_ends(f)) {
        record_update(f);
    }
}

void recording_update(struct recording *f) {
    f->micro = (f->rows + f->l->micro - 1) / f->l->micro;
    if (f->desc->samples > 0) {
        record_weighted_mean(f);
    }
    record_update(f);
}

// Steps of an evaluation in one launch, and behind them one of fewer rows where `rest` is not 0;
// `numbers`: losses of a step to add up.
struct judged {
    uint32_t steps, numbers;
    uint64_t rest;
    uint32_t rest_numbers;
};

// Steps of rows by their numbers that one launch can take: those whose numbers are drawn, and whose
// losses there is room for, each step's in blocks of its own, as by a launch for each.
static struct judged at_once(const struct recording *f, struct grt_fused_desc desc) {
    const struct grt_step_rows *data = f->desc->data;
    const struct grt_learner *l = f->l;
    struct judged j = {.steps = 1};
    uint64_t full = f->desc->steps > f->step ? f->desc->steps - f->step : 0;
    if (!desc.ordered || full == 0 || recording_steps(f) == f->step + 1) {
        return j;
    }
    uint64_t one = grt_fused_judge_blocks(l->dev, &desc, true), room = grt_tensor_count(l->judged);
    uint64_t drawn = data->staged - f->step % data->staged, all = full;
    full = full < drawn ? full : drawn;
    full = one > 0 && full > room / one ? room / one : full;
    desc.rows = full * f->rows;
    if (full == 0 || one == 0 || grt_fused_judge_blocks(l->dev, &desc, true) != full * one) {
        return j;
    }
    j.steps = (uint32_t)full;
    // The shorter one behind them.
    desc.rows = f->desc->rest;
    uint64_t tail = full == all && full < drawn && desc.rows > 0
                        ? grt_fused_judge_blocks(l->dev, &desc, false)
                        : 0;
    desc.rows += full * f->rows;
    if (tail > 0 && full * one + tail <= room &&
        grt_fused_judge_blocks(l->dev, &desc, false) == full * one + tail) {
        j.rest = f->desc->rest;
        j.rest_numbers = (uint32_t)tail;
    }
    return j;
}

// Forward and the losses of one or several steps in one launch; no numbers: there is no such op, or
// somebody looks at what is between.
static struct judged record_judged(struct recording *f) {
    struct grt_learner *l = f->l;
    struct grt_fused_desc desc = grt_learner_judging(l, f->x.shape[0]);
    if (f->saw || !l->judged || l->micro < l->desc.batch) {
        return (struct judged){.steps = 1};
    }
    give_samples(f, &desc);
    if (!grt_learner_judges(l, f->x.shape[0], desc.ordered)) {
        return (struct judged){.steps = 1};
    }
    struct judged j = at_once(f, desc);
    desc.rows = j.steps * f->x.shape[0] + j.rest;
    give_samples(f, &desc);
    desc.parts = l->judged->range;
    recording_phase(f, "forward");
    f->judged_to = f->step + j.steps + (j.rest > 0);
    j.numbers = (grt_op_fused_judge(f->graph, &desc) - j.rest_numbers) / j.steps;
    return j;
}

void recording_evaluation(struct recording *f) {
    struct grt_learner *l = f->l;
    bool classes = l->desc.loss == GRT_LOSS_CROSS_ENTROPY;
    struct judged j = {.steps = 1};
    f->evaluates = true;
    if (f->step < f->judged_to) {
        return;
    }
    for (f->micro = first_micro(f); recording_feed(f, true); f->micro++) {
        j = record_judged(f);
        if (j.numbers > 0) {
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
        record_loss(f, &loss);
    }
    if (!step_ends(f)) {
        return;
    }
    record_split(f, false);
    const struct grt_step_rows *data = f->desc->data;
    // A launch that judges leaves sums over all numbers of its rows; the loss of a row is their
    // mean.
    uint64_t numbers = j.numbers && !classes ? l->outputs : 1, samples = j.steps * f->rows;
    const struct tally_params params = {.parts = j.numbers ? j.numbers : loss_numbers(f),
                                        .share = (float)(1.0 / (double)numbers),
                                        .samples = (uint32_t)f->rows,
                                        .steps = j.steps + (j.rest > 0),
                                        .rest_parts = j.rest_numbers,
                                        .rest_samples = (uint32_t)j.rest,
                                        .moved = data ? (uint32_t)(samples + j.rest) : 0,
                                        .epoch = data ? data->epoch : 0,
                                        .counted = classes,
                                        .weighed = l->desc.sample_weights};
    const struct grt_range ranges[] = {j.numbers ? l->judged->range : l->loss_parts->range,
                                       l->hits->range, l->state->range, l->near->range,
                                       l->mass ? l->mass->range : l->near->range};
    grt_op_launch(f->graph,
                  grt_kernel_desc(.name = "tally", .specs = {{"WG", grt_op_tree_wg(l->dev)}}),
                  &params, sizeof params, ranges, 5, (const uint32_t[3]){1, 1, 1});
}

uint64_t recording_y_bytes(const struct grt_learner *l) {
    return l->outputs * 4;
}

void recording_prediction(struct recording *f) {
    for (f->micro = first_micro(f); recording_feed(f, false); f->micro++) {
        record_forward(f, false);
        uint64_t bytes = recording_y_bytes(f->l);
        grt_graph_copy(f->graph, grt_op_part(f->out, f->first * bytes, f->y.shape[0] * bytes),
                       f->y.range);
    }
}
