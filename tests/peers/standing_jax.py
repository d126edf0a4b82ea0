#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The standing robot and its learner (augmented random search) in JAX: peer in benchmarks, second oracle in tests.

    standing_jax.py bench [--envs 1024 --dirs 64 --steps 1000 --chunk 64 --iterations 3]    one line of JSON
    standing_jax.py train [--iterations 50 ...]                                             returns and stand rates
    standing_jax.py golden > tests/golden/standing_steps.inc                                50 steps in double precision

The equations are those at the head of shaders/env/standing.k, written from vectors, cross products and
Jacobians along the Ant's own axes instead of being worked out for the leg's. One environment is a pytree of
scalars and of arrays over the four legs: vmap over environments and directions, lax.scan over the episode,
one jit for an iteration. Vectors are tuples and the six equations of the torso are solved by unrolled
elimination, so that XLA sees elementwise work and can fuse it.
"""
import argparse
import json
import math
import os
import statistics
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SUBSTEPS, DT = 5, 0.01
DENSITY, LIMB, BALL = 5.0, 0.08, 0.25
THIGH, SHIN = 0.2 * math.sqrt(2), 0.4 * math.sqrt(2)
GEAR, ARMATURE, DAMPING, GRAVITY = 150.0, 1.0, 1.0, 9.81
HIP, ANKLE_LEAST, ANKLE_MOST = math.radians(30), math.radians(30), math.radians(70)
LIMIT_K, LIMIT_C = 3000.0, 110.0
GROUND_K, GROUND_C, SLIP, IMPACT_MASS = 2500.0, 50.0, 0.01, 0.23
OBS, ACT = 30, 8


def capsule(length, radius):
    """Mass, inertia along and across the axis."""
    rod = DENSITY * math.pi * radius**2 * length
    ball = DENSITY * 4 / 3 * math.pi * radius**3
    along = rod * radius**2 / 2 + ball * radius**2 * 2 / 5
    across = rod * (length**2 / 12 + radius**2 / 4) + ball * (
        radius**2 * 2 / 5 + length**2 / 4 + length * radius * 3 / 8
    )
    return rod + ball, along, across


# ---- vectors ----


def add(a, b):
    return tuple(x + y for x, y in zip(a, b))


def sub(a, b):
    return tuple(x - y for x, y in zip(a, b))


def scale(s, a):
    return tuple(s * x for x in a)


def mad(a, s, b):
    return tuple(x + s * y for x, y in zip(a, b))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def about(axis, angle, a):
    """The vector turned about an axis (Rodrigues)."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return mad(mad(scale(c, a), s, cross(axis, a)), (1 - c) * dot(axis, a), axis)


def axes_of(q):
    """Rows of the rotation from the body's axes to the world's."""
    w, x, y, z = q
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def to_world(r, a):
    return tuple(dot(row, a) for row in r)


def to_body(r, a):
    return tuple(r[0][i] * a[0] + r[1][i] * a[1] + r[2][i] * a[2] for i in range(3))


# ---- the equations ----


class Base:
    """Six equations for the torso's angular and linear acceleration: matrix and force, lower triangle."""

    def __init__(self):
        self.m = [[0.0] * (i + 1) for i in range(6)]
        self.f = [0.0] * 6

    def add_point(self, k, p):
        """k: 3x3 symmetric, resisting the acceleration of the point p."""
        pk = [cross(p, [k[i][j] for i in range(3)]) for j in range(3)]  # columns of [p]x k
        for i in range(3):
            turned = cross(p, [pk[j][i] for j in range(3)])
            for j in range(i + 1):
                self.m[i][j] += turned[j]
                self.m[3 + i][3 + j] += k[i][j]
            for j in range(3):
                self.m[3 + i][j] += pk[i][j]

    def add_inertia(self, along, across, axis):
        for i in range(3):
            self.m[i][i] += across
            for j in range(i + 1):
                self.m[i][j] += (along - across) * axis[i] * axis[j]

    def add_force(self, torque, force):
        for i in range(3):
            self.f[i] += torque[i]
            self.f[3 + i] += force[i]

    def remove(self, f, inertia, r):
        """Less an unknown with terms f in these equations."""
        for i in range(6):
            y = f[i] / inertia
            self.f[i] -= y * r
            for j in range(i + 1):
                self.m[i][j] -= y * f[j]

    def solve(self):
        m, f = [list(row) for row in self.m], list(self.f)
        for j in range(6):
            inverse = 1 / m[j][j]
            for i in range(j + 1, 6):
                factor = m[i][j] * inverse
                for k in range(j + 1, i + 1):
                    m[i][k] -= factor * m[k][j]
                f[i] -= factor * f[j]
        x = [None] * 6
        for j in reversed(range(6)):
            x[j] = (f[j] - sum(m[i][j] * x[i] for i in range(j + 1, 6))) / m[j][j]
        return x


