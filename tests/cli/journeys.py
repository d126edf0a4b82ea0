#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Small whole runs, told in numbers: what they print, log and leave behind, a few lines for each tensor of a
checkpoint. The runs stand in tables, tests/cli/journeys/NAME.txt; the texts are tests/golden/texts/journeys-NAME.txt,
which golden.py compares.

Usage: journeys.py GPURT SOURCE_DIR [--write] [NAME...]

With names only these tables. A line of a table is a command of gpurt; lines that begin with blanks go on with the
one before. Words $like_this stand for what a line `like_this = words` said. A command begins with @3 where its numbers
are told with 3 digits, for rounding of 16 bits. `#` begins a heading. What else may stand there:

    base = WORDS            of the lines that follow and begin with +, whose words stand behind these
    give FILE: | LINE | ... a file of these lines, told nowhere
    copy FROM TO            a file or folder, links left as they are
    remove PATH
    cut FILE BYTES          it has only so many then
    set FILE NAME ROW VALUE a number of an HDF5 data set of one axis or two: the whole row
    same A B                whether two files have the same bytes
    tell FILE               a checkpoint, another HDF5 file, or a text
"""
import glob
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import sys

import h5py
import numpy as np
from golden import FRACTION, end, environment, folder, golden, run, same, source

tables = os.path.join(source, "tests", "cli", "journeys")
environment["XDG_CACHE_HOME"] = folder.name
environment["GPURT_DEVICE"] = "ref:0"


# ---- data: whole numbers and fractions of them, the same bits on every machine ----


def mixed(*shape, seed=1, of=997):
    """Fractions from -1 to 1 without an order, of `of` values."""
    count = int(np.prod(shape))
    turn = (np.arange(count, dtype="u8") + np.uint64(1)) * np.uint64(2654435761 + 2 * seed) % np.uint64(2**32)
    turn = (turn ^ (turn >> np.uint64(15))) * np.uint64(2246822519) % np.uint64(2**32)
    return (((turn >> np.uint64(7)) % np.uint64(of)).astype("f8") * 2 / of - 1).reshape(shape)


def make_data():
    """All files that tables name. Counts are no multiples of batches."""
    x = mixed(53, 5)
    w = mixed(5, 4, seed=2)
    with h5py.File("r.h5", "w") as f:  # numbers, two of them, with a bend
        f["x"] = x.astype("f4")
        f["y"] = (x @ w[:, :2] + np.abs(x[:, 1:3]) / 2).astype("f4")
        f["one"] = (x @ w[:, 2]).astype("f4")
        f["share"] = (np.round(4 * (np.clip(x @ w[:, 2:], -1, 1) + 1)) / 8).astype("f4")
        f["kind"] = (np.abs(x[:, 0] * 2 + x[:, 1]) * 1.3).astype("i4").clip(0, 2)
        f["weight"] = (np.arange(53) % 5 / 2).astype("f4")
    with h5py.File("v.h5", "w") as f:  # of the same, for validations
        v = mixed(19, 5, seed=3)
        f["x"], f["y"] = v.astype("f4"), (v @ w[:, :2]).astype("f4")
        f["goal"] = (-v @ w[:, :2]).astype("f4")
        f["kind"] = (np.arange(19) % 3).astype("i4")
    with h5py.File("c.h5", "w") as f:  # seven classes, of uneven numbers
        x = mixed(67, 6, seed=4)
        f["x"] = x.astype("f4")
        f["y"] = (np.abs(x[:, 0] + x[:, 1] / 2) * 5).astype("i4").clip(0, 6)
        f["weight"] = (1 + np.arange(67) % 3).astype("f8")
    with h5py.File("n.h5", "w") as f:  # of many types and sizes; some are no numbers
        x = mixed(41, 3, seed=5)
        bad = (x * [1, 30, 0.01] + [5, 700, 0]).astype("f4")
        f["whole"] = bad
        f["y"] = (x.sum(1, keepdims=True) / 2).astype("f4")
        holes = bad.copy()
        holes[7, 1], holes[23, 0], holes[40, 2] = np.nan, np.inf, -np.inf
        f["holes"] = holes
        f["time"] = 1.7e9 + 86400 * np.arange(41.0)
        f["count"] = (np.arange(41) * 37 % 11).astype("i8")
        f["byte"] = (np.arange(82) * 91 % 251).astype("u1").reshape(41, 2)
        f["half"] = x.astype("f2")
        f["flag"] = np.arange(41) % 3 == 0
        f.create_dataset("packed", data=bad, chunks=(6, 3), compression="gzip", shuffle=True)
        f.create_dataset("aim", data=(x[:, :1] * 2).astype("f4"), chunks=(6, 1), compression="gzip")
    with h5py.File("i.h5", "w") as f:  # images of three colours, and of one
        y = np.arange(26) * 7 % 4
        x = np.round(40 * mixed(26, 8, 8, 3, seed=6) + 90)
        for image, kind in zip(x, y):
            image[2 * kind:2 * kind + 2, :, kind % 3] += 80
        f["x"], f["y"] = x.astype("u1"), y.astype("i4")
        f["gray"] = x[..., :1].astype("f4") / 255
        f.attrs["classes"] = np.int64(4)
        f.attrs["class_names"] = "red\ngreen\nblue\nlow"
    with h5py.File("o.h5", "w") as f:  # images with their channels first or hardly any rows, and classes that were not meant
        f["x"] = np.round(40 * mixed(26, 3, 8, 8, seed=6) + 90).astype("u1")
        f["gray"] = mixed(26, 1, 5, 5, seed=7).astype("f4")
        f["low"], f["maps"] = mixed(26, 2, 8, 8, seed=7).astype("f4"), mixed(26, 4, 4, 8, seed=7).astype("f4")
        f["flat"] = mixed(26, 3, 8, 4, seed=7).astype("f4")
        f["y"], f["from1"], f["from3"] = np.arange(26) % 3, 1 + np.arange(26) % 2, 3 + np.arange(26) % 2
        f["zeros"], f["fives"] = np.zeros(26, "u1"), np.full(26, 5, "i2")
    with h5py.File("p.h5", "w") as f:  # sets of points
        x = mixed(31, 5, 3, seed=7)
        f["x"], f["y"] = x.astype("f4"), x.max(1)[:, :1].astype("f4")
    turn = np.arange(37)
    with open("t.csv", "w") as f:
        f.write("wind,gust,place,trust,kind\n")
        f.writelines(f"{i / 8},{'' if i % 9 == 4 else i * i % 7 - 3},{i * 5 % 13},{1 + i % 3},{('calm', 'wild', 'mild')[i % 3]}\n"
                     for i in turn)
    np.savez("a.npz", x=mixed(29, 4, seed=8).astype("f4"), y=mixed(29, seed=9).astype("f8"))
    np.save("x.npy", mixed(23, 4, seed=10).astype("f4"))
    np.save("y.npy", mixed(23, 1, seed=11).astype("f4"))
    np.save("w.npy", (1 + np.arange(23) % 4).astype("f4"))


# ---- numbers as text ----

digits = 5
WHOLE = ("step", "steps", "epoch", "best", "skipped", "seed", "parameters", "batch", "accumulate", "phase", "num_envs", "num_dirs",
         "episode_length", "episodes")
FIXED = ("kl", "policy_loss", "explained", "clip_rate", "falls", "good_rate", "good")  # near 0, what rounding leaves
TIMED = ("event", "step", "time", "seconds", "steps_per_s", "samples_per_s", "images_per_s", "gpu", "data_share", "exposed", "memory", "device")


def number(value, name=""):
    """A number in so many digits; a whole one of a name that has whole ones as it is."""
    if name in WHOLE or not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if name == "grad_noise":  # of a difference of lengths that are nearly the same
        return f"{value:#.3g}"
    return f"{value:.{max(digits - 1, 2)}f}" if name in FIXED else f"{float(value):#.{digits}g}"


def rounded(text):
    """Fractions with more digits than are told, but not in commands and errors."""

    def cut(match):
        figures = re.sub(r"e.*|[-.]", "", match[0]).lstrip("0")
        return match[0] if len(figures) <= digits else f"{float(match[0]):#.{digits}g}"

    return "\n".join(line if line.startswith(("$ ", "! gpurt: ")) else FRACTION.sub(cut, line) for line in text.split("\n"))


def spread(values):
    """Of numbers: their mean size, and as a share of it a mean in which each place counts otherwise."""
    if values.size == 0:
        return "-"
    values = values.astype("f8").ravel()
    if not np.isfinite(values).all():
        return f"not finite: {np.count_nonzero(~np.isfinite(values))}"
    size = np.abs(values).mean()
    place = (values * (1 + np.arange(values.size) % 7)).mean() / 4
    return f"{size:#.{digits}g} {place / size if size > 0 else 0:.{max(digits - 1, 2)}f}"


# ---- what a command leaves ----


def tensors(f):
    """The data sets of a file, by their path."""
    found = {}
    f.visititems(lambda name, item: found.__setitem__(name, item) if isinstance(item, h5py.Dataset) else None)
    return found


MASKED = ("digest", "seconds", "gpurt", "version", "profile", "data_digest", "data_time")


FLOATS = (4, 6, 8, 9, 10, 15, 16, 19, 24, 25, 26, 27)  # words of the state of a training that are no whole numbers


def values_of(item):
    """What is told of a tensor."""
    values = item[()]
    if item.name == "/worlds/state":  # words of all kinds: those that may be numbers
        values = values.view("f4")
        return spread(np.where(np.isfinite(values) & (np.abs(values) < 1e6), values, 0))
    if item.name in ("/state/state", "/optimizer/state") and item.dtype == np.uint32:
        floats = values.view("f4")
        return " ".join(number(float(floats[i])) if i in FLOATS else str(values[i]) for i in range(values.size))
    return spread(values)


def told(path):
    """A checkpoint or another HDF5 file: attributes, then a line for each tensor, those of an optimizer behind the
    parameter's own."""
    texts, words = "", []
    with h5py.File(path, "r") as f:
        for name in sorted(f.attrs):
            value = f.attrs[name]
            if name in MASKED or name.endswith("digest"):
                words.append(f"{name} ...")
            elif isinstance(value, (bytes, str)):
                text = value.decode() if isinstance(value, bytes) else value
                lines = [line.strip() for line in text.strip().split("\n")]
                if len(lines) > 1:
                    texts += f"    {name}: " + ", ".join(lines) + "\n"
                else:
                    words.append(f"{name} {lines[0]}")
            else:
                value = value.tolist()
                words.append(f"{name} {number(value) if isinstance(value, float) else value}")
        found = tensors(f)
        behind = {}
        for name in sorted(found):
            own = "model/" + re.sub(r"^\w+/(\w+\.)?", "", name, count=1)
            if not name.startswith("model/") and own in found:
                behind.setdefault(own, []).append(name)
        texts = f"    {', '.join(words)}\n" + texts
        for name in sorted(found):
            if any(name in names for names in behind.values()):
                continue
            item = found[name]
            texts += f"    {name} {item.dtype} {'x'.join(map(str, item.shape)) or 'one'}: {values_of(item)}"
            for other in behind.get(name, ()):
                texts += f"; {other.split('/')[1].split('.')[0]} {values_of(found[other])}"
            texts += "\n"
    return texts


