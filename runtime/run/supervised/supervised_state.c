// SPDX-License-Identifier: Apache-2.0
// A run as an archive and back.
//
//     model/layers.0.weight ...   optimizer/exp_avg.layers.0.weight ...   state/state   data/mean
//     step, epoch, batch, ...     config (what the model depends on)
//
// With ema the model is the average, which is what was evaluated, and the parameters that steps
// change are optimizer/newest.layers.0.weight.
//
// Nothing in it tells when or where it was written, so two runs that computed the same have the
// same file, bit for bit.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "supervised_parts.h"

#define BEST_METRIC "best_metric"  // what best_score is of; none: BY_LOSS
#define BY_LOSS "loss"

// Which tensors are kept, and under which group.
static const struct {
    enum grt_tensor_role role;
    const char *group;
    const char *averaged;  // group of a run with ema
} kept[] = {
    {GRT_TENSOR_PARAM, "model/", "optimizer/newest."},
    {GRT_TENSOR_AVERAGE, "model/", "model/"},
    {GRT_TENSOR_BUFFER, "model/", "model/"},
    {GRT_TENSOR_OPTIM, "optimizer/", "optimizer/"},
    {GRT_TENSOR_STATE, "state/", "state/"},
};

typedef bool tensor_fn(struct grt_supervised *run, void *archive, const char *name,
                       const struct grt_tensor *tensor);

// As the newest whole snapshot has it, where that is lent without a copy: of a ResNet-18 the run's
// own thread would copy 90 MB.
static bool take(struct grt_supervised *run, void *archive, const char *name,
                 const struct grt_tensor *tensor) {
    struct grt_archive *into = archive;
    void *numbers = grt_snapshot_tensor(run->snapshot, tensor);
    return (numbers && into->lender
                ? grt_archive_lend(into, name, tensor->dtype, tensor->rank, tensor->shape, numbers)
                : grt_archive_add(into, name, tensor->dtype, tensor->rank, tensor->shape,
                                  numbers ? numbers : &run->state)) != NULL;
}

static bool give(struct grt_supervised *run, void *archive, const char *name,
                 const struct grt_tensor *tensor) {
    (void)run;
    return grt_archive_give(archive, name, tensor);
}

static bool each_tensor(struct grt_supervised *run, void *archive, tensor_fn *fn) {
    struct grt_learner *learner = run->learner;
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        const char *name = NULL;
        const struct grt_tensor *tensor = grt_learner_tensor(learner, kept[k].role, 0, &name);
        for (uint32_t i = 0; tensor; i++) {
            char full[GRT_ARCHIVE_NAME];
            bool ema = run->task.learner.optim.ema > 0;
            snprintf(full, sizeof full, "%s%s", ema ? kept[k].averaged : kept[k].group, name);
            if (!fn(run, archive, full, tensor)) {
                return false;
            }
            tensor = grt_learner_tensor(learner, kept[k].role, i + 1, &name);
        }
    }
    return true;
}

// ---- saving ----

// What follows from the place, or was left by a validation, is not part of the state.
static bool clean_state(const struct grt_supervised *run, struct grt_archive *archive) {
    struct grt_archive_tensor *t = grt_archive_find(archive, "state/state");
    struct grt_learn_state state;
    if (!t || t->bytes != sizeof state) {
        return grt_fail(GRT_INVALID, "the learner has no state");
    }
    memcpy(&state, t->data, sizeof state);
    state.cursor = state.epoch = state.eval_cursor = 0;
    state.lr_factor = run->lr_factor;  // a validation may have changed it since
    state.eval_loss = state.eval_samples = state.eval_hits = state.eval_near = 0;
    memset(state.eval_parts, 0, sizeof state.eval_parts);
    memcpy(t->data, &state, sizeof state);
    return true;
}

static void digest_text(const struct grt_supervised *run, char text[20]) {
    snprintf(text, 20, "%016" PRIx64, run->data_digest);
}

static bool set_values(const struct grt_supervised *run, uint64_t step, struct grt_archive *a) {
    const struct supervised_place *p = &run->place;
    char digest[20];
    digest_text(run, digest);
    return grt_archive_set_text(a, "data_digest", digest) &&
           grt_archive_set_whole(a, "step", (int64_t)step) &&
           grt_archive_set_whole(a, "epoch", (int64_t)p->position.epoch) &&
           grt_archive_set_whole(a, "batch", (int64_t)p->position.batch) &&
           grt_archive_set_whole(a, "batch_size", run->step_rows) &&
           (!run->ranks ||
            grt_archive_set_whole(a, "micro_batches", supervised_micro_batches(run))) &&
           grt_archive_set_whole(a, "steps_per_epoch", (int64_t)run->steps_per_epoch) &&
           (strcmp(run->task.config.metric_for_best, BY_LOSS) == 0 ||
            grt_archive_set_text(a, BEST_METRIC, run->task.config.metric_for_best)) &&
           grt_archive_set_real(a, "epoch_loss", p->epoch_loss) &&
           grt_archive_set_whole(a, "epoch_samples", (int64_t)p->epoch_samples) &&
           (p->epoch_idle == 0 || grt_archive_set_whole(a, "epoch_idle", (int64_t)p->epoch_idle)) &&
           (run->task.config.target_accuracy <= 0 ||
            grt_archive_set_real(a, "best_accuracy", p->best_accuracy)) &&
           (!run->falls || plateau_save(&p->plateau, a)) && grt_task_describe(&run->task, a);
}

