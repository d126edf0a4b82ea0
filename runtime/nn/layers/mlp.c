// SPDX-License-Identifier: Apache-2.0
// A multi-layer perceptron: hidden layers h =
// act(norm(linear(x))) [+ x], then a linear output layer.
//
// Where there is only an activation whose derivative can be had from its output, both ends of a
// layer are done on the way out of a product: two products and a column sum a layer. Otherwise the
// product leaves z, and a block (layer_ops.h) makes h of it.
//
//     forward   x --W0--> h0 --W1--> h1 --W2--> y
//     backward  dy --W2, act'(h1)--> dz1 --W1, act'(h0)--> dz0          dz alternate in two tensors
//
// Computing again (recompute): the hidden layers are cut into segments of about sqrt(depth). Only
// the last h of a segment is kept; the others share tensors, layer i of every segment the same one,
// and are filled again, by the same products, before backward goes through their segment.
#include "mlp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nn/layer_ops.h"
#include "nn/onnx_ops.h"

// Whether the products leave z, and a block makes h. Without an output layer the gradient of the
// last h comes from outside, and a block takes the activation's derivative from z; of relu it is
// that from h.
static bool has_blocks(const struct grt_mlp *mlp) {
    const struct grt_mlp_desc *d = &mlp->desc;
    return d->act == GRT_ACT_GELU || d->act > GRT_ACT_TANH || d->residual || d->layer_norm ||
           (d->act == GRT_ACT_TANH && d->outputs == 0);
}

// Whether backward goes through blocks too, and not through the products' ends, which know
// activations up to tanh.
static bool has_block_gradients(const struct grt_mlp *mlp) {
    return mlp->desc.residual || mlp->desc.layer_norm || mlp->desc.act > GRT_ACT_TANH;
}

static bool is_output(const struct grt_mlp *mlp, uint32_t layer) {
    return layer == mlp->desc.depth;
}

// ---- declare ----

static uint32_t width_of(const struct grt_mlp_desc *d, uint32_t layer) {
    return d->widths[0] > 0 ? d->widths[layer] : d->hidden;
}

static uint32_t widest(const struct grt_mlp_desc *d) {
    uint32_t most = d->hidden;
    for (uint32_t i = 0; d->widths[0] > 0 && i < d->depth; i++) {
        most = i == 0 || d->widths[i] > most ? d->widths[i] : most;
    }
    return most;
}

// Layers of different widths share tensors as wide as the widest.
static struct grt_tensor *hidden_tensor(struct grt_mlp *mlp, const char *label) {
    struct grt_net *net = mlp->base.net;
    return grt_net_tensor(
        net, grt_tensor_desc(.label = label, .group = "acts", .dtype = net->dtype,
                             .shape = {net->rows * mlp->rows_each, widest(&mlp->desc)}));
}

// A tensor for hidden layer i: of its own, or that of the layer at the same place of the first
// segment.
static struct grt_tensor *slot(struct grt_mlp *mlp, struct grt_tensor **list, uint32_t i, bool own,
                               const char *stem, const char *prefix) {
    if (!own && mlp->segment > 0 && i >= mlp->segment) {
        return list[i % mlp->segment];
    }
    char label[48];
    snprintf(label, sizeof label, "%s%s.%u", prefix, stem, i);
    if (strcmp(stem, "stats") == 0) {
        struct grt_net *net = mlp->base.net;
        return grt_net_tensor(net, grt_tensor_desc(.label = label, .group = "acts",
                                                   .shape = {net->rows * mlp->rows_each, 2}));
    }
    return hidden_tensor(mlp, label);
}

// With one segment of all layers nothing would be saved. In inference, two tensors take turns.
static uint32_t segment_length(const struct grt_mlp *mlp) {
    const struct grt_net *net = mlp->base.net;
    if (net->inference) {
        return 2;
    }
    uint32_t length = (uint32_t)ceil(sqrt((double)mlp->desc.depth));
    return net->recompute && length > 1 && length < mlp->desc.depth ? length : 0;
}

