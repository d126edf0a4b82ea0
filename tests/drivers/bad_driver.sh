#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Drivers that crash, hang or end the process, beside good ones: what `gpurt devices` lists and
# says, what `gpurt doctor` says, and that the good ones work. Usage: bad_driver.sh GPURT DRIVERS,
# the folder of the drivers made from icd_crash.c

set -uo pipefail
gpurt=$(realpath "${1:?usage: bad_driver.sh GPURT DRIVERS}")
drivers=$(realpath "${2:?usage: bad_driver.sh GPURT DRIVERS}")
# shellcheck source-path=SCRIPTDIR source=../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../harness/command.sh"
unset VK_ICD_FILENAMES VK_DRIVER_FILES VK_ADD_DRIVER_FILES OCL_ICD_VENDORS OCL_ICD_FILENAMES
export XDG_CACHE_HOME=$tmp/cache
mkdir "$XDG_CACHE_HOME" "$tmp/vendors" "$tmp/alone" "$tmp/lib"
good=(/etc/OpenCL/vendors/*.icd)
[ -e "${good[0]}" ] || { echo "bad_driver.sh: no OpenCL driver is installed" >&2; exit 1; }
cp "${good[@]}" "$tmp/vendors"

patient=${GPURT_PROBE_SECONDS:-10}
rows() { grep -c "$1" "$tmp/out"; }
expect 0 devices --format csv
vulkan=$(rows '^vulkan:') opencl=$(rows '^opencl:')
[ "$vulkan" -gt 0 ] || wrong "no Vulkan device to begin with"
[ "$opencl" -gt 0 ] || wrong "no OpenCL device to begin with"

# listed VULKAN OPENCL: so many devices of each, and ref.
listed() {
    [ "$(rows '^[* ] *vulkan:[0-9]')" -eq "$1" ] || wrong "not $1 Vulkan devices"
    [ "$(rows '^[* ] *opencl:[0-9]')" -eq "$2" ] || wrong "not $2 OpenCL devices"
    [ "$(rows '^[* ] *ref:0')" -eq 1 ] || wrong "ref is not listed"
}

while read -r name words; do
    library=$drivers/libicd_$name.so
    [ -e "$library" ] || wrong "no $library"

    # Vulkan: the loader takes them all or none. Nothing good is waited for, so the time may be
    # short.
    [ "$name" != hang ] || export GPURT_PROBE_SECONDS=0.5
    export VK_ICD_FILENAMES=$drivers/$name.json
    expect 0 devices
    [ "$(rows '^[* ] *vulkan:')" -eq 0 ] || wrong "Vulkan devices are listed"
    [ "$(rows '^[* ] *ref:0')" -eq 1 ] || wrong "ref is not listed"
    said "^vulkan: the driver $words while listing"
    unset VK_ICD_FILENAMES

    # OpenCL, alone.
    echo "$library" >"$tmp/alone/bad.icd"
    export OCL_ICD_VENDORS=$tmp/alone/
    expect 69 doctor
    said "error .*OpenCL: the driver $words while listing"
    said '^ *ref:0 '

    # OpenCL, beside those of this machine: they stay, for use too.
    echo "$library" >"$tmp/vendors/bad.icd"
    export OCL_ICD_VENDORS=$tmp/vendors/
    [ "$name" != hang ] || GPURT_PROBE_SECONDS=10 # the good ones have to answer too
    expect 0 devices
    listed "$vulkan" "$opencl"
    said "^opencl: left out .*/bad.icd: the driver $words while listing"
    unset OCL_ICD_VENDORS
    export GPURT_PROBE_SECONDS=$patient
done <<'END'
crash crashed \(signal 11, [A-Za-z ]*\)
load crashed \(signal 11, [A-Za-z ]*\)
exit ended the process \(exit code 3\)
hang did not answer within [0-9.]+ s
END

echo "$drivers/libicd_crash.so" >"$tmp/vendors/bad.icd"
OCL_ICD_VENDORS=$tmp/vendors/ expect 69 doctor
said 'error .*OpenCL: left out .*/bad.icd: the driver crashed'
said 'dpkg -S .*/bad.icd'
said '^ *opencl:0 '
OCL_ICD_VENDORS=$tmp/vendors/ expect 0 bench launch --device opencl:0 --count 1 --time 0.01 --samples 1
said 'on opencl:0'

# The name of an API asks no driver of another: one that hangs would take ten minutes.
VK_ICD_FILENAMES=$drivers/hang.json GPURT_PROBE_SECONDS=600 timeout 120 "$gpurt" bench launch \
    --device ref --count 1 --time 0.01 --samples 1 >"$tmp/out" 2>"$tmp/err" || wrong "ref: exit code $?"
said 'on ref:0'

# A driver that no file names, and that cannot be opened.
if ! "$gpurt" devices --format csv | grep -q ',hardware,'; then
    export LD_LIBRARY_PATH=$tmp/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    ln -s "$drivers/libicd_load.so" "$tmp/lib/libEGL_nvidia.so.0"
    ln -s "$drivers/libicd_load.so" "$tmp/lib/libnvidia-opencl.so.1"
    expect 0 devices
    listed "$vulkan" "$opencl"
    said '^vulkan: the library libEGL_nvidia.so.0 crashed .* it is left out'
    said '^opencl: the library libnvidia-opencl.so.1 crashed .* it is left out'
fi

exit "$failed"
