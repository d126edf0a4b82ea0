// SPDX-License-Identifier: Apache-2.0
// The loop: windows of steps, and what has to be done between them. A window never crosses the end of an
// epoch, a log line or a checkpoint, so what happens at step n does not depend on where the run was resumed.
#include <math.h>
#include <stdio.h>

#include "../clock.h"
#include "../report.h"
#include "checkpoint.h"
#include "supervised_parts.h"

// Time and work since the last report of a kind.
struct meter {
    double start, stalled;
    uint64_t samples;
};

struct loop {
    struct grt_supervised *run;
    struct grt_learn_state state;  // after the newest window
    struct meter step, epoch, all;
    uint64_t start_step;  // where `all` begins
    bool begun;           // the first window is done
    double loss;          // sum over the samples since the last log line
    uint64_t loss_samples;
    double newest_loss;
    double step_seconds;  // of a step of the newest window
};

static void meter_add(struct meter *m, const struct grt_feed_done *done) {
    m->samples += done->samples;
    m->stalled += done->stalled;
}

// ---- reports ----

static struct grt_supervised_report report_of(const struct loop *l, enum grt_supervised_news news,
                                              const struct meter *m) {
    const struct grt_supervised *run = l->run;
    const struct supervised_place *p = &run->place;
    double seconds = grt_seconds() - m->start;
    double per_step = p->step > l->start_step
                          ? (grt_seconds() - l->all.start) / (double)(p->step - l->start_step)
                          : 0;
    // At the end of an epoch the position is at the begin of the next one.
    bool ended = p->position.batch == 0 && p->step > 0;
    return (struct grt_supervised_report){
        .news = news,
        .step = p->step,
        .steps = run->steps,
        .epoch = p->position.epoch + (ended ? 0 : 1),
        .epochs = run->task.config.epochs,
        .loss = l->newest_loss,
        .lr = (double)l->state.lr,
        .loss_scale = (double)l->state.loss_scale,
        .grad_norm = (double)l->state.grad_norm,
        .skipped = l->state.skipped,
        .samples_per_s = seconds > 0 ? (double)m->samples / seconds : 0,
        .data_share = seconds > 0 ? m->stalled / seconds : 0,
        .eta = per_step * (double)(run->steps - p->step),
        .accuracy = -1,
    };
}

static void report(const struct loop *l, const struct grt_supervised_report *r) {
    if (l->run->desc.report) {
        l->run->desc.report(l->run->desc.context, r);
    }
}

static void log_step(struct loop *l) {
    struct grt_supervised_report r = report_of(l, GRT_SUPERVISED_STEP, &l->step);
    r.loss = l->loss_samples ? l->loss / (double)l->loss_samples : NAN;
    GRT_RUNLOG_ROW(l->run->log, "train", r.step, {"epoch", (double)r.epoch, NULL},
                   {"loss", r.loss, NULL}, {"lr", r.lr, NULL}, {"grad_norm", r.grad_norm, NULL},
                   {"loss_scale", r.loss_scale, NULL}, {"skipped", (double)r.skipped, NULL},
                   {"samples_per_s", r.samples_per_s, NULL}, {"data_share", r.data_share, NULL});
    report(l, &r);
    l->step = (struct meter){.start = grt_seconds()};
    l->loss = 0;
    l->loss_samples = 0;
}

// ---- windows ----

// A stop is obeyed between windows: within this time, or a step where one takes longer.
#define WINDOW_SECONDS 0.25

// As many of `most` steps as take that time.
static uint32_t window(double step_seconds, uint64_t most) {
    if (step_seconds * (double)most > WINDOW_SECONDS) {
        most = (uint64_t)(WINDOW_SECONDS / step_seconds);
        most = most > 0 ? most : 1;
    }
    return (uint32_t)(most < GRT_FEED_WINDOW ? most : GRT_FEED_WINDOW);
}

// ---- validation ----

bool supervised_tally_end(struct grt_learner *learner, struct grt_evaluation *evaluation) {
    struct grt_learn_state state;
    if (!grt_learner_state(learner, &state)) {
        return false;
    }
    double samples = (double)state.eval_samples;
    bool classes = grt_learner_desc_of(learner)->loss == GRT_LOSS_CROSS_ENTROPY;
    evaluation->samples = (uint64_t)samples;
    evaluation->loss = samples > 0 ? (double)state.eval_loss / samples : NAN;
    evaluation->accuracy = classes && samples > 0 ? (double)state.eval_hits / samples : -1;
    return true;
}

