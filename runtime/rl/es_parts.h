// SPDX-License-Identifier: Apache-2.0
// Inside the learner.
#ifndef GRT_ES_PARTS_H
#define GRT_ES_PARTS_H

#include <stddef.h>

#include "gpurt/ops.h"
#include "gpurt/es.h"
#include "es_work.h"
#include "gpurt/rollout.h"
#include "shaders/es/words.k"

_Static_assert(ES_SCORES == GRT_ROLLOUT_SCORES && ES_RESULTS == GRT_ROLLOUT_RESULTS,
               "gpurt/rollout.h has the rows of shaders/es/words.k");
_Static_assert(offsetof(struct grt_rng_state, seed) == 4 * ES_SEED &&
                   offsetof(struct grt_rng_state, step) == 4 * ES_ITERATION,
               "the buffer `control` is a grt_rng_state");

struct grt_es {
    struct grt_dev *dev;
    struct grt_es_desc desc;  // defaults filled in
    struct grt_plan *plan;
    uint32_t quads;
    // What is learnt, and stays between iterations.
    struct grt_tensor *control;  // a grt_rng_state: the seed, and the iteration as its step
    struct grt_tensor *theta;    // [quads][4]
    struct grt_tensor *moments;  // [2][quads][4], Adam's
    struct grt_tensor *norm;     // [3][obs]: mean, 1/deviation, variance
    struct grt_tensor *report;   // [ES_REPORT]
    // Of one chunk: a lane is an environment of a side.
    struct grt_tensor *state;  // [floats of a state][lanes]
    struct grt_tensor *score;  // [GRT_ROLLOUT_SCORES][lanes]
    struct grt_tensor *sums;   // [2 obs][lanes]
    struct grt_tensor
        *policies;  // [sides][quads][4] where shared memory does not hold a policy, else NULL
    struct grt_tensor *results;  // [GRT_ROLLOUT_RESULTS + 2 obs][sides in all]
    struct grt_tensor *weight;   // [dirs]
    struct grt_tensor *used;     // [dirs]
    struct grt_tensor *trial;    // a grt_rng_state of its own, for evaluation
    struct grt_buf *readback;    // ES_REPORT floats, or the results of an evaluation
    uint32_t at_once;            // steps of one launch
    double step_seconds;         // of a launch, for each step, as measured
    struct es_work iteration, evaluation;
    struct es_work update;           // of several ranks, behind the exchange
    uint32_t first_dir, dir_count;   // that this rank rolls out
    uint32_t losses;                 // of ranks, when directions were dealt out
    float *exchanged, *all_results;  // of several ranks: blocks of columns, and all of `results`
    bool compared;                   // the weights of all ranks, before the first update
    float *average, *newest;         // with ema, on the host: like theta; newest: room for a copy
    uint32_t done;                   // iterations
    uint32_t iterated;               // the same of this process: `results` has the newest
};

// Reads and writes all of a tensor.
bool grt_es_read(const struct grt_tensor *tensor, void *data);
bool grt_es_write(const struct grt_tensor *tensor, const void *data);

// ---- es_ranks.c ----

// Chooses the directions of this rank. False with the sentence.
bool grt_es_share(struct grt_es *es);
// Whether ranks are gone since, and the others go on: directions are to be dealt out anew.
bool grt_es_thinned(const struct grt_es *es);
// Behind the rollouts of this rank: all results, of all directions. *stopped: the iteration is
// given up by all ranks. *again: a rank is gone, and the others begin it anew.
bool grt_es_exchange(struct grt_es *es, bool *stopped, bool *again);
// Behind the update: what the first rank reports, and now and then whether all have its weights.
bool grt_es_settle(struct grt_es *es, struct grt_es_report *report);

// es_average.c: with ema, the running average of the policies; without, all of these do nothing.
// It begins with the policy that there is.
bool grt_es_average_begin(struct grt_es *es);
// Adds the policy of an iteration.
bool grt_es_average_add(struct grt_es *es);
// The learner has the average as its policy, or its own again: around evaluations.
bool grt_es_average_in(struct grt_es *es, bool in);

#endif
