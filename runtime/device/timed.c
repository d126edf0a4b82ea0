// SPDX-License-Identifier: Apache-2.0
// Graphs under a timeline: the times of every command of every run, without waiting for them.
//
//     list 0   run 0 | run 4 ...      a segment has four equal lists, each with timestamps of its
//     list 1   run 1 | run 5 ...      own, that run in turn. Before a list runs again its times are
//     list 2   run 2 | ...            read, of a run that was queued four runs ago and is most
//     list 3   run 3 | ...            often over.
//
// Where timestamps cost more than the timeline allows, the first run is timed and then one in so
// many, which stands for those before it; the others take a fifth list, which has no timestamps.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "graph_parts.h"
#include "timeline/timeline.h"

#define RUNS 4
#define MOST_PERIOD 64  // at least one run in so many is timed
#define NO_NAME UINT32_MAX

struct grt_timed {
    void *natives[RUNS];
    void *plain;                              // without times; NULL: every run is timed
    uint32_t pending[RUNS];                   // it stands for so many runs; 0: it was read
    uint32_t turn;                            // the newest
    uint32_t count;                           // commands
    bool begun;                               // a run was timed since sums began
    uint32_t passed;                          // runs without times since
    double least;                             // seconds of the shortest that was read; 0: none
    struct grt_command_time *commands, *run;  // what is known of each; the same of one run
    uint32_t *phases;                         // name of the phase that begins here, or NO_NAME
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

static void describe(struct grt_timeline *t, const struct grt_graph *graph,
                     const struct grt_segment *segment, const struct grt_cmd *cmd,
                     struct grt_command_time *command, uint32_t *phase) {
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
    if (cmd->kind == GRT_CMD_PHASE) {
        *phase = grt_timeline_name(t, graph->phase_names[segment->phases[cmd->phase]]);
    } else {
        command->name = grt_timeline_name(t, kernel ? cmd->kernel->info->name : copy_name(cmd));
    }
}

bool grt_timed_create(struct grt_graph *graph, struct grt_segment *segment,
                      const struct grt_cmd *cmds, uint32_t count) {
    struct grt_timeline *t = grt_timed_by(graph->dev);
    struct grt_timed *timed = calloc(1, sizeof *timed);
    if (!timed) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to time graph '%s'", graph->label);
    }
    segment->timed = timed;
    timed->count = count;
    timed->commands = calloc(count + 1, sizeof *timed->commands);
    timed->run = calloc(count + 1, sizeof *timed->run);
    timed->phases = calloc(count + 1, sizeof *timed->phases);
    timed->begin = calloc(count + 1, sizeof *timed->begin);
    timed->end = calloc(count + 1, sizeof *timed->end);
    if (!t || !timed->commands || !timed->run || !timed->phases || !timed->begin || !timed->end) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to time graph '%s'", graph->label);
    }
    for (uint32_t i = 0; i < count; i++) {
        describe(t, graph, segment, &cmds[i], &timed->commands[i], &timed->phases[i]);
    }
    for (uint32_t i = 0; i < RUNS; i++) {
        timed->natives[i] = graph->dev->fns->cmds_create(graph->dev, cmds, count,
                                                         segment->phase_count, graph->lane, true);
        if (!timed->natives[i]) {
            return false;
        }
    }
    segment->native = timed->natives[0];
    if (t->desc.overhead > 0.0 && t->totals.stamp > 0.0) {
        timed->plain = graph->dev->fns->cmds_create(graph->dev, cmds, count, segment->phase_count,
                                                    graph->lane, false);
        return timed->plain != NULL;
    }
    return true;
}

void grt_timed_destroy(struct grt_graph *graph, struct grt_segment *segment) {
    struct grt_timed *timed = segment->timed;
    for (uint32_t i = 0; i < RUNS; i++) {
        if (timed->natives[i]) {
            graph->dev->fns->cmds_destroy(graph->dev, timed->natives[i]);
        }
    }
    if (timed->plain) {
        graph->dev->fns->cmds_destroy(graph->dev, timed->plain);
    }
    free(timed->commands);
    free(timed->run);
    free(timed->phases);
    free(timed->begin);
    free(timed->end);
    free(timed);
    segment->timed = NULL;
    segment->native = NULL;
}

// ---- times ----

static void tell_phases(struct grt_timeline *t, const struct grt_timed *timed, bool by_device) {
    uint32_t name = NO_NAME;
    double begin = NAN, end = NAN;
    for (uint32_t i = 0; i <= timed->count; i++) {
        if (i == timed->count || timed->phases[i] != NO_NAME) {
            if (name != NO_NAME && !isnan(begin)) {
                grt_timeline_phase(t, name, begin, end, by_device);
            }
            name = i < timed->count ? timed->phases[i] : NO_NAME;
            begin = NAN;
        } else if (!isnan(timed->begin[i])) {
            begin = isnan(begin) ? timed->begin[i] : begin;
            end = timed->end[i];
        }
    }
}

