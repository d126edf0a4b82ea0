// SPDX-License-Identifier: Apache-2.0
// 16-bit products whose rows begin anywhere, where the fast kernels want rows that are multiples of
// 16 bytes: operands are copied to such rows in scratch first, and another variant multiplies the
// copies. What follows a product, and c, are as they were. Which operands are copied, and who
// multiplies, is what is expected to take least.
//
// H200, driver 580.159.04, 2026-11-16, OpenCL, us by this / by mma: f16 3427^3 235 / 589, 1549^3 nt
// 46 / 94, 1004x362x39445 nt 158 / 278; but 22008x192x1316 nt 84 / 70, where the copies cost more
// than they bring.
#include "case.h"

#include <math.h>

#include "ops/op_support.h"
#include "shaders/gemm/lib/gemm_pad_params.k"

#define WHOLE 8u  // elements

// An operand as it is copied, rows and columns as they are stored.
struct copy {
    bool needed;
    uint32_t rows, cols, ld, step, planes;
    uint32_t y_rows, y_ld;
};

struct copies {
    uint32_t k;
    struct copy a, b;
};

// The copies, who multiplies them, and how long all of it is expected to take.
struct way {
    struct copies copies;
    const struct gemm_variant *by;
    double time;
};

static uint32_t up(uint32_t count) {
    return (count + WHOLE - 1) / WHOLE * WHOLE;
}

static bool ragged(uint32_t ld, uint32_t step) {
    return (ld | step) % WHOLE != 0;
}

// Vulkan's wgmma_48k reads a by whole chunks along k, and b beside them.
static uint32_t k_for_wgmma(const struct gemm_case *g) {
    return g->dev->info.caps.imports && !g->desc->a_transposed ? up(g->k) : g->k;
}

static struct copy copy_of(const struct gemm_case *g, bool down, uint32_t k, uint32_t side,
                           uint32_t ld, uint32_t step) {
    return (struct copy){.needed = ragged(ld, step) || k != g->k,
                         .rows = down ? g->k : side,
                         .cols = down ? side : g->k,
                         .ld = ld,
                         .step = step,
                         .planes = step ? g->batch : 1,
                         .y_rows = down ? k : side,
                         .y_ld = up(down ? side : k)};
}

// All that a product of this k needs.
static struct copies copies_of(const struct gemm_case *g, uint32_t k) {
    const struct grt_gemm_desc *d = g->desc;
    return (struct copies){
        .k = k,
        .a = copy_of(g, d->a_transposed, k, g->m, g->params.lda, g->params.a_batch),
        .b = copy_of(g, !d->b_transposed, k, g->n, g->params.ldb, g->params.b_batch)};
}

// Of one matrix, in elements.
static uint64_t plane(const struct copy *c) {
    return (uint64_t)c->y_rows * c->y_ld;
}

static uint64_t copy_bytes(const struct copy *c) {
    uint64_t unit = GRT_OP_PART_ALIGN;
    return c->needed ? (2 * plane(c) * c->planes + unit - 1) / unit * unit : 0;
}

static uint64_t bytes_of(const struct copies *c) {
    return copy_bytes(&c->a) + copy_bytes(&c->b);
}

// The product of the copies.
struct inner {
    struct grt_tensor a, b;
    struct grt_gemm_desc desc;
    struct gemm_case product;
};

static void make_inner(struct inner *in, const struct gemm_case *g, const struct copies *c) {
    const struct grt_gemm_desc *d = g->desc;
    in->a = *d->a;
    in->b = *d->b;
    in->desc = *d;
    in->desc.a = &in->a;
    in->desc.b = &in->b;
    in->desc.variant = NULL;
    in->desc.scratch = (struct grt_range){0};
    in->product = *g;
    in->product.desc = &in->desc;
    in->product.gaps = true;
    in->product.zeros = !g->gaps;
    in->product.room = 0;
    in->product.k = in->product.params.k = c->k;
    if (c->a.needed) {
        in->a.range = grt_op_part(d->scratch, 0, copy_bytes(&c->a));
        in->product.params.lda = c->a.y_ld;
        in->product.params.a_batch = c->a.step ? (uint32_t)plane(&c->a) : 0;
    }
    if (c->b.needed) {
        in->b.range = grt_op_part(d->scratch, copy_bytes(&c->a), copy_bytes(&c->b));
        in->product.params.ldb = c->b.y_ld;
        in->product.params.b_batch = c->b.step ? (uint32_t)plane(&c->b) : 0;
    }
}

static bool reaches(const struct gemm_case *g, const struct copy *c) {
    uint64_t reach = g->dev->info.caps.max_binding;
    return !c->needed ||
           (plane(c) * c->planes <= UINT32_MAX && (reach == 0 || copy_bytes(c) <= reach));
}

// ---- which copies pay ----

// Microseconds for a copy: read, written and launched.
#define LAUNCH 2.0
static double copying(const struct gemm_case *g, const struct copy *c) {
    double bytes = 2.0 * (double)copy_bytes(c);
    return c->needed ? bytes / gemm_costs(g, GRT_KEY_GEMM_SCHEDULE)[0] + LAUNCH : 0;
}

