// SPDX-License-Identifier: Apache-2.0
// 16-bit products on NVIDIA's matrix units, sm_80 and newer, through OpenCL with PTX inside, and
// through Vulkan, which imports the kernel as PTX: cl/nvidia/lib/gemm_mma.k.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "case.h"

struct tile {
    uint32_t bm, bn, bk;
    uint32_t wm, wn;  // of a warp
    uint32_t stages;
};

// What they cost the profile says, for steps of their bk. Shared memory is at most 48 KiB but for
// the first: several such workgroups share a compute unit on Vulkan too.
//
// Products that wgmma cannot do on Hopper (rows that are no multiples of 16 bytes) come here too.
// TFLOP/s of f16 4096^3 and 8192^3 on an H200 (driver 580.159.04, 2026-11), where mma.sync gives
// 640 at most: 128x256x64 465 466, 128x256x32 with 4 stages 424 441, 128x128x64 with 2 447 410,
// 128x128x32 with 2, 3, 4 stages 313 321, 378 379, 396 388.
//
// The three behind those are for few workgroups with a long k, whose time is that of reading: steps
// of 64 meet half as often, and of few rows little is read of a, and more of b is on its way. us by
// 64 x 64 in steps of 32 / of 64: 192x128x12992 tn 8.7 / 8.1, 448^3 tn 5.0 / 4.6, 64 of 152x152x120
// 7.8 / 7.2; 24x192x55168 by 64 x 64 10.3, by 32 x 64 in steps of 64 8.3 (H200, OpenCL,
// 2026-11-18). The last two are for few columns of many rows, whose time is that of reading a:
// products of 2048 to 65536 rows, 8 and 32 columns and a k of 616 and 1152, nn and nt, take 0.79 of
// the time that they took by wgmma and other tiles on OpenCL, and 0.78 on Vulkan; 8192x8x1152 18.3
// and 8.3 us. Of a k of 64 they take as long (H200, 2026-11-19, geometric means,
// ci/records/2026-11-19-h200/products-few.txt).
static const struct tile tiles[] = {{128, 256, 64, 64, 64, 3}, {128, 128, 32, 64, 64, 3},
                                    {128, 64, 32, 64, 32, 3},  {64, 64, 32, 32, 32, 3},
                                    {32, 32, 32, 32, 32, 3},   {16, 128, 32, 16, 32, 5},
                                    {64, 64, 64, 32, 32, 3},   {32, 64, 64, 32, 16, 4},
                                    {128, 32, 64, 32, 32, 4},  {64, 32, 64, 32, 16, 4}};

static uint32_t tile_lanes(const struct tile *t) {
    return t->bm / t->wm * (t->bn / t->wn) * 32;
}

// ---- the setting of the profile ----

enum { BM, BN, BK, WM, WN, STAGES };

static struct tile tile_of(const uint32_t *v) {
    return (struct tile){v[BM], v[BN], v[BK], v[WM], v[WN], v[STAGES]};
}

#define MOST_SHMEM                                                                                 \
    (224u << 10)  // of Hopper; elsewhere too much fails to build, and its check says so

static bool setting_possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    struct tile t = tile_of(v);
    bool whole =
        v[BM] == 0 || (v[WM] && v[WN] && v[BK] && v[STAGES] >= 2 && v[BM] % v[WM] == 0 &&
                       v[BN] % v[WN] == 0 && v[WM] % 16 == 0 && v[WN] % 16 == 0 &&
                       v[BK] % 16 == 0 && v[STAGES] * (v[BM] + v[BN]) * v[BK] * 2 <= MOST_SHMEM &&
                       tile_lanes(&t) <= info->caps.max_wg);
    if (!whole) {
        snprintf(why, GRT_TUNABLE_WHY,
                 "a tile of %u x %u x %u by %u x %u is not made of whole products of 16 x 16 x 16, "
                 "or %u of it are too large",
                 v[BM], v[BN], v[BK], v[WM], v[WN], v[STAGES]);
    }
    return whole;
}

