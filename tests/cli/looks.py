#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What commands say of what they look at, letter by letter: systems under a folder, data for a config, a device, a
trained network and a policy. The texts are in tests/golden/texts; golden.py compares.

Usage: looks.py GPURT SOURCE_DIR [--write]
"""
import json
import os
import re

import h5py
import numpy as np
from golden import end, run, same, source

REF = ["--device", "ref:0"]


def put(path, text="", mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


# ---- systems that are not this one ----


def gpu(root, address, vendor, driver, node=None):
    folder = f"{root}/sys/bus/pci/devices/{address}"
    put(f"{folder}/class", "0x030000\n")
    put(f"{folder}/vendor", vendor + "\n")
    if driver:
        os.symlink("../../../bus/pci/drivers/" + driver, folder + "/driver")
    if node:
        put(f"{folder}/drm/{node}")


LIB = "/usr/lib/any-linux-gnu/"
for root, libraries in (("amd", "libvulkan.so.1 libvulkan_radeon.so libOpenCL.so.1 libRusticlOpenCL.so.1"),
                        ("nvidia", "libvulkan.so.1 libOpenCL.so.1 libnvidia-opencl.so.1"), ("wsl", "libvulkan.so.1"), ("bare", "")):
    put(root + "/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n" if root != "wsl" else "5.15.90.1-microsoft-standard-WSL2\n")
    put(root + "/proc/1/cgroup", "0::/init.scope\n")
    put(root + "/people/anna/.profile")
    for name in libraries.split():
        put(root + LIB + name)
put("amd/usr/share/vulkan/icd.d/radeon_icd.json", json.dumps({"ICD": {"library_path": LIB + "libvulkan_radeon.so"}}))
put("amd/usr/share/vulkan/icd.d/old_icd.json", json.dumps({"ICD": {"library_path": LIB + "libold.so"}}))
put("amd/etc/vulkan/icd.d/empty_icd.json", "{}")
put("amd/etc/OpenCL/vendors/rusticl.icd", "libRusticlOpenCL.so.1\n")
gpu("amd", "0000:03:00.0", "0x1002", "amdgpu", "renderD128")
put("amd/dev/dri/renderD128", mode=0o666)
gpu("nvidia", "0000:05:00.0", "0x10de", "nvidia")
gpu("nvidia", "0000:06:00.0", "0x10de", None)
gpu("nvidia", "0000:07:00.0", "0x8086", "i915", "renderD129")
put("nvidia/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n")
put("nvidia/.dockerenv")
gpu("bare", "0000:01:00.0", "0x10de", "nvidia")
anna = {"HOME": "/people/anna", "PATH": "/usr/bin"}
switch = {k: v for k, v in os.environ.items() if k.startswith(("GPURT_MUTANT", "ASAN", "LSAN", "UBSAN"))}
texts = ""
for root, more in (("amd", {}), ("nvidia", {"NVIDIA_VISIBLE_DEVICES": "all", "OCL_ICD_FILENAMES": "libx.so"}),
                         ("wsl", {"VK_ICD_FILENAMES": "/no/such.json:/nor/this.json"}), ("bare", {})):
    texts += run(["doctor", "--root", root], None, {**anna, **switch, **more})
for form in ("csv", "md", "json"):
    texts += run(["doctor", "--root", "nvidia", "--format", form], None, {**anna, **switch})
# Whether there are kernels for matrix units is the compiler's of shaders; without them other things
# are counted too.
if "built without cooperative-matrix" in texts:
    print("looks.py: doctor.txt is not compared: gpurt was built without kernels for matrix units")
else:
    texts = re.sub(r"(?m)^.*(cooperative.matrix|coopmat).*\n(?:  +->.*\n)?", "", texts)
    same("doctor.txt", re.sub(r'"date": ?"[^"]*"|"gpurt": ?"[^"]*"', '""', texts))

# ---- data: what a config of them would have, and what is seen of them ----

for words in ("regression --samples 96 --features 5 --seed 3 -o r.h5", "points --samples 20 --features 3 --points 4 -o p.h5",
              "classification --samples 60 --features 4 --classes 3 --seed 4 -o c.h5",
              "shapes --samples 40 --pixels 8 --classes 4 --seed 2 -o s.h5"):
    run(["data", "make", *words.split(), "-q"])
turn = np.arange(48.0)
with h5py.File("n.h5", "w") as f:
    f["speed"] = np.stack([300 + turn, turn], 1).astype("f4")
    f["height"] = np.sin(np.outer(turn, [1, 2, 3])).astype("f4")
    f["shorter"] = np.zeros((9, 2), "f4")
    f["Label"] = (turn % 4).astype("i4")
    f["deep/er"] = turn.astype("f4")
with h5py.File("late.h5", "w") as f:  # no name of targets: the last single number is one
    f["a"], f["b"], f["c"] = (np.cos(np.outer(turn, range(1, 1 + n))).astype("f4") for n in (2, 1, 1))
with h5py.File("flags.h5", "w") as f:
    f["x"], f["targets"] = np.cos(np.outer(turn, [1, 2])).astype("f4"), (turn % 2).astype("u1")[:, None]
with open("t.csv", "w") as f:
    f.write("wind,gust,kind\n" + "".join(f"{i / 8},{i * i % 7 - 3},{'abc'[i % 3]}\n" for i in range(12)))
np.save("x.npy", np.sin(np.outer(turn, [1, 2])).astype("f4"))
# Inputs near the edges of what is taken as it is: a mean of 0.5, deviations of 0.5 and 2.
for name, numbers in (("mean", turn % 2), ("narrow", turn % 2 - 0.5), ("wide", 4 * (turn % 2) - 2), ("low", turn % 2 - 1)):
    with h5py.File(name + ".h5", "w") as f:
        f["x"], f["y"] = numbers.astype("f4")[:, None], numbers.astype("f4")[:, None]


def config(words):
    """The head of a config and the keys that it sets; workers are by the processors of this machine."""
    text = run(["init", *words.split(), "-o", "-", *REF])
    kept = [line for line in text.split("\n") if line and (not line.lstrip().startswith("#") or line.startswith("# "))]
    return re.sub(r"(num_workers): \d+", r"\1: some", re.sub(r"(?m)^(# For ref:0: ).*", r"\1...", "\n".join(kept))) + "\n"


texts = ""
for words in ("supervised --data r.h5", "supervised --data c.h5", "supervised --data p.h5", "supervised --data s.h5",
              "supervised --data n.h5", "supervised --data n.h5 --inputs height --targets speed", "supervised --data late.h5",
              "supervised --data flags.h5", "supervised --data t.csv", "supervised --data t.csv --inputs gust --targets wind",
              "supervised --data mean.h5", "supervised --data narrow.h5", "supervised --data wide.h5",
              "supervised --data low.h5", "classify --data s.h5", "simclr --data s.h5", "es", "es --env standing", "ppo",
              "ppo --env pendulum", "uav"):
    texts += config(words)
for words in ("supervised --data x.npy", "es --inputs a", "ppo --fill mean", "supervised --data r.h5 --env cartpole", "uav --env uav",
              "classify --data r.h5", "supervised --data n.h5 --targets none"):
    texts += run(["init", *words.split(), "-o", "none.yaml", *REF], None)
same("init.txt", texts)

# ---- what was drawn for a picture ----

views = "random_resized_crop(8) | random_horizontal_flip | color_jitter(0.4, 0.3, 0.2, 0.1, p=0.5) | random_grayscale(p=0.5)"
texts = run(["data", "preview", "--data", "s.h5", "--rows", "3", "--print-parameters", "-o", "v.svg", "seed=4", "transform=" + views, *REF])
texts += run(["data", "preview", "--data", "s.h5", "--rows", "2", "--step", "7", "--print-parameters", "transform=random_crop(padding=2)", *REF])
with open("v.svg") as f:
    texts += re.sub(r"base64,[^\"]*", "base64,...", f.read())
same("preview.txt", texts)

# ---- a trained network and a policy ----

short = ["hidden=8", "depth=1", "epochs=2", "seed=9", "-q", *REF]
run(["train", "supervised", "--data", "r.h5", "batch_size=20", "validation_split=0.25", "checkpoint_dir=r", *short])
run(["train", "supervised", "--data", "c.h5", "batch_size=16", "validation_split=0.25", "checkpoint_dir=c", *short])
run(["train", "simclr", "--data", "s.h5", "batch_size=8", "epochs=1", "seed=1", "checkpoint_dir=s", "-q", *REF,
     "model=[{conv: 4}, relu, flatten, {linear: 8}]"])
run(["train", "supervised", "--data", "t.csv", "batch_size=4", "checkpoint_dir=t", *short])
texts = ""
for name, more in (("r", []), ("c", []), ("c", ["--embeddings"])):
    texts += run(["predict", "--data", name + ".h5", "--checkpoint", name, "--format", "csv", "-o", "-", *more, *REF])
predicted, texts = texts, ""
for form in ("table", "json"):  # with the names of its classes
    text = run(["eval", "--data", "t.csv", "--checkpoint", "t", "--format", form, *REF])
    texts += re.sub(r'(?s)"device": \{.*?\n  \}|"(?:date|gpurt)": "[^"]*"|"(?:loss|accuracy|samples_per_s)": [\d.]+', '""', text)
for name, part in (("r", "validation"), ("c", "train"), ("c", "all")):
    for form in ("table", "csv"):
        texts += run(["eval", "--data", name + ".h5", "--checkpoint", name, "--part", part, "--scores", "--format", form, *REF])
for kind, more in (("knn", ["--k", "5"]), ("linear", ["--epochs", "5"]), ("knn", ["--k", "3", "--temperature", "2", "--no-baseline"]),
                   ("linear", ["--epochs", "3", "--learning-rate", "0.1", "--no-baseline"])):
    for form in ("table", "csv"):
        texts += run(["eval", kind, "--data", "s.h5", "--checkpoint", "s", "--format", form, *more, *REF])
run("train uav num_envs=2 rollout_steps=4 num_uavs=2 map=8 iterations=1 hidden=8 depth=1 evaluate_envs=2 seed=3 "
    "--checkpoint uav.h5 -q".split() + REF)
for form in ("table", "csv"):
    texts += run(["eval", "uav", "--checkpoint", "uav.h5", "--episodes", "3", "--format", form, *REF])
# Rates are of this machine; rounding decides what is learned, whole episodes and last digits.
texts = re.sub(r"(?m)^((?:learned|untrained|raw pixels)[ ,]+\d+[ ,]+\d+[ ,]+\d+)[ ,]+.*", r"\1 ...", texts)
texts = re.sub(r"(?m)^((?:the policy|random actions)[ ,]+3)[ ,]+.*", r"\1 ...", texts)
texts = re.sub(r"(?m)^( +\d+ +[\d.]+(?: +[\d.]+%)?) +\d+ |^(\d+,[\d.]+,[\d.]*),[\d.]+,", lambda m: (m[1] or m[2]) + " a rate ", texts)
same("networks.txt", re.sub(r"-?\d+\.\d{5,}(?:e-\d+)?", lambda m: f"{float(m[0]):.3f}", predicted + texts))

# ---- an environment of one's own that says how it is drawn ----

with open(os.path.join(source, "shaders", "env", "README.md"), encoding="utf-8") as f:
    slider = f.read().split("```c\n")[1].split("```")[0]
with open("slider.k", "w") as f:
    f.write(re.sub(r"(#define ENV_DT.*\n)", r"\1#define ENV_DRAW(S, LINE, CIRCLE, POINT) LINE(-1.0f, 0.0f, 1.0f, 0.0f, 0.02f) "
                   r"CIRCLE(S.x, 0.1f, 0.1f) POINT(S.x, 0.0f)\n", slider))
run("train es --env ./slider.k --num-envs 2 --num-dirs 2 --episode-length 9 --iterations 1 --seed 1 --checkpoint slider.h5 -q".split() + REF)
same("slider.txt", run(["play", "./slider.k", "--checkpoint", "slider.h5", "--steps", "5", *REF]).replace("><", ">\n<"))

# ---- one device, and one that is not here ----

texts = ""
for words in ("--memory 24GiB", "--memory 24GiB --format csv", "--backend opencl --memory 8GiB -v", "--format jsonl"):
    lines = run(["profile", "--as", "Made-up 9000", *words.split()]).split("\n")
    texts += "\n".join(line for i, line in enumerate(lines) if i < 3 or re.search(r"^!|gemm\.tiled\.|gemm\.plain|train\.num", line)) + "\n"
for form in ("table", "csv"):
    texts += run(["devices", "--backend", "ref", "--format", form])
texts += run(["devices", "--backend", "ref", "-v"])
# Lines of shipped profiles, the memory of this machine, and whether it has other devices.
texts = re.sub(r"\bgpu:\d+", "gpu:...", re.sub(r"[\d.]+ [MGT]iB|,\d{7,},\d{7,},\d{7,},", "memory", texts))
texts = re.sub(r"(?m)^(ref:0,)\d|^\*|^( +default +)\w+", r"\1\2", texts)
same("devices.txt", re.sub(r'"date": ?"[^"]*"|"gpurt": ?"[^"]*"', '""', re.sub(r" +", " ", texts)))
end()
