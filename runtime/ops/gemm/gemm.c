// SPDX-License-Identifier: Apache-2.0
// Checks a product, then hands it to the first variant that can do it and pays.
#include "gpurt/gemm.h"

#include <stdio.h>
#include <string.h>

#include "case.h"
#include "check.h"
#include "device/internal.h"
#include "ops/op_support.h"
#include "base/log.h"

static uint64_t extent(const struct grt_tensor *tensor, uint32_t from_the_end) {
    return tensor->shape[tensor->rank - 1 - from_the_end];
}

static bool is_matrix(const struct grt_tensor *tensor) {
    return tensor->rank == 2 || tensor->rank == 3;
}

static bool same_shape(const struct grt_tensor *x, const struct grt_tensor *c) {
    return x->dtype == c->dtype && x->rank == c->rank &&
           memcmp(x->shape, c->shape, c->rank * sizeof *c->shape) == 0;
}

static bool is_real(enum grt_dtype dtype) {
    return dtype == GRT_F32 || dtype == GRT_F16 || dtype == GRT_BF16;
}

// Without a and b, k is 0.
static bool is_empty(const struct grt_gemm_desc *d) {
    return !d->a && !d->b;
}

// Why a and b do not fit together and with c, or NULL.
static const char *operand_misfit(const struct grt_gemm_desc *d) {
    if (!is_matrix(d->a) || !is_matrix(d->b) || !is_matrix(d->c)) {
        return "a, b and c have two axes, or three for a batch";
    }
    if (d->a->dtype != d->b->dtype || !is_real(d->a->dtype)) {
        return "a and b must both be f32, f16 or bf16";
    }
    if (d->c->dtype != d->a->dtype && d->c->dtype != GRT_F32) {
        return "c must have the type of a and b, or be f32";
    }
    uint64_t m = extent(d->a, d->a_transposed ? 0 : 1), k = extent(d->a, d->a_transposed ? 1 : 0);
    uint64_t n = extent(d->b, d->b_transposed ? 1 : 0), k_b = extent(d->b, d->b_transposed ? 0 : 1);
    if (k != k_b || extent(d->c, 1) != m || extent(d->c, 0) != n) {
        return "the shapes do not fit: [m][k] times [k][n] is [m][n]";
    }
    uint64_t batch = d->c->rank == 3 ? d->c->shape[0] : 1;
    if ((d->a->rank == 3 && d->a->shape[0] != batch) ||
        (d->b->rank == 3 && d->b->shape[0] != batch)) {
        return "the batches differ";
    }
    return NULL;
}

// Why the tensors do not fit together, or NULL.
static const char *misfit(const struct grt_gemm_desc *d) {
    const char *why = is_empty(d) ? NULL : operand_misfit(d);
    if (why) {
        return why;
    }
    if (is_empty(d) && (!is_matrix(d->c) || !is_real(d->c->dtype))) {
        return "c must be a matrix, or a batch of them, of f32, f16 or bf16";
    }
    uint64_t n = extent(d->c, 0);
    if (d->bias && (d->bias->dtype != GRT_F32 || grt_tensor_count(d->bias) != n)) {
        return "bias must be n numbers of f32";
    }
    if ((d->add && !same_shape(d->add, d->c)) || (d->saved && !same_shape(d->saved, d->c))) {
        return "add and saved must have the type and shape of c";
    }
    if ((d->grad_act != GRT_ACT_NONE) != (d->saved != NULL)) {
        return "grad_act and saved go together";
    }
    if ((unsigned)d->act > GRT_ACT_TANH || (unsigned)d->grad_act > GRT_ACT_TANH) {
        return "no such activation";
    }
    return NULL;
}

// ---- gaps ----

// How the matrices of an operand lie.
struct layout {
    const char *name;
    const struct grt_tensor *tensor;
    uint64_t rows, cols, batch;
    uint64_t ld, step;
};

