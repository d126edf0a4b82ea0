// SPDX-License-Identifier: Apache-2.0
// Batches of small f32 products on the matrix unit of bfloats, through Vulkan's cooperative
// matrices laid out as mma.sync has them: shaders/gemm/lib/gemm_split_direct.k. Where cutting
// floats into bfloats pays at all, see split.c.
//
// H200, driver 580.159.04, 2026-11, TFLOP/s of 1024 of 64^3 and 4096 of 32^3: 24.1 and 15.2 where
// `split` gave 21.6 and 13.0 and PyTorch 23.2 and 12.1. Of 64 of 1024 x 256 x 32 it gave 21.4 to
// 22.9, `split` 22.1. Where few workgroups are on a compute unit `split` is quicker: 64 of 27x27x64
// take it 4.5 us, this 6.0 and cuBLAS 4.0 (2026-11-19).

#include "coop.h"

#define MOST 64u  // rows, columns and k of what it serves unasked

static bool usable(const struct gemm_case *g) {
    const struct grt_dev_info *info = &g->dev->info;
    return g->in == GRT_F32 && info->caps.subgroup == 32 && info->caps.mma_layout &&
           coop_shape(info, GRT_BF16, GRT_F32) == 0x101010 &&
           grt_kernel_exists(g->dev, "gemm_split_direct_f32") &&
           gemm_within(g, gemm_ceil_div(g->n, 32), gemm_ceil_div(g->m, 32));
}

static uint32_t columns_of(const struct gemm_case *g) {
    return g->n > 32 ? 64 : 32;
}

static bool pays(const struct gemm_case *g) {
    return g->m <= MOST && g->n <= MOST && g->k <= MOST && gemm_split_pays(g) &&
           gemm_rounds(g, 32, columns_of(g), 1) >= 2;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t wn = columns_of(g);
    uint32_t aligned = (g->params.lda % 4 == 0 ? 1u : 0u) | (g->params.ldb % 4 == 0 ? 2u : 0u) |
                       (g->params.ldc % 8 == 0 ? 4u : 0u);
    const struct grt_spec specs[] = {
        {"WG", 32}, {"WN", wn}, {"ALIGNED", aligned}, {"TAIL", g->k % 16 != 0}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, wn), gemm_ceil_div(g->m, 32), g->batch};
    gemm_dispatch(graph, g, "split_direct", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_split_direct = {"split_direct", usable, pays, record};
