// SPDX-License-Identifier: Apache-2.0
// Making a training: data, memory, learner, loaders, the run. Its steps are in supervised_run.c.
#include "gpurt/supervised.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/clock.h"
#include "base/log.h"
#include "supervised_parts.h"
#include "run/task/task_parts.h"

static bool watch_look(void *context, double share) {
    struct grt_supervised *run = context;
    char text[GRT_CONFIG_TEXT_SIZE + 64];
    snprintf(text, sizeof text, "looking at every row of %s: %.0f%%", run->settings.data,
             100 * share);
    grt_run_say(run->driver, GRT_RUN_NEWS_WORK, text);
    return !grt_run_asked_to_stop(run->driver);
}

// ---- memory ----

bool supervised_on_device(const struct grt_supervised *run) {
    return strcmp(run->task.config.cache, "device") == 0;
}

static struct grt_fit_besides besides(const struct grt_supervised *run) {
    struct grt_fit_besides data =
        grt_task_besides(run->desc.dev, &run->task.info, &run->task.learner,
                         supervised_on_device(run) ? GRT_CACHE_DEVICE : GRT_CACHE_NONE);
    data.bytes += supervised_on_device(run) && run->apart.data ? run->apart.info.kept_bytes : 0;
    supervised_share_planned(run, &data.first, &data.shared);
    return data;
}

// The data set is kept where the config says when it fits there; else one place further from the
// device, and a line says so. `auto` begins with the device, and the head of the report says where
// it ended.
static bool choose_cache(struct grt_supervised *run) {
    struct grt_config *c = &run->task.config;
    static const char *const places[] = {"read from the file", "kept in the host's memory",
                                         "kept on the device"};
    bool any = strcmp(c->cache, "auto") == 0;
    // Ranks take their rows out of the host's memory.
    if (run->ranks && (any || supervised_on_device(run)) &&
        !grt_config_set(c, GRT_CONFIG_CACHE, "ram")) {
        return false;
    }
    any = any && !run->ranks;
    enum grt_cache wanted = any || supervised_on_device(run) ? GRT_CACHE_DEVICE
                            : strcmp(c->cache, "ram") == 0   ? GRT_CACHE_RAM
                                                             : GRT_CACHE_NONE;
    struct grt_cache_choice choice;
    char text[sizeof choice.why + 128];
    if (!grt_task_choose_cache(run->desc.dev, &run->task, &run->task.learner, wanted, &choice) ||
        !grt_config_set(c, GRT_CONFIG_CACHE, grt_cache_text(choice.cache))) {
        return false;
    }
    if (any) {
        snprintf(run->cache_why, sizeof run->cache_why, "the data set takes %s", choice.why);
    } else if (choice.cache != wanted) {
        snprintf(text, sizeof text, "cache: %s: the data set takes %s: it is %s (cache: %s)",
                 grt_cache_text(wanted), choice.why, places[choice.cache], c->cache);
        grt_run_say(run->driver, GRT_RUN_NEWS_NOTE, text);
    }
    return true;
}

// Before anything is allocated: does it fit, and if not, what would?
static bool plan_memory(struct grt_supervised *run) {
    struct grt_learner_desc *d = &run->task.learner;
    struct grt_fit_besides data = besides(run);
    const char *what = run->ranks ? "a micro-batch" : "a step";
    struct grt_fit fit;
    char text[256];
    if (!grt_task_fit(run->desc.dev, d, &data, &fit)) {
        return false;
    }
    if (fit.fits) {
        return true;
    }
    if (!fit.accumulate) {
        return grt_fail(
            GRT_NO_MEMORY,
            "the model does not fit: even one sample at a time needs more than the %.1f "
            "MB that may be taken",
            (double)fit.left / 1e6);
    }
    if (!run->task.config.auto_accumulate) {
        char smaller[64] = "";
        // What fits is a learner's part of a step: all parts, which are equal.
        uint64_t parts = run->ranks ? supervised_micro_batches(run) : 1;
        uint64_t batch = fit.batch * parts / run->task.config.accumulate / parts * parts;
        if (batch > 0) {
            snprintf(smaller, sizeof smaller, "batch_size=%llu fits, or ",
                     (unsigned long long)batch);
        }
        return grt_fail(GRT_NO_MEMORY,
                        "%s of %u samples needs %.1f MB, %.1f MB may be taken: "
                        "%sauto_accumulate=true cuts it into %u micro-batches with the same result",
                        what, d->batch, (double)fit.needed / 1e6, (double)fit.left / 1e6, smaller,
                        fit.accumulate);
    }
    d->accumulate = fit.accumulate;
    snprintf(text, sizeof text,
             "%s of %u samples needs %.1f MB, %.1f MB may be taken: it is cut into %u "
             "micro-batches, with the same result",
             what, d->batch, (double)fit.needed / 1e6, (double)fit.left / 1e6, fit.accumulate);
    grt_run_say(run->driver, GRT_RUN_NEWS_NOTE, text);
    return true;
}

