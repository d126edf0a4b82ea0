// SPDX-License-Identifier: Apache-2.0
#include "standing_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WG 64

const struct standing_world standing_earth = {
    .dt = STANDING_DT,
    .gravity = 9.81f,
    .damping = 1,
    .limit_stiffness = 3000,
    .limit_damping = 110,
    .ground_stiffness = 2500,
    .ground_damping = 50,
};
const struct standing_world standing_space = {.dt = STANDING_DT};

enum { TORSO = 40, FRICTION = 41, MOTOR = 42 };  // places in a state

void standing_advance(struct grt_dev *dev, const struct standing_world *world, uint32_t steps,
                      struct standing_robot *robots, uint32_t count) {
    struct {
        uint32_t lanes, steps;
        struct standing_world world;
    } params = {count, steps, *world};
    const struct grt_kernel *kernel =
        grt_kernel_get(dev, grt_kernel_desc(.name = "standing_probe", .specs = {{"WG", WG}}));
    assert_non_null(kernel);
    float *host = test_alloc((size_t)STANDING_STATE * count * sizeof *host);
    float *torques = test_alloc((size_t)8 * count * sizeof *torques);
    memset(host, 0, (size_t)STANDING_STATE * count * sizeof *host);
    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t i = 0; i < STANDING_BODY; i++) {
            host[i * count + r] = robots[r].body[i];
        }
        for (uint32_t i = 0; i < 8; i++) {
            torques[i * count + r] = robots[r].torque[i];
        }
        host[TORSO * count + r] = 1;
        host[FRICTION * count + r] = robots[r].friction == 0 ? 1 : robots[r].friction;
        host[MOTOR * count + r] = 1;
    }
    struct test_tensor state = test_tensor(dev, GRT_F32, STANDING_STATE, count);
    struct test_tensor torque = test_tensor(dev, GRT_F32, 8, count);
    struct test_tensor result = test_tensor(dev, GRT_F32, STANDING_BODY, count);
    test_tensor_write(&state, host);
    test_tensor_write(&torque, torques);
    struct grt_graph *graph = grt_graph_create(dev, "standing probe");
    grt_graph_dispatch(
        graph,
        grt_dispatch(.kernel = kernel, .params = &params, .params_size = sizeof params,
                     .groups = {(count + WG - 1) / WG},
                     .bindings = {state.tensor.range, torque.tensor.range, result.tensor.range}));
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    test_tensor_read(&result, host);
    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t i = 0; i < STANDING_BODY; i++) {
            robots[r].body[i] = host[i * count + r];
        }
    }
    test_tensor_end(&state);
    test_tensor_end(&torque);
    test_tensor_end(&result);
    free(host);
    free(torques);
}

struct standing_robot standing_upright(float bend, float gap) {
    struct standing_robot r = {.body = {[2] = 0.08f + 0.4f * 1.41421356f * sinf(bend) + gap,
                                        [3] = 1,
                                        [8] = bend,
                                        [10] = -bend,
                                        [12] = -bend,
                                        [14] = bend}};
    return r;
}

struct oracle_ant standing_as_oracle(const struct standing_robot *robot) {
    struct oracle_ant a;
    const float *b = robot->body;
    for (int i = 0; i < 3; i++) {
        a.position[i] = b[i];
        a.velocity[i] = b[15 + i];
        a.rate[i] = b[18 + i];
    }
    for (int i = 0; i < 4; i++) {
        a.turn[i] = b[3 + i];
    }
    for (int i = 0; i < 8; i++) {
        a.hinge[i] = b[7 + i];
        a.hinge_rate[i] = b[21 + i];
    }
    return a;
}

float standing_draw(uint64_t *state, double least, double most) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (float)(least + (most - least) * ((double)(*state >> 40) / 16777216));
}

struct standing_robot standing_random(uint64_t *state) {
    struct standing_robot r = {0};
    r.body[0] = standing_draw(state, -1, 1);
    r.body[1] = standing_draw(state, -1, 1);
    r.body[2] = standing_draw(state, 2, 3);
    double turn[4];
    double square = 0;
    for (int i = 0; i < 4; i++) {
        turn[i] = standing_draw(state, -1, 1);
        square += turn[i] * turn[i];
    }
    for (int i = 0; i < 4; i++) {
        r.body[3 + i] = (float)(turn[i] / sqrt(square));
    }
    for (int leg = 0; leg < 4; leg++) {
        r.body[7 + 2 * leg] = standing_draw(state, -0.6, 0.6);
        float bend = standing_draw(state, 0.5, 1.3);
        r.body[8 + 2 * leg] = leg == 0 || leg == 3 ? bend : -bend;
    }
    for (int i = 0; i < 14; i++) {
        double most = i < 3 ? 3 : (i < 6 ? 5 : 10);
        r.body[15 + i] = standing_draw(state, -most, most);
    }
    for (int i = 0; i < 8; i++) {
        r.torque[i] = 150 * standing_draw(state, -1, 1);
    }
    return r;
}
