// SPDX-License-Identifier: Apache-2.0
// Recording and baking of graphs.
//
// Hazards: walking the commands in order, each is compared by byte range with those since the last
// barrier. A conflict (one of the two writes) puts a barrier before it, and the walk goes on from
// there. So a command needs to be compared with its own window only, and barriers stand only where a
// true dependence is.
//
// Segments: commands are cut into submits that should each stay below max_submit_ms. Before the
// first run the costs are guessed from the bytes touched; the first run is timed segment by
// segment, and where the guess was off the cuts are made anew, once. From the second run on nothing
// is allocated and nothing waited for.
#include "graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"
#include "report.h"

struct segment {
    uint32_t first, count;            // commands
    uint32_t phases[GRT_MAX_PHASES];  // graph's number of the segment's i-th phase
    uint32_t phase_count;
    void *native;
};

struct grt_graph {
    struct grt_dev *dev;
    char label[48];
    struct grt_cmd *cmds;
    double *costs;  // seconds of each command, guessed, then measured
    uint32_t count, capacity;
    char phase_names[GRT_MAX_PHASES][32];
    uint32_t phase_count;
    struct segment *segments;
    uint32_t segment_count;
    uint32_t barriers;
    bool baked;
    bool calibrated;  // the cuts are final
    bool over_once;   // a segment was over the limit, perhaps by a driver's first-run work
    bool timed;       // the segments have run since they were made
    uint64_t runs;
    enum grt_status mistake;  // the first, GRT_OK if none
    char mistake_text[512];
};

// ---- recording ----

struct grt_graph *grt_graph_create(struct grt_dev *dev, const char *label) {
    if (!dev) {
        grt_fail(GRT_INVALID, "grt_graph_create: no device");
        return NULL;
    }
    struct grt_graph *graph = calloc(1, sizeof *graph);
    if (!graph) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a graph");
        return NULL;
    }
    graph->dev = dev;
    snprintf(graph->label, sizeof graph->label, "%s", label ? label : "graph");
    dev->objects += 1;
    return graph;
}

struct grt_dev *grt_graph_dev(const struct grt_graph *graph) {
    return graph ? graph->dev : NULL;
}

void grt_graph_reject(struct grt_graph *graph, enum grt_status status, const char *format, ...) {
    if (!graph || graph->mistake != GRT_OK) {
        return;
    }
    graph->mistake = status == GRT_OK ? GRT_INVALID : status;
    va_list args;
    va_start(args, format);
    vsnprintf(graph->mistake_text, sizeof graph->mistake_text, format, args);
    va_end(args);
}

// The next command's place, or NULL once a mistake was made.
static struct grt_cmd *append(struct grt_graph *graph, enum grt_cmd_kind kind) {
    if (!graph) {
        grt_fail(GRT_INVALID, "recording without a graph");
        return NULL;
    }
    if (graph->baked) {
        grt_graph_reject(graph, GRT_INVALID, "recording after the bake");
    }
    if (graph->mistake != GRT_OK) {
        return NULL;
    }
    if (graph->count == graph->capacity) {
        uint32_t capacity = graph->capacity ? 2 * graph->capacity : 16;
        struct grt_cmd *cmds = realloc(graph->cmds, capacity * sizeof *cmds);
        if (!cmds) {
            grt_graph_reject(graph, GRT_NO_MEMORY, "no host memory for %u commands", capacity);
            return NULL;
        }
        graph->cmds = cmds;
        graph->capacity = capacity;
    }
    struct grt_cmd *cmd = &graph->cmds[graph->count];
    memset(cmd, 0, sizeof *cmd);
    cmd->kind = kind;
    cmd->sync = -1;
    return cmd;
}

// Makes a range explicit and checks it against its buffer.
static bool complete(struct grt_graph *graph, struct grt_range *range, const char *what) {
    struct grt_buf *buf = range->buf;
    if (!buf || buf->dev != graph->dev) {
        grt_graph_reject(graph, GRT_INVALID, "%s: %s", what,
                         buf ? "a buffer of another device" : "no buffer");
        return false;
    }
    if (range->size == 0 && range->offset < buf->size) {
        range->size = buf->size - range->offset;
    }
    if (range->offset >= buf->size || range->size > buf->size - range->offset) {
        grt_graph_reject(graph, GRT_INVALID, "%s: bytes %llu to %llu of a buffer of %llu", what,
                         (unsigned long long)range->offset,
                         (unsigned long long)(range->offset + range->size),
                         (unsigned long long)buf->size);
        return false;
    }
    return true;
}

