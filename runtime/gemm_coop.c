// SPDX-License-Identifier: Apache-2.0
// 16-bit products on the matrix unit through Vulkan's KHR cooperative matrices.
#include <stdio.h>
#include <string.h>

#include "gemm_case.h"

// A tile of c and what it costs, in nanoseconds: for 32 of k, and for beginning and ending (H200, driver
// 580.159.04, 2026-11). On other chips the numbers differ, but hardly the order.
struct tile {
    uint32_t bm, bn, bk;
    uint32_t wm, wn;              // of a subgroup
    uint32_t deep;                // the pipelined loop, for aligned operands
    uint32_t at_once;             // workgroups on a compute unit
    uint32_t step, step_t, ends;  // step_t: where a is transposed
};

static const struct tile tiles[] = {
    {128, 256, 32, 64, 64, 1, 1, 750, 750, 5800},  // 8192^3: 359 TFLOP/s
    {256, 128, 32, 64, 64, 1, 1, 790, 715, 6000},  // 338; 376 with a transposed
    {160, 256, 32, 80, 64, 0, 1, 890, 890, 6500},  // 370
    {128, 128, 32, 64, 64, 0, 2, 825, 825, 5000},  // 326
    {256, 64, 64, 64, 32, 0, 1, 410, 410, 3800},  {64, 64, 64, 32, 32, 0, 2, 360, 360, 1900},
    {32, 32, 32, 32, 32, 0, 10, 400, 400, 2500},
};
#define TILE_COUNT (sizeof tiles / sizeof tiles[0])

// The 16 x 16 x 16 instruction, or the first that fits; 0: none.
static uint32_t choose_shape(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < caps->matrix_shape_count; i++) {
        const struct grt_matrix_shape *s = &caps->matrix_shapes[i];
        bool fits = s->in == g->in && s->out == GRT_F32 && (s->m == 8 || s->m == 16) &&
                    (s->n == 8 || s->n == 16) && (s->k == 8 || s->k == 16);
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
    return (g->params.lda % 8 == 0 ? 1u : 0u) | (g->params.ldb % 8 == 0 ? 2u : 0u) |
           (g->params.ldc % 8 == 0 ? 4u : 0u);
}

// The kernel's own constants.
static uint32_t fill_specs(const struct gemm_case *g, const struct tile *t, uint32_t shape,
                           bool b_wide, struct grt_spec *specs) {
    const struct grt_spec all[] = {
        {"WG", lanes(g, t)},
        {"BM", t->bm},
        {"BN", t->bn},
        {"BK", t->bk},
        {"WM", t->wm},
        {"WN", t->wn},
        {"SHAPE", shape},
        {"ALIGNED", aligned(g)},
        {"TAIL", g->k % (t->deep ? 2 * t->bk : t->bk) != 0},
        {"DEEP", t->deep},
        {"A_WIDE", t->deep},
        {"B_WIDE", t->deep && b_wide},
    };
    memcpy(specs, all, sizeof all);
    return sizeof all / sizeof all[0];
}

// Bytes of shared memory, as in shaders/lib/gemm_coop.k: tiles with a chunk of padding in each of at most 16
// rows of a slab; operands whose stored rows are not k and come in wide halves have two.
static uint32_t shmem(const struct gemm_case *g, const struct tile *t, bool b_wide) {
    uint32_t a = t->bm * t->bk * 2 + 256, b = t->bn * t->bk * 2 + 256;
    return a * (t->deep && !g->desc->a_transposed ? 2 : 1) +
           b * (t->deep && g->desc->b_transposed && b_wide ? 2 : 1);
}

// Wide halves of b too, where there is room.
static bool wide_b(const struct gemm_case *g, const struct tile *t) {
    return shmem(g, t, true) <= g->dev->info.caps.shmem;
}

static bool possible(const struct gemm_case *g, const struct tile *t, uint32_t shape) {
    const struct grt_caps *caps = &g->dev->info.caps;
    // With a as it is and b transposed no operand comes in full lines: 323 TFLOP/s at best.
    bool deep = (aligned(g) & 3) == 3 && g->k >= 64 && t->bk == 2 * (shape & 255) &&
                (g->desc->a_transposed || !g->desc->b_transposed);
    return (!t->deep || deep) && lanes(g, t) <= caps->max_wg &&
           t->wm * t->wn / caps->subgroup <= 160 &&  // sums in registers
           shmem(g, t, false) <= caps->shmem && gemm_ceil_div(g->m, t->bm) <= caps->max_groups[1];
}

// The tile whose rounds take least.
static const struct tile *choose_tile(const struct gemm_case *g, uint32_t shape) {
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    const struct tile *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < TILE_COUNT; i++) {
        const struct tile *t = &tiles[i];
        uint64_t count =
            (uint64_t)gemm_ceil_div(g->m, t->bm) * gemm_ceil_div(g->n, t->bn) * g->batch;
        uint64_t slots = (uint64_t)units * t->at_once;
        uint64_t steps = (uint64_t)gemm_ceil_div(g->k, t->bk) * t->bk / 32;
        uint64_t step = g->desc->a_transposed ? t->step_t : t->step;
        uint64_t time = (count + slots - 1) / slots * (steps * step + t->ends);
        if (time < least && possible(g, t, shape)) {
            least = time;
            best = t;
        }
    }
    return best;
}

// The instruction that serves, or 0.
static uint32_t usable_shape(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    char name[32];
    snprintf(name, sizeof name, "gemm_coop_%s_16", grt_dtype_text(g->in));
    bool there = (g->in == GRT_F16 || g->in == GRT_BF16) && caps->subgroup >= 8 &&
                 caps->f16_storage && grt_kernel_exists(g->dev, name) &&
                 g->batch <= caps->max_groups[2];
    return there ? choose_shape(g) : 0;
}

static void record(struct grt_graph *graph, const struct gemm_case *g, const struct tile *t) {
    struct grt_spec specs[GRT_MAX_SPECS];
    uint32_t count = fill_specs(g, t, choose_shape(g), wide_b(g, t), specs);
    char kernel[16];
    snprintf(kernel, sizeof kernel, "coop_%s", grt_dtype_text(g->in));
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t->bn), gemm_ceil_div(g->m, t->bm), g->batch};
    gemm_dispatch(graph, g, kernel, specs, count, groups);
}

static bool coop_usable(const struct gemm_case *g) {
    uint32_t shape = usable_shape(g);
    return shape && choose_tile(g, shape);
}

static void coop_record(struct grt_graph *graph, const struct gemm_case *g) {
    record(graph, g, choose_tile(g, choose_shape(g)));
}

const struct gemm_variant gemm_variant_coop = {"coop", coop_usable, coop_record};

// The pipelined loop by itself: products that would choose it are too large for most tests.
static const struct tile *deep_tile(const struct gemm_case *g) {
    return &tiles[g->desc->a_transposed ? 1 : 0];
}

static bool deep_usable(const struct gemm_case *g) {
    uint32_t shape = usable_shape(g);
    return shape && possible(g, deep_tile(g), shape);
}

static void deep_record(struct grt_graph *graph, const struct gemm_case *g) {
    record(graph, g, deep_tile(g));
}

const struct gemm_variant gemm_variant_coop_deep = {"coop_deep", deep_usable, deep_record};
