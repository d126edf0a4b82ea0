// SPDX-License-Identifier: Apache-2.0
// One row of f32 times a matrix, at the speed of memory: shaders/gemm/lib/gemm_row.k.
#include "case.h"

#define MOST_COLUMNS 32u  // of a workgroup
#define LEAST_COLUMNS 8u  // 32 bytes, which memory reads at once

// Half as many columns, until every compute unit has some.
static uint32_t columns_of(const struct gemm_case *g) {
    uint32_t columns = g->desc->b_transposed ? LEAST_COLUMNS : MOST_COLUMNS;
    while (columns > LEAST_COLUMNS && gemm_ceil_div(g->n, columns) < gemm_units(g)) {
        columns /= 2;
    }
    return columns;
}

// Loads on their way: many of a lane's, or of many lanes. NVIDIA's OpenCL compiler puts each of 16
// loads beside its use, and others are taken to. us of 1x4096x4096 by 512 lanes with 16, 512 with
// 8, 1024 with 4: OpenCL 46, 27, 22, Vulkan 22, 28, 23 (H200, 2026-11-19).
static bool many_lanes(const struct gemm_case *g) {
    return g->dev->info.backend == GRT_BACKEND_OPENCL;
}

static uint32_t lanes_of(const struct gemm_case *g) {
    uint32_t lanes = many_lanes(g) ? 1024 : 512;
    while (lanes > g->dev->info.caps.max_wg) {
        lanes /= 2;
    }
    return lanes;
}

static bool usable(const struct gemm_case *g) {
    const uint32_t columns = columns_of(gemm_meant(g));
    return g->in == GRT_F32 && g->m == 1 && g->k > 0 && lanes_of(g) >= columns &&
           gemm_within(g, gemm_ceil_div(g->n, columns), 1);
}

// Where columns fill the device: k is not cut. CPU drivers have panels and lanes. 1x4096x4096 takes
// 22 us, by split_wgmma 37 (H200, 2026-11-19).
static bool pays(const struct gemm_case *g) {
    return !g->dev->info.caps.software && g->m == 1 &&
           (uint64_t)gemm_ceil_div(g->n, LEAST_COLUMNS) * g->batch >= gemm_units(g) / 2;
}

static void tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    v[0] = columns_of(g);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    const uint32_t columns = columns_of(gemm_meant(g));
    const struct grt_spec specs[] = {
        {"WG", lanes_of(g)}, {"COLS", columns}, {"AHEAD", many_lanes(g) ? 4 : 16}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, columns), 1, g->batch};
    gemm_dispatch(graph, g, "row", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_row = {"row",         usable,       pays,        record,
                                              .fills = true, .gaps = true, .tile = tile};
