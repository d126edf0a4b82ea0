// SPDX-License-Identifier: Apache-2.0
#include "feed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../report.h"

// Graphs that a feed needs: a full batch, a window of them, and the last one of an epoch.
#define MOST_RECORDED 4

struct recorded {
    uint32_t rows, steps;
    struct grt_graph *graph;
};

struct feed {
    struct feed_desc desc;
    struct grt_loader_info info;
    struct grt_loader_position next;
    struct recorded recorded[MOST_RECORDED];
    uint32_t recorded_count;
    struct grt_plan *plan;     // staging, where a batch has several micro-batches
    struct grt_tensor *x, *y;  // of the plan, or NULL
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

// The graph for a number of rows and steps, made when it is first asked for.
static struct grt_graph *graph_for(struct feed *f, const struct grt_step_desc *desc) {
    for (uint32_t i = 0; i < f->recorded_count; i++) {
        if (f->recorded[i].rows == desc->rows && f->recorded[i].steps == desc->steps) {
            return f->recorded[i].graph;
        }
    }
    // Positions may be sought at will, but there are only so many different batches in a file.
    if (f->recorded_count == MOST_RECORDED) {
        grt_graph_destroy(&f->recorded[--f->recorded_count].graph);
    }
    struct grt_graph *graph = record(f, desc);
    if (graph) {
        f->recorded[f->recorded_count++] =
            (struct recorded){.rows = desc->rows, .steps = desc->steps, .graph = graph};
    }
    return graph;
}

// ---- batches of the loader ----

// One micro-batch lands in the learner's own tensors, several in staging that they are cut from.
static bool prepare_batches(struct feed *f) {
    const struct grt_tensor *x = grt_learner_input(f->desc.learner);
    const struct grt_tensor *y = grt_learner_target(f->desc.learner);
    if (x->shape[0] < f->desc.batch) {
        struct grt_tensor_desc desc = {.label = "batch x", .group = "batches", .dtype = x->dtype};
        memcpy(desc.shape, x->shape, sizeof desc.shape);
        desc.shape[0] = f->desc.batch;
        f->plan = grt_plan_create(f->desc.dev);
        f->x = f->plan ? grt_plan_tensor(f->plan, &desc) : NULL;
        desc.label = "batch y";
        desc.dtype = y->dtype;
        memcpy(desc.shape, y->shape, sizeof desc.shape);
        desc.shape[0] = f->desc.batch;
        f->y = f->x ? grt_plan_tensor(f->plan, &desc) : NULL;
        if (!f->y || !grt_plan_alloc(f->plan)) {
            return false;
        }
        x = f->x;
        y = f->y;
    }
    return grt_loader_bind(f->desc.loader, x, y);
}

static struct grt_graph *batch_graph(struct feed *f, uint32_t rows) {
    struct grt_step_desc desc = {.rows = rows, .steps = 1};
    if (f->x) {
        desc.x = f->x->range;
        desc.y = f->y->range;
    }
    return graph_for(f, &desc);
}

static bool run_batch(struct feed *f, const struct grt_batch *batch) {
    struct grt_graph *graph = batch_graph(f, batch->rows);
    return graph && grt_loader_upload(f->desc.loader, batch) && grt_graph_run(graph);
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
        good = run_batch(f, &f->held[held++]);
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
        struct grt_graph *graph = graph_for(f, &desc);
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
    // The graph of a full batch is baked, and its kernels compiled, before anybody looks at the clock.
    uint32_t rows = (uint32_t)(f->info.rows < desc->batch ? f->info.rows : desc->batch);
    if (!(desc->on_device ? prepare_rows(f) : prepare_batches(f) && batch_graph(f, rows))) {
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
    grt_plan_destroy(&f->plan);
    grt_buf_destroy(&f->order.range.buf);
    free(f->order_rows);
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