static struct layout layout(const char *name, const struct grt_tensor *t, uint32_t ld,
                            uint32_t step) {
    struct layout l = {name, t,   extent(t, 1), extent(t, 0), t->rank == 3 ? t->shape[0] : 1,
                       ld,   step};
    l.ld = l.ld ? l.ld : l.cols;
    l.step = l.step ? l.step : l.rows * l.ld;
    return l;
}

// Elements from the first to behind the last.
static uint64_t span_of(const struct layout *l) {
    return (l->batch - 1) * l->step + (l->rows - 1) * l->ld + l->cols;
}

static bool matrices_overlap(const struct layout *l) {
    bool apart = l->step >= (l->rows - 1) * l->ld + l->cols;
    bool interleaved = l->step >= l->cols && (l->batch - 1) * l->step + l->cols <= l->ld;
    return l->batch > 1 && !apart && !interleaved;
}

#define MOST_LAYOUTS 5
static uint32_t layouts_of(const struct grt_gemm_desc *d, struct layout all[MOST_LAYOUTS]) {
    const struct layout none = {0};
    uint32_t count = 0;
    all[count] = d->a ? layout("a", d->a, d->lda, d->a_step) : none;
    count += d->a != NULL;
    all[count] = d->b ? layout("b", d->b, d->ldb, d->b_step) : none;
    count += d->b != NULL;
    all[count++] = layout("c", d->c, d->ldc, d->c_step);
    all[count] = d->add ? layout("add", d->add, d->ldc, d->c_step) : none;
    count += d->add != NULL;
    all[count] = d->saved ? layout("saved", d->saved, d->ldc, d->c_step) : none;
    return count + (d->saved != NULL);
}

// Why the distances of rows and matrices are none, in `why`; true when they fit.
static bool layouts_fit(const struct grt_gemm_desc *d, char why[GRT_TUNABLE_WHY]) {
    struct layout all[MOST_LAYOUTS];
    uint32_t count = layouts_of(d, all);
    for (uint32_t i = 0; i < count; i++) {
        const struct layout *l = &all[i];
        const struct grt_range *range = &l->tensor->range;
        uint64_t bytes = span_of(l) * grt_dtype_size(l->tensor->dtype);
        uint64_t room = range->buf ? grt_op_room(*range) : bytes;  // else only asked about
        if (l->ld < l->cols) {
            snprintf(why, GRT_TUNABLE_WHY, "rows of %s have %llu elements and begin %llu apart",
                     l->name, (unsigned long long)l->cols, (unsigned long long)l->ld);
            return false;
        }
        if (l->tensor == d->c && matrices_overlap(l)) {
            snprintf(why, GRT_TUNABLE_WHY, "matrices of c that begin %llu apart overlap",
                     (unsigned long long)l->step);
            return false;
        }
        if (bytes > room) {
            snprintf(why, GRT_TUNABLE_WHY, "%s reaches %llu bytes, its range has %llu", l->name,
                     (unsigned long long)bytes, (unsigned long long)room);
            return false;
        }
    }
    return true;
}

static bool fits_together(const struct grt_gemm_desc *d) {
    char why[GRT_TUNABLE_WHY];
    return !misfit(d) && layouts_fit(d, why);
}

static bool has_gaps(const struct layout *l) {
    return l->ld != l->cols || (l->batch > 1 && l->step != l->rows * l->cols);
}