def there():
    """Files below this folder, each with what tells whether it is another one later."""
    found = {}
    for where, _, names in os.walk("."):
        for name in names:
            path = os.path.relpath(os.path.join(where, name), ".")
            info = os.stat(path)
            found[path] = (info.st_ino, info.st_mtime_ns, info.st_size)
    return found


def left(before, after, every):
    """What is new, other and gone. Without an interval of checkpoints how many of them there are in between is the
    clock's: then the newest is told."""
    text = ""
    numbered = [p for p in after if re.search(r"step-\d+\.h5$", p)]
    newest = {os.path.dirname(p): p for p in sorted(numbered)}
    hashes = {}
    for path in sorted(set(before) | set(after)):
        if before.get(path) == after.get(path):
            continue
        if re.search(r"step-\d+\.h5$", path) and not every and newest.get(os.path.dirname(path)) != path:
            continue
        if path not in after:
            text += f"  - {path}\n"
            continue
        text += f"  {'~' if path in before else '+'} {path}"
        if path.endswith(".h5"):
            with open(path, "rb") as f:
                digest = hashlib.sha256(f.read()).hexdigest()
            if digest in hashes:
                text += f" = {hashes[digest]}"
            elif path in newest.values() or not re.search(r"step-\d+\.h5$", path):
                text += "\n" + told(path).rstrip("\n")
            hashes.setdefault(digest, path)
        elif path.endswith(".csv"):
            with open(path, encoding="utf-8") as f:
                text += "\n" + rounded("".join(f"    {line}" for line in f)).rstrip("\n")
        text += "\n"
    return text


