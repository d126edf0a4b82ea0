#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The .deb files of a build tree: lintian finds no error, each holds what its name says, they need
# the right packages, and what they hold works from another folder: the command, a program by
# pkg-config and by CMake, the Python package, the MPI plugin. ci/package_check.sh installs them.
# Usage: packages.sh SOURCE_DIR BUILD_DIR C_COMPILER

set -euo pipefail
source=${1:?usage: packages.sh SOURCE_DIR BUILD_DIR C_COMPILER}
build=${2:?usage: packages.sh SOURCE_DIR BUILD_DIR C_COMPILER}
cc=${3:?usage: packages.sh SOURCE_DIR BUILD_DIR C_COMPILER}
# shellcheck source-path=SCRIPTDIR source=../../ci/common.sh
. "$source/ci/common.sh"
# shellcheck source-path=SCRIPTDIR source=../../ci/packages.sh
. "$source/ci/packages.sh"
need lintian lintian
need dpkg-shlibdeps dpkg-dev
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { die "$*"; }

"$source/ci/package.sh" --build "$build" --output "$tmp/debs" 2>"$tmp/log" || { cat "$tmp/log" >&2; fail "no packages"; }
lintian --allow-root --fail-on error "$tmp"/debs/*.deb >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; fail "lintian"; }

deb() { printf '%s\n' "$tmp/debs/$1"_*.deb; }
has() { # PACKAGE PATTERN...: files of it, as extended expressions of the whole path
    local package=$1 list pattern
    shift
    list=$(dpkg-deb -c "$(deb "$package")" | awk '{ print $6 }')
    for pattern in "$@" "/usr/share/doc/$package/copyright" "/usr/share/doc/$package/changelog.Debian.gz"; do
        grep -qxE "[.]$pattern" <<<"$list" || fail "$package has no $pattern"
    done
    ! grep -vE '/$' <<<"$list" | grep -qvE '^./usr/' || fail "$package has files outside of /usr"
}
lib=/usr/lib/$("$cc" -print-multiarch)
has gpurt /usr/bin/gpurt /usr/share/man/man1/gpurt.1.gz /usr/share/bash-completion/completions/gpurt \
    '/usr/share/gpurt/profiles/cpu[.]profile'
has libgpurt0 "$lib/libgpurt.so.0" "$lib/libgpurt.so.[0-9.]+"
has libgpurt-dev "$lib/libgpurt.so" /usr/include/gpurt/gpurt.h "$lib/pkgconfig/gpurt.pc" \
    "$lib/cmake/gpurt/gpurt-config.cmake"
has python3-gpurt /usr/lib/python3/dist-packages/gpurt/__init__.py /usr/lib/python3/dist-packages/gpurt/py.typed

# needs PACKAGE FIELD PATTERN...
needs() {
    local package=$1 field=$2 value pattern
    shift 2
    value=$(dpkg-deb -f "$(deb "$package")" "$field")
    for pattern in "$@"; do
        grep -qE "(^|, )$pattern(,|$)" <<<"$value" || fail "$package: $field '$value' lacks $pattern"
    done
}
version=$(dpkg-deb -f "$(deb gpurt)" Version)
needs gpurt Depends "libgpurt0 [(]= $version[)]" 'libc6 [(].*' 'libjansson4.*'
needs libgpurt0 Depends 'libc6 [(].*' 'libhdf5.*' 'zlib1g.*'
needs libgpurt0 Recommends libvulkan1 'ocl-icd-libopencl1 .*'
needs libgpurt-dev Depends "libgpurt0 [(]= $version[)]"
needs python3-gpurt Depends "libgpurt0 [(]= $version[)]" python3-numpy
! dpkg-deb -f "$(deb libgpurt0)" Depends | grep -q openmpi || fail "the library needs Open MPI"

for file in "$tmp"/debs/*.deb; do
    dpkg-deb -x "$file" "$tmp/root"
done
# The loader finds libraries by itself: a run path is for plugins only.
! readelf -d "$tmp/root/usr/bin/gpurt" | grep -qE 'R(UN)?PATH' || fail "bin/gpurt has a run path"
export LD_LIBRARY_PATH=$tmp/root$lib
run() { env HOME="$tmp" "$@"; }
grep -q "libgpurt.so.0 => $tmp/root$lib/" <<<"$(ldd "$tmp/root/usr/bin/gpurt")" || fail "another libgpurt is taken"
run "$tmp/root/usr/bin/gpurt" bench memory --device ref:0 --size 64KiB --time 0.01 --samples 1 >"$tmp/log" ||
    fail "the command of the package does not run"

mkdir "$tmp/program"
cat >"$tmp/program/main.c" <<'C'
#include <gpurt/gpurt.h>
#include <stdio.h>
int main(void) {
    return printf("%s\n", grt_version()) > 0 ? 0 : 1;
}
C
read -ra flags < <(PKG_CONFIG_PATH=$tmp/root$lib/pkgconfig pkg-config --cflags --libs gpurt)
"$cc" "$tmp/program/main.c" -o "$tmp/by-pkg-config" "${flags[@]}"
"$tmp/by-pkg-config" >/dev/null
cat >"$tmp/program/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(program LANGUAGES C)
find_package(gpurt REQUIRED)
add_executable(by-cmake main.c)
target_link_libraries(by-cmake PRIVATE gpurt::gpurt)
CMAKE
{ cmake -G Ninja -S "$tmp/program" -B "$tmp/program/b" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$tmp/root/usr" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF && cmake --build "$tmp/program/b"; } >"$tmp/log" 2>&1 ||
    { cat "$tmp/log" >&2; fail "find_package(gpurt)"; }
grep -q "$tmp/root$lib" <<<"$(readelf -d "$tmp/program/b/by-cmake")" || fail "CMake took another gpurt"
"$tmp/program/b/by-cmake" >/dev/null
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tmp/root/usr/lib/python3/dist-packages /usr/bin/python3 -c '
import gpurt, sys
assert gpurt.__file__.startswith(sys.argv[1]) and gpurt.devices()' "$tmp/root" || fail "the Python package"
fi
if [ -e "$tmp/root$lib/gpurt/libgpurt-mpi.so" ]; then
    needs gpurt-mpi Depends "libgpurt0 [(]= $version[)]" 'libopenmpi.*'
    # The plugin is found by the library's run path alone.
    grep -q 'path: \[$ORIGIN/gpurt\]' <<<"$(readelf -d "$tmp/root$lib/libgpurt.so.0")" || fail "no run path to plugins"
fi
say "$(ls "$tmp/debs" | paste -sd' ')"
