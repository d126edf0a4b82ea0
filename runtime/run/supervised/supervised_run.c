// SPDX-License-Identifier: Apache-2.0
// Steps and evaluations: segments of steps are queued ahead, and what they came to is read behind.
//
//     device   | segment 0 | segment 1 | validation | segment 2 | ...
//     host       queues 0, 1, 2 ...      settles 0, queues 3, settles 1, ...
//
// A segment is a run of steps, or of the validation's, that ends where the run has something to do
// that needs the tensors as they are there: at the end of an epoch, at a checkpoint. Behind each a
// snapshot is taken, of the tensors too where they are needed. Settling a segment is all that the
// host does with it: its rows, and what the run does then. What happens at step n depends on
// neither where a segment ends nor where the run was resumed.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "supervised_parts.h"

#define SEGMENTS GRT_SNAPSHOT_SLOTS

static void meter_add(struct supervised_meter *m, uint64_t samples, double stalled) {
    m->samples += samples;
    m->stalled += stalled;
}

static uint64_t step_of(const struct grt_supervised *s) {
    return grt_run_place(s->driver)->step;
}

// ---- rows ----

// What rows of steps and of evaluations have alike.
static struct grt_run_row row_of(const struct grt_supervised *s, enum grt_run_event event,
                                 const struct supervised_meter *m) {
    const struct supervised_place *p = &s->place;
    double seconds = s->loop.now - m->start;
    // At the end of an epoch the position is at the begin of the next one.
    bool ended = p->position.batch == 0 && step_of(s) > 0;
    struct grt_run_row row = {.event = event, .epochs = s->task.config.epochs};
    grt_run_row_set(&row, GRT_FIELD_EPOCH, (double)(p->position.epoch + (ended ? 0 : 1)));
    grt_run_row_set(&row, GRT_FIELD_LR, (double)s->state.lr);
    grt_run_row_set(&row, GRT_FIELD_LOSS_SCALE, (double)s->state.loss_scale);
    grt_run_row_set(&row, GRT_FIELD_SKIPPED, s->state.skipped);
    grt_run_row_set(&row, GRT_FIELD_SAMPLES_PER_S, seconds > 0 ? (double)m->samples / seconds : 0);
    grt_run_row_set(&row, GRT_FIELD_DATA_SHARE, seconds > 0 ? fmin(1, m->stalled / seconds) : 0);
    return row;
}

static struct grt_run_row step_row(const struct grt_supervised *s, double loss) {
    struct grt_run_row row = row_of(s, GRT_RUN_TRAIN, &s->loop.step);
    grt_run_row_set(&row, GRT_FIELD_LOSS, loss);
    grt_run_row_set(&row, GRT_FIELD_GRAD_NORM, (double)s->state.grad_norm);
    return row;
}

// Over samples; of steps that all were idle it is 0, as theirs are.
static double mean_loss(double sum, uint64_t samples, uint64_t idle) {
    return samples > idle ? sum / (double)(samples - idle) : samples > 0 ? 0 : NAN;
}

// Each of several losses.
static void set_losses(struct grt_run_row *row, uint32_t count, const double *losses) {
    for (uint32_t i = 0; i < count; i++) {
        grt_run_row_set(row, (enum grt_run_field)(GRT_FIELD_TERM_1 + i), losses[i]);
    }
}

static void log_step(struct grt_supervised *s) {
    struct supervised_loop *l = &s->loop;
    struct grt_run_row row = step_row(s, mean_loss(l->loss, l->loss_samples, l->loss_idle));
    for (uint32_t i = 0; i < GRT_LOSS_MOST; i++) {
        l->losses[i] = mean_loss(l->losses[i], l->loss_samples, l->loss_idle);
    }
    set_losses(&row, s->task.learner.loss_count, l->losses);
    memset(l->losses, 0, sizeof l->losses);
    if (l->noise.trace > 0 && l->noise.square > 0) {
        grt_run_row_set(&row, GRT_FIELD_GRAD_NOISE, l->noise.trace / l->noise.square);
    }
    grt_run_tell(s->driver, &row);
    l->step = (struct supervised_meter){.start = l->now};
    l->loss = 0;
    l->loss_samples = l->loss_idle = 0;
    l->noise = (struct supervised_noise){0};
}

