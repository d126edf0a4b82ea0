#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`gpurt convert` into ONNX: what `gpurt predict` and `gpurt play` say is what the file gives, by NumPy in double precision
(onnx_numpy.py), for every kind of network and policy and for networks drawn at random. Where onnx and onnxruntime can be
imported, the file passes onnx's full check too and ONNX Runtime gives the same. Usage: to_onnx.py GPURT [COUNT [SEED]]

Run by hand with onnx 1.23.2 and onnxruntime 1.31.1: COUNT 50, seeds 0 and 1."""
import json
import os
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_numpy import Graph

try:
    import onnx
    import onnxruntime
except ImportError:
    onnxruntime = None

gpurt = os.path.abspath(sys.argv[1])
count = int(sys.argv[2]) if len(sys.argv) > 2 else 6
draw = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
os.environ["GPURT_DEVICE"] = "ref:0"
ROWS, WIDE = 24, 1e-5


def run(*words, code=0):
    done = subprocess.run([gpurt, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"gpurt {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def refuse(word, code, *words):
    said = run(*words, code=code).stderr
    assert word in said and said.count("\n") == 1, said


def close(name, got, want):
    assert got.shape == want.shape, (name, got.shape, want.shape)
    error = np.abs(got - want).max() / max(1.0, np.abs(want).max())
    assert error < WIDE, f"{name}: {error}"


def judged(name, path, inputs, want):
    """The file's output is what gpurt says, in two ways where there are two."""
    graph = Graph(path)
    close(name, want, graph.run(**inputs))
    close(name + ", one sample", want[:1], graph.run(**{k: v[:1] for k, v in inputs.items()}))
    if onnxruntime:
        onnx.checker.check_model(onnx.load(path), full_check=True)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        given = {k: v.astype(np.float32) for k, v in inputs.items()}
        close(name + " by ONNX Runtime", session.run(None, given)[0], want)


def samples(shape, scale=1.0):
    return (draw.normal(size=(ROWS, *shape)) * scale).astype("f4")


def trained(name, inputs, targets, settings, network=None, options=()):
    """Trains for a step or two, converts and compares. Networks of random weights are as good as trained ones; the norms
    and the normaliser have numbers of their own after a step."""
    with h5py.File("data.h5", "w") as f:
        for key, value in {**inputs, "y": targets}.items():
            f[key] = value
    config = {"data": "data.h5", "epochs": 1, "batch_size": 8, "checkpoint_dir": name, "lr": 0.01, **settings}
    if list(inputs) != ["x"]:
        config["inputs"] = list(inputs)
    if network:
        config["model"] = network
    with open("config.yaml", "w") as f:
        f.write("".join(f"{k}: {json.dumps(v)}\n" for k, v in config.items()))
    run("train", "supervised", "--config", "config.yaml", "-q")
    best = os.path.join(name, "best.h5")
    run("convert", best, "net.onnx", *options)
    embeddings = "--embeddings" in options
    run("predict", "--data", "data.h5", "--checkpoint", best, "-o", "said.h5", *(["--embeddings"] if embeddings else []))
    key = "embedding" if embeddings else "probability" if "--probabilities" in options else "y"
    assert list(Graph("net.onnx").outputs) == [key], Graph("net.onnx").outputs
    judged(name, "net.onnx", inputs, h5py.File("said.h5")[key][()])
    returned(name, inputs, h5py.File("said.h5")["embedding" if embeddings else "y"][()], key)


# What gpurt writes and does not read: it is said so, by the name of what is lacking.
NOT_READ = {"joined": "several inputs, 'a' and 'b'", "side": "several inputs", "apart": "several inputs", "resized": "MatMul", "cut": "MatMul",
            "zoomed": "MatMul", "short": "MatMul"}


def returned(name, inputs, want, key):
    """The file is read again, and the network in it says the same: probabilities lose their softmax, and a sigmoid stays."""
    if name in NOT_READ:
        refuse(NOT_READ[name], 65, "convert", "net.onnx", "never.h5")
        return
    run("convert", "net.onnx", "start.h5")
    run("predict", "--data", "data.h5", "--checkpoint", "start.h5", "-o", "again.h5")
    if name == "shares":
        want = 1 / (1 + np.exp(-want))
    close(name + ", read again", h5py.File("again.h5")["y"][()], want)


