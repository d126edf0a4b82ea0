# SPDX-License-Identifier: Apache-2.0
"""ONNX files by NumPy in double precision: reads the protocol buffer itself, checks the graph as onnx's checker does where
that matters here, and computes it. Knows the operators of opset 17 that gpurt writes, by onnx's own definitions."""
import math
import os
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../harness"))
from protobuf import fields


def message(values):
    """The bytes of a message: lists of whole numbers, floats, texts and bytes by the numbers of their fields."""
    def varint(value):
        value &= (1 << 64) - 1
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out) + bytes([value])

    blob = b""
    for number, all_of in values.items():
        for value in all_of:
            if isinstance(value, float):
                blob += varint(number << 3 | 5) + struct.pack("<f", value)
            elif isinstance(value, (str, bytes)):
                raw = value.encode() if isinstance(value, str) else value
                blob += varint(number << 3 | 2) + varint(len(raw)) + raw
            else:
                blob += varint(number << 3) + varint(int(value))
    return blob


def every(blob, number):
    return [value for n, value in fields(blob) if n == number]


def one(blob, number, otherwise=None):
    values = every(blob, number)
    return values[-1] if values else otherwise


def tensor(blob):
    dims = every(blob, 1)
    types = {1: "<f4", 7: "<i8"}
    raw = np.frombuffer(one(blob, 9, b""), types[one(blob, 2)])
    assert raw.size == math.prod(dims), (one(blob, 8), dims, raw.size)
    return raw.reshape(dims).astype(float if one(blob, 2) == 1 else np.int64)


def attributes(node):
    found = {}
    for a in every(node, 5):
        kind = one(a, 20)
        found[one(a, 1).decode()] = {1: lambda: one(a, 2), 2: lambda: one(a, 3, 0), 3: lambda: one(a, 4), 7: lambda: every(a, 8)}[kind]()
    return found


def edge(blob):
    shape = one(one(one(blob, 2), 1), 2)
    assert one(one(one(blob, 2), 1), 1) == 1, "not float"
    return one(blob, 1).decode(), [one(d, 1, one(d, 2, b"?")) for d in every(shape, 1)]


def windows(x, a, filling):
    """[N][C][out][out][kh][kw] of an image [N][C][H][W]."""
    (kh, kw), (sh, sw), pads = a["kernel_shape"], a["strides"], a["pads"]
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], constant_values=filling)
    all_of = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), axis=(2, 3))
    return all_of[:, :, ::sh, ::sw]


def channels(v, x):
    return v.reshape([1, -1] + [1] * (x.ndim - 2))


def layer_norm(a, x, weight, bias):
    assert a["axis"] in (-1, x.ndim - 1)
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + a["epsilon"]) * weight + bias


def gemm(a, x, w, bias=0.0):
    assert set(a) <= {"transB"} and x.ndim == 2
    return x @ (w.T if a.get("transB") else w) + bias


def batch_norm(a, x, weight, bias, mean, variance):
    by = [channels(v, x) for v in (weight, bias, mean, variance)]
    return (x - by[2]) / np.sqrt(by[3] + a["epsilon"]) * by[0] + by[1]


def softmax(a, x):
    assert a["axis"] in (-1, x.ndim - 1)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def cut(a, x, starts, ends, axes):
    where = [slice(None)] * x.ndim
    for s, e, axis in zip(starts, ends, axes):
        where[axis] = slice(s, e)
    return x[tuple(where)]


def reduce(how):
    return lambda a, x: how(x, axis=tuple(a["axes"]), keepdims=bool(a["keepdims"]))


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y,
    "Relu": lambda a, x: np.maximum(x, 0),
    "Tanh": lambda a, x: np.tanh(x),
    "Sigmoid": lambda a, x: 1 / (1 + np.exp(-x)),
    "Erf": lambda a, x: np.vectorize(math.erf, otypes=[float])(x),
    "Clip": lambda a, x, low, high: np.clip(x, low, high),
    "Identity": lambda a, x: x,
    "MatMul": lambda a, x, y: x @ y,
    "Gemm": gemm,
    "Softmax": softmax,
    "LayerNormalization": layer_norm,
    "BatchNormalization": batch_norm,
    "Transpose": lambda a, x: x.transpose(a["perm"]),
    "Flatten": lambda a, x: x.reshape(math.prod(x.shape[:a["axis"]]), -1),
    "Reshape": lambda a, x, shape: x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape)]),
    "Concat": lambda a, *all_of: np.concatenate(all_of, a["axis"]),
    "Slice": cut,
    "ReduceMean": reduce(np.mean),
    "ReduceMax": reduce(np.max),
    "MaxPool": lambda a, x: windows(x, a, -np.inf).max((4, 5)),
    "AveragePool": lambda a, x: windows(x, a, 0).mean((4, 5)) if a["count_include_pad"] == 1 else None,
    "Conv": lambda a, x, w, bias=np.zeros(1): np.einsum("nchwij,ocij->nohw", windows(x, a, 0), w) + channels(bias, x),
}


class Graph:
    def __init__(self, path):
        model = open(path, "rb").read()
        assert 7 <= one(model, 1) <= 8 and one(model, 2) in (b"gpurt", b"someone")
        assert [(one(o, 1), one(o, 2)) for o in every(model, 8)] == [(b"", 17)]
        graph = one(model, 7)
        self.constants = {one(t, 8).decode(): tensor(t) for t in every(graph, 5)}
        assert len(self.constants) == len(every(graph, 5)), "two constants of one name"
        self.inputs = dict(map(edge, every(graph, 11)))
        self.outputs = dict(map(edge, every(graph, 12)))
        known = set(self.constants) | set(self.inputs)
        self.nodes, used = [], set()
        for n in every(graph, 1):
            op, takes, gives = one(n, 4).decode(), [i.decode() for i in every(n, 1)], one(n, 2).decode()
            assert op in OPERATORS, f"operator {op}"
            assert set(takes) <= known, f"{op} takes {takes} before that is there"
            assert gives not in known, f"{gives} twice"
            known.add(gives)
            used |= set(takes)
            self.nodes.append((op, attributes(n), takes, gives))
        assert set(self.outputs) <= known and set(self.constants) <= used | set(self.outputs), "constants that nobody takes"

    def run(self, **inputs):
        values = dict(self.constants)
        for name, shape in self.inputs.items():
            x = inputs[name]
            assert shape[0] in (b"batch", b"n") and list(x.shape[1:]) == shape[1:], (name, shape, x.shape)
            values[name] = x.astype(float)
        for op, a, takes, gives in self.nodes:
            values[gives] = OPERATORS[op](a, *(values[t] for t in takes))
        (name, shape), = self.outputs.items()
        assert list(values[name].shape[1:]) == shape[1:], (values[name].shape, shape)
        return values[name]
