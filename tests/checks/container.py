#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads docs/container/Containerfile as an engine would: known instructions, stages that are
there, commands that the shell takes, files of the tree, packages that are made or that the
distribution has. It builds nothing. Usage: container.py SOURCE_DIR [FILE]"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

source = pathlib.Path(sys.argv[1])
path = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else source / "docs/container/Containerfile"
text = path.read_text()
lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
instructions = [
    i.strip() for i in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines() if i.strip()
]
KNOWN = {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "ENTRYPOINT", "CMD"}
OURS = "gpurt libgpurt0 libgpurt-dev gpurt-mpi python3-gpurt".split()


def wrong(why):
    sys.exit(f"container.py: {path.name}: {why}")


stages, packages = [], set()
for instruction in instructions:
    word, _, rest = instruction.partition(" ")
    if word not in KNOWN:
        wrong(f"no instruction {word!r}")
    if not stages and word != "FROM":
        wrong("it does not begin with FROM")
    if word == "FROM":
        found = re.fullmatch(r"([a-z/]+):([\w.-]+)(?: AS ([a-z]+))?", rest)
        if not found or found[2] == "latest":
            wrong(f"FROM {rest}: a name with a version is wanted")
        stages.append(found[3] or "")
    elif word == "RUN":
        shell = subprocess.run(["sh", "-n", "-c", rest], capture_output=True, text=True)
        if shell.returncode:
            wrong(f"RUN {rest}: {shell.stderr.strip()}")
        for script in re.findall(r"(?:^|\s)(ci/[\w./]+)", rest):
            if not (source / script).is_file():
                wrong(f"{script} is not there")
        for command in rest.split("&&"):
            words = command.split()
            if words[:2] == ["apt-get", "install"]:
                if not {"-y", "--no-install-recommends"} <= set(words):
                    wrong(f"{command.strip()}: -y and --no-install-recommends are wanted")
                packages |= {w for w in words[2:] if not w.startswith("-")}
        if "apt-get update" in rest and "rm -rf /var/lib/apt/lists" not in rest:
            wrong(f"RUN {rest}: the lists of apt stay in the layer")
    elif word == "COPY":
        found = re.match(r"--from=(\w+) ", rest)
        if found and found[1] not in stages[:-1]:
            wrong(f"COPY {rest}: no stage {found[1]!r} before it")
        if not found:
            for name in rest.split()[:-1]:
                if not (source / name).exists():
                    wrong(f"COPY {name}: it is not there")
    elif word == "ENV":
        if not all(re.fullmatch(r"[A-Z_]+=\S+", pair) for pair in rest.split()):
            wrong(f"ENV {rest}")
    elif word in ("ENTRYPOINT", "CMD"):
        if not all(isinstance(w, str) for w in json.loads(rest)):
            wrong(f"{word} {rest}: a list of texts is wanted")
for name in sorted(packages):
    own = re.fullmatch(r"/debs/([a-z0-9-]+)_\*\.deb", name)
    if own and own[1] not in OURS:
        wrong(f"{name}: ci/package.sh makes no such package")
theirs = sorted(p for p in packages if not p.startswith("/"))
if shutil.which("apt-cache"):
    known = subprocess.run(["apt-cache", "madison", *theirs], capture_output=True, text=True).stdout
    # A machine that never asked its mirror knows none at all.
    missing = [p for p in theirs if not re.search(rf"^\s*{re.escape(p)} \|", known, re.M)]
    if known and missing:
        wrong(f"the distribution has no package {' '.join(missing)}")
print(f"container.py: {len(instructions)} instructions, {len(stages)} stages, packages {theirs}")