def diagonal(value):
    return [[value if i == j else 0.0 for j in range(3)] for i in range(3)]


def ground(depth, v, up, friction):
    """Force, and the 3x3 matrix that resists the point's acceleration."""
    slope = GROUND_C + DT * GROUND_K
    impact = slope * IMPACT_MASS / (IMPACT_MASS + DT * slope)
    rising = dot(v, up)
    touches = (depth > 0) & (GROUND_K * depth - slope * rising > 0)
    load = jnp.maximum(GROUND_K * depth - impact * rising, 0)
    sliding = jnp.maximum(dot(v, v) - rising * rising, 0)
    drag = jnp.where(touches, friction * load / jnp.sqrt(sliding + SLIP**2), 0)
    slope = jnp.where(touches, slope, 0)
    spring = jnp.where(touches, GROUND_K * depth, 0)
    along_up = spring - (slope - drag) * rising
    force = mad(scale(along_up, up), -drag, v)
    matrix = [
        [DT * (slope - drag) * up[i] * up[j] + (DT * drag if i == j else 0.0) for j in range(3)]
        for i in range(3)
    ]
    return force, matrix


def hinge_stop(angle, rate, least, most):
    over = angle - jnp.clip(angle, least, most)
    slope = DAMPING + jnp.where(over != 0, LIMIT_C + DT * LIMIT_K, 0)
    return -LIMIT_K * over - slope * rate, slope


THIGH_SHAPE = capsule(THIGH, LIMB)
SHIN_SHAPE = capsule(SHIN, LIMB)
BALL_MASS = DENSITY * 4 / 3 * math.pi * BALL**3
ROOT = math.sqrt(0.5)
# Of the four legs: direction, axis of the ankle, sign of the ankle's range.
DIRECTION = tuple(np.array(a) for a in ((ROOT, -ROOT, -ROOT, ROOT), (ROOT, ROOT, -ROOT, -ROOT), (0.0,) * 4))
ANKLE_AXIS = tuple(np.array(a) for a in ((-ROOT, ROOT, -ROOT, ROOT), (ROOT,) * 4, (0.0,) * 4))
SIGN = np.array((1.0, -1.0, -1.0, 1.0))


