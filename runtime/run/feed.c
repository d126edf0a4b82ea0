// SPDX-License-Identifier: Apache-2.0
#include "gpurt/feed.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define PLACES GRT_LANE_COUNT  // that batches go to in turn

// Steps of the largest graph over rows on the device: submits are few then. A CPU is slow enough to
// be kept busy by small ones, and lavapipe takes a while over each graph.
#define MOST_STEPS 128u
#define MOST_STEPS_SOFTWARE 8u
#define STAGE_BYTES (32u << 20)  // gathered at once, at most
#define TABLE_BYTES (64u << 10)  // of records of orders, or one record

// Graphs that a feed needs: a full batch and the last one of an epoch for each place; or those of
// 1, 2, 4 ... steps, of what is left of an epoch behind the longest, and the last one.
#define MOST_RECORDED 12

struct recorded {
    uint32_t rows, steps, part, place;
    bool expected;  // the time that it takes is told
    struct grt_graph *graph;
};

// A batch that is there or on its way.
struct sent {
    struct grt_batch batch;
    uint64_t mark;  // of the upload queue: it has arrived
};

struct grt_feed {
    struct grt_feed_desc desc;
    struct grt_loader_info info;
    struct grt_loader_position next;
    struct recorded *recorded;
    uint32_t recorded_count, recorded_most;
    uint32_t place_count;
    uint32_t part_count;                       // micro-batches of a batch: each is sent by itself
    struct grt_plan *plans[PLACES];            // staging, a buffer of its own each
    struct grt_tensor *x[PLACES], *y[PLACES];  // of the plans; NULL: the learner's input
    uint64_t read[PLACES];                     // main lane: the newest step that used the place
    uint64_t newest;                           // main lane: the newest step
    uint32_t newest_place, newest_rows;
    struct sent held[GRT_FEED_HELD];
    uint32_t held_count;
    bool ahead;               // the last of `held` has not been used yet
    struct grt_graph *clear;  // the sums of an evaluation

    struct grt_step_rows rows;  // on the device
    struct grt_plan *stage;
    struct grt_tensor *stage_x, *stage_y, *drawn;
    uint32_t newest_staged;
    uint32_t *words;                    // the table of records
    uint64_t table_first, table_count;  // epochs in it
    double step_seconds;                // expected; 0: not known
    bool placed;                        // the state and the table know where `next` is
};

// ---- graphs ----

static struct grt_graph *record(struct grt_feed *f, const struct grt_step_desc *desc) {
    return f->desc.evaluate ? grt_learner_evaluate(f->desc.learner, desc)
                            : grt_learner_step(f->desc.learner, desc);
}

// Tells how long a graph takes, once that is known.
static bool expect(const struct grt_feed *f, struct recorded *r) {
    bool tells = !r->expected && f->step_seconds > 0;
    r->expected = r->expected || tells;
    return !tells || grt_graph_expect(r->graph, f->step_seconds * (r->steps > 0 ? r->steps : 1));
}

// The graph for a number of rows and steps, made when it is first asked for.
static struct grt_graph *graph_for(struct grt_feed *f, const struct grt_step_desc *desc,
                                   uint32_t place) {
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        struct recorded *r = &f->recorded[i];
        if (r->rows == desc->rows && r->steps == desc->steps && r->part == desc->part &&
            r->place == place) {
            return expect(f, r) ? r->graph : NULL;
        }
    }
    // Positions may be sought at will, but there are only so many different batches in a file.
    if (f->recorded_count == f->recorded_most) {
        grt_graph_destroy(&f->recorded[--f->recorded_count].graph);
    }
    struct grt_graph *graph = record(f, desc);
    if (!graph) {
        return NULL;
    }
    struct recorded *r = &f->recorded[f->recorded_count++];
    *r = (struct recorded){desc->rows, desc->steps, desc->part, place, false, graph};
    return expect(f, r) ? graph : NULL;
}

