// SPDX-License-Identifier: Apache-2.0
// f32 products on NVIDIA's matrix units, through OpenCL with PTX inside: each number is cut into
// three bfloats, cl/nvidia/lib/gemm_split.k. Where it pays, see split.c.
#include <stdio.h>
#include <string.h>

#include "case.h"

struct tile {
    uint32_t bm, bn, bk;
    uint32_t wm, wn;  // of a warp
};

// Large tiles where they fill the device, smaller ones where they would leave it idle. H200, driver
// 580.159.04, 2026-11: 4096^3 57 TFLOP/s with the first, 1024 of 64^3 24 (tiled 18), 64 of 1024 x
// 256 x 32 26 (tiled 12), 4096 of 32^3 15 (tiled 12). Before sums were added up every 16 of k:
// 4096^3 66 with the first, 47 with half its depth, and 64 of 1024 x 256 x 32 26 with 64 x 64, 19
// with the first.
static const struct tile tiles[] = {
    {128, 128, 32, 64, 32}, {128, 64, 16, 64, 32}, {64, 64, 16, 32, 32}, {32, 32, 16, 16, 32}};
#define TILE_COUNT (sizeof tiles / sizeof tiles[0])

static uint32_t shmem(const struct tile *t) {
    return 2 * 3 * (t->bm + t->bn) * t->bk * 2;
}

static uint32_t tile_lanes(const struct tile *t) {
    return t->bm / t->wm * (t->bn / t->wn) * 32;
}

// ---- the setting of the profile ----

enum { BM, BN, BK, WM, WN };

static struct tile tile_of(const uint32_t *v) {
    return (struct tile){v[BM], v[BN], v[BK], v[WM], v[WN]};
}

// OpenCL says 48 KiB of shared memory; Hopper has more.
#define MOST_SHMEM (224u << 10)

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    struct tile t = tile_of(v);
    bool whole =
        v[BM] == 0 || (v[WM] && v[WN] && v[BK] && v[BM] % v[WM] == 0 && v[BN] % v[WN] == 0 &&
                       v[WM] % 16 == 0 && v[WN] % 16 == 0 && v[BK] % 16 == 0 &&
                       shmem(&t) <= MOST_SHMEM && tile_lanes(&t) <= info->caps.max_wg);
    if (!whole) {
        snprintf(why, GRT_TUNABLE_WHY,
                 "a tile of %u x %u x %u by %u x %u is not made of whole products of 16 x 16 x 16, "
                 "or is too large",
                 v[BM], v[BN], v[BK], v[WM], v[WN]);
    }
    return whole;
}

static uint32_t setting_lanes(const uint32_t *v) {
    struct tile t = tile_of(v);
    return v[BM] ? tile_lanes(&t) : 1;
}

// Sums, those of 16 columns and 16 of k, fragments of three parts, floats on their way.
static uint32_t setting_registers(const uint32_t *v) {
    return v[BM] ? v[WM] * v[WN] / 32 + v[WM] / 2 + 3 * (v[WM] / 4 + 4) +
                       (v[BM] + v[BN]) * v[BK] / setting_lanes(v) + 24
                 : 1;
}

const struct grt_tunable gemm_split_mma_tunable = {
    "gemm",           "split_mma",      1u << GRT_F32, GRT_KEY_GEMM_SPLIT_MMA, 1,
    GEMM_SPLIT_KNOBS, setting_possible, setting_lanes, setting_registers,
};

// ---- the variant ----

static struct tile choose(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    const struct gemm_case *meant = gemm_meant(g);
    uint32_t units = gemm_units(g);
    // What Hopper's other kernels need includes shared memory beyond 48 KiB.
    bool roomy = gemm_has_room(g);
    gemm_sizes(g, &gemm_split_mma_tunable, v);
    if (v[BM]) {
        return tile_of(v);
    }
    // Beginning and ending a large tile does not pay for a short k.
    for (uint32_t i = meant->k <= 64 ? 2 : roomy ? 0 : 1; i + 1 < TILE_COUNT; i++) {
        const struct tile *t = &tiles[i];
        uint64_t count = (uint64_t)gemm_ceil_div(meant->m, t->bm) * gemm_ceil_div(meant->n, t->bn) *
                         meant->batch;
        if (count >= units && meant->m > t->bm / 2 && meant->n > t->bn / 2) {
            return *t;
        }
    }
    return tiles[TILE_COUNT - 1];
}

static void tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct tile t = choose(g);
    const uint32_t sizes[] = {t.bm, t.bn, t.bk, t.wm, t.wn};
    memcpy(v, sizes, sizeof sizes);
}

static bool usable(const struct gemm_case *g) {
    return g->in == GRT_F32 && grt_kernel_builds(g->dev, "probe_mma");
}

// Batches of the smallest matrices are quicker by tiny: 16384 of 16^3 27 us beside 33 (H200,
// OpenCL, 2026-11).
static bool pays(const struct gemm_case *g) {
    bool smallest = g->batch > 1 && g->m <= 16 && g->n <= 16 && g->k <= 16;
    return !smallest && gemm_split_pays(g);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct tile t = choose(g);
    uint32_t vec = gemm_alignment(g->params.lda) | gemm_alignment(g->params.ldb) << 2 |
                   gemm_alignment_of_c(g) << 4;
    const struct grt_spec specs[] = {
        {"WG", tile_lanes(&t)}, {"BM", t.bm}, {"BN", t.bn}, {"BK", t.bk},
        {"WM", t.wm},           {"WN", t.wn}, {"VEC", vec}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t.bn), gemm_ceil_div(g->m, t.bm), g->batch};
    gemm_dispatch(graph, g, "split_mma", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_split_mma = {"split_mma", usable, pays, record,
                                                    .tile = tile};
