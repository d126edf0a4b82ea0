// SPDX-License-Identifier: Apache-2.0
// Convolution as products over patches of x that are written to scratch, as many samples at a time
// as the profile's nn.patch_mib hold:
//
//     forward   y = patches(x) w^T + bias
//     data      dx = the patches' way back of dy w
//     weight    dw = dy^T patches(x)
//
// 16-bit patches that are no whole vectors of eight numbers, as of three channels, have zeros
// behind them, and so have the weights of their products: the fast products want rows that begin at
// whole vectors.
//
//     scratch   patches | weights with zeros, or their gradient | scratch of the product
//
// It runs on every device, and is the baseline that the others are checked against.
#include <stdio.h>

#include "case.h"
#include "gpurt/gemm.h"
#include "ops/op_support.h"

// Samples that `bytes` each are a whole number of the device's units.
static uint64_t samples_of_unit(const struct conv_case *c, uint64_t bytes) {
    uint64_t samples = 1, align = grt_dev_align(c->dev);
    while (samples < align && bytes * samples % align != 0) {
        samples *= 2;
    }
    return samples;
}

struct chunk {
    uint64_t samples;  // whose patches are there at once
    uint64_t bytes;    // of those, at the beginning of the scratch
    uint64_t weights;  // bytes of those with zeros, behind them
};

static bool has_zeros(const struct conv_case *c) {
    return c->type != GRT_F32 && c->desc->pass != GRT_CONV_DATA && conv_depth(c) % 8 != 0;
}

// Numbers of a patch as it is written.
static uint64_t written_depth(const struct conv_case *c) {
    return has_zeros(c) ? (conv_depth(c) + 7) / 8 * 8 : conv_depth(c);
}

static struct chunk chunk_of(const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    uint64_t size = grt_dtype_size(c->type), pixels = conv_pixels(c);
    uint64_t of_sample = pixels * written_depth(c) * size;
    uint64_t room = grt_profile_whole(c->dev->profile, GRT_KEY_PATCH_MIB) << 20;
    uint64_t in = samples_of_unit(c, (uint64_t)w->height * w->width * w->channels * size);
    uint64_t out = samples_of_unit(c, pixels * c->outputs * size);
    uint64_t unit = in > out ? in : out, units = room / (of_sample * unit);
    struct chunk k = {.samples = unit * (units > 0 ? units : 1)};
    k.samples = k.samples < c->rows ? k.samples : c->rows;
    k.bytes = grt_dev_align_up(c->dev, k.samples * of_sample);
    if (has_zeros(c)) {
        uint64_t each = grt_dtype_size(c->desc->w->dtype);
        k.weights = grt_dev_align_up(c->dev, c->outputs * written_depth(c) * each);
    }
    return k;
}

// What holds the first samples or all of them.
static struct grt_tensor samples(const struct grt_tensor *t, uint64_t first, uint64_t rows) {
    struct grt_tensor view = *t;
    uint64_t each = grt_tensor_bytes(t) / t->shape[0];
    view.shape[0] = rows;
    view.range.offset += each * first;
    view.range.size = each * rows;
    return view;
}

// Of `rows` samples, at the beginning of the scratch.
static struct grt_tensor patches_of(const struct conv_case *c, uint64_t rows) {
    struct grt_tensor t = {.dtype = c->type,
                           .rank = 2,
                           .shape = {rows * conv_pixels(c), written_depth(c)},
                           .label = "patches"};
    if (c->desc->scratch.buf) {
        t.range = grt_op_part(c->desc->scratch, 0, grt_tensor_bytes(&t));
    }
    return t;
}

// The weights, or their gradient, as the product has them.
static struct grt_tensor weights_of(const struct conv_case *c, const struct chunk *k) {
    struct grt_tensor w = conv_matrix(c->desc->w, c->outputs, written_depth(c));
    if (has_zeros(c) && c->desc->scratch.buf) {
        w.range = grt_op_part(c->desc->scratch, k->bytes, grt_tensor_bytes(&w));
    }
    return w;
}

// Between those and the caller's.
static void record_refit(struct grt_graph *graph, const struct conv_case *c,
                         const struct grt_tensor *x, const struct grt_tensor *y, bool add) {
    const struct refit_params params = {.n = (uint32_t)grt_tensor_count(y),
                                        .x_cols = (uint32_t)x->shape[1],
                                        .y_cols = (uint32_t)y->shape[1]};
    struct grt_pieces pieces = grt_op_pieces(graph, params.n, 4);
    grt_op_next(&pieces);
    grt_op_stream(graph, &pieces,
                  grt_kernel_desc(.name = y->dtype == GRT_F32 ? "refit_f32" : "refit_16",
                                  .specs = {{"KIND", c->type == GRT_BF16}, {"ADD", add}}),
                  &params, sizeof params, (const struct grt_range[]){x->range, y->range}, 2);
}

static struct grt_gemm_desc weight_product(const struct conv_case *c, const struct grt_tensor *dy,
                                           const struct grt_tensor *patches,
                                           const struct grt_tensor *dw) {
    (void)c;
    return (struct grt_gemm_desc){.a = dy, .a_transposed = true, .b = patches, .c = dw};
}