def add_legs(base, s, t1, t2, w, v, up, gravity, calm, stiff):
    """Adds all legs, to the stiff body too; returns what their own accelerations are, given the torso's."""
    hip, ankle, d1, d2 = s["hip"], s["ankle"], s["hip_rate"], s["ankle_rate"]
    height, friction = s["position"][2], s["friction"]
    torso, base = base, Base()
    z = (0.0, 0.0, 1.0)
    at_hip = scale(THIGH, DIRECTION)
    u = about(z, hip, DIRECTION)
    n = about(z, hip, ANKLE_AXIS)
    e = about(n, ankle, u)
    at_ankle = mad(at_hip, THIGH, u)
    foot = mad(at_ankle, SHIN, e)
    # Rates, calmed, and accelerations that they alone make.
    slow, slow1, slow2 = scale(calm, w), calm * d1, calm * d2
    w1 = mad(slow, slow1, z)
    turn1 = scale(slow1, cross(slow, z))
    w2 = mad(w1, slow2, n)
    turn2 = mad(turn1, slow2, cross(w1, n))

    def swings(rate, turn, arm):
        return add(cross(turn, arm), cross(rate, cross(rate, arm)))

    a_hip = cross(slow, cross(slow, at_hip))
    a_ankle = add(a_hip, swings(w1, turn1, sub(at_ankle, at_hip)))
    f1, f2 = [0.0] * 6, [0.0] * 6
    moment = (0.0, 0.0, 0.0)
    stop1, slope1 = hinge_stop(hip, d1, -HIP, HIP)
    stop2, slope2 = hinge_stop(SIGN * ankle, SIGN * d2, ANKLE_LEAST, ANKLE_MOST)
    stop2 = SIGN * stop2
    h11, h12, h22 = ARMATURE + DT * slope1, 0.0, ARMATURE + DT * slope2
    r1, r2 = t1 + stop1, t2 + stop2
    for shape, start, axis, length, rate, turn, a_start, moved_by_ankle in (
        (THIGH_SHAPE, at_hip, u, THIGH, w1, turn1, a_hip, False),
        (SHIN_SHAPE, at_ankle, e, SHIN, w2, turn2, a_ankle, True),
    ):
        mass, along, across = shape
        arm = scale(length / 2, axis)
        c = add(start, arm)
        moment = mad(moment, mass, c)

        def inertia(a, axis=axis, along=along, across=across):
            return mad(scale(across, a), (along - across) * dot(a, axis), axis)

        base.add_point(diagonal(mass), c)
        base.add_inertia(along, across, axis)
        force = scale(mass, sub(gravity, add(a_start, swings(rate, turn, arm))))
        torque = scale(-1.0, add(inertia(turn), cross(rate, inertia(rate))))
        base.add_force(add(torque, cross(c, force)), force)
        j1, i1 = cross(z, sub(c, at_hip)), inertia(z)
        r1 = r1 + dot(z, torque) + dot(j1, force)
        h11 = h11 + dot(z, i1) + mass * dot(j1, j1)
        add_to(f1, add(i1, scale(mass, cross(c, j1))), scale(mass, j1))
        if moved_by_ankle:
            j2, i2 = cross(n, arm), inertia(n)
            r2 = r2 + dot(n, torque) + dot(j2, force)
            h12 = h12 + dot(z, i2) + mass * dot(j1, j2)
            h22 = h22 + dot(n, i2) + mass * dot(j2, j2)
            add_to(f2, add(i2, scale(mass, cross(c, j2))), scale(mass, j2))
    own_inertia = [base.m[i][j] for i in range(3) for j in range(i + 1)]
    for center, moved_by_ankle in ((at_ankle, False), (foot, True)):
        p = mad(center, -LIMB, up)
        j1, j2 = cross(z, sub(p, at_hip)), cross(n, sub(p, at_ankle))
        moves = mad(add(v, cross(w, p)), d1, j1)
        if moved_by_ankle:
            moves = mad(moves, d2, j2)
        force, k = ground(LIMB - height - dot(center, up), moves, up, friction)
        base.add_point(k, p)
        base.add_force(cross(p, force), force)
        k1 = tuple(dot(row, j1) for row in k)
        r1 = r1 + dot(j1, force)
        h11 = h11 + dot(j1, k1)
        add_to(f1, cross(p, k1), k1)
        if moved_by_ankle:
            k2 = tuple(dot(row, j2) for row in k)
            r2 = r2 + dot(j2, force)
            h12 = h12 + dot(j1, k2)
            h22 = h22 + dot(j2, k2)
            add_to(f2, cross(p, k2), k2)
    couple = h12 / h22
    base.remove(f2, h22, r2)
    g1 = [a - couple * b for a, b in zip(f1, f2)]
    own = h11 - couple * h12
    s1 = r1 - couple * r2
    base.remove(g1, own, s1)
    # One sum over the legs.
    places = [(i, j) for i in range(6) for j in range(i + 1)]
    terms = [base.m[i][j] for i, j in places] + base.f + own_inertia + list(moment)
    sums = jnp.stack([jnp.broadcast_to(t, SIGN.shape) for t in terms]).sum(1)
    for k, (i, j) in enumerate(places):
        torso.m[i][j] += sums[k]
    for i in range(6):
        torso.f[i] += sums[len(places) + i]
        stiff.inertia[i] += sums[len(places) + 6 + i]
    stiff.moment = tuple(sums[len(places) + 12 + i] for i in range(3))

    def accelerations(x):
        a1 = (s1 - sum(a * b for a, b in zip(g1, x))) / own
        a2 = (r2 - sum(a * b for a, b in zip(f2, x))) / h22 - couple * a1
        return a1, a2

    return accelerations


