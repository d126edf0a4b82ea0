// SPDX-License-Identifier: Apache-2.0
// Environments: what a policy is trained in. Each is one file of pure functions (shaders/env/README.md says how to
// write one): gpurt's own are found by name, others are loaded at run time.
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
    uint32_t obs, act;                // numbers of an observation and of an action
    uint32_t state;                   // floats of a state
    const char *const *state_names;   // as many, then NULL
    uint32_t substeps;                // of one step
    uint32_t phases;                  // 1, 2, ... this many
    uint32_t length;                  // steps of an episode, unless said otherwise
    float dt;                         // seconds of one step
    uint32_t operations;              // of one step, in floating point; 0: not counted
    float step_size, noise_std;       // that a learner takes, unless said otherwise; 0: its own
    uint32_t shapes;                  // that it is drawn with; 0: it is not
    const struct grt_source *source;  // of its kernels; NULL: gpurt's own
};

// The i-th environment, or NULL past the last.
GRT_API const struct grt_env_info *grt_env_at(uint32_t i);
// NULL, with a sentence that names the closest or all there are (GRT_INVALID).
GRT_API const struct grt_env_info *grt_env_find(const char *name);

// The environment that a text names: of gpurt's own by its name, or a file when the text has a slash or ends in ".k". A
// file is compiled at run time, for the device that uses it (kernel.h). NULL with a sentence: GRT_INVALID for a name,
// GRT_NO_INPUT for a file, GRT_BAD_DATA, with file and line, for what it says.
GRT_API const struct grt_env_info *grt_env_open(const char *text);
// Closes what grt_env_open() gave, after whatever uses it.
GRT_API void grt_env_close(const struct grt_env_info **env);

#ifdef __cplusplus
}
#endif
#endif
