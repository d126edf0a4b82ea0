// SPDX-License-Identifier: Apache-2.0
// See gemm_kit.h.
#include "gemm_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- operands ----

void operand_write(struct operand *o) {
    uint32_t size = grt_dtype_size(o->t.tensor.dtype);
    unsigned char *bytes = test_alloc(o->count * size);
    struct oracle_format format = test_format(o->t.tensor.dtype);
    for (size_t i = 0; i < o->count; i++) {
        uint32_t bits = oracle_narrow(format, o->value[i]);
        memcpy(bytes + i * size, &bits, size);
        o->value[i] = oracle_widen(format, bits);
    }
    test_tensor_write(&o->t, bytes);
    free(bytes);
}

struct operand operand(enum grt_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols) {
    const uint64_t shape[3] = {batch, rows, cols};
    struct operand o = {
        .t = test_tensor_shape(test.dev, dtype, batch > 0 ? 3 : 2, batch > 0 ? shape : shape + 1),
        .count = (batch > 0 ? batch : 1) * rows * cols};
    o.value = test_alloc(o.count * sizeof *o.value);
    return o;
}

struct operand random_operand(enum grt_dtype dtype, uint64_t batch, uint64_t rows, uint64_t cols,
                              uint64_t seed) {
    struct operand o = operand(dtype, batch, rows, cols);
    uint64_t state = seed * 0x9e3779b97f4a7c15 + rows * 131 + cols;
    for (size_t i = 0; i < o.count; i++) {
        o.value[i] = (double)test_float(&state, TEST_PLAIN);
    }
    operand_write(&o);
    return o;
}

void operand_end(struct operand *o) {
    if (o->value) {
        test_tensor_end(&o->t);
    }
    free(o->value);
    o->value = NULL;
}

// ---- products ----

static const struct grt_tensor *tensor_of(const struct operand *o) {
    return o->value ? &o->t.tensor : NULL;
}

struct oracle_value *made_want(const struct made *x) {
    const struct product *p = x->p;
    size_t mn = p->m * p->n;
    struct oracle_value *want = test_alloc(x->c.count * sizeof *want);
    for (size_t i = 0; i < x->c.count; i++) {
        size_t z = i / mn;
        struct oracle_gemm g = {
            .m = p->m,
            .n = p->n,
            .k = p->k,
            .a_transposed = p->a_transposed,
            .b_transposed = p->b_transposed,
            .a = p->k ? x->a.value + (p->a_shared ? 0 : z * p->m * p->k) : NULL,
            .b = p->k ? x->b.value + (p->b_shared ? 0 : z * p->k * p->n) : NULL,
            .alpha = p->alpha == 0.0f ? 1.0 : (double)p->alpha,
            .beta = (double)p->beta,
            .c = x->c.value + z * mn,
            .bias = x->bias.value,
            .act = grt_act_text(p->act),
            .add = x->add.value ? x->add.value + z * mn : NULL,
            .grad_act = grt_act_text(p->grad_act),
            .saved = x->saved.value ? x->saved.value + z * mn : NULL,
            .out = test_format(p->out),
            .sum_u = p->half_sums ? 0x1p-11 : 0,
        };
        want[i] = oracle_gemm(&g, i % mn / p->n, i % mn % p->n);
    }
    return want;
}

void made_begin(struct made *x, const struct product *p) {
    *x = (struct made){.p = p};
    if (p->k > 0) {
        x->a = random_operand(p->in, p->a_shared ? 0 : p->batch, p->a_transposed ? p->k : p->m,
                              p->a_transposed ? p->m : p->k, 1);
        x->b = random_operand(p->in, p->b_shared ? 0 : p->batch, p->b_transposed ? p->n : p->k,
                              p->b_transposed ? p->k : p->n, 2);
    }
    x->c = random_operand(p->out, p->batch, p->m, p->n, 3);
    if (p->bias) {
        x->bias = random_operand(GRT_F32, 0, 1, p->n, 4);
    }
    if (p->add) {
        x->add = random_operand(p->out, p->batch, p->m, p->n, 5);
    }
    if (p->grad_act != GRT_ACT_NONE) {
        x->saved = random_operand(p->out, p->batch, p->m, p->n, 6);
    }
    x->desc = (struct grt_gemm_desc){
        .a = tensor_of(&x->a),
        .b = tensor_of(&x->b),
        .c = tensor_of(&x->c),
        .a_transposed = p->a_transposed,
        .b_transposed = p->b_transposed,
        .alpha = p->alpha,
        .beta = p->beta,
        .bias = tensor_of(&x->bias),
        .act = p->act,
        .add = tensor_of(&x->add),
        .grad_act = p->grad_act,
        .saved = tensor_of(&x->saved),
        .half_sums = p->half_sums,
    };
    uint64_t scratch = grt_op_gemm_scratch(test.dev, &x->desc);
    // This one does nothing without, and is tested where it does not pay too.
    x->desc.variant = "padded";
    uint64_t for_copies = grt_op_gemm_scratch(test.dev, &x->desc);
    x->desc.variant = NULL;
    scratch = for_copies > scratch ? for_copies : scratch;
    if (scratch > 0) {
        x->scratch = operand(GRT_F32, 0, 1, scratch / 4);
        for (size_t i = 0; i < x->scratch.count; i++) {
            x->scratch.value[i] = (double)NAN;
        }
        x->desc.scratch = x->scratch.t.tensor.range;
    }
}