void supervised_tally(const struct grt_learner *learner, const struct grt_learn_state *state,
                      struct grt_evaluation *evaluation) {
    double samples = (double)state->eval_samples;
    bool classes = grt_learner_desc_of(learner)->loss == GRT_LOSS_CROSS_ENTROPY;
    evaluation->samples = (uint64_t)samples;
    evaluation->loss = samples > 0 ? (double)state->eval_loss / samples : NAN;
    const struct grt_learner_desc *desc = grt_learner_desc_of(learner);
    evaluation->loss_count = desc->loss_count;
    for (uint32_t i = 0; i < desc->loss_count; i++) {
        double sum = (double)state->eval_parts[i] / (double)desc->losses[i].scale;
        evaluation->losses[i] = samples > 0 ? sum / samples : NAN;
    }
    evaluation->accuracy = classes && samples > 0 ? (double)state->eval_hits / samples : -1;
    bool many = classes && grt_learner_outputs(learner) > 5;
    evaluation->top5 = many && samples > 0 ? (double)state->eval_near / samples : -1;
}

// The last step of all ends its epoch as the last one of the data does, wherever max_steps puts it.
static void end_epoch(struct grt_supervised *s, struct grt_run_row *row) {
    struct supervised_place *p = &s->place;
    struct supervised_loop *l = &s->loop;
    struct grt_evaluation e = {.accuracy = -1, .top5 = -1};
    double loss = mean_loss(p->epoch_loss, p->epoch_samples, p->epoch_idle);
    *row = row_of(s, GRT_RUN_EVALUATE, &l->epoch);
    grt_run_row_set(row, GRT_FIELD_TRAIN_LOSS, loss);
    row->score = -loss;
    if (s->check) {
        supervised_tally(s->learner, &s->state, &e);
        grt_run_row_set(row, GRT_FIELD_LOSS, e.loss);
        row->score = -e.loss;
        set_losses(row, e.loss_count, e.losses);
    }
    if (e.accuracy >= 0) {
        grt_run_row_set(row, GRT_FIELD_ACCURACY, e.accuracy);
        p->best_accuracy = fmax(p->best_accuracy, e.accuracy);
    }
    if (e.top5 >= 0) {
        grt_run_row_set(row, GRT_FIELD_TOP5, e.top5);
    }
    const char *best = s->task.config.metric_for_best;
    row->score = strcmp(best, "accuracy") == 0 ? e.accuracy
                 : strcmp(best, "top5") == 0   ? e.top5
                                               : row->score;
    p->epoch_loss = 0;
    p->epoch_samples = p->epoch_idle = 0;
    l->epoch = l->step = (struct supervised_meter){.start = l->now};
    l->undecided = false;
}

// Nothing is queued behind an evaluation that may change the rate.
bool supervised_judged(void *self, struct grt_run *run, const struct grt_run_row *row) {
    struct grt_supervised *s = self;
    struct plateau *p = &s->place.plateau;
    double before = plateau_factor(p), lr = s->plateau_desc.lr;
    struct grt_learn_state state;
    char text[128];
    if (!s->falls || !plateau_add(p, &s->plateau_desc, row->score)) {
        return true;
    }
    if (!grt_learner_state(s->learner, &state)) {
        return false;
    }
    state.lr_factor = s->lr_factor = (float)(state.lr_factor * (plateau_factor(p) / before));
    snprintf(text, sizeof text, "learning rate %g -> %g: %s did not improve", before * lr,
             plateau_factor(p) * lr, s->task.config.metric_for_best);
    grt_run_say(run, GRT_RUN_NEWS_NOTE, text);
    return grt_learner_set_state(s->learner, &state);
}