// ---- steps ----

static bool make_loaders(struct grt_supervised *run) {
    const struct grt_task *task = &run->task;
    struct grt_loader_share share = supervised_share_of(run, grt_comm_rank(run->desc.comm));
    run->train_loader = grt_task_loader(task, run->desc.dev, GRT_PART_TRAIN, GRT_FEED_HELD, &share);
    if (!run->train_loader) {
        return false;
    }
    // Without targets there is nothing to compare with.
    bool overfits = task->config.overfit_batches > 0;
    bool checks = (overfits || task->info.part_rows[GRT_PART_VALIDATION] > 0) &&
                  grt_loss_has_targets(task->learner.loss);
    uint64_t rows = overfits ? grt_loader_info(run->train_loader).rows
                             : task->info.part_rows[GRT_PART_VALIDATION];
    if (!checks) {
        return true;
    }
    if (!supervised_check_share(run, rows, &share)) {
        return false;
    }
    if (run->apart.data) {
        // As the samples of training, wherever these are kept.
        run->apart.learner.batch = task->learner.batch;
        memcpy(run->apart.config.cache, task->config.cache, sizeof task->config.cache);
        run->check_loader =
            grt_task_loader(&run->apart, run->desc.dev, GRT_PART_ALL, GRT_FEED_HELD, &share);
    } else {
        // Samples that fill no step of training fill none of a validation in parts.
        bool drops = task->config.drop_last;
        run->task.config.drop_last = drops && !run->ranks;
        run->check_loader =
            grt_task_loader(task, run->desc.dev, overfits ? GRT_PART_TRAIN : GRT_PART_VALIDATION,
                            GRT_FEED_HELD, &share);
        run->task.config.drop_last = drops;
    }
    return run->check_loader != NULL;
}

// A file of its own for the validation: seen as the samples of training are, with their mean and
// deviation.
// Of both files, where the validation has one of its own.
static bool digest_data(struct grt_supervised *run) {
    uint64_t both[2] = {0, 0};
    if (!grt_dataset_digest(run->task.data, &both[0]) ||
        (run->apart.data && !grt_dataset_digest(run->apart.data, &both[1]))) {
        return false;
    }
    run->data_digest = run->apart.data ? grt_digest(both, sizeof both, 0) : both[0];
    return true;
}

