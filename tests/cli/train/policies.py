#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a policy did, told twice: trajectories of `gpurt play` against the equations of their environments, rows of a log against
each other, baselines and `gpurt eval` against what was tried, settings that a resumed run goes on with, and what is refused.
Usage: policies.py GPURT"""
import csv
import io
import json
import math
import os
import subprocess
import sys
import tempfile

gpurt = os.path.abspath(sys.argv[1])
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
environment = {**os.environ, "GPURT_DEVICE": "ref:0"}


def run(*words, code=0):
    done = subprocess.run([gpurt, *words], capture_output=True, text=True, timeout=600, env=environment)
    if done.returncode != code:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stderr if code else done.stdout


def refused(code, sentence, *words):
    said = run(*words, code=code)
    assert sentence in said, (words, said)


def rows(path, event):
    with open(path) as f:
        return [r for r in map(json.loads, f) if r["event"] == event]


def play(*words):
    return json.loads(run("play", *words, "--format", "json"))


def near(got, want, bound, *what):
    assert abs(got - want) <= bound * (1 + abs(want)), (got, want, *what)


# ---- evolution strategies ----
es = "train es --env cartpole --policy linear --num-envs 4 --num-dirs 4 --episode-length 60 --seed 3 -q".split()
run(*es, "--iterations", "3", "--checkpoint", "c.h5", "--log", "c.jsonl", "--baselines")
for row in rows("c.jsonl", "train"):
    # A step of a pole is a point: 32 episodes took so many, in no more time than had passed.
    steps = 32 * row["return"]
    assert row["steps_per_s"] * row["seconds"] >= 0.999 * steps and 0 < row["gpu"] <= 1, row
    near(row["good_rate"] * 60 + row["falls"], row["return"], 1e-5, row)
    assert row["return"] <= row["best_return"] <= 60 and 0 <= row["falls"] <= 1
tried = rows("c.jsonl", "evaluate")
assert [r["step"] for r in tried] == [0, 1, 2, 3]
constants = rows("c.jsonl", "baseline")
assert [r["baseline"] for r in constants] == ["the policy", "no action", "its biases alone", "best constant action"]
for key in ("return", "good_rate", "falls"):
    assert constants[0][key] == tried[-1][key], key
    # A linear policy has no biases, and begins with none: what it did at first was nothing.
    assert constants[1][key] == constants[2][key] == tried[0][key], key
assert constants[3]["good_rate"] >= constants[1]["good_rate"]
begun = rows("c.jsonl", "start")[0]
assert (begun["parameters"], begun["seed"], begun["algo"], begun["phase"], begun["num_dirs"]) == (4, 3, "ars", 1, 4)

# ---- a trajectory of a pole ----
# One that falls: pushed by nothing it goes to one side.
run("train", "es", "--env", "cartpole", "--policy", "affine", "--num-envs", "2", "--num-dirs", "2", "--episode-length", "2",
    "--iterations", "1", "--step-size", "1e-9", "--noise-std", "1e-6", "--checkpoint", "idle.h5", "-q")


def pole(x, v, a, w, right):
    force = 10 if right else -10
    temp = (force + 0.05 * w * w * math.sin(a)) / 1.1
    turn = (9.8 * math.sin(a) - math.cos(a) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(a) ** 2 / 1.1))
    push = temp - 0.05 * turn * math.cos(a) / 1.1
    return x + 0.02 * v, v + 0.02 * push, a + 0.02 * w, w + 0.02 * turn


trip = play("cartpole", "--checkpoint", "idle.h5", "--steps", "100")
frames = trip["frames"]
assert trip["env"] == "cartpole" and trip["phase"] == 1 and trip["state"] == ["x", "v", "a", "w"]
near(trip["dt"], 0.02, 1e-7)
assert trip["falls"] == 1 and 5 < len(frames) < 40, (trip["falls"], len(frames))
assert trip["return"] == len(frames) and trip["rewards"] == [[1.0]] * len(frames)
near(trip["good_rate"], (len(frames) - 1) / 100, 1e-6)  # of the steps that were asked for; in the last it falls
assert trip["observations"] == frames and len(trip["actions"]) == len(frames)
for before, act, after in zip(frames, trip["actions"], frames[1:]):
    assert abs(act[0]) < 1e-3, act
    for got, want in zip(after, pole(*before, act[0] > 0)):
        near(got, want, 2e-6, before, act)
    assert not (abs(before[0]) > 2.4 or abs(before[2]) > math.radians(12)), "it went on behind its end"
assert abs(frames[-1][0]) > 2.4 or abs(frames[-1][2]) > math.radians(12)
# Another start is another episode; as few steps as are wanted; the same twice.
first = play("cartpole", "--checkpoint", "c.h5", "--steps", "7")
assert len(first["frames"]) == 7 and first["good_rate"] == 1 and first["falls"] == 0
assert first == play("cartpole", "--checkpoint", "c.h5", "--steps", "7", "--start", "1")
assert first["frames"] != play("cartpole", "--checkpoint", "c.h5", "--steps", "7", "--start", "2")["frames"]
assert len(play("cartpole", "--checkpoint", "c.h5")["frames"]) <= 300

# ---- phases ----
st = "train standing --num-envs 2 --num-dirs 2 --episode-length 3 -q".split()
run(*st, "--iterations", "1", "--checkpoint", "s1.h5")
run(*st, "--iterations", "1", "--phase", "4", "--from", "s1.h5", "--checkpoint", "s4.h5", "--log", "s4.jsonl")
assert rows("s4.jsonl", "start")[0]["phase"] == 4
for path, words, phase, speed in (("s1.h5", [], 1, 0), ("s4.h5", [], 4, 1), ("s1.h5", ["--phase", "4"], 4, 1)):
    trip = play("standing", "--checkpoint", path, "--steps", "2", *words)
    assert trip["phase"] == phase and len(trip["frames"][0]) == 49, (path, words, trip["phase"])
    assert trip["frames"][0][trip["state"].index("speed")] == speed
# A run goes on in its own phase, by its own algorithm, with sizes of its own.
for name, words in (("phase", [*st, "--phase", "4", "--from", "s1.h5"]), ("algo", [*es, "--algo", "es", "--dir-chunk", "3"])):
    run(*words, "--iterations", "3", "--checkpoint", name + "-whole.h5")
    run(*words, "--iterations", "1", "--checkpoint", name + "-part.h5")
    run("train", "es", "--resume", name + "-part.h5", "--iterations", "3", "-q")
    assert open(name + "-part.h5", "rb").read() == open(name + "-whole.h5", "rb").read(), name

# ---- PPO ----
ppo = "train ppo --env pendulum --num-envs 4 rollout_steps=8 hidden=8 depth=1 evaluate_envs=3 update_epochs=1 -q".split()
run(*ppo, "--iterations", "3", "--checkpoint", "p.h5", "--log", "p.jsonl")
learnt = rows("p.jsonl", "train")
parts = {r["part"]: r for r in rows("p.jsonl", "timing")}
# No episode ends within 24 steps: every row counts, and none has a return.
for row in learnt:
    assert row["episodes"] == 0 and "return" not in row and "length" not in row and "good" not in row, row
    assert 32 / row["steps_per_s"] <= row["seconds"], row
# The first iteration is left out where there are others.
near(parts["whole"]["part_seconds"], sum(32 / r["steps_per_s"] for r in learnt[1:]), 1e-6)
near(sum(r["share"] for name, r in parts.items() if name != "whole"), 1, 1e-6)
for name, row in parts.items():
    near(row["share"], row["part_seconds"] / parts["whole"]["part_seconds"], 1e-6, name)
for row in rows("p.jsonl", "evaluate"):
    assert row["length"] == 200 and -16.3 * 200 < row["return"] < 0 and 0 <= row["good"] <= 1
(policy, random) = rows("p.jsonl", "baseline")
assert (policy["baseline"], random["baseline"]) == ("the policy", "random actions")
for key in ("return", "length", "good"):
    assert policy[key] == rows("p.jsonl", "evaluate")[-1][key], key
# What it is worth elsewhere is the same, on the same starts.
table = list(csv.DictReader(io.StringIO(run("eval", "pendulum", "--checkpoint", "p.h5", "--episodes", "3", "--format", "csv"))))
assert [r["policy"] for r in table] == ["the policy", "random actions"] and all(r["episodes"] == "3" for r in table)
near(float(table[0]["return"]), policy["return"], 1e-6)
near(float(table[1]["return"]), random["return"], 1e-6)
other = list(csv.DictReader(io.StringIO(run("eval", "pendulum", "--checkpoint", "p.h5", "--episodes", "3", "--seed", "1", "--format", "csv"))))
assert other[0]["return"] != table[0]["return"] and float(other[0]["length"]) == 200
one = play("pendulum", "--checkpoint", "p.h5")
assert len(one["frames"]) == 200 and one["falls"] == 0 and one["phase"] == 1
near(one["return"], sum(r[0] for r in one["rewards"]), 1e-5)
near(one["good_rate"], sum(abs(f[0]) < 0.2 for f in one["frames"]) / 200, 1e-6)
for k in range(1, 200):
    angle, rate = one["frames"][k - 1]
    act = max(-1, min(1, one["actions"][k - 1][0]))
    near(one["rewards"][k][0], -(angle**2 + 0.1 * rate**2 + 0.001 * (2 * act) ** 2), 1e-5, k)
    near(one["observations"][k][2], one["frames"][k][1], 1e-6, k)
    near(one["frames"][k][1], max(-8, min(8, rate + 0.05 * (15 * math.sin(angle) + 6 * act))), 1e-6, k)
assert len(play("pendulum", "--checkpoint", "p.h5", "--steps", "9")["frames"]) == 9
assert play("pendulum", "--checkpoint", "p.h5", "--start", "2")["frames"] != one["frames"]
# Ends by what the first term came to: a share of good steps that is there, and one that is not.
run(*ppo, "--iterations", "9", "until=0.0001", "--checkpoint", "u.h5", "--log", "u.jsonl", "--env", "cartpole")
assert rows("u.jsonl", "end")[0]["ended"] == "until" and not rows("u.jsonl", "train")[2:]
run(*ppo, "--iterations", "2", "until=1", "--checkpoint", "u.h5", "--log", "v.jsonl", "--env", "cartpole")
assert rows("v.jsonl", "end")[0]["ended"] == "iterations" and len(rows("v.jsonl", "train")) == 2

# A pole falls in the last of its steps, and stood in all others.
one = play("cartpole", "--checkpoint", "u.h5")
assert one["falls"] == 1 and 5 < len(one["frames"]) < 499 and one["return"] == len(one["frames"])
near(one["good_rate"], 1 - 1 / len(one["frames"]), 1e-6)

# ---- what is refused ----
refused(66, "x.h5", "play", "standing", "--checkpoint", "x.h5", "--steps", "5000", "--phase", "4")
refused(66, "x.h5", "play", "standing", "--checkpoint", "x.h5", "--start", "5000")
refused(64, "--steps 5001: at most 5000 can be shown", "play", "standing", "--checkpoint", "x.h5", "--steps", "5001")
refused(64, "--start 5001: at most 5000 can be shown", "play", "standing", "--checkpoint", "x.h5", "--start", "5001")
refused(64, "environment 'cartpole' has no phase 2; it has 1 to 1", "play", "cartpole", "--checkpoint", "c.h5", "--phase", "2")
refused(64, "what is to be played?", "play", "--checkpoint", "c.h5")
refused(64, "such as cartpole-phase1.h5 that `gpurt train es --env cartpole` writes", "play", "cartpole")
refused(64, "such as uav-ppo.h5 that `gpurt train ppo --env uav` writes", "play", "uav")
refused(65, "c.h5: a policy for 'cartpole' and not for 'uav'", "play", "uav", "--checkpoint", "c.h5")
refused(65, "c.h5: a policy for 'cartpole' and not for 'pendulum'", "play", "pendulum", "--checkpoint", "c.h5")
refused(65, "c.h5 holds a policy of `gpurt train es` for 'cartpole', and eval takes those of `gpurt train ppo`: `gpurt play cartpole "
        "--checkpoint c.h5 -o FILE.svg` shows what it does", "eval", "cartpole", "--checkpoint", "c.h5")
run("data", "make", "regression", "--samples", "20", "--features", "3", "-o", "d.h5")
run("train", "supervised", "--data", "d.h5", "hidden=4", "depth=1", "epochs=1", "checkpoint_dir=net")
for env in ("cartpole", "uav"):
    refused(65, "net/best.h5 holds a network of `gpurt train supervised`, no policy: `gpurt eval --data FILE --checkpoint net/best.h5` "
            "tries it", "play", env, "--checkpoint", "net/best.h5")
    refused(65, "net/best.h5 holds a network of `gpurt train supervised`, no policy of `gpurt train ppo`", "eval", env, "--checkpoint",
            "net/best.h5")
refused(65, "s4.h5: a policy for 'standing' and not for 'cartpole'", "play", "cartpole", "--checkpoint", "s4.h5")
refused(65, "its env is 'cartpole' and not 'pendulum'", "train", "es", "--env", "pendulum", "--from", "c.h5", "--iterations", "1",
        "--checkpoint", "n.h5")
refused(78, "gives", "train", "ppo", "--env", "pendulum", "actor=[{linear: 2}]", "--checkpoint", "n.h5")
refused(64, "one of them", *es, "--resume", "c.h5", "--from", "c.h5")
assert not os.path.exists("n.h5")
