#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes one archive that runs on another Linux machine with nothing installed but glibc and a GPU
# driver: ci/bundle.sh [--arch amd64|arm64] [--output DIR] writes
# DIR/gpurt-<version>-linux-<arch>.tar.gz (DIR is build/ without the option), which holds
#
#   bin/gpurt, bin/gpurt-test     found first; they look for libraries in ../lib (RPATH)
#   lib/libgpurt.so.*             and every library these need, glibc's own left out
#   lib/libvulkan.so.1            loaded at run time, so no NEEDED entry names it
#   lib/fallback/libOpenCL.so.1   the same, but the machine's own loader is better where it has one
#   licenses/                     what the bundled libraries ask to be shipped along
#
# An architecture that is not this machine's is cross-compiled, see ci/sysroot.sh. The shader
# compiler is a tool of this machine in either case.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

arch=
output=$root/build
while [ $# -gt 0 ]; do
    case $1 in
    --arch | --output)
        [ $# -gt 1 ] || die "$1 wants a value"
        if [ "$1" = --arch ]; then arch=$2; else output=$(realpath -m "$2"); fi
        shift
        ;;
    *) die "unknown argument '$1'; usage: ci/bundle.sh [--arch amd64|arm64] [--output DIR]" ;;
    esac
    shift
done

native=$(dpkg --print-architecture)
arch=${arch:-$native}
triplet=$(triplet_of "$arch")
work=$root/build/bundle/$arch
mkdir -p "$output" "$work"
: >"$work.log"
cd "$root"

# This machine's architecture comes from the plain build; another has a tree of its own.
sysroot=
if [ "$arch" = "$native" ]; then
    build=$root/build/release
    make=("$root/ci/build.sh" release)
else
    "$root/ci/setup.sh" build drivers tests
    "$root/ci/sysroot.sh" "$arch"
    sysroot=$root/build/cross/$arch/sysroot
    build=$work
    glslang=$(tool_glslang)
    cmake --preset release -B "$build" ${glslang:+"-DGPURT_GLSLANG=$glslang"} -DCMAKE_INSTALL_LIBDIR=lib \
        "-DCMAKE_TOOLCHAIN_FILE=$root/build/cross/$arch/toolchain.cmake" >>"$work.log" 2>&1 ||
        { tail -n 20 "$work.log" >&2 && die "gpurt cannot be configured for $arch (whole log: $work.log)"; }
    make=(cmake --build "$build")
fi
if ! "${make[@]}" >>"$work.log" 2>&1; then
    tail -n 20 "$work.log" >&2
    die "gpurt does not build for $arch (whole log: $work.log)"
fi
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")
name=gpurt-$version-linux-$arch

stage=$work/stage/$name
rm -rf "$work/stage"
mkdir -p "$stage/lib/fallback" "$stage/licenses"
# The tests are a component of their own: `cmake --install` alone leaves them out.
cmake --install "$build" --prefix "$work/stage/install" --strip >/dev/null
cmake --install "$build" --prefix "$work/stage/install" --strip --component tests >/dev/null
[ -x "$work/stage/install/bin/gpurt" ] || die "cmake --install gave no bin/gpurt"
cp -a "$work/stage/install/bin" "$stage/"
cp -a "$work/stage/install/lib"/libgpurt.so.* "$stage/lib/"
[ ! -d "$work/stage/install/share" ] || cp -a "$work/stage/install/share" "$stage/"
rm -rf "$work/stage/install"
cp LICENSE "$stage/"

# find_library NAME: its path on this machine or in the sysroot.
find_library() {
    local dir
    for dir in "/lib/$triplet" "/usr/lib/$triplet" "/usr/lib/$triplet/hdf5/serial" /lib /usr/lib; do
        if [ -e "$sysroot$dir/$1" ]; then
            printf '%s' "$sysroot$dir/$1"
            return
        fi
    done
    die "$1 is needed but not found for $arch: add its package to ci/sysroot.sh"
}

