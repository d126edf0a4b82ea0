// SPDX-License-Identifier: Apache-2.0
// Timelines: what a device did, command by command, and what the host did meanwhile.
//
//     struct grt_timeline *t = grt_timeline_begin(dev, grt_timeline_desc(.events = true));
//     ... graphs are baked and run ...
//     grt_timeline_end(t);                              waits, and reads the last times
//     while (grt_timeline_kernel(t, i++, &row)) ...     the largest total first
//     grt_timeline_write_trace(t, "trace.json");
//     grt_timeline_destroy(&t);
//
// From begin to end the time of every command of every graph of the device is taken, or of as many
// as desc.overhead allows. Nothing waits for that: no barrier is added, and times are read
// when a run is long over. Commands that run side by side share the time between them, so the times
// of a queue add up to no more than the wall time. One timeline at a time in a process. Without one
// nothing is measured, and nothing costs anything.
#ifndef GRT_TIMELINE_H
#define GRT_TIMELINE_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_TIMELINE_EVENTS 1000000u  // kept at most, 24 bytes each

struct grt_timeline_desc {
    bool events;           // each event is kept, for a trace; else only sums are
    bool memory;           // allocations are kept, for a snapshot
    uint64_t most_events;  // later ones are counted and left out; 0: GRT_TIMELINE_EVENTS
    // Share of a list's time that timing it may cost. Where the driver's times cost more, some of
    // its commands are timed in a run, others in the next, or one run in so many where a list is
    // timed whole; they stand for the others. 0: every command of every run is timed.
    double overhead;
};
#define grt_timeline_desc(...) GRT_DESC(struct grt_timeline_desc, __VA_ARGS__)

struct grt_timeline;

// NULL when another one is going, or out of memory. desc NULL: sums alone. dev NULL: what the host
// does, its stages among it.
GRT_API struct grt_timeline *grt_timeline_begin(struct grt_dev *dev,
                                                const struct grt_timeline_desc *desc);
// Sums and totals begin anew; events and allocations stay. For a caller whose set-up, such as
// checks of kernels, is not what is to be measured. Waits for the device. Without a timeline
// nothing happens.
GRT_API bool grt_timeline_restart(struct grt_dev *dev);
// Waits for the device. Its graphs go on without times. Called while the device is there.
GRT_API bool grt_timeline_end(struct grt_timeline *timeline);
// Of one that has ended, also after its device has gone.
GRT_API void grt_timeline_destroy(struct grt_timeline **timeline);

// What the calls of one kernel came to; copies and fills are "(copy)", "(fill)", "(upload)" and
// "(readback)".
struct grt_timeline_kernel {
    const char *name;    // the timeline's
    uint64_t calls;      // that were run
    uint64_t timed;      // of these, with a time
    double seconds;      // of all, those without a time taking as long as the others
    double operations;   // floating-point; 0: not known
    double bytes;        // of all ranges bound, each counted once a call
    double samples;      // that it transformed; 0: it is no transform
    bool is_kernel;      // else a copy or fill
    bool of_operations;  // every call told its operations
};
// The i-th after the end, the largest total first; false past the last.
GRT_API bool grt_timeline_kernel(const struct grt_timeline *timeline, uint32_t i,
                                 struct grt_timeline_kernel *row);

// What making batches is made of. Times are of all workers together, and those of transforms the
// device's (grt_graph_samples()).
#define GRT_STAGES(X)                                                                              \
    X(READ, "read")           /* from the file */                                                  \
    X(INFLATE, "inflate")     /* compressed chunks */                                              \
    X(DECODE, "decode")       /* pictures in their files' form */                                  \
    X(TRANSFORM, "transform") /* by the device */                                                  \
    X(CONVERT, "convert")     /* to the type and place that steps want */                          \
    X(WAIT, "wait")           /* of the host for a batch */

enum grt_stage {
#define X(name, text) GRT_STAGE_##name,
    GRT_STAGES(X)
#undef X
        GRT_STAGE_COUNT,
};
GRT_API const char *grt_stage_text(enum grt_stage stage);

// Sums over the whole.
struct grt_timeline_totals {
    double wall;        // seconds from begin to end
    double active;      // from the first command of the compute queue to the end of its last
    double compute;     // of these, the compute queue worked
    double upload;      // and the upload queue
    double submitting;  // the host handed work to the driver
    double waiting;     // the host waited for the device
    uint64_t dispatches, copies;  // commands that were run; fills are copies
    uint64_t timed;               // of these commands, with a time
    double stamp;                 // seconds that timing a command takes; 0: not measured
    uint64_t submits;
    uint64_t events, left_out;  // kept, and not kept because there were too many
    double stages[GRT_STAGE_COUNT];
};
GRT_API struct grt_timeline_totals grt_timeline_totals(const struct grt_timeline *timeline);

// Something that this thread did, by grt_seconds() of the host's clock; spans of a thread do not
// overlap. Without a timeline nothing happens.
GRT_API void grt_timeline_span(const char *name, double begin, double end);

// Chrome's trace format, which Perfetto opens: queues, phases, threads and memory over time, on the
// host's clock. False with the sentence.
GRT_API bool grt_timeline_write_trace(const struct grt_timeline *timeline, const char *path);
// Every allocation with its label, kind, size and life, and the tensors in it.
GRT_API bool grt_timeline_write_memory(const struct grt_timeline *timeline, const char *path);

#ifdef __cplusplus
}
#endif
#endif
