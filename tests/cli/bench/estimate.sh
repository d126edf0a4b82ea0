#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt estimate` as a person uses it: the cards that come with it, a made-up one whose figures are
# known, names that are misspelt, files that are broken, and rows that `gpurt report` reads.
# Usage: estimate.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: estimate.sh GPURT SOURCE_DIR}")
source=$(realpath "${2:?usage: estimate.sh GPURT SOURCE_DIR}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1

expect 0 estimate --list
for card in a100 rtx-3060-laptop rtx-3060 rtx-4090 rx-7900-xtx arc-a770; do said "^$card "; done
[ "$(wc -L <out)" -le 80 ] || wrong "--list: a line of more than 80 columns"
expect 0 estimate --list --format json
/usr/bin/python3 - <<'EOF' || wrong "--list --format json is not cards.json"
import json
shown = {c["id"]: c for c in json.load(open("out"))["rows"]}
assert all(c["source"] and "//" not in c["source"] for c in shown.values())
EOF

# Many GPUs: every figure by the formulas of docs/estimates.md, written once more, from the file of
# links; compute is what the suites say of one card.
expect 0 estimate --scaling --card h200 --api vulkan
[ "$(wc -L <out)" -le 100 ] || wrong "--scaling: a line of more than 100 columns"
said '^data parallel over pcie4-100gbe: NVIDIA H200 by vulkan$'
told '^pcie4-100gbe: 8 GPUs by PCIe 4.0'
expect 0 estimate --scaling --card h200 --api vulkan --overlap 0.8 --gpus "1,8-1024*2" --format json -o scaling.json
expect 0 estimate --card h200 --api vulkan --suite images,rollout,ppo --format jsonl -q
/usr/bin/python3 - "$source" <<'EOF' || wrong "--scaling: another figure than its formula"
import json, math, sys
links = {l["id"]: l for l in json.load(open(sys.argv[1] + "/apps/estimate/links.json"))["links"]}
ones = [json.loads(line) for line in open("out")]
def one(rate, **cells):
    return next(r[rate] for r in ones if all(r.get(k) == v for k, v in cells.items()) and rate in r)
compute = {"data parallel": 1024 / one("images_per_s", model="resnet18", resolution=32, batch=1024),
           "es": 2 * 64 * 1024 * 1000 / one("steps_per_s", policy="linear", num_envs=1024, num_dirs=64)}
report = json.load(open("scaling.json"))
assert report["nature"] == "predicted" and report["schema"] == "gpurt.estimate.scaling/1"
seen = set()
for row in report["rows"]:
    link, n, kind = links[row["link"]], row["gpus"], row["workload"]
    seen.add((row["link"], n, kind))
    if kind in compute:
        assert abs(row["compute_ms"] / 1e3 / compute[kind] - 1) < 1e-3, (row, compute)
    g = min(n, link["gpus"])
    memory, network = 0.5e9 * link["memory_gb_per_s"], 0.8e9 * link["network_gb_per_s"]
    latency = 1e-6 * (link["latency_us"] if n > g else 1)
    size = {"data parallel": 4 * 11173962, "ppo": 4 * 37130, "es": 4 * 2 * 64 * (5 + 2 * 30)}[kind]
    if n == 1:
        parts = [0, 0, 0, 0]
    elif kind == "es":  # each machine's GPUs get what the others have
        parts = [0, 0, math.log2(n) * latency + 2 * g * n * size / memory + g * (n - g) * size / network, 0]
    else:
        copy = size / (0.82e9 * link["copy_gb_per_s"])
        # PPO weighs what it has read back, and copies the sum: two reads, two writes.
        passes, pieces = (4, 1) if kind == "ppo" else (0, math.ceil(size / 2**22) + 1)
        if n == g:  # numbers to the box, boxes to the sum; the slice of one of many back to its box
            passes += 2 + 2 + 1 + (1 / n if n > 2 else 0)
            wire = (2 if n > 2 else 1) * max(math.ceil(size / 2**20), pieces) * latency
        else:
            passes += 3 * (n - 1) / n + 2 / n + 2
            wire = 4 * g * (g - 1) / n * size / memory + 2 * g * (n - g) / n * size / network
            wire += pieces * (n - 1 + math.log2(n)) * latency
        parts = [copy, g * size * passes / memory, wire, copy]
    parts = [p * (16 if kind == "ppo" else 1) for p in parts]
    # Votes: one a step, of PPO one a minibatch and one more; its sums of rows and losses.
    parts[2] += (19 if kind == "ppo" else 1) * math.log2(n) * latency
    if kind == "ppo" and n > 1:  # the states of all copies, every tenth time
        states = 4096 * 4 * (2 * 32 + 4 * 10 + 3 + 4 + 6)  # map, UAVs, counts; book, totals
        parts[0] += states / (0.82e9 * link["copy_gb_per_s"]) / 10
        parts[2] += (math.log2(n) * latency + 2 * g * n * states / memory + g * (n - g) * states / network) / 10
    parts = [1e3 * p for p in parts]
    hidden = min(0.8 * sum(parts), row["compute_ms"] * 2 / 3) if kind == "data parallel" else 0
    step = row["compute_ms"] + sum(parts) - hidden
    want = dict(zip(("readback_ms", "host_ms", "network_ms", "upload_ms"), parts), exchange_ms=sum(parts),
                hidden_ms=hidden, step_ms=step, efficiency=row["compute_ms"] / step,
                speed_up=n * row["compute_ms"] / step, machines=math.ceil(n / link["gpus"]))
    for key, value in want.items():
        assert abs(row[key] - value) <= 1e-6 * max(value, 1e-9), (key, row, value)
assert len(seen) == 3 * len(links) * 9, len(seen)
# The table of the docs and the times of a step that it says are those of this program.
told, steps = 0, {r["workload"]: r["compute_ms"] for r in report["rows"]}
doc = " ".join(open(sys.argv[1] + "/docs/estimates.md").read().split())
want = "whose steps take %.2f ms of data parallel training, %.2f of evolution strategies and %.2f of PPO"
want %= tuple(steps[k] for k in ("data parallel", "es", "ppo"))
assert want in doc, "docs/estimates.md lacks: " + want
for line in open(sys.argv[1] + "/docs/estimates.md"):
    cells = [c.strip() for c in line.split("|")]
    if len(cells) == 11 and "`" in cells[1] and cells[2].endswith("%"):
        kind, link = cells[1].replace("`", "").split(", ")
        for n, text in zip([8 * 2**i for i in range(8)], cells[2:10]):
            row = next(r for r in report["rows"] if (r["link"], r["gpus"], r["workload"]) == (link, n, kind.split(" with")[0]))
            step = steps[row["workload"]]
            hidden = min(0.8 * row["exchange_ms"], step * 2 / 3) if "with" in kind else 0
            share = 100 * step / (step + row["exchange_ms"] - hidden)
            assert abs(share - float(text[:-1])) < 0.6, (kind, link, n, share, text)
            told += 1
assert told == 16 * 8, told
EOF
printf '{"schema": "gpurt.links/1", "links": [{"id": "a", "name": "b", "source": "c", "gpus": 0, "copy_gb_per_s": 1, "memory_gb_per_s": 1, "network_gb_per_s": 1, "latency_us": 1}]}' >links.json
refuse 65 'out of bounds' estimate --scaling --links links.json
sed 's/"gpus": 0/"gpus": 1e300/' links.json >huge.json
refuse 65 'out of bounds' estimate --scaling --links huge.json
sed 's/"gpus": 0/"gpus": 6/' links.json >six.json
expect 0 estimate --scaling --links six.json --gpus 4-32*2 --format csv
for machines in 4,1 8,2 16,3 32,6; do said "^h200,ppo,a,$machines,"; done
refuse 64 'for --scaling' estimate --gpus 8
refuse 64 'for --scaling' estimate --link pcie4-100gbe
refuse 64 'for --scaling' estimate --overlap 0.5
expect 0 estimate --scaling --card all --gpus 8 --format csv
said '^h200,es,'
said '^a100,es,'
expect 0 estimate --scaling --gpus 8 --format csv
[ "$(tail -n +2 out | cut -d, -f1 | sort -u)" = h200 ] || wrong "--scaling: another card than the h200"
refuse 64 'no power of two' estimate --scaling --gpus 12
refuse 64 'pcie4-100gbe' estimate --scaling --link pcie4-100gb

# The help names every suite: what is said of the error begins with their names.
expect 0 estimate --card h200
suites=$(sed -n 's/^\([a-z0-9-]*\) by [a-z]*: error on .*/\1/p' err | sort -u)
[ "$(wc -w <<<"$suites")" -eq 8 ] || wrong "suites: $suites"
expect 0 estimate --help
said 'is an object of its own, one behind the other; jsonl has them by lines'
for suite in $suites; do said "--suite LIST .*[ ,]$suite,"; done

# The error and what was left out are said with every suite.
expect 0 estimate --card a100,rtx-3060-laptop --suite rollout,mlp,train --api vulkan
told '^rollout by vulkan: .* cases of one card, NVIDIA H200, each by the other .*; no card left out: typically x1\.'
told '^mlp by vulkan: .*at most x[0-9.]+ \('
told '^train by vulkan: .* 5 cases of one card'
[ "$(wc -L <out)" -le 80 ] || wrong "a line of more than 80 columns"
said '^NVIDIA A100-SXM4-80GB by vulkan: Rollouts, steps/s$'
said ' latency '
said ' compute '

# A card that is the H200 twice over, by all its numbers but the clock: rates double, latency stays.
/usr/bin/python3 - "$source" <<'EOF' || wrong "a card twice as good"
import json, sys
card = next(c for c in json.load(open(sys.argv[1] + "/apps/estimate/cards.json"))["cards"] if c["id"] == "h200")
card.update(id="twice", name="Twice", fp32_tflops=2 * card["fp32_tflops"], matrix_tflops=2 * card["matrix_tflops"],
            bandwidth_gb_per_s=2 * card["bandwidth_gb_per_s"])
json.dump({"schema": "gpurt.cards/1", "cards": [card]}, open("cards.json", "w"))
EOF
expect 0 estimate --cards cards.json --card h200,twice --suite rollout --api opencl --batch-sizes 128,65536 --format jsonl -q
[ ! -s err ] || wrong "-q, and yet something on stderr"
/usr/bin/python3 - <<'EOF' || wrong "rates of a card twice as good"
import json
rates, head = {}, None
for line in open("out"):
    row = json.loads(line)
    if "schema" in row:
        head = row
        assert row["nature"] == "predicted" and row["fit"]["left_out"] == "each case", row
        continue
    assert row["low"] <= row["steps_per_s"] <= row["high"], row
    rates[row["card"], row["policy"], row["num_envs"], row["dir_chunk"]] = row["steps_per_s"]
for policy in ("linear", "mlp256"):
    latency = rates["twice", policy, 128, 8] / rates["h200", policy, 128, 8]
    through = rates["twice", policy, 65536, 64] / rates["h200", policy, 65536, 64]
    assert abs(latency - 1) < 1e-4, latency
    assert abs(through - 2) < 1e-4, through
EOF

# A report reads them, as predictions.
expect 0 estimate --card a100,arc-a770 --format json -o all.json -q
expect 0 report all.json --csv report.csv
/usr/bin/python3 - <<'EOF' || wrong "predictions in a report"
import csv
rows = list(csv.DictReader(open("report.csv", encoding="utf-8", newline="")))
assert rows and {r["kind"] for r in rows} == {"predicted"}, {r["kind"] for r in rows}
assert {r["bench"] for r in rows} == {"rollout", "ppo", "mlp", "train", "gemm", "images"}
assert {r["device"] for r in rows} == {"NVIDIA A100-SXM4-80GB", "Intel Arc A770 Graphics"}
assert all(float(r["spread"]) > 0 for r in rows)
EOF

# Results of another card move the estimate, and it becomes the one that is left out.
expect 0 estimate --card a100 --suite gemm --api vulkan --format json -q
/usr/bin/python3 - <<'EOF'
import json
head = json.load(open("out"))
rows = [dict(kind="gemm", shape=r["shape"], batch=1, precision="f16", trans="nn", gflop_per_s=r["gflop_per_s"] / 3, check="ok")
        for r in head["rows"]]
json.dump({"schema": "gpurt.bench/1", "device": {"name": "NVIDIA A100-SXM4-80GB (a driver's word)", "backend": "vulkan"}, "rows": rows},
          open("mine.json", "w"))
EOF
expect 0 estimate --card a100 --suite gemm --api vulkan --measured mine.json
told '^gemm by vulkan: .* of 2 cards, each card by the others: typically x[2-9]'
sed -i 's/A100-SXM4/B100-SXM9/' mine.json
expect 0 estimate --card a100 --suite gemm --api vulkan --measured mine.json
told "results of 'NVIDIA B100-SXM9-80GB .*' are left out"

refuse 64 "did you mean 'a100'?" estimate --card a10O
refuse 64 "did you mean 'rollout'?" estimate --suite rolout
refuse 64 "no suite 'dance'; see \`gpurt estimate --help\`" estimate --suite dance
refuse 64 "no link 'string'; see \`gpurt estimate --scaling\`" estimate --scaling --link string
refuse 64 "no API 'cuda'" estimate --api cuda
refuse 65 'no matrix units' estimate --card rx-6800 --suite gemm
refuse 65 'no matrix units' estimate --card a100 --suite gemm-f32
refuse 65 'no matrix units' estimate --card a100 --suite conv
expect 0 estimate --card h200 --suite conv,train,ppo
[ "$(wc -L <out)" -le 80 ] || wrong "conv, train, ppo: a line of more than 80 columns"
said '^128x8x8x256x256 3x3/1\+1 weight '
refuse 66 'nowhere.json' estimate --cards nowhere.json
refuse 66 'nowhere.json' estimate --measured nowhere.json
printf '{"schema":"gpurt.cards/1","cards":[{"id":"<script>"}]}' >bad.json
refuse 65 "'bad.json': card 1: " estimate --cards bad.json
head -c 2000000 /dev/zero >big.json
expect 65 estimate --cards big.json
refuse 65 "'all.json'" estimate --cards all.json
printf '{"schema":"gpurt.bench/1"' >cut.json
refuse 65 "'cut.json'" estimate --measured cut.json
refuse 64 'cards.json' estimate --cards cards.json -o cards.json
exit "$failed"
