// SPDX-License-Identifier: Apache-2.0
// Samples of a micro-batch: from the caller's memory, or gathered from rows that stay on the
// device.
#include "recording.h"

#include "device/section.h"
#include "gpurt/device.h"
#include "gpurt/ops.h"
#include "nn/fused/fused.h"
#include "nn/layer_ops.h"
#include "ops/op_support.h"

void recording_phase(const struct recording *f, const char *name) {
    if (f->desc->phases) {
        grt_graph_phase(f->graph, name);
    } else if (!f->evaluates) {
        grt_graph_section(f->graph, name);
    }
}

// Where in the micro-batch's tensor, or in the caller's memory, the samples are.
static struct grt_tensor source(const struct recording *f, const struct grt_tensor *own,
                                uint64_t rows, struct grt_range given) {
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

uint64_t recording_steps(const struct recording *f) {
    return (f->desc->steps > 0 ? f->desc->steps : 1) + (f->desc->rest > 0);
}

// The samples of a micro-batch, or of as many steps as there is room for, all at once with the
// first of them.
static void gather(struct recording *f, bool with_target) {
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
    uint64_t left = recording_steps(f) - f->step;
    uint64_t steps = left < data->staged ? left : data->staged;
    // The last of all steps may have fewer.
    uint64_t all =
        steps * f->each - (steps == left && f->desc->rest > 0 ? f->each - f->desc->rest : 0);
    if (data->drawn.buf) {
        bool drawn = !f->evaluates && at + 1 < data->staged && left > 1;
        bool shorter = left == 2 && f->desc->rest > 0;
        f->order_first = (uint32_t)(at * f->each);
        f->order_ahead = drawn ? (uint32_t)(shorter ? f->desc->rest : f->each) : 0;
        g.rows = all;
        if (at == 0 && !data->known) {
            grt_op_draw(f->graph, &g, grt_op_part(data->drawn, 0, g.rows * 4));
        }
        return;
    }
    if (data->staged > 0) {
        f->x.range = grt_op_part(data->stage_x, grt_learner_stage(l, false, at), f->x.range.size);
        f->target.range =
            grt_op_part(data->stage_y, grt_learner_stage(l, true, at), f->target.range.size);
        g.rows = all;
        g.batch = f->each;
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

void recording_see(struct recording *f, uint64_t samples) {
    f->y = grt_nn_rows(f->l->y, f->l->views * samples);
    if (f->l->dy) {
        f->dy = grt_nn_rows(f->l->dy, f->l->views * samples);
    }
}

bool recording_feed(struct recording *f, bool with_target) {
    struct grt_learner *l = f->l;
    const struct grt_step_desc *d = f->desc;
    f->first = f->micro * l->micro;
    if (f->first >= f->rows || (d->part > 0 && f->micro >= d->part)) {
        return false;
    }
    uint64_t left = f->rows - f->first, rows = left < l->micro ? left : l->micro;
    recording_phase(f, "input");
    f->x = source(f, l->x, rows, d->x);
    with_target = with_target && grt_loss_has_targets(l->desc.loss);
    f->target = source(f, l->target, rows, with_target ? d->y : (struct grt_range){0});
    recording_see(f, rows);
    if (d->data) {
        gather(f, with_target);
    }
    return true;
}

struct grt_tensor recording_input(const struct recording *f) {
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
