// SPDX-License-Identifier: Apache-2.0
// Checks a convolution, then hands it to the first variant that can do it and pays.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "case.h"
#include "ops/op_support.h"

const char *grt_conv_pass_text(enum grt_conv_pass pass) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_CONV_PASSES(X)
#undef X
    };
    return (unsigned)pass < GRT_CONV_PASS_COUNT ? texts[pass] : "?";
}

static uint32_t stride_of(const struct grt_conv2d_desc *d) {
    return d->stride ? d->stride : 1;
}

static bool is_real(enum grt_dtype dtype) {
    return dtype == GRT_F32 || dtype == GRT_F16 || dtype == GRT_BF16;
}

// Why the types do not fit together, or NULL.
static const char *types_misfit(const struct grt_conv2d_desc *d) {
    enum grt_dtype type = d->x->dtype;
    bool weight = d->pass == GRT_CONV_WEIGHT;
    if (!is_real(type) || (!weight && d->w->dtype != type)) {
        return "x and w must both be f32, f16 or bf16";
    }
    if (weight && d->w->dtype != GRT_F32) {
        return "the weights' gradient is f32";
    }
    if (d->y->dtype != type && !(d->pass == GRT_CONV_FORWARD && d->y->dtype == GRT_F32)) {
        return "y must have the type of x, or forward be f32";
    }
    return NULL;
}

// Why the tensors do not fit together, or NULL.
static const char *misfit(const struct grt_conv2d_desc *d) {
    if ((unsigned)d->pass >= GRT_CONV_PASS_COUNT) {
        return "no such pass";
    }
    if (d->x->rank != 4 || d->w->rank != 4 || d->y->rank != 4) {
        return "x, w and y have four axes";
    }
    const uint64_t *x = d->x->shape, *w = d->w->shape, *y = d->y->shape;
    if (w[1] != w[2] || w[3] != x[3] || w[0] != y[3] || x[0] != y[0]) {
        return "x is [rows][height][width][channels], w [outputs][size][size][channels], y "
               "[rows][out_height][out_width][outputs]";
    }
    uint64_t most = (uint64_t)1 << 30, border = 2 * (uint64_t)d->padding;
    if (x[1] > most || x[2] > most || x[3] > most || x[0] > most || w[0] > most) {
        return "an extent is too large";
    }
    if (d->padding >= w[1] || w[1] > x[1] + border || w[1] > x[2] + border) {
        return "the size must be above the padding and fit into a padded image";
    }
    uint32_t s = stride_of(d);
    if (y[1] != (x[1] + border - w[1]) / s + 1 || y[2] != (x[2] + border - w[1]) / s + 1) {
        return "y has other extents than this size, stride and padding give";
    }
    if (d->bias && (d->pass != GRT_CONV_FORWARD || d->bias->dtype != GRT_F32 ||
                    grt_tensor_count(d->bias) != w[0])) {
        return "bias must be one f32 an output, forward";
    }
    if (d->add && d->pass == GRT_CONV_FORWARD) {
        return "forward adds to nothing";
    }
    return types_misfit(d);
}

void conv_fill_case(struct conv_case *c, struct grt_dev *dev, const struct grt_conv2d_desc *d) {
    const uint64_t *x = d->x->shape;
    *c = (struct conv_case){.dev = dev,
                            .desc = d,
                            .window = {.size = (uint32_t)d->w->shape[1],
                                       .stride = stride_of(d),
                                       .padding = d->padding,
                                       .height = (uint32_t)x[1],
                                       .width = (uint32_t)x[2],
                                       .channels = (uint32_t)x[3],
                                       .out_height = (uint32_t)d->y->shape[1],
                                       .out_width = (uint32_t)d->y->shape[2]},
                            .rows = (uint32_t)x[0],
                            .outputs = (uint32_t)d->w->shape[0],
                            .type = d->x->dtype};
    c->out = d->pass == GRT_CONV_FORWARD ? d->y->dtype
             : d->pass == GRT_CONV_DATA  ? d->x->dtype
                                         : GRT_F32;
}

struct grt_tensor conv_matrix(const struct grt_tensor *tensor, uint64_t rows, uint64_t cols) {
    struct grt_tensor view = *tensor;
    view.rank = 2;
    memset(view.shape, 0, sizeof view.shape);
    view.shape[0] = rows;
    view.shape[1] = cols;
    return view;
}

uint64_t conv_depth(const struct conv_case *c) {
    return (uint64_t)c->window.size * conv_across(c) * c->window.channels;
}

uint64_t conv_weights(const struct conv_case *c) {
    return c->outputs * conv_depth(c);
}

