// SPDX-License-Identifier: Apache-2.0
// Cart-pole: 4,096 copies for 2,000 steps to the same bits on the device and in the C reading, and
// the first 50 steps against the equations in double precision.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED 11
#define WG 64

struct params {
    uint32_t envs, direction, lanes, first, steps, phase;
    float sigma;
};

// Runs all steps with random actions in launches of `at_once`, the lanes of one side; state is
// [4][envs]. What ends begins anew.
static void roll_out(struct grt_dev *dev, uint32_t envs, uint32_t steps, uint32_t at_once,
                     float *end_state, uint32_t *end_episodes) {
    const struct grt_kernel *kernel = grt_kernel_get(
        dev, grt_kernel_desc(.name = "cartpole_rollout", .specs = {{"WG", WG}, {"RESTART", 1}}));
    assert_non_null(kernel);
    static const uint32_t control[4] = {SEED, 0, 0, 0};
    static const float zero[8] = {0};
    struct test_tensor words = test_tensor(dev, GRT_U32, 4, 0);
    struct test_tensor theta = test_tensor(dev, GRT_F32, 4, 0);
    struct test_tensor norm = test_tensor(dev, GRT_F32, 8, 0);
    struct test_tensor state = test_tensor(dev, GRT_F32, 4, envs);
    struct test_tensor score = test_tensor(dev, GRT_F32, 4, envs);
    struct test_tensor sums = test_tensor(dev, GRT_F32, 8, 0);
    test_tensor_write(&words, control);
    test_tensor_write(&theta, zero);
    test_tensor_write(&norm, zero);
    struct grt_graph *graph = grt_graph_create(dev, "cartpole");
    for (uint32_t first = 0; first < steps; first += at_once) {
        uint32_t count = steps - first < at_once ? steps - first : at_once;
        struct params params = {.envs = envs, .lanes = envs, .first = first, .steps = count};
        grt_graph_dispatch(
            graph,
            grt_dispatch(.kernel = kernel, .params = &params, .params_size = sizeof params,
                         .groups = {(envs + WG - 1) / WG},
                         .bindings = {words.tensor.range, theta.tensor.range, norm.tensor.range,
                                      state.tensor.range, score.tensor.range, sums.tensor.range,
                                      theta.tensor.range}));
    }
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    float *scores = test_alloc((size_t)4 * envs * sizeof *scores);
    test_tensor_read(&state, end_state);
    test_tensor_read(&score, scores);
    for (uint32_t e = 0; e < envs; e++) {
        assert_true(scores[e] == (float)steps && scores[3 * envs + e] == (float)steps);
        assert_true(scores[envs + e] + scores[2 * envs + e] == (float)steps);
        end_episodes[e] = (uint32_t)scores[2 * envs + e];
    }
    free(scores);
    test_tensor_end(&words);
    test_tensor_end(&theta);
    test_tensor_end(&norm);
    test_tensor_end(&state);
    test_tensor_end(&score);
    test_tensor_end(&sums);
}

static void same_bits_as_ref(void **state) {
    (void)state;
    uint32_t envs = test.small ? 70 : 4096;
    uint32_t steps = test.small ? 40 : 2000;
    float *got = test_alloc(4 * envs * sizeof *got);
    float *want = test_alloc(4 * envs * sizeof *want);
    uint32_t *got_episodes = test_alloc(envs * sizeof *got_episodes);
    uint32_t *want_episodes = test_alloc(envs * sizeof *want_episodes);
    roll_out(test.ref, envs, steps, steps, want, want_episodes);
    roll_out(test.dev, envs, steps, 100, got, got_episodes);
    uint32_t differing = 0;
    uint64_t ended = 0;
    for (uint32_t e = 0; e < envs; e++) {
        bool same = got_episodes[e] == want_episodes[e];
        for (uint32_t k = 0; k < 4; k++) {
            same = same && test_as_u32(got[k * envs + e]) == test_as_u32(want[k * envs + e]);
        }
        differing += same ? 0 : 1;
        ended += want_episodes[e];
    }
    print_message("# cart-pole: %u of %u states differ after %u steps; %llu episodes ended\n",
                  differing, envs, steps, (unsigned long long)ended);
    test_same(test.dev, "cartpole state", got, want, 4, (size_t)4 * envs);
    test_same(test.dev, "cartpole episodes", got_episodes, want_episodes, 4, envs);
    // A random policy holds the pole for some 22 steps: nearly every copy has begun anew by 40.
    assert_in_range(ended, envs / 2, (uint64_t)envs * steps / 8);
    free(got);
    free(want);
    free(got_episodes);
    free(want_episodes);
}