def add_to(f, angular, linear):
    for i in range(3):
        f[i] = f[i] + angular[i]
        f[3 + i] = f[3 + i] + linear[i]


class Stiff:
    """The robot as one stiff body, about the torso's middle: inertia as a lower triangle, first moment, mass."""

    def __init__(self, m, mass):
        self.inertia = [m[i][j] for i in range(3) for j in range(i + 1)]
        self.moment = (0.0, 0.0, 0.0)
        self.mass = mass

    def times(self, a):
        xx, yx, yy, zx, zy, zz = self.inertia
        return (xx * a[0] + yx * a[1] + zx * a[2], yx * a[0] + yy * a[1] + zy * a[2], zx * a[0] + zy * a[1] + zz * a[2])


def spin(base, stiff, w, calm):
    """The stiff body's gyroscopic forces become a turn over the whole step (shaders/env/standing_body.k)."""
    c = scale(1 / stiff.mass, stiff.moment)
    p = cross(w, stiff.moment)
    h = sub(stiff.times(w), cross(c, p))
    gyro = cross(h, w)
    lead = DT * (1 - 0.45 * calm**2) * 2 / (base.m[0][0] + base.m[1][1])
    u = (w[0] + lead * gyro[0], w[1] + lead * gyro[1], w[2])
    across = cross(h, u)
    turned = scale(1 / (1 + (0.5 * DT) ** 2 * dot(u, u)), mad(across, 0.5 * DT, cross(across, u)))
    square = DT**2 * dot(w, w)
    sine = 1 - square / 6 + square**2 / 120
    cosine = 0.5 - square / 24 + square**2 / 720
    force = mad(scale(calm**2 - sine, cross(w, p)), -DT * dot(w, w) * cosine, p)
    base.add_force(add(mad(turned, -(calm**2), gyro), cross(c, force)), force)


def accelerate(s, torques, push, gravity=(0.0, 0.0, -GRAVITY)):
    """Accelerations of the torso (along the world's axes, along its own) and of the eight hinges."""
    r = axes_of(s["turn"])
    up, w, v = r[2], s["rate"], to_body(r, s["velocity"])
    g = to_body(r, gravity)
    calm = 1 / (1 + 0.5 * DT**2 * dot(w, w))
    height, friction = s["position"][2], s["friction"]
    base = Base()
    mass = s["torso"] * BALL_MASS
    base.add_point(diagonal(mass), (0.0, 0.0, 0.0))
    inertia = s["torso"] * 0.4 * BALL_MASS * BALL**2
    base.add_inertia(inertia, inertia, (0.0, 0.0, 1.0))
    base.add_force((0.0, 0.0, 0.0), add(scale(mass, g), to_body(r, push)))
    for direction in zip(*DIRECTION):  # the capsules to the hips are part of the torso
        m, along, across = (s["torso"] * x for x in THIGH_SHAPE)
        c = scale(THIGH / 2, direction)
        base.add_point(diagonal(m), c)
        base.add_inertia(along, across, direction)
        force = scale(m, sub(g, scale(calm**2, cross(w, cross(w, c)))))
        turned = scale(calm**2 * (along - across) * dot(w, direction), cross(w, direction))
        base.add_force(sub(cross(c, force), turned), force)
    stiff = Stiff(base.m, s["torso"] * (BALL_MASS + 4 * THIGH_SHAPE[0]) + 4 * (THIGH_SHAPE[0] + SHIN_SHAPE[0]))
    p = scale(-BALL, up)
    force, k = ground(BALL - height, add(v, cross(w, p)), up, friction)
    base.add_point(k, p)
    base.add_force(cross(p, force), force)
    hinges = add_legs(base, s, *torques, w, v, up, g, calm, stiff)
    spin(base, stiff, w, calm)
    x = base.solve()
    return to_world(r, x[3:]), tuple(x[:3]), hinges(x)


