// SPDX-License-Identifier: Apache-2.0
// Batches of products of at most 64 x 64, several to a workgroup: shaders/gemm/lib/gemm_tiny.k.
#include "case.h"

#define MOST 64u    // rows and columns
#define LANES 128u  // of a workgroup

// Lanes of a matrix, and how many along a row.
struct shape {
    uint32_t side, each, along;
};

static struct shape shape_of(const struct gemm_case *g) {
    uint32_t side = g->m > 32 || g->n > 32 ? 8 : 4, along = gemm_ceil_div(g->n, side);
    return (struct shape){side, along * gemm_ceil_div(g->m, side), along};
}

static uint32_t lanes_of(const struct shape *s) {
    return s->each < LANES ? LANES / s->each * s->each : s->each;
}

static uint32_t groups_of(const struct gemm_case *g, const struct shape *s) {
    return gemm_ceil_div(g->batch, lanes_of(s) / s->each);
}

static bool usable(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    if (g->batch < 2 || g->m > MOST || g->n > MOST || g->k == 0 ||
        (g->in != GRT_F32 && !caps->f16_storage)) {
        return false;
    }
    struct shape s = shape_of(g);
    return lanes_of(&s) <= caps->max_wg && groups_of(g, &s) <= caps->max_groups[0];
}

// H200, driver 580.159.04, 2026-11-15, microseconds by this / by tiled, Vulkan and OpenCL, f32:
// 16384 of 16^3 37 / 57 and 27 / 36, 4096 of 32^3 37 / 27 and 28 / 23, 1024 of 64^3 80 / 37 and 69
// / 29; f16 likewise 50 / 93 and 38 / 61, then 2 to 3 times as long as tiled, for elements are read
// one by one. CPU drivers have panels and lanes.
static bool pays(const struct gemm_case *g) {
    return !g->dev->info.caps.software && g->m <= 16 && g->n <= 16;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct shape s = shape_of(g);
    const struct grt_spec specs[] = {{"WG", lanes_of(&s)},
                                     {"EACH", s.each},
                                     {"LN", s.along},
                                     {"T", s.side},
                                     {"VEC", gemm_in_vectors(g)}};
    const uint32_t groups[3] = {groups_of(g, &s), 1, 1};
    gemm_dispatch(graph, g, "tiny", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_tiny = {"tiny", usable, pays, record, .gaps = true};
