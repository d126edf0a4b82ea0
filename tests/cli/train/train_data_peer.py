# SPDX-License-Identifier: Apache-2.0
# Data of tests/cli/train/train_data.sh, and what NumPy says of the networks trained on them.
# Usage: train_data_peer.py make | check CACHE...
import sys

import h5py
import numpy as np

ROWS = 5000


def make():
    i = np.arange(ROWS)
    stamps = {"f64": 1.7e9 + 0.5 * i, "i64": 1_700_000_000_000_000 + 500 * i,
              "i32": 1_700_000_000 + i, "f32": (70000 + 0.5 * i).astype("f4")}
    level = np.sin(i / 700.0).astype("f4")
    for name, stamp in stamps.items():
        with h5py.File(name + ".h5", "w") as file:
            # A second feature of the usual size beside the large one.
            other = np.cos(i * 0.37) * 100
            file["stamp"] = np.stack([stamp, other.astype(stamp.dtype)], 1)
            file["y"] = level
    # Pictures: rows of bytes and of halves, of a width that fills no word, with class numbers.
    for name, kind in (("u8", "u1"), ("f16", "f2")):
        with h5py.File(name + ".h5", "w") as file:
            file["picture"] = (i[:, None] * np.arange(1, 32) % 251).astype(kind)
            file["kind"] = (i % 3).astype("u1")
    with h5py.File("target.h5", "w") as file:
        file["stamp"] = np.stack([level, level], 1)
        file["when"] = 1.7e9 + 0.5 * i


def double(model, name):
    rest = model.get(f"data/{name}_rest")
    return model[f"data/{name}"][()].astype(float) + (rest[()].astype(float).sum(0) if rest else 0)


def network(model, x):
    layers = model["model"]
    for k in range(len(layers)):
        layer = layers[f"layers.{k}"]
        x = x @ layer["weight"][()].astype(float).T + layer["bias"][()]
        x = np.maximum(x, 0) if k + 1 < len(layers) else x
    return x


def check(kind, run, predictions):
    model = h5py.File(run)
    x = h5py.File(kind + ".h5")["stamp"][()]
    # Whole numbers of 64 bits are brought near zero before they become doubles.
    base = x[0]
    x = (x - base).astype(float)
    mean = double(model, "mean") - base.astype(float)
    # Over 9 of 10 rows, which cannot have quite the mean of all.
    assert (abs(mean - x.mean(0)) < 0.1 * x.std(0)).all(), (kind, mean, x.mean(0))
    assert (abs(double(model, "std") / x.std(0) - 1) < 0.1).all(), kind
    want = network(model, (x - mean) / double(model, "std"))
    got = h5py.File(predictions)["y"][()].astype(float)
    worst = abs(got - want).max()
    assert worst < 1e-4, (kind, run, worst)
    distinct = len(np.unique(got))
    assert distinct > 0.8 * ROWS, (kind, run, distinct)


if sys.argv[1] == "make":
    make()
else:
    for kind in ("f64", "i64", "i32", "f32"):
        for cache in sys.argv[2:]:
            check(kind, f"{kind}-{cache}/best.h5", f"{kind}-{cache}.p.h5")
        losses = {open(f"{kind}-{cache}.loss").read() for cache in sys.argv[2:]}
        assert len(losses) == 1, (kind, losses)
    if "none" in sys.argv[2:]:
        check("f64", "f64-none/best.h5", "back.p.h5")
    print("NumPy agrees")
