// SPDX-License-Identifier: Apache-2.0
// Recording. Every command is checked here, once; the first mistake sticks.
#include "gpurt/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_parts.h"
#include "section.h"
#include "base/log.h"

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
    dev->objects++;
    return graph;
}

struct grt_dev *grt_graph_dev(const struct grt_graph *graph) {
    return graph ? graph->dev : NULL;
}

void grt_graph_aside(struct grt_graph *graph) {
    if (graph && graph->baked) {
        grt_graph_reject(graph, GRT_INVALID, "moved aside after the bake");
    } else if (graph) {
        graph->lane = GRT_LANE_ASIDE;
    }
}

bool grt_graph_rejected(const struct grt_graph *graph) {
    return !graph || graph->mistake != GRT_OK;
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
        grt_graph_reject(graph, GRT_INVALID, "%s: %llu bytes from %llu on of a buffer of %llu",
                         what, (unsigned long long)range->size, (unsigned long long)range->offset,
                         (unsigned long long)buf->size);
        return false;
    }
    return true;
}

void grt_graph_tell(struct grt_graph *graph, const struct grt_graph_tell *tell) {
    if (!graph || graph->baked || graph->told || !tell || !tell->told || !tell->ranges) {
        grt_graph_reject(graph, GRT_INVALID, "tell: no ranges, a second time, or after the bake");
        return;
    }
    graph->told = calloc(tell->count + 1u, sizeof *graph->told);
    if (!graph->told) {
        grt_graph_reject(graph, GRT_NO_MEMORY, "no host memory for %u ranges", tell->count);
        return;
    }
    for (uint32_t i = 0; i < tell->count; i++) {
        graph->told[i] = (struct grt_told){.range = tell->ranges[i], .number = i};
        if (!complete(graph, &graph->told[i].range, "tell")) {
            return;
        }
    }
    graph->told_count = tell->count;
    graph->tell = tell->told;
    graph->tell_context = tell->context;
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
            if ((grt_kernel_writes(info, i) || grt_kernel_writes(info, k)) &&
                grt_ranges_overlap(range, &cmd->bindings[k])) {
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
        graph->count++;
    }
}

// The command recorded last if it is a dispatch that can still be told something, else NULL.
static struct grt_cmd *last_dispatch(struct grt_graph *graph) {
    struct grt_cmd *last =
        graph && !graph->baked && graph->count > 0 ? &graph->cmds[graph->count - 1] : NULL;
    return last && last->kind == GRT_CMD_DISPATCH && graph->mistake == GRT_OK ? last : NULL;
}

void grt_graph_operations(struct grt_graph *graph, double operations) {
    struct grt_cmd *last = last_dispatch(graph);
    if (last && operations > 0.0) {
        last->operations = operations;
    }
}

void grt_graph_samples(struct grt_graph *graph, uint64_t samples) {
    struct grt_cmd *last = last_dispatch(graph);
    if (last) {
        last->samples = samples;
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
    if (grt_ranges_overlap(&dst, &src)) {
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
    graph->count++;
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
    graph->count++;
}

void grt_graph_host(struct grt_graph *graph, bool (*turn)(void *context, uint64_t number),
                    void *context, uint64_t number) {
    // A place for a command says whether one may be recorded; the host's turns lie elsewhere.
    if (!append(graph, GRT_CMD_FILL)) {
        return;
    }
    struct grt_host_turn *hosts =
        realloc(graph->hosts, (graph->host_count + 1) * sizeof *graph->hosts);
    if (hosts) {
        graph->hosts = hosts;
    }
    if (!hosts || !turn) {
        grt_graph_reject(graph, turn ? GRT_NO_MEMORY : GRT_INVALID, "the host's turn: %s",
                         turn ? "no host memory" : "nothing to call");
        return;
    }
    hosts[graph->host_count++] = (struct grt_host_turn){graph->count, turn, context, number};
}

void grt_graph_section(struct grt_graph *graph, const char *name) {
    // A place for a command says whether one may be recorded; sections lie elsewhere.
    if (!append(graph, GRT_CMD_FILL)) {
        return;
    }
    if (!name || !name[0]) {
        grt_graph_reject(graph, GRT_INVALID, "section: no name");
        return;
    }
    if (graph->section_count == graph->section_room) {
        uint32_t room = graph->section_room ? 2 * graph->section_room : 8;
        struct grt_section *sections = realloc(graph->sections, room * sizeof *sections);
        if (!sections) {
            grt_graph_reject(graph, GRT_NO_MEMORY, "no host memory for %u sections", room);
            return;
        }
        graph->sections = sections;
        graph->section_room = room;
    }
    struct grt_section *section = &graph->sections[graph->section_count++];
    section->at = graph->count;
    snprintf(section->name, sizeof section->name, "%s", name);
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
    graph->phase_count++;
    graph->count++;
    grt_graph_section(graph, name);
}
