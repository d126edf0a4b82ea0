// SPDX-License-Identifier: Apache-2.0
// The standing robot's dynamics: accelerations against MuJoCo's, conserved quantities against the
// shapes' own sums (tests/oracle/ant.c), contact against closed forms, and that nothing a motor can
// do breaks it.
#include "harness/harness.h"
#include "kits/standing_kit.h"

#include <math.h>
#include <stdlib.h>

#define GRAVITY 9.81

// ---- accelerations ----

static const float golden[][14] = {
#include "golden/standing_qacc.inc"
};
enum { GOLDEN = sizeof golden / sizeof golden[0] };

// Largest error of one kind of acceleration over the largest of that kind, in one state.
static double off_by(const float *got, const float *want, int count) {
    double error = 0;
    double scale = 0;
    for (int i = 0; i < count; i++) {
        error = fmax(error, fabs((double)got[i] - want[i]));
        scale = fmax(scale, fabs((double)want[i]));
        error = isnan(got[i]) ? INFINITY : error;
    }
    return error / scale;
}

static void accelerations_are_mujocos(void **state) {
    (void)state;
    static struct standing_robot robots[GOLDEN];
    uint64_t seed = 2026;
    for (uint32_t r = 0; r < GOLDEN; r++) {
        robots[r] = standing_random(&seed);
    }
    struct standing_world world = standing_space;
    world.dt = 0;
    world.gravity = (float)GRAVITY;
    world.damping = 1;
    standing_advance(test.dev, &world, 0, robots, GOLDEN);
    double worst[3] = {0, 0, 0};
    for (uint32_t r = 0; r < GOLDEN; r++) {
        worst[0] = fmax(worst[0], off_by(robots[r].body + 15, golden[r], 3));
        worst[1] = fmax(worst[1], off_by(robots[r].body + 18, golden[r] + 3, 3));
        worst[2] = fmax(worst[2], off_by(robots[r].body + 21, golden[r] + 6, 8));
    }
    print_message("# %d states, largest relative errors: linear %.1e, angular %.1e, hinges %.1e\n",
                  GOLDEN, worst[0], worst[1], worst[2]);
    assert_int_equal(GOLDEN, 1000);
    assert_true(worst[0] <= 1e-4 && worst[1] <= 1e-4 && worst[2] <= 1e-4);
}

// ---- what is conserved ----

static void falls_freely(void **state) {
    (void)state;
    enum { COUNT = 16, STEPS = 100 };
    struct standing_robot robots[COUNT];
    struct standing_robot before[COUNT];
    uint64_t seed = 5;
    for (int r = 0; r < COUNT; r++) {
        robots[r] = standing_random(&seed);
        robots[r].body[2] += 10;
        for (int i = 18; i < STANDING_BODY; i++) {
            robots[r].body[i] = 0;  // turns nowhere, and is driven nowhere
        }
        for (int i = 0; i < 8; i++) {
            robots[r].torque[i] = 0;
        }
        before[r] = robots[r];
    }
    struct standing_world world = standing_space;
    world.gravity = (float)GRAVITY;
    standing_advance(test.dev, &world, STEPS, robots, COUNT);
    // Rates first, then positions: n steps fall by g dt^2 n (n + 1) / 2. Each rounds numbers up to
    // 16.
    const double time = STEPS * 0.01;
    const double fall = GRAVITY * 0.01 * 0.01 * STEPS * (STEPS + 1) / 2;
    const double bound = STEPS * 16 * 4 * ORACLE_U;
    struct test_compare c = test_compare(test.dev, "free fall");
    for (int r = 0; r < COUNT; r++) {
        const float *was = before[r].body;
        for (int i = 0; i < STANDING_BODY; i++) {
            double want = was[i];
            want += i < 3 ? was[15 + i] * time - (i == 2 ? fall : 0) : 0;
            want -= i == 17 ? GRAVITY * time : 0;
            test_compare_value(&c, (uint64_t)r * STANDING_BODY + (uint64_t)i, robots[r].body[i],
                               (struct oracle_value){want, bound});
        }
    }
    test_compare_end(&c);
}