uint32_t conv_across(const struct conv_case *c) {
    return c->line ? 1 : c->window.size;
}

uint32_t conv_units(const struct conv_case *c) {
    uint32_t units = c->dev->info.caps.compute_units;
    return units ? units : 16;
}

uint64_t conv_pixels(const struct conv_case *c) {
    return (uint64_t)c->window.out_height * c->window.out_width;
}

double conv_operations(const struct conv_case *c) {
    return 2.0 * c->rows * (double)conv_pixels(c) * (double)conv_depth(c) * c->outputs;
}

struct conv_params conv_params_of(const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    return (struct conv_params){.rows = c->rows,
                                .height = w->height,
                                .width = w->width,
                                .channels = w->channels,
                                .out_height = w->out_height,
                                .out_width = w->out_width,
                                .outputs = c->outputs,
                                .size = w->size,
                                .stride = w->stride,
                                .padding = w->padding,
                                .size_x = conv_across(c),
                                .pixel = c->line ? c->pixel : w->channels,
                                .line = c->line ? c->line : w->width * w->channels,
                                .beta = c->desc->add ? 1.0f : 0.0f};
}

// A variant chosen by name skips both checks: whether it pays, and whether it computes right.
static bool serves(const struct conv_variant *v, const struct conv_case *c, bool paying) {
    if (c->desc->variant) {
        return paying && strcmp(c->desc->variant, v->name) == 0 && v->usable(c);
    }
    return (!v->pays || v->pays(c)) == paying && v->usable(c) && conv_trusted(c, v);
}

// The i-th variant, or NULL: those that pay, then the others, each in the order of the table.
static const struct conv_variant *variant_at(const struct conv_case *c, uint32_t i) {
    for (int others = 0; others < 2; others++) {
        for (uint32_t v = 0; v < conv_variant_count; v++) {
            if (serves(conv_variants[v], c, !others) && i-- == 0) {
                return conv_variants[v];
            }
        }
    }
    return NULL;
}

static bool is_whole(struct grt_dev *dev, const struct grt_conv2d_desc *desc) {
    return dev && desc && desc->x && desc->w && desc->y && !misfit(desc);
}

uint64_t grt_op_conv2d_scratch(struct grt_dev *dev, const struct grt_conv2d_desc *desc) {
    if (!is_whole(dev, desc)) {
        return 0;
    }
    struct conv_case c;
    conv_fill_case(&c, dev, desc);
    const struct conv_variant *variant = variant_at(&c, 0);
    return variant && variant->scratch ? variant->scratch(&c) : 0;
}

const char *grt_conv2d_variant(struct grt_dev *dev, const struct grt_conv2d_desc *desc,
                               uint32_t i) {
    if (!is_whole(dev, desc)) {
        return NULL;
    }
    struct conv_case c;
    conv_fill_case(&c, dev, desc);
    const struct conv_variant *variant = variant_at(&c, i);
    return variant ? variant->name : NULL;
}

static bool check(struct grt_graph *graph, const struct grt_conv2d_desc *d) {
    if (!d) {
        grt_graph_reject(graph, GRT_INVALID, "conv2d: no desc");
        return false;
    }
    if (!grt_op_tensor(graph, "conv2d", "x", d->x) || !grt_op_tensor(graph, "conv2d", "w", d->w) ||
        !grt_op_tensor(graph, "conv2d", "y", d->y) ||
        (d->bias && !grt_op_tensor(graph, "conv2d", "bias", d->bias))) {
        return false;
    }
    const char *why = misfit(d);
    if (why) {
        grt_graph_reject(graph, GRT_INVALID, "conv2d of '%s' and '%s' into '%s': %s", d->x->label,
                         d->w->label, d->y->label, why);
    }
    return !why;
}

void grt_op_conv2d(struct grt_graph *graph, const struct grt_conv2d_desc *desc) {
    if (!graph) {
        grt_fail(GRT_INVALID, "grt_op_conv2d: no graph");
        return;
    }
    if (!check(graph, desc)) {
        return;
    }
    struct conv_case c;
    conv_fill_case(&c, grt_graph_dev(graph), desc);
    const struct conv_variant *variant = variant_at(&c, 0);
    if (!variant) {
        grt_graph_reject(graph, GRT_UNSUPPORTED, "conv2d: no variant '%s' for %s on %s",
                         desc->variant ? desc->variant : "any", grt_dtype_text(c.type),
                         grt_graph_dev(graph)->info.selector);
        return;
    }
    if (variant->scratch &&
        !grt_op_scratch(graph, "conv2d", desc->y->label, desc->scratch, variant->scratch(&c))) {
        return;
    }
    variant->record(graph, &c);
}
