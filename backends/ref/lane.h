// SPDX-License-Identifier: Apache-2.0
// One invocation of a kernel in the C reading.
#ifndef GRT_REF_LANE_H
#define GRT_REF_LANE_H

#include "backends/backend.h"

struct ref_lane {
    uint32_t lid;
    uint32_t group[3];
    uint32_t groups[3];
    const uint32_t *spec;
    void *bindings[GRT_MAX_BINDINGS];
    const unsigned char *params;
    unsigned char *shmem;
    void *turn;  // coroutine, NULL when the lane runs in a plain loop
};

// What the lanes of a workgroup need while they run. Made before, for the largest dispatch, so that
// running allocates nothing.
struct ref_group {
    struct ref_lane *lanes;
    struct ref_turn *turns;
    unsigned char *stacks, *shmem;
    uint32_t lane_capacity, turn_capacity, shmem_capacity;
};

// Makes room for a dispatch. False when there is no memory; what there was still serves others.
bool ref_group_fit(struct ref_group *group, const struct grt_cmd *cmd);
void ref_group_finish(struct ref_group *group);
// Runs every workgroup of a dispatch that was made room for, one after the other.
void ref_lanes_run(struct ref_group *group, const struct grt_cmd *cmd);
// Gives the turn to the next lane and comes back when all have reached the barrier.
void ref_lane_barrier(struct ref_lane *lane);

#endif
