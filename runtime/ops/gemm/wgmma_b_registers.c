// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units whose b is short both ways and stays in registers, in 48
// KiB of shared memory, for Vulkan, which imports the kernel as PTX:
// cl/nvidia/lib/gemm_wgmma_b_registers.k. On OpenCL it runs for tests; wgmma_b_shared has more
// memory there.
//
// H200, driver 580.159.04, 2026-11-15, us by this / by stream, f16 and bf16: 65536x256x256 23.7 /
// 31.1 and 23.3 / 36.3, x192x192 24.1 / 23.8 and 24.0 / 29.9, x128x128 9.9 / 9.7 and 9.8 / 12.2,
// x64x64 7.2 / 6.5 and 6.9 / 7.2, 64 x (1024x256x32) 12.1 / 11.4 and 12.2 / 14.3. torch 2.11 in
// that run: x256x256 24.1 and 24.0. With fewer tiles, us by this / by wgmma_48k / by mma / by coop,
// 2026-11-17: 32008x128x64 tn 6.7 / 8.7 / 8.3 / 7.1, 64 of 256x256x200 8.8 / 9.3 / 12.4 / 11.7.
#include <math.h>

#include "case.h"

#define ROWS 64u

static uint64_t tile_count(const struct gemm_case *g) {
    return (uint64_t)gemm_ceil_div(g->m, ROWS) * g->batch;
}

// The copy engine reads rows of a that are multiples of 16 bytes, and lanes 16 bytes of b at once.
static bool usable(const struct gemm_case *g) {
    return gemm_in_chunks(g) && g->k > 0 && g->k <= 256 && g->n <= 256 &&
           tile_count(g) <= INT32_MAX && grt_kernel_builds(g->dev, "probe_wgmma_48k");
}

bool gemm_is_streams(const struct gemm_case *g) {
    const struct gemm_variant *stream = &gemm_variant_stream;
    bool long_b = g->n > 192 && g->k > 192;
    return g->in == GRT_F16 && !long_b && !g->gaps && stream->usable(g) && stream->pays(g);
}

// On Vulkan, where 48 KiB are too few for wgmma_b_shared, and where a workgroup has tiles enough
// for a b that it loads first.
static bool pays(const struct gemm_case *g) {
    return g->dev->info.caps.imports && g->n > 32 && g->m >= 256 &&
           2 * tile_count(g) >= 3 * (uint64_t)gemm_places(g) && !gemm_is_streams(g) &&
           !gemm_variant_wgmma_b_shared.usable(g);
}

// What its kernels differ in: columns, sixteens of k, whether c stays in the cache, counted from 1.
enum { COLUMNS, SIXTEENS, KEEPS };
static void tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    v[COLUMNS] = g->n <= 64 ? 64 : g->n <= 128 ? 128 : 256;
    v[SIXTEENS] = gemm_ceil_div(g->k, 16);
    v[KEEPS] = gemm_keeps_c(g) + 1u;
}

// Two blocks of 64 columns for a warpgroup, or one where there is no more; two warpgroups with the
// same columns take tiles in turns, each with half of the memory. A check has the k of its own, and
// the kernel of the product that it stands for: past k there are zeros.
static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    tile(gemm_meant(g), v);
    const struct grt_spec specs[] = {{"WG", 256},
                                     {"BN", v[COLUMNS]},
                                     {"KS", v[SIXTEENS]},
                                     {"STAGES", v[COLUMNS] == 256 ? 5 : 2},
                                     {"HOLD", v[COLUMNS] == 64 ? 1 : 2},
                                     {"VEC", 15 | gemm_alignment_of_c(g) << 4},
                                     {"KEEP", v[KEEPS] - 1}};
    uint64_t groups = tile_count(g) < gemm_places(g) ? tile_count(g) : gemm_places(g);
    const uint32_t grid[3] = {(uint32_t)groups, 1, 1};
    gemm_dispatch(graph, g, "wgmma_b_registers", specs, sizeof specs / sizeof specs[0], grid);
}

// Where it pays it is no slower than this.
static double time_here(const struct gemm_case *g) {
    return pays(g) ? gemm_wgmma_48k_time(g) : INFINITY;
}

const struct gemm_variant gemm_variant_wgmma_b_registers = {
    "wgmma_b_registers", usable, pays, record, .gaps = true, .time = time_here, .tile = tile};
