// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units whose b is short both ways and stays in shared memory:
// cl/nvidia/lib/gemm_wgmma_b_shared.k.
//
// On an H200 it does f16 65536x256x256 with 371 TFLOP/s, wgmma with 340; where there are few tiles
// both take a launch's time. More figures: ci/records/2026-11-16-h200/products-tried.txt.
#include <math.h>
#include <string.h>

#include "case.h"

#define SHARED_BYTES (227u << 10)  // of a workgroup
#define MOST_STAGES 16u
#define MOST_STEPS 4u
#define MOST_STEPS_NARROW 16u  // of 64 columns

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

// As many warpgroups as there are registers for, long activations wanting some more; the next
// matrix b of a batch beside this one where both leave room for tiles of a.
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
    uint32_t most = g->n <= 64 ? MOST_STEPS_NARROW : MOST_STEPS;
    return gemm_in_chunks(g) && g->k > 0 && g->k <= 64 * most && g->n <= 256 &&
           shape_of(g).stages >= 4 && tile_count(g) <= INT32_MAX && gemm_has_room(g);
}

// Where a workgroup has tiles enough for a b that it loads first. With a long k us by this / by
// wgmma, OpenCL, H200, 2026-11-19: 100000x64x576 33.4 / 34.1, but 16384x64x576 7.2 / 7.0; with few
// columns this / mma's narrow tiles 65536x32x616 26 / 28, 65536x16x616 27 / 29, but 20608x24x616
// nt 12.6 / 11.3. On Vulkan neither was measured.
static bool pays(const struct gemm_case *g) {
    bool deep = g->k > 64 * MOST_STEPS, narrow = g->n <= 32;
    bool unmeasured = g->dev->info.caps.imports && (narrow || deep || gemm_is_streams(g));
    return !unmeasured && (!narrow || deep) && g->m >= 512 &&
           tile_count(g) >= (deep && !narrow ? 2 : 4) * (uint64_t)gemm_places(g);
}

// What its kernels differ in.
static void tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct shape s = shape_of(g);
    const uint32_t sizes[] = {s.bn, s.steps, s.stages, s.panels, s.turns, gemm_keeps_c(g) + 1u};
    memcpy(v, sizes, sizeof sizes);
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
    gemm_dispatch(graph, g, "wgmma_b_shared", specs, sizeof specs / sizeof specs[0], grid);
}

// Where it pays it is no slower than this.
static double time_here(const struct gemm_case *g) {
    return pays(g) ? gemm_wgmma_time(g) : INFINITY;
}

const struct gemm_variant gemm_variant_wgmma_b_shared = {
    "wgmma_b_shared", usable, pays, record, .gaps = true, .time = time_here, .tile = tile};
