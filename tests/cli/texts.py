#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What commands print of made-up files, letter by letter: every kind of row, chart and form of a report, and
the tables of networks, sweeps and settings. The texts are in tests/golden/texts; golden.py compares.

Usage: texts.py GPURT SOURCE_DIR [--write]
"""
import json
import os
import re

from golden import end, run, same


# ---- results: two machines, each kind of row twice at least ----


def results(name, device, backend, day, faster):
    """A file of each kind of rows; rates of every third row are `faster` times the usual."""
    about = {"name": device, "backend": backend, "driver_version": "7.1", "type": "gpu", "f16": True}
    lines, turn = [], [0]

    def head(schema, bench, **more):
        lines.append(dict(schema=schema, gpurt="0.1.0", command=["gpurt", "bench", bench, "--samples", "3"],
                          date=f"2026-01-{day:02}T00:00:00Z", device=about, **more))

    def row(rate, usual, **cells):
        turn[0] += 1
        share = (faster, 1, faster**0.5)[turn[0] % 3]
        lines.append({**cells, rate: usual * share, "spread": 0.01 * turn[0] % 0.07, "check": "ok"})

    head("gpurt.bench.train/1", "train", peak={"f32_gflop_per_s": 1000}, data={"features": 32})
    phases = dict(zip(("io_ms", "upload_ms", "input_ms", "forward_ms", "backward_ms", "optimizer_ms"), (1, 0.5, 0.25, 2, 4, 1.5)))
    for batch in (64, 512, 4096):
        for workers in (1, 4):
            row("samples_per_s", 900 * batch**0.5 * workers**0.25, depth=2, hidden=64, batch=batch, precision="f32",
                workers=workers, cache=True, pin_memory=1, memory_bytes=batch * 4096, **phases)
    head("gpurt.bench.mlp/1", "mlp")
    for batch in (256, 1024):
        for precision in ("f32", "f16"):
            row("msamples_per_s", batch / 512, depth=3, hidden=16, batch=batch, precision=precision, **phases)
    head("gpurt.bench.images/1", "images")
    for batch in (32, 128):
        row("images_per_s", 6400 + batch, model="resnet18", resolution=32, batch=batch, precision="f32", **phases)
    head("gpurt.bench/1", "gemm", peaks={"f32_gflop_per_s": 2000, "gb_per_s": 100})
    for shape, rate in (("8x8x8", 5), ("64x64x64", 300), ("512x512x512", 1500)):
        row("gflop_per_s", rate, kind="gemm", shape=shape, batch=1, precision="f32", trans="nn", ms=1.5)
    row("gflop_per_s", 250, kind="gemm", shape="64x64x64", batch=8, precision="f16", trans="tn", ms=2.5)
    row("gflop_per_s", 700, kind="conv", images="8x16x16x3x8", window="3x3/1+1", precision="f32", test="forward")
    row("gflop_per_s", 500, kind="conv", images="8x16x16x3x8", window="3x3/1+1", precision="f32", test="weight")
    for envs in (64, 1024, 16384):
        row("steps_per_s", 1e4 * envs**0.5, kind="rollout", test="cartpole", policy="linear", num_envs=envs, num_dirs=8,
            dir_chunk=4)
    row("gb_per_s", 80, kind="memory", test="copy", size=1 << 20)
    row("gb_per_s", 95.5, kind="memory", test="fill", size=3 << 28)
    for dispatches in (1, 64):
        row("us", 5 + dispatches / 64, kind="launch", test="in order", dispatches=dispatches)
    head("gpurt.bench.ppo/1", "ppo")
    for envs in (16, 256):
        case = dict(env="uav", num_envs=envs, agents=4, rollout_steps=32, precision="f32", loop="device")
        row("agent_steps_per_s", 1000 * envs, kind="iteration", memory=envs << 20, **case)
        for phase, seconds in (("environment", 0.02), ("action selection", 0.01), ("advantages", 0.001), ("update", 0.05),
                               ("host", 0.0005)):
            row("seconds", seconds * envs, kind="phase", phase=phase, **case)
    head("gpurt.bench.scaling/1", "scaling")
    for ranks in (1, 2):
        row("samples_per_s", 5000 * ranks**0.5, kind="step", train="supervised", parameters=1000, batch=64, ranks=ranks)
    head("gpurt.bench.data/1", "data")
    for workers in (0, 1, 4):
        row("samples_per_s", 3e5 * (1 + workers), batch=256, workers=workers, cache="no", order="shuffled", row_bytes=132,
            compressed=0)
    # A check that failed counts nowhere, one that was not made is said.
    lines.append(dict(kind="gemm", shape="9x9x9", batch=1, precision="f32", trans="nn", gflop_per_s=1e9, check="FAILED"))
    lines[-1:] = [dict(schema="gpurt.bench/1", gpurt="0.1.0", command=["gpurt", "bench", "gemm"], partial=True,
                       date=f"2026-01-{day:02}T01:00:00Z", device=about), lines[-1]]
    with open(name, "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)


def page(path):
    """A page without its style and script, an element a line."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"<(style|script)\b.*?</\1>", r"<\1/>", text, flags=re.S)
    return re.sub(r">\s*<", ">\n<", text)


