// SPDX-License-Identifier: Apache-2.0
#include "gpurt/feed.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/log.h"
#include "feed_parts.h"

// Graphs that a feed needs: a full batch and the last one of an epoch for each place; or those of
// 1, 2, 4 ... steps, of what is left of an epoch behind the longest, and the last one.
#define MOST_RECORDED 12

// ---- graphs ----

struct grt_graph *feed_record(struct grt_feed *f, const struct grt_step_desc *desc) {
    return f->desc.evaluate ? grt_learner_evaluate(f->desc.learner, desc)
                            : grt_learner_step(f->desc.learner, desc);
}

// Tells how long a graph takes, once that is known.
static bool expect(const struct grt_feed *f, struct feed_recorded *r) {
    bool tells = !r->expected && f->step_seconds > 0;
    r->expected = r->expected || tells;
    return !tells || grt_graph_expect(r->graph, f->step_seconds * ((r->steps > 0 ? r->steps : 1) +
                                                                   (r->rest > 0)));
}

struct grt_graph *feed_graph(struct grt_feed *f, const struct grt_step_desc *desc, uint32_t place) {
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        struct feed_recorded *r = &f->recorded[i];
        if (r->rows == desc->rows && r->steps == desc->steps && r->rest == desc->rest &&
            r->part == desc->part && r->place == place) {
            return expect(f, r) ? r->graph : NULL;
        }
    }
    // Positions may be sought at will, but there are only so many different batches in a file.
    if (f->recorded_count == f->recorded_most) {
        grt_graph_destroy(&f->recorded[--f->recorded_count].graph);
    }
    struct grt_graph *graph = feed_record(f, desc);
    if (!graph) {
        return NULL;
    }
    struct feed_recorded *r = &f->recorded[f->recorded_count++];
    *r = (struct feed_recorded){desc->rows, desc->steps, desc->rest, desc->part,
                                place,      false,       graph};
    return expect(f, r) ? graph : NULL;
}

void feed_advance(struct grt_feed *f, uint32_t steps, struct grt_feed_done *done) {
    f->next.batch += steps;
    done->steps += steps;
    if (f->next.batch == f->info.batches_per_epoch) {
        f->next = (struct grt_loader_position){.epoch = f->next.epoch + 1};
        done->epoch_ended = true;
    }
}

// ---- the feed ----

uint32_t grt_feed_graphs(const struct grt_feed *f) {
    return f->recorded_count;
}

// Rows on the device begin the sums themselves (shaders/loss/tally.k).
static bool prepare_clear(struct grt_feed *f) {
    if (!f->desc.evaluate || f->desc.on_device) {
        return true;
    }
    const struct grt_tensor *state = grt_learner_tensor(f->desc.learner, GRT_TENSOR_STATE, 0, NULL);
    struct grt_range sums = state->range, near = state->range;
    sums.offset += offsetof(struct grt_learn_state, eval_loss);
    sums.size = 3 * sizeof(float);
    near.offset += offsetof(struct grt_learn_state, eval_near);
    near.size = sizeof(float);
    struct grt_range each = state->range;
    each.offset += offsetof(struct grt_learn_state, eval_parts);
    each.size = sizeof((struct grt_learn_state *)NULL)->eval_parts;
    f->clear = grt_graph_create(f->desc.dev, "evaluation begins");
    if (f->clear) {
        grt_graph_fill(f->clear, sums, 0);
        grt_graph_fill(f->clear, near, 0);
        grt_graph_fill(f->clear, each, 0);
    }
    return f->clear && grt_graph_bake(f->clear);
}

