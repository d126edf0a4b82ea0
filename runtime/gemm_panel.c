// SPDX-License-Identifier: Apache-2.0
// The product for OpenCL CPU drivers: packed panels, one work-item a workgroup, cl/lib/gemm_panel.k.
#include "gemm_case.h"

struct shape {
    uint32_t vw, mr, nv;  // lanes of a vector; rows and vectors of the tile in registers
    uint32_t bm, bn, bk;  // the largest block of a workgroup
    uint32_t rows, cols;  // blocks in the grid
};

static uint32_t round_down(uint32_t a, uint32_t b) {
    return a / b * b;
}

static uint32_t local_bytes(const struct shape *s) {
    return 4 * (s->bm * s->bk + s->bn * s->bk + s->bm * s->bn);
}

// Enough sums in flight for the multipliers: 16 vectors on NEON (24 are no faster, and small matrices
// fit 8 x 8 better: batches of 64^3 43 -> 50 GFLOP/s a core, 2026-11, Neoverse V1), 12 of AVX2's 16
// registers, 24 of AVX-512's 32.
static void choose_registers(struct shape *s, const struct gemm_case *g) {
    uint32_t vector = g->dev->info.caps.vector;
    s->vw = vector >= 16 ? 16 : vector >= 8 ? 8 : 4;
    s->mr = vector >= 16 ? 12 : vector >= 8 ? 6 : 8;
    s->nv = 2;
}

// The panels of a and b and the sums between two steps lie in local memory, which a CPU driver sizes
// after the second cache.
static bool choose_blocks(struct shape *s, const struct gemm_case *g) {
    static const uint32_t sizes[][3] = {{256, 384, 256}, {192, 224, 192}, {128, 160, 128},
                                        {96, 96, 96},    {48, 64, 64},    {24, 32, 32}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        s->bm = round_down(sizes[i][0], s->mr);
        s->bn = round_down(sizes[i][1], s->nv * s->vw);
        s->bk = sizes[i][2];
        if (local_bytes(s) <= g->dev->info.caps.shmem) {
            return true;
        }
    }
    return false;
}

// Blocks of one size, so many that no core stands idle for long, and no more: each packs its own rows of
// a and columns of b, and a number packed costs as much time as 24 multiplied.
static void choose_grid(struct shape *s, const struct gemm_case *g) {
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 1;
    uint32_t nr = s->nv * s->vw;
    uint32_t rows = gemm_ceil_div(g->m, s->mr), cols = gemm_ceil_div(g->n, nr);  // of panels
    uint32_t least_rows = gemm_ceil_div(g->m, s->bm), least_cols = gemm_ceil_div(g->n, s->bn);
    double least_cost = 0.0;
    for (uint32_t r = least_rows; r <= rows && r <= least_rows + units; r++) {
        for (uint32_t c = least_cols; c <= cols && c <= least_cols + units; c++) {
            uint64_t rounds = ((uint64_t)r * c * g->batch + units - 1) / units;
            double bm = gemm_ceil_div(rows, r) * s->mr, bn = gemm_ceil_div(cols, c) * nr;
            double cost = (double)rounds * (bm * bn + 24.0 * (bm + bn));
            if (least_cost == 0.0 || cost < least_cost) {
                least_cost = cost;
                s->rows = r;
                s->cols = c;
            }
        }
    }
}

static bool panel_usable(const struct gemm_case *g) {
    struct shape s;
    if (g->dev->info.backend != GRT_BACKEND_OPENCL || !g->dev->info.caps.software) {
        return false;
    }
    choose_registers(&s, g);
    return choose_blocks(&s, g);
}

static void panel_record(struct grt_graph *graph, const struct gemm_case *g) {
    struct shape s;
    choose_registers(&s, g);
    choose_blocks(&s, g);
    choose_grid(&s, g);
    const struct grt_spec specs[] = {{"WG", 1},    {"VW", s.vw}, {"MR", s.mr}, {"NV", s.nv},
                                     {"BM", s.bm}, {"BN", s.bn}, {"BK", s.bk}};
    const uint32_t groups[3] = {s.cols, s.rows, g->batch};
    gemm_dispatch(graph, g, "panel", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_panel = {"panel", panel_usable, panel_record};
