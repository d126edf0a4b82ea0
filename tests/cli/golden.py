# SPDX-License-Identifier: Apache-2.0
"""For tests that compare what commands print, letter by letter, with tests/golden/texts: texts.py, looks.py and
journeys.py.

Usage of each: NAME.py GPURT SOURCE_DIR [--write]

With --write the texts of this program take their place: read the difference before it is committed. Works in a
folder of its own, gone at the end.
"""
import atexit
import difflib
import os
import re
import subprocess
import sys
import tempfile

gpurt, source = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
golden = os.path.join(source, "tests", "golden", "texts")
writes = "--write" in sys.argv[3:]
wrong = []
folder = tempfile.TemporaryDirectory()
atexit.register(folder.cleanup)
os.chdir(folder.name)
environment = {k: v for k, v in os.environ.items() if k not in ("GPURT_DEVICE", "GPURT_PROFILE")}
environment["XDG_CONFIG_HOME"] = folder.name  # where profiles are

FRACTION = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")


def like(got, want):
    """Whether two lines are the same; fractions may differ by one of their last digit, as compilers and libraries of
    mathematics do."""
    if got == want:
        return True
    a, b = FRACTION.findall(got), FRACTION.findall(want)
    if len(a) != len(b) or FRACTION.sub("#", got) != FRACTION.sub("#", want):
        return False

    def unit(text):
        digits, _, power = text.partition("e")
        return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))

    return all(abs(float(x) - float(y)) <= max(1.01 * unit(y), 2e-5 * abs(float(y))) for x, y in zip(a, b))


def same(name, text):
    """What is in the file `name` of the golden texts."""
    path = os.path.join(golden, name)
    if writes:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return
    with open(path, encoding="utf-8") as f:
        want = f.read().split("\n")
    got = text.split("\n")
    if len(got) != len(want) or not all(map(like, got, want)):
        wrong.append(name)
        lines = list(difflib.unified_diff(want, got, name, "this program", n=0, lineterm=""))
        print("\n".join(line[:300] for line in lines[:30]), file=sys.stderr)


def run(words, code=0, given=None):
    """What it prints on stdout, and behind ! on stderr. `code` None: any, which is told too. `given`: its whole
    environment, in place of this one's."""
    done = subprocess.run([gpurt, *words], capture_output=True, text=True, env=given or environment)
    if code is not None and done.returncode != code:
        sys.exit(f"{os.path.basename(sys.argv[0])}: gpurt {' '.join(words)}: exit code {done.returncode}: {done.stderr}")
    ended = f"exit code {done.returncode}\n" if code is None else ""
    return f"$ gpurt {' '.join(words)}\n{done.stdout}" + "".join(f"! {line}\n" for line in done.stderr.splitlines()) + ended


def end():
    """Says what differs, and ends the program."""
    me = os.path.basename(sys.argv[0])
    print(f"{me}: " + ("written" if writes else f"differ: {', '.join(wrong)}" if wrong else "all texts are the same"))
    sys.exit(1 if wrong else 0)
