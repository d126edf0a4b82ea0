// SPDX-License-Identifier: Apache-2.0
// Supervised training: a config, its data and a device become a run (run.h).
//
//     create    opens the data, plans memory, allocates; with resume, the newest whole checkpoint
//     run       for grt_run_go(): epochs of steps; after each an evaluation on the kept samples
//
// Resumed at any step, a run ends with the same bits as one that was never stopped: parameters,
// optimizer, state, and the place in the data are in the checkpoint, and the order of samples
// follows from the seed.
#ifndef GRT_SUPERVISED_H
#define GRT_SUPERVISED_H

#include "run.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_supervised_desc {
    struct grt_dev *dev;
    const struct grt_config *config;
    // A network of your own in place of the config's, as in struct grt_learner_desc; `of` is used
    // as long as the run lives. NULL: the config's, which grt_evaluate() and grt_predict() know
    // alone.
    struct grt_module *(*make)(const void *of);
    const void *of;
    // Tensors to begin with, of grt_task_begin_with(); used as long as the run lives. May be NULL.
    const struct grt_archive *from;
    struct grt_comm *comm;  // ranks that train together, or NULL; one makes steps as they do
    bool resume;            // from the newest whole checkpoint of the config's folder
    // Or from this one, whose run goes on in the config's folder; may be NULL.
    const struct grt_archive *resume_from;
    bool force;     // resume though the data are others than those of the checkpoint
    bool lockstep;  // nothing is queued ahead, log lines are waited for: a stop is obeyed at once
    bool (*stop)(void *context);  // asked between steps, and while rows are looked at; may be NULL
    void (*report)(void *context, const struct grt_run_report *report);  // may be NULL
    void *context;
};

struct grt_supervised;

GRT_API struct grt_supervised *grt_supervised_create(const struct grt_supervised_desc *desc);
GRT_API void grt_supervised_destroy(struct grt_supervised **run);
// It has begun and is for grt_run_go(); it lives as long as `run`.
GRT_API struct grt_run *grt_supervised_driver(const struct grt_supervised *run);

// For the head of a report.
struct grt_supervised_info {
    const struct grt_config *config;  // with every choice made
    struct grt_dataset_info data;
    struct grt_learner_desc learner;
    const char *variant;
    uint32_t layers;  // modules that are no compositions
    uint64_t parameters, bytes;
    uint64_t steps_per_epoch, steps;
    uint64_t check_every;    // steps between evaluations
    uint64_t checked;        // samples of validations that this rank has evaluated so far
    uint32_t step_rows;      // samples of a step, of all ranks
    uint64_t epoch_rows;     // samples of an epoch, of all ranks
    uint32_t micro_batches;  // that ranks share out; 0: a step is not cut so
    double data_seconds, cache_seconds, learner_seconds;  // what it took to begin
    struct grt_task_taken taken;                          // of desc.from
    uint64_t knn_every;     // epochs between trials by nearest neighbours; 0: none
    double baseline;        // grt_task_frequent(), of the validation; negative: there is none
    const char *cache_why;  // cache: auto: what decided where the data set is; else ""
};
GRT_API struct grt_supervised_info grt_supervised_info(const struct grt_supervised *run);

// ---- trained models ----

struct grt_evaluation {
    uint64_t samples;
    double loss;
    double accuracy;  // negative: the targets are no classes
    double top5;      // the class is among the five likeliest; negative: there are no more than 5
    double seconds;
    uint32_t loss_count;           // 0: there is one loss
    double losses[GRT_LOSS_MOST];  // of several: the mean of each, without its weight
};
// The loss of a trained model over a part of a file. `stop` (may be NULL) ends it, with false and
// no sentence.
GRT_API bool grt_evaluate(struct grt_dev *dev, const struct grt_archive *model,
                          const struct grt_config *config, enum grt_part part, bool (*stop)(void),
                          struct grt_evaluation *evaluation);
// The same for classes, with what is taken for what and the worst mistakes: those of which the
// model thought the right class the least likely.
#define GRT_MISTAKES 24
struct grt_mistake {
    uint32_t truth, guess;
    double truth_share, guess_share;  // probabilities
    double loss;
    float *image;  // [height][width][channels] as in the file; NULL: samples are no images
};
struct grt_classified {
    struct grt_evaluation evaluation;
    double baseline;  // share, of weights where samples have some, of the class that has the most
    double weight;    // of all samples: their number, where they have no weights
    uint32_t classes;
    double *class_weights;  // [classes], of the samples that are of a class
    uint64_t *confusion;    // [classes][classes] samples, the right one first
    uint32_t height, width, channels;
    uint32_t mistake_count;
    struct grt_mistake mistakes[GRT_MISTAKES];  // the worst first
};
// NULL with the sentence.
GRT_API struct grt_classified *grt_classified_create(struct grt_dev *dev,
                                                     const struct grt_archive *model,
                                                     const struct grt_config *config,
                                                     enum grt_part part, bool (*stop)(void));
GRT_API void grt_classified_destroy(struct grt_classified **classified);
// What it says of every row of a file, in the file's order: tensor "y" [N][outputs] f32. With
// cross_entropy and bce those are logits, which the text "y_is" says, and "probability" of the same
// shape has their softmax or sigmoid; for classes "class" [N] u32 is the largest. Of several losses
// "y_is" says mixed, and "class_2" [N], for example, is the largest of the second one's classes. Of
// rows that the config leaves out (on_nan: drop) numbers are NaN and classes 4294967295; the whole
// number "rows_left_out" says how many, where there are some. NULL with the sentence. `stop` (may
// be NULL) ends it.
GRT_API struct grt_archive *grt_predict(struct grt_dev *dev, const struct grt_archive *model,
                                        const struct grt_config *config, bool (*stop)(void));

#ifdef __cplusplus
}
#endif
#endif
