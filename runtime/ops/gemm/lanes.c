// SPDX-License-Identifier: Apache-2.0
// The product for Vulkan CPU drivers: a subgroup a workgroup, shaders/gemm/lib/gemm_lanes.k.
#include "case.h"

enum { ELEMENTS, TEXELS, ELEMENTS_OF_TEXELS };

#define BAND 4u  // row tiles that go over all columns together

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

static uint32_t lanes_of(const struct gemm_case *g) {
    return g->dev->info.caps.subgroup ? g->dev->info.caps.subgroup : 1;
}

// OpenCL has panels.
static bool usable(const struct gemm_case *g) {
    const struct grt_dev_info *info = &g->dev->info;
    return info->caps.software && info->backend != GRT_BACKEND_OPENCL &&
           (lanes_of(g) == 1 || info->caps.shuffle) &&
           (g->in == GRT_F32 || info->caps.f16_storage) && fetchable(g, g->desc->a) &&
           fetchable(g, g->desc->b) && gemm_within(g, gemm_ceil_div(g->m, 8), 1);
}

struct tile {
    uint32_t tm, tn, steps, band;
};

static struct tile choose(const struct gemm_case *g) {
    struct tile t;
    // Whole texels of 16-bit elements are 8 wide.
    t.tm = g->m > 8 ? 16 : 8;
    t.tn = g->n > 4 * lanes_of(g) || g->in != GRT_F32 ? 8 : 4;
    // Each is a kernel that takes the driver seconds to compile, so there are few.
    t.steps = g->in != GRT_F32 || g->k >= 128 ? 8 : 4;
    t.band = g->batch == 1 ? BAND : 0;
    return t;
}

static void tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct tile t = choose(g);
    v[0] = t.tm;
    v[1] = t.tn;
    v[2] = t.steps;
    v[3] = t.band;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t wg = lanes_of(g);
    struct tile t = choose(gemm_meant(g));
    uint32_t tiles = gemm_ceil_div(g->m, t.tm);
    const struct grt_spec specs[] = {
        {"WG", wg},
        {"TM", t.tm},
        {"TN", t.tn},
        {"VEC_A", way(g, g->params.lda)},
        {"VEC_B", way(g, g->params.ldb)},
        {"STEPS", t.steps},
        {"BAND", t.band},
    };
    const uint32_t groups[3] = {t.band && t.band < tiles ? t.band : tiles,
                                gemm_ceil_div(g->n, wg * t.tn),
                                t.band ? gemm_ceil_div(tiles, t.band) : g->batch};
    gemm_dispatch(graph, g, "lanes", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_lanes = {"lanes", usable,        NULL,
                                                record,  .fills = true, .tile = tile};
