#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs that end before their last step: by time, by patience, by a target. Each says why, leaves the
# checkpoint of just that step, and goes on to the same bits with --resume. Usage: limits.sh GPURT
# DEVICE

set -uo pipefail
gpurt=$(realpath "${1:?usage: limits.sh GPURT DEVICE}")
device=${2:?usage: limits.sh GPURT DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
export GPURT_DEVICE=$device
python=/usr/bin/python3 # Debian's, which has h5py

# step_of N: the checkpoint after N epochs of 8 steps
step_of() { printf 'step-%012d.h5' $((8 * $1)); }

"$python" - <<'PY' || wrong "no data"
import h5py, numpy as np
rng = np.random.default_rng(7)
x = rng.normal(size=(240, 5)).astype("f4")
with h5py.File("gusts.h5", "w") as f:
    f["wind"], f["lift"] = x, np.tanh(x @ rng.normal(size=(5, 2))).astype("f4")
    f["side"] = (x[:, 0] + 0.3 * x[:, 1] > 0).astype("i8")
PY
sup=(train supervised --data gusts.h5 inputs=wind targets=lift hidden=16 depth=1 batch_size=27
    validation_split=0.1)

# ---- patience ----
# No improvement counts but the first, so four epochs are all; the file is that of a run of four
# epochs.
never=("${sup[@]}" min_delta=1e6)
expect 0 "${never[@]}" epochs=4 patience=1000 checkpoint_dir=four --log four.jsonl
told 'ended by epochs: .*; the best loss is [0-9][0-9.e-]*, of epoch 4'
if host_part; then
    # The third epoch has four steps of eight, and is the best.
    expect 0 "${sup[@]}" epochs=5 max_steps=20 checkpoint_dir=part
    told 'ended by max_steps: .*; the best loss is [0-9][0-9.e-]*, of epoch 3$'
fi
ended epochs four.jsonl
for cache in none device; do
    expect 0 "${never[@]}" epochs=1000 early_stopping_patience=3 cache="$cache" checkpoint_dir="stall-$cache" \
        --log "stall-$cache.jsonl"
    told 'ended by patience: '
    ended patience "stall-$cache.jsonl"
    same "stall-$cache/$(step_of 4)" "four/$(step_of 4)"
    same "stall-$cache/best.h5" four/best.h5
    [ ! -e "stall-$cache/$(step_of 5)" ] || wrong "cache=$cache: patience=3 went on"
done
# What was waited is in the checkpoint; so is the end.
expect 0 "${never[@]}" epochs=3 patience=1000 checkpoint_dir=rest
expect 0 "${never[@]}" epochs=1000 patience=3 checkpoint_dir=rest --resume
same "rest/$(step_of 4)" "four/$(step_of 4)"
[ ! -e "rest/$(step_of 5)" ] || wrong "a resumed run forgot how long it had waited"
expect 0 "${never[@]}" epochs=1000 patience=3 checkpoint_dir=rest --resume
told 'nothing to do at step 32 of 8000: .*\(patience\)'
expect 0 "${never[@]}" epochs=1000 patience=5 checkpoint_dir=rest --resume
[ -e "rest/$(step_of 6)" ] || wrong "a larger patience does not go on"
[ ! -e "rest/$(step_of 7)" ] || wrong "a larger patience was not obeyed"
# Without min_delta every improvement counts: an oracle of its own reads the losses.
expect 0 "${sup[@]}" epochs=60 learning_rate=0.08 checkpoint_dir=free --log free.jsonl
expect 0 "${sup[@]}" epochs=60 learning_rate=0.08 patience=2 checkpoint_dir=two --log two.jsonl
"$python" - <<'PY' || wrong "patience=2 ended at another epoch than its losses say"
import json
def losses(path):
    return [r["loss"] for r in map(json.loads, open(path)) if r["event"] == "evaluate"]
free, two = losses("free.jsonl"), losses("two.jsonl")
best, last = min(free[:1]), 0
for i, loss in enumerate(free):
    if loss < best or i == 0:
        best, last = loss, i
    if i - last == 2:
        break
assert i + 1 < len(free), "the losses never stall: nothing is tested"
assert two == free[:i + 1], (len(two), i + 1)
PY
ended patience two.jsonl

# ---- time ----
refuse 78 'max_time wants a time such as 90, 90s' "${sup[@]}" max_time=soon
for cache in none device; do
    timed=("${sup[@]}" cache="$cache" checkpoint_dir="timed-$cache")
    expect 0 "${timed[@]}" epochs=1000000 max_time=0.3s --log "timed-$cache.jsonl"
    told 'ended by max_time: the time is up'
    ended max_time "timed-$cache.jsonl"
    expect 0 "${timed[@]}" epochs=1000000 max_time=0.3 --resume
    told 'nothing to do .*\(max_time\)'
    # Without the limit it goes on, to the bits of a run that never had one.
    step=$(tail -n 1 "timed-$cache.jsonl" | sed 's/.*"step":\([0-9]*\).*/\1/')
    more=$((step + 21))
    expect 0 "${timed[@]}" max_steps=$more --resume
    expect 0 "${sup[@]}" cache="$cache" checkpoint_dir="untimed-$cache" max_steps=$more
    same "timed-$cache/$(printf 'step-%012d.h5' $more)" "untimed-$cache/$(printf 'step-%012d.h5' $more)"
done
# The time of earlier processes counts: the checkpoint has more of it than this process spent.
expect 0 "${sup[@]}" epochs=1000000 max_time=1s checkpoint_dir=spent
newest='import glob, h5py; spent = h5py.File(sorted(glob.glob("spent/step-*.h5"))[-1]).attrs["seconds"]'
limit=$("$python" -c "$newest; print(round(spent + 0.5, 3))") # on a busy machine the last step takes what it takes
expect 0 "${sup[@]}" epochs=1000000 max_time="${limit}s" checkpoint_dir=spent --resume --log spent.jsonl
ended max_time spent.jsonl
"$python" - "$newest" "$limit" <<'PY' || wrong "the time of an earlier process was forgotten"
import json, sys
exec(sys.argv[1])
own = [r["seconds"] for r in map(json.loads, open("spent.jsonl")) if r["event"] == "end"][-1]
assert spent >= float(sys.argv[2]) and spent > own, (spent, own)
# What is not limited is not kept: files of runs without limits are what they were.
free = h5py.File("free/best.h5").attrs
assert not {"seconds", "patience_waited", "patience_score", "best_accuracy"} & set(free), list(free)
PY

host_part || exit "$failed"

# ---- targets ----
"$python" - >wanted <<'PY'
import json
losses = [r["loss"] for r in map(json.loads, open("free.jsonl")) if r["event"] == "evaluate"]
print(repr(losses[4] * (1 + 1e-6)), 1 + next(i for i, l in enumerate(losses) if l <= losses[4] * (1 + 1e-6)))
PY
read -r target epoch <wanted
expect 0 "${sup[@]}" epochs=60 learning_rate=0.08 target_loss="$target" checkpoint_dir=target --log target.jsonl
told 'ended by until: '
ended until target.jsonl
[ "$(tail -n 1 target.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')" -eq $((8 * epoch)) ] ||
    wrong "target_loss=$target was not met at epoch $epoch"
same "target/$(step_of "$epoch")" <(
    "$gpurt" "${sup[@]}" epochs="$epoch" learning_rate=0.08 checkpoint_dir=exact -q >/dev/null 2>&1
    cat "exact/$(step_of "$epoch")"
)
expect 0 "${sup[@]}" epochs=60 learning_rate=0.08 target_loss="$target" checkpoint_dir=target --resume
told 'nothing to do .*\(until\)'
class=(train supervised --data gusts.h5 inputs=wind targets=side hidden=16 depth=1 batch_size=27 learning_rate=0.05)
expect 0 "${class[@]}" epochs=500 target_accuracy=0.9 checkpoint_dir=sides --log sides.jsonl
ended until sides.jsonl
"$python" - <<'PY' || wrong "target_accuracy ended elsewhere"
import json
shares = [r["accuracy"] for r in map(json.loads, open("sides.jsonl")) if r["event"] == "evaluate"]
assert shares[-1] >= 0.9 and all(s < 0.9 for s in shares[:-1]), shares
PY
refuse 78 'no accuracy without classes' "${sup[@]}" target_accuracy=0.9 checkpoint_dir=none -q
refuse 78 'no accuracy without a validation_split' "${class[@]}" validation_split=0 target_accuracy=0.9 checkpoint_dir=none -q

# ---- other ends have their word too ----
expect 0 "${sup[@]}" max_steps=3 checkpoint_dir=three --log three.jsonl
ended max_steps three.jsonl
expect 70 "${sup[@]}" optimizer=sgd learning_rate=1000 checkpoint_dir=nan --log nan.jsonl
ended nonfinite nan.jsonl

logs_agree four.jsonl stall-none.jsonl stall-device.jsonl free.jsonl two.jsonl target.jsonl sides.jsonl \
    timed-none.jsonl timed-device.jsonl spent.jsonl three.jsonl nan.jsonl

# ---- evolution strategies ----
es=(train es env=cartpole policy=linear num_envs=4 num_dirs=4 episode_length=30)
# Patience counts trials: one every two iterations, of which none improves by 1e6 but the first.
still=("${es[@]}" min_delta=1e6 evaluate_every=2)
expect 0 "${still[@]}" iterations=8 patience=1000 --checkpoint eight.h5
expect 0 "${still[@]}" iterations=1000 patience=3 --checkpoint still.h5 --log still.jsonl
told 'ended by patience: '
ended patience still.jsonl
same still.h5 eight.h5
for first in 1 3 6 7; do
    expect 0 "${still[@]}" iterations="$first" patience=1000 --checkpoint "still$first.h5"
    expect 0 "${still[@]}" iterations=1000 patience=3 --resume "still$first.h5"
    same "still$first.h5" eight.h5
done
expect 0 "${still[@]}" iterations=1000 patience=3 --resume still.h5
told 'nothing to do at step 8 of 1000: .*\(patience\)'
# A trial at the end that patience does not count is not missing afterwards.
expect 0 "${still[@]}" iterations=7 patience=1000 --checkpoint seven.h5
expect 0 "${still[@]}" iterations=7 patience=1000 --resume seven.h5
told 'nothing to do at step 7 of 7: .*\(iterations\)'
# A trial that was due and did not come, as after a signal, comes first when the run goes on: it is
# the first that counts.
expect 0 "${es[@]}" min_delta=1e6 evaluate_every=1000 iterations=6 patience=1000 --checkpoint due.h5
expect 0 "${still[@]}" iterations=1000 patience=3 --resume due.h5 --log due.jsonl
tail -n 1 due.jsonl | grep -q '"step":12,' || wrong "a trial that was due was left out: $(tail -n 1 due.jsonl)"
# Targets: the share of good steps, and the return, which may be below 0.
expect 0 "${es[@]}" iterations=50 evaluate_every=1 target_return=0 --checkpoint far.h5 --log far.jsonl
ended until far.jsonl
tail -n 1 far.jsonl | grep -q '"step":1,' || wrong "target_return=0 of cartpole is not reached at once"
expect 0 train es env=pendulum policy=linear num_envs=4 num_dirs=4 episode_length=30 iterations=3 \
    target_return=-1 --checkpoint never.h5 --log never.jsonl
ended iterations never.jsonl
expect 0 "${es[@]}" iterations=50 until=0.01 --checkpoint share.h5 --log share.jsonl
ended until share.jsonl
# Steps are iterations.
expect 0 "${es[@]}" max_steps=3 --checkpoint steps.h5 --log steps.jsonl
ended max_steps steps.jsonl
expect 0 "${es[@]}" iterations=3 --checkpoint three.h5
same steps.h5 three.h5
expect 0 "${es[@]}" iterations=5 max_steps=3 --checkpoint steps5.h5
same steps5.h5 three.h5
expect 0 "${es[@]}" iterations=3 max_steps=5 --checkpoint steps35.h5
same steps35.h5 three.h5
expect 0 "${es[@]}" max_steps=3 --resume steps.h5
told 'nothing to do at step 3 of 3: .*\(max_steps\)'
logs_agree still.jsonl due.jsonl far.jsonl never.jsonl share.jsonl steps.jsonl
# Time, and on to the same bits without it.
expect 0 "${es[@]}" iterations=4000000 max_time=0.3s --checkpoint timed.h5 --log timed.jsonl
told 'ended by max_time: the time is up'
ended max_time timed.jsonl
expect 0 "${es[@]}" iterations=4000000 max_time=0.3s --resume timed.h5
told 'nothing to do .*\(max_time\)'
step=$(tail -n 1 timed.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')
expect 0 "${es[@]}" iterations=$((step + 3)) --resume timed.h5
expect 0 "${es[@]}" iterations=$((step + 3)) --checkpoint untimed.h5
same timed.h5 untimed.h5

# ---- a dry run ----
# 240 samples, 24 of them kept: 216 in batches of 27 are 8 steps an epoch. Nothing is left, and what
# was there stays.
# dry_times STEPS: the times of an epoch and of all steps are those of the steps that were made.
dry_times() {
    "$python" - "$tmp/err" "$1" <<'EOF' || wrong "the times of a dry run are not those of its steps"
import re, sys
number, steps_of_all = r"([\d.e-]+) s", int(sys.argv[2])
steps, seconds, epoch, whole, clock = re.search(rf"dry run     (\d+) steps in {number}, .*: an epoch of 8 takes {number}, "
                                                rf"all {steps_of_all} take (?:{number}|([\d:]+))\n", open(sys.argv[1]).read()).groups()
if clock:
    whole = sum(int(part) * 60**i for i, part in enumerate(reversed(clock.split(":"))))
each = float(seconds) / int(steps)
assert float(seconds) > 0.5 and abs(float(epoch) / (8 * each) - 1) < 0.02 and abs(float(whole) / (steps_of_all * each) - 1) < 0.02
EOF
}
before=$(ls -A . "$PWD/four" | cksum)
expect 0 "${sup[@]}" epochs=100000 --dry-run --log dry.jsonl checkpoint_dir=four
dry_times 800000
told 'memory      [0-9.]+ [KMG]iB taken on the device'
told 'checkpoints four, the newest [0-9]+ and the best; a dry run writes none'
! grep -q /tmp/gpurt-dry "$tmp/err" || wrong "a dry run names its own folder"
[ "$before" = "$(ls -A . "$PWD/four" | cksum)" ] || wrong "a dry run left something: $(ls -A . four)"
# max_steps ends a run before its epochs do.
expect 0 "${sup[@]}" epochs=100000 max_steps=400000 --dry-run
dry_times 400000
refuse 64 'leave out --resume' "${sup[@]}" --dry-run --resume checkpoint_dir=four

# ---- a schedule that would go up ----
refuse 78 'min_learning_rate 0.1 is above the learning rate, 0.001' "${sup[@]}" schedule=cosine learning_rate=0.001 \
    min_learning_rate=0.1

exit "$failed"
