#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes gym_pendulum.inc and gym_cartpole.inc: single steps from given states, by Gymnasium.

    python3 make_gym.py             (pip install gymnasium numpy; writes beside itself)

A row of the pendulum is angle, rate, action in [-1, 1], reward, then angle and rate after the step. A row of
the cart-pole is the state, 1 for a push to the right, reward, the state after the step, and 1 where the episode ends.
"""
import os
import random

import gymnasium
import numpy as np

ROWS = 40


def write(name, rows):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, name), "w", encoding="ascii") as out:
        out.write("// SPDX-License-Identifier: Apache-2.0\n")
        out.write(f"// Single steps by Gymnasium {gymnasium.__version__} and make_gym.py; do not edit.\n")
        for row in rows:
            out.write("{" + ", ".join(f"{float(v)!r}" for v in row) + "},\n")


def pendulum(draw):
    env = gymnasium.make("Pendulum-v1").unwrapped
    for _ in range(ROWS):
        angle, rate, action = draw.uniform(-3.14, 3.14), draw.uniform(-8, 8), draw.uniform(-1, 1)
        env.reset()
        env.state = np.array([angle, rate])
        # Twice the action is what the motor gives. A float64 array: a step in the precision of the state.
        _, reward, _, _, _ = env.step(np.array([2 * action]))
        yield [angle, rate, action, reward, *env.state]


def cartpole(draw):
    env = gymnasium.make("CartPole-v1").unwrapped
    for _ in range(ROWS):
        state = [draw.uniform(-2.6, 2.6), draw.uniform(-3, 3), draw.uniform(-0.24, 0.24), draw.uniform(-3, 3)]
        right = draw.randrange(2)
        env.reset()
        env.state = tuple(state)
        _, reward, done, _, _ = env.step(right)
        yield [*state, right, reward, *env.state, done]


def main():
    draw = random.Random(2026)
    write("gym_pendulum.inc", pendulum(draw))
    write("gym_cartpole.inc", cartpole(draw))


main()