# ---- what a command says ----

# Of this machine, by the clock, or in other words in the log.
ASIDE = re.compile(r"! (device|profile|memory|start|autotune|loading|cache|seed|precision) |! checkpoints (?!of)|! $|phase |exit code 0$|"
                   r"(environment|action selection|advantages|update|host|whole)  ")


def said(text):
    """Its lines without times, rates and memory, which are the last columns of a table of a training."""
    kept, table = [], False
    for line in text.split("\n"):
        cells = line.split()
        if re.match(r"! epoch \d+/\d+, step", line):  # the last of them; those before are in the log
            kept = [k for k in kept if not k.startswith("! epoch ")]
            kept.append(re.sub(r", [\d:.e+]+( samples/s|% compute|%| left)|, data \d+%( compute \d+%)?", "", line))
        elif ASIDE.match(line) or not line:
            continue
        elif cells[0] in ("epoch", "iteration") and cells[-1] == "s":
            kept.append(" ".join(cells[:-4]))
            table = True
        elif table and cells[0].isdigit():
            kept.append(" ".join(cells[:-5] if cells[-2] in ("KiB", "MiB", "B") else cells[:-4]))
        else:
            kept.append(line)
    # What activations take, and the largest batch, are the memory plan's, which may get better.
    text = re.sub(r"(?m)^([\w.]*,\w+,(?:\[\d+\])+,(?:\[\d+\])+,\d+,\d+),\d+,(\d)$", r"\1,bytes,\2", "\n".join(kept))
    # What the HDF5 library says of a file is its version's.
    return re.sub(r"(largest batch on ref:0|HDF5 file that can be read): .*", r"\1 ...", text)