static bool open_apart(struct grt_supervised *run, const struct grt_task_look *look) {
    const struct grt_dataset_info *info = &run->task.info;
    if (!run->settings.validation_data[0]) {
        return true;
    }
    run->apart.config = run->task.config;
    run->apart.inputs = run->task.inputs;
    memcpy(run->apart.config.data, run->settings.validation_data, sizeof run->apart.config.data);
    const char *dot = strrchr(run->settings.validation_data, '.');
    if (grt_config_given(&run->settings, GRT_CONFIG_VALIDATION_TARGETS)) {
        run->apart.config.targets = run->settings.validation_targets;
    } else if (dot && strcmp(dot, ".npy") == 0) {
        return grt_fail(GRT_CONFIG,
                        "validation_data %s is one array, its inputs: validation_targets=FILE.npy "
                        "names its targets",
                        run->settings.validation_data);
    }
    const char *weights = task_weights(&run->apart.config),
               *end = weights ? strrchr(weights, '.') : NULL;
    if (end && strcmp(end, ".npy") == 0) {
        return grt_fail(GRT_CONFIG,
                        "%s holds the weights of the samples of training, and validation_data %s "
                        "wants its own: put arrays and weights into a .npz each",
                        weights, run->settings.validation_data);
    }
    if (!task_open(&run->apart, grt_dev_profile(run->desc.dev),
                   &(struct task_opening){.mean = info->mean,
                                          .std = info->std,
                                          .features = info->features,
                                          .classes = info->classes,
                                          .like = run->task.source,
                                          .look = *look})) {
        return false;
    }
    const struct grt_dataset_info *theirs = &run->apart.info;
    if (theirs->x_width != info->x_width || theirs->points != info->points ||
        theirs->height != info->height || theirs->y_width != info->y_width ||
        theirs->classes != info->classes) {
        return grt_fail(GRT_BAD_DATA,
                        "%s: its samples have %u numbers and %u targets, and those of %s %u and %u",
                        run->apart.config.data, theirs->x_width, theirs->y_width,
                        run->task.config.data, info->x_width, info->y_width);
    }
    run->task.info.part_rows[GRT_PART_VALIDATION] = theirs->part_rows[GRT_PART_ALL];
    return true;
}

// How many steps there are, which the schedule needs to know.
static bool count_steps(struct grt_supervised *run) {
    struct grt_config *c = &run->task.config;
    struct grt_optim_desc *o = &run->task.learner.optim;
    double every = c->val_check_interval;
    run->steps_per_epoch = supervised_steps_per_epoch(run);
    every = every > 0 && every < 1 ? floor(every * (double)run->steps_per_epoch) : every;
    run->check_every = c->val_check_interval > 0 ? (uint64_t)fmax(every, 1) : run->steps_per_epoch;
    // Steps alone mean as many epochs as they take.
    if (c->max_steps > 0 && !grt_config_given(c, GRT_CONFIG_EPOCHS)) {
        c->epochs = (c->max_steps + run->steps_per_epoch - 1) / run->steps_per_epoch;
    }
    run->steps = c->epochs * run->steps_per_epoch;
    if (c->max_steps > 0 && c->max_steps < run->steps) {
        run->steps = c->max_steps;
    }
    uint64_t period = (c->lr_step > 0 ? c->lr_step : (c->epochs + 2) / 3) * run->steps_per_epoch;
    o->total = (uint32_t)(run->steps < UINT32_MAX ? run->steps : UINT32_MAX);
    o->period = (uint32_t)(period < UINT32_MAX ? period : UINT32_MAX);
    if (run->steps == 0) {
        o->warmup = 0;
        return true;  // the rate of no step
    }
    double ratio = c->warmup_ratio;
    if (ratio > 0 && o->warmup > 0) {
        return grt_fail(GRT_CONFIG, "warmup_steps and warmup_ratio say the same: give one of them");
    }
#define X(name, text)                                                                              \
    if (strcmp(c->schedule, text) == 0) {                                                          \
        o->schedule = GRT_SCHEDULE_##name;                                                         \
    }
    GRT_SCHEDULES(X)
#undef X
    run->falls = strcmp(c->schedule, "plateau") == 0;
    run->plateau_desc = (struct plateau_desc){.factor = c->plateau_factor,
                                              .threshold = c->plateau_threshold,
                                              .patience = c->plateau_patience,
                                              .cooldown = c->plateau_cooldown,
                                              .lr = o->lr,
                                              .min_lr = c->min_learning_rate,
                                              .loss = strcmp(c->metric_for_best, "loss") == 0};
    bool cycle = o->schedule == GRT_SCHEDULE_ONE_CYCLE;
    ratio = ratio > 0 ? ratio : cycle ? 0.3 : 0;
    if (o->warmup == 0) {
        o->warmup = (uint32_t)(ratio * o->total + 0.5);
        o->warmup = cycle && o->warmup == 0 ? 1 : o->warmup;
    }
    bool falls = o->schedule == GRT_SCHEDULE_COSINE || o->schedule == GRT_SCHEDULE_LINEAR;
    if ((falls || cycle) && o->warmup >= o->total) {
        return grt_fail(GRT_CONFIG,
                        "schedule %s begins after the warm-up: warmup_steps is %u, and there "
                        "are %u steps in all",
                        grt_schedule_text(o->schedule), o->warmup, o->total);
    }
    return true;
}

