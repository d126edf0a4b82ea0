// SPDX-License-Identifier: Apache-2.0
// The mean or the largest over the points of a sample, or over the pixels of an image.
#include <stdlib.h>

#include "base/log.h"
#include "nn/layer_ops.h"
#include "nn/onnx_ops.h"

struct pool {
    struct grt_module base;
    enum grt_pool pool;
    uint64_t points;
    struct grt_tensor *which;  // u32 like y: where the largest was
};

const char *grt_pool_text(enum grt_pool pool) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_POOLS(X)
#undef X
    };
    return (unsigned)pool < GRT_POOL_COUNT ? texts[pool] : "unknown pooling";
}

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    (void)prefix;
    struct pool *p = (struct pool *)module;
    char text[GRT_SHAPE_TEXT];
    uint64_t features = in->dim[in->rank - 1];
    if (in->rank < 2) {
        return grt_module_refuse(module, "takes samples of [points][features], not %s",
                                 grt_shape_text(in, text));
    }
    if (p->pool == GRT_POOL_MAX) {
        p->which =
            grt_net_tensor(net, grt_tensor_desc(.label = "which", .group = "acts", .dtype = GRT_U32,
                                                .shape = {net->rows, features}));
    }
    p->points = grt_shape_count(in) / features;
    module->operations = (double)grt_shape_count(in);
    return (struct grt_shape){1, {features}};
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct pool *p = (struct pool *)module;
    struct grt_tensor which = {0};
    if (p->which) {
        which = grt_nn_rows(p->which, y->shape[0]);
    }
    grt_op_pool(pass->graph, &(struct grt_pooling){.x = x,
                                                   .y = y,
                                                   .which = p->which ? &which : NULL,
                                                   .pool = p->pool,
                                                   .points = p->points});
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)x;
    (void)add_dx;
    struct pool *p = (struct pool *)module;
    struct grt_tensor which = {0};
    if (!dx) {
        return;
    }
    if (p->which) {
        which = grt_nn_rows(p->which, dy->shape[0]);
    }
    grt_op_pool_backward(pass->graph, &(struct grt_pooling){.x = dx,
                                                            .y = dy,
                                                            .which = p->which ? &which : NULL,
                                                            .pool = p->pool,
                                                            .points = p->points});
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    return grt_nn_onnx_pool(to, ((const struct pool *)module)->pool, x);
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns pool_fns = {"pool", declare, forward, backward, destroy, onnx};

struct grt_module *grt_pool_create(enum grt_pool pool) {
    struct pool *p = (unsigned)pool < GRT_POOL_COUNT ? calloc(1, sizeof *p) : NULL;
    if (!p) {
        grt_fail((unsigned)pool < GRT_POOL_COUNT ? GRT_NO_MEMORY : GRT_INVALID, "pool: %s",
                 (unsigned)pool < GRT_POOL_COUNT ? "no host memory" : "no such pooling");
        return NULL;
    }
    p->base.fns = &pool_fns;
    p->base.forgets_x = p->base.forgets_y = true;
    p->pool = pool;
    return &p->base;
}
