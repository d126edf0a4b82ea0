# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Gymnasium where it is not installed: as much of it as gpurt.gym uses."""

import sys
import types

import numpy as np

registered = {}


class Box:
    def __init__(self, low, high, shape, dtype):
        self.low, self.high, self.shape, self.dtype = low, high, tuple(shape), dtype


class Discrete:
    def __init__(self, n):
        self.n = n


class Env:
    """Of one copy and of many: a seed begins the environment's own generator anew."""

    np_random = np.random.default_rng(0)

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.np_random = np.random.default_rng(seed)


def batch_space(space, count):
    return Box(space.low, space.high, (count, *space.shape), space.dtype)


def install():
    """Makes ``import gymnasium`` find it."""
    found = {}
    for name in ("gymnasium", "gymnasium.spaces", "gymnasium.vector", "gymnasium.vector.utils"):
        found[name] = sys.modules[name] = types.ModuleType(name)
    top, spaces, vector, utils = found.values()
    top.spaces, top.vector, vector.utils = spaces, vector, utils
    top.Env = vector.VectorEnv = Env
    top.register = lambda name, **words: registered.update({name: words})
    spaces.Box, spaces.Discrete = Box, Discrete
    utils.batch_space = batch_space
    vector.AutoresetMode = types.SimpleNamespace(NEXT_STEP="next step")
