// SPDX-License-Identifier: Apache-2.0
// Which micro-batches of a step each rank has: as many each, as listed, or by the speed of its
// device.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpurt/comm.h"
#include "run/run_ranks.h"
#include "supervised_ranks.h"

// ---- settings ----

void supervised_multiply_batch(struct grt_supervised *run) {
    const char *name = run->settings.places[GRT_CONFIG_BATCH_SIZE].name;
    if (strcmp(name, "per_device_train_batch_size") == 0) {
        run->settings.batch_size *= grt_comm_ranks(run->desc.comm);
    }
}

static bool agree_settings(struct grt_supervised *run) {
    struct grt_comm *comm = run->desc.comm;
    char text[16], digest[32], every[24] = "0";
    // Files may differ in classes, which are no part of what is learnt from then.
    if (grt_comm_ranks(comm) > 1) {
        supervised_begin_knn(run);
        snprintf(every, sizeof every, "%llu", (unsigned long long)run->knn_every);
    }
    snprintf(digest, sizeof digest, "%016" PRIx64, run->data_digest);
    snprintf(text, sizeof text, "%u", run->task.learner.batch);
    return grt_run_agree_keys(comm, &run->settings) && grt_comm_agree(comm, "data", digest) &&
           grt_comm_agree(comm, "samples of a step", text) &&
           grt_comm_agree(comm, "epochs between trials by nearest neighbours", every);
}

// Micro-batches of the run that is gone on with; 0: it says none.
static bool of_checkpoint(const struct grt_supervised *run, uint64_t *all) {
    const struct grt_archive *from = run->desc.resume_from;
    if (!from && !grt_run_newest(run->driver, &from)) {
        return false;
    }
    *all = from ? (uint64_t)grt_archive_whole(from, "micro_batches", 0) : 0;
    return true;
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

// ---- who has which micro-batches ----

// Of "5,3"; 0: the text is something else. `counts` may be NULL.
static uint32_t read_list(const char *text, uint32_t *counts, uint64_t *all) {
    uint32_t count = 0;
    *all = 0;
    for (const char *at = text; *at; count++) {
        char *end = NULL;
        unsigned long value = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (value == 0 || value > GRT_MAX_RANKS || count == GRT_MAX_RANKS ||
            (*end && (*end != ',' || !end[1]))) {
            return 0;
        }
        *all += value;
        if (counts) {
            counts[count] = (uint32_t)value;
        }
        at = *end ? end + 1 : end;
    }
    return count;
}

enum dealt { DEALT_EQUAL, DEALT_LIST, DEALT_SPEED };

// How rank_shares deals micro-batches out; of a list *all is how many they are.
static bool read_dealt(const struct grt_supervised *run, uint32_t ranks, enum dealt *dealt,
                       uint64_t *all) {
    const char *text = run->task.config.rank_shares;
    *dealt = strcmp(text, "speed") == 0 ? DEALT_SPEED : DEALT_EQUAL;
    if (*dealt == DEALT_SPEED || text[0] == '\0' || strcmp(text, "equal") == 0) {
        return true;
    }
    uint32_t count = read_list(text, NULL, all);
    *dealt = DEALT_LIST;
    if (count == 0) {
        return grt_fail(GRT_CONFIG,
                        "rank_shares is '%s': equal, speed or micro-batches of each rank as 5,3 "
                        "are wanted",
                        text);
    }
    return count == ranks ||
           grt_fail(GRT_CONFIG, "rank_shares is %s, for %u rank%s: there %s %u", text, count,
                    count == 1 ? "" : "s", ranks == 1 ? "is" : "are", ranks);
}

static bool parts_good(const struct grt_supervised *run, enum dealt dealt, uint64_t all,
                       uint64_t listed, uint32_t ranks) {
    const char *text = run->task.config.rank_shares;
    if (dealt == DEALT_EQUAL) {
        return grt_run_parts_good(all, ranks);
    }
    if ((all & (all - 1)) != 0 || all < ranks) {
        return grt_fail(GRT_CONFIG,
                        "rank_shares is %s, of %llu micro-batches: they have to be a power of two, "
                        "and at least one for each of %u ranks",
                        text, (unsigned long long)all, ranks);
    }
    if (dealt == DEALT_LIST && listed != all) {
        return grt_fail(GRT_CONFIG, "rank_shares is %s, %llu micro-batches: a step has %llu", text,
                        (unsigned long long)listed, (unsigned long long)all);
    }
    if (!grt_loss_has_targets(run->task.learner.loss) || run->task.config.sync_batch_norm) {
        return grt_fail(GRT_CONFIG,
                        "rank_shares is %s: %s as many samples on every rank, rank_shares=equal",
                        text,
                        run->task.config.sync_batch_norm ? "sync_batch_norm wants"
                                                         : "samples that are told apart want");
    }
    return true;
}

// Several for each rank, so that they can be dealt out by speed.
static uint64_t several(uint32_t ranks) {
    uint64_t all = 1;
    while (all < 4ull * ranks) {
        all *= 2;
    }
    return all;
}

static void take_own(struct supervised_ranks *r, uint32_t rank) {
    r->first = 0;
    for (uint32_t i = 0; i < rank; i++) {
        r->first += r->counts[i];
    }
    r->count = r->counts[rank];
}

static bool deal(struct grt_supervised *run, enum dealt dealt, uint32_t ranks) {
    struct supervised_ranks *r = run->ranks;
    uint64_t all;
    r->counts = calloc(ranks, sizeof *r->counts);
    if (!r->counts) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for micro-batches");
    }
    if (dealt == DEALT_LIST) {
        read_list(run->task.config.rank_shares, r->counts, &all);
    } else {
        grt_run_deal(NULL, ranks, r->all, r->counts);
    }
    r->by_speed = dealt == DEALT_SPEED && ranks > 1;
    take_own(r, grt_comm_rank(run->desc.comm));
    return true;
}