struct grt_feed *grt_feed_create(const struct grt_feed_desc *desc) {
    if (!desc || !desc->loader || !desc->learner) {
        grt_fail(GRT_INVALID, "grt_feed_create: no desc, loader or learner");
        return NULL;
    }
    struct grt_feed *f = calloc(1, sizeof *f);
    if (!f) {
        grt_fail(GRT_NO_MEMORY, "no host memory for batches");
        return NULL;
    }
    f->desc = *desc;
    f->info = grt_loader_info(desc->loader);
    f->next = f->info.next;
    f->part_count = desc->on_device ? 1 : (desc->batch + feed_micro(f) - 1) / feed_micro(f);
    f->recorded_most = MOST_RECORDED + 2 * f->part_count;
    f->recorded = calloc(f->recorded_most, sizeof *f->recorded);
    if (!f->recorded) {
        free(f);
        grt_fail(GRT_NO_MEMORY, "no host memory for batches");
        return NULL;
    }
    bool good =
        (desc->on_device ? feed_prepare_rows(f) : feed_prepare_batches(f)) && prepare_clear(f);
    // Graphs of full batches are baked, and kernels compiled, before anybody looks at the clock.
    uint32_t rows = (uint32_t)(f->info.rows < desc->batch ? f->info.rows : desc->batch);
    uint32_t graphs = f->place_count == 0 ? 0 : f->part_count > 1 ? f->part_count : f->place_count;
    good = good && (!desc->on_device || feed_bake_rows(f));
    for (uint32_t i = 0; good && i < graphs; i++) {
        bool there = f->part_count == 1 || i * feed_micro(f) < rows;
        good = !there || feed_batch_graph(f, i % f->place_count, rows, i) != NULL;
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
        feed_release(f);
    }
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        grt_graph_destroy(&f->recorded[i].graph);
    }
    for (uint32_t i = 0; i < FEED_PLACES; i++) {
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

double grt_feed_seconds(const struct grt_feed *f) {
    return f->step_seconds;
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
        feed_release(f);
        if (!good || !grt_loader_seek(f->desc.loader, position)) {
            return false;
        }
    }
    f->next = position;
    return true;
}

bool grt_feed_place(struct grt_feed *f) {
    if (!f) {
        return grt_fail(GRT_INVALID, "grt_feed_place: no feed");
    }
    return !f->desc.on_device || feed_place(f);
}

bool grt_feed_part(struct grt_feed *f, struct grt_loader_position position, uint32_t part,
                   struct grt_tensor *x, struct grt_tensor *y) {
    struct grt_feed_done done = {0};
    if (part >= f->part_count || !grt_feed_seek(f, position)) {
        return false;
    }
    if (f->rows.drawn.buf) {
        return feed_gather_one(f, x, y);
    }
    if (f->part_count == 1) {
        bool good = grt_feed_run(f, 1, false, &done) && grt_dev_wait(f->desc.dev);
        grt_feed_newest(f, x, y);
        return good;
    }
    if (!feed_send_next(f, &done)) {
        return false;
    }
    struct feed_sent *sent = &f->held[f->held_count - 1];
    uint32_t first = part * feed_micro(f);
    bool good = first < sent->batch.rows && (part == 0 || feed_send_part(f, sent, part, &done)) &&
                grt_dev_wait(f->desc.dev);
    f->newest_place = grt_loader_turn(f->desc.loader, &sent->batch, part);
    f->newest_rows = good ? sent->batch.rows - first : 0;
    grt_feed_newest(f, x, y);
    feed_release(f);
    feed_advance(f, 1, &done);
    return good;
}

bool grt_feed_run(struct grt_feed *f, uint32_t most, bool more, struct grt_feed_done *done) {
    uint64_t part = f->desc.part, at = part > 0 ? f->next.batch % part : f->next.batch;
    *done = (struct grt_feed_done){0};
    if (f->clear && at == 0 && !grt_graph_run(f->clear)) {
        return false;
    }
    most = part > 0 && part - at < most ? (uint32_t)(part - at) : most;
    most = f->desc.on_device || most < GRT_FEED_WINDOW ? most : GRT_FEED_WINDOW;
    return f->desc.on_device ? feed_run_rows(f, most, done) : feed_run_batches(f, most, more, done);
}
