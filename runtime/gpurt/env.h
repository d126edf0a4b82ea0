// SPDX-License-Identifier: Apache-2.0
// Environments: what a policy is trained in. Each is one file shaders/env/NAME.k, which says how to write one
// (shaders/env/state.k), and is found here by name.
#ifndef GRT_ENV_H
#define GRT_ENV_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What an environment says of itself; made by the C reading of its file.
struct grt_env_info {
    const char *name;
    uint32_t obs, act;               // numbers of an observation and of an action
    uint32_t state;                  // floats of a state
    const char *const *state_names;  // as many, then NULL
    uint32_t substeps;               // of one step
    uint32_t phases;                 // 1, 2, ... this many
    uint32_t length;                 // steps of an episode, unless said otherwise
    float dt;                        // seconds of one step
    uint32_t operations;             // of one step, in floating point; 0: not counted
    float step_size, noise_std;      // that a learner takes, unless said otherwise; 0: its own
};

// The i-th environment, or NULL past the last.
GRT_API const struct grt_env_info *grt_env_at(uint32_t i);
// NULL, with a sentence that names the closest or all there are (GRT_INVALID).
GRT_API const struct grt_env_info *grt_env_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
