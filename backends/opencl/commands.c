// SPDX-License-Identifier: Apache-2.0
// Command lists: every command becomes the arguments of one enqueue call, kept in an array.
//
//     grt_cmd   phase  dispatch  fill  phase  copy       phase
//     gcl_op           launch    fill         write              one enqueue each
//     event slot       0         1            2                  first and last op of a phase only
//
// In a timed list an op's slot is its number, and ops of commands that are not chosen have an event
// only where a phase begins or ends.
//
// A dispatch has a cl_kernel of its own, or shares that of an equal one, whose arguments are set
// when the list is made, so that a run is a loop of enqueue calls and nothing else. The queue is
// in-order: each command sees all that came before it, which is more than the hazards of the list
// ask for, and `sync` is not needed.
//
// A copy has four forms. Host buffers take part by their mapped pointer (buffer.c): from one is a
// write, to one is a read. Host to host goes in pieces through a small device buffer, so that it
// keeps its place in the queue without the host waiting for it.
#include "opencl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOUNCE_SIZE ((uint64_t)4 << 20)
// Commands: of one training step at least, ResNet-18 has 200. Looking through them all in vain
// takes 1.5 us, however long the graph is (Neoverse N1, 2026-11-18).
#define SHARED_REACH 1024

enum op_kind { OP_LAUNCH, OP_WRITE, OP_READ, OP_COPY, OP_FILL };

struct op {
    enum op_kind kind;
    int32_t event;     // slot of gcl_cmds.events, or -1
    const char *name;  // launch: of the kernel, for messages
    cl_kernel kernel;  // launch
    size_t global[3];  // launch
    size_t local[3];   // launch
    cl_mem dst, src;   // whichever ends are device memory
    size_t dst_offset, src_offset, size;
    void *host;     // write: from here; read: to here
    cl_uint value;  // fill
};

struct phase {
    int32_t first, last;  // ops, then event slots; -1 when the phase is empty
};

struct gcl_cmds {
    cl_command_queue queue;
    struct op *ops;
    uint32_t op_count;
    cl_mem bounce;  // NULL unless the list copies from host to host
    struct phase *phases;
    cl_event *events;  // of the newest run; NULL before the first
    uint32_t event_count;
    uint32_t phase_count;
    uint32_t *first_ops;  // timed: of each command, and behind the last
    uint32_t count;       // timed: commands
};

// ---- making a list ----

static bool is_host_copy(const struct grt_cmd *cmd) {
    return cmd->kind == GRT_CMD_COPY && cmd->src.buf->host && cmd->dst.buf->host;
}

static uint32_t count_ops(const struct grt_cmd *cmd) {
    if (cmd->kind == GRT_CMD_PHASE) {
        return 0;
    }
    return is_host_copy(cmd) ? 2 * (uint32_t)((cmd->src.size + BOUNCE_SIZE - 1) / BOUNCE_SIZE) : 1;
}

static bool set_arg(struct gcl_dev *dev, const struct grt_kernel_info *info, cl_kernel kernel,
                    cl_uint at, size_t size, const void *value) {
    cl_int code = gcl.clSetKernelArg(kernel, at, size, value);
    if (code != CL_SUCCESS) {
        cl_uint bound = dev->by_address ? 0 : info->arg_count;
        const char *name = at < bound    ? info->args[at].name
                           : at == bound ? "its bindings' places"
                                         : "its parameters";
        return gcl_fail(dev, gcl_status(code, false), code,
                        "kernel %s refuses %s, argument %u of %zu bytes", info->name, name, at,
                        size);
    }
    return true;
}

// Buffers, where in each the binding begins, parameters: as cl/dialect.h declares them.
static bool set_args(struct gcl_dev *dev, const struct grt_cmd *cmd, cl_kernel kernel) {
    const struct grt_kernel_info *info = cmd->kernel->info;
    cl_ulong places[GRT_MAX_BINDINGS] = {0};
    cl_uint at = 0;
    for (uint32_t i = 0; i < info->arg_count; i++) {
        struct gcl_buf *buf = (struct gcl_buf *)cmd->bindings[i].buf;
        bool good = dev->by_address
                        ? gcl_buf_address(dev, buf, &places[i])
                        : set_arg(dev, info, kernel, at++, sizeof(cl_mem), &buf->handle);
        if (!good) {
            return false;
        }
        places[i] += cmd->bindings[i].offset;
    }
    return set_arg(dev, info, kernel, at, sizeof places, places) &&
           (info->params_size == 0 ||
            set_arg(dev, info, kernel, at + 1, info->params_size, cmd->params));
}

