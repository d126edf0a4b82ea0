# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What every script here shares, read with `.`: the root of the checkout, one-line messages that
# begin with the script's name, installing Debian packages that are missing, and the number of
# parallel jobs. Sourcing it changes nothing but the shell's own state.

set -euo pipefail

# shellcheck disable=SC2034  # read by the scripts that source this file
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
me=$(basename "$0")

# ninja would start two jobs more than there are cores: machines with little memory suffer.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# need COMMAND PACKAGE: a missing tool is an error that names its package, never a silent skip.
need() {
    command -v "$1" >/dev/null || die "$1 is missing: install the package $2 (ci/setup.sh does)"
}

# packages_of GROUP...: the packages listed under these "# group:" headings, all without arguments.
packages_of() {
    awk -v want=" $* " '
        /^# *[a-z]+:/ { group = $0; sub(/^# */, "", group); sub(/:.*/, "", group); next }
        { sub(/#.*/, ""); gsub(/[ \t]/, "") }
        $0 != "" && (want == "  " || index(want, " " group " ")) { print }
    ' "$root/ci/packages.txt"
}

# packages_missing PACKAGE...: those that are not installed. One dpkg-query for all: 30 ms.
packages_missing() {
    { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; } |
        awk -v all="$*" '
            $1 == "installed" { have[$2] = 1 }
            END { n = split(all, p, " "); for (i = 1; i <= n; i++) if (!have[p[i]]) print p[i] }'
}

# packages_install PACKAGE...: installs what is missing; touches no network when nothing is.
packages_install() {
    command -v apt-get >/dev/null ||
        die "no apt-get here: install by hand what ci/packages.txt lists, then run cmake --preset"
    local missing as_root=() log
    mapfile -t missing < <(packages_missing "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            die "not root and no sudo; as root run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    log=$(mktemp)
    # A lock wait, because a fresh machine is often still running its own unattended upgrade.
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y
        -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${missing[@]}"; } \
        >"$log" 2>&1 </dev/null; then
        tail -n 15 "$log" >&2
        die "apt-get could not install ${missing[*]} (whole log: $log)"
    fi
    rm -f "$log"
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
