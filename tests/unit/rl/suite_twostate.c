// SPDX-License-Identifier: Apache-2.0
// PPO on problems whose optimum is known: it finds the policy and the values. With the sign of the
// advantages flipped it finds the opposite.
#include "kits/ppo_kit.h"
#include "kits/worlds_kit.h"

#include <math.h>
#include <stdlib.h>

#include "rl/ppo_parts.h"
#include "shaders/host.h"
#include "shaders/ppo/lib/ppo_words.k"

// Near: choice 0 stays and gets 0.3, choice 1 goes far and gets -0.5. Far: choice 0 stays and gets
// 1, choice 1 ends the episode and gets 2.5. Choice 2 gets 100 and is never allowed. A learner that
// sees only the next reward, or values what lies behind an end, finds another policy.
// Words: 0 near, 1 far, 2 ended; the choice; the reward.
static const char *const two_states =
    "#include \"lib/philox.k\"\n"
    "#define ENV twostate\n"
    "#define ENV_AGENTS 1\n"
    "#define ENV_OBS 1\n"
    "#define ENV_CHOICES 3\n"
    "#define ENV_WORDS 3\n"
    "#define ENV_LENGTH 12\n"
    "#include \"env/world.k\"\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {\n"
    "    philox_block random = philox(env, 0u, episode, 0u, seed, 0u);\n"
    "    KEEP(w, 0u, random.a & 1u);\n"
    "    KEEP(w, 1u, 0u);\n"
    "    KEEP(w, 2u, 0u);\n"
    "}\n"
    "FN void world_choose(env_world w, uint agent, uint choice) { KEEP(w, 1u, choice); }\n"
    "FN void world_step(env_world w) {\n"
    "    uint far = LOOK(w, 0u);\n"
    "    uint choice = LOOK(w, 1u);\n"
    "    float reward = far == 1u ? (choice == 1u ? 2.5f : 1.0f) : (choice == 1u ? -0.5f : 0.3f);\n"
    "    KEEP_F(w, 2u, choice == 2u ? 100.0f : reward);\n"
    "    KEEP(w, 0u, choice == 1u ? far + 1u : far);\n"
    "}\n"
    "FN float world_reward(env_world w, uint agent) { return LOOK_F(w, 2u); }\n"
    "FN bool world_out(env_world w, uint agent) { return LOOK(w, 0u) == 2u; }\n"
    "FN bool world_done(env_world w) { return LOOK(w, 0u) == 2u; }\n"
    "FN float world_observe(env_world w, uint agent, uint i) {\n"
    "    return F32(LOOK(w, 0u)) * 2.0f - 1.0f;\n"
    "}\n"
    "FN uint world_mask(env_world w, uint agent) { return 3u; }\n";

// The state is seen as s = -1 or 1 and changes its sign at every step. The reward is
// -(a - s / 2)^2.
static const char *const two_targets =
    "#define ENV twotargets\n"
    "#define ENV_AGENTS 1\n"
    "#define ENV_OBS 1\n"
    "#define ENV_ACT 1\n"
    "#define ENV_WORDS 3\n"
    "#define ENV_LENGTH 9\n"
    "#include \"env/world.k\"\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {\n"
    "    KEEP_F(w, 0u, ((env + episode) & 1u) == 0u ? 1.0f : -1.0f);\n"
    "    KEEP_F(w, 1u, 0.0f);\n"
    "    KEEP_F(w, 2u, 0.0f);\n"
    "}\n"
    "FN void world_act(env_world w, uint agent, uint i, float value) { KEEP_F(w, 1u, value); }\n"
    "FN void world_step(env_world w) {\n"
    "    EXACT float miss = LOOK_F(w, 1u) - 0.5f * LOOK_F(w, 0u);\n"
    "    EXACT float square = miss * miss;\n"
    "    KEEP_F(w, 2u, -square);\n"
    "    KEEP_F(w, 0u, -LOOK_F(w, 0u));\n"
    "}\n"
    "FN float world_reward(env_world w, uint agent) { return LOOK_F(w, 2u); }\n"
    "FN bool world_out(env_world w, uint agent) { return false; }\n"
    "FN bool world_done(env_world w) { return false; }\n"
    "FN float world_observe(env_world w, uint agent, uint i) { return LOOK_F(w, 0u); }\n";

#define GAMMA 0.8
#define ITERATIONS 30