static void declare_activations(struct grt_mlp *mlp, const char *prefix) {
    struct grt_net *net = mlp->base.net;
    const struct grt_mlp_desc *d = &mlp->desc;
    mlp->segment = segment_length(mlp);
    for (uint32_t i = 0; i < d->depth; i++) {
        bool last = !net->inference && mlp->segment > 0 && (i + 1) % mlp->segment == 0;
        if (d->outputs > 0 || i + 1 < d->depth) {
            mlp->h[i] = slot(mlp, mlp->h, i, last, "h", prefix);
        }
        if (has_blocks(mlp)) {
            mlp->z[i] = slot(mlp, mlp->z, i, false, "z", prefix);
        }
        if (d->layer_norm) {
            mlp->stats[i] = slot(mlp, mlp->stats, i, false, "stats", prefix);
        }
    }
    if (!net->inference && d->depth > 0) {
        mlp->dh[0] = hidden_tensor(mlp, "dh.0");
        mlp->dh[1] = hidden_tensor(mlp, "dh.1");
        if (has_block_gradients(mlp) || d->outputs == 0) {
            mlp->dz = hidden_tensor(mlp, "dz");
        }
    }
    if (d->layer_norm) {
        uint64_t scratch = grt_block_scratch(net->rows * mlp->rows_each, widest(d));
        grt_net_scratch(net, scratch);
    }
}

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct grt_mlp *mlp = (struct grt_mlp *)module;
    struct grt_mlp_desc *d = &mlp->desc;
    uint64_t inputs = in->dim[in->rank - 1];
    char text[GRT_SHAPE_TEXT];
    if (inputs > UINT32_MAX || (d->inputs != 0 && d->inputs != inputs)) {
        return grt_module_refuse(module, "takes [%u], not %s", d->inputs, grt_shape_text(in, text));
    }
    d->inputs = (uint32_t)inputs;
    mlp->rows_each = grt_shape_count(in) / inputs;
    char name[GRT_PARAM_NAME];
    snprintf(mlp->prefix, sizeof mlp->prefix, "%s", prefix);
    for (uint32_t i = 0; i < mlp->layer_count; i++) {
        mlp->layers[i].desc = (struct grt_linear_desc){
            .inputs = i == 0 ? d->inputs : width_of(d, i - 1),
            .outputs = is_output(mlp, i) ? d->outputs : width_of(d, i),
        };
        module->operations +=
            2.0 * (double)mlp->rows_each * mlp->layers[i].desc.inputs * mlp->layers[i].desc.outputs;
        snprintf(name, sizeof name, "%slayers.%u.", prefix, i);
        grt_linear_declare(&mlp->layers[i], net, name, mlp->rows_each);
    }
    for (uint32_t i = 0; d->layer_norm && i < d->depth; i++) {
        const uint64_t shape[GRT_MAX_RANK] = {width_of(d, i)};
        snprintf(name, sizeof name, "%snorms.%u.", prefix, i);
        mlp->norms[2 * i] = grt_params_add(net->params, name, "weight", shape, GRT_INIT_ONES, 0.0f);
        mlp->norms[2 * i + 1] =
            grt_params_add(net->params, name, "bias", shape, GRT_INIT_ZEROS, 0.0f);
    }
    declare_activations(mlp, prefix);
    struct grt_shape out = *in;
    out.dim[out.rank - 1] = d->outputs > 0 ? d->outputs : width_of(d, d->depth - 1);
    return out;
}

// ---- forward ----

// Everything of hidden layer i, cut to the rows of a recording.
struct layer_view {
    struct grt_tensor x, z, h, stats;
};

// What hidden layer i has of a tensor that may be wider.
static struct grt_tensor cut(const struct grt_mlp *mlp, const struct grt_tensor *tensor, uint32_t i,
                             uint64_t rows) {
    uint64_t width = width_of(&mlp->desc, i);
    struct grt_tensor view = grt_nn_matrix(tensor, rows, width);
    view.range.size = rows * width * grt_dtype_size(tensor->dtype);
    return view;
}

static struct layer_view layer_view(const struct grt_mlp *mlp, uint32_t i) {
    uint64_t rows = mlp->x.shape[0];
    struct layer_view v = {0};
    v.x = i == 0 ? mlp->x : cut(mlp, mlp->h[i - 1], i - 1, rows);
    bool gives_y = mlp->desc.outputs == 0 && i + 1 == mlp->desc.depth;
    if (!is_output(mlp, i)) {
        v.h = gives_y ? mlp->y : cut(mlp, mlp->h[i], i, rows);
        if (mlp->z[i]) {
            v.z = cut(mlp, mlp->z[i], i, rows);
        }
        if (mlp->stats[i]) {
            v.stats = grt_nn_rows(mlp->stats[i], rows);
        }
    }
    return v;
}

