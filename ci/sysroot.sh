#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prepares building for another architecture: ci/sysroot.sh amd64|arm64. Makes
#
#   build/cross/<arch>/sysroot           Debian's packages of that architecture, only unpacked
#   build/cross/<arch>/sysroot/.owners   "path package" of every shared library, for the licences
#   build/cross/<arch>/toolchain.cmake   for cmake -DCMAKE_TOOLCHAIN_FILE
#
# The cross compiler is an ordinary package of this machine; the foreign packages never touch its
# package database. Run again, it finds the work done.

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source-path=SCRIPTDIR source=private_apt.sh
. "$root/ci/private_apt.sh"
# shellcheck source-path=SCRIPTDIR source=packages.sh
. "$root/ci/packages.sh"

packages=(libc6-dev libargtable2-dev libjansson-dev libhdf5-dev libyaml-dev zlib1g-dev libaec-dev
    libpng-dev libjpeg62-turbo-dev libvulkan-dev libvulkan1 libvulkan-volk-dev ocl-icd-opencl-dev ocl-icd-libopencl1
    opencl-headers libcmocka-dev)

[ $# -eq 1 ] || die "usage: ci/sysroot.sh amd64|arm64"
arch=$1
triplet=$(triplet_of "$arch")
cross=$root/build/cross/$arch
sysroot=$cross/sysroot
log=$cross/sysroot.log

packages_install "gcc-${triplet//_/-}"
mkdir -p "$cross"

if [ "$(cat "$cross/packages" 2>/dev/null || true)" != "${packages[*]}" ]; then
    say "fetching the $arch packages (log: $log)"
    rm -rf "$sysroot" "$cross/packages"
    apt_open "$cross/apt" deb "" "$arch" ||
        die "apt's sources name no mirror for this release, so no $arch packages can be had"
    # The private package database is empty, so apt downloads the whole dependency closure.
    if ! { apt_private "$cross/apt" update -o APT::Update::Error-Mode=any &&
        apt_private "$cross/apt" install --download-only --no-install-recommends \
            "${packages[@]}"; } >"$log" 2>&1; then
        die "the $arch packages cannot be downloaded: $(
            grep -m1 -E '^[EW]: ' "$log" || echo "see $log")"
    fi
    mkdir -p "$sysroot"
    for deb in "$cross"/apt/cache/archives/*.deb; do
        dpkg -x "$deb" "$sysroot"
        name=$(basename "$deb")
        dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n "s|^\.\(/.*\.so\..*\)|\1 ${name%%_*}|p"
    done >"$cross/owners"
    mv "$cross/owners" "$sysroot/.owners"

    # An absolute link would lead out of the sysroot, into this machine's own libraries.
    find "$sysroot" -type l -lname '/*' | while IFS= read -r link; do
        ln -sfn "$(realpath -m -s --relative-to="$(dirname "$link")" \
            "$sysroot$(readlink "$link")")" "$link"
    done
    # hdf5.pc is an alternative that the package makes when it is installed; this one is only
    # unpacked.
    pc=$sysroot/usr/lib/$triplet/pkgconfig
    [ -e "$pc/hdf5.pc" ] || ln -s hdf5-serial.pc "$pc/hdf5.pc"
    rm -rf "$cross/apt" "$sysroot"/usr/share/{man,locale,info,perl,perl5,lintian}
    printf '%s\n' "${packages[*]}" >"$cross/packages"
fi

# GNU ld puts the sysroot before absolute paths in linker scripts (libc.so, libm.so) by itself.
cat >"$cross/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${triplet%%-*})
set(CMAKE_C_COMPILER $triplet-gcc)
set(CMAKE_C_LIBRARY_ARCHITECTURE $triplet)
set(CMAKE_LIBRARY_ARCHITECTURE $triplet)
set(CMAKE_SYSROOT "$sysroot")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_PATH} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "$sysroot")
set(ENV{PKG_CONFIG_LIBDIR} "$sysroot/usr/lib/$triplet/pkgconfig:$sysroot/usr/share/pkgconfig")
END
