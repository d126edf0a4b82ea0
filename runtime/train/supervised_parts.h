// SPDX-License-Identifier: Apache-2.0
// Inside runtime/train: a run of supervised training.
#ifndef GRT_SUPERVISED_PARTS_H
#define GRT_SUPERVISED_PARTS_H

#include "feed.h"
#include "supervised.h"

#define SUPERVISED_ROLLBACKS 3  // then the run ends

// What a run has come to besides tensors; all of it is in a checkpoint.
struct supervised_place {
    uint64_t step;
    struct grt_loader_position position;
    double epoch_loss;  // sum over the samples of the running epoch
    uint64_t epoch_samples;
    double best_loss;     // of validation, or of training without one
    uint64_t best_epoch;  // from 1; 0: none yet
};

struct grt_supervised {
    struct grt_supervised_desc desc;
    struct grt_task task;
    struct grt_learner *learner;
    struct grt_loader *train_loader, *check_loader;  // check: validation, NULL without one
    struct grt_feed *train, *check;
    struct grt_runlog *log;
    uint64_t steps_per_epoch, steps;
    uint64_t start;
    struct supervised_place place;
    uint32_t rollbacks;
    uint64_t saved_step;  // of the newest checkpoint of this run; UINT64_MAX: none
    bool unsaved;         // the newest checkpoint could not be written
};

// Whether an epoch ended whose validation was stopped: it comes first when the run goes on.
static inline bool supervised_owes_check(const struct supervised_place *p) {
    return p->step > 0 && p->position.batch == 0 && p->epoch_samples > 0;
}

void supervised_say(struct grt_supervised *run, enum grt_supervised_news news, const char *text);
// The checkpoint of the present place.
bool supervised_save(struct grt_supervised *run);
// Besides, as the best so far.
bool supervised_save_best(struct grt_supervised *run);
// Back to what an archive holds.
bool supervised_restore(struct grt_supervised *run, const struct grt_archive *archive);
// To the first step, with the first parameters.
bool supervised_restart(struct grt_supervised *run);

// Sums of evaluations in the learner's state.
bool supervised_tally_end(struct grt_learner *learner, struct grt_evaluation *evaluation);

#endif
