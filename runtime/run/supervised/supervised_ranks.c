// SPDX-License-Identifier: Apache-2.0
// Steps that several ranks take together, or one in the same parts.
//
//     step of 8 samples, 4 micro-batches   | 0 1 | 2 3 | 4 5 | 6 7 |
//     two ranks                            | rank 0    | rank 1    |
//     sums                                  (a + b)   +   (c + d)
//
// A micro-batch comes to the same numbers on whichever rank it is, and the tree over all of them is
// the same for every number of ranks: so are the bits. Each rank reads the rows of its own
// micro-batches and adds them up on its device (learn/share.h), then all sum and make the same
// update. Ranks exchange the gradients of the last layers while backward of the last micro-batch
// still comes to the first.
//
// Where samples are told apart from each other, all micro-batches go forward first, ranks exchange
// what became of them, and each goes back with its own (struct grt_whole of learner.h).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpurt/checkpoint.h"
#include "gpurt/comm.h"
#include "learn/share.h"
#include "run/run_ranks.h"
#include "supervised_parts.h"

#define SAME_EVERY 100  // steps between comparisons of the weights

#define PLACES 2  // for micro-batches on their way to the device

struct recorded {
    uint32_t rows, all;
    struct grt_graph *graph;
};

struct place {
    struct grt_buf *buf;  // x and y of a micro-batch
    uint64_t read;        // mark behind which it is
    bool filled;          // with the next micro-batch, while the one before was on its way
    uint32_t rows;        // of it
};

struct supervised_ranks {
    uint32_t all, count;  // micro-batches of a step, and of this rank
    uint32_t first;       // of this rank
    uint32_t leaf, step;  // samples of a micro-batch and of a step
    uint64_t epoch;       // samples
    bool compared;        // the weights of all, before the first step
    bool weighted;        // by weights of classes or samples
    struct grt_share *share;
    struct place places[PLACES];  // that micro-batches have in turn
    uint32_t turn;                // the place that is next
    uint64_t y_at;
    // Two for each micro-batch, or for each place of the only one: of a full step, and of an
    // epoch's last.
    struct recorded *graphs;
    struct recorded *embeds;  // the same, where samples are told apart from those of all; or NULL
    struct grt_graph *meet;   // behind those
    struct grt_graph *update;
    float *weights;                   // to be compared
    struct grt_loader_position next;  // counts steps
    double squares[GRT_HISTORY];      // of the micro-batches' gradients, of the newest full steps
};

// ---- settings ----

void supervised_multiply_batch(struct grt_supervised *run) {
    const char *name = run->settings.places[GRT_CONFIG_BATCH_SIZE].name;
    if (strcmp(name, "per_device_train_batch_size") == 0) {
        run->settings.batch_size *= grt_comm_ranks(run->desc.comm);
    }
}

static bool agree_settings(const struct grt_supervised *run) {
    struct grt_comm *comm = run->desc.comm;
    char text[16], digest[32];
    snprintf(digest, sizeof digest, "%016" PRIx64, run->data_digest);
    snprintf(text, sizeof text, "%u", run->task.learner.batch);
    return grt_run_agree_keys(comm, &run->settings) && grt_comm_agree(comm, "data", digest) &&
           grt_comm_agree(comm, "samples of a step", text);
}

// Micro-batches of the run that is gone on with; 0: it says none.
static uint64_t of_checkpoint(const struct grt_supervised *run) {
    const char *dir = run->settings.checkpoint_dir;
    if (run->desc.resume_from) {
        return (uint64_t)grt_archive_whole(run->desc.resume_from, "micro_batches", 0);
    }
    struct grt_archive *newest =
        run->desc.resume && grt_checkpoint_any(dir) ? grt_checkpoint_newest(dir) : NULL;
    uint64_t count = newest ? (uint64_t)grt_archive_whole(newest, "micro_batches", 0) : 0;
    grt_archive_destroy(&newest);
    return count;
}

static bool gather(void *comm, void *all, uint64_t each) {
    return grt_comm_gather(comm, all, each);
}

// Samples are told apart from those of their batch, or of all batches of the step, wherever these
// are cut into micro-batches.
static bool tell_apart(struct grt_supervised *run) {
    const struct supervised_ranks *r = run->ranks;
    struct grt_learner_desc *d = &run->task.learner;
    uint32_t batch = d->exact ? r->step : (uint32_t)run->task.config.batch_size;
    if (grt_loss_has_targets(d->loss)) {
        return true;
    }
    if (r->leaf % batch != 0 && batch % r->leaf != 0) {
        return grt_fail(GRT_CONFIG,
                        "a micro-batch of %u samples and a batch of %u, which are told apart, do "
                        "not divide each other: accumulate_exact=true, or other micro_batches",
                        r->leaf, batch);
    }
    d->exact = false;
    d->whole = (struct grt_whole){
        .samples = r->step, .batch = batch, .first = r->first * r->leaf, .own = r->count * r->leaf};
    return true;
}

