// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Hopper's matrix units through OpenCL with PTX inside.
#include "gemm_case.h"

#define MOST_GROUPS 512u  // as in cl/lib/gemm_wgmma.k

// A tile of c and what it costs, in clocks of an H200: for 64 of k, and for beginning and ending.
struct tile {
    uint32_t bm, bn, stages;
    uint32_t lanes;
    uint32_t at_once;  // workgroups on a compute unit
    uint32_t step, ends;
};

static const struct tile tiles[] = {{128, 256, 4, 288, 1, 1300, 4600},
                                    {128, 128, 4, 288, 1, 730, 1750},
                                    {128, 64, 4, 288, 1, 420, 1000},
                                    {64, 64, 4, 160, 2, 500, 1000}};

static uint32_t slots(const struct gemm_case *g, const struct tile *t) {
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    return units * t->at_once < MOST_GROUPS ? units * t->at_once : MOST_GROUPS;
}

static uint64_t count(const struct gemm_case *g, const struct tile *t) {
    return (uint64_t)gemm_ceil_div(g->m, t->bm) * gemm_ceil_div(g->n, t->bn) * g->batch;
}

// The tile whose rounds take least.
static const struct tile *choose_tile(const struct gemm_case *g) {
    const struct tile *best = NULL;
    uint64_t least = UINT64_MAX;
    // The largest leaves no registers for long activations.
    bool heavy = g->desc->act > GRT_ACT_RELU || g->desc->grad_act > GRT_ACT_RELU;
    for (uint32_t i = heavy ? 1 : 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const struct tile *t = &tiles[i];
        uint64_t rounds = (count(g, t) + slots(g, t) - 1) / slots(g, t);
        uint64_t clocks = rounds * ((uint64_t)gemm_ceil_div(g->k, 64) * t->step + t->ends);
        if (clocks < least) {
            least = clocks;
            best = t;
        }
    }
    return best;
}

// The copy engine reads rows that are multiples of 16 bytes.
static bool wgmma_usable(const struct gemm_case *g) {
    return (g->in == GRT_F16 || g->in == GRT_BF16) && g->params.lda % 8 == 0 &&
           g->params.ldb % 8 == 0 && count(g, &tiles[3]) <= INT32_MAX &&
           grt_kernel_builds(g->dev, "probe_wgmma");
}

static void wgmma_record(struct grt_graph *graph, const struct gemm_case *g) {
    const struct tile *t = choose_tile(g);
    const struct grt_spec specs[] = {{"WG", t->lanes},
                                     {"BM", t->bm},
                                     {"BN", t->bn},
                                     {"STAGES", t->stages},
                                     {"VEC", 15 | gemm_alignment(g->params.ldc) << 4}};
    uint64_t groups = count(g, t) < slots(g, t) ? count(g, t) : slots(g, t);
    const uint32_t grid[3] = {(uint32_t)groups, 1, 1};
    gemm_dispatch(graph, g, "wgmma", specs, sizeof specs / sizeof specs[0], grid);
}

const struct gemm_variant gemm_variant_wgmma = {"wgmma", wgmma_usable, wgmma_record};
