// SPDX-License-Identifier: Apache-2.0
// See check.h.
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ops/trial.h"
#include "ops/verdict.h"

// ---- a small product ----

// Products of one size have one verdict, or one for each tile where a variant has several. Large
// ones have tiles of up to 256 rows or columns, and are checked with more than one of them.
#define SMALL 128u
#define LARGE 288u
static uint32_t size_of(const struct gemm_case *g) {
    return g->m >= LARGE || g->n >= LARGE ? LARGE : SMALL;
}

// An extent that leaves the same rest as that of the product, so that the same paths are taken.
static uint32_t shrink(uint32_t extent, uint32_t size, uint32_t step) {
    return extent < size + step ? extent : size + extent % step;
}

// Kernels go along k in steps of up to 64; that of few rows, whose lanes share out k and have many
// loads on their way, in steps of up to 1024.
#define FEW 4u
#define DEEP 2048u
void gemm_check_extents(const struct gemm_case *g, uint32_t mnk[3]) {
    bool few = g->m <= FEW;
    mnk[0] = shrink(g->m, size_of(g), 32);
    mnk[1] = shrink(g->n, size_of(g), 32);
    mnk[2] = shrink(g->k, few ? DEEP : SMALL, few ? 1024 : 64);
}

// Whether the sums may be kept in half.
static bool in_half(const struct gemm_case *g) {
    return g->desc->half_sums && g->in == GRT_F16 && g->out == GRT_F16;
}

struct trial {
    struct grt_gemm_desc desc;
    struct gemm_case product;
    struct grt_tensor a, b, c;
    struct grt_plan *plan;
    double *a_values, *b_values;  // as stored
    unsigned char *bytes;         // room for the largest of the three
};

static bool begin(struct trial *t, const struct gemm_case *g, const char *variant) {
    uint32_t mnk[3];
    gemm_check_extents(g, mnk);
    uint32_t m = mnk[0], n = mnk[1], k = mnk[2];
    const struct grt_gemm_desc *d = g->desc;
    t->plan = grt_plan_create(g->dev);
    t->a_values = malloc((size_t)m * k * sizeof *t->a_values);
    t->b_values = malloc((size_t)k * n * sizeof *t->b_values);
    uint32_t most = m > n ? m : n;
    t->bytes = malloc((size_t)most * (most > k ? most : k) * 4);
    if (!t->plan || !t->a_values || !t->b_values || !t->bytes) {
        return false;
    }
    struct grt_tensor_desc descs[3] = {
        {.label = "a", .dtype = g->in, .shape = {m, k}},
        {.label = "b", .dtype = g->in, .shape = {k, n}},
        {.label = "c", .dtype = g->out, .shape = {m, n}},
    };
    if (d->a_transposed) {
        descs[0].shape[0] = k;
        descs[0].shape[1] = m;
    }
    if (d->b_transposed) {
        descs[1].shape[0] = n;
        descs[1].shape[1] = k;
    }
    const struct grt_tensor *a = grt_plan_tensor(t->plan, &descs[0]);
    const struct grt_tensor *b = grt_plan_tensor(t->plan, &descs[1]);
    const struct grt_tensor *c = grt_plan_tensor(t->plan, &descs[2]);
    if (!a || !b || !c || !grt_plan_alloc(t->plan)) {
        return false;
    }
    t->a = *a;
    t->b = *b;
    t->c = *c;
    t->desc = (struct grt_gemm_desc){.a = &t->a,
                                     .b = &t->b,
                                     .c = &t->c,
                                     .a_transposed = d->a_transposed,
                                     .b_transposed = d->b_transposed,
                                     .half_sums = in_half(g),
                                     .variant = variant};
    gemm_fill_case(&t->product, g->dev, &t->desc);
    t->product.stands_for = g;
    return grt_trial_fill(&t->a, 1, t->a_values, t->bytes) &&
           grt_trial_fill(&t->b, 2, t->b_values, t->bytes);
}

static void end(struct trial *t) {
    grt_plan_destroy(&t->plan);
    free(t->a_values);
    free(t->b_values);
    free(t->bytes);
}