static struct ppo_maker maker(const struct grt_env_info *env, uint32_t length) {
    struct ppo_maker m = {.info = env, .copies = 64, .length = length, .desc = grt_ppo_defaults()};
    m.desc.horizon = 8;
    m.desc.batch = 256;
    m.desc.gamma = GAMMA;
    m.desc.entropy_weight = 0;
    m.desc.optim.lr = 0.01;
    return m;
}

// ---- learning ----

// Turns the sign of every advantage that was collected, and of their mean.
static void flip(struct grt_ppo *ppo) {
    const struct ppo_actors *a = &ppo->learning;
    uint64_t words = grt_ppo_section(a), offset = a->traj->range.offset + PPO_ADVANTAGE * words * 4;
    float *advantages = test_alloc(words * 4);
    uint32_t *norms = ppo_read(ppo->norms);
    assert_true(grt_buf_read(a->traj->range.buf, offset, advantages, words * 4));
    for (uint64_t i = 0; i < words; i++) {
        advantages[i] = -advantages[i];
    }
    norms[PPO_MEAN] ^= 0x80000000u;
    assert_true(grt_buf_write(a->traj->range.buf, offset, advantages, words * 4));
    assert_true(grt_buf_write(ppo->norms->range.buf, ppo->norms->range.offset, norms,
                              sizeof *norms * PPO_NORMS));
    free(advantages);
    free(norms);
}

// A slow checker sees two iterations, which learn next to nothing.
static void learn(struct grt_ppo *ppo, bool flipped) {
    for (int i = 0; i < (test.small ? 2 : ITERATIONS); i++) {
        struct grt_ppo_report report;
        if (!flipped) {
            assert_true(grt_ppo_iterate(ppo, &report));
            continue;
        }
        assert_true(grt_graph_run(ppo->collect));
        flip(ppo);
        for (uint32_t k = 0; k < ppo->desc.epochs; k++) {
            ppo_run_epoch(ppo, k);
        }
    }
}

// What the networks say of two observations, -1 and 1.
struct said {
    double given[2][3], value[2], deviation;
};

static struct said ask(const struct grt_ppo *ppo) {
    double *params = ppo_widened(ppo->params.master);
    struct ppo_collected c = ppo_collect(ppo);
    struct oracle_ppo b = ppo_batch_of(ppo, &c, params);
    struct said s = {.deviation = b.log_std ? exp(b.log_std[0]) : 0};
    for (int k = 0; k < 2; k++) {
        const double seen = 2 * k - 1;
        oracle_ppo_net(&b.actor, &seen, s.given[k]);
        oracle_ppo_net(&b.critic, &seen, &s.value[k]);
    }
    ppo_collected_end(&c);
    free(params);
    return s;
}

// ---- two states ----

// Of the policy that goes far with probability p and ends with probability q: values in the near
// state and in the far one.
static void values_of(double p, double q, double values[2]) {
    values[1] = ((1 - q) + 2.5 * q) / (1 - GAMMA * (1 - q));
    values[0] = ((1 - p) * 0.3 + p * (GAMMA * values[1] - 0.5)) / (1 - GAMMA * (1 - p));
}

// The policy and the critic after some learning.
static void judge_two_states(const struct ppo_maker *m, struct grt_ppo *ppo, bool flipped) {
    struct said s = ask(ppo);
    double go = oracle_ppo_probability(s.given[0], 3, 3, 1);
    double leave = oracle_ppo_probability(s.given[1], 3, 3, 1);
    double of_it[2], best[2];
    values_of(go, leave, of_it);
    values_of(1, 0, best);
    ppo_near("probability to go", 0, go, flipped ? 0 : 1, 0.05);
    ppo_near("probability to end", 0, leave, flipped ? 1 : 0, 0.05);
    for (size_t k = 0; k < 2; k++) {
        ppo_near("value of the policy", k, s.value[k], of_it[k], 0.05);
        if (!flipped) {
            ppo_near("value of the best policy", k, s.value[k], best[k], 0.05);
        }
    }
    // An episode of 12 steps from the far state gets 12, and from the near one 10.5. The worst
    // policy gets 2.5 and 3.6.
    struct grt_worlds *worlds = ppo_make_worlds(m, 40, true);
    struct grt_ppo_report trial;
    assert_true(grt_ppo_evaluate(ppo, worlds, GRT_PPO_TRY_POLICY, 9, &trial));
    double most = flipped ? 12 * 0.3 : 12, least = flipped ? 2.5 : 10.5;
    assert_true(trial.mean_return > least && trial.mean_return < most);
    grt_worlds_destroy(&worlds);
}

