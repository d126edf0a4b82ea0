// SPDX-License-Identifier: Apache-2.0
// Convolution over images [height][width][channels], as PyTorch's Conv2d. The weights lie as
// products read them, [outputs][size][size][channels].
//
//     forward    y = patches(x) weight^T + bias
//     backward   dweight = dy^T patches(x),  dx = the patches' way back of dy weight
//
// A window of one pixel needs no patches: x is the matrix. Else as many samples at a time as the
// profile's nn.patch_mib hold.
#include <math.h>
#include <stdlib.h>

#include "gpurt/ops.h"
#include "gpurt/profile.h"
#include "base/log.h"
#include "image_ops.h"
#include "ops/op_support.h"

struct conv {
    struct grt_module base;
    struct grt_conv_desc desc;
    struct grt_window window;
    struct grt_param *weight, *bias;
    uint64_t chunk;        // samples whose patches are there at once
    uint64_t patch_bytes;  // of those, at the beginning of the scratch
};

static bool is_product(const struct conv *c) {
    return c->window.size == 1 && c->window.stride == 1 && c->window.padding == 0;
}

// Numbers of a patch.
static uint64_t depth_of(const struct conv *c) {
    return (uint64_t)c->window.size * c->window.size * c->window.channels;
}

// Samples that `bytes` each are a whole number of the device's units.
static uint64_t samples_of_unit(const struct grt_net *net, uint64_t bytes) {
    uint64_t samples = 1, align = grt_dev_align(net->dev);
    while (samples < align && bytes * samples % align != 0) {
        samples *= 2;
    }
    return samples;
}

static void choose_chunk(struct conv *c, const struct grt_net *net, uint64_t pixels) {
    uint64_t size = grt_dtype_size(net->dtype), of_sample = pixels * depth_of(c) * size;
    uint64_t room = grt_profile_whole(grt_dev_profile(net->dev), GRT_KEY_PATCH_MIB) << 20;
    uint64_t in = samples_of_unit(net, grt_shape_count(&c->base.in) * size);
    uint64_t out = samples_of_unit(net, pixels * c->desc.outputs * size);
    uint64_t unit = in > out ? in : out, units = room / (of_sample * unit);
    c->chunk = unit * (units > 0 ? units : 1);
    c->chunk = c->chunk < net->rows ? c->chunk : net->rows;
    c->patch_bytes = is_product(c) ? 0 : grt_dev_align_up(net->dev, c->chunk * of_sample);
}

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct conv *c = (struct conv *)module;
    struct grt_window *w = &c->window;
    char text[GRT_SHAPE_TEXT];
    if (!grt_window_fit(w, module, in)) {
        return (struct grt_shape){0};
    }
    if (c->desc.inputs != 0 && c->desc.inputs != w->channels) {
        return grt_module_refuse(module, "takes %u channels, not %s", c->desc.inputs,
                                 grt_shape_text(in, text));
    }
    uint64_t pixels = (uint64_t)w->out_height * w->out_width, depth = depth_of(c);
    float bound = (float)(1.0 / sqrt((double)depth));
    float deviation = (float)sqrt(2.0 / ((double)c->desc.outputs * w->size * w->size));
    c->weight = grt_params_add(
        net->params, prefix, "weight",
        (const uint64_t[GRT_MAX_RANK]){c->desc.outputs, w->size, w->size, w->channels},
        c->desc.kaiming ? GRT_INIT_NORMAL : GRT_INIT_UNIFORM, c->desc.kaiming ? deviation : bound);
    if (!c->desc.no_bias) {
        c->bias = grt_params_add(net->params, prefix, "bias",
                                 (const uint64_t[GRT_MAX_RANK]){c->desc.outputs}, GRT_INIT_UNIFORM,
                                 bound);
    }
    module->in = *in;
    choose_chunk(c, net, pixels);
    uint64_t rows = c->chunk * pixels;
    const struct grt_tensor dy = {.dtype = net->dtype, .rank = 2, .shape = {rows, c->desc.outputs}};
    const struct grt_tensor x = {.dtype = net->dtype, .rank = 2, .shape = {rows, depth}};
    const struct grt_tensor dw = {.rank = 2, .shape = {c->desc.outputs, depth}};
    const struct grt_tensor all = {
        .dtype = net->dtype, .rank = 2, .shape = {net->rows * pixels, c->desc.outputs}};
    uint64_t product = grt_op_gemm_scratch(
        net->dev, grt_gemm_desc(.a = &dy, .a_transposed = true, .b = &x, .c = &dw));
    grt_net_scratch(net, c->patch_bytes + product);
    if (c->bias) {
        grt_net_scratch(net, grt_op_colsum_scratch(net->dev, grt_colsum_desc(.x = &all)));
    }
    module->operations = 2.0 * (double)pixels * (double)depth * c->desc.outputs;
    return (struct grt_shape){3, {w->out_height, w->out_width, c->desc.outputs}};
}

