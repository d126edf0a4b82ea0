#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the host alone decides of supervised training, with ref: every signal, which checkpoint is
# gone on with, which data and settings are refused, names of data sets, files of predictions,
# configs, and the mistakes a person makes. Usage: tests/cli/train/train_host.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: train_host.sh GPURT}")
device=ref:0
# shellcheck source-path=SCRIPTDIR source=train_kit.sh
. "$(dirname "${BASH_SOURCE[0]}")/train_kit.sh"

# ---- interrupted ----
for signal in TERM HUP USR1; do
    interrupt "$signal" 75 "part-$signal" "${base[@]}" cache=none
done
# A run that is done has nothing left to do.
expect 0 "${base[@]}" checkpoint_dir=damaged
expect 0 "${base[@]}" checkpoint_dir=damaged --resume
said 'nothing to do'
# The newest is damaged: an older one is taken.
truncate -s 5000 "damaged/$last"
expect 0 "${base[@]}" checkpoint_dir=damaged --resume
said 'damaged'
[ "$(grep -c 'an older one is looked for' err)" -eq 1 ] || wrong "a damaged checkpoint is not told of once"
same "damaged/$last" "whole/$last"
# There is none but damaged ones.
mkdir torn && head -c 5000 "whole/$last" >"torn/$last"
expect 66 "${base[@]}" checkpoint_dir=torn --resume
[ "$(grep -c 'no whole checkpoint in torn' err)" -eq 1 ] || wrong "that no checkpoint is whole is not told of once"
# A new run keeps away from the old one's files.
expect 0 "${base[@]}" checkpoint_dir=damaged epochs=1
said 'moved to damaged/earlier-1'
[ -f "damaged/earlier-1/$last" ] || wrong "the earlier run's checkpoint is gone"
expect 78 "${base[@]}" checkpoint_dir=whole batch_size=32 --resume
said 'was made with 16 samples a step'
refuse 78 'was made with seed=0; here it is 5' "${base[@]}" checkpoint_dir=whole --resume --seed 5
refuse 78 'was made with hidden=16; here it is 32' "${base[@]}" checkpoint_dir=whole --resume hidden=32
# The network, where the batch is another by that alone or besides.
refuse 78 'was made with hidden=16; here it is 32' "${base[@]}" checkpoint_dir=whole --resume hidden=32 batch_size=32
# The file was written anew: other numbers are refused, the same ones are not, however they are
# stored.
"$python" - <<'PY' || wrong "no copies of the data"
import h5py, shutil
shutil.copy("d.h5", "moved.h5")
with h5py.File("d.h5") as old, h5py.File("packed.h5", "w") as new:
    for name in "x", "y":
        new.create_dataset(name, data=old[name][:], chunks=(100, old[name].shape[1]), compression="gzip")
for name, row in ("other-x", ("x", 1500, 3)), ("other-y", ("y", 2999, 0)):
    shutil.copy("d.h5", name + ".h5")
    with h5py.File(name + ".h5", "r+") as f:
        f[row[0]][row[1], row[2]] += 0.25
with h5py.File("d.h5") as old:
    for wide in "x", "y":
        with h5py.File(f"wide-{wide}.h5", "w") as new:
            for name in "x", "y":
                new[name] = old[name][:][:, list(range(old[name].shape[1])) + [0] * (name == wide)]
PY
for data in moved packed; do
    expect 0 "${base[@]}" --data "$data.h5" checkpoint_dir=whole --resume
    said 'nothing to do'
done
for data in other-x other-y; do
    refuse 65 "the data in $data.h5 are not those" "${base[@]}" --data "$data.h5" checkpoint_dir=whole --resume
done
expect 0 "${base[@]}" --data other-x.h5 checkpoint_dir=whole --resume --force
# Other rows are taken so, other shapes are not.
refuse 65 "the model of whole/$last wants" "${base[@]}" --data wide-x.h5 checkpoint_dir=whole --resume --force
refuse 65 "targets want 2 outputs; the model of whole/$last has 1: use data of the same shapes" \
    "${base[@]}" --data wide-y.h5 checkpoint_dir=whole --resume --force
