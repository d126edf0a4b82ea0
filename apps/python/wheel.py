#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of a bundle (ci/bundle.sh), for its architecture: `wheel.py BUNDLE.tar.gz
[FOLDER]`.

    gpurt/*.py                  as they are here: nothing is compiled
    gpurt/lib/                  lib/ of the bundle: libgpurt and all that it needs but glibc
    gpurt-VERSION.dist-info/    what pip asks for, and the licences

Needs Python alone. The same bundle gives the same bytes.
"""

import base64
import hashlib
import pathlib
import re
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
OTHERS = ("libargtable", "libcmocka")  # of the programs
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
ABOUT = """Metadata-Version: 2.1
Name: gpurt
Version: {version}
Summary: Portable GPU training runtime: Vulkan and OpenCL
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: numpy>=1.20
Provides-Extra: gym
Requires-Dist: gymnasium>=1.0; extra == 'gym'
"""
WHEEL = """Wheel-Version: 1.0
Generator: gpurt
Root-Is-Purelib: false
Tag: {tag}
"""


def libraries(bundle, top):
    """The files of lib/ by the names that programs ask for: links are followed, what they point
    to is left."""
    members = {
        m.name: m for m in bundle.getmembers() if m.name.startswith(f"{top}/lib/") and not m.isdir()
    }
    targets = {m.linkname for m in members.values() if m.issym()}
    for name, member in sorted(members.items()):
        folder, own = name.rsplit("/", 1)
        if own in targets or own.startswith(OTHERS):
            continue
        while member.issym():
            member = members[f"{folder}/{member.linkname}"]
        yield name[len(top) + 1 :], bundle.extractfile(member).read()


def contents(path):
    """Names and bytes of all files of the wheel, and its name."""
    found = re.fullmatch(r"gpurt-([0-9.]+)-linux-([a-z0-9]+)\.tar\.gz", path.name)
    if not found:
        sys.exit(f"wheel.py: {path.name} is not named as ci/bundle.sh names a bundle")
    version, machine = found[1], MACHINES[found[2]]
    top, about = path.name[: -len(".tar.gz")], f"gpurt-{version}.dist-info"
    files = {f"gpurt/{f.name}": f.read_bytes() for f in sorted((HERE / "gpurt").glob("*.py"))}
    files["gpurt/py.typed"] = b""
    newest = 17  # of glibc, as on the oldest systems that pip knows
    with tarfile.open(path) as bundle:
        for name, data in libraries(bundle, top):
            files["gpurt/" + name] = data
            newest = max([newest, *(int(n) for n in re.findall(rb"GLIBC_2\.([0-9]+)", data))])
        for member in sorted(bundle.getmembers(), key=lambda m: m.name):
            if member.isfile() and member.name.startswith((f"{top}/licenses/", f"{top}/LICENSE")):
                files[f"{about}/licenses/{member.name.rsplit('/', 1)[-1]}"] = bundle.extractfile(
                    member
                ).read()
    tag = f"py3-none-manylinux_2_{newest}_{machine}"
    files[f"{about}/METADATA"] = ABOUT.format(version=version).encode()
    files[f"{about}/WHEEL"] = WHEEL.format(tag=tag).encode()
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{about}/RECORD"] = ("".join(rows) + f"{about}/RECORD,,\n").encode()
    return f"gpurt-{version}-{tag}.whl", files


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: wheel.py BUNDLE.tar.gz [FOLDER]")
    name, files = contents(pathlib.Path(sys.argv[1]))
    out = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else ".") / name
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for inside, data in files.items():
            info = zipfile.ZipInfo(inside, (2020, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            wheel.writestr(info, data, zipfile.ZIP_DEFLATED)
    print(out)


if __name__ == "__main__":
    main()