// How far momenta and energy wander in half a second without gravity, relative to what they were.
struct drift {
    double linear, angular, energy;
};

static struct drift drift_of(float dt, bool driven) {
    enum { COUNT = 32 };
    struct standing_robot robots[COUNT];
    struct oracle_ant_sums before[COUNT];
    uint64_t seed = 17;
    for (int r = 0; r < COUNT; r++) {
        robots[r] = standing_random(&seed);
        for (int i = 0; i < 8; i++) {
            robots[r].body[21 + i] *= 0.1f;  // 1 rad/s: the hinges turn by a radian
            robots[r].torque[i] *= driven ? 0.01f : 0;
        }
        struct oracle_ant ant = standing_as_oracle(&robots[r]);
        before[r] = oracle_ant_sums(&ant);
    }
    struct standing_world world = standing_space;
    world.dt = dt;
    standing_advance(test.dev, &world, (uint32_t)lround(0.5 / dt), robots, COUNT);
    struct drift worst = {0, 0, 0};
    for (int r = 0; r < COUNT; r++) {
        struct oracle_ant ant = standing_as_oracle(&robots[r]);
        struct oracle_ant_sums after = oracle_ant_sums(&ant);
        double linear = 0;
        double angular = 0;
        double linear_was = 0;
        double angular_was = 0;
        for (int i = 0; i < 3; i++) {
            linear += pow(after.momentum[i] - before[r].momentum[i], 2);
            angular += pow(after.angular[i] - before[r].angular[i], 2);
            linear_was += pow(before[r].momentum[i], 2);
            angular_was += pow(before[r].angular[i], 2);
        }
        worst.linear = fmax(worst.linear, sqrt(linear / linear_was));
        worst.angular = fmax(worst.angular, sqrt(angular / angular_was));
        worst.energy =
            fmax(worst.energy, fabs(after.kinetic - before[r].kinetic) / before[r].kinetic);
    }
    return worst;
}

// The step is of first order: a quarter of it, a quarter of the error. What is wrong in the
// equations stays.
static void check_drift(const char *what, double coarse, double fine, double most) {
    print_message("# %s after 0.5 s: off by %.1e in steps of 2 ms, %.1e in steps of 0.5 ms\n", what,
                  coarse, fine);
    assert_true(coarse < most);
    assert_true(fine < 0.3 * coarse);
}

static void momentum_stays(void **state) {
    (void)state;
    struct drift coarse = drift_of(0.002f, true);
    struct drift fine = drift_of(0.0005f, true);
    check_drift("linear momentum", coarse.linear, fine.linear, 0.02);
    check_drift("angular momentum", coarse.angular, fine.angular, 0.02);
}

static void energy_stays(void **state) {
    (void)state;
    struct drift coarse = drift_of(0.002f, false);
    struct drift fine = drift_of(0.0005f, false);
    check_drift("energy of an undamped swing", coarse.energy, fine.energy, 0.01);
}

// Energy of robots that spin in space for 10 s, over what it was: least and most over the seconds
// and the robots.
struct spun {
    double least, most;
};

static struct spun spin(const struct standing_world *world, double rate) {
    enum { COUNT = 16, SECONDS = 10 };
    struct standing_robot robots[COUNT];
    double before[COUNT];
    struct spun r = {INFINITY, 0};
    uint64_t seed = 100;
    for (int i = 0; i < COUNT; i++) {
        robots[i] = standing_random(&seed);
        double axis[3];
        double square = 0;
        for (int k = 0; k < 3; k++) {
            axis[k] = i < 3 ? (i == k) : (double)standing_draw(&seed, -1, 1);
            square += axis[k] * axis[k];
        }
        for (int k = 0; k < 8; k++) {
            robots[i].body[21 + k] = 0;
            robots[i].torque[k] = 0;
        }
        for (int k = 0; k < 3; k++) {
            robots[i].body[15 + k] = 0;
            robots[i].body[18 + k] = (float)(rate * axis[k] / sqrt(square));
        }
        struct oracle_ant ant = standing_as_oracle(&robots[i]);
        before[i] = oracle_ant_sums(&ant).kinetic;
    }
    for (int second = 0; second < SECONDS; second++) {
        standing_advance(test.dev, world, 100, robots, COUNT);
        for (int i = 0; i < COUNT; i++) {
            struct oracle_ant ant = standing_as_oracle(&robots[i]);
            double share = oracle_ant_sums(&ant).kinetic / before[i];
            r.least = isnan(share) || share < r.least ? share : r.least;
            r.most = isnan(share) || share > r.most ? share : r.most;
        }
    }
    return r;
}

