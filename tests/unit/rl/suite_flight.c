// SPDX-License-Identifier: Apache-2.0
// UAVs in flight against their rules in double precision, step by step from the state that the
// device had; sensors against a walk along each ray; what a start promises; and the same bits on
// every device.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kits/worlds_kit.h"

#define UAVS 5
#define OBSTACLES 7
#define SENSORS 9
#define SURE 1e-5  // as near to a bound as this a rounding decides

static const struct grt_env_value values[] = {
    {"num_uavs", UAVS},   {"num_obstacles", OBSTACLES},
    {"sensors", SENSORS}, {"size", 0.02},
    {"reach", 0.06},      {"sight", 0.25},
    {"progress", 3},      {"collision", 0.5},
    {"team", 0.25},       {"accel", 1.5},
};

struct uav {
    double x, y, vx, vy, target_x, target_y;
    bool landed;
};

struct square {
    struct uav uav[UAVS];
    double obstacle[OBSTACLES][3];
};

static void begin(struct worlds_case *c, struct grt_dev *dev, uint32_t copies) {
    worlds_begin(c, dev,
                 grt_worlds_desc(.env = grt_env_find("uav_flight"), .settings = values,
                                 .setting_count = sizeof values / sizeof values[0],
                                 .copies = copies, .length = 90),
                 31);
    assert_true(c->sizes.agents == UAVS && c->sizes.obs == 6 + SENSORS && c->sizes.act == 2 &&
                c->sizes.choices == 0 && c->sizes.global == 7 * UAVS + 3 * OBSTACLES);
}

// The whole is all there is to know.
static struct square look(const struct worlds_case *c, uint32_t copy) {
    const float *whole = &c->global[(size_t)copy * c->sizes.global];
    struct square s;
    for (uint32_t a = 0; a < UAVS; a++, whole += 7) {
        s.uav[a] =
            (struct uav){(double)whole[0], (double)whole[1], (double)whole[2], (double)whole[3],
                         (double)whole[4], (double)whole[5], whole[6] != 0};
    }
    for (uint32_t i = 0; i < OBSTACLES; i++, whole += 3) {
        for (uint32_t k = 0; k < 3; k++) {
            s.obstacle[i][k] = (double)whole[k];
        }
    }
    return s;
}

static double clamp(float x) {
    return x > 1 ? 1 : x < -1 ? -1 : (double)x;
}

// How far a place is from where it may not be, below 0 when it may not.
static double room(const struct square *s, double x, double y, int uav) {
    double least = fmin(fmin(x, 1 - x), fmin(y, 1 - y));
    for (int i = 0; i < OBSTACLES; i++) {
        const double *o = s->obstacle[i];
        if (o[2] > 0) {
            least = fmin(least, hypot(x - o[0], y - o[1]) - o[2] - 0.02);
        }
    }
    for (int b = 0; b < UAVS; b++) {
        const struct uav *other = &s->uav[b];
        if (b != uav && !other->landed) {
            least = fmin(least, hypot(x - other->x, y - other->y) - 0.04);
        }
    }
    return least;
}

struct tally {
    uint32_t landed, hits, cut, unsure, steps;
};

// One step of a copy from the state before; false where a rounding may have decided otherwise.
static bool follow(const struct square *before, const struct square *after, const float *actions,
                   const float *rewards, const uint32_t *ends, bool cut, struct tally *tally) {
    double own[UAVS] = {0}, mean = 0;
    bool lands[UAVS] = {false}, hit[UAVS] = {false};
    struct uav want[UAVS];
    for (int a = 0; a < UAVS; a++) {
        const struct uav *u = &before->uav[a];
        want[a] = *u;
        if (u->landed) {
            continue;
        }
        double vx = u->vx + 0.1 * 1.5 * clamp(actions[2 * a]);
        double vy = u->vy + 0.1 * 1.5 * clamp(actions[2 * a + 1]);
        double speed = hypot(vx, vy), part = speed > 0.3 ? 0.3 / speed : 1;
        double x = u->x + 0.1 * vx * part, y = u->y + 0.1 * vy * part;
        double free_room = room(before, x, y, a);
        hit[a] = free_room < 0;
        want[a].x = hit[a] ? u->x : x;
        want[a].y = hit[a] ? u->y : y;
        want[a].vx = hit[a] ? 0 : vx * part;
        want[a].vy = hit[a] ? 0 : vy * part;
        double was = hypot(u->x - u->target_x, u->y - u->target_y);
        double is = hypot(want[a].x - u->target_x, want[a].y - u->target_y);
        if (fabs(free_room) < SURE || fabs(is - 0.06) < SURE) {
            tally->unsure++;
            return false;
        }
        lands[a] = is < 0.06;
        want[a].landed = lands[a];
        own[a] = 3 * (was - is) + (lands[a] ? 1 : 0) - (hit[a] ? 0.5 : 0) - 0.01;
        mean += own[a] / UAVS;
        tally->landed += lands[a];
        tally->hits += hit[a];
        tally->steps++;
    }
    bool all = true;
    for (int a = 0; a < UAVS; a++) {
        all = all && want[a].landed;
    }
    for (int a = 0; a < UAVS; a++) {
        const struct uav *got = &after->uav[a];
        bool idle = before->uav[a].landed;
        assert_int_equal(got->landed, want[a].landed);
        assert_true(fabs(got->x - want[a].x) < SURE && fabs(got->y - want[a].y) < SURE);
        assert_true(fabs(got->vx - want[a].vx) < SURE && fabs(got->vy - want[a].vy) < SURE);
        assert_true(fabs((double)rewards[a] - (idle ? 0 : own[a] + 0.25 * mean)) < 10 * SURE);
        assert_int_equal(ends[a], idle              ? GRT_ROW_IDLE
                                  : lands[a] || all ? GRT_ROW_LAST
                                  : cut             ? GRT_ROW_LAST | GRT_ROW_CUT
                                                    : 0);
    }
    return true;
}

