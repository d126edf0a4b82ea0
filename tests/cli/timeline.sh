#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --kernels, --trace and --memory-snapshot of train and bench: the table's calls are the trace's
# dispatches, the trace is of its format, results stay the same, and what cannot be written is said.
# Usage: timeline.sh GPURT DEVICE

set -uo pipefail
gpurt=${1:?usage: timeline.sh GPURT DEVICE}
device=${2:?usage: timeline.sh GPURT DEVICE}
# shellcheck source-path=SCRIPTDIR source=../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../harness/command.sh"
cd "$tmp" || exit 1
check=$tests/cli/trace_check.py

# check_trace FILE TRACK...: of the format; what it has goes to `has`.
check_trace() { "$check" "$@" >has || wrong "$1 is no trace"; }
# dispatches: as the table of the last command counts them, kernel by kernel.
dispatches() {
    awk '/^kernel +calls +total ms/ { on = 1; next } /^the device worked/ { on = 0 }
        on && $1 !~ /^\(/ { n += $2 } END { print n + 0 }' "$tmp/err"
}

expect 0 data make regression --samples 300 -o speeds.h5
train=(train supervised --device "$device" data=speeds.h5 batch_size=32 epochs=1 workers=2 cache=none)
expect 0 "${train[@]}" checkpoint_dir=plain --format csv
cut -d, -f1-4 out >plain.csv
expect 0 "${train[@]}" checkpoint_dir=watched --format csv --kernels --trace t.json --memory-snapshot m.json
cut -d, -f1-4 out >watched.csv
same plain.csv watched.csv  # losses, and nothing of the table on stdout
told '^kernel +calls +total ms +mean us +share +rate +peak$'
told '^bottleneck: .*: .+'
told '^data: the slowest stage is (read|inflate|decode|transform|convert) '
[ "$(awk 'length > 80' err | grep -cE '^[a-z_(]+ +[0-9]+ ')" -eq 0 ] || wrong "rows of the table are wider than 80"
in_table=$(dispatches)
grep -q ", $in_table dispatches,\|; $in_table dispatches," err || wrong "the sum of the rows is not what is said below"
check_trace t.json 'compute queue' host memory 'data worker'
# Besides those of the table the trace has what ran before the first step.
[ "$(awk '{ print $2 }' has)" -ge "$in_table" ] || wrong "the trace has $(cat has), the table $in_table dispatches"
grep -q '"gpurt.memory/1"' m.json || wrong "m.json is no snapshot"

# A bench has one table from the beginning: every dispatch is in the trace too.
expect 0 bench launch --device "$device" --count 1,8 --time 0.01 --kernels --trace b.json
check_trace b.json 'compute queue' host
[ "$(awk '{ print $2 }' has)" -eq "$(dispatches)" ] || wrong "bench: the trace has $(cat has), the table $(dispatches)"

# What cannot be written.
refuse 73 nowhere/t.json "${train[@]}" --trace nowhere/t.json
refuse 73 nowhere/m.json "${train[@]}" --memory-snapshot nowhere/m.json
refuse 64 speeds.h5 "${train[@]}" --trace speeds.h5
refuse 64 one.json bench launch --device "$device" --trace one.json --memory-snapshot one.json
refuse 64 one.json bench launch --device "$device" --trace one.json -o one.json
expect 74 bench launch --device "$device" --count 1 --time 0.01 --trace /dev/full
told '/dev/full'
# A full disk. Drivers would want to write there too: ref does not.
if [ "$device" = ref:0 ]; then
    cp t.json before.json
    (ulimit -f 100 && exec "$gpurt" bench launch --device ref:0 --count 8 --time 0.01 --trace t.json) >out 2>err
    [ $? -eq 74 ] || wrong "a trace on a full disk: not exit code 74"
    same t.json before.json
fi
exit "$failed"
