#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt train es` where ranks are killed or stopped, by an Open MPI that outlives them (ULFM): the
# others go on, to the file of one rank, bit by bit. libgpurt-mpi.so is the one that was built with
# the distribution's Open MPI. Usage: outlive.sh GPURT SOURCE_DIR
#
# That Open MPI is in GPURT_ULFM_PREFIX, else where ci/python_tools.sh puts it, else the system's.

set -uo pipefail
gpurt=$(realpath "${1:?usage: outlive.sh GPURT SOURCE_DIR}")
source=$(realpath "${2:?usage: outlive.sh GPURT SOURCE_DIR}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/ranks.sh"
cd "$tmp" || exit 1

system=$(command -v mpirun)
for prefix in "${GPURT_ULFM_PREFIX:-}" "$source/build/tools/python" "${system%bin/mpirun}" ''; do
    [ -n "$prefix" ] && "$prefix/bin/mpirun" --version 2>/dev/null | grep -qE 'Open MPI\) [5-9]' && break
done
if [ -z "$prefix" ]; then
    echo "$me: skipped: no Open MPI with ULFM, from 5 on, in GPURT_ULFM_PREFIX, build/tools/python" \
        "(\`ci/setup.sh tests\` puts it there, with a network) or $system" >&2
    exit 77
fi
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
plain=("$prefix/bin/mpirun" --allow-run-as-root --oversubscribe --bind-to none)
outliving=("${plain[@]}" --with-ft ulfm)
mpi=("${outliving[@]}")

es=(train es --env cartpole --num-envs 2 --num-dirs 8 --episode-length 40 --seed 5
    --evaluate-every 50)
# Runs in which ranks are lost have more iterations than come to an end meanwhile: they are stopped.
endless=1000000

# lose NAME SIGNAL RANK: the rank gets it somewhere in the run, and is named.
lose() {
    local name=$1 signal=$2 rank=$3 begun victim
    wait_for "row $row" rows "$name.jsonl" "$row"
    victim=$(rank_pid "$rank")
    begun=$SECONDS
    kill "-$signal" "$victim" 2>/dev/null || wrong "$name: the run ended before rank $rank was lost"
    wait_for "the loss of rank $rank" grep -q "process $victim on .*; the run goes on with" err
    # 5 s are promised; two cores may have ten processes.
    [ $((SECONDS - begun)) -le 25 ] || wrong "$name: $((SECONDS - begun)) s until the loss was said"
    told "^gpurt: rank $rank \(.*, process $victim on .*\) $([ "$signal" = KILL ] && echo has ended ||
        echo was stopped and did not answer, and was ended); the run goes on with $left rank"
    left=$((left - 1))
}
# went_on NAME: the run is stopped some rows further on, to the bits of one rank, with one log.
went_on() {
    local steps
    wait_for "more rows" rows "$1.jsonl" $(($(wc -l <"$1.jsonl") + 30))
    kill -USR1 "$(rank_pid "$last")" || wrong "$1: rank $last has ended"
    ends 75 "$1"
    ended signal "$1.jsonl"
    told "interrupted; the checkpoint is in $1.h5"
    steps=$(sed -nE '$s/.*"step":([0-9]+),.*/\1/p' "$1.jsonl")
    mv err "$1.err"
    expect 0 "${es[@]}" --iterations "$steps" --device ref --checkpoint "$1-whole.h5" --directions "$1-whole.csv"
    mv "$1.err" err
    same "$1-whole.h5" "$1.h5"
    # The row of the step in which the first rank ended may be missing; none is there twice.
    sed -nE 's/.*"event":"train".*"step":([0-9]+),.*/\1/p' "$1.jsonl" >"$1.steps"
    sort -nu "$1.steps" | cmp -s - "$1.steps" || wrong "$1: steps of the log are not one behind the other"
    [ "$(wc -l <"$1.steps")" -ge $((steps - lost_firsts)) ] || wrong "$1: $(wc -l <"$1.steps") rows of $steps"
    [ ! -e "$1.h5.lock" ] || wrong "$1: a lock is left"
}
# somewhere: row, a random one of the first half.
somewhere() {
    row=$((20 + RANDOM % 200))
    echo "$me: $* at row $row"
}

# ---- one is gone ----
lost_firsts=0 last=2
for signal in KILL STOP; do
    somewhere "rank 1 of 3 gets SIG$signal"
    begin_ranks 3 "${es[@]}" --iterations $endless --device ref --checkpoint $signal.h5 --log $signal.jsonl
    left=2 && lose $signal $signal 1
    went_on $signal
done
# By messages, as ranks of several machines have it.
somewhere "by messages rank 2 of 3 gets SIGKILL"
GPURT_MESSAGES=1 begin_ranks 3 "${es[@]}" --iterations $endless --device ref --checkpoint messages.h5 --log messages.jsonl
left=2 last=1 && lose messages KILL 2
went_on messages