// Losses are of the validation, or of training without one.
static bool set_targets(const struct grt_supervised *run, struct grt_run_start *start) {
    const struct grt_config *c = &run->task.config;
    bool aims = c->target_accuracy > 0;
    if (run->task.loss_count > 0 && (aims || strcmp(c->metric_for_best, "loss") != 0)) {
        return grt_fail(GRT_CONFIG, "%s: there is no %s with losses; use %s",
                        aims ? "target_accuracy" : "metric_for_best",
                        aims ? "accuracy" : c->metric_for_best, aims ? "target_loss" : "loss");
    }
    if (aims && (!run->check_loader || run->task.info.classes == 0)) {
        return grt_fail(GRT_CONFIG,
                        "target_accuracy: there is no accuracy without %s; use target_loss",
                        run->check_loader ? "classes as targets" : "a validation_split");
    }
    bool top5 = strcmp(c->metric_for_best, "top5") == 0;
    if ((top5 || strcmp(c->metric_for_best, "accuracy") == 0) &&
        (!run->check_loader || run->task.info.classes < (top5 ? 6 : 1))) {
        return grt_fail(GRT_CONFIG, "metric_for_best: there is no %s without %s",
                        c->metric_for_best,
                        !run->check_loader ? "a validation_split"
                        : top5             ? "more than 5 classes as targets"
                                           : "classes as targets");
    }
    start->score = c->metric_for_best;
    if (c->target_loss > 0) {
        start->targets[start->target_count++] = (struct grt_run_target){
            .field = run->check_loader ? GRT_FIELD_LOSS : GRT_FIELD_TRAIN_LOSS,
            .value = c->target_loss,
            .below = true};
    }
    if (c->target_accuracy > 0) {
        start->targets[start->target_count++] =
            (struct grt_run_target){.field = GRT_FIELD_ACCURACY, .value = c->target_accuracy};
    }
    return true;
}

static bool make_learner(struct grt_supervised *run) {
    struct grt_dev *dev = run->desc.dev;
    run->learner = grt_learner_create(dev, &run->task.learner);
    if (!run->learner || !grt_learner_alloc(run->learner) || !supervised_begin_with(run)) {
        return false;
    }
    run->snapshot = grt_snapshot_create(run->learner, !grt_dev_info(dev)->caps.software);
    if (!run->snapshot) {
        return false;
    }
    // Whole tensors are taken behind the last step of an epoch.
    bool apart = !run->check_loader && grt_snapshot_most(run->snapshot) == 1;
    struct grt_feed_desc feed = {.dev = dev,
                                 .learner = run->learner,
                                 .loader = run->train_loader,
                                 .batch = run->task.learner.batch,
                                 .on_device = supervised_on_device(run),
                                 .epochs = run->task.config.epochs,
                                 .apart = apart,
                                 .room = SUPERVISED_ROOM};
    if (run->ranks ? !supervised_ranks_open(run) : !(run->train = grt_feed_create(&feed))) {
        return false;
    }
    run->loop.step_seconds = run->train ? grt_feed_seconds(run->train) : 0;
    run->loop.begun = run->loop.step_seconds > 0;
    if (run->loop.begun &&
        !(grt_learner_reset(run->learner, run->task.config.seed) && supervised_begin_with(run))) {
        return false;
    }
    feed.loader = run->check_loader;
    feed.room = 0;
    feed.evaluate = true;
    feed.part = run->parts.batches;
    run->check = run->check_loader ? grt_feed_create(&feed) : NULL;
    return run->check || !run->check_loader;
}

// ---- where it begins ----