static void spinning_keeps_energy(void **state) {
    (void)state;
    struct standing_world damped = standing_earth;
    damped.gravity = 0;
    damped.ground_stiffness = damped.ground_damping = 0;
    struct standing_world undamped = damped;
    undamped.damping = 0;
    for (int rate = 10; rate <= 100; rate += 10) {
        struct spun free = spin(&undamped, rate);
        struct spun held = spin(&damped, rate);
        print_message(
            "# %3d rad/s for 10 s: energy %.3f to %.3f of the start, with the hinges' damping "
            "%.3f to %.3f\n",
            rate, free.least, free.most, held.least, held.most);
        // In steps of 0.1 ms it is 0.61 to 1.00: limbs swing out against their stops and lose some.
        // The motors reach 50.
        double most = rate <= 50 ? 1.05 : 1.2;
        assert_true(free.least > 0.5 && free.most < most && held.least > 0.5 && held.most < most);
    }
}

// ---- the ground ----

static void rests_at_its_height(void **state) {
    (void)state;
    struct standing_robot robot = standing_upright(0.6f, 0.0f);
    standing_advance(test.dev, &standing_earth, 2000, &robot, 1);
    struct oracle_ant ant = standing_as_oracle(&robot);
    double mass = oracle_ant_sums(&ant).mass;
    const double shin = 0.4 * sqrt(2);
    const double shin_mass = 5 * ORACLE_PI * 0.08 * 0.08 * (shin + 4.0 / 3 * 0.08);
    // The feet sink in by a quarter of the weight; the shins' stops give way until
    //     4 k over = (m - 2 m_shin) g shin cos(angle)
    double angle = ORACLE_PI / 6;
    for (int i = 0; i < 50; i++) {
        angle = ORACLE_PI / 6 - (mass - 2 * shin_mass) * GRAVITY * shin * cos(angle) / (4 * 3000.0);
    }
    double height = 0.08 - mass * GRAVITY / (4 * 2500.0) + shin * sin(angle);
    print_message("# at rest: height %.6f, ankle %.6f; by the balance of forces %.6f, %.6f\n",
                  (double)robot.body[2], (double)robot.body[8], height, angle);
    assert_true(fabs(robot.body[2] - height) < 2e-5);
    assert_true(fabs(robot.body[8] - angle) < 2e-5);
    for (int i = 15; i < STANDING_BODY; i++) {
        assert_true(fabsf(robot.body[i]) < 1e-3f);
    }
}

