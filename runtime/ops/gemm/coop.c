// SPDX-License-Identifier: Apache-2.0
// 16-bit products on the matrix unit through Vulkan's KHR cooperative matrices.
#include "coop.h"

#include <stdio.h>
#include <string.h>

static const struct coop_tile tiles[] = {
    {128, 256, 32, 64, 64, 1}, {256, 128, 32, 64, 64, 1}, {160, 256, 32, 80, 64, 0},
    {128, 128, 32, 64, 64, 0}, {256, 64, 64, 64, 32, 0},  {64, 64, 64, 32, 32, 0},
    {32, 32, 32, 32, 32, 0},
};
static const struct coop_tiles own = {tiles,
                                      sizeof tiles / sizeof tiles[0],
                                      GRT_KEY_GEMM_COOP_FIT,
                                      GRT_KEY_GEMM_COOP_STEP,
                                      GRT_KEY_GEMM_COOP_STEP_T,
                                      GRT_KEY_GEMM_COOP_ENDS};

// ---- shared with split.c ----

uint32_t coop_shape(const struct grt_dev_info *info, enum grt_dtype in, enum grt_dtype sums) {
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < info->caps.matrix_shape_count; i++) {
        const struct grt_matrix_shape *s = &info->caps.matrix_shapes[i];
        bool fits = s->in == in && s->out == sums && (s->m == 8 || s->m == 16) &&
                    (s->n == 8 || s->n == 16) && (s->k == 8 || s->k == 16);
        bool square = s->m == 16 && s->n == 16 && s->k == 16;
        if (fits && (chosen == 0 || square)) {
            chosen = s->m << 16 | s->n << 8 | s->k;
        }
    }
    return chosen;
}

uint32_t coop_lanes(const struct grt_dev_info *info, const struct coop_tile *t) {
    return t->bm / t->wm * (t->bn / t->wn) * info->caps.subgroup;
}

// Nanoseconds that all tiles take, in rounds.
static uint64_t cost(const struct gemm_case *product, const struct coop_tiles *from, uint32_t i) {
    const struct gemm_case *g = gemm_meant(product);
    const struct coop_tile *t = &from->tiles[i];
    uint64_t steps = (uint64_t)gemm_ceil_div(g->k, t->bk) * t->bk;
    double step = gemm_costs(g, g->desc->a_transposed ? from->step_t : from->step)[i];
    uint64_t ends = (uint64_t)gemm_costs(g, from->ends)[i];
    uint32_t fit = (uint32_t)gemm_costs(g, from->fit)[i];
    return gemm_rounds(g, t->bm, t->bn, fit) * (steps * (uint64_t)step / 32 + ends);
}

bool coop_fits(const struct grt_dev_info *info, const struct coop_tile *t, uint32_t shape) {
    return shape && t->wm % (shape >> 16) == 0 && t->wn % (shape >> 8 & 255) == 0 &&
           t->bk % (shape & 255) == 0 && t->bm % t->wm == 0 && t->bn % t->wn == 0 &&
           coop_lanes(info, t) <= info->caps.max_wg;
}

struct coop_tile coop_choose(const struct gemm_case *g, struct coop_tile given,
                             const struct coop_tiles *from, uint32_t shape, coop_possible *may) {
    if (given.bm && may(g, &given, shape)) {
        return given;
    }
    struct coop_tile best = {0};
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < from->count; i++) {
        uint64_t time = cost(g, from, i);
        if (time < least && may(g, &from->tiles[i], shape)) {
            least = time;
            best = from->tiles[i];
        }
    }
    return best;
}

uint32_t coop_setting_lanes(const uint32_t *v) {
    return v[0] ? v[0] / v[3] * (v[1] / v[4]) * 32 : 1;
}

void coop_setting_of(const struct coop_tile *t, uint32_t *v) {
    const uint32_t sizes[] = {t->bm, t->bn, t->bk, t->wm, t->wn};
    memcpy(v, sizes, sizeof sizes);
}

bool coop_setting_refused(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    snprintf(why, GRT_TUNABLE_WHY,
             "no matrix unit for it, or a tile of %u x %u x %u by %u x %u is none of its own, too "
             "many lanes or too much of %u bytes of shared memory",
             v[0], v[1], v[2], v[3], v[4], info->caps.shmem);
    return false;
}