static bool overlap(const struct grt_range *a, const struct grt_range *b) {
    return a->buf == b->buf && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool writes(const struct grt_kernel_info *info, uint32_t i) {
    return info->args[i].access != GRT_READ;
}

static bool check_bindings(struct grt_graph *graph, struct grt_cmd *cmd) {
    const struct grt_kernel_info *info = cmd->kernel->info;
    const struct grt_caps *caps = &graph->dev->info.caps;
    for (uint32_t i = 0; i < info->arg_count; i++) {
        struct grt_range *range = &cmd->bindings[i];
        char what[128];
        snprintf(what, sizeof what, "kernel '%s', binding '%s'", info->name, info->args[i].name);
        if (!complete(graph, range, what)) {
            return false;
        }
        if (range->buf->kind != GRT_BUF_DEVICE) {
            grt_graph_reject(graph, GRT_INVALID,
                             "%s: kernels reach device buffers only; copy it first", what);
            return false;
        }
        if (caps->align > 0 && range->offset % caps->align != 0) {
            grt_graph_reject(graph, GRT_INVALID, "%s: offset %llu is not a multiple of %u", what,
                             (unsigned long long)range->offset, caps->align);
            return false;
        }
        if (caps->max_binding > 0 && range->size > caps->max_binding) {
            grt_graph_reject(graph, GRT_UNSUPPORTED, "%s: %llu bytes, %s reaches %llu at once",
                             what, (unsigned long long)range->size, graph->dev->info.selector,
                             (unsigned long long)caps->max_binding);
            return false;
        }
        for (uint32_t k = 0; k < i; k++) {
            if ((writes(info, i) || writes(info, k)) && overlap(range, &cmd->bindings[k])) {
                grt_graph_reject(graph, GRT_INVALID, "%s overlaps binding '%s', and one is written",
                                 what, info->args[k].name);
                return false;
            }
        }
    }
    return true;
}

void grt_graph_dispatch(struct grt_graph *graph, const struct grt_dispatch *dispatch) {
    struct grt_cmd *cmd = append(graph, GRT_CMD_DISPATCH);
    if (!cmd) {
        return;
    }
    if (!dispatch || !dispatch->kernel || dispatch->kernel->dev != graph->dev) {
        grt_graph_reject(graph, GRT_INVALID, "a dispatch without a kernel of this device (%s)",
                         grt_last_error());
        return;
    }
    const struct grt_kernel_info *info = dispatch->kernel->info;
    if (dispatch->params_size != info->params_size || !dispatch->params) {
        grt_graph_reject(graph, GRT_INVALID, "kernel '%s' takes %u bytes of parameters, not %u",
                         info->name, info->params_size,
                         dispatch->params ? dispatch->params_size : 0);
        return;
    }
    cmd->kernel = dispatch->kernel;
    cmd->params_size = info->params_size;
    memcpy(cmd->params, dispatch->params, info->params_size);
    memcpy(cmd->bindings, dispatch->bindings, sizeof cmd->bindings);
    for (uint32_t axis = 0; axis < 3; axis++) {
        cmd->groups[axis] = dispatch->groups[axis] ? dispatch->groups[axis] : 1;
        if (cmd->groups[axis] > graph->dev->info.caps.max_groups[axis]) {
            grt_graph_reject(graph, GRT_UNSUPPORTED,
                             "kernel '%s': %u workgroups on axis %u, %s allows %u", info->name,
                             cmd->groups[axis], axis, graph->dev->info.selector,
                             graph->dev->info.caps.max_groups[axis]);
            return;
        }
    }
    if (check_bindings(graph, cmd)) {
        graph->count += 1;
    }
}

static bool in_words(struct grt_graph *graph, const struct grt_range *range, const char *what) {
    if (range->offset % 4 == 0 && range->size % 4 == 0) {
        return true;
    }
    grt_graph_reject(graph, GRT_INVALID, "%s: offset %llu and size %llu must be multiples of 4",
                     what, (unsigned long long)range->offset, (unsigned long long)range->size);
    return false;
}

void grt_graph_copy(struct grt_graph *graph, struct grt_range dst, struct grt_range src) {
    struct grt_cmd *cmd = append(graph, GRT_CMD_COPY);
    if (!cmd || !complete(graph, &dst, "copy, to") || !complete(graph, &src, "copy, from") ||
        !in_words(graph, &dst, "copy, to") || !in_words(graph, &src, "copy, from")) {
        return;
    }
    if (dst.size != src.size) {
        grt_graph_reject(graph, GRT_INVALID, "copy of %llu bytes to %llu bytes",
                         (unsigned long long)src.size, (unsigned long long)dst.size);
        return;
    }
    if (overlap(&dst, &src)) {
        grt_graph_reject(graph, GRT_INVALID, "copy within a buffer, and the ranges overlap");
        return;
    }
    if (dst.buf->kind == GRT_BUF_UPLOAD || src.buf->kind == GRT_BUF_READBACK) {
        grt_graph_reject(graph, GRT_INVALID, "copy %s buffer",
                         dst.buf->kind == GRT_BUF_UPLOAD ? "to an upload" : "from a readback");
        return;
    }
    cmd->dst = dst;
    cmd->src = src;
    graph->count += 1;
}

void grt_graph_fill(struct grt_graph *graph, struct grt_range dst, uint32_t value) {
    struct grt_cmd *cmd = append(graph, GRT_CMD_FILL);
    if (!cmd || !complete(graph, &dst, "fill") || !in_words(graph, &dst, "fill")) {
        return;
    }
    if (dst.buf->kind != GRT_BUF_DEVICE) {
        grt_graph_reject(graph, GRT_INVALID, "fill of a host buffer; write to it directly");
        return;
    }
    cmd->dst = dst;
    cmd->value = value;
    graph->count += 1;
}

void grt_graph_phase(struct grt_graph *graph, const char *name) {
    struct grt_cmd *cmd = append(graph, GRT_CMD_PHASE);
    if (!cmd) {
        return;
    }
    if (!name || !name[0] || graph->phase_count == GRT_MAX_PHASES) {
        grt_graph_reject(graph, GRT_INVALID, "phase: %s",
                         name && name[0] ? "too many in one graph" : "no name");
        return;
    }
    cmd->phase = graph->phase_count;
    snprintf(graph->phase_names[graph->phase_count], sizeof graph->phase_names[0], "%s", name);
    graph->phase_count += 1;
    graph->count += 1;
}

// ---- hazards ----

struct use {
    struct grt_range range;
    bool write;
};

static uint32_t uses_of(const struct grt_cmd *cmd, struct use *uses) {
    uint32_t count = 0;
    switch (cmd->kind) {
    case GRT_CMD_DISPATCH:
        for (uint32_t i = 0; i < cmd->kernel->info->arg_count; i++) {
            uses[count++] = (struct use){cmd->bindings[i], writes(cmd->kernel->info, i)};
        }
        break;
    case GRT_CMD_COPY:
        uses[count++] = (struct use){cmd->dst, true};
        uses[count++] = (struct use){cmd->src, false};
        break;
    case GRT_CMD_FILL:
        uses[count++] = (struct use){cmd->dst, true};
        break;
    case GRT_CMD_PHASE:
        break;
    }
    return count;
}

static bool conflict(const struct grt_cmd *a, const struct grt_cmd *b) {
    struct use of_a[GRT_MAX_BINDINGS], of_b[GRT_MAX_BINDINGS];
    uint32_t count_a = uses_of(a, of_a);
    uint32_t count_b = uses_of(b, of_b);
    for (uint32_t i = 0; i < count_a; i++) {
        for (uint32_t k = 0; k < count_b; k++) {
            if ((of_a[i].write || of_b[k].write) && overlap(&of_a[i].range, &of_b[k].range)) {
                return true;
            }
        }
    }
    return false;
}

// Sets the sync of each command and returns how many barriers that makes.
static uint32_t find_hazards(struct grt_cmd *cmds, uint32_t count) {
    uint32_t barriers = 0;
    uint32_t window = 0;  // first command since the last barrier
    for (uint32_t i = 0; i < count; i++) {
        struct grt_cmd *cmd = &cmds[i];
        cmd->sync = -1;
        if (cmd->kind == GRT_CMD_PHASE) {  // a barrier in itself
            window = i + 1;
            continue;
        }
        for (uint32_t k = i; k > window && cmd->sync < 0; k--) {
            if (conflict(cmd, &cmds[k - 1])) {
                cmd->sync = (int32_t)(k - 1);
            }
        }
        if (cmd->sync >= 0) {
            barriers += 1;
            window = i;
        }
    }
    return barriers;
}

// ---- segments ----

// Bytes a second, on the low side: a guess that is too slow costs a few more submits in one run.
static double guessed_rate(const struct grt_caps *caps) {
    return caps->software ? 1e9 : caps->integrated ? 1e10 : 1e11;
}

static void guess_costs(struct grt_graph *graph) {
    double rate = guessed_rate(&graph->dev->info.caps);
    for (uint32_t i = 0; i < graph->count; i++) {
        struct use uses[GRT_MAX_BINDINGS];
        uint32_t count = uses_of(&graph->cmds[i], uses);
        graph->costs[i] = 0.0;
        for (uint32_t k = 0; k < count; k++) {
            graph->costs[i] += (double)uses[k].range.size / rate;
        }
    }
}

// Translates commands first .. first + count - 1. A phase that began in an earlier segment goes on
// here: its mark is repeated at the head. A list begins as if all before it had finished, so hazards are
// looked for within it alone.
static bool create_segment(struct grt_graph *graph, struct segment *segment, uint32_t *phase) {
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
    find_hazards(cmds, count);
    segment->native = graph->dev->fns->cmds_create(graph->dev, cmds, count, segment->phase_count);
    free(cmds);
    return segment->native != NULL;
}

static void destroy_segments(struct grt_graph *graph) {
    for (uint32_t i = 0; i < graph->segment_count; i++) {
        if (graph->segments[i].native) {
            graph->dev->fns->cmds_destroy(graph->dev, graph->segments[i].native);
        }
    }
    free(graph->segments);
    graph->segments = NULL;
    graph->segment_count = 0;
}

// Cuts where the costs add up to the limit, and never inside one command.
static bool create_segments(struct grt_graph *graph) {
    double limit = graph->dev->desc.max_submit_ms * 1e-3;
    uint32_t phase = GRT_MAX_PHASES;  // none yet
    graph->segments = calloc(graph->count + 1, sizeof *graph->segments);
    if (!graph->segments) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to bake graph '%s'", graph->label);
    }
    for (uint32_t first = 0; first < graph->count;) {
        uint32_t last = first + 1;
        double cost = graph->costs[first];
        while (last < graph->count && cost + graph->costs[last] <= limit) {
            cost += graph->costs[last++];
        }
        struct segment *segment = &graph->segments[graph->segment_count++];
        segment->first = first;
        segment->count = last - first;
        if (!create_segment(graph, segment, &phase)) {
            destroy_segments(graph);
            return false;
        }
        first = last;
    }
    return true;
}

