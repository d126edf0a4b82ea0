// SPDX-License-Identifier: Apache-2.0
// The standing robot's dynamics for tests: many robots side by side, stepped by the kernel
// standing_probe.
#ifndef TEST_STANDING_KIT_H
#define TEST_STANDING_KIT_H

#include "harness/harness.h"

#define STANDING_STATE 49  // floats of a state
#define STANDING_BODY 29   // of which positions and rates
#define STANDING_DT 0.01f

// As standing_probe's parameters, behind lanes and steps.
struct standing_world {
    float dt;
    float gravity;
    float push[2];  // N, on the torso, along x and y
    float damping;
    float limit_stiffness, limit_damping;
    float ground_stiffness, ground_damping;
};
extern const struct standing_world standing_earth;
extern const struct standing_world standing_space;  // nothing but the robot

// One robot, in MuJoCo's order: 7 + 8 positions, 6 + 8 rates; then the numbers of its episode.
struct standing_robot {
    float body[STANDING_BODY];
    float torque[8];
    float friction;  // 0 means the Ant's, 1
};

// Positions and rates after so many steps of the world, in place; of 0 steps: accelerations instead
// of rates.
void standing_advance(struct grt_dev *dev, const struct standing_world *world, uint32_t steps,
                      struct standing_robot *robots, uint32_t count);
// Upright, legs bent by `bend`, feet `gap` above the ground, at rest.
struct standing_robot standing_upright(float bend, float gap);
struct oracle_ant standing_as_oracle(const struct standing_robot *robot);
// Uniform numbers of the sequence that tests/golden's generators use.
float standing_draw(uint64_t *state, double least, double most);
// Anywhere, turned any way, moving and driven: what tests/golden/make_standing_qacc.py draws.
struct standing_robot standing_random(uint64_t *state);

#endif
