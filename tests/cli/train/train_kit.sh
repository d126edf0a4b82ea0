# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For train.sh and train_host.sh, read with `.`; they set `gpurt` and `device` before. A data set, a
# run over it that nothing disturbs, in the folder whole, and how runs are interrupted.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=/usr/bin/python3 # Debian's, which has h5py
# shellcheck disable=SC2034  # read by command.sh
scratch=/dev/shm # in memory where that is to be had: each checkpoint waits for the disk
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$here/../../harness/command.sh"
# shellcheck disable=SC2154  # set by the including file
export GPURT_DEVICE=$device XDG_CONFIG_HOME=$tmp/config
unset NO_COLOR
cd "$tmp" || exit 1

# said PATTERN: in what the last command printed.
said() { grep -qE -- "$1" out err || wrong "not said: $1"; }

expect 0 data make regression --samples 3000 --features 8 --seed 3 -o d.h5
base=(train supervised --data d.h5 model=small batch_size=16 epochs=3 checkpoint_interval=50
    log_interval=20)
# shellcheck disable=SC2034  # read by the including file
last=step-000000000507.h5 # 3 epochs of 169 steps over 2700 samples
expect 0 "${base[@]}" checkpoint_dir=whole --log whole.jsonl --tensorboard board --format json

# A list of layers.
cat >list.yaml <<'YAML'
data: d.h5
model:
  - linear: 16
  - norm: layer
  - gelu
  - residual: [{linear: 16}, relu, {dropout: 0.2}, {linear: 16}]
  - linear: out
YAML
# shellcheck disable=SC2034  # read by the including file
list=(train supervised --config list.yaml batch_size=64 --format csv)

# interrupt SIGNAL CODE FOLDER ARGUMENT...: a run without an end in sight gets the signal after its
# first log line. It is resumed for a little more than an epoch, which has 169 steps, and has the
# same bits then as a run that was never stopped.
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
    end=(max_steps=$((step + 180)) epochs=1000000)
    expect 0 "$@" "${end[@]}" checkpoint_dir="$folder" --resume
    said "resumed from $folder/step-[0-9]+.h5"
    expect 0 "$@" "${end[@]}" checkpoint_dir="un$folder" -q
    same "$folder/$(printf 'step-%012d.h5' $((step + 180)))" "un$folder/$(printf 'step-%012d.h5' $((step + 180)))"
    same "$folder/best.h5" "un$folder/best.h5"
}
