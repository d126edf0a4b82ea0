# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What every script here shares, read with `.`: the root of the checkout, one-line messages that
# begin with the script's name, and the number of parallel jobs. Sourcing it changes nothing but the
# shell's own state.

set -euo pipefail

# shellcheck disable=SC2034  # read by the scripts that source this file
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
me=$(basename "$0")

# ninja would start two jobs more than there are cores: machines with little memory suffer.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

# Where ccache is, what one checkout compiled serves the others. Without the last line the folder of
# the build, which debuggers are told, would tell them apart.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
    export CCACHE_BASEDIR=${CCACHE_BASEDIR-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR-1}
fi

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# tool_glslang: the shader compiler made by ci/glslang.sh; nothing when PATH has a good one or there
# is none. CMake gets it as GPURT_GLSLANG.
tool_glslang() {
    local path=$root/build/tools/glslang/bin/glslang
    [ ! -x "$path" ] || printf '%s' "$path"
}

# triplet_of ARCH: GNU's name of a Debian architecture.
triplet_of() {
    case $1 in
    amd64) echo x86_64-linux-gnu ;;
    arm64) echo aarch64-linux-gnu ;;
    *) die "unknown architecture '$1': amd64 and arm64 are known" ;;
    esac
}
