// SPDX-License-Identifier: Apache-2.0
// Stepper: a program's own states and actions, against cart-pole in double precision and a team of
// counters in plain C; what is refused.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/stepper.h"
#include "kits/worlds_kit.h"

#define COPIES 70

static double uniform(uint64_t *random) {
    return (double)test_next(random) / 4294967296.0;
}

// Random states far from where episodes begin, and pushes to either side.
static void own_states_and_actions(void **state) {
    (void)state;
    const struct grt_env_info *env = grt_env_find("cartpole");
    struct grt_stepper *s =
        grt_stepper_create(test.dev, grt_worlds_desc(.env = env, .copies = COPIES));
    assert_non_null(s);
    const struct grt_stepper_view *v = grt_stepper_view(s);
    assert_true(v->copies == COPIES && v->rows == COPIES && v->sizes.obs == 4 &&
                v->sizes.act == 1 && v->length == env->length);
    assert_true(v->actions && !v->choices && !v->mask && !v->global);
    uint64_t words = (uint64_t)v->sizes.words * COPIES, random = 5;
    uint32_t *state_words = calloc(words, 4), *after = calloc(words, 4);
    struct oracle_cartpole want[COPIES];
    // The first time without a reset before.
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t e = 0; e < COPIES; e++) {
            want[e] =
                (struct oracle_cartpole){4.76 * uniform(&random) - 2.38, 8 * uniform(&random) - 4,
                                         0.4 * uniform(&random) - 0.2, 8 * uniform(&random) - 4};
            float numbers[4] = {(float)want[e].x, (float)want[e].x_dot, (float)want[e].theta,
                                (float)want[e].theta_dot};
            for (uint32_t k = 0; k < 4; k++) {
                state_words[k * COPIES + e] = test_as_u32(numbers[k]);
            }
        }
        assert_true(grt_stepper_set_state(s, state_words, words));
        for (uint32_t e = 0; e < COPIES; e++) {
            assert_true(v->obs[4 * e] == (float)want[e].x &&
                        v->obs[4 * e + 3] == (float)want[e].theta_dot);
            v->actions[e] = test_next(&random) % 2 ? 1.0f : -1.0f;
        }
        assert_true(grt_stepper_step(s));
        assert_true(grt_stepper_state(s, after, words));
        uint32_t ended = 0;
        for (uint32_t e = 0; e < COPIES; e++) {
            want[e] = oracle_cartpole_step(want[e], v->actions[e] > 0);
            double close[4] = {want[e].x, want[e].x_dot, want[e].theta, want[e].theta_dot};
            for (uint32_t k = 0; k < 4; k++) {
                assert_true(fabs((double)v->obs[4 * e + k] - close[k]) < 4e-6);
                assert_int_equal(after[k * COPIES + e], test_as_u32(v->obs[4 * e + k]));
            }
            bool out =
                fabs(want[e].x) > ORACLE_CARTPOLE_X || fabs(want[e].theta) > ORACLE_CARTPOLE_THETA;
            assert_int_equal(v->ends[e], out ? GRT_ROW_LAST : 0);
            assert_true(v->rewards[e] == 1.0f);
            ended += out;
        }
        // Ended copies take states too, and go on from them: that is the next turn.
        assert_true(ended > 0 && ended < COPIES);
    }
    free(state_words);
    free(after);
    grt_stepper_destroy(&s);
    assert_null(s);
}

// Two agents of a copy count what they choose, 0 to 2; above 4 nobody may choose 2. Word 0 is the
// seed and the copy.
static const char counters[] =
    "#define ENV counters\n"
    "#define ENV_AGENTS 2\n"
    "#define ENV_OBS 1\n"
    "#define ENV_GLOBAL 2\n"
    "#define ENV_CHOICES 3\n"
    "#define ENV_WORDS 3\n"
    "#define ENV_SETTINGS(F) F(uint, most, 7, 1, 100, \"where the episode ends\")\n"
    "#define ENV_LENGTH 5\n"
    "#include \"env/world.k\"\n"
    "FN void world_reset(env_world w, uint env, uint episode, uint phase, uint seed) {\n"
    "    KEEP(w, 0u, seed * 1000u + env * 10u + episode);\n"
    "    KEEP(w, 1u, 0u);\n"
    "    KEEP(w, 2u, 0u);\n"
    "}\n"
    "FN void world_choose(env_world w, uint a, uint choice) {\n"
    "    KEEP(w, 1u + a, LOOK(w, 1u + a) + choice);\n"
    "}\n"
    "FN void world_step(env_world w) {}\n"
    "FN bool world_out(env_world w, uint a) { return false; }\n"
    "FN float world_reward(env_world w, uint a) { return F32(LOOK(w, 1u + a)); }\n"
    "FN bool world_done(env_world w) { return LOOK(w, 1u) + LOOK(w, 2u) >= w.most; }\n"
    "FN float world_observe(env_world w, uint a, uint i) { return F32(LOOK(w, 1u + a)); }\n"
    "FN float world_global(env_world w, uint i) { return F32(LOOK(w, i * 2u)); }\n"
    "FN uint world_mask(env_world w, uint a) { return LOOK(w, 1u + a) > 4u ? 3u : 7u; }\n";

