// SPDX-License-Identifier: Apache-2.0
// Graphs: work that is recorded once, baked once and replayed many times.
//
//     record            bake                        run, run, run ...
//     dispatch, copy -> hazards, segments, driver -> one submit per segment
//
// Recording cannot fail: the first mistake sticks and grt_graph_bake() reports it. Baking finds,
// by byte range, which commands must wait for which; every backend uses that answer. Running
// queues the work and returns; it allocates nothing. What changes between runs (step number,
// learning rate, seed) lives in a small device buffer that a graph reads, so a training step is
// replayed unchanged.
#ifndef GRT_GRAPH_H
#define GRT_GRAPH_H

#include "buffer.h"
#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_MAX_BINDINGS 12
#define GRT_MAX_PARAMS 128  // bytes; what every Vulkan device has
#define GRT_MAX_PHASES 32

// A range of a buffer. size 0 means to the end of the buffer.
struct grt_range {
    struct grt_buf *buf;
    uint64_t offset;
    uint64_t size;
};

struct grt_dispatch {
    const struct grt_kernel *kernel;
    struct grt_range bindings[GRT_MAX_BINDINGS];  // as many as the kernel declares, in its order
    const void *params;                           // copied; its size is the kernel's
    uint32_t params_size;
    uint32_t groups[3];  // workgroups; 0 means 1
};
#define grt_dispatch(...) GRT_DESC(struct grt_dispatch, __VA_ARGS__)

struct grt_graph;

// label names the graph in messages and traces; it may be NULL.
GRT_API struct grt_graph *grt_graph_create(struct grt_dev *dev, const char *label);
// Waits for runs that are still going.
GRT_API void grt_graph_destroy(struct grt_graph **graph);
GRT_API struct grt_dev *grt_graph_dev(const struct grt_graph *graph);

GRT_API void grt_graph_dispatch(struct grt_graph *graph, const struct grt_dispatch *dispatch);
// The dispatch recorded last does so many floating-point operations: timelines make a rate of it.
GRT_API void grt_graph_operations(struct grt_graph *graph, double operations);
// The dispatch recorded last transforms so many samples: timelines tell what it takes for each.
GRT_API void grt_graph_samples(struct grt_graph *graph, uint64_t samples);
// Between any two buffers, also from upload and to readback ones; offsets and size in multiples
// of 4. The ranges must not overlap.
GRT_API void grt_graph_copy(struct grt_graph *graph, struct grt_range dst, struct grt_range src);
// Every 4 bytes of the range become `value`.
GRT_API void grt_graph_fill(struct grt_graph *graph, struct grt_range dst, uint32_t value);
// What is recorded from here on is timed under this name. Phases do not overlap: each begins with a
// full barrier, so a graph without phases runs a little faster.
GRT_API void grt_graph_phase(struct grt_graph *graph, const char *name);
// Runs on the upload queue (GRT_LANE_ASIDE of device.h), beside compute. Such a graph holds only
// copies from upload to device buffers, or from these to readback buffers. What reads a copied
// buffer must wait for it: grt_dev_after(). Called before the bake.
GRT_API void grt_graph_aside(struct grt_graph *graph);
// The host takes a turn between what was recorded before and what comes after: a run waits for the
// device, calls `turn`, and goes on where that is true. It may read and write host buffers that the
// graph copies from and to, and may take its time: an exchange between processes.
GRT_API void grt_graph_host(struct grt_graph *graph, bool (*turn)(void *context, uint64_t number),
                            void *context, uint64_t number);
// Each run calls told() for every range, with its number: once all that uses the range is
// queued, and before more is. What told() queues runs between, and may change the range. So what is
// done early can be used while the rest still runs. Before the bake; `count` ranges are kept, and
// the context is not.
typedef bool grt_graph_told_fn(void *context, uint32_t number);
struct grt_graph_tell {
    const struct grt_range *ranges;
    uint32_t count;
    grt_graph_told_fn *told;  // false: the run fails, and told() has said why
    void *context;
};
GRT_API void grt_graph_tell(struct grt_graph *graph, const struct grt_graph_tell *tell);
// For the ops built on graphs: makes the first mistake stick.
GRT_API void grt_graph_reject(struct grt_graph *graph, enum grt_status status, const char *format,
                              ...) GRT_PRINTF(3, 4);
// Whether a mistake sticks: what is recorded from here on is dropped.
GRT_API bool grt_graph_rejected(const struct grt_graph *graph);

GRT_API bool grt_graph_bake(struct grt_graph *graph);
// The first run waits for its end: it is timed, to cut the work into submits of the allowed length.
// Later ones queue and return.
GRT_API bool grt_graph_run(struct grt_graph *graph);
// The same, but `stop` is asked before each submit and each is waited for: *stopped, the rest did
// not run. For work that takes long.
GRT_API bool grt_graph_run_until(struct grt_graph *graph, bool (*stop)(void), bool *stopped);
// What a run will take, where that is known: it is cut by this, and not even the first run waits.
// After the bake.
GRT_API bool grt_graph_expect(struct grt_graph *graph, double seconds);
// Bake if needed, run, wait.
GRT_API bool grt_graph_finish(struct grt_graph *graph);

struct grt_graph_stats {
    uint32_t commands;
    uint32_t dispatches;
    uint32_t barriers;  // places where a command waits for an earlier one
    uint32_t segments;  // submits of one run
    uint32_t hosts;     // turns of the host
    uint32_t phases;
    uint64_t runs;
};
GRT_API struct grt_graph_stats grt_graph_stats(const struct grt_graph *graph);

struct grt_phase_time {
    const char *name;
    double seconds;  // device time in the newest finished run
};
// Waits for the device, then fills up to `capacity` times and returns how many phases there are; 0
// when the device has no timestamps, the graph no phases, or the cuts were made anew after the
// first run.
GRT_API uint32_t grt_graph_times(struct grt_graph *graph, struct grt_phase_time *times,
                                 uint32_t capacity);

#ifdef __cplusplus
}
#endif
#endif
