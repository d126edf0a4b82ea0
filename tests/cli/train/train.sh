#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Supervised training from end to end on one device: data, training, every way of being interrupted,
# the same bits after --resume, evaluation, prediction and conversion against NumPy, and the
# mistakes a person makes. Usage: tests/cli/train/train.sh GPURT JSON_CHECK REFUSE_MEMORY DEVICE

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "$1")
json=$(realpath "$2")
refuse_memory=$(realpath "$3") # preloaded: a system without much memory
python=/usr/bin/python3 # Debian's, which has h5py
scratch=/dev/shm # in memory where that is to be had: each checkpoint waits for the disk
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$here/../../harness/command.sh"
export GPURT_DEVICE=$4 XDG_CONFIG_HOME=$tmp/config
unset NO_COLOR
cd "$tmp" || exit 1

# said PATTERN: in what the last command printed.
said() { grep -qE -- "$1" out err || wrong "not said: $1"; }

expect 0 data make regression --samples 3000 --features 8 --seed 3 -o d.h5
base=(train supervised --data d.h5 model=small batch_size=16 epochs=3 checkpoint_interval=50
    log_interval=20)
last=step-000000000507.h5 # 3 epochs of 169 steps over 2700 samples

# ---- an undisturbed run ----
expect 0 "${base[@]}" checkpoint_dir=whole --log whole.jsonl --tensorboard board --format json
"$json" <out || wrong "--format json is no JSON"
"$json" --lines <whole.jsonl || wrong "--log is not one JSON object a line"
for event in start train evaluate end; do
    grep -q "\"event\":\"$event\"" whole.jsonl || wrong "no $event in the log"
done
logs_agree whole.jsonl
ls board/events.out.tfevents.* >/dev/null 2>&1 || wrong "no TensorBoard file"
said '^device  .*'
said 'effective 16, in 1 micro-batch; 169 steps an epoch, 507 in all'
if [ ! -f "whole/$last" ] || [ ! -f whole/best.h5 ]; then wrong "no last or no best checkpoint"; fi
[ "$(ls whole | wc -l)" -eq 4 ] || wrong "not three checkpoints and the best: $(ls whole)"
! grep -q $'\033' err || wrong "colour without a terminal"

# ---- the same bits, however the data come ----
expect 0 "${base[@]}" checkpoint_dir=ram cache=ram num_workers=0 pin_memory=false -q
same "ram/$last" "whole/$last"
expect 0 "${base[@]}" checkpoint_dir=dev cache=device -q
same "dev/$last" "whole/$last"

# ---- interrupted ----
# interrupt SIGNAL CODE FOLDER ARGUMENT...: a run without an end in sight gets the signal after its
# first log line. It is resumed for some epochs more, and has the same bits then as a run that was
# never stopped.
interrupt() {
    local signal=$1 want=$2 folder=$3 step end
    shift 3
    begin "$@" epochs=1000000 checkpoint_dir="$folder" log="$folder.jsonl"
    wait_for "the first step of $folder" grep -q '"step":[1-9]' "$folder.jsonl"
    [ "$signal" != KILL ] || wait_for "a checkpoint of $folder" compgen -G "$folder/step-*.h5"
    stop "$signal" "$want" "$folder"
    if [ "$want" -eq 75 ]; then
        said 'resume'
        ended signal "$folder.jsonl"
        logs_agree "$folder.jsonl"
    fi
    step=$(sed -n '$s/.*"step":\([0-9]*\).*/\1/p' "$folder.jsonl")
    end=(max_steps=$((step + 400)) epochs=1000000)
    expect 0 "$@" "${end[@]}" checkpoint_dir="$folder" --resume
    said "resumed from $folder/step-[0-9]+.h5"
    expect 0 "$@" "${end[@]}" checkpoint_dir="un$folder" -q
    same "$folder/$(printf 'step-%012d.h5' $((step + 400)))" "un$folder/$(printf 'step-%012d.h5' $((step + 400)))"
    same "$folder/best.h5" "un$folder/best.h5"
}
for signal in INT TERM HUP USR1; do
    interrupt "$signal" 75 "part-$signal" "${base[@]}" cache=none
