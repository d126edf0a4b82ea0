// SPDX-License-Identifier: Apache-2.0
// The product in tiles through shared memory: f32 on every GPU, 16-bit storage where there is no
// matrix unit. The tiles are settings of the device's profile.
#include <stdio.h>

#include "case.h"

enum { BM, BN, BK, TM, TN };

static uint32_t lanes(const uint32_t *v) {
    return v[BM] / v[TM] * (v[BN] / v[TN]);
}

// Sums, operands of four steps, elements on their way, and about 40 for addresses and counters.
static uint32_t registers(const uint32_t *v) {
    return v[TM] * v[TN] + 4 * (v[TM] + v[TN]) + (v[BM] + v[BN]) * v[BK] / lanes(v) + 40;
}

static uint32_t fill_specs(const uint32_t *v, struct grt_spec *specs) {
    const struct grt_spec all[] = {{"WG", lanes(v)}, {"BM", v[BM]}, {"BN", v[BN]},
                                   {"BK", v[BK]},    {"TM", v[TM]}, {"TN", v[TN]}};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        specs[i] = all[i];
    }
    return sizeof all / sizeof all[0];
}

// What shaders/gemm/lib/gemm_tiled.k demands: lanes own whole runs of 4 rows and columns, each
// loads equally many vectors of 4, and the arrays of the C reading have fixed lengths.
static const char *misfit(const uint32_t *v) {
    if (v[BK] % 4 || v[TM] % 4 || v[TN] % 4 || v[BM] % v[TM] || v[BN] % v[TN]) {
        return "BK, TM and TN must be multiples of 4, BM of TM and BN of TN";
    }
    if (v[BM] * v[BK] / 4 % lanes(v) || v[BN] * v[BK] / 4 % lanes(v)) {
        return "BM BK / 4 and BN BK / 4 must be multiples of the lanes, BM / TM BN / TN";
    }
    if (v[TM] * v[TN] > 64 || v[TM] > 16 || v[TN] > 16) {
        return "a lane has at most 64 sums, in 16 rows and columns";
    }
    if (v[BM] * v[BK] / lanes(v) > 128 || v[BN] * v[BK] / lanes(v) > 128) {
        return "a lane loads at most 32 vectors of each tile";
    }
    return NULL;
}

static bool possible(const struct grt_dev_info *info, const uint32_t *v, const char *kernel,
                     char *why) {
    const char *wrong = misfit(v);
    if (wrong) {
        snprintf(why, GRT_TUNABLE_WHY, "%s", wrong);
        return false;
    }
    struct grt_kernel_desc desc = {.name = kernel};
    fill_specs(v, desc.specs);
    return grt_kernel_fits(info, &desc, why);
}

static bool possible_f32(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    return possible(info, v, "gemm_tiled_f32", why);
}

static bool possible_16(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    return possible(info, v, "gemm_tiled_16", why);
}

#define KNOBS                                                                                      \
    {                                                                                              \
        {"BM", {16, 32, 64, 128, 256}}, {"BN", {16, 32, 64, 128, 256}}, {"BK", {4, 8, 16, 32}},    \
            {"TM", {4, 8, 16}}, {"TN", {4, 8, 16}},                                                \
    }

const struct grt_tunable gemm_tiled_f32_tunable = {
    "gemm",       "tiled", 1u << GRT_F32, GRT_KEY_GEMM_TILED_LARGE, GRT_SIZE_COUNT, KNOBS,
    possible_f32, lanes,   registers,
};

const struct grt_tunable gemm_tiled_16_tunable = {
    "gemm",
    "tiled",
    1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_TILED16_LARGE,
    GRT_SIZE_COUNT,
    KNOBS,
    possible_16,
    lanes,
    registers,
};
#undef KNOBS

static const struct grt_tunable *tunable_of(const struct gemm_case *g) {
    return g->in == GRT_F32 ? &gemm_tiled_f32_tunable : &gemm_tiled_16_tunable;
}

static bool usable(const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS];
    return gemm_sizes(g, tunable_of(g), v) &&
           gemm_within(g, gemm_ceil_div(g->n, v[BN]), gemm_ceil_div(g->m, v[BM]));
}

// It also pays on lavapipe: 210 ms against 896 of the plain kernel at 256^3 (Mesa 22.3, two cores,
// 2026-11). ref and PoCL switch between lanes at each barrier.
static bool pays(const struct gemm_case *g) {
    return !g->dev->info.caps.software || g->dev->info.caps.subgroup > 1;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    struct grt_spec specs[8];
    gemm_sizes(g, tunable_of(g), v);
    uint32_t count = fill_specs(v, specs);
    specs[count++] = (struct grt_spec){"VEC", gemm_in_vectors(g)};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, v[BN]), gemm_ceil_div(g->m, v[BM]), g->batch};
    gemm_dispatch(graph, g, "tiled", specs, count, groups);
}

static void tile(const struct gemm_case *g, uint32_t v[GRT_PROFILE_NUMBERS]) {
    gemm_sizes(g, tunable_of(g), v);
}

const struct gemm_variant gemm_variant_tiled = {"tiled", usable,       pays,
                                                record,  .gaps = true, .tile = tile};