static void discrete_team(void **state) {
    (void)state;
    const struct grt_env_info *env = worlds_env("counters", counters);
    assert_non_null(env);
    const struct grt_env_value most[] = {{"most", 9}};
    struct grt_stepper *s = grt_stepper_create(
        test.dev, grt_worlds_desc(.env = env, .copies = 3, .settings = most, .setting_count = 1));
    assert_non_null(s);
    const struct grt_stepper_view *v = grt_stepper_view(s);
    assert_true(v->rows == 6 && v->length == 5 && v->choices && !v->actions && v->mask &&
                v->global);
    assert_true(grt_stepper_reset(s, 7));
    // Copy 0 chooses 2 and 1 and ends by 9 in its third step, copy 1 is cut after five, copy 2 too.
    static const uint32_t choices[6] = {2, 1, 0, 1, 0, 0};
    uint32_t counts[6] = {0}, episode = 0;
    for (uint32_t t = 0; t < 7; t++) {
        for (uint32_t row = 0; row < 6; row++) {
            assert_true(v->obs[row] == (float)counts[row]);
            assert_int_equal(v->mask[row], counts[row] > 4 ? 3 : 7);
            if (row % 2 == 0) {
                uint32_t of = row == 0 ? episode : t > 5;
                assert_true(v->global[row] == (float)(7000 + row * 5 + of));
                assert_true(v->global[row + 1] == (float)counts[row + 1]);
            }
        }
        memcpy(v->choices, choices, sizeof choices);
        assert_true(grt_stepper_step(s));
        for (uint32_t row = 0; row < 6; row++) {
            bool idle = row < 2 ? t == 3 : t == 5;
            counts[row] = idle ? 0 : counts[row] + choices[row];
            uint32_t want = idle                    ? GRT_ROW_IDLE
                            : row < 2 && t % 4 == 2 ? GRT_ROW_LAST
                            : row > 1 && t == 4     ? GRT_ROW_LAST | GRT_ROW_CUT
                                                    : 0;
            assert_int_equal(v->ends[row], want);
            assert_true(v->rewards[row] == (idle ? 0.0f : (float)counts[row]));
        }
        episode += t == 3;
    }
    // States replace what was counted, and the time: five steps to the cut again.
    uint32_t words[9] = {1, 2, 3, 0, 5, 6, 1, 1, 2}, read[9] = {0};
    assert_true(grt_stepper_set_state(s, words, 9));
    static const float seen[6] = {0, 1, 5, 1, 6, 2};
    assert_memory_equal(v->obs, seen, sizeof seen);
    assert_true(grt_stepper_state(s, read, 9));
    assert_memory_equal(read, words, sizeof words);
    // Choices that there are not are the first one.
    static const uint32_t wild[6] = {3, 4, UINT32_MAX, 3, 1u << 31, 3};
    memcpy(v->choices, wild, sizeof wild);
    for (uint32_t t = 0; t < 5; t++) {
        assert_true(grt_stepper_step(s));
        assert_memory_equal(v->obs, seen, sizeof seen);
        assert_int_equal(v->ends[0], t == 4 ? GRT_ROW_LAST | GRT_ROW_CUT : 0);
    }
    grt_stepper_destroy(&s);
    grt_env_close(&env);
}

// The same seed begins the same episodes, another one others; a reset forgets all.
static void seeds(void **state) {
    (void)state;
    struct grt_stepper *s =
        grt_stepper_create(test.dev, grt_worlds_desc(.env = grt_env_find("pendulum"), .copies = 3));
    assert_non_null(s);
    const struct grt_stepper_view *v = grt_stepper_view(s);
    float first[9];
    assert_true(v->sizes.obs == 3 && grt_stepper_reset(s, 1));
    memcpy(first, v->obs, sizeof first);
    for (int i = 0; i < 3; i++) {
        v->actions[0] = v->actions[1] = v->actions[2] = 0.5f;
        assert_true(grt_stepper_step(s));
    }
    assert_memory_not_equal(v->obs, first, sizeof first);
    assert_true(grt_stepper_reset(s, 1));
    assert_memory_equal(v->obs, first, sizeof first);
    assert_true(v->rewards[0] == 0 && v->ends[0] == 0);
    assert_true(grt_stepper_reset(s, 2));
    assert_memory_not_equal(v->obs, first, sizeof first);
    grt_stepper_destroy(&s);
}