// ---- losses that are not finite ----

// Runs the step that went wrong again: it is halted, so nothing changes, and its tensors can be
// looked at.
static void name_nonfinite(struct grt_supervised *s) {
    struct grt_loader_position position = s->place.position;
    struct grt_tensor x, y;
    char name[128] = "";
    char text[256];
    bool found = false;
    for (uint32_t i = 0; !found && s->train && grt_feed_part(s->train, position, i, &x, &y); i++) {
        found = grt_learner_find_nonfinite(s->learner, &x, &y, name, sizeof name);
    }
    if (!found) {
        snprintf(name, sizeof name, "the loss");
    }
    snprintf(text, sizeof text, "step %llu (epoch %llu, batch %llu): %s is not finite",
             (unsigned long long)step_of(s) + 1, (unsigned long long)position.epoch + 1,
             (unsigned long long)position.batch + 1, name);
    struct grt_run_row row = {.event = GRT_RUN_NONFINITE};
    grt_run_row_text(&row, GRT_FIELD_TENSOR, name);
    grt_run_tell(s->driver, &row);
    grt_run_say(s->driver, GRT_RUN_NEWS_FAULT, text);
}

static bool roll_back(struct grt_supervised *s) {
    struct grt_learn_state state;
    double factor = ldexp(1.0, -(int)++s->rollbacks);
    bool none = false;
    char text[96];
    if (!grt_run_back(s->driver, &none) || (none && !supervised_restart(s)) ||
        !grt_learner_state(s->learner, &state)) {
        return false;
    }
    state.halted = 0;
    state.lr_factor = (float)(plateau_factor(&s->place.plateau) * factor);
    s->lr_factor = state.lr_factor;
    struct grt_run_row row = {.event = GRT_RUN_ROLLBACK};
    grt_run_row_set(&row, GRT_FIELD_LR_FACTOR, factor);
    grt_run_tell(s->driver, &row);
    snprintf(text, sizeof text, "back to step %llu, with half the learning rate",
             (unsigned long long)step_of(s));
    grt_run_say(s->driver, GRT_RUN_NEWS_FAULT, text);
    return grt_learner_set_state(s->learner, &state);
}

// What was queued behind a step that is not finite came to nothing: the device changes no tensor
// after it.
static bool settle_halt(struct grt_supervised *s, struct grt_run_turn *turn) {
    supervised_begin_queue(s, step_of(s));
    if (!grt_dev_wait(s->desc.dev)) {
        return false;
    }
    turn->trouble = GRT_ENDED_NONFINITE;
    name_nonfinite(s);
    bool again =
        s->task.config.on_nan_loss[0] == 'r' && s->rollbacks < SUPERVISED_ROLLBACKS && roll_back(s);
    // A validation that was on its way begins anew.
    struct grt_loader_position check =
        s->check ? grt_feed_position(s->check) : (struct grt_loader_position){0};
    if (again && check.batch != 0) {
        check.batch = 0;
        again = grt_feed_seek(s->check, check);
    }
    supervised_begin_queue(s, step_of(s));
    s->state.halted = 0;
    turn->trouble = again ? GRT_ENDED_NONE : turn->trouble;
    return again;
}

// ---- queueing ----

void supervised_begin_queue(struct grt_supervised *s, uint64_t step) {
    struct supervised_loop *l = &s->loop;
    l->count = l->whole_out = 0;
    l->undecided = false;
    if (s->snapshot) {
        grt_snapshot_forget(s->snapshot);
    }
    l->queued = step;
    l->checking = supervised_owes(s, step) && s->check;
}

// As many of `most` steps as a segment may take time; where these are fewer, a power of two, which
// is one graph.
static uint32_t cut(double step_seconds, uint64_t most) {
    if (step_seconds * (double)most > SUPERVISED_ROOM) {
        uint64_t fit = (uint64_t)(SUPERVISED_ROOM / step_seconds);
        for (most = 1; 2 * most <= fit;) {
            most *= 2;
        }
    }
    return (uint32_t)(most < GRT_HISTORY ? most : GRT_HISTORY);
}