// ---- what is seen ----

static bool blocked(const struct square *s, double x, double y, int uav) {
    bool any = x < 0 || x > 1 || y < 0 || y > 1;
    for (int i = 0; i < OBSTACLES; i++) {
        any = any || hypot(x - s->obstacle[i][0], y - s->obstacle[i][1]) < s->obstacle[i][2];
    }
    for (int b = 0; b < UAVS; b++) {
        const struct uav *o = &s->uav[b];
        any = any || (b != uav && !o->landed && hypot(x - o->x, y - o->y) < 0.02);
    }
    return any;
}

static void check_seen(const struct worlds_case *c, uint32_t copy, const struct square *s) {
    const double pace = 2e-4;
    for (int a = 0; a < UAVS; a++) {
        const float *obs = &c->obs[(size_t)(copy * UAVS + (uint32_t)a) * c->sizes.obs];
        const struct uav *u = &s->uav[a];
        const double want[6] = {2 * u->x - 1, 2 * u->y - 1,       u->vx / 0.3,
                                u->vy / 0.3,  u->target_x - u->x, u->target_y - u->y};
        for (int i = 0; i < 6; i++) {
            assert_true(fabs((double)obs[i] - want[i]) < SURE);
        }
        for (int i = 0; i < SENSORS; i++) {
            double turn = 2 * acos(-1) * i / SENSORS, far = 0;
            while (far < 0.25 && !blocked(s, u->x + far * cos(turn), u->y + far * sin(turn), a)) {
                far += pace;
            }
            double got = 0.25 * (double)obs[6 + i];
            // A walk may step over the rim of a circle; then what was found must be there.
            bool there = blocked(s, u->x + (got + pace / 8) * cos(turn),
                                 u->y + (got + pace / 8) * sin(turn), a);
            if (fabs(got - fmin(far, 0.25)) > 2 * pace && !(got < far && there)) {
                print_error("copy %u, UAV %d, sensor %d: %.6f and not %.6f\n", copy, a, i, got,
                            far);
                fail();
            }
        }
    }
}

static void check_start(const struct square *s) {
    for (int a = 0; a < UAVS; a++) {
        const struct uav *u = &s->uav[a];
        assert_true(!u->landed && u->vx == 0 && u->vy == 0);
        assert_true(room(s, u->x, u->y, a) > -SURE);
        assert_true(hypot(u->x - u->target_x, u->y - u->target_y) > 0.12 - SURE);
        // A radius from the edge, targets too, which lie twice the reach apart.
        const double numbers[] = {u->x, u->y, u->target_x, u->target_y};
        for (int i = 0; i < 4; i++) {
            assert_true(numbers[i] > 0.02 - SURE && numbers[i] < 0.98 + SURE);
        }
        for (int b = 0; b < a; b++) {
            const struct uav *o = &s->uav[b];
            assert_true(hypot(u->x - o->x, u->y - o->y) > 0.08 - SURE);
            assert_true(hypot(u->target_x - o->target_x, u->target_y - o->target_y) > 0.12 - SURE);
        }
        for (int i = 0; i < OBSTACLES; i++) {
            const double *o = s->obstacle[i];
            assert_true(o[2] == 0 ||
                        hypot(u->target_x - o[0], u->target_y - o[1]) > o[2] + 0.02 - SURE);
        }
    }
    for (int i = 0; i < OBSTACLES; i++) {
        const double *o = s->obstacle[i];
        for (int k = 0; k < 2 && o[2] > 0; k++) {
            assert_true(fmin(o[k], 1 - o[k]) > o[2] + 0.08 - SURE);
        }
        assert_true(o[2] == 0 || (o[2] > 0.03 - SURE && o[2] < 0.1 + SURE));
        for (int k = 0; k < i; k++) {
            const double *p = s->obstacle[i], *q = s->obstacle[k];
            assert_true(p[2] == 0 || q[2] == 0 ||
                        hypot(p[0] - q[0], p[1] - q[1]) > p[2] + q[2] + 0.08 - SURE);
        }
    }
}

