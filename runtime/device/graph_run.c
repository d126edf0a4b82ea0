// SPDX-License-Identifier: Apache-2.0
// Baking and running.
//
// Commands are cut into submits that should each stay below max_submit_ms, and where the host has a
// turn. Before the first run the costs are guessed from the bytes touched; the first run is timed
// segment by segment, and where the guess was off the cuts are made anew, once. After that nothing
// is allocated and nothing waited for.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "graph_parts.h"
#include "base/log.h"

// Bytes a second, on the low side: a guess that is too slow costs a few more submits in one run.
static double guessed_rate(const struct grt_caps *caps) {
    return caps->software ? 1e9 : caps->integrated ? 1e10 : 1e11;
}

static void guess_costs(struct grt_graph *graph) {
    double rate = guessed_rate(&graph->dev->info.caps);
    for (uint32_t i = 0; i < graph->count; i++) {
        struct grt_use uses[GRT_MAX_BINDINGS];
        uint32_t count = grt_cmd_uses(&graph->cmds[i], uses);
        graph->costs[i] = 0.0;
        for (uint32_t k = 0; k < count; k++) {
            graph->costs[i] += (double)uses[k].range.size / rate;
        }
    }
}

// Translates commands first .. first + count - 1. A phase that began in an earlier segment goes on
// here: its mark is repeated at the head. A list begins as if all before it had finished, so
// hazards are looked for within it alone.
static bool create_segment(struct grt_graph *graph, struct grt_segment *segment, uint32_t *phase) {
    struct grt_cmd *cmds = malloc((segment->count + 1) * sizeof *cmds);
    if (!cmds) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to bake graph '%s'", graph->label);
    }
    uint32_t count = 0;
    const struct grt_cmd *first = &graph->cmds[segment->first];
    if (*phase < GRT_MAX_PHASES && first->kind != GRT_CMD_PHASE) {
        cmds[count++] = (struct grt_cmd){.kind = GRT_CMD_PHASE, .sync = -1, .phase = 0};
        segment->phases[segment->phase_count++] = *phase;
    }
    for (uint32_t i = 0; i < segment->count; i++) {
        struct grt_cmd *cmd = &cmds[count];
        *cmd = first[i];
        if (cmd->kind == GRT_CMD_PHASE) {
            *phase = cmd->phase;
            cmd->phase = segment->phase_count;
            segment->phases[segment->phase_count++] = *phase;
        }
        count++;
    }
    grt_find_hazards(cmds, count);
    bool good = true;
    if (graph->timeline) {
        good = grt_timed_create(graph, segment, cmds, count);
    } else {
        segment->native = graph->dev->fns->cmds_create(graph->dev, cmds, count,
                                                       segment->phase_count, graph->lane, false);
        good = segment->native != NULL;
    }
    free(cmds);
    return good;
}

static void destroy_segments(struct grt_graph *graph) {
    for (uint32_t i = 0; i < graph->segment_count; i++) {
        if (graph->segments[i].timed) {
            grt_timed_destroy(graph, &graph->segments[i]);
        } else if (graph->segments[i].native) {
            graph->dev->fns->cmds_destroy(graph->dev, graph->segments[i].native);
        }
    }
    free(graph->segments);
    graph->segments = NULL;
    graph->segment_count = 0;
}

// The device's list of graphs that are timed: has this one in it, or has it not.
static void list_timed(struct grt_graph *graph, bool in) {
    struct grt_graph **at = &graph->dev->timed_graphs;
    while (*at && *at != graph) {
        at = &(*at)->next_timed;
    }
    if (*at && !in) {
        *at = graph->next_timed;
    } else if (!*at && in) {
        graph->next_timed = NULL;
        *at = graph;
    }
}

// The first turn of the host behind those before command `at`.
static uint32_t hosts_before(const struct grt_graph *graph, uint32_t host, uint32_t at) {
    while (host < graph->host_count && graph->hosts[host].at <= at) {
        host++;
    }
    return host;
}

// Behind which command each range is told of: the last that uses it, or the first of all. A command
// that only reads counts, too: who is told may change the range.
static void find_told(struct grt_graph *graph) {
    for (uint32_t i = 0; i < graph->told_count && graph->count > 0; i++) {
        struct grt_told told = graph->told[i];
        told.behind = graph->count - 1;
        for (bool found = false; !found && told.behind > 0; told.behind -= !found) {
            struct grt_use uses[GRT_MAX_BINDINGS];
            uint32_t count = grt_cmd_uses(&graph->cmds[told.behind], uses);
            for (uint32_t k = 0; k < count; k++) {
                found |= grt_ranges_overlap(&uses[k].range, &told.range);
            }
        }
        uint32_t at = i;
        for (; at > 0 && graph->told[at - 1].behind > told.behind; at--) {
            graph->told[at] = graph->told[at - 1];
        }
        graph->told[at] = told;
    }
}

