// SPDX-License-Identifier: Apache-2.0
// What the variants of a matrix product share.
#include "case.h"

#include <stdio.h>
#include <string.h>

#include "ops/op_support.h"
#include "shaders/lib/op_words.k"

#define X(name, text) _Static_assert((unsigned)GRT_ACT_##name == ACT_##name, text);
GRT_ACTS(X)
#undef X

uint32_t gemm_ceil_div(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

uint32_t gemm_units(const struct gemm_case *g) {
    uint32_t units = g->dev->info.caps.compute_units;
    return units ? units : 16;
}

uint32_t gemm_places(const struct gemm_case *g) {
    return gemm_units(g) < MOST_GROUPS ? gemm_units(g) : MOST_GROUPS;
}

uint64_t gemm_rounds(const struct gemm_case *g, uint32_t bm, uint32_t bn, uint32_t at_once) {
    uint64_t count = (uint64_t)gemm_ceil_div(g->m, bm) * gemm_ceil_div(g->n, bn) * g->batch;
    uint64_t slots = (uint64_t)gemm_units(g) * at_once;
    return (count + slots - 1) / slots;
}

bool gemm_in_chunks(const struct gemm_case *g) {
    const struct gemm_params *p = &g->params;
    return (g->in == GRT_F16 || g->in == GRT_BF16) &&
           (p->lda | p->ldb | p->a_batch | p->b_batch) % 8 == 0;
}

// H200, 65536x256x256, where a and c have 33.5 MB each, TFLOP/s without / with c kept:
// wgmma_b_registers f16 327 / 361, bf16 335 / 368, wgmma_b_shared 371 / 398 and 367 / 404. Two in
// turns, each the other's c: 25.1 us become 21.0. Where a and c both fit it is 4 % slower
// (65536x128x128), and 2 % where c does not (131072x256x256). With 81920 rows, 42 MB each, 30.7 /
// 28.8 us; with 98304 37.0 / 38.1.
bool gemm_keeps_c(const struct gemm_case *g) {
    const struct grt_gemm_desc *d = g->desc;
    uint64_t room = grt_profile_whole(g->dev->profile, GRT_KEY_GEMM_CACHE);
    uint64_t rows = (uint64_t)g->m * g->batch;
    bool once = g->batch == 1 || g->params.a_batch;
    bool alone = d->beta == 0.0f && !d->add && d->grad_act == GRT_ACT_NONE;
    return once && alone && grt_dtype_size(g->out) == 2 && rows <= room &&
           2 * rows * g->n <= room && 2 * rows * ((uint64_t)g->n + g->k) > room;
}

bool gemm_within(const struct gemm_case *g, uint32_t across, uint32_t down) {
    const uint32_t *most = g->dev->info.caps.max_groups;
    return across <= most[0] && down <= most[1] && g->batch <= most[2];
}

bool gemm_has_room(const struct gemm_case *g) {
    return grt_kernels_roomy(g->dev);
}

bool gemm_worth_importing(const struct gemm_case *g) {
    bool hard = g->in == GRT_F32 ? g->k >= 128 : !gemm_in_chunks(g) || g->k >= 512;
    // Matrix units multiply 16 rows and columns, be they there or not. 2x999x649 took 17.7 us in
    // f16 by coop, in f32 19.3 by split, where OpenCL has 5.6 by mma and 7.5 by split_wgmma (H200,
    // 2026-11-19).
    double m = hard && g->m < 16 ? 16 : g->m, n = hard && g->n < 16 ? 16 : g->n;
    return m * n * g->k * g->batch >= (hard ? 0x1p21 : 0x1p24);
}

bool gemm_in_vectors(const struct gemm_case *g) {
    const struct gemm_params *p = &g->params;
    uint32_t rows = (g->desc->a_transposed ? g->m : g->k) | (g->desc->b_transposed ? g->k : g->n);
    return g->in == GRT_F32 && (p->lda | p->ldb | p->a_batch | p->b_batch | rows) % 4 == 0;
}

const struct gemm_case *gemm_meant(const struct gemm_case *g) {
    return g->stands_for ? g->stands_for : g;
}

bool gemm_sizes(const struct gemm_case *g, const struct grt_tunable *tunable,
                uint32_t values[GRT_PROFILE_NUMBERS]) {
    const struct gemm_case *meant = gemm_meant(g);
    struct grt_pick pick;
    bool any = grt_tunable_pick(tunable, &g->dev->info, g->dev->profile, meant->m, meant->n,
                                meant->batch, &pick);
    memcpy(values, pick.values, sizeof pick.values);
    return any;
}

const double *gemm_costs(const struct gemm_case *g, enum grt_profile_key key) {
    return grt_profile_get(g->dev->profile, key)->numbers;
}

bool gemm_split_pays(const struct gemm_case *g) {
    return grt_profile_whole(g->dev->profile, GRT_KEY_GEMM_SPLIT_USE) != 0;
}

uint32_t gemm_alignment(uint32_t ld) {
    return ld % 8 == 0 ? 3 : ld % 4 == 0 ? 2 : ld % 2 == 0 ? 1 : 0;
}

uint32_t gemm_alignment_of_c(const struct gemm_case *g) {
    return gemm_alignment(g->params.ldc | g->params.n | g->params.c_batch);
}

// "f32", "16" or "16f32": how the kernels of one shape differ.
static const char *type_suffix(const struct gemm_case *g) {
    return g->in == GRT_F32 ? "f32" : g->out == GRT_F32 ? "16f32" : "16";
}

struct grt_kernel_desc gemm_kernel(const struct gemm_case *g, const char *name,
                                   const struct grt_spec *own, uint32_t own_count) {
    const struct grt_gemm_desc *d = g->desc;
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
    return kernel;
}

struct grt_range gemm_range_or(const struct grt_tensor *tensor, struct grt_range other) {
    return tensor ? tensor->range : other;
}

void gemm_dispatch(struct grt_graph *graph, const struct gemm_case *g, const char *shape,
                   const struct grt_spec *own, uint32_t own_count, const uint32_t groups[3]) {
    const struct grt_gemm_desc *d = g->desc;
    char name[48];
    snprintf(name, sizeof name, "gemm_%s_%s", shape, type_suffix(g));
    struct grt_kernel_desc kernel = gemm_kernel(g, name, own, own_count);
    // An operand that is not there is bound to something harmless.
    struct grt_range none = grt_op_unused(graph);
    struct grt_range a = gemm_range_or(d->a, none), b = gemm_range_or(d->b, none);
    struct grt_range ranges[] = {a,
                                 b,
                                 d->c->range,
                                 gemm_range_or(d->bias, none),
                                 gemm_range_or(d->add, none),
                                 gemm_range_or(d->saved, none),
                                 a,  // once more, for kernels that read vectors too
                                 b};
    grt_op_launch(graph, &kernel, &g->params, sizeof g->params, ranges,
                  sizeof ranges / sizeof ranges[0], groups);
    grt_graph_operations(graph, 2.0 * g->m * g->n * g->k * g->batch);
}
