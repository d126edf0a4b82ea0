#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first step of a training that ranks took together, again in NumPy, in double precision and without any of their
cuts: a small network of linear layers, norms over the batch, tanh and relu, its loss over all rows at once, and its
gradient by differences. Usage: together.py DATA ROWS BEFORE AFTER LOG RATE LAYERS BATCH, BATCH being what is told apart
or normed together; LAYERS like "0 tanh 2 relu", a number being a linear layer or a norm of that name."""

import csv
import json
import sys

import h5py
import numpy as np

data, rows, before, after, log, rate, layers, batch = sys.argv[1:]
rate, batch = float(rate), int(batch)


def parameters(path):
    """Those of a checkpoint, as doubles by name."""
    found = {}
    with h5py.File(path) as f:
        f["model"].visititems(lambda n, o: found.update({n.replace("/", "."): np.array(o, "f8")})
                              if isinstance(o, h5py.Dataset) else None)
    return found


def forward(p, x, moved=None):
    """What the network makes of rows. moved: gets the running statistics after it."""
    for name in layers.split():
        if name in ("tanh", "relu"):
            x = np.tanh(x) if name == "tanh" else np.maximum(x, 0)
        elif name + ".running_mean" in p:
            axes = tuple(range(x.ndim - 1))
            mean, var, count = x.mean(axes), x.var(axes), x.size // x.shape[-1]
            if moved is not None:
                moved[name + ".running_mean"] = 0.9 * p[name + ".running_mean"] + 0.1 * mean
                moved[name + ".running_var"] = 0.9 * p[name + ".running_var"] + 0.1 * var * count / (count - 1)
            x = (x - mean) / np.sqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]
        else:
            x = x @ p[name + ".weight"].T + p[name + ".bias"]
    return x


def nt_xent(z, tau=0.5):
    """Of rows, then all their other views."""
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    s = z @ z.T / tau
    pair = np.roll(np.arange(len(z)), len(z) // 2)
    near = s[np.arange(len(z)), pair]
    np.fill_diagonal(s, -np.inf)
    return np.mean(np.log(np.exp(s).sum(1)) - near)


with h5py.File(data) as f:
    x, y = np.array(f["x"], "f8"), np.array(f["y"], "f8")
with open(rows) as f:
    order = [int(r["row"]) for r in csv.DictReader(f)]
first, second = parameters(before), parameters(after)
contrast = any(n.startswith("projection") for n in first)
step = order[: int(json.loads(open(log).readline())["batch"])]


def loss(p):
    """The mean over the batches of the step."""
    each = []
    for at in range(0, len(step), batch):
        of = step[at : at + batch]
        if contrast:
            each.append(nt_xent(forward(p, np.concatenate([x[of], x[of]]))))
        else:
            each.append(np.mean((forward(p, x[of]) - y[of].reshape(len(of), -1)) ** 2))
    return np.mean(each)


said = next(r["loss"] for r in map(json.loads, open(log)) if r["event"] == "train")
assert abs(said - loss(first)) < 2e-6 * loss(first), (said, loss(first))
worst = 0
for name, now in second.items():
    if "running" in name or "num_batches" in name:
        continue
    for i in np.ndindex(now.shape):
        sides = []
        for h in (1e-5, -1e-5):
            moved = {k: v.copy() for k, v in first.items()}
            moved[name][i] += h
            sides.append(loss(moved))
        slope = (sides[0] - sides[1]) / 2e-5
        worst = max(worst, abs(first[name][i] - rate * slope - now[i]))
assert worst < 2e-6 * max(1, rate), worst
moved = {}
if not contrast:
    forward(first, x[step], moved)
for name, want in moved.items():
    assert np.abs(second[name] - want).max() < 1e-6, (name, second[name], want)
    assert np.abs(second[name] - first[name]).max() > 1e-3, name
print(f"loss {said:.6f}, parameters within {worst:.1e}, {len(moved)} running statistics")
