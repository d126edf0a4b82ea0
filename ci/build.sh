#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds gpurt: ci/build.sh [--no-tests] [release|debug|asan], release without a name, into
# build/<preset>. Installs what is missing first (ci/setup.sh). --no-tests builds the command and
# asks for nothing that only tests need; a tree that has tests keeps them.
#
# Configures only when that can change something: ninja itself configures anew when a CMakeLists.txt
# changed, so only a new tree, other presets, the tests or another shader compiler are left for this
# script.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tests=ON
target=all
groups=()
if [ "${1:-}" = --no-tests ]; then
    tests=OFF
    target=gpurt_command
    groups=(build drivers)
    shift
fi
[ $# -le 1 ] || die "usage: ci/build.sh [--no-tests] [preset]"
preset=${1:-release}
cd "$root"
ci/setup.sh "${groups[@]}"

build=build/$preset
! grep -qs '^GPURT_TESTS:BOOL=ON' "$build/CMakeCache.txt" || tests=ON
glslang=$(tool_glslang)
# The cache keeps the variable: without our compiler it must be unset, or the old path stays.
define="${glslang:+-DGPURT_GLSLANG=$glslang}"
define="${define:--UGPURT_GLSLANG} -DGPURT_TESTS=$tests"
stamp=$build/.configured
if [ ! -f "$build/build.ninja" ] || [ CMakePresets.json -nt "$stamp" ] ||
    [ "$(cat "$stamp" 2>/dev/null || true)" != "$define" ]; then
    cmake --preset "$preset" "${define% *}" "${define##* }"
    printf '%s\n' "$define" >"$stamp"
fi
cmake --build --preset "$preset" --target "$target"
