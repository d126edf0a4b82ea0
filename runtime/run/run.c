// SPDX-License-Identifier: Apache-2.0
// The loop of every training:
//
//     advance -> evaluate, where due -> is that the end? -> save, where due -> advance ...
//
// Steps, evaluations and checkpoints are where their numbers say, whatever a trainer has queued
// ahead and wherever the run was resumed. An evaluation that is due and was given up, since the run
// was stopped, comes first when it goes on.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/whole_file.h"
#include "run_parts.h"

// ---- making ----

struct grt_run *grt_run_create(const struct grt_run_desc *desc) {
    if (!desc || !(desc->dir || desc->file)) {
        grt_fail(GRT_INVALID, "a run wants a folder or a file for its checkpoints");
        return NULL;
    }
    struct grt_run *run = calloc(1, sizeof *run);
    if (!run) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a run");
        return NULL;
    }
    run->desc = *desc;
    run->saved_step = run->left_step = RUN_UNSAVED;
    run->leads = run_writes(run);
    run->losses = grt_comm_losses(desc->comm);
    if (!run_keep_check(run)) {
        grt_run_destroy(&run);
    }
    return run;
}

void grt_run_destroy(struct grt_run **run) {
    if (!run || !*run) {
        return;
    }
    run_keep_close(*run);
    grt_runlog_destroy(&(*run)->log);
    free(*run);
    *run = NULL;
}

bool run_restore(struct grt_run *run, const struct grt_archive *archive) {
    const struct grt_run_start *s = &run->start;
    struct grt_run_place place;
    double spent = 0;
    run_keep_place(archive, &place, &spent);
    if (!s->trainer->load(s->self, run, archive, &place)) {
        return false;
    }
    if (place.evaluated == RUN_UNKNOWN) {
        // One that patience counts may be missing; others are not.
        bool counts = s->evaluate_every > 0 && place.step % s->evaluate_every == 0 &&
                      run_keep_counts(archive);
        place.evaluated = counts ? place.judged : place.step;
    }
    run->place = place;
    // Going back gives no time back.
    if (run->began == 0) {
        run->spent = spent;
    }
    return true;
}

static struct grt_runlog *open_log(const struct grt_run *run) {
    bool writes = run_writes(run);
    return grt_runlog_create(grt_runlog_desc(.jsonl = writes ? run->desc.log : NULL,
                                             .tensorboard = writes ? run->desc.tensorboard : NULL));
}

void run_thin(struct grt_run *run) {
    struct grt_comm *comm = run->desc.comm;
    char text[480];
    if (run->losses == grt_comm_losses(comm)) {
        return;
    }
    run->losses = grt_comm_losses(comm);
    bool heir = run_writes(run) && !run->leads;
    if (heir) {
        run->leads = true;
        struct grt_runlog *log = open_log(run);
        if (log) {
            grt_runlog_destroy(&run->log);
            run->log = log;
        }
        run_keep_take_over(run);
    }
    snprintf(text, sizeof text, "%s; the run goes on with %u rank%s%s", grt_comm_lost(comm),
             grt_comm_ranks(comm), grt_comm_ranks(comm) == 1 ? "" : "s",
             heir ? ", and this one writes log and checkpoints" : "");
    if (run_writes(run)) {
        grt_run_say(run, GRT_RUN_NEWS_FAULT, text);
    }
}

bool grt_run_begin(struct grt_run *run, const struct grt_run_start *start) {
    if (!run || !start || !start->trainer) {
        return grt_fail(GRT_INVALID, "grt_run_begin: no run, start or trainer");
    }
    run->start = *start;
    run->about = start->about ? *start->about : (struct grt_run_row){0};
    run->start.about = &run->about;
    bool limited = start->max_steps > 0 && start->max_steps <= start->steps;
    run->steps = limited ? start->max_steps : start->steps;
    run->all = limited ? GRT_ENDED_MAX_STEPS : start->trainer->all;
    if (!run_keep_open(run)) {
        return false;
    }
    const struct grt_archive *from = run->newest ? run->newest : start->from;
    bool good = !from || run_restore(run, from);
    if (good && from) {
        // A file that goes on elsewhere is written there, whatever happens.
        run->written = run->best_written =
            run->desc.file && grt_whole_file_same(run->desc.file, from->path);
        run->saved_step = run->newest || run->written ? run->place.step : RUN_UNSAVED;
        run->left_step = run->saved_step;
        // The best of another folder stays there: the next evaluation is the first of this one.
        run->place.any_best = run->place.any_best && (run->newest || !run->desc.dir);
        grt_run_say(run, GRT_RUN_NEWS_RESUMED, from->path);
    }
    grt_archive_destroy(&run->newest);
    run->start_step = run->place.step;
    run->log = good ? open_log(run) : NULL;
    // All have read the checkpoint before the first rank may replace it.
    char step[48];
    snprintf(step, sizeof step, "%llu of %llu", (unsigned long long)run->place.step,
             (unsigned long long)run->steps);
    good = grt_comm_all(run->desc.comm, "cannot begin: see its own line", run->log != NULL) &&
           grt_comm_agree(run->desc.comm, "step to begin with", step);
    run->bears = good && grt_comm_bear(run->desc.comm);
    return good;
}

