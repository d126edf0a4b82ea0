#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package, against NumPy in double precision and against the command.

Usage: package.py PACKAGE_DIR LIBRARY GPURT, or `package.py installed - GPURT` for a package that is
installed. Without Gymnasium its part is said to be skipped.
"""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading

tests = os.path.abspath(__file__)
package, library, command = sys.argv[1:4]
only = sys.argv[4:]  # cases by name; none: all
if package != "installed":
    sys.dont_write_bytecode = True
    sys.path.insert(0, package)
    os.environ["GPURT_LIBRARY"] = library
os.environ["GPURT_DEVICE"] = "ref"

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
import numpy as np  # noqa: E402

import gpurt  # noqa: E402

done = []


def case(function):
    if not only or function.__name__ in only:
        function()
        done.append(function.__name__)


def refused(kind, words, function):
    try:
        function()
    except kind as error:
        assert isinstance(error, gpurt.Error) and words in str(error), (words, str(error))
        return
    raise AssertionError(f"not refused: {words}")


def forward(model, x):
    """A perceptron with ReLU, in double precision."""
    layers = sum(name.endswith("weight") for name in model)
    for i in range(layers):
        x = x @ model[f"layers.{i}.weight"].astype("f8").T + model[f"layers.{i}.bias"].astype("f8")
        x = np.maximum(x, 0) if i + 1 < layers else x
    return x


rng = np.random.default_rng(1)
x = rng.uniform(-1, 1, (512, 3))
y = np.stack([x[:, 0] * x[:, 1], x[:, 2] - 0.5], axis=1)


@case
def devices():
    found = gpurt.devices()
    assert [d for d in found if d.selector == "ref:0" and not d.gpu and d.name], found
    with gpurt.Device("ref:0") as device:
        assert device.info.selector == "ref:0" and repr(device) == "Device('ref:0')"
    refused(gpurt.DeviceError, "no device 'mars' here", lambda: gpurt.Device("mars"))
    try:
        device.pointer
        raise AssertionError("a closed device was used")
    except ValueError:
        pass


@case
def learns():
    told = []
    learner = gpurt.Learner(
        depth=1, hidden=16, epochs=6, batch_size=64, learning_rate=1e-2, activation="relu"
    )
    rows = learner.fit(x, y, report=told.append)
    assert len(rows) == 6 and rows[-1]["loss"] < 0.5 * rows[0]["loss"], rows
    assert told == learner.history and {row["event"] for row in told} >= {
        "start",
        "train",
        "evaluate",
        "end",
    }
    model = learner.checkpoint.model
    assert model["layers.0.weight"].shape == (16, 3)
    want = forward(model, x)
    assert np.abs(learner.predict(x) - want).max() < 1e-5
    assert abs(learner.evaluate(x, y)["loss"] - ((want - y) ** 2).mean()) < 1e-6
    scores, spread = learner.score(x, y), ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    assert abs(scores["mae"] - np.abs(want - y).mean()) < 1e-6
    assert abs(scores["r2"] - (1 - ((want - y) ** 2).sum(axis=0) / spread).mean()) < 1e-5
    # The best evaluation is what it has.
    assert learner.checkpoint.about["step"] == min(rows, key=lambda row: row["loss"])["step"]
    for name in ("a.h5", "a.safetensors", "a.onnx"):
        learner.save(name)
        if name != "a.safetensors":  # weights alone: they know no network
            again = gpurt.Learner.load(name)
            assert np.abs(again.predict(x) - want).max() < 1e-5, name
    assert gpurt.load("a.safetensors").model.keys() == model.keys()
    # More of it begins where it was: its first epoch is no worse than the first of all.
    again = gpurt.Learner.load("a.h5", epochs=1, batch_size=64)
    assert again.fit(x, y)[0]["loss"] < 0.7 * rows[0]["loss"]
    with open("run.yaml", "w") as file:
        file.write(
            "model: {depth: 1, hidden: 16, activation: relu}\n"
            "training: {epochs: 99, batch_size: 64}\n"
        )
    same = gpurt.Learner("run.yaml", epochs=6, learning_rate=1e-2)
    assert [row["loss"] for row in same.fit(x, y)] == [row["loss"] for row in rows]


@case
def several_losses():
    kind = (x[:, 0] > 0).astype(int) + 2 * (x[:, 1] > 0)
    targets = {"near": np.ascontiguousarray(y), "kind": kind}
    learner = gpurt.Learner(
        losses=["mse", "cross_entropy(4)"], loss_weights=[1, 0.5], depth=1, hidden=8, epochs=2
    )
    rows = learner.fit(x, targets)
    out = learner.predict(x)
    width = out.shape[1] - 4
    p = np.exp(out[:, width:])
    p /= p.sum(1, keepdims=True)
    want = [((out[:, :width] - y) ** 2).mean(), -np.log(p[np.arange(len(x)), kind]).mean()]
    found = learner.evaluate(x, targets)
    assert abs(found["loss_1"] - want[0]) < 1e-5 and abs(found["loss_2"] - want[1]) < 1e-5, found
    assert abs(found["loss"] - want[0] - 0.5 * want[1]) < 1e-5 and "loss_3" not in found, found
    assert abs(rows[-1]["loss"] - rows[-1]["loss_1"] - 0.5 * rows[-1]["loss_2"]) < 1e-5, rows
    assert (learner.predict(x, "class_2") == p.argmax(1)).all()
    refused(ValueError, "scores are of one loss", lambda: learner.score(x, targets))
    refused(ValueError, "an input is named x", lambda: learner.evaluate(x, {"x": y, "kind": kind}))


@case
def classes():
    labels = (x[:, 0] > 0).astype(int) + 2 * (x[:, 1] > 0)
    learner = gpurt.Learner(
        {"loss": "cross_entropy", "depth": 1, "hidden": 16, "activation": "relu"},
        epochs=8,
        batch_size=32,
        learning_rate=2e-2,
    )
    learner.fit({"left": x[:, :2].astype("f4"), "right": x[:, 2:]}, labels)
    logits = forward(learner.checkpoint.model, x.astype("f4").astype("f8"))
    parts = {"left": x[:, :2], "right": x[:, 2:]}
    assert np.abs(learner.predict(parts) - logits).max() < 1e-4
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.abs(learner.predict(parts, "probability") - shares).max() < 1e-5
    guess = learner.predict(parts, "class")
    assert guess.shape == (512,) and (guess == logits.argmax(axis=1)).all()
    found = learner.evaluate(parts, labels)
    assert abs(found["accuracy"] - (guess == labels).mean()) < 1e-6 and found["accuracy"] > 0.8
    scores = learner.score(parts, labels)
    assert abs(scores["accuracy"] - found["accuracy"]) < 1e-9
    areas, f1 = [], []
    for k in range(4):
        own, others = shares[labels == k, k], shares[labels != k, k]
        areas.append((own[:, None] > others).mean())
        both = (labels == k).sum() + (guess == k).sum()
        f1.append(2 * ((labels == k) & (guess == k)).sum() / both)
    assert abs(scores["auc"] - np.mean(areas)) < 1e-4 and abs(scores["f1"] - np.mean(f1)) < 1e-9
    assert abs(found["loss"] + np.log(shares[np.arange(512), labels]).mean()) < 1e-5


@case
def options():
    """What makes the best, and a straight line of learning rates."""
    labels = (x[:, 0] * x[:, 1] > 0).astype(int)
    keys = dict(
        loss="cross_entropy", depth=1, hidden=8, epochs=8, batch_size=46, learning_rate=0.05
    )
    by_hits = gpurt.Learner(metric_for_best="accuracy", schedule="linear", **keys)
    rows = by_hits.fit(x, labels)
    best = max(rows, key=lambda row: row["accuracy"])  # the first of equals
    assert by_hits.checkpoint.about["step"] == best["step"]
    assert best["step"] != min(rows, key=lambda row: row["loss"])["step"], rows
    # The rate of the newest step, counted from 0, is told.
    for row in rows:
        assert abs(row["lr"] - 0.05 * (1 - (row["step"] - 1) / rows[-1]["step"])) < 1e-7, row
    # Numbers of another machine's order are turned.
    gpurt.save("big.h5", {"model/a": np.arange(4, dtype=">f4")})
    assert gpurt.load("big.h5")["model/a"].tolist() == [0, 1, 2, 3]
    # A file for the validation: what evaluate() says of it, with the mean and deviation of others.
    gpurt.save(
        "v.h5", {"x": (x[:90] * 2 + 1).astype("f4"), "y": y[:90].astype("f4")}, everything=True
    )
    learner = gpurt.Learner(validation_data="v.h5", normalize=True, depth=1, hidden=8, epochs=3)
    rows = learner.fit(x, y)
    assert abs(learner.evaluate("v.h5")["loss"] - min(row["loss"] for row in rows)) < 1e-6
    both = gpurt.Learner(validation_data="v.h5", validation_split=0.2)
    refused(gpurt.ConfigError, "give one", lambda: both.fit(x, y))
    gpurt.save("w.h5", {"x": x[:9, :2].astype("f4"), "y": y[:9].astype("f4")}, everything=True)
    other = gpurt.Learner(validation_data="w.h5")
    refused(gpurt.DataError, "w.h5: its samples have 2 numbers", lambda: other.fit(x, y))
    learner = gpurt.Learner(metric_for_best="accuracy", epochs=1)
    refused(gpurt.ConfigError, "no accuracy without classes", lambda: learner.fit(x, y))
    learner = gpurt.Learner(metric_for_best="top5", loss="cross_entropy", epochs=1)
    refused(gpurt.ConfigError, "more than 5 classes", lambda: learner.fit(x, labels))


@case
def read_back():
    """Every argument is where the library has it, every kind of value what was given."""
    import pathlib

    from gpurt import _library as c
    from gpurt._config import SUPERVISED, Config, text_of
    from gpurt._learner import _kept

    given = dict(phase=1, num_envs=3, num_dirs=5, top_dirs=2, episode_length=17, step_size=0.25)
    given.update(noise_std=0.125, seed=9, ema=0.5)
    for algo, normal in (("ars", False), ("es", True)):
        keys = {**given, "top_dirs": 0} if algo == "es" else given
        es = gpurt.ES("pendulum", algo=algo, normalize_observations=normal, policy="mlp32", **keys)
        desc = c.library.grt_es_desc_of(es.pointer).contents
        assert {name: getattr(desc, name) for name in keys if keys[name]} == {
            name: value for name, value in keys.items() if value
        }
        assert (desc.algo, desc.no_normalise) == (int(algo == "es"), not normal)
        assert es.fit(1)[0]["iteration"] == 1 and es.returns.shape == (5, 2)
        assert es.checkpoint.about["policy"] == "mlp32"
    for value, text in (
        (True, "true"), (np.bool_(False), "false"), (np.float32(0.25), "0.25"), (np.int64(3), "3"),
        (pathlib.Path("a/b"), "a/b"), ([1, 2], "1,2"), (("a", True), "a,true"), ("x", "x"),
        ([[1], [2]], "[[1], [2]]"), ({"a": 1}, '{"a": 1}'), ([{"linear": 2}], '[{"linear": 2}]'),
    ):  # fmt: skip
        assert text_of(value) == text, (value, text_of(value))
    # Keywords stand above the config; None leaves what is there.
    config = Config(SUPERVISED, {"depth": 3, "hidden": [8, 16], "seed": 4}, {"depth": 2, "seed": None})
    assert [config[key] for key in ("depth", "hidden", "seed")] == ["2", "[8, 16]", "4"], config["hidden"]
    assert config.given("hidden") and not config.given("epochs") and not config.given("data")
    config.set(seed=0, normalize=False)
    assert config["seed"] == "0" and config.given("normalize")
    config.set(data="a \"b\"", normalize=True)
    assert config["data"] == 'a "b"' and config["normalize"] == "true" and config.given("data")
    # Arrays as a file has them.
    for array, kind in (
        ([True, False], "u1"), (np.arange(3), "i4"), (np.arange(3, dtype="u1"), "u1"),
        (np.arange(3, dtype="i1"), "i1"), (np.arange(3, dtype="u2"), "i4"), ([0.5], "f4"),
        (np.zeros(2, "f2"), "f2"), (np.zeros(2, ">f8"), "f4"), (np.zeros((0, 2), int), "i4"),
        (np.array([2**31 - 1, -(2**31)]), "i4"),
    ):  # fmt: skip
        kept = _kept(array)
        assert kept.dtype == np.dtype(kind) and kept.tolist() == np.asarray(array).tolist(), (kept, kind)
    for beyond in (2**31, -(2**31) - 1):
        refused(gpurt.DataError, "beyond 32 bits", lambda: _kept(np.array([0, beyond])))
    # What another program needs of a checkpoint, under its names; or all, under those of here.
    arrays = {"model/a": np.ones(2, "f4"), "optimizer/m": np.zeros(2, "f4")}
    for everything, names in ((None, ["a"]), (False, ["a"]), (True, ["model/a", "optimizer/m"])):
        how = {} if everything is None else {"everything": everything}
        gpurt.save("named.safetensors", arrays, **how)
        with open("named.safetensors", "rb") as f:
            head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        assert sorted(set(head) - {"__metadata__"}) == names, (everything, head)
    # Parts of a file are those of the training.
    gpurt.save("parts.h5", {"x": x[:90].astype("f4"), "y": y[:90].astype("f4")}, everything=True)
    learner = gpurt.Learner(depth=1, hidden=4, epochs=1, validation_split=0.3)
    rows = learner.fit("parts.h5")
    tried = {part: learner.evaluate("parts.h5", part=part) for part in ("train", "validation", "all")}
    assert [tried[part]["samples"] for part in tried] == [63, 27, 90], tried
    assert abs(tried["validation"]["loss"] - rows[-1]["loss"]) < 1e-6, (tried, rows)
    both = (63 * tried["train"]["loss"] + 27 * tried["validation"]["loss"]) / 90
    assert abs(tried["all"]["loss"] - both) < 1e-6, tried
    refused(gpurt.ConfigError, "known are train", lambda: learner.evaluate("parts.h5", part="test"))
    # Devices are those of the command.
    told = subprocess.run([command, "devices", "--format", "json"], capture_output=True, text=True)
    rows = {row["selector"]: row for row in json.loads(told.stdout)["rows"]}
    for found in gpurt.devices():
        row = rows.pop(found.selector)
        assert (found.name, found.vendor) == (row["name"], row["vendor"])
        assert found.driver == f"{row['driver']} {row['driver_version']}".strip(), (found, row)
        assert found.gpu == (row["type"] != "software") and found.memory == row["memory"], (found, row)
    assert not rows, rows


@case
def checkpoints():
    arrays = {
        "model/a": np.arange(6, dtype="f4").reshape(2, 3),
        "b": np.array([1, -2], "i4"),
        "c": np.float16([[0.5]]),
        "d": np.arange(4, dtype="u1"),
        "e": np.array(7, "u4"),
    }
    for name in ("k.h5", "k.safetensors"):
        gpurt.save(
            name, gpurt.Checkpoint(arrays, {"step": 3, "loss": 0.25, "text": "so"}), everything=True
        )
        found = gpurt.load(name)
        for key, array in arrays.items():
            key = key if name == "k.h5" or "/" in key else "model/" + key
            assert (
                found[key].dtype == array.dtype
                and (found[key] == array).all()
                and found[key].shape == array.shape
            )
    found = gpurt.load("k.h5")
    assert found.about == {"step": 3, "loss": 0.25, "text": "so"}, found.about
    # No copy: arrays are the archive's memory, and it lives as long as they do.
    array = found["model/a"]
    assert array.base is not None and not array.flags.owndata
    del found
    assert (array == arrays["model/a"]).all()
    refused(
        gpurt.ConfigError, "complex128", lambda: gpurt.save("z.h5", {"z": np.zeros(2, complex)})
    )
    refused(FileNotFoundError, "none.h5", lambda: gpurt.load("none.h5"))
    with open("bad.h5", "wb") as file:
        file.write(b"\x89HDF\r\n\x1a\n" + bytes(99))
    refused(gpurt.DataError, "bad.h5", lambda: gpurt.load("bad.h5"))


@case
def sentences():
    refused(ValueError, "did you mean 'depth'?", lambda: gpurt.Learner(dept=2))
    refused(gpurt.ConfigError, "known are supervised", lambda: gpurt.Learner(kind="other"))
    refused(gpurt.ConfigError, "learnt nothing yet", lambda: gpurt.Learner().predict(x))
    learner = gpurt.Learner(epochs=1, depth=1, hidden=8)
    refused(gpurt.DataError, "row", lambda: learner.fit(np.where(x > 0.9, np.nan, x), y))
    learner.fit(x, y)
    refused(gpurt.DataError, "samples have 2 features", lambda: learner.predict(x[:, :2]))
    refused(gpurt.ConfigError, "this network gives y", lambda: learner.predict(x, "class"))
    refused(gpurt.ConfigError, "nowhere", lambda: gpurt.Worlds("nowhere"))
    # ctypes would make four billions of them.
    refused(gpurt.ConfigError, "num_envs: -1 is not", lambda: gpurt.ES("cartpole", num_envs=-1))
    refused(ValueError, "4294967296 is not", lambda: gpurt.ES("cartpole", seed=2**32))
    refused(gpurt.ConfigError, "a whole number", lambda: gpurt.ES("cartpole", num_dirs=2.5))
    refused(gpurt.ConfigError, "copies: -2 is not", lambda: gpurt.Worlds("cartpole", copies=-2))
    worlds = gpurt.Worlds("cartpole", copies=np.int64(2))
    refused(gpurt.ConfigError, "seed: -1 is not", lambda: worlds.reset(seed=-1))
    es = gpurt.ES("cartpole", num_envs=2, num_dirs=2)
    refused(gpurt.ConfigError, "seed: -1 is not", lambda: es.evaluate(seed=-1))
    refused(gpurt.ConfigError, "checkpoint_dir", lambda: learner.fit(x, y, resume=True))

    def broken(row):
        raise RuntimeError("mine")

    try:
        learner.fit(x, y, report=broken)
        raise AssertionError("the caller's own exception was lost")
    except RuntimeError as error:
        assert str(error) == "mine"


@case
def interrupts():
    """Ctrl-C ends a run that would take hours, and its weights stay; resumed it reaches the same
    bits."""
    keys = dict(depth=1, hidden=8, batch_size=64, checkpoint_dir="runs")
    learner = gpurt.Learner(epochs=100000, **keys)
    # Once the first rows are there, from another thread as a terminal would.
    started = threading.Event()

    def press():
        started.wait(600)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    before = signal.getsignal(signal.SIGINT)
    try:
        learner.fit(x, y, report=lambda row: row["event"] == "evaluate" and started.set())
        raise AssertionError("Ctrl-C was not heard")
    except KeyboardInterrupt:
        pass
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert learner.predict(x).shape == (512, 2)
    last = [row for row in learner.history if row["event"] == "end"][-1]
    assert last["ended"] == "signal", last
    epochs = int(last["step"]) // 8 + 2
    resumed = gpurt.Learner(epochs=epochs, **keys).fit(x, y, resume=True)
    whole = gpurt.Learner(epochs=epochs, **{**keys, "checkpoint_dir": "whole"}).fit(x, y)
    assert resumed[-1]["loss"] == whole[-1]["loss"], (resumed[-1], whole[-1])


def cartpole(state, right):
    """Gymnasium's CartPole-v1, in double precision."""
    place, speed, angle, rate = state.T
    force = np.where(right, 10.0, -10.0)
    temp = (force + 0.05 * rate**2 * np.sin(angle)) / 1.1
    turn = (9.8 * np.sin(angle) - np.cos(angle) * temp) / (
        0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1)
    )
    push = temp - 0.05 * turn * np.cos(angle) / 1.1
    return np.stack(
        [place + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * rate, rate + 0.02 * turn], axis=1
    )