static bool asked_to_stop(const struct grt_supervised *run) {
    return run->desc.stop && run->desc.stop(run->desc.context);
}

static bool validate(struct loop *l, struct grt_evaluation *evaluation, bool *stopped) {
    struct grt_supervised *run = l->run;
    struct grt_feed_done done = {0};
    // Validation is not shuffled: each of its epochs is the same, and its workers have begun the next.
    struct grt_loader_position first = {.epoch = grt_feed_position(run->check).epoch};
    if (!grt_feed_seek(run->check, first)) {
        return false;
    }
    while (!done.epoch_ended) {
        *stopped = asked_to_stop(run);
        if (*stopped) {
            return true;
        }
        // A step of training takes longer than one of validation.
        if (!grt_feed_run(run->check, window(l->step_seconds, GRT_FEED_WINDOW), true, &done)) {
            return false;
        }
    }
    return supervised_tally_end(run->learner, evaluation);
}

// ---- ends of epochs, checkpoints ----
//
// The last step of all ends its epoch as the last one of the data does, wherever max_steps puts it.

// `stopped`: while it was validated; then the run says so (supervised_owes_check).
static bool end_epoch(struct loop *l, bool *stopped) {
    struct grt_supervised *run = l->run;
    struct supervised_place *p = &run->place;
    struct grt_supervised_report r = report_of(l, GRT_SUPERVISED_EPOCH, &l->epoch);
    struct grt_evaluation e = {.accuracy = -1};
    r.loss = p->epoch_samples ? p->epoch_loss / (double)p->epoch_samples : NAN;
    if (run->check && !validate(l, &e, stopped)) {
        return false;
    }
    if (*stopped) {
        return true;
    }
    r.validated = run->check != NULL;
    r.validation_loss = r.validated ? e.loss : NAN;
    r.accuracy = e.accuracy;
    double judged = r.validated ? e.loss : r.loss;
    r.best = isfinite(judged) && (p->best_epoch == 0 || judged < p->best_loss);
    p->epoch_loss = 0;
    p->epoch_samples = 0;
    if (r.best) {
        p->best_loss = judged;
        p->best_epoch = r.epoch;
        // The checkpoint of this step follows; a best one that cannot be written is said, and
        // the run goes on.
        run->best_unsaved = !supervised_save_best(run);
    }
    GRT_RUNLOG_ROW(run->log, "epoch", r.step, {"epoch", (double)r.epoch, NULL},
                   {"loss", r.loss, NULL}, {"samples_per_s", r.samples_per_s, NULL},
                   {"data_share", r.data_share, NULL}, {"lr", r.lr, NULL});
    if (r.validated && e.accuracy >= 0) {
        GRT_RUNLOG_ROW(run->log, "validation", r.step, {"epoch", (double)r.epoch, NULL},
                       {"loss", e.loss, NULL}, {"accuracy", e.accuracy, NULL});
    } else if (r.validated) {
        GRT_RUNLOG_ROW(run->log, "validation", r.step, {"epoch", (double)r.epoch, NULL},
                       {"loss", e.loss, NULL});
    }
    report(l, &r);
    l->epoch = l->step = (struct meter){.start = grt_seconds()};
    return true;
}

// ---- losses that are not finite ----

// Runs the step that went wrong again: it is halted, so nothing changes, and its tensors can be looked at.
static void name_nonfinite(struct loop *l, struct grt_loader_position position, uint64_t step) {
    struct grt_supervised *run = l->run;
    struct grt_tensor x, y;
    char name[128] = "";
    char text[256];
    bool found = false;
    for (uint32_t i = 0; !found && grt_feed_part(run->train, position, i, &x, &y); i++) {
        found = grt_learner_find_nonfinite(run->learner, &x, &y, name, sizeof name);
    }
    if (!found) {
        snprintf(name, sizeof name, "the loss");
    }
    snprintf(text, sizeof text, "step %llu (epoch %llu, batch %llu): %s is not finite",
             (unsigned long long)step + 1, (unsigned long long)position.epoch + 1,
             (unsigned long long)position.batch + 1, name);
    GRT_RUNLOG_ROW(run->log, "nonfinite", step, {"tensor", 0, name});
    supervised_say(run, GRT_SUPERVISED_NONFINITE, text);
}

