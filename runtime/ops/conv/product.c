// SPDX-License-Identifier: Apache-2.0
// A window of one pixel, one after the other: x is the matrix, and all three passes are products.
#include "case.h"
#include "gpurt/gemm.h"

static bool usable(const struct conv_case *c) {
    return c->window.size == 1 && c->window.stride == 1 && c->window.padding == 0;
}

struct factors {
    struct grt_tensor x, w, y;
};

static struct factors factors_of(const struct conv_case *c) {
    uint64_t rows = c->rows * conv_pixels(c);
    return (struct factors){conv_matrix(c->desc->x, rows, c->window.channels),
                            conv_matrix(c->desc->w, c->outputs, c->window.channels),
                            conv_matrix(c->desc->y, rows, c->outputs)};
}

static struct grt_gemm_desc product_of(const struct conv_case *c, const struct factors *f) {
    float beta = c->desc->add ? 1.0f : 0.0f;
    switch (c->desc->pass) {
    case GRT_CONV_FORWARD:
        return (struct grt_gemm_desc){
            .a = &f->x, .b = &f->w, .b_transposed = true, .c = &f->y, .bias = c->desc->bias};
    case GRT_CONV_DATA:
        return (struct grt_gemm_desc){.a = &f->y, .b = &f->w, .c = &f->x, .beta = beta};
    default:
        return (struct grt_gemm_desc){.a = &f->y,
                                      .a_transposed = true,
                                      .b = &f->x,
                                      .c = &f->w,
                                      .beta = beta,
                                      .scratch = c->desc->scratch};
    }
}

static uint64_t scratch(const struct conv_case *c) {
    struct factors f = factors_of(c);
    struct grt_gemm_desc desc = product_of(c, &f);
    return c->desc->pass == GRT_CONV_WEIGHT ? grt_op_gemm_scratch(c->dev, &desc) : 0;
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    struct factors f = factors_of(c);
    struct grt_gemm_desc desc = product_of(c, &f);
    grt_op_gemm(graph, &desc);
}

const struct conv_variant conv_variant_product = {"product", usable,  NULL,
                                                  record,    scratch, .trusted = true};
