# SPDX-License-Identifier: Apache-2.0
"""Supervised training: a config, arrays or a file, and what was learnt."""

import contextlib
import ctypes
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union

import numpy as np

from . import _library as c
from ._archive import (
    Archive,
    Borrowed,
    Checkpoint,
    PathLike,
    checkpoint_of,
    load_archive,
    save_model,
)
from ._config import CLASSIFY, SUPERVISED, Config
from ._device import Device, device_of

Arrays = Union[np.ndarray, Mapping[str, np.ndarray]]
Row = Dict[str, Any]
_PARTS = {"train": 0, "validation": 1, "all": 2}


def _kept(array: Any) -> np.ndarray:
    """As a file has it: whole numbers of more than 8 bits as i32, others as they are or as f32."""
    array = np.asarray(array)
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 1:
        if array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
            raise c.DataError("whole numbers beyond 32 bits are no data for training")
        return np.ascontiguousarray(array, "<i4")
    if array.dtype.kind in "iu" or array.dtype == np.float16:
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(array, "<f4")


@contextlib.contextmanager
def _data(x: Union[PathLike, Arrays], y: Optional[Any] = None) -> Iterator[Dict[str, Any]]:
    """Keys of a config that name the data."""
    if isinstance(x, (str, os.PathLike)):
        if y is not None:
            raise c.ConfigError("data that are a file have their targets in it; leave out y")
        yield {"data": os.fspath(x)}
        return
    arrays = {
        name: _kept(a) for name, a in (x.items() if isinstance(x, Mapping) else {"x": x}.items())
    }
    keys: Dict[str, Any] = {"inputs": list(arrays)}
    if y is not None:
        targets = y if isinstance(y, Mapping) else {"y": y}
        for name, array in targets.items():
            if name in arrays:
                raise c.ConfigError(f"an input is named {name}, as the targets are")
            arrays[name] = _kept(array)
        keys["targets"] = list(targets)
    with tempfile.TemporaryDirectory(prefix="gpurt-") as folder:
        keys["data"] = os.path.join(folder, "data.h5")
        left = c.U32()
        c.check(
            c.library.grt_model_save(
                Borrowed(arrays), keys["data"].encode(), True, ctypes.byref(left)
            )
        )
        yield keys


def _row(row) -> Row:
    found: Row = {"event": c.EVENTS[row.event], "step": row.step}
    for i, name in enumerate(c.FIELDS):
        if row.known >> i & 1:
            own = name.replace("term_", "loss_")  # of a learner these are its several losses
            found[own] = row.texts[i].decode() if row.texts[i] else row.numbers[i]
    return found