static struct grt_block block(const struct grt_mlp *mlp, uint32_t i, const struct layer_view *v) {
    return (struct grt_block){
        .z = &v->z,
        .h = &v->h,
        .x = mlp->desc.residual && i > 0 ? &v->x : NULL,
        .act = mlp->desc.act,
        .weight = mlp->desc.layer_norm ? mlp->norms[2 * i] : NULL,
        .bias = mlp->desc.layer_norm ? mlp->norms[2 * i + 1] : NULL,
        .stats = &v->stats,
        .scratch = mlp->base.net->scratch,
    };
}

static void forward_hidden(const struct grt_mlp *mlp, struct grt_graph *graph, uint32_t i) {
    struct layer_view v = layer_view(mlp, i);
    if (!has_blocks(mlp)) {
        grt_linear_forward(&mlp->layers[i], graph, &v.x, &v.h, mlp->desc.act);
        return;
    }
    grt_linear_forward(&mlp->layers[i], graph, &v.x, &v.z, GRT_ACT_NONE);
    struct grt_block b = block(mlp, i, &v);
    grt_op_block(graph, &b);
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct grt_mlp *mlp = (struct grt_mlp *)module;
    mlp->x = grt_nn_flat(x);
    mlp->y = grt_nn_flat(y);
    for (uint32_t i = 0; i < mlp->desc.depth; i++) {
        forward_hidden(mlp, pass->graph, i);
        struct layer_view v = layer_view(mlp, i);
        grt_pass_saw(pass, &v.h, "activations of %slayers.%u", mlp->prefix, i);
    }
    if (mlp->desc.outputs > 0) {
        struct layer_view v = layer_view(mlp, mlp->desc.depth);
        grt_linear_forward(&mlp->layers[mlp->desc.depth], pass->graph, &v.x, &mlp->y, GRT_ACT_NONE);
    }
}

// ---- backward ----

// Before backward comes to hidden layer i: if it is the last of its segment, fills what the segment
// shares. The last segment of all is still as forward left it.
static void again(const struct grt_mlp *mlp, struct grt_graph *graph, uint32_t i) {
    if (mlp->segment == 0 || i + 1 == mlp->desc.depth || (i + 1) % mlp->segment != 0) {
        return;
    }
    for (uint32_t k = i + 1 - mlp->segment; k <= i; k++) {
        if (k < i || has_blocks(mlp)) {
            forward_hidden(mlp, graph, k);
        }
    }
}

// dz of hidden layer i from dh, the gradient of its output.
static struct grt_tensor through_block(const struct grt_mlp *mlp, struct grt_graph *graph,
                                       uint32_t i, const struct grt_tensor *dh, bool add) {
    struct layer_view v = layer_view(mlp, i);
    struct grt_tensor dz = cut(mlp, mlp->dz, i, dh->shape[0]);
    struct grt_block b = block(mlp, i, &v);
    b.dh = dh;
    b.dz = &dz;
    b.add = add;
    b.z = has_blocks(mlp) ? &v.z : &v.h;
    grt_op_block_backward(graph, &b);
    return dz;
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    struct grt_mlp *mlp = (struct grt_mlp *)module;
    const struct grt_mlp_desc *d = &mlp->desc;
    struct grt_graph *graph = pass->graph;
    struct grt_tensor flat = grt_nn_flat(x), given = {0};
    bool add = pass->add_grads;
    if (dx) {
        given = grt_nn_flat(dx);
    }
    bool blocks = has_block_gradients(mlp);
    // The gradient that comes from above: of a layer's product, or of its output.
    struct grt_tensor above = grt_nn_flat(dy);
    bool is_dz = d->outputs > 0;
    for (uint32_t i = mlp->layer_count; i-- > 0;) {
        struct grt_tensor dz = is_dz ? above : through_block(mlp, graph, i, &above, add);
        struct layer_view v = layer_view(mlp, i), under = {0};
        struct grt_linear_backward b = {
            .x = &v.x, .dz = &dz, .dx = dx ? &given : NULL, .add_dx = add_dx, .accumulate = add};
        struct grt_tensor below = {0};
        if (i > 0) {
            again(mlp, graph, i - 1);
            under = layer_view(mlp, i - 1);
            below = cut(mlp, mlp->dh[i % 2], i - 1, flat.shape[0]);
            b.dx = &below;
            b.add_dx = false;
            if (blocks) {
                b.add = d->residual && !is_output(mlp, i) ? &above : NULL;
            } else if (d->act != GRT_ACT_NONE) {
                b.act = d->act;
                b.saved = d->act == GRT_ACT_GELU ? &under.z : &under.h;
            }
        }
        grt_linear_backward(&mlp->layers[i], graph, &b);
        above = below;
        is_dz = !blocks;
    }
}

