// SPDX-License-Identifier: Apache-2.0
// A validation that several ranks make together, or one in the same parts.
//
//     batches   | 0 1 2 | 3 4 5 | 6 7 . | . . . |    as many parts as a step has micro-batches
//     ranks     | rank 0        | rank 1        |
//     sums       (a + b)    +    (c + d)
//
// The device adds up a part, one batch behind the other, and the host keeps what it came to. All
// ranks gather what all have and add it up in a tree over the parts: the same bits for every number
// of ranks. The last parts of few batches are empty.
#include <stdlib.h>

#include "base/log.h"
#include "gpurt/comm.h"
#include "supervised_parts.h"

bool supervised_check_share(struct grt_supervised *s, uint64_t rows,
                            struct grt_loader_share *share) {
    *share = supervised_share_of(s, grt_comm_rank(s->desc.comm));
    if (share->of == 0) {
        return true;
    }
    uint64_t batch = s->task.learner.batch, batches = (rows + batch - 1) / batch;
    s->parts.batches = (batches + share->of - 1) / share->of;
    s->parts.sums = calloc(share->count, sizeof *s->parts.sums);
    uint32_t each = (uint32_t)s->parts.batches;
    *share = (struct grt_loader_share){share->first * each, share->count * each, share->of * each};
    return s->parts.sums || grt_fail(GRT_NO_MEMORY, "no host memory for a validation");
}

void supervised_check_close(struct grt_supervised *s) {
    free(s->parts.sums);
    s->parts.sums = NULL;
}

uint32_t supervised_check_queued(struct grt_supervised *s, uint64_t batch,
                                 const struct grt_feed_done *done) {
    struct supervised_check *c = &s->parts;
    uint32_t count = supervised_share_of(s, grt_comm_rank(s->desc.comm)).count;
    c->rows += done->samples;
    for (uint32_t i = 0; batch == 0 && i < count; i++) {
        c->sums[i] = (struct supervised_sums){0};
    }
    if (c->batches == 0 || count == 0 || done->steps == 0) {
        return 0;
    }
    bool ends = (batch + done->steps) % c->batches == 0;
    return ends ? (uint32_t)(batch / c->batches % count) + 1 : 0;
}

void supervised_check_keep(struct grt_supervised *s, uint32_t part,
                           const struct grt_learn_state *state) {
    if (part > 0) {
        struct supervised_sums *sums = &s->parts.sums[part - 1];
        sums->loss += state->eval_loss;
        sums->samples += state->eval_samples;
        sums->hits += state->eval_hits;
        sums->near += state->eval_near;
    }
}

// In double precision: the sums are rounded once.
static void add_tree(const struct supervised_sums *parts, double (*room)[4], uint32_t count,
                     struct grt_learn_state *state) {
    for (uint32_t i = 0; i < count; i++) {
        const struct supervised_sums *p = &parts[i];
        room[i][0] = (double)p->loss;
        room[i][1] = (double)p->samples;
        room[i][2] = (double)p->hits;
        room[i][3] = (double)p->near;
    }
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t i = 0; i + width < count; i += 2 * width) {
            for (uint32_t k = 0; k < 4; k++) {
                room[i][k] += room[i + width][k];
            }
        }
    }
    state->eval_loss = (float)room[0][0];
    state->eval_samples = (float)room[0][1];
    state->eval_hits = (float)room[0][2];
    state->eval_near = (float)room[0][3];
}

bool supervised_check_meet(struct grt_supervised *s, bool *stopped) {
    struct grt_comm *comm = s->desc.comm;
    uint32_t ranks = grt_comm_ranks(comm), rank = grt_comm_rank(comm), most = 0;
    uint32_t all = supervised_share_of(s, rank).of;
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t count = supervised_share_of(s, r).count;
        most = count > most ? count : most;
    }
    // Of each rank: its parts, and behind them whether there are all of them.
    uint64_t each = most + 1ull;
    struct supervised_sums *told = calloc((ranks + 1u) * each, sizeof *told);
    struct supervised_sums *parts = calloc(all, sizeof *parts);
    double(*room)[4] = calloc(all, sizeof *room);
    bool good = told && parts && room;
    if (good) {
        struct supervised_sums *own = told + rank * each;
        for (uint32_t i = 0; i < supervised_share_of(s, rank).count; i++) {
            own[i] = s->parts.sums[i];
        }
        own[most].samples = *stopped ? 0 : 1;
        good = grt_comm_gather(comm, told, each * sizeof *told);
    } else {
        grt_fail(GRT_NO_MEMORY, "no host memory for a validation");
    }
    for (uint32_t r = 0; good && r < ranks; r++) {
        struct grt_loader_share share = supervised_share_of(s, r);
        for (uint32_t i = 0; i < share.count; i++) {
            parts[share.first + i] = told[r * each + i];
        }
        *stopped = *stopped || !(told[r * each + most].samples > 0);
    }
    if (good) {
        add_tree(parts, room, all, &s->state);
    }
    free(told);
    free(parts);
    free(room);
    if (!good && (grt_comm_stop(comm) & GRT_STOP_LOST)) {
        *stopped = good = true;  // it is owed, and comes first when the run goes on
    }
    return good;
}
