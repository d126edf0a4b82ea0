# SPDX-License-Identifier: Apache-2.0
"""Policies: evolution strategies and proximal policy optimization, and acting with what they
learnt."""

import ctypes
from typing import Any, Callable, Dict, List, Optional, Union

import numpy as np

from . import _library as c
from ._archive import Archive, Checkpoint, PathLike, checkpoint_of, load_archive, save_model
from ._config import PPO as PPO_KEYS
from ._config import Config
from ._device import Device, device_of
from ._worlds import Environment, values_of

Report = Dict[str, float]
_TRIALS = 32343  # starts that training never sees
_NOT_TOLD = ("stopped", "terms")
_TRIED = ("mean_return", "good_rate", "fall_rate", "episodes", "length", "seconds")  # of a trial


class Policy:
    """What a checkpoint of :class:`ES` or :class:`PPO` does: called with observations
    ``[rows][numbers]`` it gives actions, by NumPy alone. ``mask`` says which of discrete actions
    are allowed, as :attr:`Worlds.mask`.
    """

    def __init__(self, checkpoint: Union[PathLike, Checkpoint]):
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = checkpoint_of(load_archive(checkpoint))
        about, model = checkpoint.about, checkpoint.model
        ppo = about.get("learner") == "ppo"
        if not ppo and "policy" not in about:
            raise c.DataError("the checkpoint holds no policy of ES or PPO")
        self._layers = []
        for name in [
            "",
            *((("actor." if ppo else "") + f"layers.{i}.") for i in range(len(model))),
        ]:
            if name + "weight" in model:
                self._layers.append(
                    (model[name + "weight"], model.get(name + "bias", np.float32(0)))
                )
        if not self._layers:
            raise c.DataError(
                "an actor that is a list of layers is not for NumPy; ONNX has it (gpurt convert)"
            )
        bend = (
            str(about["config_activation"])
            if ppo
            else "tanh" if str(about["policy"]).endswith("-tanh") else "relu"
        )
        if bend not in ("relu", "tanh"):
            raise c.DataError(f"activation {bend} is not for NumPy; ONNX has it (gpurt convert)")
        self._bend = np.tanh if bend == "tanh" else lambda x: np.maximum(x, 0)
        # PPO has a normaliser only where it normalises.
        self._norm = (
            checkpoint.get("normalizer/mean_rstd_variance") if about.get("normalise", 1) else None
        )
        self._choices = ppo and "model/log_std" not in checkpoint
        self._squash = np.tanh if not ppo and len(self._layers) > 1 else lambda x: x

    def __call__(self, obs: np.ndarray, mask: Optional[np.ndarray] = None) -> np.ndarray:
        x = np.asarray(obs, np.float32)
        if self._norm is not None:
            x = (x - self._norm[0]) * self._norm[1]
        for i, (weight, bias) in enumerate(self._layers):
            x = (self._bend(x) if i else x) @ weight.T + bias
        if not self._choices:
            return np.clip(self._squash(x), -1, 1)
        if mask is not None:
            allowed = np.asarray(mask)[..., None] >> np.arange(x.shape[-1], dtype=np.uint32) & 1
            x = np.where(allowed, x, -np.inf)
        return x.argmax(axis=-1)


class _Trainer(c.Owner):
    """What both have: iterations, trials, a checkpoint."""

    _report = None  # struct

    def _told(self, report) -> Report:
        return {
            name: getattr(report, name)
            for name, *unused in self._report._fields_
            if name not in _NOT_TOLD
        }

    def _try(self, call, *arguments) -> Report:
        report = self._report()
        with c.interruptible(self._stop):
            c.check(call(*arguments, ctypes.byref(report)))
        return self._told(report)

    def _tried(self, call, *arguments) -> Report:
        told = self._try(call, *arguments)
        names = [name for name, *unused in self._report._fields_ if name not in _TRIED]
        return {name: number for name, number in told.items() if name not in names}

    def iterate(self) -> Report:
        """One iteration: it is done whole, or, with Ctrl-C, not at all."""
        return self._try(self._iterate, self._learner())

    def fit(
        self, iterations: int, *, report: Optional[Callable[[Report], Any]] = None
    ) -> List[Report]:
        """So many more iterations; returns what each came to, and tells ``report`` meanwhile."""
        rows = []
        for _ in range(iterations):
            rows.append(self.iterate())
            if report:
                report(rows[-1])
        return rows

    @property
    def checkpoint(self) -> Checkpoint:
        """All arrays of it as they are now."""
        return checkpoint_of(self._archive())

    @property
    def policy(self) -> Policy:
        """What it has learnt so far, for NumPy."""
        return Policy(self.checkpoint)

    def save(self, path: PathLike) -> None:
        """Writes a checkpoint, ``.h5``, ``.safetensors`` or ``.onnx``: ``gpurt play``, ``gpurt
        eval`` and ``gpurt convert`` take it as their own."""
        save_model(path, self._archive())


