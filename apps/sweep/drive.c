// SPDX-License-Identifier: Apache-2.0
// Runs a sweep: starts what waits where there is room, judges what has ended, ends early what
// others are better than, and stops all when it is asked to.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/talk.h"
#include "sweep.h"

#define LOOK_SECONDS 0.25  // between looks at the logs

uint32_t sweep_count(const struct sweep *s, enum sweep_state state) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        count += s->trials[i].state == state;
    }
    return count;
}

double sweep_left(const struct sweep *s) {
    double seconds = 0, left = 0;
    uint32_t ended = 0, open = 0;
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        const struct sweep_trial *t = &s->trials[i];
        if (sweep_state_final(t->state)) {
            seconds += t->progress.spent + t->progress.seconds;
            ended++;
        }
    }
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        const struct sweep_trial *t = &s->trials[i];
        double own = sweep_progress_left(&t->progress);
        if (!sweep_state_final(t->state)) {
            open++;
            if (own < 0 && ended == 0) {
                return -1;
            }
            left += own >= 0 ? own : seconds / ended;
        }
    }
    uint32_t slots = s->slots > 0 && s->slots < open ? s->slots : open;
    return slots ? left / slots : 0;
}

// ---- halving ----

// The best that a trial had when it came to a rung, and when that was.
static bool value_at(const struct sweep *s, const struct sweep_trial *t, uint64_t rung,
                     struct sweep_rung_value *value) {
    const struct sweep_progress *p = &t->progress;
    bool any = false;
    for (uint32_t i = 0; i < p->count; i++) {
        double v = p->points[i].value;
        bool better = any && (s->plan.metric.maximize ? v > value->value : v < value->value);
        if (!any || better || (value->value != value->value && v == v)) {
            value->value = v;
        }
        any = true;
        if (p->points[i].at >= rung) {
            value->time = p->points[i].time;
            return true;
        }
    }
    return false;
}

static bool goes_on(const struct sweep *s, const struct sweep_trial *t, uint64_t rung,
                    struct sweep_rung_value own) {
    struct sweep_rung_value *all = calloc(s->plan.trials, sizeof *all);
    uint32_t count = 0;
    for (uint32_t i = 0; all && i < s->plan.trials; i++) {
        count += value_at(s, &s->trials[i], rung, &all[count]);
    }
    bool on = !all || sweep_goes_on(all, count, own, s->plan.halving.eta, s->plan.metric.maximize);
    free(all);
    (void)t;
    return on;
}

// The last rung is no end: a trial that is done there is done.
void sweep_judge_rungs(struct sweep *s) {
    const struct sweep_halving *h = &s->plan.halving;
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        struct sweep_trial *t = &s->trials[i];
        struct sweep_rung_value own = {0};
        while (t->state == SWEEP_RUNNING && t->asked == SWEEP_ASK_NOTHING && t->rungs < h->count &&
               value_at(s, t, h->rungs[t->rungs], &own)) {
            uint64_t rung = h->rungs[t->rungs++];
            if (t->progress.ended[0] == '\0' && !goes_on(s, t, rung, own)) {
                t->asked = SWEEP_ASK_HALVE;
                s->executor->stop(s, t);
            }
        }
    }
}

static void look_at_logs(struct sweep *s) {
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        char path[SWEEP_PATH];
        if (s->trials[i].state == SWEEP_RUNNING) {
            sweep_trial_path(s, &s->trials[i], "log.jsonl", path);
            sweep_progress_read(&s->trials[i].progress, path, &s->plan.metric);
        }
    }
    sweep_judge_rungs(s);
}

// ---- the loop ----

static bool start_one(struct sweep *s, struct sweep_trial *t) {
    t->rows_before = t->progress.rows;
    t->prepared = t->prepared || sweep_trial_prepare(s, t);
    if (!t->prepared || !s->executor->start(s, t)) {
        return false;
    }
    t->state = SWEEP_RUNNING;
    t->asked = SWEEP_ASK_NOTHING;
    bool good = sweep_trial_save(s, t);
    if (s->tell) {
        s->tell(s, t);
    }
    return good;
}

static bool start_waiting(struct sweep *s) {
    uint32_t room = s->executor->room(s);
    for (uint32_t i = 0; i < s->plan.trials && room > 0; i++) {
        if (s->trials[i].state == SWEEP_WAITING) {
            if (!start_one(s, &s->trials[i])) {
                return false;
            }
            room--;
        }
    }
    return true;
}

