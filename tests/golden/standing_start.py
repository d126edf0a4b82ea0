# SPDX-License-Identifier: Apache-2.0
"""Starts and policies that known answers are made from: the tests make the same numbers in C (tests/kits/standing_kit.c).

A number is the top 24 bits of a 64-bit linear congruential sequence over 2^24, scaled in double precision and
rounded to float, so that both sides have the same bits and files hold answers alone.
"""

import numpy as np

SIGNS = (1, -1, -1, 1)  # which way an ankle's range counts
ROBOTS = 8


class Draw:
    def __init__(self, seed):
        self.state = seed

    def __call__(self, least, most):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        unit = (self.state >> 40) / 2**24
        return float(np.float32(least + (most - least) * unit))


def anywhere(draw):
    """A robot off the ground, turned any way, moving and driven: qpos, qvel, actions."""
    position = [draw(-1, 1), draw(-1, 1), draw(2, 3)]
    turn = np.array([draw(-1, 1) for _ in range(4)])
    turn = list((turn / np.sqrt(np.dot(turn, turn))).astype(np.float32).astype(float))
    hinges = []
    for sign in SIGNS:
        hinges += [draw(-0.6, 0.6), sign * draw(0.5, 1.3)]
    rates = [draw(-3, 3) for _ in range(3)] + [draw(-5, 5) for _ in range(3)] + [
        draw(-10, 10) for _ in range(8)
    ]
    return position + turn + hinges, rates, [draw(-1, 1) for _ in range(8)]


def starts():
    """Robots near the ground, each with its own friction, torso, motors and latency."""
    draw = Draw(50)
    for robot in range(ROBOTS):
        hinges = []
        for sign in SIGNS:
            hinges += [draw(-0.2, 0.2), sign * draw(0.5, 0.8)]
        yield {
            "position": (draw(-1, 1), draw(-1, 1), draw(0.45, 0.6)),
            "turn": (1.0, 0.0, 0.0, 0.0),
            "hip": np.array(hinges[0::2]),
            "ankle": np.array(hinges[1::2]),
            "velocity": tuple(draw(-0.5, 0.5) for _ in range(3)),
            "rate": tuple(draw(-0.5, 0.5) for _ in range(3)),
            "hip_rate": np.array([draw(-1, 1) for _ in range(4)]),
            "ankle_rate": np.array([draw(-1, 1) for _ in range(4)]),
            "last": np.zeros(8),
            "friction": draw(0.5, 1.1),
            "torso": draw(0.7, 1.3),
            "motor": draw(0.7, 1.3),
            "delay": float(robot % 4),
        }


def policy():
    """[29 observations, bias][8 actions]: holds hips at 0 and ankles at 1 rad, and minds the torso's turn and rate."""
    theta = np.zeros((30, 8))
    for hinge in range(8):
        theta[7 + hinge, hinge] = -0.3
        theta[21 + hinge, hinge] = -0.05
        theta[29, hinge] = 0.3 * SIGNS[hinge // 2] if hinge % 2 == 1 else 0.0
        for o in (4, 5, 18, 19):
            theta[o, hinge] = 0.01 * (hinge - 3.5) * (1 if o % 2 else -1)
    return theta.astype(np.float32).astype(float)
