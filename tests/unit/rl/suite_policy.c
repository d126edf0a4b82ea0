// SPDX-License-Identifier: Apache-2.0
// Policies in rollouts: their names; a trip of the pendulum against the formulas in double
// precision; and that neither cuts, nor vectors, nor how much of a policy lies in shared memory
// change a bit.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/rollout.h"

#define SEED 77u
#define ITERATION 5u
static const uint32_t control_words[4] = {SEED, 0, ITERATION, 0};

static struct grt_policy policy_named(const char *text) {
    struct grt_policy policy;
    assert_true(grt_policy_parse(text, &policy));
    return policy;
}

// The tests' device, as if a workgroup had no more shared memory than that.
static struct grt_dev *dev_with(uint32_t shmem) {
    struct grt_dev *dev =
        grt_dev_create(grt_dev_desc(.device = test.selector, .shmem_limit = shmem));
    assert_non_null(dev);
    assert_true(grt_dev_info(dev)->caps.shmem <= shmem);
    return dev;
}

// ---- some steps of an environment ----

struct trip {
    struct grt_rollout_desc desc;
    uint32_t steps, cut;
    struct test_tensor control, theta, norm, state, score, sums, policies;
};

static struct trip trip_begin(struct grt_dev *dev, const struct grt_env_info *env,
                              const struct grt_policy *policy, uint32_t envs, uint32_t sides) {
    uint64_t lanes = (uint64_t)envs * sides, quads = grt_policy_quads(policy, env);
    struct trip t = {.control = test_tensor(dev, GRT_U32, 4, 0),
                     .theta = test_tensor(dev, GRT_F32, 4 * quads, 0),
                     .norm = test_tensor(dev, GRT_F32, 2, env->obs),
                     .state = test_tensor(dev, GRT_F32, env->state, lanes),
                     .score = test_tensor(dev, GRT_F32, GRT_ROLLOUT_SCORES, lanes),
                     .sums = test_tensor(dev, GRT_F32, (uint64_t)2 * env->obs, lanes),
                     .policies = test_tensor(dev, GRT_F32, sides, 4 * quads)};
    test_tensor_write(&t.control, control_words);
    t.desc = (struct grt_rollout_desc){.env = env,
                                       .policy = policy,
                                       .envs = envs,
                                       .sides = sides,
                                       .phase = 1,
                                       .normalise = true,
                                       .control = t.control.tensor.range,
                                       .theta = t.theta.tensor.range,
                                       .norm = t.norm.tensor.range,
                                       .state = t.state.tensor.range,
                                       .score = t.score.tensor.range,
                                       .sums = t.sums.tensor.range,
                                       .scratch = t.policies.tensor.range};
    return t;
}

static void trip_end(struct trip *t) {
    struct test_tensor *all[] = {&t->control, &t->theta, &t->norm,     &t->state,
                                 &t->score,   &t->sums,  &t->policies, NULL};
    for (size_t i = 0; all[i]; i++) {
        test_tensor_end(all[i]);
    }
}

static void record_trip(struct grt_graph *graph, void *context) {
    struct trip *t = context;
    for (uint32_t first = 0; first < t->steps; first += t->cut) {
        t->desc.first = first;
        t->desc.steps = t->steps - first < t->cut ? t->steps - first : t->cut;
        grt_op_rollout(graph, &t->desc);
    }
}

// ---- against the formulas ----

// Twenty steps of the pendulum: one second, in which a difference grows by e^sqrt(15) = 48 at most,
// and the policy's slope adds as much again; sums of twenty numbers near 1 are off by 20 u. 1e-3 is
// ten times that.
#define STEPS 20
#define TRAJECTORY_BOUND 1e-3

static double policy_of(const struct grt_policy *policy, const struct grt_env_info *env,
                        const float *theta, const double o[3]) {
    double in[256];
    size_t count = policy->hidden ? policy->hidden : 3;
    for (uint32_t h = 0; h < policy->hidden; h++) {
        double w[3];
        for (uint32_t k = 0; k < 3; k++) {
            w[k] = (double)theta[grt_policy_index(policy, env, 0, h, k)];
        }
        in[h] = oracle_policy_hidden(w, (double)theta[grt_policy_index(policy, env, 1, h, 0)], o, 3,
                                     policy->tanh);
    }
    memcpy(in, policy->hidden ? in : o, policy->hidden ? 0 : 3 * sizeof *in);
    uint32_t layer = policy->hidden ? 2 : 0;
    double y = policy->bias ? (double)theta[grt_policy_index(policy, env, layer + 1, 0, 0)] : 0;
    for (uint32_t k = 0; k < count; k++) {
        y += (double)theta[grt_policy_index(policy, env, layer, 0, k)] * in[k];
    }
    return policy->hidden ? tanh(y) : fmin(fmax(y, -1), 1);
}