// How far a device in f32 may be from the oracle, per coordinate, after one more step. The factors
// are the largest derivatives of the two accelerations where the pole is within 12 degrees and
// turns by less than 5 rad/s; each step rounds numbers of at most 5 a few times: 64 u.
struct spread {
    double x, v, a, w;
};

static struct spread widen(struct spread s) {
    const double tau = 0.02;
    const double round = 64 * ORACLE_U;
    return (struct spread){
        .x = s.x + tau * s.v + round,
        .v = s.v + tau * (2 * s.a + 0.1 * s.w) + round,
        .a = s.a + tau * s.w + round,
        .w = s.w + tau * (22 * s.a + 0.5 * s.w) + round,
    };
}

struct copy {
    struct oracle_cartpole s;
    struct spread spread;
    uint32_t episodes;
    bool unsure;  // so near the edge that a rounding decides whether the episode ended
};

static uint32_t word(uint32_t env, uint32_t stream, uint32_t step, int i) {
    const uint32_t counter[4] = {env, stream, step, 0};
    const uint32_t key[2] = {SEED, 0};
    uint32_t block[4];
    oracle_philox(counter, key, block);
    return block[i];
}

static void begin_copy(struct copy *c, uint32_t env, uint32_t step) {
    uint32_t episode = step * 0x9e3779b1u;
    c->s = (struct oracle_cartpole){
        0.1 * oracle_uniform(word(env, 0, episode, 0)) - 0.05,
        0.1 * oracle_uniform(word(env, 0, episode, 1)) - 0.05,
        0.1 * oracle_uniform(word(env, 0, episode, 2)) - 0.05,
        0.1 * oracle_uniform(word(env, 0, episode, 3)) - 0.05,
    };
    c->spread = (struct spread){ORACLE_U, ORACLE_U, ORACLE_U, ORACLE_U};
}

static void step_copy(struct copy *c, uint32_t env, uint32_t step) {
    if (step == 0) {
        begin_copy(c, env, 0);
    }
    double action = 2 * oracle_uniform(word(env, 0x72000000u, step, 0)) - 1;
    c->s = oracle_cartpole_step(c->s, action > 0);
    c->spread = widen(c->spread);
    double out_x = fabs(c->s.x) - ORACLE_CARTPOLE_X;
    double out_a = fabs(c->s.theta) - ORACLE_CARTPOLE_THETA;
    c->unsure = c->unsure || fabs(out_x) <= c->spread.x || fabs(out_a) <= c->spread.a;
    if (out_x > 0 || out_a > 0) {
        c->episodes++;
        begin_copy(c, env, step + 1);
    }
}

static void first_steps_follow_the_equations(void **state) {
    (void)state;
    enum { ENVS = 256, STEPS = 50 };
    static struct copy copies[ENVS];
    memset(copies, 0, sizeof copies);
    static float got[4 * ENVS];
    static uint32_t episodes[ENVS];
    uint32_t unsure = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t e = 0; e < ENVS; e++) {
            step_copy(&copies[e], e, step);
        }
        if (test.small && step % 16 != 0) {
            continue;
        }
        roll_out(test.dev, ENVS, step + 1, STEPS, got, episodes);
        struct test_compare c = test_compare(test.dev, "cartpole after %u steps", step + 1);
        unsure = 0;
        for (uint32_t e = 0; e < ENVS; e++) {
            const struct copy *o = &copies[e];
            unsure += o->unsure ? 1 : 0;
            if (!o->unsure) {
                const struct oracle_value want[4] = {{o->s.x, o->spread.x},
                                                     {o->s.x_dot, o->spread.v},
                                                     {o->s.theta, o->spread.a},
                                                     {o->s.theta_dot, o->spread.w}};
                for (uint32_t k = 0; k < 4; k++) {
                    test_compare_value(&c, k * ENVS + e, got[k * ENVS + e], want[k]);
                }
                test_compare_bits(&c, e, episodes[e], o->episodes);
            }
        }
        test_compare_end(&c);
    }
    assert_in_range(unsure, 0, ENVS / 16);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(same_bits_as_ref),
    TEST_CASE(first_steps_follow_the_equations),
};
TEST_SUITE(cartpole, true, cases);
