// SPDX-License-Identifier: Apache-2.0
// What a config and a data file make together: the open data set, and the desc of the learner for
// it. Training begins with a config; evaluation and prediction with a checkpoint, which holds the
// part of the config that the model depends on.
#ifndef GRT_TASK_H
#define GRT_TASK_H

#include "loader.h"
#include "learner.h"
#include "profile.h"
#include "archive.h"
#include "config.h"
#include "direct.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_task {
    struct grt_config config;  // with every choice made: batch_size, loss, depth, ...
    struct grt_direct source;  // the file of config.data that the rows are in
    struct grt_dataset *data;  // closed by grt_task_close()
    struct grt_dataset_info info;
    struct grt_learner_desc learner;  // batch is batch_size times accumulate; no schedule yet
    float class_weights[GRT_CONFIG_NUMBERS];  // of the learner, where the config has them
    uint32_t loss_count;                      // of config.losses; 0: there is one loss
    struct grt_loss_share losses[GRT_LOSS_MOST];
    bool features;  // the network ends before the layers of what it was trained for
    // What the network calls its inputs: a trained one keeps its names for data under others.
    struct grt_config_names inputs;
};

// How the rows are looked at, which opening a data set begins with; see dataset.h.
struct grt_task_look {
    bool late;
    grt_dataset_watch_fn *watch;
    void *context;
};
// Opens the data of a config. `profile` gives batch size and workers where the config has none;
// `look` may be NULL.
GRT_API bool grt_task_open(struct grt_task *task, const struct grt_config *config,
                           const struct grt_profile *profile, const struct grt_task_look *look);
// The same for a trained model: config and normalisation come from its archive; `config` adds where
// the data are and how they are read. Without targets for predictions. Rows are looked at late:
// each is read once. An archive of weights alone has no config: then `config` has the network too,
// and the data have targets, by which its outputs are counted.
GRT_API bool grt_task_open_trained(struct grt_task *task, const struct grt_archive *archive,
                                   const struct grt_config *config,
                                   const struct grt_profile *profile, bool targets);
// The same for what a trained network makes of samples before its last layers: `samples` are those
// of the config's data that are meant, with their classes where `targets` is given.
struct grt_task_samples {
    const char *inputs;   // NULL: as the config says, or the model
    const char *targets;  // classes; NULL: none
    double validation_split;
};
GRT_API bool grt_task_open_features(struct grt_task *task, const struct grt_archive *archive,
                                    const struct grt_config *config,
                                    const struct grt_profile *profile,
                                    const struct grt_task_samples *samples);
// The same without data, for who wants the network alone; `features`: without its last layers. What
// it says of the data is what the archive says.
GRT_API bool grt_task_open_kept(struct grt_task *task, const struct grt_archive *archive,
                                bool features);
GRT_API void grt_task_close(struct grt_task *task);
// A config that describes no network gets that of an archive, where it has one; true if so.
GRT_API bool grt_task_take_network(struct grt_config *config, const struct grt_archive *archive);

// Adds to an archive what grt_task_open_trained() needs.
GRT_API bool grt_task_describe(const struct grt_task *task, struct grt_archive *archive);
// Whether the archive is of a run with the same model, seed and parts of the data; false with the
// key that differs.
GRT_API bool grt_task_continues(const struct grt_task *task, const struct grt_archive *archive);
// Whether samples and outputs have the shapes of those that the archive's model was trained on;
// false with both. It is asked where the data may be others.
GRT_API bool grt_task_fits(const struct grt_task *task, const struct grt_archive *archive);
// Parameters and buffers out of an archive into an allocated learner.
GRT_API bool grt_task_load_model(struct grt_learner *learner, const struct grt_archive *archive);

// The same for a network that goes on learning something else: tensors of the same name and shape
// are taken, those of 16 bits as f32; the others stay as they were drawn. Where no name is the
// same, what all names of the archive begin with ("module.") is left out. Each that is left, here
// or there, is a note of the log. False with the sentence where none is taken.
struct grt_task_taken {
    uint32_t count, left;
    char first_left[GRT_PARAM_NAME];
    uint32_t unused;  // tensors of the archive that the network does not have
    char first_unused[GRT_PARAM_NAME];
    char prefix[GRT_PARAM_NAME];  // that was left out of names, or ""
};
GRT_API bool grt_task_begin_with(struct grt_learner *learner, const struct grt_archive *archive,
                                 struct grt_task_taken *taken);

// How often the class that is the most frequent one in the order of one loader is right in that of
// another: what an accuracy has to be above. Of targets that are classes; reads them alone. False
// with the sentence.
GRT_API bool grt_task_frequent(const struct grt_task *task, const struct grt_loader *train,
                               const struct grt_loader *check, double *share);

// The loader of a part of the data, as the config says. `held` batches are used at once.
GRT_API struct grt_loader *grt_task_loader(const struct grt_task *task, struct grt_dev *dev,
                                           enum grt_part part, uint32_t held,
                                           const struct grt_loader_share *share);

// ---- what a config says of any training ----

// Whether the widths of `hidden` go with depth and residual; sets depth to their number. False with
// the sentence.
GRT_API bool grt_task_widths(struct grt_config *config);
// The mlp of depth, hidden and activation, after grt_task_widths().
GRT_API struct grt_mlp_desc grt_task_mlp(const struct grt_config *config, uint32_t outputs);
// The optimizer with its groups, without a schedule. False with the place and the sentence.
GRT_API bool grt_task_optimizer(const struct grt_config *config, struct grt_optim_desc *desc);
GRT_API enum grt_dtype grt_task_precision(const struct grt_config *config);

// ---- what fits ----

struct grt_fit {
    uint64_t needed;  // bytes of the learner as it was asked for
    uint64_t left;    // bytes that may be taken
    bool fits;
    uint32_t accumulate;  // micro-batches with which the same batch fits; 0: none does
    uint32_t batch;  // largest batch that fits in as many pieces as were asked for; 0: none does
};
struct grt_fit_besides {
    uint64_t bytes;       // fixed bytes used besides the learner
    uint64_t row;         // for each sample of a batch
    uint64_t row_staged;  // the same, when it has several micro-batches
    uint32_t shared;      // micro-batches of a learner's size that are added up (micro_batches),
    uint32_t first;       // and the number of the first of them
};
// Asks the memory plan; allocates nothing.
GRT_API bool grt_task_fit(struct grt_dev *dev, const struct grt_learner_desc *desc,
                          const struct grt_fit_besides *besides, struct grt_fit *fit);

// What the device holds besides a learner: all rows, or none, and the staging of the feeds.
GRT_API struct grt_fit_besides grt_task_besides(struct grt_dev *dev,
                                                const struct grt_dataset_info *info,
                                                const struct grt_learner_desc *desc,
                                                enum grt_cache cache);
struct grt_cache_choice {
    enum grt_cache cache;
    char why[2 *
             GRT_CACHE_WHY];  // "264.0 MB, a step ...": what the data set takes, and what there is
};
// The place that is wanted when all rows fit there, the learner beside them; else the next one
// further from the device. False with the sentence when the learner makes no sense.
GRT_API bool grt_task_choose_cache(struct grt_dev *dev, const struct grt_task *task,
                                   const struct grt_learner_desc *desc, enum grt_cache wanted,
                                   struct grt_cache_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
