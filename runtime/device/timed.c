// SPDX-License-Identifier: Apache-2.0
// Graphs under a timeline: the times of every command of every run, without waiting for them.
//
//     list 0   run 0 | run 4 ...      a segment has four equal lists, each with timestamps of its
//     list 1   run 1 | run 5 ...      own, that run in turn. Before a list runs again its times are
//     list 2   run 2 | ...            read, of a run that was queued four runs ago and is most
//     list 3   run 3 | ...            often over.
//
// Where times cost more than the timeline allows, only some commands of a run are timed, or only
// some runs where a driver's list is timed whole (timed_windows.h says which); a run in which none
// is takes a fifth list, which has no times.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "graph_parts.h"
#include "timed_windows.h"
#include "timeline/timeline.h"

#define RUNS 4
#define NO_NAME UINT32_MAX

// A run whose times are not read yet, in a list of its own.
struct timed_run {
    void *native;
    bool pending;
    bool *chosen;    // [count]
    double *stands;  // [kinds]: calls that a time of each kind stands for
};

struct grt_timed {
    struct timed_run runs[RUNS];
    void *plain;     // without times; NULL: every command of every run is timed
    bool asked;      // how long a run takes was waited for
    uint32_t turn;   // the newest
    uint32_t count;  // commands
    uint64_t calls;  // runs that are not told yet
    struct grt_windows windows;
    struct grt_command_time *commands, *told;  // what is known of each; what is told at once
    uint32_t *phases;                          // name of each command's phase; NO_NAME: a mark
    double *begin, *end;
};

struct grt_timeline *grt_timed_by(const struct grt_dev *dev) {
    struct grt_timeline *t = grt_timeline_on();
    return t && t->dev == dev ? t : NULL;
}

uint64_t grt_timed_id(const struct grt_dev *dev) {
    const struct grt_timeline *t = grt_timed_by(dev);
    return t && dev->fns->cmds_stamps ? t->id : 0;
}

double grt_timed_clock(const struct grt_dev *dev) {
    return grt_timed_by(dev) ? grt_seconds() : 0.0;
}

void grt_timed_waited(const struct grt_dev *dev, double begun) {
    struct grt_timeline *t = begun > 0.0 ? grt_timed_by(dev) : NULL;
    if (t) {
        grt_timeline_host(t, GRT_HOST_WAIT, "wait", begun, grt_seconds());
    }
}

// ---- lists ----

static const char *copy_name(const struct grt_cmd *cmd) {
    return cmd->kind == GRT_CMD_FILL                ? "(fill)"
           : cmd->src.buf->kind == GRT_BUF_UPLOAD   ? "(upload)"
           : cmd->dst.buf->kind == GRT_BUF_READBACK ? "(readback)"
                                                    : "(copy)";
}

// What the graph's command at `at` is for; `section` moves on from call to call.
static const char *purpose_at(const struct grt_graph *graph, uint32_t at, uint32_t *section) {
    while (*section < graph->section_count && graph->sections[*section].at <= at) {
        (*section)++;
    }
    return *section > 0 ? graph->sections[*section - 1].name : graph->label;
}

static void describe(struct grt_timeline *t, const struct grt_graph *graph, const char *purpose,
                     const struct grt_cmd *cmd, struct grt_command_time *command, uint32_t *phase) {
    struct grt_use uses[GRT_MAX_BINDINGS];
    uint32_t use_count = grt_cmd_uses(cmd, uses);
    bool kernel = cmd->kind == GRT_CMD_DISPATCH;
    *phase = NO_NAME;
    *command = (struct grt_command_time){
        .track = graph->lane == GRT_LANE_ASIDE && graph->dev->lanes > 1 ? GRT_TRACK_UPLOAD
                                                                        : GRT_TRACK_COMPUTE,
        .is_kernel = kernel,
        .operations = kernel ? cmd->operations : 0.0,
        .samples = kernel ? cmd->samples : 0,
    };
    for (uint32_t i = 0; i < use_count; i++) {
        bool again = false;  // products bind an operand twice
        for (uint32_t k = 0; k < i; k++) {
            again = again || (uses[k].range.buf == uses[i].range.buf &&
                              uses[k].range.offset == uses[i].range.offset &&
                              uses[k].range.size == uses[i].range.size);
        }
        command->bytes += again ? 0 : uses[i].range.size;
    }
    if (cmd->kind != GRT_CMD_PHASE) {
        *phase = grt_timeline_name(t, purpose);
        command->name = grt_timeline_name(t, kernel ? cmd->kernel->info->name : copy_name(cmd));
    }
}

