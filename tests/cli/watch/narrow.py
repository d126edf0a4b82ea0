#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal of 80 columns: the rows fit, and what names a case and its figure stays. And the line of progress,
which a terminal alone shows: it counts the rows that come.

Usage: narrow.py GPURT

Each command runs on a pseudo terminal of 80 columns and once more into a pipe, which gets every column.
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

DATA = "made.h5"  # in the folder where all run
ONE = ["--device", "ref:0", "--time", "0.002", "--samples", "1"]
# The command, and headings that stay; the line of headings begins with the first.
COMMANDS = [
    (["devices"], ["device", "name", "memory"]),
    (["bench", "gemm", "--shape", "16", "--precision", "f32"] + ONE, ["m x n x k", "types", "variant", "GFLOP/s", "check"]),
    (["bench", "conv", "--shape", "1x4x4x3x4", "--pass", "data"] + ONE, ["test", "window", "GFLOP/s", "check"]),
    (["bench", "rollout", "--env", "cartpole", "--num-envs", "4", "--num-dirs", "2", "--dir-chunk", "1", "--episode-length",
      "5"] + ONE, ["test", "envs", "dirs", "chunk", "steps/s", "check"]),
    (["bench", "mlp", "--model", "depth=1,hidden=4", "--batch-sizes", "32", "--precision", "f32", "--variant", "layers",
      "--device", "ref:0", "--time", "0.002"], ["model", "batch", "M samples/s", "check"]),
    (["bench", "--device", "ref:0", "--model", "depth=1,hidden=4", "--batch-sizes", "32", "--num-workers", "0", "--precision",
      "f32", "--time", "0.002", "--steps", "1"], ["Batch", "Workers", "Total ms", "Samples/s", "Status"]),
    (["bench", "data", "--batch-sizes", "32", "--num-workers", "0", "--time", "0.002"],
     ["batch", "workers", "samples/s", "slowest", "check"]),
    (["estimate", "--scaling", "--card", "h200", "--api", "vulkan", "--link", "c2c-400ib"],
     ["GPUs", "compute ms", "exchange ms", "step ms", "efficiency", "times one GPU"]),
    (["model", "--data", DATA, "depth=1", "hidden=16"],
     ["layer", "kind", "gives", "parameters", "operations", "activations"]),
    (["monitor", "--once", "--interval", "0.05"], ["name", "busy", "used", "of", "power W", "temp. C"]),
    (["profile", "--device", "ref:0"], ["setting", "value", "from"]),
]

QUICK = ["--time", "0.001", "--samples", "1"]
# Benches of several rows; each has the rows of its table.
COUNTED = [
    ["gemm", "--shape", "8,16,24", "--batch-count", "1,2", "--trans", "nn,tn", "--precision", "f32"] + QUICK,
    ["conv", "--shape", "1x4x4x3x4,1x6x6x3x4", "--precision", "f32"] + QUICK,
    ["rollout", "--env", "cartpole", "--num-envs", "2,4", "--num-dirs", "2", "--dir-chunk", "1,2", "--episode-length", "5"] + QUICK,
    ["mlp", "--model", "depth=1,hidden=4", "--batch-sizes", "32,64,96", "--precision", "f32", "--variant", "layers", "--time", "0.001"],
    ["data", "--batch-sizes", "32,64", "--num-workers", "0,1", "--time", "0.001"],
]


def on_terminal(columns, words, errors=False):
    """Lines of what stands on a terminal: the output, or with `errors` what comes beside it."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if errors else side,
                               stderr=side if errors else subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1", "TERM": "xterm"})
    os.close(side)
    text = b""
    while True:
        try:
            more = os.read(main, 65536)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        text += more
    os.close(main)
    assert process.wait() == 0, words
    return text.decode().splitlines()


def table_of(lines, heading):
    """The line of headings and the rows below it."""
    first = next(i for i, line in enumerate(lines) if line.strip().startswith(heading))
    rest = [i for i in range(first, len(lines)) if not lines[i].strip()]
    return lines[first:rest[0] if rest else len(lines)]


def shown(command):
    """Every line of progress, one after another."""
    return [part for line in on_terminal(60, command, True) for part in re.split("\r|\x1b\\[K", line) if part]


def progress(gpurt):
    for words in COUNTED:
        command = [gpurt, "bench", *words] + ([] if words[0] == "data" else ["--device", "ref:0"])
        rows = subprocess.run([*command, "--format", "csv"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=True).stdout.splitlines()[1:]
        lines = shown(command)
        assert all(len(line) < 60 for line in lines), lines
        found = [re.match(r"(\d+) of (\d+)(, [\d.]+ (?:s|min|h) left)?: \S", line) for line in lines]
        counts = [(int(m[1]), int(m[2]), m[3] is not None) for m in found if m]
        want = [(i + 1, len(rows), 0 < i) for i in range(len(rows))]
        assert counts == want, f"{words}: {counts} of {len(rows)} rows"
    # Kernels are counted too, over all graphs so far. Only a driver compiles some.
    devices = subprocess.run([gpurt, "devices", "--format", "csv"], capture_output=True, text=True, check=True).stdout
    if "opencl:0" not in devices:
        return
    command = [gpurt, "bench", "gemm", "--shape", "8,16", "--precision", "f32", "--device", "opencl:0"] + QUICK
    kernels = [re.match(r"compiling kernels (\d+) of (\d+): [a-z]", line) for line in shown(command)]
    kernels = [(int(m[1]), int(m[2])) for m in kernels if m]
    assert len(kernels) > 1 and kernels[-1][0] == kernels[-1][1], kernels
    assert [nth for nth, of in kernels] == list(range(1, len(kernels) + 1)), kernels
    assert all(nth <= of for nth, of in kernels), kernels


def main(gpurt, folder):
    os.chdir(folder)
    subprocess.run([gpurt, "data", "make", "regression", "--samples", "64", "-o", DATA], stdout=subprocess.DEVNULL, check=True)
    for words, headings in COMMANDS:
        narrow = table_of(on_terminal(80, [gpurt] + words), headings[0])
        for line in narrow:
            assert len(line) <= 80, f"{words}: {len(line)} columns: {line}"
        for heading in headings:
            assert heading in narrow[0], f"{words}: no {heading}: {narrow[0]}"
        piped = subprocess.run([gpurt] + words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        wide = table_of(piped.stdout.splitlines(), headings[0])
        assert len(wide[0]) > 80 or words[0] == "profile", f"{words}: {wide[0]}"
        assert len(on_terminal(200, [gpurt] + words)) and len(narrow) == len(wide), words
    progress(gpurt)


if __name__ == "__main__":
    try:
        with tempfile.TemporaryDirectory() as folder:
            main(os.path.realpath(sys.argv[1]), folder)
    except AssertionError as error:
        print(f"narrow.py: {error}", file=sys.stderr)
        sys.exit(1)
