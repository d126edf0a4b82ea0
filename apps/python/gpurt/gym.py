# SPDX-License-Identifier: Apache-2.0
"""Environments for Gymnasium. With this module imported,
``gymnasium.make_vec("gpurt/cartpole", num_envs=64)`` steps all
copies on the device at once, ``gymnasium.make("gpurt/cartpole")`` one of them.

An environment from a file is ``VectorEnv("./slider.k", num_envs=64)``. Those of several agents,
such as ``uav``, have no Gymnasium form: :class:`gpurt.Worlds` steps them.
"""

from typing import Any, Dict, Optional, Tuple, Union

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from . import _library as c
from ._device import Device
from ._worlds import CUT, LAST, Worlds


def _spaces(worlds: Worlds):
    if worlds.agents != 1:
        raise c.ConfigError(
            f"environment '{worlds.name}' has {worlds.agents} agents: gpurt.Worlds steps them, and "
            "Gymnasium's environments have one"
        )
    seen = spaces.Box(-np.inf, np.inf, worlds.obs.shape[1:], np.float32)
    act = (
        spaces.Discrete(worlds.choices)
        if worlds.choices
        else spaces.Box(-1, 1, worlds.actions.shape[1:], np.float32)
    )
    return seen, act


def _begin(
    env, worlds: Worlds, seed: Optional[int], options: Optional[Dict[str, Any]]
) -> np.ndarray:
    """Without a seed the next of the environment's own generator is taken."""
    # Seeds of Gymnasium may have more bits than those of gpurt.
    worlds.reset(int(env.np_random.integers(2**32)) if seed is None else int(seed) & 0xFFFFFFFF)
    if options and "states" in options:
        worlds.states = options["states"]
    return worlds.obs


class VectorEnv(gymnasium.vector.VectorEnv):
    """Copies of an environment, all stepped by one submit. The step after the end of an episode
    begins the next one, as Gymnasium's ``AutoresetMode.NEXT_STEP`` has it. With ``copy=False``
    arrays are the library's own, which the next step overwrites. ``reset(options={"states":
    ...})`` begins at states of one's own."""

    def __init__(
        self,
        env: str,
        num_envs: int = 1,
        *,
        copy: bool = True,
        render_mode: Optional[str] = None,
        phase: int = 1,
        length: int = 0,
        device: Union[None, str, Device] = None,
        **settings: float,
    ):
        self.worlds = Worlds(env, num_envs, phase=phase, length=length, device=device, **settings)
        self.num_envs, self.render_mode, self._copy = num_envs, render_mode, copy
        self.single_observation_space, self.single_action_space = _spaces(self.worlds)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {"render_modes": []}
        mode = getattr(gymnasium.vector, "AutoresetMode", None)
        if mode:
            self.metadata["autoreset_mode"] = mode.NEXT_STEP

    def _out(self, array):
        return array.copy() if self._copy else array

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None
    ) -> Tuple[np.ndarray, Dict[str, Any]]:
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise c.ConfigError(
                "one seed begins the episodes of all copies: give a number and no list"
            )
        super().reset(seed=seed)
        return self._out(_begin(self, self.worlds, seed, options)), {}

    def step(self, actions: np.ndarray):
        obs, rewards, ends = self.worlds.step(actions)
        terminated = (ends & (LAST | CUT)) == LAST
        return self._out(obs), rewards.astype(np.float64), terminated, (ends & CUT) != 0, {}


class Env(gymnasium.Env):
    """One copy of an environment."""

    metadata: Dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        env: str,
        *,
        render_mode: Optional[str] = None,
        phase: int = 1,
        length: int = 0,
        device: Union[None, str, Device] = None,
        **settings: float,
    ):
        self.worlds = Worlds(env, 1, phase=phase, length=length, device=device, **settings)
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(self.worlds)

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None
    ) -> Tuple[np.ndarray, Dict[str, Any]]:
        super().reset(seed=seed)
        return _begin(self, self.worlds, seed, options)[0].copy(), {}

    def step(self, action: np.ndarray):
        obs, rewards, ends = self.worlds.step(np.asarray(action))
        end = int(ends[0])
        return obs[0].copy(), float(rewards[0]), end & (LAST | CUT) == LAST, bool(end & CUT), {}


for _name in ("cartpole", "pendulum", "standing"):
    gymnasium.register(
        f"gpurt/{_name}",
        entry_point="gpurt.gym:Env",
        vector_entry_point="gpurt.gym:VectorEnv",
        kwargs={"env": _name},
        disable_env_checker=True,
    )
