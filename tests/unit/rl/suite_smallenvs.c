// SPDX-License-Identifier: Apache-2.0
// Cart-pole, pendulum and UAVs in flight at both sides of their limits, from states that are
// written: what ends an episode, what counts as good, what an action is cut at, each part of a
// reward, and what sensors meet.
#include "kits/ref_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kits/worlds_kit.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// ---- states that are written ----

// Word i of a copy is words[i * copies + copy].
static void put_words(const struct worlds_case *c, const uint32_t *words) {
    struct grt_range range = grt_plan_at(c->plan, "worlds", 0)->range;
    assert_true(
        grt_buf_write(range.buf, range.offset, words, (uint64_t)c->sizes.words * c->copies * 4));
}

// Number i of the totals of each copy.
static float *totals_of(const struct worlds_case *c, uint32_t i) {
    struct grt_range range = grt_plan_at(c->plan, "worlds", 2)->range;
    float *row = test_alloc(c->copies * sizeof *row);
    assert_true(grt_buf_read(range.buf, range.offset + (uint64_t)i * c->copies * 4, row,
                             (uint64_t)c->copies * 4));
    return row;
}

// Copies of an environment in registers, each with a state of its own; an episode is one step.
static void begin(struct worlds_case *c, const char *name, uint32_t copies, const float *states) {
    const struct grt_env_info *env = grt_env_find(name);
    worlds_begin(c, test.dev, grt_worlds_desc(.env = env, .copies = copies, .length = 1), 3);
    uint32_t *words = test_alloc((size_t)c->sizes.words * copies * 4);
    memset(words, 0, (size_t)c->sizes.words * copies * 4);
    for (uint32_t k = 0; k < copies; k++) {
        for (uint32_t i = 0; i < env->state; i++) {
            words[i * copies + k] = test_as_u32(states[k * env->state + i]);
        }
    }
    put_words(c, words);
    free(words);
}

// ---- cart-pole ----

// At rest a place and an angle stay as they are: an episode ends beyond 2.4 m and 12 degrees, not
// at them. Who falls is not good in that step, and has its reward.
static void poles_fall_beyond_their_limits(void **state) {
    (void)state;
    const float x = 2.4f, a = 0.20943951f;
    const struct {
        float x, a;
        bool falls;
    } rows[] = {{0, 0, false},
                {x, 0, false},
                {-x, 0, false},
                {nextafterf(x, 3), 0, true},
                {nextafterf(-x, -3), 0, true},
                {0, a, false},
                {0, -a, false},
                {0, nextafterf(a, 1), true},
                {0, nextafterf(-a, -1), true},
                {x, a, false},
                {3, 1, true}};
    struct worlds_case c;
    float states[COUNT(rows)][4];
    for (size_t i = 0; i < COUNT(rows); i++) {
        memcpy(states[i], (const float[4]){rows[i].x, 0, rows[i].a, 0}, sizeof states[i]);
    }
    begin(&c, "cartpole", COUNT(rows), states[0]);
    memset(c.actions, 0, COUNT(rows) * sizeof *c.actions);
    worlds_step(&c);
    float *good = totals_of(&c, 3), *returned = totals_of(&c, 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(c.obs[4 * i] == rows[i].x && c.obs[4 * i + 2] == rows[i].a);
        assert_int_equal(c.ends[i], rows[i].falls ? GRT_ROW_LAST : GRT_ROW_LAST | GRT_ROW_CUT);
        assert_true(c.rewards[i] == 1 && returned[i] == 1);
        assert_true(good[i] == (rows[i].falls ? 0 : 1));
    }
    free(good);
    free(returned);
    worlds_end(&c);
}