static bool same_launch(const struct grt_cmd *a, const struct grt_cmd *b) {
    if (b->kind != GRT_CMD_DISPATCH || a->kernel != b->kernel ||
        memcmp(a->params, b->params, a->params_size) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < a->kernel->info->arg_count; i++) {
        const struct grt_range *x = &a->bindings[i], *y = &b->bindings[i];
        if (x->buf != y->buf || x->offset != y->offset || x->size != y->size) {
            return false;
        }
    }
    return true;
}

// The op of an equal command not long before `at`, whose kernel object serves again, or NULL. A
// graph of many steps says the same few launches over and over, and an object that was just used is
// still in the caches: a launch of 9 arguments took 7 us from an object of its own among 6000
// (H200's host, 2026-11).
static const struct op *earlier(const struct gcl_cmds *list, const struct grt_cmd *cmds,
                                uint32_t at) {
    uint32_t op = list->op_count;
    for (uint32_t back = 1; back <= SHARED_REACH && back <= at; back++) {
        const struct grt_cmd *cmd = &cmds[at - back];
        op -= count_ops(cmd);
        if (same_launch(&cmds[at], cmd)) {
            return &list->ops[op];
        }
    }
    return NULL;
}

static bool add_launch(struct gcl_dev *dev, struct gcl_cmds *list, const struct grt_cmd *cmds,
                       uint32_t at) {
    const struct grt_cmd *cmd = &cmds[at];
    const struct op *same = earlier(list, cmds, at);
    const struct grt_kernel_info *info = cmd->kernel->info;
    const struct gcl_kernel *kernel = (const struct gcl_kernel *)cmd->kernel;
    const size_t wg = cmd->kernel->spec_values[0];
    cl_int code = CL_SUCCESS;
    struct op *op = &list->ops[list->op_count];
    *op = (struct op){
        .kind = OP_LAUNCH,
        .event = -1,
        .name = info->name,
        .global = {cmd->groups[0] * wg, cmd->groups[1], cmd->groups[2]},
        .local = {wg, 1, 1},
    };
    if (same && gcl.clRetainKernel(same->kernel) == CL_SUCCESS) {
        op->kernel = same->kernel;
        list->op_count++;
        return true;
    }
    op->kernel = gcl.clCreateKernel(kernel->program, info->name, &code);
    if (!op->kernel) {
        return gcl_fail(dev, gcl_status(code, false), code, "no kernel object for %s", info->name);
    }
    list->op_count++;  // from here on gcl_cmds_destroy() releases the kernel
    return set_args(dev, cmd, op->kernel);
}

static void add_copy(struct gcl_cmds *list, const struct grt_range *dst,
                     const struct grt_range *src) {
    struct op op = {
        .event = -1,
        .dst = ((struct gcl_buf *)dst->buf)->handle,
        .src = ((struct gcl_buf *)src->buf)->handle,
        .dst_offset = (size_t)dst->offset,
        .src_offset = (size_t)src->offset,
        .size = (size_t)src->size,
    };
    char *from = src->buf->host, *to = dst->buf->host;
    if (from && to) {
        for (uint64_t done = 0; done < src->size; done += BOUNCE_SIZE) {
            uint64_t left = src->size - done;
            op.size = (size_t)(left < BOUNCE_SIZE ? left : BOUNCE_SIZE);
            op.dst = op.src = list->bounce;
            op.dst_offset = op.src_offset = 0;
            op.kind = OP_WRITE;
            op.host = from + src->offset + done;
            list->ops[list->op_count++] = op;
            op.kind = OP_READ;
            op.host = to + dst->offset + done;
            list->ops[list->op_count++] = op;
        }
        return;
    }
    op.kind = from ? OP_WRITE : to ? OP_READ : OP_COPY;
    op.host = from ? from + src->offset : to ? to + dst->offset : NULL;
    list->ops[list->op_count++] = op;
}

