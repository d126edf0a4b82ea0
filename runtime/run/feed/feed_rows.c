// SPDX-License-Identifier: Apache-2.0
// Rows that lie on the device: many steps to a graph, which draws the order of an epoch itself.
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "feed_parts.h"

// Steps of the largest graph over rows on the device: submits are few then. A CPU is slow enough to
// be kept busy by small ones, and lavapipe takes a while over each graph.
#define MOST_STEPS 128u
#define MOST_STEPS_SOFTWARE 8u
#define STAGE_BYTES (32u << 20)  // gathered at once, at most
#define TABLE_BYTES (64u << 10)  // of records of orders, or one record

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
bool feed_place(struct grt_feed *f) {
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

// Full batches among so many rows of an epoch; where its last step comes apart, without that.
static uint64_t joined(const struct grt_feed *f, uint64_t rows) {
    return (f->desc.apart ? rows - 1 : rows) / f->desc.batch;
}

// Those of an epoch behind its graphs of most steps: all in one graph, so that nothing is between
// them.
static uint32_t rest_of_epoch(const struct grt_feed *f) {
    return (uint32_t)(joined(f, f->info.rows) % most_steps(f->desc.dev));
}

// What the next graph has: full batches, a power of two of them or the rest of an epoch with its
// last batch, or that one.
static struct grt_step_desc next_rows(const struct grt_feed *f, uint64_t most) {
    uint64_t left = f->info.rows - f->next.batch * f->desc.batch;
    uint64_t full = left / f->desc.batch, together = joined(f, left);
    struct grt_step_desc desc = {.rows = f->desc.batch, .steps = 1, .data = &f->rows};
    if (full == 0) {
        desc.rows = (uint32_t)left;
    }
    if (together > 0 && together == rest_of_epoch(f) && together <= most) {
        desc.steps = (uint32_t)together;
        desc.rest = together < most && !f->desc.apart ? (uint32_t)(left % f->desc.batch) : 0;
        return desc;
    }
    while (2 * desc.steps <= most_steps(f->desc.dev) && 2 * desc.steps <= full &&
           2 * desc.steps <= most) {
        desc.steps *= 2;
    }
    return desc;
}

// Whether a graph is all of an evaluation, whose numbers all have room.
static bool is_whole(const struct grt_feed *f, const struct grt_step_desc *desc) {
    uint64_t all = f->info.batches_per_epoch;
    return f->desc.evaluate && f->rows.drawn.buf && all <= f->rows.staged &&
           desc->steps + (desc->rest > 0) == all;
}

// The graph of the next steps: that which takes the numbers that are there where it can.
static struct grt_graph *next_graph(struct grt_feed *f, struct grt_step_desc *desc) {
    bool whole = is_whole(f, desc), takes = whole && f->knows;
    if (takes) {
        desc->data = &f->known;
    }
    f->knows = whole;
    return feed_graph(f, desc, takes);
}

bool feed_run_rows(struct grt_feed *f, uint32_t most, struct grt_feed_done *done) {
    // What is queued before the table is written anew is waited for, and keeps the device busy.
    if (!knows_place(f) && !grt_dev_wait(f->desc.dev)) {
        return false;
    }
    double start = grt_seconds();
    if (!feed_place(f)) {
        return false;
    }
    done->waited = done->stalled = grt_seconds() - start;
    for (uint32_t left = most; left > 0 && !done->epoch_ended;) {
        struct grt_step_desc desc = next_rows(f, left);
        struct grt_graph *graph = next_graph(f, &desc);
        if (!graph || !grt_graph_run(graph)) {
            f->knows = false;
            return false;
        }
        uint32_t steps = desc.steps + (desc.rest > 0);
        left -= steps;
        done->last_rows = f->newest_rows = desc.rest > 0 ? desc.rest : desc.rows;
        f->newest_staged = f->rows.staged > 0 ? (steps - 1) % f->rows.staged : 0;
        done->samples += (uint64_t)desc.rows * desc.steps + desc.rest;
        feed_advance(f, steps, done);
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

bool feed_prepare_rows(struct grt_feed *f) {
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
    if (!prepare_dropped(f) || !prepare_stage(f)) {
        return false;
    }
    f->known = f->rows;
    f->known.known = true;
    return true;
}

// Drivers load kernels when they first run them, 0.13 s of a ResNet-18 by OpenCL (H200, 2026-11),
// and how many steps go together follows from what one takes. A CPU takes long over a step.
static bool try_step(struct grt_feed *f) {
    struct grt_loader_position first = f->next;
    // The first batch both times: an epoch may have no other, or a shorter one.
    for (uint32_t i = 0; i < 2; i++) {
        struct grt_feed_done done = {0};
        double start = grt_seconds();
        if (!feed_run_rows(f, 1, &done) || !grt_dev_wait(f->desc.dev)) {
            return false;
        }
        f->step_seconds = grt_seconds() - start;
        if (!grt_feed_seek(f, first)) {
            return false;
        }
    }
    return true;
}

// A graph, and the same that takes the numbers that are there.
static bool bake_again(struct grt_feed *f, const struct grt_step_desc *desc) {
    struct grt_step_desc again = *desc;
    again.data = &f->known;
    return feed_graph(f, desc, 0) && (!is_whole(f, desc) || feed_graph(f, &again, 1));
}

// The graphs of an epoch's steps in runs as long as they come, and of its last batch; where nobody
// knows what a step takes, also those of an epoch whose first step is done alone. A run that is cut
// elsewhere makes what it lacks.
bool feed_bake_rows(struct grt_feed *f) {
    uint32_t batch = f->desc.batch, rest = (uint32_t)(f->info.rows % batch);
    uint64_t full = f->info.rows / batch, longest = most_steps(f->desc.dev), room = UINT64_MAX;
    // An epoch is graphs of most steps and one of the rest, but the first.
    uint64_t others = full > 0 ? (full - 1) % longest : 0;
    if (f->desc.room > 0 && full > 0 && !grt_dev_info(f->desc.dev)->caps.software) {
        if (!try_step(f)) {
            return false;
        }
        room = (uint64_t)(f->desc.room / f->step_seconds);
        while (room < full && longest > 1 && longest > room) {
            longest /= 2;
        }
        others = room < full ? full % longest : 0;
    }
    for (uint32_t steps = 1; steps <= longest && steps <= full; steps *= 2) {
        const struct grt_step_desc desc = {.rows = batch, .steps = steps, .data = &f->rows};
        bool comes = steps == 1 || (others & steps) != 0 ||
                     (steps == longest && joined(f, f->info.rows) >= longest);
        if (comes && !feed_graph(f, &desc, 0)) {
            return false;
        }
    }
    const struct grt_step_desc whole = {.rows = batch,
                                        .steps = rest_of_epoch(f),
                                        .rest = f->desc.apart ? 0 : rest,
                                        .data = &f->rows};
    if (whole.steps > 0 && whole.steps <= room && !bake_again(f, &whole)) {
        return false;
    }
    const struct grt_step_desc last = {.rows = rest, .steps = 1, .data = &f->rows};
    return rest == 0 || bake_again(f, &last);
}

bool feed_gather_one(struct grt_feed *f, struct grt_tensor *x, struct grt_tensor *y) {
    struct grt_feed_done done = {0};
    struct grt_step_rows rows = f->rows;
    struct grt_step_desc desc = next_rows(f, 1);
    rows.staged = 0;
    rows.drawn = (struct grt_range){0};
    desc.data = &rows;
    struct grt_graph *graph = feed_place(f) ? feed_record(f, &desc) : NULL;
    bool good = graph && grt_graph_run(graph) && grt_dev_wait(f->desc.dev);
    grt_graph_destroy(&graph);
    f->newest_rows = desc.rows;
    grt_feed_newest(f, x, y);
    feed_advance(f, 1, &done);
    return good;
}
