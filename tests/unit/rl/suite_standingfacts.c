// SPDX-License-Identifier: Apache-2.0
// What the standing robot's file says of a state: reward, standing, fallen, what is seen, where
// episodes begin, pushes and commands; each number at both sides of its limits, against formulas in
// double precision. The file itself is read as C.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ref/dialect.h"
#include "env/standing.k"

enum { MEMBERS = 49, SEED = 21 };
#define PLACE(i, name) AT_##name = (i),
enum place { ENV_STATE(PLACE) };

// A state by its members or by their places.
union robot {
    env_state s;
    float v[MEMBERS];
};
_Static_assert(sizeof(env_state) == sizeof(float[MEMBERS]), "all members are floats");

static const double side[4] = {1, -1, -1, 1};  // of ankles

// As it should stand, still, without a commanded speed.
static union robot stands(void) {
    union robot r = {{0}};
    r.s.z = r.s.height = 0.5f;
    r.s.qw = 1;
    for (int leg = 0; leg < 4; leg++) {
        r.v[AT_ankle_1 + 2 * leg] = (float)(0.9 * side[leg]);
    }
    return r;
}

static double of(const union robot *r, int place) {
    return (double)r->v[place];
}

static double squares(const union robot *r, int first, int count, int every) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += of(r, first + i * every) * of(r, first + i * every);
    }
    return sum;
}

// ---- the reward ----

static double reward(const union robot *r) {
    double up = 1 - 2 * (of(r, AT_qx) * of(r, AT_qx) + of(r, AT_qy) * of(r, AT_qy));
    double effort = squares(r, AT_last_0, 8, 1), mean = 0, spread = 0;
    double off = (of(r, AT_z) - of(r, AT_height)) / 0.05;
    for (int leg = 0; leg < 4; leg++) {
        mean += side[leg] * of(r, AT_ankle_1 + 2 * leg) / 4;
    }
    for (int leg = 0; leg < 4; leg++) {
        spread += pow(side[leg] * of(r, AT_ankle_1 + 2 * leg) - mean, 2);
    }
    double cost = 1 + off * off + 0.2 * squares(r, AT_vx, 3, 1) + 0.05 * squares(r, AT_wx, 3, 1) +
                  0.01 * squares(r, AT_hip_rate_1, 8, 1) + 0.1 * effort +
                  3 * squares(r, AT_hip_1, 4, 2) + 5 * spread;
    double walk = 0.2 * up + fmin(of(r, AT_vx), of(r, AT_speed)) - 0.05 * effort -
                  0.1 * of(r, AT_vy) * of(r, AT_vy);
    return up <= 0 ? 0 : of(r, AT_speed) > 0 ? walk : up / cost;
}

static void is_worth(const char *what, int i, const union robot *r) {
    // Neither what was before nor the action counts: the state has what was done.
    const union robot before = {.v = {9, 8, 7, 6, 5}};
    const env_action action = {{3, -3, 2, 1}};
    double got = (double)env_reward(before.s, action, r->s), want = reward(r);
    if (!(fabs(got - want) <= 2e-6 * (1 + fabs(want)))) {
        fail_msg("%s %d: a reward of %.9g and not %.9g", what, i, got, want);
    }
}

// Each number of the state by itself, to both sides, standing and walking; then all at once.
static void each_number_of_the_reward(void **state) {
    (void)state;
    uint64_t random = 4;
    for (int walks = 0; walks < 2; walks++) {
        union robot base = stands();
        base.s.speed = walks ? 1 : 0;
        is_worth("nothing but", 0, &base);
        assert_true(fabs(reward(&base) - (walks ? 0.2 : 1)) < 1e-12);
        for (int i = 0; i < MEMBERS; i++) {
            for (int k = -2; k <= 2; k++) {
                union robot r = base;
                r.v[i] += 0.2f * (float)k;
                is_worth("member", i, &r);
            }
        }
        for (int i = 0; i < 300; i++) {
            union robot r = base;
            for (int k = 0; k < MEMBERS; k++) {
                r.v[k] += (float)(test_unit(&random) - 0.5);
            }
            is_worth("draw", i, &r);
        }
    }
}

