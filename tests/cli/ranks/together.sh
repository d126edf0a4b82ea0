#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Exchanges within a step, by a real Open MPI. NT-Xent tells a sample apart from those of all ranks:
# the first step is that of NumPy over all samples at once, and 1, 2 and 4 ranks come to the same
# bits on each kind of device; a rank that is killed costs nothing. With sync_batch_norm the norms
# are over the samples of all ranks: also as in NumPy, and all hold the same statistics. Usage:
# together.sh GPURT

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "${1:?usage: together.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$here/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=ranks.sh
. "$here/ranks.sh"
cd "$tmp" || exit 1
python=/usr/bin/python3 # Debian's, which has h5py

# ---- the first step ----
# 54 rows: the last step of an epoch has 6 of 16, so that of four micro-batches one is not full and
# two are empty.
expect 0 data make regression --samples 54 --features 4 --seed 3 -o d.h5
expect 0 data order --data d.h5 --epoch 1 --format csv -o rows.csv batch_size=16 drop_last=false seed=3 validation_split=0
cat >net.yaml <<'YAML'
model: [{linear: 7}, tanh, {linear: 6}]
projection: [6, 5]
batch_size: 16
drop_last: false
seed: 3
knn_every: 0
num_workers: 1
YAML
layers="0 tanh 2 projection.0 relu projection.2"
pairs=(train simclr --data d.h5 --config net.yaml --device ref)
one=(max_steps=1 optimizer=sgd learning_rate=0.5 momentum=0 schedule=constant weight_decay=0)
# by_numpy, numpy DIR LAYERS BATCH: the step that DIR and DIR.jsonl tell of.
by_numpy() {
    "$python" "$here/together.py" d.h5 rows.csv first/step-000000000000.h5 "$1/step-000000000001.h5" "$1.jsonl" 0.5 \
        "$2" "$3" >"$tmp/out" 2>"$tmp/err"
}
numpy() { by_numpy "$@" || wrong "$1 is not what NumPy has"; }
expect 0 "${pairs[@]}" epochs=0 checkpoint_dir=first
for count in 2 4; do
    ranks 0 "$count" "${pairs[@]}" "${one[@]}" checkpoint_dir=n$count --log n$count.jsonl
    told 'told apart from the 31 others of its batch, in all micro-batches of all ranks'
    numpy n$count "$layers" 16
done
# Two batches make a step: each is told apart by itself, or all of them are.
two=("${one[@]}" batch_size=8 accumulate=2)
ranks 0 2 "${pairs[@]}" "${two[@]}" checkpoint_dir=apart --log apart.jsonl
told 'from the 15 others'
numpy apart "$layers" 8
ranks 0 2 "${pairs[@]}" "${two[@]}" accumulate_exact=true checkpoint_dir=exact --log exact.jsonl
told 'from the 31 others'
numpy exact "$layers" 16
# A micro-batch of two batches.
expect 0 "${pairs[@]}" "${one[@]}" batch_size=4 accumulate=4 micro_batches=2 checkpoint_dir=inner --log inner.jsonl
numpy inner "$layers" 4
refuse 78 'a micro-batch of 6 samples and a batch of 4' "${pairs[@]}" batch_size=4 accumulate=3 micro_batches=2 checkpoint_dir=u

# ---- norms over all ranks ----
cat >sync.yaml <<'YAML'
network: [{linear: 7}, {norm: batch}, relu, {linear: 6}, {norm: batch}, tanh, {linear: 1}]
batch_size: 16
drop_last: true
validation_split: 0
seed: 3
num_workers: 1
YAML
sync=(train supervised --data d.h5 --config sync.yaml)
layers="0 1 relu 3 4 tanh 6"
rm -r first
expect 0 "${sync[@]}" --device ref epochs=0 checkpoint_dir=first
expect 0 "${sync[@]}" --device ref "${one[@]}" checkpoint_dir=s1 --log s1.jsonl
numpy s1 "$layers" 16
for count in 2 4; do
    ranks 0 "$count" "${sync[@]}" --device ref "${one[@]}" sync_batch_norm=true checkpoint_dir=s$count --log s$count.jsonl
    numpy s$count "$layers" 16
done
# Without it each rank has statistics of its own.
ranks 0 2 "${sync[@]}" --device ref "${one[@]}" checkpoint_dir=s0 --log s0.jsonl
! by_numpy s0 "$layers" 16 || wrong "norms are over all ranks, and nobody asked for it"
patience 0
ranks 78 2 "${sync[@]}" --device ref sync_batch_norm=true drop_last=false checkpoint_dir=u
told 'the last step of an epoch has 6 of 16: drop_last=true leaves it out'
patience 2
# A network without such norms may have a short step.
echo 'network: [{linear: 7}, relu, {linear: 1}]' >plain.yaml
ranks 0 2 train supervised --data d.h5 --config plain.yaml --device ref batch_size=16 drop_last=false sync_batch_norm=true \
    epochs=1 checkpoint_dir=short
