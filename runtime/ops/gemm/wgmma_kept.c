// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units whose b is short both ways and stays in shared memory:
// cl/nvidia/lib/gemm_wgmma_kept.k.
//
// H200, driver 580.159.04, 2026-11-15, TFLOP/s by this / by wgmma / torch 2.11 one by one / in a CUDA
// graph, all in one run: f16 65536x256x256 371 / 340 / 366 / 355, 65536x128x128 251 / 199 / 181 / 242,
// 65536x64x64 86 / 81 / 34 / 98, 64 x (1024x256x32) 85 / 73 / 60 / 76, 262144x256x256 407 / 329;
// bf16, in a run before, 65536x256x256 366 / 360 / 366 / 367, 65536x128x128 249 / 201 / 136 / 232. With
// few tiles there is no difference: at 8192x256x256 and 16384x128x128 both take the 7.6 us of a launch.
//
// Another 65536 rows of x256x256 cost 20.4 us; memory alone would need 16. What brought nothing against
// that, in us for x128x128 and x256x256 beside 8.5 and 23.1: c written by the copy engine, 8.7 23.2;
// warpgroups that multiply when they like, 8.6 23.3; b loaded by each workgroup in another order, 8.4
// 23.1; and beside 8.5 and 23.7: maps that stay from one launch to the next, 8.4 23.5. Two warpgroups
// in place of four are 8.9 for x128x128.
#include "case.h"

#define SHARED_BYTES (227u << 10)  // of a workgroup
#define MOST_STAGES 16u

struct shape {
    uint32_t bn, steps;  // b, in multiples of 64 columns and of 64 of k
    uint32_t turns;      // warpgroups
    uint32_t panels;     // of b, at once
    uint32_t stages;     // tiles of a, 8 KiB each
};

// Beside b, 4 KiB for each warp that writes c, and barriers.
static uint32_t stages_beside(const struct shape *s) {
    uint32_t taken = s->panels * s->steps * s->bn * 128 + s->turns * 16384 + 512;
    uint32_t stages = taken < SHARED_BYTES ? (SHARED_BYTES - taken) / 8192 : 0;
    return stages < MOST_STAGES ? stages : MOST_STAGES;
}

// As many warpgroups as there are registers for, long activations wanting some more; the next matrix
// b of a batch beside this one where both leave room for tiles of a.
static struct shape shape_of(const struct gemm_case *g) {
    struct shape s = {.bn = gemm_ceil_div(g->n, 64) * 64, .steps = gemm_ceil_div(g->k, 64)};
    bool heavy = g->desc->act > GRT_ACT_RELU || g->desc->grad_act > GRT_ACT_RELU;
    s.turns = s.bn <= (heavy ? 64 : 128) ? 4 : s.bn <= 192 ? 3 : 2;
    s.panels = g->params.b_batch ? 2 : 1;
    if (stages_beside(&s) < 4) {
        s.panels = 1;
    }
    s.stages = stages_beside(&s);
    return s;
}

static uint64_t tile_count(const struct gemm_case *g) {
    return (uint64_t)gemm_ceil_div(g->m, 64) * g->batch;
}

// The copy engine reads rows that are multiples of 16 bytes.
static bool usable(const struct gemm_case *g) {
    return gemm_in_chunks(g) && g->k > 0 && g->k <= 256 && g->n <= 256 &&
           tile_count(g) <= INT32_MAX && grt_kernel_builds(g->dev, "probe_wgmma");
}

// Where a workgroup has tiles enough for a b that it loads first.
static bool pays(const struct gemm_case *g) {
    return g->n > 32 && g->m >= 512 && tile_count(g) >= 4 * (uint64_t)gemm_places(g);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    const struct gemm_case *meant = gemm_meant(g);
    struct shape s = shape_of(meant);
    const struct grt_spec specs[] = {
        {"WG", s.turns * 128 + 32},   {"BN", s.bn},
        {"STEPS", s.steps},           {"STAGES", s.stages},
        {"PANELS", s.panels},         {"VEC", 15 | gemm_alignment_of_c(g) << 4},
        {"KEEP", gemm_keeps_c(meant)}};
    uint64_t groups = tile_count(g) < gemm_places(g) ? tile_count(g) : gemm_places(g);
    const uint32_t grid[3] = {(uint32_t)groups, 1, 1};
    gemm_dispatch(graph, g, "wgmma_kept", specs, sizeof specs / sizeof specs[0], grid);
}

const struct gemm_variant gemm_variant_wgmma_kept = {"wgmma_kept", usable, pays, record,
                                                     .gaps = true};