static bool allocate(struct grt_timed *timed, uint32_t count) {
    bool good = true;
    timed->count = count;
    timed->commands = calloc(count + 1, sizeof *timed->commands);
    timed->told = calloc(count + 1, sizeof *timed->told);
    timed->phases = calloc(count + 1, sizeof *timed->phases);
    timed->begin = calloc(count + 1, sizeof *timed->begin);
    timed->end = calloc(count + 1, sizeof *timed->end);
    for (uint32_t i = 0; i < RUNS; i++) {
        timed->runs[i].chosen = calloc(count + 1, sizeof *timed->runs[i].chosen);
        timed->runs[i].stands = calloc(count + 1, sizeof *timed->runs[i].stands);
        good = good && timed->runs[i].chosen && timed->runs[i].stands;
    }
    return good && timed->commands && timed->told && timed->phases && timed->begin && timed->end;
}

bool grt_timed_create(struct grt_graph *graph, struct grt_segment *segment,
                      const struct grt_cmd *cmds, uint32_t count) {
    struct grt_dev *dev = graph->dev;
    struct grt_timeline *t = grt_timed_by(dev);
    struct grt_timed *timed = segment->timed = calloc(1, sizeof *timed);
    if (!t || !timed || !allocate(timed, count)) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to time graph '%s'", graph->label);
    }
    bool *marks = timed->runs[0].chosen;
    uint32_t section = 0;
    for (uint32_t i = 0; i < count; i++) {
        // A list may begin with a mark of its own.
        uint32_t at = segment->first + i - (i > 0 ? count - segment->count : 0);
        describe(t, graph, purpose_at(graph, at, &section), &cmds[i], &timed->commands[i],
                 &timed->phases[i]);
        marks[i] = timed->phases[i] == NO_NAME;
    }
    if (!grt_windows_begin(&timed->windows, timed->commands, marks, count,
                           dev->fns->cmds_choose != NULL)) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to time graph '%s'", graph->label);
    }
    for (uint32_t i = 0; i < RUNS; i++) {
        timed->runs[i].native =
            dev->fns->cmds_create(dev, cmds, count, segment->phase_count, graph->lane, true);
        if (!timed->runs[i].native) {
            return false;
        }
    }
    segment->native = timed->runs[0].native;
    if (t->desc.overhead > 0.0 && t->totals.stamp > 0.0) {
        timed->plain =
            dev->fns->cmds_create(dev, cmds, count, segment->phase_count, graph->lane, false);
        return timed->plain != NULL;
    }
    return true;
}

void grt_timed_destroy(struct grt_graph *graph, struct grt_segment *segment) {
    struct grt_timed *timed = segment->timed;
    for (uint32_t i = 0; i < RUNS; i++) {
        if (timed->runs[i].native) {
            graph->dev->fns->cmds_destroy(graph->dev, timed->runs[i].native);
        }
        free(timed->runs[i].chosen);
        free(timed->runs[i].stands);
    }
    if (timed->plain) {
        graph->dev->fns->cmds_destroy(graph->dev, timed->plain);
    }
    grt_windows_finish(&timed->windows);
    free(timed->commands);
    free(timed->told);
    free(timed->phases);
    free(timed->begin);
    free(timed->end);
    free(timed);
    segment->timed = NULL;
    segment->native = NULL;
}

// ---- times ----

// Phases whose first and last command have times: commands in a row under one name, with no mark
// between. Commands may overlap: the last one need not be the one that ends latest.
static void tell_phases(struct grt_timeline *t, const struct grt_timed *timed, bool by_device) {
    for (uint32_t first = 0, i = 1; i <= timed->count; i++) {
        if (i < timed->count && timed->phases[i] == timed->phases[first]) {
            continue;
        }
        if (timed->phases[first] != NO_NAME && !isnan(timed->begin[first]) &&
            !isnan(timed->begin[i - 1])) {
            double begin = timed->begin[first], end = timed->end[first];
            for (uint32_t k = first + 1; k < i; k++) {  // without those that have no times
                begin = fmin(begin, timed->begin[k]);
                end = fmax(end, timed->end[k]);
            }
            grt_timeline_phase(t, timed->phases[first], begin, end, by_device);
        }
        first = i;
    }
}

