# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests of several ranks, read with `.` behind the harness. Exit code 77 where there is no Open
# MPI. Ranks share two cores: each has one thread.

if ! command -v mpirun >/dev/null || [ ! -e "$(dirname "$gpurt")/libgpurt-mpi.so" ]; then
    echo "$me: no Open MPI here, or gpurt was built without it; skipped" >&2
    exit 77
fi
# hwloc, by which mpirun looks at the machine, may open PoCL, whose LLVM takes the signals that
# mpirun is to pass on.
export HWLOC_COMPONENTS=-opencl,-cuda,-nvml
export POCL_MAX_PTHREAD_COUNT=1 LP_NUM_THREADS=1 OMP_NUM_THREADS=1
# patience SECONDS: mpirun waits so long, twice, before it kills the ranks that are left: time to
# save. It waits also where none is left: where all are refused before the first step, 0 will do.
patience() {
    mpi=(mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1
        --mca odls_base_sigkill_timeout "$1" --mca btl_base_warn_component_unused 0)
}
patience 2
# ranks CODES N ARGUMENT...: runs gpurt as N ranks.
ranks() {
    local want=$1 count=$2 got=0
    shift 2
    "${mpi[@]}" -n "$count" "$gpurt" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || got=$?
    [[ " $want " == *" $got "* ]] || wrong "$count ranks of gpurt $*: exit code $got, wanted $want"
}
# begin_ranks N ARGUMENT...: the same in the background, as process $pid.
begin_ranks() {
    local count=$1
    shift
    : >"$tmp/out" && : >"$tmp/err"
    "${mpi[@]}" -n "$count" "$gpurt" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
    pid=$!
}
# rank_pid N: the process of a rank, by the banner, which mpirun and srun may bring later than the
# log has its rows.
rank_pid() {
    local found='' begun=$SECONDS
    while [ -z "$found" ] && [ $((SECONDS - begun)) -lt 60 ]; do
        found=$(sed -nE "s/.*rank $1 .*, process ([0-9]+) on .*/\1/p" "$tmp/err" | head -n 1)
        [ -n "$found" ] || sleep 0.05
    done
    echo "$found"
}
# rows LOG N: the log has so many.
rows() { [ "$(wc -l <"$1")" -ge "$2" ]; }
# ends CODES WORD...: the ranks in the background do, with one of the exit codes.
ends() {
    local want=$1 got=0
    shift
    wait "$pid" 2>/dev/null || got=$?
    [[ " $want " == *" $got "* ]] || wrong "$*: exit code $got, wanted $want"
}
