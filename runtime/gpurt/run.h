// SPDX-License-Identifier: Apache-2.0
// One way to run: a trainer learns, and a run drives it.
//
//     trainer   what is learnt: steps, an evaluation, its state in an archive. A table of functions
//     run       all around it: loop, limits, targets, checkpoints, resume, log, how it ended
//     report    a hook that gets every row of the log, and what is for people only
//
//     create    checks and locks the places that are written, before anything is made
//     begin     takes the trainer; with resume, its newest whole checkpoint
//     go        steps, evaluations and checkpoints, to the end
//
// The log has one schema for every kind of training. Each row has event, time (seconds since 1970)
// and step (updates of the parameters so far), and fields of GRT_RUN_FIELDS. The table of
// docs/training.md says which; tests/cli/train/log_schema.py checks logs against it.
#ifndef GRT_RUN_H
#define GRT_RUN_H

#include "comm.h"
#include "device.h"
#include "limits.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- rows ----

// X(NAME, "word")
#define GRT_RUN_EVENTS(X)                                                                          \
    X(START, "start")                                                                              \
    X(TRAIN, "train")         /* the steps since the last row of it */                             \
    X(EVALUATE, "evaluate")   /* what was learnt so far, on samples or starts of its own */        \
    X(BASELINE, "baseline")   /* something simple, for comparison */                               \
    X(TIMING, "timing")       /* a part of the time of all steps, after the end */                 \
    X(MONITOR, "monitor")     /* sensors of the device, since the last row of it */                \
    X(NONFINITE, "nonfinite") /* a tensor that is not finite */                                    \
    X(ROLLBACK, "rollback")   /* back to `step` */                                                 \
    X(END, "end")

enum grt_run_event {
#define X(name, word) GRT_RUN_##name,
    GRT_RUN_EVENTS(X)
#undef X
        GRT_RUN_EVENT_COUNT,
};
GRT_API const char *grt_run_event_word(enum grt_run_event event);

