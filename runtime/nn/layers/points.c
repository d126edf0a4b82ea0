// SPDX-License-Identifier: Apache-2.0
// A network over sets of points: the same mlp over every point,
// the mean or the largest over the points of a sample, and a head. The order of the points does not
// matter to it.
//
//     x [rows][points][features] --each--> [rows][points][hidden] --pool--> [rows][hidden]
//                                                                           --head--> y
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "mlp.h"
#include "nn/layer_ops.h"
#include "nn/onnx_ops.h"

struct points {
    struct grt_module base;
    struct grt_points_desc desc;
    struct grt_module *each, *head;
    struct grt_tensor *features, *features_grad;  // [rows * points][hidden]
    struct grt_tensor *pooled, *pooled_grad;      // [rows][hidden]
    struct grt_tensor *which;                     // u32 [rows][hidden], for the largest
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct points *p = (struct points *)module;
    char name[GRT_PARAM_NAME], text[GRT_SHAPE_TEXT];
    if (in->rank != 2 || (p->desc.points != 0 && in->dim[0] != p->desc.points)) {
        return grt_module_refuse(module, "takes samples of [points][features], not %s",
                                 grt_shape_text(in, text));
    }
    p->desc.points = (uint32_t)in->dim[0];
    snprintf(name, sizeof name, "%spoint.", prefix);
    struct grt_shape points = grt_module_declare(p->each, net, name, in);
    if (points.rank == 0) {
        return points;
    }
    uint64_t rows = net->rows, all = net->rows * p->desc.points, width = points.dim[1];
    snprintf(name, sizeof name, "%shead.", prefix);
    struct grt_shape out = grt_module_declare(p->head, net, name, &(struct grt_shape){1, {width}});
    struct {
        struct grt_tensor **tensor;
        const char *label;
        uint64_t rows;
        enum grt_dtype dtype;
        bool wanted;
    } tensors[] = {
        {&p->features, "features", all, net->dtype, true},
        {&p->features_grad, "features_grad", all, net->dtype, !net->inference},
        {&p->pooled, "pooled", rows, net->dtype, true},
        {&p->pooled_grad, "pooled_grad", rows, net->dtype, !net->inference},
        {&p->which, "which", rows, GRT_U32, p->desc.pool == GRT_POOL_MAX},
    };
    for (uint32_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        if (tensors[i].wanted) {
            *tensors[i].tensor = grt_net_tensor(
                net, grt_tensor_desc(.label = tensors[i].label, .group = "acts",
                                     .dtype = tensors[i].dtype, .shape = {tensors[i].rows, width}));
        }
    }
    return out;
}

struct pooled_view {
    struct grt_tensor x, features, pooled, which;
};

static struct pooled_view view(const struct points *p, const struct grt_tensor *x, bool gradient) {
    uint64_t rows = x->shape[0], all = rows * p->desc.points;
    struct pooled_view v = {
        .x = grt_nn_flat(x),
        .features = grt_nn_rows(gradient ? p->features_grad : p->features, all),
        .pooled = grt_nn_rows(gradient ? p->pooled_grad : p->pooled, rows),
    };
    if (p->which) {
        v.which = grt_nn_rows(p->which, rows);
    }
    return v;
}

static struct grt_pooling pooling(const struct points *p, const struct pooled_view *v) {
    return (struct grt_pooling){.x = &v->features,
                                .y = &v->pooled,
                                .which = p->which ? &v->which : NULL,
                                .pool = p->desc.pool,
                                .points = p->desc.points};
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct points *p = (struct points *)module;
    struct pooled_view v = view(p, x, false);
    struct grt_pooling pool = pooling(p, &v);
    grt_module_forward(p->each, pass, &v.x, &v.features);
    grt_op_pool(pass->graph, &pool);
    grt_pass_saw(pass, &v.pooled, "pooled");
    grt_module_forward(p->head, pass, &v.pooled, y);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    struct points *p = (struct points *)module;
    struct pooled_view v = view(p, x, false), d = view(p, x, true);
    struct grt_pooling pool = pooling(p, &d);
    struct grt_tensor flat = {0};
    if (dx) {
        flat = grt_nn_flat(dx);
    }
    grt_module_backward(p->head, pass, &v.pooled, dy, &d.pooled, false);
    grt_op_pool_backward(pass->graph, &pool);
    grt_module_backward(p->each, pass, &v.x, &d.features, dx ? &flat : NULL, add_dx);
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct points *p = (const struct points *)module;
    x = grt_nn_onnx_pool(to, p->desc.pool, grt_module_onnx(p->each, to, x));
    return grt_module_onnx(p->head, to, x);
}

static void destroy(struct grt_module *module) {
    struct points *p = (struct points *)module;
    grt_module_destroy(&p->each);
    grt_module_destroy(&p->head);
    free(p);
}

static const struct grt_module_fns points_fns = {"points", declare, forward,
                                                 backward, destroy, onnx};

// Of what is pooled.
static uint32_t pooled_width(const struct grt_mlp_desc *each) {
    return each->widths[0] > 0 && each->depth <= GRT_MLP_WIDTHS ? each->widths[each->depth - 1]
                                                                : each->hidden;
}

struct grt_module *grt_points_create(const struct grt_points_desc *desc) {
    if (!desc || desc->each.outputs != 0 || desc->each.depth == 0 ||
        (unsigned)desc->pool >= GRT_POOL_COUNT ||
        (desc->head.inputs != 0 && desc->head.inputs != pooled_width(&desc->each))) {
        grt_fail(
            GRT_INVALID, "points: %s",
            desc ? "wants hidden layers over each point, no outputs there, a known pooling, and a "
                   "head as wide as those layers"
                 : "no desc");
        return NULL;
    }
    struct points *p = calloc(1, sizeof *p);
    if (!p) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    p->base.fns = &points_fns;
    p->base.has_parts = p->base.adds_dx = true;
    p->base.f32_output = desc->head.outputs > 0;
    p->desc = *desc;
    p->desc.head.inputs = pooled_width(&desc->each);
    p->each = grt_mlp_create(&p->desc.each);
    p->head = grt_mlp_create(&p->desc.head);
    if (!p->each || !p->head) {
        destroy(&p->base);
        return NULL;
    }
    return &p->base;
}