touch d.h5
expect 0 "${base[@]}" checkpoint_dir=whole --resume
said 'nothing to do'

# ---- trained models ----
expect 0 predict --data d.h5 --checkpoint whole -o p.h5
expect 0 convert whole/best.h5 model.safetensors
expect 0 convert model.safetensors back.h5
expect 0 eval --data d.h5 --checkpoint whole --scores --format csv
[ "$(head -n 1 out)" = samples,loss,accuracy,samples_per_s,top5,most_frequent,mae,r2,f1,auc ] || wrong "--scores: its columns"
expect 0 convert --all "whole/$last" all.safetensors
mkdir again && expect 0 convert all.safetensors "again/$last"
expect 0 "${base[@]}" checkpoint_dir=again epochs=4 --resume
said 'resumed from again'
expect 0 data make classification --samples 1500 --features 6 --classes 3 -o c.h5
refuse 65 'no model' convert p.h5 never.safetensors
# Other names than x and y: several inputs and targets, in groups, with spaces; each loss. What is
# predicted needs no targets in the file.
"$python" <<'PY' || wrong "no file with other names"
import h5py, numpy as np
rng = np.random.default_rng(5)
rows = {"joints/angle": rng.normal(size=(500, 3)), "wind speed": rng.normal(size=500)}
both = np.column_stack([rows["joints/angle"], rows["wind speed"]])
aims = {"force": both @ rng.normal(size=(4, 2)), "out/drag": both[:, :1] ** 2,
        "gait": (both[:, 0] > 0).astype("i8"), "fell": (both[:, 1:3] > 0).astype("f4")}
for path, more in (("named.h5", aims), ("unaimed.h5", {})):
    with h5py.File(path, "w") as file:
        for name, value in {**rows, **more}.items():
            file[name] = value
PY
for job in 'force,/out/drag mse 3' 'gait cross_entropy 2' 'fell bce 2'; do
    read -r aims kind outputs <<<"$job"
    expect 0 train supervised --data named.h5 inputs="joints/angle,wind speed" targets="$aims" loss="$kind" \
        epochs=2 batch_size=32 checkpoint_dir="named-$kind" normalize=true
    expect 0 eval --data named.h5 --checkpoint "named-$kind"
    for file in named unaimed; do
        expect 0 predict --data "$file.h5" --checkpoint "named-$kind" -o "p-$file.h5"
    done
    same p-named.h5 p-unaimed.h5
    "$python" - "$kind" "$outputs" <<'PY' || wrong "predictions of other names, $kind"
import sys, h5py, numpy as np
data, model, said = h5py.File("named.h5"), h5py.File(f"named-{sys.argv[1]}/best.h5"), h5py.File("p-named.h5")
x = np.column_stack([data["joints/angle"][()], data["wind speed"][()]])
x = (x - model["data/mean"][()]) / model["data/std"][()]
count = sum(1 for name in model["model"] if name.startswith("layers."))
for i in range(count):
    layer = model[f"model/layers.{i}"]
    x = x @ layer["weight"][()].T.astype(float) + layer["bias"][()]
    x = np.maximum(x, 0) if i + 1 < count else x
assert said["y"].shape == (500, int(sys.argv[2])), said["y"].shape
assert np.abs(said["y"][()] - x).max() < 1e-4 * max(1, np.abs(x).max())
y = said["y"][()].astype(float)
logits = sys.argv[1] != "mse"
assert said.attrs["y_is"].decode() == ("logits" if logits else "values")
assert ("probability" in said) == logits and ("class" in said) == (sys.argv[1] == "cross_entropy")
if logits:
    p = np.exp(y) / np.exp(y).sum(1, keepdims=True) if "class" in said else 1 / (1 + np.exp(-y))
    assert np.abs(said["probability"][()] - p).max() < 1e-6
PY
    expect 0 convert "named-$kind/best.h5" named.safetensors
    expect 0 convert named.safetensors named-back.h5
    for form in named-back.h5 named.safetensors; do
        expect 0 predict --data unaimed.h5 --checkpoint "$form" -o p-back.h5
        same p-named.h5 p-back.h5
    done
    expect 0 predict --data unaimed.h5 --checkpoint "named-$kind" -o p-named.csv
    "$python" - <<'PY' || wrong "CSV and HDF5 of $kind differ"
