// SPDX-License-Identifier: Apache-2.0
// Worlds on a device with the buffers of a learner around them: what is observed, chosen and
// rewarded, in host memory after each step.
#ifndef TEST_WORLDS_KIT_H
#define TEST_WORLDS_KIT_H

#include "harness/harness.h"

#include "gpurt/worlds.h"
#include "rl/worlds_parts.h"

struct worlds_case {
    struct grt_worlds *worlds;
    struct grt_worlds_sizes sizes;
    uint32_t copies, rows, seed, looks;
    struct grt_dev *dev;
    struct grt_plan *plan;
    struct grt_graph *reset, *observe, *step, *random, *totals;
    // The same observation in 16 bits, half and bfloat, in rows with zeros behind their numbers.
    struct grt_graph *narrow[2];
    struct test_tensor narrow_at[2], narrow_global_at[2];
    struct test_tensor control, actions_at, rewards_at, ends_at, obs_at, global_at, mask_at,
        sums_at;
    // On the host, as the device left them.
    uint32_t *actions;  // [rows], or the bits of f32 [rows][act]
    float *rewards, *obs, *global, *sums;
    uint32_t *ends, *mask;
};

// Fails the case where it cannot be made. Everything is reset and observed.
void worlds_begin(struct worlds_case *c, struct grt_dev *dev, const struct grt_worlds_desc *desc,
                  uint32_t seed);
// The same, but observations are made by workgroups of another shape, such as a GPU's.
void worlds_begin_shaped(struct worlds_case *c, struct grt_dev *dev,
                         const struct grt_worlds_desc *desc, uint32_t seed,
                         const struct worlds_sight *sight);
// Steps with `actions`, and observes.
void worlds_step(struct worlds_case *c);
// Draws `actions` on the device.
void worlds_draw(struct worlds_case *c);
// Takes the totals into `sums`.
void worlds_totals(struct worlds_case *c);
// The words of the state, [words][copies]; allocated.
uint32_t *worlds_state(const struct worlds_case *c);
// How the copies look, [copies][shapes]; allocated.
struct grt_drawn_shape *worlds_shapes(const struct worlds_case *c);
void worlds_end(struct worlds_case *c);

// An environment from a text: a file of that name is written for it. NULL where the text is
// refused.
const struct grt_env_info *worlds_env(const char *name, const char *text);

#endif