done
# While kernels are compiled for the first time: the first that is kept is a sign that more follow.
kept() { find "$tmp/kernels" -type f -path '*gpurt*' | grep -q .; }
mkdir kernels pocl
XDG_CACHE_HOME=$tmp/kernels POCL_CACHE_DIR=$tmp/pocl begin "${base[@]}" precision=f16 normalize=true hidden=40 \
    epochs=1000000 checkpoint_dir=unbuilt
wait_for "a first kernel" kept
stop TERM 75 "train while kernels are compiled"
said 'before the first step|--resume'
# With the rows on the device steps are queued ahead of what is reported.
interrupt INT 75 part-long "${base[@]}" cache=device checkpoint_interval=0
# Killed: the newest checkpoint may be some steps old.
interrupt KILL 137 part-KILL "${base[@]}" cache=none checkpoint_interval=10
# A run that is done has nothing left to do.
expect 0 "${base[@]}" checkpoint_dir=damaged
expect 0 "${base[@]}" checkpoint_dir=damaged --resume
said 'nothing to do'
# The newest is damaged: an older one is taken.
truncate -s 5000 "damaged/$last"
expect 0 "${base[@]}" checkpoint_dir=damaged --resume
said 'damaged'
same "damaged/$last" "whole/$last"
# A new run keeps away from the old one's files.
expect 0 "${base[@]}" checkpoint_dir=damaged epochs=1
said 'moved to damaged/earlier-1'
[ -f "damaged/earlier-1/$last" ] || wrong "the earlier run's checkpoint is gone"
expect 78 "${base[@]}" checkpoint_dir=whole batch_size=32 --resume
said 'was made with 16 samples a step'
refuse 78 'was made with seed=0; here it is 5' "${base[@]}" checkpoint_dir=whole --resume --seed 5
refuse 78 'was made with hidden=16; here it is 32' "${base[@]}" checkpoint_dir=whole --resume hidden=32
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
PY
for data in moved packed; do
    expect 0 "${base[@]}" --data "$data.h5" checkpoint_dir=whole --resume
    said 'nothing to do'
done
for data in other-x other-y; do
    refuse 65 "the data in $data.h5 are not those" "${base[@]}" --data "$data.h5" checkpoint_dir=whole --resume
done
expect 0 "${base[@]}" --data other-x.h5 checkpoint_dir=whole --resume --force
touch d.h5
expect 0 "${base[@]}" checkpoint_dir=whole --resume
said 'nothing to do'

# ---- trained models ----
expect 0 eval --data d.h5 --checkpoint whole --part validation --format csv
loss=$(awk -F, 'NR == 2 { print $2 }' out)
expect 0 predict --data d.h5 --checkpoint whole -o p.h5
expect 0 convert whole/best.h5 model.safetensors
expect 0 convert model.safetensors back.h5
expect 0 eval --data d.h5 --checkpoint whole --scores --format csv
[ "$(head -n 1 out)" = samples,loss,accuracy,samples_per_s,top5,baseline,mae,r2,f1,auc ] || wrong "--scores: its columns"
expect 0 eval --data d.h5 --checkpoint back.h5 --part validation --format csv
[ "$(awk -F, 'NR == 2 { print $2 }' out)" = "$loss" ] || wrong "another loss after conversion"
expect 0 convert --all "whole/$last" all.safetensors
mkdir again && expect 0 convert all.safetensors "again/$last"
expect 0 "${base[@]}" checkpoint_dir=again epochs=4 --resume
said 'resumed from again'
expect 0 data make classification --samples 1500 --features 6 --classes 3 -o c.h5
expect 0 train supervised --data c.h5 epochs=6 batch_size=32 checkpoint_dir=classes normalize=true \
    learning_rate=0.01