@case
def worlds():
    w = gpurt.Worlds("cartpole", 32)
    assert (
        w.state_names == ["x", "v", "a", "w"]
        and w.obs.shape == (32, 4)
        and w.mask is None
        and w.length == 500
    )
    first = w.reset(seed=4).copy()
    states = rng.uniform(-0.2, 0.2, (32, 4)).astype("f4")
    w.states = states
    assert (w.obs == states).all()
    right = rng.random(32) > 0.5
    obs, rewards, ends = w.step(np.where(right, 1, -1))
    want = cartpole(states.astype("f8"), right)
    assert np.abs(obs - want).max() < 1e-6 and (w.states == obs).all()
    assert ((ends == gpurt.LAST) == (np.abs(want[:, 2]) > 12 * math.pi / 180)).all() and (
        rewards == 1
    ).all()
    # The arrays are the library's: a step overwrites them, and they outlive the object.
    kept = w.obs
    w.reset(seed=4)
    assert (
        obs is w.obs
        and (kept == first).all()
        and not kept.flags.owndata
        and not kept.flags.writeable
    )
    del w
    assert (kept == first).all()
    team = gpurt.Worlds("uav", 2, num_uavs=3, map=12)
    team.reset(1)
    assert team.agents == 3 and team.obs.shape[0] == 6 and team.whole.shape[0] == 2
    moves = [next(i for i in range(9) if m >> i & 1) for m in team.mask]
    team.step(moves)
    assert team.choices == 9 and team.actions.dtype == "u4" and team.mask.dtype == "u4"
    assert team.rows == 6 and team.copies == 2 and team.length == 200 and team.state_names == []
    # Words that are set begin an episode there, and are what is read again.
    words = team.words
    there = team.obs.copy()
    team.step(moves)
    team.words = words
    assert (team.obs == there).all() and (team.words == words).all() and words.dtype == "u4"
    # What stands in the actions is taken where none are given.
    two = gpurt.Worlds("pendulum", 2, length=2), gpurt.Worlds("pendulum", 2, length=2)
    for pair in two:
        pair.reset(seed=9)
    two[0].actions[...] = [[0.5], [-1]]
    for turn, end in enumerate((0, gpurt.LAST | gpurt.CUT, gpurt.IDLE)):
        two[0].step()
        two[1].step([0.5, -1])
        assert (two[0].obs == two[1].obs).all() and (two[0].rewards == two[1].rewards).all()
        assert (two[0].ends == end).all() and ((two[0].rewards == 0) == (turn == 2)).all()
    assert (gpurt.LAST, gpurt.CUT, gpurt.IDLE) == (1, 2, 4)
    # The last phase of the robot has a commanded speed, of which all is missing.
    for phase, missing in ((1, 0), (4, 1)):
        robot = gpurt.Worlds("standing", 2, phase=phase)
        assert (robot.reset(seed=2)[:, 1] == missing).all() and robot.actions.shape == (2, 8)
    refused(gpurt.ConfigError, "keeps its state in memory", lambda: team.states)
    refused(gpurt.ConfigError, "num_uav", lambda: gpurt.Worlds("uav", 2, num_uav=3))
    refused(
        gpurt.ConfigError, "before the first reset", lambda: gpurt.Worlds("pendulum").step([[0]])
    )