// ---- ONNX ----

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct grt_mlp *mlp = (const struct grt_mlp *)module;
    const struct grt_mlp_desc *d = &mlp->desc;
    x = grt_onnx_rows(to, x);
    for (uint32_t i = 0; i < mlp->layer_count; i++) {
        struct grt_onnx_value h = grt_linear_onnx(&mlp->layers[i], to, x);
        if (!is_output(mlp, i)) {
            h = d->layer_norm
                    ? grt_nn_onnx_layer_norm(to, mlp->norms[2 * i], mlp->norms[2 * i + 1], h)
                    : h;
            h = grt_nn_onnx_act(to, d->act, h);
            h = d->residual && i > 0 ? grt_nn_onnx_sum(to, x, h) : h;
        }
        x = h;
    }
    return x;
}

// ---- create ----

static void destroy(struct grt_module *module) {
    struct grt_mlp *mlp = (struct grt_mlp *)module;
    free(mlp->layers);
    free(mlp->norms);
    free(mlp->h);
    free(mlp->z);
    free(mlp->stats);
    free(mlp);
}

static const struct grt_module_fns mlp_fns = {"mlp", declare, forward, backward, destroy, onnx};

const struct grt_mlp_desc *grt_mlp_desc_of(const struct grt_module *module) {
    return module->fns == &mlp_fns ? &((const struct grt_mlp *)module)->desc : NULL;
}

static const char *mistake(const struct grt_mlp_desc *d) {
    if (!d) {
        return "no desc";
    }
    if (d->depth > 0 && d->hidden == 0 && d->widths[0] == 0) {
        return "hidden must be at least 1";
    }
    for (uint32_t i = 0; d->widths[0] > 0 && i < d->depth; i++) {
        if (d->depth > GRT_MLP_WIDTHS || d->widths[i] == 0 || d->residual) {
            return "a list of widths has one for each hidden layer, at most 32, and no residual";
        }
    }
    if (d->depth == 0 && d->outputs == 0) {
        return "neither hidden layers nor outputs";
    }
    if (d->depth > GRT_MLP_MAX_DEPTH) {
        return "more than 256 hidden layers";
    }
    return (unsigned)d->act < GRT_ACT_COUNT ? NULL : "no such activation";
}

struct grt_module *grt_mlp_create(const struct grt_mlp_desc *desc) {
    const char *why = mistake(desc);
    if (why) {
        grt_fail(GRT_INVALID, "mlp: %s", why);
        return NULL;
    }
    struct grt_mlp *mlp = calloc(1, sizeof *mlp);
    if (mlp) {
        uint32_t places = desc->depth + 1;
        mlp->base.fns = &mlp_fns;
        mlp->desc = *desc;
        mlp->base.f32_output = desc->outputs > 0;
        mlp->base.adds_dx = mlp->base.wide_rows = true;
        mlp->layer_count = desc->depth + (desc->outputs > 0);
        mlp->layers = calloc(places, sizeof *mlp->layers);
        mlp->norms = calloc(2 * (size_t)places, sizeof(struct grt_param *));
        mlp->h = calloc(places, sizeof(struct grt_tensor *));
        mlp->z = calloc(places, sizeof(struct grt_tensor *));
        mlp->stats = calloc(places, sizeof(struct grt_tensor *));
    }
    if (!mlp || !mlp->layers || !mlp->norms || !mlp->h || !mlp->z || !mlp->stats) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        if (mlp) {
            destroy(&mlp->base);
        }
        return NULL;
    }
    return &mlp->base;
}

struct grt_module *grt_mlp_make(const void *desc) {
    return grt_mlp_create(desc);
}