// ---- what is due ----

struct grt_run_place *grt_run_place(struct grt_run *run) {
    return &run->place;
}

uint32_t grt_run_due(const struct grt_run *run, uint64_t step) {
    uint64_t evaluate = run->start.evaluate_every;
    uint64_t save = run->desc.save_every;
    bool last = step == run->steps;
    bool evaluates = last || (evaluate > 0 && step % evaluate == 0);
    bool saves = last || (save > 0 ? step % save == 0 : evaluates);
    return (evaluates ? GRT_DUE_EVALUATE : 0u) | (saves ? GRT_DUE_SAVE : 0u);
}

uint64_t grt_run_ahead(const struct grt_run *run, uint64_t step) {
    const uint64_t intervals[] = {run->start.evaluate_every, run->desc.save_every};
    uint64_t ahead = step < run->steps ? run->steps - step : 0;
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        uint64_t next = intervals[i] > 0 ? intervals[i] - step % intervals[i] : ahead;
        ahead = next < ahead ? next : ahead;
    }
    return ahead;
}

bool grt_run_decides(const struct grt_run *run) {
    return run->desc.limits.patience > 0 || run->start.target_count > 0;
}

bool grt_run_asked_to_stop(const struct grt_run *run) {
    struct grt_comm *comm = run->desc.comm;
    bool asked = run->desc.stop && run->desc.stop(run->desc.context);
    if (grt_comm_ranks(comm) == 1) {
        return asked;
    }
    // Ranks stop at the same step: each only says what it wants.
    bool over = run->desc.limits.max_time > 0 && run_seconds(run) >= run->desc.limits.max_time;
    grt_comm_want(comm, (asked ? GRT_STOP_SIGNAL : 0u) | (over ? GRT_STOP_TIME : 0u));
    return grt_comm_stop(comm) != 0;
}

double run_seconds(const struct grt_run *run) {
    return run->spent + (run->began > 0 ? grt_seconds() - run->began : 0);
}

// Whether the evaluation of the present step is still to come.
static bool owes(const struct grt_run *run) {
    const struct grt_run_place *p = &run->place;
    return p->step > 0 && p->evaluated < p->step && (grt_run_due(run, p->step) & GRT_DUE_EVALUATE);
}

// Seconds as limits count them: clocks of ranks differ, and their vote decides.
static double limit_seconds(const struct grt_run *run) {
    const struct grt_comm *comm = run->desc.comm;
    return grt_comm_ranks(comm) == 1             ? run_seconds(run)
           : grt_comm_stop(comm) & GRT_STOP_TIME ? INFINITY
                                                 : 0;
}

// Why there is nothing more to do, or NONE.
static enum grt_ending ending_of(const struct grt_run *run) {
    const struct grt_run_place *p = &run->place;
    if (owes(run)) {
        // What it comes to decides.
        return grt_limits_reached(&run->desc.limits, &(struct grt_patience){0}, limit_seconds(run));
    }
    if (p->reached) {
        return GRT_ENDED_UNTIL;
    }
    return p->step >= run->steps
               ? run->all
               : grt_limits_reached(&run->desc.limits, &p->patience, limit_seconds(run));
}

// ---- evaluations ----

static bool reaches(const struct grt_run *run, const struct grt_run_row *row) {
    for (uint32_t i = 0; i < run->start.target_count; i++) {
        const struct grt_run_target *t = &run->start.targets[i];
        double number = row->numbers[t->field];
        if (grt_run_row_has(row, t->field) &&
            (t->below ? number <= t->value : number >= t->value)) {
            return true;
        }
    }
    return false;
}

// Counts an evaluation for patience and as the best.
static bool count(struct grt_run *run, struct grt_run_row *row) {
    const struct grt_run_start *s = &run->start;
    struct grt_run_place *p = &run->place;
    p->evaluated = p->step;
    // Evaluations at the end of a run and those that a trainer asks for come on top of the rest,
    // and a resumed run would not have them.
    if (s->evaluate_every > 0 && p->step % s->evaluate_every == 0 && p->step > p->judged) {
        grt_patience_add(&p->patience, &run->desc.limits, row->score);
        p->judged = p->step;
        if (s->trainer->judged && !s->trainer->judged(s->self, run, row)) {
            return false;
        }
    }
    bool best = isfinite(row->score) && (!p->any_best || row->score > p->best_score);
    if (best) {
        p->any_best = true;
        p->best_score = row->score;
        p->best_step = p->step;
    }
    if (best && s->trainer->keeps_best) {
        // The checkpoint of this step follows; a best one that cannot be written is said, and the
        // run goes on.
        run_keep_best(run);
    }
    grt_run_row_set(row, GRT_FIELD_BEST, best);
    return true;
}

