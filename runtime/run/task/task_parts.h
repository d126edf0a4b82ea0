// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run: opening a task, for training and for trained models.
#ifndef GRT_TASK_PARTS_H
#define GRT_TASK_PARTS_H

#include <string.h>

#include "gpurt/task.h"

// The number of a word in an X-list of texts; the config has no other words.
#define TASK_WORD_FN(function, list)                                                               \
    static uint32_t function(const char *word) {                                                   \
        static const char *const texts[] = {list(TASK_TEXT)};                                      \
        uint32_t i = 0;                                                                            \
        while (i + 1 < sizeof texts / sizeof *texts && strcmp(texts[i], word) != 0) {              \
            i++;                                                                                   \
        }                                                                                          \
        return i;                                                                                  \
    }
#define TASK_TEXT(name, text, ...) text,

struct task_opening {
    bool no_targets;
    const double *mean, *std;  // of a trained model, or NULL
    uint32_t features;         // how many these are
    uint32_t classes;          // of a trained model; 0: by the file
    bool class_targets;        // whatever the loss is
    struct grt_direct like;    // names of columns and classes that are known, or {0}
    struct grt_task_look look;
};

// The groups of parameters that a config has, into the optimizer; false with the place and the
// sentence.
bool task_freeze(const struct grt_config *config, struct grt_optim_desc *optim);
bool task_groups(const struct grt_config *config, struct grt_optim_desc *optim);

// Whether a key describes a multilayer perceptron or a point-set network: a list of layers says all
// of that itself.
bool task_key_of_kinds(enum grt_config_key key);

// Refuses `loss` beside `losses`.
bool task_one_way(const struct grt_config *config);
// Reads `losses` into the task; what each target then is; and, with the data at hand, its width.
bool task_read_losses(struct grt_task *task);
void task_loss_kinds(const struct grt_task *task, struct grt_dataset_target *kinds);
bool task_loss_widths(struct grt_task *task);

// Opens the data of task->config and makes every choice that it leaves open.
bool task_open(struct grt_task *task, const struct grt_profile *profile,
               const struct task_opening *opening);

// The data set, column or file of the samples' weights, as the config has it; NULL: none.
const char *task_weights(const struct grt_config *config);
// Whether a file has rows of columns or one array, .csv, .tsv and .npy, and no data sets by name.
bool task_unnamed(const char *path);
// Finds where the rows of task->config.data are, into task->source.
bool task_source(struct grt_task *task, const struct task_opening *opening, bool no_targets);
// Columns of a table that a network was trained on are no data sets of a file of another form: the
// names that it keeps count there only where the caller gives them. A .npy has no names, and the
// targets in one belong to the inputs that they were given with.
void task_source_names(struct grt_task *task, const struct grt_config *callers, bool columns);
// Whether an archive can keep the names of columns and classes of a task; false with the sentence.
bool task_source_fits(const struct grt_task *task);
// The names of columns and classes of a task in its archive, and back.
bool task_source_keep(const struct grt_task *task, struct grt_archive *archive);
struct grt_direct task_source_of(const struct grt_archive *archive);

// The desc of the learner, of a task with its config and info.
bool task_describe_learner(struct grt_task *task);
// Of a sample, or of an input of it.
struct grt_shape task_shape(uint32_t height, uint32_t points, uint32_t features);
// Mean and deviation of an archive's features, one behind the other, to be freed; NULL: the model
// was not made with them.
double *task_feature_numbers(const struct grt_archive *archive);

#endif
