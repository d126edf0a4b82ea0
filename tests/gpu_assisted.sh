#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The suites that run kernels, with small cases, under the GPU-assisted checks of the Vulkan
# validation layer: out-of-bounds accesses inside kernels. Every message fails its case.
# Usage: gpu_assisted.sh GPURT_TEST

set -euo pipefail
test=${1:?usage: gpu_assisted.sh GPURT_TEST}
export GPURT_TEST_SMALL=1 GPURT_GPU_ASSISTED=1
# The control: a kernel that strays must fail its case.
if out=$(GPURT_TEST_STRAY=1 "$test" --device vulkan:0 --case strays_on_purpose kernel 2>&1); then
    printf '%s\n' "$out"
    echo "gpu_assisted.sh: a stray write was not seen" >&2
    exit 1
fi
grep -q 'of the validation layer' <<<"$out" || { printf '%s\n' "$out"; exit 1; }
# One case of the products: lavapipe takes long to compile their kernels with the checks inside.
"$test" --device vulkan:0 --case every_shape gemm
exec "$test" --device vulkan:0 graph convert map reduce shape random chunk optim cartpole
