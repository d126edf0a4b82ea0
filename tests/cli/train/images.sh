#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Images from end to end on one device: a network with convolutions is trained, stopped and resumed
# to the same bits, and NumPy predicts the same from its weights in PyTorch's order. Forms of files,
# and what is refused, with ref. Usage: tests/cli/train/images.sh GPURT DEVICE

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "${1:?usage: images.sh GPURT DEVICE}")
device=${2:?usage: images.sh GPURT DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$here/../../harness/command.sh"
cd "$tmp" || exit 1
export GPURT_DEVICE=$device
python=/usr/bin/python3 # Debian's, which has h5py

# Lines that stand or lie; the same images in one piece, and cut every way and compressed.
"$python" - <<'PY' || exit 1
import h5py, numpy as np
draw = np.random.default_rng(3)
lies = draw.integers(0, 2, 300)
shots = draw.integers(0, 160, (300, 9, 7, 3), dtype=np.uint8)
for shot, l in zip(shots, lies):
    i = draw.integers(2, 6)
    shot[(i, slice(1, 6)) if l else (slice(2, 7), i)] = 255
with h5py.File("plain.h5", "w") as f:
    f["shots"], f["lies"] = shots, lies.astype("i4")
with h5py.File("cut.h5", "w") as f:
    f.create_dataset("shots", data=shots, chunks=(40, 4, 3, 2), compression="gzip", shuffle=True)
    f["lies"] = lies.astype("i4")
with h5py.File("few.h5", "w") as f:
    f["shots"], f["lies"] = shots[:20], lies[:20].astype("i4")
with h5py.File("turned.h5", "w") as f:
    f["shots"], f["lies"] = shots.transpose(0, 2, 1, 3), lies.astype("i4")
PY

cat >net.yaml <<'END'
inputs: shots
targets: lies
normalize: true
batch_size: 30
learning_rate: 0.004
seed: 5
model:
  - conv: {outputs: 6, size: 5, bias: false}
  - norm: batch
  - relu
  - max_pool: {size: 3, stride: 2, padding: 1}
  - residual: {of: [{conv: 8}, {norm: batch}], shortcut: [{conv: {outputs: 8, size: 1, stride: 1}}], activation: relu}
  - avg_pool: 2
  - pool: mean
  - linear: out
END

train=(train supervised --config net.yaml)
expect 0 "${train[@]}" --data plain.h5 epochs=3 checkpoint_dir=once
grep -q '300 samples of 9x7 pixels of 3 features' out err || wrong "the shape is not told: $(head -3 out err)"
expect 0 eval --data plain.h5 --checkpoint once --format csv
"$python" - out <<'PY' || wrong "lines that stand and lie are not told apart: $(cat out)"
import csv, sys
row = next(csv.DictReader(open(sys.argv[1])))
assert float(row["accuracy"]) > 0.9, row
PY
expect 0 "${train[@]}" --data cut.h5 epochs=1 checkpoint_dir=twice -q
expect 0 "${train[@]}" --data cut.h5 epochs=3 checkpoint_dir=twice -q --resume
newest() { printf '%s/%s' "$1" "$(ls "$1" | grep step- | sort | tail -n 1)"; }
for run in once twice; do expect 0 convert "$(newest $run)" $run.safetensors; done
cmp -s <(tail -c 4000 once.safetensors) <(tail -c 4000 twice.safetensors) ||
    wrong "images that are cut and compressed, resumed, give other bits"

expect 0 predict --data plain.h5 --checkpoint "$(newest once)" -o y.h5
"$python" - <<'PY' || wrong "NumPy predicts other logits"
import h5py, json, struct, numpy as np
blob = open("once.safetensors", "rb").read()
size = struct.unpack("<Q", blob[:8])[0]
w = {k: np.frombuffer(blob, {"F32": "f4", "F64": "f8", "I64": "i8"}[v["dtype"]], offset=8 + size + v["data_offsets"][0],
                      count=int(np.prod(v["shape"]))).reshape(v["shape"]).astype("f8")
     for k, v in json.loads(blob[8:8 + size]).items() if k != "__metadata__"}
assert w["0.weight"].shape == (6, 3, 5, 5) and w["4.body.0.weight"].shape == (8, 6, 3, 3), {k: v.shape for k, v in w.items()}
x = h5py.File("plain.h5")["shots"][:].astype("f8").transpose(0, 3, 1, 2)
x = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True) if "data/mean" not in w else \
    (x - w["data/mean"][:, None, None]) / w["data/std"][:, None, None]
