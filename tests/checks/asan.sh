#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the preset asan and runs every suite on ref there, and small cases on the drivers:
# AddressSanitizer and UndefinedBehaviorSanitizer see the host code and the C reading of the
# kernels. The texts of the kernels are those of the plain build. Clang builds it in half the time
# that GCC takes. Usage: asan.sh BUILD_DIR

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../ci/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
# shellcheck source=../../ci/packages.sh
. "$root/ci/packages.sh"
plain=$(realpath "${1:?usage: asan.sh BUILD_DIR}")
cd "$root"
glslang=$(tool_glslang)
clang=$(tool_clang)
[ -f build/asan/build.ninja ] ||
    cmake --preset asan "-DGPURT_KERNELS=$plain/kernels" ${glslang:+"-DGPURT_GLSLANG=$glslang"} \
        ${clang:+"-DCMAKE_C_COMPILER=$clang"} >/dev/null
cmake --build --preset asan --target gpurt-test >build/asan/build.log 2>&1 || {
    tail -n 40 build/asan/build.log
    exit 1
}

# suites NAME ARGUMENT...: runs gpurt-test; its cases that pass are counted, the rest is printed.
log=build/asan/suites.log
suites() {
    local name=$1 rc=0
    shift
    build/asan/gpurt-test "$@" >"$log" 2>&1 || rc=$?
    [ "$rc" -eq 0 ] || grep -vE '^\[ +(RUN|OK) |^\[=+\] |^\[  PASSED  \] ' "$log" | tail -n 200
    [ "$rc" -eq 0 ] || die "$name: exit code $rc"
    say "$name: $(grep -c '^\[ *OK' "$log") cases"
}

# Leaks are looked for where no driver is to be had: drivers keep what they allocate until the
# process ends, and LeakSanitizer fails in a process with threads of theirs. The suites that need
# drivers come after it.
needs_driver='address choose probe'
mapfile -t ref < <(build/asan/gpurt-test --list |
    awk -v drivers=" $needs_driver " '!index(drivers, " " $1 " ") { print $1 }')
export GPURT_TEST_SMALL=1
# A child process gets a copy of what waits in quarantine. Lanes of ref go from stack to stack, and
# their locals must stay there.
options=quarantine_size_mb=16:detect_stack_use_after_return=0
OCL_ICD_VENDORS=/nonexistent VK_ICD_FILENAMES=/nonexistent VK_DRIVER_FILES=/nonexistent \
    ASAN_OPTIONS=$options:detect_leaks=1 suites ref --device ref:0 "${ref[@]}"
export ASAN_OPTIONS=$options:detect_leaks=0
for suite in $needs_driver; do  # probe wants a process that has opened none
    suites "$suite" "$suite"
done
for device in opencl:0 vulkan:0; do
    suites "$device" --device "$device" buffer record graph plan random
done