def untimed(text):
    """Tables of evaluations and CSV without rates and times: what stands below such a heading."""
    kept, cells, ends = [], [], []
    for line in text.split("\n"):
        names = line.split(",")
        if len(names) > 2 and any(name in TIMED for name in names):
            cells = [i for i, name in enumerate(names) if name in TIMED]
        elif cells and line.count(",") >= max(cells):
            line = ",".join("#" if i in cells else cell for i, cell in enumerate(names))
        found = [m.end() for m in re.finditer(r"(?<!\S)(samples/s|steps/s|s)(?!\S)", line)]
        if found and line[0] != "!":
            ends = found
        elif line[:1] in ("", "!", "$") or not re.search(r"\d", line):
            ends = []
        for end in ends if not found else []:
            over = [m for m in re.finditer(r"\S+", line) if m.start() < end <= m.end() + 8]
            line = line[:over[-1].start()] + "#" * len(over[-1][0]) + line[over[-1].end():] if over else line
        if ends:
            line = re.sub(r"#+", "#", re.sub(r" +", " ", line))
        kept.append(line)
    return "\n".join(kept)


def rows(path):
    """Rows of a log, a line each."""
    text = ""
    with open(path) as f:
        for row in map(json.loads, f):
            if row["event"] in ("timing", "monitor"):
                continue
            cells = " ".join(f"{k} {number(v, k)}" for k, v in row.items() if k not in TIMED)
            text += f"  {row['event']} {row['step']}: {cells}\n"
    return text


