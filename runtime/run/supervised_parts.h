// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: a run of supervised training.
#ifndef GRT_SUPERVISED_PARTS_H
#define GRT_SUPERVISED_PARTS_H

#include "learn/snapshot.h"
#include "gpurt/feed.h"
#include "base/lock.h"
#include "gpurt/supervised.h"

#define SUPERVISED_ROLLBACKS 3  // then the run ends

// What a run has come to besides tensors; all of it is in a checkpoint.
struct supervised_place {
    uint64_t step;
    struct grt_loader_position position;
    double epoch_loss;  // sum over the samples of the running epoch
    uint64_t epoch_samples;
    double best_loss;      // of validation, or of training without one
    uint64_t best_epoch;   // from 1; 0: none yet
    double best_accuracy;  // of classes; 0: none yet
    struct grt_patience patience;
};

struct grt_supervised {
    struct grt_supervised_desc desc;
    struct grt_task task;
    struct grt_learner *learner;
    struct grt_loader *train_loader, *check_loader;  // check: validation, NULL without one
    struct grt_feed *train, *check;
    struct grt_snapshot *snapshot;
    struct grt_learn_state state;  // of the learner, at `place`
    struct grt_runlog *log;
    struct grt_lock lock;  // on the folder of checkpoints
    uint64_t data_digest;
    double data_seconds, cache_seconds, learner_seconds;
    char cache_why[2 * GRT_CACHE_WHY + 32];
    uint64_t steps_per_epoch, steps;
    uint64_t start;
    struct grt_limits limits;
    double spent;  // seconds of training before this process
    double began;  // when grt_supervised_run() did; 0: not yet
    enum grt_ending ended;
    struct supervised_place place;
    uint32_t rollbacks;
    uint64_t saved_step;  // of the newest checkpoint of this run; UINT64_MAX: none
    bool unsaved;         // the newest checkpoint could not be written
    bool best_unsaved;    // the same of the best one
    bool earlier;         // the folder has checkpoints of an earlier run
    // Made and not yet written, since one was a moment ago; a newer one takes its place.
    struct grt_archive *pending, *pending_best;
    uint64_t pending_step;
    double written;  // when the newest was
};

// Whether an epoch, or the run, ended and its validation was stopped: it comes first when the run goes on.
static inline bool supervised_owes_check(const struct grt_supervised *run) {
    const struct supervised_place *p = &run->place;
    return p->step > 0 && p->epoch_samples > 0 && (p->position.batch == 0 || p->step >= run->steps);
}
// Why there is nothing more to do, or NONE.
enum grt_ending supervised_ending(const struct grt_supervised *run);
// Seconds of training so far.
double supervised_seconds(const struct grt_supervised *run);
// Whether the disk lacks something that the run has to leave there.
static inline bool supervised_lost(const struct grt_supervised *run) {
    return run->unsaved || run->best_unsaved;
}

// Whether the rows are on the device.
bool supervised_on_device(const struct grt_supervised *run);
void supervised_say(struct grt_supervised *run, enum grt_supervised_news news, const char *text);
// Ends of epochs may follow each other in milliseconds, and a file takes longer to reach the disk. So what they
// leave is written at most once in this many seconds.
#define SUPERVISED_WRITE_SECONDS 1.0

// The checkpoint of the present place, which the newest whole snapshot is of; `now`: is written at once, like one
// whose last is long enough ago. False when it could not be written; the sentence was said.
bool supervised_save(struct grt_supervised *run, bool now);
// Besides, as the best so far.
bool supervised_save_best(struct grt_supervised *run);
// Moves the checkpoints of an earlier run aside, before the first of this one.
bool supervised_clear_dir(struct grt_supervised *run);
// Writes what waits: once it has waited long enough, or in any case.
bool supervised_write_due(struct grt_supervised *run);
bool supervised_flush(struct grt_supervised *run);
// Back to what an archive holds.
bool supervised_restore(struct grt_supervised *run, const struct grt_archive *archive);
// To the first step, with the first parameters.
bool supervised_restart(struct grt_supervised *run);

// What the sums of evaluations in the learner's state come to.
void supervised_tally(const struct grt_learner *learner, const struct grt_learn_state *state,
                      struct grt_evaluation *evaluation);

#endif