enum { COPIES = 37 };

static void follow(struct grt_dev *dev, const char *name, uint64_t seed) {
    const struct grt_env_info *env = grt_env_find("pendulum");
    const struct grt_policy policy = policy_named(name);
    const float norm[6] = {0.1f, -0.2f, 0.3f, 1.5f, 0.5f, 0.25f};
    uint32_t quads = grt_policy_quads(&policy, env);
    float *numbers = test_floats(seed, TEST_PLAIN, (size_t)4 * quads);
    for (uint32_t i = 0; i < 4 * quads; i++) {
        numbers[i] *= policy.hidden > 100 ? 0.1f : 0.5f;
    }
    struct trip trip = trip_begin(dev, env, &policy, COPIES, 1);
    trip.steps = trip.cut = STEPS;
    test_tensor_write(&trip.theta, numbers);
    test_tensor_write(&trip.norm, norm);
    float *whole = test_run_filled(&trip.score, record_trip, &trip);
    float states[2 * COPIES], added[6 * COPIES];
    test_tensor_read(&trip.state, states);
    test_tensor_read(&trip.sums, added);
    trip.cut = 3;
    float *cut = test_run_filled(&trip.score, record_trip, &trip);
    test_same(dev, "pendulum in launches of 3 steps", cut, whole, 4, (size_t)4 * COPIES);
    free(cut);
    trip.desc.narrow = true;
    cut = test_run_filled(&trip.score, record_trip, &trip);
    test_same(dev, "pendulum one by one", cut, whole, 4, (size_t)4 * COPIES);
    struct test_compare c = test_compare(dev, "pendulum with %s", name);
    for (uint32_t e = 0; e < COPIES; e++) {
        const uint32_t counter[4] = {e, 1, ITERATION, 0}, key[2] = {SEED, 0};
        uint32_t block[4];
        oracle_philox(counter, key, block);
        struct oracle_pendulum s = {(2 * oracle_uniform(block[0]) - 1) * ORACLE_PI,
                                    2 * oracle_uniform(block[1]) - 1};
        double total = 0, first_sum = 0;
        for (int t = 0; t < STEPS; t++) {
            double o[3] = {cos(s.angle), sin(s.angle), s.rate};
            for (int k = 0; k < 3; k++) {
                o[k] = (o[k] - (double)norm[k]) * (double)norm[3 + k];
            }
            first_sum += t % 16 == 0 ? o[2] : 0;
            double a = policy_of(&policy, env, numbers, o);
            total += oracle_pendulum_reward(s, a);
            s = oracle_pendulum_step(s, a);
        }
        // The turn where the angle jumps is the same place.
        double turn = remainder((double)states[e] - s.angle, 2 * ORACLE_PI);
        test_compare_value(&c, e, (float)turn, (struct oracle_value){0, TRAJECTORY_BOUND});
        test_compare_value(&c, e, states[COPIES + e],
                           (struct oracle_value){s.rate, 4 * TRAJECTORY_BOUND});
        test_compare_value(&c, e, whole[e],
                           (struct oracle_value){total, 20 * 7 * TRAJECTORY_BOUND});
        test_compare_value(&c, e, added[2 * COPIES + e],
                           (struct oracle_value){first_sum, 2 * TRAJECTORY_BOUND});
        test_compare_exact(&c, e, (double)whole[3 * COPIES + e], STEPS);
    }
    test_compare_end(&c);
    free(whole);
    free(cut);
    free(numbers);
    trip_end(&trip);
}

static void policy_follows_the_formulas(void **state) {
    (void)state;
    static const char *const names[] = {"linear", "affine", "mlp16", "mlp20-tanh", "mlp256"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        follow(test.dev, names[n], n + 1);
    }
    struct grt_dev *dev = dev_with(1024);  // of the pendulum 28 units
    follow(dev, "mlp256", 5);
    grt_dev_destroy(&dev);
}