def played(env, path):
    """What `gpurt play` has seen and done."""
    subprocess.run(
        [
            command,
            "play",
            env,
            "--checkpoint",
            path,
            "--steps",
            "20",
            "--device",
            "ref",
            "--format",
            "json",
            "-o",
            "play.json",
        ],
        check=True,
        capture_output=True,
    )
    with open("play.json") as file:
        return json.load(file)


@case
def strategies():
    for policy in ("linear", "mlp16-tanh"):
        es = gpurt.ES("cartpole", policy=policy, num_envs=4, num_dirs=8, seed=3)
        refused(gpurt.Error, "no iteration yet", lambda: es.returns)
        rows = es.fit(3)
        assert [row["iteration"] for row in rows] == [1, 2, 3] and rows[-1]["mean_return"] > 10
        assert es.returns.shape == (8, 2)
        assert np.isclose(es.returns.mean(), rows[-1]["mean_return"], rtol=1e-4)
        assert np.isclose(es.returns.max(), rows[-1]["best_return"], rtol=1e-4)
        es.save("es.h5")
        flight = played("cartpole", "es.h5")
        seen, acted = np.array(flight["observations"], "f4"), np.array(flight["actions"])
        assert (
            np.abs(gpurt.Policy("es.h5")(seen) - acted.reshape(len(seen), -1)).max() < 1e-5
        ), policy
        again = gpurt.ES("cartpole", policy=policy, num_envs=4, num_dirs=8, seed=3)
        again.load("es.h5")
        assert again.iterate()["mean_return"] == es.iterate()["mean_return"]
        assert set(es.evaluate()) == {"mean_return", "good_rate", "fall_rate", "seconds"}
    refused(gpurt.ConfigError, "known are ars", lambda: gpurt.ES("cartpole", algo="cma"))
    refused(gpurt.ConfigError, "uav", lambda: gpurt.ES("uav"))
    refused(
        gpurt.ConfigError,
        "its policy is",
        lambda: gpurt.ES("cartpole", policy="affine").load("es.h5"),
    )


