// SPDX-License-Identifier: Apache-2.0
// A few rows of f32 times a matrix, at the speed of memory: shaders/gemm/lib/gemm_few_rows.k.
//
// us on an H200, driver 580.159.04, 2026-11-19, nn / nt, beside split_wgmma and cuBLAS: 1x4096x4096
// OpenCL 22 / 24, Vulkan 22 / 20 (37, 18); 2x16384x4096 71 / 71 and 67 / 66 (130, 91); 3x5623x896
// 11 / 11 and 9 / 8 (16, 10); 4x4096x4096 40 / 41 and 34 / 26 (37; 3 rows 65 / 45). With eight rows
// it has no gain on Vulkan. More: ci/records/2026-11-19-h200/products-few.txt.
#include "case.h"

#define MOST_ROWS 4u
#define MOST_COLUMNS 32u  // of a workgroup
#define LEAST_COLUMNS 8u  // 32 bytes, which memory reads at once

struct shape {
    uint32_t lanes, columns;  // of a workgroup
    uint32_t ahead;           // loads of a lane on their way
};

// Loads on their way: many of a lane's, or of many lanes. NVIDIA's OpenCL compiler puts each of
// many loads beside its use, how many depends on what else there is, and others are taken to: us of
// 1x4096x4096 by 512 lanes with 16, 512 with 8, 1024 with 4: OpenCL 46, 27, 22, Vulkan 22, 28, 23;
// of 2 rows nt OpenCL 30, 23, 39, of 3 nn 30, 58, 63.
static struct shape lanes_of(const struct gemm_case *g) {
    bool opencl = g->dev->info.backend == GRT_BACKEND_OPENCL, nt = g->desc->b_transposed;
    bool light = g->m == 1 || (g->m == 2 && !nt);
    struct shape s = {.lanes = opencl && light ? 1024 : 512,
                      .ahead = !opencl ? 16
                               : light ? 4
                               : nt    ? 8
                                       : 16};
    while (s.lanes > g->dev->info.caps.max_wg) {
        s.lanes /= 2;
    }
    return s;
}

// Half as many columns, until every compute unit has some; where neighbours have neighbouring k, as
// many as leave each lane two rounds of it.
static struct shape shape_of(const struct gemm_case *g) {
    struct shape s = lanes_of(g);
    if (g->desc->b_transposed) {
        s.columns = LEAST_COLUMNS;
        while (s.columns < MOST_COLUMNS && 2 * s.lanes / s.columns * s.ahead > g->k) {
            s.columns *= 2;
        }
        return s;
    }
    s.columns = MOST_COLUMNS;
    while (s.columns > LEAST_COLUMNS &&
           (uint64_t)gemm_ceil_div(g->n, s.columns) * g->batch < gemm_units(g)) {
        s.columns /= 2;
    }
    return s;
}

static bool usable(const struct gemm_case *g) {
    struct shape s = shape_of(gemm_meant(g));
    return g->in == GRT_F32 && g->m <= MOST_ROWS && g->k > 0 && s.lanes >= s.columns * g->m &&
           s.lanes * g->m * 4 <= g->dev->info.caps.shmem &&
           gemm_within(g, gemm_ceil_div(g->n, s.columns), 1);
}

// Where columns fill the device: k is not cut. Batches were measured with one row alone, and on
// OpenCL four rows have no gain where k is long. CPU drivers have panels and lanes.
static bool pays(const struct gemm_case *g) {
    bool opencl = g->dev->info.backend == GRT_BACKEND_OPENCL;
    bool gains = g->m == 1 || (g->batch == 1 && !(opencl && g->m == 4 && g->k >= 2048));
    return !g->dev->info.caps.software && g->m <= MOST_ROWS && gains &&
           (uint64_t)gemm_ceil_div(g->n, LEAST_COLUMNS) * g->batch >= gemm_units(g) / 2;
}

static void tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    v[0] = g->m;
    v[1] = shape_of(g).columns;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct shape s = shape_of(gemm_meant(g));
    const struct grt_spec specs[] = {
        {"WG", s.lanes}, {"COLS", s.columns}, {"AHEAD", s.ahead}, {"ROWS", g->m}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, s.columns), 1, g->batch};
    gemm_dispatch(graph, g, "few_rows", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_few_rows = {"few_rows",    usable,       pays,        record,
                                                   .fills = true, .gaps = true, .tile = tile};