static bool add_fill(struct gcl_dev *dev, struct gcl_cmds *list, const struct grt_cmd *cmd) {
    struct op *op = &list->ops[list->op_count];
    if (gcl_fill_is_far(dev, &cmd->dst)) {
        *op = (struct op){.kind = OP_LAUNCH,
                          .event = -1,
                          .name = "fill",
                          .global = {1, 1, 1},
                          .local = {1, 1, 1}};
        op->kernel = gcl_fill_kernel(dev, &cmd->dst, cmd->value, &op->global[0], &op->local[0]);
        list->op_count += op->kernel != NULL;
        return op->kernel != NULL;
    }
    *op = (struct op){
        .kind = OP_FILL,
        .event = -1,
        .dst = ((struct gcl_buf *)cmd->dst.buf)->handle,
        .dst_offset = (size_t)cmd->dst.offset,
        .size = (size_t)cmd->dst.size,
        .value = cmd->value,
    };
    list->op_count++;
    return true;
}

// chosen NULL: all.
void gcl_cmds_choose(struct grt_dev *base, void *native, const bool *chosen) {
    (void)base;
    struct gcl_cmds *list = native;
    for (uint32_t i = 0; i < list->count; i++) {
        for (uint32_t op = list->first_ops[i]; op < list->first_ops[i + 1]; op++) {
            list->ops[op].event = !chosen || chosen[i] ? (int32_t)op : -1;
        }
    }
    for (uint32_t i = 0; i < list->phase_count; i++) {
        const struct phase *phase = &list->phases[i];
        if (phase->first >= 0) {
            list->ops[phase->first].event = phase->first;
            list->ops[phase->last].event = phase->last;
        }
    }
}

// Turns the phases' ops into event slots: two per phase, or one where first and last are the same.
static void assign_events(struct gcl_cmds *list) {
    if (list->first_ops) {
        gcl_cmds_choose(NULL, list, NULL);
        return;
    }
    for (uint32_t i = 0; i < list->phase_count; i++) {
        struct phase *phase = &list->phases[i];
        if (phase->first < 0) {
            continue;
        }
        struct op *first = &list->ops[phase->first], *last = &list->ops[phase->last];
        first->event = (int32_t)(2 * i);
        if (last != first) {
            last->event = (int32_t)(2 * i + 1);
        }
        phase->first = first->event;
        phase->last = last->event;
    }
}

void *gcl_cmds_create(struct grt_dev *base, const struct grt_cmd *cmds, uint32_t count,
                      uint32_t phase_count, enum grt_lane lane, bool timed) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    size_t op_count = 0;
    bool bounces = false;
    for (uint32_t i = 0; i < count; i++) {
        op_count += count_ops(&cmds[i]);
        bounces = bounces || is_host_copy(&cmds[i]);
    }
    struct gcl_cmds *list = calloc(1, sizeof *list);
    if (!list) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a command list");
        return NULL;
    }
    // One more than needed: calloc(0) may be NULL.
    list->ops = calloc(op_count + 1, sizeof *list->ops);
    list->phases = calloc(phase_count + 1, sizeof *list->phases);
    size_t event_count = timed ? op_count : 2 * (size_t)phase_count;
    list->events = calloc(event_count + 1, sizeof(cl_event));
    list->first_ops = timed ? calloc((size_t)count + 1, sizeof *list->first_ops) : NULL;
    if (!list->ops || !list->phases || !list->events || (timed && !list->first_ops)) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a list of %u commands", count);
        goto undo_list;
    }
    list->queue = dev->lanes[lane].queue;
    list->phase_count = phase_count;
    list->event_count = (uint32_t)event_count;
    list->count = count;
    for (uint32_t i = 0; i < phase_count; i++) {
        list->phases[i] = (struct phase){-1, -1};
    }
    if (bounces) {
        cl_int code = CL_SUCCESS;
        list->bounce =
            gcl.clCreateBuffer(dev->context, CL_MEM_READ_WRITE, (size_t)BOUNCE_SIZE, NULL, &code);
        if (!list->bounce) {
            gcl_fail(dev, gcl_status(code, false), code,
                     "no device buffer of %" PRIu64 " bytes to copy between host buffers",
                     BOUNCE_SIZE);
            goto undo_list;
        }
    }
    struct phase *phase = NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = list->op_count;
        switch (cmds[i].kind) {
        case GRT_CMD_DISPATCH:
            if (!add_launch(dev, list, cmds, i)) {
                goto undo_list;
            }
            break;
        case GRT_CMD_COPY:
            add_copy(list, &cmds[i].dst, &cmds[i].src);
            break;
        case GRT_CMD_FILL:
            if (!add_fill(dev, list, &cmds[i])) {
                goto undo_list;
            }
            break;
        case GRT_CMD_PHASE:
            phase = &list->phases[cmds[i].phase];
            break;
        }
        if (timed) {
            list->first_ops[i + 1] = list->op_count;
        }
        if (phase && list->op_count > before) {
            phase->first = phase->first < 0 ? (int32_t)before : phase->first;
            phase->last = (int32_t)list->op_count - 1;
        }
    }
    assign_events(list);
    return list;

