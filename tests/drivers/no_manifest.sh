#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A machine with NVIDIA's drivers and without the files that name them, as containers are: libraries
# with their names are lavapipe and oclgrind's simulator in truth. gpurt makes the files itself, in
# its own cache, says so once, and leaves a user's own choice of drivers alone. Usage:
# no_manifest.sh GPURT

set -uo pipefail
gpurt=$(realpath "${1:?usage: no_manifest.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../harness/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/../harness/command.sh"
unset VK_ICD_FILENAMES VK_DRIVER_FILES VK_ADD_DRIVER_FILES OCL_ICD_VENDORS OCL_ICD_FILENAMES
if "$gpurt" devices --format csv | grep -q ',hardware,'; then
    echo "no_manifest.sh: a GPU is here, and files are made only where none is found"
    exit 0
fi

lavapipe=$(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' /usr/share/vulkan/icd.d/lvp_icd*.json | head -n 1)
oclgrind=$(command -v oclgrind) || {
    echo "no_manifest.sh: skipped: oclgrind, which stands in for a driver, is not installed"
    exit 77
}
oclgrind=$(cd "$(dirname "$oclgrind")/../lib/oclgrind" && pwd)/liboclgrind-rt-icd.so
mkdir "$tmp/lib"
case $lavapipe in
/*) ln -s "$lavapipe" "$tmp/lib/libEGL_nvidia.so.0" ;;
*) ln -s "$(ldconfig -p | awk -v name="$(basename "$lavapipe")" '$1 == name { print $NF; exit }')" \
    "$tmp/lib/libEGL_nvidia.so.0" ;;
esac
ln -s "$oclgrind" "$tmp/lib/libnvidia-opencl.so.1"
export XDG_CACHE_HOME=$tmp/cache
mkdir "$XDG_CACHE_HOME"

rows() { grep -c "$1" "$tmp/out"; }
expect 0 devices --format csv
before=$(rows '^vulkan:') before_cl=$(rows '^opencl:')

export LD_LIBRARY_PATH=$tmp/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
expect 0 devices
[ "$(rows ' vulkan:')" -eq $((before + 1)) ] || wrong "the Vulkan driver without a manifest is not listed"
[ "$(rows ' opencl:')" -eq $((before_cl + 1)) ] || wrong "the OpenCL driver without a vendor file is not listed"
said 'vulkan: .*libEGL_nvidia.so.0.* made a manifest'
said 'opencl: made the OpenCL driver libnvidia-opencl.so.1 known'
grep -q libEGL_nvidia "$XDG_CACHE_HOME/gpurt/nvidia_icd.json" || wrong "no manifest in the cache"
grep -q libnvidia-opencl "$XDG_CACHE_HOME"/gpurt/opencl-vendors/gpurt-nvidia.icd || wrong "no vendor file in the cache"

# Once: a first command tells, whichever it is, and later ones do not.
rm -r "$XDG_CACHE_HOME/gpurt"
memory=(bench memory --size 64KiB --time 0.01 --samples 1 --device "vulkan:$before")
expect 0 "${memory[@]}"
[ "$(grep -c 'made a manifest' "$tmp/err")" -eq 1 ] || wrong "a manifest is made, and that is not said once"
expect 0 "${memory[@]}"
! grep -q manifest "$tmp/err" || wrong "the manifest of before is spoken of again"

# What gpurt named for itself, a process that it started inherits: that is nobody's choice.
rm -r "$XDG_CACHE_HOME/gpurt"
OCL_ICD_VENDORS=$tmp/gone/opencl-vendors/ expect 0 devices
[ "$(rows ' opencl:')" -eq $((before_cl + 1)) ] || wrong "a folder of gpurt's own is taken for a user's choice"

VK_ICD_FILENAMES=/nonexistent OCL_ICD_VENDORS=/nonexistent expect 0 devices --format csv
! grep -qE '^(vulkan|opencl):' "$tmp/out" || wrong "drivers are added to those that the user chose"
VK_ICD_FILENAMES=/nonexistent expect 0 devices
grep -q "VK_ICD_FILENAMES says, '/nonexistent'" "$tmp/out" "$tmp/err" ||
    wrong "whose fault it is that there is no Vulkan driver is not said"

exit "$failed"