bool supervised_share_out(struct grt_supervised *run) {
    struct grt_learner_desc *d = &run->task.learner;
    uint32_t ranks = grt_comm_ranks(run->desc.comm);
    uint64_t all = run->task.config.micro_batches, listed = 0;
    enum dealt dealt;
    run->step_rows = d->batch;
    if (!agree_settings(run) || !read_dealt(run, ranks, &dealt, &listed)) {
        return false;
    }
    if (ranks == 1 && run->task.config.sync_batch_norm) {
        grt_run_say(run->driver, GRT_RUN_NEWS_NOTE,
                    "sync_batch_norm has no effect: there is one rank, and its norms are over a "
                    "micro-batch");
    }
    if (all == 0 && !of_checkpoint(run, &all)) {
        return false;
    }
    all = all > 0                ? all
          : dealt == DEALT_LIST  ? listed
          : dealt == DEALT_SPEED ? several(ranks)
                                 : ranks;
    // Of one rank that was given a comm nevertheless, steps are those of ranks.
    if (all == 1 && !run->desc.comm) {
        return true;
    }
    if (d->loss_count > 0) {
        return grt_fail(
            GRT_CONFIG,
            "losses want one process: leave out ranks; give accumulate in place of micro_batches");
    }
    if (!parts_good(run, dealt, all, listed, ranks)) {
        return false;
    }
    if (all == 0 || d->batch % all != 0) {
        return grt_fail(GRT_CONFIG,
                        "a step of %u samples is not cut into %llu equal micro-batches: give a "
                        "batch_size of which that is a divisor, or other micro_batches",
                        d->batch, (unsigned long long)all);
    }
    run->ranks = calloc(1, sizeof *run->ranks);
    if (!run->ranks) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for micro-batches");
    }
    uint32_t batch = (uint32_t)run->task.config.batch_size;
    *run->ranks = (struct supervised_ranks){.all = (uint32_t)all,
                                            .leaf = d->batch / (uint32_t)all,
                                            .weighted = d->class_weights || d->sample_weights,
                                            .step = d->batch};
    if (!deal(run, dealt, ranks)) {
        return false;
    }
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
    struct grt_loader_share share = {0};
    for (uint32_t i = 0; r && i < rank; i++) {
        share.first += r->counts[i];
    }
    if (r) {
        share.count = r->counts[rank];
        share.of = r->all;
    }
    return share;
}

