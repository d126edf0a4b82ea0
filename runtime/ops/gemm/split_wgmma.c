// SPDX-License-Identifier: Apache-2.0
// f32 products on Hopper's matrix units, through OpenCL with PTX inside, and through Vulkan, which
// imports the kernel as PTX: each number is cut into three bfloats,
// cl/nvidia/lib/gemm_split_wgmma.k. Where it pays, see split.c.
//
// On an H200 it does 4096^3 with 90 TFLOP/s, `split` with 55, cuBLAS in f32 with 51. More figures:
// ci/records/2026-11-16-h200/products-tried.txt.
#include <stdio.h>

#include "case.h"

// ---- the setting of the profile ----

#define SHARED_BYTES (48u << 10)  // that both APIs give a kernel in PTX, whatever OpenCL says

enum { BM, BN, BK };

static uint32_t lanes(const uint32_t *v) {
    return v[BM] / 64 * 128;
}

static bool possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    bool whole =
        v[BM] == 0 || ((v[BM] == 64 || v[BM] == 128) && (v[BN] == 64 || v[BN] == 128) &&
                       (v[BK] == 16 || v[BK] == 32) && v[BN] * v[BK] / 8 >= lanes(v) &&
                       2 * 3 * v[BN] * v[BK] * 2 <= SHARED_BYTES && lanes(v) <= info->caps.max_wg);
    if (!whole) {
        snprintf(why, GRT_TUNABLE_WHY,
                 "rows are 64 or 128, columns 64 or 128, depth 16 or 32, and two tiles "
                 "of %u x %u in three parts must fit 48 KiB",
                 v[BN], v[BK]);
    }
    return whole;
}

// Two sets of sums, two of the three parts of a, floats of a and b on their way.
static uint32_t registers(const uint32_t *v) {
    return v[BM] ? v[BN] + v[BK] * 2 + v[BN] * v[BK] / lanes(v) + 36 : 1;
}

static uint32_t setting_lanes(const uint32_t *v) {
    return v[BM] ? lanes(v) : 1;
}

const struct grt_tunable gemm_split_wgmma_tunable = {
    "gemm",
    "split_wgmma",
    1u << GRT_F32,
    GRT_KEY_GEMM_SPLIT_WGMMA,
    1,
    {{"BM", {64, 128}}, {"BN", {64, 128}}, {"BK", {16, 32}}},
    possible,
    setting_lanes,
    registers,
};

// ---- what it costs ----

static const struct tile {
    uint32_t bm, bn, bk;
} tiles[] = {{128, 128, 32}, {64, 128, 16}, {64, 64, 32}};

// Nanoseconds that all tiles of this kind take, in rounds.
static uint64_t cost(const struct gemm_case *g, uint32_t i) {
    const struct tile *t = &tiles[i];
    uint64_t step = (uint64_t)gemm_costs(g, GRT_KEY_GEMM_SPLIT_WGMMA_STEP)[i];
    uint64_t ends = (uint64_t)gemm_costs(g, GRT_KEY_GEMM_SPLIT_WGMMA_ENDS)[i];
    uint32_t fit = (uint32_t)gemm_costs(g, GRT_KEY_GEMM_SPLIT_WGMMA_FIT)[i];
    return gemm_rounds(g, t->bm, t->bn, fit) * (gemm_ceil_div(g->k, t->bk) * step + ends);
}

void gemm_split_wgmma_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    if (gemm_sizes(g, &gemm_split_wgmma_tunable, v) && v[BM]) {
        return;
    }
    uint32_t best = 0;
    for (uint32_t i = 1; i < sizeof tiles / sizeof tiles[0]; i++) {
        best = cost(g, i) < cost(g, best) ? i : best;
    }
    v[BM] = tiles[best].bm;
    v[BN] = tiles[best].bn;
    v[BK] = tiles[best].bk;
}

// ---- the variant ----

// Of larger grids NVIDIA's OpenCL makes several, which the kernel does not see
// (cl/nvidia/lib/launch.k).
static bool usable(const struct gemm_case *g) {
    return g->in == GRT_F32 && gemm_ceil_div(g->m, 64) <= UINT16_MAX && g->batch <= UINT16_MAX &&
           grt_kernel_builds(g->dev, "probe_wgmma_48k");
}

// Where most of its smallest tile is filled. NVIDIA's Vulkan compiles an imported kernel at every
// start, for which a small product, 512^3 say, gains too little.
static bool pays(const struct gemm_case *g) {
    double work = (double)g->m * g->n * g->k * g->batch;
    return gemm_split_pays(g) && g->m > 48 && g->n > 48 &&
           (!g->dev->info.caps.imports || work >= 0x1p28);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    gemm_split_wgmma_tile(gemm_meant(g), v);
    uint32_t vec = gemm_alignment(g->params.lda) | gemm_alignment(g->params.ldb) << 2 |
                   gemm_alignment(g->params.ldc) << 4;
    const struct grt_spec specs[] = {
        {"WG", lanes(v)}, {"BM", v[BM]}, {"BN", v[BN]}, {"BK", v[BK]}, {"VEC", vec}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, v[BN]), gemm_ceil_div(g->m, v[BM]), g->batch};
    gemm_dispatch(graph, g, "split_wgmma", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_split_wgmma = {"split_wgmma", usable, pays, record};
