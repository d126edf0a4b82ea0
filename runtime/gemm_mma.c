// SPDX-License-Identifier: Apache-2.0
// 16-bit products on NVIDIA's matrix units through OpenCL with PTX inside, sm_80 and newer.
#include "gemm_case.h"

struct tile {
    uint32_t bm, bn, bk;
    uint32_t wm, wn;  // of a warp
    uint32_t stages;
};

// Large tiles where they fill the device, smaller ones where they would leave it idle.
static struct tile choose_tile(const struct gemm_case *g) {
    static const struct tile tiles[] = {{128, 128, 32, 64, 64, 2},
                                        {128, 64, 32, 64, 32, 3},
                                        {64, 64, 32, 32, 32, 3},
                                        {32, 32, 32, 32, 32, 3}};
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    uint32_t last = sizeof tiles / sizeof tiles[0] - 1;
    for (uint32_t i = 0; i < last; i++) {
        uint64_t count = (uint64_t)gemm_ceil_div(g->m, tiles[i].bm) *
                         gemm_ceil_div(g->n, tiles[i].bn) * g->batch;
        if (count >= units && g->m > tiles[i].bm / 2 && g->n > tiles[i].bn / 2) {
            return tiles[i];
        }
    }
    return tiles[last];
}

static bool mma_usable(const struct gemm_case *g) {
    return (g->in == GRT_F16 || g->in == GRT_BF16) && grt_kernel_builds(g->dev, "probe_mma");
}

static void mma_record(struct grt_graph *graph, const struct gemm_case *g) {
    struct tile t = choose_tile(g);
    uint32_t vec = gemm_alignment(g->params.lda) | gemm_alignment(g->params.ldb) << 2 |
                   gemm_alignment(g->params.ldc) << 4;
    const struct grt_spec specs[] = {{"WG", t.bm / t.wm * (t.bn / t.wn) * 32},
                                     {"BM", t.bm},
                                     {"BN", t.bn},
                                     {"BK", t.bk},
                                     {"WM", t.wm},
                                     {"WN", t.wn},
                                     {"STAGES", t.stages},
                                     {"VEC", vec}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t.bn), gemm_ceil_div(g->m, t.bm), g->batch};
    gemm_dispatch(graph, g, "mma", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_mma = {"mma", mma_usable, mma_record};
