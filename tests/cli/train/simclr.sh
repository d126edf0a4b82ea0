#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Contrastive training from end to end on one device: views of images without classes, stopped and
# resumed to the same bits; nearest neighbours of what was learnt, which NumPy finds too, a linear
# layer on it, and a classifier that begins with it. On PoCL what is learnt is better than the
# pixels and the untrained network; elsewhere the network is smaller and the run short. Usage:
# tests/cli/train/simclr.sh GPURT DEVICE

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "${1:?usage: simclr.sh GPURT DEVICE}")
device=${2:?usage: simclr.sh GPURT DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$here/../../harness/command.sh"
cd "$tmp" || exit 1
export GPURT_DEVICE=$device
python=/usr/bin/python3 # Debian's, which has h5py
long=0 images=120 widths=(4 8 8) epochs=2
if [ "${device%%:*}" = opencl ]; then long=1 images=500 widths=(8 16 32) epochs=24; fi

# Six shapes at any place in any two colours: the nearest image says little of the shape, and so do
# convolutions that have learnt nothing.
"$python" - "$images" <<'PY' || exit 1
import h5py, sys, numpy as np
draw, side = np.random.default_rng(1), 16
row, col = np.mgrid[0:side, 0:side]
def image(kind):
    r = draw.uniform(3, 4)
    u, v = ((g - draw.uniform(r, side - 1 - r)) / r for g in (col, row))
    a, b, m = abs(u), abs(v), np.maximum(abs(u), abs(v))
    on = [np.hypot(u, v) <= 1, (m <= 1) & (np.minimum(a, b) <= .3), (m <= 1) & (m >= .6), (m <= 1) & (abs(u - v) <= .45),
          (m <= 1) & (b <= .3), (m <= 1) & (a <= .3)][kind]
    back, front = draw.uniform(0, 90, 3), draw.uniform(120, 255, 3)
    return np.clip(back + (front - back) * on[..., None] + draw.normal(0, 12, (side, side, 3)), 0, 255).astype("u1")
def part(n):
    y = draw.integers(0, 6, n)
    return np.stack([image(k) for k in y]), y.astype("i4")
n = int(sys.argv[1])
with h5py.File("shapes.h5", "w") as f:
    f["x"], f["y"] = part(n)
    f["test/x"], f["test/y"] = part(n // 2)
with h5py.File("alone.h5", "w") as f:
    f["unlabelled/x"] = part(100)[0]
PY

cat >net.yaml <<END
batch_size: 100
learning_rate: 0.003
temperature: 0.2
projection: [32, 16]
transform: random_crop(padding=4) | color_jitter(0.4, 0.4, 0.8, 0.5) | random_grayscale(p=0.3) | normalize(mean=0.3, std=0.2)
model:
  - conv: {outputs: ${widths[0]}, bias: false}
  - norm: batch
  - relu
  - max_pool: 2
  - conv: {outputs: ${widths[1]}, bias: false}
  - norm: batch
  - relu
  - max_pool: 2
  - conv: {outputs: ${widths[2]}, bias: false}
  - norm: batch
  - relu
  - pool: mean
END
train=(train simclr --config net.yaml)
newest() { printf '%s/%s' "$1" "$(ls "$1" | grep step- | sort | tail -n 1)"; }
# numbers FILE: of the parameters of a checkpoint.
numbers() {
    expect 0 convert "$1" numbers.safetensors
    tail -c 4000 numbers.safetensors | sha256sum
}

expect 0 "${train[@]}" --data shapes.h5 --epochs "$epochs" checkpoint_dir=learnt knn_every=12 --log learnt.jsonl --format csv
told "views +2 a sample, each told apart from the 199 others of its batch"
told "loss nt_xent"
grep -q '"event":"start".*"kind":"simclr"' learnt.jsonl || wrong "the log has another kind"
grep -q '"event":"evaluate".*"knn":0\.' learnt.jsonl || wrong "no nearest neighbours in the log"
logs_agree learnt.jsonl
head -n 1 out | grep -q evaluate_knn || wrong "no nearest neighbours in the table"

# Steps that the device did while neighbours were looked for would have taken no time.
expect 0 "${train[@]}" --data shapes.h5 --epochs 3 batch_size=10 checkpoint_dir=rates knn_every=1 log_interval=5 --log rates.jsonl -q
"$python" - <<'PY' || wrong "a row of the log has another rate than the others: $(grep -o 'samples_per_s":[^,]*' rates.jsonl | tr '\n' ' ')"
import json, statistics
rates = [json.loads(line)["samples_per_s"] for line in open("rates.jsonl") if "samples_per_s" in line]
assert len(rates) > 6 and max(rates) < 100 * statistics.median(rates)
PY
expect 0 "${train[@]}" --data shapes.h5 --epochs 1 checkpoint_dir=never knn_every=0 --log never.jsonl -q
grep -q '"knn"' never.jsonl && wrong "knn_every=0 tried nearest neighbours"

# Neighbours of the embeddings, by NumPy.
expect 0 predict --embeddings --data shapes.h5 --checkpoint learnt -o bank.h5
told "$images embeddings in bank.h5"
expect 0 predict --embeddings --data shapes.h5 --checkpoint learnt inputs=test/x targets=test/y -o queries.h5
expect 0 eval knn --data shapes.h5 --checkpoint learnt --k 20 --format csv
cp out knn.csv
"$python" - "$long" <<'PY' || wrong "NumPy finds other neighbours, or little was learnt: $(cat knn.csv)"
import csv, h5py, sys, numpy as np
def share(bank, classes, queries, wanted):
    bank, queries = (a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-30) for a in (bank, queries))
    right = 0
    for q, want in zip(queries @ bank.T, wanted):
        near = np.argsort(-q, kind="stable")[:20]
        right += np.bincount(classes[near], np.exp(q[near] / .1)).argmax() == want
    return right / len(wanted)
b, q, f = h5py.File("bank.h5"), h5py.File("queries.h5"), h5py.File("shapes.h5")
assert (b["class"][:] == f["y"][:]).all() and (q["class"][:] == f["test/y"][:]).all()
rows = {r["features"]: float(r["accuracy"]) for r in csv.DictReader(open("knn.csv"))}
one = 1.01 / len(f["test/y"])
learned = share(b["embedding"][:].astype("f8"), b["class"][:], q["embedding"][:].astype("f8"), q["class"][:])
flat = [f[n][:].astype("f8").reshape(len(f[n]), -1) for n in ("x", "test/x")]
pixels = share(flat[0], f["y"][:], flat[1], f["test/y"][:])
assert abs(rows["learned"] - learned) < one and abs(rows["raw pixels"] - pixels) < one, (rows, learned, pixels)
assert sys.argv[1] == "0" or rows["learned"] > max(rows["raw pixels"], rows["untrained"]) + 0.15, rows
PY
# The network as it was drawn is the same one, however long it was trained since.
expect 0 eval knn --data shapes.h5 --checkpoint never --k 20 --format csv
for row in untrained 'raw pixels'; do
    [ "$(grep "^$row," out | cut -d, -f1-5)" = "$(grep "^$row," knn.csv | cut -d, -f1-5)" ] || wrong "$row: $(cat out knn.csv)"
done
expect 0 eval linear --data shapes.h5 --checkpoint learnt --epochs 20 --format csv
said '^learned,'
said '^untrained,'
said '^raw pixels,'

# Stopped and resumed, from the file in place of the device: the same bits.
expect 0 "${train[@]}" --data shapes.h5 --epochs 2 checkpoint_dir=once -q
expect 0 "${train[@]}" --data shapes.h5 --epochs 2 max_steps=1 checkpoint_dir=twice cache=none -q
expect 0 "${train[@]}" --data shapes.h5 --epochs 2 checkpoint_dir=twice cache=none -q --resume
[ "$(numbers "$(newest once)")" = "$(numbers "$(newest twice)")" ] || wrong "a run that was resumed has other bits"

# In micro-batches, with the negatives of one and of all; from the device and from the file.
cut=("${train[@]}" --data shapes.h5 --epochs 1 batch_size=20 accumulate=4)
expect 0 "${cut[@]}" checkpoint_dir=micro
told "told apart from the 39 others of its micro-batch: 4 micro-batches are no batch of 80"
expect 0 "${cut[@]}" accumulate_exact=true checkpoint_dir=exact
told "told apart from the 159 others of all 4 micro-batches"
expect 0 "${cut[@]}" accumulate_exact=true checkpoint_dir=parts cache=none -q
[ "$(numbers "$(newest exact)")" = "$(numbers "$(newest parts)")" ] || wrong "exact: another cache gives other bits"
[ "$(numbers "$(newest exact)")" = "$(numbers "$(newest micro)")" ] && wrong "exact is the same as plain"

# Samples without classes; a network by name, in 16 bits.
expect 0 "${train[@]}" --data alone.h5 inputs=unlabelled/x --epochs 1 batch_size=50 checkpoint_dir=alone --format csv
head -n 1 out | grep -q evaluate_knn && ! grep -qE ',,|,-,' out && wrong "neighbours without classes"
refuse 65 "has no classes 'y'" eval knn --data alone.h5 inputs=unlabelled/x --checkpoint alone
refuse 78 'temperature has no effect with loss' train supervised --data shapes.h5 temperature=0.2 checkpoint_dir=none
expect 0 train simclr --data shapes.h5 "model=wideresnet(depth=10, width=1)" max_steps=1 batch_size=8 precision=bf16 \
    checkpoint_dir=wide -q knn_every=1000
# What was learnt is the begin of a classifier: its own last layer is drawn.
expect 0 train supervised --data shapes.h5 "model=wideresnet(depth=10, width=1)" max_steps=1 batch_size=8 \
    --from "$(newest wide)" checkpoint_dir=fine
told 'from .*fc.weight and others drawn anew: 2'
refuse 78 'has no loss on samples' eval --data shapes.h5 --checkpoint learnt

exit "$failed"