// Whether somebody is told behind command i.
static bool tells(const struct grt_graph *graph, uint32_t i) {
    for (uint32_t k = 0; k < graph->told_count; k++) {
        if (graph->told[k].behind == i) {
            return true;
        }
    }
    return false;
}

static bool tell(const struct grt_graph *graph, const struct grt_segment *segment) {
    uint32_t last = segment->first + segment->count - 1;
    for (uint32_t k = 0; k < graph->told_count; k++) {
        if (graph->told[k].behind == last &&
            !graph->tell(graph->tell_context, graph->told[k].number)) {
            return false;
        }
    }
    return true;
}

// Cuts where the costs add up to the limit, the host has a turn or somebody is told, and never
// inside one command.
static bool create_segments(struct grt_graph *graph) {
    graph->timeline = grt_timed_id(graph->dev);
    list_timed(graph, graph->timeline != 0);
    double limit = graph->dev->desc.max_submit_ms * 1e-3;
    uint32_t phase = GRT_MAX_PHASES;  // none yet
    graph->segments = calloc(graph->count + 1, sizeof *graph->segments);
    if (!graph->segments) {
        list_timed(graph, false);
        return grt_fail(GRT_NO_MEMORY, "no host memory to bake graph '%s'", graph->label);
    }
    uint32_t host = 0;
    for (uint32_t first = 0; first < graph->count;) {
        uint32_t last = first + 1;
        double cost = graph->costs[first];
        host = hosts_before(graph, host, first);
        uint32_t end = host < graph->host_count ? graph->hosts[host].at : graph->count;
        while (last < end && cost + graph->costs[last] <= limit && !tells(graph, last - 1)) {
            cost += graph->costs[last++];
        }
        struct grt_segment *segment = &graph->segments[graph->segment_count++];
        segment->first = first;
        segment->count = last - first;
        if (!create_segment(graph, segment, &phase)) {
            destroy_segments(graph);
            list_timed(graph, false);
            return false;
        }
        first = last;
    }
    return true;
}

static void hold_buffers(struct grt_graph *graph, void (*change)(struct grt_buf *)) {
    for (uint32_t i = 0; i < graph->count; i++) {
        struct grt_use uses[GRT_MAX_BINDINGS];
        uint32_t count = grt_cmd_uses(&graph->cmds[i], uses);
        for (uint32_t k = 0; k < count; k++) {
            change(uses[k].range.buf);
        }
    }
}

// Copies that run beside other work are not cut by time: waiting for their first run would undo
// them.
static bool check_aside(struct grt_graph *graph) {
    if (graph->lane == GRT_LANE_ASIDE && graph->host_count > 0) {
        return grt_fail(GRT_INVALID, "graph '%s': beside other work the host has no turn",
                        graph->label);
    }
    for (uint32_t i = 0; graph->lane == GRT_LANE_ASIDE && i < graph->count; i++) {
        const struct grt_cmd *cmd = &graph->cmds[i];
        bool copy = cmd->kind == GRT_CMD_COPY;
        bool up = copy && cmd->src.buf->kind == GRT_BUF_UPLOAD;
        bool down = copy && cmd->dst.buf->kind == GRT_BUF_READBACK;
        if (!(up && cmd->dst.buf->kind == GRT_BUF_DEVICE) &&
            !(down && cmd->src.buf->kind == GRT_BUF_DEVICE)) {
            return grt_fail(GRT_INVALID,
                            "graph '%s': beside other work only copies from upload to device "
                            "buffers, and from device to readback buffers, can run",
                            graph->label);
        }
    }
    graph->calibrated = graph->lane == GRT_LANE_ASIDE;
    return true;
}

bool grt_graph_bake(struct grt_graph *graph) {
    if (!graph) {
        return grt_fail(GRT_INVALID, "grt_graph_bake: no graph");
    }
    if (graph->mistake != GRT_OK) {
        return grt_fail(graph->mistake, "graph '%s': %s", graph->label, graph->mistake_text);
    }
    if (graph->baked) {
        return true;
    }
    if (!grt_dev_usable(graph->dev) || !check_aside(graph)) {
        return false;
    }
    if (!grt_kernels_keep_promises(graph->dev, graph->cmds, graph->count)) {
        grt_graph_reject(graph, grt_last_status(), "%s", grt_last_error());
        return false;  // the sentence is said
    }
    graph->costs = calloc(graph->count + 1, sizeof *graph->costs);
    if (!graph->costs) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to bake graph '%s'", graph->label);
    }
    graph->barriers = grt_find_hazards(graph->cmds, graph->count);
    guess_costs(graph);
    find_told(graph);
    if (!create_segments(graph)) {
        free(graph->costs);
        graph->costs = NULL;
        return false;
    }
    hold_buffers(graph, grt_buf_ref);
    graph->baked = true;
    return true;
}