// ---- more units than shared memory holds ----

struct outcome {
    float *state, *score, *sums;
};

enum { ENVS = 5, SIDES = 4, ROLLED = 17 };

// Two directions, both sides, with noise; in launches of `cut` steps.
static struct outcome roll(struct grt_dev *dev, const struct grt_env_info *env,
                           const struct grt_policy *policy, uint32_t cut) {
    size_t numbers = (size_t)4 * grt_policy_quads(policy, env);
    float *theta = test_floats(3, TEST_PLAIN, numbers);
    float *norm = test_alloc(sizeof(float[2]) * env->obs);
    for (size_t i = 0; i < numbers; i++) {
        theta[i] *= 0.1f;
    }
    for (uint32_t i = 0; i < env->obs; i++) {
        norm[i] = 0.01f * (float)i;
        norm[env->obs + i] = 1.0f - 0.01f * (float)i;
    }
    struct trip trip = trip_begin(dev, env, policy, ENVS, SIDES);
    trip.steps = ROLLED;
    trip.cut = cut;
    trip.desc.direction = 3;
    trip.desc.sigma = 0.05f;
    trip.desc.narrow = true;
    trip.desc.restart = true;
    test_tensor_write(&trip.theta, theta);
    test_tensor_write(&trip.norm, norm);
    struct outcome o = {.state = test_alloc(trip.state.bytes), .sums = test_alloc(trip.sums.bytes)};
    o.score = test_run_filled(&trip.score, record_trip, &trip);
    test_tensor_read(&trip.state, o.state);
    test_tensor_read(&trip.sums, o.sums);
    // Scratch is written in full where it is needed, and else left alone.
    uint64_t scratch = grt_op_rollout_scratch(dev, &trip.desc);
    assert_true(scratch == 0 || scratch == trip.policies.bytes);
    uint32_t *policies = test_alloc(trip.policies.bytes);
    test_tensor_read(&trip.policies, policies);
    for (size_t i = 0; i < SIDES * numbers; i++) {
        assert_true((policies[i] == test_prefills[0]) == (scratch == 0));
    }
    free(policies);
    free(theta);
    free(norm);
    trip_end(&trip);
    return o;
}

static void outcome_end(struct outcome *o) {
    free(o->state);
    free(o->score);
    free(o->sums);
}

// What the device has, and less: of the robot's 256 units 20 KiB hold 128, of the pendulum's 4 KiB
// hold 124, 176 bytes 4 and 48 none, which are the bias of the action and the normalisation alone.
static void shared_memory_changes_no_bit(void **state) {
    (void)state;
    static const struct {
        const char *env, *policy;
        uint32_t shmem;
    } rows[] = {{"standing", "mlp256", 20480},
                {"pendulum", "mlp256-tanh", 4096},
                {"pendulum", "mlp256-tanh", 176},
                {"pendulum", "mlp256-tanh", 48}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct grt_env_info *env = grt_env_find(rows[r].env);
        const struct grt_policy policy = policy_named(rows[r].policy);
        struct grt_dev *dev = dev_with(rows[r].shmem);
        struct outcome want = roll(test.dev, env, &policy, 100);
        struct outcome got = roll(dev, env, &policy, r % 2 == 0 ? 5 : 100);
        size_t lanes = ENVS * SIDES;
        test_same(dev, rows[r].policy, got.score, want.score, 4, GRT_ROLLOUT_SCORES * lanes);
        test_same(dev, rows[r].policy, got.state, want.state, 4, env->state * lanes);
        test_same(dev, rows[r].policy, got.sums, want.sums, 4, 2 * env->obs * lanes);
        outcome_end(&want);
        outcome_end(&got);
        grt_dev_destroy(&dev);
    }
}

