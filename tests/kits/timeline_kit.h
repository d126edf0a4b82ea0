// SPDX-License-Identifier: Apache-2.0
// For the suites of timelines: a graph whose commands are known, and a reader of traces.
#ifndef TEST_TIMELINE_KIT_H
#define TEST_TIMELINE_KIT_H

#include <jansson.h>

#include "graph_kit.h"
#include "gpurt/timeline.h"

#define KIT_RUNS 11u  // more than there are lists of a segment
#define KIT_COPIES 7u
#define KIT_COPIED 256u  // words of a copy
#define KIT_THREADS 4096

// The row of a name; zeros where there is none.
bool kit_row(const struct grt_timeline *t, const char *name, struct grt_timeline_kernel *row);
// KIT_COPIES dispatches that wait for each other or not, a fill, an upload and a readback.
void kit_record(struct grt_graph *graph, bool phases);
void kit_run_all(struct grt_graph *graph, uint32_t runs);
struct grt_timeline *kit_timeline(const struct grt_timeline_desc *desc);
// A name has so many calls, all of them timed.
void kit_calls(const struct grt_timeline *t, const char *name, uint64_t calls);

// What `write` writes, read again.
json_t *kit_read_trace(bool (*write)(const struct grt_timeline *, const char *),
                       const struct grt_timeline *t);
double kit_number(const json_t *event, const char *key);
struct kit_seen {
    double until[KIT_THREADS];  // of each thread
    bool named[KIT_THREADS];
    uint32_t spans, counters, names, kernels, phases, uploads, waits;
    double kernel_us, end_us;
};

// What the format says of each kind of event, and that spans of a thread are in order and apart.
void kit_see(const json_t *event, struct kit_seen *seen);
void kit_see_all(const json_t *trace, struct kit_seen *seen);

#endif
