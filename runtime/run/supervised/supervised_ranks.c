// SPDX-License-Identifier: Apache-2.0
// Steps that several ranks take together, or one in the same parts.
//
//     step of 8 samples, 4 micro-batches   | 0 1 | 2 3 | 4 5 | 6 7 |
//     two ranks                            | rank 0    | rank 1    |
//     sums                                  (a + b)   +   (c + d)
//     rank_shares=3,1                      | rank 0          | rank 1 |
//     sums                                  (a + b), c      d
//
// A micro-batch comes to the same numbers on whichever rank it is, and the tree over all of them is
// the same for every number of ranks: so are the bits. Each rank reads the rows of its own
// micro-batches and adds them up on its device (learn/share.h), then all sum and make the same
// update. Ranks exchange the gradients of the last layers while backward of the last micro-batch
// still comes to the first.
//
// Where samples are told apart from each other, all micro-batches go forward first, ranks exchange
// what became of them, and each goes back with its own (struct grt_whole of learner.h).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpurt/comm.h"
#include "supervised_ranks.h"

#define SAME_EVERY 100  // steps between comparisons of the weights
#define UNTIMED 3       // steps before the first whose exchange is timed

// ---- making ----

// Of an even number of micro-batches each has always the same place; of an odd one all in turn.
static uint32_t places_of(const struct supervised_ranks *r) {
    return r->count % PLACES == 0 ? 1 : PLACES;
}

static uint32_t graph_count(const struct supervised_ranks *r) {
    return 2 * r->count * places_of(r);
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
    r->share =
        grt_share_create(&(struct grt_share_desc){.learner = run->learner,
                                                  .first = r->first,
                                                  .leaves = r->count,
                                                  .others = grt_comm_ranks(run->desc.comm) - 1});
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
    free(r->counts);
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
    uint32_t slot = leaf * places_of(r) + (in ? r->turn % places_of(r) : 0);
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
    // When this rank saw backward on its way last.
    double busy = grt_seconds();
    for (uint32_t i = 0; i < pieces; i++) {
        struct grt_share_piece piece;
        if (!grt_share_passed(r->share)) {
            // The last bucket is there when backward is over.
            if (i + 2 == pieces && !grt_share_wait(r->share)) {
                return false;
            }
            busy = grt_seconds();
        }
        if (!grt_share_take(r->share, i, &piece) ||
            !grt_comm_sum_runs(run->desc.comm, r->counts, piece.down, piece.up, piece.count)) {
            return false;
        }
        *squares = i + 1 == pieces ? grt_share_settle(r->share, leaves) : 0;
        if (!grt_share_give(r->share, i)) {
            return false;
        }
    }
    // The first steps wait for the device: their times are those of submits.
    if (r->exchanges++ >= UNTIMED) {
        r->exposed += grt_seconds() - busy;
        r->exposed_steps++;
    }
    return true;
}

bool supervised_exposed(struct grt_supervised *run, double *seconds) {
    struct supervised_ranks *r = run->ranks;
    uint32_t ranks = r ? grt_comm_ranks(run->desc.comm) : 1;
    *seconds = -1;
    if (ranks == 1) {
        return true;
    }
    double *all = calloc(ranks, sizeof *all), least = INFINITY;
    if (!all) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", ranks);
    }
    all[grt_comm_rank(run->desc.comm)] =
        r->exposed_steps > 0 ? r->exposed / r->exposed_steps : INFINITY;
    bool good = grt_comm_gather(run->desc.comm, all, sizeof *all);
    for (uint32_t i = 0; good && i < ranks; i++) {
        least = fmin(least, all[i]);
    }
    free(all);
    *seconds = isfinite(least) ? least : -1;
    r->exposed = 0;
    r->exposed_steps = 0;
    return good;
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
