#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --kernels, --trace and --memory-snapshot of train and bench: the table's calls are the trace's
# dispatches, the trace is of its format, results stay the same, and what cannot be written is said.
# Usage: timeline.sh GPURT DEVICE

set -uo pipefail
gpurt=${1:?usage: timeline.sh GPURT DEVICE}
device=${2:?usage: timeline.sh GPURT DEVICE}
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
check=$tests/cli/watch/trace_check.py

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
expect 0 "${train[@]}" checkpoint_dir=watched --format csv --kernels --every-command --trace t.json --memory-snapshot m.json
cut -d, -f1-4 out >watched.csv
same plain.csv watched.csv  # losses, and nothing of the table on stdout
told '^kernel +calls +total ms +mean us +share +rate +peak$'
told '^bottleneck: .*: .+'
told '^data: the slowest stage is (read|inflate|decode|transform|convert) '
[ "$(awk 'length > 80' err | grep -cE '^[a-z_(]+ +[0-9]+ ')" -eq 0 ] || wrong "rows of the table are wider than 80"
in_table=$(dispatches)
grep -q ", $in_table dispatches,\|; $in_table dispatches," err || wrong "the sum of the rows is not what is said below"
# 300 samples, a tenth of them for the validation: nine steps, and what each command is for.
check_trace t.json 'compute queue' host memory 'data worker' --phases forward backward optimizer
sed -n 1p has | grep -q ' steps 9$' || wrong "phases of nine steps: $(sed -n 1p has)"
sed -i 1d has
# Besides those of the table the trace has what ran before the first step.
[ "$(awk '{ print $2 }' has)" -ge "$in_table" ] || wrong "the trace has $(cat has), the table $in_table dispatches"
grep -q '"gpurt.memory/1"' m.json || wrong "m.json is no snapshot"

# A bench has one table from the beginning: every dispatch is in the trace too.
expect 0 bench launch --device "$device" --count 1,8 --time 0.01 --kernels --every-command --trace b.json
! grep -q 'commands were timed' err || wrong "--every-command: some commands were not timed"
check_trace b.json 'compute queue' host
[ "$(awk '{ print $2 }' has)" -eq "$(dispatches)" ] || wrong "bench: the trace has $(cat has), the table $(dispatches)"

# Operations of fused kernels, 64 samples and 32 x 16, 16 x 16 twice, 16 x 1: forward and back in
# the pass, those of the gradients in the other.
expect 0 bench mlp --device "$device" --model small --batch-sizes 64 --precision f32 --variant fused --time 0.02 --kernels
operations() { # KERNEL: of a call, by its rate and time
    awk -v kernel="$1" '$1 == kernel { by["FLOP/s"] = 1; by["kFLOP/s"] = 1e3; by["MFLOP/s"] = 1e6; by["GFLOP/s"] = 1e9
        printf "%.0f", $6 * by[$7] * $3 * 1e-3 / $2 }' err
}
near() { # NUMBER WANTED: rates have three digits
    awk -v x="${1:-0}" -v y="$2" 'BEGIN { exit !(x > 0.98 * y && x < 1.02 * y) }'
}
near "$(operations mlp_pass_f32)" $((2 * 64 * (512 + 2 * (512 + 16)))) || wrong "operations of the pass: $(operations mlp_pass_f32)"
near "$(operations mlp_grads_f32)" $((2 * 64 * (512 + 512 + 16))) || wrong "operations of the gradients: $(operations mlp_grads_f32)"

# Where that costs too much, some runs stand for the others, which are counted all the same.
# A trace comes with the table.
expect 0 "${train[@]}" checkpoint_dir=some epochs=4 --trace s.json
check_trace s.json 'compute queue' host
some=$(sed -n 's/^\([0-9]*\) of [0-9]* commands were timed, .*/\1/p' err)
[ "$(dispatches)" -gt "$in_table" ] || wrong "some: $(dispatches) dispatches of 4 epochs, $in_table of one"
[ -n "$some" ] || [ "$(awk '{ print $2 }' has)" -ge "$(dispatches)" ] || wrong "some: the trace has $(cat has)"

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