void gemm_fill_case(struct gemm_case *g, struct grt_dev *dev, const struct grt_gemm_desc *d) {
    *g = (struct gemm_case){
        .dev = dev,
        .desc = d,
        .m = (uint32_t)extent(d->c, 1),
        .n = (uint32_t)extent(d->c, 0),
        .batch = d->c->rank == 3 ? (uint32_t)d->c->shape[0] : 1,
        .in = d->c->dtype,
        .out = d->c->dtype,
    };
    if (!is_empty(d)) {
        g->k = (uint32_t)extent(d->a, d->a_transposed ? 1 : 0);
        g->in = d->a->dtype;
    }
    struct layout c = layout("c", d->c, d->ldc, d->c_step);
    struct layout a = d->a ? layout("a", d->a, d->lda, d->a_step) : c;
    struct layout b = d->b ? layout("b", d->b, d->ldb, d->b_step) : c;
    g->room = d->scratch.buf ? grt_op_room(d->scratch) : 0;
    g->gaps = has_gaps(&a) || has_gaps(&b) || has_gaps(&c);
    g->params = (struct gemm_params){
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .lda = d->a ? (uint32_t)a.ld : 0,
        .ldb = d->b ? (uint32_t)b.ld : 0,
        .ldc = (uint32_t)c.ld,
        .a_batch = d->a && d->a->rank == 3 ? (uint32_t)a.step : 0,
        .b_batch = d->b && d->b->rank == 3 ? (uint32_t)b.step : 0,
        .c_batch = d->c->rank == 3 ? (uint32_t)c.step : 0,
        .alpha = d->alpha == 0.0f ? 1.0f : d->alpha,
        .beta = d->beta,
        .batch = g->batch,
        .parts = 1,
    };
}

static const char *label(const struct grt_tensor *tensor) {
    return tensor ? tensor->label : "nothing";
}

static bool reachable(struct grt_graph *graph, const struct layout *l) {
    uint64_t reach = grt_graph_dev(graph)->info.caps.max_binding;
    uint64_t bytes = span_of(l) * grt_dtype_size(l->tensor->dtype);
    if (span_of(l) > UINT32_MAX || (reach > 0 && bytes > reach)) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "gemm: %s '%s' has %llu bytes, %s reaches %llu at once", l->name,
                         l->tensor->label, (unsigned long long)bytes,
                         grt_graph_dev(graph)->info.selector, (unsigned long long)reach);
        return false;
    }
    return true;
}

static bool check(struct grt_graph *graph, const struct grt_gemm_desc *desc) {
    if (!desc) {
        grt_graph_reject(graph, GRT_INVALID, "gemm: no desc");
        return false;
    }
    if ((!is_empty(desc) && (!grt_op_tensor(graph, "gemm", "a", desc->a) ||
                             !grt_op_tensor(graph, "gemm", "b", desc->b))) ||
        !grt_op_tensor(graph, "gemm", "c", desc->c) ||
        (desc->bias && !grt_op_tensor(graph, "gemm", "bias", desc->bias)) ||
        (desc->add && !grt_op_tensor(graph, "gemm", "add", desc->add)) ||
        (desc->saved && !grt_op_tensor(graph, "gemm", "saved", desc->saved))) {
        return false;
    }
    char gaps[GRT_TUNABLE_WHY] = "";
    const char *why = misfit(desc);
    if (why || !layouts_fit(desc, gaps)) {
        grt_graph_reject(graph, GRT_INVALID, "gemm of '%s' and '%s' into '%s': %s", label(desc->a),
                         label(desc->b), desc->c->label, why ? why : gaps);
        return false;
    }
    struct layout all[MOST_LAYOUTS];
    uint32_t count = layouts_of(desc, all);
    for (uint32_t i = 0; i < count; i++) {
        if (!reachable(graph, &all[i])) {
            return false;
        }
    }
    return true;
}

// Nothing is gained by the others where there is no product.
static bool usable(const struct gemm_variant *v, const struct gemm_case *g) {
    bool gaps = !g->gaps || v->gaps || (g->zeros && v->zero_gaps);
    return (g->k > 0 || v == &gemm_variant_plain) && gaps && v->usable(g);
}

bool gemm_can(const struct gemm_variant *v, const struct gemm_case *g) {
    return usable(v, g) && gemm_trusted(g, v);
}

