// SPDX-License-Identifier: Apache-2.0
// The table of ways to do a matrix product, best first. The first that is usable for a product on a
// device, and pays, does it.
#include "case.h"

const struct gemm_variant *const gemm_variants[] = {
    // One row a line: clang-format would set them in columns.
    // clang-format off
    &gemm_variant_wgmma_b_shared,
    &gemm_variant_wgmma_b_registers,
    &gemm_variant_wgmma_48k,
    &gemm_variant_wgmma,
    &gemm_variant_padded,
    &gemm_variant_mma,
    &gemm_variant_xmx,
    &gemm_variant_stream,
    &gemm_variant_coop,
    &gemm_variant_coop_deep,
    &gemm_variant_few_rows,
    &gemm_variant_split_direct,
    &gemm_variant_split_wgmma,
    &gemm_variant_split,
    &gemm_variant_split_mma,
    &gemm_variant_panel,
    &gemm_variant_lanes,
    &gemm_variant_tiny,
    &gemm_variant_tiled,
    &gemm_variant_plain,
    // clang-format on
};
const uint32_t gemm_variant_count = sizeof gemm_variants / sizeof gemm_variants[0];
