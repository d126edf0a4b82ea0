// SPDX-License-Identifier: Apache-2.0
// Batches of a loader: each goes to one of a few places while the step before it runs.
#include <string.h>

#include "base/clock.h"
#include "feed_parts.h"

static struct grt_tensor *declare(struct grt_feed *f, struct grt_plan *plan,
                                  const struct grt_tensor *like, const char *label) {
    struct grt_tensor_desc desc = {.label = label, .group = "batches", .dtype = like->dtype};
    memcpy(desc.shape, like->shape, sizeof desc.shape);
    desc.shape[0] = like->shape[0] < f->desc.batch ? like->shape[0] : f->desc.batch;
    return grt_plan_tensor(plan, &desc);
}

// Places that batches go to, a micro-batch at a time: the learner's own input where there is one
// lane. What is written beside a step is never part of a buffer that the step has, which OpenCL
// would not allow, and PoCL would wait for.
bool feed_prepare_batches(struct grt_feed *f) {
    const struct grt_tensor *x = grt_learner_input(f->desc.learner);
    const struct grt_tensor *y = grt_learner_target(f->desc.learner);
    f->place_count = grt_dev_lanes(f->desc.dev);
    bool own = f->place_count == 1;
    for (uint32_t i = 0; i < f->place_count; i++) {
        struct grt_plan *plan = own ? NULL : grt_plan_create(f->desc.dev);
        f->plans[i] = plan;
        f->x[i] = plan ? declare(f, plan, x, "batch x") : NULL;
        f->y[i] = plan ? declare(f, plan, y, "batch y") : NULL;
        if (!own && !(f->x[i] && f->y[i] && grt_plan_alloc(plan))) {
            return false;
        }
        if (!grt_loader_bind(f->desc.loader, i, own ? x : f->x[i], own ? y : f->y[i])) {
            return false;
        }
    }
    return true;
}

uint64_t grt_feed_row_bytes(const struct grt_dev *dev, uint64_t row_bytes, bool several) {
    uint32_t lanes = grt_dev_lanes(dev);
    return lanes > 1 || several ? lanes * row_bytes : 0;
}

uint64_t grt_feed_padding(const struct grt_dev *dev) {
    return grt_dev_lanes(dev) * 2 * grt_dev_align(dev);  // x and y
}

uint32_t feed_micro(const struct grt_feed *f) {
    return (uint32_t)grt_learner_input(f->desc.learner)->shape[0];
}

struct grt_graph *feed_batch_graph(struct grt_feed *f, uint32_t place, uint32_t rows,
                                   uint32_t part) {
    struct grt_step_desc desc = {.rows = rows, .steps = 1};
    desc.part = f->part_count > 1 ? part + 1 : 0;
    if (f->x[place]) {
        desc.x = f->x[place]->range;
        desc.y = f->y[place]->range;
    }
    return feed_graph(f, &desc, place);
}

bool feed_send_part(struct grt_feed *f, struct feed_sent *sent, uint32_t part,
                    struct grt_feed_done *done) {
    struct grt_dev *dev = f->desc.dev;
    bool pinned = sent->batch.x_range.buf != NULL;
    uint32_t place = grt_loader_turn(f->desc.loader, &sent->batch, part);
    if (!(pinned ? grt_dev_after(dev, GRT_LANE_ASIDE, f->read[place]) : grt_dev_wait(dev))) {
        return false;
    }
    double begun = grt_seconds();
    if (!grt_loader_upload(f->desc.loader, &sent->batch, part)) {
        return false;
    }
    sent->mark = grt_dev_mark(dev, GRT_LANE_ASIDE);
    double passed = grt_seconds() - begun;
    done->stalled += grt_dev_passed(dev, GRT_LANE_MAIN, f->newest) ? passed : 0;
    done->waited += passed;
    return true;
}

bool feed_send_next(struct grt_feed *f, struct grt_feed_done *done) {
    struct feed_sent *sent = &f->held[f->held_count];
    double start = grt_seconds();
    if (!grt_loader_next(f->desc.loader, &sent->batch)) {
        return false;
    }
    f->held_count++;
    double passed = grt_seconds() - start;
    done->stalled += grt_dev_passed(f->desc.dev, GRT_LANE_MAIN, f->newest) ? passed : 0;
    done->waited += passed;
    return sent->batch.rows == 0 || feed_send_part(f, sent, 0, done);
}

static bool run_batch(struct grt_feed *f, struct feed_sent *sent, struct grt_feed_done *done) {
    struct grt_dev *dev = f->desc.dev;
    uint32_t rows = sent->batch.rows, micro = feed_micro(f);
    for (uint32_t part = 0; part < f->part_count && part * micro < rows; part++) {
        uint32_t place = grt_loader_turn(f->desc.loader, &sent->batch, part);
        struct grt_graph *graph = feed_batch_graph(f, place, rows, part);
        if (!graph || (part > 0 && !feed_send_part(f, sent, part, done)) ||
            !grt_dev_after(dev, GRT_LANE_MAIN, sent->mark) || !grt_graph_run(graph)) {
            return false;
        }
        f->newest = f->read[place] = grt_dev_mark(dev, GRT_LANE_MAIN);
        f->newest_place = place;
        f->newest_rows = rows - part * micro < micro ? rows - part * micro : micro;
    }
    return true;
}

void feed_release(struct grt_feed *f) {
    uint32_t used = f->held_count - (f->ahead ? 1 : 0);
    for (uint32_t i = 0; i < used; i++) {
        grt_loader_release(f->desc.loader, &f->held[i].batch);
    }
    f->held[0] = f->held[used < GRT_FEED_HELD ? used : 0];
    f->held_count = f->ahead ? 1 : 0;
}

bool feed_run_batches(struct grt_feed *f, uint32_t most, bool more, struct grt_feed_done *done) {
    bool good = true;
    for (uint32_t i = 0; good && i < most && !done->epoch_ended; i++) {
        good = f->ahead || feed_send_next(f, done);
        f->ahead = false;
        struct feed_sent *sent = good ? &f->held[f->held_count - 1] : NULL;
        good = sent && run_batch(f, sent, done);
        if (good) {
            done->samples += sent->batch.rows;
            done->last_rows = sent->batch.rows;
            feed_advance(f, 1, done);
        }
    }
    // A batch that cannot be had is reported by the call that needs it. Behind the end of an epoch
    // it is fetched but not sent: a validation may use the learner's input before.
    more = more && !(f->desc.evaluate && done->epoch_ended);
    if (good && more && grt_loader_peek(f->desc.loader) && !done->epoch_ended) {
        good = f->ahead = feed_send_next(f, done);
    }
    good = grt_dev_wait(f->desc.dev) && good;
    feed_release(f);
    return good;
}
