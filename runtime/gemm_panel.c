// SPDX-License-Identifier: Apache-2.0
// The product for OpenCL CPU drivers: packed panels, one work-item a workgroup, cl/lib/gemm_panel.k.
#include "gemm_case.h"

struct shape {
    uint32_t vw, mr, nv;      // lanes of a vector; rows and vectors of the tile in registers
    uint32_t bm, bn, bk;      // the largest block of a workgroup
    uint32_t rows, cols;      // blocks in the grid
};

static uint32_t round_down(uint32_t a, uint32_t b) {
    return a / b * b;
}

static uint32_t local_bytes(const struct shape *s) {
    return 4 * (s->bm * s->bk + s->bn * s->bk + s->bm * s->bn) + 3 * 128;
}

// Sums fill the registers but for a line of b and a number of a: 24 of 32 vectors, or 12 of 16.
static void choose_registers(struct shape *s, const struct gemm_case *g) {
    uint32_t vector = g->dev->info.caps.vector;
    s->vw = vector >= 16 ? 16 : vector >= 8 ? 8 : 4;
    s->mr = s->vw == 8 ? 4 : 8;
    s->nv = 3;
}

// The panels of a and b and the sums between two steps lie in local memory, which a CPU driver sizes
// after the second cache.
static bool choose_blocks(struct shape *s, const struct gemm_case *g) {
    static const uint32_t sizes[][3] = {
        {256, 384, 256}, {192, 256, 192}, {128, 192, 128}, {96, 96, 96}, {48, 48, 64}};
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

// As few blocks as fit, then more of them until every core has one.
static void choose_grid(struct shape *s, const struct gemm_case *g) {
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 1;
    s->rows = gemm_ceil_div(g->m, s->bm);
    s->cols = gemm_ceil_div(g->n, s->bn);
    while ((uint64_t)s->rows * s->cols * g->batch < units) {
        uint32_t bm = gemm_ceil_div(g->m, s->rows), bn = gemm_ceil_div(g->n, s->cols);
        if (bm < 2 * s->mr && bn < 2 * s->nv * s->vw) {
            break;
        }
        *(bm > bn ? &s->rows : &s->cols) += 1;
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
    const struct grt_spec specs[] = {{"WG", 1},     {"VW", s.vw}, {"MR", s.mr}, {"NV", s.nv},
                                     {"BM", s.bm}, {"BN", s.bn}, {"BK", s.bk}};
    const uint32_t groups[3] = {s.cols, s.rows, g->batch};
    gemm_dispatch(graph, g, "panel", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_panel = {"panel", panel_usable, panel_record};
