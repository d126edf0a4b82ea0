// SPDX-License-Identifier: Apache-2.0
// The loop: segments of steps are queued ahead, and what they came to is read behind.
//
//     device   | segment 0 | segment 1 | validation | segment 2 | ...
//     host       queues 0, 1, 2 ...      settles 0, queues 3, settles 1, ...
//
// A segment is a run of steps, or of the validation's, that ends where the host has something to do that needs the
// tensors as they are there: at the end of an epoch, at a checkpoint. Behind each a snapshot is taken, of the tensors
// too where they are needed. Settling a segment is all that the host does with it: log lines, the end of an epoch,
// checkpoints. What happens at step n depends on neither where a segment ends nor where the run was resumed.
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpurt/checkpoint.h"
#include "supervised_parts.h"

#define SEGMENTS GRT_SNAPSHOT_SLOTS
// A stop is obeyed within this time, or a step where one takes longer.
#define AHEAD_SECONDS 0.25

// Time and work since the last report of a kind.
struct meter {
    double start, stalled;
    uint64_t samples;
};

struct segment {
    bool checks;  // of the validation
    bool fed;     // false: the data failed
    bool ends;    // the epoch, or the run; of the validation, all of it
    bool whole;   // its snapshot has the tensors
    struct grt_feed_done done;
};

struct loop {
    struct grt_supervised *run;
    struct meter step, epoch, all;
    double now;           // time as far as it was settled
    uint64_t start_step;  // where `all` begins
    bool begun;           // the first step was settled
    double loss;          // sum over the samples since the last log line
    uint64_t loss_samples;
    double newest_loss;
    double step_seconds, check_seconds;  // of a step; 0: not known yet

    struct segment ring[SEGMENTS];
    uint32_t first, count;  // queued and not settled
    uint64_t queued;        // steps that were queued
    bool checking;          // what is queued next is of the validation
    bool owed;              // the validation that the run begins with
    bool whole_out;         // a snapshot of the tensors is not settled
    bool undecided;         // the end of an epoch that is not settled may be that of the run
    bool failed;            // the data did
};

static void meter_add(struct meter *m, uint64_t samples, double stalled) {
    m->samples += samples;
    m->stalled += stalled;
}

// ---- reports ----

