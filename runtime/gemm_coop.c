// SPDX-License-Identifier: Apache-2.0
// 16-bit products on the matrix unit through Vulkan's KHR cooperative matrices.
#include <stdio.h>

#include "gemm_case.h"

// A tile of c and what it costs, in nanoseconds of an H200: for 32 of k, and for beginning and
// ending (2026-11, driver 580.159.04).
struct tile {
    uint32_t bm, bn, bk;
    uint32_t wm, wn;   // of a subgroup
    uint32_t deep;     // the pipelined loop, for aligned operands
    uint32_t at_once;  // workgroups on a compute unit
    uint32_t step, ends;
};

static const struct tile tiles[] = {
    {256, 128, 32, 64, 64, 1, 1, 750, 6000}, {128, 256, 32, 64, 64, 1, 1, 750, 6000},
    {128, 128, 32, 64, 64, 0, 2, 880, 4600}, {256, 64, 64, 64, 32, 0, 1, 620, 4000},
    {64, 64, 64, 32, 32, 0, 2, 400, 2500},   {32, 32, 32, 32, 32, 0, 8, 800, 1500},
};

// The 16 x 16 x 16 instruction, or the first that fits; 0: none.
static uint32_t choose_shape(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < caps->matrix_shape_count; i++) {
        const struct grt_matrix_shape *s = &caps->matrix_shapes[i];
        bool fits = s->in == g->in && s->out == GRT_F32 && s->m % 8 == 0 && s->n % 8 == 0 &&
                    s->k % 8 == 0 && 32 % s->m == 0 && 32 % s->n == 0 && 16 % s->k == 0;
        bool square = s->m == 16 && s->n == 16 && s->k == 16;
        if (fits && (chosen == 0 || square)) {
            chosen = s->m << 16 | s->n << 8 | s->k;
        }
    }
    return chosen;
}

static uint32_t lanes(const struct gemm_case *g, const struct tile *t) {
    return t->bm / t->wm * (t->bn / t->wn) * g->dev->info.caps.subgroup;
}

// Bit 0, 1, 2: rows of a, of b, of c are whole chunks of 8 elements.
static uint32_t aligned(const struct gemm_case *g) {
    return (g->params.lda % 8 == 0) | (g->params.ldb % 8 == 0) << 1 | (g->params.ldc % 8 == 0) << 2;
}

// Whether halves of a tile are halves of its rows, which costs a second tile in shared memory: b's too
// where there is room.
static bool wide_b(const struct gemm_case *g, const struct tile *t) {
    uint32_t a = (t->bm * t->bk * 2 + 512) * (g->desc->a_transposed ? 1 : 2);
    return a + (t->bn * t->bk * 2 + 512) * 2 <= g->dev->info.caps.shmem;
}

static bool possible(const struct gemm_case *g, const struct tile *t, uint32_t shape) {
    const struct grt_caps *caps = &g->dev->info.caps;
    uint32_t tiles_in_shmem = t->deep && !g->desc->a_transposed ? 2 : 1;
    uint32_t need = (t->bm * t->bk * 2 + 512) * tiles_in_shmem + (t->bn * t->bk * 2 + 512);
    bool deep = (aligned(g) & 3) == 3 && t->bk == 2 * (shape & 255);
    return lanes(g, t) <= caps->max_wg && need <= caps->shmem && (!t->deep || deep) &&
           gemm_ceil_div(g->m, t->bm) <= caps->max_groups[1];
}

// The tile whose rounds take least.
static const struct tile *choose_tile(const struct gemm_case *g, uint32_t shape) {
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    const struct tile *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const struct tile *t = &tiles[i];
        uint64_t count =
            (uint64_t)gemm_ceil_div(g->m, t->bm) * gemm_ceil_div(g->n, t->bn) * g->batch;
        uint64_t slots = (uint64_t)units * t->at_once;
        uint64_t steps = (uint64_t)gemm_ceil_div(g->k, t->bk) * t->bk / 32;
        uint64_t time = (count + slots - 1) / slots * (steps * t->step + t->ends);
        if (possible(g, t, shape) && time < least) {
            least = time;
            best = t;
        }
    }
    return best;
}

static bool coop_usable(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    char name[32];
    snprintf(name, sizeof name, "gemm_coop_%s_16", grt_dtype_text(g->in));
    uint32_t shape = (g->in == GRT_F16 || g->in == GRT_BF16) ? choose_shape(g) : 0;
    return shape && caps->subgroup >= 8 && caps->f16_storage && grt_kernel_exists(g->dev, name) &&
           g->batch <= caps->max_groups[2] && choose_tile(g, shape);
}

static void coop_record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t shape = choose_shape(g);
    const struct tile *t = choose_tile(g, shape);
    uint32_t turn = t->deep ? 2 * t->bk : t->bk;
    const struct grt_spec specs[] = {
        {"WG", lanes(g, t)},
        {"BM", t->bm},
        {"BN", t->bn},
        {"BK", t->bk},
        {"WM", t->wm},
        {"WN", t->wn},
        {"SHAPE", shape},
        {"ALIGNED", aligned(g)},
        {"TAIL", g->k % turn != 0},
        {"DEEP", t->deep},
        {"A_WIDE", t->deep},
        {"B_WIDE", t->deep && wide_b(g, t)},
    };
    char kernel[16];
    snprintf(kernel, sizeof kernel, "coop_%s", grt_dtype_text(g->in));
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t->bn), gemm_ceil_div(g->m, t->bm), g->batch};
    gemm_dispatch(graph, g, kernel, specs, sizeof specs / sizeof specs[0], groups);
}

const struct gemm_variant gemm_variant_coop = {"coop", coop_usable, coop_record};
