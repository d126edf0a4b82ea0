#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the .deb files of this machine's release and architecture: ci/package.sh [--build BUILD]
# [--output DIR] writes into DIR, build/packages without the option,
#
#   gpurt          the command, its man page and completions, profiles to read
#   libgpurt0      the library
#   libgpurt-dev   headers, and the files of pkg-config and CMake
#   gpurt-mpi      several devices and machines, by Open MPI, where that is when gpurt is built
#   python3-gpurt  the Python package
#
# They need one another in exactly this version and lie in no archive, so apt gets those that are
# wanted together: `apt install ./gpurt_*.deb ./libgpurt0_*.deb`. --build takes a tree that is
# built; without it build/release is. What they contain: ci/install.cmake and ci/debian.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"

build=
output=$root/build/packages
while [ $# -gt 0 ]; do
    case $1 in
    --build | --output)
        [ $# -gt 1 ] || die "$1 wants a value"
        declare "${1#--}=$(realpath -m "$2")"
        shift
        ;;
    *) die "unknown argument '$1'; usage: ci/package.sh [--build BUILD] [--output DIR]" ;;
    esac
    shift
done
need dpkg-shlibdeps dpkg-dev
if [ -z "$build" ]; then
    "$root/ci/build.sh" --no-tests release >&2
    build=$root/build/release
fi
[ -e "$build/CPackConfig.cmake" ] || die "$build was not configured by gpurt's CMakeLists.txt"

mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Same input, same bytes: the commit's time.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
# Programs and libraries in packages are readable for all, whatever the umask.
umask 022
cpack --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2 && die "cpack made no packages"; }
mv "$work"/*.deb "$output/"
for file in "$output"/*.deb; do
    say "$file: $(du -h "$file" | cut -f1)"
done
