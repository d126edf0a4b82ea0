// SPDX-License-Identifier: Apache-2.0
// The product that runs everywhere, one lane an element.
#include "gemm_case.h"

static bool plain_usable(const struct gemm_case *g) {
    return g->in == GRT_F32 || g->dev->info.caps.f16_storage;
}

static void plain_record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t wg = g->dev->info.caps.software ? 16 : 64;
    const struct grt_spec specs[] = {{"WG", wg}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, wg), g->m, g->batch};
    gemm_dispatch(graph, g, "plain", specs, 1, groups);
}

const struct gemm_variant gemm_variant_plain = {"plain", plain_usable, plain_record};