// Reads the times of the run of one list and tells them.
static bool collect(struct grt_graph *graph, struct grt_timed *timed, uint32_t which) {
    struct grt_dev *dev = graph->dev;
    struct grt_timeline *t = grt_timed_by(dev);
    struct grt_stamps stamps = {.begin = timed->begin, .end = timed->end};
    uint32_t runs = timed->pending[which];
    if (runs == 0) {
        return true;
    }
    timed->pending[which] = 0;
    if (grt_dev_status(dev) != GRT_OK) {
        return false;  // it was said
    }
    if (!dev->fns->cmds_stamps(dev, timed->natives[which], &stamps)) {
        return false;
    }
    if (!t || t->id != graph->timeline) {
        return true;
    }
    uint32_t told = 0;
    double first = NAN, last = -INFINITY;
    for (uint32_t i = 0; i < timed->count; i++) {
        // Clocks of drivers are not always in step with themselves.
        timed->begin[i] = timed->begin[i] < last ? last : timed->begin[i];
        timed->end[i] = timed->end[i] < timed->begin[i] ? timed->begin[i] : timed->end[i];
        last = isnan(timed->begin[i]) ? last : timed->end[i];
        first = isnan(first) ? timed->begin[i] : first;
        if (timed->phases[i] == NO_NAME) {
            struct grt_command_time *c = &timed->run[told++];
            *c = timed->commands[i];
            c->begin = timed->begin[i];
            c->end = timed->end[i];
            c->by_device = !stamps.host;
            c->runs = runs;
        }
    }
    if (!isnan(first) && (last - first < timed->least || timed->least == 0.0)) {
        timed->least = last - first;
    }
    grt_timeline_commands(t, timed->run, told);
    if (t->desc.events) {
        tell_phases(t, timed, !stamps.host);
    }
    return true;
}

// Tells of runs without times.
static void tell_passed(struct grt_graph *graph, struct grt_timed *timed) {
    struct grt_timeline *t = grt_timed_by(graph->dev);
    uint32_t told = 0;
    for (uint32_t i = 0; i < timed->count; i++) {
        if (timed->phases[i] == NO_NAME) {
            timed->run[told] = timed->commands[i];
            timed->run[told].begin = NAN;
            timed->run[told++].runs = timed->passed;
        }
    }
    if (t && t->id == graph->timeline && timed->passed > 0) {
        grt_timeline_commands(t, timed->run, told);
    }
    timed->passed = 0;
}

// One in how many runs is timed, for timing to cost no more than it may.
static uint32_t period(const struct grt_timeline *t, const struct grt_timed *timed) {
    double stamps = t->totals.stamp * (timed->count + 1);
    double allowed = t->desc.overhead * (timed->least - stamps);
    return stamps <= allowed                 ? 1
           : stamps >= MOST_PERIOD * allowed ? MOST_PERIOD
                                             : (uint32_t)ceil(stamps / allowed);
}

static bool take_turn(struct grt_graph *graph, struct grt_segment *segment) {
    struct grt_timed *timed = segment->timed;
    struct grt_timeline *going = grt_timed_by(graph->dev);
    if (!timed) {
        return true;
    }
    // Once, so that it is known how long a run takes: this waits for it.
    if (timed->plain && timed->begun && timed->least == 0.0 &&
        !collect(graph, timed, timed->turn)) {
        return false;
    }
    if (timed->plain && going && timed->begun && timed->passed + 1 < period(going, timed)) {
        segment->native = timed->plain;
        timed->passed++;
        grt_timeline_untimed(going);
        return true;
    }
    timed->begun = true;
    timed->turn = (timed->turn + 1) % RUNS;
    segment->native = timed->natives[timed->turn];
    double begun = grt_seconds();
    bool waits = timed->pending[timed->turn] > 0;
    bool good = collect(graph, timed, timed->turn);
    struct grt_timeline *t = waits ? grt_timed_by(graph->dev) : NULL;
    if (t) {
        grt_timeline_host(t, GRT_HOST_WAIT, "read times", begun, grt_seconds());
    }
    timed->pending[timed->turn] = good ? 1 + timed->passed : 0;
    timed->passed = 0;
    return good;
}

bool grt_timed_run(struct grt_graph *graph, struct grt_segment *segment) {
    struct grt_dev *dev = graph->dev;
    if (!take_turn(graph, segment)) {
        return false;
    }
    struct grt_timeline *t = grt_timed_by(dev);
    double begun = t ? grt_seconds() : 0.0;
    bool good = dev->fns->cmds_run(dev, segment->native);
    if (t) {
        grt_timeline_host(t, GRT_HOST_SUBMIT, graph->label, begun, grt_seconds());
    }
    if (!good && segment->timed && segment->native != segment->timed->plain) {
        segment->timed->pending[segment->timed->turn] = 0;
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
            tell_passed(graph, timed);
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
                graph->segments[s].timed->begun = false;
                graph->segments[s].timed->least = 0.0;
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