said '^ *6 .*[89][0-9]\.[0-9]+%'
expect 0 predict --data c.h5 --checkpoint classes -o pc.h5
expect 0 data make points --samples 400 --features 3 --points 8 -o q.h5
expect 0 train supervised --data q.h5 epochs=2 batch_size=32 hidden=16 checkpoint_dir=points
expect 0 predict --data q.h5 --checkpoint points -o pq.h5
"$python" "$here/train_peer.py" "$loss" || wrong "NumPy disagrees"
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

# ---- a known answer: the noise is all that is left ----
expect 0 data make regression --samples 20000 --features 8 --noise 0.1 --seed 5 -o r.h5
# floor ARGUMENT...: trains, and says whether the validation loss is within a tenth of the noise's
# square. (Of 2000 samples its own error is 3 %.)
floor() {
    expect 0 train supervised --data r.h5 checkpoint_dir=floor cache=ram depth=2 activation=tanh \
        batch_size=128 schedule=cosine -q --format csv "$@"
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "evaluate_loss") at = i }
        END { exit !($at > 0.009 && $at < 0.011) }' out
}
floor epochs=12 learning_rate=0.005 || wrong "the noise floor, 0.01, was not reached"
! floor epochs=1 learning_rate=1e-12 || wrong "the noise floor was reached without learning"

# ---- what does not fit, what is no number ----
big=(train supervised --data d.h5 batch_size=2048 epochs=1)
expect 71 "${big[@]}" checkpoint_dir=none --mem-limit 1MB
said 'a step of 2048 samples needs .* MB may be taken: batch_size=[0-9]+ fits, or auto_accumulate=true'
expect 0 "${big[@]}" checkpoint_dir=split --mem-limit 1MB auto_accumulate=true
said 'cut into [0-9]+ micro-batches'
diverges=("${base[@]}" optimizer=sgd momentum=0.9 learning_rate=1000 -q)
expect 70 "${diverges[@]}" checkpoint_dir=none
said 'step [0-9]+ \(epoch 1, batch [0-9]+\): [a-z0-9. ]+ is not finite'
expect 70 "${diverges[@]}" checkpoint_dir=none on_nan_loss=rollback --log back.jsonl
said 'back to step 0, with half the learning rate'
logs_agree back.jsonl
[ "$(grep -c '"event":"rollback"' back.jsonl)" -eq 3 ] || wrong "the log lacks rollbacks"
expect 0 "${diverges[@]}" checkpoint_dir=skipped on_nan_loss=skip epochs=1

# An allocation that the plan allows and the system refuses: the row says so, the program goes on.
if "$gpurt" devices | grep -qE "^. *$GPURT_DEVICE +.* llvmpipe Mesa (2[5-9]|[3-9])"; then
    # It does not look whether the memory of a device could be mapped (Mesa 25.0, Debian 13).
    echo "skipped: an allocation that fails; this lavapipe crashes or computes for ever then"
else
    code=0
    LD_PRELOAD=$refuse_memory "$gpurt" bench --model large --num-workers 0 --steps 1 \
        --batch-sizes 16,32768,65536 --format jsonl >out 2>err || code=$?
    [ "$code" -eq 0 ] || wrong "an allocation that failed: exit code $code, wanted 0"
    said '"batch":16,.*"status":"ok"'
    said '"batch":32768,.*"status":"OOM","oom_found_by":"allocation"'
    said 'batches from 32768 on do not fit'
    ! grep -q '"batch":65536' out || wrong "the way up went on behind what does not fit"
fi