@case
def proximal():
    keys = dict(num_envs=8, rollout_steps=16, hidden=16, depth=1, evaluate_envs=4, seed=5)
    ppo = gpurt.PPO("cartpole", keys, learning_rate=1e-3)
    rows = ppo.fit(2)
    assert rows[-1]["iteration"] == 2 and rows[-1]["entropy"] > 0
    ppo.save("ppo.h5")
    again = gpurt.PPO("cartpole", start="ppo.h5")
    one, two = ppo.iterate(), again.iterate()
    assert one["policy_loss"] == two["policy_loss"] and one["kl"] == two["kl"]
    parts = gpurt.PPO("cartpole", keys, micro_batches=2)
    parts.fit(1)
    parts.save("parts.h5")
    again = gpurt.PPO("cartpole", start="parts.h5")
    assert parts.iterate()["policy_loss"] == again.iterate()["policy_loss"]
    assert again.checkpoint.about["config_micro_batches"] == "2"
    tried = ppo.evaluate()
    assert tried["episodes"] == 4 and "good" in tried and "kl" not in tried
    flight = played("cartpole", "ppo.h5")
    seen, acted = np.array(flight["observations"], "f4"), np.array(flight["actions"]).reshape(
        20, -1
    )
    assert np.abs(gpurt.Policy("ppo.h5")(seen) - np.clip(acted, -1, 1)).max() < 1e-5
    team = gpurt.PPO(
        "uav", num_envs=2, rollout_steps=4, num_uavs=2, map=10, evaluate_envs=2, hidden=16
    )
    team.fit(1)
    team.save("uav.h5")
    # Settings are those of the checkpoint, but for those that are given, which are others.
    own = team.checkpoint.about["setting_num_obstacles"]
    for given, obstacles in (({}, own), ({"num_obstacles": own + 2}, own + 2)):
        about = gpurt.PPO("uav", start="uav.h5", **given).checkpoint.about
        assert about["setting_map"] == 10 and about["setting_num_obstacles"] == obstacles, about
    flight = played("uav", "uav.h5")
    act = gpurt.Policy("uav.h5")
    for obs, mask, moves, counts in zip(
        *(flight[k] for k in ("observations", "masks", "actions", "counts"))
    ):
        assert (act(np.array(obs), np.array(mask)) == moves)[np.array(counts, bool)].all()
    refused(
        gpurt.ConfigError, "no key 'rollout_step'", lambda: gpurt.PPO("cartpole", rollout_step=3)
    )


