// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units, through OpenCL with PTX inside: cl/lib/gemm_wgmma.k.
//
// H200, driver 580.159.04, 2026-11, TFLOP/s by gpurt bench / torch 2.11 (cuBLAS) one by one / in a
// CUDA graph, same run: f16 8192^3 712 / 692 / 659, 4096^3 650 / 754 / 689, 2048^3
// 632 / 575 / 664, 65536x256x256 347 / 364 / 365, 65536x128x128 212 / 130 / 226,
// 65536x64x64 64 / 33 / 92, 64 x (1024x256x32) 75 / 62 / 75, 1024 x 64^3 68 / 30 / 68;
// bf16 8192^3 751 / 722 / 707, 4096^3 696 / 789 / 721. A bare OpenCL loop over the same kernel
// gave 688 to 711 for f16 4096^3; why the bench gives less is not known.
#include "case.h"

#include <math.h>
#include <stdio.h>

// As in cl/lib/gemm_wgmma.k.
#define MOST_PARTS 320u

// A tile of c, and what it was seen to cost: units of 10 ns for 64 of k, and for beginning and
// ending.
struct tile {
    uint32_t bm, bn, stages;
    uint32_t lanes;
    uint32_t at_once;  // workgroups on a compute unit
    uint32_t step, ends;
};

static const struct tile tiles[] = {{128, 256, 4, 288, 1, 70, 240}, {128, 128, 4, 288, 1, 38, 110},
                                    {64, 128, 4, 160, 1, 27, 70},   {128, 64, 4, 288, 1, 30, 55},
                                    {64, 128, 2, 160, 3, 65, 120},  {64, 64, 4, 160, 2, 32, 80}};
#define SMALLEST (&tiles[sizeof tiles / sizeof tiles[0] - 1])

struct choice {
    struct tile tile;
    uint32_t parts;  // that k is cut into
    uint64_t cost;
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

static struct tile tile_of(const uint32_t *v) {
    uint32_t room = (227u << 10) / (setting_shmem(v) ? setting_shmem(v) : 1);
    return (struct tile){v[BM], v[BN], v[STAGES], setting_lanes(v), room < 3 ? room : 3, 0, 0};
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

static uint32_t slots(const struct gemm_case *g, const struct tile *t) {
    uint32_t units = gemm_units(g);
    return units * t->at_once < GEMM_MOST_GROUPS ? units * t->at_once : GEMM_MOST_GROUPS;
}

static uint64_t count(const struct gemm_case *g, const struct tile *t) {
    return (uint64_t)gemm_ceil_div(g->m, t->bm) * gemm_ceil_div(g->n, t->bn) * g->batch;
}

static uint64_t cost(const struct gemm_case *g, const struct tile *t, uint32_t steps) {
    uint64_t rounds = (count(g, t) + slots(g, t) - 1) / slots(g, t);
    return rounds * ((uint64_t)steps * t->step + t->ends);
}

// How k is best cut when the smallest tiles do not fill the device. A part costs the last workgroup
// of a tile about a step, when it adds them up. 64x64x65536 on an H200 with 1, 8, 16, 32, 64, 128
// parts: 134, 23, 16.3, 15.3, 18.3, 29 us. (Tiles of 128x128 are slower there: four times as much
// to add.)
static struct choice cut(const struct gemm_case *g, uint32_t steps) {
    uint32_t room = slots(g, SMALLEST) < MOST_PARTS ? slots(g, SMALLEST) : MOST_PARTS;
    uint64_t most = count(g, SMALLEST) ? room / count(g, SMALLEST) : 0;
    uint64_t parts = (uint64_t)sqrt((double)steps);
    parts = parts < most ? parts : most;
    parts = parts < steps / 4 ? parts : steps / 4;
    if (parts < 2) {
        return (struct choice){*SMALLEST, 1, UINT64_MAX};
    }
    // Every part has some of k.
    uint32_t each = gemm_ceil_div(steps, (uint32_t)parts);
    parts = gemm_ceil_div(steps, each);
    return (struct choice){*SMALLEST, (uint32_t)parts, cost(g, SMALLEST, each) + 100 + 20 * parts};
}

static struct choice choose(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    if (gemm_sizes(g, &gemm_wgmma_tunable, v) && v[BM]) {
        return (struct choice){tile_of(v), 1, 0};
    }
    uint32_t steps = gemm_ceil_div(g->k, 64);
    struct choice best = cut(g, steps);
    // The largest leaves no registers for long activations.
    bool heavy = g->desc->act > GRT_ACT_RELU || g->desc->grad_act > GRT_ACT_RELU;
    for (uint32_t i = heavy ? 1 : 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        struct choice this = {tiles[i], 1, cost(g, &tiles[i], steps)};
        best = this.cost < best.cost ? this : best;
    }
    return best;
}

// The copy engine reads rows that are multiples of 16 bytes.
static bool usable(const struct gemm_case *g) {
    return gemm_in_chunks(g) && count(g, SMALLEST) <= INT32_MAX &&
           grt_kernel_builds(g->dev, "probe_wgmma");
}

// Matrices that fill a quarter of the smallest tile are quicker by mma: 4096 of 32^3 7.5 us.
static bool pays(const struct gemm_case *g) {
    return g->m > 32 || g->n > 32;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct choice choice = choose(gemm_meant(g));
    choice.parts = g->stands_for ? 1 : choice.parts;  // of another k
    const struct tile *t = &choice.tile;
    struct gemm_case own = *g;
    own.params.parts = choice.parts;
    const struct grt_spec specs[] = {{"WG", t->lanes},
                                     {"BM", t->bm},
                                     {"BN", t->bn},
                                     {"STAGES", t->stages},
                                     {"VEC", 15 | gemm_alignment_of_c(g) << 4},
                                     {"SPLIT", choice.parts > 1}};
    uint64_t groups = count(g, t) * choice.parts;
    groups = groups < slots(g, t) ? groups : slots(g, t);
    const uint32_t grid[3] = {(uint32_t)groups, 1, 1};
    gemm_dispatch(graph, &own, "wgmma", specs, sizeof specs / sizeof specs[0], grid);
}

const struct gemm_variant gemm_variant_wgmma = {"wgmma", usable,        pays,
                                                record,  .fills = true, .gaps = true};