static uint32_t setting_lanes(const uint32_t *v) {
    struct tile t = tile_of(v);
    return v[BM] ? tile_lanes(&t) : 1;
}

// Sums and two sets of fragments.
static uint32_t setting_registers(const uint32_t *v) {
    return v[WM] * v[WN] / 32 + (v[WM] + v[WN]) / 2 + 40;
}

const struct grt_tunable gemm_mma_tunable = {
    "gemm",
    "mma",
    1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_MMA,
    1,
    {{"BM", {32, 64, 128, 256}},
     {"BN", {32, 64, 128, 256}},
     {"BK", {32, 64}},
     {"WM", {32, 64}},
     {"WN", {32, 64}},
     {"STAGES", {2, 3, 4}}},
    setting_possible,
    setting_lanes,
    setting_registers,
};

// ---- the variant ----

struct choice {
    struct tile tile;
    struct gemm_tile costs;
    struct gemm_schedule schedule;
};

// How many times as long an operand takes because its rows begin anywhere.
static double slower(const struct gemm_case *g, uint32_t rows, uint32_t matrices) {
    uint32_t power = gemm_alignment(rows | matrices);
    return power == 3 ? 1 : gemm_costs(g, GRT_KEY_GEMM_MMA_RAGGED)[2 - power];
}

// The same of a step, in which each operand has its share of the tile's elements.
static double ragged(const struct gemm_case *g, const struct tile *t) {
    double a = t->bm * slower(g, g->params.lda, g->params.a_batch);
    double b = t->bn * slower(g, g->params.ldb, g->params.b_batch);
    return (a + b) / (t->bm + t->bn);
}

// A k of one or two steps has no more tiles on their way, and a compute unit has room for more
// workgroups.
static struct tile with_stages(struct tile t, uint32_t k) {
    t.stages = k <= t.bk ? 1 : k <= 2 * t.bk ? 2 : t.stages;
    return t;
}

#define FEW_ROWS 32u
#define MANY_ROWS 2048u

// Few columns of many rows: with steps of 64 and enough of them on their way it takes more than 48
// KiB.
bool gemm_mma_narrow(const struct gemm_case *g) {
    return g->n <= 32 && g->m >= MANY_ROWS && gemm_in_chunks(g) && gemm_has_room(g);
}

// Whether a tile suits a product: those for few rows suit no others, and narrow matrices have no
// use for wide ones; steps of 64 were measured with rows of whole chunks. On Vulkan tiles of 32 x
// 32 are for matrices that are no larger: us by them / by 64 x 64, H200, 2026-11-18: 1024 of
// 61x61x56 tn 19 / 13, 12087x32x344 14 / 10, 11414x128x27 10 / 6, but 1024 of 16x16x39 nt 5.6, by
// 16 x 128 8.8.
static bool suits(const struct gemm_case *g, const struct tile *t) {
    bool few = g->m <= FEW_ROWS, narrow = g->n <= 32;
    bool tall = t->bm >= 64 && t->bn == 32;
    if (tall || gemm_mma_narrow(g)) {
        // Short rows of b are slow to read, and the larger tile reads them half as often.
        bool large = !g->desc->b_transposed && g->n < 32 && g->m >= 4 * MANY_ROWS;
        return tall && gemm_mma_narrow(g) && t->bm == (large ? 128 : 64);
    }
    if (t->bm == 16) {
        return few && g->n > 64;
    }
    if (t->bm == 32 && t->bn == 32) {
        return !g->dev->info.caps.imports || (few && narrow);
    }
    bool long_steps = t->bk == 64 && t->bm <= 64;
    return !long_steps || (gemm_in_chunks(g) && !narrow && few == (t->bm == 32));
}