@case
def gymnasiums():
    try:
        import gymnasium
        from gymnasium.utils.env_checker import check_env
    except ImportError:
        print("package.py: skipped: Gymnasium is not installed")
        return
    import warnings

    import gpurt.gym  # noqa: F401

    for name in ("cartpole", "pendulum", "standing"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of spaces without bounds, as CartPole's own
            check_env(gymnasium.make("gpurt/" + name).unwrapped, skip_render_check=True)
        env = gymnasium.make_vec("gpurt/" + name, num_envs=5)
        obs, info = env.reset(seed=3)
        again, info = env.reset(seed=3)
        assert (obs == again).all() and env.observation_space.contains(obs)
        env.action_space.seed(1)
        ended = np.zeros(5, bool)
        for step in range(40):
            obs, rewards, terminated, truncated, info = env.step(env.action_space.sample())
            assert (
                env.observation_space.contains(obs)
                and terminated.dtype == bool
                and truncated.shape == (5,)
            )
            assert (rewards[ended] == 0).all()  # the step that begins the next episode
            ended = terminated | truncated
    short = gymnasium.make_vec("gpurt/pendulum", num_envs=2, length=3)
    short.reset(seed=1)
    ends = [short.step(np.zeros((2, 1)))[3].all() for step in range(5)]
    assert ends == [False, False, True, False, False], ends
    from gpurt.gym import VectorEnv

    refused(gpurt.ConfigError, "has 10 agents", lambda: VectorEnv("uav"))


@case
def environments():
    """With Gymnasium, or what stands in for it: ends, copies, seeds, states."""
    if "gymnasium" not in sys.modules:
        sys.path.insert(0, os.path.dirname(tests))
        import stand_in

        stand_in.install()
    from gpurt.gym import Env, VectorEnv

    # A pole that is pushed to one side falls: that is an end, and no cut. Three steps are a cut.
    env, one = VectorEnv("cartpole", 3), Env("cartpole")
    env.reset(seed=3), one.reset(seed=3)
    for step in range(100):
        obs, rewards, terminated, truncated, _ = env.step(np.ones((3, 1)))
        single = one.step(np.ones(1))
        assert single[2] == terminated[0] and single[3] is False and single[1] == rewards[0]
        assert (single[0] == obs[0]).all() and not truncated.any() and rewards.dtype == "f8"
        if terminated.any():
            break
    assert 5 < step < 40 and (rewards == 1).all(), step
    begun, rewards, ended, cut, _ = env.step(np.ones((3, 1)))
    assert (rewards[terminated] == 0).all() and not ended[terminated].any()
    assert (np.abs(begun[terminated]) <= 0.05).all()  # where episodes begin
    for short in (VectorEnv("pendulum", 2, length=3), Env("pendulum", length=3)):
        short.reset(seed=1)
        many = short.step(np.zeros((2, 1)) if hasattr(short, "num_envs") else np.zeros(1))
        for step in range(2, 6):
            assert not np.any(many[2]) and bool(np.all(many[3])) == (step == 4), (step, many)
            many = short.step(np.zeros((2, 1)) if hasattr(short, "num_envs") else np.zeros(1))
    # What was returned stays, or is the library's own.
    for copy in (True, False):
        env = VectorEnv("pendulum", 2, copy=copy)
        first, _ = env.reset(seed=5)
        before = first.copy()
        obs = env.step(np.full((2, 1), 0.7))[0]
        assert (first == before).all() == copy and np.shares_memory(first, obs) == (not copy)
    # A seed begins the same episodes, none begins others, which follow from the seed before.
    def starts(seed):
        return [env.reset(seed=s)[0].copy() for s in (seed, None, None)]

    a, b = starts(7), starts(7)
    assert all((x == y).all() for x, y in zip(a, b)) and (a[1] != a[2]).any()
    assert (starts(8)[0] != a[0]).any()
    states = np.array([[0.1, 0.2], [0.3, -0.4]], "f4")
    obs, _ = env.reset(seed=1, options={"states": states})
    angle, rate = states.T
    assert np.abs(obs - np.stack([np.cos(angle), np.sin(angle), rate], 1)).max() < 1e-6
    assert env.observation_space.shape == (2, 3) and env.single_action_space.shape == (1,)
    act = env.single_action_space
    assert np.all(act.low == -1) and np.all(act.high == 1)
    refused(gpurt.ConfigError, "one seed begins", lambda: env.reset(seed=[1, 2]))
    refused(gpurt.ConfigError, "has 10 agents", lambda: Env("uav"))


print(f"package.py: {len(done)} cases, {gpurt.__file__}")