// `rows` samples of a tensor from `first` on.
static struct grt_tensor samples(const struct grt_tensor *t, uint64_t first, uint64_t rows) {
    struct grt_tensor view = grt_nn_rows(t, rows);
    view.range.offset = t->range.offset + view.range.size / rows * first;
    return view;
}

// Parameters as a matrix of [outputs][size size channels].
static struct grt_tensor matrix(const struct conv *c, const struct grt_tensor *of) {
    return grt_nn_matrix(of, c->desc.outputs, depth_of(c));
}

static struct grt_tensor weights(const struct conv *c) {
    return matrix(c, c->base.net->dtype == GRT_F32 ? &c->weight->master : &c->weight->copy);
}

// The patches of so many samples, in the scratch.
static struct grt_tensor patches(const struct conv *c, uint64_t rows) {
    const struct grt_window *w = &c->window;
    struct grt_tensor t = {
        .dtype = c->base.net->dtype,
        .rank = 2,
        .shape = {rows * w->out_height * w->out_width, depth_of(c)},
        .label = "patches",
    };
    t.range = grt_op_part(c->base.net->scratch->range, 0, grt_tensor_bytes(&t));
    return t;
}

// What products take for x: its patches, or x itself.
static struct grt_tensor made_patches(const struct conv *c, struct grt_graph *graph,
                                      const struct grt_tensor *x) {
    if (is_product(c)) {
        return grt_nn_flat(x);
    }
    struct grt_tensor t = patches(c, x->shape[0]);
    grt_op_patches(graph, &c->window, x, &t);
    return t;
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct conv *c = (struct conv *)module;
    uint64_t all = x->shape[0], step = is_product(c) ? all : c->chunk;
    struct grt_tensor w = weights(c);
    for (uint64_t first = 0; first < all; first += step) {
        uint64_t rows = all - first < step ? all - first : step;
        struct grt_tensor part = samples(x, first, rows), out = samples(y, first, rows);
        struct grt_tensor a = made_patches(c, pass->graph, &part), flat = grt_nn_flat(&out);
        grt_op_gemm(pass->graph, grt_gemm_desc(.a = &a, .b = &w, .b_transposed = true, .c = &flat,
                                               .bias = c->bias ? &c->bias->master : NULL));
    }
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    const struct conv *c = (struct conv *)module;
    uint64_t all = x->shape[0];
    struct grt_range scratch = c->base.net->scratch->range;
    struct grt_range room = grt_op_part(scratch, c->patch_bytes, scratch.size - c->patch_bytes);
    struct grt_tensor w = weights(c), dw = matrix(c, &c->weight->grad);
    for (uint64_t first = 0; first < all; first += c->chunk) {
        uint64_t rows = all - first < c->chunk ? all - first : c->chunk;
        struct grt_tensor part = samples(x, first, rows), of_y = samples(dy, first, rows);
        struct grt_tensor b = made_patches(c, pass->graph, &part), d = grt_nn_flat(&of_y);
        grt_op_gemm(pass->graph,
                    grt_gemm_desc(.a = &d, .a_transposed = true, .b = &b, .c = &dw, .scratch = room,
                                  .beta = pass->add_grads || first > 0 ? 1.0f : 0.0f));
        if (!dx) {
            continue;
        }
        struct grt_tensor of_x = samples(dx, first, rows);
        struct grt_tensor back = is_product(c) ? grt_nn_flat(&of_x) : patches(c, rows);
        grt_op_gemm(pass->graph, grt_gemm_desc(.a = &d, .b = &w, .c = &back,
                                               .beta = is_product(c) && add_dx ? 1.0f : 0.0f));
        if (!is_product(c)) {
            grt_op_patches_backward(pass->graph, &c->window, &back, &of_x, add_dx);
        }
    }
    if (c->bias) {
        struct grt_tensor d = grt_nn_flat(dy);
        grt_op_colsum(pass->graph, grt_colsum_desc(.y = &c->bias->grad, .x = &d,
                                                   .add = pass->add_grads, .scratch = scratch));
    }
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns conv_fns = {"conv", declare, forward, backward, destroy};

struct grt_module *grt_conv_create(const struct grt_conv_desc *desc) {
    const char *why = !desc                         ? "no desc"
                      : desc->outputs == 0          ? "outputs must be at least 1"
                      : desc->size == 0             ? "size must be at least 1"
                      : desc->padding >= desc->size ? "padding must be below the size"
                                                    : NULL;
    struct conv *c = why ? NULL : calloc(1, sizeof *c);
    if (!c) {
        grt_fail(why ? GRT_INVALID : GRT_NO_MEMORY, "conv: %s", why ? why : "no host memory");
        return NULL;
    }
    c->base.fns = &conv_fns;
    c->base.f32_output = c->base.adds_dx = true;
    c->desc = *desc;
    c->window = (struct grt_window){
        .size = desc->size, .stride = desc->stride ? desc->stride : 1, .padding = desc->padding};
    return &c->base;
}
