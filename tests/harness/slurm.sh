# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A Slurm of the test's own, on the loopback: a controller and two nodes, n0 and n1, of two slots.
# Read with `.` behind command.sh. Status 77 where there is no Slurm, or no root to run it. All
# of it ends with the test, and what its jobs have left.

# shellcheck disable=SC2154  # me and tmp are of command.sh
PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd munged sbatch; do
    if ! command -v "$program" >/dev/null; then
        echo "$me: skipped: $program is not installed (ci/setup.sh installs it)" >&2
        exit 77
    fi
done
if [ "$(id -u)" -ne 0 ]; then
    echo "$me: skipped: Slurm's daemons want root" >&2
    exit 77
fi
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
    echo "$me: skipped: no device nodes can be made here" >&2
    exit 77
fi
# Open MPI names its shared memory by the number of the job: two clusters have other numbers.
cat >"$cluster/slurm.conf" <<C
ClusterName=gpurt
SlurmUser=root
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
FirstJobId=$port
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
# Below /tmp the folders of two tests' first jobs would have one name.
echo "PMIxCliTmpDirBase=$cluster" >"$cluster/mpi.conf"
export SLURM_CONF=$cluster/slurm.conf
munged --foreground --force --key-file="$cluster/key/key" --socket="$cluster/socket/munge" --pid-file="$cluster/munged.pid" \
    --log-file="$cluster/munged.log" --seed-file="$cluster/seed" >/dev/null 2>&1 &
munge=$!
# shellcheck disable=SC2034  # read by wait_for
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