# ---- networks drawn at random ----

ACTS = ["relu", "gelu", "tanh", "gelu_exact", "silu", "sigmoid"]


def pick(*of):
    return of[draw.integers(len(of))]


def random_layers(rank, length, size):
    """Layers over samples of a rank; (layers, rank behind them). Only layers that keep the rank, but for the last."""
    layers = []
    for _ in range(length):
        kinds = ["act", "norm", "dropout", "residual", "linear", "branches", "geglu"] + (["conv", "window", "batch"] if rank == 3 else ["batch"])
        kind = pick(*kinds)
        width = int(draw.integers(1, 5)) * 2
        if kind == "act":
            layers.append(pick(*ACTS))
        elif kind == "norm":
            layers.append({"norm": "layer"})
        elif kind == "batch":
            layers.append({"norm": "batch"})
        elif kind == "dropout":
            layers.append({"dropout": 0.3})
        elif kind == "linear":
            layers.append(pick({"linear": width}, {"linear": {"outputs": width, "bias": False}}))
        elif kind == "geglu":
            layers += [{"linear": 2 * width}, "geglu"]
        elif kind == "conv":
            layers.append({"conv": pick(width, {"outputs": width, "size": 1}, {"outputs": width, "size": 3, "bias": False})})
        elif kind == "window" and size >= 4:
            layers.append(pick({"max_pool": 2}, {"avg_pool": 2}, {"avg_pool": {"size": 3, "stride": 2, "padding": 1}},
                               {"max_pool": {"size": 3, "stride": 1, "padding": 1}}))
            size = size // 2
        elif kind == "residual":
            inner = [{"linear": 8}, pick(*ACTS), {"linear": width}]
            outer = [{"conv": {"outputs": width, "size": 1}}] if rank == 3 else [{"linear": width}]
            layers.append({"residual": {"of": inner, "shortcut": outer, "activation": pick(*ACTS)}})
        elif kind == "branches":
            of = [[{"linear": width}, pick(*ACTS)], [{"linear": width}]]
            layers.append({"branches": pick(of, {"of": of, "merge": "concat"})})
    return layers


def random_network(i):
    shape = pick((5,), (4, 3), (6, 8, 3))
    classes = bool(draw.integers(2))
    layers = random_layers(len(shape), int(draw.integers(1, 6)), min(shape))
    if len(shape) > 1:
        layers.append(pick("flatten", {"pool": "max"}, {"pool": "mean"}))
    layers += [{"linear": 8}, {"repeat": {"times": 2, "of": [pick(*ACTS), {"linear": "out"}]}}]
    targets = draw.integers(0, 3, ROWS).astype("i4") if classes else samples((2,))
    trained(f"random-{i}", {"x": samples(shape, 3) + 1}, targets, {"normalize": bool(draw.integers(2)), "seed": i}, layers,
            ["--probabilities"] if classes and draw.integers(2) else [])


# ---- policies ----


