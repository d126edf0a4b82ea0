// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: supervised training as a trainer (run.h).
#ifndef GRT_SUPERVISED_PARTS_H
#define GRT_SUPERVISED_PARTS_H

#include "learn/snapshot.h"
#include "gpurt/feed.h"
#include "gpurt/supervised.h"
#include "plateau.h"

#define SUPERVISED_ROLLBACKS 3  // then the run ends
// A stop is obeyed within 0.25 s, or a step where one takes longer: seconds of a segment of steps.
#define SUPERVISED_ROOM (0.25 / GRT_SNAPSHOT_SLOTS)

// What a training has come to besides tensors and the place of its run; all of it is in a
// checkpoint.
struct supervised_place {
    struct grt_loader_position position;
    double epoch_loss;  // sum over the samples of the running epoch
    uint64_t epoch_samples;
    uint64_t epoch_idle;   // of these: in steps whose weights are all 0
    double best_accuracy;  // of classes; 0: none yet
    struct plateau plateau;
};

// Of the gradient noise scale: its trace of the covariance over its square of the true gradient.
struct supervised_noise {
    double trace, square;
};

// Time and work since the last report of a kind.
struct supervised_meter {
    double start, stalled;
    uint64_t samples;
};

// Steps that were queued together: of training, or of the validation.
struct supervised_segment {
    bool checks;    // of the validation
    bool fed;       // false: the data failed
    bool ends;      // where a validation is due, or the run; of the validation, all of it
    bool whole;     // its snapshot has the tensors
    uint32_t part;  // of the validation that ends with it, from 1 on; 0: none
    struct grt_feed_done done;
};

struct supervised_loop {
    struct supervised_meter step, epoch;
    double now;   // time as far as it was settled
    bool begun;   // the first step was settled, or tried before
    bool apart;   // the meters begin anew: the first step is no part of any rate
    double loss;  // sum over the samples since the last log line
    uint64_t loss_samples, loss_idle;
    double losses[GRT_LOSS_MOST];   // of several losses, the same
    struct supervised_noise noise;  // the same
    double newest_loss;
    double step_seconds, check_seconds;  // of a step; 0: not known yet

    struct supervised_segment ring[GRT_SNAPSHOT_SLOTS];
    uint32_t first, count;  // queued and not settled
    uint64_t queued;        // steps that were queued
    bool checking;          // what is queued next is of the validation
    uint32_t whole_out;     // snapshots of the tensors that are not settled
    // What is not settled may end the run, or change the learning rate.
    bool undecided;
    bool failed;  // the data did
};

struct supervised_ranks;

// What evaluations of some samples come to; the sums of struct grt_learn_state.
struct supervised_sums {
    float loss, samples, hits, near;
};

// A validation in parts, of which ranks have their share.
struct supervised_check {
    uint64_t batches;              // of a part; 0: it is one
    struct supervised_sums *sums;  // of this rank's parts
    uint64_t rows;                 // that this rank evaluated, of all validations
};

struct grt_supervised {
    struct grt_task_taken taken;  // of desc.from
    struct grt_supervised_desc desc;
    struct grt_config settings;  // a copy of desc.config: texts of the run are in it
    struct grt_task task;
    struct grt_task apart;  // of validation_data; without data where there is none
    struct grt_learner *learner;
    struct grt_loader *train_loader, *check_loader;  // check: validation, NULL without one
    struct grt_feed *train, *check;                  // train: NULL with ranks
    struct supervised_check parts;                   // of the validation, with ranks
    struct supervised_ranks *ranks;  // steps in micro-batches that ranks share out, or NULL
    uint32_t step_rows;              // samples of a step, of all ranks
    struct grt_snapshot *snapshot;
    struct grt_learn_state state;  // of the learner, at `place`
    struct grt_run *driver;
    uint64_t data_digest;
    double data_seconds, cache_seconds, learner_seconds;
    char cache_why[2 * GRT_CACHE_WHY + 32];
    uint64_t steps_per_epoch, steps;
    uint64_t check_every;  // steps between validations
    double baseline;       // accuracy; negative: there is none
    bool baseline_told;
    struct supervised_place place;
    struct supervised_loop loop;
    uint64_t whole_step;  // that the newest settled snapshot of the tensors is of; UINT64_MAX: none
    uint32_t rollbacks;
    bool falls;                        // schedule plateau
    struct plateau_desc plateau_desc;  // of it
    float lr_factor;                   // that the next step has
    uint64_t knn_every;                // epochs between trials by nearest neighbours; 0: none
};

// Whether a validation was due at `step`, or the run ended there, and it was stopped: it comes
// first when the run goes on.
static inline bool supervised_owes(const struct grt_supervised *s, uint64_t step) {
    const struct supervised_place *p = &s->place;
    return step > 0 && p->epoch_samples > 0 && (step % s->check_every == 0 || step >= s->steps);
}