// Whether the first part of the first validation is on its way where launching it compiles. What is
// queued behind it would be told a share of that time: the second epoch was said to train 136
// samples/s in place of 40,000 (PoCL, an empty cache).
static bool first_check_is_out(const struct grt_supervised *s) {
    const struct supervised_loop *l = &s->loop;
    bool out = false;
    for (uint32_t i = 0; i < l->count; i++) {
        out = out || l->ring[(l->first + i) % SEGMENTS].checks;
    }
    return out && l->check_seconds == 0 && grt_dev_info(s->desc.dev)->caps.software;
}

// Steps of the next segment; 0: there is none.
static uint32_t steps_ahead(const struct grt_supervised *s) {
    const struct supervised_loop *l = &s->loop;
    bool known = l->step_seconds > 0 || l->check_seconds > 0;
    if (l->failed || l->undecided || (!l->checking && l->queued >= s->steps) ||
        first_check_is_out(s)) {
        return 0;
    }
    // The first step is done alone where nobody knows yet how long one takes.
    if (!known) {
        return l->count == 0;
    }
    if (l->checking) {
        return cut(l->check_seconds > 0 ? l->check_seconds : l->step_seconds, GRT_HISTORY);
    }
    uint64_t most = grt_run_ahead(s->driver, l->queued);
    if (s->desc.lockstep) {
        uint64_t log = s->task.config.log_interval;
        most = log - l->queued % log < most ? log - l->queued % log : most;
    }
    return cut(l->step_seconds, most);
}

// Whether a segment of so many steps may end where the tensors are needed.
static bool may_be_whole(const struct grt_supervised *s, uint32_t steps) {
    const struct supervised_loop *l = &s->loop;
    if (l->checking) {
        uint64_t at = grt_feed_position(s->check).batch;
        return at + steps >= grt_loader_info(s->check_loader).batches_per_epoch;
    }
    uint32_t due = grt_run_due(s->driver, l->queued + steps);
    // An epoch's end is saved behind its validation. H200, batch 65536: 3.4 ms an epoch where its
    // steps take 2.6, while the next one was not queued before that was settled.
    return due & GRT_DUE_EVALUATE ? !s->check : (due & GRT_DUE_SAVE) != 0;
}

static bool queue_segment(struct grt_supervised *s, uint32_t steps) {
    struct supervised_loop *l = &s->loop;
    struct supervised_segment g = {.checks = l->checking};
    // Each rank measures its own step_seconds. Segments of other lengths would part the ranks where
    // one ends by a loss that is not finite.
    if (s->ranks && !g.checks && !grt_comm_lead(s->desc.comm, &steps, sizeof steps) &&
        !(grt_comm_stop(s->desc.comm) & GRT_STOP_LOST)) {
        return false;
    }
    // A batch that is sent ahead may lie where a validation has its own.
    bool due = s->check && (grt_run_due(s->driver, l->queued + steps) & GRT_DUE_EVALUATE);
    bool more = g.checks || (s->steps - l->queued > steps && !due);
    struct grt_feed *feed = g.checks ? s->check : s->train;
    // A step of training takes longer than one of validation.
    if (feed) {
        grt_feed_expect(feed,
                        g.checks && l->check_seconds > 0 ? l->check_seconds : l->step_seconds);
    }
    uint64_t from = g.checks ? grt_feed_position(s->check).batch : 0;
    // Each segment takes its parameters back: an evaluation may be given up behind any of them.
    if (g.checks && !grt_learner_average(s->learner, true)) {
        return false;
    }
    g.fed = g.checks || !s->ranks ? grt_feed_run(feed, steps, more, &g.done)
                                  : supervised_ranks_run(s, steps, &g.done);
    if (g.checks && !grt_learner_average(s->learner, false)) {
        return false;
    }
    if (g.checks) {
        g.ends = g.done.epoch_ended;
        g.part = supervised_check_queued(s, from, &g.done);
        l->checking = !g.ends;
    } else {
        l->queued += g.done.steps;
        g.ends = g.fed && (l->queued % s->check_every == 0 || l->queued >= s->steps);
        l->checking = g.ends && s->check;
    }
    l->failed = !g.fed;
    // Neighbours are tried with nothing else on the device: their time is no part of any rate.
    l->undecided = g.ends && !l->checking &&
                   (s->falls || grt_run_decides(s->driver) || supervised_knn_due(s, l->queued));
    g.whole = (g.ends && !l->checking) ||
              (!g.checks && !g.ends && (grt_run_due(s->driver, l->queued) & GRT_DUE_SAVE));
    uint32_t slot = (l->first + l->count) % SEGMENTS;
    l->ring[slot] = g;
    l->count++;
    l->whole_out += g.whole;
    return grt_snapshot_take(s->snapshot, slot, g.whole);
}

