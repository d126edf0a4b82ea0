// SPDX-License-Identifier: Apache-2.0
// Convolution over images [height][width][channels], as PyTorch's Conv2d. The weights lie as
// kernels read them, [outputs][size][size][channels]. How it is done: runtime/ops/conv.
#include <math.h>
#include <stdlib.h>

#include "gpurt/conv.h"
#include "gpurt/ops.h"
#include "base/log.h"
#include "nn/image_ops.h"

struct conv {
    struct grt_module base;
    struct grt_conv_desc desc;
    struct grt_window window;
    struct grt_param *weight, *bias;
};

// The scratch of its three passes over all samples.
static void declare_scratch(const struct conv *c, struct grt_net *net) {
    const struct grt_window *w = &c->window;
    for (uint32_t pass = 0; pass < GRT_CONV_PASS_COUNT; pass++) {
        const struct grt_tensor x = {
            .dtype = net->dtype, .rank = 4, .shape = {net->rows, w->height, w->width, w->channels}};
        const struct grt_tensor y = {
            .dtype = net->dtype,
            .rank = 4,
            .shape = {net->rows, w->out_height, w->out_width, c->desc.outputs}};
        const struct grt_tensor weight = {
            .dtype = pass == GRT_CONV_WEIGHT ? GRT_F32 : net->dtype,
            .rank = 4,
            .shape = {c->desc.outputs, w->size, w->size, w->channels}};
        grt_net_scratch(
            net,
            grt_op_conv2d_scratch(
                net->dev, grt_conv2d_desc(.pass = (enum grt_conv_pass)pass, .x = &x, .w = &weight,
                                          .y = &y, .stride = w->stride, .padding = w->padding)));
    }
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
    uint64_t pixels = (uint64_t)w->out_height * w->out_width;
    uint64_t depth = (uint64_t)w->size * w->size * w->channels;
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
    declare_scratch(c, net);
    if (c->bias) {
        const struct grt_tensor all = {
            .dtype = net->dtype, .rank = 2, .shape = {net->rows * pixels, c->desc.outputs}};
        grt_net_scratch(net, grt_op_colsum_scratch(net->dev, grt_colsum_desc(.x = &all)));
    }
    module->operations = 2.0 * (double)pixels * (double)depth * c->desc.outputs;
    return (struct grt_shape){3, {w->out_height, w->out_width, c->desc.outputs}};
}

// Samples as images, whatever axes they have.
static struct grt_tensor images(const struct grt_tensor *t, uint32_t height, uint32_t width,
                                uint32_t channels) {
    struct grt_tensor view = *t;
    view.rank = 4;
    view.shape[1] = height;
    view.shape[2] = width;
    view.shape[3] = channels;
    return view;
}

struct conv_tensors {
    struct grt_tensor x, w, y;
};

static struct conv_tensors tensors_of(const struct conv *c, enum grt_conv_pass pass,
                                      const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct grt_window *w = &c->window;
    struct conv_tensors t = {.x = images(x, w->height, w->width, w->channels),
                             .y = images(y, w->out_height, w->out_width, c->desc.outputs)};
    t.w = pass == GRT_CONV_WEIGHT         ? c->weight->grad
          : c->base.net->dtype == GRT_F32 ? c->weight->master
                                          : c->weight->copy;
    t.w.rank = 4;
    t.w.shape[0] = c->desc.outputs;
    t.w.shape[1] = t.w.shape[2] = w->size;
    t.w.shape[3] = w->channels;
    return t;
}

static void record(const struct conv *c, struct grt_graph *graph, enum grt_conv_pass pass,
                   const struct grt_tensor *x, const struct grt_tensor *y, bool add) {
    struct conv_tensors t = tensors_of(c, pass, x, y);
    const struct grt_param *bias = pass == GRT_CONV_FORWARD ? c->bias : NULL;
    grt_op_conv2d(graph, grt_conv2d_desc(.pass = pass, .x = &t.x, .w = &t.w, .y = &t.y,
                                         .stride = c->window.stride, .padding = c->window.padding,
                                         .bias = bias ? &bias->master : NULL, .add = add,
                                         .scratch = c->base.net->scratch->range));
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    record((struct conv *)module, pass->graph, GRT_CONV_FORWARD, x, y, false);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    const struct conv *c = (struct conv *)module;
    record(c, pass->graph, GRT_CONV_WEIGHT, x, dy, pass->add_grads);
    if (dx) {
        record(c, pass->graph, GRT_CONV_DATA, dx, dy, add_dx);
    }
    if (c->bias) {
        struct grt_tensor d = grt_nn_flat(dy);
        grt_op_colsum(pass->graph,
                      grt_colsum_desc(.y = &c->bias->grad, .x = &d, .add = pass->add_grads,
                                      .scratch = c->base.net->scratch->range));
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct conv *c = (const struct conv *)module;
    x = grt_onnx_planes(to, x);
    struct grt_onnx_node node = grt_window_onnx(&c->window, "Conv", x);
    node.inputs[1] = grt_onnx_param(to, c->weight);
    node.inputs[2] = c->bias ? grt_onnx_param(to, c->bias) : NULL;
    x.name = grt_onnx_add(to, &node);
    return x;
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns conv_fns = {"conv", declare, forward, backward, destroy, onnx};

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
    c->base.f32_output = c->base.adds_dx = c->base.forgets_y = true;
    c->desc = *desc;
    c->window = (struct grt_window){
        .size = desc->size, .stride = desc->stride ? desc->stride : 1, .padding = desc->padding};
    return &c->base;
}
