#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sweeps as jobs of a Slurm of this test's own, on the loopback: a controller and two nodes of two
# slots. Six trials; one that ends with 75 and is run again; the sweep killed and gone on with; a
# node that goes down; a stop. Status 77 where there is no Slurm, or no root to run it.
# Usage: slurm.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: slurm.sh GPURT SOURCE_DIR}")
root=$(realpath "${2:?usage: slurm.sh GPURT SOURCE_DIR}")
PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd munged sbatch; do
    if ! command -v "$program" >/dev/null; then
        echo "slurm.sh: skipped: $program is not installed (ci/setup.sh installs it)" >&2
        exit 77
    fi
done
if [ "$(id -u)" -ne 0 ]; then
    echo "slurm.sh: skipped: Slurm's daemons want root" >&2
    exit 77
fi
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
fake=$root/tests/cli/sweep/fake_trainer.sh

# ---- the cluster ----
cluster=$(mktemp -d -p "${TMPDIR:-/tmp}")
pids=()
# end_of PID: until the process is gone, or a zombie.
end_of() {
    local begun=$SECONDS
    while [ -e "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null &&
        [ $((SECONDS - begun)) -lt 20 ]; do sleep 0.05; done
    kill -KILL "$1" 2>/dev/null || true
}
clean() {
    local p
    for p in "${pids[@]}"; do
        kill "$p" 2>/dev/null && end_of "$p"
    done
    # What jobs have left runs below this folder.
    for p in /proc/[0-9]*; do
        if grep -qaF "$tmp/" "$p/cmdline"; then kill -KILL "${p#/proc/}"; fi
    done 2>/dev/null
    rm -rf "$cluster" "$tmp"
}
trap clean EXIT
host=$(hostname)
chmod 755 "$cluster"
mkdir -m 700 "$cluster/key"
mkdir -m 711 "$cluster/socket"
mkdir "$cluster/state" "$cluster/n0" "$cluster/n1"
head -c 1024 /dev/urandom >"$cluster/key/key"
chmod 400 "$cluster/key/key"
# Three ports that nobody has, from a place of this process's own.
port=$((20000 + 3 * ($$ % 3000)))
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
while taken "$port" || taken $((port + 1)) || taken $((port + 2)); do port=$((port + 3)); done
mknod "$cluster/gpu0" c 1 3 2>/dev/null && mknod "$cluster/gpu1" c 1 3
if [ ! -c "$cluster/gpu1" ]; then
    echo "slurm.sh: skipped: no device nodes can be made here" >&2
    exit 77
fi
cat >"$cluster/slurm.conf" <<C
ClusterName=gpurt
SlurmUser=root
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$cluster/socket/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,batch_sched_delay=0
GresTypes=gpu
ReturnToService=2
RequeueExit=75
SlurmdParameters=config_overrides
MailProg=/bin/true
SlurmdTimeout=10
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/%n.log
NodeName=n0 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2 Gres=gpu:2
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=2 Gres=gpu:2
PartitionName=main Nodes=n0,n1 Default=YES State=UP
C
cat >"$cluster/gres.conf" <<C
NodeName=n0 Name=gpu File=$cluster/gpu[0-1]
NodeName=n1 Name=gpu File=$cluster/gpu[0-1]
C
export SLURM_CONF=$cluster/slurm.conf
munged --foreground --force --key-file="$cluster/key/key" --socket="$cluster/socket/munge" --pid-file="$cluster/munged.pid" \
    --log-file="$cluster/munged.log" --seed-file="$cluster/seed" >/dev/null 2>&1 &
munge=$!
pid=$munge
wait_for "munge" test -S "$cluster/socket/munge" || exit 1
slurmctld -D -c >/dev/null 2>&1 &
pids+=($!)
node() {
    slurmd -D -N "$1" >/dev/null 2>&1 &
    eval "$1=$!"
}
node n0
node n1
pids+=("$n0" "$n1" "$munge")
nodes() { [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" -ge "$1" ]; }
wait_for "two idle nodes" nodes 2 || {
    tail -n 5 "$cluster"/*.log >&2
    exit 1
}

# ---- six trials, one of which ends with 75 twice ----
cd "$tmp" || exit 1
export GPURT_SWEEP_COMMAND=$tmp/command
cat >command <<C
#!/bin/sh
if [ "\$1" = sweep ]; then exec '$gpurt' "\$@"; fi
echo "\$SLURM_JOB_GPUS" >>gpus
exec '$fake' "\$@"
C
chmod +x command
echo 'lr: [1, 1.1, 5, 1.2, 1.3, 1.4]' >six.yaml
expect 0 sweep six.yaml --executor slurm --format csv -- --gres=gpu:1
[ "$(awk -F, 'NR > 1 { print $1 }' out | sort | xargs)" = '0 1 2 3 4 5' ] || wrong "not each trial once"
[ "$(grep -c ',done,' out)" -eq 6 ] || wrong "not all are done"
[ "$(wc -l <six/0002/runs)" -eq 3 ] || wrong "the trial that ends with 75 twice ran $(wc -l <six/0002/runs) times"
grep -q '"crashes": 0' six/0002/result.json || wrong "75 counts as a crash"
grep -qE '^[01]$' gpus || wrong "no job has a GPU"
[ -z "$(squeue -h)" ] || wrong "jobs are left in the queue"

# ---- killed and gone on with; a node goes down ----
for lr in 10 20; do : >"next-$lr"; done
echo 'lr: [10, 20]' >two.yaml
into=1 begin sweep two.yaml --executor slurm --format csv -- --gres=gpu:2
begun() { [ "$(cat two/000?/log.jsonl 2>/dev/null | grep -c '"start"')" -ge "$1" ]; }
wait_for "two jobs" begun 2
kill -KILL "$pid"
wait "$pid" 2>/dev/null
[ "$(squeue -h | wc -l)" -eq 2 ] || wrong "jobs ended with the sweep"
expect 0 sweep status two
[ "$(grep -c running out)" -eq 2 ] || wrong "status: jobs that run do not"
into=1 begin sweep resume two --format csv
# The node of one trial: its daemon is killed, and the controller is told.
job=$(sed -n 's/^ "job": \([0-9]*\).*/\1/p' two/0000/state.json)
name=$(squeue -h -j "$job" -o %N)
kill -KILL "${!name}"
scontrol update NodeName="$name" State=DOWN Reason=test
again() { grep -c '"start"' two/0000/log.jsonl | grep -qv '^1$'; }
printf '1\n1\n1\n1\n' >next-20
node "$name"
pids+=("${!name}")
scontrol update NodeName="$name" State=RESUME
wait_for "the trial of the node that went down, again" again
printf '1\n1\n1\n1\n' >next-10
wait "$pid" || wrong "a node that went down: exit code $?"
[ "$(awk -F, 'NR > 1 { print $1 $2 }' out1 | sort | xargs)" = '0done 1done' ] || wrong "a node that went down: $(cat out1)"

# ---- a stop: trials write their checkpoints and leave the queue ----
for lr in 10 20; do : >"next-$lr"; done
into=1 begin sweep two.yaml --dir stop --executor slurm --format csv -- --gres=gpu:2
begun_stop() { [ "$(cat stop/000?/log.jsonl 2>/dev/null | grep -c '"start"')" -ge 2 ]; }
wait_for "two jobs" begun_stop
kill -INT "$pid"
wait "$pid"
code=$?
[ "$code" -eq 75 ] || wrong "SIGINT: exit code $code, wanted 75"
[ "$(cat stop/000?/log.jsonl | grep -c '"ended":"signal"')" -eq 2 ] || wrong "trials were not asked to stop"
gone() { [ -z "$(squeue -h)" ]; }
pid=$munge
wait_for "an empty queue" gone
printf '1\n1\n1\n1\n' | tee next-10 >next-20
expect 0 sweep resume stop --format csv
[ "$(grep -c ',done,' out)" -eq 2 ] || wrong "resume after a stop: not all are done"

exit "$failed"
