// SPDX-License-Identifier: Apache-2.0
// The table of ways to do a convolution, best first. The first that is usable for a case on a
// device, and pays, does it.
#include "case.h"

const struct conv_variant *const conv_variants[] = {
    // One row a line: clang-format would set them in columns.
    // clang-format off
    &conv_variant_product,
    &conv_variant_folded,
    &conv_variant_wgmma_w_registers,
    &conv_variant_wgmma_columns,
    &conv_variant_wgmma_x_registers,
    &conv_variant_wgmma,
    &conv_variant_wgmma_48k,
    &conv_variant_panel,
    &conv_variant_widened,
    &conv_variant_tiled,
    &conv_variant_patches,
    // clang-format on
};
const uint32_t conv_variant_count = sizeof conv_variants / sizeof conv_variants[0];