// Takes the quickest variant for these copies, if that is quicker than `best`.
static void consider(const struct gemm_case *g, const struct copies *c, gemm_asked *can,
                     struct way *best) {
    if ((!c->a.needed && !c->b.needed) || !reaches(g, &c->a) || !reaches(g, &c->b)) {
        return;
    }
    struct inner in;
    make_inner(&in, g, c);
    for (uint32_t i = 0; i < gemm_variant_count; i++) {
        const struct gemm_variant *v = gemm_variants[i];
        double time = v->time ? v->time(&in.product) : INFINITY;
        time += copying(g, &c->a) + copying(g, &c->b);
        if (time < best->time && can(v, &in.product)) {
            *best = (struct way){*c, v, time};
        }
    }
}

// Both operands for those that multiply whole chunks only; one of them for mma, which takes any
// rows and is slower for each operand whose rows begin anywhere.
static struct way quickest(const struct gemm_case *g, double limit, gemm_asked *can) {
    struct way best = {.time = limit};
    struct copies all = copies_of(g, k_for_wgmma(g));
    consider(g, &all, can, &best);
    struct copies ragged_ones = copies_of(g, g->k), only_a = ragged_ones, only_b = ragged_ones;
    if (all.k != g->k) {
        consider(g, &ragged_ones, can, &best);
    }
    only_a.b.needed = only_b.a.needed = false;
    if (ragged_ones.a.needed && ragged_ones.b.needed) {
        consider(g, &only_a, can, &best);
        consider(g, &only_b, can, &best);
    }
    return best;
}

struct gemm_padding gemm_padding_of(const struct gemm_case *g, double limit, gemm_asked *can) {
    struct way way = quickest(g, limit, can);
    bool any = way.by != NULL;
    return (struct gemm_padding){way.by, any && way.copies.a.needed, any && way.copies.b.needed,
                                 way.time};
}

static bool could_be(const struct gemm_case *g) {
    return (g->in == GRT_F16 || g->in == GRT_BF16) && g->k > 0 && !gemm_in_chunks(g);
}

// Where nobody knows how long anything takes, all are copied, for whoever is first.
static struct way way_of(const struct gemm_case *g) {
    struct way way = quickest(g, INFINITY, gemm_can);
    if (!way.by) {
        struct inner in;
        way.copies = copies_of(g, g->k);
        make_inner(&in, g, &way.copies);
        bool reached = reaches(g, &way.copies.a) && reaches(g, &way.copies.b);
        way.by = reached ? gemm_first(&in.product) : NULL;
    }
    return way;
}

uint64_t gemm_padded_bytes(const struct gemm_case *g) {
    struct way way = way_of(g);
    return way.by ? bytes_of(&way.copies) : 0;
}

static bool usable(const struct gemm_case *g) {
    if (!could_be(g)) {
        return false;
    }
    struct way way = way_of(g);
    return way.by && g->room >= bytes_of(&way.copies);
}

static bool pays(const struct gemm_case *g) {
    bool imports = g->dev->info.caps.imports;
    return could_be(g) && (!imports || gemm_worth_importing(g)) && gemm_has_room(g) &&
           quickest(g, gemm_mma_time(g), gemm_can).by;
}

static void record_copy(struct grt_graph *graph, const struct gemm_case *g, const struct copy *c,
                        struct grt_range from, struct grt_range to) {
    const uint32_t *most = g->dev->info.caps.max_groups;
    uint32_t words = c->y_ld / 2, rows = gemm_ceil_div(c->y_rows, 4);
    uint32_t wg = words <= 32 ? 32 : words <= 64 ? 64 : 128;
    wg = wg < grt_op_wg(g->dev) ? wg : grt_op_wg(g->dev);
    const struct grt_kernel_desc kernel = {"gemm_pad", {{"WG", wg}}};
    const struct gemm_pad_params params = {
        c->rows, c->cols, c->ld, c->step, c->y_rows, words, (uint32_t)(plane(c) / 2), c->planes,
    };
    const struct grt_range ranges[] = {from, to};
    uint32_t across = gemm_ceil_div(words, wg);
    const uint32_t groups[3] = {across < most[0] ? across : most[0],
                                rows < most[1] ? rows : most[1],
                                c->planes < most[2] ? c->planes : most[2]};
    grt_op_launch(graph, &kernel, &params, sizeof params, ranges, 2, groups);
}

static void record(struct grt_graph *graph, const struct gemm_case *g) {
    struct way way = way_of(g);
    if (!way.by) {  // usable() asked before
        grt_graph_reject(graph, GRT_UNSUPPORTED, "gemm: nobody multiplies copies of its operands");
        return;
    }
    struct inner in;
    make_inner(&in, g, &way.copies);
    if (way.copies.a.needed) {
        record_copy(graph, g, &way.copies.a, g->desc->a->range, in.a.range);
    }
    if (way.copies.b.needed) {
        record_copy(graph, g, &way.copies.b, g->desc->b->range, in.b.range);
    }
    way.by->record(graph, &in.product);
}

const struct gemm_variant gemm_variant_padded = {
    "padded", usable, pays, record, .fills = true, .gaps = true, .made_of_others = true};
