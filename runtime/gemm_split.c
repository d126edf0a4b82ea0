// SPDX-License-Identifier: Apache-2.0
// f32 products on the matrix unit of bfloats, through Vulkan's cooperative matrices on NVIDIA's devices: each
// number is cut into three, shaders/lib/gemm_coop_split.k, which takes six products in place of one and has
// the error of f32. It pays where the matrix unit is far more than six times as fast as ordinary arithmetic:
// on large chips (H100: 15 times, A100: 16), not on those for games (RTX 4090: 2 times). The profile says where.
#include <stdio.h>
#include <string.h>

#include "gemm_coop.h"

// Subgroups have 32 rows. H200, driver 580.159.04, 2026-11; TFLOP/s of 4096^3, where `tiled` has 40.
static const struct coop_tile tiles[] = {
    {64, 128, 16, 32, 64, 0, 2, 2500, 2500, 4300},  // 52
    {32, 64, 16, 32, 64, 0, 8, 2700, 2700, 3300},   // 49; 1024 of 64^3 22, 64 of 1024 x 256 x 32 23
    {32, 32, 16, 32, 32, 0, 12, 2100, 2100, 4000},  // 4096 of 32^3 14, tiled 10
};
#define TILE_COUNT (sizeof tiles / sizeof tiles[0])

// Two sets of sums, the fragments of three parts, and floats on their way.
static uint32_t registers(uint32_t wn) {
    return 2 * wn + 3 * (8 + 4) + 16 + wn / 2 + 40;
}

static bool runs(const struct grt_dev_info *info, const struct coop_tile *t) {
    uint32_t shape = coop_shape(info, GRT_BF16, GRT_F32);
    return shape == 0x101010 && t->wm == 32 && (t->wn == 32 || t->wn == 64) &&
           coop_fits(info, t, shape);
}

// ---- the setting of the profile ----

enum { BM, BN, WN };

static struct coop_tile tile_of(const uint32_t *v) {
    return (struct coop_tile){v[BM], v[BN], 16, 32, v[WN], 0, 1, 0, 0, 0};
}

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    struct coop_tile t = tile_of(v);
    bool possible = v[BM] == 0 || runs(info, &t);
    if (!possible) {
        snprintf(why, GRT_TUNABLE_WHY,
                 "no matrix unit for it, or a tile of %u x %u is not made of whole subgroups, 32 x "
                 "%u, which are 32 or 64 wide, or of too many",
                 v[BM], v[BN], v[WN]);
    }
    return possible;
}

static uint32_t setting_lanes(const uint32_t *v) {
    return v[BM] ? v[BM] / 32 * (v[BN] / v[WN]) * 32 : 1;
}

static uint32_t setting_registers(const uint32_t *v) {
    return registers(v[WN]);
}

const struct grt_tunable gemm_split_tunable = {
    "gemm",
    "split",
    1u << GRT_F32,
    GRT_KEY_GEMM_SPLIT,
    1,
    {{"BM", {32, 64, 128}}, {"BN", {32, 64, 128, 256}}, {"WN", {32, 64}}},
    setting_possible,
    setting_lanes,
    setting_registers,
};

// ---- the variant ----

static bool possible(const struct gemm_case *g, const struct coop_tile *t) {
    return runs(&g->dev->info, t) && gemm_ceil_div(g->m, t->bm) <= g->dev->info.caps.max_groups[1];
}

// The tile of the profile, where it names one that suits, else the one whose rounds take least; bm 0: none.
static struct coop_tile choose(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    gemm_sizes(g, &gemm_split_tunable, v);
    struct coop_tile best = tile_of(v);
    if (best.bm && possible(g, &best)) {
        return best;
    }
    uint64_t least = UINT64_MAX;
    best.bm = 0;
    for (uint32_t i = 0; i < TILE_COUNT; i++) {
        uint64_t time = coop_cost(g, &tiles[i]);
        if (time < least && possible(g, &tiles[i])) {
            least = time;
            best = tiles[i];
        }
    }
    return best;
}

static bool split_usable(const struct gemm_case *g) {
    const struct grt_dev_info *info = &g->dev->info;
    return g->in == GRT_F32 && info->caps.subgroup == 32 && strstr(info->vendor, "NVIDIA") &&
           grt_kernel_exists(g->dev, "gemm_split_f32") && g->batch <= info->caps.max_groups[2] &&
           (g->desc->variant || gemm_split_pays(g)) && choose(g).bm;
}

static void split_record(struct grt_graph *graph, const struct gemm_case *g) {
    struct coop_tile t = choose(g);
    uint32_t aligned = (g->params.lda % 4 == 0 ? 1u : 0u) | (g->params.ldb % 4 == 0 ? 2u : 0u) |
                       (g->params.ldc % 8 == 0 ? 4u : 0u);
    const struct grt_spec specs[] = {{"WG", coop_lanes(&g->dev->info, &t)},
                                     {"BM", t.bm},
                                     {"BN", t.bn},
                                     {"WN", t.wn},
                                     {"ALIGNED", aligned},
                                     {"TAIL", g->k % 16 != 0},
                                     {"LONG", g->k > 128}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t.bn), gemm_ceil_div(g->m, t.bm), g->batch};
    gemm_dispatch(graph, g, "split", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_split = {"split", split_usable, split_record};
