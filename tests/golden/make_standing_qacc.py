#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes standing_qacc.inc: accelerations of 1,000 random states of the Ant, by MuJoCo.

The states are not stored: both sides make them from the same integers. A number is the top 24 bits of a 64-bit
linear congruential sequence over 2^24, scaled in double precision and rounded to float.

    python3 make_standing_qacc.py > standing_qacc.inc        (pip install mujoco)
"""
import os
import sys

import mujoco
import numpy as np

STATES = 1000
SIGNS = [1, -1, -1, 1]


class Draw:
    def __init__(self, seed):
        self.state = seed

    def __call__(self, least, most):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        unit = (self.state >> 40) / 2**24
        return float(np.float32(least + (most - least) * unit))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    model = mujoco.MjModel.from_xml_path(os.path.join(here, "ant.xml"))
    data = mujoco.MjData(model)
    draw = Draw(2026)
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// qacc of {STATES} states, by MuJoCo {mujoco.__version__} and make_standing_qacc.py; do not edit.")
    for _ in range(STATES):
        position = [draw(-1, 1), draw(-1, 1), draw(2, 3)]
        turn = np.array([draw(-1, 1) for _ in range(4)])
        turn = (turn / np.sqrt(np.dot(turn, turn))).astype(np.float32)
        hinges = []
        for sign in SIGNS:
            hinges += [draw(-0.6, 0.6), sign * draw(0.5, 1.3)]
        data.qpos[:] = np.concatenate([position, turn, hinges])
        data.qvel[:] = [draw(-3, 3) for _ in range(3)] + [draw(-5, 5) for _ in range(3)] + [
            draw(-10, 10) for _ in range(8)
        ]
        data.ctrl[:] = [draw(-1, 1) for _ in range(8)]
        mujoco.mj_forward(model, data)
        print("{" + ", ".join(f"{a:.8g}" for a in data.qacc) + "},")


if __name__ == "__main__":
    sys.exit(main())