results("a.jsonl", "Card A", "vulkan", 1, 1.5)
results("b.jsonl", "Card B", "opencl", 2, 0.75)
with open("learn.jsonl", "w") as f:
    for run_of, seed in (("Card A", 0), ("Card B", 1)):
        rows = [dict(event="start", kind="ppo", env="uav", seed=seed, device=run_of, api="vulkan", time=1767225600 + seed)]
        for step in range(1, 7):
            rows.append(dict(event="train", step=step, seconds=2 * step, loss=1 / step + seed))
            if step % 2 == 0:
                rows.append(dict(event="evaluate", step=step, seconds=2 * step, **{"return": -10.5 + step * (seed + 1)}))
                rows.append(dict(event="monitor", step=step, seconds=2 * step, utilisation=0.5 + step / 20, power=200 + step,
                                 epoch_energy=50 * step))
        f.writelines(json.dumps(row) + "\n" for row in rows)
with open("memory.json", "w") as f:
    blocks = (("weights", 4096, 0, None), ("batch", 2048, 1, 4), ("work", 8192, 2, 3), ("batch", 1024, 5, 9))
    json.dump(dict(schema="gpurt.memory/1", gpurt="0.1.0", device={"name": "Card A", "backend": "vulkan"}, seconds=10,
                   peak=14336, peak_at=2, allocations=[dict(label=label, kind="device", size=size, begin=begin, end=end,
                                                            tensors=["t"] * i)
                                                       for i, (label, size, begin, end) in enumerate(blocks)]), f)
with open("sweep.jsonl", "w") as f:
    f.write(json.dumps(dict(schema="gpurt.sweep/1", gpurt="0.1.0", sweep=dict(
        metric="val_loss", goal="minimize", parameters=[{"name": "lr", "log": True}, {"name": "depth"}, {"name": "optimizer"}]))) + "\n")
    for i, (state, value) in enumerate((("done", 0.5), ("done", 0.25), ("failed", None), ("stopped", 0.75), ("done", 0.3))):
        f.write(json.dumps(dict(trial=i + 1, state=state, value=value, lr=10.0 ** -(i + 1), depth=1 + i % 3,
                                optimizer=("adam", "sgd")[i % 2])) + "\n")

with open("part.jsonl", "w") as f:  # stopped: what says so stands behind the rows
    f.write(json.dumps(dict(schema="gpurt.bench/1", gpurt="0.1.0", command=["gpurt", "bench", "gemm"], date="2026-01-05T00:00:00Z",
                            device={"name": "Card C", "backend": "vulkan"})) + "\n")
    f.write(json.dumps(dict(kind="gemm", shape="8x8x8", batch=1, precision="f32", trans="nn", gflop_per_s=7, check="ok")) + "\n")
    f.write('{"partial": true}\n')
everything = ["a.jsonl", "b.jsonl", "learn.jsonl", "memory.json", "sweep.jsonl"]
run(["report", "part.jsonl", "--md", "part.md"])
with open("part.md", encoding="utf-8") as f:
    part = f.read()
same("report.txt", run(["report", *everything]) + run(["report", "a.jsonl"]) + run(["report", "sweep.jsonl"]) + part)
run(["report", *everything, "--html", "page.html", "--md", "page.md", "--csv", "page.csv", "--title", "Made up"])
same("report-html.txt", page("page.html"))
for form in ("md", "csv"):
    with open("page." + form, encoding="utf-8") as f:
        same(f"report-{form}.txt", f.read())