// Before speeds are known: a run that has most sums waiting.
void supervised_share_planned(const struct grt_supervised *run, uint32_t *first, uint32_t *count) {
    const struct supervised_ranks *r = run->ranks;
    bool open = r && r->by_speed && r->all > 3;
    *first = open ? 1 : r ? r->first : 0;
    *count = open ? r->all - 1 : r ? r->count : 0;
}

// ---- speeds ----

#define TRIED_SECONDS 0.1
#define TRIED_LEAST 3
#define TRIED_MOST 50

struct trial {
    struct grt_learner *learner;
    struct grt_buf *in;
    struct grt_graph *graph;
};

// A micro-batch of zeros through a learner of its own.
static bool trial_open(struct grt_supervised *run, struct trial *t) {
    const struct supervised_ranks *r = run->ranks;
    struct grt_dev *dev = run->desc.dev;
    t->learner = grt_learner_create(dev, &run->task.learner);
    if (!t->learner || !grt_learner_alloc(t->learner)) {
        return false;
    }
    uint64_t y_at = grt_dev_align_up(dev, r->leaf * grt_learner_x_bytes(t->learner));
    uint64_t bytes = y_at + r->leaf * grt_learner_y_bytes(t->learner);
    t->in = grt_buf_create(
        dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_UPLOAD, .label = "micro-batch"));
    if (!t->in) {
        return false;
    }
    memset(grt_buf_host(t->in), 0, bytes);
    t->graph = grt_learner_gradients(
        t->learner, grt_step_desc(.x = {t->in, 0, y_at}, .y = {t->in, y_at, bytes - y_at},
                                  .rows = r->leaf, .samples = r->step));
    // The first two runs compile, and find out how the work is cut into submits.
    return t->graph && grt_graph_finish(t->graph) && grt_graph_finish(t->graph);
}

static void trial_close(struct trial *t) {
    grt_graph_destroy(&t->graph);
    grt_buf_destroy(&t->in);
    grt_learner_destroy(&t->learner);
}

// Seconds of a micro-batch, while all ranks are busy.
static bool trial_run(const struct trial *t, double *seconds) {
    double begun = grt_seconds();
    uint32_t count = 0;
    bool good = true;
    while (good && count < TRIED_MOST &&
           (count < TRIED_LEAST || grt_seconds() - begun < TRIED_SECONDS)) {
        good = grt_graph_finish(t->graph);
        count++;
    }
    *seconds = (grt_seconds() - begun) / count;
    return good;
}

static void tell_counts(struct grt_supervised *run, uint32_t ranks) {
    char text[512] = "micro-batches of each rank, by its speed:";
    for (uint32_t r = 0; r < ranks; r++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, " %u", run->ranks->counts[r]);
    }
    grt_run_say(run->driver, GRT_RUN_NEWS_NOTE, text);
}

bool supervised_share_by_speed(struct grt_supervised *run) {
    struct grt_comm *comm = run->desc.comm;
    struct supervised_ranks *r = run->ranks;
    if (!r || !r->by_speed) {
        return true;
    }
    uint32_t ranks = grt_comm_ranks(comm);
    struct trial trial = {0};
    double *seconds = calloc(ranks, sizeof *seconds), own = 0;
    bool good = (seconds || grt_fail(GRT_NO_MEMORY, "no host memory for %u ranks", ranks)) &&
                trial_open(run, &trial);
    good = grt_comm_all(comm, "cannot begin: its speed was not found out", good) &&
           grt_comm_all(comm, "cannot begin: its speed was not found out", trial_run(&trial, &own));
    if (good && seconds) {
        seconds[grt_comm_rank(comm)] = own;
        good = grt_comm_gather(comm, seconds, sizeof *seconds);
    }
    if (good && seconds) {
        grt_run_deal(seconds, ranks, r->all, r->counts);
        take_own(r, grt_comm_rank(comm));
        r->by_speed = false;
        tell_counts(run, ranks);
    }
    trial_close(&trial);
    free(seconds);
    return good;
}

uint32_t supervised_micro_batches(const struct grt_supervised *run) {
    return run->ranks ? run->ranks->all : 0;
}

uint64_t supervised_steps_per_epoch(const struct grt_supervised *run) {
    uint64_t batches = grt_loader_info(run->train_loader).batches_per_epoch;
    return run->ranks ? batches / run->ranks->count : batches;
}
