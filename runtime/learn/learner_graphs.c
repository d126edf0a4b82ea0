// SPDX-License-Identifier: Apache-2.0
// Graphs of what a learner does (learner_step.c), once the samples that they want are known to be
// there.
#include "gpurt/device.h"
#include "base/log.h"
#include "recording.h"

typedef void record_fn(struct recording *f);

static bool has_samples(const struct grt_range *range, uint64_t bytes) {
    uint64_t size = range->buf ? grt_buf_size(range->buf) : 0;
    return range->offset <= size && bytes <= (range->size ? range->size : size - range->offset);
}

// Why the samples cannot be had, or NULL.
static const char *missing(const struct recording *f, uint64_t rows, bool with_target) {
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
    if (d->rest > 0 && (!data || d->rest >= rows)) {
        return "a step of the rest has fewer rows than the others, which lie on the device";
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

// The same of a loss over the samples of several learners.
static const char *unshared(const struct recording *f, record_fn *one, uint64_t rows) {
    const struct grt_learner *l = f->l;
    const struct grt_step_desc *d = f->desc;
    const struct grt_whole *w = &l->whole;
    bool embeds = one == recording_embedding, back = one == recording_gradients;
    if (!l->shared) {
        return embeds || one == recording_meeting ? "the loss is over this learner's samples alone"
                                                  : NULL;
    }
    if (one == recording_step) {
        return "the loss is over the samples of several learners: it is taken in parts";
    }
    uint64_t all = d->whole > 0 ? d->whole : w->samples;
    if ((embeds || back) && (d->part > 0 || d->data || all > w->samples || d->place < w->first ||
                             d->place + rows > w->first + w->own || d->place + rows > all)) {
        return "they are not among this learner's samples of the step";
    }
    return NULL;
}

static struct grt_graph *record(struct recording *f, const char *label, record_fn *one) {
    struct grt_learner *l = f->l;
    const struct grt_step_desc *desc = f->desc;
    if (!l || !desc || !l->allocated) {
        grt_fail(GRT_INVALID, "%s: no desc, or the learner is not allocated", label);
        return NULL;
    }
    uint64_t rows = desc->rows > 0 ? desc->rows : l->desc.batch;
    bool predicts = one == recording_prediction, updates = one == recording_update;
    bool without = updates || one == recording_meeting || (l->shared && one == recording_gradients);
    const char *why = unshared(f, one, rows);
    if (!why && (!without || rows > l->desc.batch)) {
        why = missing(f, rows, !predicts);
    }
    if (!why && (without || one == recording_gradients || one == recording_embedding) &&
        desc->steps > 1) {
        why = "several steps want an update between them";
    }
    if (!why && predicts &&
        (desc->steps > 1 || !has_samples(&f->out, rows * recording_y_bytes(l)))) {
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
    f->rows = f->each = rows;
    for (f->step = 0; f->step < recording_steps(f); f->step++) {
        f->rows = desc->rest > 0 && f->step + 1 == recording_steps(f) ? desc->rest : rows;
        one(f);
    }
    if (desc->tell) {
        grt_graph_tell(graph, desc->tell);
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
    return record(&(struct recording){.l = l, .desc = desc}, label, one);
}

struct grt_graph *grt_learner_step(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record_training(l, desc, "training step", recording_step);
}

struct grt_graph *grt_learner_gradients(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record_training(l, desc, "gradients", recording_gradients);
}

struct grt_graph *grt_learner_update(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record_training(l, desc, "update", recording_update);
}

struct grt_graph *grt_learner_embed(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record_training(l, desc, "embedding", recording_embedding);
}

struct grt_graph *grt_learner_meet(struct grt_learner *l) {
    return record_training(l, grt_step_desc(.rows = 1), "meeting", recording_meeting);
}

struct grt_graph *grt_learner_evaluate(struct grt_learner *l, const struct grt_step_desc *desc) {
    return record(&(struct recording){.l = l, .desc = desc, .evaluates = true}, "evaluation",
                  recording_evaluation);
}

struct grt_graph *grt_learner_predict(struct grt_learner *l, const struct grt_step_desc *desc,
                                      struct grt_range out) {
    return record(&(struct recording){.l = l, .desc = desc, .out = out}, "prediction",
                  recording_prediction);
}

struct grt_graph *grt_learner_watched(struct grt_learner *l, const struct grt_step_desc *desc,
                                      grt_learner_saw_fn *saw, void *context) {
    return record(&(struct recording){.l = l, .desc = desc, .saw = saw, .context = context},
                  "evaluation", recording_evaluation);
}