def windows(x, k, s, p, fill=0.0):
    x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))[:, :, ::s, ::s]
def conv(x, name, p):
    k = w[name + ".weight"]
    y = np.einsum("nchwij,ocij->nohw", windows(x, k.shape[2], 1, p), k)
    return y + (w[name + ".bias"][:, None, None] if name + ".bias" in w else 0)
def norm(x, name):
    a = {k: w[f"{name}.{k}"][:, None, None] for k in ("weight", "bias", "running_mean", "running_var")}
    return (x - a["running_mean"]) / np.sqrt(a["running_var"] + 1e-5) * a["weight"] + a["bias"]
x = np.maximum(norm(conv(x, "0", 2), "1"), 0)
x = windows(x, 3, 2, 1, -np.inf).max((4, 5))
x = np.maximum(norm(conv(x, "4.body.0", 1), "4.body.1") + conv(x, "4.shortcut.0", 0), 0)
x = windows(x, 2, 2, 0).mean((4, 5)).mean((2, 3))
y = x @ w["7.weight"].T + w["7.bias"]
got = h5py.File("y.h5")["y"][:]
assert np.abs(got - y).max() < 1e-4 * np.abs(y).max(), np.abs(got - y).max()
PY

# Transforms are drawn by step and place: cache, workers and a resume change no bit of a run.
changed=(train supervised --config net.yaml normalize=false epochs=2
    'transform=random_crop(padding=2) | random_horizontal_flip | color_jitter(0.4, 0.4, 0.4, 0.1, p=0.8) | gaussian_blur(3) |
        normalize(mean=0.5, std=0.25) | mixup(0.3)')
expect 0 "${changed[@]}" --data plain.h5 cache=device checkpoint_dir=drawn -q
expect 0 "${changed[@]}" --data cut.h5 cache=none num_workers=3 epochs=1 checkpoint_dir=redrawn -q
expect 0 "${changed[@]}" --data cut.h5 cache=none num_workers=1 checkpoint_dir=redrawn -q --resume
for run in drawn redrawn; do expect 0 convert "$(newest $run)" $run.safetensors; done
cmp -s <(tail -c 4000 drawn.safetensors) <(tail -c 4000 redrawn.safetensors) ||
    wrong "with a transform, another cache and a resume give other bits"
# A checkpoint has its transform, and evaluates without chance: the whole image, normalized.
expect 0 predict --data plain.h5 --checkpoint "$(newest drawn)" -o drawn.h5
expect 0 predict --data plain.h5 --checkpoint "$(newest drawn)" -o redrawn.h5 batch_size=7
"$python" -c 'import h5py, numpy as np
a, b = (h5py.File(f)["y"][:] for f in ("drawn.h5", "redrawn.h5")); assert np.abs(a - b).max() < 1e-5' ||
    wrong "an evaluation is drawn"
shrunk=(train supervised --data few.h5 inputs=shots targets=lies hidden=8 depth=1 epochs=1 -q)
# As guides write it.
expect 0 "${shrunk[@]}" checkpoint_dir=guide batch_size=10 \
    transform='random_resized_crop(size=96, scale=(0.08,1.0)) | random_horizontal_flip | color_jitter(0.8,0.8,0.8,0.2,p=0.8) | random_grayscale(p=0.2) | gaussian_blur(kernel_size=9) | normalize'

# A network by name.
wide='model=wideresnet(depth=10, width=1)'
names=(inputs=shots targets=lies batch_size=4)
expect 0 train supervised --data few.h5 "${names[@]}" "$wide" epochs=1 checkpoint_dir=wide -q
expect 0 predict --data few.h5 --checkpoint wide -o wide.h5
expect 0 convert wide/best.h5 wide.safetensors
host_part || exit "$failed"

expect 0 "${changed[@]}" --data plain.h5 checkpoint_dir=other -q \
    'transform=random_crop(padding=2) | random_horizontal_flip | color_jitter(0.4, 0.4, 0.4, p=0.8) | gaussian_blur(3) |
        normalize(mean=0.5, std=0.25) | mixup(0.3)'
expect 0 convert "$(newest other)" other.safetensors
cmp -s <(tail -c 4000 drawn.safetensors) <(tail -c 4000 other.safetensors) && wrong "a hue changes nothing"

# Its weights alone, as another program has them, say the same, and begin a run.
"$python" - <<'PY' || wrong "the file is not as PyTorch has it"
import json, struct
blob = open("wide.safetensors", "rb").read()
size = struct.unpack("<Q", blob[:8])[0]
head = json.loads(blob[8:8 + size])
count = head["block2.layer.0.bn1.num_batches_tracked"]
assert count["dtype"] == "I64" and count["shape"] == [], count
at = 8 + size + count["data_offsets"][0]
assert struct.unpack("<q", blob[at:at + 8]) == (5,), blob[at:at + 8]
assert head["block1.layer.0.conv1.weight"]["shape"] == [16, 16, 3, 3], head
assert head["block3.layer.0.convShortcut.weight"]["shape"] == [64, 32, 1, 1], head
del head["__metadata__"]
head = json.dumps(head).encode()
open("alone.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + blob[8 + size:])
PY
refuse 65 'alone.safetensors holds no model that gpurt train supervised made; of weights alone' \
    predict --data few.h5 --checkpoint alone.safetensors -o alone.h5
expect 0 predict --data few.h5 --checkpoint alone.safetensors "$wide" "${names[@]}" -o alone.h5
"$python" -c 'import h5py; a, b = (h5py.File(f)["y"][:] for f in ("wide.h5", "alone.h5")); assert (a == b).all()' ||
    wrong "weights alone predict something else"
expect 0 train supervised --data few.h5 "${names[@]}" "$wide" --from alone.safetensors max_steps=1 checkpoint_dir=again
grep -q 'from  *alone.safetensors: 46 tensors$' out err || wrong "what is taken is not told: $(grep from out err)"
refuse 65 'alone.safetensors has no tensor of this network' train supervised --data few.h5 "${names[@]}" hidden=8 \
    --from alone.safetensors checkpoint_dir=none

# Evaluations with steps of their own.
expect 0 "${shrunk[@]}" transform='resize(4) | normalize' checkpoint_dir=shrunk
expect 0 "${shrunk[@]}" transform='random_crop(5) | normalize' checkpoint_dir=middle
expect 0 "${shrunk[@]}" transform='random_crop(5) | normalize' eval_transform='resize((5, 5)) | normalize' checkpoint_dir=whole
for run in middle whole; do expect 0 predict --data few.h5 --checkpoint $run -o $run.h5; done
"$python" -c 'import h5py, numpy as np
a, b = (h5py.File(f)["y"][:] for f in ("middle.h5", "whole.h5")); assert np.abs(a - b).max() > 1e-3' ||
    wrong "eval_transform changes nothing"
refuse 78 'mixup and cutmix are for cross_entropy' "${shrunk[@]}" transform='normalize | cutmix' loss=mse checkpoint_dir=none
refuse 78 'gives [5][5][3] in training, and [4][4][3] in evaluations' "${shrunk[@]}" transform='random_crop(5)' \
    eval_transform='center_crop(4)' checkpoint_dir=none
refuse 78 'eval_transform: there is no `transform` of training' "${shrunk[@]}" eval_transform='center_crop(4)' checkpoint_dir=none

refuse 78 'transform: `normalize: true` comes before it' "${train[@]}" --data plain.h5 transform=normalize checkpoint_dir=none
printf 'hidden: 4\ntransform:\n    normalize | random_flip\n' >calls.yaml
refuse 78 "calls.yaml:3:5: no transform 'random_flip'" model calls.yaml --data plain.h5 inputs=shots targets=lies
refuse 78 "gpurt: error: transform: no transform 'random_flip'" "${train[@]}" --data plain.h5 normalize=false transform=random_flip checkpoint_dir=none
# There and back again.
expect 0 convert once.safetensors back.h5
expect 0 convert back.h5 back.safetensors
cmp -s once.safetensors back.safetensors || wrong "convert does not give back what it took"

refuse 65 'turned.h5: samples have 7x9 pixels of 3 features; the model of once/best.h5 wants 9x7 pixels of 3 features' \
    predict --data turned.h5 --checkpoint once -o no.h5
# A plain perceptron takes all numbers of an image.
expect 0 train supervised --data plain.h5 inputs=shots targets=lies hidden=8 depth=1 epochs=1 checkpoint_dir=flat -q
sed 's/size: 5, bias: false/size: 5, stride: 9, padding: 0/' net.yaml >small.yaml
refuse 78 'small.yaml:13:5: avg_pool: 2x2 with padding 0 does not fit into [1][1][8]' model small.yaml --data plain.h5
exit "$failed"
