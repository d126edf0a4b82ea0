#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The suites that run kernels, with small cases, under the GPU-assisted checks of the Vulkan
# validation layer: out-of-bounds accesses inside kernels. Every message fails its case.
# Usage: gpu_assisted.sh GPURT_TEST

set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../ci/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
# shellcheck source-path=SCRIPTDIR source=../../ci/packages.sh
. "$root/ci/packages.sh"
test=${1:?usage: gpu_assisted.sh GPURT_TEST}
export GPURT_TEST_SMALL=1 GPURT_GPU_ASSISTED=1
# Layers of Debian 13 and later take this setting only; those before them only what gpurt asks for
# by the extension.
export VK_KHRONOS_VALIDATION_GPUAV_ENABLE=true
# The control: a kernel that strays must fail its case.
if out=$(GPURT_TEST_STRAY=1 "$test" --device vulkan:0 --case strays_on_purpose kernel 2>&1); then
    ! grep -q 'validation.* is not installed' <<<"$out" ||
        lane_lacks "the Vulkan validation layer" vulkan-validationlayers
    printf '%s\n' "$out"
    die "a stray write was not seen"
fi
grep -q 'of the validation layer' <<<"$out" || { printf '%s\n' "$out"; exit 1; }
# One case of the products: lavapipe takes long to compile their kernels with the checks inside.
"$test" --device vulkan:0 --case every_shape gemm
for one in 'contrast losses' 'nn softmax_special' 'nn layer_norm_constant' 'images pools' 'mix images' \
    'colours erased' 'splitk cut'; do
    read -r suite pattern <<<"$one"
    "$test" --device vulkan:0 --case "$pattern" "$suite"
done
exec "$test" --device vulkan:0 graph convert map reduce shape random chunk optim cartpole
