// SPDX-License-Identifier: Apache-2.0
// Dropout: in training each number is 0 with probability p, else divided by 1 - p; in evaluation it
// stays.
#include <stdlib.h>

#include "base/log.h"
#include "gpurt/ops.h"
#include "nn/layer_ops.h"

struct dropout {
    struct grt_module base;
    float p;
    uint32_t stream;
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    (void)prefix;
    ((struct dropout *)module)->stream = net->streams++;
    module->operations = (double)grt_shape_count(in);
    return *in;
}

static void apply(const struct grt_module *module, const struct grt_pass *pass,
                  const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct dropout *d = (const struct dropout *)module;
    if (!pass->training || d->p == 0.0f) {
        grt_op_copy(pass->graph, y, x);
        return;
    }
    grt_op_dropout(pass->graph, &(struct grt_dropout){.x = x,
                                                      .y = y,
                                                      .state = pass->state,
                                                      .seed = module->net->seed,
                                                      .stream = d->stream,
                                                      .micro = pass->micro,
                                                      .p = d->p});
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    apply(module, pass, x, y);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)x;
    (void)add_dx;
    if (dx) {
        apply(module, pass, dy, dx);
    }
}

// In evaluation nothing is dropped.
static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    (void)module;
    (void)to;
    return x;
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns dropout_fns = {"dropout", declare, forward,
                                                  backward,  destroy, onnx};

struct grt_module *grt_dropout_create(double p) {
    if (!(p >= 0 && p < 1)) {
        grt_fail(GRT_INVALID, "dropout: the probability must be from 0 to below 1, not %g", p);
        return NULL;
    }
    struct dropout *d = calloc(1, sizeof *d);
    if (!d) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    d->base.fns = &dropout_fns;
    d->p = (float)p;
    return &d->base;
}
