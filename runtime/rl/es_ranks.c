// SPDX-License-Identifier: Apache-2.0
// Evolution strategies over several ranks. Each rolls out a block of the directions; then all get
// all results, a few kilobytes, and make the same update.
//
//     results [rows][sides]     rank 0 | rank 1 | ...     columns of a rank, packed as one block
//
// What a direction comes to depends on its number alone, so one rank and several have the same
// bits.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "es_parts.h"

#define SAME_EVERY 100  // iterations between comparisons of the weights

// Directions before those of a rank.
static uint32_t before(const struct grt_es *es, uint32_t rank) {
    return (uint32_t)((uint64_t)es->desc.num_dirs * rank / grt_comm_ranks(es->desc.comm));
}

static uint64_t row_count(const struct grt_es *es) {
    return GRT_ROLLOUT_RESULTS + 2 * (uint64_t)es->desc.env->obs;
}

// Floats of the block of a rank, the same for all.
static uint64_t block(const struct grt_es *es) {
    uint32_t ranks = grt_comm_ranks(es->desc.comm);
    return row_count(es) * 2 * ((es->desc.num_dirs + ranks - 1) / ranks);
}

bool grt_es_share(struct grt_es *es) {
    struct grt_es_desc *d = &es->desc;
    uint32_t rank = grt_comm_rank(d->comm), ranks = grt_comm_ranks(d->comm);
    if (ranks > d->num_dirs) {
        return grt_fail(GRT_CONFIG, "%u ranks have nothing to do with %u directions", ranks,
                        d->num_dirs);
    }
    es->losses = grt_comm_losses(d->comm);
    free(es->exchanged);
    free(es->all_results);
    es->exchanged = es->all_results = NULL;
    es->first_dir = before(es, rank);
    es->dir_count = before(es, rank + 1) - es->first_dir;
    d->dir_chunk = d->dir_chunk < es->dir_count ? d->dir_chunk : es->dir_count;
    if (ranks > 1) {
        es->exchanged = calloc(ranks * block(es), sizeof *es->exchanged);
        es->all_results = calloc(row_count(es) * 2 * d->num_dirs, sizeof *es->all_results);
        if (!es->exchanged || !es->all_results) {
            return grt_fail(GRT_NO_MEMORY, "no host memory for the results of %u directions",
                            d->num_dirs);
        }
    }
    return true;
}

bool grt_es_thinned(const struct grt_es *es) {
    return grt_comm_losses(es->desc.comm) != es->losses;
}

// Between the columns of a rank and its block.
static void move(const struct grt_es *es, uint32_t rank, bool pack) {
    uint32_t first = 2 * before(es, rank), count = 2 * before(es, rank + 1) - first;
    uint64_t sides = 2 * (uint64_t)es->desc.num_dirs;
    float *packed = es->exchanged + rank * block(es);
    for (uint64_t row = 0; row < row_count(es); row++) {
        float *columns = es->all_results + row * sides + first, *line = packed + row * count;
        memcpy(pack ? line : columns, pack ? columns : line, count * sizeof *line);
    }
}

// Also where a rank is gone, which the next exchange finds.
static bool same_weights(const struct grt_es *es) {
    struct grt_comm *comm = es->desc.comm;
    uint64_t bytes = grt_tensor_bytes(es->theta);
    void *numbers = malloc(bytes);
    bool same = numbers && grt_es_read(es->theta, numbers) &&
                grt_comm_same(comm, "weights", es->done, numbers, bytes);
    free(numbers);
    return same || (grt_comm_stop(comm) & GRT_STOP_LOST) != 0 || grt_es_thinned(es);
}

bool grt_es_exchange(struct grt_es *es, bool *stopped, bool *again) {
    struct grt_comm *comm = es->desc.comm;
    if (*stopped || (es->desc.stop && es->desc.stop())) {
        grt_comm_want(comm, GRT_STOP_SIGNAL);
    }
    // Whoever is gone is named; the learner is as before the iteration.
    if (!grt_comm_vote(comm) || grt_comm_stop(comm) != 0) {
        *again = grt_es_thinned(es);
        *stopped = grt_comm_stop(comm) != 0 && !*again;
        return *stopped || *again;
    }
    if (!es->compared && !same_weights(es)) {
        return false;
    }
    *again = grt_es_thinned(es);
    if (*again) {
        return true;
    }
    if (!grt_es_read(es->results, es->all_results)) {
        return false;
    }
    es->compared = true;
    move(es, grt_comm_rank(comm), true);
    if (!grt_comm_gather(comm, es->exchanged, block(es) * sizeof *es->exchanged)) {
        *again = grt_es_thinned(es);
        *stopped = !*again;
        return true;
    }
    for (uint32_t rank = 0; rank < grt_comm_ranks(comm); rank++) {
        move(es, rank, false);
    }
    return grt_es_write(es->results, es->all_results);
}

bool grt_es_settle(struct grt_es *es, struct grt_es_report *report) {
    struct grt_comm *comm = es->desc.comm;
    if (es->done % SAME_EVERY == 0 && !same_weights(es)) {
        return false;
    }
    double seconds = report->seconds, busy = report->busy;
    grt_comm_lead(comm, report, sizeof *report);
    report->seconds = seconds;
    report->busy = busy;
    return true;
}