// ---- batches of the loader ----

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
static bool prepare_batches(struct grt_feed *f) {
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

static uint32_t micro_of(const struct grt_feed *f) {
    return (uint32_t)grt_learner_input(f->desc.learner)->shape[0];
}

// The graph of a part of a batch that has so many rows.
static struct grt_graph *batch_graph(struct grt_feed *f, uint32_t place, uint32_t rows,
                                     uint32_t part) {
    struct grt_step_desc desc = {.rows = rows, .steps = 1};
    desc.part = f->part_count > 1 ? part + 1 : 0;
    if (f->x[place]) {
        desc.x = f->x[place]->range;
        desc.y = f->y[place]->range;
    }
    return graph_for(f, &desc, place);
}

// Sends a part of a batch to its place. Without pinned memory it is only written when the device is
// idle.
static bool send_part(struct grt_feed *f, struct sent *sent, uint32_t part,
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

// Fetches the next batch and sends the first part of it. If the device is idle afterwards, the wait
// counts as stall.
static bool send_next(struct grt_feed *f, struct grt_feed_done *done) {
    struct sent *sent = &f->held[f->held_count];
    double start = grt_seconds();
    if (!grt_loader_next(f->desc.loader, &sent->batch)) {
        return false;
    }
    f->held_count++;
    double passed = grt_seconds() - start;
    done->stalled += grt_dev_passed(f->desc.dev, GRT_LANE_MAIN, f->newest) ? passed : 0;
    done->waited += passed;
    return send_part(f, sent, 0, done);
}

static bool run_batch(struct grt_feed *f, struct sent *sent, struct grt_feed_done *done) {
    struct grt_dev *dev = f->desc.dev;
    uint32_t rows = sent->batch.rows, micro = micro_of(f);
    for (uint32_t part = 0; part < f->part_count && part * micro < rows; part++) {
        uint32_t place = grt_loader_turn(f->desc.loader, &sent->batch, part);
        struct grt_graph *graph = batch_graph(f, place, rows, part);
        if (!graph || (part > 0 && !send_part(f, sent, part, done)) ||
            !grt_dev_after(dev, GRT_LANE_MAIN, sent->mark) || !grt_graph_run(graph)) {
            return false;
        }
        f->newest = f->read[place] = grt_dev_mark(dev, GRT_LANE_MAIN);
        f->newest_place = place;
        f->newest_rows = rows - part * micro < micro ? rows - part * micro : micro;
    }
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
        done->epoch_ended = true;
    }
}

static bool run_batches(struct grt_feed *f, uint32_t most, bool more, struct grt_feed_done *done) {
    bool good = true;
    for (uint32_t i = 0; good && i < most && !done->epoch_ended; i++) {
        good = f->ahead || send_next(f, done);
        f->ahead = false;
        struct sent *sent = good ? &f->held[f->held_count - 1] : NULL;
        good = sent && run_batch(f, sent, done);
        if (good) {
            done->samples += sent->batch.rows;
            done->last_rows = sent->batch.rows;
            advance(f, 1, done);
        }
    }
    // A batch that cannot be had is reported by the call that needs it. Behind the end of an epoch
    // it is fetched but not sent: a validation may use the learner's input before.
    more = more && !(f->desc.evaluate && done->epoch_ended);
    if (good && more && grt_loader_peek(f->desc.loader) && !done->epoch_ended) {
        good = f->ahead = send_next(f, done);
    }
    good = grt_dev_wait(f->desc.dev) && good;
    release_used(f);
    return good;
}

// ---- rows on the device ----

// Whether the table has the order of the epoch that is next.
static bool has_record(const struct grt_feed *f) {
    return f->table_count > 0 &&
           (f->desc.evaluate ||
            (f->next.epoch >= f->table_first && f->next.epoch - f->table_first < f->table_count));
}

static bool knows_place(const struct grt_feed *f) {
    return f->placed && has_record(f);
}

// Tells the device where the next step begins, which it keeps count of from there on. An evaluation
// is not shuffled: one record serves all of its epochs.
static bool place(struct grt_feed *f) {
    struct grt_learn_state state;
    bool evaluates = f->desc.evaluate;
    if (knows_place(f)) {
        return true;
    }
    if (!has_record(f)) {
        uint64_t most = grt_buf_size(f->rows.order.range.buf) / 4 / f->rows.record;
        f->table_first = f->next.epoch;
        f->table_count = most;
        for (uint64_t i = 0; i < most; i++) {
            grt_loader_words(f->desc.loader, f->table_first + i, f->words + i * f->rows.record);
        }
        if (!grt_buf_write(f->rows.order.range.buf, 0, f->words, 4 * most * f->rows.record)) {
            return false;
        }
    }
    if (!grt_learner_state(f->desc.learner, &state)) {
        return false;
    }
    uint32_t cursor = (uint32_t)(f->next.batch * f->desc.batch);
    if (evaluates) {
        state.eval_cursor = cursor;
    } else {
        state.cursor = cursor;
        state.epoch = (uint32_t)(f->next.epoch - f->table_first);
    }
    f->placed = grt_learner_set_state(f->desc.learner, &state);
    return f->placed;
}

static uint32_t most_steps(const struct grt_dev *dev) {
    return grt_dev_info(dev)->caps.software ? MOST_STEPS_SOFTWARE : MOST_STEPS;
}

// Samples of several steps are gathered at once where they are few bytes, and steps are not cut: so
// many, or 0.
static uint32_t staged_steps(const struct grt_dev *dev, uint64_t step_bytes, bool cut) {
    uint64_t steps = STAGE_BYTES / step_bytes;
    steps = steps < most_steps(dev) ? steps : most_steps(dev);
    return steps < 2 || cut ? 0 : (uint32_t)steps;
}

// Where kernels read rows by their numbers, these are few bytes.
static uint32_t drawn_steps(const struct grt_dev *dev, uint32_t batch) {
    uint64_t steps = STAGE_BYTES / (4ull * batch);
    steps = steps < most_steps(dev) ? steps : most_steps(dev);
    return steps > 0 ? (uint32_t)steps : 1;
}

// Full batches of an epoch behind those in graphs of most steps: all in one graph, so that nothing
// is between them.
static uint32_t rest_of_epoch(const struct grt_feed *f) {
    return (uint32_t)(f->info.rows / f->desc.batch % most_steps(f->desc.dev));
}

// What the next graph has: full batches, a power of two of them or the rest of an epoch, or the
// last one.
static struct grt_step_desc next_rows(const struct grt_feed *f, uint64_t most) {
    uint64_t left = f->info.rows - f->next.batch * f->desc.batch;
    uint64_t full = left / f->desc.batch;
    struct grt_step_desc desc = {.rows = f->desc.batch, .steps = 1, .data = &f->rows};
    if (full == 0) {
        desc.rows = (uint32_t)left;
    }
    if (full > 0 && full == rest_of_epoch(f) && full <= most) {
        desc.steps = (uint32_t)full;
        return desc;
    }
    while (2 * desc.steps <= most_steps(f->desc.dev) && 2 * desc.steps <= full &&
           2 * desc.steps <= most) {
        desc.steps *= 2;
    }
    return desc;
}

static bool run_rows(struct grt_feed *f, uint32_t most, struct grt_feed_done *done) {
    // What is queued before the table is written anew is waited for, and keeps the device busy.
    if (!knows_place(f) && !grt_dev_wait(f->desc.dev)) {
        return false;
    }
    double start = grt_seconds();
    if (!place(f)) {
        return false;
    }
    done->waited = done->stalled = grt_seconds() - start;
    for (uint32_t left = most; left > 0 && !done->epoch_ended;) {
        struct grt_step_desc desc = next_rows(f, left);
        struct grt_graph *graph = graph_for(f, &desc, 0);
        if (!graph || !grt_graph_run(graph)) {
            return false;
        }
        left -= desc.steps;
        f->newest_rows = desc.rows;
        f->newest_staged = f->rows.staged > 0 ? (desc.steps - 1) % f->rows.staged : 0;
        done->samples += (uint64_t)desc.rows * desc.steps;
        done->last_rows = desc.rows;
        advance(f, desc.steps, done);
    }
    return true;
}

// Of either kind, whichever the learner will take.
uint64_t grt_feed_rows_bytes(const struct grt_dev *dev, uint64_t x_bytes, uint64_t y_bytes,
                             uint32_t batch, bool cut) {
    uint64_t step = grt_dev_align_up(dev, x_bytes) + grt_dev_align_up(dev, y_bytes);
    uint64_t samples = staged_steps(dev, step, cut) * step;
    uint64_t numbers = cut ? 0 : drawn_steps(dev, batch) * 4ull * batch;
    return (samples > numbers ? samples : numbers) + grt_dev_align(dev);
}

static bool prepare_drawn(struct grt_feed *f) {
    uint64_t epoch = f->info.batches_per_epoch;
    uint32_t steps = drawn_steps(f->desc.dev, f->desc.batch);
    steps = steps < epoch ? steps : (uint32_t)epoch;
    const struct grt_tensor_desc desc = {.label = "numbers of rows",
                                         .group = "batches",
                                         .dtype = GRT_U32,
                                         .shape = {(uint64_t)steps * f->desc.batch}};
    f->stage = grt_plan_create(f->desc.dev);
    f->drawn = f->stage ? grt_plan_tensor(f->stage, &desc) : NULL;
    if (!f->drawn || !grt_plan_alloc(f->stage)) {
        return false;
    }
    f->rows.staged = steps;
    f->rows.drawn = f->drawn->range;
    return true;
}

static bool prepare_stage(struct grt_feed *f) {
    const struct grt_learner *learner = f->desc.learner;
    bool cut = grt_learner_input(learner)->shape[0] < f->desc.batch;
    if (grt_learner_draws(learner, &f->rows, f->desc.evaluate)) {
        return prepare_drawn(f);
    }
    uint32_t steps = staged_steps(
        f->desc.dev, grt_learner_stage(learner, false, 1) + grt_learner_stage(learner, true, 1),
        cut);
    if (steps == 0) {
        return true;
    }
    f->stage = grt_plan_create(f->desc.dev);
    for (int y = 0; f->stage && y < 2; y++) {
        struct grt_tensor_desc desc = {.label = y ? "staged y" : "staged x",
                                       .group = "batches",
                                       .dtype = GRT_U32,
                                       .shape = {grt_learner_stage(learner, y, steps) / 4}};
        *(y ? &f->stage_y : &f->stage_x) = grt_plan_tensor(f->stage, &desc);
    }
    if (!f->stage || !f->stage_x || !f->stage_y || !grt_plan_alloc(f->stage)) {
        return false;
    }
    f->rows.staged = steps;
    f->rows.stage_x = f->stage_x->range;
    f->rows.stage_y = f->stage_y->range;
    return true;
}

static struct grt_tensor make_words(struct grt_feed *f, const char *label, uint64_t count) {
    struct grt_buf *buf =
        grt_buf_create(f->desc.dev, grt_buf_desc(.size = 4 * count, .label = label));
    struct grt_tensor words = {
        .range = {buf, 0, 4 * count}, .dtype = GRT_U32, .rank = 1, .shape = {count}};
    snprintf(words.label, sizeof words.label, "%s", label);
    return words;
}

static bool prepare_dropped(struct grt_feed *f) {
    uint64_t count = grt_loader_dropped(f->desc.loader, NULL);
    uint32_t *rows = count > 0 ? malloc(4 * count) : NULL;
    if (count == 0) {
        return true;
    }
    bool good = rows || grt_fail(GRT_NO_MEMORY, "no host memory for the rows left out");
    if (good) {
        grt_loader_dropped(f->desc.loader, rows);
        f->rows.dropped = make_words(f, "rows left out", count);
        struct grt_buf *buf = f->rows.dropped.range.buf;
        good = buf && grt_buf_write(buf, 0, rows, 4 * count);
    }
    free(rows);
    return good;
}

static bool prepare_rows(struct grt_feed *f) {
    uint64_t record = grt_loader_record(f->desc.loader);
    uint64_t room = TABLE_BYTES / (4 * record);
    uint64_t epochs = f->desc.evaluate                              ? 1
                      : f->desc.epochs > 0 && f->desc.epochs < room ? f->desc.epochs
                                                                    : room;
    epochs = epochs > 0 ? epochs : 1;
    if (!grt_loader_device(f->desc.loader, &f->rows.x, &f->rows.y, &f->rows.norm)) {
        return false;
    }
    f->rows.record = (uint32_t)record;
    f->rows.epoch = (uint32_t)f->info.rows;
    f->rows.order = make_words(f, "order of samples", epochs * record);
    f->words = f->rows.order.range.buf ? malloc(4 * epochs * record) : NULL;
    if (!f->words) {
        return f->rows.order.range.buf && grt_fail(GRT_NO_MEMORY, "no host memory for an order");
    }
    return prepare_dropped(f) && prepare_stage(f);
}

uint32_t grt_feed_graphs(const struct grt_feed *f) {
    return f->recorded_count;
}

// The graphs of an epoch's steps in runs as long as they come, and of its last batch; and of an
// epoch whose first step is done alone, as that of a run is. A run that is cut elsewhere makes what
// it lacks.
static bool bake_rows(struct grt_feed *f) {
    uint32_t batch = f->desc.batch, rest = (uint32_t)(f->info.rows % batch);
    uint64_t full = f->info.rows / batch;
    // An epoch is graphs of most steps and one of the rest, but the first.
    uint64_t most = most_steps(f->desc.dev), first = full > 0 ? (full - 1) % most : 0;
    for (uint32_t steps = 1; steps <= most && steps <= full; steps *= 2) {
        const struct grt_step_desc desc = {.rows = batch, .steps = steps, .data = &f->rows};
        bool comes = steps == 1 || steps == most || (first & steps) != 0;
        if (comes && !graph_for(f, &desc, 0)) {
            return false;
        }
    }
    const struct grt_step_desc whole = {.rows = batch, .steps = rest_of_epoch(f), .data = &f->rows};
    if (whole.steps > 0 && !graph_for(f, &whole, 0)) {
        return false;
    }
    const struct grt_step_desc last = {.rows = rest, .steps = 1, .data = &f->rows};
    return rest == 0 || graph_for(f, &last, 0) != NULL;
}

// ---- the feed ----

static bool prepare_clear(struct grt_feed *f) {
    if (!f->desc.evaluate) {
        return true;
    }
    const struct grt_tensor *state = grt_learner_tensor(f->desc.learner, GRT_TENSOR_STATE, 0, NULL);
    struct grt_range sums = state->range;
    sums.offset += offsetof(struct grt_learn_state, eval_loss);
    sums.size = 3 * sizeof(float);
    f->clear = grt_graph_create(f->desc.dev, "evaluation begins");
    if (f->clear) {
        grt_graph_fill(f->clear, sums, 0);
    }
    return f->clear && grt_graph_bake(f->clear);
}

struct grt_feed *grt_feed_create(const struct grt_feed_desc *desc) {
    struct grt_feed *f = calloc(1, sizeof *f);
    if (!f) {
        grt_fail(GRT_NO_MEMORY, "no host memory for batches");
        return NULL;
    }
    f->desc = *desc;
    f->info = grt_loader_info(desc->loader);
    f->next = f->info.next;
    f->part_count = desc->on_device ? 1 : (desc->batch + micro_of(f) - 1) / micro_of(f);
    f->recorded_most = MOST_RECORDED + 2 * f->part_count;
    f->recorded = calloc(f->recorded_most, sizeof *f->recorded);
    if (!f->recorded) {
        free(f);
        grt_fail(GRT_NO_MEMORY, "no host memory for batches");
        return NULL;
    }
    bool good = (desc->on_device ? prepare_rows(f) : prepare_batches(f)) && prepare_clear(f);
    // Graphs of full batches are baked, and kernels compiled, before anybody looks at the clock.
    uint32_t rows = (uint32_t)(f->info.rows < desc->batch ? f->info.rows : desc->batch);
    uint32_t graphs = f->place_count == 0 ? 0 : f->part_count > 1 ? f->part_count : f->place_count;
    good = good && (!desc->on_device || bake_rows(f));
    for (uint32_t i = 0; good && i < graphs; i++) {
        bool there = f->part_count == 1 || i * micro_of(f) < rows;
        good = !there || batch_graph(f, i % f->place_count, rows, i) != NULL;
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
    grt_graph_destroy(&f->clear);
    grt_plan_destroy(&f->stage);
    grt_buf_destroy(&f->rows.order.range.buf);
    grt_buf_destroy(&f->rows.dropped.range.buf);
    free(f->words);
    free(f->recorded);
    free(f);
    *feed = NULL;
}

struct grt_loader_position grt_feed_position(const struct grt_feed *feed) {
    return feed->next;
}

void grt_feed_expect(struct grt_feed *f, double step_seconds) {
    f->step_seconds = step_seconds;
}

void grt_feed_newest(const struct grt_feed *f, struct grt_tensor *x, struct grt_tensor *y) {
    uint32_t i = f->newest_place;
    if (f->rows.stage_x.buf) {
        *x = *grt_learner_input(f->desc.learner);
        *y = *grt_learner_target(f->desc.learner);
        x->range = f->rows.stage_x;
        y->range = f->rows.stage_y;
        x->range.offset += grt_learner_stage(f->desc.learner, false, f->newest_staged);
        y->range.offset += grt_learner_stage(f->desc.learner, true, f->newest_staged);
        x->shape[0] = y->shape[0] = f->newest_rows;
        x->range.size = grt_tensor_bytes(x);
        y->range.size = grt_tensor_bytes(y);
        return;
    }
    *x = f->x[i] ? *f->x[i] : *grt_learner_input(f->desc.learner);
    *y = f->y[i] ? *f->y[i] : *grt_learner_target(f->desc.learner);
    if (f->newest_rows > 0 && f->newest_rows < x->shape[0]) {
        x->shape[0] = y->shape[0] = f->newest_rows;
    }
}

bool grt_feed_seek(struct grt_feed *f, struct grt_loader_position position) {
    f->placed = false;
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

// A step whose samples are brought to where they can be looked at.
static bool gather_one(struct grt_feed *f, struct grt_tensor *x, struct grt_tensor *y) {
    struct grt_feed_done done = {0};
    struct grt_step_rows rows = f->rows;
    struct grt_step_desc desc = next_rows(f, 1);
    rows.staged = 0;
    rows.drawn = (struct grt_range){0};
    desc.data = &rows;
    struct grt_graph *graph = place(f) ? record(f, &desc) : NULL;
    bool good = graph && grt_graph_run(graph) && grt_dev_wait(f->desc.dev);
    grt_graph_destroy(&graph);
    f->newest_rows = desc.rows;
    grt_feed_newest(f, x, y);
    advance(f, 1, &done);
    return good;
}

bool grt_feed_part(struct grt_feed *f, struct grt_loader_position position, uint32_t part,
                   struct grt_tensor *x, struct grt_tensor *y) {
    struct grt_feed_done done = {0};
    if (part >= f->part_count || !grt_feed_seek(f, position)) {
        return false;
    }
    if (f->rows.drawn.buf) {
        return gather_one(f, x, y);
    }
    if (f->part_count == 1) {
        bool good = grt_feed_run(f, 1, false, &done) && grt_dev_wait(f->desc.dev);
        grt_feed_newest(f, x, y);
        return good;
    }
    if (!send_next(f, &done)) {
        return false;
    }
    struct sent *sent = &f->held[f->held_count - 1];
    uint32_t first = part * micro_of(f);
    bool good = first < sent->batch.rows && (part == 0 || send_part(f, sent, part, &done)) &&
                grt_dev_wait(f->desc.dev);
    f->newest_place = grt_loader_turn(f->desc.loader, &sent->batch, part);
    f->newest_rows = good ? sent->batch.rows - first : 0;
    grt_feed_newest(f, x, y);
    release_used(f);
    advance(f, 1, &done);
    return good;
}

bool grt_feed_run(struct grt_feed *f, uint32_t most, bool more, struct grt_feed_done *done) {
    *done = (struct grt_feed_done){0};
    if (f->clear && f->next.batch == 0 && !grt_graph_run(f->clear)) {
        return false;
    }
    most = f->desc.on_device || most < GRT_FEED_WINDOW ? most : GRT_FEED_WINDOW;
    return f->desc.on_device ? run_rows(f, most, done) : run_batches(f, most, more, done);
}
