// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: a graph, and what its files share. graph.c records, hazards.c finds what
// must wait for what, graph_run.c cuts into submits and runs,
// timed.c takes the times of commands under a timeline, timed_windows.c says of which, timed_cost.c
// what that costs.
#ifndef GRT_GRAPH_PARTS_H
#define GRT_GRAPH_PARTS_H

#include "internal.h"

// A run of commands that is one submit.
struct grt_segment {
    uint32_t first, count;            // commands
    uint32_t phases[GRT_MAX_PHASES];  // graph's number of the segment's i-th phase
    uint32_t phase_count;
    void *native;
    struct grt_timed *timed;  // under a timeline; native is then one of its lists
};

// A turn of the host.
struct grt_host_turn {
    uint32_t at;  // before this command
    bool (*turn)(void *context, uint64_t number);
    void *context;
    uint64_t number;
};

// What commands are for.
struct grt_section {
    uint32_t at;  // from this command on
    char name[32];
};

// A range, and the command that writes to it last.
struct grt_told {
    struct grt_range range;
    uint32_t number, behind;
};

struct grt_graph {
    struct grt_dev *dev;
    char label[48];
    struct grt_cmd *cmds;
    double *costs;  // seconds of each command, guessed, then measured
    uint32_t count, capacity;
    char phase_names[GRT_MAX_PHASES][32];
    uint32_t phase_count;
    struct grt_section *sections;  // in their order
    uint32_t section_count, section_room;
    struct grt_host_turn *hosts;  // in their order
    uint32_t host_count;
    struct grt_segment *segments;
    uint32_t segment_count;
    uint32_t barriers;
    enum grt_lane lane;
    bool baked;
    bool calibrated;  // the cuts are final
    bool over_once;   // a segment was over the limit, perhaps by a driver's first-run work
    bool timed;       // the segments have run since they were made
    bool cut_anew;    // before the next run
    uint64_t runs;
    struct grt_told *told;  // in the order of their commands
    uint32_t told_count;
    grt_graph_told_fn *tell;
    void *tell_context;
    uint64_t timeline;             // id of the one that the segments are timed for; 0: none
    struct grt_graph *next_timed;  // of the device's list of graphs that are timed
    enum grt_status mistake;       // the first, GRT_OK if none
    char mistake_text[512];
};

// What a command does to a range.
struct grt_use {
    struct grt_range range;
    bool write;
};

// Up to GRT_MAX_BINDINGS of them; returns how many.
uint32_t grt_cmd_uses(const struct grt_cmd *cmd, struct grt_use *uses);
bool grt_kernel_writes(const struct grt_kernel_info *info, uint32_t arg);
bool grt_ranges_overlap(const struct grt_range *a, const struct grt_range *b);
// Sets the sync of each command and returns how many barriers that makes.
uint32_t grt_find_hazards(struct grt_cmd *cmds, uint32_t count);

// ---- timed.c ----

// The timeline that is going on a device, or NULL.
struct grt_timeline *grt_timed_by(const struct grt_dev *dev);
// The lists of a segment; a failure leaves what grt_timed_destroy() undoes.
bool grt_timed_create(struct grt_graph *graph, struct grt_segment *segment,
                      const struct grt_cmd *cmds, uint32_t count);
void grt_timed_destroy(struct grt_graph *graph, struct grt_segment *segment);
// Runs a segment, timed or not.
bool grt_timed_run(struct grt_graph *graph, struct grt_segment *segment);
// Reads the times of all runs that are not read yet.
bool grt_timed_collect(struct grt_graph *graph);
// The id of the timeline that is going on a device, or 0.
uint64_t grt_timed_id(const struct grt_dev *dev);

// ---- timed_cost.c ----

// Seconds that timing a command takes: measured. Queue idle; false when the device failed.
bool grt_timed_cost(struct grt_dev *dev, double *seconds);

#endif