static uint64_t scratch(const struct conv_case *c) {
    struct chunk k = chunk_of(c);
    uint64_t product = 0;
    if (c->desc->pass == GRT_CONV_WEIGHT) {
        struct grt_tensor patches = patches_of(c, k.samples);
        struct grt_tensor dy = conv_matrix(c->desc->y, patches.shape[0], c->outputs);
        struct grt_tensor dw = weights_of(c, &k);
        dy.range = dw.range = patches.range = (struct grt_range){0};
        struct grt_gemm_desc desc = weight_product(c, &dy, &patches, &dw);
        product = grt_op_gemm_scratch(c->dev, &desc);
    }
    return k.bytes + k.weights + product;
}

static bool usable(const struct conv_case *c) {
    (void)c;
    return true;
}

// Whether the kernels reach a tensor; rejects the graph otherwise.
static bool reachable(struct grt_graph *graph, const struct conv_case *c,
                      const struct grt_tensor *x) {
    if (grt_tensor_count(x) <= grt_op_reach(c->dev)) {
        return true;
    }
    grt_graph_reject(graph, GRT_UNSUPPORTED,
                     "'%s' has %llu numbers, %s reaches %llu at once; use smaller micro-batches",
                     x->label, (unsigned long long)grt_tensor_count(x), c->dev->info.selector,
                     (unsigned long long)grt_op_reach(c->dev));
    return false;
}

// x into y, or for the way back y, the patches' gradient, into x.
static void record_patches(struct grt_graph *graph, const struct conv_case *c, bool back,
                           const struct grt_tensor *x, const struct grt_tensor *patches) {
    const struct grt_window *w = &c->window;
    if (!reachable(graph, c, x) || !reachable(graph, c, patches)) {
        return;
    }
    uint64_t rows = x->shape[0];
    if (has_zeros(c)) {
        grt_op_stream_windows(
            graph, w,
            grt_kernel_desc(.name = "patches8_16", .specs = {{"SIZE", w->size},
                                                             {"STRIDE", w->stride},
                                                             {"CHANNELS", w->channels}}),
            grt_tensor_count(patches) / 8, (const struct grt_range[]){x->range, patches->range}, 2);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "patches%s_%s", back ? "_grad" : "",
             c->type == GRT_F32 ? "f32" : "16");
    struct grt_kernel_desc kernel = {name, {{"KIND", c->type == GRT_BF16}}};
    if (back) {
        kernel.specs[1] = (struct grt_spec){"ADD", c->desc->add};
        grt_op_launch_windows(graph, w, &kernel, rows * w->height * w->width, w->channels,
                              (const struct grt_range[]){patches->range, x->range}, 2);
    } else {
        grt_op_launch_windows(graph, w, &kernel, rows * conv_pixels(c) * w->size,
                              (uint64_t)w->size * w->channels,
                              (const struct grt_range[]){x->range, patches->range}, 2);
    }
}

// `rows` samples from `first` on.
static void record_chunk(struct grt_graph *graph, const struct conv_case *c, const struct chunk *k,
                         uint64_t first, uint64_t rows) {
    const struct grt_conv2d_desc *d = c->desc;
    struct grt_tensor x = samples(d->x, first, rows), of_y = samples(d->y, first, rows);
    struct grt_tensor y = conv_matrix(&of_y, rows * conv_pixels(c), c->outputs);
    struct grt_tensor w = weights_of(c, k);
    struct grt_tensor patches = patches_of(c, rows);
    if (d->pass == GRT_CONV_DATA) {
        grt_op_gemm(graph, grt_gemm_desc(.a = &y, .b = &w, .c = &patches));
        record_patches(graph, c, true, &x, &patches);
        return;
    }
    record_patches(graph, c, false, &x, &patches);
    if (d->pass == GRT_CONV_FORWARD) {
        grt_op_gemm(graph, grt_gemm_desc(.a = &patches, .b = &w, .b_transposed = true, .c = &y,
                                         .bias = d->bias));
        return;
    }
    struct grt_gemm_desc product = weight_product(c, &y, &patches, &w);
    uint64_t room = grt_op_room(d->scratch), used = k->bytes + k->weights;
    product.scratch =
        room > used ? grt_op_part(d->scratch, used, room - used) : (struct grt_range){0};
    product.beta = (d->add && !has_zeros(c)) || first > 0 ? 1.0f : 0.0f;
    grt_op_gemm(graph, &product);
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    struct chunk k = chunk_of(c);
    struct grt_tensor w = conv_matrix(c->desc->w, c->outputs, conv_depth(c));
    struct grt_tensor with_zeros = weights_of(c, &k);
    if (has_zeros(c) && c->desc->pass == GRT_CONV_FORWARD) {
        record_refit(graph, c, &w, &with_zeros, false);
    }
    for (uint64_t first = 0; first < c->rows; first += k.samples) {
        record_chunk(graph, c, &k, first,
                     c->rows - first < k.samples ? c->rows - first : k.samples);
    }
    if (has_zeros(c) && c->desc->pass == GRT_CONV_WEIGHT) {
        record_refit(graph, c, &with_zeros, &w, c->desc->add);
    }
}

const struct conv_variant conv_variant_patches = {"patches", usable,  NULL,
                                                  record,    scratch, .trusted = true};