// The force is to the side of the action's sign, however small it is; 0 is to the left.
static void pushes_have_a_side(void **state) {
    (void)state;
    static const float actions[] = {1, 1e-20f, 0, -0.0f, -1e-20f, -1, 7, -7};
    static const float states[COUNT(actions)][4] = {
        {0.5f, -1, 0.1f, 2},   {0.5f, -1, 0.1f, 2}, {0.5f, -1, 0.1f, 2}, {0.5f, -1, 0.1f, 2},
        {-0.5f, 1, -0.1f, -2}, {-1, 2, 0.15f, -1},  {1, 2, -0.15f, 1},   {0, 0, 0, 0}};
    struct worlds_case c;
    begin(&c, "cartpole", COUNT(actions), states[0]);
    for (size_t i = 0; i < COUNT(actions); i++) {
        c.actions[i] = test_as_u32(actions[i]);
    }
    worlds_step(&c);
    for (size_t i = 0; i < COUNT(actions); i++) {
        const float *s = states[i];
        struct oracle_cartpole o = oracle_cartpole_step(
            (struct oracle_cartpole){(double)s[0], (double)s[1], (double)s[2], (double)s[3]},
            actions[i] > 0);
        const double want[4] = {o.x, o.x_dot, o.theta, o.theta_dot};
        for (size_t k = 0; k < 4; k++) {
            assert_true(fabs((double)c.obs[4 * i + k] - want[k]) < 2e-6);
        }
    }
    worlds_end(&c);
}

// ---- pendulum ----

// The reward is of what was before the step and of the action as it was cut; rates end at 8, and
// angles go on behind half a turn at the other side.
static void pendulums_step_by_their_formulas(void **state) {
    (void)state;
    static const float rows[][3] = {
        // angle, rate, action
        {0, 0, 0},          {1, 0, 0},         {-1, 2, 0.5f},       {0.5f, -3, -1},
        {0, 0, 1},          {0, 0, 4},         {0, 0, -9},          {1.5f, 7.9f, 1},
        {-1.5f, -7.9f, -1}, {1.5f, 8, 1},      {3.1f, 8, 0},        {-3.1f, -8, 0},
        {3.1f, 0.5f, 0},    {-3.1f, -0.5f, 0}, {3.14159f, 3, 1},    {-3.14159f, -3, -1},
        {2.8f, -8, 0},      {0.3f, 7.8f, -1},  {-0.2f, 0.1f, 0.25f}};
    struct worlds_case c;
    float states[COUNT(rows)][2];
    for (size_t i = 0; i < COUNT(rows); i++) {
        memcpy(states[i], rows[i], sizeof states[i]);
    }
    begin(&c, "pendulum", COUNT(rows), states[0]);
    for (size_t i = 0; i < COUNT(rows); i++) {
        c.actions[i] = test_as_u32(rows[i][2]);
    }
    worlds_step(&c);
    uint32_t *words = worlds_state(&c);
    float *good = totals_of(&c, 3), *lengths = totals_of(&c, 2);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const double pi = acos(-1), a = (double)rows[i][0], w = (double)rows[i][1];
        double u = 2 * fmin(fmax((double)rows[i][2], -1), 1);
        double rate = w + 0.05 * (15 * sin(a) + 3 * u);
        rate = fmin(fmax(rate, -8), 8);
        double angle = a + 0.05 * rate;
        angle -= angle > pi ? 2 * pi : angle < -pi ? -2 * pi : 0;
        assert_true(fabs((double)c.rewards[i] + a * a + 0.1 * w * w + 0.001 * u * u) < 2e-6);
        assert_true(fabs((double)test_as_f32(words[i]) - angle) < 2e-6);
        assert_true(fabs((double)test_as_f32(words[COUNT(rows) + i]) - rate) < 2e-6);
        assert_true(fabs((double)c.obs[3 * i] - cos(angle)) < 2e-6);
        assert_true(fabs((double)c.obs[3 * i + 1] - sin(angle)) < 2e-6);
        assert_true(fabs((double)c.obs[3 * i + 2] - rate) < 2e-6);
        assert_int_equal(c.ends[i], GRT_ROW_LAST | GRT_ROW_CUT);
        assert_true(good[i] == (fabs(angle) < 0.2 ? 1 : 0) && lengths[i] == 1);
    }
    free(words);
    free(good);
    free(lengths);
    worlds_end(&c);
}

// Within 0.2 rad of upright: an angle where it rests is where a rate undoes its turn.
static void pendulums_are_good_near_the_top(void **state) {
    (void)state;
    static const float angles[] = {0.1999f, 0.2001f, -0.1999f, -0.2001f, 0, 3.1f};
    struct worlds_case c;
    float states[COUNT(angles)][2];
    for (size_t i = 0; i < COUNT(angles); i++) {
        states[i][0] = angles[i];
        states[i][1] = (float)(-0.75 * sin((double)angles[i]));
    }
    begin(&c, "pendulum", COUNT(angles), states[0]);
    memset(c.actions, 0, COUNT(angles) * sizeof *c.actions);
    worlds_step(&c);
    float *good = totals_of(&c, 3);
    for (size_t i = 0; i < COUNT(angles); i++) {
        assert_true(good[i] == (fabsf(angles[i]) < 0.2f ? 1 : 0));
    }
    free(good);
    worlds_end(&c);
}

