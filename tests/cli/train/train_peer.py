# SPDX-License-Identifier: Apache-2.0
"""Reads what `gpurt train`, `predict` and `convert` wrote with h5py and NumPy, and computes the networks
again in double precision. Run in the folder of tests/cli/train/train.sh; argument: the loss that `gpurt eval` gave."""
import json
import struct
import sys

import h5py
import numpy as np


def state_dict(file, group="model"):
    found = {}

    def visit(_, item):
        if isinstance(item, h5py.Dataset):
            found[item.attrs["name"].decode()] = item[()]

    file[group].visititems(visit)
    return found


def layers(params, prefix="layers"):
    count = sum(1 for name in params if name.startswith(prefix + ".") and name.endswith(".weight"))
    return [(params[f"{prefix}.{i}.weight"].astype(float), params[f"{prefix}.{i}.bias"].astype(float))
            for i in range(count)]


def mlp(x, stack, last_linear=True):
    for i, (weight, bias) in enumerate(stack):
        x = x @ weight.T + bias
        if not last_linear or i + 1 < len(stack):
            x = np.maximum(x, 0)
    return x


def close(name, got, want):
    error = np.abs(got - want).max() / max(1.0, np.abs(want).max())
    assert got.shape == want.shape and error < 1e-5, f"{name}: {error}"


# A regression: names, shapes, predictions.
model = h5py.File("whole/best.h5")
data = h5py.File("d.h5")
params = state_dict(model)
assert sorted(params) == sorted(f"layers.{i}.{kind}" for i in range(4) for kind in ("weight", "bias"))
assert params["layers.0.weight"].shape == (16, 8) and params["layers.0.weight"].dtype == np.float32
assert set(state_dict(model, "optimizer")) == {f"{kept}.{name}" for name in params
                                               for kept in ("exp_avg", "exp_avg_sq")}
assert model.attrs["schema"] == b"gpurt.checkpoint/1" and model.attrs["step"] > 0
y = mlp(data["x"][()].astype(float), layers(params))
close("predict", h5py.File("p.h5")["y"][()], y)
# The loss over the validation part was given; over all samples it cannot be far.
whole = np.mean((y - data["y"][()]) ** 2)
assert 0.5 * whole < float(sys.argv[1]) < 2 * whole, (sys.argv[1], whole)

# Safetensors: the form as its documentation has it.
blob = open("model.safetensors", "rb").read()
size = struct.unpack("<Q", blob[:8])[0]
header = json.loads(blob[8:8 + size])
assert (8 + size) % 8 == 0
names = {name for name in header if name != "__metadata__"}
assert names == set(params), names
for name in names:
    entry = header[name]
    begin, end = entry["data_offsets"]
    tensor = np.frombuffer(blob[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"])
    assert entry["dtype"] == "F32" and (tensor == params[name]).all(), name

# Classes, with inputs that were normalised.
model = h5py.File("classes/best.h5")
x = h5py.File("c.h5")["x"][()].astype(float)
x = (x - model["data/mean"][()]) / model["data/std"][()]
logits = mlp(x, layers(state_dict(model)))
predicted = h5py.File("pc.h5")
close("classes", predicted["y"][()], logits)
assert (predicted["class"][()] == predicted["y"][()].argmax(1)).all()
assert (predicted["class"][()] == h5py.File("c.h5")["y"][()].reshape(-1)).mean() > 0.85

# Points: the same network over each, the largest of each feature, then the head.
model = h5py.File("points/best.h5")
params = state_dict(model)
x = h5py.File("q.h5")["x"][()].astype(float)
pooled = mlp(x, layers(params, "point.layers"), last_linear=False).max(axis=1)
close("points", h5py.File("pq.h5")["y"][()], mlp(pooled, layers(params, "head.layers")))
print("NumPy agrees")