// Speed counts up to the commanded one; upside down nothing does.
static void ends_of_the_reward(void **state) {
    (void)state;
    static const struct {
        float speed, vx, qx;
        double want;
    } rows[] = {{1, 0.75f, 0, 0.95}, {1, 1, 0, 1.2},     {1, 1.25f, 0, 1.2},
                {1, -2, 0, -1.8},    {0.5f, 2, 0, 0.7},  {1, 1, 0.7f, 0.2 * 0.02 + 1},
                {1, 1, 0.71f, 0},    {0, 0, 0.7f, 0.02}, {0, 0, 0.71f, 0},
                {0, 0, -1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        union robot r = stands();
        r.s.speed = rows[i].speed;
        r.s.vx = rows[i].vx;
        r.s.qx = rows[i].qx;
        double got = (double)env_reward(r.s, (env_action){{0}}, r.s);
        if (!(fabs(got - rows[i].want) < 2e-6)) {
            fail_msg("row %zu: %.9g and not %.9g", i, got, rows[i].want);
        }
    }
}

// ---- standing, walking, fallen ----

struct judged {
    int place;
    float value;  // of a leg's member: as the leg counts it
    bool good;
};

static void judge(const struct judged *rows, size_t count, float speed) {
    for (size_t i = 0; i < count; i++) {
        int place = rows[i].place;
        // A leg's number is that of each leg, in turn.
        bool ankle = place == AT_ankle_1, leg = ankle || place == AT_hip_1;
        for (int k = 0; k < (leg ? 4 : 1); k++) {
            union robot r = stands();
            r.s.speed = speed;
            r.s.pace = 0.9f * speed;
            r.v[place + 2 * k] = rows[i].value * (ankle ? (float)side[k] : 1);
            if (env_good(r.s) != rows[i].good) {
                fail_msg("member %d at %.6g, leg %d: good is not %d", place, (double)rows[i].value,
                         k, rows[i].good);
            }
        }
    }
}

// Within 3 cm, within 18 degrees, 0.05 rad from each stop; and nothing else counts.
static void what_counts_as_standing(void **state) {
    (void)state;
    static const struct judged rows[] = {{AT_z, 0.4701f, true},       {AT_z, 0.4699f, false},
                                         {AT_z, 0.5299f, true},       {AT_z, 0.5301f, false},
                                         {AT_qx, 0.1580f, true},      {AT_qx, 0.1583f, false},
                                         {AT_qy, -0.1580f, true},     {AT_qy, -0.1583f, false},
                                         {AT_hip_1, 0.4735f, true},   {AT_hip_1, 0.4737f, false},
                                         {AT_hip_1, -0.4735f, true},  {AT_hip_1, -0.4737f, false},
                                         {AT_ankle_1, 0.5737f, true}, {AT_ankle_1, 0.5735f, false},
                                         {AT_ankle_1, 1.1716f, true}, {AT_ankle_1, 1.1718f, false},
                                         {AT_ankle_1, -0.9f, false},  {AT_height, 0.4701f, true},
                                         {AT_height, 0.5301f, false}, {AT_vx, 50, true},
                                         {AT_wz, -50, true},          {AT_last_3, 1, true},
                                         {AT_hip_rate_2, 90, true},   {AT_pace, -5, true},
                                         {AT_x, 1000, true},          {AT_qz, 0.9f, true}};
    judge(rows, sizeof rows / sizeof *rows, 0);
}

// With a commanded speed: within 37 degrees, and four fifths of it over a second.
static void what_counts_as_walking(void **state) {
    (void)state;
    static const struct judged rows[] = {{AT_pace, 0.8001f, true}, {AT_pace, 0.7999f, false},
                                         {AT_qx, 0.3160f, true},   {AT_qx, 0.3164f, false},
                                         {AT_qy, 0.3160f, true},   {AT_qy, -0.3164f, false},
                                         {AT_z, 0.3f, true},       {AT_hip_1, 0.52f, true},
                                         {AT_ankle_1, 0.1f, true}, {AT_vx, -3, true}};
    judge(rows, sizeof rows / sizeof *rows, 1);
    static const struct judged slow[] = {{AT_pace, 0.2001f, true}, {AT_pace, 0.1999f, false}};
    judge(slow, 2, 0.25f);
}

// On its belly, or beyond 72 degrees; what is no number has fallen.
static void what_counts_as_fallen(void **state) {
    (void)state;
    static const struct judged rows[] = {
        {AT_z, 0.2501f, false},  {AT_z, 0.25f, true},      {AT_z, 0.2499f, true},
        {AT_z, -1, true},        {AT_z, NAN, true},        {AT_qx, 0.5915f, false},
        {AT_qx, 0.5917f, true},  {AT_qy, -0.5915f, false}, {AT_qy, -0.5917f, true},
        {AT_qy, NAN, true},      {AT_hip_1, 3, false},     {AT_vz, -90, false},
        {AT_z, INFINITY, false}, {AT_height, 9, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int walks = 0; walks < 2; walks++) {
            union robot r = stands();
            r.s.speed = (float)walks;
            r.v[rows[i].place] = rows[i].value;
            if (env_done(r.s) != rows[i].good) {
                fail_msg("member %d at %g: fallen is not %d", rows[i].place, (double)rows[i].value,
                         rows[i].good);
            }
        }
    }
}

static void what_is_seen(void **state) {
    (void)state;
    union robot r;
    for (int i = 0; i < MEMBERS; i++) {
        r.v[i] = (float)(100 + i * i);
    }
    env_observation o = env_observe(r.s);
    assert_int_equal(sizeof o, 30 * sizeof(float));
    for (int i = 2; i < 29; i++) {
        assert_true(o.v[i] == r.v[i]);
    }
    assert_true(o.v[0] == r.v[AT_height] - r.v[AT_z] && o.v[1] == r.v[AT_speed] - r.v[AT_vx]);
    assert_true(o.v[29] == r.v[AT_height]);
}

// ---- where episodes begin ----

static double drawn(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t key, int word) {
    const uint32_t counter[4] = {a, b, c, d}, keys[2] = {key, 0};
    uint32_t block[4];
    oracle_philox(counter, keys, block);
    return 2 * oracle_uniform(block[word]) - 1;
}

static uint32_t word_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t key, int word) {
    const uint32_t counter[4] = {a, b, c, d}, keys[2] = {key, 0};
    uint32_t block[4];
    oracle_philox(counter, keys, block);
    return block[word];
}