#define TRAINER(name)                                                                              \
    {                                                                                              \
        .kind = name, .all = GRT_ENDED_EPOCHS, .keeps_best = true, .advance = supervised_advance,  \
        .evaluate = supervised_evaluate, .judged = supervised_judged, .save = supervised_save,     \
        .load = supervised_load                                                                    \
    }
static const struct grt_trainer with_targets = TRAINER("supervised"), without = TRAINER("simclr");
#undef TRAINER

static struct grt_run *make_run(const struct grt_supervised *run) {
    const struct grt_config *c = &run->settings;
    return grt_run_create(&(struct grt_run_desc){
        .dir = c->checkpoint_dir,
        .keep = (uint32_t)c->keep,
        .save_every = c->checkpoint_interval,
        .resume = run->desc.resume && !run->desc.resume_from,
        .log = c->log,
        .tensorboard = c->tensorboard,
        .limits = {.max_time = c->max_time, .patience = c->patience, .min_delta = c->min_delta},
        .comm = run->desc.comm,
        .stop = run->desc.stop,
        .report = run->desc.report,
        .context = run->desc.context,
    });
}

static bool begin(struct grt_supervised *run) {
    const struct grt_config *c = &run->task.config;
    struct grt_run_row about = {0};
    grt_run_row_set(&about, GRT_FIELD_PARAMETERS, (double)grt_learner_parameters(run->learner));
    grt_run_row_set(&about, GRT_FIELD_SEED, (double)c->seed);
    grt_run_row_text(&about, GRT_FIELD_PRECISION, c->precision);
    grt_run_row_set(&about, GRT_FIELD_BATCH, run->step_rows);
    grt_run_row_set(&about, GRT_FIELD_ACCUMULATE, run->task.learner.accumulate);
    bool targets = grt_loss_has_targets(run->task.learner.loss);
    struct grt_run_start start = {.trainer = targets ? &with_targets : &without,
                                  .self = run,
                                  .dev = run->desc.dev,
                                  .steps = c->epochs * run->steps_per_epoch,
                                  .max_steps = c->max_steps,
                                  .evaluate_every = run->check_every,
                                  .epoch = run->steps_per_epoch,
                                  .config = c,
                                  .from = run->desc.resume_from,
                                  .about = &about};
    static const char *const each[GRT_RUN_TERMS] = {"loss_1", "loss_2", "loss_3", "loss_4"};
    for (uint32_t i = 0; i < run->task.learner.loss_count; i++) {
        start.terms[i] = each[i];
    }
    run->whole_step = UINT64_MAX;
    return set_targets(run, &start) && grt_run_begin(run->driver, &start);
}

