// SPDX-License-Identifier: Apache-2.0
// How many rows a minibatch has. Idle rows are left out of minibatches, so their size follows from
// how many rows of an iteration count. Graphs are recorded for sizes of a ladder:
//
//     rung       0      1     ...   LADDER - 1   WHOLE
//     places     1/32   2/32        all          all, the last minibatch has what is left
//                of a minibatch whose rows all count, rounded up to a multiple of PIECE
//
// An iteration takes the lowest rung on which its rows have room; places that are left over are
// filled with idle rows (ppo_order). WHOLE is for iterations whose rows all count: nothing is left
// over there. Another rung costs the time of recording alone, as all have the same kernels: half a
// millisecond for an epoch of four minibatches, on two cores. Rows become fewer from iteration to
// iteration while a policy learns, so the next rungs are recorded while the device collects.
#include <stdlib.h>

#include "base/log.h"
#include "ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

enum { LADDER = 32, WHOLE = LADDER, RUNGS };
#define AHEAD 3    // rungs
#define PIECE 128  // rows: what kernels of matrices take at once

static uint64_t rows_on(const struct grt_ppo *ppo, uint32_t rung) {
    uint64_t parts = rung < LADDER ? rung + 1 : LADDER;
    uint64_t rows = (ppo->batch * parts + LADDER - 1) / LADDER;
    rows = (rows + PIECE - 1) / PIECE * PIECE;
    return rows < ppo->batch ? rows : ppo->batch;
}

static uint32_t rung_of(const struct grt_ppo *ppo, uint64_t counting) {
    uint64_t share = (counting + ppo->batches - 1) / ppo->batches;
    uint32_t rung = 0;
    while (rung < LADDER - 1 && rows_on(ppo, rung) < share) {
        rung++;
    }
    // Where the minibatches are alike, the highest rungs are the same.
    bool alike = ppo->batches * ppo->batch == ppo->count;
    return rows_on(ppo, rung) == ppo->batch && (alike || counting == ppo->count) ? WHOLE : rung;
}

bool grt_ppo_take_rung(struct grt_ppo *ppo) {
    uint32_t norms[PPO_NORMS];
    if (!grt_ppo_hear(ppo, ppo->norms, norms)) {
        return false;
    }
    ppo->rung = rung_of(ppo, norms[PPO_COUNT]);
    return true;
}

struct ppo_epoch grt_ppo_epoch_of(const struct grt_ppo *ppo, uint32_t number) {
    uint64_t rows = rows_on(ppo, ppo->rung);
    return (struct ppo_epoch){.number = number,
                              .rows = rows,
                              .places = ppo->rung == WHOLE ? ppo->count : ppo->batches * rows};
}

struct grt_graph *grt_ppo_epoch(struct grt_ppo *ppo, uint32_t number) {
    struct grt_graph **graph = &ppo->epochs[ppo->rung * ppo->desc.epochs + number];
    if (!*graph) {
        const struct ppo_epoch epoch = grt_ppo_epoch_of(ppo, number);
        *graph = grt_ppo_make_epoch(ppo, &epoch);
        // What others took says how long it takes: its first run need not be waited for.
        if (*graph && ppo->place_seconds > 0) {
            grt_graph_expect(*graph, ppo->place_seconds * (double)epoch.places);
        }
    }
    return *graph;
}

struct grt_graph *grt_ppo_batch(struct grt_ppo *ppo, uint32_t batch) {
    struct grt_graph **graph = &ppo->shared[ppo->rung * ppo->batches + batch];
    if (!*graph) {
        const struct ppo_epoch epoch = grt_ppo_epoch_of(ppo, 0);
        *graph = grt_ppo_make_batch(ppo, &epoch, batch);
    }
    return *graph;
}

void grt_ppo_foresee(struct grt_ppo *ppo) {
    const uint32_t newest = ppo->rung;
    uint32_t below = newest == WHOLE ? LADDER - 1 : newest;
    for (uint32_t i = 0; i < AHEAD && below > 0; i++) {
        ppo->rung = --below;
        grt_ppo_epoch(ppo, 0);  // one that fails is tried again, and said, when it is wanted
    }
    ppo->rung = newest;
}

bool grt_ppo_rungs_begin(struct grt_ppo *ppo) {
    ppo->epochs = calloc((size_t)RUNGS * ppo->desc.epochs, sizeof(struct grt_graph *));
    ppo->shared = calloc((size_t)RUNGS * ppo->batches, sizeof(struct grt_graph *));
    if (!ppo->epochs || !ppo->shared) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for PPO");
    }
    ppo->rung = WHOLE;
    bool ok = true;
    for (uint32_t i = 0; ok && i < ppo->desc.epochs; i++) {
        ok = grt_ppo_epoch(ppo, i) != NULL;
    }
    return ok;
}

void grt_ppo_rungs_end(struct grt_ppo *ppo) {
    for (uint32_t i = 0; ppo->epochs && i < RUNGS * ppo->desc.epochs; i++) {
        grt_graph_destroy(&ppo->epochs[i]);
    }
    for (uint32_t i = 0; ppo->shared && i < RUNGS * ppo->batches; i++) {
        grt_graph_destroy(&ppo->shared[i]);
    }
    free(ppo->epochs);
    free(ppo->shared);
    ppo->epochs = ppo->shared = NULL;
}