static void begins_at(const union robot *r, int place, double want) {
    if (!(fabs(of(r, place) - want) <= 1e-6 * (1 + fabs(want)))) {
        fail_msg("member %d begins at %.9g and not at %.9g", place, of(r, place), want);
    }
}

static void episodes_begin(void **state) {
    (void)state;
    for (uint32_t phase = 0; phase <= 5; phase++) {
        for (uint32_t copy = 0; copy < 8; copy++) {
            const uint32_t episode = 3 + copy;
            union robot r = {.s = env_reset(copy, episode, phase, SEED)};
#define DRAW(block, word) drawn(copy, block, episode, phase, SEED, word)
            double crouch = phase <= 1, vary = phase == 3;
            double bend = phase <= 1 ? 0.56 + 0.03 * DRAW(0, 0) : 1;
            const double q[3] = {0.02 * DRAW(0, 1), 0.02 * DRAW(0, 2), 0.1 * DRAW(0, 3)};
            double length = sqrt(1 + q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
            begins_at(&r, AT_qw, 1 / length);
            for (int i = 0; i < 3; i++) {
                begins_at(&r, AT_qx + i, q[i] / length);
            }
            for (int leg = 0; leg < 4; leg++) {
                begins_at(&r, AT_hip_1 + 2 * leg, (crouch ? 0.3 : 0.1) * DRAW(1, leg));
                begins_at(&r, AT_ankle_1 + 2 * leg, side[leg] * bend + 0.02 * DRAW(2, leg));
            }
            begins_at(&r, AT_x, 0);
            begins_at(&r, AT_y, 0);
            begins_at(&r, AT_z, 0.1 + 0.4 * sqrt(2) * sin(bend + 0.02));
            for (int i = AT_vx; i <= AT_time; i++) {
                assert_true(r.v[i] == 0.0f);
            }
            begins_at(&r, AT_key, word_of(copy, 4, episode, phase, SEED, 0) >> 9);
            assert_true(r.s.push == (phase == 2 || phase == 3 ? 25.0f : 0.0f));
            begins_at(&r, AT_torso, 1 + vary * 0.3 * DRAW(3, 0));
            begins_at(&r, AT_friction, phase == 3 ? 0.8 + 0.3 * DRAW(3, 1) : 1);
            begins_at(&r, AT_motor, 1 + vary * 0.3 * DRAW(3, 2));
            begins_at(&r, AT_delay, vary * (word_of(copy, 3, episode, phase, SEED, 3) >> 30));
            begins_at(&r, AT_height, 0.49 + 0.07 * DRAW(4, 1));
            assert_true(r.s.speed == (phase >= 4 ? 1.0f : 0.0f));
            assert_true(r.s.pace == 0.0f && r.s.push_x == 0.0f && r.s.push_y == 0.0f);
#undef DRAW
        }
    }
}

// ---- steps ----

// Two steps of every 32 are pushed, by the beat of the copy; every 128 there is another height.
static void pushes_and_commands(void **state) {
    (void)state;
    const env_action none = {{0}};
    static const uint32_t beats[] = {0, 1, 2, 31, 32, 33, 34, 126, 127, 128, 254, 255, 256, 4095};
    for (size_t i = 0; i < sizeof beats / sizeof *beats; i++) {
        for (uint32_t key = 0; key < 24; key += 8) {
            uint32_t beat = beats[i], next = beat + 1;
            if (beat < key) {
                continue;
            }
            for (int pushed = 0; pushed < 2; pushed++) {
                union robot r = stands();
                r.s.friction = r.s.torso = r.s.motor = 1;
                r.s.key = (float)key;
                r.s.time = (float)(beat - key);
                r.s.push = pushed ? 25 : 0;
                r.s.height = 0.47f;
                union robot after = {.s = env_step(r.s, none)};
                double size = pushed && beat % 32 < 2 ? 25 : 0;
                double x = size * drawn(beat / 32, 7, key, 0, 0, 0);
                double y = size * drawn(beat / 32, 7, key, 0, 0, 1);
                assert_true(fabs(of(&after, AT_push_x) - x) < 1e-5);
                assert_true(fabs(of(&after, AT_push_y) - y) < 1e-5);
                bool change = pushed && next % 128 == 0;
                double height =
                    change ? 0.49 + 0.07 * drawn(next / 128, 8, key, 0, 0, 0) : (double)0.47f;
                assert_true(fabs(of(&after, AT_height) - height) < 1e-6);
                assert_true(after.s.time == r.s.time + 1);
                // It is pushed that way: 0.9 kg for a twentieth of a second.
                assert_true(size == 0 || (fabs(x) < 5 || (x > 0) == (after.s.vx > 0)));
                assert_true(size == 0 || (fabs(y) < 5 || (y > 0) == (after.s.vy > 0)));
            }
        }
    }
}

// Actions are cut at 1, kept for the next step, and what an episode is made of stays.
static void what_a_step_keeps(void **state) {
    (void)state;
    const env_action action = {{2, -3, 0.5f, -0.25f, 1, -1, 1.0001f, 0}};
    static const float want[8] = {1, -1, 0.5f, -0.25f, 1, -1, 1, 0};
    union robot r = stands();
    r.s.torso = 0.9f;
    r.s.friction = 0.7f;
    r.s.motor = 1.1f;
    r.s.delay = 2;
    r.s.speed = 1;
    r.s.pace = 0.5f;
    r.s.vx = 0.25f;
    r.s.key = 77;
    union robot after = {.s = env_step(r.s, action)};
    for (int i = 0; i < 8; i++) {
        assert_true(after.v[AT_last_0 + i] == want[i]);
    }
    static const int stay[] = {AT_key,   AT_push,  AT_torso,  AT_friction,
                               AT_motor, AT_delay, AT_height, AT_speed};
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++) {
        assert_true(after.v[stay[i]] == r.v[stay[i]]);
    }
    double pace = 0.5 + 0.05 * (of(&after, AT_vx) - 0.5);
    assert_true(fabs(of(&after, AT_pace) - pace) < 1e-6);
    // What is no number drives no motor to infinity.
    const env_action broken = {{NAN}};
    union robot driven = {.s = env_step(r.s, broken)};
    assert_true(driven.s.last_0 == -1 && isfinite(driven.s.hip_1));
}