import csv, h5py, numpy as np
rows, said = list(csv.reader(open("p-named.csv"))), h5py.File("p-named.h5")
want = {}
for name in said:
    column = said[name][()].reshape(500, -1)
    for k in range(column.shape[1]):
        want[name + (str(k) if column.shape[1] > 1 else "")] = column[:, k]
assert sorted(rows[0]) == sorted(want) and len(rows) == 501, rows[0]
for k, name in enumerate(rows[0]):
    got = np.array([row[k] for row in rows[1:]]).astype(want[name].dtype)
    assert (got == want[name]).all(), name
PY
done
expect 0 predict --data unaimed.h5 --checkpoint named-mse --format csv -o -
same out <("$gpurt" predict --data unaimed.h5 --checkpoint named-mse -o /dev/fd/1 --format csv 2>/dev/null)
refuse 64 'must end in .h5, .hdf5, .csv or .npy' predict --data unaimed.h5 --checkpoint named-mse -o p.txt
[ ! -e p.txt ] || wrong "a prediction of unknown form was written"
refuse 65 "no data set" eval --data unaimed.h5 --checkpoint named-mse
# What is read is never written over.
cp d.h5 before.h5
refuse 64 'would be overwritten' predict --data d.h5 --checkpoint whole -o d.h5
refuse 64 'would be overwritten' predict --data d.h5 --checkpoint back.h5 -o back.h5
refuse 64 'would be overwritten' "${base[@]}" checkpoint_dir=none --log d.h5
same d.h5 before.h5
expect 65 predict --data c.h5 --checkpoint whole -o never.h5
[ ! -e never.h5 ] || wrong "a file of a prediction that failed"

# ---- so many steps ----
# 1000 samples, 900 of them to train on: 2 steps an epoch, so that 10 epochs would end before.
expect 0 data make regression --samples 1000 --features 4 -o few.h5
expect 0 train supervised --data few.h5 -q checkpoint_dir=steps hidden=16 batch_size=512 max_steps=31 keep=1
[ -f steps/step-000000000031.h5 ] || wrong "max_steps=31: there is $(ls steps)"
# The last of them, in the middle of an epoch, has its row, validation and best checkpoint as an
# epoch has.
said '^ *16 +31 +[0-9.]+ +[0-9.]+ '
expect 0 train supervised --data few.h5 -q checkpoint_dir=step hidden=16 batch_size=512 max_steps=1 --log step.jsonl
[ -f step/best.h5 ] || wrong "max_steps=1: no best checkpoint"
grep -q '"event":"evaluate".*"step":1,' step.jsonl || wrong "max_steps=1: no evaluation in the log"
expect 0 train supervised --data few.h5 -q checkpoint_dir=step hidden=16 batch_size=512 max_steps=1 --resume
expect 0 train supervised --data few.h5 -q checkpoint_dir=steps hidden=16 batch_size=512 max_steps=31 epochs=3 keep=1
! [ -f steps/step-000000000031.h5 ] || wrong "max_steps=31 epochs=3: more than 3 epochs"

