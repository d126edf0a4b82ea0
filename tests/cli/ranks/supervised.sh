#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt train supervised` and `classify` as several ranks, by a real Open MPI: fixed micro-batches
# give the checkpoint of one rank to the bit, on each kind of device; the loss is that of one batch
# without any of it; ranks of several kinds agree; unequal data and settings are refused; a rank
# that is killed costs nothing. Usage: supervised.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: supervised.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/ranks.sh"
cd "$tmp" || exit 1

# 630 rows to train on: the last step of an epoch has 54 of 64, so one micro-batch of 8 is not full
# and one is empty.
expect 0 data make regression --samples 700 --features 8 --seed 3 -o d.h5
train=(train supervised --data d.h5 batch_size=64 hidden=16 depth=2 epochs=2 seed=3 num_workers=1)
# loss LOG: training's and validation's of the last epoch.
loss() {
    sed -nE 's/.*"event":"evaluate".*"loss":([0-9.e-]+).*"train_loss":([0-9.e-]+).*/\1 \2/p' "$1" | tail -n 1
}
# near LOG LOG: both losses, to four digits.
near() {
    paste <(loss "$1") <(loss "$2") | awk 'function off(a, b) { return (a - b) ^ 2 > (1e-4 * b) ^ 2 }
        NF != 4 || off($1, $3) || off($2, $4) { exit 1 }' || wrong "losses of $1 and $2: $(loss "$1"), $(loss "$2")"
}

# ---- the same bits ----
expect 0 "${train[@]}" --device ref checkpoint_dir=plain --log plain.jsonl
expect 0 "${train[@]}" --device ref micro_batches=8 checkpoint_dir=ref1 --log ref1.jsonl
near plain.jsonl ref1.jsonl
# One rank whose steps are those of ranks, as `bench scaling` measures them: one micro-batch.
GPURT_AS_RANK=1 expect 0 "${train[@]}" --device ref checkpoint_dir=as --log as.jsonl
told '^rank 0 +ref:0 '
told 'effective 64, in 1 micro-batch'
near plain.jsonl as.jsonl
for count in 2 4; do
    ranks 0 "$count" "${train[@]}" --device ref micro_batches=8 checkpoint_dir=ref$count --log ref$count.jsonl
    same ref1/best.h5 ref$count/best.h5
    same ref1/step-000000000020.h5 ref$count/step-000000000020.h5
done
logs_agree ref2.jsonl
# By messages, as between machines, and not through shared memory.
for count in 2 4; do
    GPURT_MESSAGES=1 ranks 0 "$count" "${train[@]}" --device ref micro_batches=8 checkpoint_dir=told$count
    same ref1/best.h5 told$count/best.h5
