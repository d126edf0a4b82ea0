// SPDX-License-Identifier: Apache-2.0
// The Ant as thirteen solid shapes: where each is, how it moves, and what they come to together. No
// equation of
// motion: momentum and energy say whether somebody else's are right.
#include "oracle.h"

#include <math.h>

#define DENSITY 5.0
#define RADIUS 0.08

struct frame {
    double turn[3][3];  // columns: the frame's axes in the world
    double at[3];
    double velocity[3];  // of `at`
    double rate[3];      // angular, in the world
};

static void cross(const double a[3], const double b[3], double c[3]) {
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static void apply(double m[3][3], const double a[3], double b[3]) {
    for (int i = 0; i < 3; i++) {
        b[i] = m[i][0] * a[0] + m[i][1] * a[1] + m[i][2] * a[2];
    }
}

// Where a point fixed in the frame is, and how it moves.
static void point(const struct frame *f, const double local[3], double at[3], double velocity[3]) {
    struct frame g = *f;
    double arm[3];
    double swing[3];
    apply(g.turn, local, arm);
    cross(g.rate, arm, swing);
    for (int i = 0; i < 3; i++) {
        at[i] = g.at[i] + arm[i];
        velocity[i] = g.velocity[i] + swing[i];
    }
}

// The frame of a body on a hinge: at a point of its parent, turned about an axis (of length 1) of
// both.
static struct frame hinge(const struct frame *parent, const double at[3], const double axis[3],
                          double angle, double rate) {
    struct frame p = *parent;
    struct frame f;
    point(parent, at, f.at, f.velocity);
    double world_axis[3];
    apply(p.turn, axis, world_axis);
    for (int i = 0; i < 3; i++) {
        f.rate[i] = p.rate[i] + rate * world_axis[i];
    }
    for (int column = 0; column < 3; column++) {
        double e[3] = {column == 0, column == 1, column == 2};
        double side[3];
        double turned[3];
        cross(axis, e, side);
        for (int i = 0; i < 3; i++) {  // Rodrigues
            turned[i] = e[i] * cos(angle) + side[i] * sin(angle) +
                        axis[i] * axis[column] * (1 - cos(angle));
        }
        double image[3];
        apply(p.turn, turned, image);
        for (int i = 0; i < 3; i++) {
            f.turn[i][column] = image[i];
        }
    }
    return f;
}

// A ball or capsule of the frame, from its origin to `end`; a ball has length 0.
static void add_shape(struct oracle_ant_sums *sums, const struct frame *f, const double end[3],
                      double radius) {
    double length = sqrt(end[0] * end[0] + end[1] * end[1] + end[2] * end[2]);
    double rod = DENSITY * ORACLE_PI * radius * radius * length;
    double ball = DENSITY * 4 / 3 * ORACLE_PI * radius * radius * radius;
    double mass = rod + ball;
    double along = rod * radius * radius / 2 + ball * radius * radius * 2 / 5;
    double across =
        rod * (length * length / 12 + radius * radius / 4) +
        ball * (radius * radius * 2 / 5 + length * length / 4 + length * radius * 3 / 8);
    double middle[3] = {end[0] / 2, end[1] / 2, end[2] / 2};
    double at[3];
    double velocity[3];
    point(f, middle, at, velocity);
    double axis[3] = {0, 0, 0};
    if (length > 0) {
        struct frame g = *f;
        double unit[3] = {end[0] / length, end[1] / length, end[2] / length};
        apply(g.turn, unit, axis);
    }
    double spin = f->rate[0] * axis[0] + f->rate[1] * axis[1] + f->rate[2] * axis[2];
    double moment[3];
    cross(at, velocity, moment);
    for (int i = 0; i < 3; i++) {
        double own = across * f->rate[i] + (along - across) * spin * axis[i];
        sums->momentum[i] += mass * velocity[i];
        sums->angular[i] += mass * moment[i] + own;
        sums->center[i] += mass * at[i];
        sums->kinetic += 0.5 * (mass * velocity[i] * velocity[i] + own * f->rate[i]);
    }
    sums->mass += mass;
}

struct oracle_ant_sums oracle_ant_sums(const struct oracle_ant *s) {
    struct oracle_ant_sums sums = {0};
    double w = s->turn[0];
    double x = s->turn[1];
    double y = s->turn[2];
    double z = s->turn[3];
    struct frame torso = {
        .turn = {{w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
                 {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
                 {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z}},
    };
    apply(torso.turn, s->rate, torso.rate);
    for (int i = 0; i < 3; i++) {
        torso.at[i] = s->position[i];
        torso.velocity[i] = s->velocity[i];
    }
    add_shape(&sums, &torso, (double[3]){0, 0, 0}, 0.25);
    const double root = sqrt(0.5);
    static const double corner[4][2] = {{0.2, 0.2}, {-0.2, 0.2}, {-0.2, -0.2}, {0.2, -0.2}};
    const double ankle_axis[4][3] = {
        {-root, root, 0}, {root, root, 0}, {-root, root, 0}, {root, root, 0}};
    for (int leg = 0; leg < 4; leg++) {
        double end[3] = {corner[leg][0], corner[leg][1], 0};
        double tip[3] = {2 * end[0], 2 * end[1], 0};
        add_shape(&sums, &torso, end, RADIUS);
        struct frame thigh =
            hinge(&torso, end, (double[3]){0, 0, 1}, s->hinge[2 * leg], s->hinge_rate[2 * leg]);
        add_shape(&sums, &thigh, end, RADIUS);
        struct frame shin =
            hinge(&thigh, end, ankle_axis[leg], s->hinge[2 * leg + 1], s->hinge_rate[2 * leg + 1]);
        add_shape(&sums, &shin, tip, RADIUS);
    }
    double shift[3];
    for (int i = 0; i < 3; i++) {
        sums.center[i] /= sums.mass;
    }
    cross(sums.center, sums.momentum, shift);
    for (int i = 0; i < 3; i++) {
        sums.angular[i] -= shift[i];
    }
    for (int i = 0; i < 8; i++) {  // the armature: a rotor of 1 kg m^2 on each hinge
        sums.kinetic += 0.5 * s->hinge_rate[i] * s->hinge_rate[i];
    }
    return sums;
}
