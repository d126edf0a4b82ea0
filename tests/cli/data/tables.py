#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tables and types: `gpurt data import` of .csv and .tsv against Python's csv and NumPy, data sets of every type against the
same numbers as f64, and the forms of `gpurt predict` against each other. Usage: tables.py GPURT"""
import csv
import os
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

gpurt = os.path.abspath(sys.argv[1])
draw = np.random.default_rng(3)
os.environ["GPURT_DEVICE"] = "ref:0"


def run(*words, code=0):
    done = subprocess.run([gpurt, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"gpurt {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr


def refuse(word, code, *words):
    said = run(*words, code=code)
    assert word in said and said.count("\n") == 1, said
    assert not os.path.exists("never.h5")


def write(name, text):
    with open(name, "w", newline="") as f:
        f.write(text)


def imported(name, *words):
    run("data", "import", name, "-o", "table.h5", *words)
    with h5py.File("table.h5") as f:
        return f["x"][()], f["y"][()], dict(f.attrs)


def tables():
    # Numbers of many forms, as csv writes them, with names that need quotes.
    numbers = draw.normal(size=(50, 4)) * 10.0 ** draw.integers(-20, 20, (50, 4))
    with open("plain.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["a", "b, the second", 'c "third"', "last"])
        out.writerows([[repr(float(v)) for v in row] for row in numbers])
    x, y, about = imported("plain.csv")
    assert (x == numbers[:, :3]).all() and (y == numbers[:, 3:]).all() and x.dtype == "f8" and y.dtype == "f8"
    assert list(about["columns"]) == [b"a", b"b, the second", b'c "third"'], about
    x, y, about = imported("plain.csv", "--targets", "a,last", "--inputs", 'c "third",2')
    assert (x == numbers[:, [2, 1]]).all() and (y == numbers[:, [0, 3]]).all()
    # No names, other separators and line ends, blank lines, the mark of UTF-8.
    for name, text in {"bare.csv": "1,2,0.5\n3,4,0.25\n", "half.csv": "\ufeffp;q;r\r\n1;2;0.5\r\n\r\n3;4;0.25\r\n", "tabs.tsv": "p\tq\tr\n1\t2\t0.5\n3\t4\t0.25",
                       "wide.csv": ' p , q ,r\n "1" , 2 , 0.5\n3,4,0.25\n',
                       "marked.csv": '\ufeff"p, q",r,s\n1,2,0.5\n3,4,0.25\n',
                       # What the first line has more of; of as many, commas.
                       "commas.csv": "p,q;s,r\n1,2,0.5\n3,4,0.25\n", "halves.csv": "p;q,s;r\n1;2;0.5\n3;4;0.25\n",
                       "both.csv": "p,q;s,r;t\n1,2,0.5\n3,4,0.25\n"}.items():
        write(name, text)
        x, y, about = imported(name)
        assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [[0.5], [0.25]], (name, x, y)
    # Classes: whole numbers, and words.
    write("whole.csv", "a,b\n0.5,2\n1.5,0\n2.5,2\n")
    x, y, about = imported("whole.csv")
    assert y.dtype == "i4" and y.tolist() == [2, 0, 2] and about["classes"] == 3
    write("words.csv", '5.1,3.5,Iris-setosa\n6.0,3.0,Iris-virginica\n5.0,3.4,Iris-setosa\n5.5,2.5,"a ""b"""\n')
    x, y, about = imported("words.csv")
    assert y.tolist() == [0, 1, 0, 2] and list(about["class_names"]) == [b"Iris-setosa", b"Iris-virginica", b'a "b"'] and x.tolist()[1] == [6, 3]
    # What is missing.
    write("holes.csv", "a,b,c\n1,,0.5\nNA,4,1.5\n3,8,2.5\n")
    refuse("holes.csv:2: column 'b' has no value", 65, "data", "import", "holes.csv", "-o", "never.h5")
    x, y, about = imported("holes.csv", "--fill", "-7")
    assert x.tolist() == [[1, -7], [-7, 4], [3, 8]] and y.tolist() == [[0.5], [1.5], [2.5]]
    x, y, about = imported("holes.csv", "--fill", "mean")
    assert x.tolist() == [[1, 6], [2, 4], [3, 8]] and y.tolist() == [[0.5], [1.5], [2.5]]
    assert "2 missing values were filled" in run("data", "import", "holes.csv", "-o", "table.h5", "--fill", "0")
    for text in ("a,kind\n1,x\n2,\n3,y\n", "a,class\n1,0\n2,NA\n3,1\n"):
        write("bad.csv", text)
        refuse("bad.csv:3: the target", 65, "data", "import", "bad.csv", "-o", "never.h5", "--fill", "mean")
    # What is wrong, by its line.
    for text, word in {"a,b\n1,2\n3\n": "bad.csv:3: 1 fields, and the first line has 2", "a,b\n1,2\nx,4\n": "bad.csv:3: column 'a': 'x' is no number",
                       "a,b\n": "no rows", "": "it is empty", 'a,b\n1,"2\n3,4\n': "bad.csv:2: a quote that nothing closes", "1\n2\n": "one column", 'a,b\n1,"2"3\n': "text behind it",
                       '"a\nb",kind\n1,"x\ny"\n2,z\n3\n': "bad.csv:6: 1 fields, and the first line has 2",
                       "a,b\n1e999,2\n": "'1e999' is no number", "a,b\n0x10,2\n": "'0x10' is no number", "a,b\ninf,2\n": "'inf' is no number",
                       "a,b\n1,\0\n": "no text"}.items():
        write("bad.csv", text)
        refuse(word, 65, "data", "import", "bad.csv", "-o", "never.h5")
    refuse("no column 'latt'; did you mean 'last'", 65, "data", "import", "plain.csv", "-o", "never.h5", "--targets", "latt")
    refuse("is input and target", 65, "data", "import", "plain.csv", "-o", "never.h5", "--targets", "a", "--inputs", "a")
    refuse("--fill is a number or mean", 64, "data", "import", "plain.csv", "-o", "never.h5", "--fill", "x")
    refuse("are for images", 64, "data", "import", "plain.csv", "-o", "never.h5", "--gray")
    refuse("are for .csv and .tsv", 64, "data", "import", "plain.npy", "-o", "never.h5", "--fill", "0")
    refuse("nowhere.csv", 66, "data", "import", "nowhere.csv", "-o", "never.h5")