static void solve_two_states(enum grt_dtype precision, bool flipped) {
    const struct grt_env_info *env = worlds_env("twostate", two_states);
    assert_non_null(env);
    struct ppo_maker m = maker(env, 12);
    m.desc.precision = precision;
    struct ppo_made made = ppo_make(&m);
    learn(made.ppo, flipped);
    if (!test.small) {
        judge_two_states(&m, made.ppo, flipped);
    }
    ppo_end(&made);
    grt_env_close(&env);
}

static void finds_the_best_of_two_states(void **state) {
    (void)state;
    solve_two_states(GRT_F32, false);
    if (!test.on_ref) {
        solve_two_states(GRT_F16, false);
    }
}

// The checks notice a wrong sign: what is learnt is the worst policy.
static void flipped_advantages_find_the_worst_of_two_states(void **state) {
    (void)state;
    solve_two_states(GRT_F32, true);
}

// A policy that prefers choice 1 a little, in both states. Taken always it ends an episode after
// one step from the far state, which gets 2.5, and after two from the near one, which get 2.
static void trials_take_the_most_likely_action(void **state) {
    (void)state;
    const struct grt_env_info *env = worlds_env("twostate", two_states);
    assert_non_null(env);
    struct ppo_maker m = maker(env, 12);
    struct ppo_made made = ppo_make(&m);
    const struct grt_param *weight = ppo_param(made.ppo, "actor.layers.2.weight");
    const struct grt_param *bias = ppo_param(made.ppo, "actor.layers.2.bias");
    const float none[3 * PPO_HIDDEN] = {0}, some[3] = {0.0f, 0.4f, 9.0f};
    assert_int_equal(weight->count, 3 * PPO_HIDDEN);
    assert_true(
        grt_buf_write(weight->master.range.buf, weight->master.range.offset, none, sizeof none) &&
        grt_buf_write(bias->master.range.buf, bias->master.range.offset, some, sizeof some));
    struct grt_worlds *worlds = ppo_make_worlds(&m, 50, true);
    struct grt_ppo_report policy, random;
    assert_true(grt_ppo_evaluate(made.ppo, worlds, GRT_PPO_TRY_POLICY, 2, &policy));
    assert_true(grt_ppo_evaluate(made.ppo, worlds, GRT_PPO_TRY_RANDOM, 2, &random));
    assert_true(policy.length > 1 && policy.length < 2);
    ppo_near("return", 0, policy.mean_return, 3 - 0.5 * policy.length, 1e-5);
    // Twice as long on average, and never choice 2.
    assert_true(random.length > 2 && random.length < 4 && random.mean_return < 12);
    grt_worlds_destroy(&worlds);
    ppo_end(&made);
    grt_env_close(&env);
}

// ---- two targets ----

static void judge_two_targets(const struct grt_ppo *ppo, bool flipped) {
    struct said s = ask(ppo);
    for (size_t k = 0; k < 2; k++) {
        double target = (double)k - 0.5, variance = s.deviation * s.deviation;
        if (flipped) {
            // As far away as actions go.
            assert_true(s.given[k][0] * target < -0.5);
            ppo_near("value", k, s.value[k], -2.25, 0.05);
        } else {
            ppo_near("mean", k, s.given[k][0], target, 0.05);
            ppo_near("value", k, s.value[k], -variance, 0.01);
        }
    }
    // It was exp(-0.7).
    assert_true(flipped || s.deviation < 0.15);
}

static void solve_two_targets(bool flipped) {
    const struct grt_env_info *env = worlds_env("twotargets", two_targets);
    assert_non_null(env);
    struct ppo_maker m = maker(env, 9);
    m.desc.gamma = 0;
    m.desc.log_std = -0.7;
    struct ppo_made made = ppo_make(&m);
    learn(made.ppo, flipped);
    if (!test.small) {
        judge_two_targets(made.ppo, flipped);
    }
    ppo_end(&made);
    grt_env_close(&env);
}

static void finds_the_means_of_two_targets(void **state) {
    (void)state;
    solve_two_targets(false);
}

static void flipped_advantages_flee_from_two_targets(void **state) {
    (void)state;
    solve_two_targets(true);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(finds_the_best_of_two_states),
    TEST_CASE(flipped_advantages_find_the_worst_of_two_states),
    TEST_CASE(trials_take_the_most_likely_action),
    TEST_CASE(finds_the_means_of_two_targets),
    TEST_CASE(flipped_advantages_flee_from_two_targets),
};
TEST_SUITE(twostate, true, cases);
