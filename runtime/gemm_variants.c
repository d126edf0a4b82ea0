// SPDX-License-Identifier: Apache-2.0
// The table of ways to do a matrix product.
#include <stdio.h>
#include <string.h>

#include "gemm_case.h"
#include "op_support.h"

// ---- what every variant needs ----

// "f32", "16" or "16f32": how the kernels of one shape differ.
static const char *type_suffix(const struct gemm_case *g) {
    return g->in == GRT_F32 ? "f32" : g->out == GRT_F32 ? "16f32" : "16";
}

static struct grt_range range_or(const struct grt_tensor *tensor, struct grt_range other) {
    return tensor ? tensor->range : other;
}

// Dispatches kernel "gemm_<shape>_<types>" with the constants that all products have and `own` ones,
// over a grid of `groups`.
static void dispatch(struct grt_graph *graph, const struct gemm_case *g, const char *shape,
                     const struct grt_spec *own, uint32_t own_count, const uint32_t groups[3]) {
    const struct grt_gemm_desc *d = g->desc;
    char name[48];
    snprintf(name, sizeof name, "gemm_%s_%s", shape, type_suffix(g));
    struct grt_kernel_desc kernel = {
        name,
        {{"A_T", d->a_transposed},
         {"B_T", d->b_transposed},
         {"KIND", g->in == GRT_BF16},
         {"BETA", d->beta != 0.0f},
         {"BIAS", d->bias != NULL},
         {"ACT", (uint32_t)d->act},
         {"ADD", d->add != NULL},
         {"GRAD", (uint32_t)d->grad_act}},
    };
    memcpy(kernel.specs + 8, own, own_count * sizeof *own);
    // An operand that is not there is bound to something harmless.
    struct grt_range none = grt_op_unused(graph);
    struct grt_range ranges[] = {d->a->range,
                                 d->b->range,
                                 d->c->range,
                                 range_or(d->bias, none),
                                 range_or(d->add, none),
                                 range_or(d->saved, none)};
    grt_op_launch(graph, &kernel, &g->params, sizeof g->params, ranges, 6, groups);
}

// ---- tiled ----

struct tile {
    uint32_t bm, bn, bk, tm, tn;
};

static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

// Large tiles where they fill the device, smaller ones where they would leave it idle.
static struct tile choose_tile(const struct gemm_case *g) {
    static const struct tile tiles[] = {
        {128, 128, 16, 8, 8}, {64, 64, 16, 4, 4}, {32, 32, 16, 4, 4}};
    uint32_t units = g->dev->info.caps.compute_units ? g->dev->info.caps.compute_units : 16;
    uint32_t last = sizeof tiles / sizeof tiles[0] - 1;
    for (uint32_t i = 0; i < last; i++) {
        uint64_t count =
            (uint64_t)ceil_div(g->m, tiles[i].bm) * ceil_div(g->n, tiles[i].bn) * g->batch;
        if (count >= units && g->m > tiles[i + 1].bm && g->n > tiles[i + 1].bn) {
            return tiles[i];
        }
    }
    return tiles[last];
}

static bool tiled_usable(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    return !caps->software && caps->max_wg >= 256 && caps->shmem >= 36 << 10 &&
           (g->in == GRT_F32 || caps->f16_storage);
}

static void tiled_record(struct grt_graph *graph, const struct gemm_case *g) {
    struct tile t = choose_tile(g);
    const struct grt_spec specs[] = {{"WG", t.bm / t.tm * (t.bn / t.tn)},
                                     {"BM", t.bm},
                                     {"BN", t.bn},
                                     {"BK", t.bk},
                                     {"TM", t.tm},
                                     {"TN", t.tn}};
    const uint32_t groups[3] = {ceil_div(g->n, t.bn), ceil_div(g->m, t.bm), g->batch};
    dispatch(graph, g, "tiled", specs, sizeof specs / sizeof specs[0], groups);
}

// ---- plain ----

static bool plain_usable(const struct gemm_case *g) {
    return g->in == GRT_F32 || g->dev->info.caps.f16_storage;
}

static void plain_record(struct grt_graph *graph, const struct gemm_case *g) {
    uint32_t wg = g->dev->info.caps.software ? 16 : 64;
    const struct grt_spec specs[] = {{"WG", wg}};
    const uint32_t groups[3] = {ceil_div(g->n, wg), g->m, g->batch};
    dispatch(graph, g, "plain", specs, 1, groups);
}

const struct gemm_variant gemm_variants[] = {
    {"tiled", tiled_usable, tiled_record},
    {"plain", plain_usable, plain_record},
};
const uint32_t gemm_variant_count = sizeof gemm_variants / sizeof gemm_variants[0];
