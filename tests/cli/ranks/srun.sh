#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that srun starts, by a Slurm of this test's own: by PMIx they are those of mpirun, to the
# bit; a rank that is killed ends the others with 75; by PMI-2 and without any, a line says what is
# wrong. Status 77 where there is no Slurm, no Open MPI, or no root. Usage: srun.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: srun.sh GPURT SOURCE_DIR}")
root=$(realpath "${2:?usage: srun.sh GPURT SOURCE_DIR}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
# shellcheck source-path=SCRIPTDIR source=ranks.sh
. "$(dirname "${BASH_SOURCE[0]}")/ranks.sh"
# shellcheck source-path=SCRIPTDIR source=../../harness/slurm.sh
. "$root/tests/harness/slurm.sh"
cd "$tmp" || exit 1
# by PMI CODES ARGUMENT...: two tasks of one node.
by() {
    local pmi=$1 want=$2 got=0
    shift 2
    srun -N 1 -n 2 --mpi="$pmi" "$gpurt" "$@" >out 2>err </dev/null || got=$?
    [[ " $want " == *" $got "* ]] || wrong "srun --mpi=$pmi gpurt $*: exit code $got, wanted $want"
}
if ! srun --mpi=list 2>&1 | grep -q pmix; then
    echo "$me: skipped: this Slurm has no PMIx" >&2
    exit 77
fi
es=(train es --env cartpole --device ref --iterations 3)
expect 0 "${es[@]}" --checkpoint one.h5
by pmix 0 "${es[@]}" --checkpoint two.h5
same one.h5 two.h5
told '^rank 1 +ref:0 '

expect 0 data make regression --samples 200 --features 8 --seed 3 -o d.h5
train=(train supervised --data d.h5 batch_size=32 hidden=16 depth=2 seed=3 num_workers=1 --device ref micro_batches=2)
expect 0 "${train[@]}" epochs=2 checkpoint_dir=s1
by pmix 0 "${train[@]}" epochs=2 checkpoint_dir=s2
same s1/best.h5 s2/best.h5

# A rank that is killed: the first saves. srun ends with the highest code of its tasks.
: >err
srun -N 1 -n 2 --mpi=pmix "$gpurt" "${train[@]}" epochs=100000 log_interval=5 checkpoint_dir=cut --log cut.jsonl >out 2>err </dev/null &
pid=$!
wait_for "row 10" rows cut.jsonl 10
kill -KILL "$(rank_pid 1)"
ends "75 137" "a rank of srun was killed"
told 'rank 1 \(ref:0 .*\) has ended'
told 'interrupted; the checkpoint is in cut'

by none "0 73" "${es[@]}" --checkpoint none.h5
told 'srun has started several tasks that do not know each other'
by pmi2 "0 1 69 70" "${es[@]}" --checkpoint pmi2.h5
told 'srun has started these ranks by PMI-2'
exit "$failed"