bool supervised_share_out(struct grt_supervised *run) {
    struct grt_learner_desc *d = &run->task.learner;
    uint32_t ranks = grt_comm_ranks(run->desc.comm);
    uint64_t all = run->task.config.micro_batches;
    run->step_rows = d->batch;
    if (!agree_settings(run)) {
        return false;
    }
    if (ranks == 1 && run->task.config.sync_batch_norm) {
        grt_run_say(run->driver, GRT_RUN_NEWS_NOTE,
                    "sync_batch_norm has no effect: there is one rank, and its norms are over a "
                    "micro-batch");
    }
    all = all > 0 ? all : of_checkpoint(run);
    all = all > 0 ? all : ranks;
    // Of one rank that was given a comm nevertheless, steps are those of ranks.
    if (all == 1 && !run->desc.comm) {
        return true;
    }
    if (d->loss_count > 0) {
        return grt_fail(
            GRT_CONFIG,
            "losses want one process: leave out ranks; give accumulate in place of micro_batches");
    }
    if (!grt_run_parts_good(all, ranks)) {
        return false;
    }
    if (d->batch % all != 0) {
        return grt_fail(GRT_CONFIG, "a step of %u samples is not cut into %llu equal micro-batches",
                        d->batch, (unsigned long long)all);
    }
    run->ranks = calloc(1, sizeof *run->ranks);
    if (!run->ranks) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for micro-batches");
    }
    uint32_t count = (uint32_t)all / ranks, batch = (uint32_t)run->task.config.batch_size;
    *run->ranks = (struct supervised_ranks){.all = (uint32_t)all,
                                            .count = count,
                                            .first = grt_comm_rank(run->desc.comm) * count,
                                            .leaf = d->batch / (uint32_t)all,
                                            .weighted = d->class_weights || d->sample_weights,
                                            .step = d->batch};
    // A learner is for one of them. They may be cut further, as accumulate says.
    d->batch = run->ranks->leaf;
    d->accumulate = (d->batch + batch - 1) / batch;
    d->together =
        (struct grt_together){grt_comm_rank(run->desc.comm), ranks, gather, run->desc.comm};
    d->sync_norms = ranks > 1 && run->task.config.sync_batch_norm;
    return tell_apart(run);
}

bool supervised_agree_memory(struct grt_supervised *run) {
    struct grt_comm *comm = run->desc.comm;
    uint32_t ranks = grt_comm_ranks(comm), *each = calloc(ranks, sizeof *each);
    if (!each) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", ranks);
    }
    each[grt_comm_rank(comm)] = run->task.learner.accumulate;
    bool good = grt_comm_gather(comm, each, sizeof *each);
    // What fits the rank with the least memory fits all.
    for (uint32_t r = 0; good && r < ranks; r++) {
        uint32_t *most = &run->task.learner.accumulate;
        *most = each[r] > *most ? each[r] : *most;
    }
    free(each);
    return good;
}

struct grt_loader_share supervised_share_of(const struct grt_supervised *run, uint32_t rank) {
    const struct supervised_ranks *r = run->ranks;
    return r ? (struct grt_loader_share){rank * r->count, r->count, r->all}
             : (struct grt_loader_share){0};
}

uint32_t supervised_micro_batches(const struct grt_supervised *run) {
    return run->ranks ? run->ranks->all : 0;
}

uint64_t supervised_steps_per_epoch(const struct grt_supervised *run) {
    uint64_t batches = grt_loader_info(run->train_loader).batches_per_epoch;
    return run->ranks ? batches / run->ranks->count : batches;
}

// ---- making ----

static uint32_t graph_count(const struct supervised_ranks *r) {
    return 2 * (r->count > PLACES ? r->count : PLACES);
}

