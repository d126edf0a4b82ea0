// SPDX-License-Identifier: Apache-2.0
// The product that runs everywhere, one lane an element.
#include "case.h"

static uint32_t lanes(const uint32_t *v) {
    return v[0];
}

static uint32_t registers(const uint32_t *v) {
    (void)v;
    return 32;
}

static bool possible(const struct grt_dev_info *info, const uint32_t *v, char *why) {
    return grt_kernel_fits(info, grt_kernel_desc(.name = "gemm_plain_f32", .specs = {{"WG", v[0]}}),
                           why);
}

const struct grt_tunable gemm_plain_tunable = {
    "gemm",
    "plain",
    1u << GRT_F32 | 1u << GRT_F16 | 1u << GRT_BF16,
    GRT_KEY_GEMM_PLAIN,
    1,
    {{"WG", {4, 8, 16, 32, 64, 128, 256, 512}}},
    possible,
    lanes,
    registers,
};

static bool usable(const struct gemm_case *g) {
    return g->in == GRT_F32 || g->dev->info.caps.f16_storage;
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t v[GRT_PROFILE_NUMBERS];
    // The variant that runs everywhere runs with one lane too.
    uint32_t wg = gemm_sizes(g, &gemm_plain_tunable, v) ? v[0] : 1;
    const struct grt_spec specs[] = {{"WG", wg}};
    const uint32_t *most = g->dev->info.caps.max_groups;
    const uint32_t wanted[3] = {gemm_ceil_div(g->n, wg), g->m, g->batch};
    uint32_t groups[3];
    for (int i = 0; i < 3; i++) {
        groups[i] = wanted[i] < most[i] ? wanted[i] : most[i];
    }
    gemm_dispatch(graph, g, "plain", specs, 1, groups);
}

const struct gemm_variant gemm_variant_plain = {"plain", usable, NULL, record, .gaps = true};