// ---- UAVs in flight ----

#define SIZE 0.0625
#define REACH 0.125

static const struct grt_env_value flight[] = {
    {"num_uavs", 2},    {"num_obstacles", 1}, {"sensors", 4}, {"size", SIZE},  {"reach", REACH},
    {"sight", 0.25},    {"speed", 0.5},       {"accel", 1},   {"progress", 2}, {"arrival", 3},
    {"collision", 0.5}, {"time", 0.25},       {"team", 0.5}};

struct flight_row {
    const char *what;
    float at[2], speed[2], action[2], target[2];  // of the first UAV
    float other[2];                               // the second, which rests
    bool out;                                     // it has landed before
    float obstacle[3];
    bool hit, lands;
    double to[2], then[2];  // where the first is, and how fast
};

// Far from all of these unless a row says otherwise.
#define FAR                                                                                        \
    { 0.9f, 0.9f }
#define AWAY                                                                                       \
    { 0.2f, 0.8f, 0 }
#define GOAL                                                                                       \
    { 0.5f, 0.9375f }
#define STILL                                                                                      \
    { 0, 0 }

static void begin_flights(struct worlds_case *c, const struct flight_row *rows, uint32_t count) {
    worlds_begin(c, test.dev,
                 grt_worlds_desc(.env = grt_env_find("uav_flight"), .settings = flight,
                                 .setting_count = COUNT(flight), .copies = count, .length = 1),
                 5);
    assert_int_equal(c->sizes.words, 2 * 12 + 3 + 3);
    uint32_t *words = test_alloc((size_t)c->sizes.words * count * 4);
    memset(words, 0, (size_t)c->sizes.words * count * 4);
    for (uint32_t k = 0; k < count; k++) {
        const struct flight_row *r = &rows[k];
        const float numbers[][2] = {
            {r->at[0], r->at[1]}, {r->speed[0], r->speed[1]}, {r->target[0], r->target[1]}};
        for (uint32_t i = 0; i < 6; i++) {
            words[i * count + k] = test_as_u32(numbers[i / 2][i % 2]);
        }
        for (uint32_t i = 0; i < 2; i++) {
            words[(12 + i) * count + k] = test_as_u32(r->other[i]);
            words[(16 + i) * count + k] = test_as_u32(0.0f);  // its target
        }
        words[22 * count + k] = r->out;
        for (uint32_t i = 0; i < 3; i++) {
            words[(24 + i) * count + k] = test_as_u32(r->obstacle[i]);
        }
        words[27 * count + k] = r->out;  // how many have landed
    }
    put_words(c, words);
    free(words);
}

