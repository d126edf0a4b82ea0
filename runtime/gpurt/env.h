// SPDX-License-Identifier: Apache-2.0
// Environments: what a policy is trained in. Each is one file of pure functions
// (shaders/env/README.md says how to write one): gpurt's own are found by name, others are loaded
// at run time.
#ifndef GRT_ENV_H
#define GRT_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_ENV_SETTINGS 20  // of an environment, at most

// A number of an environment that a user may set. Its value and bounds are expressions of the
// settings before it: worlds.h works them out.
struct grt_env_setting {
    const char *name;  // NULL ends a list
    bool whole;        // a whole number, at least 0
    const char *value, *least, *most;
    const char *text;  // what it means
};

// What must hold of the settings, and what is said otherwise.
struct grt_env_rule {
    const char *holds;  // an expression; NULL ends a list
    const char *otherwise;
};

// Of an environment whose state lies in device memory (shaders/env/world.k): sizes as expressions
// of its settings.
struct grt_env_world {
    const char *agents, *obs, *global, *act, *choices, *words;
    const char *shapes;  // that a copy is drawn with; "0": it is not
    const char *bits;    // numbers of an observation that are told as bits, its last; "0": none
    const struct grt_env_setting *settings;
    const struct grt_env_rule *rules;
    const char *const *terms;  // names, then NULL
};

// What an environment says of itself; made by the C reading of its file.
struct grt_env_info {
    const char *name;
    uint32_t obs, act;                  // numbers of an observation and of an action
    uint32_t state;                     // floats of a state; 0: its state lies in memory
    const char *const *state_names;     // as many, then NULL
    uint32_t substeps;                  // of one step
    uint32_t phases;                    // 1, 2, ... this many
    uint32_t length;                    // steps of an episode, unless said otherwise
    float dt;                           // seconds of one step
    uint32_t operations;                // of one step, in floating point; 0: not counted
    float step_size, noise_std;         // that a learner takes, unless said otherwise; 0: its own
    uint32_t normalise;                 // 1: PPO learns it better with normalised observations
    uint32_t shapes;                    // that it is drawn with; 0: it is not
    const struct grt_source *source;    // of its kernels; NULL: gpurt's own
    const struct grt_env_world *world;  // NULL: its state is held in registers
};

// The i-th environment, or NULL past the last.
GRT_API const struct grt_env_info *grt_env_at(uint32_t i);
// NULL, with a sentence that names the closest or all there are (GRT_INVALID).
GRT_API const struct grt_env_info *grt_env_find(const char *name);

// Whether its state is held in registers; false with a sentence that says who needs that
// (GRT_INVALID).
GRT_API bool grt_env_in_registers(const struct grt_env_info *env, const char *who);

// What tells apart texts of environments from files: 16 digits, or "" for gpurt's own. Checkpoints
// keep it.
#define GRT_ENV_DIGEST 17
GRT_API void grt_env_digest(const struct grt_env_info *env, char digest[GRT_ENV_DIGEST]);

// The environment that a text names: of gpurt's own by its name, or a file when the text has a
// slash or ends in ".k". A file is compiled at run time, for the device that uses it (kernel.h).
// NULL with a sentence: GRT_INVALID for a name, GRT_NO_INPUT for a file, GRT_BAD_DATA, with file
// and line, for what it says.
GRT_API const struct grt_env_info *grt_env_open(const char *text);
// Closes what grt_env_open() gave, after whatever uses it.
GRT_API void grt_env_close(const struct grt_env_info **env);

#ifdef __cplusplus
}
#endif
#endif