static void hold_buffers(struct grt_graph *graph, void (*change)(struct grt_buf *)) {
    for (uint32_t i = 0; i < graph->count; i++) {
        struct use uses[GRT_MAX_BINDINGS];
        uint32_t count = uses_of(&graph->cmds[i], uses);
        for (uint32_t k = 0; k < count; k++) {
            change(uses[k].range.buf);
        }
    }
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
    if (!grt_dev_usable(graph->dev)) {
        return false;
    }
    graph->costs = calloc(graph->count + 1, sizeof *graph->costs);
    if (!graph->costs) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to bake graph '%s'", graph->label);
    }
    graph->barriers = find_hazards(graph->cmds, graph->count);
    guess_costs(graph);
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
        destroy_segments(g);
        hold_buffers(g, grt_buf_unref);
    }
    g->dev->objects -= 1;
    free(g->costs);
    free(g->cmds);
    free(g);
}

// ---- running ----

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The first run: each segment on its own, timed. The measured time is shared among a segment's
// commands in proportion to their guesses, and the cuts are made anew if one was over the limit in two
// runs (drivers compile in the first: PoCL) or if fewer would do.
static bool calibrate(struct grt_graph *graph) {
    struct grt_dev *dev = graph->dev;
    double limit = dev->desc.max_submit_ms * 1e-3;
    double total = 0.0;
    bool over = false;
    if (!dev->fns->wait(dev)) {
        return false;
    }
    for (uint32_t s = 0; s < graph->segment_count; s++) {
        const struct segment *segment = &graph->segments[s];
        double start = now();
        if (!dev->fns->cmds_run(dev, segment->native) || !dev->fns->wait(dev)) {
            return false;
        }
        double seconds = now() - start;
        double guessed = 0.0;
        for (uint32_t i = 0; i < segment->count; i++) {
            guessed += graph->costs[segment->first + i];
        }
        for (uint32_t i = 0; i < segment->count; i++) {
            double *cost = &graph->costs[segment->first + i];
            *cost = guessed > 0.0 ? *cost / guessed * seconds : seconds / segment->count;
        }
        total += seconds;
        over = over || (seconds > limit && segment->count > 1);
    }
    graph->calibrated = !over || graph->over_once;
    graph->over_once = over;
    if (!graph->calibrated) {
        return true;
    }
    if (over || (graph->segment_count > 1 && total < 0.5 * limit * (graph->segment_count - 1))) {
        destroy_segments(graph);
        graph->timed = false;
        return create_segments(graph);
    }
    return true;
}

bool grt_graph_run(struct grt_graph *graph) {
    if (!graph || !graph->baked) {
        return grt_fail(GRT_INVALID, "grt_graph_run: %s",
                        graph ? "bake the graph first" : "no graph");
    }
    struct grt_dev *dev = graph->dev;
    if (!grt_dev_usable(dev)) {
        return false;
    }
    graph->runs += 1;
    graph->timed = true;
    if (!graph->calibrated) {
        return calibrate(graph);
    }
    for (uint32_t s = 0; s < graph->segment_count; s++) {
        if (!dev->fns->cmds_run(dev, graph->segments[s].native)) {
            return false;
        }
    }
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
        const struct segment *segment = &graph->segments[s];
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