# B's results as the baseline of a later run on the same card: some better, some worse.
results("later.jsonl", "Card B", "opencl", 3, 0.9)
texts = run(["compare", "b.jsonl", "later.jsonl"]) + run(["compare", "later.jsonl", "b.jsonl", "--fail-under", "0.9"], 1)
for form in ("csv", "md", "jsonl"):
    texts += run(["compare", "b.jsonl", "later.jsonl", "--format", form])
same("compare.txt", re.sub(r'"date":"[^"]*"|"gpurt":"[^"]*"', '""', texts))
run(["report", "later.jsonl", "--baseline", "b.jsonl", "--fail-under", "0.9", "--md", "base.md", "--html", "base.html"], 1)
with open("base.md", encoding="utf-8") as f:
    same("baseline.txt", f.read())


# ---- networks, data, sweeps: what is there before anything is trained ----

run("data make regression --samples 96 --features 5 --seed 3 -o r.h5 -q".split())
run("data make classification --samples 60 --features 4 --classes 3 --seed 4 -o c.h5 -q".split())
run("data make points --samples 8 --features 3 --points 4 --chunk 4 --deflate 6 -o p.h5 -q".split())
run("data make shapes --samples 12 --pixels 16 --classes 4 -o s.h5 -q".split())
with open("t.csv", "w") as f:
    f.write("wind,gust,kind\n" + "".join(f"{i / 8},{i * i % 7 - 3},{'abc'[i % 3]}\n" for i in range(12)))
texts = ""
for name in ("r.h5", "c.h5", "p.h5", "s.h5", "t.csv"):
    texts += run(["data", "info", name])
texts += run(["data", "info", "t.csv", "--format", "json"]) + run("data info c.h5 --format csv".split())
texts += run("data order --data r.h5 batch_size=7 validation_split=0.25 seed=2 --format csv --device ref:0".split())
texts += run("data order --data r.h5 batch_size=7 validation_split=0.25 seed=2 --part validation --device ref:0".split())
texts += run("data order --data c.h5 batch_size=16 accumulate=2 --epoch 3 --format md --device ref:0".split())
# What zlib makes of numbers differs from one library to another.
texts = re.sub(r"(?m)^(p\.h5: )[\d.]+ \w+|(deflate \d +[\d.]+ \w+) +[\d.]+ \w+$",
               lambda m: f"{m[1]}some bytes" if m[1] else f"{m[2]} some", texts)
same("data.txt", re.sub(r'"date": ?"[^"]*"|"gpurt": ?"[^"]*"', '""', texts))

networks = {
    "mlp": "--data r.h5 hidden=24,12 activation=tanh",
    "norm": "--data c.h5 hidden=8 depth=3 layer_norm=true residual=true",
    "points": "--data p.h5 model=points hidden=8 depth=1 head_depth=1",
}
texts = "".join(run(["model", *words.split(), "--device", "ref:0", "--mem-limit", "64MiB"]) for words in networks.values())
with open("images.yaml", "w") as f:
    f.write("""data: s.h5
batch_size: 4
model:
  - conv: {outputs: 8, bias: false}
  - norm: batch
  - relu
  - max_pool: 2
  - residual: {of: [{conv: 8}, {norm: batch}], activation: relu}
  - branches: [[{pool: mean}, {linear: 6}], [{pool: max}, {linear: 6}]]
  - geglu
  - linear: out
""")
for form in ("table", "csv", "md"):
    texts += run(["model", "images.yaml", "--device", "ref:0", "--mem-limit", "64MiB", "--batch", "32", "--format", form])
texts += run("model images.yaml --device ref:0 --mem-limit 1MiB".split())
# What activations take, and the largest batch, are the memory plan's, which may get better.
texts = re.sub(r"(?m) +[\d.]+ [KM]?i?B( \|)?$", r" bytes\1", texts)
texts = re.sub(r"(?m)^(.*,\d+,\d+),\d+,(\d)$", r"\1,bytes,\2", texts)
same("model.txt", re.sub(r"(largest batch on ref:0: )\d(\d+)", lambda m: f"{m[1]}{len(m[2]) + 1} digits", texts))

