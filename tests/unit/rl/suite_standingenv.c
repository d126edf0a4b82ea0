// SPDX-License-Identifier: Apache-2.0
// The standing robot as an environment: 50 steps against the JAX program in double precision
// (tests/peers/standing_jax.py), 100 steps on the device against the C reading, the phases, and
// that following the commanded height stands and what never changes does not.
#include "harness/harness.h"
#include "kits/standing_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/rollout.h"

enum { OBS = 30, BODY = 29, ACT = 8, BIAS = OBS };
enum {
    LAST = 29,
    TIME = 37,
    KEY,
    PUSH,
    TORSO,
    FRICTION,
    MOTOR,
    DELAY,
    HEIGHT,
    SPEED,
    PACE
};  // places in a state
static const float signs[4] = {1, -1, -1, 1};

// Holds hips at 0 and ankles at `bend`, and minds the torso's turn and rate: as
// tests/golden/standing_start.py.
static void hold(float theta[OBS + 1][ACT], double bend) {
    memset(theta, 0, sizeof(float[OBS + 1][ACT]));
    for (int i = 0; i < ACT; i++) {
        theta[7 + i][i] = -0.3f;
        theta[21 + i][i] = -0.05f;
        theta[BIAS][i] = i % 2 == 1 ? (float)(0.3 * bend * (double)signs[i / 2]) : 0;
        theta[4][i] = theta[18][i] = (float)(-0.01 * (i - 3.5));
        theta[5][i] = theta[19][i] = (float)(0.01 * (i - 3.5));
    }
}

struct roll {
    uint32_t envs, first, steps, phase;
    float *state;  // [STANDING_STATE][envs], in place
    float *score;  // [GRT_ROLLOUT_SCORES][envs], may be NULL
};

static void roll(struct grt_dev *dev, const struct roll *r, float theta[OBS + 1][ACT]) {
    static const uint32_t words[4] = {9, 0, 1, 0};
    static const struct grt_policy affine = {.bias = true};
    const struct grt_env_info *env = grt_env_find("standing");
    assert_non_null(env);
    assert_int_equal(env->state, STANDING_STATE);
    float zero[GRT_ROLLOUT_SCORES * 64] = {0};
    assert_true(r->envs <= 64);
    struct test_tensor control = test_tensor(dev, GRT_U32, 4, 0);
    struct test_tensor weights = test_tensor(dev, GRT_F32, OBS + 1, ACT);
    struct test_tensor norm = test_tensor(dev, GRT_F32, 2 * OBS, 0);
    struct test_tensor state = test_tensor(dev, GRT_F32, STANDING_STATE, r->envs);
    struct test_tensor score = test_tensor(dev, GRT_F32, GRT_ROLLOUT_SCORES, r->envs);
    struct test_tensor sums = test_tensor(dev, GRT_F32, 1, 0);
    test_tensor_write(&control, words);
    test_tensor_write(&weights, theta);
    if (r->first > 0) {
        test_tensor_write(&state, r->state);
        test_tensor_write(&score, zero);
    }
    struct grt_graph *graph = grt_graph_create(dev, "standing");
    grt_op_rollout(graph, &(struct grt_rollout_desc){.env = env,
                                                     .policy = &affine,
                                                     .envs = r->envs,
                                                     .sides = 1,
                                                     .first = r->first,
                                                     .steps = r->steps,
                                                     .phase = r->phase,
                                                     .control = control.tensor.range,
                                                     .theta = weights.tensor.range,
                                                     .norm = norm.tensor.range,
                                                     .state = state.tensor.range,
                                                     .score = score.tensor.range,
                                                     .sums = sums.tensor.range});
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    test_tensor_read(&state, r->state);
    test_tensor_read(&score, zero);
    if (r->score) {
        memcpy(r->score, zero, sizeof(float) * GRT_ROLLOUT_SCORES * r->envs);
    }
    test_tensor_end(&control);
    test_tensor_end(&weights);
    test_tensor_end(&norm);
    test_tensor_end(&state);
    test_tensor_end(&score);
    test_tensor_end(&sums);
}

// Largest difference of positions and of rates.
struct distance {
    double position, rate;
};

static struct distance farther(struct distance d, int place, double got, double want) {
    double off = isnan(got) ? INFINITY : fabs(got - want);
    double *most = place < 15 ? &d.position : &d.rate;
    *most = fmax(*most, off);
    return d;
}

// ---- trajectories ----

