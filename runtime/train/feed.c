// SPDX-License-Identifier: Apache-2.0
#include "feed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../report.h"

// A baked step for the samples of one slot.
struct recorded {
    uint32_t slot, rows, steps;
    struct grt_graph *graph;
};

struct feed {
    struct feed_desc desc;
    struct grt_loader_info info;
    struct grt_loader_position next;
    struct recorded *recorded;
    uint32_t recorded_count;
    struct grt_buf *staging[FEED_WINDOW];  // not pinned: x, then y
    struct grt_batch held[FEED_WINDOW];
    struct grt_tensor data_x, data_y, order;  // rows on the device
    uint32_t *order_rows;
    bool order_set;  // for the epoch of `next`
};

// ---- graphs ----

static struct grt_graph *record(struct feed *f, const struct grt_step_desc *desc) {
    return f->desc.evaluate ? grt_learner_evaluate(f->desc.learner, desc)
                            : grt_learner_step(f->desc.learner, desc);
}

// The graph of a slot and a number of rows, made when it is first asked for.
static struct grt_graph *graph_for(struct feed *f, uint32_t slot, struct grt_step_desc desc) {
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        const struct recorded *r = &f->recorded[i];
        if (r->slot == slot && r->rows == desc.rows && r->steps == desc.steps) {
            return r->graph;
        }
    }
    struct recorded *more = realloc(f->recorded, (f->recorded_count + 1) * sizeof *f->recorded);
    if (!more) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a step");
        return NULL;
    }
    f->recorded = more;
    struct grt_graph *graph = record(f, &desc);
    if (graph) {
        f->recorded[f->recorded_count++] =
            (struct recorded){.slot = slot, .rows = desc.rows, .steps = desc.steps, .graph = graph};
    }
    return graph;
}

// ---- batches of the loader ----

static uint64_t align(uint64_t bytes) {
    return (bytes + 255) & ~(uint64_t)255;
}

// Copies a batch to an upload buffer of ours and says where it lies.
static bool stage(struct feed *f, uint32_t i, struct grt_batch *batch) {
    uint64_t x_bytes = grt_learner_x_bytes(f->desc.learner);
    uint64_t y_bytes = grt_learner_y_bytes(f->desc.learner);
    uint64_t y_at = align(x_bytes * f->desc.batch);
    if (!f->staging[i]) {
        f->staging[i] =
            grt_buf_create(f->desc.dev, grt_buf_desc(.size = y_at + y_bytes * f->desc.batch,
                                                     .kind = GRT_BUF_UPLOAD, .label = "batches"));
    }
    char *host = grt_buf_host(f->staging[i]);
    if (!host) {
        return false;
    }
    memcpy(host, batch->x, x_bytes * batch->rows);
    memcpy(host + y_at, batch->y, y_bytes * batch->rows);
    batch->x_range = (struct grt_range){f->staging[i], 0, x_bytes * batch->rows};
    batch->y_range = (struct grt_range){f->staging[i], y_at, y_bytes * batch->rows};
    batch->slot = i;
    return true;
}

static bool run_batch(struct feed *f, uint32_t i) {
    struct grt_batch batch = f->held[i];
    if (!batch.x_range.buf && !stage(f, i, &batch)) {
        return false;
    }
    struct grt_graph *graph =
        graph_for(f, batch.slot,
                  (struct grt_step_desc){
                      .rows = batch.rows, .steps = 1, .x = batch.x_range, .y = batch.y_range});
    return graph && grt_graph_run(graph);
}

static void advance(struct feed *f, uint32_t steps, struct feed_done *done) {
    f->next.batch += steps;
    done->steps += steps;
    if (f->next.batch == f->info.batches_per_epoch) {
        f->next = (struct grt_loader_position){.epoch = f->next.epoch + 1};
        f->order_set = false;
        done->epoch_ended = true;
    }
}

static bool run_batches(struct feed *f, uint32_t most, struct feed_done *done) {
    bool good = true;
    uint32_t held = 0;
    while (good && held < most && !done->epoch_ended) {
        good = grt_loader_next(f->desc.loader, &f->held[held]);
        if (!good) {
            break;
        }
        done->waited += f->held[held].waited;
        good = run_batch(f, held++);
        if (good) {
            done->samples += f->held[held - 1].rows;
            done->last_rows = f->held[held - 1].rows;
            advance(f, 1, done);
        }
    }
    good = grt_dev_wait(f->desc.dev) && good;
    for (uint32_t i = 0; i < held; i++) {
        grt_loader_release(f->desc.loader, &f->held[i]);
    }
    return good;
}

// ---- rows on the device ----

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The order of the epoch, and where in it the next step begins.
static bool set_order(struct feed *f) {
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

static bool run_rows(struct feed *f, uint32_t most, struct feed_done *done) {
    double start = now();
    if (!f->order_set && !set_order(f)) {
        return false;
    }
    done->waited = now() - start;
    bool good = true;
    for (uint32_t left = most; good && left > 0 && !done->epoch_ended;) {
        uint64_t first = f->next.batch * f->desc.batch;
        uint64_t rows = f->info.rows - first < f->desc.batch ? f->info.rows - first : f->desc.batch;
        // A whole window in one graph where it fits, else single steps.
        bool window =
            left == FEED_WINDOW && first + (uint64_t)FEED_WINDOW * f->desc.batch <= f->info.rows;
        struct grt_step_desc desc = {.rows = (uint32_t)rows,
                                     .steps = window ? FEED_WINDOW : 1,
                                     .data_x = &f->data_x,
                                     .data_y = &f->data_y,
                                     .order = &f->order};
        struct grt_graph *graph = graph_for(f, 0, desc);
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

static bool prepare_rows(struct feed *f) {
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

struct feed *feed_create(const struct feed_desc *desc) {
    struct feed *f = calloc(1, sizeof *f);
    if (!f) {
        grt_fail(GRT_NO_MEMORY, "no host memory for batches");
        return NULL;
    }
    f->desc = *desc;
    f->info = grt_loader_info(desc->loader);
    f->next = f->info.next;
    if (desc->on_device && !prepare_rows(f)) {
        feed_destroy(&f);
    }
    return f;
}

void feed_destroy(struct feed **feed) {
    if (!feed || !*feed) {
        return;
    }
    struct feed *f = *feed;
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        grt_graph_destroy(&f->recorded[i].graph);
    }
    for (uint32_t i = 0; i < FEED_WINDOW; i++) {
        grt_buf_destroy(&f->staging[i]);
    }
    grt_buf_destroy(&f->order.range.buf);
    free(f->order_rows);
    free(f->recorded);
    free(f);
    *feed = NULL;
}

struct grt_loader_position feed_position(const struct feed *feed) {
    return feed->next;
}

bool feed_seek(struct feed *f, struct grt_loader_position position) {
    f->order_set = false;
    if (!f->desc.on_device && !grt_loader_seek(f->desc.loader, position)) {
        return false;
    }
    f->next = position;
    return true;
}

bool feed_run(struct feed *f, uint32_t most, struct feed_done *done) {
    *done = (struct feed_done){0};
    most = most < FEED_WINDOW ? most : FEED_WINDOW;
    return f->desc.on_device ? run_rows(f, most, done) : run_batches(f, most, done);
}