// Reads the times of the run of one list and tells them.
static bool collect(struct grt_graph *graph, struct grt_timed *timed, uint32_t which) {
    struct grt_dev *dev = graph->dev;
    struct grt_timeline *t = grt_timed_by(dev);
    struct grt_stamps stamps = {.begin = timed->begin, .end = timed->end};
    struct timed_run *run = &timed->runs[which];
    if (!run->pending) {
        return true;
    }
    run->pending = false;
    if (grt_dev_status(dev) != GRT_OK) {
        return false;  // it was said
    }
    if (!dev->fns->cmds_stamps(dev, run->native, &stamps)) {
        return false;
    }
    if (!t || t->id != graph->timeline) {
        return true;
    }
    uint32_t told = 0;
    double last = -INFINITY;
    for (uint32_t i = 0; i < timed->count; i++) {
        // Clocks of drivers are not always in step with themselves.
        timed->begin[i] = timed->begin[i] < last ? last : timed->begin[i];
        timed->end[i] = timed->end[i] < timed->begin[i] ? timed->begin[i] : timed->end[i];
        last = isnan(timed->begin[i]) ? last : timed->end[i];
        if (run->chosen[i]) {
            struct grt_command_time *c = &timed->told[told++];
            *c = timed->commands[i];
            c->begin = timed->begin[i];
            c->end = timed->end[i];
            c->by_device = !stamps.host;
            c->stands = run->stands[timed->windows.kind_of[i]];
        }
    }
    grt_windows_tell(&timed->windows, run->chosen, timed->begin, timed->end);
    grt_timeline_commands(t, timed->told, told);
    // Uploads run beside what others do: their track says it all.
    if (t->desc.events && told > 0 && timed->told[0].track == GRT_TRACK_COMPUTE) {
        tell_phases(t, timed, !stamps.host);
    }
    return true;
}

// Tells how often commands were run, and of the calls since their kind was timed last, which take
// as long as those that were.
static void tell_calls(struct grt_graph *graph, struct grt_timed *timed) {
    struct grt_timeline *t = grt_timed_by(graph->dev);
    struct grt_windows *windows = &timed->windows;
    uint32_t told = 0;
    for (uint32_t k = 0; k < windows->kinds; k++) {
        struct grt_window *window = &windows->all[k];
        struct grt_command_time *c = &timed->told[told++];
        *c = timed->commands[window->example];
        c->begin = NAN;
        c->calls = timed->calls * window->members;
        c->stands = isnan(window->newest) ? 0.0 : (double)window->owed;
        c->seconds = window->newest;
        window->owed = 0;
    }
    if (t && t->id == graph->timeline && timed->calls > 0) {
        grt_timeline_commands(t, timed->told, told);
    }
    timed->calls = 0;
}

// The share of a list's commands that may be timed from run to run.
static double share(const struct grt_timeline *t, const struct grt_timed *timed) {
    const struct grt_windows *w = &timed->windows;
    double cost = t->totals.stamp * (w->timed + (w->apart ? 0 : 1));
    // Lists that are timed whole take so much longer for it. NAN: not known, so none.
    double allowed = t->desc.overhead * (grt_windows_seconds(w) - (w->apart ? 0.0 : cost));
    return allowed > 0.0 ? allowed / cost : 0.0;
}

// The list that runs next: the next one with times if a command is chosen, else the one without.
static bool take_turn(struct grt_graph *graph, struct grt_segment *segment) {
    struct grt_timed *timed = segment->timed;
    struct grt_timeline *going = grt_timed_by(graph->dev);
    struct grt_windows *windows = &timed->windows;
    bool some = timed->plain && going;
    // Once, so that it is known how long a run takes: this waits for it. Some kinds never get a
    // time.
    if (some && windows->begun && !timed->asked) {
        timed->asked = true;
        if (isnan(grt_windows_seconds(windows)) && !collect(graph, timed, timed->turn)) {
            return false;
        }
    }
    uint32_t next = (timed->turn + 1) % RUNS;
    struct timed_run *run = &timed->runs[next];
    double begun = grt_seconds();
    bool waits = run->pending;
    if (!collect(graph, timed, next)) {
        return false;
    }
    if (waits && going) {
        grt_timeline_host(going, GRT_HOST_WAIT, "read times", begun, grt_seconds());
    }
    uint32_t chosen =
        grt_windows_choose(windows, some ? share(going, timed) : 1.0, run->chosen, run->stands);
    if (some && chosen < windows->timed) {
        grt_timeline_untimed(going);
    }
    if (some && chosen == 0) {
        segment->native = timed->plain;
        return true;
    }
    if (windows->apart) {
        graph->dev->fns->cmds_choose(graph->dev, run->native, run->chosen);
    }
    timed->turn = next;
    segment->native = run->native;
    run->pending = true;
    return true;
}

