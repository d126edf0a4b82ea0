#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the preset asan and runs every suite on ref there, and small cases on the drivers:
# AddressSanitizer and UndefinedBehaviorSanitizer see the host code and the C reading of the kernels.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
# With the shader compiler of the plain build: the kernels are the same ones.
glslang=$root/build/tools/glslang/bin/glslang
define=()
[ ! -x "$glslang" ] || define=("-DGPURT_GLSLANG=$glslang")
[ -f build/asan/build.ninja ] || cmake --preset asan "${define[@]}" >/dev/null
cmake --build --preset asan -j "${CMAKE_BUILD_PARALLEL_LEVEL:-2}" >build/asan/build.log 2>&1 || {
    tail -n 40 build/asan/build.log
    exit 1
}
# Leaks are looked for on ref alone: drivers keep what they allocate until the process ends, and the
# suites that list devices load drivers too.
mapfile -t ref < <(build/asan/gpurt-test --list | awk '$1 != "choose" && $1 != "probe" { print $1 }')
GPURT_TEST_SMALL=1 ASAN_OPTIONS=detect_leaks=1 build/asan/gpurt-test --device ref:0 "${ref[@]}"
export ASAN_OPTIONS=detect_leaks=0
build/asan/gpurt-test choose probe
for device in opencl:0 vulkan:0; do
    GPURT_TEST_SMALL=1 build/asan/gpurt-test --device "$device" buffer record graph plan random
done
