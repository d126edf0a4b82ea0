#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`gpurt convert` and `--from` of ONNX files: networks as PyTorch writes them, made here by hand, say what NumPy says of the
file (onnx_numpy.py); what is lacking is named; damaged files are refused in one line. Usage: from_onnx.py GPURT [TORCH]

With TORCH networks of PyTorch's own exporter are read too. Run by hand so with torch 2.15.0 and torchvision 0.29.2, by both
exporters."""
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_numpy import OPERATORS, Graph, message, one

gpurt = os.path.abspath(sys.argv[1])
draw = np.random.default_rng(5)
os.environ["GPURT_DEVICE"] = "ref:0"
ROWS = 24


def run(*words, code=0):
    done = subprocess.run([gpurt, *map(str, words)], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"gpurt {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def refuse(word, *words, code=65):
    said = run(*words, code=code).stderr
    assert word in said and said.count("\n") == 1, said
    assert not os.path.exists("never.h5"), words


# ---- files by hand ----


def tensor(name, numbers, **more):
    numbers = np.asarray(numbers)
    whole = numbers.dtype.kind == "i"
    raw = numbers.astype("<i8" if whole else "<f4").tobytes()
    return message({1: [*more.get("dims", numbers.shape)], 2: [more.get("type", 7 if whole else 1)], 8: [name], 9: [more.get("raw", raw)],
                    14: [more["location"]] if "location" in more else []})


def attribute(name, value):
    if isinstance(value, float):
        return message({1: [name], 2: [value], 20: [1]})
    if isinstance(value, str):
        return message({1: [name], 4: [value], 20: [3]})
    if isinstance(value, np.ndarray):
        return message({1: [name], 5: [tensor("", value)], 20: [4]})
    return message({1: [name], 8: value, 20: [7]} if isinstance(value, list) else {1: [name], 3: [value], 20: [2]})


def node(op, takes, gives, domain="", **attributes):
    return message({1: takes, 2: [gives], 4: [op], 5: [attribute(*a) for a in attributes.items()], 7: [domain] if domain else []})


def edge(name, *shape):
    dims = [message({2: ["n"]})] + [message({1: [d]}) for d in shape]
    return message({1: [name], 2: [message({1: [message({1: [1], 2: [message({1: dims})]})]})]})


def file(path, shape, width, nodes, constants, **more):
    """Writes a model; `nodes` are (op, takes, gives, attributes)."""
    graph = message({1: [node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes],
                     5: [tensor(k, v) for k, v in constants.items()] + more.get("tensors", []),
                     11: [edge("input", *shape)] + more.get("inputs", []), 12: [edge("output", width)] + more.get("outputs", [])})
    blob = message({1: [8], 2: ["someone"], 7: [graph], 8: [message({1: [d], 2: [v]}) for d, v in more.get("sets", [("", more.get("opset", 17))])]})
    open(path, "wb").write(blob)
    return blob


def numbers(*shape):
    return draw.normal(size=shape).astype("f4") * 0.7


def same(name, path, shape, model=None):
    """What is read says of images [N][H][W][C] what the file says of [N][C][H][W]."""
    x = numbers(ROWS, *shape) * 2
    want = Graph(path).run(input=x)
    lies = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x
    with h5py.File("data.h5", "w") as f:
        f["x"], f["y"] = lies, want.astype("f4") + 0.1
    run("convert", path, "start.h5")
    run("predict", "--data", "data.h5", "--checkpoint", "start.h5", "-o", "said.h5")
    said = h5py.File("said.h5")["y"][()]
    error = np.abs(said - want).max() / max(1, np.abs(want).max())
    assert error < 1e-5, f"{name}: {error}"
    kinds = [line.split()[1] for line in run("model", path, "--format", "csv").stdout.replace(",", " ").splitlines()[2:]] if model else None
    assert not model or kinds == model, (name, kinds)
    done = run("train", "supervised", "--data", "data.h5", "--from", path, "epochs=1", "batch_size=8", "lr=1e-3", "checkpoint_dir=further")
    assert f"{path}: its network" in done.stdout + done.stderr, done.stderr


def networks():
    relu, erf = ("Relu", ["a"], "b"), np.float32(np.sqrt(2))
    w = {"w1": numbers(8, 5), "b1": numbers(8), "w2": numbers(3, 8), "b2": numbers(3)}
    gemms = lambda middle: [("Gemm", ["input", "w1", "b1"], "a", {"transB": 1}), *middle, ("Gemm", ["b", "w2", "b2"], "output", {"transB": 1})]
    file("mlp.onnx", (5,), 3, gemms([relu]), w)
    same("mlp", "mlp.onnx", (5,), ["linear", "relu", "linear"])
    # gelu and silu as programs write them.
    half = {"root": erf, "one": np.float32(1), "half": np.float32(0.5)}
    exact = [("Div", ["a", "root"], "d"), ("Erf", ["d"], "e"), ("Add", ["e", "one"], "f"), ("Mul", ["a", "f"], "g"), ("Mul", ["g", "half"], "b")]
    file("gelu.onnx", (5,), 3, gemms(exact), {**w, **half})
    same("gelu", "gelu.onnx", (5,), ["linear", "gelu_exact", "linear"])
    silu = [("Sigmoid", ["a"], "s"), ("Mul", ["s", "a"], "b")]
    file("silu.onnx", (5,), 3, gemms(silu), w)
    same("silu", "silu.onnx", (5,), ["linear", "silu", "linear"])
    # Products and sums apart, of points; a residual around them; a normaliser.
    turned = {"m": numbers(6, 6), "n": numbers(6), "w": numbers(6, 2), "mean": numbers(6), "std": np.abs(numbers(6)) + 1}
    file("points.onnx", (4, 6), 2, [("Sub", ["input", "mean"], "c"), ("Div", ["c", "std"], "d"), ("MatMul", ["d", "m"], "e"), ("Add", ["n", "e"], "f"),
         ("Tanh", ["f"], "g"), ("Add", ["d", "g"], "h"), ("ReduceMax", ["h"], "i", {"axes": [1], "keepdims": 0}), ("MatMul", ["i", "w"], "output")], turned)
    same("points", "points.onnx", (4, 6), ["residual", "sequence", "linear", "tanh", "pool", "linear"])
    # A convolutional network: its images are planes, and the first linear layer is sorted anew.
    conv = {"k1": numbers(4, 3, 3, 3), "c1": numbers(4), "k2": numbers(4, 4, 3, 3), "k3": numbers(4, 4, 1, 1), "scale": numbers(4), "shift": numbers(4),
            "mean": numbers(4), "var": np.abs(numbers(4)) + 0.5, "w": numbers(2, 4 * 3 * 2), "bias": numbers(2), "s": numbers(3, 1, 1), "t": np.abs(numbers(3, 1, 1)) + 1}
    window = {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]}
    pool = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    nodes = [("Sub", ["input", "s"], "p"), ("Mul", ["p", "t"], "q"), ("Conv", ["q", "k1", "c1"], "a", window), ("Relu", ["a"], "b"), ("Conv", ["b", "k2"], "c", window),
             ("BatchNormalization", ["c", "scale", "shift", "mean", "var"], "d", {"epsilon": 1e-5}), ("Conv", ["b", "k3"], "e", {**window, "kernel_shape": [1, 1], "pads": [0] * 4}),
             ("Add", ["d", "e"], "f"), ("Relu", ["f"], "g"), ("MaxPool", ["g"], "h", pool), ("Dropout", ["h"], "i"), ("Flatten", ["i"], "j", {"axis": 1}),
             ("Gemm", ["j", "w", "bias"], "output", {"transB": 1})]
    OPERATORS["Dropout"] = lambda a, x: x
    file("conv.onnx", (3, 6, 4), 2, nodes, conv)
    same("conv", "conv.onnx", (3, 6, 4), ["conv", "relu", "residual", "sequence", "conv", "batch_norm", "sequence", "conv", "relu", "max_pool", "flatten", "linear"])
    # Branches, one behind the other; the mean over all pixels; classes.
    nodes = [("Conv", ["input", "k1", "c1"], "a", window), ("Tanh", ["a"], "b"), ("Conv", ["a", "k3"], "c", {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0] * 4}),
             ("Concat", ["b", "c", "a"], "d", {"axis": 1}), ("GlobalAveragePool", ["d"], "e"), ("Flatten", ["e"], "f", {"axis": 1}), ("Gemm", ["f", "w3"], "g", {"transB": 1}),
             ("Softmax", ["g"], "output", {"axis": -1})]
    OPERATORS["GlobalAveragePool"] = lambda a, x: x.mean((2, 3), keepdims=True)
    file("classes.onnx", (3, 6, 4), 3, nodes, {"k1": conv["k1"], "c1": conv["c1"], "k3": conv["k3"], "w3": numbers(3, 12)})
    x = numbers(ROWS, 3, 6, 4)
    want = Graph("classes.onnx").run(input=x)
    with h5py.File("data.h5", "w") as f:
        f["x"], f["y"] = x.transpose(0, 2, 3, 1), want.argmax(1).astype("i4")
    run("convert", "classes.onnx", "start.h5")
    run("predict", "--data", "data.h5", "--checkpoint", "start.h5", "-o", "said.h5")
    assert np.abs(h5py.File("said.h5")["probability"][()] - want).max() < 1e-5
    # The last layer is as wide as other targets want it.
    with h5py.File("data.h5", "a") as f:
        f["y"][...] = np.arange(ROWS) % 5
    run("train", "supervised", "--data", "data.h5", "--from", "classes.onnx", "epochs=1", "batch_size=8", "checkpoint_dir=five")


def lacking():
    w = {"w": numbers(5, 5)}
    one_node = lambda op, **a: file("lacks.onnx", (5,), 5, [("Gemm", ["input", "w"], "a"), (op, ["a"], "output", a)], w)
    for op, a, word in [("Softplus", {}, "node 'output': Softplus has no layer"), ("Softmax", {"axis": 1}, None), ("LayerNormalization", {"epsilon": 0.1}, "epsilon of 0.1")]:
        one_node(op, **a)
        refuse(word, "convert", "lacks.onnx", "never.h5") if word else run("convert", "lacks.onnx", "start.h5")
    image = {"k": numbers(4, 3, 3, 3), "w": numbers(4, 2)}
    for a, word in [({"group": 3}, "one group"), ({"dilations": [2, 2]}, "dilations"), ({"auto_pad": "SAME_UPPER"}, "auto_pad"), ({"pads": [1, 0, 1, 0]}, "one size, stride and padding")]:
        file("lacks.onnx", (3, 6, 6), 2, [("Conv", ["input", "k"], "a", a), ("GlobalAveragePool", ["a"], "b"), ("Flatten", ["b"], "c"), ("MatMul", ["c", "w"], "output")], image)
        refuse(word, "convert", "lacks.onnx", "never.h5")
        refuse(word, "model", "lacks.onnx")
        refuse(word, "train", "supervised", "--data", "data.h5", "--from", "lacks.onnx", "checkpoint_dir=never")
    file("lacks.onnx", (5,), 5, [("MatMul", ["input", "w"], "a"), ("Add", ["a", "input"], "b"), ("Mul", ["a", "b"], "output")], w)
    refuse("of two values has no layer here", "convert", "lacks.onnx", "never.h5")
    file("lacks.onnx", (5,), 5, [("MatMul", ["input", "w"], "a"), ("Mul", ["a", "v"], "output")], {**w, "v": numbers(5)})
    refuse("but at the beginning", "convert", "lacks.onnx", "never.h5")
    file("lacks.onnx", (5,), 5, [("Relu", ["input"], "output")], {})
    refuse("no layer with numbers", "convert", "lacks.onnx", "never.h5")
    gemm, v = ("Gemm", ["input", "w"], "a"), {"v": numbers(5)}
    four = ["v", "v", "v", "v"]
    computed = lambda at: [*four[:at], "a", *four[at + 1:]]
    places = lambda *all_of: {f"p{i}": np.array([p]) for i, p in enumerate(all_of)}
    for word, nodes, constants, more in [
        # Operands that are computed.
        ("Gemm has a layer here where operand 2", [gemm, ("Gemm", ["input", "w", "a"], "output")], {}, {}),
        *[(f"where operand {i + 1} is a constant", [gemm, ("BatchNormalization", ["a", *computed(i)], "output")], v, {}) for i in range(4)],
        *[(f"where operand {i + 1} is a constant", [gemm, ("LayerNormalization", ["a", *computed(i)[:2]], "output")], v, {}) for i in range(2)],
        ("operand 1 is a constant", [gemm, ("BatchNormalization", ["a"], "output")], {}, {}),
        # Weights that are no matrix of numbers: a row, whole numbers, none at all.
        *[("node 'output': MatMul by something else than a constant matrix", [("MatMul", ["input", "m"], "output")], {"m": m}, {})
          for m in (numbers(5), np.ones((5, 5), "i8"), numbers(5, 0), numbers(5, 5, 1))],
        ("each of 5 outputs", [("Gemm", ["input", "w", "c"], "output")], {"c": numbers(5, 1)}, {}),
        # Layers of two branches; more text than a config has room for.
        ("node 'a': Gemm stands in two branches", [gemm, ("Relu", ["a"], "b"), ("Add", ["a", "input"], "c"), ("Add", ["b", "c"], "output")], {}, {}),
        ("longer than a config takes", [gemm, ("Relu", ["a"], "s0"), *[("Slice", [f"c{i - 1}", "p0", "p1", "p2"], f"s{i}") if k else
         ("Concat", [f"s{i}"] * 7 + ["a"], f"c{i}", {"axis": 1}) for i in range(22) for k in ((1, 0) if i else (0,))], ("Relu", ["c21"], "output")], places(0, 5, 1), {}),
        # Functions that are no activation: no numbers, or another one further out.
        ("by itself has no layer", [gemm, ("Sub", ["a", "a"], "b"), ("Div", ["b", "b"], "c"), ("Sub", ["a", "c"], "d"), ("Sqrt", ["d"], "output")], {}, {}),
        ("Sub by itself has no layer", [gemm, ("Relu", ["a"], "b"), ("Sub", ["a", "six"], "c"), ("Relu", ["c"], "d"), ("Sub", ["b", "d"], "output")], {"six": np.float32(6)}, {}),
        ("some channels, one behind", [gemm, ("Slice", ["a", "p0", "p1", "p2"], "output")], places(2**63 - 1, -2**63, 1), {}),
        ("node 'output': Softmax is over the classes", [gemm, ("Softmax", ["a"], "output", {"axis": 0})], {}, {}),
        ("LogSoftmax is over the classes", [("MatMul", ["input", "w"], "a"), ("LogSoftmax", ["a"], "output")], {}, {"shape": (4, 5), "opset": 11}),
        ("Softmax is over the classes", [("MatMul", ["input", "w"], "a"), ("Softmax", ["a"], "output")], {}, {"shape": (4, 5)}),
        ("node 'output': Relu gives the output with 2 axes", [("MatMul", ["input", "w"], "a"), ("Relu", ["a"], "output")], {}, {"shape": (4, 5)}),
        ("node 'b': Relu is of domain 'else.where'", [gemm, ("Relu", ["a"], "b", {"domain": "else.where"}), ("Relu", ["b"], "output")], {}, {}),
    ]:
        file("lacks.onnx", more.pop("shape", (5,)), 5, nodes, {**w, **constants}, **more)
        try:
            refuse(word, "convert", "lacks.onnx", "never.h5")
        except AssertionError as e:
            raise AssertionError(f"{word}: {e}") from None
    # A bias of convolutions that is computed.
    file("lacks.onnx", (3, 6, 6), 4, [("GlobalAveragePool", ["input"], "p"), ("Flatten", ["p"], "f"), ("Conv", ["input", "k", "f"], "a"), ("GlobalAveragePool", ["a"], "b"),
         ("Flatten", ["b"], "output")], {"k": image["k"]})
    refuse("Conv has a layer here where operand 2", "convert", "lacks.onnx", "never.h5")
    # The same of opset 11, and of the domain by its name.
    file("reads.onnx", (5,), 5, [("Gemm", ["input", "w"], "a", {"domain": "ai.onnx"}), ("Softmax", ["a"], "output")], w, opset=11)
    run("convert", "reads.onnx", "start.h5")
    # Of a Constant's tensors its value alone.
    file("reads.onnx", (5,), 5, [("Constant", [], "c", {"value": w["w"], "other": numbers(2, 2)}), ("MatMul", ["input", "c"], "output")], {})
    run("convert", "reads.onnx", "start.h5")


def hostile():
    w = {"w1": numbers(8, 5), "b1": numbers(8), "w2": numbers(3, 8)}
    nodes = [("Gemm", ["input", "w1", "b1"], "a", {"transB": 1}), ("Relu", ["a"], "b"), ("Gemm", ["b", "w2"], "output", {"transB": 1})]
    whole = file("whole.onnx", (5,), 3, nodes, w)
    run("convert", "whole.onnx", "start.h5")
    damaged = lambda blob: open("bad.onnx", "wb").write(blob)
    for size in sorted({0, 1, 7, *range(10, len(whole), len(whole) // 23), len(whole) - 1}):
        damaged(whole[:size])
        refuse("bad.onnx: ", "convert", "bad.onnx", "never.h5")
    for name, word, more in [
        ("a circle", "'c', which nothing before it makes", {"nodes": [("Add", ["input", "c"], "b"), ("Relu", ["b"], "c"), ("Relu", ["c"], "output")]}),
        ("itself", "'output', which nothing before it makes", {"nodes": [("Add", ["input", "output"], "output")]}),
        ("twice", "'a' is made twice", {"nodes": [*nodes[:2], ("Relu", ["b"], "a"), nodes[2]]}),
        ("huge", "larger than 2^31", {"tensors": [tensor("h", [1.0], dims=[1 << 20, 1 << 20])]}),
        ("huge axis", "larger than 2^31", {"tensors": [tensor("h", [1.0], dims=[1 << 62])]}),
        ("negative", "larger than 2^31", {"tensors": [tensor("h", [1.0], dims=[-1])]}),
        ("more than there is", "not as many as its shape says", {"tensors": [tensor("h", [1.0], dims=[1 << 28])]}),
        ("less", "not as many as its shape says", {"tensors": [tensor("h", [1.0, 2.0], dims=[1])]}),
        ("another file", "lie in another file", {"tensors": [tensor("h", [1.0], location=1)]}),
        ("doubles", "element type 11", {"tensors": [tensor("h", [1.0], type=11)]}),
        ("two inputs", "several inputs, 'input' and 'second'", {"inputs": [edge("second", 5)]}),
        ("two outputs", "several outputs, 'output' and 'b'", {"outputs": [edge("b", 8)]}),
        ("no such output", "an output that nothing makes", {"outputs": [edge("nowhere", 8)]}),
        ("old", "opset 3", {"opset": 3}),
        ("deep", "samples of 4 axes", {"shape": (2, 2, 2, 2)}),
        ("open", "has no size", {"shape": (0,)}),
        ("wide", "has no size, or one beyond", {"shape": (1 << 40,)}),
        ("vast", "more than 2^31 numbers", {"shape": (2761926, 1764119, 3785993), "nodes": [("Flatten", ["input"], "f"), ("Gemm", ["f", "v"], "output")], "more": {"v": numbers(26, 3)}}),
        ("vast planes", "gives more than 2^31 numbers", {"shape": (1, 1 << 12, 1 << 12), "nodes": [("Conv", ["input", "k"], "output")], "more": {"k": numbers(256, 1, 1, 1)}}),
        ("vast rows", "gives more than 2^31 numbers", {"shape": (1 << 24, 32), "nodes": [("Concat", ["input"] * 5, "output", {"axis": 2})]}),
        ("copies", "copies a constant", {"nodes": [*[("Identity", [f"c{i}"], f"c{i + 1}") for i in range(300)], *nodes], "more": {"c0": np.zeros(1 << 20, "f4")}}),
        ("bent", "takes 5 features, and 7 come", {"shape": (7,)}),
        ("long name", "bad.onnx: a name has more bytes", {"nodes": [("Relu", ["input" * 60], "output")]}),
        ("many inputs", "bad.onnx: a node takes more inputs; 8 are read", {"nodes": [("Concat", ["input"] * 9, "output")]}),
        ("many attributes", "bad.onnx: a node has more attributes; 12 are read", {"nodes": [("Relu", ["input"], "output", {f"a{i}": 1 for i in range(13)})]}),
        ("many axes", "it has more than 6 axes", {"tensors": [tensor("h", [1.0], dims=[1] * 7)]}),
        ("old by name", "opset 3", {"sets": [("ai.onnx", 3)]}),
        ("of others alone", "opset 0", {"sets": [("com.microsoft", 17)]}),
    ]:
        file("bad.onnx", more.pop("shape", (5,)), 3, more.pop("nodes", nodes), {**w, **more.pop("more", {})}, **more)
        try:
            refuse(word, "convert", "bad.onnx", "never.h5")
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from None
    for text in [b"no protocol buffer at all", b"\x3a\x00", b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", message({7: [b"\x0b"]}), os.urandom(400)]:
        damaged(text)
        refuse("bad.onnx: ", "convert", "bad.onnx", "never.h5")
    # Bytes that changed on the way: the file is read, or refused in one line.
    for _ in range(120):
        blob = bytearray(whole)
        for _ in range(draw.integers(1, 4)):
            blob[draw.integers(len(blob) if draw.integers(2) else 300)] = draw.integers(256)
        damaged(bytes(blob))
        done = subprocess.run([gpurt, "convert", "bad.onnx", "read.h5"], capture_output=True, text=True, errors="replace")
        assert done.returncode in (0, 65) and done.stderr.count("\n") == 1, (done.returncode, done.stderr, bytes(blob))


def of_torch():
    """PyTorch's own files."""
    import torch
    import torchvision
    from torch import nn

    class Swish(nn.Module):
        def forward(self, x):
            return x * torch.sigmoid(x)

    nets = {
        "mlp": (nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 8), Swish(), nn.Dropout(0.1), nn.Linear(8, 3)), (5,)),
        "tanh": (nn.Sequential(nn.Linear(5, 8), nn.GELU(approximate="tanh"), nn.Linear(8, 3), nn.Sigmoid()), (5,)),
        "cnn": (nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.SiLU(), nn.Flatten(), nn.Linear(6 * 2 * 3, 4)), (3, 8, 10)),
        "resnet18": (torchvision.models.resnet18(num_classes=5), (3, 32, 32)),
    }
    for name, (net, shape) in nets.items():
        net.eval()
        x = torch.randn(ROWS, *shape)
        for dynamo in (False, True):
            path = f"torch-{name}-{dynamo}.onnx"
            extra = {"external_data": False, "dynamic_shapes": ({0: torch.export.Dim("n", min=2)},)} if dynamo else {"dynamic_axes": {"input": {0: "n"}}}
            torch.onnx.export(net, (x[:2],), path, input_names=["input"], output_names=["output"], dynamo=dynamo, **extra)
            want = net(x).detach().numpy()
            with h5py.File("data.h5", "w") as f:
                f["x"], f["y"] = x.numpy().transpose(0, 2, 3, 1) if x.ndim == 4 else x.numpy(), want
            run("convert", path, "start.h5")
            run("predict", "--data", "data.h5", "--checkpoint", "start.h5", "-o", "said.h5")
            error = np.abs(h5py.File("said.h5")["y"][()] - want).max() / max(1, np.abs(want).max())
            print(f"{path}: {error:.1e}")
            assert error < 1e-5
            run("train", "supervised", "--data", "data.h5", "--from", path, "epochs=1", "batch_size=8", "checkpoint_dir=further")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    networks()
    lacking()
    hostile()
    if len(sys.argv) > 2:
        of_torch()
    os.chdir("/")
