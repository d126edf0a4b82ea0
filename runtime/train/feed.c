// SPDX-License-Identifier: Apache-2.0
#include "feed.h"

#include <stdlib.h>
#include <string.h>

#include "../clock.h"
#include "../report.h"

#define PLACES GRT_LANE_COUNT  // that batches go to in turn

// Graphs that a feed needs: a full batch and the last one of an epoch for each place, or a window of
// steps, a single one, and the last.
#define MOST_RECORDED 6

struct recorded {
    uint32_t rows, steps, place;
    struct grt_graph *graph;
};

// A batch that is there or on its way.
struct sent {
    struct grt_batch batch;
    uint64_t mark;  // of the lane aside: it has arrived
};

struct grt_feed {
    struct grt_feed_desc desc;
    struct grt_loader_info info;
    struct grt_loader_position next;
    struct recorded recorded[MOST_RECORDED];
    uint32_t recorded_count;
    uint32_t place_count;
    struct grt_plan *plans[PLACES];            // staging, a buffer of its own each
    struct grt_tensor *x[PLACES], *y[PLACES];  // of the plans; NULL: the learner's input
    uint64_t read[PLACES];                     // main lane: the newest step that used the place
    uint64_t newest;                           // main lane: the newest step
    uint32_t newest_place, newest_rows;
    struct sent held[GRT_FEED_HELD];
    uint32_t held_count;
    bool ahead;                               // the last of `held` has not been used yet
    struct grt_tensor data_x, data_y, order;  // rows on the device
    uint32_t *order_rows;
    bool order_set;  // for the epoch of `next`
};

// ---- graphs ----

static struct grt_graph *record(struct grt_feed *f, const struct grt_step_desc *desc) {
    return f->desc.evaluate ? grt_learner_evaluate(f->desc.learner, desc)
                            : grt_learner_step(f->desc.learner, desc);
}

// The graph for a number of rows and steps, made when it is first asked for.
static struct grt_graph *graph_for(struct grt_feed *f, const struct grt_step_desc *desc,
                                   uint32_t place) {
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        const struct recorded *r = &f->recorded[i];
        if (r->rows == desc->rows && r->steps == desc->steps && r->place == place) {
            return r->graph;
        }
    }
    // Positions may be sought at will, but there are only so many different batches in a file.
    if (f->recorded_count == MOST_RECORDED) {
        grt_graph_destroy(&f->recorded[--f->recorded_count].graph);
    }
    struct grt_graph *graph = record(f, desc);
    if (graph) {
        f->recorded[f->recorded_count++] = (struct recorded){desc->rows, desc->steps, place, graph};
    }
    return graph;
}

// ---- batches of the loader ----

static struct grt_tensor *declare(struct grt_feed *f, struct grt_plan *plan,
                                  const struct grt_tensor *like, const char *label) {
    struct grt_tensor_desc desc = {.label = label, .group = "batches", .dtype = like->dtype};
    memcpy(desc.shape, like->shape, sizeof desc.shape);
    desc.shape[0] = f->desc.batch;
    return grt_plan_tensor(plan, &desc);
}

// Places that batches go to: the learner's own input where there is one lane and one micro-batch. What is
// written beside a step is never part of a buffer that the step has, which OpenCL would not allow, and
// PoCL would wait for.
static bool prepare_batches(struct grt_feed *f) {
    const struct grt_tensor *x = grt_learner_input(f->desc.learner);
    const struct grt_tensor *y = grt_learner_target(f->desc.learner);
    f->place_count = grt_dev_lanes(f->desc.dev);
    bool own = f->place_count == 1 && x->shape[0] >= f->desc.batch;
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
    uint64_t align = grt_dev_info(dev)->caps.align;
    return grt_dev_lanes(dev) * 2 * (align > 16 ? align : 16);  // x and y
}

static struct grt_graph *batch_graph(struct grt_feed *f, uint32_t place, uint32_t rows) {
    struct grt_step_desc desc = {.rows = rows, .steps = 1};
    if (f->x[place]) {
        desc.x = f->x[place]->range;
        desc.y = f->y[place]->range;
    }
    return graph_for(f, &desc, place);
}