static void scratch_is_asked_for(void **state) {
    (void)state;
    const struct grt_env_info *env = grt_env_find("standing");
    const struct grt_policy policy = policy_named("mlp256"), affine = policy_named("affine");
    struct grt_rollout_desc desc = {.env = env, .policy = &policy, .sides = 6, .narrow = true};
    struct grt_dev *dev = dev_with(32768);
    assert_int_equal(grt_op_rollout_scratch(dev, &desc), 6 * 2498 * 16);
    desc.policy = &affine;
    assert_int_equal(grt_op_rollout_scratch(dev, &desc), 0);
    desc.policy = NULL;
    assert_int_equal(grt_op_rollout_scratch(dev, &desc), 0);
    assert_int_equal(grt_op_rollout_scratch(dev, NULL), 0);
    // 64 fours of hidden units take 8 quads each, the actions' bias one and the normalisation two:
    // 515 quads hold all, one less does not.
    const struct grt_env_info *pendulum = grt_env_find("pendulum");
    for (uint32_t room = 514; room <= 515; room++) {
        struct grt_dev *small = dev_with(16 * room);
        desc = (struct grt_rollout_desc){
            .env = pendulum, .policy = &policy, .sides = 6, .narrow = true};
        assert_int_equal(grt_op_rollout_scratch(small, &desc), room == 515 ? 0 : 6 * 513 * 16);
        grt_dev_destroy(&small);
    }

    struct trip trip = trip_begin(dev, env, &policy, 3, 6);
    trip.desc.steps = 1;
    trip.desc.narrow = true;
    trip.desc.scratch = (struct grt_range){0};
    struct grt_graph *graph = grt_graph_create(dev, "no scratch");
    grt_op_rollout(graph, &trip.desc);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "needs 239808 bytes of scratch, given 0");
    grt_graph_destroy(&graph);
    trip_end(&trip);
    grt_dev_destroy(&dev);
}

// ---- names ----

static void policy_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t params, quads;
        double operations;  // two a weight, one a bias
    } rows[] = {{"linear", 29 * 8, 60, 2 * 29 * 8},
                {"affine", 30 * 8, 60, 59 * 8},
                {"mlp16", 30 * 16 + 17 * 8, 154, 59 * 16 + 33 * 8},
                {"mlp256-tanh", 30 * 256 + 257 * 8, 2434, 59 * 256 + 513 * 8}};
    const struct grt_env_info env = {.obs = 29, .act = 8, .operations = 1000};
    const struct grt_env_info uncounted = {.obs = 29, .act = 8};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_policy policy;
        char text[GRT_POLICY_TEXT];
        assert_true(grt_policy_parse(rows[i].text, &policy));
        grt_policy_text(&policy, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(grt_policy_params(&policy, &env), rows[i].params);
        assert_int_equal(grt_policy_quads(&policy, &env), rows[i].quads);
        // Those of a step of the environment too, and two a number to normalise it.
        assert_true(grt_policy_operations(&policy, &env) == 1000 + 2 * 29 + rows[i].operations);
        assert_true(grt_policy_operations(&policy, &uncounted) == 0);
    }
    // What a hidden layer has by default may be named.
    struct grt_policy named = {0};
    char text[GRT_POLICY_TEXT];
    assert_true(grt_policy_parse("mlp32-relu", &named));
    assert_true(named.hidden == 32 && named.bias && !named.tanh);
    grt_policy_text(&named, text);
    assert_string_equal(text, "mlp32");
    // Each with what would do instead.
    static const char *const wrong[][2] = {
        {"", "mlpN"},
        {"mlp", "mlpN"},
        {"mlp0", "mlpN"},
        {"mlp64-gelu", "mlpN"},
        {"conv", "mlpN"},
        {"abc8", "mlpN"},
        {"mlpx8", "mlpN"},
        {"mlp7", "use mlp16"},
        {"mlp15", "use mlp16"},
        {"mlp18", "use mlp16 or mlp20"},
        {"mlp255-tanh", "use mlp252 or mlp256"},
        {"mlp260", "use mlp256"},
        {"mlp99999999999999999999", "use mlp256"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct grt_policy policy;
        TEST_REFUSED(grt_policy_parse(wrong[i][0], &policy), GRT_INVALID, wrong[i][1]);
    }
    TEST_REFUSED(grt_policy_check(NULL), GRT_INVALID, "no policy");
    TEST_REFUSED(grt_env_find("cartpol"), GRT_INVALID, "cartpole");
    TEST_REFUSED(grt_env_find("xyzzy"), GRT_INVALID, "pendulum");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(policy_texts),
    TEST_CASE(policy_follows_the_formulas),
    TEST_CASE(shared_memory_changes_no_bit),
    TEST_CASE(scratch_is_asked_for),
};
TEST_SUITE(policy, true, cases);
