// SPDX-License-Identifier: Apache-2.0
// One invocation of a kernel in the C reading. Takes nothing of gpurt: see kernel_info.h.
#ifndef GRT_REF_REF_LANE_H
#define GRT_REF_REF_LANE_H

#include <stdint.h>

struct ref_lane {
    uint32_t lid;
    uint32_t group[3];
    uint32_t groups[3];
    const uint32_t *spec;
    void *const *bindings;
    const unsigned char *params;
    unsigned char *shmem;
    // Gives the turn to the next lane and comes back when all have reached the barrier.
    void (*barrier)(struct ref_lane *lane);
    void *turn;  // coroutine, NULL when the lane runs in a plain loop
};

#endif