// A variant chosen by name skips both checks: whether it pays, and whether it computes right.
static bool serves(const struct gemm_variant *v, const struct gemm_case *g, bool paying) {
    if (g->desc->variant) {
        return paying && strcmp(g->desc->variant, v->name) == 0 && usable(v, g);
    }
    return (!v->pays || v->pays(g)) == paying && gemm_can(v, g);
}

// The i-th variant for a product, or NULL: those that pay, then the others, each in the order of
// the table. As plain pays wherever it is usable, the others serve when they are named.
static const struct gemm_variant *variant_at(const struct gemm_case *g, uint32_t i) {
    for (int others = 0; others < 2; others++) {
        for (uint32_t v = 0; v < gemm_variant_count; v++) {
            if (serves(gemm_variants[v], g, !others) && i-- == 0) {
                return gemm_variants[v];
            }
        }
    }
    return NULL;
}

const struct gemm_variant *gemm_first(const struct gemm_case *g) {
    return variant_at(g, 0);
}

void gemm_record(struct grt_graph *graph, const struct gemm_case *g) {
    const struct gemm_variant *variant = gemm_first(g);
    if (variant) {
        variant->record(graph, g);
        return;
    }
    grt_graph_reject(graph, GRT_UNSUPPORTED, "gemm: no variant '%s' for %s on %s",
                     g->desc->variant ? g->desc->variant : "any", grt_dtype_text(g->in),
                     grt_graph_dev(graph)->info.selector);
}

uint64_t grt_op_gemm_scratch(struct grt_dev *dev, const struct grt_gemm_desc *desc) {
    if (!dev || !desc || !desc->a || !desc->b || !desc->c || !fits_together(desc)) {
        return 0;
    }
    struct gemm_case g;
    gemm_fill_case(&g, dev, desc);
    g.room = UINT64_MAX;
    const struct gemm_variant *padded = &gemm_variant_padded;
    bool wanted = desc->variant ? strcmp(desc->variant, padded->name) == 0 : padded->pays(&g);
    uint64_t copies = wanted && gemm_first(&g) == padded ? gemm_padded_bytes(&g) : 0;
    struct gemm_cut cut = gemm_cut_of(&g);
    uint64_t parts = gemm_cut_bytes(&g, &cut);
    return copies > parts ? copies : parts;
}

// Whether there is room for the parts, and the variant would leave the device idle. The graph is
// rejected when there is some room, but not enough.
static bool is_cut(struct grt_graph *graph, const struct gemm_case *g, const struct gemm_cut *cut) {
    struct grt_range scratch = g->desc->scratch;
    if (cut->parts == 1 || !scratch.buf) {
        return false;
    }
    const struct gemm_variant *variant = variant_at(g, 0);
    return variant && !variant->fills &&
           grt_op_scratch(graph, "gemm", g->desc->c->label, scratch, gemm_cut_bytes(g, cut));
}

void grt_op_gemm(struct grt_graph *graph, const struct grt_gemm_desc *desc) {
    if (!graph) {
        grt_fail(GRT_INVALID, "grt_op_gemm: no graph");
        return;
    }
    if (!check(graph, desc)) {
        return;
    }
    struct gemm_case g;
    gemm_fill_case(&g, grt_graph_dev(graph), desc);
    struct gemm_cut cut = gemm_cut_of(&g);
    if (is_cut(graph, &g, &cut)) {
        gemm_record_cut(graph, &g, &cut);
    } else {
        gemm_record(graph, &g);
    }
}

const char *grt_gemm_variant(struct grt_dev *dev, const struct grt_gemm_desc *desc, uint32_t i) {
    if (!dev || !desc || !desc->a != !desc->b || !desc->c || !fits_together(desc)) {
        return NULL;
    }
    struct gemm_case g;
    gemm_fill_case(&g, dev, desc);
    const struct gemm_variant *variant = variant_at(&g, i);
    return variant ? variant->name : NULL;
}