// Devices of different kinds may find different last bits: what the first rank found decides.
static bool follow(const struct grt_run *run, struct grt_run_row *row, bool *stopped) {
    struct {
        double score, numbers[GRT_FIELD_COUNT];
        bool stopped;
    } first;
    if (!run->desc.comm || grt_comm_stop(run->desc.comm)) {
        return true;
    }
    bool led = false;
    // Where a rank is gone and the others go on, the first of these decides.
    for (uint32_t losses = UINT32_MAX; !led && losses != grt_comm_losses(run->desc.comm);) {
        losses = grt_comm_losses(run->desc.comm);
        memset(&first, 0, sizeof first);
        first.score = row->score;
        first.stopped = *stopped;
        memcpy(first.numbers, row->numbers, sizeof first.numbers);
        led = grt_comm_lead(run->desc.comm, &first, sizeof first);
    }
    if (!led) {
        *stopped = true;
        return (grt_comm_stop(run->desc.comm) & GRT_STOP_LOST) != 0;
    }
    row->score = first.score;
    *stopped = first.stopped;
    memcpy(row->numbers, first.numbers, sizeof first.numbers);
    return true;
}

// `counts`: it is due, or the trainer asked for it; else it only tells whether a target is reached
// already, and at the very first what there is before anything is learnt.
static bool evaluate(struct grt_run *run, bool more, bool counts) {
    const struct grt_run_start *s = &run->start;
    struct grt_run_place *p = &run->place;
    struct grt_run_row row = {.event = GRT_RUN_EVALUATE};
    bool stopped = false;
    if (!s->trainer->evaluate(s->self, run, more, &row, &stopped) || !follow(run, &row, &stopped)) {
        return false;
    }
    if (stopped) {
        return true;
    }
    p->reached = p->reached || (p->step > 0 && reaches(run, &row));
    grt_run_row_set(&row, GRT_FIELD_BEST, 0);
    if (counts && !count(run, &row)) {
        return false;
    }
    if (counts || p->step == 0) {
        grt_run_tell(run, &row);
    }
    return true;
}

// ---- the loop ----

static void tell_start(struct grt_run *run) {
    struct grt_run_row row = run->about;
    row.event = GRT_RUN_START;
    grt_run_row_text(&row, GRT_FIELD_KIND, run->start.trainer->kind);
    grt_run_row_text(&row, GRT_FIELD_DEVICE, grt_dev_info(run->start.dev)->name);
    grt_run_row_set(&row, GRT_FIELD_STEPS, (double)run->steps);
    grt_run_tell(run, &row);
}

static bool mark_begun(struct grt_run *run) {
    if (run->begun || run->place.step == run->start_step) {
        return true;
    }
    run->begun = true;
    run->begun_at = grt_seconds();
    run->begun_step = run->place.step;
    run_announce(run);
    return run_keep_clear(run);
}

// What was learnt is brought to the disk.
static enum grt_ending finish(struct grt_run *run, bool failed) {
    run_thin(run);
    enum grt_ending ended = ending_of(run);
    // What fails before the first step leaves everything as it was.
    bool moved = run->place.step > run->start_step || !failed, older = false;
    // A checkpoint of this step may be older than the end of the time, which the one that is left
    // has to tell.
    if (moved && (run->saved_step != run->place.step || ended == GRT_ENDED_MAX_TIME)) {
        if (run_keep_whole(run)) {
            run_keep_save(run, true);
        }
        if (!run_keep_whole(run)) {
            run_keep_older(run);
            older = run->saved_step != run->place.step;
        }
    }
    // What is left is not the end of the run: it has to be resumed.
    return run->nonfinite                     ? GRT_ENDED_NONFINITE
           : failed                           ? GRT_ENDED_FAILED
           : ended == GRT_ENDED_NONE || older ? GRT_ENDED_SIGNAL
                                              : ended;
}

