#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a TensorBoard folder has besides scalars: settings of the run and its end for the page of hyperparameters, and
histograms of the parameters, read here by the numbers of their fields. Usage: board.py GPURT

Read by hand with TensorBoard 2.21's own classes too."""
import glob
import os
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../harness"))
import protobuf

gpurt = os.path.abspath(sys.argv[1])


def run(*words, code=0):
    done = subprocess.run([gpurt, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)


def fields(blob):
    """A dict of lists by the numbers of the fields."""
    found = {}
    for number, value in protobuf.fields(blob):
        found.setdefault(number, []).append(value)
    return found


def events(folder):
    (path,), found = glob.glob(f"{folder}/events.*"), []
    blob, at = open(path, "rb").read(), 0
    while at < len(blob):
        size = struct.unpack("<Q", blob[at:at + 8])[0]
        event = fields(blob[at + 12:at + 12 + size])
        at += size + 16
        for summary in event.get(5, []):
            for value in fields(summary)[1]:
                value = fields(value)
                found.append((value[1][0].decode(), event.get(2, [0])[0], value))
    return found


def plugin(values, tag):
    (value,) = [v for name, step, v in values if name == tag]
    named = fields(fields(value[9][0])[1][0])
    assert named[1] == [b"hparams"]
    return fields(named[2][0])


def settings(values):
    start = fields(plugin(values, "_hparams_/session_start_info")[3][0])
    found = {}
    for entry in start[1]:
        entry = fields(entry)
        value = fields(entry[2][0])
        found[entry[1][0].decode()] = value[2][0] if 2 in value else value[3][0].decode() if 3 in value else bool(value[4][0])
    assert 1.7e9 < start[5][0]
    return found


rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with h5py.File("d.h5", "w") as f:
        f["x"], f["y"] = rng.normal(size=(60, 3)).astype("f4"), rng.normal(size=(60, 2)).astype("f4")
    common = ["--data", "d.h5", "--device", "ref:0", "-q", "batch_size=10", "hidden=5", "keep=9"]
    run("train", "supervised", *common, "epochs=3", "learning_rate=0.0625", "optimizer=sgd", "normalize=true", "histograms=true",
        "checkpoint_interval=6", "--tensorboard", "board", "checkpoint_dir=run")
    values = events("board")
    told = settings(values)
    assert told["learning_rate"] == 0.0625 and told["epochs"] == 3 and told["optimizer"] == "sgd" and told["normalize"] is True, told
    assert not {"data", "tensorboard", "checkpoint_dir"} & set(told), told
    assert fields(plugin(values, "_hparams_/session_end_info")[4][0])[1] == [1]
    names = set()
    for tag, step, value in values:
        if 5 not in value:
            continue
        names.add(tag)
        h = fields(value[5][0])
        with h5py.File(f"run/step-{step:012d}.h5") as f:
            group, _, leaf = tag.rpartition(".")
            numbers = f[f"{group}/{leaf}"][()].astype("f8").ravel()
        low, high, count, total, squares = (h[i][0] for i in range(1, 6))
        limits, counts = np.frombuffer(h[6][0]), np.frombuffer(h[7][0])
        assert (low, high, count) == (numbers.min(), numbers.max(), numbers.size) and np.isclose(total, numbers.sum()) and np.isclose(squares, (numbers**2).sum())
        assert len(limits) == len(counts) == 30 and counts.sum() == count
        wanted = np.histogram(numbers, 30)[0]
        assert np.allclose(limits, low + (high - low) / 30 * np.arange(1, 31), rtol=1e-9, atol=1e-12), (tag, limits)
        assert np.abs(np.cumsum(counts) - np.cumsum(wanted)).max() <= 1, (tag, counts, wanted)
    assert {"model/layers.0.weight", "model/layers.0.bias"} <= names, names
    assert sorted({step for tag, step, value in values if 5 in value}) == [6, 12, 18]
    # Without the key none; a run that fails says so.
    run("train", "supervised", *common, "epochs=20", "learning_rate=1000", "optimizer=sgd", "--tensorboard", "failed", "checkpoint_dir=failed-run", code=70)
    values = events("failed")
    assert fields(plugin(values, "_hparams_/session_end_info")[4][0])[1] == [2] and not [1 for v in values if 5 in v[2]]
print("board: as written")
