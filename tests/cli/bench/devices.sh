#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt bench` and `gpurt tune` on several devices at once: each has its rows, under its own name
# and in the order of the list; one that is not there costs the others nothing; mistakes; a stop.
# Usage: devices.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: devices.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../harness/command.sh"
cd "$tmp" || exit 1
export TMPDIR=$tmp/made GPURT_CACHE_DIR=$tmp/cache
mkdir made
launch=(bench launch --count 4 --time 0.01)
# selectors FILE: of the devices in it, in their order.
selectors() { grep -oE '"selector": ?"[a-z]+:[0-9]+"' "$1" | grep -oE '[a-z]+:[0-9]+' | xargs; }

expect 0 "${launch[@]}" --device ref,opencl:0 --format jsonl -o two.jsonl
[ "$(selectors two.jsonl)" = "ref:0 opencl:0" ] || wrong "jsonl: devices $(selectors two.jsonl)"
[ "$(grep -c '"test":"in order"' two.jsonl)" -eq 2 ] || wrong "not a row of each device"
expect 0 report two.jsonl
said 'C reference'
expect 0 "${launch[@]}" --device=opencl:0,ref
awk '/ on opencl:0/ { a = NR } / on ref:0/ { b = NR } END { exit !(a && b > a) }' out || wrong "tables: not in the order of the list"
[ -z "$(ls made)" ] || wrong "files are left: $(ls made)"

expect 69 "${launch[@]}" --device nothing,ref --format jsonl
told "^nothing: gpurt: error: .*'nothing'"
[ "$(selectors out)" = ref:0 ] || wrong "one device is missing, and the other has no rows"
refuse 64 'csv has no column' "${launch[@]}" --device ref,opencl --format csv
refuse 64 '--trace is of one device' "${launch[@]}" --device ref,opencl --trace t.json
# Options in their other spellings.
refuse 64 'csv has no column' "${launch[@]}" --dev ref,opencl --form=csv
refuse 64 '--trace is of one device' "${launch[@]}" --device ref,opencl --trac t.json
expect 0 "${launch[@]}" --dev ref,ref --format jsonl -obrief.jsonl
[ "$(selectors brief.jsonl)" = "ref:0 ref:0" ] || wrong "-oFILE: devices $(selectors brief.jsonl)"
expect 0 "${launch[@]}" --device ref,ref --format jsonl --outp=cut.jsonl
[ "$(selectors cut.jsonl)" = "ref:0 ref:0" ] || wrong "--outp=FILE: devices $(selectors cut.jsonl)"
refuse 69 'no device 7' "${launch[@]}" --backend ref --device 0,7
refuse 64 'empty entry' "${launch[@]}" --device ref,,ref

expect 0 tune --shape 64 --precision f32 --budget 1s --level 0 --device ref,opencl:0
said 'ref:0'
said 'opencl:0'

begin bench launch --count 1 --time 1000 --device ref,ref
# shellcheck disable=SC2317  # called by wait_for
both() { [ "$(cat made/gpurt-devices-*/?.err | grep -c 'rows of')" -eq 2 ]; }
wait_for "both devices" both
stop TERM "75" "two devices"
[ -z "$(ls made)" ] || wrong "files are left after a stop: $(ls made)"

# One that a signal ends is a failure; what its neighbour wrote is told all the same.
begin bench launch --count 1 --time 1000 --device ref,ref --format jsonl
wait_for "both devices" both
mapfile -t children < <(pgrep -P "$pid")
kill -KILL "${children[0]}"
kill -TERM "${children[1]}"
wait "$pid"
code=$?
[ "$code" -eq 70 ] || wrong "a device whose process was killed: exit code $code, wanted 70"
[ "$(grep -c '^{"partial":true}' out)" -eq 1 ] || wrong "a device whose process was killed: the other does not say that it is not whole"
[ -z "$(ls made)" ] || wrong "files are left after a kill: $(ls made)"
exit "$failed"