def command(words):
    """Runs one, and tells of it."""
    trains = words[0] == "train" and words[1:] and words[1][0] != "-" and "--log" not in words
    before = there()
    text = run(words + (["--log", "log"] if trains else []), None)
    text = rounded(said((text if trains else untimed(text)).replace(" --log log\n", "\n", 1)))
    if os.path.exists("log"):
        text += "\n" + rows("log").rstrip("\n")
        os.remove("log")
    every = any(word.startswith(("checkpoint_interval", "save_steps", "--checkpoint-interval")) for word in words)
    return text.rstrip("\n") + "\n" + left(before, there(), every)


# ---- tables ----


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def copy(a, b):
    if os.path.isdir(a):
        shutil.copytree(a, b)
    else:
        shutil.copy(a, b)


def cut(path, size):
    os.truncate(path, int(size))


def put(path, name, row, value):
    with h5py.File(path, "r+") as f:
        f[name][int(row)] = float(value)


def alike(a, b):
    if not (os.path.exists(a) and os.path.exists(b)):
        return "NOT BOTH ARE THERE\n"
    with open(a, "rb") as f, open(b, "rb") as g:
        return "" if f.read() == g.read() else "OTHER BYTES\n"


def tell(path):
    if path.endswith(".h5"):
        return told(path)
    with open(path, encoding="utf-8") as f:
        return rounded("".join(f"    {line}" for line in f))


WORDS = {"copy": copy, "remove": remove, "cut": cut, "set": put, "same": alike, "tell": tell}


def lines_of(path):
    """Lines of a table, with those that go on."""
    with open(path, encoding="utf-8") as f:
        for line in re.sub(r"\n[ \t]+(?!\|)", " ", f.read()).split("\n"):
            if line.strip():
                yield line


def tried(base, more):
    """What a command line comes to that is refused: its words, then what is said with the exit code."""
    begun = len("$ gpurt " + " ".join(base)) + 1
    lines = command(base + more).rstrip("\n").split("\n")
    codes = [line for line in lines if line.startswith("exit code ")]
    code = codes[0].split()[-1] if codes else "0"
    lines = [line for line in lines if line not in codes]
    said_of = [line.removeprefix("! ") for line in lines[1:] if line.startswith("! ") or (line and line[0] != " ")]
    return f"+ {lines[0][begun:]}\n" + "".join(f"    {code} {line}\n" for line in said_of)


def journey(path):
    """The text of a table."""
    global digits
    text, said_before = "", {}
    for line in lines_of(path):
        if line.startswith("#"):
            text += "\n" + line + "\n"
            continue
        line = re.sub(r"\$(\w+)", lambda m: said_before[m[1]], line)
        about = re.match(r"(\w+) = (.*)", line)
        if about:
            said_before[about[1]] = about[2]
            text += f"\n$ gpurt {about[2]} ...\n" if about[1] == "base" else ""
            continue
        if line.startswith("give "):
            name, rest = line[5:].split(":", 1)
            with open(name, "w") as f:
                f.write("\n".join(part.strip(" ").replace("~", " ") for part in rest.split("|")[1:]) + "\n")
            continue
        words = shlex.split(line)
        digits = 5
        if words[0] == "+":
            text += tried(shlex.split(said_before["base"]), words[1:])
            continue
        if words[0].startswith("@"):
            digits = int(words.pop(0)[1:])
        if words[0] in WORDS:
            text += f"$ {' '.join(words)}\n" + (WORDS[words[0]](*words[1:]) or "")
        else:
            text += command(words)
    return text.lstrip("\n")


chosen = [name for name in sys.argv[3:] if not name.startswith("-")]
os.mkdir("data")
os.chdir("data")
make_data()
for table in sorted(glob.glob(os.path.join(tables, "*.txt"))):
    name = os.path.basename(table)
    if chosen and name[:-4] not in chosen:
        continue
    os.mkdir("../" + name)
    os.chdir("../" + name)
    for file in os.listdir("../data"):
        shutil.copy("../data/" + file, file)
    same("journeys-" + name, journey(table))
end()