// Whether the rows are on the device.
bool supervised_on_device(const struct grt_supervised *s);

// What the run is given: supervised_run.c and supervised_state.c.
bool supervised_advance(void *self, struct grt_run *run, struct grt_run_turn *turn);
bool supervised_evaluate(void *self, struct grt_run *run, bool more, struct grt_run_row *row,
                         bool *stopped);
bool supervised_judged(void *self, struct grt_run *run, const struct grt_run_row *row);
bool supervised_save(void *self, const struct grt_run *run, struct grt_archive *archive);
bool supervised_load(void *self, const struct grt_run *run, const struct grt_archive *archive,
                     struct grt_run_place *place);
// Gives the learner the tensors that the run is to begin with.
bool supervised_begin_with(struct grt_supervised *run);
// To the first step, with the first parameters.
bool supervised_restart(struct grt_supervised *s);
// The queue is empty, and goes on from this step.
void supervised_begin_queue(struct grt_supervised *s, uint64_t step);

// Finds out whether there are trials by nearest neighbours.
void supervised_begin_knn(struct grt_supervised *s);
// Whether the epoch that ends with a step is tried.
bool supervised_knn_due(const struct grt_supervised *s, uint64_t step);
// Makes one where it is due: the share that is right, or below 0. *stopped: somebody asked for it.
double supervised_knn(struct grt_supervised *s, const struct grt_run *run, bool *stopped);

// ---- supervised_ranks.c ----

// A batch that was given for each device becomes that of all.
void supervised_multiply_batch(struct grt_supervised *s);
// Whether all ranks have the same settings; then which micro-batches of a step are this one's.
bool supervised_share_out(struct grt_supervised *s);
// The smallest micro-batch that any rank needs is that of all.
bool supervised_agree_memory(struct grt_supervised *s);
// Where `rank_shares` says so: each rank is timed, and micro-batches are dealt out anew.
bool supervised_share_by_speed(struct grt_supervised *s);
// The run of micro-batches that memory is planned for.
void supervised_share_planned(const struct grt_supervised *s, uint32_t *first, uint32_t *count);
// Of a rank: the number that all make is in `of`.
struct grt_loader_share supervised_share_of(const struct grt_supervised *s, uint32_t rank);
uint32_t supervised_micro_batches(const struct grt_supervised *s);
uint64_t supervised_steps_per_epoch(const struct grt_supervised *s);
bool supervised_ranks_open(struct grt_supervised *s);
void supervised_ranks_close(struct grt_supervised *s);
// Steps as of grt_feed_run(); fewer where a rank is gone or asked to stop.
bool supervised_ranks_run(struct grt_supervised *s, uint32_t most, struct grt_feed_done *done);
// Seconds of a step's exchange behind the end of backward, on the rank where they are least: the
// others wait for it. The mean since the last call; below 0: there are none. All ranks call it.
bool supervised_exposed(struct grt_supervised *s, double *seconds);
// Of a step from 0 on, one of the newest, by the length of its gradient; 0 where it cannot be told.
struct supervised_noise supervised_noise_of(const struct grt_supervised *s, uint64_t step,
                                            double norm);
// Where the next step begins, of training.
bool supervised_seek(struct grt_supervised *s, struct grt_loader_position position);

// ---- supervised_check.c ----

// Which batches of a validation of so many samples are this rank's, and memory for their sums;
// false with the sentence.
bool supervised_check_share(struct grt_supervised *s, uint64_t rows,
                            struct grt_loader_share *share);
void supervised_check_close(struct grt_supervised *s);
// Steps of the validation were queued, from a batch on; the part that they end.
uint32_t supervised_check_queued(struct grt_supervised *s, uint64_t batch,
                                 const struct grt_feed_done *done);
// What a part came to.
void supervised_check_keep(struct grt_supervised *s, uint32_t part,
                           const struct grt_learn_state *state);
// Behind the last: the sums of all ranks become those of the state. *stopped: this rank has not
// evaluated all of its parts; then, whether any has not, or is gone.
bool supervised_check_meet(struct grt_supervised *s, bool *stopped);

// ---- supervised_hints.c ----

// Says in a line each what of the data was hardly meant: images whose channels come first, and
// classes of which one is empty or the only one.
void supervised_hint(const struct grt_supervised *s);

// Of samples that have weights: all 0 have no mean. False with the sentence.
bool supervised_weighs(const struct grt_task *task, double weight);
// What the sums of evaluations in the learner's state come to.
void supervised_tally(const struct grt_learner *learner, const struct grt_learn_state *state,
                      struct grt_evaluation *evaluation);

#endif
