// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units, through OpenCL with PTX inside, and through Vulkan,
// which imports the kernel as PTX: cl/nvidia/lib/gemm_wgmma.k.
//
// On an H200 it does f16 8192^3 with 712 TFLOP/s, cuBLAS with 692. More figures:
// ci/records/2026-11-16-h200/products-tried.txt.
#include "case.h"

#include <math.h>
#include <stdio.h>

struct way {
    struct gemm_tile tile;
    uint32_t stages, lanes;
};

// What they cost the profile says, for steps of 64 of k.
static const struct way ways[] = {
    {{128, 256, 0, 0, 0, false, 0}, 4, 288}, {{128, 192, 0, 0, 0, false, 0}, 4, 288},
    {{128, 128, 0, 0, 0, false, 0}, 4, 288}, {{64, 128, 0, 0, 0, false, 0}, 8, 160},
    {{128, 64, 0, 0, 0, false, 0}, 7, 288},  {{64, 128, 0, 0, 0, false, 0}, 2, 160},
    {{64, 64, 0, 0, 0, false, 0}, 4, 160},
};
#define WAY_COUNT (sizeof ways / sizeof ways[0])

static struct way way_with_costs(const struct gemm_case *g, uint32_t i) {
    struct way way = ways[i];
    uint32_t fit = (uint32_t)gemm_costs(g, GRT_KEY_GEMM_WGMMA_FIT)[i];
    // On Vulkan a compute unit has one workgroup: 34688x64x2304 by tiles of 64 x 64 takes 67 us
    // there, and 52 on OpenCL (H200, 2026-11-18).
    way.tile.at_once = g->dev->info.caps.imports ? 1 : fit;
    way.tile.step = gemm_costs(g, GRT_KEY_GEMM_WGMMA_STEP)[i];
    way.tile.ends = gemm_costs(g, GRT_KEY_GEMM_WGMMA_ENDS)[i];
    return way;
}

struct choice {
    struct way way;
    struct gemm_schedule schedule;
};

// ---- the setting of the profile ----

enum { BM, BN, STAGES };

static uint32_t setting_lanes(const uint32_t *v) {
    return v[BM] >= 128 ? 288 : 160;
}

// Tiles on their way, and 4 KiB for each warp that writes c: all but the last.
static uint32_t setting_shmem(const uint32_t *v) {
    return v[STAGES] * (v[BM] + v[BN]) * 128 + (setting_lanes(v) - 32) * 128;
}

static struct way way_of(const uint32_t *v) {
    uint32_t room = (227u << 10) / (setting_shmem(v) ? setting_shmem(v) : 1);
    return (struct way){
        {v[BM], v[BN], room < 3 ? room : 3, 0, 0, false, 0}, v[STAGES], setting_lanes(v)};
}

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    (void)info;
    bool whole =
        v[BM] == 0 || ((v[BM] == 64 || v[BM] == 128 || v[BM] == 256) && v[BN] && v[BN] % 64 == 0 &&
                       v[BN] <= 256 && v[STAGES] >= 2 && setting_shmem(v) <= 226u << 10);
    if (!whole) {
        snprintf(
            why, GRT_TUNABLE_WHY,
            "rows are 64, 128 or 256, columns a multiple of 64 up to 256, and %u tiles of %u x "
            "%u must fit 226 KiB",
            v[STAGES], v[BM], v[BN]);
    }
    return whole;
}

// Sums of one or two blocks of 64 rows.
static uint32_t setting_registers(const uint32_t *v) {
    return v[BN] / 2 * (v[BM] / 128 ? v[BM] / 128 : 1) + 40;
}

const struct grt_tunable gemm_wgmma_tunable = {
    "gemm",
    "wgmma",
    1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_WGMMA,
    1,
    {{"BM", {64, 128, 256}}, {"BN", {64, 128, 192, 256}}, {"STAGES", {2, 3, 4, 5, 6}}},
    setting_possible,
    setting_lanes,
    setting_registers,
};

// ---- what it costs ----

