// SPDX-License-Identifier: Apache-2.0
// Checks a product, then hands it to the first variant that can do it.
#include "../gemm.h"

#include <string.h>

#include "case.h"
#include "check.h"
#include "../internal.h"
#include "../op_support.h"
#include "../report.h"

const char *grt_act_text(enum grt_act act) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_ACTS(X)
#undef X
    };
    return (unsigned)act < GRT_ACT_COUNT ? texts[act] : "unknown activation";
}

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
    if ((unsigned)d->act >= GRT_ACT_COUNT || (unsigned)d->grad_act >= GRT_ACT_COUNT) {
        return "no such activation";
    }
    return NULL;
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
    g->params = (struct gemm_params){
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .lda = d->a ? (uint32_t)extent(d->a, 0) : 0,
        .ldb = d->b ? (uint32_t)extent(d->b, 0) : 0,
        .ldc = g->n,
        .a_batch = d->a && d->a->rank == 3 ? g->m * g->k : 0,
        .b_batch = d->b && d->b->rank == 3 ? g->k * g->n : 0,
        .c_batch = d->c->rank == 3 ? g->m * g->n : 0,
        .alpha = d->alpha == 0.0f ? 1.0f : d->alpha,
        .beta = d->beta,
        .batch = g->batch,
        .parts = 1,
    };
}

static const char *label(const struct grt_tensor *tensor) {
    return tensor ? tensor->label : "nothing";
}

static bool reachable(struct grt_graph *graph, const char *name, const struct grt_tensor *tensor) {
    if (!tensor) {
        return true;
    }
    uint64_t reach = grt_graph_dev(graph)->info.caps.max_binding;
    if (grt_tensor_count(tensor) > UINT32_MAX || (reach > 0 && grt_tensor_bytes(tensor) > reach)) {
        grt_graph_reject(graph, GRT_UNSUPPORTED,
                         "gemm: %s '%s' has %llu bytes, %s reaches %llu at once", name,
                         tensor->label, (unsigned long long)grt_tensor_bytes(tensor),
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
    const char *why = misfit(desc);
    if (why) {
        grt_graph_reject(graph, GRT_INVALID, "gemm of '%s' and '%s' into '%s': %s", label(desc->a),
                         label(desc->b), desc->c->label, why);
        return false;
    }
    return reachable(graph, "a", desc->a) && reachable(graph, "b", desc->b) &&
           reachable(graph, "c", desc->c);
}

// Whether row i of the table serves. One that was named is not asked whether it computes right: who
// names it wants to see that.
static bool fits(uint32_t i, const struct gemm_case *g) {
    const char *named = g->desc->variant;
    // Nothing is gained by the others where there is no product.
    bool fast_enough = g->k > 0 || gemm_variants[i] == &gemm_variant_plain;
    return (!named || strcmp(named, gemm_variants[i]->name) == 0) && fast_enough &&
           gemm_variants[i]->usable(g) && (named || gemm_trusted(g, i));
}

static const struct gemm_variant *choose(const struct gemm_case *g) {
    for (uint32_t i = 0; i < gemm_variant_count; i++) {
        if (fits(i, g)) {
            return gemm_variants[i];
        }
    }
    return NULL;
}

void gemm_record(struct grt_graph *graph, const struct gemm_case *g) {
    const struct gemm_variant *variant = choose(g);
    if (variant) {
        variant->record(graph, g);
        return;
    }
    grt_graph_reject(graph, GRT_UNSUPPORTED, "gemm: no variant '%s' for %s on %s",
                     g->desc->variant ? g->desc->variant : "any", grt_dtype_text(g->in),
                     grt_graph_dev(graph)->info.selector);
}

uint64_t grt_op_gemm_scratch(struct grt_dev *dev, const struct grt_gemm_desc *desc) {
    if (!dev || !desc || !desc->a || !desc->b || !desc->c || misfit(desc)) {
        return 0;
    }
    struct gemm_case g;
    gemm_fill_case(&g, dev, desc);
    struct gemm_cut cut = gemm_cut_of(&g);
    return gemm_cut_bytes(&g, &cut);
}

// Whether there is room for the parts, and the variant would leave the device idle. The graph is
// rejected when there is some room, but not enough.
static bool is_cut(struct grt_graph *graph, const struct gemm_case *g, const struct gemm_cut *cut) {
    struct grt_range scratch = g->desc->scratch;
    if (cut->parts == 1 || !scratch.buf) {
        return false;
    }
    const struct gemm_variant *variant = choose(g);
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
    if (!dev || !desc || !desc->a != !desc->b || !desc->c || misfit(desc)) {
        return NULL;
    }
    struct gemm_case g;
    gemm_fill_case(&g, dev, desc);
    for (uint32_t v = 0; v < gemm_variant_count; v++) {
        if (fits(v, &g) && i-- == 0) {
            return gemm_variants[v]->name;
        }
    }
    return NULL;
}
