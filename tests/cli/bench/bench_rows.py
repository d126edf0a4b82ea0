#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of `gpurt bench` agree with themselves: rates are work over time, with the work counted here.

Usage: bench_rows.py GPURT
"""
import json
import os
import subprocess
import sys
import tempfile

gpurt = sys.argv[1]
wrong = 0


def bench(words, device=("--device", "ref:0")):
    line = [gpurt, "bench", *words.split(), *device, "--format", "jsonl"]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(line)}: exit code {done.returncode}: {done.stderr}")
    rows = [json.loads(text) for text in done.stdout.splitlines()[1:]]
    return [row for row in rows if "check" in row or "status" in row or "phase" in row]


def same(name, got, want):
    """Figures have eight digits."""
    global wrong
    if abs(got - want) > 1e-6 * abs(want) if isinstance(want, float) else got != want:
        print(f"bench_rows.py: {name}: {got}, not {want}", file=sys.stderr)
        wrong += 1


def count(name, rows, want):
    same(f"rows of {name}", len(rows), want)
    for row in rows:
        if "check" in row and row["check"] != "ok" or "samples" in row and row["samples"] < 3:
            same(f"{name}: check and samples", row, {})


quick = " --time 0.005 --samples 3"
rows = bench("gemm --shape 33x17x65,8x8x16 --batch-count 1,3 --trans nn,tn" + quick)
count("gemm", rows, 8)
for row in rows:
    m, n, k = map(int, row["shape"].split("x"))
    same("GFLOP/s of a product", row["gflop_per_s"], 2.0 * m * n * k * row["batch"] / row["ms"] * 1e-6)
same("shapes, batches and transpositions", len({(r["shape"], r["batch"], r["trans"]) for r in rows}), 8)

# Two images of 5x6 with a border of 1, every other pixel: three rows and three columns of windows.
rows = bench("conv --shape 2x5x6x3x4 --stride 2" + quick)
count("conv", rows, 3)
same("passes", [row["test"] for row in rows], ["forward", "data", "weight"])
for row in rows:
    same("window", row["window"], "3x3/2+1")
    same("GFLOP/s of a convolution", row["gflop_per_s"], 2.0 * 2 * 3 * 3 * 3 * 3 * 3 * 4 / row["ms"] * 1e-6)

rows = bench("rollout --env cartpole --episode-length 5 --num-envs 4 --num-dirs 3 --dir-chunk 1,3" + quick)
count("rollout", rows, 2)
for row in rows:
    same("environments of both signs", row["total_batch"], 2 * 3 * 4)
    same("steps/s", row["steps_per_s"], 24 * 5 / row["ms"] * 1e3)
    same("a step of cart-pole is one of its physics", row["substeps_per_s"], row["steps_per_s"])
rows = bench("rollout --env uav --num-envs 2 --policy random --set map=12,num_uavs=3,window=5" + quick)
count("rollout of a team", rows, 1)
same("agents", rows[0]["total_batch"], 6)
same("steps/s of a team", rows[0]["steps_per_s"], 6 / rows[0]["ms"] * 1e3)

# 32 numbers in, 1 out. Backward has no gradient of what comes in.
rows = bench("mlp --model depth=2,hidden=8 --batch-sizes 16,40 --time 0.005")
count("mlp", rows, 2)
for row in rows:
    weights = 32 * 8 + 8 * 8 + 8 * 1
    flops = 2.0 * row["batch"] * (3 * weights - 32 * 8)
    same("Msamples/s", row["msamples_per_s"], row["batch"] / row["ms"] * 1e-3)
    same("TFLOP/s", row["tflop_per_s"], flops / row["ms"] * 1e-9)

rows = bench("train --model depth=1,hidden=4 --batch-sizes 16,64 --num-workers 0 --precision f32 --time 0.01 --steps 2")
count("train", rows, 2)
for row in rows:
    parts = row["input_ms"] + row["forward_ms"] + row["backward_ms"] + row["optimizer_ms"]
    same("samples/s", row["samples_per_s"], row["batch"] / row["total_ms"] * 1e3)
    same("share of the device", row["device_busy"], min(1.0, parts / row["total_ms"]))

# Rows of 6 numbers of 4 bytes, one of them a target; memcpy is of the same numbers.
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "d.h5")
    subprocess.run([gpurt, "data", "make", "regression", "--samples", "3000", "--features", "5", "-o", file], check=True, capture_output=True)
    rows = bench(f"data --data {file} --batch-sizes 64 --num-workers 0,1 --time 0.01", ())
same("rows of data", len(rows), 2)
for row in rows:
    same("MB/s", row["mb_per_s"], row["samples_per_s"] * 24e-6)
    same("of raw", row["of_raw"], row["mb_per_s"] / row["raw_mb_per_s"])
    same("of memcpy", row["of_memcpy"], row["samples_per_s"] * 24e-6 / row["memcpy_mb_per_s"])

rows = bench("ppo --env cartpole --num-envs 2 --rollout-steps 8 hidden=4 --time 0.01")
whole = [row for row in rows if row["kind"] == "iteration"]
same("loops", [row["loop"] for row in whole], ["host", "device"])
for row in whole:
    same("env steps/s", row["env_steps_per_s"], row["num_envs"] * 8 / row["seconds"])
    same("agent steps/s", row["agent_steps_per_s"] <= row["env_steps_per_s"] * row["agents"] * 1.0001, True)
same("speedup", whole[1]["speedup"], whole[1]["agent_steps_per_s"] / whole[0]["agent_steps_per_s"])
for row in rows:
    if row["kind"] == "phase":
        of = next(one for one in whole if one["loop"] == row["loop"])
        same(f"share of {row['phase']}", row["share"], row["seconds"] / of["seconds"])

sys.exit(1 if wrong else 0)