// As many as there is room for.
static bool queue_ahead(struct grt_supervised *s) {
    // Batches of a loader are waited for by the feed: nothing can be queued behind them.
    uint32_t most = s->desc.lockstep || !supervised_on_device(s) ? 1 : SEGMENTS;
    uint32_t whole_most = grt_snapshot_most(s->snapshot);
    // A validation that finds its place behind the first epoch waits for that epoch: 0.5 ms (H200).
    if (s->loop.count == 0 && s->check && !grt_feed_place(s->check)) {
        return false;
    }
    while (s->loop.count < most) {
        uint32_t steps = steps_ahead(s);
        // So many snapshots of the tensors are on their way at a time. With two, two epochs are
        // queued. With one, the step that wants the next waits for it, and those before it do not.
        // H200, Vulkan, batch 65536: 0.43 ms were between two epochs of 1.8 ms without validation.
        if (steps > 0 && s->loop.whole_out == whole_most && may_be_whole(s, steps)) {
            steps = s->loop.checking || whole_most > 1 ? 0 : steps - 1;
        }
        if (steps == 0) {
            break;
        }
        // H200, Vulkan: 15 us are between submits, and an epoch of 27 steps, 2.6 ms, had seven.
        bool good = grt_dev_hold(s->desc.dev, most > 1) && queue_segment(s, steps);
        if (!grt_dev_hold(s->desc.dev, false) || !good) {
            return false;
        }
    }
    return true;
}

// ---- settling ----

static void move_on(struct grt_supervised *s) {
    struct supervised_place *p = &s->place;
    grt_run_place(s->driver)->step++;
    p->position.batch++;
    if (p->position.batch == s->steps_per_epoch) {
        p->position = (struct grt_loader_position){.epoch = p->position.epoch + 1};
    }
}

// A step whose weights are all 0 has neither loss nor gradient, and is no part of a mean.
static void add_loss(struct grt_supervised *s, double loss, bool idle, uint64_t samples) {
    s->loop.newest_loss = loss;
    // Overflowed gradients can still have a finite loss: count it.
    if (isfinite(loss)) {
        s->loop.loss += loss * (double)samples;
        s->loop.loss_samples += samples;
        s->place.epoch_loss += loss * (double)samples;
        s->place.epoch_samples += samples;
        s->loop.loss_idle += idle ? samples : 0;
        s->place.epoch_idle += idle ? samples : 0;
    }
}