# owner PATH: the Debian package a library is from. Either spelling, /lib or /usr/lib, may be the
# one that the package database knows.
owner() {
    local path=${1#"$sysroot"} try
    path=${path#/usr}
    for try in "$path" "/usr$path"; do
        if [ -n "$sysroot" ]; then
            awk -v path="$try" '$1 == path { print $2; found = 1; exit } END { exit !found }' \
                "$sysroot/.owners" && return
        else
            dpkg-query -S "$try" 2>/dev/null | sed 's/:.*//;q' | grep . && return
        fi
    done
}

# take NAME DIR: copies a library and its licence.
take() {
    local path package
    path=$(find_library "$1")
    cp -L "$path" "$2/$1"
    chmod 644 "$2/$1"
    package=$(owner "$path") || true
    if [ -n "$package" ] && [ -e "$sysroot/usr/share/doc/$package/copyright" ]; then
        cp -L "$sysroot/usr/share/doc/$package/copyright" "$stage/licenses/$package"
    else
        say "no licence text found for $1 (package '${package:-unknown}')"
    fi
}

# Every machine has these, and they must fit its kernel and its drivers: never bundle them.
system='^(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libanl|libgcc_s)\.so'
entries() { readelf -d "$1" 2>/dev/null | sed -n "s/.*($2).*\[\(.*\)\]/\1/p"; }

# old_tag FILE: makes its RUNPATH an RPATH: the tag of that entry of the dynamic section, 29,
# becomes 15. A RUNPATH serves only the libraries a file names itself; an RPATH also those that the
# libraries name in turn (HDF5 needs thirty).
old_tag() {
    local table at entry
    table=$(readelf -dW "$1")
    at=$(sed -n 's/^Dynamic section at offset \(0x[0-9a-f]*\) .*/\1/p' <<<"$table")
    entry=$(grep '^ *0x' <<<"$table" | grep -n -m 1 '(RUNPATH)' | cut -d: -f1) || return 0
    # An entry of a 64-bit ELF file: the tag and its value, 8 bytes each, the low byte first.
    printf '\017' | dd of="$1" bs=1 seek=$((at + 16 * (entry - 1))) conv=notrunc status=none
}
for file in "$stage"/bin/* "$stage"/lib/libgpurt.so.*; do
    [ ! -f "$file" ] || [ -L "$file" ] || old_tag "$file"
done

take libvulkan.so.1 "$stage/lib"
take libOpenCL.so.1 "$stage/lib/fallback"
todo=("$stage"/bin/* "$stage"/lib/*.so.* "$stage"/lib/fallback/*.so.*)
while [ "${#todo[@]}" -gt 0 ]; do
    next=()
    for file in "${todo[@]}"; do
        for need in $(entries "$file" NEEDED); do
            if [[ ! $need =~ $system ]] && [ ! -e "$stage/lib/$need" ]; then
                take "$need" "$stage/lib"
                next+=("$stage/lib/$need")
            fi
        done
    done
    todo=("${next[@]}")
done

# What would make the bundle fail elsewhere is an error here. bin/ also has a folder of test
# drivers.
mapfile -t programs < <(find "$stage/bin" -maxdepth 1 -type f)
for file in "${programs[@]}"; do
    # shellcheck disable=SC2016  # the loader reads $ORIGIN, not the shell
    [[ ":$(entries "$file" RPATH):" == *':$ORIGIN/../lib:'* ]] ||
        die "$(basename "$file") has no RPATH \$ORIGIN/../lib: set INSTALL_RPATH in CMake"
done
for file in "$stage"/lib/*.so.*; do
    [ -z "$(entries "$file" RUNPATH)" ] ||
        say "$(basename "$file") has a RUNPATH: what it needs may be missed in the bundle"
done
[ ! -e "$stage/lib/libstdc++.so.6" ] ||
    say "the bundle holds libstdc++, which may be older than a GPU driver wants"
if [ "$arch" = "$native" ]; then
    lost=$(for file in "${programs[@]}"; do ldd "$file"; done | grep 'not found' | sort -u || true)
    [ -z "$lost" ] || die "libraries not found: $lost"
fi
glibc=$(readelf -V "${programs[@]}" "$stage"/lib/*.so.* 2>/dev/null |
    grep -oE 'GLIBC_[0-9]+\.[0-9.]+' | sort -Vu | tail -n 1)

# Same input, same bytes: sorted, no owner, the commit's time.
time=$(git log -1 --format=%ct 2>/dev/null || date +%s)
tar -C "$work/stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" \
    -cf - "$name" | gzip -9n >"$output/$name.tar.gz.new"
mv "$output/$name.tar.gz.new" "$output/$name.tar.gz"
libraries=("$stage"/lib/*.so.*)
say "$output/$name.tar.gz: $(du -h "$output/$name.tar.gz" | cut -f1)," \
    "${#libraries[@]} libraries, needs glibc ${glibc#GLIBC_} or newer"