bool supervised_ranks_open(struct grt_supervised *run) {
    struct supervised_ranks *r = run->ranks;
    uint64_t x = grt_learner_x_bytes(run->learner), y = grt_learner_y_bytes(run->learner);
    r->epoch = grt_loader_info(run->train_loader).rows;
    if (grt_learner_syncs(run->learner) && run->steps_per_epoch * r->step > r->epoch) {
        return grt_fail(GRT_CONFIG,
                        "sync_batch_norm wants as many samples on every rank, and the last step of "
                        "an epoch has %llu of %u: drop_last=true leaves it out",
                        (unsigned long long)(r->epoch % r->step), r->step);
    }
    r->share = grt_share_create(&(struct grt_share_desc){
        .learner = run->learner, .leaves = r->count, .others = grt_comm_ranks(run->desc.comm) - 1});
    if (!r->share) {
        return false;
    }
    r->weights = malloc(grt_learner_parameters(run->learner) * sizeof *r->weights);
    r->graphs = calloc(graph_count(r), sizeof *r->graphs);
    if (!r->weights || !r->graphs) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for gradients");
    }
    r->y_at = grt_dev_align_up(run->desc.dev, r->leaf * x);
    for (uint32_t i = 0; i < PLACES; i++) {
        r->places[i].buf = grt_buf_create(run->desc.dev, grt_buf_desc(.size = r->y_at + r->leaf * y,
                                                                      .kind = GRT_BUF_UPLOAD,
                                                                      .label = "micro-batch"));
        if (!r->places[i].buf) {
            return false;
        }
    }
    r->update =
        grt_learner_update(run->learner, grt_step_desc(.rows = r->leaf, .samples = r->step));
    if (!r->update || run->task.learner.whole.samples == 0) {
        return r->update != NULL;
    }
    r->embeds = calloc(graph_count(r), sizeof *r->embeds);
    r->meet = r->embeds ? grt_learner_meet(run->learner) : NULL;
    return r->meet || (!r->embeds && grt_fail(GRT_NO_MEMORY, "no host memory for graphs"));
}

void supervised_ranks_close(struct grt_supervised *run) {
    struct supervised_ranks *r = run->ranks;
    if (!r) {
        return;
    }
    for (uint32_t i = 0; r->graphs && i < graph_count(r); i++) {
        grt_graph_destroy(&r->graphs[i].graph);
    }
    for (uint32_t i = 0; r->embeds && i < graph_count(r); i++) {
        grt_graph_destroy(&r->embeds[i].graph);
    }
    grt_graph_destroy(&r->meet);
    for (uint32_t i = 0; i < PLACES; i++) {
        grt_buf_destroy(&r->places[i].buf);
    }
    free(r->weights);
    grt_graph_destroy(&r->update);
    grt_share_destroy(&r->share);
    free(r->graphs);
    free(r->embeds);
    free(r);
    run->ranks = NULL;
}

bool supervised_seek(struct grt_supervised *run, struct grt_loader_position position) {
    struct supervised_ranks *r = run->ranks;
    if (!r) {
        return grt_feed_seek(run->train, position);
    }
    r->next = position;
    r->turn = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        r->places[i].filled = false;
    }
    position.batch *= r->count;
    return grt_dev_wait(run->desc.dev) && grt_loader_seek(run->train_loader, position);
}

// ---- a step ----

// Of `rows` samples, in a step of `all`; `in`: it reads them. Among r->embeds it embeds them, else
// it makes gradients, which tell when they are there.
static struct grt_graph *graph_of(struct grt_supervised *run, struct recorded *graphs,
                                  uint32_t leaf, uint32_t rows, uint32_t all, struct grt_buf *in) {
    struct supervised_ranks *r = run->ranks;
    // Of an even number of micro-batches each has always the same place.
    uint32_t slot = r->count == 1 && in ? r->turn % PLACES : leaf;
    struct recorded *at = &graphs[2 * slot + (all < r->step)];
    if (at->graph && at->rows == rows && at->all == all) {
        return at->graph;
    }
    grt_graph_destroy(&at->graph);
    bool gradients = graphs == r->graphs;
    struct grt_step_desc desc = {.rows = rows,
                                 .samples = all,
                                 .micro_first = (r->first + leaf) * run->task.learner.accumulate,
                                 .whole = r->embeds ? all : 0,
                                 .place = (r->first + leaf) * r->leaf,
                                 .tell = gradients ? grt_share_tell(r->share, leaf) : NULL};
    if (in) {
        desc.x = (struct grt_range){in, 0, r->y_at};
        desc.y = (struct grt_range){in, r->y_at, grt_buf_size(in) - r->y_at};
    }
    *at = (struct recorded){rows, all, NULL};
    at->graph = gradients ? grt_learner_gradients(run->learner, &desc)
                          : grt_learner_embed(run->learner, &desc);
    return at->graph;
}

// Samples of a micro-batch of a step of `all`.
static uint32_t rows_of(const struct supervised_ranks *r, uint32_t leaf, uint32_t all) {
    uint32_t before = (r->first + leaf) * r->leaf, left = all > before ? all - before : 0;
    return left < r->leaf ? left : r->leaf;
}