def substep(s, torques, push):
    linear, angular, (hip, ankle) = accelerate(s, torques, push)
    s = dict(s)
    s["velocity"] = mad(s["velocity"], DT, linear)
    s["rate"] = mad(s["rate"], DT, angular)
    s["hip_rate"] = s["hip_rate"] + DT * hip
    s["ankle_rate"] = s["ankle_rate"] + DT * ankle
    s["position"] = mad(s["position"], DT, s["velocity"])
    s["hip"] = s["hip"] + DT * s["hip_rate"]
    s["ankle"] = s["ankle"] + DT * s["ankle_rate"]
    w, x, y, z = s["turn"]
    a, b, c = scale(0.5 * DT, s["rate"])
    u = a * a + b * b + c * c
    cosine = 1 - u / 2 + u * u / 24 - u**3 / 720
    sinc = 1 - u / 6 + u * u / 120
    a, b, c = a * sinc, b * sinc, c * sinc
    turn = (
        w * cosine - x * a - y * b - z * c,
        x * cosine + w * a + y * c - z * b,
        y * cosine + w * b + z * a - x * c,
        z * cosine + w * c + x * b - y * a,
    )
    s["turn"] = scale(1.5 - 0.5 * dot(turn, turn), turn)
    return s


# ---- the environment ----


def step(s, action):
    """The action is [8], in the order of the hinges: hip and ankle of each leg."""
    action = jnp.clip(action, -1, 1)
    zero = jnp.zeros_like(s["friction"])

    def one(i, s):
        late = i < s["delay"]
        torques = GEAR * s["motor"] * jnp.where(late, s["last"], action)
        return substep(s, (torques[0::2], torques[1::2]), (zero, zero, zero))

    s = jax.lax.fori_loop(0, SUBSTEPS, one, s)
    s["last"] = action
    return s


def body(s):
    hinges = jnp.stack([s["hip"], s["ankle"]], 1).ravel()
    rates = jnp.stack([s["hip_rate"], s["ankle_rate"]], 1).ravel()
    return jnp.concatenate([jnp.stack(s["position"] + s["turn"]), hinges, jnp.stack(s["velocity"] + s["rate"]), rates])


def observe(s):
    """The body, with what is missing of the command in place of x and y, and the command."""
    seen = jnp.stack([s["height"] - s["position"][2], -s["velocity"][0]])
    return jnp.concatenate([seen, body(s)[2:], s["height"][None]])


def tall(s):
    _, x, y, _ = s["turn"]
    return 1 - 2 * (x * x + y * y)


def reward(s):
    off = (s["position"][2] - s["height"]) * 20
    bend = SIGN * s["ankle"]
    cost = (
        1 + off * off + 0.2 * dot(s["velocity"], s["velocity"]) + 0.05 * dot(s["rate"], s["rate"])
        + 0.01 * jnp.sum(s["hip_rate"] ** 2 + s["ankle_rate"] ** 2) + 0.1 * jnp.sum(s["last"] ** 2)
        + 3 * jnp.sum(s["hip"] ** 2) + 5 * jnp.sum((bend - bend.mean()) ** 2)
    )  # fmt: skip
    return jnp.maximum(tall(s), 0) / cost


def done(s):
    return ~((tall(s) > 0.3) & (s["position"][2] > BALL))


