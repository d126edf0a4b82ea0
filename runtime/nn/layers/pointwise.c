// SPDX-License-Identifier: Apache-2.0
// Layer norm, and activations by themselves.
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "nn/layer_ops.h"
#include "nn/onnx_ops.h"
#include "pointwise.h"

struct pointwise {
    struct grt_module base;
    enum grt_act act;
    bool norm;
    struct grt_param *weight, *bias;
    struct grt_tensor *stats;  // f32 [rows][2]
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct pointwise *p = (struct pointwise *)module;
    uint64_t width = in->dim[in->rank - 1], rows = net->rows * (grt_shape_count(in) / width);
    if (p->norm) {
        const uint64_t shape[GRT_MAX_RANK] = {width};
        p->weight = grt_params_add(net->params, prefix, "weight", shape, GRT_INIT_ONES, 0.0f);
        p->bias = grt_params_add(net->params, prefix, "bias", shape, GRT_INIT_ZEROS, 0.0f);
        p->stats = grt_net_tensor(
            net, grt_tensor_desc(.label = "stats", .group = "acts", .shape = {rows, 2}));
        grt_net_scratch(net, grt_block_scratch(rows, width));
    }
    module->operations = (double)grt_shape_count(in) * (p->norm ? 8 : 1);
    return *in;
}

static struct grt_block block(const struct pointwise *p, const struct grt_tensor *z,
                              const struct grt_tensor *stats) {
    return (struct grt_block){.z = z,
                              .act = p->act,
                              .weight = p->weight,
                              .bias = p->bias,
                              .stats = stats,
                              .scratch = p->base.net->scratch};
}

static struct grt_tensor stats_of(const struct pointwise *p, const struct grt_tensor *z) {
    return p->stats ? grt_nn_rows(p->stats, z->shape[0]) : (struct grt_tensor){0};
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct pointwise *p = (struct pointwise *)module;
    if (module->is_view) {  // the norm before it has done it
        return;
    }
    struct grt_tensor z = grt_nn_flat(x), h = grt_nn_flat(y), stats = stats_of(p, &z);
    struct grt_block b = block(p, &z, &stats);
    b.h = &h;
    grt_op_block(pass->graph, &b);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)add_dx;
    const struct pointwise *p = (struct pointwise *)module;
    struct grt_tensor z = grt_nn_flat(x), stats = stats_of(p, &z);
    if (module->is_view || (!dx && !p->norm)) {
        return;
    }
    struct grt_block b = block(p, &z, &stats);
    grt_nn_block_backward(pass, &b, x, dy, dx);
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct pointwise *p = (const struct pointwise *)module;
    if (p->norm) {
        x = grt_nn_onnx_layer_norm(to, p->weight, p->bias, x);
    }
    return grt_nn_onnx_act(to, p->act, x);
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns norm_fns = {"layer_norm", declare, forward,
                                               backward,     destroy, onnx};
static const struct grt_module_fns act_fns[GRT_ACT_COUNT] = {
#define X(name, text) {text, declare, forward, backward, destroy, onnx},
    GRT_ACTS(X)
#undef X
};

bool grt_activation_of(const struct grt_module *module, enum grt_act *act) {
    bool is = module->fns >= act_fns && module->fns < act_fns + GRT_ACT_COUNT;
    *act = is ? ((const struct pointwise *)module)->act : GRT_ACT_NONE;
    return is;
}

static struct grt_module *create(const struct grt_module_fns *fns, bool norm, enum grt_act act) {
    struct pointwise *p = calloc(1, sizeof *p);
    if (!p) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    p->base.fns = fns;
    p->norm = norm;
    p->act = act;
    return &p->base;
}

struct grt_module *grt_layer_norm_create(void) {
    return create(&norm_fns, true, GRT_ACT_NONE);
}

struct grt_module *grt_activation_create(enum grt_act act) {
    if ((unsigned)act >= GRT_ACT_COUNT) {
        grt_fail(GRT_INVALID, "activation: no such one");
        return NULL;
    }
    return create(&act_fns[act], false, act);
}