static bool roll_back(struct loop *l) {
    struct grt_supervised *run = l->run;
    struct grt_learn_state state;
    double factor = ldexp(1.0, -(int)++run->rollbacks);
    struct grt_archive *archive = run->saved_step != UINT64_MAX
                                      ? grt_checkpoint_newest(run->task.config.checkpoint_dir)
                                      : NULL;
    bool good = archive ? supervised_restore(run, archive) : supervised_restart(run);
    grt_archive_destroy(&archive);
    if (!good || !grt_learner_state(run->learner, &state)) {
        return false;
    }
    state.halted = 0;
    state.lr_factor = (float)factor;
    supervised_say(run, GRT_SUPERVISED_ROLLBACK, NULL);
    return grt_learner_set_state(run->learner, &state);
}

// ---- the loop ----

// Steps until the next thing that has to be done between steps.
static uint32_t steps_ahead(const struct loop *l) {
    const struct grt_supervised *run = l->run;
    const struct grt_config *c = &run->task.config;
    uint64_t step = run->place.step;
    uint64_t most = run->steps - step;
    uint64_t log = c->log_interval - step % c->log_interval;
    uint64_t save =
        c->checkpoint_interval ? c->checkpoint_interval - step % c->checkpoint_interval : most;
    most = log < most ? log : most;
    most = save < most ? save : most;
    // The first step is done alone: nobody knows yet how long one takes.
    return l->begun ? window(l->step_seconds, most) : 1;
}

// Adds up the losses of the steps that were just done.
static bool read_losses(struct loop *l, const struct grt_feed_done *done) {
    struct grt_supervised *run = l->run;
    struct grt_learn_row rows[GRT_FEED_WINDOW];
    if (!grt_learner_state(run->learner, &l->state)) {
        return false;
    }
    uint32_t first = l->state.steps - done->steps;
    uint32_t count = grt_learner_history(run->learner, &first, rows, done->steps);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t samples = i + 1 == count ? done->last_rows : run->task.learner.batch;
        l->newest_loss = (double)rows[i].loss;
        // Where gradients overflow the loss is still one; where it is none, so are the gradients.
        if (isfinite(rows[i].loss)) {
            l->loss += (double)rows[i].loss * (double)samples;
            l->loss_samples += samples;
            run->place.epoch_loss += (double)rows[i].loss * (double)samples;
            run->place.epoch_samples += samples;
        }
    }
    return count == done->steps || grt_fail(GRT_INVALID, "the learner lost its history");
}

// A checkpoint. Its time, mostly waiting for the disk, is neither data nor compute.
static void save(struct loop *l) {
    double begun = grt_seconds();
    supervised_save(l->run);
    double seconds = grt_seconds() - begun;
    l->step.start += seconds;
    l->epoch.start += seconds;
}

// The first window of a run is done. In it drivers finish their kernels, which is no part of any rate.
static bool begin(struct loop *l, bool alone) {
    l->begun = true;
    supervised_say(l->run, GRT_SUPERVISED_BEGUN, NULL);
    // Unless a row is due already: then there is no other time to tell.
    if (!alone) {
        l->all = l->step = l->epoch = (struct meter){.start = grt_seconds()};
        l->start_step = l->run->place.step;
    }
    return supervised_clear_dir(l->run);
}