def good(s):
    bend = SIGN * s["ankle"]
    free = (jnp.abs(s["hip"]) < HIP - 0.05) & (bend > ANKLE_LEAST + 0.05) & (bend < ANKLE_MOST - 0.05)
    return (tall(s) > 0.95) & (jnp.abs(s["height"] - s["position"][2]) < 0.03) & free.all()


def reset(key):
    """A random crouch."""
    pose, hips, ankles, command = jax.random.split(key, 4)
    p = jax.random.uniform(pose, (4,), minval=-1.0)
    hips = 0.3 * jax.random.uniform(hips, (4,), minval=-1.0)
    ankles = 0.02 * jax.random.uniform(ankles, (4,), minval=-1.0)
    bend = 0.56 + 0.03 * p[0]
    unit = 1 / jnp.sqrt(1 + (0.02 * p[1]) ** 2 + (0.02 * p[2]) ** 2 + (0.1 * p[3]) ** 2)
    zero = jnp.zeros_like(bend)
    one = jnp.ones_like(bend)
    return {
        "position": (zero, zero, LIMB + SHIN * jnp.sin(bend + 0.02) + 0.02),
        "turn": (unit, 0.02 * p[1] * unit, 0.02 * p[2] * unit, 0.1 * p[3] * unit),
        "hip": hips,
        "ankle": SIGN * bend + ankles,
        "velocity": (zero,) * 3,
        "rate": (zero,) * 3,
        "hip_rate": jnp.zeros_like(hips),
        "ankle_rate": jnp.zeros_like(hips),
        "last": jnp.zeros(ACT, hips.dtype),
        "friction": one,
        "torso": one,
        "motor": one,
        "delay": zero,
        "height": jax.random.uniform(command, (), minval=0.42, maxval=0.56),
    }


# ---- the learner ----


def episode(theta, norm, key, steps):
    """Return, good steps, falls, and sums of observations for the norm, of one policy in one environment."""
    mean, inverse = norm

    def one(carry, _):
        s, going, total, stood, sums = carry
        o = observe(s)
        x = jnp.append((o - mean) * inverse, 1.0)
        s2 = step(s, x @ theta)
        s = jax.tree.map(lambda a, b: jnp.where(going, b, a), s, s2)
        alive = going.astype(o.dtype)
        total += alive * reward(s)
        stood += alive * good(s)
        sums = (sums[0] + alive, sums[1] + alive * o, sums[2] + alive * o * o)
        return (s, going & ~done(s), total, stood, sums), None

    s = reset(key)
    zero = jnp.zeros_like(s["friction"])
    begin = (s, jnp.array(True), zero, zero, (zero, jnp.zeros(OBS), jnp.zeros(OBS)))
    (_, going, total, stood, sums), _ = jax.lax.scan(one, begin, None, length=steps)
    return total, stood, ~going, sums