// Bit 0, 1, 2: rows of a, of b, of c are whole chunks of 8 elements.
static uint32_t aligned(const struct gemm_case *g) {
    return (g->params.lda % 8 == 0 ? 1u : 0u) | (g->params.ldb % 8 == 0 ? 2u : 0u) |
           (g->params.ldc % 8 == 0 ? 4u : 0u);
}

void coop_dispatch(struct grt_graph *graph, const struct gemm_case *g, const char *kernel,
                   const struct coop_tile *t, uint32_t shape, const struct grt_spec *more,
                   uint32_t more_count) {
    struct grt_spec specs[GRT_MAX_SPECS] = {
        {"WG", coop_lanes(&g->dev->info, t)},
        {"BM", t->bm},
        {"BN", t->bn},
        {"BK", t->bk},
        {"WM", t->wm},
        {"WN", t->wn},
        {"SHAPE", shape},
        {"ALIGNED", aligned(g)},
        {"TAIL", g->k % (t->deep ? 2 * t->bk : t->bk) != 0},
    };
    if (more_count > 0) {
        memcpy(specs + 9, more, more_count * sizeof *more);
    }
    const uint32_t groups[3] = {gemm_ceil_div(g->n, t->bn), gemm_ceil_div(g->m, t->bm), g->batch};
    gemm_dispatch(graph, g, kernel, specs, 9 + more_count, groups);
}

// ---- tiles ----

// Bytes of shared memory, as in shaders/gemm/lib/gemm_coop.k: tiles with a chunk of padding in each
// of at most 16 rows of a slab; operands whose stored rows are not k and come in wide halves have
// two.
static uint32_t shmem(const struct coop_tile *t, bool a_transposed, bool b_transposed,
                      bool b_wide) {
    uint32_t a = t->bm * t->bk * 2 + 256, b = t->bn * t->bk * 2 + 256;
    return a * (t->deep && !a_transposed ? 2 : 1) + b * (t->deep && b_transposed && b_wide ? 2 : 1);
}

// Wide halves of b too, where there is room.
static bool wide_b(const struct gemm_case *g, const struct coop_tile *t) {
    return shmem(t, g->desc->a_transposed, g->desc->b_transposed, true) <= g->dev->info.caps.shmem;
}

// Sums in registers, and the shapes that the kernel wants.
static bool runs(const struct grt_dev_info *info, const struct coop_tile *t, uint32_t shape) {
    return coop_fits(info, t, shape) && t->wm * t->wn / info->caps.subgroup <= 160 &&
           (!t->deep || t->bk == 2 * (shape & 255)) &&
           shmem(t, !t->deep, !t->deep, false) <= info->caps.shmem;
}

static bool possible(const struct gemm_case *g, const struct coop_tile *t, uint32_t shape) {
    const struct grt_dev_info *info = &g->dev->info;
    // With a as it is and b transposed no operand comes in full lines: 323 TFLOP/s at best.
    bool deep =
        (aligned(g) & 3) == 3 && g->k >= 64 && (g->desc->a_transposed || !g->desc->b_transposed);
    return (!t->deep || deep) && runs(info, t, shape) &&
           shmem(t, g->desc->a_transposed, g->desc->b_transposed, false) <= info->caps.shmem &&
           gemm_within(g, gemm_ceil_div(g->n, t->bn), gemm_ceil_div(g->m, t->bm));
}

// ---- the setting of the profile ----

enum { BM, BN, BK, WM, WN, LOOP };

static struct coop_tile tile_of(const uint32_t *v) {
    return (struct coop_tile){v[BM], v[BN], v[BK], v[WM], v[WN], v[LOOP] == 2};
}

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    struct coop_tile t = tile_of(v);
    uint32_t shape = coop_shape(info, GRT_F16, GRT_F32);
    shape = shape ? shape : coop_shape(info, GRT_BF16, GRT_F32);
    if (v[BM] == 0 || (shape && (v[WM] && v[WN] && runs(info, &t, shape)))) {
        return true;
    }
    return coop_setting_refused(info, v, why);
}