done
told 'effective 64, in 8 micro-batches'
# Not as many on each, as listed or by speed: three ranks, whose number is no power of two, as well.
for dealt in 5,3 1,7 3,2,3 1,1,2,4; do
    commas=${dealt//[^,]/}
    ranks 0 $((${#commas} + 1)) "${train[@]}" --device ref micro_batches=8 rank_shares=$dealt checkpoint_dir=dealt-$dealt
    same ref1/best.h5 dealt-$dealt/best.h5
    same ref1/step-000000000020.h5 dealt-$dealt/step-000000000020.h5
done
GPURT_MESSAGES=1 ranks 0 3 "${train[@]}" --device ref rank_shares=3,4,1 checkpoint_dir=dealt-told
same ref1/best.h5 dealt-told/best.h5
ranks 0 2 "${train[@]}" --device ref rank_shares=speed checkpoint_dir=quick
told 'micro-batches of each rank, by its speed: ([17] [17]|[26] [26]|[35] [35]|4 4)$'
same ref1/best.h5 quick/best.h5
ranks 0 2 "${train[@]/batch_size=64/per_device_train_batch_size=32}" --device ref checkpoint_dir=each
told 'effective 64, in 2 micro-batches'
[ "$(grep -c '"event":"end"' ref4.jsonl)" -eq 1 ] || wrong "not the first rank alone has a log"
# Drivers: what a kind of device computes, it computes on every rank. Dropout is drawn by the number
# of the micro-batch, running statistics are the mean of those of the micro-batches, gradients are
# accumulated on the device besides.
cat >net.yaml <<'YAML'
network: [{linear: 16}, {norm: batch}, relu, {dropout: 0.2}, {linear: 1}]
YAML
# The best has the loss of the validation, of which each rank evaluates its parts: 70 rows in
# batches of 16, so that the last of four parts is not full.
net=(train supervised --data d.h5 --config net.yaml micro_batches=4 accumulate=4 batch_size=16 epochs=1 seed=3)
# How many ranks there are, the host alone knows: drivers have one part of three micro-batches and
# one of a single one.
agrees() { # NAME WORD...: with the run of one rank
    local name=$1
    shift
    ranks 0 "$@" --device $device checkpoint_dir=$name --log $name.jsonl
    same $device-1/best.h5 $name/best.h5
    [ "$(loss $device-1.jsonl)" = "$(loss $name.jsonl)" ] || wrong "another loss of $name"
}
for device in ref opencl vulkan; do
    expect 0 "${net[@]}" --device $device checkpoint_dir=$device-1 --log $device-1.jsonl
    agrees $device-dealt 2 "${net[@]}" rank_shares=3,1
done
device=ref
for count in 2 4; do agrees ref-$count $count "${net[@]}"; done
[ -n "$(loss ref-4.jsonl)" ] || wrong "no loss of a validation"
# Of several kinds: all hold the same weights, or the run would have ended at step 100.
ranks 0 2 "${train[@]}" --device opencl,ref epochs=10 micro_batches=2 checkpoint_dir=mixed --log mixed.jsonl
expect 0 "${train[@]}" --device ref epochs=10 checkpoint_dir=single --log single.jsonl
near mixed.jsonl single.jsonl

printf 'device: [ref, ref]\nmicro_batches: 8\n' >two.yaml
expect 0 "${train[@]}" --config two.yaml checkpoint_dir=listed
same ref1/best.h5 listed/best.h5

# ---- classes of images ----
expect 0 data make shapes --samples 60 --classes 2 --pixels 8 -o i.h5
cnn=(train classify --data i.h5 --epochs 1 batch_size=16 seed=2 micro_batches=2 --device ref)
cat >cnn.yaml <<'YAML'
network: [{conv: 4}, {norm: batch}, relu, {pool: mean}, {linear: 2}]
YAML
expect 0 "${cnn[@]}" --config cnn.yaml checkpoint_dir=c1 --log c1.jsonl
ranks 0 2 "${cnn[@]}" --config cnn.yaml checkpoint_dir=c2 --log c2.jsonl
same c1/best.h5 c2/best.h5
judged() { grep '"event":"evaluate"' "$1" | grep -oE '"(loss|accuracy)":[^,}]*'; }
[ "$(judged c1.jsonl)" = "$(judged c2.jsonl)" ] || wrong "another loss or accuracy by two ranks"
[ "$(judged c1.jsonl | wc -l)" -eq 2 ] || wrong "no loss and accuracy of a validation"
# The mean by class weights is over the targets of a whole step, whoever has them.
weighted=("${cnn[@]}" --config cnn.yaml class_weights=1,3)
for device in ref opencl vulkan; do
    expect 0 "${weighted[@]}" --device $device checkpoint_dir=w1-$device --log w1-$device.jsonl
    ranks 0 2 "${weighted[@]}" --device $device checkpoint_dir=w2-$device
    same w1-$device/best.h5 w2-$device/best.h5
done

# ---- mistakes ----
# A rank ends with a word to the other, which has to be heard.
patience 1
# pair CODES WORDS...: the second rank has other words than the first. mpirun tells the code of the
# rank that ends first.
pair() {
    local want=$1 got=0
    shift
    "${mpi[@]}" -n 1 "$gpurt" "${train[@]}" --device ref checkpoint_dir=u : \
        -n 1 "$gpurt" "${train[@]}" --device ref checkpoint_dir=u "$@" >out 2>err || got=$?
    [[ " $want " == *" $got "* ]] || wrong "unequal $*: exit code $got, wanted $want"
    [ ! -e u/best.h5 ] || wrong "unequal $*, and yet a checkpoint"
}
pair 78 learning_rate=0.5
told "rank 1 \(ref:0 .*\) differs in its learning_rate from rank 0: '0.5' and not '0.001'"
expect 0 data make regression --samples 700 --features 8 --seed 4 -o other.h5
pair 78 --data other.h5
told 'rank 1 .* differs in its data'
# Two networks that differ behind their first 240 characters.
layers=$(printf '{linear: 8}, tanh, %.0s' {1..20})
for width in 4 5; do printf 'network: [%s{linear: %s}, {linear: 1}]\n' "$layers" $width >$width.yaml; done
deep=("$gpurt" train supervised --data d.h5 --device ref batch_size=64 epochs=1 checkpoint_dir=u --config)
got=0
"${mpi[@]}" -n 1 "${deep[@]}" 4.yaml : -n 1 "${deep[@]}" 5.yaml >out 2>err || got=$?
[ "$got" -eq 78 ] || wrong "networks that differ far on: exit code $got, wanted 78"
told 'rank 1 .* differs in its network from rank 0, further on'
pair "71 78" --mem-limit 20KB
told 'rank 1 .* cannot begin: its memory is too small'
# Other weights to begin with, at the same step: seen before the first step.
go_on=("${train[@]}" --device ref micro_batches=8 epochs=3 --resume)
expect 0 "${train[@]}" --device ref micro_batches=8 learning_rate=0.01 checkpoint_dir=warm
got=0
"${mpi[@]}" -n 1 "$gpurt" "${go_on[@]}" checkpoint_dir=ref1 : \
    -n 1 "$gpurt" "${go_on[@]}" checkpoint_dir=warm >out 2>err || got=$?
[ "$got" -eq 74 ] || wrong "unequal weights: exit code $got, wanted 74"
told 'step 20: rank 1 .* has other weights than rank 0'
# One that needs smaller pieces decides for all.
cut=("${train[@]}" batch_size=512 auto_accumulate=true --device ref checkpoint_dir=v)
"${mpi[@]}" -n 1 "$gpurt" "${cut[@]}" : -n 1 "$gpurt" "${cut[@]}" --mem-limit 130KB >out 2>err ||
    wrong "unequal memory: exit code $?"
told 'effective 512, in 8 micro-batches'
patience 0 # each refuses by itself
ranks 78 3 "${train[@]}" --device ref checkpoint_dir=u
told 'micro_batches is 3: it has to be a power of two that the number of ranks, 3, divides'
ranks 78 2 "${train[@]}" rank_shares=5,x --device ref checkpoint_dir=u
told "rank_shares is '5,x': equal, speed or micro-batches of each rank as 5,3 are wanted"
ranks 78 2 "${train[@]}" rank_shares=5,2,1 --device ref checkpoint_dir=u
told 'rank_shares is 5,2,1, for 3 ranks: there are 2'
ranks 78 2 "${train[@]}" rank_shares=5,2 --device ref checkpoint_dir=u
told 'rank_shares is 5,2, of 7 micro-batches: they have to be a power of two'
ranks 78 2 "${train[@]}" rank_shares=5,3 micro_batches=4 --device ref checkpoint_dir=u
told 'rank_shares is 5,3, 8 micro-batches: a step has 4'
ranks 78 2 "${train[@]}" rank_shares=speed micro_batches=1 --device ref checkpoint_dir=u
told 'rank_shares is speed, of 1 micro-batches: .* one for each of 2 ranks'
ranks 78 2 "${train[@]}" rank_shares=3,1 sync_batch_norm=true --device ref checkpoint_dir=u
told 'rank_shares is 3,1: sync_batch_norm want'
ranks 78 2 "${train[@]}" batch_size=63 --device ref checkpoint_dir=u
told 'a step of 63 samples is not cut into 2 equal micro-batches: give a batch_size of which that is a divisor, or other micro_batches'

patience 2

# ---- a loss that is not finite ----
# Each rank measures another time for a step: all go back at the same one nevertheless.
nan=(train supervised --data d.h5 --device ref:0 batch_size=4 hidden=64 depth=3 micro_batches=2
    optimizer=sgd learning_rate=3 on_nan_loss=rollback max_steps=100 seed=1)
expect 0 "${nan[@]}" checkpoint_dir=back1
ranks 0 2 "${nan[@]}" checkpoint_dir=back2
told '^gpurt: back to step 0'
same back1/best.h5 back2/best.h5

# ---- a rank is gone ----
long=("${train[@]}" --device ref micro_batches=4 epochs=60 log_interval=5)
expect 0 "${long[@]}" checkpoint_dir=whole
begin_ranks 4 "${long[@]}" checkpoint_dir=cut --log cut.jsonl
wait_for "row 20" rows cut.jsonl 20
victim=$(rank_pid 2)
kill -KILL "$victim"
ends "137 75" "rank 2 was killed"
told "^gpurt: error: rank 2 \(ref:0 .*, process $victim on .*\) has ended"
told "interrupted; the checkpoint is in cut"
# Another number of ranks goes on with the micro-batches of the checkpoint.
ranks 0 2 "${train[@]}" --device ref epochs=60 log_interval=5 checkpoint_dir=cut --resume
told 'in 4 micro-batches'
same whole/best.h5 cut/best.h5
same whole/step-000000000600.h5 cut/step-000000000600.h5

# Other shares go on to the same bits.
begin_ranks 3 "${long[@]}" rank_shares=2,1,1 checkpoint_dir=cut3 --log cut3.jsonl
wait_for "row 20" rows cut3.jsonl 20
kill -KILL "$(rank_pid 1)"
ends "137 75" "rank 1 of three was killed"
ranks 0 2 "${train[@]}" --device ref epochs=60 log_interval=5 rank_shares=1,3 checkpoint_dir=cut3 --resume
same whole/best.h5 cut3/best.h5
same whole/step-000000000600.h5 cut3/step-000000000600.h5

# The data of one rank fail under it: it says so, and is as good as gone.
cp d.h5 mine.h5
: >err
"${mpi[@]}" -n 1 "$gpurt" "${long[@]}" cache=none epochs=100000 checkpoint_dir=torn --log torn.jsonl : -n 1 "$gpurt" \
    "${long[@]}" cache=none epochs=100000 checkpoint_dir=torn --data mine.h5 >out 2>err &
pid=$!
wait_for "row 20" rows torn.jsonl 20
truncate -s 3000 mine.h5
begun=$SECONDS
ends "65 66 70 74 75" "the data of rank 1 ended"
[ $((SECONDS - begun)) -le 25 ] || wrong "$((SECONDS - begun)) s to the end"
told 'rank 1: error: mine.h5'
told '^gpurt: error: rank 1 .* has ended'
ended signal torn.jsonl

# The memory of one rank ends: with the graph of the step that is not full, the 79th, it asks for
# more. Large blocks are the system's own, so that the limit, far below what it has, counts each.
starved=(train supervised --data d.h5 --device ref micro_batches=2 batch_size=8 hidden=160 depth=3 seed=3 num_workers=1
    log_interval=1 epochs=1)
expect 0 "${starved[@]}" checkpoint_dir=fed
MALLOC_MMAP_THRESHOLD_=4096 begin_ranks 2 "${starved[@]}" checkpoint_dir=starved --log starved.jsonl
wait_for "row 3" rows starved.jsonl 3
victim=$(rank_pid 1)
prlimit --pid "$victim" --as=1048576
ends "71 75" "rank 1 has no memory"
told 'rank 1: error: .*no host memory'
told '^gpurt: error: rank 1 .* has ended'
ended signal starved.jsonl
ranks 0 2 "${starved[@]}" checkpoint_dir=starved --resume
same fed/best.h5 starved/best.h5

# A comma within parentheses is part of a name, and starts no ranks.
refuse 69 "no device 'nothing (a, b)'" "${train[@]}" --device 'nothing (a, b)' checkpoint_dir=none
exit "$failed"
