// SPDX-License-Identifier: Apache-2.0
// Supervised training: a config, its data and a device become a run that can be stopped, resumed and
// looked at.
//
//     create    opens the data, plans memory, allocates; with resume, the newest whole checkpoint
//     run       epochs of steps; after each the validation; checkpoints; the log
//     report    a hook that is told of steps, epochs and everything out of the ordinary
//
// Resumed at any step, a run ends with the same bits as one that was never stopped: parameters, optimizer,
// state, and the place in the data are in the checkpoint, and the order of samples follows from the seed.
#ifndef GRT_SUPERVISED_H
#define GRT_SUPERVISED_H

#include "limits.h"
#include "runlog.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_SUPERVISED_NEWS(X)                                                                     \
    X(LOOK)       /* every row is looked at before the start; share: of them */                    \
    X(BEGUN)      /* the first steps were done: from here on there is something to lose */         \
    X(PROGRESS)   /* a few steps were done */                                                      \
    X(STEP)       /* log_interval steps were done */                                               \
    X(EPOCH)      /* an epoch ended and was validated */                                           \
    X(CHECKPOINT) /* text: its path */                                                             \
    X(RESUMED)    /* text: the checkpoint's path */                                                \
    X(SPLIT)      /* the batch did not fit and is cut into micro-batches; text says how */         \
    X(NONFINITE)  /* text: the first tensor that is not finite */                                  \
    X(ROLLBACK)   /* back at `step` with half the learning rate */                                 \
    X(NOTE)       /* text */

enum grt_supervised_news {
#define X(name) GRT_SUPERVISED_##name,
    GRT_SUPERVISED_NEWS(X)
#undef X
};

struct grt_supervised_report {
    enum grt_supervised_news news;
    uint64_t step, steps;    // done, and in all
    uint64_t epoch, epochs;  // STEP, PROGRESS: the running one, from 1; EPOCH: the one that ended
    double loss;             // of the last steps, or of the epoch
    double lr, loss_scale, grad_norm;
    uint64_t skipped;      // steps without an update, in all
    double samples_per_s;  // since the last report of this kind
    double data_share;     // of the time: waiting for data
    double eta;            // seconds to the end
    bool validated;        // EPOCH: the next two are known
    double validation_loss;
    double accuracy;  // of classes; negative: the targets are none
    bool best;        // EPOCH: it is the best so far
    double share;
    const char *text;
};

struct grt_supervised_desc {
    struct grt_dev *dev;
    const struct grt_config *config;
    // A network of your own in place of the config's, as in struct grt_learner_desc; `of` is used as long as the run
    // lives. NULL: the config's, which grt_evaluate() and grt_predict() know alone.
    struct grt_module *(*make)(const void *of);
    const void *of;
    bool resume;
    bool force;     // resume though the data are others than those of the checkpoint
    bool lockstep;  // nothing is queued ahead, log lines are waited for: a stop is obeyed at once
    bool (*stop)(void *context);  // asked between steps, and while rows are looked at; may be NULL
    void (*report)(void *context, const struct grt_supervised_report *report);  // may be NULL
    void *context;
};

struct grt_supervised;

GRT_API struct grt_supervised *grt_supervised_create(const struct grt_supervised_desc *desc);
GRT_API void grt_supervised_destroy(struct grt_supervised **run);

// For the head of a report.
struct grt_supervised_info {
    const struct grt_config *config;  // with every choice made
    struct grt_dataset_info data;
    struct grt_learner_desc learner;
    const char *variant;
    uint32_t layers;  // modules that are no compositions
    uint64_t parameters, bytes;
    uint64_t steps_per_epoch, steps;
    uint64_t start;         // step that it begins with
    enum grt_ending ended;  // NONE: there is something left of it; else why there is nothing
    double best_loss;       // of validation, or of training without one
    uint64_t best_epoch;    // that had it, from 1; 0: no epoch has ended yet
    bool log_failed;        // rows of the log were lost
    double data_seconds, cache_seconds, learner_seconds;  // what it took to begin
    const char *cache_why;  // cache: auto: what decided where the data set is; else ""
};
GRT_API struct grt_supervised_info grt_supervised_info(const struct grt_supervised *run);

enum grt_supervised_end {
    GRT_SUPERVISED_DONE,     // to the last step, or to one of the limits
    GRT_SUPERVISED_STOPPED,  // asked to; the checkpoint is written and can be resumed
    GRT_SUPERVISED_HALTED,   // the loss was not finite
    GRT_SUPERVISED_FAILED,   // the sentence was said
};
GRT_API enum grt_supervised_end grt_supervised_run(struct grt_supervised *run);

// ---- trained models ----

struct grt_evaluation {
    uint64_t samples;
    double loss;
    double accuracy;  // negative: the targets are no classes
    double seconds;
};
// The loss of a trained model over a part of a file. `stop` (may be NULL) ends it, with false and no
// sentence.
GRT_API bool grt_evaluate(struct grt_dev *dev, const struct grt_archive *model,
                          const struct grt_config *config, enum grt_part part, bool (*stop)(void),
                          struct grt_evaluation *evaluation);
// What it says of every row of a file, in the file's order: tensor "y" [N][outputs] f32. With cross_entropy and bce
// those are logits, which the text "y_is" says, and "probability" of the same shape has their softmax or sigmoid;
// for classes "class" [N] u32 is the largest. NULL with the sentence. `stop` (may be NULL) ends it.
GRT_API struct grt_archive *grt_predict(struct grt_dev *dev, const struct grt_archive *model,
                                        const struct grt_config *config, bool (*stop)(void));

#ifdef __cplusplus
}
#endif
#endif