static const float golden[][BODY] = {
#include "golden/standing_steps.inc"
};
enum { ROBOTS = 8, MOMENTS = 3, PHASES = 4 };

static void start(float *state) {
    uint64_t seed = 50;
    memset(state, 0, sizeof(float) * STANDING_STATE * ROBOTS);
    for (int r = 0; r < ROBOTS; r++) {
        float s[STANDING_STATE] = {[3] = 1};
        for (int leg = 0; leg < 4; leg++) {
            s[7 + 2 * leg] = standing_draw(&seed, -0.2, 0.2);
            s[8 + 2 * leg] = signs[leg] * standing_draw(&seed, 0.5, 0.8);
        }
        s[0] = standing_draw(&seed, -1, 1);
        s[1] = standing_draw(&seed, -1, 1);
        s[2] = standing_draw(&seed, 0.45, 0.6);
        for (int i = 15; i < 21; i++) {
            s[i] = standing_draw(&seed, -0.5, 0.5);
        }
        for (int i = 0; i < 8; i++) {  // hips first
            s[i < 4 ? 21 + 2 * i : 22 + 2 * (i - 4)] = standing_draw(&seed, -1, 1);
        }
        s[FRICTION] = standing_draw(&seed, 0.5, 1.1);
        s[TORSO] = standing_draw(&seed, 0.7, 1.3);
        s[MOTOR] = standing_draw(&seed, 0.7, 1.3);
        s[DELAY] = (float)(r % 4);
        for (int i = 0; i < STANDING_STATE; i++) {
            state[i * ROBOTS + r] = s[i];
        }
    }
}

static void follows_jax(void **state) {
    (void)state;
    assert_int_equal(sizeof golden / sizeof golden[0], ROBOTS * MOMENTS);
    float theta[OBS + 1][ACT];
    hold(theta, 1);
    static const uint32_t moments[MOMENTS] = {10, 25, 50};
    for (int m = 0; m < MOMENTS; m++) {
        float got[STANDING_STATE * ROBOTS];
        start(got);
        roll(test.dev,
             &(struct roll){.envs = ROBOTS, .first = 1, .steps = moments[m], .state = got}, theta);
        struct distance off = {0, 0};
        for (int r = 0; r < ROBOTS; r++) {
            for (int i = 0; i < BODY; i++) {
                off = farther(off, i, (double)got[i * ROBOTS + r],
                              (double)golden[r * MOMENTS + m][i]);
            }
        }
        print_message("# %u steps against JAX in double: positions off by %.1e, rates by %.1e\n",
                      moments[m], off.position, off.rate);
        assert_true(off.position < 2e-5 && off.rate < 1e-4);
    }
}

static void devices_agree(void **state) {
    (void)state;
    enum { ENVS = 64, STEPS = 100 };
    static float got[STANDING_STATE * ENVS], want[STANDING_STATE * ENVS];
    float theta[OBS + 1][ACT];
    hold(theta, 1);
    for (uint32_t phase = 1; phase <= PHASES; phase++) {
        struct roll r = {.envs = ENVS, .steps = STEPS, .phase = phase, .state = want};
        roll(test.ref, &r, theta);
        r.state = got;
        roll(test.dev, &r, theta);
        struct distance off = {0, 0};
        for (int i = 0; i < BODY; i++) {
            for (int e = 0; e < ENVS; e++) {
                off = farther(off, i, (double)got[i * ENVS + e], (double)want[i * ENVS + e]);
            }
        }
        // What an episode is made of are the same bits.
        test_same(test.dev, "episode", got + TIME * ENVS, want + TIME * ENVS, 4,
                  (size_t)(SPEED + 1 - TIME) * ENVS);
        print_message("# phase %u, %d steps against the C reading: positions off by %.1e, rates by "
                      "%.1e\n",
                      phase, STEPS, off.position, off.rate);
        // A push makes feet slide and leave the ground, where what is off grows.
        double more = phase == 2 || phase == 3 ? 20 : 1;
        assert_true(off.position < 5e-5 * more && off.rate < 5e-4 * more);
    }
}

// ---- the task ----

static double mean(const float *values, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += (double)values[i];
    }
    return sum / count;
}

// Bends the legs as the commanded height wants it: 0.65 rad for 0.42 m, 1.02 rad for 0.56 m, a
// straight line between.
static void follow(float theta[OBS + 1][ACT]) {
    hold(theta, -0.46);
    for (int i = 1; i < ACT; i += 2) {
        theta[OBS - 1][i] = 0.3f * 2.636f * signs[i / 2];
    }
}