class Learner:
    """A network that learns from samples.

    ``config`` is a YAML file or a dict, and keywords stand above it; the keys are those of ``gpurt
    train supervised --keys``, with ``kind="classify"`` those of ``gpurt train classify``.
    ``device`` is a :class:`Device` or what one is chosen by.

    >>> learner = gpurt.Learner(depth=2, hidden=64, epochs=20, learning_rate=3e-3)
    >>> learner.fit(x, y)
    >>> learner.predict(x)
    """

    def __init__(
        self,
        config: Union[None, PathLike, Mapping[str, Any]] = None,
        *,
        kind: str = "supervised",
        device: Union[None, str, Device] = None,
        **keys: Any,
    ):
        if kind not in ("supervised", "classify"):
            raise c.ConfigError(f"kind {kind!r}: known are supervised and classify")
        self._scope = CLASSIFY if kind == "classify" else SUPERVISED
        self._source, self._keys = config, keys
        Config(self._scope, config, keys)  # what is wrong is said now
        self._device = device
        self._model: Optional[Archive] = None
        self._loaded = False
        self.history: List[Row] = []
        """Rows of the newest :meth:`fit`, as its log has them."""

    # ---- learning ----

    def fit(
        self,
        x: Union[PathLike, Arrays],
        y: Optional[Any] = None,
        *,
        resume: bool = False,
        report: Optional[Callable[[Row], Any]] = None,
    ) -> List[Row]:
        """Trains on arrays, or on a file that is named (HDF5, .csv, .tsv, .npz or .npy), and returns
        the rows of its evaluations. ``y`` may be a dict of targets, one for each of ``losses``.

        Weights that the learner has already are begun with. Afterwards it has those of the best
        evaluation. ``report`` is called with each row of the log as it comes. ``resume`` goes on in
        the config's ``checkpoint_dir``, to the same bits as without the interruption. Ctrl-C ends
        after the step with what was learnt so far.
        """
        device = device_of(self._device)
        with _data(x, y) as keys, tempfile.TemporaryDirectory(prefix="gpurt-") as folder:
            config = Config(self._scope, self._source, {**self._keys, **keys})
            if not config.given("checkpoint_dir"):
                if resume:
                    raise c.ConfigError(
                        "resume wants the checkpoint_dir of the run that it goes on with"
                    )
                config.set(checkpoint_dir=folder)
            if self._loaded:
                c.library.grt_task_take_network(config, self._model)
            c.library.grt_config_settle(config.pointer)
            self._go(device, config, resume, report)
            where = config["checkpoint_dir"]
            self._model = load_archive(where)
        return [row for row in self.history if row["event"] == "evaluate"]

    def _go(self, device, config, resume, report):
        self.history, raised = [], []

        def hear(unused, news):
            if news.contents.news == c.NEWS_ROW and not raised:
                try:
                    self.history.append(_row(news.contents.row.contents))
                    if report:
                        report(self.history[-1])
                except BaseException as error:  # a callback of C has nowhere to raise it
                    raised.append(error)

        try:
            with c.interruptible() as stop:
                hooks = c.RUN_STOP(lambda unused: stop.asked or bool(raised)), c.RUN_REPORT(hear)
                first = self._model.pointer if self._model and not resume else None
                desc = c.supervised_desc(
                    dev=device.pointer,
                    config=config.pointer,
                    resume=resume,
                    stop=hooks[0],
                    report=hooks[1],
                )
                setattr(desc, "from", ctypes.cast(first, c.P) if first else None)
                run = c.P(c.library.grt_supervised_create(ctypes.byref(desc)))
                if not run:
                    if stop.asked:
                        return
                    c.fail()
                try:
                    ended = c.library.grt_run_go(c.library.grt_supervised_driver(run))
                    if ended in (c.ENDED_FAILED, c.ENDED_NONFINITE) and not raised:
                        c.fail()
                finally:
                    c.library.grt_supervised_destroy(ctypes.byref(run))
        except KeyboardInterrupt:
            with contextlib.suppress(c.Error):
                self._model = load_archive(config["checkpoint_dir"])
            raise
        if raised:
            raise raised[0]

    # ---- using ----

    def _trained(self) -> Archive:
        if self._model is None:
            raise c.ConfigError(
                "the learner has learnt nothing yet: fit() or Learner.load() comes first"
            )
        return self._model

    def _judge(self, call, x, y, part, found) -> None:
        if part not in _PARTS:
            raise c.ConfigError(f"part {part!r}: known are train, validation and all")
        with _data(x, y) as keys, c.interruptible() as stop:
            config = Config(SUPERVISED, None, keys)
            device, model = device_of(self._device), self._trained()
            done = call(device, model, config, _PARTS[part], stop.hook, ctypes.byref(found))
            if not done and not stop.asked:
                c.fail()

    def evaluate(
        self, x: Union[PathLike, Arrays], y: Optional[Any] = None, *, part: str = "all"
    ) -> Dict[str, float]:
        """The loss over arrays, or over a part of a file (``train``, ``validation`` or ``all``);
        of classes the accuracy too, of several losses ``loss_1``, ``loss_2`` and so on."""
        found = c.evaluation()
        self._judge(c.library.grt_evaluate, x, y, part, found)
        result = {"loss": found.loss, "samples": found.samples}
        if found.accuracy >= 0:
            result["accuracy"] = found.accuracy
        if found.top5 >= 0:
            result["top5"] = found.top5
        for i in range(found.loss_count):
            result[f"loss_{i + 1}"] = found.losses[i]
        return result

    def score(
        self, x: Union[PathLike, Arrays], y: Optional[Any] = None, *, part: str = "all"
    ) -> Dict[str, float]:
        """What scikit-learn would say: of numbers ``mae``, ``mse`` and ``r2``, of classes
        ``accuracy``, ``f1`` (macro) and ``auc`` (each against the rest)."""
        found = c.scores()
        self._judge(c.library.grt_score, x, y, part, found)
        names = ("accuracy", "f1", "auc") if found.classes else ("mae", "mse", "r2")
        return {name: getattr(found, name) for name in names}

    def predict(self, x: Union[PathLike, Arrays], what: str = "y") -> np.ndarray:
        """What the network gives for each sample, ``[N][outputs]``: with classes, logits.
        ``what`` may also be ``"probability"``, ``[N][outputs]``, or ``"class"``, ``[N]``; with
        several losses ``"class_2"``, by the outputs of the second."""
        with _data(x) as keys, c.interruptible() as stop:
            config = Config(SUPERVISED, None, keys)
            found = c.library.grt_predict(
                device_of(self._device), self._trained(), config.pointer, stop.hook
            )
            if not found and not stop.asked:
                c.fail()
        arrays = checkpoint_of(Archive(found))
        if what not in arrays:
            raise c.ConfigError(f"what {what!r}: this network gives {', '.join(arrays)}")
        return arrays[what]

    @property
    def checkpoint(self) -> Checkpoint:
        """All arrays of it, without copies; ``.model`` has the parameters."""
        return checkpoint_of(self._trained())

    def save(self, path: PathLike, *, probabilities: bool = False) -> None:
        """Writes it as a checkpoint (``.h5``), for PyTorch (``.safetensors``) or as ONNX
        (``.onnx``, with ``probabilities`` behind the outputs)."""
        save_model(path, self._trained(), probabilities=probabilities)

    @classmethod
    def load(
        cls, path: PathLike, *, device: Union[None, str, Device] = None, **keys: Any
    ) -> "Learner":
        """A trained network: a checkpoint, a folder of them, ``.safetensors`` or ``.onnx``. Keys
        are for more :meth:`fit`."""
        learner = cls(device=device, **keys)
        learner._model = load_archive(path)
        learner._loaded = True
        return learner