# One rank takes no notice, and says so.
expect 0 "${sync[@]}" --device ref "${one[@]}" sync_batch_norm=true checkpoint_dir=alone
told '^sync_batch_norm has no effect: there is one rank'
same s1/step-000000000001.h5 alone/step-000000000001.h5
# Other kinds of devices, and both at once: weights are compared at step 0, and all that is
# exchanged is the same on all. Pieces of micro-batches meet piece by piece.
for device in opencl vulkan opencl,ref; do
    ranks 0 2 "${sync[@]}" --device $device "${one[@]}" sync_batch_norm=true checkpoint_dir=k-$device --log k-$device.jsonl
    numpy k-$device "$layers" 16
done

# ---- the same bits ----
# Images with random views, dropout, and two pieces of each micro-batch.
expect 0 data make shapes --samples 54 --classes 2 --pixels 8 -o i.h5
cat >cnn.yaml <<'YAML'
model: [{conv: 4}, relu, {dropout: 0.2}, {pool: mean}]
projection: [8, 4]
batch_size: 16
drop_last: false
seed: 2
num_workers: 1
YAML
cnn=(train simclr --data i.h5 --config cnn.yaml epochs=1 micro_batches=4)
# Each rank has its own part of the samples that nearest neighbours are tried with.
near() { grep -oE '"knn":[0-9.]+' "$1"; }
for device in ref opencl vulkan; do
    counts=(2)
    [ $device = ref ] && counts=(2 4)
    expect 0 "${cnn[@]}" --device $device checkpoint_dir=$device-1 --log $device-1.jsonl
    for count in "${counts[@]}"; do
        ranks 0 "$count" "${cnn[@]}" --device $device checkpoint_dir=$device-$count --log $device-$count.jsonl
        same $device-1/step-000000000004.h5 $device-$count/step-000000000004.h5
        [ "$(near $device-1.jsonl)" = "$(near $device-$count.jsonl)" ] || wrong "$device: other neighbours by $count ranks"
    done
    [ -n "$(near $device-1.jsonl)" ] || wrong "no neighbours in the log"
done
# Asked to stop in the trial, which would take minutes here: it is given up behind the batch that is
# on its way, and what was learnt is saved.
expect 0 data make shapes --samples 3000 --classes 2 --pixels 24 -o many.h5
sed 's/^model:.*/model: [{conv: 16}, relu, {conv: 16}, relu, {pool: mean}]/' cnn.yaml >long.yaml
long=(train simclr --data many.h5 --config long.yaml max_steps=2 log_interval=1 --device ref
    checkpoint_dir=owed --log owed.jsonl)
begin_ranks 2 "${long[@]}"
wait_for "the last step" grep -q '"event":"train".*"step":2,' owed.jsonl
stop USR1 75 "two ranks in the trial by nearest neighbours"
told 'interrupted; the checkpoint is in owed'
ended signal owed.jsonl
grep -q '"knn"' owed.jsonl && wrong "a trial that was given up is in the log"
[ -e owed/step-000000000002.h5 ] || wrong "no checkpoint of the step before the trial"
ranks 0 2 "${cnn[@]}" --device ref max_steps=1 sync_batch_norm=true drop_last=true checkpoint_dir=u
told 'norms over a batch are over the same micro-batch of every rank'
# Norms keep their statistics once for each micro-batch, however often it goes forward.
norm=(train simclr --data i.h5 --config norm.yaml --device ref micro_batches=4 knn_every=0 batch_size=8 accumulate=2
    accumulate_exact=true)
sed 's/relu, {drop/{norm: batch}, relu, {drop/' cnn.yaml >norm.yaml
expect 0 "${norm[@]}" epochs=12 checkpoint_dir=whole
expect 0 eval knn --data i.h5 --checkpoint whole --device ref

# ---- a rank is gone ----
# killed RANKS ARGUMENT...: one of them is, in the middle; what it had learnt is in the folder cut.
killed() {
    local count=$1 victim begun
    shift
    rm -rf cut cut.jsonl
    begin_ranks "$count" "$@" log_interval=2 checkpoint_dir=cut --log cut.jsonl
    wait_for "row 6" rows cut.jsonl 6
    victim=$(rank_pid 1)
    begun=$SECONDS
    kill -KILL "$victim"
    ends "137 75" "rank 1 was killed"
    [ $((SECONDS - begun)) -le 10 ] || wrong "$((SECONDS - begun)) s to the end"
    told "^gpurt: error: rank 1 \(ref:0 .*, process $victim on .*\) has ended"
    told "interrupted; the checkpoint is in cut"
}
killed 4 "${norm[@]}" epochs=12
ranks 0 2 "${norm[@]/micro_batches=4/--resume}" epochs=12 checkpoint_dir=cut
told 'in 4 micro-batches'
same whole/step-000000000048.h5 cut/step-000000000048.h5
# Norms over all ranks: what they kept of a step that was not made is forgotten.
all=("${sync[@]}" --device ref sync_batch_norm=true epochs=60)
ranks 0 2 "${all[@]}" checkpoint_dir=synced
killed 2 "${all[@]}"
ranks 0 2 "${all[@]}" checkpoint_dir=cut --resume
same synced/step-000000000180.h5 cut/step-000000000180.h5
exit "$failed"