static void following_stands(void **state) {
    (void)state;
    enum { ENVS = 32, STEPS = 200 };
    static float end[STANDING_STATE * ENVS], score[GRT_ROLLOUT_SCORES * ENVS];
    struct roll r = {.envs = ENVS, .steps = STEPS, .state = end, .score = score};
    float theta[OBS + 1][ACT];
    for (r.phase = 1; r.phase <= 3; r.phase++) {
        follow(theta);
        roll(test.dev, &r, theta);
        double returns = mean(score, ENVS) / STEPS;
        double good = mean(score + ENVS, ENVS) / STEPS;
        double falls = mean(score + 2 * ENVS, ENVS);
        // One pose, whatever is commanded; a torque that never changes; and a constant one to the
        // upper stops.
        hold(theta, 0.9);
        roll(test.dev, &r, theta);
        double deaf = mean(score + ENVS, ENVS) / STEPS;
        memset(theta, 0, sizeof theta);
        roll(test.dev, &r, theta);
        double idle = mean(score + ENVS, ENVS) / STEPS;
        for (int i = 1; i < ACT; i += 2) {
            theta[BIAS][i] = 0.06f * signs[i / 2];
        }
        roll(test.dev, &r, theta);
        double stopped = mean(score + ENVS, ENVS) / STEPS;
        print_message(
            "# phase %u: reward %.3f, stands %.3f, falls %.3f; one pose stands %.3f, no torque "
            "%.3f, on the stops %.3f\n",
            r.phase, returns, good, falls, deaf, idle, stopped);
        assert_true(good > 0.8 && falls == 0 && returns > 0.7 && returns <= 1);
        assert_true(deaf < 0.5 && idle < 0.5 && stopped < 0.5);
    }
}

static void episodes_vary(void **state) {
    (void)state;
    enum { ENVS = 64 };
    static float s[STANDING_STATE * ENVS];
    float theta[OBS + 1][ACT];
    hold(theta, 1);
    // Of one number of the episodes: least and most that it may be.
    static const struct {
        int place;
        float least, most;
    } numbers[] = {{TORSO, 0.7f, 1.3f}, {FRICTION, 0.5f, 1.1f}, {MOTOR, 0.7f, 1.3f}, {DELAY, 0, 3}};
    for (uint32_t phase = 1; phase <= PHASES; phase++) {
        roll(test.dev, &(struct roll){.envs = ENVS, .steps = 1, .phase = phase, .state = s}, theta);
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
            const float *values = &s[numbers[n].place * ENVS];
            float usual = numbers[n].place == DELAY ? 0.0f : 1.0f;
            float least = values[0];
            float most = values[0];
            for (int e = 0; e < ENVS; e++) {
                least = fminf(least, values[e]);
                most = fmaxf(most, values[e]);
            }
            float width = numbers[n].most - numbers[n].least;
            if (phase != 3) {
                assert_true(least == usual && most == usual);
            } else {
                assert_true(least >= numbers[n].least && most <= numbers[n].most);
                assert_true(most - least > 0.8f * width);
            }
        }
        for (int e = 0; e < ENVS; e++) {
            assert_true((s[PUSH * ENVS + e] > 0) == (phase == 2 || phase == 3));
            assert_true((s[SPEED * ENVS + e] > 0) == (phase == 4));
            assert_true(s[HEIGHT * ENVS + e] > 0.42f && s[HEIGHT * ENVS + e] < 0.56f);
            assert_true(s[TIME * ENVS + e] == 1);
        }
        // A push moves a standing robot: within a period of 64 steps each gets one.
        int moved = 0;
        for (uint32_t steps = 20; steps <= 84; steps += 8) {
            roll(test.dev, &(struct roll){.envs = ENVS, .steps = steps, .phase = phase, .state = s},
                 theta);
            for (int e = 0; e < ENVS; e++) {
                moved += hypotf(s[15 * ENVS + e], s[16 * ENVS + e]) > 0.05f;
            }
        }
        print_message("# phase %u: %d of %d robots seen moving\n", phase, moved, 9 * ENVS);
        assert_true(phase == 1 || phase == 4 ? moved < ENVS / 4 : moved > ENVS / 4);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(follows_jax),
    TEST_CASE(devices_agree),
    TEST_CASE(following_stands),
    TEST_CASE(episodes_vary),
};
TEST_SUITE(standingenv, true, cases);