static uint32_t setting_registers(const uint32_t *v) {
    return v[BM] ? v[WM] * v[WN] / 32 + (v[WM] + v[WN]) / 4 * v[LOOP] + 40 : 1;
}

const struct grt_tunable gemm_coop_tunable = {
    "gemm",
    "coop",
    1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_COOP,
    1,
    {{"BM", {32, 64, 128, 160, 256}},
     {"BN", {32, 64, 128, 256}},
     {"BK", {16, 32, 64}},
     {"WM", {32, 64, 80}},
     {"WN", {32, 64}},
     {"LOOP", {1, 2}}},
    setting_possible,
    coop_setting_lanes,
    setting_registers,
};

static struct coop_tile choose(const struct gemm_case *g, uint32_t shape) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    gemm_sizes(g, &gemm_coop_tunable, v);
    return coop_choose(g, tile_of(v), &own, shape, possible);
}

// ---- the variant ----

// Sums in half, where that was asked for and is to be had.
static bool half_sums(const struct gemm_case *g) {
    return g->desc->half_sums && g->in == GRT_F16 && g->out == GRT_F16 &&
           grt_kernel_exists(g->dev, "gemm_coop_h_16") &&
           coop_shape(&g->dev->info, GRT_F16, GRT_F16);
}

static uint32_t shape_of(const struct gemm_case *g) {
    return coop_shape(&g->dev->info, g->in, half_sums(g) ? GRT_F16 : GRT_F32);
}

// The instruction that serves, or 0.
static uint32_t usable_shape(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    char name[32];
    snprintf(name, sizeof name, "gemm_coop_%s_16", grt_dtype_text(g->in));
    bool there = (g->in == GRT_F16 || g->in == GRT_BF16) && caps->subgroup >= 8 &&
                 caps->f16_storage && grt_kernel_exists(g->dev, name);
    return there ? shape_of(g) : 0;
}

static void record(struct grt_graph *graph, const struct gemm_case *g, const struct coop_tile *t) {
    const struct grt_spec more[] = {
        {"DEEP", t->deep}, {"A_WIDE", t->deep}, {"B_WIDE", t->deep && wide_b(g, t)}};
    char kernel[16];
    snprintf(kernel, sizeof kernel, "coop_%s", half_sums(g) ? "h" : grt_dtype_text(g->in));
    coop_dispatch(graph, g, kernel, t, shape_of(g), more, sizeof more / sizeof more[0]);
}

void gemm_coop_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct coop_tile t = choose(g, shape_of(g));
    coop_setting_of(&t, v);
    v[LOOP] = t.deep ? 2 : 1;
}

static bool coop_usable(const struct gemm_case *g) {
    uint32_t shape = usable_shape(g);
    return shape && choose(g, shape).bm;
}

static void coop_record(struct grt_graph *graph, const struct gemm_case *g) {
    struct coop_tile t = choose(g, shape_of(g));
    record(graph, g, &t);
}

// A CPU driver has no matrix unit behind it: lavapipe of Mesa 26.2 compiles one kernel for more
// than a minute and runs 64x48x80 in 0.80 ms, where lanes take 0.07.
static bool coop_pays(const struct gemm_case *g) {
    return !g->dev->info.caps.software;
}

const struct gemm_variant gemm_variant_coop = {"coop", coop_usable, coop_pays, coop_record,
                                               .tile = gemm_coop_tile};

// ---- a part of it, for tests ----

// The pipelined loop by itself: products that would choose it are too large for most tests.
static const struct coop_tile *deep_tile(const struct gemm_case *g) {
    return &tiles[g->desc->a_transposed ? 1 : 0];
}

static bool deep_usable(const struct gemm_case *g) {
    uint32_t shape = usable_shape(g);
    return shape && possible(g, deep_tile(g), shape);
}

static bool deep_pays(const struct gemm_case *g) {
    (void)g;
    return false;  // coop takes it where it does
}

static void deep_record(struct grt_graph *graph, const struct gemm_case *g) {
    record(graph, g, deep_tile(g));
}

const struct gemm_variant gemm_variant_coop_deep = {"coop_deep", deep_usable, deep_pays,
                                                    deep_record};