// At a limit it is free, beyond it it has collided.
static const struct flight_row flights[] = {
    {"at the western edge", {0, 0.5f}, STILL, STILL, GOAL, FAR, 0, AWAY, 0, 0, {0, 0.5}, {0, 0}},
    {"at the eastern edge", {1, 0.5f}, STILL, STILL, GOAL, FAR, 0, AWAY, 0, 0, {1, 0.5}, {0, 0}},
    {"at the southern edge", {0.5f, 0}, STILL, STILL, GOAL, FAR, 0, AWAY, 0, 0, {0.5, 0}, {0, 0}},
    {"at the northern edge", {0.25f, 1}, STILL, STILL, GOAL, FAR, 0, AWAY, 0, 0, {0.25, 1}, {0, 0}},
    {"beyond the west", {-1e-6f, 0.5f}, STILL, STILL, GOAL, FAR, 0, AWAY, 1, 0, {0, 0.5}, {0, 0}},
    {"beyond the east", {1.000001f, .5f}, STILL, STILL, GOAL, FAR, 0, AWAY, 1, 0, {1, .5}, {0, 0}},
    {"beyond the south", {0.5f, -1e-6f}, STILL, STILL, GOAL, FAR, 0, AWAY, 1, 0, {0.5, 0}, {0, 0}},
    {"beyond the north", {.25f, 1.000001f}, STILL, STILL, GOAL, FAR, 0, AWAY, 1, 0, {.25, 1}, {0}},
    {"at an obstacle",
     {0.6875f, 0.5f},
     STILL,
     STILL,
     GOAL,
     FAR,
     0,
     {0.5f, 0.5f, 0.125f},
     0,
     0,
     {0.6875, 0.5},
     {0, 0}},
    {"in an obstacle",
     {0.6874f, 0.5f},
     STILL,
     STILL,
     GOAL,
     FAR,
     0,
     {0.5f, 0.5f, 0.125f},
     1,
     0,
     {0.6874, 0.5},
     {0, 0}},
    {"no obstacle",
     {0.5f, 0.5f},
     STILL,
     STILL,
     GOAL,
     FAR,
     0,
     {0.5f, 0.5f, 0},
     0,
     0,
     {0.5, 0.5},
     {0, 0}},
    {"beside another",
     {0.625f, 0.25f},
     STILL,
     STILL,
     GOAL,
     {0.5f, 0.25f},
     0,
     AWAY,
     0,
     0,
     {0.625, 0.25},
     {0, 0}},
    {"beside one that has landed",
     {0.55f, 0.25f},
     STILL,
     STILL,
     GOAL,
     {0.5f, 0.25f},
     1,
     AWAY,
     0,
     0,
     {0.55, 0.25},
     {0, 0}},
    {"as far as the reach",
     {0.625f, 0.9375f},
     STILL,
     STILL,
     GOAL,
     {0.9f, 0.1f},
     0,
     AWAY,
     0,
     0,
     {0.625, 0.9375},
     {0, 0}},
    {"within reach",
     {0.6249f, 0.9375f},
     STILL,
     STILL,
     GOAL,
     {0.9f, 0.1f},
     0,
     AWAY,
     0,
     1,
     {0.6249, 0.9375},
     {0, 0}},
    {"the last to land",
     {0.55f, 0.9375f},
     STILL,
     STILL,
     GOAL,
     {0.9f, 0.1f},
     1,
     AWAY,
     0,
     1,
     {0.55, 0.9375},
     {0, 0}},
    {"lands and collides",
     {0.55f, 0.9375f},
     STILL,
     STILL,
     GOAL,
     {0.9f, 0.1f},
     0,
     {0.55f, 0.9375f, 0.1f},
     1,
     1,
     {0.55, 0.9375},
     {0, 0}},
    {"as fast as it may be",
     {0.25f, 0.5f},
     {0.5f, 0},
     STILL,
     GOAL,
     FAR,
     0,
     AWAY,
     0,
     0,
     {0.3, 0.5},
     {0.5, 0}},
    {"too fast",
     {0.5f, 0.25f},
     {-0.6f, 0.8f},
     STILL,
     GOAL,
     FAR,
     0,
     AWAY,
     0,
     0,
     {0.47, 0.29},
     {-0.3, 0.4}},
    {"driven",
     {0.25f, 0.5f},
     {0.25f, 0},
     {1, -0.5f},
     GOAL,
     FAR,
     0,
     AWAY,
     0,
     0,
     {0.285, 0.495},
     {0.35, -0.05}},
    {"driven by more than 1",
     {0.25f, 0.5f},
     {0.25f, 0},
     {3, -9},
     GOAL,
     FAR,
     0,
     AWAY,
     0,
     0,
     {0.285, 0.49},
     {0.35, -0.1}},
    {"against the edge",
     {0.02f, 0.5f},
     {-0.4f, 0.1f},
     STILL,
     GOAL,
     FAR,
     0,
     AWAY,
     1,
     0,
     {0.02, 0.5},
     {0, 0}},
};

static double from_to(double ax, double ay, const float *b) {
    return hypot(ax - (double)b[0], ay - (double)b[1]);
}