// One window and what follows it; false when the run is over, with how in *end.
static bool run_window(struct loop *l, enum grt_supervised_end *end) {
    struct grt_supervised *run = l->run;
    struct supervised_place before = run->place;
    struct grt_feed_done done;
    uint32_t most = steps_ahead(l);
    bool more = run->steps - run->place.step > most;
    double begun = grt_seconds();
    bool fed = grt_feed_run(run->train, most, more, &done) && grt_dev_wait(run->desc.dev);
    l->step_seconds = done.steps > 0 ? (grt_seconds() - begun) / done.steps : 0;
    *end = GRT_SUPERVISED_FAILED;
    run->place.step += done.steps;
    run->place.position = grt_feed_position(run->train);
    meter_add(&l->step, &done);
    meter_add(&l->epoch, &done);
    if (done.steps > 0 && !read_losses(l, &done)) {
        return false;
    }
    if (l->state.halted != 0) {
        uint64_t offset = l->state.halted - 1 - (l->state.steps - done.steps);
        struct grt_loader_position bad = before.position;
        bad.batch += offset;
        run->place = before;
        name_nonfinite(l, bad, before.step + offset);
        *end = GRT_SUPERVISED_HALTED;
        bool again = run->task.config.on_nan_loss[0] == 'r' &&
                     run->rollbacks < SUPERVISED_ROLLBACKS && roll_back(l);
        l->state.halted = 0;
        return again;
    }
    // Data that fail before the first step leave everything as it was.
    if (!l->begun && done.steps == 0) {
        return false;
    }
    bool last = run->place.step >= run->steps;
    bool ends = done.epoch_ended || (last && fed);
    bool logs = run->place.step % run->task.config.log_interval == 0 || ends;
    bool first = !l->begun;
    if (first && !begin(l, logs)) {
        return false;
    }
    if (logs && done.steps > 0) {
        log_step(l);
    } else if (done.steps > 0 && !first) {
        struct grt_supervised_report r = report_of(l, GRT_SUPERVISED_PROGRESS, &l->step);
        report(l, &r);
    }
    bool owes = false;
    if (ends && !end_epoch(l, &owes)) {
        return false;
    }
    uint64_t interval = run->task.config.checkpoint_interval;
    bool stop = owes || asked_to_stop(run);
    bool due = interval ? run->place.step % interval == 0 : done.epoch_ended;
    // Data that fail end the run, with what was learned until then on the disk.
    if ((due || last || stop || !fed) && run->saved_step != run->place.step) {
        save(l);
    }
    if (!fed) {
        return false;
    }
    *end = supervised_lost(run) && (last || stop) ? GRT_SUPERVISED_FAILED
           : last && !owes                        ? GRT_SUPERVISED_DONE
                                                  : GRT_SUPERVISED_STOPPED;
    return !last && !stop;
}

// What a run that was stopped in a validation begins with: that validation, and its checkpoint.
static enum grt_supervised_end end_owed(struct loop *l) {
    struct grt_supervised *run = l->run;
    bool stopped = false;
    supervised_say(run, GRT_SUPERVISED_BEGUN, NULL);
    if (!grt_learner_state(run->learner, &l->state) || !end_epoch(l, &stopped)) {
        return GRT_SUPERVISED_FAILED;
    }
    if (!stopped) {
        save(l);
    }
    return supervised_lost(run) ? GRT_SUPERVISED_FAILED
           : stopped            ? GRT_SUPERVISED_STOPPED
                                : GRT_SUPERVISED_DONE;
}

enum grt_supervised_end grt_supervised_run(struct grt_supervised *run) {
    struct loop l = {.run = run, .start_step = run->place.step};
    enum grt_supervised_end end = GRT_SUPERVISED_DONE;
    double start = grt_seconds();
    l.all.start = l.step.start = l.epoch.start = start;
    bool owes = supervised_owes_check(run);
    if (run->place.step >= run->steps && !owes) {
        return end;
    }
    GRT_RUNLOG_ROW(
        run->log, "start", run->place.step, {"device", 0, grt_dev_info(run->desc.dev)->name},
        {"precision", 0, run->task.config.precision},
        {"parameters", (double)grt_learner_parameters(run->learner), NULL},
        {"batch", (double)run->task.learner.batch, NULL},
        {"accumulate", (double)run->task.learner.accumulate, NULL},
        {"steps", (double)run->steps, NULL}, {"seed", (double)run->task.config.seed, NULL});
    end = owes ? end_owed(&l) : end;
    if (end == GRT_SUPERVISED_DONE && run->place.step < run->steps) {
        while (run_window(&l, &end)) {
        }
    }
    static const char *const words[] = {"done", "stopped", "halted", "failed"};
    GRT_RUNLOG_ROW(run->log, "end", run->place.step, {"how", 0, words[end]},
                   {"seconds", grt_seconds() - start, NULL});
    return end;
}
