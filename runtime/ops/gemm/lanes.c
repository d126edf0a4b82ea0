// SPDX-License-Identifier: Apache-2.0
// The product for Vulkan CPU drivers: a subgroup a workgroup, shaders/gemm/lib/gemm_lanes.k.
#include "case.h"

enum { ELEMENTS, TEXELS, ELEMENTS_OF_TEXELS };

// How a matrix with stored rows of `ld` elements is read. The last texel may be more than the
// matrix, which Vulkan buffers have room for and others may not.
static uint32_t way(const struct gemm_case *g, uint32_t ld) {
    uint32_t per = g->in == GRT_F32 ? 4 : 8;
    return ld % per == 0                                ? TEXELS
           : g->dev->info.backend == GRT_BACKEND_VULKAN ? ELEMENTS_OF_TEXELS
                                                        : ELEMENTS;
}

static bool fetchable(const struct gemm_case *g, const struct grt_tensor *tensor) {
    return (grt_tensor_bytes(tensor) + 15) / 16 <= g->dev->info.caps.max_texels;
}

// OpenCL has panels.
static bool usable(const struct gemm_case *g) {
    const struct grt_dev_info *info = &g->dev->info;
    return info->caps.software && info->backend != GRT_BACKEND_OPENCL &&
           (g->in == GRT_F32 || info->caps.f16_storage) && fetchable(g, g->desc->a) &&
           fetchable(g, g->desc->b) && gemm_within(g, gemm_ceil_div(g->m, 8), 1);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t wg = g->dev->info.caps.subgroup ? g->dev->info.caps.subgroup : 1;
    // Whole texels of 16-bit elements are 8 wide.
    uint32_t tm = g->m > 8 ? 16 : 8;
    uint32_t tn = g->n > 4 * wg || g->in != GRT_F32 ? 8 : 4;
    const struct grt_spec specs[] = {{"WG", wg},
                                     {"TM", tm},
                                     {"TN", tn},
                                     {"VEC_A", way(g, g->params.lda)},
                                     {"VEC_B", way(g, g->params.ldb)}};
    const uint32_t groups[3] = {gemm_ceil_div(g->m, tm), gemm_ceil_div(g->n, wg * tn), g->batch};
    gemm_dispatch(graph, g, "lanes", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_lanes = {"lanes", usable, NULL, record, .fills = true};