// Where something is due the newest snapshot has the tensors. Elsewhere nothing is queued, and one
// is taken now.
static bool take_whole(struct grt_supervised *run, uint64_t step) {
    if (run->whole_step == step) {
        return true;
    }
    if (run->loop.count > 0) {
        return grt_fail(GRT_INVALID, "step %" PRIu64 " has no snapshot of the tensors", step);
    }
    if (!grt_snapshot_take(run->snapshot, 0, true) || !grt_snapshot_wait(run->snapshot, 0)) {
        return false;
    }
    run->state = *grt_snapshot_state(run->snapshot, 0);
    run->whole_step = step;
    return true;
}

bool supervised_save(void *self, const struct grt_run *run, struct grt_archive *archive) {
    struct grt_supervised *s = self;
    uint64_t step = grt_run_info(run).step;
    if (!take_whole(s, step)) {
        return false;
    }
    archive->lender = grt_snapshot_lend(s->snapshot, &archive->give_back);
    return each_tensor(s, archive, take) && clean_state(s, archive) && set_values(s, step, archive);
}

// ---- restoring ----

// Checkpoints of older versions do not say.
static bool same_data(const struct grt_supervised *run, const struct grt_archive *a) {
    char ours[20];
    digest_text(run, ours);
    const char *theirs = grt_archive_text(a, "data_digest", ours);
    return strcmp(ours, theirs) == 0 || run->desc.force ||
           grt_fail(
               GRT_BAD_DATA,
               "the data in %s%s are not those that %s was trained on: names, types, shapes or "
               "rows differ. Use those, or another checkpoint_dir; --force goes on with these",
               run->task.config.data, run->apart.data ? " or validation_data" : "", a->path);
}

// Older versions kept the best loss under other names.
static void load_best(const struct grt_supervised *run, const struct grt_archive *a,
                      struct grt_run_place *place) {
    uint64_t epoch = (uint64_t)grt_archive_whole(a, "best_epoch", 0);
    if (!place->any_best && epoch > 0) {
        uint64_t step = epoch * run->steps_per_epoch;
        place->any_best = true;
        place->best_score = -grt_archive_real(a, "best_loss", 0);
        place->best_step = step < place->step ? step : place->step;
    }
}

bool supervised_load(void *self, const struct grt_run *driver, const struct grt_archive *a,
                     struct grt_run_place *place) {
    struct grt_supervised *run = self;
    const struct grt_config *c = &run->task.config;
    int64_t batch = grt_archive_whole(a, "batch_size", 0);
    int64_t per_epoch = grt_archive_whole(a, "steps_per_epoch", 0);
    struct supervised_place p = {
        .position = {.epoch = (uint64_t)grt_archive_whole(a, "epoch", 0),
                     .batch = (uint64_t)grt_archive_whole(a, "batch", 0)},
        .epoch_loss = grt_archive_real(a, "epoch_loss", 0),
        .epoch_samples = (uint64_t)grt_archive_whole(a, "epoch_samples", 0),
        .epoch_idle = (uint64_t)grt_archive_whole(a, "epoch_idle", 0),
        .best_accuracy = grt_archive_real(a, "best_accuracy", 0),
    };
    (void)driver;
    if (!grt_task_continues(&run->task, a)) {
        return false;
    }
    if (batch != run->step_rows || (uint64_t)per_epoch != run->steps_per_epoch) {
        return grt_fail(GRT_CONFIG,
                        "%s was made with %" PRId64 " samples a step, %" PRId64
                        " steps an epoch; here they are %u and %" PRIu64
                        ", so its place in the data means nothing: use the same data and batch, or "
                        "another checkpoint_dir",
                        a->path, batch, per_epoch, run->step_rows, run->steps_per_epoch);
    }
    if (!same_data(run, a) || !grt_task_fits(&run->task, a) ||
        !each_tensor(run, (void *)(uintptr_t)a, give) || !grt_learner_sync(run->learner) ||
        !supervised_seek(run, p.position)) {
        return false;
    }
    struct grt_learn_state state;
    if (!grt_learner_state(run->learner, &state)) {
        return false;
    }
    plateau_load(&p.plateau, a);
    if (!run->falls && plateau_factor(&p.plateau) < 1) {
        // Another schedule has the rate that it says, not what a plateau left of it. The rest is of
        // roll-backs, each a half.
        state.lr_factor = (float)exp2(round(log2(state.lr_factor / plateau_factor(&p.plateau))));
        p.plateau = (struct plateau){0};
        if (!grt_learner_set_state(run->learner, &state)) {
            return false;
        }
    }
    run->lr_factor = state.lr_factor;
    run->place = p;
    run->whole_step = UINT64_MAX;
    place->step = (uint64_t)grt_archive_whole(a, "step", 0);
    place->evaluated = place->step - supervised_owes(run, place->step);
    load_best(run, a, place);
    bool by_loss = strcmp(c->metric_for_best, BY_LOSS) == 0;
    // The best by something else is none: the next evaluation is the first.
    if (strcmp(grt_archive_text(a, BEST_METRIC, BY_LOSS), c->metric_for_best) != 0) {
        place->any_best = false;
        place->patience = (struct grt_patience){0};
    }
    place->reached = (c->target_loss > 0 && by_loss && place->any_best &&
                      -place->best_score <= c->target_loss) ||
                     (c->target_accuracy > 0 && p.best_accuracy >= c->target_accuracy);
    supervised_begin_queue(run, place->step);
    return true;
}

bool supervised_begin_with(struct grt_supervised *run) {
    return !run->desc.from || grt_task_begin_with(run->learner, run->desc.from, &run->taken);
}

bool supervised_restart(struct grt_supervised *run) {
    struct grt_loader_position first = {0};
    run->place = (struct supervised_place){0};
    run->whole_step = UINT64_MAX;
    *grt_run_place(run->driver) = (struct grt_run_place){0};
    run->lr_factor = 1;
    return grt_learner_reset(run->learner, run->task.config.seed) && supervised_begin_with(run) &&
           supervised_seek(run, first);
}
