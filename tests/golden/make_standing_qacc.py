#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes standing_qacc.inc: accelerations of 1,000 random states of the Ant, by MuJoCo.

    python3 make_standing_qacc.py > standing_qacc.inc        (pip install mujoco)
"""
import os

import mujoco
from standing_start import Draw, anywhere

STATES = 1000


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    model = mujoco.MjModel.from_xml_path(os.path.join(here, "ant.xml"))
    data = mujoco.MjData(model)
    draw = Draw(2026)
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// qacc of {STATES} states, by MuJoCo {mujoco.__version__} and make_standing_qacc.py; do not edit.")
    for _ in range(STATES):
        data.qpos[:], data.qvel[:], data.ctrl[:] = anywhere(draw)
        mujoco.mj_forward(model, data)
        print("{" + ", ".join(f"{a:.8g}" for a in data.qacc) + "},")


if __name__ == "__main__":
    main()