static void holds_on_a_slope(void **state) {
    (void)state;
    enum { COUNT = 3 };
    const double slope = 20 * ORACLE_PI / 180;
    struct standing_world world = standing_earth;
    // The slope's share of the weight pulls at the torso: for a stiff piece it matters not where.
    world.gravity = (float)(GRAVITY * cos(slope));
    static const float friction[COUNT] = {1, 0.5f, 0.2f};
    struct standing_robot robots[COUNT];
    for (int r = 0; r < COUNT; r++) {
        // Every hinge is pressed against a stop, so that the robot is one stiff piece.
        robots[r] = standing_upright((float)(ORACLE_PI / 6), 0);
        robots[r].friction = friction[r];
        for (int leg = 0; leg < 4; leg++) {
            float side = leg < 2 ? 1.0f : -1.0f;
            robots[r].body[7 + 2 * leg] = side * (float)(ORACLE_PI / 6);
            robots[r].torque[2 * leg] = 10 * side;
            robots[r].torque[2 * leg + 1] = leg == 0 || leg == 3 ? -10.0f : 10.0f;
        }
    }
    struct oracle_ant ant = standing_as_oracle(&robots[0]);
    world.push[0] = (float)(oracle_ant_sums(&ant).mass * GRAVITY * sin(slope));
    standing_advance(test.dev, &world, 400, robots, COUNT);
    double before = robots[2].body[15];
    standing_advance(test.dev, &world, 100, robots, COUNT);
    for (int r = 0; r < COUNT - 1; r++) {
        // It holds, but for a creep: friction is viscous below 1 cm/s, tan = f v / sqrt(v^2 +
        // slip^2).
        double share = tan(slope) / friction[r];
        double creep = 0.01 * share / sqrt(1 - share * share);
        print_message(
            "# slope of 20 degrees, friction %.1f: %.5f m/s, by the law of friction %.5f\n",
            (double)friction[r], (double)robots[r].body[15], creep);
        assert_true(fabs(robots[r].body[15] - creep) < 0.02 * creep);
    }
    double gain = robots[2].body[15] - before;
    double slides = GRAVITY * (sin(slope) - friction[2] * cos(slope));
    print_message("# friction %.1f: accelerates by %.4f m/s^2, by the law of friction %.4f\n",
                  (double)friction[2], gain, slides);
    assert_true(fabs(gain - slides) < 0.01 * slides);
}

// ---- every torque there is ----

static void survives_every_torque(void **state) {
    (void)state;
    enum { COUNT = 128 };
    struct standing_robot *robots = test_alloc(COUNT * sizeof *robots);
    uint64_t seed = 3;
    for (int r = 0; r < COUNT; r++) {
        robots[r] = standing_upright(0.8f, 0.01f);
        robots[r].friction = standing_draw(&seed, 0.2, 1.5);
    }
    uint32_t rounds = test.small ? 20 : 1000;
    float most[5] = {0};
    for (uint32_t round = 0; round < rounds; round++) {
        for (int r = 0; r < COUNT; r++) {
            // Full torque either way, held for 1 to 8 rounds.
            if (round % (1U + (unsigned)r % 8U) == 0) {
                for (int i = 0; i < 8; i++) {
                    robots[r].torque[i] = standing_draw(&seed, -1, 1) < 0 ? -150.0f : 150.0f;
                }
            }
        }
        standing_advance(test.dev, &standing_earth, 5, robots, COUNT);
        for (int r = 0; r < COUNT; r++) {
            for (int i = 2; i < STANDING_BODY; i++) {
                int kind = i < 7 ? 0 : (i < 15 ? 1 : (i < 18 ? 2 : (i < 21 ? 3 : 4)));
                float size = fabsf(robots[r].body[i]);
                // A NaN is taken and stays.
                most[kind] = isnan(most[kind]) || size <= most[kind] ? most[kind] : size;
            }
        }
    }
    print_message("# %u steps of full torque: height %.2f m, hinges %.2f rad, %.1f m/s, %.1f and "
                  "%.1f rad/s\n",
                  rounds, (double)most[0], (double)most[1], (double)most[2], (double)most[3],
                  (double)most[4]);
    assert_true(most[0] < 10 && most[1] < 1.7f && most[2] < 15 && most[3] < 60 && most[4] < 30);
    free(robots);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(accelerations_are_mujocos),
    TEST_CASE(falls_freely),
    TEST_CASE(momentum_stays),
    TEST_CASE(energy_stays),
    TEST_CASE(spinning_keeps_energy),
    TEST_CASE(rests_at_its_height),
    TEST_CASE(holds_on_a_slope),
    TEST_CASE(survives_every_torque),
};
TEST_SUITE(standing, true, cases);