static struct choice choose(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    uint32_t steps = gemm_ceil_div(g->k, 64);
    if (gemm_sizes(g, &gemm_wgmma_tunable, v) && v[BM]) {
        struct way way = way_of(v);
        return (struct choice){way, gemm_schedule_of(g, &way.tile, steps, false)};
    }
    // The largest leave no registers for long activations.
    bool heavy = g->desc->act > GRT_ACT_RELU || g->desc->grad_act > GRT_ACT_RELU;
    struct choice best = {.schedule.time = INFINITY};
    for (uint32_t i = heavy ? 2 : 0; i < WAY_COUNT; i++) {
        struct way way = way_with_costs(g, i);
        struct choice this = {way, gemm_schedule_of(g, &way.tile, steps, true)};
        best = this.schedule.time < best.schedule.time ? this : best;
    }
    return best;
}

// Microseconds that it takes to begin, beyond those of mma: it makes tensor maps first (H200,
// 2026-11-17: 16 of 64x64x160 4.0 us, by mma 3.5; 1768x422x64 nt 5.1 and 4.3). With this, products
// that one of both does much quicker go to it: 192x128x12992 tn 9.4 us, by mma 8.1; 40x5000x640 tn
// 8.1 and 6.8, but 64x3264x5184 12.7 and 13.1 (OpenCL, 2026-11-18). Fitted with what tiles cost.
#define BEGIN 1.3

double gemm_wgmma_time(const struct gemm_case *g) {
    return choose(g).schedule.time + BEGIN;
}

void gemm_wgmma_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct way way = choose(g).way;
    v[BM] = way.tile.bm;
    v[BN] = way.tile.bn;
    v[STAGES] = way.stages;
}

// The copy engine reads rows that are multiples of 16 bytes.
static bool usable(const struct gemm_case *g) {
    struct way smallest = way_with_costs(g, WAY_COUNT - 1);
    return gemm_in_chunks(g) && gemm_schedule_of(g, &smallest.tile, 1, false).whole <= INT32_MAX &&
           gemm_has_room(g);
}

static bool pays(const struct gemm_case *g) {
    return (!g->dev->info.caps.imports || gemm_worth_importing(g)) && (g->m > 32 || g->n > 32) &&
           !gemm_mma_narrow(g) && gemm_wgmma_time(g) < gemm_mma_time(g);
}

// With the code that cuts k the largest tiles have too few registers, unless a warpgroup that only
// copies leaves its own to the others: 3000^3 went from 140 to 118 us by cuts of that tile,
// 624x512x110400 from 144 to 133. Where k is whole a warp that copies is as quick or quicker (H200,
// 2026-11-18).
static uint32_t lanes_of(const struct choice *choice) {
    const struct gemm_tile *tile = &choice->way.tile;
    return choice->schedule.parts > 1 && tile->bm * tile->bn >= 128 * 192 ? 384 : choice->way.lanes;
}

static bool cuts(const struct gemm_case *g) {
    return choose(g).schedule.parts > 1;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct choice choice = choose(gemm_meant(g));
    if (g->stands_for) {  // of another k
        choice.schedule =
            gemm_schedule_of_check(g, &choice.way.tile, gemm_ceil_div(g->k, 64), &choice.schedule);
    }
    const struct gemm_schedule *s = &choice.schedule;
    struct gemm_case own = gemm_scheduled(g, s);
    const struct grt_spec specs[] = {{"WG", lanes_of(&choice)},
                                     {"BM", choice.way.tile.bm},
                                     {"BN", choice.way.tile.bn},
                                     {"STAGES", choice.way.stages},
                                     {"VEC", 15 | gemm_alignment_of_c(g) << 4},
                                     {"SPLIT", s->parts > 1}};
    const uint32_t grid[3] = {s->groups, 1, 1};
    gemm_dispatch(graph, &own, "wgmma", specs, sizeof specs / sizeof specs[0], grid);
}

const struct gemm_variant gemm_variant_wgmma = {"wgmma",
                                                usable,
                                                pays,
                                                record,
                                                .fills = true,
                                                .gaps = true,
                                                .time = gemm_wgmma_time,
                                                .tile = gemm_wgmma_tile,
                                                .cuts = cuts};