// Every field of a row. X(NAME, "word")
#define GRT_RUN_FIELDS(X)                                                                          \
    X(KIND, "kind")             /* text: of the training */                                        \
    X(DEVICE, "device")         /* text */                                                         \
    X(PARAMETERS, "parameters") /* how many */                                                     \
    X(SEED, "seed")                                                                                \
    X(STEPS, "steps")           /* in all */                                                       \
    X(PRECISION, "precision")   /* text */                                                         \
    X(BATCH, "batch")           /* samples of a step */                                            \
    X(ACCUMULATE, "accumulate") /* micro-batches of a step */                                      \
    X(ENV, "env")               /* text */                                                         \
    X(POLICY, "policy")         /* text: its kind */                                               \
    X(ALGO, "algo")             /* text */                                                         \
    X(PHASE, "phase")           /* of the environment */                                           \
    X(NUM_ENVS, "num_envs")                                                                        \
    X(NUM_DIRS, "num_dirs")                                                                        \
    X(EPISODE_LENGTH, "episode_length")                                                            \
    X(EPOCH, "epoch") /* from 1 */                                                                 \
    X(LOSS, "loss")                                                                                \
    X(ACCURACY, "accuracy") /* share of the samples whose class was found */                       \
    X(KNN, "knn")           /* the same by nearest neighbours, without a layer trained for it */   \
    X(TOP5, "top5")         /* the same, among the five likeliest */                               \
    X(TRAIN_LOSS, "train_loss")   /* of an evaluation: of training since the one before */         \
    X(RETURN, "return")           /* mean sum of the rewards of an episode */                      \
    X(BEST_RETURN, "best_return") /* of the best direction */                                      \
    X(GOOD_RATE, "good_rate")     /* share of the steps that the environment calls good */         \
    X(FALLS, "falls")             /* an episode */                                                 \
    X(LENGTH, "length")           /* mean steps of an episode */                                   \
    X(EPISODES, "episodes")       /* that ended */                                                 \
    X(POLICY_LOSS, "policy_loss") /* of PPO, as those below */                                     \
    X(VALUE_LOSS, "value_loss")                                                                    \
    X(ENTROPY, "entropy")                                                                          \
    X(KL, "kl")               /* of the policy before and after, about */                          \
    X(CLIP_RATE, "clip_rate") /* share of the rows whose ratio was clipped */                      \
    X(EXPLAINED, "explained") /* share of the returns' variance that values explain */             \
    X(TERM_1, "term_1")       /* of the environment or of a loss: see grt_run_start.terms */       \
    X(TERM_2, "term_2")                                                                            \
    X(TERM_3, "term_3")                                                                            \
    X(TERM_4, "term_4")                                                                            \
    X(LR, "lr")                                                                                    \
    X(LR_FACTOR, "lr_factor") /* of the learning rate, from here on */                             \
    X(GRAD_NORM, "grad_norm")                                                                      \
    X(GRAD_NOISE, "grad_noise") /* samples of a step that gradients want */                        \
    X(LOSS_SCALE, "loss_scale")                                                                    \
    X(SKIPPED, "skipped") /* steps without an update, in all */                                    \
    X(SAMPLES_PER_S, "samples_per_s")                                                              \
    X(STEPS_PER_S, "steps_per_s") /* of environments */                                            \
    X(DATA_SHARE, "data_share")   /* of the time: waiting for data */                              \
    X(EXPOSED, "exposed")         /* seconds of an exchange of ranks behind backward */            \
    X(GPU, "gpu")                 /* share of the time that the device computed */                 \
    X(MEMORY, "memory")           /* bytes on the device */                                        \
    X(BEST, "best")               /* 1: the best evaluation so far, else 0 */                      \
    X(BASELINE, "baseline")       /* text: what it is */                                           \
    X(PART, "part")               /* text: of the time */                                          \
    X(PART_SECONDS, "part_seconds")                                                                \
    X(SHARE, "share")               /* of the time of all steps */                                 \
    X(UTILISATION, "utilisation")   /* share of the time that the device worked */                 \
    X(MEMORY_USED, "memory_used")   /* bytes on the device, of all processes: the most */          \
    X(POWER, "power")               /* watts, on the mean */                                       \
    X(TEMPERATURE, "temperature")   /* degrees Celsius, the highest */                             \
    X(CLOCK, "clock")               /* of the cores in MHz, on the mean */                         \
    X(ENERGY, "energy")             /* joules */                                                   \
    X(EPOCH_ENERGY, "epoch_energy") /* the same since the evaluation before */                     \
    X(TENSOR, "tensor")             /* text: its name */                                           \
    X(ENDED, "ended")               /* text: a word of GRT_ENDINGS */                              \
    X(SECONDS, "seconds")           /* since this process began to train */

enum grt_run_field {
#define X(name, word) GRT_FIELD_##name,
    GRT_RUN_FIELDS(X)
#undef X
        GRT_FIELD_COUNT,  // at most 64: a row has them as bits
};
GRT_API const char *grt_run_field_word(enum grt_run_field field);

struct grt_run_row {
    enum grt_run_event event;
    uint64_t step, steps;  // done, and in all: filled by the run
    uint64_t epochs;       // in all; 0: there are none
    double eta;            // seconds to the end; 0: not known yet: filled by the run
    double score;          // EVALUATE: more is better
    uint64_t known;        // bits: fields that it has
    double numbers[GRT_FIELD_COUNT];
    const char *texts[GRT_FIELD_COUNT];
};
GRT_API void grt_run_row_set(struct grt_run_row *row, enum grt_run_field field, double number);
GRT_API void grt_run_row_text(struct grt_run_row *row, enum grt_run_field field, const char *text);
GRT_API bool grt_run_row_has(const struct grt_run_row *row, enum grt_run_field field);

// ---- reports ----

