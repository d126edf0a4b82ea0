#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds gpurt: ci/build.sh [release|debug|asan], release without an argument, into build/<preset>.
# Installs what is missing first (ci/setup.sh). Configures only when that can change something:
# ninja itself configures anew when a CMakeLists.txt changed, so only a new tree, other presets or
# another shader compiler are left for this script.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -le 1 ] || die "usage: ci/build.sh [preset]"
preset=${1:-release}
cd "$root"
ci/setup.sh

build=build/$preset
glslang=$(tool_glslang)
# The cache keeps the variable: without our compiler it must be unset, or the old path stays.
define=${glslang:+-DGPURT_GLSLANG=$glslang}
stamp=$build/.configured
if [ ! -f "$build/build.ninja" ] || [ CMakePresets.json -nt "$stamp" ] ||
    [ "$(cat "$stamp" 2>/dev/null || true)" != "$define" ]; then
    cmake --preset "$preset" "${define:--UGPURT_GLSLANG}"
    printf '%s\n' "$define" >"$stamp"
fi
cmake --build --preset "$preset"
