# SPDX-License-Identifier: Apache-2.0
"""Environments whose copies a program acts in."""

import ctypes
from typing import List, Optional, Tuple, Union

import numpy as np

from . import _library as c
from ._device import Device, device_of

LAST, CUT, IDLE = 1, 2, 4
"""Bits of ``ends``: the row is the last of its episode; which was cut by time; it does not
count."""


class Environment(c.Owner):
    """An environment by its name, or a file such as ``"./slider.k"``."""

    _destroy = "grt_env_close"

    def __init__(self, text: str):
        super().__init__(c.check(c.library.grt_env_open(text.encode())))
        info = self.pointer.contents
        self.text, self.name, self.phases = text, info.name.decode(), info.phases
        self.state_names: List[str] = [info.state_names[i].decode() for i in range(info.state)]
        self.settings: List[str] = []
        while info.world and info.world.contents.settings[len(self.settings)].name:
            self.settings.append(info.world.contents.settings[len(self.settings)].name.decode())


def values_of(settings):
    """Settings as the library takes them."""
    return (c.env_value * max(1, len(settings)))(
        *[(name.encode(), float(value)) for name, value in settings.items()]
    )


class _Stepper(c.Owner):
    """What arrays of a Worlds are memory of: it ends with the last of them."""

    _destroy = "grt_stepper_destroy"

    def __init__(self, env, device, desc):
        self._env, self._device = env, device
        super().__init__(c.check(c.library.grt_stepper_create(device.pointer, ctypes.byref(desc))))


class Worlds:
    """Copies of an environment on a device, stepped all at once.

    ``env`` is ``"cartpole"``, ``"pendulum"``, ``"standing"``, ``"uav"`` or a file; keywords are its
    settings. A row is an agent of a copy: ``row = copy * agents + agent``. A copy whose episode has
    ended begins the next one with its next step, which takes no action.

    >>> worlds = gpurt.Worlds("cartpole", 64)
    >>> worlds.reset(seed=1)
    >>> obs, rewards, ends = worlds.step(np.ones((64, 1)))
    """

    def __init__(
        self,
        env: str,
        copies: int = 1,
        *,
        phase: int = 1,
        length: int = 0,
        device: Union[None, str, Device] = None,
        **settings: float,
    ):
        opened = Environment(env)
        desc = c.worlds_desc(
            env=opened.pointer,
            settings=values_of(settings),
            setting_count=len(settings),
            copies=copies,
            phase=phase,
            length=length,
        )
        self._stepper = _Stepper(opened, device_of(device), desc)
        view = c.library.grt_stepper_view(self._stepper.pointer).contents
        sizes = view.sizes
        self.name, self.state_names = opened.name, opened.state_names
        self.copies, self.rows, self.length = view.copies, view.rows, view.length
        self.agents, self.choices, self._words = sizes.agents, sizes.choices, sizes.words
        self.obs: np.ndarray = self._see(view.obs, (view.rows, sizes.obs), "<f4")
        """``[rows][numbers]``: what each agent sees. As all arrays here memory of the library,
        which each step overwrites."""
        self.rewards: np.ndarray = self._see(view.rewards, (view.rows,), "<f4")
        self.ends: np.ndarray = self._see(view.ends, (view.rows,), "<u4")
        self.mask: Optional[np.ndarray] = self._see(view.mask, (view.rows,), "<u4")
        """Bit i: choice i is allowed; None: actions are numbers."""
        self.whole: Optional[np.ndarray] = self._see(
            getattr(view, "global"), (copies, getattr(sizes, "global")), "<f4"
        )
        """``[copies][numbers]``: what is known of each copy as a whole, or None."""
        self.actions: np.ndarray = (
            self._see(view.choices, (view.rows,), "<u4", True)
            if sizes.choices
            else self._see(view.actions, (view.rows, sizes.act), "<f4", True)
        )
        """What the next step takes: ``[rows]`` choices, or ``[rows][numbers]`` in [-1, 1]."""

    def _see(self, address, shape, dtype, writable=False):
        return (
            np.asarray(c.Memory(self._stepper, address, shape, dtype, writable))
            if address
            else None
        )

    def reset(self, seed: int = 0) -> np.ndarray:
        """Every copy begins its first episode of the seed; returns :attr:`obs`."""
        c.check(c.library.grt_stepper_reset(self._stepper.pointer, c.whole("seed", seed)))
        return self.obs

    def step(
        self, actions: Optional[np.ndarray] = None
    ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One step of all copies with these actions, or with what is in :attr:`actions`; returns
        :attr:`obs`, :attr:`rewards` and :attr:`ends`."""
        if actions is not None:
            self.actions[...] = np.asarray(actions).reshape(self.actions.shape)
        c.check(c.library.grt_stepper_step(self._stepper.pointer))
        return self.obs, self.rewards, self.ends

    @property
    def words(self) -> np.ndarray:
        """The states of all copies as the environment keeps them, u32 ``[words][copies]``.
        Setting them begins a copy's episode there."""
        found = np.empty((self._words, self.copies), "<u4")
        c.check(c.library.grt_stepper_state(self._stepper.pointer, found.ctypes.data, found.size))
        return found

    @words.setter
    def words(self, words: np.ndarray) -> None:
        words = np.ascontiguousarray(words, "<u4")
        c.check(
            c.library.grt_stepper_set_state(self._stepper.pointer, words.ctypes.data, words.size)
        )

    @property
    def states(self) -> np.ndarray:
        """The numbers that :attr:`state_names` names, f32 ``[copies][numbers]``; of environments
        that keep their state in registers, such as ``cartpole``. Setting them begins a copy's
        episode there."""
        self._in_registers()
        return self.words[: len(self.state_names)].view("<f4").T.copy()

    @states.setter
    def states(self, states: np.ndarray) -> None:
        self._in_registers()
        words = np.zeros((self._words, self.copies), "<u4")
        words[: len(self.state_names)].view("<f4")[...] = (
            np.asarray(states, "<f4").reshape(self.copies, -1).T
        )
        self.words = words

    def _in_registers(self):
        if not self.state_names:
            raise c.ConfigError(
                f"environment '{self.name}' keeps its state in memory: it has words, and no states"
            )