def types():
    """What is trained on a type is what is trained on the same numbers as f64."""
    rows = draw.integers(0, 100, (64, 3))
    with h5py.File("f8.h5", "w") as f:
        f["x"], f["y"] = rows.astype("f8"), rows[:, :1] % 2 + 0.5
    settings = ["epochs=2", "batch_size=16", "hidden=8", "-q"]
    run("train", "supervised", "--data", "f8.h5", *settings, "checkpoint_dir=f8")
    for kind in ["i1", "u1", "i2", ">i2", "u2", ">u2", "i4", "u4", ">u4", "i8"]:
        ends, said = np.iinfo(kind), []
        some = rows.astype(kind)
        some[0, :2] = ends.min, ends.max
        for form in some, some.astype("f8"):
            with h5py.File("typed.h5", "w") as f:
                f["x"] = form
            run("predict", "--data", "typed.h5", "--checkpoint", "f8", "-o", "typed.npy")
            said.append(np.load("typed.npy"))
        assert (said[0] == said[1]).all(), kind
    # Truth as inputs, and as two classes.
    with h5py.File("truth.h5", "w") as f:
        f["x"], f["y"] = rows > 50, rows[:, 0] > 50
    with h5py.File("bytes.h5", "w") as f:
        f["x"], f["y"] = (rows > 50).astype("u1"), (rows[:, 0] > 50).astype("i4")
    for name in "truth", "bytes":
        run("train", "supervised", "--data", f"{name}.h5", *settings, f"checkpoint_dir={name}")
        run("predict", "--data", f"{name}.h5", "--checkpoint", name, "-o", f"{name}-said.h5")
    one, other = h5py.File("truth-said.h5"), h5py.File("bytes-said.h5")
    assert one["y"].shape == (64, 2) and (one["y"][()] == other["y"][()]).all() and (one["class"][()] == other["class"][()]).all()
    # Classes of narrow types; those that are none are named.
    for kind, label in [("u2", 3), (">i2", 2), ("i1", 1), ("u4", 2), ("u1", 200)]:
        with h5py.File("narrow.h5", "w") as f:
            f["x"], f["y"] = rows.astype("f4"), np.where(rows[:, 0] > 50, label, 0).astype(kind)
        run("train", "supervised", "--data", "narrow.h5", *settings, "loss=cross_entropy", "checkpoint_dir=narrow")
        run("predict", "--data", "narrow.h5", "--checkpoint", "narrow", "-o", "narrow-said.h5")
        assert h5py.File("narrow-said.h5")["y"].shape[1] == label + 1, kind
    with h5py.File("narrow.h5", "w") as f:
        f["x"], f["y"] = rows.astype("f4"), np.full(64, -1, "i1")
    refuse("-1", 65, "train", "supervised", "--data", "narrow.h5", "checkpoint_dir=never")


