// SPDX-License-Identifier: Apache-2.0
// What the files of worlds share.
#ifndef GRT_WORLDS_PARTS_H
#define GRT_WORLDS_PARTS_H

#include "gpurt/worlds.h"

// The constants of shaders/rl/worlds_observe.k: lanes of a workgroup, rows of agents that it makes,
// lanes that share a row, at most, and rows of the whole that it makes.
struct worlds_sight {
    uint32_t wg, rows, lanes, wholes;
};

struct grt_worlds {
    struct grt_dev *dev;
    const struct grt_env_info *env;
    struct grt_worlds_sizes sizes;
    uint32_t copies, first, phase, length;
    uint32_t bits;  // numbers of an observation that are told as bits, its last
    struct worlds_sight sight;
    bool once;
    double settings[GRT_ENV_SETTINGS];  // in their order
    uint32_t setting_count;
    const struct grt_tensor *state;   // u32 [words][copies]
    const struct grt_tensor *book;    // u32 [WORLDS_BOOK][copies]
    const struct grt_tensor *totals;  // f32 [GRT_WORLD_TOTALS + terms][copies]
};

// Works out the settings and the sizes that follow from them. False with a sentence: GRT_CONFIG for
// what a user set, GRT_BAD_DATA for what the environment says.
bool grt_worlds_settle(struct grt_worlds *worlds, const struct grt_worlds_desc *desc);

// The key of a config that says how many copies there are.
const char *grt_worlds_copies_key(const struct grt_worlds *worlds);

#endif