def policies():
    for name, words in {"affine": [], "linear": ["--no-normalise"], "mlp16": [], "mlp20-tanh": []}.items():
        file = f"{name}.h5"
        run("train", "es", "--env", "pendulum", "--policy", name, "--iterations", 2, "--num-envs", 4, "--num-dirs", 4, "--episode-length", 20,
            "--noise-std", 0.5, "--checkpoint", file, "-q", *words)
        run("convert", file, "policy.onnx")
        played(name, run("play", "pendulum", "--checkpoint", file, "--steps", 20, "--format", "json").stdout)
    refuse("which have no probabilities", 78, "convert", "mlp16.h5", "never.onnx", "--probabilities")
    refuse("is a policy", 78, "convert", "mlp16.h5", "never.onnx", "--embeddings")
    small = ["iterations=1", "num_envs=4", "rollout_steps=8", "evaluate_envs=2"]
    lists = ["actor=[{linear: 8}, {norm: layer}, silu, {residual: [{linear: 8}]}, {linear: out}]"]
    for name, words in {"mlp": ["hidden=[8, 12]", "activation=gelu"], "deep": ["hidden=8", "depth=3", "layer_norm=true"], "list": lists}.items():
        run("train", "ppo", "--env", "pendulum", "--checkpoint", "ppo.h5", "-q", *small, *words)
        run("convert", "ppo.h5", "policy.onnx")
        played("ppo " + name, run("play", "pendulum", "--checkpoint", "ppo.h5", "--steps", 20, "--format", "json").stdout)
    # Choices: the most likely of those that are allowed.
    run("train", "uav", "--checkpoint", "uav.h5", "-q", *small, "hidden=8", "num_uavs=2", "map=6", "window=3", "num_obstacles=1")
    flight = json.loads(run("play", "uav", "--checkpoint", "uav.h5", "--format", "json").stdout)
    run("convert", "uav.h5", "policy.onnx")
    seen = np.array(flight["observations"], float)
    rows = seen.reshape(-1, seen.shape[-1])
    logits = Graph("policy.onnx").run(observation=rows)
    judged("uav", "policy.onnx", {"observation": rows}, logits)
    chosen = np.array(flight["actions"]).reshape(-1)
    masks = np.array(flight["masks"]).reshape(-1) if "masks" in flight else None
    for i, row in enumerate(logits[:len(chosen)]):
        allowed = [k for k in range(len(row)) if masks is None or masks[i] >> k & 1]
        best = max(row[k] for k in allowed)
        assert row[int(chosen[i])] > best - 1e-4, (i, row, chosen[i])
    run("convert", "uav.h5", "shares.onnx", "--probabilities")
    judged("uav shares", "shares.onnx", {"observation": rows}, np.exp(logits) / np.exp(logits).sum(1, keepdims=True))


def played(name, text):
    trajectory = json.loads(text)
    seen, done = np.array(trajectory["observations"]), np.array(trajectory["actions"])
    assert np.ptp(done) > 1e-4, f"{name}: actions that never change judge nothing: {done}"
    judged(name, "policy.onnx", {"observation": seen[:len(done)]}, done)


# ---- every kind of network ----


