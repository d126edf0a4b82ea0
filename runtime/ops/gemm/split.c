// SPDX-License-Identifier: Apache-2.0
// f32 products on the matrix unit of bfloats, through Vulkan's cooperative matrices: each number is
// cut into three, shaders/gemm/lib/gemm_coop_split.k, which takes six products in place of one and
// has the error of f32. It pays where the matrix unit is far more than six times as fast as
// ordinary arithmetic: on large chips (H100: 15 times, A100: 16), not on those for games (RTX 4090:
// 2 times). The profile says where.
#include "coop.h"

static const struct coop_tile tiles[] = {
    {64, 128, 16, 32, 64, 0}, {64, 64, 16, 32, 32, 0}, {32, 32, 16, 16, 32, 0}};
static const struct coop_tiles own = {tiles,
                                      sizeof tiles / sizeof tiles[0],
                                      GRT_KEY_GEMM_SPLIT_FIT,
                                      GRT_KEY_GEMM_SPLIT_STEP,
                                      GRT_KEY_GEMM_SPLIT_STEP,
                                      GRT_KEY_GEMM_SPLIT_ENDS};

// Two sets of sums, and the fragments of three parts.
static uint32_t registers(const struct coop_tile *t) {
    return t->wm * t->wn / 16 + 3 * (t->wm / 4 + 4) + 40;
}

static bool runs(const struct grt_dev_info *info, const struct coop_tile *t, uint32_t shape) {
    uint32_t bytes = 3 * ((t->bm + t->bn) * t->bk * 2 + 512);
    return coop_fits(info, t, shape) && bytes <= info->caps.shmem && registers(t) <= 255 &&
           128 % t->bk == 0;
}

// ---- the setting of the profile ----

enum { BM, BN, BK, WM, WN };

static struct coop_tile tile_of(const uint32_t *v) {
    return (struct coop_tile){v[BM], v[BN], v[BK], v[WM], v[WN], 0};
}

static uint32_t shape_of(const struct grt_dev_info *info) {
    return coop_shape(info, GRT_BF16, GRT_F32);
}

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    struct coop_tile t = tile_of(v);
    uint32_t shape = shape_of(info);
    if (v[BM] == 0 || (shape && (v[WM] && v[WN] && v[BK] && runs(info, &t, shape)))) {
        return true;
    }
    return coop_setting_refused(info, v, why);
}

static uint32_t setting_registers(const uint32_t *v) {
    struct coop_tile t = tile_of(v);
    return registers(&t);
}

const struct grt_tunable gemm_split_tunable = {
    "gemm",           "split",          1u << GRT_F32,      GRT_KEY_GEMM_SPLIT, 1,
    GEMM_SPLIT_KNOBS, setting_possible, coop_setting_lanes, setting_registers,
};

// ---- the variant ----

static bool possible(const struct gemm_case *g, const struct coop_tile *t, uint32_t shape) {
    return runs(&g->dev->info, t, shape) &&
           gemm_within(g, gemm_ceil_div(g->n, t->bn), gemm_ceil_div(g->m, t->bm));
}

static struct coop_tile choose(const struct gemm_case *g, uint32_t shape) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    gemm_sizes(g, &gemm_split_tunable, v);
    return coop_choose(g, tile_of(v), &own, shape, possible);
}

void gemm_split_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct coop_tile t = choose(g, shape_of(&g->dev->info));
    coop_setting_of(&t, v);
}

static bool usable(const struct gemm_case *g) {
    const struct grt_dev_info *info = &g->dev->info;
    uint32_t shape = shape_of(info);
    return g->in == GRT_F32 && info->caps.subgroup == 32 && shape &&
           grt_kernel_exists(g->dev, "gemm_split_f32") && choose(g, shape).bm;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t shape = shape_of(&g->dev->info);
    struct coop_tile t = choose(g, shape);
    coop_dispatch(graph, g, "split", &t, shape, NULL, 0);
}

const struct gemm_variant gemm_variant_split = {"split", usable, gemm_split_pays, record,
                                                .tile = gemm_split_tile};
