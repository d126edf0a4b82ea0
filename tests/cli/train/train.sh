#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Supervised training from end to end on one device: data, training, interruptions, the same bits
# after --resume, evaluation, prediction and conversion against NumPy, and what a device does not
# fit or cannot compute. What the host alone decides is in train_host.sh.
# Usage: tests/cli/train/train.sh GPURT JSON_CHECK REFUSE_MEMORY DEVICE

set -uo pipefail
gpurt=$(realpath "$1")
json=$(realpath "$2")
refuse_memory=$(realpath "$3") # preloaded: a system without much memory
device=$4
# shellcheck source-path=SCRIPTDIR source=train_kit.sh
. "$(dirname "${BASH_SOURCE[0]}")/train_kit.sh"

# ---- an undisturbed run ----
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
interrupt INT 75 part-INT "${base[@]}" cache=none
# While kernels are compiled for the first time: the first that is kept is a sign that more follow.
kept() { find "$tmp/kernels" -type f -path '*gpurt*' | grep -q .; }
mkdir kernels pocl
XDG_CACHE_HOME=$tmp/kernels POCL_CACHE_DIR=$tmp/pocl begin "${base[@]}" precision=f16 normalize=true hidden=40 \
    epochs=1000000 checkpoint_dir=unbuilt
wait_for "a first kernel" kept
stop TERM 75 "train while kernels are compiled"
said 'before the first step|--resume'
! grep -q 'errors* generated' err || wrong "a compiler's errors are shown for what gpurt only tried"
# With the rows on the device steps are queued ahead of what is reported.
interrupt INT 75 part-long "${base[@]}" cache=device checkpoint_interval=0
# Killed: the newest checkpoint may be some steps old.
interrupt KILL 137 part-KILL "${base[@]}" cache=none checkpoint_interval=10

# ---- trained models ----
expect 0 eval --data d.h5 --checkpoint whole --part validation --format csv
loss=$(awk -F, 'NR == 2 { print $2 }' out)
expect 0 predict --data d.h5 --checkpoint whole -o p.h5
expect 0 convert whole/best.h5 model.safetensors
expect 0 convert model.safetensors back.h5
expect 0 eval --data d.h5 --checkpoint back.h5 --part validation --format csv
[ "$(awk -F, 'NR == 2 { print $2 }' out)" = "$loss" ] || wrong "another loss after conversion"
expect 0 data make classification --samples 1500 --features 6 --classes 3 -o c.h5
expect 0 train supervised --data c.h5 epochs=6 batch_size=32 hidden=32 checkpoint_dir=classes \
    normalize=true learning_rate=0.01
said '^ *6 .*[89][0-9]\.[0-9]+%'
expect 0 predict --data c.h5 --checkpoint classes -o pc.h5
expect 0 data make points --samples 400 --features 3 --points 8 -o q.h5
expect 0 train supervised --data q.h5 epochs=2 batch_size=32 hidden=16 checkpoint_dir=points
expect 0 predict --data q.h5 --checkpoint points -o pq.h5
"$python" "$here/train_peer.py" "$loss" || wrong "NumPy disagrees"

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
floor epochs=6 learning_rate=0.01 || wrong "the noise floor, 0.01, was not reached"
! floor max_steps=2 learning_rate=1e-12 || wrong "the noise floor was reached without learning"

# ---- what does not fit, what is no number ----
big=(train supervised --data d.h5 batch_size=2048 epochs=1)
expect 71 "${big[@]}" checkpoint_dir=none --mem-limit 1MB
said 'a step of 2048 samples needs .* MB may be taken: batch_size=[0-9]+ fits, or auto_accumulate=true'
expect 0 "${big[@]}" checkpoint_dir=split --mem-limit 1MB auto_accumulate=true
said 'cut into [0-9]+ micro-batches'
diverges=("${base[@]}" optimizer=sgd momentum=0.9 learning_rate=1000 -q)
# What is done then, the host decides.
not_finite() { said 'step [0-9]+ \(epoch 1, batch [0-9]+\): [a-z0-9. ]+ is not finite'; }
if [[ $device == opencl* ]]; then
    expect 70 "${diverges[@]}" checkpoint_dir=none
    not_finite
fi
expect 70 "${diverges[@]}" checkpoint_dir=none on_nan_loss=rollback --log back.jsonl
not_finite
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

# ---- overflow of f16 ----
# Steps are left out and the scale is halved until gradients fit; then it grows again. The log says
# all of it, and the loss of a step that was left out is a loss.
expect 0 "${base[@]}" checkpoint_dir=half epochs=1 precision=f16 loss_scale=4294967296 growth_interval=4 \
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
expect 0 "${base[@]}" checkpoint_dir=tuned epochs=1 autotune=true autotune_seconds=0.2
said '^autotune: products of 16x16x16 and 16x16x16 in f32'
said '^autotune +on'
[ -f tuned/best.h5 ] || wrong "no checkpoint after autotune"
# On one driver is enough: what is searched for, and where it is kept, the host decides.
if [[ $device == opencl* ]]; then
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
    XDG_CONFIG_HOME=$PWD/file expect 0 "${base[@]}" checkpoint_dir=tuned4 epochs=1 autotune=true autotune_seconds=0.2
    said 'file/gpurt.*Not a directory|which has no settings'  # nothing to keep, nothing to say
    [ -f tuned4/best.h5 ] || wrong "no run without a folder for profiles"
    printf 'gpu:\n  cudnn_benchmark: true\n  autotune_seconds: 0.2\n' >tuned.yaml
    expect 0 "${base[@]}" --config tuned.yaml checkpoint_dir=tuned2 epochs=1
    said '^autotune +on'
fi

# ---- a list of layers ----
expect 0 "${list[@]}" checkpoint_dir=list epochs=2
said 'model +8 layers, 1 outputs, loss mse: 737 parameters, layers'
# Half of it, then the rest: dropout too comes out the same.
expect 0 "${list[@]}" checkpoint_dir=list-part epochs=1
expect 0 "${list[@]}" checkpoint_dir=list-part epochs=2 --resume
for folder in list list-part; do
    expect 0 convert --all "$folder/$(ls "$folder" | grep step- | sort | tail -n 1)" "$folder.safetensors"
done
cmp -s list.safetensors list-part.safetensors || wrong "a list of layers: a resumed run has other bits"
expect 0 "${list[@]}" checkpoint_dir=list-again epochs=2 activation_checkpointing=true
same "list-again/$(ls list | grep step- | tail -n 1)" "list/$(ls list | grep step- | tail -n 1)"

exit "$failed"
