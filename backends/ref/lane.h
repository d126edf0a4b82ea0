// SPDX-License-Identifier: Apache-2.0
// Runs the lanes of a workgroup.
#ifndef GRT_REF_LANE_H
#define GRT_REF_LANE_H

#include "backends/backend.h"
#include "ref_lane.h"

// What the lanes of a workgroup need while they run. Made before, for the largest dispatch, so that
// running allocates nothing.
struct ref_group {
    struct ref_lane *lanes;
    struct ref_turn *turns;
    unsigned char *stacks, *shmem;
    uint32_t lane_capacity, turn_capacity, shmem_capacity;
    void *bindings[GRT_MAX_BINDINGS];  // of the dispatch that runs
};

// Makes room for a dispatch. False when there is no memory; what there was still serves others.
bool ref_group_fit(struct ref_group *group, const struct grt_cmd *cmd);
void ref_group_finish(struct ref_group *group);
// Runs every workgroup of a dispatch that was made room for, one after the other.
void ref_lanes_run(struct ref_group *group, const struct grt_cmd *cmd);

#endif