class ES(_Trainer):
    """Evolution strategies: whole episodes inside one kernel.

    ``policy`` is ``"linear"``, ``"affine"``, ``"mlp64"`` or ``"mlp64-tanh"`` (16 to 256), ``algo``
    ``"ars"`` or ``"es"``. What is 0 is chosen by the device or the environment. :meth:`fit` reports
    ``mean_return``, ``best_return``, ``good_rate``, ``fall_rate``.
    """

    _destroy = "grt_es_destroy"
    _report = c.es_report
    _iterate = c.library.grt_es_iterate

    def __init__(
        self,
        env: str,
        *,
        policy: str = "affine",
        algo: str = "ars",
        phase: int = 1,
        num_envs: int = 0,
        num_dirs: int = 0,
        top_dirs: int = 0,
        episode_length: int = 0,
        step_size: float = 0,
        noise_std: float = 0,
        seed: int = 0,
        normalize_observations: bool = True,
        ema: float = 0,
        device: Union[None, str, Device] = None,
    ):
        if algo not in ("ars", "es"):
            raise c.ConfigError(f"algo {algo!r}: known are ars and es")
        self._env, self._device = Environment(env), device_of(device)
        self._stop = c.Stop()
        desc = c.es_desc(
            env=self._env.pointer,
            algo=algo == "es",
            phase=phase,
            num_envs=num_envs,
            num_dirs=num_dirs,
            top_dirs=top_dirs,
            episode_length=episode_length,
            step_size=step_size,
            noise_std=noise_std,
            seed=seed,
            no_normalise=not normalize_observations,
            stop=self._stop.hook,
            ema=ema,
        )
        c.check(
            c.library.grt_policy_parse(policy.encode(), ctypes.byref(desc, c.es_desc.policy.offset))
        )
        super().__init__(c.check(c.library.grt_es_create(self._device.pointer, ctypes.byref(desc))))

    def _learner(self):
        return self.pointer

    def evaluate(self, seed: int = _TRIALS) -> Report:
        """The policy without noise, on starts of a seed of their own."""
        return self._tried(c.library.grt_es_evaluate, self.pointer, c.whole("seed", seed))

    @property
    def returns(self) -> np.ndarray:
        """What each direction of the newest iteration came to, ``[num_dirs][2]``: the mean return
        with its noise added, and with it taken away."""
        desc = c.library.grt_es_desc_of(self.pointer)
        found = np.empty((desc.contents.num_dirs, 2), np.float32)
        c.check(c.library.grt_es_returns(self.pointer, found.ctypes.data_as(ctypes.c_void_p)))
        return found

    def _archive(self) -> Archive:
        archive = Archive(c.check(c.library.grt_archive_create()))
        c.check(c.library.grt_es_save(self.pointer, archive))
        return archive

    def load(self, path: PathLike, *, model_only: bool = False) -> None:
        """Goes on from a checkpoint, to the same bits; with ``model_only`` it begins anew with
        its policy."""
        c.check(c.library.grt_es_load(self.pointer, load_archive(path), model_only))


class PPO(_Trainer):
    """Proximal policy optimization, environment and networks on the device.

    ``config`` is a YAML file or a dict, and keywords stand above it: keys of ``gpurt train ppo
    --keys`` and settings of the environment. :meth:`fit` reports ``mean_return``, ``length``,
    ``episodes``, ``entropy``, ``kl`` and more.
    """

    _destroy = "grt_ppo_task_destroy"
    _report = c.ppo_report
    _iterate = c.library.grt_ppo_task_iterate

    def __init__(
        self,
        env: str,
        config: Union[None, PathLike, Dict[str, Any]] = None,
        *,
        device: Union[None, str, Device] = None,
        start: Optional[PathLike] = None,
        **keys: Any,
    ):
        self._env, self._device = Environment(env), device_of(device)
        settings = {name: keys.pop(name) for name in list(keys) if name in self._env.settings}
        self._config = Config(PPO_KEYS, config, keys)
        archive = load_archive(start) if start is not None else None
        if archive:
            c.check(c.library.grt_ppo_task_recall(self._config.pointer, archive, True))
            value, i = c.env_value(), 0
            while c.library.grt_ppo_task_setting(archive, i, ctypes.byref(value)):
                settings.setdefault(value.name.decode(), value.value)
                i += 1
        else:
            c.check(c.library.grt_config_effective(self._config.pointer))
        self._stop = c.Stop()
        self._settings = values_of(settings)
        desc = c.ppo_task_desc(
            dev=self._device.pointer,
            config=self._config.pointer,
            env=self._env.pointer,
            settings=self._settings,
            setting_count=len(settings),
            archive=ctypes.cast(archive.pointer, c.P) if archive else None,
            stop=self._stop.hook,
        )
        super().__init__(c.check(c.library.grt_ppo_task_create(ctypes.byref(desc))))
        if archive:
            c.check(c.library.grt_ppo_task_load(self.pointer, archive, 0))

    def _learner(self):
        return self.pointer

    def _told(self, report) -> Report:
        told = super()._told(report)
        for i in range(len(report.terms)):
            name = c.library.grt_worlds_term(self.pointer.contents.worlds, i)
            if name:
                told[name.decode()] = report.terms[i]
        return told

    def evaluate(self, seed: int = _TRIALS, *, actions: str = "policy") -> Report:
        """``evaluate_envs`` episodes of the most likely actions, or of ``"random"`` ones."""
        if actions not in ("policy", "random"):
            raise c.ConfigError(f"actions {actions!r}: known are policy and random")
        return self._tried(
            c.library.grt_ppo_evaluate,
            self.pointer.contents.ppo,
            self.pointer.contents.trials,
            actions == "random",
            c.whole("seed", seed),
        )

    def _archive(self) -> Archive:
        archive = Archive(c.check(c.library.grt_archive_create()))
        c.check(c.library.grt_ppo_task_save(self.pointer, self._env.text.encode(), archive))
        return archive
