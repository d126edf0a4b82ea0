// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units in 48 KiB of shared memory, for Vulkan, which imports
// the kernel as PTX: cl/nvidia/lib/gemm_wgmma_48k.k. On OpenCL it runs for tests; wgmma has more
// memory there.
//
// On an H200 it does f16 8192^3 with 598 TFLOP/s, coop with 365. More figures:
// ci/records/2026-11-16-h200/products-tried.txt.
#include "case.h"

#include <math.h>
#include <stdio.h>

#define ROWS 128u
#define LANES 384u
#define OUT_BYTES 512u  // of each of 8 warps

// ---- the setting of the profile ----

enum { BM, BN, STAGES, AHEAD };

static uint32_t setting_lanes(const uint32_t *v) {
    (void)v;
    return LANES;
}

// Tiles of b, room for writing c, barriers.
static uint32_t setting_shmem(const uint32_t *v) {
    return v[STAGES] * (v[BN] * 32 + 16) + 8 * OUT_BYTES;
}

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    bool whole =
        v[BM] == 0 || (v[BM] == ROWS && (v[BN] == 128 || v[BN] == 256) && v[STAGES] >= 2 &&
                       v[AHEAD] >= 1 && v[AHEAD] <= 4 && setting_shmem(v) <= info->caps.shmem);
    if (!whole) {
        snprintf(why, GRT_TUNABLE_WHY,
                 "rows are 128, columns 128 or 256, 1 to 4 blocks ahead, and %u tiles of 16 x %u "
                 "must fit %u bytes of shared memory",
                 v[STAGES], v[BN], info->caps.shmem);
    }
    return whole;
}

// As a lane has on average: those that multiply take what the others leave.
static uint32_t setting_registers(const uint32_t *v) {
    return (v[BN] / 2 + 16 * v[AHEAD] + 40) * 2 / 3;
}

const struct grt_tunable gemm_wgmma_48k_tunable = {
    "gemm",
    "wgmma_48k",
    1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_WGMMA_48K,
    1,
    {{"BM", {128}}, {"BN", {128, 256}}, {"STAGES", {3, 4, 5}}, {"AHEAD", {1, 2, 3, 4}}},
    setting_possible,
    setting_lanes,
    setting_registers,
};

static uint64_t tile_count(const struct gemm_case *g, uint32_t columns) {
    return (uint64_t)gemm_ceil_div(g->m, ROWS) * gemm_ceil_div(g->n, columns) * g->batch;
}

struct way {
    struct gemm_tile tile;
    uint32_t stages, ahead;
};

// What they cost the profile says, for steps of 32 of k.
static const struct way ways[] = {
    {{ROWS, 256, 1, 0, 0, false, 0}, 5, 3},
    {{ROWS, 128, 1, 0, 0, false, 0}, 10, 3},
    {{ROWS, 64, 1, 0, 0, false, 0}, 10, 3},
};
#define WAY_COUNT (sizeof ways / sizeof ways[0])

struct choice {
    struct way way;
    struct gemm_schedule schedule;
};

static struct choice choose(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    uint32_t steps = gemm_ceil_div(g->k, 32);
    if (gemm_sizes(g, &gemm_wgmma_48k_tunable, v) && v[BM]) {
        struct way way = {{ROWS, v[BN], 1, 0, 0, false, 0}, v[STAGES], v[AHEAD]};
        return (struct choice){way, gemm_schedule_of(g, &way.tile, steps, false)};
    }
    struct choice best = {.schedule.time = INFINITY};
    for (uint32_t i = 0; i < WAY_COUNT; i++) {
        struct way way = ways[i];
        way.tile.step = gemm_costs(g, GRT_KEY_GEMM_WGMMA_48K_STEP)[i];
        way.tile.ends = gemm_costs(g, GRT_KEY_GEMM_WGMMA_48K_ENDS)[i];
        struct choice this = {way, gemm_schedule_of(g, &way.tile, steps, true)};
        best = this.schedule.time < best.schedule.time ? this : best;
    }
    return best;
}

void gemm_wgmma_48k_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct way way = choose(g).way;
    v[BM] = way.tile.bm;
    v[BN] = way.tile.bn;
    v[STAGES] = way.stages;
    v[AHEAD] = way.ahead;
}

// ---- the variant ----

// The copy engine reads rows that are multiples of 16 bytes, and lanes 16 bytes of a along k at
// once.
static bool usable(const struct gemm_case *g) {
    return gemm_in_chunks(g) && g->k > 0 && (g->desc->a_transposed || g->k % 8 == 0) &&
           tile_count(g, 128) <= INT32_MAX && grt_kernel_builds(g->dev, "probe_wgmma_48k");
}

// Microseconds that it takes to begin, beyond those of mma, and how much longer steps take where an
// operand is transposed (H200, 2026-11-17: 320^3 8.4 us, by mma 4.8; 4096^3 nn 556 TFLOP/s, nt
// 434).
#define BEGIN 2.5
#define TURNED 1.3

double gemm_wgmma_48k_time(const struct gemm_case *g) {
    bool turned = g->desc->a_transposed || g->desc->b_transposed;
    return choose(g).schedule.time * (turned ? TURNED : 1) + BEGIN;
}

// On Vulkan, where wgmma is not to be had.
static double time_here(const struct gemm_case *g) {
    return g->dev->info.caps.imports && !gemm_variant_wgmma.usable(g) ? gemm_wgmma_48k_time(g)
                                                                      : INFINITY;
}

// On Vulkan, where it is quicker than mma; for less work cooperative matrices serve, since NVIDIA's
// Vulkan compiles an imported kernel at every start. us by this / by mma / by coop (H200,
// 2026-11-17): 14080x512x576 23 / 38 / 36, 64x3264x5184 20 / 32 / 39, but 64x64x52200 13 / 10 / 12,
// 1768x422x64 nt 6.6 / 5.3 / 9.8.
static bool pays(const struct gemm_case *g) {
    return gemm_worth_importing(g) && time_here(g) < gemm_mma_time(g);
}

static bool cuts(const struct gemm_case *g) {
    return choose(g).schedule.parts > 1;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct choice choice = choose(gemm_meant(g));
    if (g->stands_for) {  // of another k
        choice.schedule =
            gemm_schedule_of_check(g, &choice.way.tile, gemm_ceil_div(g->k, 32), &choice.schedule);
    }
    const struct gemm_schedule *s = &choice.schedule;
    struct gemm_case own = gemm_scheduled(g, s);
    const struct grt_spec specs[] = {{"WG", LANES},
                                     {"BN", choice.way.tile.bn},
                                     {"STAGES", choice.way.stages},
                                     {"AHEAD", choice.way.ahead},
                                     {"OUT", OUT_BYTES},
                                     {"VEC", 15 | gemm_alignment_of_c(g) << 4},
                                     {"SPLIT", s->parts > 1}};
    const uint32_t grid[3] = {s->groups, 1, 1};
    gemm_dispatch(graph, &own, "wgmma_48k", specs, sizeof specs / sizeof specs[0], grid);
}

const struct gemm_variant gemm_variant_wgmma_48k = {"wgmma_48k",
                                                    usable,
                                                    pays,
                                                    record,
                                                    .fills = true,
                                                    .gaps = true,
                                                    .time = time_here,
                                                    .tile = gemm_wgmma_48k_tile,
                                                    .cuts = cuts};