void grt_graph_destroy(struct grt_graph **graph) {
    if (!graph || !*graph) {
        return;
    }
    struct grt_graph *g = *graph;
    *graph = NULL;
    if (g->baked) {
        g->dev->fns->wait(g->dev);
        grt_timed_collect(g);
        list_timed(g, false);
        destroy_segments(g);
        hold_buffers(g, grt_buf_unref);
    }
    g->dev->objects -= 1;
    free(g->costs);
    free(g->cmds);
    free(g->hosts);
    free(g->sections);
    free(g->told);
    free(g);
}

// The turns of the host before command `at`, from *host on.
static bool take_turns(struct grt_graph *graph, uint32_t *host, uint32_t at) {
    uint32_t end = hosts_before(graph, *host, at);
    bool good = *host == end || graph->dev->fns->wait(graph->dev);
    while (good && *host < end) {
        const struct grt_host_turn *turn = &graph->hosts[(*host)++];
        good = turn->turn(turn->context, turn->number);
    }
    return good;
}

static double cost_of(const struct grt_graph *graph, const struct grt_segment *segment) {
    double cost = 0.0;
    for (uint32_t i = 0; i < segment->count; i++) {
        cost += graph->costs[segment->first + i];
    }
    return cost;
}

// What is held is one submit, which has the same limit as any.
static bool hold_within_limit(struct grt_graph *graph, const struct grt_segment *segment) {
    struct grt_dev *dev = graph->dev;
    if (!dev->holds) {
        return true;
    }
    double cost = cost_of(graph, segment);
    bool full = dev->held > 0.0 && dev->held + cost > dev->desc.max_submit_ms * 1e-3;
    if (full && !grt_dev_hold(dev, true)) {
        return false;
    }
    dev->held += cost;
    return true;
}

// The first run: each segment on its own, timed. The measured time is shared among a segment's
// commands in proportion to their guesses, and the cuts are made anew if one was over the limit in
// two runs (drivers compile in the first: PoCL) or if fewer would do.
static bool calibrate(struct grt_graph *graph, bool (*stop)(void), bool *stopped) {
    struct grt_dev *dev = graph->dev;
    double limit = dev->desc.max_submit_ms * 1e-3;
    double total = 0.0;
    bool over = false;
    uint32_t host = 0;
    if (!dev->fns->wait(dev)) {
        return false;
    }
    for (uint32_t s = 0; s < graph->segment_count; s++) {
        struct grt_segment *segment = &graph->segments[s];
        if (!take_turns(graph, &host, segment->first)) {
            return false;
        }
        if (stop && stop()) {
            *stopped = true;
            return true;
        }
        double start = grt_seconds();
        if (!grt_timed_run(graph, segment) || !dev->fns->wait(dev)) {
            return false;
        }
        double seconds = grt_seconds() - start;
        double guessed = cost_of(graph, segment);
        for (uint32_t i = 0; i < segment->count; i++) {
            double *cost = &graph->costs[segment->first + i];
            *cost = guessed > 0.0 ? *cost / guessed * seconds : seconds / segment->count;
        }
        total += seconds;
        if (!tell(graph, segment)) {
            return false;
        }
        over = over || (seconds > limit && segment->count > 1);
    }
    if (!take_turns(graph, &host, graph->count)) {
        return false;
    }
    graph->calibrated = !over || graph->over_once;
    graph->over_once = over;
    if (!graph->calibrated) {
        return true;
    }
    // Done when it runs next, so that the times of this run can still be asked for.
    uint32_t least = 1 + graph->host_count + graph->told_count;
    graph->cut_anew = over || (graph->segment_count > least &&
                               total < 0.5 * limit * (graph->segment_count - least));
    return true;
}

