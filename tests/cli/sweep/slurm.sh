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
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
fake=$root/tests/cli/sweep/fake_trainer.sh

# shellcheck source-path=SCRIPTDIR source=../../harness/slurm.sh
. "$root/tests/harness/slurm.sh"

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