// While nothing else is to be done: the folder of the next trial, so that a slot that becomes free
// does not wait for the disk.
static void prepare_next(struct sweep *s) {
    uint32_t ahead = s->slots ? s->slots : 1;
    for (uint32_t i = 0; i < s->plan.trials && ahead > 0; i++) {
        struct sweep_trial *t = &s->trials[i];
        if (t->state == SWEEP_WAITING && t->prepared) {
            ahead--;
        } else if (t->state == SWEEP_WAITING) {
            t->prepared = sweep_trial_prepare(s, t);
            return;
        }
    }
}

static void stop_all(struct sweep *s) {
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        struct sweep_trial *t = &s->trials[i];
        if (t->state == SWEEP_RUNNING && t->asked == SWEEP_ASK_NOTHING) {
            t->asked = SWEEP_ASK_HALT;
            s->executor->stop(s, t);
        }
    }
}

// Trials that an earlier process of this sweep left running, and those that ended without it.
static void adopt_all(struct sweep *s) {
    for (uint32_t i = 0; i < s->plan.trials; i++) {
        struct sweep_trial *t = &s->trials[i];
        if (t->state != SWEEP_WAITING || t->progress.rows == 0) {
            // One that waits in a queue has no row yet.
            if (t->state != SWEEP_WAITING || t->job == 0) {
                continue;
            }
        }
        if (s->executor->adopt(s, t)) {
            t->state = SWEEP_RUNNING;
        } else {
            sweep_ended(s, t, sweep_exit_read(s, t));
        }
    }
}

static void hold_children(bool on) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &child, NULL);
}

// Until a child ends or another signal comes; SIGCHLD is held back otherwise, so none is missed.
static void rest(double seconds) {
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigtimedwait(&child, NULL, &time);
}

static bool asked_by_file(const struct sweep *s) {
    char path[SWEEP_PATH];
    snprintf(path, sizeof path, "%.3900s/stop", s->dir);
    return unlink(path) == 0;
}

static int exit_of(struct sweep *s, bool stopped, bool broken) {
    uint32_t failed = sweep_count(s, SWEEP_FAILED);
    if (broken) {
        return command_exit_of(grt_last_status());
    }
    if (s->fatal) {
        return COMMAND_CONFIG;
    }
    uint32_t open = sweep_count(s, SWEEP_WAITING) + sweep_count(s, SWEEP_RUNNING);
    if (stopped && open > 0) {
        talk_error("interrupted with %u of %u trials left: `gpurt sweep resume %s` goes on", open,
                   s->plan.trials, s->dir);
        return COMMAND_RESUMABLE;
    }
    for (uint32_t i = 0; i < s->plan.trials && failed > 0; i++) {
        const struct sweep_trial *t = &s->trials[i];
        char output[SWEEP_PATH];
        sweep_trial_path(s, t, "output.txt", output);
        if (t->state == SWEEP_FAILED) {
            // A trial that never began has none.
            bool more = access(output, F_OK) == 0;
            talk_error("trial %u failed: %s%s%s", i, t->why, more ? "; more in " : "",
                       more ? output : "");
        }
    }
    return failed > 0 ? COMMAND_BELOW : COMMAND_OK;
}

int sweep_drive(struct sweep *s, bool (*wait)(struct sweep *sweep, double seconds)) {
    bool stopped = false, broken = false;
    double looked = 0;
    if (!sweep_self(s)) {
        return command_exit_of(grt_last_status());
    }
    asked_by_file(s);  // one of an earlier process
    hold_children(true);
    talk_stop_by(TALK_STOP_AFTER_STEP);
    adopt_all(s);
    for (;;) {
        stopped = stopped || talk_stopped() || asked_by_file(s);
        broken = broken || s->broken;
        bool ending = stopped || s->fatal || broken;
        broken = broken || (!ending && !start_waiting(s));
        s->executor->look(s);
        if (grt_seconds() - looked >= LOOK_SECONDS) {
            look_at_logs(s);
            looked = grt_seconds();
        }
        if (ending) {
            stop_all(s);
        }
        uint32_t running = sweep_count(s, SWEEP_RUNNING);
        uint32_t waiting = sweep_count(s, SWEEP_WAITING);
        if (running == 0 && (ending || waiting == 0)) {
            break;
        }
        // A trial that ended makes room at once: with rests in between, 100 trials of 1 s on four
        // slots took 29.2 s, without 25.6 s.
        if (ending || waiting == 0 || s->executor->room(s) == 0) {
            if (!ending) {
                prepare_next(s);
            }
            rest(LOOK_SECONDS);
        }
        stopped = (wait && !wait(s, 0)) || stopped;
    }
    s->executor->close(s);
    hold_children(false);
    talk_resume();
    return exit_of(s, stopped, broken);
}