// Goes through the steps of a segment that were done before a loss that is not finite, which is the
// last of `good` steps; the time that all took is theirs in equal shares.
static void settle_steps(struct grt_supervised *s, const struct supervised_segment *g,
                         uint32_t slot, uint32_t good, double seconds) {
    struct supervised_loop *l = &s->loop;
    const struct grt_learn_state *after = grt_snapshot_state(s->snapshot, slot);
    uint32_t first = after->steps - g->done.steps;
    bool logged = false;
    s->state = *after;
    for (uint32_t i = 0; i < g->done.steps; i++) {
        s->state.skipped -= grt_snapshot_row(s->snapshot, slot, first + i).loss_scale < 0;
    }
    for (uint32_t i = 0; i < good; i++) {
        struct grt_learn_row row = grt_snapshot_row(s->snapshot, slot, first + i);
        bool last = i + 1 == g->done.steps, idle = row.grad_norm < 0;
        uint64_t samples = last ? g->done.last_rows : s->step_rows;
        l->now += seconds / g->done.steps;
        s->state.lr = row.lr;
        s->state.grad_norm = idle ? 0 : row.grad_norm;
        s->state.skipped += row.loss_scale < 0;
        s->state.loss_scale =
            last ? after->loss_scale
                 : fabsf(grt_snapshot_row(s->snapshot, slot, first + i + 1).loss_scale);
        struct supervised_noise noise =
            supervised_noise_of(s, step_of(s), (double)s->state.grad_norm);
        l->noise.trace += noise.trace;
        l->noise.square += noise.square;
        move_on(s);
        add_loss(s, (double)row.loss, idle, samples);
        for (uint32_t k = 0; isfinite(row.loss) && k < s->task.learner.loss_count; k++) {
            double scale = (double)s->task.learner.losses[k].scale;
            l->losses[k] += (double)row.parts[k] / scale * (double)samples;
        }
        meter_add(&l->step, samples, g->done.stalled / g->done.steps);
        meter_add(&l->epoch, samples, g->done.stalled / g->done.steps);
        if (step_of(s) % s->task.config.log_interval == 0 || (last && g->ends)) {
            log_step(s);
            logged = true;
        }
    }
    if (!logged && good > 0 && l->begun) {
        struct grt_run_row row = step_row(s, l->newest_loss);
        grt_run_progress(s->driver, &row);
    }
}

static bool settle_training(struct grt_supervised *s, const struct supervised_segment *g,
                            uint32_t slot, double seconds, struct grt_run_turn *turn) {
    struct supervised_loop *l = &s->loop;
    const struct grt_learn_state *after = grt_snapshot_state(s->snapshot, slot);
    bool halted = after->halted != 0;
    uint32_t good = halted ? after->halted - 1 - (after->steps - g->done.steps) : g->done.steps;
    uint64_t log = s->task.config.log_interval;
    // In the first step drivers finish their kernels, which is no part of any rate; unless a row is
    // due already: then there is no other time to tell.
    l->apart = !l->begun && !g->ends && (step_of(s) + g->done.steps) % log != 0;
    settle_steps(s, g, slot, good, seconds);
    l->begun = l->begun || !halted;
    return !halted || settle_halt(s, turn);
}

// What the oldest segment took of the time since the one before it was settled: segments behind it
// that are done by now, where the host came late, have their shares by steps. Without that an H200
// was said to do 953 million images/s (2026-11).
static double seconds_of_oldest(const struct grt_supervised *s) {
    const struct supervised_loop *l = &s->loop;
    double seconds = grt_seconds() - l->now;
    uint64_t steps = l->ring[l->first].done.steps, all = steps;
    for (uint32_t i = 1; i < l->count; i++) {
        uint32_t slot = (l->first + i) % SEGMENTS;
        if (!grt_snapshot_passed(s->snapshot, slot)) {
            break;
        }
        all += l->ring[slot].done.steps;
    }
    return all > steps ? seconds * (double)steps / (double)all : seconds;
}

