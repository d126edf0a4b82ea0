#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sweeps over ssh, by GNU parallel with a program in place of ssh that runs its command here: four
# trials on two machines, one that is tried again, a stop. Status 77 where there is no GNU parallel.
# Usage: ssh.sh GPURT SOURCE_DIR

set -uo pipefail
gpurt=$(realpath "${1:?usage: ssh.sh GPURT SOURCE_DIR}")
root=$(realpath "${2:?usage: ssh.sh GPURT SOURCE_DIR}")
if ! parallel --version 2>/dev/null | grep -q 'GNU parallel'; then
    echo "ssh.sh: skipped: GNU parallel is not installed (ci/setup.sh installs it)" >&2
    exit 77
fi
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
export HOME=$tmp GPURT_SWEEP_COMMAND=$tmp/command
cat >command <<C
#!/bin/sh
if [ "\$1" = sweep ]; then exec '$gpurt' "\$@"; fi
exec '$root/tests/cli/sweep/fake_trainer.sh' "\$@"
C
cat >ssh <<C
#!/bin/bash
export GPURT_SWEEP_COMMAND=$tmp/command SHELL=/bin/sh
echo "\$1" >>'$tmp/machines'
shift 2 # its name and --
exec bash -c "\$*"
C
chmod +x command ssh
machines=(--ssh "$tmp/ssh" --sshlogin "2/first,2/second")

echo 'lr: [1, 4, 5, 6]' >four.yaml
expect 1 sweep four.yaml --executor ssh --format csv -- "${machines[@]}"
[ "$(awk -F, 'NR > 1 { print $1 $2 }' out | sort | xargs)" = '0done 1done 2done 3failed' ] || wrong "other ends: $(cat out)"
grep -q '"crashes": 1' four/0001/result.json || wrong "a crash does not count"
[ "$(wc -l <four/0002/runs)" -eq 3 ] || wrong "75 twice: $(wc -l <four/0002/runs) runs"
for name in first second; do
    grep -qx "$name" machines || wrong "no trial ran on $name"
done

# A folder's name is no shell's word.
# shellcheck disable=SC2016
odd='a b $(touch injected)'
echo 'lr: [1]' >one.yaml
expect 0 sweep one.yaml --dir "$odd" --executor ssh --format csv -- "${machines[@]}"
[ -e "$odd/0000/result.json" ] || wrong "a folder with a blank: no result"
[ ! -e injected ] || wrong "the name of a folder was run"

# A machine that is not reached: parallel's code, 1 failed job, is no trial's.
printf '#!/bin/sh\nexit 78\n' >unreached
chmod +x unreached
expect 1 sweep one.yaml --dir none --executor ssh --format csv -- --ssh "$tmp/unreached" --sshlogin 1/first
grep -q '"why": "parallel ended without it; see .*none/parallel.txt"' none/0000/result.json || wrong "another why"
told 'trial 0 failed: parallel ended without it; see .*/parallel.txt$'

for lr in 10 20; do : >"next-$lr"; done
echo 'lr: [10, 20, 4]' >two.yaml
into=1 begin sweep two.yaml --executor ssh --format csv -- "${machines[@]}"
begun() { [ "$(cat two/000[01]/log.jsonl 2>/dev/null | grep -c '"start"')" -ge 2 ] && grep -q '"crashes": 1' two/0002/state.json; }
wait_for "two trials, and the crash of a third" begun
expect 0 sweep stop two
wait "$pid"
code=$?
[ "$code" -eq 75 ] || wrong "stop: exit code $code, wanted 75"
[ "$(cat two/000?/log.jsonl | grep -c '"ended":"signal"')" -eq 2 ] || wrong "trials were not asked to stop"
printf '1\n1\n1\n1\n' | tee next-10 >next-20
expect 0 sweep resume two --format csv
[ "$(grep -c ',done,' out)" -eq 3 ] || wrong "resume: not all are done"
grep -q '"crashes": 1' two/0002/result.json || wrong "a crash counts again after a resume"
exit "$failed"
