// SPDX-License-Identifier: Apache-2.0
// The rollout as an op: policies with noise, run for some steps of an episode in copies of an
// environment. One launch runs many steps with everything in registers; shaders/rl/rollout.k has
// the picture of the buffers.
#ifndef GRT_ROLLOUT_H
#define GRT_ROLLOUT_H

#include "plan.h"
#include "policy.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_ROLLOUT_SCORES 4   // of a lane: return, good steps, falls, steps taken
#define GRT_ROLLOUT_RESULTS 5  // of a side: their sums, and how many observations were added up
#define GRT_ROLLOUT_SHIFT 4    // every 16th observation is added up

struct grt_rollout_desc {
    const struct grt_env_info *env;
    const struct grt_policy *policy;  // NULL: random actions
    uint32_t envs;                    // copies of the environment for each side
    uint32_t sides;            // 2 for each direction: + and -; 1: the policy itself, with sigma 0
    uint32_t direction;        // the first
    uint32_t first, steps;     // steps of the episode that are run; first 0 begins it
    uint32_t phase;            // 1 ...
    float sigma;               // of the noise
    bool normalise;            // observations, by `norm`; their sums are kept
    bool restart;              // an episode that ends begins anew
    bool narrow;               // not several at once on a CPU driver: to compare with
    uint32_t wg;               // environments of a workgroup; 0: by the device
    struct grt_range control;  // a grt_rng_state: seed[0], and the iteration as step[0]
    struct grt_range theta;    // [quads][4] f32
    struct grt_range norm;     // [obs] mean, [obs] 1/deviation
    struct grt_range state;    // [floats of a state][sides * envs], kept between launches
    struct grt_range score;    // [GRT_ROLLOUT_SCORES][sides * envs]
    struct grt_range sums;     // [2 obs][sides * envs]; one float is enough without `normalise`
    // grt_op_rollout_scratch() bytes, kept between launches as the state is
    struct grt_range scratch;
};

GRT_API void grt_op_rollout(struct grt_graph *graph, const struct grt_rollout_desc *desc);
// Bytes of scratch that it needs: all policies of the launch, [sides][quads][4] f32, where the
// device's shared memory does not hold one; 0 where it does. Of the desc it reads env, policy,
// sides and narrow.
GRT_API uint64_t grt_op_rollout_scratch(const struct grt_dev *dev,
                                        const struct grt_rollout_desc *desc);
// What a picture of a trajectory shows.
struct grt_trace_desc {
    const struct grt_env_info *env;
    uint32_t frames;
    struct grt_range states;  // [frames][numbers of a state]
    struct grt_range obs;     // out: [frames][obs]
    // out: [frames][shapes][GRT_TRACE_SHAPE]; one float is enough without shapes
    struct grt_range shapes;
};
// Floats of a shape: 0 line, 1 circle, 2 point; x0, y0, x1, y1; width or radius.
#define GRT_TRACE_SHAPE 6
GRT_API void grt_op_trace(struct grt_graph *graph, const struct grt_trace_desc *desc);
// Environments of a workgroup on a device, by its profile.
GRT_API uint32_t grt_rollout_wg(const struct grt_dev *dev, uint32_t envs);

#ifdef __cplusplus
}
#endif
#endif