# ---- the first is gone: the next writes, and what an earlier run left is moved once ----
lost_firsts=1 last=1
for signal in KILL STOP; do
    somewhere "rank 0 of 2 gets SIG$signal"
    echo 'an earlier one' >first$signal.h5
    begin_ranks 2 "${es[@]}" --iterations $endless --device ref --checkpoint first$signal.h5 --log first$signal.jsonl \
        --directions first$signal.csv
    left=1 && lose first$signal $signal 0
    told 'goes on with 1 rank, and this one writes log and checkpoints'
    went_on first$signal
    [ "$(echo first$signal-earlier-*.h5)" = first$signal-earlier-1.h5 ] || wrong "not one earlier checkpoint"
    same <(echo 'an earlier one') first$signal-earlier-1.h5
    # A line in which the first rank was killed is in no other's.
    torn=$(grep -vcxFf first$signal-whole.csv first$signal.csv)
    [ "$torn" -le 1 ] || wrong "first$signal.csv has $torn lines that one rank has not"
    tail -n 8 first$signal-whole.csv | cmp -s - <(tail -n 8 first$signal.csv) || wrong "first$signal.csv lacks the last iteration"
done

# ---- the first is gone, and the next cannot write what it wrote ----
begin_ranks 2 "${es[@]}" --iterations $endless --device ref --checkpoint heir.h5 --log heir.jsonl --directions heir.csv
wait_for "row 20" rows heir.jsonl 20
victim=$(rank_pid 0)
rm heir.csv && mkdir heir.csv
kill -KILL "$victim"
ends 73 "a rank that cannot write --directions"
told '^gpurt: (rank [0-9]+: )?error: cannot create heir.csv: Is a directory'

# ---- the first is gone while it writes the last checkpoint: a pipe that nobody reads yet ----
expect 0 "${es[@]}" --iterations 30 --checkpoint-every 100 --device ref --checkpoint whole.h5
mkfifo last.h5
begin_ranks 2 "${es[@]}" --iterations 30 --checkpoint-every 100 --device ref --checkpoint last.h5 --log last.jsonl
wait_for "the last row" grep -q '"event":"evaluate".*"step":30,' last.jsonl
victim=$(rank_pid 0)
kill -KILL "$victim" || wrong "the first rank has ended before its checkpoint was written"
# Read behind its end: it would begin to write, and the pipe would be empty for the next one.
wait_for "the loss of the first rank" grep -q "process $victim on .*; the run goes on with" err
cat last.h5 >got.h5
ends 0 "the first rank was killed while it wrote the last checkpoint"
told "^gpurt: rank 0 \\(.*, process $victim on .*\\) has ended; the run goes on with 1 rank, and this one writes"
told '^ended by iterations'
ended iterations last.jsonl
same whole.h5 got.h5

# ---- one is gone before the first step: the end, in one line; the first waits for its log ----
mkfifo early.jsonl
begin_ranks 3 "${es[@]}" --iterations $endless --device ref --checkpoint early.h5 --log early.jsonl
wait_for "the first rank" [ -e early.h5.lock ]
for victim in $(pgrep -f -- '--checkpoint early.h5'); do
    tr '\0' '\n' <"/proc/$victim/environ" | grep -qx 'OMPI_COMM_WORLD_RANK=1' && kill -KILL "$victim" && break
done
cat early.jsonl >early.log &
reader=$!
ends 75 "a rank was killed before the first step"
kill "$reader" 2>/dev/null
told "^gpurt: error: rank 1 \\(.*, process $victim on .*\\) has ended before the first step"
[ ! -e early.h5 ] || wrong "a checkpoint of no step"

# ---- all but one are gone, one after the other, devices of three kinds ----
somewhere "ranks 0, 1 and 2 of 4 get SIGKILL"
begin_ranks 4 "${es[@]}" --iterations $endless --device ref,opencl,vulkan,ref --checkpoint three.h5 --log three.jsonl
lost_firsts=3 left=3 last=3
for rank in 0 1 2; do
    lose three KILL $rank
    row=$((row + 20))
done
went_on three

# ---- what does not go on: other trainings, and an mpirun that was not told to ----
begin_ranks 2 train ppo --env cartpole --device ref --num-envs 8 rollout_steps=16 hidden=16 evaluate_envs=2 \
    --iterations 100000 --checkpoint ppo.h5 --log ppo.jsonl
wait_for "row 5" rows ppo.jsonl 5
kill -KILL "$(rank_pid 1)"
ends "75 137" "a rank of PPO was killed"
told '^gpurt: error: rank 1 \(ref:0 .*\) has ended'
told 'interrupted; the checkpoint is in ppo.h5'
mpi=("${plain[@]}")
begin_ranks 2 "${es[@]}" --iterations $endless --device ref --checkpoint plain.h5 --log plain.jsonl
wait_for "row 20" rows plain.jsonl 20
kill -KILL "$(rank_pid 1)"
ends "75 137" "a rank was killed without --with-ft"
grep -q 'goes on with' err && wrong "without --with-ft the run says that it goes on"
[ -e plain.h5 ] || wrong "without --with-ft: no checkpoint"
exit "$failed"