// Fetches the next batch and sends it to its place. The device was idle for as long as this took when it
// is so at the end; without pinned memory a batch is only written when it is.
static bool send_next(struct grt_feed *f, struct grt_feed_done *done) {
    struct grt_dev *dev = f->desc.dev;
    struct sent *sent = &f->held[f->held_count];
    double start = grt_seconds();
    if (!grt_loader_next(f->desc.loader, &sent->batch)) {
        return false;
    }
    f->held_count++;
    bool pinned = sent->batch.x_range.buf != NULL;
    double fetched = grt_seconds();
    done->stalled += grt_dev_passed(dev, GRT_LANE_MAIN, f->newest) ? fetched - start : 0;
    if (!(pinned ? grt_dev_after(dev, GRT_LANE_ASIDE, f->read[sent->batch.turn])
                 : grt_dev_wait(dev))) {
        return false;
    }
    double begun = grt_seconds();
    if (!grt_loader_upload(f->desc.loader, &sent->batch)) {
        return false;
    }
    sent->mark = grt_dev_mark(dev, GRT_LANE_ASIDE);
    double queued = grt_seconds();
    done->stalled += grt_dev_passed(dev, GRT_LANE_MAIN, f->newest) ? queued - begun : 0;
    done->waited += fetched - start + queued - begun;
    return true;
}

static bool run_batch(struct grt_feed *f, const struct sent *sent) {
    struct grt_dev *dev = f->desc.dev;
    uint32_t turn = sent->batch.turn;
    struct grt_graph *graph = batch_graph(f, turn, sent->batch.rows);
    if (!graph || !grt_dev_after(dev, GRT_LANE_MAIN, sent->mark) || !grt_graph_run(graph)) {
        return false;
    }
    f->newest = f->read[turn] = grt_dev_mark(dev, GRT_LANE_MAIN);
    f->newest_place = turn;
    f->newest_rows = sent->batch.rows;
    return true;
}

// Gives back all but the batch that is ahead.
static void release_used(struct grt_feed *f) {
    uint32_t used = f->held_count - (f->ahead ? 1 : 0);
    for (uint32_t i = 0; i < used; i++) {
        grt_loader_release(f->desc.loader, &f->held[i].batch);
    }
    f->held[0] = f->held[used < GRT_FEED_HELD ? used : 0];
    f->held_count = f->ahead ? 1 : 0;
}

static void advance(struct grt_feed *f, uint32_t steps, struct grt_feed_done *done) {
    f->next.batch += steps;
    done->steps += steps;
    if (f->next.batch == f->info.batches_per_epoch) {
        f->next = (struct grt_loader_position){.epoch = f->next.epoch + 1};
        f->order_set = false;
        done->epoch_ended = true;
    }
}

static bool run_batches(struct grt_feed *f, uint32_t most, bool more, struct grt_feed_done *done) {
    bool good = true;
    for (uint32_t i = 0; good && i < most && !done->epoch_ended; i++) {
        good = f->ahead || send_next(f, done);
        f->ahead = false;
        const struct sent *sent = good ? &f->held[f->held_count - 1] : NULL;
        good = sent && run_batch(f, sent);
        if (good) {
            done->samples += sent->batch.rows;
            done->last_rows = sent->batch.rows;
            advance(f, 1, done);
        }
    }
    // A batch that cannot be had is reported by the call that needs it. Behind the end of an epoch it is
    // fetched but not sent: a validation may use the learner's input before.
    more = more && !(f->desc.evaluate && done->epoch_ended);
    if (good && more && grt_loader_peek(f->desc.loader) && !done->epoch_ended) {
        good = f->ahead = send_next(f, done);
    }
    good = grt_dev_wait(f->desc.dev) && good;
    release_used(f);
    return good;
}

// ---- rows on the device ----

// The order of the epoch, and where in it the next step begins.
static bool set_order(struct grt_feed *f) {
    struct grt_learn_state state;
    if (!grt_loader_order(f->desc.loader, f->next.epoch, 0, f->info.rows, f->order_rows) ||
        !grt_buf_write(f->order.range.buf, 0, f->order_rows, 4 * f->info.rows) ||
        !grt_learner_state(f->desc.learner, &state)) {
        return false;
    }
    state.cursor = (uint32_t)(f->next.batch * f->desc.batch);
    f->order_set = grt_learner_set_state(f->desc.learner, &state);
    return f->order_set;
}