with open("grid.yaml", "w") as f:
    f.write("""method: grid
metric: {name: val_loss, goal: minimize}
kind: supervised
parameters:
  lr: {values: [0.1, 0.01]}
  hidden: {values: [8, 16, 32]}
  data: {value: r.h5}
""")
with open("random.yaml", "w") as f:
    f.write("""method: random
run_cap: 6
metric: {name: val_loss, goal: minimize}
kind: supervised
parameters:
  lr: {distribution: log_uniform_values, min: 0.0001, max: 0.1}
  depth: {distribution: int_uniform, min: 1, max: 4}
  weight_decay: {distribution: q_uniform, min: 0, max: 0.5, q: 0.1}
  ema: {distribution: normal, mu: 0.5, sigma: 0.01}
  activation: {values: [relu, tanh], probabilities: [0.75, 0.25]}
  data: {value: r.h5}
""")
texts = ""
for name in ("grid.yaml", "random.yaml"):
    for form in ("table", "csv"):
        texts += run(["sweep", name, "--dry-run", "--format", form])
same("sweep.txt", texts)

# ---- trainings: what they print and log, times and rates aside ----

TIMED = ("time", "seconds", "steps_per_s", "samples_per_s", "images_per_s", "gpu", "part_seconds", "share", "data_share", "exposed",
         "memory", "kl", "policy_loss")


def trained(words):
    """Its rows without what the clock says, and its log."""
    text = run([*words.split(), "--device", "ref:0", "--log", "train.log"])
    text = re.sub(r"-?\d\.?\d*e-0[4-9]", "tiny", text)  # what is left of numbers that nearly cancel
    kept = []
    for line in text.split("\n"):
        cells = line.split()
        if re.match(r"! epoch \d+/\d+, step", line):  # rates and times aside
            kept.append(re.sub(r"[\d:]+( samples/s|% compute|%| left)", r"#\1", line))
            continue
        if re.match(r"! (device|profile|memory|start|cache|epoch|loading) |phase |"
                    r"(environment|action selection|advantages|update|host|whole)  ", line):
            continue
        if cells and cells[-1] == "s":  # the head of a table: its last columns are times, rates and bytes
            kept.append(" ".join(cells[:-4]))
        elif len(cells) > 5 and cells[0].isdigit():
            kept.append(" ".join(cells[:-4] if cells[-2] not in ("KiB", "MiB", "B") else cells[:-5]))
        else:
            kept.append(line)
    with open("train.log") as f:
        rows = [json.loads(line) for line in f]
    os.remove("train.log")
    for row in rows:
        if row["event"] not in ("timing", "monitor"):
            kept.append(json.dumps({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items() if k not in TIMED}))
    return "\n".join(kept) + "\n"


texts = trained("train es --env cartpole --policy mlp16 --num-envs 4 --num-dirs 4 --episode-length 30 --iterations 3 --seed 5 "
                "--checkpoint pole.h5")
texts += trained("train es --env pendulum --num-envs 2 --num-dirs 3 --episode-length 9 --iterations 2 --seed 1 --checkpoint rod.h5")
texts += trained("train es --env standing --num-envs 2 --num-dirs 2 --episode-length 8 --iterations 1 --seed 1 --checkpoint stand.h5")
texts += trained("train ppo env=cartpole num_envs=4 rollout_steps=8 iterations=2 hidden=8 depth=1 evaluate_envs=2 seed=3 "
                 "--checkpoint ppo.h5")
texts += trained("train uav num_envs=2 rollout_steps=4 num_uavs=2 map=8 iterations=1 hidden=8 depth=1 evaluate_envs=2 seed=3 "
                 "--checkpoint uav.h5")
texts += trained("train supervised --data r.h5 hidden=8 depth=1 batch_size=20 epochs=3 validation_split=0.25 seed=9 "
                 "checkpoint_dir=r")
texts += trained("train supervised --data c.h5 hidden=8 depth=1 batch_size=16 epochs=2 validation_split=0.2 seed=9 "
                 "label_smoothing=0.1 schedule=cosine warmup_steps=2 checkpoint_dir=c")
texts += trained("train supervised --config images.yaml epochs=1 seed=2 checkpoint_dir=s")
# Rounding in f16 is not the same everywhere: of that run its lines, without the losses.
texts += "".join(re.sub(r"loss [\d.]+", "loss #", line) + "\n" for line in trained(
    "train supervised --data r.h5 hidden=8 depth=1 batch_size=8 epochs=2 log_interval=3 precision=f16 validation_split=0.25 seed=9 "
    "checkpoint_dir=h").split("\n") if line.startswith(("! epoch", "! precision")))
