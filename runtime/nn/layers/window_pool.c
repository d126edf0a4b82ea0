// SPDX-License-Identifier: Apache-2.0
// The mean or the largest of each window of an image, as PyTorch's AvgPool2d and MaxPool2d.
#include <stdlib.h>

#include "base/log.h"
#include "nn/image_ops.h"

struct window_pool {
    struct grt_module base;
    enum grt_pool pool;
    struct grt_window window;
    struct grt_tensor *which;  // u32 like y: where the largest was
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    (void)prefix;
    struct window_pool *p = (struct window_pool *)module;
    struct grt_window *w = &p->window;
    if (!grt_window_fit(w, module, in)) {
        return (struct grt_shape){0};
    }
    struct grt_shape out = {3, {w->out_height, w->out_width, w->channels}};
    if (p->pool == GRT_POOL_MAX) {
        p->which =
            grt_net_tensor(net, grt_tensor_desc(.label = "which", .group = "acts", .dtype = GRT_U32,
                                                .shape = {net->rows, grt_shape_count(&out)}));
    }
    module->operations = (double)grt_shape_count(&out) * w->size * w->size;
    return out;
}

static struct grt_tensor which_of(const struct window_pool *p, const struct grt_tensor *y) {
    return p->which ? grt_nn_rows(p->which, y->shape[0]) : (struct grt_tensor){0};
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct window_pool *p = (struct window_pool *)module;
    struct grt_tensor which = which_of(p, y);
    grt_op_window(pass->graph, &p->window, p->pool, x, y, p->which ? &which : NULL);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)x;
    struct window_pool *p = (struct window_pool *)module;
    struct grt_tensor which = which_of(p, dy);
    if (dx) {
        grt_op_window_backward(pass->graph, &p->window, p->pool, dy, p->which ? &which : NULL, dx,
                               add_dx);
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct window_pool *p = (const struct window_pool *)module;
    bool mean = p->pool == GRT_POOL_MEAN;
    x = grt_onnx_planes(to, x);
    struct grt_onnx_node node = grt_window_onnx(&p->window, mean ? "AveragePool" : "MaxPool", x);
    if (mean) {
        node.attributes[3] = (struct grt_onnx_attribute){.name = "count_include_pad", .whole = 1};
    }
    x.name = grt_onnx_add(to, &node);
    return x;
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns fns[GRT_POOL_COUNT] = {
    [GRT_POOL_MEAN] = {"avg_pool", declare, forward, backward, destroy, onnx},
    [GRT_POOL_MAX] = {"max_pool", declare, forward, backward, destroy, onnx}};

struct grt_module *grt_window_pool_create(const struct grt_window_pool_desc *desc) {
    if (!desc || (unsigned)desc->pool >= GRT_POOL_COUNT || desc->size == 0 ||
        desc->padding > desc->size / 2) {
        grt_fail(GRT_INVALID, "window pool: %s",
                 !desc                                    ? "no desc"
                 : (unsigned)desc->pool >= GRT_POOL_COUNT ? "no such pooling"
                 : desc->size == 0                        ? "size must be at least 1"
                                                          : "padding is more than half the size");
        return NULL;
    }
    struct window_pool *p = calloc(1, sizeof *p);
    if (!p) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    p->base.fns = &fns[desc->pool];
    p->base.adds_dx = p->base.forgets_x = p->base.forgets_y = true;
    p->pool = desc->pool;
    p->window = (struct grt_window){.size = desc->size,
                                    .stride = desc->stride ? desc->stride : desc->size,
                                    .padding = desc->padding};
    return &p->base;
}
