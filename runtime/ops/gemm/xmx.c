// SPDX-License-Identifier: Apache-2.0
// 16-bit products on Intel's matrix units through OpenCL's sub-groups, cl/intel/lib/gemm_xmx.k.
// Compiled for those chips in ci/static_check.sh, never run on one: its check at first use decides
// whether it serves.
#include "case.h"

#define BM 128u

// Lanes of a sub-group, or 0 when there is no such unit.
static uint32_t sub_group(const struct gemm_case *g) {
    return grt_kernel_builds(g->dev, "probe_xmx16")  ? 16
           : grt_kernel_builds(g->dev, "probe_xmx8") ? 8
                                                     : 0;
}

static bool usable(const struct gemm_case *g) {
    return (g->in == GRT_F16 || g->in == GRT_BF16) && sub_group(g) > 0;
}

// Eight sub-groups: four down, two across.
static void record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t sg = sub_group(g), bn = 4 * sg;
    const struct grt_spec specs[] = {{"WG", 8 * sg}, {"BM", BM}, {"BN", bn}};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, bn), gemm_ceil_div(g->m, BM), g->batch};
    gemm_dispatch(graph, g, sg == 16 ? "xmx16" : "xmx8", specs, sizeof specs / sizeof specs[0],
                  groups);
}

const struct gemm_variant gemm_variant_xmx = {"xmx", usable, NULL, record};
