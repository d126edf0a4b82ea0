// SPDX-License-Identifier: Apache-2.0
// 16-bit products whose rows begin anywhere, where the fast kernels want rows that are multiples of
// 16 bytes: the operands are copied to such rows in scratch first, and another variant multiplies
// the copies. What follows a product, and c, are as they were.
//
// H200, driver 580.159.04, 2026-11-16, OpenCL, us by this / by mma: f16 3427^3 235 / 589, 1549^3 nt
// 46 / 94, 1004x362x39445 nt 158 / 278; but 22008x192x1316 nt 84 / 70, where the copies cost more
// than they bring.
#include "case.h"

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

static uint32_t up(uint32_t count) {
    return (count + WHOLE - 1) / WHOLE * WHOLE;
}

// wgmma takes any k; wgmma_48k, Vulkan's, multiples of 8.
static bool any_k(const struct gemm_case *g) {
    return !g->dev->info.caps.imports;
}

static struct copy copy_of(const struct gemm_case *g, bool down, uint32_t k, uint32_t side,
                           uint32_t ld, uint32_t step) {
    struct copy c = {.rows = down ? g->k : side,
                     .cols = down ? side : g->k,
                     .ld = ld,
                     .step = step,
                     .planes = step ? g->batch : 1,
                     .y_rows = down ? k : side,
                     .y_ld = up(down ? side : k)};
    c.needed = (ld | step) % WHOLE != 0 || k != g->k;
    return c;
}

static struct copies copies_of(const struct gemm_case *g) {
    const struct grt_gemm_desc *d = g->desc;
    struct copies c = {.k = any_k(g) ? g->k : up(g->k)};
    c.a = copy_of(g, d->a_transposed, c.k, g->m, g->params.lda, g->params.a_batch);
    c.b = copy_of(g, !d->b_transposed, c.k, g->n, g->params.ldb, g->params.b_batch);
    return c;
}

// Of one matrix, in elements.
static uint64_t plane(const struct copy *c) {
    return (uint64_t)c->y_rows * c->y_ld;
}

static uint64_t copy_bytes(const struct copy *c) {
    uint64_t unit = GRT_OP_PART_ALIGN;
    return c->needed ? (2 * plane(c) * c->planes + unit - 1) / unit * unit : 0;
}

uint64_t gemm_padded_bytes(const struct gemm_case *g) {
    struct copies c = copies_of(g);
    return copy_bytes(&c.a) + copy_bytes(&c.b);
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
    return plane(c) * c->planes <= UINT32_MAX && (reach == 0 || copy_bytes(c) <= reach);
}

static bool usable(const struct gemm_case *g) {
    if ((g->in != GRT_F16 && g->in != GRT_BF16) || gemm_in_chunks(g) ||
        g->room < gemm_padded_bytes(g)) {
        return false;
    }
    struct copies c = copies_of(g);
    struct inner in;
    make_inner(&in, g, &c);
    return reaches(g, &c.a) && reaches(g, &c.b) && gemm_first(&in.product);
}

// Microseconds for the copies, each read, written and launched.
#define LAUNCH 2.0
static double copying(const struct gemm_case *g, const struct copies *c) {
    double bytes = 2.0 * (double)(copy_bytes(&c->a) + copy_bytes(&c->b));
    return bytes / gemm_costs(g, GRT_KEY_GEMM_SCHEDULE)[0] +
           LAUNCH * ((c->a.needed ? 1 : 0) + (c->b.needed ? 1 : 0));
}

static bool pays(const struct gemm_case *g) {
    bool imports = g->dev->info.caps.imports;
    if ((g->in != GRT_F16 && g->in != GRT_BF16) || gemm_in_chunks(g) ||
        !grt_kernel_builds(g->dev, imports ? "probe_wgmma_48k" : "probe_wgmma")) {
        return false;
    }
    struct copies c = copies_of(g);
    struct inner in;
    make_inner(&in, g, &c);
    if (imports && !gemm_variant_wgmma_48k.pays(&in.product) &&
        !gemm_variant_wgmma_b_registers.pays(&in.product)) {
        return false;
    }
    double time = imports ? gemm_wgmma_48k_time(g) : gemm_wgmma_time(g);
    return copying(g, &c) + time < gemm_mma_time(g);
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
    struct copies c = copies_of(g);
    struct inner in;
    make_inner(&in, g, &c);
    if (c.a.needed) {
        record_copy(graph, g, &c.a, g->desc->a->range, in.a.range);
    }
    if (c.b.needed) {
        record_copy(graph, g, &c.b, g->desc->b->range, in.b.range);
    }
    gemm_record(graph, &in.product);
}

const struct gemm_variant gemm_variant_padded = {
    "padded", usable, pays, record, .fills = true, .gaps = true, .made_of_others = true};
