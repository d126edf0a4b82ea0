// SPDX-License-Identifier: Apache-2.0
// A stepper: worlds (worlds.h) that a program on the host acts in. It writes actions, steps, and
// reads what is seen, in host memory that lasts as long as the stepper. States may be read and
// written, so that any step can be tried from any state.
//
//     actions  ->  step  ->  rewards, ends, and the observations behind them
//
// One submit and one wait a step, whatever the number of copies. Learning at speed is for ppo.h
// and es.h, where nothing returns to the host.
#ifndef GRT_STEPPER_H
#define GRT_STEPPER_H

#include "worlds.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where everything is. A row is an agent of a copy: row = copy * agents + agent.
struct grt_stepper_view {
    uint32_t copies, rows;
    uint32_t length;  // steps after which an episode is cut
    struct grt_worlds_sizes sizes;
    float *actions;        // f32 [rows][act], to be written before a step; NULL: discrete ones
    uint32_t *choices;     // u32 [rows], the same; NULL: continuous ones
    const float *obs;      // [rows][obs]
    const float *global;   // [copies][global], or NULL: there is none
    const uint32_t *mask;  // [rows], bit i: choice i is allowed; NULL: continuous actions
    const float *rewards;  // [rows] of the newest step
    const uint32_t *ends;  // [rows] of the newest step, GRT_ROW_*
};

struct grt_stepper;

// NULL with a sentence. desc->env lives as long as the stepper.
GRT_API struct grt_stepper *grt_stepper_create(struct grt_dev *dev,
                                               const struct grt_worlds_desc *desc);
GRT_API void grt_stepper_destroy(struct grt_stepper **stepper);
GRT_API const struct grt_stepper_view *grt_stepper_view(const struct grt_stepper *stepper);

// Every copy begins its first episode of this seed; rewards and ends are 0.
GRT_API bool grt_stepper_reset(struct grt_stepper *stepper, uint32_t seed);
// One step with the actions of the view. A copy whose episode has ended takes none: it begins the
// next one, and its rows are idle.
GRT_API bool grt_stepper_step(struct grt_stepper *stepper);

// States, u32 [words][copies] with sizes.words: of an environment in registers the numbers that
// grt_env_info.state_names names come first, as floats; see its file for those of others. `words`
// is how many there are of all copies.
GRT_API bool grt_stepper_state(struct grt_stepper *stepper, uint32_t *state, uint64_t words);
// The copies go on from these, at the first step of their episodes; the view has what is seen
// there. Needs no reset before; without one the seed of later episodes is 0.
GRT_API bool grt_stepper_set_state(struct grt_stepper *stepper, const uint32_t *state,
                                   uint64_t words);

#ifdef __cplusplus
}
#endif
#endif
