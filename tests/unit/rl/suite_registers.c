// SPDX-License-Identifier: Apache-2.0
// Worlds of environments in registers: trajectories are those of the ES rollout, observations those
// of the trace.
#include "kits/worlds_kit.h"

#include <math.h>
#include <stdlib.h>

#include "gpurt/rollout.h"

static float action_of(uint32_t copy, uint32_t i, uint32_t t, uint32_t seed) {
    const uint32_t counter[4] = {copy, 0x72000000u + i, t, 0}, key[2] = {seed, 0};
    uint32_t block[4];
    oracle_philox(counter, key, block);
    return (float)(2 * oracle_uniform(block[0]) - 1);
}

struct roll {
    const struct grt_env_info *env;
    uint32_t copies, t;
    struct test_tensor control, theta, norm, state, score, sums;
};

static void record_step(struct grt_graph *graph, void *context) {
    struct roll *r = context;
    grt_op_rollout(graph, &(struct grt_rollout_desc){.env = r->env,
                                                     .envs = r->copies,
                                                     .sides = 1,
                                                     .first = r->t,
                                                     .steps = 1,
                                                     .phase = 1,
                                                     .narrow = true,
                                                     .control = r->control.tensor.range,
                                                     .theta = r->theta.tensor.range,
                                                     .norm = r->norm.tensor.range,
                                                     .state = r->state.tensor.range,
                                                     .score = r->score.tensor.range,
                                                     .sums = r->sums.tensor.range});
}

static void same_as_rollout(const char *name, uint32_t copies, uint32_t steps) {
    const struct grt_env_info *env = grt_env_find(name);
    const uint32_t seed = 23, control[4] = {seed, 0, 0, 0};
    struct roll r = {.env = env, .copies = copies};
    struct worlds_case c;
    worlds_begin(&c, test.dev, grt_worlds_desc(.env = env, .copies = copies, .length = steps),
                 seed);
    assert_true(c.sizes.agents == 1 && c.sizes.act == env->act && c.sizes.obs == env->obs);
    r.control = test_tensor(test.dev, GRT_U32, 4, 0);
    r.theta = test_tensor(test.dev, GRT_F32, 4, 0);
    r.norm = test_tensor(test.dev, GRT_F32, (uint64_t)2 * env->obs, 0);
    r.state = test_tensor(test.dev, GRT_F32, env->state, copies);
    r.score = test_tensor(test.dev, GRT_F32, GRT_ROLLOUT_SCORES, copies);
    r.sums = test_tensor(test.dev, GRT_F32, 4, 0);
    test_tensor_write(&r.control, control);
    float *norm = calloc((size_t)2 * env->obs, sizeof *norm);
    test_tensor_write(&r.norm, norm);
    float *states = test_alloc((size_t)env->state * copies * 4);
    float *score = test_alloc((size_t)GRT_ROLLOUT_SCORES * copies * 4);
    float *total = calloc(copies, sizeof *total);
    bool *fell = calloc(copies, sizeof *fell);
    double falls = 0, good = 0, returns = 0, taken = 0;
    for (r.t = 0; r.t < steps; r.t++) {
        for (uint32_t k = 0; k < copies * env->act; k++) {
            float a = action_of(k / env->act, k % env->act, r.t, seed);
            c.actions[k] = test_as_u32(a);
        }
        worlds_step(&c);
        test_run(test.dev, record_step, &r);
        test_tensor_read(&r.state, states);
        test_tensor_read(&r.score, score);
        uint32_t *words = worlds_state(&c);
        for (uint32_t e = 0; e < copies; e++) {
            if (fell[e]) {
                continue;  // it has begun anew
            }
            for (uint32_t k = 0; k < env->state; k++) {
                assert_int_equal(words[k * copies + e], test_as_u32(states[k * copies + e]));
            }
            total[e] += c.rewards[e];
            assert_true(total[e] == score[e]);
            fell[e] = score[2 * copies + e] > 0;
            bool last = r.t + 1 == steps;
            assert_int_equal(c.ends[e], fell[e] ? GRT_ROW_LAST
                                        : last  ? GRT_ROW_LAST | GRT_ROW_CUT
                                                : 0);
            if (fell[e] || last) {
                falls += fell[e];
                returns += (double)total[e];
                taken += (double)score[3 * copies + e];
                good += (double)(score[copies + e] / score[3 * copies + e]);
            }
        }
        free(words);
    }
    print_message("# %s: %.0f of %u copies ended before %u steps\n", name, falls, copies, steps);
    worlds_totals(&c);
    assert_true(c.sums[0] >= (float)copies);
    if (falls == 0) {
        assert_true(c.sums[0] == (float)copies && c.sums[2] == (float)taken);
        assert_true(fabs((double)c.sums[1] - returns) <= 1e-4 * (1 + fabs(returns)));
        assert_true(fabs((double)c.sums[3] - good) <= 1e-4 * (1 + good));
    }
    free(norm);
    free(states);
    free(score);
    free(total);
    free(fell);
    struct test_tensor *tensors[] = {&r.control, &r.theta, &r.norm, &r.state, &r.score, &r.sums};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        test_tensor_end(tensors[i]);
    }
    worlds_end(&c);
}

static void as_in_the_rollout(void **state) {
    (void)state;
    same_as_rollout("cartpole", test.small ? 3 : 65, test.small ? 10 : 30);
    same_as_rollout("pendulum", test.small ? 3 : 65, test.small ? 10 : 30);
    same_as_rollout("standing", 3, test.small ? 4 : 12);
}

struct trace {
    const struct grt_env_info *env;
    struct test_tensor states, obs, shapes;
    uint32_t frames;
};

static void record_trace(struct grt_graph *graph, void *context) {
    struct trace *t = context;
    grt_op_trace(graph, &(struct grt_trace_desc){.env = t->env,
                                                 .frames = t->frames,
                                                 .states = t->states.tensor.range,
                                                 .obs = t->obs.tensor.range,
                                                 .shapes = t->shapes.tensor.range});
}

// What is observed is what the environment makes of the state.
static void observed(void **state) {
    (void)state;
    static const char *const names[] = {"cartpole", "pendulum", "standing"};
    for (size_t n = 0; n < 3; n++) {
        struct worlds_case c;
        struct trace t = {.env = grt_env_find(names[n]), .frames = 5};
        worlds_begin(&c, test.dev, grt_worlds_desc(.env = t.env, .copies = 5), 8);
        uint32_t *words = worlds_state(&c), *rows = test_alloc((size_t)t.env->state * 5 * 4);
        for (uint32_t i = 0; i < t.env->state * 5; i++) {
            rows[i] = words[i % t.env->state * 5 + i / t.env->state];
        }
        t.states = test_tensor(test.dev, GRT_F32, 5, t.env->state);
        t.obs = test_tensor(test.dev, GRT_F32, 5, t.env->obs);
        t.shapes =
            test_tensor(test.dev, GRT_F32, (uint64_t)5 * (t.env->shapes + 1), GRT_TRACE_SHAPE);
        test_tensor_write(&t.states, rows);
        test_run(test.dev, record_trace, &t);
        float *obs = test_alloc((size_t)5 * t.env->obs * 4);
        test_tensor_read(&t.obs, obs);
        test_same(test.dev, names[n], c.obs, obs, 4, (size_t)5 * t.env->obs);
        free(obs);
        free(words);
        free(rows);
        test_tensor_end(&t.states);
        test_tensor_end(&t.obs);
        test_tensor_end(&t.shapes);
        worlds_end(&c);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(as_in_the_rollout),
    TEST_CASE(observed),
};
TEST_SUITE(registers, true, cases);
