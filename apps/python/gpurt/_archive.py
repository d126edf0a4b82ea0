# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as dicts of arrays."""

import ctypes
import os
from typing import Dict, Mapping, Optional, Union

import numpy as np

from . import _library as c

PathLike = Union[str, "os.PathLike[str]"]
Value = Union[int, float, str]

# In the order of GRT_DTYPES. NumPy has no bf16: its numbers come as f32.
_DTYPES = ["<f4", "<f2", None, "<u4", "<i4", "|i1", "|u1"]
_BF16 = 2


class Archive(c.Owner):
    """An archive of the library, which owns its arrays."""

    _destroy = "grt_archive_destroy"


def _array(owner, tensor):
    shape = tuple(tensor.shape[: tensor.rank])
    dtype = _DTYPES[tensor.dtype] or "<u2"
    if tensor.bytes == 0:
        return np.zeros(shape, "<f4" if tensor.dtype == _BF16 else dtype)
    array = np.asarray(c.Memory(owner, tensor.data, shape, dtype))
    if tensor.dtype == _BF16:
        return (array.astype("<u4") << 16).view("<f4")
    return array


class Checkpoint(Dict[str, np.ndarray]):
    """Named arrays, and named values beside them. Names are those of PyTorch's ``state_dict``
    behind a group, such as ``"model/layers.0.weight"``."""

    about: Dict[str, Value]
    """Numbers and texts such as ``step`` and ``config``."""

    def __init__(
        self, arrays: Mapping[str, np.ndarray] = (), values: Optional[Mapping[str, Value]] = None
    ):
        super().__init__(arrays)
        self.about = dict(values or {})

    @property
    def model(self) -> Dict[str, np.ndarray]:
        """The parameters alone, as a ``state_dict`` has them."""
        return {name[6:]: array for name, array in self.items() if name.startswith("model/")}


def checkpoint_of(archive: Archive) -> Checkpoint:
    """The arrays are the archive's memory, not copies."""
    a = archive.pointer.contents
    found = Checkpoint((t.name.decode(), _array(archive, t)) for t in a.tensors[: a.tensor_count])
    for value in a.values[: a.value_count]:
        found.about[value.name.decode()] = (value.whole, value.real, value.text)[value.type]
        if value.type == 2:
            found.about[value.name.decode()] = value.text.decode(errors="replace")
    return found


class Borrowed:
    """An archive over NumPy's own memory: arrays are not copied, and must live as long."""

    def __init__(self, checkpoint: Mapping[str, np.ndarray], values: Mapping[str, Value] = ()):
        values = dict(values or getattr(checkpoint, "about", {}))
        self._arrays = [
            np.ascontiguousarray(a, np.asarray(a).dtype.newbyteorder("<")).reshape(np.shape(a))
            for a in checkpoint.values()
        ]
        self._tensors = (c.archive_tensor * max(1, len(checkpoint)))()
        self._values = (c.archive_value * max(1, len(values)))()
        for t, name, array in zip(self._tensors, checkpoint, self._arrays):
            kind = array.dtype.newbyteorder("<").str
            if kind not in _DTYPES:
                raise c.ConfigError(
                    f"{name}: numbers of type {array.dtype} are not kept; "
                    "f4, f2, u4, i4, i1 and u1 are"
                )
            if array.ndim > 5 or len(name.encode()) > 191:
                raise c.ConfigError(
                    f"{name}: an array has at most 5 axes, and a name at most 191 bytes"
                )
            t.name, t.dtype, t.rank, t.bytes = (
                name.encode(),
                _DTYPES.index(kind),
                array.ndim,
                array.nbytes,
            )
            t.data = array.ctypes.data
            t.shape[: array.ndim] = array.shape
        for v, (name, value) in zip(self._values, values.items()):
            v.name = name.encode()
            if isinstance(value, str):
                v.type, v.text = 2, value.encode()
            elif isinstance(value, (int, np.integer)):
                v.type, v.whole = 0, int(value)
            else:
                v.type, v.real = 1, float(value)
        self._archive = c.archive(len(checkpoint), self._tensors, len(values), self._values, b"")
        self._as_parameter_ = ctypes.byref(self._archive)


def load(path: PathLike) -> Checkpoint:
    """The arrays of a checkpoint, ``.h5``, ``.safetensors`` or ``.onnx``; of a folder of
    checkpoints, its best."""
    return checkpoint_of(load_archive(path))


def load_archive(path: PathLike) -> Archive:
    name = os.fspath(path)
    if os.path.isdir(name):
        best = os.path.join(name, "best.h5")
        if not os.path.exists(best):
            return Archive(c.check(c.library.grt_checkpoint_newest(name.encode())))
        name = best
    return Archive(c.check(c.library.grt_model_load(name.encode())))


def save(path: PathLike, checkpoint: Mapping[str, np.ndarray], *, everything: bool = False) -> None:
    """Writes a checkpoint, ``.h5`` or ``.safetensors``. The file appears when it is complete.

    A safetensors file has what another program needs to use the model, named as PyTorch would; with
    ``everything`` it has all arrays, under their names here.
    """
    left = c.U32()
    c.check(
        c.library.grt_model_save(
            Borrowed(checkpoint), os.fspath(path).encode(), everything, ctypes.byref(left)
        )
    )


def save_model(path: PathLike, archive: Archive, *, probabilities: bool = False) -> None:
    """A trained model as a checkpoint, for PyTorch or as ONNX, by the end of the name."""
    name = os.fspath(path).encode()
    if name.endswith(b".onnx"):
        how = c.onnx_export(probabilities, False)
        c.check(c.library.grt_onnx_write(archive, ctypes.byref(how), name))
    else:
        left = c.U32()
        c.check(c.library.grt_model_save(archive, name, False, ctypes.byref(left)))