struct grt_supervised *grt_supervised_create(const struct grt_supervised_desc *desc) {
    if (!desc || !desc->dev || !desc->config) {
        grt_fail(GRT_INVALID, "a device and a config are wanted");
        return NULL;
    }
    struct grt_supervised *run = calloc(1, sizeof *run);
    if (!run) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a run");
        return NULL;
    }
    run->desc = *desc;
    run->lr_factor = 1;
    run->settings = *desc->config;
    supervised_multiply_batch(run);
    struct grt_task_look look = {.watch = watch_look, .context = run};
    double start = grt_seconds();
    // What can be known to fail is known before the data are read, and before anything is made or
    // moved.
    run->driver = make_run(run);
    if (run->settings.overfit_batches > 0 &&
        (run->settings.validation_data[0] || run->settings.limit_train_batches > 0)) {
        grt_fail(GRT_CONFIG, "overfit_batches says which samples are learnt from and validated on: "
                             "leave out validation_data and limit_train_batches");
        goto undo_run;
    }
    if (run->settings.overfit_batches > 0) {
        run->settings.validation_split = 0;  // it is validated on what it learns from
    }
    if (run->settings.validation_data[0]) {
        if (grt_config_given(&run->settings, GRT_CONFIG_VALIDATION_SPLIT) &&
            run->settings.validation_split > 0) {
            grt_fail(GRT_CONFIG, "validation_data and validation_split: the samples of the "
                                 "validation are in a file, or a share of the data; give one");
            goto undo_run;
        }
        run->settings.validation_split = 0;
    }
    // A run that is resumed has keys that were taken when it began.
    if (!run->driver ||
        !grt_task_open(&run->task, &run->settings, grt_dev_profile(desc->dev), &look) ||
        !open_apart(run, &look) ||
        (!desc->resume && !desc->resume_from && !grt_config_effective(&run->task.config)) ||
        !digest_data(run)) {
        goto undo_run;
    }
    supervised_hint(run);
    if (desc->make) {
        run->task.learner.make = desc->make;
        run->task.learner.of = desc->of;
    }
    double opened = grt_seconds();
    if (!supervised_share_out(run) || !choose_cache(run) ||
        !grt_comm_all(desc->comm, "cannot begin: its memory is too small", plan_memory(run)) ||
        !supervised_agree_memory(run) || !supervised_share_by_speed(run)) {
        goto undo_run;
    }
    double planned = grt_seconds();  // kernels are chosen and tried for it
    if (!make_loaders(run)) {
        goto undo_run;
    }
    run->baseline = -1;
    bool classifies = run->task.learner.loss == GRT_LOSS_CROSS_ENTROPY;
    // The classes of two files are not counted.
    if (classifies && run->task.info.classes > 0 && run->check_loader && !run->apart.data &&
        !grt_task_frequent(&run->task, run->train_loader, run->check_loader, &run->baseline)) {
        goto undo_run;
    }
    double filled = grt_seconds();
    if (!count_steps(run) || !make_learner(run) || !begin(run)) {
        goto undo_run;
    }
    supervised_begin_knn(run);
    run->data_seconds = opened - start;
    run->cache_seconds = filled - planned;
    run->learner_seconds = grt_seconds() - filled + (planned - opened);
    return run;
undo_run:
    grt_supervised_destroy(&run);
    return NULL;
}

void grt_supervised_destroy(struct grt_supervised **run) {
    if (!run || !*run) {
        return;
    }
    struct grt_supervised *r = *run;
    grt_run_destroy(&r->driver);  // its archives may be lent by snapshots
    grt_snapshot_destroy(&r->snapshot);
    supervised_ranks_close(r);
    supervised_check_close(r);
    grt_feed_destroy(&r->train);
    grt_feed_destroy(&r->check);
    grt_learner_destroy(&r->learner);
    grt_loader_destroy(&r->train_loader);
    grt_loader_destroy(&r->check_loader);
    grt_task_close(&r->task);
    grt_task_close(&r->apart);
    free(r);
    *run = NULL;
}

struct grt_run *grt_supervised_driver(const struct grt_supervised *run) {
    return run->driver;
}

static uint32_t layer_count(const struct grt_learner *learner) {
    const struct grt_net_layer *layer;
    uint32_t count = 0;
    for (uint32_t i = 0; (layer = grt_learner_layer(learner, i)) != NULL; i++) {
        count += !layer->parts;
    }
    return count;
}

struct grt_supervised_info grt_supervised_info(const struct grt_supervised *run) {
    return (struct grt_supervised_info){
        .config = &run->task.config,
        .data = run->task.info,
        .learner = run->task.learner,
        .variant = grt_learner_variant(run->learner),
        .layers = layer_count(run->learner),
        .parameters = grt_learner_parameters(run->learner),
        .bytes = grt_dev_mem_use(run->desc.dev, NULL).current,
        .steps_per_epoch = run->steps_per_epoch,
        .steps = run->steps,
        .check_every = run->check_every,
        .checked = run->parts.rows,
        .step_rows = run->step_rows,
        .epoch_rows = grt_loader_info(run->train_loader).rows,
        .micro_batches = supervised_micro_batches(run),
        .taken = run->taken,
        .baseline = run->baseline,
        .cache_why = run->cache_why,
        .knn_every = run->knn_every,
        .data_seconds = run->data_seconds,
        .cache_seconds = run->cache_seconds,
        .learner_seconds = run->learner_seconds,
    };
}
