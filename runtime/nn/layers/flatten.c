// SPDX-License-Identifier: Apache-2.0
// The numbers of a sample as one axis.
#include <stdlib.h>

#include "base/log.h"
#include "gpurt/module.h"
#include "gpurt/ops.h"

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    (void)module;
    (void)net;
    (void)prefix;
    return (struct grt_shape){1, {grt_shape_count(in)}};
}

static void copy(const struct grt_pass *pass, const struct grt_tensor *from,
                 const struct grt_tensor *to) {
    if (from->range.buf != to->range.buf || from->range.offset != to->range.offset) {
        grt_graph_copy(pass->graph, to->range, from->range);
    }
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    (void)module;
    copy(pass, x, y);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)module;
    (void)x;
    (void)add_dx;
    if (dx) {
        copy(pass, dy, dx);
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    (void)module;
    return grt_onnx_flat(to, x);
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns flatten_fns = {"flatten", declare, forward,
                                                  backward,  destroy, onnx};

struct grt_module *grt_flatten_create(void) {
    struct grt_module *flatten = calloc(1, sizeof *flatten);
    if (!flatten) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    flatten->fns = &flatten_fns;
    flatten->is_view = flatten->forgets_x = flatten->forgets_y = true;
    return flatten;
}