void made_end(struct made *x) {
    operand_end(&x->a);
    operand_end(&x->b);
    operand_end(&x->c);
    operand_end(&x->bias);
    operand_end(&x->add);
    operand_end(&x->saved);
    operand_end(&x->scratch);
}

static void record(struct grt_graph *graph, void *context) {
    grt_op_gemm(graph, context);
}

void *made_run(struct made *x, const char *variant) {
    x->desc.variant = variant;
    if (x->scratch.value) {
        operand_write(&x->scratch);
    }
    if (x->p->beta == 0.0f) {
        return test_run_filled(&x->c.t, record, &x->desc);
    }
    void *bytes = test_alloc(x->c.t.bytes);
    operand_write(&x->c);
    test_run(test.dev, record, &x->desc);
    test_tensor_read(&x->c.t, bytes);
    return bytes;
}

float gemm_element(enum grt_dtype dtype, const void *bytes, size_t i) {
    uint32_t bits = 0;
    uint32_t size = grt_dtype_size(dtype);
    memcpy(&bits, (const unsigned char *)bytes + i * size, size);
    return (float)oracle_widen(test_format(dtype), bits);
}

// ---- against the oracle ----

void made_compare(const struct made *x, const struct oracle_value *want, const char *variant,
                  const void *got) {
    const struct product *p = x->p;
    struct test_compare c = test_compare(
        test.dev, "gemm %s %s>%s %c%c %llux%llux%llu batch %llu act %s grad %s beta %g", variant,
        grt_dtype_text(p->in), grt_dtype_text(p->out), p->a_transposed ? 't' : 'n',
        p->b_transposed ? 't' : 'n', (unsigned long long)p->m, (unsigned long long)p->n,
        (unsigned long long)p->k, (unsigned long long)p->batch, grt_act_text(p->act),
        grt_act_text(p->grad_act), (double)p->beta);
    for (size_t i = 0; i < x->c.count; i++) {
        test_compare_value(&c, i, gemm_element(p->out, got, i), want[i]);
    }
    test_compare_end(&c);
}

const char *made_variant(struct made *x, uint32_t i) {
    x->desc.variant = NULL;
    return grt_gemm_variant(test.dev, &x->desc, i);
}

// A CPU driver takes a second or more to compile the larger kernels; there, variants that the
// device would not choose see every seventh product: of all types and transpositions in turn. Those
// of cooperative matrices take minutes, and see the first two of these.
bool variant_passed_over(uint32_t variant, const char *name) {
    static uint32_t products, matrices;
    products += variant == 0;
    if (!grt_dev_info(test.dev)->caps.software || variant == 0) {
        return false;
    }
    bool matrix = strncmp(name, "coop", 4) == 0 && products % 7 == 0;
    matrices += matrix;
    return products % 7 != 0 || (matrix && matrices > 2);
}

void product_check(const struct product *p) {
    struct made x;
    made_begin(&x, p);
    struct oracle_value *want = made_want(&x);
    void *chosen = made_run(&x, NULL);
    assert_non_null(made_variant(&x, 0));
    for (uint32_t i = 0; made_variant(&x, i); i++) {
        const char *name = made_variant(&x, i);
        if (variant_passed_over(i, name)) {
            continue;
        }
        void *got = made_run(&x, name);
        made_compare(&x, want, name, got);
        if (i == 0) {
            test_same(test.dev, "gemm without a variant named", chosen, got, grt_dtype_size(p->out),
                      x.c.count);
        }
        free(got);
    }
    free(chosen);
    free(want);
    made_end(&x);
}
