#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The suites that run kernels, with small cases, under oclgrind: out-of-bounds accesses, races in
# shared memory and divergent barriers. oclgrind exits with the program's status whatever it found,
# so the gate is that its log stays empty. Usage: oclgrind.sh GPURT_TEST

set -euo pipefail
test=${1:?usage: oclgrind.sh GPURT_TEST}
command -v oclgrind >/dev/null || { echo "oclgrind.sh: oclgrind is not installed" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# A cache of its own: what another driver compiled is of no use here, nor the other way round.
export XDG_CACHE_HOME=$tmp GPURT_TEST_SMALL=1

oclgrind --data-races --log "$tmp/log" "$test" --device opencl:0 \
    kernel graph convert map reduce shape random chunk cartpole >"$tmp/out" 2>&1 || {
    tail -n 60 "$tmp/out"
    echo "oclgrind.sh: a case failed" >&2
    exit 1
}
grep -q 'opencl:0: Oclgrind' "$tmp/out" || {
    head -n 3 "$tmp/out"
    echo "oclgrind.sh: opencl:0 is not oclgrind's simulator" >&2
    exit 1
}
if [ -s "$tmp/log" ]; then
    head -n 60 "$tmp/log"
    echo "oclgrind.sh: complaints above" >&2
    exit 1
fi