static void flights_at_their_limits(void **state) {
    (void)state;
    struct worlds_case c;
    begin_flights(&c, flights, COUNT(flights));
    for (size_t k = 0; k < COUNT(flights); k++) {
        for (size_t i = 0; i < 2; i++) {
            c.actions[4 * k + i] = test_as_u32(flights[k].action[i]);
            c.actions[4 * k + 2 + i] = test_as_u32(0.0f);
        }
    }
    worlds_step(&c);
    float *totals[6];
    for (uint32_t i = 0; i < 6; i++) {
        totals[i] = totals_of(&c, i);
    }
    for (size_t k = 0; k < COUNT(flights); k++) {
        const struct flight_row *r = &flights[k];
        const float *whole = c.global + k * c.sizes.global;
        for (int i = 0; i < 2; i++) {
            if (!(fabs((double)whole[i] - r->to[i]) < 2e-6 &&
                  fabs((double)whole[2 + i] - r->then[i]) < 2e-6)) {
                fail_msg("%s: at %g, %g with %g, %g", r->what, (double)whole[0], (double)whole[1],
                         (double)whole[2], (double)whole[3]);
            }
        }
        double nearer = from_to((double)r->at[0], (double)r->at[1], r->target) -
                        from_to(r->to[0], r->to[1], r->target);
        double own = 2 * nearer + (r->lands ? 3 : 0) - (r->hit ? 0.5 : 0) - 0.25;
        // The other one meets it too, where it stands in its way.
        double rest = r->out ? 0 : -0.25, shared = 0.5 * (own + rest) / 2;
        bool all = r->lands && r->out;
        if (!(fabs((double)c.rewards[2 * k] - own - shared) < 1e-5)) {
            fail_msg("%s: a reward of %g and not %g", r->what, (double)c.rewards[2 * k],
                     own + shared);
        }
        double second = r->out ? 0 : rest + shared;
        assert_true(fabs((double)c.rewards[2 * k + 1] - second) < 1e-5);
        assert_int_equal(c.ends[2 * k],
                         r->lands || all ? GRT_ROW_LAST : GRT_ROW_LAST | GRT_ROW_CUT);
        assert_int_equal(c.ends[2 * k + 1], r->out ? GRT_ROW_IDLE : GRT_ROW_LAST | GRT_ROW_CUT);
        const double want[6] = {1,
                                (own + shared + second) / 2,
                                1,
                                (r->lands + r->out) / 2.0,
                                (r->hit ? 1.0 : 0) / (r->out ? 1 : 2),
                                all};
        for (int i = 0; i < 6; i++) {
            if (!(fabs((double)totals[i][k] - want[i]) < 1e-5)) {
                fail_msg("%s: total %d is %g and not %g", r->what, i, (double)totals[i][k],
                         want[i]);
            }
        }
        assert_true((whole[6] != 0) == r->lands && (whole[13] != 0) == r->out);
    }
    for (uint32_t i = 0; i < 6; i++) {
        free(totals[i]);
    }
    worlds_end(&c);
}

// Two that stand in each other's way both have collided.
static void two_that_meet(void **state) {
    (void)state;
    static const struct flight_row rows[] = {
        {"too near", {0.6249f, 0.25f}, STILL, STILL, GOAL, {0.5f, 0.25f}, 0, AWAY, 1, 0, {0}, {0}}};
    struct worlds_case c;
    begin_flights(&c, rows, 1);
    memset(c.actions, 0, 4 * sizeof *c.actions);
    worlds_step(&c);
    for (int i = 0; i < 2; i++) {
        assert_true(fabs((double)c.rewards[i] - (-0.75 - 0.5 * 0.75)) < 1e-5);
    }
    float *collisions = totals_of(&c, 4);
    assert_true(collisions[0] == 1);
    free(collisions);
    worlds_end(&c);
}

