// SPDX-License-Identifier: Apache-2.0
// f32 products on Hopper's matrix units, through OpenCL with PTX inside: each number is cut into three
// bfloats, cl/lib/gemm_split_wgmma.k. Where it pays, see split.c.
//
// H200, driver 580.159.04, 2026-11, TFLOP/s of 4096^3 and 8192^3: tiles of 128 x 128 x 64 93 89, 128 x 128 x 32
// 86 86, 256 x 128 x 32 80 80, 128 x 64 x 64 68 69; `tiled` 41 41, cuBLAS in f32 51 51.
#include <stdio.h>

#include "case.h"

// ---- the setting of the profile ----

enum { BM, BN, BK };

static uint32_t lanes(const uint32_t *v) {
    return v[BM] / 64 * 128;
}

static bool possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    bool whole =
        v[BM] == 0 ||
        ((v[BM] == 64 || v[BM] == 128 || v[BM] == 256) && (v[BN] == 64 || v[BN] == 128) &&
         (v[BK] == 32 || v[BK] == 64) && v[BN] * v[BK] / 8 >= lanes(v) &&
         2 * 3 * (v[BM] + v[BN]) * v[BK] * 2 <= 226u << 10 && lanes(v) <= info->caps.max_wg);
    if (!whole) {
        snprintf(
            why, GRT_TUNABLE_WHY,
            "rows are 64, 128 or 256, columns 64 or 128, depth 32 or 64, and two tiles of %u x "
            "%u x %u in three parts must fit 226 KiB",
            v[BM], v[BN], v[BK]);
    }
    return whole;
}

// Two sets of sums, and floats on their way.
static uint32_t registers(const uint32_t *v) {
    return v[BM] ? v[BN] + (v[BM] + v[BN]) * v[BK] / lanes(v) + 40 : 1;
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
    {{"BM", {64, 128, 256}}, {"BN", {64, 128}}, {"BK", {32, 64}}},
    possible,
    setting_lanes,
    registers,
};

// ---- the variant ----

static void choose(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    if (!gemm_sizes(g, &gemm_split_wgmma_tunable, v) || !v[BM]) {
        v[BM] = 128;
        v[BN] = 128;
        v[BK] = 64;
    }
}

static bool usable(const struct gemm_case *g) {
    return g->in == GRT_F32 && grt_kernel_builds(g->dev, "probe_wgmma");
}

// Where its large tiles fill the device and have enough to do; smaller ones are quicker by mma.sync.
static bool pays(const struct gemm_case *g) {
    uint32_t units = gemm_units(g);
    return gemm_split_pays(g) && g->m > 64 && g->n > 64 && g->k > 64 &&
           (uint64_t)gemm_ceil_div(g->m, 128) * gemm_ceil_div(g->n, 128) * g->batch >= units;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    choose(g, v);
    uint32_t vec = gemm_alignment(g->params.lda) | gemm_alignment(g->params.ldb) << 2 |
                   gemm_alignment(g->params.ldc) << 4;
    const struct grt_spec specs[] = {
        {"WG", lanes(v)}, {"BM", v[BM]}, {"BN", v[BN]}, {"BK", v[BK]}, {"VEC", vec}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, v[BN]), gemm_ceil_div(g->m, v[BM]), g->batch};
    gemm_dispatch(graph, g, "split_wgmma", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_split_wgmma = {"split_wgmma", usable, pays, record};