# ---- rows that are not finite ----
"$python" -c 'import h5py, shutil; shutil.copy("d.h5", "nan.h5"); h5py.File("nan.h5", "r+")["x"][2345, 3] = float("nan")'
expect 65 "${base[@]}" --data nan.h5 checkpoint_dir=nan1
said 'nan.h5: row 2345 of the inputs is not finite \(column 3 is nan\); on_nan: drop'
[ ! -e nan1 ] || wrong "a file with a NaN was not refused first"
expect 0 "${base[@]}" --data nan.h5 checkpoint_dir=nan1 on_nan=drop epochs=1
said '2999 samples'
said 'left out +1 of 3000 samples have NaN or Inf'
# Predictions keep the rows of the file: the one that is left out is NaN, and all others are as of
# the whole file.
expect 0 predict --data nan.h5 --device ref --checkpoint nan1 -o gap.csv on_nan=drop
said '^3000 predictions'
said '^1 of them are NaN'
expect 0 predict --data d.h5 --device ref --checkpoint nan1 -o no_gap.csv
[ "$(diff gap.csv no_gap.csv | grep -c '^<')" -eq 1 ] || wrong "more than one prediction differs"
[ "$(sed -n 2347p gap.csv)" = nan ] || wrong "row 2345 is not NaN: $(sed -n 2347p gap.csv)"
# The first, two in a row, and the last.
"$python" -c 'import h5py, shutil; shutil.copy("d.h5", "gaps.h5"); f = h5py.File("gaps.h5", "r+")["x"]
for row in 0, 7, 8, 2999: f[row, 1] = float("inf")'
expect 0 predict --data gaps.h5 --device ref --checkpoint nan1 -o gaps.csv on_nan=drop
said '^4 of them are NaN'
[ "$(diff gaps.csv no_gap.csv | grep -c '^<')" -eq 4 ] || wrong "more than four predictions differ"
[ "$(grep -n nan gaps.csv | tr '\n' ' ')" = "2:nan 9:nan 10:nan 3001:nan " ] || wrong "other rows are NaN: $(grep -n nan gaps.csv)"
expect 65 "${base[@]}" --data nan.h5 checkpoint_dir=nan2 on_nan=late shuffle=false validation_split=0 epochs=1 cache=none
said 'row 2345 of the inputs is not finite'
[ -n "$(ls nan2)" ] || wrong "on_nan=late: no step before the row"

# ---- whole numbers: classes, or amounts ----
"$python" - <<'END'
import h5py, numpy as np
for name, most in (("as_many", 39), ("one_more", 40)):
    with h5py.File(name + ".h5", "w") as f:
        f["x"] = np.arange(120, dtype="f4").reshape(40, 3) / 120
        y = np.arange(40) % 3
        y[7] = most
        f["y"] = y.astype("i4")
END
expect 0 train supervised --data as_many.h5 --device ref checkpoint_dir=none hidden=4 epochs=1
said '40 outputs, loss cross_entropy'
expect 0 train supervised --data one_more.h5 --device ref checkpoint_dir=amounts hidden=4 epochs=1
said ' 1 outputs, loss mse'
said 'one_more.h5: targets up to 40 in 40 rows are taken for amounts, loss=mse; with loss=cross_entropy they are classes'
expect 0 eval --data one_more.h5 --device ref --checkpoint amounts
expect 0 init supervised --data one_more.h5 -o one_more.yaml
grep -q '^  loss: mse' one_more.yaml || wrong "init takes amounts for classes"
expect 0 init supervised --data as_many.h5 -o as_many.yaml
grep -q '^  loss: cross_entropy' as_many.yaml || wrong "init takes classes for amounts"

# ---- data that fail while they are read ----
cp d.h5 cut.h5
begin "${base[@]}" --data cut.h5 epochs=1000000 checkpoint_dir=cut log=cut.jsonl cache=none
wait_for "the first step out of cut.h5" grep -q '"step":[1-9]' cut.jsonl
truncate -s 4096 cut.h5
code=0
wait "$pid" || code=$?
[ "$code" -eq 65 ] || wrong "a file cut short while it was read: exit code $code, wanted 65"
said 'cut.h5'
cp d.h5 cut.h5
step=$(sed -n '$s/.*"step":\([0-9]*\).*/\1/p' cut.jsonl)
expect 0 "${base[@]}" --data cut.h5 epochs=1000000 max_steps=$((step + 100)) checkpoint_dir=cut --resume
said 'resumed from cut'

# ---- configs ----
# The table "your script's key" of docs/training.md: every name in it is taken for what it says.
expect 0 train supervised --keys --format json
"$python" - "$here/../../../docs/training.md" <<'PY' || wrong "the table of keys in docs/training.md is not true"
import json, re, sys
keys = {row["key"]: row.get("other_names", "").split() for row in json.load(open("out"))["rows"]}
table = re.findall(r"^\| (`[^|]*) \| `(\w+)` \|", open(sys.argv[1]).read(), re.M)
assert len(table) > 20, table
for names, key in table:
    for name in re.findall(r"`(\w+)`", names):
        assert name == key or name in keys[key], (name, key)
