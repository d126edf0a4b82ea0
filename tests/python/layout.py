#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The structs and numbers of the Python package are those of the C headers: a C program prints
sizes and offsets. So is what functions take and return, as the headers write it.

Usage: layout.py SOURCE_DIR BUILD_DIR C_COMPILER
"""

import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

source, build, compiler = sys.argv[1:]
sys.path.insert(0, os.path.join(source, "apps", "python"))
sys.dont_write_bytecode = True
os.environ["GPURT_LIBRARY"] = os.path.join(build, "libgpurt.so.0")
from gpurt import _archive, _config, _library  # noqa: E402
from gpurt import _worlds  # noqa: E402

HEADERS = (
    "device",
    "archive",
    "run",
    "supervised",
    "onnx",
    "scores",
    "env",
    "worlds",
    "stepper",
    "policy",
    "es",
    "ppo",
    "ppo_task",
    "model_file",
    "config",
    "gpurt",
)
structs = {
    name: kind
    for name, kind in vars(_library).items()
    if isinstance(kind, type)
    and issubclass(kind, ctypes.Structure)
    and kind is not ctypes.Structure
}
if len(structs) < 20:
    sys.exit(f"layout.py: only {len(structs)} structs were found")
lines, want = [], []
for kind in structs.values():
    lines.append(f'printf("%zu\\n", sizeof(struct {kind.__name__}));')
    want.append((kind.__name__, ctypes.sizeof(kind)))
    for field, *unused in kind._fields_:
        at = getattr(kind, field)
        lines.append(
            f'printf("%zu\\n", 1000 * offsetof(struct {kind.__name__}, {field}) + '
            f"sizeof(((struct {kind.__name__} *)0)->{field}));"
        )
        want.append((f"{kind.__name__}.{field}", 1000 * at.offset + at.size))
# Of a struct that is a field the size may exceed 1000: it is compared all the same.
numbers = {
    "GRT_FIELD_COUNT": len(_library.FIELDS),
    "GRT_RUN_EVENT_COUNT": len(_library.EVENTS),
    "GRT_RUN_NEWS_ROW": _library.NEWS_ROW,
    "GRT_ENDED_SIGNAL": _library.ENDED_SIGNAL,
    "GRT_ENDED_NONFINITE": _library.ENDED_NONFINITE,
    "GRT_ENDED_FAILED": _library.ENDED_FAILED,
    "GRT_STATUS_COUNT": len(_library._ERRORS),
    "GRT_NO_INPUT": _library._ERRORS.index(_library.NotFoundError),
    "GRT_BAD_DATA": _library._ERRORS.index(_library.DataError),
    "GRT_NO_MEMORY": _library._ERRORS.index(_library.OutOfMemoryError),
    "GRT_INVALID": _library._ERRORS.index(_library.ConfigError),
    "GRT_DTYPE_COUNT": len(_archive._DTYPES),
    "GRT_BF16": _archive._BF16,
    "GRT_I8": _archive._DTYPES.index("|i1"),
    "GRT_U32": _archive._DTYPES.index("<u4"),
    "GRT_ARCHIVE_TEXT": 2,
    "GRT_CONFIG_OF_SUPERVISED": _config.SUPERVISED,
    "GRT_CONFIG_OF_PPO": _config.PPO,
    "GRT_CONFIG_OF_CLASSIFY": _config.CLASSIFY,
    "GRT_ROW_LAST": _worlds.LAST,
    "GRT_ROW_CUT": _worlds.CUT,
    "GRT_ROW_IDLE": _worlds.IDLE,
    "GRT_PART_ALL": 2,
    "GRT_PPO_ALL": 0,
    "GRT_PPO_TRY_RANDOM": 1,
    "GRT_ES_RANKS": 1,
    "GRT_LOG_WARN": 1,
}
for name, number in numbers.items():
    lines.append(f'printf("%zu\\n", (size_t){name});')
    want.append((name, number))
program = (
    "#include <stddef.h>\n#include <stdio.h>\n"
    + "".join(f"#include <gpurt/{h}.h>\n" for h in HEADERS)
    + "int main(void) {\n"
    + "\n".join(lines)
    + "\nreturn 0;\n}\n"
)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "layout")
    with open(path + ".c", "w") as file:
        file.write(program)
    subprocess.run(
        [compiler, "-std=c11", "-I", os.path.join(source, "runtime"), path + ".c", "-o", path],
        check=True,
    )
    found = [
        int(word) for word in subprocess.run([path], check=True, capture_output=True).stdout.split()
    ]
wrong = [
    f"{name}: {mine} here, {theirs} in C"
    for (name, mine), theirs in zip(want, found, strict=True)
    if mine != theirs
]


def bytes_of(text):
    """Bytes of a type or of a parameter as a header writes it; 0: void."""
    if re.search(r"[*\[]", text):
        return ctypes.sizeof(ctypes.c_void_p)
    known = {"void": 0, "bool": 1, "uint32_t": 4, "enum": 4, "uint64_t": 8, "size_t": 8}
    return known.get(text.split()[0], 8)  # a type of a function, grt_NAME_fn *, has its star


def parameters(text):
    """What stands between commas, but not between those of a function's own parameters."""
    flat = re.sub(r"(\(\*\w+\))\([^()]*\)", r"\1", " ".join(text.split()))
    return [] if flat == "void" else [bytes_of(one.strip()) for one in flat.split(",")]


headers = ""
for path in sorted(glob.glob(os.path.join(source, "runtime", "gpurt", "*.h"))):
    with open(path) as file:
        headers += re.sub(r"//[^\n]*", "", file.read())
calls = {
    name: call
    for name, call in vars(_library.library).items()
    if name.startswith("grt_") and call.argtypes is not None
}
if len(calls) < 50:
    sys.exit(f"layout.py: only {len(calls)} functions were found")
for name, call in calls.items():
    told = re.search(rf"GRT_API ([^;{{}}]*?)\b{name}\((.*?)\)\s*;", headers, re.DOTALL)
    if not told:
        wrong.append(f"{name}: not in the headers")
        continue
    theirs = [bytes_of(told[1].replace("const ", ""))] + parameters(told[2].replace("const ", ""))
    mine = [ctypes.sizeof(t) if t else 0 for t in [call.restype, *call.argtypes]]
    if mine != theirs:
        wrong.append(f"{name}: returns and takes bytes {mine} here, {theirs} in C")
if wrong:
    sys.exit("layout.py: apps/python/gpurt does not follow the headers:\n" + "\n".join(wrong))
print(f"layout.py: {len(structs)} structs, {len(want)} numbers, {len(calls)} functions")