// With `stop` each submit is waited for, so that what is queued never takes long.
static bool run(struct grt_graph *graph, bool (*stop)(void), bool *stopped) {
    struct grt_dev *dev = graph->dev;
    if (!graph->calibrated) {
        return calibrate(graph, stop, stopped);
    }
    uint32_t host = 0;
    for (uint32_t s = 0; s < graph->segment_count; s++) {
        if (stop && stop()) {
            *stopped = true;
            return true;
        }
        if (!take_turns(graph, &host, graph->segments[s].first) ||
            !hold_within_limit(graph, &graph->segments[s]) ||
            !grt_timed_run(graph, &graph->segments[s]) || (stop && !dev->fns->wait(dev)) ||
            !tell(graph, &graph->segments[s])) {
            return false;
        }
    }
    return take_turns(graph, &host, graph->count);
}

bool grt_graph_run_until(struct grt_graph *graph, bool (*stop)(void), bool *stopped) {
    if (!graph || !graph->baked) {
        return grt_fail(GRT_INVALID, "grt_graph_run: %s",
                        graph ? "bake the graph first" : "no graph");
    }
    struct grt_dev *dev = graph->dev;
    if (!grt_dev_usable(dev)) {
        return false;
    }
    if (graph->timeline != grt_timed_id(dev)) {
        // A timeline began or ended since the segments were made.
        if (!dev->fns->wait(dev) || !grt_timed_collect(graph)) {
            return false;
        }
        graph->cut_anew = true;
    }
    if (graph->cut_anew) {
        graph->cut_anew = graph->timed = false;
        grt_timed_collect(graph);
        destroy_segments(graph);
        if (!create_segments(graph)) {
            graph->cut_anew = true;  // the next run tries again
            return false;
        }
    }
    bool given_up = false;
    graph->runs++;
    graph->timed = true;
    bool ok = run(graph, stop, &given_up);
    if (given_up) {
        graph->timed = false;
    }
    if (stopped) {
        *stopped = given_up;
    }
    return ok;
}

bool grt_graph_run(struct grt_graph *graph) {
    return grt_graph_run_until(graph, NULL, NULL);
}

bool grt_graph_expect(struct grt_graph *graph, double seconds) {
    if (!graph || !graph->baked || !(seconds > 0.0)) {
        return grt_fail(GRT_INVALID, "grt_graph_expect: %s",
                        graph && graph->baked ? "no time" : "bake the graph first");
    }
    double guessed = 0.0;
    for (uint32_t i = 0; i < graph->count; i++) {
        guessed += graph->costs[i];
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->costs[i] =
            guessed > 0.0 ? graph->costs[i] / guessed * seconds : seconds / graph->count;
    }
    // What is one submit and stays within the limit stays as it is.
    bool cut = graph->segment_count > 1 || seconds > graph->dev->desc.max_submit_ms * 1e-3;
    graph->cut_anew = graph->cut_anew || cut;
    graph->calibrated = true;
    return true;
}

bool grt_graph_finish(struct grt_graph *graph) {
    return grt_graph_bake(graph) && grt_graph_run(graph) && grt_dev_wait(graph->dev);
}

struct grt_graph_stats grt_graph_stats(const struct grt_graph *graph) {
    struct grt_graph_stats stats = {0};
    if (graph) {
        stats.commands = graph->count;
        stats.barriers = graph->barriers;
        stats.segments = graph->segment_count;
        stats.hosts = graph->host_count;
        stats.phases = graph->phase_count;
        stats.runs = graph->runs;
        for (uint32_t i = 0; i < graph->count; i++) {
            stats.dispatches += graph->cmds[i].kind == GRT_CMD_DISPATCH;
        }
    }
    return stats;
}

uint32_t grt_graph_times(struct grt_graph *graph, struct grt_phase_time *times, uint32_t capacity) {
    if (!graph || !graph->timed || !graph->dev->fns->cmds_times ||
        !graph->dev->info.caps.timestamps || (!times && capacity > 0) ||
        !grt_dev_wait(graph->dev)) {
        return 0;
    }
    for (uint32_t i = 0; i < graph->phase_count && i < capacity; i++) {
        times[i] = (struct grt_phase_time){graph->phase_names[i], 0.0};
    }
    for (uint32_t s = 0; s < graph->segment_count; s++) {
        const struct grt_segment *segment = &graph->segments[s];
        double begin[GRT_MAX_PHASES] = {0}, end[GRT_MAX_PHASES] = {0};
        if (segment->phase_count == 0) {
            continue;
        }
        if (!graph->dev->fns->cmds_times(graph->dev, segment->native, begin, end)) {
            return 0;
        }
        for (uint32_t i = 0; i < segment->phase_count; i++) {
            if (segment->phases[i] < capacity) {
                times[segment->phases[i]].seconds += end[i] - begin[i];
            }
        }
    }
    return graph->phase_count;
}