PY
cat >f.yaml <<'YAML'
data:
  path: d.h5
  batch_size: 64
  num_workers: 1
training:
  use_amp: true
  gradient_accumulation_steps: 2
gpu:
  empty_cache_freq: 5
checkpoint:
  save_dir: from-yaml
YAML
expect 0 train supervised --config f.yaml --epochs 1
said 'effective 128, in 2 micro-batches'
said 'precision +f16'
said 'empty_cache_freq: memory is planned'
[ -f from-yaml/best.h5 ] || wrong "checkpoint.save_dir was not obeyed"

# ---- a list of layers ----
expect 0 model list.yaml --format csv
grep -q '^3.body.2,dropout,\[16\],\[16\],0,' out || wrong "gpurt model lacks the dropout"
grep -q '^,sequence,\[8\],\[1\],737,' out || wrong "gpurt model: 737 parameters are not counted"
said 'largest batch on .*: [0-9]+, in '
expect 0 "${list[@]}" checkpoint_dir=list epochs=2
expect 0 eval --data d.h5 --checkpoint list --format csv
expect 0 predict --data d.h5 --checkpoint list -o list-p.h5
refuse 78 'which is another run' "${list[@]}" checkpoint_dir=list --resume 'model=[{linear: 16}, {linear: out}]'
sed 's/{linear: 16}\]/{linear: 15}]/' list.yaml >list-bad.yaml
refuse 78 'list-bad.yaml:6:5: residual: body gives [15], the input has [16]' train supervised \
    --config list-bad.yaml checkpoint_dir=none
printf 'epochs: 3\nmodel:  resnet18\n' >named.yaml
refuse 78 "named.yaml:2:9: resnet: takes images of [height][width][channels], not [" train supervised --config named.yaml \
    --data d.h5 checkpoint_dir=none
refuse 78 "gpurt: error: model: resnet: takes images of [height][width][channels], not [" model --data d.h5 model=resnet18
refuse 78 "model at character 2: no layer 'lineaer'; did you mean 'linear'" model --data d.h5 'model=[{lineaer: 4}]'

printf 'data:\n  batch_szie: 64\n' >bad.yaml
expect 78 train supervised --config bad.yaml
said "bad.yaml:2:3: no key 'batch_szie'; did you mean 'batch_size'\?"
expect 78 train supervised --data d.h5 batch_size=none
expect 78 train supervised
said 'no data'
refuse 78 'warmup_steps is 9999, and there are' train supervised --data d.h5 schedule=cosine warmup_steps=9999
refuse 78 'momentum above 0' train supervised --data d.h5 optimizer=SGD nesterov=true
expect 66 train supervised --config missing.yaml
refuse 78 "no key 'batch_szie'; did you mean 'batch_size'" train supervised --data d.h5 --batch-szie 64
refuse 78 "batch_size wants a whole number, not 'none'" train simclr --data d.h5 --batch-size none
refuse 78 '--data FILE' train supervised d.h5
expect 0 train supervised --data d.h5 validation_data=d.h5 max_steps=1 checkpoint_dir=judged
expect 0 data make regression --samples 40 --features 8 --seed 77 -o judges.h5
refuse 65 'd.h5 or validation_data are not those' train supervised --data d.h5 \
    validation_data=judges.h5 max_steps=2 checkpoint_dir=judged --resume
refuse 73 'd.h5 is no folder' train supervised --data d.h5 checkpoint_dir=d.h5
expect 66 train supervised --data missing.h5
expect 66 eval --data d.h5 --checkpoint missing.h5
expect 66 eval --data d.h5 --checkpoint f
expect 64 convert f.yaml g.yaml
expect 64 train voodoo
expect 65 eval --data d.h5 --checkpoint d.h5
refuse 65 'bce wants 0 to 1' train supervised --data d.h5 checkpoint_dir=none loss=bce
refuse 65 'gpurt data info' train supervised --data d.h5 checkpoint_dir=none inputs=z

exit "$failed"