bool grt_timed_run(struct grt_graph *graph, struct grt_segment *segment) {
    struct grt_dev *dev = graph->dev;
    struct grt_timed *timed = segment->timed;
    if (timed && !take_turn(graph, segment)) {
        return false;
    }
    struct grt_timeline *t = grt_timed_by(dev);
    double begun = t ? grt_seconds() : 0.0;
    bool good = dev->fns->cmds_run(dev, segment->native);
    if (t) {
        grt_timeline_host(t, GRT_HOST_SUBMIT, graph->label, begun, grt_seconds());
    }
    if (timed && good) {
        timed->calls++;
    } else if (timed && segment->native != timed->plain) {
        timed->runs[timed->turn].pending = false;
    }
    return good;
}

bool grt_timed_collect(struct grt_graph *graph) {
    bool good = true;
    for (uint32_t s = 0; s < graph->segment_count; s++) {
        struct grt_timed *timed = graph->segments[s].timed;
        for (uint32_t i = 1; timed && i <= RUNS; i++) {
            good = collect(graph, timed, (timed->turn + i) % RUNS) && good;  // the oldest first
        }
        if (timed && good) {
            tell_calls(graph, timed);
        }
    }
    return good;
}

// ---- begin and end ----

struct grt_timeline *grt_timeline_begin(struct grt_dev *dev, const struct grt_timeline_desc *desc) {
    if (!dev) {
        return grt_timeline_start(NULL, desc);
    }
    double stamp = 0.0;
    if (!grt_dev_wait(dev) || (desc && desc->overhead > 0.0 && !grt_timed_cost(dev, &stamp))) {
        return NULL;
    }
    struct grt_timeline *t = grt_timeline_start(dev, desc);
    if (!t) {
        return NULL;
    }
    t->totals.stamp = stamp;
    snprintf(t->device, sizeof t->device, "%s: %s", dev->info.selector, dev->info.name);
    snprintf(t->name, sizeof t->name, "%s", dev->info.name);
    snprintf(t->backend, sizeof t->backend, "%s", grt_backend_text(dev->info.backend));
    if (dev->fns->clocks && !dev->fns->clocks(dev, &t->device_clock[0], &t->host_clock[0])) {
        grt_timeline_destroy(&t);
    }
    return t;
}

static bool collect_all(struct grt_dev *dev) {
    bool good = dev->fns->wait(dev);
    for (struct grt_graph *graph = dev->timed_graphs; good && graph; graph = graph->next_timed) {
        good = grt_timed_collect(graph);
    }
    return good;
}

bool grt_timeline_restart(struct grt_dev *dev) {
    struct grt_timeline *t = dev ? grt_timed_by(dev) : NULL;
    if (!t) {
        return true;
    }
    bool good = collect_all(dev);
    grt_timeline_zero(t);
    for (struct grt_graph *graph = dev->timed_graphs; graph; graph = graph->next_timed) {
        for (uint32_t s = 0; s < graph->segment_count; s++) {
            if (graph->segments[s].timed) {
                grt_windows_restart(&graph->segments[s].timed->windows);
            }
        }
    }
    return good;
}

bool grt_timeline_end(struct grt_timeline *t) {
    if (!t || t->ended) {
        return grt_fail(GRT_INVALID, "grt_timeline_end: %s", t ? "called twice" : "no timeline");
    }
    struct grt_dev *dev = t->dev;
    bool good = !dev || collect_all(dev);
    if (good && dev && dev->fns->clocks) {
        good = dev->fns->clocks(dev, &t->device_clock[1], &t->host_clock[1]);
    }
    grt_timeline_stop(t);
    return good;
}
