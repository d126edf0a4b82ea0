// SPDX-License-Identifier: Apache-2.0
// The product in tiles through shared memory: f32 on every GPU, 16-bit storage where there is no
// matrix unit.
#include "gemm_case.h"

struct tile {
    uint32_t bm, bn, bk, tm, tn;
};

// Large tiles where they fill the device, smaller ones where they would leave it idle.
static struct tile choose_tile(const struct gemm_case *g) {
    static const struct tile tiles[] = {
        {128, 128, 16, 8, 8}, {64, 64, 16, 4, 4}, {32, 32, 16, 4, 4}};
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    uint32_t last = sizeof tiles / sizeof tiles[0] - 1;
    // On a CPU the unrolled large ones take seconds to compile and bring nothing.
    for (uint32_t i = g->dev->info.caps.software ? last : 0; i < last; i++) {
        uint64_t count = (uint64_t)gemm_ceil_div(g->m, tiles[i].bm) *
                         gemm_ceil_div(g->n, tiles[i].bn) * g->batch;
        if (count >= units && g->m > tiles[i + 1].bm && g->n > tiles[i + 1].bn) {
            return tiles[i];
        }
    }
    return tiles[last];
}

static bool fits(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    return caps->max_wg >= 256 && caps->shmem >= 36 << 10 &&
           (g->in == GRT_F32 || caps->f16_storage);
}

static bool on_a_gpu(const struct gemm_case *g) {
    return fits(g) && !g->dev->info.caps.software;
}

static bool on_a_cpu(const struct gemm_case *g) {
    return fits(g) && g->dev->info.caps.software;
}

// Whether every stored row of a and b is whole vectors of 4.
static bool in_vectors(const struct gemm_case *g) {
    const struct gemm_params *p = &g->params;
    return g->in == GRT_F32 && (p->lda | p->ldb | p->a_batch | p->b_batch) % 4 == 0;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct tile t = choose_tile(g);
    const struct grt_spec specs[] = {{"WG", t.bm / t.tm * (t.bn / t.tn)},
                                     {"BM", t.bm},
                                     {"BN", t.bn},
                                     {"BK", t.bk},
                                     {"TM", t.tm},
                                     {"TN", t.tn},
                                     {"VEC", in_vectors(g)}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t.bn), gemm_ceil_div(g->m, t.bm), g->batch};
    gemm_dispatch(graph, g, "tiled", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_tiled = {"tiled", on_a_gpu, record};
const struct gemm_variant gemm_variant_tiled_on_cpu = {"tiled", on_a_cpu, record};