static bool run_rows(struct grt_feed *f, uint32_t most, struct grt_feed_done *done) {
    double start = grt_seconds();
    if (!f->order_set && !set_order(f)) {
        return false;
    }
    done->waited = done->stalled = grt_seconds() - start;
    bool good = true;
    for (uint32_t left = most; good && left > 0 && !done->epoch_ended;) {
        uint64_t first = f->next.batch * f->desc.batch;
        uint64_t rows = f->info.rows - first < f->desc.batch ? f->info.rows - first : f->desc.batch;
        // A whole window in one graph where it fits, else single steps.
        bool window = left == GRT_FEED_WINDOW &&
                      first + (uint64_t)GRT_FEED_WINDOW * f->desc.batch <= f->info.rows;
        struct grt_step_desc desc = {.rows = (uint32_t)rows,
                                     .steps = window ? GRT_FEED_WINDOW : 1,
                                     .data_x = &f->data_x,
                                     .data_y = &f->data_y,
                                     .order = &f->order};
        struct grt_graph *graph = graph_for(f, &desc, 0);
        good = graph && grt_graph_run(graph);
        if (good) {
            left -= desc.steps;
            done->samples += rows * desc.steps;
            done->last_rows = desc.rows;
            advance(f, desc.steps, done);
        }
    }
    return grt_dev_wait(f->desc.dev) && good;
}

static bool prepare_rows(struct grt_feed *f) {
    if (!grt_loader_device(f->desc.loader, &f->data_x, &f->data_y)) {
        return false;
    }
    struct grt_buf *buf = grt_buf_create(
        f->desc.dev, grt_buf_desc(.size = 4 * f->info.rows, .label = "order of samples"));
    f->order = (struct grt_tensor){.range = {buf, 0, 4 * f->info.rows},
                                   .dtype = GRT_U32,
                                   .rank = 1,
                                   .shape = {f->info.rows},
                                   .label = "order"};
    f->order_rows = buf ? malloc(4 * f->info.rows) : NULL;
    return f->order_rows || (buf && grt_fail(GRT_NO_MEMORY, "no host memory for an order"));
}

// ---- the feed ----

struct grt_feed *grt_feed_create(const struct grt_feed_desc *desc) {
    struct grt_feed *f = calloc(1, sizeof *f);
    if (!f) {
        grt_fail(GRT_NO_MEMORY, "no host memory for batches");
        return NULL;
    }
    f->desc = *desc;
    f->info = grt_loader_info(desc->loader);
    f->next = f->info.next;
    bool good = desc->on_device ? prepare_rows(f) : prepare_batches(f);
    // Graphs of full batches are baked, and kernels compiled, before anybody looks at the clock.
    uint32_t rows = (uint32_t)(f->info.rows < desc->batch ? f->info.rows : desc->batch);
    for (uint32_t i = 0; good && i < f->place_count; i++) {
        good = batch_graph(f, i, rows) != NULL;
    }
    if (!good) {
        grt_feed_destroy(&f);
    }
    return f;
}

void grt_feed_destroy(struct grt_feed **feed) {
    if (!feed || !*feed) {
        return;
    }
    struct grt_feed *f = *feed;
    if (f->held_count > 0) {
        grt_dev_wait(f->desc.dev);
        f->ahead = false;
        release_used(f);
    }
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        grt_graph_destroy(&f->recorded[i].graph);
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        grt_plan_destroy(&f->plans[i]);
    }
    grt_buf_destroy(&f->order.range.buf);
    free(f->order_rows);
    free(f);
    *feed = NULL;
}

struct grt_loader_position grt_feed_position(const struct grt_feed *feed) {
    return feed->next;
}

void grt_feed_newest(const struct grt_feed *f, struct grt_tensor *x, struct grt_tensor *y) {
    uint32_t i = f->newest_place;
    *x = f->x[i] ? *f->x[i] : *grt_learner_input(f->desc.learner);
    *y = f->y[i] ? *f->y[i] : *grt_learner_target(f->desc.learner);
    if (f->newest_rows > 0) {
        x->shape[0] = y->shape[0] = f->newest_rows;
    }
}

bool grt_feed_seek(struct grt_feed *f, struct grt_loader_position position) {
    f->order_set = false;
    if (!f->desc.on_device &&
        (position.epoch != f->next.epoch || position.batch != f->next.batch)) {
        bool good = grt_dev_wait(f->desc.dev);
        f->ahead = false;
        release_used(f);
        if (!good || !grt_loader_seek(f->desc.loader, position)) {
            return false;
        }
    }
    f->next = position;
    return true;
}

bool grt_feed_run(struct grt_feed *f, uint32_t most, bool more, struct grt_feed_done *done) {
    *done = (struct grt_feed_done){0};
    most = most < GRT_FEED_WINDOW ? most : GRT_FEED_WINDOW;
    return f->desc.on_device ? run_rows(f, most, done) : run_batches(f, most, more, done);
}