// Brings the next micro-batch to its place, once what was there is read.
static bool fill(struct grt_supervised *run, struct place *place, double *waited) {
    struct grt_batch batch;
    if (!grt_loader_next(run->train_loader, &batch)) {
        return false;
    }
    *waited += batch.waited;
    bool good = grt_dev_wait_for(run->desc.dev, GRT_LANE_MAIN, place->read);
    if (good) {
        char *in = grt_buf_host(place->buf);
        memcpy(in, batch.x, batch.rows * grt_learner_x_bytes(run->learner));
        if (batch.y) {
            memcpy(in + run->ranks->y_at, batch.y, batch.rows * grt_learner_y_bytes(run->learner));
        }
        place->rows = batch.rows;
        place->filled = true;
    }
    grt_loader_release(run->train_loader, &batch);
    return good;
}

static struct place *place_of(struct supervised_ranks *r) {
    return &r->places[r->turn % PLACES];
}

// While the device is busy with this step. Data that cannot be had are the next step's to tell.
static bool fill_ahead(struct grt_supervised *run, struct grt_feed_done *done) {
    struct supervised_ranks *r = run->ranks;
    uint64_t newest = r->places[(r->turn + PLACES - 1) % PLACES].read;
    double begun = grt_seconds(), waited = 0;
    if (grt_loader_peek(run->train_loader) && !fill(run, place_of(r), &waited)) {
        return false;
    }
    double passed = grt_seconds() - begun;
    done->waited += passed;
    done->stalled += grt_dev_passed(run->desc.dev, GRT_LANE_MAIN, newest) ? passed : 0;
    return true;
}

// Reads the samples of a micro-batch; *graph takes them, NULL where there are none.
static bool feed(struct grt_supervised *run, uint32_t leaf, uint32_t all,
                 struct grt_feed_done *done, struct grt_graph **graph) {
    struct supervised_ranks *r = run->ranks;
    struct place *place = place_of(r);
    double waited = 0;
    *graph = NULL;
    if (!place->filled && !fill(run, place, &waited)) {
        return false;
    }
    place->filled = false;
    done->waited += waited;
    done->stalled += waited;
    if (place->rows > 0) {
        *graph =
            graph_of(run, r->embeds ? r->embeds : r->graphs, leaf, place->rows, all, place->buf);
    }
    return *graph || place->rows == 0;
}

// What was fed is on its way.
static void pass_on(struct grt_supervised *run) {
    struct supervised_ranks *r = run->ranks;
    place_of(r)->read = grt_dev_mark(run->desc.dev, GRT_LANE_MAIN);
    r->turn++;
}

static bool take_leaf(struct grt_supervised *run, uint32_t leaf, uint32_t all,
                      struct grt_feed_done *done) {
    struct supervised_ranks *r = run->ranks;
    uint32_t rows = rows_of(r, leaf, all);
    struct grt_graph *graph = NULL;
    if (!r->embeds) {
        if (!feed(run, leaf, all, done, &graph)) {
            return false;
        }
    } else if (rows > 0) {
        graph = graph_of(run, r->graphs, leaf, rows, all, NULL);
        if (!graph) {
            return false;
        }
    }
    bool good = grt_share_leaf(r->share, leaf, graph);
    if (!r->embeds) {
        pass_on(run);
    }
    return good;
}

// All micro-batches forward, and what all ranks made of them.
static bool embed(struct grt_supervised *run, uint32_t all, struct grt_feed_done *done) {
    struct supervised_ranks *r = run->ranks;
    for (uint32_t leaf = 0; r->embeds && leaf < r->count; leaf++) {
        struct grt_graph *graph;
        if (!feed(run, leaf, all, done, &graph) || (graph && !grt_graph_run(graph))) {
            return false;
        }
        pass_on(run);
    }
    return !r->embeds || grt_graph_run(r->meet);
}

static bool take_leaves(struct grt_supervised *run, uint32_t all, struct grt_feed_done *done) {
    struct supervised_ranks *r = run->ranks;
    bool good = grt_share_begin(r->share) && embed(run, all, done);
    for (uint32_t leaf = 0; good && leaf < r->count; leaf++) {
        good = take_leaf(run, leaf, all, done);
    }
    // Not across the end of an epoch, where workers may rest.
    bool more =
        r->next.batch + 1 < run->steps_per_epoch && run->loop.queued + done->steps + 1 < run->steps;
    return good && (!more || fill_ahead(run, done));
}

