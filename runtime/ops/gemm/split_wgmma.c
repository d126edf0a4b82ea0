// SPDX-License-Identifier: Apache-2.0
// f32 products on Hopper's matrix units, through OpenCL with PTX inside, and through Vulkan, which
// imports the kernel as PTX: each number is cut into three bfloats,
// cl/nvidia/lib/gemm_split_wgmma.k. Where it pays, see split.c.
//
// On an H200 it does 4096^3 with 90 TFLOP/s, `split` with 55, cuBLAS in f32 with 51. More figures:
// ci/records/2026-11-16-h200/products-tried.txt.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "case.h"

// ---- the setting of the profile ----

#define SHARED_BYTES (48u << 10)  // that both APIs give a kernel in PTX, whatever OpenCL says

enum { BM, BN, BK };

static uint32_t lanes(const uint32_t *v) {
    return v[BM] / 64 * 128;
}

static bool possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    bool whole = v[BM] == 0 ||
                 ((v[BM] == 64 || v[BM] == 128) && (v[BN] == 32 || v[BN] == 64 || v[BN] == 128) &&
                  (v[BK] == 16 || v[BK] == 32) && v[BN] * v[BK] / 8 >= lanes(v) &&
                  2 * 3 * v[BN] * v[BK] * 2 <= SHARED_BYTES && lanes(v) <= info->caps.max_wg);
    if (!whole) {
        snprintf(why, GRT_TUNABLE_WHY,
                 "rows are 64 or 128, columns 32, 64 or 128, depth 16 or 32, and two tiles "
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
    {{"BM", {64, 128}}, {"BN", {32, 64, 128}}, {"BK", {16, 32}}},
    possible,
    setting_lanes,
    registers,
};

// ---- what it costs ----

static const struct tile {
    uint32_t bm, bn, bk;
} tiles[] = {{128, 128, 32}, {64, 128, 16}, {64, 64, 32}, {64, 32, 32}};

struct choice {
    uint32_t v[3];
    struct gemm_tile costs;
    struct gemm_schedule schedule;
};

// A k of one step has nothing on its way, and a compute unit has registers for more workgroups.
static uint32_t fitting(const struct gemm_case *g, const struct tile *t, uint32_t fit) {
    return g->k <= t->bk && t->bm == 64 ? fit + 1 : fit;
}

static struct choice choose(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    if (gemm_sizes(g, &gemm_split_wgmma_tunable, v) && v[BM]) {
        struct choice set = {{v[BM], v[BN], v[BK]}, {v[BM], v[BN], 1, 0, 0, true, 0}, {0}};
        set.schedule = gemm_schedule_of(g, &set.costs, gemm_ceil_div(g->k, v[BK]), false);
        return set;
    }
    struct choice best = {.schedule.time = INFINITY};
    for (uint32_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const struct tile *t = &tiles[i];
        struct choice this = {{t->bm, t->bn, t->bk}, {t->bm, t->bn, 0, 0, 0, true, 0}, {0}};
        uint32_t fit = (uint32_t)gemm_costs(g, GRT_KEY_GEMM_SPLIT_WGMMA_FIT)[i];
        this.costs.at_once = fitting(g, t, fit);
        this.costs.step = gemm_costs(g, GRT_KEY_GEMM_SPLIT_WGMMA_STEP)[i] / 1000;
        this.costs.alone = gemm_costs(g, GRT_KEY_GEMM_SPLIT_WGMMA_ALONE)[i] / 1000;
        this.costs.ends = gemm_costs(g, GRT_KEY_GEMM_SPLIT_WGMMA_ENDS)[i] / 1000;
        this.schedule = gemm_schedule_of(g, &this.costs, gemm_ceil_div(g->k, t->bk), true);
        best = this.schedule.time < best.schedule.time ? this : best;
    }
    return best;
}

void gemm_split_wgmma_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct choice choice = choose(g);
    memcpy(v, choice.v, sizeof choice.v);
}

// Steps of a and b on their way beside the one that is multiplied. Two where few workgroups have
// many steps each, so that memory's latency is what they wait for; the registers that it takes
// cost more elsewhere. us with 1 / 2 on an H200, OpenCL, 2026-11-18: 64x6863x7936 157 / 139,
// 336x24x82048 72 / 67, but 12464x768x704 by 64 x 64 219 / 235, 18432x256x27 12.8 / 15.7.
#define MANY_STEPS 8u
static uint32_t ahead(const struct gemm_case *g, const struct choice *c) {
    uint32_t steps = gemm_ceil_div(g->k, c->v[BK]);
    bool once = c->schedule.groups <= gemm_units(g) * c->costs.at_once;
    bool many = gemm_ceil_div(steps, c->schedule.parts) >= MANY_STEPS;
    return steps == 1 ? 0 : once && many && c->v[BN] <= 64 ? 2 : 1;
}

// ---- the variant ----

static bool usable(const struct gemm_case *g) {
    return g->in == GRT_F32 && grt_kernel_builds(g->dev, "probe_wgmma_48k");
}

// us by this / by split_mma on OpenCL, by split on Vulkan (H200, 2026-11-17): 1768x422x64 nt 6.3 /
// 7.4, 6.7 / 14.1; 10019x32x1024 tn 38 / 42, 38 / 46; 63x170x13784 14 / 29, 18 / 26; but 1024 of
// 16x16x104 20 / 10.
static bool pays(const struct gemm_case *g) {
    return gemm_split_pays(g) && (g->m > 32 || g->n > 32) &&
           (!g->dev->info.caps.imports || gemm_worth_importing(g));
}

// Its tile, and what is on its way, counted from 1.
static void kernel_of(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct choice choice = choose(g);
    memcpy(v, choice.v, sizeof choice.v);
    v[BK + 1] = ahead(g, &choice) + 1;
}

static bool cuts(const struct gemm_case *g) {
    return choose(g).schedule.parts > 1;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct choice choice = choose(gemm_meant(g));
    const uint32_t *v = choice.v;
    uint32_t on_their_way = ahead(gemm_meant(g), &choice);
    if (g->stands_for) {  // of another k
        choice.schedule =
            gemm_schedule_of_check(g, &choice.costs, gemm_ceil_div(g->k, v[BK]), &choice.schedule);
    }
    struct gemm_case own = gemm_scheduled(g, &choice.schedule);
    uint32_t vec = gemm_alignment(g->params.lda | g->params.a_batch) |
                   gemm_alignment(g->params.ldb | g->params.b_batch) << 2 |
                   gemm_alignment_of_c(g) << 4;
    const struct grt_spec specs[] = {{"WG", lanes(v)},       {"BM", v[BM]},
                                     {"BN", v[BN]},          {"BK", v[BK]},
                                     {"VEC", vec},           {"SPLIT", choice.schedule.parts > 1},
                                     {"AHEAD", on_their_way}};
    const uint32_t groups[3] = {choice.schedule.groups, 1, 1};
    gemm_dispatch(graph, &own, "split_wgmma", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_split_wgmma = {
    "split_wgmma", usable, pays, record, .fills = true, .tile = kernel_of, .cuts = cuts};
