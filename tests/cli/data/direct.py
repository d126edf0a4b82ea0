#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files of other forms taken directly: what is trained on a .csv, .tsv, .npz or .npy is what is trained on the same numbers in
HDF5, bit for bit, and a network that was trained on a table reads another one by its names. Usage: direct.py GPURT"""
import os
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np

gpurt = os.path.abspath(sys.argv[1])
draw = np.random.default_rng(5)
settings = ["epochs=2", "batch_size=16", "hidden=8", "-q", "--device", "ref:0"]


def run(*words, code=0):
    done = subprocess.run([gpurt, *words], capture_output=True, text=True, timeout=600)
    if done.returncode != code:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    assert os.listdir(os.environ["TMPDIR"]) == [], (words, os.listdir(os.environ["TMPDIR"]))
    if code:
        assert done.stderr.count("\n") == 1, done.stderr
    return done.stdout + done.stderr


def train(folder, *words, code=0):
    return run("train", "supervised", *settings, f"checkpoint_dir={folder}", *words, code=code)


def model(folder):
    with h5py.File(f"{folder}/best.h5") as f:
        found = {}
        f["model"].visititems(lambda n, o: found.update({n: o[()].tobytes()}) if isinstance(o, h5py.Dataset) else None)
        return found


def write(name, columns, separator=","):
    with open(name, "w") as f:
        f.write(separator.join(columns) + "\n")
        for row in zip(*columns.values()):
            f.write(separator.join(v if isinstance(v, str) else repr(float(v)) for v in row) + "\n")


def same():
    x, y = draw.normal(size=(80, 3)), draw.normal(size=(80, 1))
    with h5py.File("a.h5", "w") as f:
        f["x"], f["y"], f["half"] = x, y, x.astype("f2")
    columns = {"a": x[:, 0], "price": y[:, 0], "b": x[:, 1], "c": x[:, 2]}
    write("a.csv", columns)
    write("a.tsv", columns, "\t")
    np.savez("a.npz", x=x, y=y, half=x.astype(">f2"), spare=np.arange(3))
    np.savez_compressed("named.npz", x_train=x, y_train=y)
    np.save("x.npy", x)
    np.save("y.npy", y)
    train("h5", "--data", "a.h5", "normalize=true")
    train("half", "--data", "a.h5", "inputs=half")
    for name, words in {"csv": ["--data", "a.csv", "--targets", "price"], "tsv": ["--data", "a.tsv", "targets=2"],
                        "npz": ["--data", "a.npz"], "named": ["--data", "named.npz"],
                        "npy": ["--data", "x.npy", "targets=y.npy"]}.items():
        train(name, *words, "normalize=true")
        assert model(name) == model("h5"), name
    # Weights of samples: a column, which is neither input nor target, an array, another .npy.
    heavy = draw.uniform(0, 2, 80)
    with h5py.File("w.h5", "w") as f:
        f["x"], f["y"], f["heavy"] = x, y, heavy
    write("w.csv", {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "price": y[:, 0], "heavy": heavy})
    np.savez("w.npz", x=x, y=y, heavy=heavy)
    np.save("w.npy", heavy)
    train("wh5", "--data", "w.h5", "sample_weights=heavy")
    train("plain", "--data", "w.h5")
    assert model("wh5") != model("plain")
    for name, words in {"wcsv": ["--data", "w.csv", "sample_weights=heavy"], "wnpz": ["--data", "w.npz", "sample_weights=heavy"],
                        "wnpy": ["--data", "x.npy", "targets=y.npy", "sample_weights=w.npy"],
                        "wval": ["--data", "w.npz", "sample_weights=heavy", "validation_data=w.csv", "validation_split=0"]}.items():
        train(name, *words)
        assert name == "wval" or model(name) == model("wh5"), name
    run("predict", "--data", "a.csv", "--checkpoint", "wcsv", "--device", "ref:0", "-o", "said.npy")
    run("predict", "--data", "a.csv", "--checkpoint", "wcsv", "--device", "ref:0", "-o", "said.csv")
    with open("said.csv") as f:
        assert f.readline() == "y\n"  # one output has no number
        assert np.array_equal(np.array([float(line) for line in f], "f4"), np.load("said.npy")[:, 0])
    told = run("eval", "--data", "a.csv", "--checkpoint", "wcsv", "--device", "ref:0", code=65)
    assert "no column 'heavy'" in told and "; `sample_weights=none` leaves weights out" in told, told
    run("eval", "--data", "a.csv", "--checkpoint", "wcsv", "--device", "ref:0", "sample_weights=none")
    # A .npy of weights is of the samples of training; an evaluation names its own.
    np.save("w2.npy", heavy[::-1].copy())
    judge = ["eval", "--data", "x.npy", "--checkpoint", "wnpy", "--device", "ref:0", "--format", "csv", "targets=y.npy"]
    assert "w.npy holds the weights of the samples of training: `sample_weights=FILE.npy`" in run(*judge, code=78)
    losses = {run(*judge, f"sample_weights={name}").splitlines()[1].split(",")[1] for name in ("w.npy", "w2.npy", "none")}
    assert len(losses) == 3, losses
    assert "is target and weight" in train("never", "--data", "w.csv", "targets=heavy", "sample_weights=heavy", code=65)
    assert "sample_weights=w.npy" in train("never", "--data", "x.npy", "targets=y.npy", "sample_weights=w", code=78)
    with open("hole_w.csv", "w") as f:
        f.write("a,y,w\n1,2,1\n2,3,\n")
    assert "hole_w.csv:3: the weight 'w' is no number" in train("never", "--data", "hole_w.csv", "sample_weights=w", code=65)
    # Arrays for the validation, each in its own file.
    np.save("vx.npy", x[:9])
    np.save("vy.npy", y[:9])
    train("v3", "--data", "x.npy", "targets=y.npy", "validation_data=vx.npy", "validation_targets=vy.npy")
    with h5py.File("v.h5", "w") as f:
        f["x"], f["aim"] = x[:9], y[:9]
    train("v4", "--data", "a.h5", "validation_data=v.h5", "validation_targets=aim")
    assert model("v3") == model("v4")
    assert "validation_targets=FILE.npy" in train("never", "--data", "x.npy", "targets=y.npy", "validation_data=vx.npy", code=78)
    assert "has no effect" in train("never", "--data", "a.h5", "validation_targets=y", code=78)
    # Embeddings of tables and arrays are those of the same numbers in HDF5.
    found = []
    for name, data in ("npz", "a.h5"), ("npz", "x.npy"), ("npz", "a.npz"), ("csv", "a.csv"):
        run("predict", "--embeddings", "--data", data, "--checkpoint", name, "--device", "ref:0", "-o", "inner.npy")
        found.append(np.load("inner.npy"))
        assert found[-1].shape == (80, 8) and (found[-1] == found[0]).all(), data
    # A directory of 64 bits, as files past 4 GiB have it; damaged ones too.
    end, begun = 22, open("a.npz", "rb").read()
    count, size, at = struct.unpack("<HII", begun[-12:-2])
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, at)
    locator = struct.pack("<IIQI", 0x07064B50, 0, len(begun) - end, 1)
    short = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, size, 0xFFFFFFFF, 0)
    with open("large.npz", "wb") as f:
        f.write(begun[:-end] + record + locator + short)
    train("large", "--data", "large.npz", "normalize=true")
    assert model("large") == model("h5")
    for name, whole in ("cut", begun[:-end] + short), ("lost", begun[:-end] + record[1:] + locator + short):
        with open(f"{name}.npz", "wb") as f:
            f.write(whole)
        assert "directory of 64 bits" in train("never", "--data", f"{name}.npz", code=65), name
    # Parquet: what makes a table of it.
    open("p.parquet", "wb").write(b"PAR1")
    for words in ["train", "supervised", "--data", "p.parquet"], ["data", "info", "p.parquet"], ["data", "import", "p.parquet", "-o", "p.h5"]:
        assert "pandas.read_parquet('p.parquet').to_csv('p.csv', index=False)" in run(*words, code=65), words
    os.rename("p.parquet", "q.PARQUET")
    assert "pandas.read_parquet('q.PARQUET').to_csv('q.csv', index=False)" in run("data", "info", "q.PARQUET", code=65)
    for words in ["train", "supervised", "--data", "none.pq"], ["data", "info", "none.pq"]:
        told = run(*words, code=66)
        assert "none.pq" in told and "Parquet" not in told, told
    # What is looked at, and what a config begins with.
    with open("gap.csv", "w") as f:
        f.write("a,b,price,note\n1,,3,u\n2,5,4,v\n4,6,5,w\n7,8,1,w\n")
    assert "'b' has no value" in run("data", "info", "gap.csv", "--inputs", "a,b", "--targets", "price", code=65)
    assert "4 x 2" in run("data", "info", "gap.csv", "--inputs", "a,b", "--targets", "price", "--fill", "mean")
    assert "are for .csv" in run("data", "info", "a.h5", "--fill", "0", code=64)
    run("init", "supervised", "--data", "gap.csv", "--inputs", "a,b", "--targets", "price", "--fill", "0", "-o", "gap.yaml", "--device", "ref:0")
    train("gap", "--config", "gap.yaml", "validation_split=0")
    with h5py.File("gap/best.h5") as f:
        assert f["model/layers.0/weight"].shape[1] == 2
    run("init", "supervised", "--data", "a.h5", "--inputs", "half", "--targets", "y", "-o", "half.yaml", "--device", "ref:0")
    assert 'inputs: ["half"]' in open("half.yaml").read() and "takes no" in run("init", "es", "--fill", "0", code=64)
    run("init", "supervised", "--data", "x.npy", "--targets", "y.npy", "-o", "one.yaml", "--device", "ref:0")
    assert "\ninputs:" not in open("one.yaml").read() and 'targets: ["y.npy"]' in open("one.yaml").read(), open("one.yaml").read()
    train("one", "--config", "one.yaml")
    train("half2", "--data", "a.npz", "inputs=half")
    assert model("half2") == model("half")
    assert "f16" in run("data", "info", "a.npz") and "80 x 3" in run("data", "info", "a.csv")
    # A file of its own for the validation, with its columns in another order.
    write("b.csv", {"c": x[:9, 2], "more": x[:9, 0], "price": y[:9, 0], "b": x[:9, 1], "a": x[:9, 0]})
    with h5py.File("b.h5", "w") as f:
        f["x"], f["y"] = x[:9], y[:9]
    train("v1", "--data", "a.csv", "--targets", "price", "validation_data=b.csv")
    train("v2", "--data", "a.h5", "validation_data=b.h5")
    assert model("v1") == model("v2")
    # Inputs are found by their names, targets are not wanted; arrays have none.
    said = []
    write("only.csv", {"c": x[:9, 2], "b": x[:9, 1], "a": x[:9, 0]})
    np.save("only.npy", x[:9])
    for name in "b.csv", "only.csv", "only.npy", "b.h5":
        run("predict", "--data", name, "--checkpoint", "csv", "--device", "ref:0", "-o", "said.npy")
        said.append(np.load("said.npy"))
    assert all((s == said[0]).all() for s in said)
    one = run("eval", "--data", "b.csv", "--checkpoint", "csv", "--device", "ref:0", "--format", "csv")
    other = run("eval", "--data", "b.h5", "--checkpoint", "csv", "--device", "ref:0", "--format", "csv")
    assert one.split("\n")[1].split(",")[:3] == other.split("\n")[1].split(",")[:3], (one, other)
    # Targets in a .npy are those of the inputs that they were given with: others are given anew.
    np.save("few.npy", y[:9])
    assert "has no data set 'y'" in run("eval", "--data", "only.npy", "--checkpoint", "npy", "--device", "ref:0", code=65)
    one = run("eval", "--data", "only.npy", "targets=few.npy", "--checkpoint", "npy", "--device", "ref:0", "--format", "csv")
    assert one.split("\n")[1].split(",")[:3] == other.split("\n")[1].split(",")[:3], (one, other)
    run("predict", "--data", "only.npy", "--checkpoint", "half", "--device", "ref:0", "-o", "said.npy")


def words():
    """Classes keep their numbers in files that have some of them only."""
    x = draw.normal(size=(60, 2))
    kinds = ["green" if a > 0.5 else "red" if a > -0.5 else "blue" for a in x[:, 0]]
    write("kinds.csv", {"u": x[:, 0], "v": x[:, 1], "kind": kinds})
    train("kinds", "--data", "kinds.csv", "epochs=40", "learning_rate=0.02")
    some = [i for i in range(60) if kinds[i] != "blue"]
    write("some.csv", {"kind": [kinds[i] for i in some], "v": x[some, 1], "u": x[some, 0]})
    run("predict", "--data", "some.csv", "--checkpoint", "kinds", "--device", "ref:0", "-o", "said.h5")
    guess = h5py.File("said.h5")["class"][()]
    right = np.mean([["blue", "green", "red"][g] == kinds[i] for g, i in zip(guess, some)])
    told = run("eval", "--data", "some.csv", "--checkpoint", "kinds", "--device", "ref:0", "--format", "csv")
    head, row = (line.split(",") for line in told.split("\n")[:2])
    assert right > 0.8 and abs(float(row[head.index("accuracy")]) - right) < 1e-6, (right, told)
    assert "green" in run("eval", "--data", "some.csv", "--checkpoint", "kinds", "--device", "ref:0")
    write("other.csv", {"u": x[:2, 0], "v": x[:2, 1], "kind": ["red", "purple"]})
    assert "the class 'purple' is none of the 3" in run("eval", "--data", "other.csv", "--checkpoint", "kinds", "--device", "ref:0", code=65)


def numbers():
    """Rows beyond the first room of a table, targets or not; names that two columns have; words for a network that has none."""
    x = draw.normal(size=(2000, 2))
    kinds = (x[:, 0] > 0).astype(float)
    write("many.csv", {"u": x[:, 0], "v": x[:, 1], "kind": kinds})
    train("many", "--data", "many.csv", "epochs=1", "batch_size=500")
    write("bare.csv", {"u": x[:, 0], "v": x[:, 1]})
    said = []
    for name in "many.csv", "bare.csv":
        run("predict", "--data", name, "--checkpoint", "many", "--device", "ref:0", "-o", "said.h5")
        said.append(h5py.File("said.h5")["y"][()])
    assert said[0].shape == (2000, 2) and (said[0] == said[1]).all()
    write("words.csv", {"u": x[:9, 0], "v": x[:9, 1], "kind": ["no" if k else "yes" for k in kinds[:9]]})
    assert "its classes are words" in run("eval", "--data", "words.csv", "--checkpoint", "many", "--device", "ref:0", code=65)
    assert "its classes are words" in train("never", "--data", "many.csv", "validation_data=words.csv", code=65)
    for head, extra, fine in (("a,b,a,y", [], False), ("y,b,c,y", [], False), ("a,,,y", [], False), ("a,a,c,y", ["inputs=c"], True),
                              ("a,,,y", ["inputs=a"], True), ("a,,c,y", [], True)):
        open("twice.csv", "w").write(head + "\n" + "1,2,3,0.5\n4,5,6,1.5\n" * 8)
        told = train("twice", "--data", "twice.csv", *extra, code=0 if fine else 65)
        assert fine or "several columns are called" in told, told


def names():
    """A name of two lines is found again; names that no checkpoint keeps are refused at once; arrays that nobody wants are left out."""
    x = draw.normal(size=(20, 2))
    open("lines.csv", "w").write('"u\nm","v","the\nkind"\n' + "".join(f'{a},{b},"{"x" if a > 0 else "y"}\nz"\n' for a, b in x))
    train("lines", "--data", "lines.csv")
    run("eval", "--data", "lines.csv", "--checkpoint", "lines", "--device", "ref:0")
    open("long.csv", "w").write(",".join(f"{i:0100d}n" for i in range(600)) + ",y\n" + (("1,2," * 300) + "0.5\n") * 8)
    assert "a checkpoint keeps up to 60000" in train("never", "--data", "long.csv", code=65)
    run("data", "import", "long.csv", "-o", "long.h5")
    train("long", "--data", "long.h5")
    few = {"x": x, "y": x[:, 0], "z": x}
    np.savez("few.npz", **few)
    np.savez("more.npz", **few, one=np.float64(3), text=np.array(["a", "b"]), wide=np.zeros(3, "f16"))
    train("few", "--data", "few.npz")
    train("more", "--data", "more.npz")
    assert model("few") == model("more")
    assert "text.npy: " in train("never", "--data", "more.npz", "targets=text", code=65)
    assert "one.npy: " in train("never", "--data", "more.npz", "inputs=z,one", code=65)
    np.savez("texts.npz", x=x, y=np.array(["a"] * 20))
    run("predict", "--data", "texts.npz", "--checkpoint", "few", "--device", "ref:0", "-o", "said.npy")
    assert "y.npy: " in run("eval", "--data", "texts.npz", "--checkpoint", "few", "--device", "ref:0", code=65)


def refused():
    write("hole.csv", {"a": [1, 2, 3.5], "b": ["4", "", "6"], "y": [0.5, 1.5, 2.5]})
    assert "hole.csv:3: column 'b' has no value" in train("never", "--data", "hole.csv", code=65)
    with h5py.File("filled.h5", "w") as f:
        f["x"], f["y"] = np.array([[1, 4], [2, 5], [3.5, 6]]), np.array([[0.5], [1.5], [2.5]])
    train("filled", "--data", "hole.csv", "fill=mean", "validation_split=0")
    train("whole", "--data", "filled.h5", "validation_split=0")
    assert model("filled") == model("whole")
    open("short.npz", "wb").write(open("a.npz", "rb").read()[:300])
    open("text.npy", "w").write("no array")
    np.savez("wide.npz", x=np.zeros((4, 2), "c16"), y=np.zeros(4))
    np.savez("deep.npz", x=np.zeros((4, 2, 2, 2, 2)), y=np.zeros(4))
    open("empty.csv", "w").close()
    # A type that ends at once, and an entry whose place is 4 bytes below 2^64.
    head = b"{'fortran_order': False, 'shape': (4, 2), 'descr': '<\0008'"
    open("early.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(64))
    bytes_ = open("x.npy", "rb").read()
    local = b"PK\3\4" + bytes(18) + struct.pack("<HHHH", 9, 0, 5, 0) + b"x.npy" + bytes_
    entry = (b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", 45, 45, 0, 0, 0, 0, 0, len(bytes_), len(bytes_), 5, 12, 0, 0, 0, 0, 2**32 - 1) + b"x.npy"
             + struct.pack("<HHQ", 1, 8, 2**64 - 4))
    open("far.npz", "wb").write(local + entry + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0))
    for name, said, extra in (("short.npz", "no directory", []), ("text.npy", "no .npy", []), ("wide.npz", "type", []),
                              ("deep.npz", "1 to 4 axes", []), ("empty.csv", "it is empty", []), ("nowhere.csv", "nowhere.csv", []),
                              ("a.npz", "has no data set 'z'", ["inputs=z"]), ("a.csv", "did you mean 'price'", ["targets=prise"]),
                              ("x.npy", "another .npy", ["targets=y"]), ("a.h5", "fill is for .csv", ["fill=0"]),
                              ("hole.csv", "fill is a number or mean", ["fill=often"]), ("early.npy", "its descr ends too early", []),
                              ("far.npz", "a damaged entry", []), ("x.npy", "leave `inputs` out", ["inputs=half"])):
        code = 66 if name == "nowhere.csv" else 78 if said.startswith(("fill", "another", "leave")) else 65
        assert said in train("never", "--data", name, *extra, code=code), name
    assert not os.path.exists("never")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.mkdir("tmp")
    os.environ["TMPDIR"] = os.path.abspath("tmp")
    same()
    words()
    numbers()
    names()
    refused()
print("direct: the same bits")
