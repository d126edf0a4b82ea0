#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt train es` as several ranks, by a real Open MPI: the file of one rank to the bit, whatever
# the devices; settings that differ are refused; a rank that is killed or stopped is named and
# costs nothing. Usage: es.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: es.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/ranks.sh"
cd "$tmp" || exit 1

# ---- the same bits ----
es=(train es --env cartpole --num-envs 4 --num-dirs 8 --episode-length 60 --iterations 6 --seed 3)
expect 0 "${es[@]}" --device ref --checkpoint one.h5
for count in 2 3 4; do
    ranks 0 "$count" "${es[@]}" --device ref --checkpoint "$count.h5" --log "$count.jsonl"
    same one.h5 "$count.h5"
    [ "$(grep -c '^rank [0-9]* *ref:0 ' err)" -eq "$count" ] || wrong "the banner does not name every rank"
    [ "$(grep -c iteration out)" -eq 1 ] || wrong "not the first rank alone has a table"
    [ "$(grep -c '"event":"end"' "$count.jsonl")" -eq 1 ] || wrong "not the first rank alone has a log"
done
logs_agree 2.jsonl
ranks 0 3 "${es[@]}" --device opencl,vulkan,ref --checkpoint mixed.h5
same one.h5 mixed.h5
told '^rank 1 +vulkan:0 '
# Several devices start mpirun by themselves.
expect 0 "${es[@]}" --device ref,ref --checkpoint listed.h5
same one.h5 listed.h5
[ "$(grep -c '^rank [0-9]* *ref:0 ' err)" -eq 2 ] || wrong "two devices are not two ranks"
GPURT_DEVICE=ref,ref expect 0 "${es[@]}" --checkpoint meant.h5
same one.h5 meant.h5
[ "$(grep -c '^rank [0-9]* *ref:0 ' err)" -eq 2 ] || wrong "two devices of GPURT_DEVICE are not two ranks"
# A config stands above the environment; nothing is started for a list that is not whole.
echo 'device: ref' >typed.yaml
GPURT_DEVICE=ref,ref expect 0 "${es[@]}" --config typed.yaml --checkpoint typed.h5
same one.h5 typed.h5
grep -q '^rank ' err && wrong "GPURT_DEVICE beats the device of a config"
for list in ref, , ,ref; do
    GPURT_DEVICE=$list expect 64 "${es[@]}" --checkpoint never.h5
    told "'$list' have an empty entry"
    [ "$(wc -l <err)" -eq 1 ] || wrong "more than a line for GPURT_DEVICE=$list"
done
GPURT_DEVICE=ref,ref expect 69 bench launch --count 1
told "'ref,ref' names several devices"
standing=(train standing --num-envs 2 --num-dirs 4 --episode-length 20 --iterations 2 --algo es)
expect 0 "${standing[@]}" --device ref --checkpoint alone.h5
ranks 0 2 "${standing[@]}" --device ref --checkpoint both.h5
same alone.h5 both.h5

# ---- mistakes ----
patience 1
# A file that only one rank has changed is as good as another option.
got=0
"${mpi[@]}" -n 1 "$gpurt" "${es[@]}" --device ref --checkpoint u.h5 : \
    -n 1 "$gpurt" "${es[@]}" --noise-std 0.5 --device ref --checkpoint u.h5 >out 2>err || got=$?
[ "$got" -eq 78 ] || wrong "unequal settings: exit code $got, wanted 78"
told 'rank 1 \(ref:0 .*\) differs in its settings'
[ ! -e u.h5 ] || wrong "unequal settings, and yet a checkpoint"
ranks 78 4 "${es[@]}" --num-dirs 3 --device ref --checkpoint u.h5
told '4 ranks have nothing to do with 3 directions'
patience 2
mkdir bare
cp "$gpurt" "$(dirname "$gpurt")"/libgpurt.so.? bare/
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 \
    bare/gpurt "${es[@]}" --device ref --checkpoint u.h5 >out 2>err && wrong "no plugin, and yet it trains"
told 'libgpurt-mpi.so.*libopenmpi'

# Several devices without an mpirun to start them.
(PATH=$(dirname "$gpurt") && "$gpurt" "${es[@]}" --device ref,ref --checkpoint u.h5 >out 2>err </dev/null)
[ $? -eq 69 ] || wrong "without mpirun: exit code is not 69"
told 'several devices want mpirun, and it cannot be started: .*openmpi-bin'
[ ! -e u.h5 ] || wrong "no mpirun, and yet a checkpoint"

# ---- a rank is gone ----
long=(train es --env cartpole --num-envs 2 --num-dirs 8 --episode-length 40 --seed 5 --device ref
    --iterations 600 --evaluate-every 600)
expect 0 "${long[@]}" --checkpoint whole.h5
for signal in KILL STOP; do
    begin_ranks 2 "${long[@]}" --checkpoint $signal.h5 --log $signal.jsonl
    wait_for "row 50" rows $signal.jsonl 50
    victim=$(rank_pid 1)
    begun=$SECONDS
    kill -$signal "$victim"
    # mpirun itself ends by the code of a rank that was killed, unless another was the first to end.
    ends "$([ $signal = KILL ] && echo 137) 75" "rank 1 got SIG$signal"
    # 5 s are promised; two cores may have ten processes.
    [ $((SECONDS - begun)) -le 25 ] || wrong "SIG$signal: $((SECONDS - begun)) s to the end"
    told "^gpurt: error: rank 1 \(ref:0 .*, process $victim on .*\) (has ended|is stopped)"
    told "interrupted; the checkpoint is in $signal.h5"
    grep -q '"ended":"signal"' $signal.jsonl || wrong "SIG$signal: the log does not end by a signal"
    # Any number of ranks goes on.
    ranks 0 4 train es --resume $signal.h5 --iterations 600 --evaluate-every 600 --device ref
    same whole.h5 $signal.h5
done
begin "${long[@]}" --device ref,ref --iterations 1000000 --checkpoint asked.h5 --log asked.jsonl
wait_for "row 20" rows asked.jsonl 20
stop TERM 75 "two devices"
told 'interrupted; the checkpoint is in asked.h5'
[ -e asked.h5 ] || wrong "no checkpoint of two ranks that were asked to stop"
# Ranks of a command that has started mpirun itself end well, and the first one tells it the code;
# where it cannot, mpirun does.
for told in told none/told; do
    GPURT_OWN_RANKS=$tmp/$told begin_ranks 2 "${long[@]}" --iterations 1000000 --checkpoint own.h5 --log own.jsonl
    wait_for "row 20" rows own.jsonl 20
    stop USR1 "$([ $told = told ] && echo 0 || echo 75)" "ranks that tell $told"
    rm own.jsonl
done
[ "$(cat told)" = 75 ] || wrong "the first rank told '$(cat told)', wanted 75"
# ---- a program that has begun MPI itself ----
"${mpi[@]}" -n 2 "$(dirname "$gpurt")/tests/ranks_begun" >out 2>err || wrong "MPI begun by the caller: exit code $?"
[ "$(grep -c ': well$' out)" -eq 2 ] || wrong "MPI begun by the caller: $(cat out)"
exit "$failed"