// Steps to the end of an episode of two, and the one in which the next begins.
static void to_the_next(struct grt_stepper *s) {
    for (int i = 0; i < 3; i++) {
        assert_int_equal(grt_stepper_view(s)->ends[0] & GRT_ROW_LAST, i == 2 ? GRT_ROW_LAST : 0);
        assert_true(grt_stepper_step(s));
    }
    assert_int_equal(grt_stepper_view(s)->ends[0], GRT_ROW_IDLE);
}

// A reset tells no end of the episodes before. States that are set begin the time of an episode
// anew, and not the count of episodes: the next one is the next.
static void episodes_go_on(void **state) {
    (void)state;
    struct grt_stepper *s = grt_stepper_create(
        test.dev, grt_worlds_desc(.env = grt_env_find("pendulum"), .copies = 2, .length = 2));
    assert_non_null(s);
    const struct grt_stepper_view *v = grt_stepper_view(s);
    float first[6], second[6], third[6];
    uint32_t words[32];
    uint64_t count = (uint64_t)v->sizes.words * 2;
    assert_in_range(count, 1, 32);
    assert_true(grt_stepper_reset(s, 1));
    memcpy(first, v->obs, sizeof first);
    to_the_next(s);
    memcpy(second, v->obs, sizeof second);
    to_the_next(s);
    memcpy(third, v->obs, sizeof third);
    assert_memory_not_equal(second, first, sizeof first);
    assert_memory_not_equal(third, second, sizeof second);
    assert_true(grt_stepper_step(s) && grt_stepper_step(s));
    assert_int_equal(v->ends[1], GRT_ROW_LAST | GRT_ROW_CUT);
    assert_true(grt_stepper_reset(s, 1));
    assert_true(v->ends[0] == 0 && v->ends[1] == 0 && v->rewards[0] == 0 && v->rewards[1] == 0);
    assert_memory_equal(v->obs, first, sizeof first);
    // In the second episode, one step before its end.
    to_the_next(s);
    assert_true(grt_stepper_step(s));
    assert_true(grt_stepper_state(s, words, count));
    assert_true(grt_stepper_set_state(s, words, count));
    to_the_next(s);
    assert_memory_equal(v->obs, third, sizeof third);
    grt_stepper_destroy(&s);
}

static void refuses(void **state) {
    (void)state;
    uint32_t words[64] = {0};
    const struct grt_env_info *env = grt_env_find("cartpole");
    struct grt_stepper *s = grt_stepper_create(test.dev, grt_worlds_desc(.env = env, .copies = 2));
    assert_non_null(s);
    TEST_REFUSED(grt_stepper_step(s), GRT_INVALID, "'cartpole': a step before the first reset");
    TEST_REFUSED(grt_stepper_state(s, words, 16), GRT_INVALID, "no states before");
    TEST_REFUSED(grt_stepper_set_state(s, words, 8), GRT_INVALID,
                 "8 words of states; 2 copies have 8 each, 16 in all");
    TEST_REFUSED(grt_stepper_set_state(s, NULL, 16), GRT_INVALID, "0 words");
    TEST_REFUSED(grt_stepper_step(NULL), GRT_INVALID, "no stepper");
    TEST_REFUSED(grt_stepper_reset(NULL, 1), GRT_INVALID, "no stepper");
    TEST_REFUSED(grt_stepper_state(NULL, words, 1), GRT_INVALID, "no stepper");
    assert_null(grt_stepper_view(NULL));
    grt_stepper_destroy(&s);
    grt_stepper_destroy(&s);
    grt_stepper_destroy(NULL);
    TEST_REFUSED(grt_stepper_create(test.dev, grt_worlds_desc(.env = env)), GRT_CONFIG, "0 copies");
    TEST_REFUSED(grt_stepper_create(NULL, grt_worlds_desc(.env = env, .copies = 1)), GRT_INVALID,
                 "no device");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(own_states_and_actions), TEST_CASE(discrete_team), TEST_CASE(seeds),
    TEST_CASE(episodes_go_on),         TEST_CASE(refuses),
};
TEST_SUITE(stepper, true, cases);
