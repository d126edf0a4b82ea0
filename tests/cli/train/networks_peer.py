# SPDX-License-Identifier: Apache-2.0
"""Computes the networks of tests/cli/train/networks.sh again, from their checkpoints, in double precision. Run in its folder."""
import h5py
import numpy as np

data = h5py.File("gusts.h5")


def state_dict(path):
    found = {}

    def visit(_, item):
        if isinstance(item, h5py.Dataset):
            found[item.attrs["name"].decode()] = item[()].astype(float)

    h5py.File(path)["model"].visititems(visit)
    return found


def linear(params, name, x):
    return x @ params[name + ".weight"].T + params[name + ".bias"]


def close(name, path, want):
    got = h5py.File(path)["y"][()]
    assert got.shape == want.shape, (name, got.shape, want.shape)
    error = np.abs(got - want).max() / max(1.0, np.abs(want).max())
    assert error < 1e-5, f"{name}: {error}"


wind, swarm = data["wind"][()].astype(float), data["swarm"][()].astype(float)

params = state_dict("widths/best.h5")
assert [params[f"layers.{i}.weight"].shape for i in range(4)] == [(24, 6), (12, 24), (7, 12), (2, 7)]
h = wind
for i in range(3):
    h = np.tanh(linear(params, f"layers.{i}", h))
close("widths", "widths-p.h5", linear(params, "layers.3", h))

params = state_dict("swarm/best.h5")
h = swarm
for i in range(2):
    h = np.maximum(linear(params, f"point.layers.{i}", h), 0)
h = h.max(axis=1)
for i in range(2):
    h = np.maximum(linear(params, f"head.layers.{i}", h), 0)
close("swarm", "swarm-p.h5", linear(params, "head.layers.2", h))

# What a learning rate of 0 leaves as it is, and what learns beside it.
first, last = state_dict("groups/step-000000000001.h5"), state_dict("groups/step-000000000010.h5")
for name in first:
    assert (first[name] == last[name]).all() == name.startswith("layers.0."), name

# Classes of one weight are classes without; of other weights they are not.
plain, equal = state_dict("unweighed/best.h5"), state_dict("equal/best.h5")
weighed = state_dict("weighed/best.h5")
for name in plain:
    assert np.allclose(plain[name], equal[name], rtol=1e-3, atol=1e-4), name
    assert not np.allclose(plain[name], weighed[name], rtol=1e-3, atol=1e-4), name

# Inputs by name, each number of a point normalised by itself.
params = state_dict("flock/best.h5")
flock = h5py.File("flock.h5")
numbers = {name: flock[name][()].astype(float) for name in ("air/wind here", "place", "swarm", "eye")}
kept = h5py.File("flock/best.h5")["data"]
mean = kept["mean"][()].astype(float) + (kept["mean_rest"][()].astype(float).sum(0) if "mean_rest" in kept else 0)
std, at = kept["std"][()].astype(float), 0
for name, value in numbers.items():
    count = value[0].size
    scaled = (value.reshape(400, count) - mean[at:at + count]) / std[at:at + count]
    assert np.abs(scaled.mean(0)).max() < 0.2 and np.abs(scaled.std(0) - 1).max() < 0.2, name
    numbers[name], at = scaled.reshape(value.shape), at + count
assert at == len(mean) == 32
h = np.concatenate([
    np.tanh(linear(params, "0.0.1", np.concatenate([numbers["place"], numbers["air/wind here"]], axis=1))),
    np.maximum(linear(params, "0.1.1", numbers["swarm"]), 0).max(axis=1),
    np.tanh(linear(params, "0.2.2", numbers["eye"].reshape(400, 8)))], axis=1)
close("flock", "flock-p.h5", linear(params, "1", h))

params = state_dict("tails/best.h5")
lift = data["lift"][()].astype(float)
h = np.concatenate([np.tanh(linear(params, "0.0.1", wind)), np.maximum(linear(params, "0.1.1", lift), 0)], axis=1)
close("tails", "tails-p.h5", linear(params, "1", h))