#define GRT_RUN_NEWS(X)                                                                            \
    X(WORK)       /* something long before the first step; text: what */                           \
    X(RESUMED)    /* text: the checkpoint's path */                                                \
    X(BEGUN)      /* the first step was done: from here on there is something to lose */           \
    X(PROGRESS)   /* row: of TRAIN, between those of the log */                                    \
    X(ROW)        /* row: one of the log */                                                        \
    X(TURN)       /* all rows of the newest steps were told */                                     \
    X(CHECKPOINT) /* text: its path; it is on the disk */                                          \
    X(FAULT)      /* text: what went wrong; the run may go on */                                   \
    X(NOTE)       /* text */

enum grt_run_news {
#define X(name) GRT_RUN_NEWS_##name,
    GRT_RUN_NEWS(X)
#undef X
        GRT_RUN_NEWS_COUNT,
};

struct grt_run_report {
    enum grt_run_news news;
    uint64_t step, steps;
    const struct grt_run_row *row;  // ROW, PROGRESS
    const char *text;
};

// ---- trainers ----

struct grt_run;

// How far a run is. All of it is in a checkpoint, or follows from it.
struct grt_run_place {
    uint64_t step;
    uint64_t evaluated;  // step of the newest evaluation
    uint64_t judged;     // step of the newest one that patience has counted
    bool any_best;
    double best_score;  // of evaluations; more is better
    uint64_t best_step;
    struct grt_patience patience;
    bool reached;  // a target was
};

struct grt_run_turn {
    bool more;                // in: false: nothing new is begun
    bool idle;                // out: there was nothing to do
    bool evaluate;            // out: evaluate, though it is not due
    enum grt_ending trouble;  // out: FAILED or NONFINITE: the run ends by it
};

struct grt_trainer {
    const char *kind;     // "supervised"
    enum grt_ending all;  // why it ends when all steps are done: EPOCHS, ITERATIONS
    bool tries_first;     // is evaluated before its first step too, and when it is resumed
    bool keeps_best;      // its best evaluation is kept besides the newest checkpoints
    // save() is an exchange between all ranks: where one is gone, the checkpoint before is left.
    bool saves_together;
    // Given, tensors that are not finite are not saved: they end the run, with this advice. NULL:
    // the trainer sees to that itself.
    const char *remedy;

    // Learns, moves grt_run_place()->step on, and tells the rows of its steps. Returns after a few
    // steps, and at the first where something is due. Work may be queued far ahead: grt_run_due()
    // says what follows, grt_run_decides() whether an evaluation may be the end. Without `more` it
    // brings what it has begun to an end: it is called until it is idle. Idle with trouble FAILED:
    // no more can be learnt, such as when the data failed, and what was learnt is saved. False,
    // with the sentence said: nothing more is asked of it; trouble may be NONFINITE, else it is
    // FAILED.
    bool (*advance)(void *self, struct grt_run *run, struct grt_run_turn *turn);
    // At a step where it is due, or when the trainer was idle: fills fields and score. *stopped: it
    // was given up, since `more` was false or the run was stopped. With steps queued behind it, it
    // is done all the same.
    bool (*evaluate)(void *self, struct grt_run *run, bool more, struct grt_run_row *row,
                     bool *stopped);
    // An evaluation that was due was counted, with the score that all ranks have; it is saved, and
    // more is learnt, behind this. May be NULL; false with the sentence ends the run.
    bool (*judged)(void *self, struct grt_run *run, const struct grt_run_row *row);
    // At a step where it is due, or when the trainer was idle. The run adds what is its own.
    bool (*save)(void *self, const struct grt_run *run, struct grt_archive *archive);
    // Takes it over, or refuses with the sentence. `place` has what the run itself kept; the
    // trainer sets its step, and may correct the rest.
    bool (*load)(void *self, const struct grt_run *run, const struct grt_archive *archive,
                 struct grt_run_place *place);
};