def kinds():
    x, y, three = samples((5,), 10) + 50, samples((2,)), draw.integers(0, 3, ROWS).astype("i4")
    trained("mlp", {"x": x}, y, {"normalize": True, "hidden": 8, "residual": True, "layer_norm": True, "activation": "gelu"})
    trained("widths", {"x": x}, three, {"hidden": [8, 12, 4], "activation": "silu", "precision": "f32"}, options=["--probabilities"])
    trained("shares", {"x": x}, (samples((2,)) > 0).astype("f4"), {"loss": "bce", "hidden": 8, "ema": 0.9}, options=["--probabilities"])
    refuse("no logits", 78, "convert", "mlp/best.h5", "never.onnx", "--probabilities")
    trained("embeddings", {"x": x}, three, {"hidden": 8}, options=["--embeddings"])
    swarm = samples((4, 3))
    # Every activation and layer, whatever is drawn; numbers so large that the curves are seen.
    acts = [{"branches": {"merge": "concat", "of": [[{"linear": 3}, act] for act in ACTS]}}, {"linear": "out"}]
    trained("acts", {"x": samples((5,), 5)}, y, {}, acts)
    trained("glu", {"x": samples((5,), 5)}, y, {}, [{"linear": {"outputs": 8, "bias": False}}, "geglu", {"norm": "batch"}, {"dropout": 0.5}, {"linear": "out"}])
    trained("rows", {"x": swarm}, y, {}, [{"linear": 6}, {"norm": "batch"}, {"linear": {"outputs": 4, "bias": False}}, {"norm": "layer"}, "geglu", {"pool": "max"}, {"linear": "out"}])
    trained("windows", {"x": samples((9, 7, 2), 5)}, y, {},
            [{"avg_pool": {"size": 3, "stride": 2, "padding": 1}}, {"conv": 4}, {"max_pool": {"size": 3, "stride": 1, "padding": 1}},
             {"branches": [[{"conv": 4}], [{"linear": 4}]]}, "flatten", {"linear": "out"}])
    trained("points", {"x": swarm}, y, {"model": "points", "hidden": 8, "head_depth": 2, "normalize": True})
    trained("points-mean", {"x": swarm}, y, {"model": "points", "hidden": 8, "pooling": "mean"})
    trained("flat", {"x": swarm}, y, {"model": "mlp", "hidden": 8, "normalize": True})
    # Several inputs, of one shape and of others, taken together and apart; a mean that f32 has not.
    trained("joined", {"a": x, "b": samples((3,))}, y, {"hidden": 8, "normalize": True})
    trained("side", {"a": swarm, "b": samples((4, 2))}, y, {"model": "points", "hidden": 8})
    apart = [{"branches": {"merge": "concat", "of": [[{"input": "a"}, {"linear": 4}, "relu", {"pool": "mean"}], [{"input": "b"}, "tanh"]]}},
             {"columns": {"first": 1, "count": 5}}, {"linear": "out"}]
    trained("apart", {"a": swarm, "b": x}, y, {"normalize": True}, apart)
    # Images: bytes, transforms of evaluations, networks by name.
    images = draw.integers(0, 255, (ROWS, 10, 8, 3), dtype=np.uint8)
    trained("images", {"x": images}, three, {"normalize": True},
            [{"conv": {"outputs": 4, "size": 3, "stride": 2, "padding": 0}}, {"norm": "batch"}, "relu", {"residual": [{"conv": 4}]}, "flatten", {"linear": "out"}])
    for name, steps in {"resized": "resize((7, 12)) | center_crop(6) | normalize", "cut": "random_crop(7, padding=1) | random_horizontal_flip | normalize(0.5, 0.25)",
                        "zoomed": "random_resized_crop((6, 6)) | color_jitter(0.4) | normalize", "short": "resize(4) | normalize"}.items():
        trained(name, {"x": images}, three, {"transform": steps, "hidden": 8})
    trained("wide", {"x": images}, three, {}, "wideresnet(depth=10, width=1)", ["--probabilities"])
    if count >= 50:
        trained("resnet", {"x": images[:, :8]}, three, {}, "resnet18")
        trained("stem", {"x": images[:, :8]}, three, {}, "resnet50(stem=imagenet)", ["--embeddings"])


def refusals():
    run("convert", "mlp/best.h5", "mlp.safetensors")
    run("convert", "mlp.safetensors", "again.onnx")
    run("convert", "mlp/best.h5", "first.onnx")
    assert open("again.onnx", "rb").read() == open("first.onnx", "rb").read(), "safetensors give another file"
    refuse("--all is for safetensors", 64, "convert", "--all", "mlp/best.h5", "never.onnx")
    refuse("is for names that end in .onnx", 64, "convert", "--embeddings", "mlp/best.h5", "never.safetensors")
    refuse("have no probabilities", 64, "convert", "--embeddings", "--probabilities", "mlp/best.h5", "never.onnx")
    refuse("the name must end in", 64, "convert", "mlp/best.h5", "never.pt")
    # A tensor that is missing, and one of another shape.
    blob = open("mlp.safetensors", "rb").read()
    size = struct.unpack("<Q", blob[:8])[0]
    head, numbers = json.loads(blob[8:8 + size]), blob[8 + size:]
    for name, (tensor, word) in {"less": ("layers.9.weight", "is missing"), "bent": ("layers.1.weight", "has another type or shape")}.items():
        other = dict(head)
        other[tensor] = other.pop("layers.1.weight")
        if name == "bent":
            other[tensor] = {**other[tensor], "shape": [4, 16]}
        text = json.dumps(other).encode()
        open(name + ".safetensors", "wb").write(struct.pack("<Q", len(text)) + text + numbers)
        refuse(f"'model/layers.1.weight' {word}", 65, "convert", name + ".safetensors", "never.onnx")
    assert not os.path.exists("never.onnx")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    kinds()
    refusals()
    policies()
    for number in range(count):
        random_network(number)
    os.chdir("/")
print(f"as predicted by NumPy{' and by ONNX Runtime ' + onnxruntime.__version__ if onnxruntime else ''}: {count} networks drawn at random, and those of every kind")