@partial(jax.jit, static_argnames=("envs", "dirs", "steps", "chunk", "top"))
def iterate(theta, stats, key, envs, dirs, steps, chunk, top, step_size, sigma):
    """One iteration of augmented random search; directions run in chunks to bound memory."""
    count, first, second = stats
    mean = first / count
    norm = (mean, 1 / jnp.sqrt(jnp.maximum(second / count - mean * mean, 1e-4)))
    noise_key, env_key = jax.random.split(key)
    noise = jax.random.normal(noise_key, (dirs, OBS + 1, ACT))
    keys = jax.random.split(env_key, envs)

    def sides(delta):
        both = jnp.stack([theta + sigma * delta, theta - sigma * delta])
        run = jax.vmap(jax.vmap(episode, (None, None, 0, None)), (0, None, None, None))
        total, stood, fell, sums = run(both, norm, keys, steps)
        return total.mean(1), stood.mean() / steps, fell.mean(), jax.tree.map(lambda a: a.sum((0, 1)), sums)

    chunks = noise.reshape(dirs // chunk, chunk, OBS + 1, ACT)
    returns, stood, fell, sums = jax.lax.map(jax.vmap(sides), chunks)
    returns = returns.reshape(dirs, 2)
    best = jax.lax.top_k(returns.max(1), top)[1]
    used = returns[best]
    update = jnp.einsum("k,kij->ij", used[:, 0] - used[:, 1], noise[best])
    theta = theta + step_size / (top * used.std()) * update
    stats = jax.tree.map(lambda a, b: a + b.sum((0, 1)), stats, sums)
    return theta, stats, (returns.mean(), returns.max(), stood.mean(), fell.mean())


def start(samples):
    """No torque; observations of mean 0 and deviation 1, as if so many had shown that (runtime/rl/es.c)."""
    return jnp.zeros((OBS + 1, ACT)), (jnp.full((), samples), jnp.zeros(OBS), jnp.full(OBS, samples))


def run(args, report):
    """Seconds of compiling, and of each iteration. What was compiled is called as it is: other types would be an error."""
    theta, stats = start(4.0 * 2 * args.dirs * args.envs * args.steps)
    chunk = min(args.chunk, args.dirs)
    top = args.top or max(1, args.dirs // 2)
    rates = (args.step_size, args.noise_std)
    began = time.perf_counter()
    compiled = iterate.lower(
        theta, stats, jax.random.key(0), args.envs, args.dirs, args.steps, chunk, top, *rates
    ).compile()
    compiling = time.perf_counter() - began
    times = []
    for i in range(args.iterations):
        key = jax.random.key(args.seed + i)
        began = time.perf_counter()
        theta, stats, numbers = compiled(theta, stats, key, *rates)
        numbers = [float(x) for x in numbers]
        times.append(time.perf_counter() - began)
        report(i, numbers, times[-1])
    return compiling, times


def bench(args):
    args.iterations += 1  # the first warms up
    compiling, times = run(args, lambda *_: None)
    work = 2 * args.dirs * args.envs * args.steps
    median = statistics.median(times[1:])
    device = jax.devices()[0]
    print(json.dumps({
        "peer": "jax", "version": jax.__version__, "device": device.device_kind, "platform": device.platform,
        "envs": args.envs, "dirs": args.dirs, "steps": args.steps, "chunk": min(args.chunk, args.dirs),
        "compile_s": round(compiling, 2), "iterations_s": [round(t, 5) for t in times], "iteration_s": round(median, 5),
        "steps_per_s": round(work / median), "substeps_per_s": round(SUBSTEPS * work / median),
    }))  # fmt: skip


def train(args):
    print("iteration  mean return  best return   good   falls    steps/s")
    work = 2 * args.dirs * args.envs * args.steps

    def report(i, n, seconds):
        print(f"{i + 1:9d} {n[0]:12.2f} {n[1]:12.2f} {n[2]:6.3f} {n[3]:7.3f} {work / seconds:10.0f}", flush=True)

    run(args, report)


# ---- known answers ----


def golden(_):
    """Robots for 50 steps under a policy that holds the hinges: tests/unit/rl/suite_standingenv.c makes the same starts."""
    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
    from standing_start import policy, starts  # noqa: PLC0415

    theta = jnp.array(policy())

    def one(s, _):
        s = step(s, jnp.append(body(s), 1.0) @ theta)
        return s, body(s)

    batch = jax.tree.map(lambda *a: jnp.stack([jnp.asarray(x) for x in a]), *starts())
    seen = jax.jit(jax.vmap(lambda s: jax.lax.scan(one, s, None, length=50)[1]))(batch)
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// {len(seen)} robots after 10, 25 and 50 steps, by JAX {jax.__version__} in double precision and")
    print("// tests/peers/standing_jax.py; do not edit.")
    for robot in seen:
        for steps in (10, 25, 50):
            print("{" + ", ".join(f"{float(x):.9g}" for x in robot[steps - 1]) + "},")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=("bench", "train", "golden"))
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--dirs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--chunk", type=int, default=64, help="directions at once; must divide --dirs")
    parser.add_argument("--top", type=int, default=0, help="best directions used (default: half)")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--step-size", type=float, default=0.02)
    parser.add_argument("--noise-std", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    {"bench": bench, "train": train, "golden": golden}[args.verb](args)


if __name__ == "__main__":
    main()
