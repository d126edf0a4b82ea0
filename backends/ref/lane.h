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

// Runs every workgroup of a dispatch, one after the other.
bool ref_lanes_run(const struct grt_cmd *cmd);
// Gives the turn to the next lane and comes back when all have reached the barrier.
void ref_lane_barrier(struct ref_lane *lane);

#endif