// What a trainer may ask and tell its run.
GRT_API struct grt_run_place *grt_run_place(struct grt_run *run);
enum grt_run_due { GRT_DUE_EVALUATE = 1, GRT_DUE_SAVE = 2 };
// What has to be done after a step: bits.
GRT_API uint32_t grt_run_due(const struct grt_run *run, uint64_t step);
// Steps from one to the next at which something is due, or to the last: 0 there.
GRT_API uint64_t grt_run_ahead(const struct grt_run *run, uint64_t step);
// Whether an evaluation may end the run.
GRT_API bool grt_run_decides(const struct grt_run *run);
GRT_API bool grt_run_asked_to_stop(const struct grt_run *run);
// A row for the log: adds seconds and, where they belong, memory.
GRT_API void grt_run_tell(struct grt_run *run, struct grt_run_row *row);
// The same, for the hook only.
GRT_API void grt_run_progress(struct grt_run *run, struct grt_run_row *row);
GRT_API void grt_run_say(struct grt_run *run, enum grt_run_news news, const char *text);
// Back to the newest checkpoint that this run has written or begun with. *none: there is none, and
// nothing was done.
GRT_API bool grt_run_back(struct grt_run *run, bool *none);

// ---- runs ----

#define GRT_RUN_TARGETS 4
// The run ends when an evaluation has this.
struct grt_run_target {
    enum grt_run_field field;
    double value;
    bool below;  // at most the value; else at least
};

struct grt_run_desc {
    // Checkpoints: a folder (checkpoint.h) with the newest `keep` and the best, or one file that is
    // replaced. They are made at their step and written by a thread, one at a time, while the run
    // goes on. It calls HDF5: a hook that calls HDF5 itself, and not gpurt, needs a library that
    // was built thread-safe.
    const char *dir;
    uint32_t keep;
    const char *file;
    uint64_t save_every;  // steps between checkpoints; 0: after evaluations, at most twice a second
    bool resume;          // of a folder: go on from its newest whole checkpoint
    const char *log, *tensorboard;  // see runlog.h; NULL or "": none
    struct grt_limits limits;
    // The ranks that train together, or NULL. The first alone writes; all stop behind the same
    // vote, which the trainer holds once a step, and what the first found decides.
    struct grt_comm *comm;
    bool (*stop)(void *context);  // asked between steps; may be NULL
    void (*report)(void *context, const struct grt_run_report *report);  // may be NULL
    void *context;
};

// Makes nothing but locks; NULL with the sentence where one of the places cannot be written.
GRT_API struct grt_run *grt_run_create(const struct grt_run_desc *desc);
GRT_API void grt_run_destroy(struct grt_run **run);

#define GRT_RUN_TERMS 4
struct grt_run_start {
    const struct grt_trainer *trainer;
    void *self;  // of the trainer
    struct grt_dev *dev;
    uint64_t steps;           // in all
    uint64_t max_steps;       // 0: no limit besides
    uint64_t evaluate_every;  // steps; 0: only at the end
    uint64_t epoch;           // steps of one; 0: there are none
    struct grt_run_target targets[GRT_RUN_TARGETS];
    uint32_t target_count;
    const struct grt_archive *from;    // the checkpoint that is gone on with, or NULL
    const char *terms[GRT_RUN_TERMS];  // words of TERM_1, ... in the log; NULL: as they are
    const char *score;  // what the score of evaluations is; of "loss", less 0. NULL: "score"
    const struct grt_config *config;  // for TensorBoard; used by grt_run_go(); may be NULL
    // More fields of the row `start`; may be NULL. Copied; texts live as long as the run.
    const struct grt_run_row *about;
};
GRT_API bool grt_run_begin(struct grt_run *run, const struct grt_run_start *start);
// Why it ended. FAILED has said its sentence.
GRT_API enum grt_ending grt_run_go(struct grt_run *run);

struct grt_run_info {
    const struct grt_trainer *trainer;
    uint64_t start, step, steps;  // that it begins with, is at, and in all
    uint64_t epoch;               // of grt_run_start
    enum grt_ending ended;        // NONE: there is something left to do
    struct grt_run_place place;
    double seconds;     // since this process began to train
    bool log_failed;    // rows of the log were lost
    const char *where;  // checkpoints are: the folder, or the file
    const char *score;  // of grt_run_start
    uint32_t keep;      // newest ones that a folder keeps; 0: it is a file, or all are kept
};
GRT_API struct grt_run_info grt_run_info(const struct grt_run *run);

#ifdef __cplusplus
}
#endif
#endif