// The steps of one turn and what follows from them. False: the run is over, *end says how.
static bool take_turn(struct grt_run *run, bool more, enum grt_ending *end) {
    const struct grt_run_start *s = &run->start;
    struct grt_run_turn turn = {.more = more};
    if (!s->trainer->advance(s->self, run, &turn) || !mark_begun(run)) {
        *end = turn.trouble != GRT_ENDED_NONE ? turn.trouble : GRT_ENDED_FAILED;
        return false;
    }
    if (turn.idle) {
        *end = finish(run, turn.trouble != GRT_ENDED_NONE);
        return false;
    }
    // A stop leaves the evaluation to the next run.
    more = more && !grt_run_asked_to_stop(run) && ending_of(run) == GRT_ENDED_NONE;
    bool evaluates = owes(run) || (turn.evaluate && more);
    if (evaluates && !evaluate(run, more, true)) {
        *end = GRT_ENDED_FAILED;
        return false;
    }
    grt_run_say(run, GRT_RUN_NEWS_TURN, NULL);
    bool due = (grt_run_due(run, run->place.step) & GRT_DUE_SAVE) && !owes(run);
    if (due && run->saved_step != run->place.step && ending_of(run) == GRT_ENDED_NONE) {
        run_keep_save(run, run->desc.save_every > 0);
    }
    if (run->nonfinite) {
        *end = GRT_ENDED_NONFINITE;
        return false;
    }
    run_keep_due(run);
    return true;
}

static enum grt_ending loop(struct grt_run *run) {
    enum grt_ending end = GRT_ENDED_NONE;
    bool owed = owes(run);
    if (owed) {
        run_announce(run);
    }
    if (owed || run->start.trainer->tries_first) {
        if (!evaluate(run, true, owed)) {
            return GRT_ENDED_FAILED;
        }
        grt_run_say(run, GRT_RUN_NEWS_TURN, NULL);
        // What patience has counted, and a best one, are to be kept.
        if (owed && run->place.evaluated == run->place.step) {
            run->saved_step = RUN_UNSAVED;
        }
    }
    bool stop = ending_of(run) != GRT_ENDED_NONE;
    while (take_turn(run, !stop, &end)) {
        stop = stop || grt_run_asked_to_stop(run) || ending_of(run) != GRT_ENDED_NONE;
    }
    return end;
}

// A checkpoint that was to wait, in case a newer one takes its place, waits no longer. Ranks that
// outlive others part behind it: where the first is gone meanwhile, the next one saves. Asked to
// stop they do not wait for each other that long, and the run can be resumed.
static void keep_last(struct grt_run *run) {
    struct grt_comm *comm = run->desc.comm;
    bool together = run->bears && run->ended != GRT_ENDED_FAILED && run->ended != GRT_ENDED_SIGNAL;
    char saved = 1;
    run_keep_finish(run);
    for (uint32_t losses = grt_comm_losses(comm);
         together && !grt_comm_lead(comm, &saved, 1) && losses != grt_comm_losses(comm);) {
        losses = grt_comm_losses(comm);
        run->ended = run->nonfinite ? run->ended : finish(run, false);
        run_keep_finish(run);
    }
}

enum grt_ending grt_run_go(struct grt_run *run) {
    run->ended = ending_of(run);
    // Of no steps at all what there is before the first is kept.
    bool first = run->steps == 0 && run->place.step == 0 && run->saved_step == RUN_UNSAVED;
    if (run->ended != GRT_ENDED_NONE && !first) {
        return run->ended;
    }
    run->began = run->write_time = grt_seconds();
    run_keep_begin(run);
    run_keep_origin(run);
    tell_start(run);
    grt_runlog_settings(run->log, run->start.config);
    run->ended = !first ? loop(run) : run_keep_clear(run) ? finish(run, false) : GRT_ENDED_FAILED;
    keep_last(run);
    bool lost = run->unmade || run->unwritten || run->best_unmade || run->best_unwritten;
    if (lost && run->ended != GRT_ENDED_NONFINITE) {
        run->ended = GRT_ENDED_FAILED;
    }
    struct grt_run_row row = {.event = GRT_RUN_END};
    grt_run_row_text(&row, GRT_FIELD_ENDED, grt_ending_word(run->ended));
    grt_run_tell(run, &row);
    grt_runlog_ended(run->log, run->ended != GRT_ENDED_FAILED && run->ended != GRT_ENDED_NONFINITE);
    return run->ended;
}

struct grt_run_info grt_run_info(const struct grt_run *run) {
    return (struct grt_run_info){
        .trainer = run->start.trainer,
        .start = run->start_step,
        .step = run->place.step,
        .steps = run->steps,
        .epoch = run->start.epoch,
        .ended = run->ended != GRT_ENDED_NONE ? run->ended : ending_of(run),
        .place = run->place,
        .seconds = run->began > 0 ? grt_seconds() - run->began : 0,
        .log_failed = grt_runlog_failed(run->log),
        .where = run->desc.file ? run->desc.file : run->desc.dir,
        .score = run->start.score,
        .keep = run->desc.keep,
    };
}