static struct choice choose(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    if (gemm_sizes(g, &gemm_mma_tunable, v) && v[BM]) {
        struct choice set = {tile_of(v), {v[BM], v[BN], 1, 0, 0, true, 0}, {0}};
        set.schedule = gemm_schedule_of(g, &set.costs, gemm_ceil_div(g->k, v[BK]), false);
        return set;
    }
    struct choice best = {.schedule.time = INFINITY};
    // What Hopper's other kernels need includes shared memory beyond 48 KiB.
    bool roomy = gemm_has_room(g);
    for (uint32_t i = roomy ? 0 : 1; i < sizeof tiles / sizeof tiles[0]; i++) {
        struct tile own = with_stages(tiles[i], g->k);
        const struct tile *t = &own;
        if (!suits(g, t)) {
            continue;
        }
        struct choice this = {own, {t->bm, t->bn, 0, 0, 0, true, 0}, {0}};
        double longer = ragged(g, t);
        this.costs.at_once = (uint32_t)gemm_costs(g, GRT_KEY_GEMM_MMA_FIT)[i];
        this.costs.step = gemm_costs(g, GRT_KEY_GEMM_MMA_STEP)[i] * longer;
        this.costs.alone = gemm_costs(g, GRT_KEY_GEMM_MMA_ALONE)[i] * longer;
        this.costs.ends = gemm_costs(g, GRT_KEY_GEMM_MMA_ENDS)[i];
        this.schedule = gemm_schedule_of(g, &this.costs, gemm_ceil_div(g->k, t->bk), true);
        best = this.schedule.time < best.schedule.time ? this : best;
    }
    return best;
}

void gemm_mma_tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    struct tile t = choose(g).tile;
    const uint32_t sizes[] = {t.bm, t.bn, t.bk, t.wm, t.wn, t.stages};
    memcpy(v, sizes, sizeof sizes);
}

double gemm_mma_time(const struct gemm_case *g) {
    return choose(g).schedule.time;
}

// Vulkan imports the kernel as PTX, where it takes Hopper's.
static bool usable(const struct gemm_case *g) {
    const char *probe = g->dev->info.caps.imports ? "probe_wgmma_48k" : "probe_mma";
    return (g->in == GRT_F16 || g->in == GRT_BF16) && grt_kernel_builds(g->dev, probe);
}

// On Vulkan us by this / by coop, H200, 2026-11-17: 63x170x13784 11 / 18, 1566x187x2040 19 / 30,
// 10019x32x1024 tn 19 / 22, 64x64x52200 10 / 12. Many rows with a short b are stream's.
static bool pays(const struct gemm_case *g) {
    const struct gemm_variant *stream = &gemm_variant_stream;
    return !g->dev->info.caps.imports ||
           (gemm_worth_importing(g) && !(stream->usable(g) && stream->pays(g)));
}

static bool cuts(const struct gemm_case *g) {
    return choose(g).schedule.parts > 1;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct choice choice = choose(gemm_meant(g));
    const struct tile *t = &choice.tile;
    if (g->stands_for) {  // of another k
        choice.schedule =
            gemm_schedule_of_check(g, &choice.costs, gemm_ceil_div(g->k, t->bk), &choice.schedule);
    }
    struct gemm_case own = gemm_scheduled(g, &choice.schedule);
    uint32_t vec = gemm_alignment(g->params.lda | g->params.a_batch) |
                   gemm_alignment(g->params.ldb | g->params.b_batch) << 2 |
                   gemm_alignment_of_c(g) << 4;
    const struct grt_spec specs[] = {
        {"WG", tile_lanes(t)},
        {"BM", t->bm},
        {"BN", t->bn},
        {"BK", t->bk},
        {"WM", t->wm},
        {"WN", t->wn},
        {"STAGES", t->stages},
        {"VEC", vec},
        {"HALF_SUMS", g->desc->half_sums && g->in == GRT_F16 && g->out == GRT_F16},
        {"SPLIT", choice.schedule.parts > 1}};
    const uint32_t groups[3] = {choice.schedule.groups, 1, 1};
    gemm_dispatch(graph, &own, "mma", specs, sizeof specs / sizeof specs[0], groups);
}

// A chunk at the end of a row of a may reach beyond k, into the row's gap.
const struct gemm_variant gemm_variant_mma = {"mma",
                                              usable,
                                              pays,
                                              record,
                                              .fills = true,
                                              .zero_gaps = true,
                                              .time = gemm_mma_time,
                                              .tile = gemm_mma_tile,
                                              .cuts = cuts};