// Piece by piece, while backward still runs.
static bool exchange(struct grt_supervised *run, uint32_t rows, double *squares) {
    struct supervised_ranks *r = run->ranks;
    uint32_t pieces = grt_share_pieces(r->share), leaves = (rows + r->leaf - 1) / r->leaf;
    for (uint32_t i = 0; i < pieces; i++) {
        struct grt_share_piece piece;
        if (!grt_share_take(r->share, i, &piece) ||
            !grt_comm_sum(run->desc.comm, piece.down, piece.up, piece.count)) {
            return false;
        }
        *squares = i + 1 == pieces ? grt_share_settle(r->share, leaves) : 0;
        if (!grt_share_give(r->share, i)) {
            return false;
        }
    }
    return true;
}

static bool same_weights(struct grt_supervised *run, uint64_t step) {
    const struct grt_tensor *first = grt_learner_tensor(run->learner, GRT_TENSOR_PARAM, 0, NULL);
    struct supervised_ranks *r = run->ranks;
    if (grt_comm_ranks(run->desc.comm) == 1) {
        return true;
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; first; i++) {
        uint64_t size = grt_tensor_bytes(first);
        if (!grt_buf_read(first->range.buf, first->range.offset, (char *)r->weights + bytes,
                          size)) {
            return false;
        }
        bytes += size;
        first = grt_learner_tensor(run->learner, GRT_TENSOR_PARAM, i + 1, NULL);
    }
    // A rank that is gone costs nothing that was learnt.
    return grt_comm_same(run->desc.comm, "weights", step, r->weights, bytes) ||
           (grt_comm_stop(run->desc.comm) & GRT_STOP_LOST) != 0;
}

// The gradient noise scale of McCandlish et al. (arXiv 1812.06162, A.1), by the lengths of the
// gradients of micro-batches and of the step: the trace of the covariance, and the square of the
// true gradient's length, each without bias. Weights make other means, and samples that are
// told apart from each other do not count by themselves.
struct supervised_noise supervised_noise_of(const struct grt_supervised *run, uint64_t step,
                                            double norm) {
    const struct supervised_ranks *r = run->ranks;
    double squares = r ? r->squares[step % GRT_HISTORY] : 0;
    if (!r || !(squares > 0) || !isfinite(squares) || !isfinite(norm)) {
        return (struct supervised_noise){0};
    }
    // Each micro-batch's part of the step's mean is 1 / parts of its own gradient.
    double parts = r->all, each = squares * parts, whole = norm * norm;
    return (struct supervised_noise){.trace = (each - whole) * r->step / (parts - 1),
                                     .square = (parts * whole - each) / (parts - 1)};
}

// *taken: false where a rank is gone: then nothing was changed.
static bool take_step(struct grt_supervised *run, struct grt_feed_done *done, bool *taken) {
    struct supervised_ranks *r = run->ranks;
    uint64_t left = r->epoch - r->next.batch * r->step;
    uint32_t rows = left < r->step ? (uint32_t)left : r->step;
    double squares = 0;
    *taken = false;
    if (!take_leaves(run, rows, done)) {
        // Norms may have taken statistics of a step that is not made.
        return (grt_comm_stop(run->desc.comm) & GRT_STOP_LOST) != 0 && grt_share_undo(r->share);
    }
    grt_run_asked_to_stop(run->driver);  // tells the vote what this rank wants
    if (!grt_comm_vote(run->desc.comm) || !exchange(run, rows, &squares)) {
        return (grt_comm_stop(run->desc.comm) & GRT_STOP_LOST) != 0;
    }
    bool counts = r->all > 1 && rows == r->step && !r->weighted && !r->embeds;
    r->squares[(run->loop.queued + done->steps) % GRT_HISTORY] = counts ? squares : 0;
    if (!grt_graph_run(r->update)) {
        return false;
    }
    *taken = true;
    done->steps++;
    done->samples += rows;
    done->last_rows = rows;
    r->next.batch++;
    if (r->next.batch == run->steps_per_epoch) {
        r->next = (struct grt_loader_position){.epoch = r->next.epoch + 1};
        done->epoch_ended = true;
    }
    uint64_t step = run->loop.queued + done->steps;
    return step % SAME_EVERY != 0 || same_weights(run, step);
}

bool supervised_ranks_run(struct grt_supervised *run, uint32_t most, struct grt_feed_done *done) {
    bool good = run->ranks->compared || same_weights(run, run->loop.queued), taken = true;
    run->ranks->compared = true;
    *done = (struct grt_feed_done){0};
    while (good && taken && done->steps < most && !done->epoch_ended &&
           grt_comm_stop(run->desc.comm) == 0) {
        good = take_step(run, done, &taken);
    }
    return grt_dev_wait(run->desc.dev) && good;
}