static struct grt_supervised_report report_of(const struct loop *l, enum grt_supervised_news news,
                                              const struct meter *m) {
    const struct grt_supervised *run = l->run;
    const struct supervised_place *p = &run->place;
    double seconds = l->now - m->start;
    double per_step =
        p->step > l->start_step ? (l->now - l->all.start) / (double)(p->step - l->start_step) : 0;
    // At the end of an epoch the position is at the begin of the next one.
    bool ended = p->position.batch == 0 && p->step > 0;
    return (struct grt_supervised_report){
        .news = news,
        .step = p->step,
        .steps = run->steps,
        .epoch = p->position.epoch + (ended ? 0 : 1),
        .epochs = run->task.config.epochs,
        .loss = l->newest_loss,
        .lr = (double)l->run->state.lr,
        .loss_scale = (double)l->run->state.loss_scale,
        .grad_norm = (double)l->run->state.grad_norm,
        .skipped = l->run->state.skipped,
        .samples_per_s = seconds > 0 ? (double)m->samples / seconds : 0,
        .data_share = seconds > 0 ? fmin(1, m->stalled / seconds) : 0,
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
    l->step = (struct meter){.start = l->now};
    l->loss = 0;
    l->loss_samples = 0;
}

// ---- ends of epochs ----

void supervised_tally(const struct grt_learner *learner, const struct grt_learn_state *state,
                      struct grt_evaluation *evaluation) {
    double samples = (double)state->eval_samples;
    bool classes = grt_learner_desc_of(learner)->loss == GRT_LOSS_CROSS_ENTROPY;
    evaluation->samples = (uint64_t)samples;
    evaluation->loss = samples > 0 ? (double)state->eval_loss / samples : NAN;
    evaluation->accuracy = classes && samples > 0 ? (double)state->eval_hits / samples : -1;
}

// The last step of all ends its epoch as the last one of the data does, wherever max_steps puts it. Its validation is
// done, and the newest snapshot has the tensors.
static void end_epoch(struct loop *l) {
    struct grt_supervised *run = l->run;
    struct supervised_place *p = &run->place;
    struct grt_supervised_report r = report_of(l, GRT_SUPERVISED_EPOCH, &l->epoch);
    struct grt_evaluation e = {.accuracy = -1};
    r.loss = p->epoch_samples ? p->epoch_loss / (double)p->epoch_samples : NAN;
    if (run->check) {
        supervised_tally(run->learner, &l->run->state, &e);
    }
    r.validated = run->check != NULL;
    r.validation_loss = r.validated ? e.loss : NAN;
    r.accuracy = e.accuracy;
    double judged = r.validated ? e.loss : r.loss;
    r.best = isfinite(judged) && (p->best_epoch == 0 || judged < p->best_loss);
    p->epoch_loss = 0;
    p->epoch_samples = 0;
    grt_patience_add(&p->patience, &run->limits, -judged);
    p->best_accuracy = fmax(p->best_accuracy, e.accuracy);
    if (r.best) {
        p->best_loss = judged;
        p->best_epoch = r.epoch;
        // The checkpoint of this step follows; a best one that cannot be written is said, and
        // the run goes on.
        supervised_save_best(run);
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
    l->epoch = l->step = (struct meter){.start = l->now};
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

// ---- queueing ----

static bool asked_to_stop(const struct grt_supervised *run) {
    return run->desc.stop && run->desc.stop(run->desc.context);
}

// As many of `most` steps as a segment may take time.
static uint32_t cut(double step_seconds, uint64_t most) {
    double room = AHEAD_SECONDS / SEGMENTS;
    if (step_seconds * (double)most > room) {
        most = (uint64_t)(room / step_seconds);
        most = most > 0 ? most : 1;
    }
    return (uint32_t)(most < GRT_HISTORY ? most : GRT_HISTORY);
}

static bool saves_at(const struct grt_supervised *run, uint64_t step) {
    uint64_t interval = run->task.config.checkpoint_interval;
    return interval > 0 && step % interval == 0;
}

// Steps of the next segment; 0: there is none.
static uint32_t steps_ahead(const struct loop *l) {
    const struct grt_supervised *run = l->run;
    uint64_t interval = run->task.config.checkpoint_interval;
    bool known = l->step_seconds > 0 || l->check_seconds > 0;
    if (l->failed || l->undecided || (!l->checking && l->queued >= run->steps)) {
        return 0;
    }
    // The first step is done alone: nobody knows yet how long one takes.
    if (!known) {
        return l->count == 0;
    }
    if (l->checking) {
        return cut(l->check_seconds > 0 ? l->check_seconds : l->step_seconds, GRT_HISTORY);
    }
    uint64_t most = run->steps - l->queued;
    uint64_t save = interval ? interval - l->queued % interval : most;
    most = save < most ? save : most;
    if (run->desc.lockstep) {
        uint64_t log = run->task.config.log_interval;
        most = log - l->queued % log < most ? log - l->queued % log : most;
    }
    uint64_t epoch = run->steps_per_epoch - grt_feed_position(run->train).batch;
    return cut(l->step_seconds, epoch < most ? epoch : most);
}

// Whether the end of an epoch may end the run. Then nothing is queued behind it before that is known.
static bool epochs_decide(const struct grt_supervised *run) {
    const struct grt_config *c = &run->task.config;
    return c->patience > 0 || c->target_loss > 0 || c->target_accuracy > 0;
}

// Whether a segment of so many steps may end where the tensors are needed.
static bool may_be_whole(const struct loop *l, uint32_t steps) {
    const struct grt_supervised *run = l->run;
    const struct grt_loader *loader = l->checking ? run->check_loader : run->train_loader;
    uint64_t at = grt_feed_position(l->checking ? run->check : run->train).batch;
    bool ends = at + steps >= grt_loader_info(loader).batches_per_epoch;
    if (l->checking) {
        return ends;
    }
    bool last = ends || l->queued + steps >= run->steps;
    return saves_at(run, l->queued + steps) || (last && !run->check);
}

static bool queue_segment(struct loop *l, uint32_t steps) {
    struct grt_supervised *run = l->run;
    struct segment s = {.checks = l->checking};
    bool more = s.checks || run->steps - l->queued > steps;
    struct grt_feed *feed = s.checks ? run->check : run->train;
    // A step of training takes longer than one of validation.
    grt_feed_expect(feed, s.checks && l->check_seconds > 0 ? l->check_seconds : l->step_seconds);
    s.fed = grt_feed_run(feed, steps, more, &s.done);
    if (s.checks) {
        s.ends = s.done.epoch_ended;
        l->checking = !s.ends;
    } else {
        l->queued += s.done.steps;
        s.ends = s.done.epoch_ended || (s.fed && l->queued >= run->steps);
        l->checking = s.ends && run->check;
    }
    l->failed = !s.fed;
    l->undecided = s.ends && !l->checking && epochs_decide(run);
    s.whole = (s.ends && !l->checking) || (!s.checks && !s.ends && saves_at(run, l->queued));
    uint32_t slot = (l->first + l->count) % SEGMENTS;
    l->ring[slot] = s;
    l->count++;
    l->whole_out = l->whole_out || s.whole;
    return grt_snapshot_take(run->snapshot, slot, s.whole);
}

static bool queue_end(struct loop *l) {
    l->ring[0] = (struct segment){.fed = true, .ends = true, .whole = true};
    l->count = 1;
    l->whole_out = true;
    return grt_snapshot_take(l->run->snapshot, 0, true);
}

// ---- settling ----

static void move_on(struct grt_supervised *run) {
    struct supervised_place *p = &run->place;
    p->step++;
    p->position.batch++;
    if (p->position.batch == run->steps_per_epoch) {
        p->position = (struct grt_loader_position){.epoch = p->position.epoch + 1};
    }
}

static void add_loss(struct loop *l, double loss, uint64_t samples) {
    l->newest_loss = loss;
    // Overflowed gradients can still have a finite loss: count it.
    if (isfinite(loss)) {
        l->loss += loss * (double)samples;
        l->loss_samples += samples;
        l->run->place.epoch_loss += loss * (double)samples;
        l->run->place.epoch_samples += samples;
    }
}

// Goes through the steps of a segment that were done before a loss that is not finite, which is the last of
// `good` steps; the time that all took is theirs in equal shares.
static void settle_steps(struct loop *l, const struct segment *s, uint32_t slot, uint32_t good,
                         double seconds) {
    struct grt_supervised *run = l->run;
    const struct grt_learn_state *after = grt_snapshot_state(run->snapshot, slot);
    uint32_t first = after->steps - s->done.steps;
    bool logged = false;
    l->run->state = *after;
    for (uint32_t i = 0; i < s->done.steps; i++) {
        l->run->state.skipped -= grt_snapshot_row(run->snapshot, slot, first + i).loss_scale < 0;
    }
    for (uint32_t i = 0; i < good; i++) {
        struct grt_learn_row row = grt_snapshot_row(run->snapshot, slot, first + i);
        bool last = i + 1 == s->done.steps;
        uint64_t samples = last ? s->done.last_rows : run->task.learner.batch;
        l->now += seconds / s->done.steps;
        l->run->state.lr = row.lr;
        l->run->state.grad_norm = row.grad_norm;
        l->run->state.skipped += row.loss_scale < 0;
        l->run->state.loss_scale =
            last ? after->loss_scale
                 : fabsf(grt_snapshot_row(run->snapshot, slot, first + i + 1).loss_scale);
        move_on(run);
        add_loss(l, (double)row.loss, samples);
        meter_add(&l->step, samples, s->done.stalled / s->done.steps);
        meter_add(&l->epoch, samples, s->done.stalled / s->done.steps);
        if (run->place.step % run->task.config.log_interval == 0 || (last && s->ends)) {
            log_step(l);
            logged = true;
        }
    }
    if (!logged && good > 0 && l->begun) {
        struct grt_supervised_report r = report_of(l, GRT_SUPERVISED_PROGRESS, &l->step);
        report(l, &r);
    }
}

// What was queued behind a step that is not finite came to nothing: the device changes no tensor after it.
static bool settle_halt(struct loop *l, enum grt_supervised_end *end) {
    struct grt_supervised *run = l->run;
    *end = GRT_SUPERVISED_HALTED;
    l->count = 0;
    l->whole_out = l->checking = l->undecided = false;
    if (!grt_dev_wait(run->desc.dev)) {
        *end = GRT_SUPERVISED_FAILED;
        return false;
    }
    name_nonfinite(l, run->place.position, run->place.step);
    bool again = run->task.config.on_nan_loss[0] == 'r' && run->rollbacks < SUPERVISED_ROLLBACKS &&
                 supervised_flush(run) && roll_back(l);
    // A validation that was on its way begins anew.
    struct grt_loader_position check =
        run->check ? grt_feed_position(run->check) : (struct grt_loader_position){0};
    if (again && check.batch != 0) {
        check.batch = 0;
        again = grt_feed_seek(run->check, check);
    }
    l->queued = run->place.step;
    l->checking = supervised_owes_check(run) && run->check;
    l->run->state.halted = 0;
    return again;
}

// The oldest segment, and all that follows from it; false when the run is over, with how in *end.
static bool settle(struct loop *l, enum grt_supervised_end *end) {
    struct grt_supervised *run = l->run;
    uint32_t slot = l->first;
    struct segment s = l->ring[slot];
    *end = GRT_SUPERVISED_FAILED;
    if (!grt_snapshot_wait(run->snapshot, slot)) {
        return false;
    }
    double seconds = grt_seconds() - l->now;
    l->first = (l->first + 1) % SEGMENTS;
    l->count--;
    l->whole_out = l->whole_out && !s.whole;
    if (s.done.steps > 0) {
        *(s.checks ? &l->check_seconds : &l->step_seconds) = seconds / s.done.steps;
    }
    const struct grt_learn_state *after = grt_snapshot_state(run->snapshot, slot);
    if (!s.checks && s.done.steps > 0) {
        bool halted = after->halted != 0;
        uint32_t good = halted ? after->halted - 1 - (after->steps - s.done.steps) : s.done.steps;
        uint64_t log = run->task.config.log_interval;
        // In the first step drivers finish their kernels, which is no part of any rate; unless a row is due already:
        // then there is no other time to tell.
        bool alone = s.ends || (run->place.step + s.done.steps) % log == 0;
        if (!l->begun && !halted) {
            supervised_say(run, GRT_SUPERVISED_BEGUN, NULL);
        }
        settle_steps(l, &s, slot, good, seconds);
        if (halted) {
            return settle_halt(l, end);
        }
        if (!l->begun && !supervised_clear_dir(run)) {
            return false;
        }
        if (!l->begun && !alone) {
            l->now = grt_seconds();
            l->all = l->step = l->epoch = (struct meter){.start = l->now};
            l->start_step = run->place.step;
        }
        l->begun = true;
    } else {
        l->run->state = *after;
        l->now += seconds;
        l->epoch.start += seconds;  // its rate is that of training
    }
    bool ended = s.ends && (s.checks || !run->check);
    if (ended) {
        end_epoch(l);
        l->undecided = false;
    }
    // At the end of an epoch a checkpoint has what its validation came to.
    if (s.whole && (ended || saves_at(run, run->place.step))) {
        bool due = run->task.config.checkpoint_interval == 0 || saves_at(run, run->place.step);
        bool last = supervised_ending(run) != GRT_ENDED_NONE;
        if ((due || last || l->owed) && (run->saved_step != run->place.step || l->owed)) {
            supervised_save(run, last || saves_at(run, run->place.step));
        }
        l->owed = false;
    }
    return true;
}

// ---- the loop ----

// Ends a run that is over, stopped, or whose data failed: what was learned is brought to the disk.
static enum grt_supervised_end finish(struct loop *l) {
    struct grt_supervised *run = l->run;
    // Data that fail before the first step leave everything as it was.
    bool moved = run->place.step > run->start || !l->failed;
    run->ended = supervised_ending(run);
    // A checkpoint of this step may be older than the end of the time, which the one that is left has to tell.
    if (moved && (run->saved_step != run->place.step || run->ended == GRT_ENDED_MAX_TIME)) {
        bool taken =
            grt_snapshot_take(run->snapshot, 0, true) && grt_snapshot_wait(run->snapshot, 0);
        run->state = *grt_snapshot_state(run->snapshot, 0);
        run->unsaved = !(taken && supervised_save(run, true));
    }
    return l->failed || supervised_lost(run) ? GRT_SUPERVISED_FAILED
           : run->ended != GRT_ENDED_NONE    ? GRT_SUPERVISED_DONE
                                             : GRT_SUPERVISED_STOPPED;
}

static enum grt_supervised_end run_segments(struct loop *l) {
    enum grt_supervised_end end = GRT_SUPERVISED_FAILED;
    bool stop = false;
    // Batches of a loader are waited for by the feed: nothing can be queued behind them.
    bool alone = l->run->desc.lockstep || !supervised_on_device(l->run);
    uint32_t ahead = alone ? 1 : SEGMENTS;
    for (bool begun = false;; begun = true) {
        stop = stop ||
               (begun && (asked_to_stop(l->run) || supervised_ending(l->run) != GRT_ENDED_NONE));
        uint32_t steps = stop || l->count == ahead ? 0 : steps_ahead(l);
        if (steps > 0 && !(l->whole_out && may_be_whole(l, steps))) {
            if (!queue_segment(l, steps)) {
                return GRT_SUPERVISED_FAILED;
            }
        } else if (l->count == 0) {
            return finish(l);
        } else if (!settle(l, &end)) {
            return end;
        } else {
            supervised_write_due(l->run);
        }
    }
}

enum grt_supervised_end grt_supervised_run(struct grt_supervised *run) {
    bool owes = supervised_owes_check(run);
    struct loop l = {.run = run,
                     .start_step = run->place.step,
                     .queued = run->place.step,
                     .checking = owes && run->check,
                     .owed = owes};
    double start = grt_seconds();
    l.now = l.all.start = l.step.start = l.epoch.start = start;
    run->written = start;
    run->ended = supervised_ending(run);
    if (run->ended != GRT_ENDED_NONE) {
        return GRT_SUPERVISED_DONE;
    }
    run->began = start;
    GRT_RUNLOG_ROW(
        run->log, "start", run->place.step, {"device", 0, grt_dev_info(run->desc.dev)->name},
        {"precision", 0, run->task.config.precision},
        {"parameters", (double)grt_learner_parameters(run->learner), NULL},
        {"batch", (double)run->task.learner.batch, NULL},
        {"accumulate", (double)run->task.learner.accumulate, NULL},
        {"steps", (double)run->steps, NULL}, {"seed", (double)run->task.config.seed, NULL});
    if (owes) {
        supervised_say(run, GRT_SUPERVISED_BEGUN, NULL);
    }
    // Without a validation there is nothing to do at the end of an epoch that a run begins with but to end it.
    enum grt_supervised_end end = GRT_SUPERVISED_FAILED;
    if (!owes || run->check || queue_end(&l)) {
        end = run_segments(&l);
    }
    // A checkpoint that was to wait, in case a newer one takes its place, waits no longer.
    if (!supervised_flush(run) && end != GRT_SUPERVISED_HALTED) {
        end = GRT_SUPERVISED_FAILED;
    }
    static const enum grt_ending endings[] = {[GRT_SUPERVISED_STOPPED] = GRT_ENDED_SIGNAL,
                                              [GRT_SUPERVISED_HALTED] = GRT_ENDED_NONFINITE,
                                              [GRT_SUPERVISED_FAILED] = GRT_ENDED_FAILED};
    run->ended = end == GRT_SUPERVISED_DONE ? run->ended : endings[end];
    GRT_RUNLOG_ROW(run->log, "end", run->place.step, {"ended", 0, grt_ending_word(run->ended)},
                   {"seconds", grt_seconds() - start, NULL});
    return end;
}