// Late actions are those of the step before, for as many of its five parts: a hinge that is driven
// one way and then the other turns the more the earlier it is told.
static void delays(void **state) {
    (void)state;
    float rate[4];
    for (int late = 0; late < 4; late++) {
        union robot r = stands();
        r.s.z = 3;  // in the air
        r.s.torso = r.s.friction = r.s.motor = 1;
        r.s.delay = (float)late;
        r.s.last_0 = -0.01f;
        const env_action action = {{0.01f}};
        rate[late] = env_step(r.s, action).hip_rate_1;
    }
    // Of five parts `late` go the other way: 5, 3, 1 and -1 parts are left of the turn.
    assert_true(rate[0] > 0 && rate[3] < 0);
    for (int late = 0; late < 4; late++) {
        double share = (double)rate[late] / (double)rate[0];
        assert_true(fabs(share - (1 - 0.4 * late)) < 0.05);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(each_number_of_the_reward),
    TEST_CASE(ends_of_the_reward),
    TEST_CASE(what_counts_as_standing),
    TEST_CASE(what_counts_as_walking),
    TEST_CASE(what_counts_as_fallen),
    TEST_CASE(what_is_seen),
    TEST_CASE(episodes_begin),
    TEST_CASE(pushes_and_commands),
    TEST_CASE(what_a_step_keeps),
    TEST_CASE(delays),
};
TEST_SUITE(standingfacts, false, cases);
