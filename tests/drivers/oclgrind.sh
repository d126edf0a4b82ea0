#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The suites that run kernels, with small cases, on oclgrind's simulator: out-of-bounds accesses,
# races in shared memory and divergent barriers. Its log is the gate, for the program's exit status
# does not tell. Usage: oclgrind.sh GPURT_TEST
#
# The command `oclgrind` preloads its library under programs that link OpenCL; gpurt opens the
# loader itself, so the simulator is made known to that as the only driver, and set up by its
# environment.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../ci/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
# shellcheck source-path=SCRIPTDIR source=../../ci/packages.sh
. "$root/ci/packages.sh"
test=${1:?usage: oclgrind.sh GPURT_TEST}
need oclgrind oclgrind
driver=$(command -v oclgrind)
driver=$(cd "$(dirname "$driver")/../lib/oclgrind" && pwd)/liboclgrind-rt-icd.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/vendors"
echo "$driver" >"$tmp/vendors/oclgrind.icd"
export OCL_ICD_VENDORS=$tmp/vendors/ OCLGRIND_LOG=$tmp/log OCLGRIND_DATA_RACES=1
# Optimised code has saturating subtractions, and code inlined by force leaves notes on aliasing:
# the simulator knows neither.
export OCLGRIND_BUILD_OPTIONS="-cl-opt-disable -Dalways_inline=unused"
# A cache of its own: what another driver compiled is of no use here, nor the other way round.
export XDG_CACHE_HOME=$tmp GPURT_TEST_SMALL=1

fail() {
    grep -vE '^\[ +(RUN|OK) ' "$tmp/out" | head -n 60
    head -n 60 "$tmp/log" 2>/dev/null || true
    echo "oclgrind.sh: $1" >&2
    exit 1
}

# The control: a kernel that strays must show in the log.
GPURT_TEST_STRAY=1 "$test" --device opencl:0 --case strays_on_purpose kernel >"$tmp/out" 2>&1 || true
grep -q 'opencl:0: Oclgrind' "$tmp/out" || fail "opencl:0 is not oclgrind's simulator"
grep -q 'Invalid write' "$tmp/log" || fail "a stray write was not seen"
rm "$tmp/log"

"$test" --device opencl:0 kernel graph convert map reduce shape gemm random cartpole \
    >"$tmp/out" 2>&1 || fail "a case failed"
[ ! -s "$tmp/log" ] || fail "complaints above"
cases=$(grep -c '^\[ *OK' "$tmp/out")
# Kernels of learners and of images, small cases of each; each run begins the log anew. Of evolution
# strategies the update: a hundred thousand draws of noise, one by one, would take a minute.
for one in 'es *_update' 'colsum *' 'grads *' 'nn softmax_special' 'nn layer_norm_constant' 'images pools' \
    'mlprows results' 'optim halt_and_skip' 'contrast losses' 'splitk cut' 'conv forward' 'conv data' \
    'conv weight' 'colours counters' 'mix images' 'mix losses' 'fused nan_is_found' \
    'uav encounters_end_as_stated' 'registers observed' 'flight same_bits_as_ref'; do
    read -r suite pattern <<<"$one"
    "$test" --device opencl:0 --case "$pattern" "$suite" >"$tmp/out" 2>&1 || fail "a case of $suite failed"
    [ ! -s "$tmp/log" ] || fail "complaints above"
    cases=$((cases + $(grep -c '^\[ *OK' "$tmp/out")))
done

# Compiled kernels on disk: PoCL's are not kept, the simulator's are. Each run is a process of its
# own and would begin the log anew.
unset OCLGRIND_LOG
"$test" --device opencl:0 binaries >"$tmp/out" 2>&1 || fail "a case failed"
grep -q '[1-9] taken\|[1-9] built' "$tmp/out" || fail "no kernel was built"
echo "$cases cases, no complaint"
