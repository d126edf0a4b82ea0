// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: a timeline from within, and what is told to it. timeline.c keeps what it is
// told, kernels.c makes rows of it, trace.c and memory.c write files. It knows no device: whoever
// runs commands (device/timed.c) tells names and times.
//
// Times of the device stay by its own clock until the end, when both clocks were read twice: two
// points make the line that leads from one to the other.
#ifndef GRT_TIMELINE_PARTS_H
#define GRT_TIMELINE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "gpurt/buffer.h"
#include "gpurt/timeline.h"

// Tracks of a trace. Threads follow, in the order in which they were first heard of.
enum grt_track { GRT_TRACK_COMPUTE, GRT_TRACK_UPLOAD, GRT_TRACK_PHASES, GRT_TRACK_THREADS };
#define GRT_MOST_TRACKS 256

struct grt_event {
    double begin, end;
    uint32_t name;
    uint16_t track;
    uint16_t by_device;  // times are of the device's clock
};

// A name, and what its calls came to.
struct grt_name {
    char *text;
    uint32_t hash;
    uint64_t calls, timed, told;  // told: timed calls with operations
    double stand_for;             // calls that the timed ones stand for; what follows is of these
    double seconds, operations, bytes, samples;
    double uploads;  // seconds of these on the upload queue
    bool is_kernel;
};

struct grt_level {
    double at;
    uint64_t bytes;  // on the device
};

struct grt_allocation {
    uint32_t label;
    enum grt_buf_kind kind;
    uint64_t size;
    double begin, end;  // end NAN: it outlived the timeline
};

struct grt_tensor_place {
    uint32_t allocation, label;
    uint64_t offset, size;
};

struct grt_timeline {
    uint64_t id;          // from 1 on, another for each
    struct grt_dev *dev;  // only to tell whose it is
    char device[160];     // its name, for files
    char name[128], backend[16];
    struct grt_timeline_desc desc;
    bool ended;
    double begin, end;       // host
    double zero;             // host: since when sums are counted
    double device_clock[2];  // at begin and end
    double host_clock[2];
    struct grt_name *names;
    uint32_t name_count, name_room;
    uint32_t *index;  // name + 1 by hash, open addressing; index_size of them, a power of two
    uint32_t index_size;
    struct grt_event *events;
    uint64_t event_count, event_room;
    char tracks[GRT_MOST_TRACKS][32];  // of threads
    uint32_t track_count;
    struct grt_level *levels;
    uint64_t level_count, level_room;
    struct grt_allocation *allocations;
    uint64_t allocation_count, allocation_room;
    struct grt_tensor_place *parts;
    uint64_t part_count, part_room;
    uint32_t *order;  // after the end: names with calls, the largest total first
    uint32_t row_count;
    bool computes;       // a command of the compute queue was told
    double first, last;  // its first begin and last end
    bool last_by_device;
    double untimed;  // host: when the newest run without times was handed over
    bool short_of_memory;
    struct grt_timeline_totals totals;
};

// The one that is going, or NULL: the one question when nothing is measured.
extern _Atomic(struct grt_timeline *) grt_timeline_going;
static inline struct grt_timeline *grt_timeline_on(void) {
    return atomic_load_explicit(&grt_timeline_going, memory_order_acquire);
}

// ---- timeline.c ----

// Makes it the one that is going; NULL with the sentence.
struct grt_timeline *grt_timeline_start(struct grt_dev *dev, const struct grt_timeline_desc *desc);
// The one that is going, which stays until grt_timeline_leave(). NULL: none, and nothing is to be
// left.
struct grt_timeline *grt_timeline_enter(void);
void grt_timeline_leave(void);
// Sums begin anew.
void grt_timeline_zero(struct grt_timeline *t);
// From here on nothing is told any more. Orders the rows.
void grt_timeline_stop(struct grt_timeline *t);
// A name's number. NULL is "unnamed".
uint32_t grt_timeline_name(struct grt_timeline *t, const char *name);
// The same of one that was entered.
uint32_t grt_timeline_number(struct grt_timeline *t, const char *name);

// A command, and what is told of it. begin NAN: of no single call.
struct grt_command_time {
    uint32_t name;
    enum grt_track track;
    bool is_kernel, by_device;
    uint64_t calls;     // that were not told yet
    double stands;      // calls that the time stands for, told here or elsewhere
    double begin, end;  // of a call that was timed
    double seconds;     // else what a call takes
    double operations;  // of a call, as bytes and samples
    uint64_t bytes, samples;
};
void grt_timeline_commands(struct grt_timeline *t, const struct grt_command_time *commands,
                           uint32_t count);
// A run without times was handed over.
void grt_timeline_untimed(struct grt_timeline *t);
void grt_timeline_phase(struct grt_timeline *t, uint32_t name, double begin, double end,
                        bool by_device);
// A span of this thread that is also summed up.
enum grt_host_work { GRT_HOST_OTHER, GRT_HOST_SUBMIT, GRT_HOST_WAIT };
void grt_timeline_host(struct grt_timeline *t, enum grt_host_work work, const char *name,
                       double begin, double end);
// What the track of this thread is called from here on.
void grt_timeline_thread(const char *name);
// Now, or 0 when there is no timeline: for what is measured only then.
double grt_timeline_clock(void);
// Of a stage that began at such a time and ends now; stages of a thread do not overlap.
void grt_timeline_stage(enum grt_stage stage, double begun);
// Seconds that this thread has told of stages so far.
double grt_timeline_staged(void);
// What a thread did that made a batch, beginning at such a time and with so many seconds told: what
// was told of no stage is the conversion.
void grt_timeline_batch(double begun, double staged);

// A time of the device's clock by the host's.
double grt_timeline_at(const struct grt_timeline *t, double at, bool by_device);

// ---- memory.c ----

// What the allocation is known by, in this timeline alone; 0: not kept. `on_device`: bytes in use
// there from now on.
uint64_t grt_timeline_alloc(const struct grt_dev *dev, const char *label, enum grt_buf_kind kind,
                            uint64_t size, uint64_t on_device);
void grt_timeline_free(uint64_t allocation, uint64_t on_device);
// A tensor in an allocation.
void grt_timeline_part(uint64_t allocation, const char *label, uint64_t offset, uint64_t size);

// Room for one more element; false, and it is noted, when out of memory.
bool grt_timeline_grow(struct grt_timeline *t, void **array, uint64_t count, uint64_t *room,
                       uint64_t size);

#endif