# ---- a terminal ----
# All of the line that changes is within its 80 columns, and Ctrl-C is answered.
"$python" - "$gpurt" "$GPURT_DEVICE" <<'PY' || wrong "progress and Ctrl-C on a terminal of 80 columns"
import fcntl, os, pty, re, struct, sys, termios
def train(folder, epochs, stop=False):
    """Exit code and output; with `stop` Ctrl-C is pressed when the first steps are seen."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execv(sys.argv[1], ["gpurt", "train", "supervised", "--device", sys.argv[2], "--data", "d.h5",
                               f"checkpoint_dir={folder}", "precision=f16", f"epochs={epochs}", "hidden=16"])
    seen = b""
    try:
        while chunk := os.read(fd, 65536):
            seen += chunk
            if stop and b"/100000 step " in seen:
                os.write(fd, b"\x03")
                stop = False
    except OSError:  # the other end is gone
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()
try:
    code, text = train("tty", 2)
except OSError as e:  # a chroot without /dev/pts
    print(f"train.sh: progress on a terminal is NOT tested, there is no pseudo-terminal: {e}")
    sys.exit(0)
lines = re.findall(r"epoch \d/2 step [^\r\x1b]*", text)
assert code == 0 and lines, text
counts = [(int(n), int(m)) for n, m in re.findall(r"compiling kernels (\d+) of (\d+): \w+", text)]
assert counts or sys.argv[2].startswith("ref"), text
assert [n for n, _ in counts] == list(range(1, len(counts) + 1)) and all(n <= m for n, m in counts), counts
code, text = train("stopped", 100000, stop=True)
assert code == 75 and text.count("Ctrl-C again ends at once") == 1, (code, text[-2000:])
assert all(re.search(r"loss \S+ \S+/s data \d+% scale \S+ [0-9:]+ left$", l) for l in lines), lines
PY

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

# ---- overflow of f16 ----
# Steps are left out and the scale is halved until gradients fit; then it grows again. The log says
# all of it, and the loss of a step that was left out is a loss.
expect 0 "${base[@]}" checkpoint_dir=half epochs=2 precision=f16 loss_scale=4294967296 growth_interval=4 \
    log_interval=1 log=half.jsonl
said 'scale [0-9.e+]+, [0-9]+ skipped'
"$python" - <<'PY' || wrong "the log of a loss scale that is too high at first"
import json
rows = [r for r in map(json.loads, open("half.jsonl")) if r["event"] == "train"]
scale, skipped, grown = 2.0 ** 32, 0, 0
for r in rows:
    assert isinstance(r["loss"], float), r
    if r["skipped"] > skipped:
        assert r["skipped"] == skipped + 1 and r["loss_scale"] == scale / 2, r
    else:
        assert r["loss_scale"] in (scale, 2 * scale), r
        grown += r["loss_scale"] > scale
    scale, skipped = r["loss_scale"], r["skipped"]
assert rows[0]["skipped"] == 1 and skipped > 3 and grown > 0, (skipped, grown)
PY

# ---- autotune ----
expect 0 "${base[@]}" checkpoint_dir=tuned epochs=1 autotune=true autotune_seconds=1
said '^autotune: products of 16x16x16 and 16x16x16 in f32'
said '^autotune +on'
[ -f tuned/best.h5 ] || wrong "no checkpoint after autotune"
# The shapes are the run's: its batch, its widest layer, its type.
expect 0 "${base[@]}" checkpoint_dir=tuned3 epochs=1 batch_size=40 hidden=24 depth=1 precision=f16 \
    autotune=true autotune_seconds=0.2
said '^autotune: products of 40x24x24 and 24x24x40 in f16'
# `gpurt tune` finds the same products in the config; the first of a class stands for it.
printf 'data: d.h5\nbatch_size: 2048\nhidden: [24]\ndepth: 1\nprecision: f32\n' >shapes.yaml
expect 0 tune --device opencl:0 --data shapes.yaml --level 0 --variant tiled --budget 20s --format csv
said '^autotune: products of 2048x24x24 and 24x24x2048 in f32'
grep -q '^gemm,tiled,f32,[a-z]*,2048x24x24,nn,' out || wrong "tune --data leaves out the products of a config"
# A folder for profiles that cannot be had is said, and the run begins all the same.
touch file
XDG_CONFIG_HOME=$PWD/file expect 0 "${base[@]}" checkpoint_dir=tuned4 epochs=1 autotune=true autotune_seconds=1
said 'file/gpurt.*Not a directory|which has no settings'  # nothing to keep, nothing to say
[ -f tuned4/best.h5 ] || wrong "no run without a folder for profiles"
printf 'gpu:\n  cudnn_benchmark: true\n  autotune_seconds: 0.2\n' >tuned.yaml
expect 0 "${base[@]}" --config tuned.yaml checkpoint_dir=tuned2 epochs=1
said '^autotune +on'

# ---- rows that are not finite ----
"$python" -c 'import h5py, shutil; shutil.copy("d.h5", "nan.h5"); h5py.File("nan.h5", "r+")["x"][2345, 3] = float("nan")'
expect 65 "${base[@]}" --data nan.h5 checkpoint_dir=nan1
said 'nan.h5: row 2345 of the inputs is not finite \(column 3 is nan\); on_nan: drop'
[ ! -e nan1 ] || wrong "a file with a NaN was not refused first"
expect 0 "${base[@]}" --data nan.h5 checkpoint_dir=nan1 on_nan=drop epochs=1
said '2999 samples'
expect 65 "${base[@]}" --data nan.h5 checkpoint_dir=nan2 on_nan=late shuffle=false validation_split=0 epochs=1 cache=none
said 'row 2345 of the inputs is not finite'
[ -n "$(ls nan2)" ] || wrong "on_nan=late: no step before the row"

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
expect 0 "${base[@]}" --data cut.h5 epochs=1000000 max_steps=$((step + 400)) checkpoint_dir=cut --resume
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
! grep -q 'errors* generated' err || wrong "a compiler's errors are shown for what gpurt only tried"
said 'empty_cache_freq: memory is planned'
[ -f from-yaml/best.h5 ] || wrong "checkpoint.save_dir was not obeyed"
# ---- a list of layers ----
cat >list.yaml <<'YAML'
data: d.h5
model:
  - linear: 16
  - norm: layer
  - gelu
  - residual: [{linear: 16}, relu, {dropout: 0.2}, {linear: 16}]
  - linear: out
YAML
list=(train supervised --config list.yaml batch_size=64 --format csv)
expect 0 model list.yaml --format csv
grep -q '^3.body.2,dropout,\[16\],\[16\],0,' out || wrong "gpurt model lacks the dropout"
grep -q '^,sequence,\[8\],\[1\],737,' out || wrong "gpurt model: 737 parameters are not counted"
said 'largest batch on .*: [0-9]+, in '
expect 0 "${list[@]}" checkpoint_dir=list epochs=2
said 'model +8 layers, 1 outputs, loss mse: 737 parameters, layers'
# Half of it, then the rest: dropout too comes out the same.
expect 0 "${list[@]}" checkpoint_dir=list-part epochs=1
expect 0 "${list[@]}" checkpoint_dir=list-part epochs=2 --resume
for folder in list list-part; do
    expect 0 convert --all "$folder/$(ls "$folder" | grep step- | sort | tail -n 1)" "$folder.safetensors"
done
cmp -s list.safetensors list-part.safetensors || wrong "a list of layers: a resumed run has other bits"
expect 0 eval --data d.h5 --checkpoint list --format csv
expect 0 predict --data d.h5 --checkpoint list -o list-p.h5
refuse 78 'which is another run' "${list[@]}" checkpoint_dir=list --resume 'model=[{linear: 16}, {linear: out}]'
sed 's/{linear: 16}\]/{linear: 15}]/' list.yaml >list-bad.yaml
refuse 78 'list-bad.yaml:6:5: residual: body gives [15], the input has [16]' train supervised \
    --config list-bad.yaml checkpoint_dir=none
expect 0 "${list[@]}" checkpoint_dir=list-again epochs=2 activation_checkpointing=true
same "list-again/$(ls list | grep step- | tail -n 1)" "list/$(ls list | grep step- | tail -n 1)"
refuse 78 "model:1:2: no layer 'lineaer'; did you mean 'linear'" model --data d.h5 'model=[{lineaer: 4}]'

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
