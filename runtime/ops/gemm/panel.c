// SPDX-License-Identifier: Apache-2.0
// The product for OpenCL CPU drivers: packed panels, one work-item a workgroup,
// cl/cpu/lib/gemm_panel.k.
#include <stdio.h>

#include "case.h"

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

// Enough sums in flight for the multipliers: 16 vectors on NEON (24 are no faster, and small
// matrices fit 8 x 8 better: batches of 64^3 43 -> 50 GFLOP/s a core, 2026-11, Neoverse V1), 12 of
// AVX2's 16 registers, 24 of AVX-512's 32.
static void choose_registers(struct shape *s, const struct grt_dev_info *info) {
    uint32_t vector = info->caps.vector;
    s->vw = vector >= 16 ? 16 : vector >= 8 ? 8 : 4;
    s->mr = vector >= 16 ? 12 : vector >= 8 ? 6 : 8;
    s->nv = 2;
}

// The panels of a and b and the sums between two steps lie in local memory, which a CPU driver
// sizes after the second cache.
static bool choose_blocks(struct shape *s, const struct grt_dev_info *info) {
    static const uint32_t sizes[][3] = {{256, 384, 256}, {192, 224, 192}, {128, 160, 128},
                                        {96, 96, 96},    {48, 64, 64},    {24, 32, 32}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        s->bm = round_down(sizes[i][0], s->mr);
        s->bn = round_down(sizes[i][1], s->nv * s->vw);
        s->bk = sizes[i][2];
        if (local_bytes(s) <= info->caps.shmem) {
            return true;
        }
    }
    return false;
}

// ---- the setting of the profile ----

enum { MR, NV, BM, BN, BK };

// What a setting means on a device; its zeros are chosen here. False when it does not fit.
static bool resolve(const struct grt_dev_info *info, const uint32_t *v, struct shape *s) {
    choose_registers(s, info);
    if (v[MR] && v[NV]) {
        s->mr = v[MR];
        s->nv = v[NV];
    }
    // Vectors of four take four numbers of a in one load.
    if (s->vw == 4 && s->mr % 4 != 0) {
        return false;
    }
    if (!v[BM] || !v[BN] || !v[BK]) {
        return choose_blocks(s, info);
    }
    s->bm = round_down(v[BM], s->mr);
    s->bn = round_down(v[BN], s->nv * s->vw);
    s->bk = v[BK];
    return s->bm > 0 && s->bn > 0 && local_bytes(s) <= info->caps.shmem;
}

static bool possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    struct shape s;
    if (info->backend == GRT_BACKEND_OPENCL && info->caps.software && resolve(info, v, &s)) {
        return true;
    }
    snprintf(why, GRT_TUNABLE_WHY,
             "panels of %u rows do not fit %u bytes of local memory and vectors of %u, or it is no "
             "CPU",
             v[MR], info->caps.shmem, info->caps.vector);
    return false;
}

static uint32_t lanes(const uint32_t *v) {
    (void)v;
    return 1;
}

static uint32_t registers(const uint32_t *v) {
    return v[MR] * v[NV] + v[NV] + 1;
}

const struct grt_tunable gemm_panel_tunable = {
    "gemm",
    "panel",
    1u << GRT_F32 | 1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_PANEL,
    1,
    {{"MR", {4, 6, 8, 12}},
     {"NV", {1, 2, 3}},
     {"BM", {48, 96, 144, 192, 240}},
     {"BN", {48, 96, 192, 288, 384}},
     {"BK", {64, 128, 192, 256, 384}}},
    possible,
    lanes,
    registers,
};

// Blocks of one size, so many that no core stands idle for long, and no more: each packs its own
// rows of a and columns of b, and a number packed costs as much time as 24 multiplied.
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

static bool usable(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS];
    return g->dev->info.backend == GRT_BACKEND_OPENCL && g->dev->info.caps.software &&
           gemm_sizes(g, &gemm_panel_tunable, v);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    struct shape s = {0};
    gemm_sizes(g, &gemm_panel_tunable, v);
    resolve(&g->dev->info, v, &s);
    choose_grid(&s, g);
    const struct grt_spec specs[] = {{"WG", 1},    {"VW", s.vw}, {"MR", s.mr}, {"NV", s.nv},
                                     {"BM", s.bm}, {"BN", s.bn}, {"BK", s.bk}};
    const uint32_t groups[3] = {s.cols, s.rows, g->batch};
    gemm_dispatch(graph, g, "panel", specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_panel = {"panel", usable, NULL, record, .gaps = true};
