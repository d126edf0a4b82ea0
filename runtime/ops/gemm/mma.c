// SPDX-License-Identifier: Apache-2.0
// 16-bit products on NVIDIA's matrix units, sm_80 and newer, through OpenCL with PTX inside:
// cl/nvidia/lib/gemm_mma.k.
#include <stdio.h>

#include "case.h"

struct tile {
    uint32_t bm, bn, bk;
    uint32_t wm, wn;  // of a warp
    uint32_t stages;
};

// Large tiles where they fill the device, smaller ones where they would leave it idle. Shared
// memory is at most 48 KiB but for the first.
//
// Products that wgmma cannot do on Hopper (rows that are no multiples of 16 bytes) come here too.
// TFLOP/s of f16 4096^3 and 8192^3 on an H200 (driver 580.159.04, 2026-11), where mma.sync gives
// 640 at most: 128x256x64 465 466, 128x256x32 with 4 stages 424 441, 128x128x64 with 2 447 410,
// 128x128x32 with 2, 3, 4 stages 313 321, 378 379, 396 388.
static const struct tile tiles[] = {{128, 256, 64, 64, 64, 3},
                                    {128, 128, 32, 64, 64, 3},
                                    {128, 64, 32, 64, 32, 3},
                                    {64, 64, 32, 32, 32, 3},
                                    {32, 32, 32, 32, 32, 3}};

static uint32_t tile_lanes(const struct tile *t) {
    return t->bm / t->wm * (t->bn / t->wn) * 32;
}

// ---- the setting of the profile ----

enum { BM, BN, BK, WM, WN, STAGES };

static struct tile tile_of(const uint32_t *v) {
    return (struct tile){v[BM], v[BN], v[BK], v[WM], v[WN], v[STAGES]};
}

#define MOST_SHMEM                                                                                 \
    (224u << 10)  // of Hopper; elsewhere too much fails to build, and its check says so

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    struct tile t = tile_of(v);
    bool whole =
        v[BM] == 0 || (v[WM] && v[WN] && v[BK] && v[STAGES] >= 2 && v[BM] % v[WM] == 0 &&
                       v[BN] % v[WN] == 0 && v[WM] % 16 == 0 && v[WN] % 16 == 0 &&
                       v[BK] % 16 == 0 && v[STAGES] * (v[BM] + v[BN]) * v[BK] * 2 <= MOST_SHMEM &&
                       tile_lanes(&t) <= info->caps.max_wg);
    if (!whole) {
        snprintf(why, GRT_TUNABLE_WHY,
                 "a tile of %u x %u x %u by %u x %u is not made of whole products of 16 x 16 x 16, "
                 "or %u of it are too large",
                 v[BM], v[BN], v[BK], v[WM], v[WN], v[STAGES]);
    }
    return whole;
}

static uint32_t setting_lanes(const uint32_t *v) {
    struct tile t = tile_of(v);
    return v[BM] ? tile_lanes(&t) : 1;
}

// Sums and two sets of fragments.
static uint32_t setting_registers(const uint32_t *v) {
    return v[WM] * v[WN] / 32 + (v[WM] + v[WN]) / 2 + 40;
}

const struct grt_tunable gemm_mma_tunable = {
    "gemm",
    "mma",
    1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_MMA,
    1,
    {{"BM", {32, 64, 128, 256}},
     {"BN", {32, 64, 128, 256}},
     {"BK", {32, 64}},
     {"WM", {32, 64}},
     {"WN", {32, 64}},
     {"STAGES", {2, 3, 4}}},
    setting_possible,
    setting_lanes,
    setting_registers,
};

// ---- the variant ----

static struct tile choose_tile(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    if (gemm_sizes(g, &gemm_mma_tunable, v) && v[BM]) {
        return tile_of(v);
    }
    const struct gemm_case *meant = gemm_meant(g);
    uint32_t units = gemm_units(g);
    uint32_t last = sizeof tiles / sizeof tiles[0] - 1;
    // What Hopper's other kernels need includes shared memory beyond 48 KiB.
    bool roomy = grt_kernel_builds(g->dev, "probe_wgmma");
    for (uint32_t i = roomy ? 0 : 1; i < last; i++) {
        const struct tile *t = &tiles[i];
        uint64_t count = (uint64_t)gemm_ceil_div(meant->m, t->bm) * gemm_ceil_div(meant->n, t->bn) *
                         meant->batch;
        // Twice as many for the largest: with fewer the last round is too empty.
        if (count >= units * (i == 0 ? 2 : 1) && meant->m > t->bm / 2 && meant->n > t->bn / 2) {
            return *t;
        }
    }
    return tiles[last];
}

static bool usable(const struct gemm_case *g) {
    return (g->in == GRT_F16 || g->in == GRT_BF16) && grt_kernel_builds(g->dev, "probe_mma");
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct tile t = choose_tile(g);
    uint32_t vec = gemm_alignment(g->params.lda) | gemm_alignment(g->params.ldb) << 2 |
                   gemm_alignment(g->params.ldc) << 4;
    const struct grt_spec specs[] = {
        {"WG", tile_lanes(&t)},
        {"BM", t.bm},
        {"BN", t.bn},
        {"BK", t.bk},
        {"WM", t.wm},
        {"WN", t.wn},
        {"STAGES", t.stages},
        {"VEC", vec},
        {"HALF_SUMS", g->desc->half_sums && g->in == GRT_F16 && g->out == GRT_F16}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t.bn), gemm_ceil_div(g->m, t.bm), g->batch};
    gemm_dispatch(graph, g, "mma", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_mma = {"mma", usable, NULL, record};
