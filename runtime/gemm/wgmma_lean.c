// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units in 48 KiB of shared memory, for Vulkan, which imports the kernel as PTX:
// cl/lib/gemm_wgmma_lean.k. On OpenCL it runs for tests; wgmma has more memory there.
#include "case.h"

#define MOST_GROUPS 512u  // as in cl/lib/gemm_wgmma_lean.k
#define ROWS 128u

static uint32_t columns(const struct gemm_case *g) {
    return g->n <= 128 ? 128 : 256;
}

static uint64_t tile_count(const struct gemm_case *g) {
    return (uint64_t)gemm_ceil_div(g->m, ROWS) * gemm_ceil_div(g->n, columns(g)) * g->batch;
}

static uint32_t places(const struct gemm_case *g) {
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    return units < MOST_GROUPS ? units : MOST_GROUPS;
}

// The copy engine reads rows that are multiples of 16 bytes, and lanes 16 bytes of a along k at once.
static bool possible(const struct gemm_case *g) {
    const struct gemm_params *p = &g->params;
    return (g->in == GRT_F16 || g->in == GRT_BF16) && g->k > 0 &&
           (g->desc->a_transposed || g->k % 8 == 0) &&
           (p->lda | p->ldb | p->a_batch | p->b_batch) % 8 == 0 && tile_count(g) <= INT32_MAX &&
           grt_kernel_builds(g->dev, "probe_wgmma_lean");
}

// On Vulkan, where half of the device has something to do and b is not short both ways, which is for wgmma_held
// and stream. 1024^3 has 32 tiles, and coop is quicker.
static bool pays(const struct gemm_case *g) {
    return g->dev->info.caps.imports && tile_count(g) * 2 > places(g) && (g->n > 256 || g->k > 256);
}

static bool where_it_pays(const struct gemm_case *g) {
    return (g->desc->variant || pays(g)) && possible(g);
}

static bool where_it_does_not(const struct gemm_case *g) {
    return !g->desc->variant && !pays(g) && possible(g);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    const struct grt_spec specs[] = {{"WG", 384},   {"BN", columns(gemm_meant(g))},
                                     {"STAGES", 5}, {"AHEAD", 3},
                                     {"OUT", 512},  {"VEC", 15 | gemm_alignment_of_c(g) << 4}};
    uint64_t groups = tile_count(g) < places(g) ? tile_count(g) : places(g);
    const uint32_t grid[3] = {(uint32_t)groups, 1, 1};
    gemm_dispatch(graph, g, "wgmma_lean", specs, sizeof specs / sizeof specs[0], grid);
}

const struct gemm_variant gemm_variant_wgmma_lean = {"wgmma_lean", where_it_pays, record, false,
                                                     true};
const struct gemm_variant gemm_variant_wgmma_lean_tested = {"wgmma_lean", where_it_does_not, record,
                                                            false, true};