same("train.txt", texts)

# ---- policies that are played, networks that are tried ----

texts = ""
for env, name, steps in (("cartpole", "pole", 6), ("pendulum", "rod", 6), ("standing", "stand", 4), ("uav", "uav", 5),
                         ("cartpole", "ppo", 5)):
    words = ["play", env, "--checkpoint", name + ".h5", "--steps", str(steps), "--device", "ref:0"]
    texts += run(words).replace("><", ">\n<")
    texts += run([*words, "--format", "json"]).replace("{", "{\n") if env != "uav" else ""
same("play.txt", re.sub(r'"gpurt": ?"[^"]*"', '""', texts))
texts = ""
for name, data in (("r", "r.h5"), ("c", "c.h5")):
    for form in ("table", "csv", "json"):
        texts += run(["eval", "--data", data, "--checkpoint", name, "--device", "ref:0", "--format", form])
texts = re.sub(r'"device": \{.*?\n  \}', '"device"', texts, flags=re.S)
texts = re.sub(r"(?m)^( *\d+ +[\d.]+(?: +[\d.]+%)?|\d+,[\d.]+,[\d.]*|.*\"samples_per_s\":)([ ,]) *[\d.]+", r"\1\2a rate", texts)
same("eval.txt", re.sub(r'"date": ?"[^"]*"|"gpurt": ?"[^"]*"', '""', texts))

# ---- benches: which rows there are, and what they say beside times ----

CLOCKED = ("samples", "slowest_stage", "steps_per_run", "memory", "memory_bytes", "working_set", "gpu", "spread", "ms", "us")
BENCHES = (
    "gemm --shape 8,16x4x8 --batch-count 2 --trans nn,tn --precision f32,f16 --samples 1",
    "conv --shape 1x4x4x3x4,1x6x6x3x4 --precision f32 --samples 1",
    "conv --shape 2x9x8x3x4 --kernel 5 --stride 2 --padding 1 --pass weight,forward --samples 1",
    "rollout --env cartpole --num-envs 2,4 --num-dirs 2 --dir-chunk 1,2 --episode-length 5 --samples 1",
    "mlp --model depth=1,hidden=4 --batch-sizes 32,64 --precision f32,f16",
    "launch --samples 1",
    "ppo --env cartpole --num-envs 2 --rollout-steps 4 hidden=4",
    "data --batch-sizes 32 --num-workers 0,1",
    "data --data r.h5 --batch-sizes 8 --num-workers 1 --order sequential --cache ram",
    "memory --size 63 --samples 1",
    "images --model wideresnet-10-1 --resolution 4 --batch-sizes 2",
    "rollout --env uav --num-envs 2 --policy random --set map=12,num_uavs=3,window=5 --samples 1",
    "train --data r.h5 --model depth=1,hidden=4 --batch-sizes 16,32 --num-workers 0 --precision f32 --steps 2",
)
texts = ""
for words in BENCHES:
    line = ["bench", *words.split(), "--time", "0.001", "-q", *([] if words.startswith("data") else ["--device", "ref:0"])]
    # A peak that was measured while other work went on can lie below a rate, which then has no
    # share of it.
    for _ in range(5):
        lines = run([*line, "--format", "jsonl"]).split("\n")
        rows = [json.loads(text) for text in lines[2:-1]]
        if all("of_peak" in row for row in rows if row.get("kind") in ("gemm", "conv")):
            break
    texts += lines[0] + "\n"
    for row in rows:
        # Fractions are times, rates and errors: their names are looked at. A summary is advice by
        # times.
        texts += json.dumps({k: "#" if isinstance(v, float) or k in CLOCKED else v for k, v in row.items() if k != "summary"}) + "\n"
    # For people: headings, columns and remarks, whatever the numbers are.
    shown = run(line).split("\nHighest throughput")[0] + "\n"
    shown = re.sub(r"\d[\d.]*(?:e[-+]?\d+)?|\b[KMG]i?B\b|(?<= )[mun]?s\b", "#", shown)
    texts += re.sub(r"#(?: [#%])*", "#", re.sub(r"[ -]+", " ", re.sub(r"\b(read|inflate|decode|convert)\b", "#", shown)))
same("bench.txt", texts)

end()