def packed():
    """Whatever filters have packed a file, and whichever links lead to its data sets, it is the same."""
    x = np.round(draw.normal(size=(300, 5)), 1).astype("f4")
    ways = {"lzf": {"compression": "lzf"}, "lzf-shuffle": {"compression": "lzf", "shuffle": True}, "deflate": {"compression": 3}}
    if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        ways |= {"szip": {"compression": "szip"}, "szip-ec": {"compression": "szip", "compression_opts": ("ec", 8)}}
    said = {}
    for name, way in ({"plain": {}} | ways).items():
        for kind in "f4", "i2":
            with h5py.File("packed.h5", "w") as f:
                f.create_dataset("deep/real", data=np.concatenate([x, 0 * x, x]).astype(kind), chunks=(64, 5) if way else None, **way)
                f["deep/soft"] = h5py.SoftLink("real")
                f["group"] = h5py.SoftLink("/deep")
                f["x"] = h5py.SoftLink("group/soft")
                f["out"] = h5py.ExternalLink("f8.h5", "x")
            run("train", "supervised", "--data", "packed.h5", "loss=nt_xent", "epochs=1", "batch_size=300", "hidden=4", "-q",
                f"checkpoint_dir=packed-{name}-{kind}", "projection=4")
            with h5py.File(f"packed-{name}-{kind}/best.h5") as f:
                said[name, kind] = [f["model/layers.0/weight"][()].tobytes(), f["model/layers.1/weight"][()].tobytes()]
            assert said[name, kind] == said["plain", kind], (name, kind)
        refuse("an external link", 65, "train", "supervised", "--data", "packed.h5", "inputs=out", "loss=nt_xent", "checkpoint_dir=never")
        listed = subprocess.run([gpurt, "data", "info", "packed.h5"], capture_output=True, text=True).stdout
        assert name.split("-")[0] in listed or name == "plain", listed
    # A libsz that can unpack nothing stands for none.
    if "szip" in ways and shutil.which("cc"):
        os.mkdir("stub")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libsz.so.2", "-o", "stub/libsz.so.2", "-x", "c", "-"], check=True,
                       input="int SZ_encoder_enabled(void);\nint SZ_encoder_enabled(void) { return 0; }\n", text=True)
        listed = subprocess.run([gpurt, "data", "info", "packed.h5"], capture_output=True, text=True,
                                env=os.environ | {"LD_LIBRARY_PATH": os.path.abspath("stub")}).stdout
        assert "libsz is missing" in listed, listed
    # Damaged in its middle: one line, and no crash.
    for name, way in ways.items():
        with h5py.File("hurt.h5", "w") as f:
            f.create_dataset("x", data=draw.normal(size=(400, 5)).round(2), chunks=(400, 5), **way)
            at, size = f["x"].id.get_chunk_info(0)[2:]
        bytes_ = bytearray(open("hurt.h5", "rb").read())
        for trial in range(6):
            hurt = bytearray(bytes_)
            for i in draw.integers(0, size, 20):
                hurt[at + int(i)] ^= int(draw.integers(1, 256))
            if trial == 0:
                hurt[at:at + size] = bytes(size)
            open("hurt.h5", "wb").write(hurt)
            done = subprocess.run([gpurt, "predict", "--data", "hurt.h5", "--checkpoint", "packed-plain-f4", "-o", "hurt.npy"],
                                  capture_output=True, text=True)
            assert done.returncode in (0, 65) and done.stderr.count("\n") == 1, (name, trial, done)


def forms():
    run("predict", "--data", "truth.h5", "--checkpoint", "truth", "-o", "said.csv")
    run("predict", "--data", "truth.h5", "--checkpoint", "truth", "-o", "said.npy")
    run("predict", "--data", "truth.h5", "--checkpoint", "truth", "-o", "said.bin", "--format", "npy")
    y = h5py.File("truth-said.h5")["y"][()]
    table = np.genfromtxt("said.csv", delimiter=",", names=True)
    assert (np.load("said.npy") == y).all() and np.load("said.npy").dtype == "f4" and open("said.bin", "rb").read() == open("said.npy", "rb").read()
    assert (np.column_stack([table["y0"], table["y1"]]).astype("f4") == y).all()
    run("predict", "--data", "truth.h5", "--checkpoint", "truth", "-o", "said.npy", "--embeddings")
    assert np.load("said.npy").shape == (64, 8)
    refuse("must end in .h5, .hdf5, .csv or .npy", 64, "predict", "--data", "truth.h5", "--checkpoint", "truth", "-o", "said.txt")


def whole_way():
    """A table in, an array out."""
    x = draw.normal(size=(200, 2))
    np.savetxt("way.csv", np.column_stack([x, x @ [2.0, -1.0] + 3]), delimiter=",", header="u,v,w", comments="")
    run("data", "import", "way.csv", "-o", "way.h5")
    run("train", "supervised", "--data", "way.h5", "epochs=60", "lr=0.01", "batch_size=20", "normalize=true", "hidden=16", "checkpoint_dir=way", "-q")
    run("predict", "--data", "way.h5", "--checkpoint", "way", "-o", "way.npy")
    error = np.abs(np.load("way.npy")[:, 0] - (x @ [2.0, -1.0] + 3)).mean()
    assert error < 0.2, error


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    tables()
    types()
    packed()
    forms()
    whole_way()
    os.chdir("/")
