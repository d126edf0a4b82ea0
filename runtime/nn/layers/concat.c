// SPDX-License-Identifier: Apache-2.0
// Modules side by side whose outputs are put one behind the other, along the last axis.
//
//     x --part 0--> z0 --+
//       --part 1--> z1 --+--> y = [z0, z1]
//
// Backward cuts dy the same way; the parts' gradients of x are added in their order.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nn/layer_ops.h"

struct concat {
    struct grt_module base;
    struct grt_module **parts;
    uint32_t count;
    struct grt_tensor **z, **dz;  // what each part gives, and its gradient
};

// Whether two shapes differ in the last axis at most.
static bool fits(const struct grt_shape *a, const struct grt_shape *b) {
    struct grt_shape same = *b;
    same.dim[same.rank - 1] = a->dim[a->rank - 1];
    return a->rank == b->rank && grt_shape_equal(a, &same);
}

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct concat *c = (struct concat *)module;
    struct grt_shape all = {0};
    for (uint32_t i = 0; i < c->count; i++) {
        char name[GRT_PARAM_NAME], one[GRT_SHAPE_TEXT], other[GRT_SHAPE_TEXT], number[12];
        snprintf(number, sizeof number, "%u", i);
        grt_module_prefix(c->parts[i], prefix, number, name);
        struct grt_shape out = grt_module_declare(c->parts[i], net, name, in);
        if (out.rank == 0) {
            return out;
        }
        if (i > 0 && !fits(&c->parts[0]->out, &out)) {
            return grt_module_refuse(module,
                                     "the first branch gives %s, another %s: only the last "
                                     "axis may differ",
                                     grt_shape_text(&c->parts[0]->out, one),
                                     grt_shape_text(&out, other));
        }
        c->z[i] = grt_net_activation(net, name, "z", &out);
        if (!net->inference) {
            c->dz[i] = grt_net_activation(net, name, "dz", &out);
        }
        if (i > 0) {
            grt_module_meets(c->parts[i], name);
            out.dim[out.rank - 1] += all.dim[all.rank - 1];
        }
        all = out;
    }
    return all;
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct concat *c = (struct concat *)module;
    uint64_t at = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct grt_shape *out = &c->parts[i]->out;
        struct grt_tensor z = grt_nn_rows(c->z[i], x->shape[0]);
        grt_module_forward(c->parts[i], pass, x, &z);
        grt_nn_columns(pass->graph, y, at, &z, 0, out->dim[out->rank - 1]);
        at += out->dim[out->rank - 1];
    }
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    const struct concat *c = (struct concat *)module;
    uint64_t at = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct grt_shape *out = &c->parts[i]->out;
        struct grt_tensor dz = grt_nn_rows(c->dz[i], x->shape[0]);
        grt_nn_columns(pass->graph, &dz, 0, dy, at, out->dim[out->rank - 1]);
        grt_module_backward(c->parts[i], pass, x, &dz, dx, add_dx || i > 0);
        at += out->dim[out->rank - 1];
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct concat *c = (const struct concat *)module;
    struct grt_onnx_value all = {0};
    for (uint32_t i = 0; i < c->count; i++) {
        struct grt_onnx_value z = grt_onnx_rows(to, grt_module_onnx(c->parts[i], to, x));
        if (i > 0) {
            z.name = grt_onnx_add(to, grt_onnx_node(.op = "Concat", .inputs = {all.name, z.name},
                                                    .attributes = {{.name = "axis", .whole = -1}}));
        }
        all = z;
    }
    return all;
}

static void destroy(struct grt_module *module) {
    struct concat *c = (struct concat *)module;
    for (uint32_t i = 0; i < c->count; i++) {
        grt_module_destroy(&c->parts[i]);
    }
    free(c->parts);
    free(c->z);
    free(c->dz);
    free(c);
}

static const struct grt_module_fns concat_fns = {"concat", declare, forward,
                                                 backward, destroy, onnx};

struct grt_module *grt_concat_create(struct grt_module **parts, uint32_t count) {
    bool whole = parts && count > 1;
    for (uint32_t i = 0; whole && i < count; i++) {
        whole = parts[i] != NULL;
    }
    struct concat *c = whole ? calloc(1, sizeof *c) : NULL;
    if (c) {
        c->parts = calloc(count, sizeof(struct grt_module *));
        c->z = calloc(count, sizeof(struct grt_tensor *));
        c->dz = calloc(count, sizeof(struct grt_tensor *));
    }
    if (!c || !c->parts || !c->z || !c->dz) {
        grt_fail(whole ? GRT_NO_MEMORY : GRT_INVALID, "concat: %s",
                 whole ? "no host memory for a module" : "fewer than two parts, or one is missing");
        for (uint32_t i = 0; parts && i < count; i++) {
            grt_module_destroy(&parts[i]);
        }
        if (c) {
            destroy(&c->base);
        }
        return NULL;
    }
    memcpy(c->parts, parts, count * sizeof(struct grt_module *));
    c->count = count;
    c->base.fns = &concat_fns;
    c->base.has_parts = true;
    c->base.adds_dx = parts[0]->adds_dx;
    return &c->base;
}