undo_list:
    gcl_cmds_destroy(base, list);
    return NULL;
}

static void release_events(struct gcl_cmds *list) {
    for (uint32_t i = 0; i < list->event_count; i++) {
        if (list->events[i]) {
            gcl_check_release(gcl.clReleaseEvent(list->events[i]), "event");
            list->events[i] = NULL;
        }
    }
}

// Also of a list that is only half made.
void gcl_cmds_destroy(struct grt_dev *base, void *native) {
    (void)base;
    struct gcl_cmds *list = native;
    if (list->events) {
        release_events(list);
    }
    for (uint32_t i = 0; i < list->op_count; i++) {
        if (list->ops[i].kernel) {
            gcl_check_release(gcl.clReleaseKernel(list->ops[i].kernel), "kernel");
        }
    }
    if (list->bounce) {
        gcl_check_release(gcl.clReleaseMemObject(list->bounce), "buffer");
    }
    free(list->events);
    free(list->first_ops);
    free(list->phases);
    free(list->ops);
    free(list);
}

// ---- running ----

static cl_int enqueue(cl_command_queue queue, const struct op *op, cl_event *event) {
    switch (op->kind) {
    case OP_LAUNCH:
        return gcl.clEnqueueNDRangeKernel(queue, op->kernel, 3, NULL, op->global, op->local, 0,
                                          NULL, event);
    case OP_WRITE:
        return gcl.clEnqueueWriteBuffer(queue, op->dst, CL_FALSE, op->dst_offset, op->size,
                                        op->host, 0, NULL, event);
    case OP_READ:
        return gcl.clEnqueueReadBuffer(queue, op->src, CL_FALSE, op->src_offset, op->size, op->host,
                                       0, NULL, event);
    case OP_COPY:
        return gcl.clEnqueueCopyBuffer(queue, op->src, op->dst, op->src_offset, op->dst_offset,
                                       op->size, 0, NULL, event);
    case OP_FILL:
        return gcl.clEnqueueFillBuffer(queue, op->dst, &op->value, sizeof op->value, op->dst_offset,
                                       op->size, 0, NULL, event);
    }
    return CL_INVALID_OPERATION;
}

static bool fail_run(struct gcl_dev *dev, const struct gcl_cmds *list, uint32_t at, cl_int code) {
    const struct op *op = &list->ops[at];
    static const char *const words[] = {
        [OP_LAUNCH] = "launch of kernel ",
        [OP_WRITE] = "write",
        [OP_READ] = "read",
        [OP_COPY] = "copy",
        [OP_FILL] = "fill",
    };
    // Out of resources is either a launch that asks for too much or the echo of an earlier crash.
    // If the queue still finishes, it was the launch.
    bool crashed = gcl.clFinish(list->queue) != CL_SUCCESS;
    return gcl_fail(dev, gcl_status(code, crashed), code, "%s%s, call %u of %u in a list, refused",
                    words[op->kind], op->name ? op->name : "", at + 1, list->op_count);
}

