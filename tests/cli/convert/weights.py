#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`--from` of safetensors that another program wrote: weights alone, in f32 and 16 bits, wrapped names, other shapes, and more or
less than the network has. A run of a learning rate of 1e-12 has what it began with. Usage: weights.py GPURT"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np

gpurt = os.path.abspath(sys.argv[1])
draw = np.random.default_rng(1)
os.environ["GPURT_DEVICE"] = "ref:0"
SHAPES = {"layers.0.weight": (8, 5), "layers.0.bias": (8,), "layers.1.weight": (2, 8), "layers.1.bias": (2,)}


def bf16(x):
    return (x.astype("f4").view("u4") >> 16).astype("u2")


def save(path, tensors, kind="F32"):
    head, blob = {}, b""
    for name, x in tensors.items():
        raw = {"F32": lambda: x.astype("<f4"), "F16": lambda: x.astype("<f2"), "BF16": lambda: bf16(x), "I32": lambda: x.astype("<i4")}[kind]().tobytes()
        head[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + blob)


def begun(path, *words, code=0):
    """What a run that learns nothing has of the file, and what it says."""
    done = subprocess.run([gpurt, "train", "supervised", "--data", "d.h5", "--from", path, "depth=1", "hidden=8", "epochs=1", "lr=1e-12", "weight_decay=0",
                           "batch_size=16", "checkpoint_dir=run", *words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    if code:
        return None, done.stderr
    with h5py.File("run/best.h5") as f:
        return {name: f["model/layers." + name.split(".")[1] + "/" + name.split(".")[2]][()] for name in SHAPES}, done.stderr


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with h5py.File("d.h5", "w") as f:
        f["x"], f["y"] = draw.normal(size=(64, 5)), draw.normal(size=(64, 2))
    weights = {name: draw.normal(size=shape).astype("f4") for name, shape in SHAPES.items()}
    for kind, exact in {"F32": weights, "F16": {k: v.astype("f2").astype("f4") for k, v in weights.items()},
                        "BF16": {k: (bf16(v).astype("u4") << 16).view("f4") for k, v in weights.items()}}.items():
        for prefix in "", "module.", "_orig_mod.":
            save("w.safetensors", {prefix + k: v for k, v in weights.items()}, kind)
            got, said = begun("w.safetensors")
            assert all((got[k] == exact[k]).all() for k in SHAPES), (kind, prefix)
            assert f"w.safetensors: 4 tensors{', named without ' + prefix if prefix else ''}" in said, said
    # One of another shape, one that is missing, two that the network has not.
    bent = {**weights, "layers.1.weight": draw.normal(size=(3, 8)), "more.weight": draw.normal(size=(2, 2)), "more.bias": draw.normal(size=2)}
    del bent["layers.0.bias"]
    save("w.safetensors", bent)
    got, said = begun("w.safetensors", "-v")
    assert (got["layers.0.weight"] == weights["layers.0.weight"]).all() and (got["layers.1.bias"] == weights["layers.1.bias"]).all()
    for line in ["2 tensors; layers.0.bias and others drawn anew: 2", "no part of this network: more.weight and others, left out: 2; -v lists them",
                 "layers.0.bias is drawn anew: there is none", "layers.1.weight is drawn anew: it has another shape there",
                 "w.safetensors: more.weight is no part of this network", "w.safetensors: more.bias is no part of this network"]:
        assert line in said, (line, said)
    # Whole numbers are no weights; nothing that fits is refused.
    save("w.safetensors", {k: np.round(v) for k, v in weights.items()}, "I32")
    got, said = begun("w.safetensors", code=65)
    assert "has no tensor of this network" in said, said
    save("w.safetensors", {"a.b": weights["layers.0.bias"], "c.d": weights["layers.0.bias"]})
    got, said = begun("w.safetensors", code=65)
    assert said.count("\n") == 1 and "none is called 'layers.0.weight'" in said, said
    os.chdir("/")