// Whether element (row, col) is `got`: each addition may be off by two units of f32's last place,
// as in matrix units that cut off, and then there is the rounding to c's type.
static bool agrees(const struct trial *t, uint64_t row, uint64_t col, double got) {
    bool a_t = t->desc.a_transposed, b_t = t->desc.b_transposed;
    uint64_t k = t->a.shape[a_t ? 0 : 1];
    double sum = 0, absolute = 0;
    for (uint64_t l = 0; l < k; l++) {
        double x = t->a_values[a_t ? l * t->a.shape[1] + row : row * t->a.shape[1] + l];
        double y = t->b_values[b_t ? col * t->b.shape[1] + l : l * t->b.shape[1] + col];
        sum += x * y;
        absolute += fabs(x * y);
    }
    // With random signs partial sums are far smaller than `absolute`, and a bound for the worst of
    // them in half would let every number pass.
    double bound = t->desc.half_sums ? (sqrt((double)k) + 8) * 0x1p-11 * absolute
                                     : (2.0 * (double)k + 8) * 0x1p-24 * absolute;
    bound += t->c.dtype == GRT_F16    ? fabs(sum) * 0x1p-11
             : t->c.dtype == GRT_BF16 ? fabs(sum) * 0x1p-8
                                      : 0;
    return fabs(got - sum) <= bound;  // false for NaN
}

static bool right(const struct trial *t, bool fault) {
    uint32_t size = grt_dtype_size(t->c.dtype);
    uint64_t count = grt_tensor_count(&t->c), cols = t->c.shape[1];
    if (!grt_buf_read(t->c.range.buf, t->c.range.offset, t->bytes, count * size)) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        double got = grt_trial_number(t->c.dtype, t->bytes + i * size);
        got += fault && i == count / 2 ? 1000.0 : 0.0;
        if (!agrees(t, i / cols, i % cols, got)) {
            grt_log(GRT_LOG_DEBUG, "gemm %s: element %llu, %llu of the check is %g",
                    t->desc.variant, (unsigned long long)(i / cols), (unsigned long long)(i % cols),
                    got);
            return false;
        }
    }
    return true;
}

// What is asked: whether a variant may do a product.
struct question {
    const struct gemm_case *product;
    const struct gemm_variant *variant;
};

static enum grt_verdict run(const void *subject, bool fault) {
    const struct question *q = subject;
    struct trial t = {.plan = NULL};
    enum grt_verdict verdict = GRT_VERDICT_UNKNOWN;
    struct grt_graph *graph = NULL;
    if (begin(&t, q->product, q->variant->name) && q->variant->usable(&t.product)) {
        graph = grt_graph_create(q->product->dev, "gemm check");
    }
    if (graph) {
        memset(t.bytes, 0xff, grt_tensor_bytes(&t.c));
        verdict = GRT_VERDICT_WRONG;
        q->variant->record(graph, &t.product);
        if (grt_buf_write(t.c.range.buf, t.c.range.offset, t.bytes, grt_tensor_bytes(&t.c)) &&
            grt_graph_finish(graph) && right(&t, fault)) {
            verdict = GRT_VERDICT_RIGHT;
        }
    }
    grt_graph_destroy(&graph);
    end(&t);
    return verdict;
}

void gemm_check_kernel(const struct gemm_case *g, const struct gemm_variant *variant, char *text,
                       size_t size) {
    text[0] = '\0';
    uint32_t v[GRT_PROFILE_NUMBERS] = {0};
    if (variant->tile) {
        variant->tile(g, v);
    }
    for (uint32_t i = 0; i < GRT_PROFILE_NUMBERS && v[i]; i++) {
        int more = snprintf(text, size, "%s%u", i ? " x " : ", tile ", v[i]);
        text += more;
        size -= (size_t)more;
    }
    if (variant->cuts && variant->cuts(g)) {
        snprintf(text, size, ", k cut");
    }
}

bool gemm_trusted(const struct gemm_case *g, const struct gemm_variant *variant) {
    if (variant == &gemm_variant_plain || variant->made_of_others) {
        return true;
    }
    char what[192];
    bool whole_chunks = g->params.lda % 8 == 0 && g->params.ldb % 8 == 0;
    size_t used = (size_t)snprintf(
        what, sizeof what, "%s, %s > %s%s, %c%c, %s", size_of(g) == LARGE ? "large" : "small",
        grt_dtype_text(g->in), grt_dtype_text(g->out), in_half(g) ? " in half" : "",
        g->desc->a_transposed ? 't' : 'n', g->desc->b_transposed ? 't' : 'n',
        whole_chunks ? "aligned" : "ragged");
    gemm_check_kernel(g, variant, what + used, sizeof what - used);
    const struct question question = {g, variant};
    return grt_check_trusts(g->dev, &(struct grt_check){.op = "gemm",
                                                        .variant = variant->name,
                                                        .what = what,
                                                        .run = run,
                                                        .subject = &question});
}