bool gcl_cmds_run(struct grt_dev *base, void *native) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    struct gcl_cmds *list = native;
    release_events(list);
    for (uint32_t i = 0; i < list->op_count; i++) {
        const struct op *op = &list->ops[i];
        cl_event *event = op->event < 0 ? NULL : &list->events[op->event];
        cl_int code = enqueue(list->queue, op, event);
        if (code != CL_SUCCESS) {
            return fail_run(dev, list, i, code);
        }
    }
    cl_int code = gcl.clFlush(list->queue);
    if (code != CL_SUCCESS) {
        return gcl_fail(dev, gcl_status(code, true), code, "cannot start a list of %u calls",
                        list->op_count);
    }
    return true;
}

bool gcl_cmds_times(struct grt_dev *base, void *native, double *begin, double *end) {
    const struct gcl_cmds *list = native;
    // Device clocks count nanoseconds from long ago: the first phase's start is taken off while
    // they are still integers.
    cl_ulong origin = 0, from = 0, to = 0;
    for (uint32_t i = 0; i < list->phase_count; i++) {
        const struct phase *phase = &list->phases[i];
        from = to;  // an empty phase lasts no time
        if (phase->first >= 0) {
            cl_event first = list->events[phase->first], last = list->events[phase->last];
            cl_int code = first && last ? CL_SUCCESS : CL_PROFILING_INFO_NOT_AVAILABLE;
            if (code == CL_SUCCESS) {
                code = gcl.clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof from,
                                                   &from, NULL);
            }
            if (code == CL_SUCCESS) {
                code = gcl.clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof to, &to,
                                                   NULL);
            }
            if (code != CL_SUCCESS) {
                return gcl_fail((struct gcl_dev *)base, gcl_status(code, false), code,
                                "no times for phase %u of %u; did the list run?", i,
                                list->phase_count);
            }
            origin = origin == 0 ? from : origin;
        }
        begin[i] = (double)(int64_t)(from - origin) * 1e-9;
        end[i] = (double)(int64_t)(to - origin) * 1e-9;
    }
    return true;
}

// From the start of the first op to the end of the last.
static cl_int ask_times(const struct gcl_cmds *list, uint32_t first, uint32_t last, cl_ulong *from,
                        cl_ulong *to) {
    cl_int code = gcl.clGetEventProfilingInfo(list->events[first], CL_PROFILING_COMMAND_START,
                                              sizeof *from, from, NULL);
    return code != CL_SUCCESS
               ? code
               : gcl.clGetEventProfilingInfo(list->events[last], CL_PROFILING_COMMAND_END,
                                             sizeof *to, to, NULL);
}

bool gcl_cmds_stamps(struct grt_dev *base, void *native, struct grt_stamps *stamps) {
    struct gcl_dev *dev = (struct gcl_dev *)base;
    const struct gcl_cmds *list = native;
    uint32_t newest = list->op_count;
    while (newest > 0 && !list->events[newest - 1]) {
        newest--;
    }
    cl_int code = newest > 0 ? gcl.clWaitForEvents(1, &list->events[newest - 1]) : CL_SUCCESS;
    stamps->host = false;
    for (uint32_t i = 0; i < list->count && code == CL_SUCCESS; i++) {
        cl_ulong from = 0, to = 0;
        uint32_t first = list->first_ops[i], end = list->first_ops[i + 1];
        bool has = end > first && list->events[first] && list->events[end - 1];
        code = has ? ask_times(list, first, end - 1, &from, &to) : CL_SUCCESS;
        stamps->begin[i] = has ? gcl_clock_seconds(dev, from) : NAN;
        stamps->end[i] = gcl_clock_seconds(dev, to);
    }
    return code == CL_SUCCESS || gcl_fail(dev, gcl_status(code, true), code,
                                          "no times for a list of %u calls", list->op_count);
}