// East, north, west, south, in shares of the sight.
static void sensors_meet_what_is_there(void **state) {
    (void)state;
    static const struct {
        float at[2], other[2];
        bool out;
        float obstacle[3];
        double seen[4];
    } rows[] = {
        {{0.5f, 0.5f}, FAR, 0, AWAY, {1, 1, 1, 1}},
        {{0.5f, 0.5f}, FAR, 0, {0.7f, 0.5f, 0.1f}, {0.4, 1, 1, 1}},
        {{0.5f, 0.5f}, FAR, 0, {0.5f, 0.7f, 0.15f}, {1, 0.2, 1, 1}},
        {{0.5f, 0.5f}, FAR, 0, {0.3f, 0.5f, 0.1f}, {1, 1, 0.4, 1}},
        {{0.5f, 0.5f}, FAR, 0, {0.5f, 0.16f, 0.1f}, {1, 1, 1, 0.96}},
        {{0.5f, 0.5f}, FAR, 0, {0.5f, 0.14f, 0.1f}, {1, 1, 1, 1}},
        {{0.5f, 0.5f}, FAR, 0, {0.55f, 0.5f, 0.1f}, {0, 0, 0, 0}},
        {{0.5f, 0.5f}, FAR, 0, {0.5f, 0.5f, 0}, {1, 1, 1, 1}},
        {{0.5f, 0.5f}, FAR, 0, {0.7f, 0.61f, 0.1f}, {1, 1, 1, 1}},
        {{0.5f, 0.5f}, FAR, 0, {0.7f, 0.56f, 0.1f}, {0.48, 1, 1, 1}},
        {{0.5f, 0.5f}, {0.5f, 0.4f}, 0, AWAY, {1, 1, 1, 0.15}},
        {{0.5f, 0.5f}, {0.5f, 0.4f}, 1, AWAY, {1, 1, 1, 1}},
        {{0.5f, 0.5f}, {0.65f, 0.5f}, 0, {0.7f, 0.5f, 0.1f}, {0.35, 1, 1, 1}},
        {{0.5f, 0.5f}, {0.68f, 0.5f}, 0, {0.7f, 0.5f, 0.1f}, {0.4, 1, 1, 1}},
        {{0.9f, 0.1f}, {0.1f, 0.9f}, 0, AWAY, {0.4, 1, 1, 0.4}},
        {{0.05f, 0.95f}, {0.5f, 0.1f}, 0, AWAY, {1, 0.2, 0.2, 1}},
        {{1, 0.5f}, {0.5f, 0.1f}, 0, AWAY, {0, 1, 1, 1}},
    };
    struct flight_row made[COUNT(rows)];
    struct worlds_case c;
    for (size_t k = 0; k < COUNT(rows); k++) {
        made[k] = (struct flight_row){.speed = {0.25f, -0.125f}, .target = {0.25f, 0.75f}};
        memcpy(made[k].at, rows[k].at, sizeof made[k].at);
        memcpy(made[k].other, rows[k].other, sizeof made[k].other);
        memcpy(made[k].obstacle, rows[k].obstacle, sizeof made[k].obstacle);
        made[k].out = rows[k].out;
    }
    begin_flights(&c, made, COUNT(rows));
    assert_true(grt_graph_finish(c.observe));
    test_tensor_read(&c.obs_at, c.obs);
    test_tensor_read(&c.global_at, c.global);
    for (size_t k = 0; k < COUNT(rows); k++) {
        const float *obs = c.obs + 2 * k * c.sizes.obs, *at = rows[k].at;
        const double want[10] = {2 * (double)at[0] - 1,
                                 2 * (double)at[1] - 1,
                                 0.5,
                                 -0.25,
                                 0.25 - (double)at[0],
                                 0.75 - (double)at[1],
                                 rows[k].seen[0],
                                 rows[k].seen[1],
                                 rows[k].seen[2],
                                 rows[k].seen[3]};
        for (int i = 0; i < 10; i++) {
            if (!(fabs((double)obs[i] - want[i]) < 5e-6)) {
                fail_msg("row %zu: number %d is %.7g and not %.7g", k, i, (double)obs[i], want[i]);
            }
        }
        const float *whole = c.global + k * c.sizes.global;
        const float all[17] = {at[0],
                               at[1],
                               0.25f,
                               -0.125f,
                               0.25f,
                               0.75f,
                               0,
                               rows[k].other[0],
                               rows[k].other[1],
                               0,
                               0,
                               0,
                               0,
                               rows[k].out,
                               rows[k].obstacle[0],
                               rows[k].obstacle[1],
                               rows[k].obstacle[2]};
        assert_int_equal(c.sizes.global, COUNT(all));
        for (size_t i = 0; i < COUNT(all); i++) {
            assert_true(whole[i] == all[i]);
        }
    }
    worlds_end(&c);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(poles_fall_beyond_their_limits),   REF_CASE(pushes_have_a_side),
    REF_CASE(pendulums_step_by_their_formulas), REF_CASE(pendulums_are_good_near_the_top),
    REF_CASE(flights_at_their_limits),          REF_CASE(two_that_meet),
    REF_CASE(sensors_meet_what_is_there),
};
TEST_SUITE(smallenvs, false, cases);