// The oldest segment.
static bool settle(struct grt_supervised *s, struct grt_run_turn *turn) {
    struct supervised_loop *l = &s->loop;
    uint32_t slot = l->first;
    struct supervised_segment g = l->ring[slot];
    if (!grt_snapshot_wait(s->snapshot, slot)) {
        return false;
    }
    double seconds = seconds_of_oldest(s);
    l->first = (l->first + 1) % SEGMENTS;
    l->count--;
    l->whole_out -= g.whole;
    if (g.done.steps > 0) {
        *(g.checks ? &l->check_seconds : &l->step_seconds) = seconds / g.done.steps;
    }
    if (g.whole) {
        s->whole_step = step_of(s) + (g.checks ? 0 : g.done.steps);
    }
    if (!g.checks && g.done.steps > 0) {
        return settle_training(s, &g, slot, seconds, turn);
    }
    s->state = *grt_snapshot_state(s->snapshot, slot);
    supervised_check_keep(s, g.part, &s->state);
    l->now += seconds;
    l->epoch.start += seconds;  // its rate is that of training
    return true;
}

// ---- the trainer ----

// What the run did since the first step, such as moving files, is not measured either.
static void set_meters(struct supervised_loop *l) {
    if (l->now == 0 || l->apart) {
        l->now = grt_seconds();
        l->step = l->epoch = (struct supervised_meter){.start = l->now};
        l->apart = false;
    }
}

// Once, behind the row that begins the run.
static void tell_baseline(struct grt_supervised *s) {
    if (s->baseline < 0 || s->baseline_told) {
        return;
    }
    struct grt_run_row row = {.event = GRT_RUN_BASELINE};
    grt_run_row_text(&row, GRT_FIELD_BASELINE, "frequent");
    grt_run_row_set(&row, GRT_FIELD_ACCURACY, s->baseline);
    grt_run_tell(s->driver, &row);
    s->baseline_told = true;
}

bool supervised_advance(void *self, struct grt_run *run, struct grt_run_turn *turn) {
    struct grt_supervised *s = self;
    (void)run;
    tell_baseline(s);
    set_meters(&s->loop);
    if (turn->more && !queue_ahead(s)) {
        return false;
    }
    turn->idle = s->loop.count == 0;
    if (turn->idle) {
        turn->trouble = s->loop.failed ? GRT_ENDED_FAILED : GRT_ENDED_NONE;
        return true;
    }
    return settle(s, turn);
}

bool supervised_evaluate(void *self, struct grt_run *run, bool more, struct grt_run_row *row,
                         bool *stopped) {
    struct grt_supervised *s = self;
    struct supervised_loop *l = &s->loop;
    struct grt_run_turn turn = {0};
    // Nobody asks for a stop within a validation that ranks share: all begin it, or none.
    bool meets = s->ranks && s->check && more && !grt_run_asked_to_stop(run);
    set_meters(l);
    for (bool ended = !s->check; !ended && !*stopped;) {
        more = more && !grt_run_asked_to_stop(run);
        if (more && !queue_ahead(s)) {
            return false;
        }
        // What was not queued, or had no data, is given up.
        *stopped = l->count == 0 || !l->ring[l->first].checks;
        ended = !*stopped && l->ring[l->first].ends;
        if (!*stopped && !settle(s, &turn)) {
            return false;
        }
    }
    if (meets && !supervised_check_meet(s, stopped)) {
        return false;
    }
    if (*stopped) {
        return true;
    }
    const struct grt_task *judged = s->apart.data ? &s->apart : &s->task;
    if (s->check && !supervised_weighs(judged, (double)s->state.eval_samples)) {
        return false;
    }
    double near = supervised_knn(s, run, stopped), exposed = -1;
    // Not behind a stop, which may have come to some ranks alone.
    if (!*stopped && !grt_comm_stop(s->desc.comm) && !supervised_exposed(s, &exposed)) {
        *stopped = (grt_comm_stop(s->desc.comm) & GRT_STOP_LOST) != 0;
        return *stopped;
    }
    if (*stopped) {
        return true;
    }
    end_epoch(s, row);
    if (exposed >= 0) {
        grt_run_row_set(row, GRT_FIELD_EXPOSED, exposed);
    }
    if (near >= 0) {
        grt_run_row_set(row, GRT_FIELD_KNN, near);
    }
    return true;
}