// Towards the target, with some noise; now and then beyond the bounds of an action.
static void choose(struct worlds_case *c, uint64_t *random) {
    for (uint32_t row = 0; row < c->rows; row++) {
        for (uint32_t k = 0; k < 2; k++) {
            const float *obs = &c->obs[(size_t)row * c->sizes.obs];
            double noise = 2 * test_unit(random) - 1;
            float a = (float)(4 * (double)obs[4 + k] - (double)obs[2 + k] / 2 + noise);
            c->actions[2 * row + k] = test_as_u32(a);
        }
    }
}

static void flights_follow_the_rules(void **state) {
    (void)state;
    uint32_t copies = test.small ? 2 : 12, steps = test.small ? 20 : 250;
    struct worlds_case c;
    struct tally tally = {0};
    uint64_t random = 3;
    bool *ended = calloc(copies, sizeof *ended);
    uint32_t *time = calloc(copies, sizeof *time);
    struct square *before = calloc(copies, sizeof *before);
    begin(&c, test.dev, copies);
    for (uint32_t copy = 0; copy < copies; copy++) {
        before[copy] = look(&c, copy);
        check_start(&before[copy]);
        check_seen(&c, copy, &before[copy]);
    }
    for (uint32_t t = 0; t < steps; t++) {
        choose(&c, &random);
        worlds_step(&c);
        for (uint32_t copy = 0; copy < copies; copy++) {
            struct square after = look(&c, copy);
            const uint32_t *ends = &c.ends[copy * UAVS];
            if (ended[copy]) {
                check_start(&after);
                assert_int_equal(ends[0], GRT_ROW_IDLE);
                ended[copy] = false;
                time[copy] = 0;
            } else {
                bool cut = ++time[copy] == 90, all = true;
                float actions[UAVS * 2];
                memcpy(actions, &c.actions[copy * UAVS * 2], sizeof actions);
                follow(&before[copy], &after, actions, &c.rewards[copy * UAVS], ends, cut, &tally);
                for (int a = 0; a < UAVS; a++) {
                    all = all && after.uav[a].landed;
                }
                tally.cut += cut && !all;
                ended[copy] = all || cut;
            }
            if (t % 10 == 0) {
                check_seen(&c, copy, &after);
            }
            before[copy] = after;
        }
    }
    print_message(
        "# flight: %u steps, %u landed, %u collisions, %u episodes cut, %u steps unsure\n",
        tally.steps, tally.landed, tally.hits, tally.cut, tally.unsure);
    assert_true(test.small || (tally.landed > 50 && tally.hits > 50 && tally.cut > 0));
    assert_in_range(tally.unsure, 0, tally.steps / 100);
    free(ended);
    free(time);
    free(before);
    worlds_end(&c);
}

static void same_bits_as_ref(void **state) {
    (void)state;
    if (test.on_ref) {
        skip();
    }
    uint32_t steps = test.small ? 20 : 150;
    struct worlds_case a, b;
    uint64_t random = 11;
    begin(&a, test.dev, test.small ? 3 : 70);
    begin(&b, test.ref, a.copies);
    for (uint32_t t = 0; t < steps; t++) {
        test_same(test.dev, "flight obs", a.obs, b.obs, 4, (size_t)a.rows * a.sizes.obs);
        test_same(test.dev, "flight whole", a.global, b.global, 4,
                  (size_t)a.copies * a.sizes.global);
        choose(&b, &random);
        memcpy(a.actions, b.actions, (size_t)a.rows * 2 * 4);
        worlds_step(&a);
        worlds_step(&b);
        test_same(test.dev, "flight rewards", a.rewards, b.rewards, 4, a.rows);
        test_same(test.dev, "flight ends", a.ends, b.ends, 4, a.rows);
    }
    worlds_end(&a);
    worlds_end(&b);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(flights_follow_the_rules),
    TEST_CASE(same_bits_as_ref),
};
TEST_SUITE(flight, true, cases);
