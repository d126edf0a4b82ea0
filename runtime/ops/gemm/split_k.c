// SPDX-License-Identifier: Apache-2.0
// Split-K: products with a long k and few tiles, such as a weight's gradient over a large batch. A
// workgroup a tile would leave most of a device idle. So k is cut, the parts are a batch of
// products into scratch, in f32, and one more kernel adds them up in a fixed order and does what
// follows a product.
#include "case.h"

#include "ops/op_support.h"

#define UNIT 256u  // a part is a multiple: every part then begins where a binding may
#define MOST_PARTS 256u
#define TILE 64u  // about what a workgroup makes
#define SUM_COLS 32u

struct gemm_cut gemm_cut_of(const struct gemm_case *g) {
    const struct grt_caps *caps = &g->dev->info.caps;
    struct gemm_cut whole = {1, g->k};
    uint64_t units = caps->compute_units ? caps->compute_units : 16;
    uint64_t tiles = (uint64_t)gemm_ceil_div(g->m, TILE) * gemm_ceil_div(g->n, TILE);
    // A CPU's cores are busy with one workgroup each, a GPU's with several.
    uint64_t wanted = caps->software ? units / tiles : 4 * units / tiles;
    uint64_t parts = wanted < MOST_PARTS ? wanted : MOST_PARTS;
    if (g->batch > 1 || g->desc->half_sums || tiles * 2 > units || g->k < 4 * UNIT || parts < 2) {
        return whole;
    }
    uint32_t each = gemm_ceil_div(gemm_ceil_div(g->k, (uint32_t)parts), UNIT) * UNIT;
    return each < g->k ? (struct gemm_cut){gemm_ceil_div(g->k, each), each} : whole;
}

// Elements from one partial product to the next: every one begins where a binding may.
static uint64_t part_step(const struct gemm_case *g) {
    uint64_t unit = GRT_OP_PART_ALIGN / 4;
    return ((uint64_t)g->m * g->n + unit - 1) / unit * unit;
}

uint64_t gemm_cut_bytes(const struct gemm_case *g, const struct gemm_cut *cut) {
    return cut->parts > 1 ? cut->parts * part_step(g) * 4 : 0;
}

// `count` parts from number `first` on, each of k elements, into their places in scratch.
static void record_parts(struct grt_graph *graph, const struct gemm_case *g,
                         const struct gemm_cut *cut, uint32_t first, uint32_t count, uint32_t k) {
    const struct grt_gemm_desc *d = g->desc;
    uint32_t size = grt_dtype_size(g->in);
    uint32_t a_step = cut->each * (d->a_transposed ? g->params.lda : 1);
    uint32_t b_step = cut->each * (d->b_transposed ? 1 : g->params.ldb);
    uint64_t a_skip = (uint64_t)first * a_step * size, b_skip = (uint64_t)first * b_step * size;
    uint64_t c_skip = first * part_step(g) * 4;
    struct grt_tensor a = *d->a, b = *d->b;
    struct grt_tensor c = {.label = "partial", .dtype = GRT_F32, .rank = 2, .shape = {g->m, g->n}};
    a.range = grt_op_part(a.range, a_skip, a.range.size - a_skip);
    b.range = grt_op_part(b.range, b_skip, b.range.size - b_skip);
    c.range = grt_op_part(d->scratch, c_skip, count * part_step(g) * 4);
    const struct grt_gemm_desc desc = {.a = &a,
                                       .b = &b,
                                       .c = &c,
                                       .a_transposed = d->a_transposed,
                                       .b_transposed = d->b_transposed,
                                       .variant = d->variant};
    struct gemm_case part = *g;
    part.desc = &desc;
    part.out = GRT_F32;
    part.k = part.params.k = k;
    part.batch = part.params.batch = count;
    part.params.a_batch = a_step;
    part.params.b_batch = b_step;
    part.params.ldc = g->n;
    part.params.c_batch = (uint32_t)part_step(g);
    part.params.alpha = 1.0f;
    part.params.beta = 0.0f;
    gemm_record(graph, &part);
}

static void record_sum(struct grt_graph *graph, const struct gemm_case *g, uint32_t parts) {
    const struct grt_gemm_desc *d = g->desc;
    uint32_t wg = grt_op_tree_wg(g->dev), cols = wg < SUM_COLS ? wg : SUM_COLS;
    const struct grt_spec own[] = {{"WG", wg}, {"COLS", cols}};
    struct gemm_case sum = *g;
    sum.in = g->out;
    sum.params.parts = parts;
    sum.params.lda = g->n;
    sum.params.a_batch = (uint32_t)part_step(g);
    struct grt_kernel_desc kernel =
        gemm_kernel(&sum, g->out == GRT_F32 ? "gemm_sum_f32" : "gemm_sum_16", own, 2);
    struct grt_range none = grt_op_unused(graph);
    const struct grt_range ranges[] = {grt_op_part(d->scratch, 0, parts * part_step(g) * 4),
                                       d->c->range, gemm_range_or(d->bias, none),
                                       gemm_range_or(d->add, none), gemm_range_or(d->saved, none)};
    const uint32_t groups[3] = {gemm_ceil_div(g->n, cols), g->m, 1};
    grt_op_launch(graph, &kernel, &sum.params, sizeof sum.params, ranges, 5, groups);
}

void gemm_record_cut(struct grt_graph *graph, const struct gemm_case *g,
                     const struct gemm_cut *cut) {
    uint32_t whole = g->k / cut->each, rest = g->k % cut->each;
    record_parts(graph, g, cut, 0, whole, cut->each);
    if (rest > 0) {
        record_parts(graph, g, cut, whole, 1, rest);
    }
    record_sum(graph, g, cut->parts);
}
