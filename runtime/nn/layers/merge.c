// SPDX-License-Identifier: Apache-2.0
// Modules side by side whose outputs are added: residual and branches.
//
//     x --part 0--> z0 --+
//       --part 1--> z1 --+--> sum --act--> y           a part that is NULL gives x itself
//
// Backward takes the sum's gradient through every part; the parts' gradients of x are added in
// their order.
//
// Two parts and relu, or no activation, are one pass over memory, z0 + z1 to y; and z0 is nowhere
// where part 0 ends with a batch norm, which then gives y. Relu's slope is as well known from y as
// from the sum, so that backward reads y. z1 is in y until the norm gives it only where part 1 ends
// with a batch norm too, whose backward does not read what it gave: another merge's would.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "batch_norm.h"
#include "gpurt/ops.h"
#include "nn/layer_ops.h"
#include "nn/onnx_ops.h"

struct merge {
    struct grt_module base;
    struct grt_module **parts;
    const char *const *names;  // of the parts; NULL: their numbers
    uint32_t count;
    enum grt_act act;
    struct grt_tensor **z;     // what each part gives; NULL: in y
    bool at_once;              // no sum is kept
    struct grt_module *norm;   // the batch norm at the end of part 0 that gives y, or NULL
    struct grt_tensor y;       // at_once: of the newest forward
    struct grt_tensor *sum;    // before the activation
    struct grt_tensor *d_sum;  // and its gradient; NULL: written over y's
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct merge *m = (struct merge *)module;
    struct grt_shape first = {0};
    for (uint32_t i = 0; i < m->count; i++) {
        char name[GRT_PARAM_NAME], one[GRT_SHAPE_TEXT], other[GRT_SHAPE_TEXT];
        char number[12];
        snprintf(number, sizeof number, "%u", i);
        grt_module_prefix(m->parts[i], prefix, m->names ? m->names[i] : number, name);
        struct grt_shape out = m->parts[i] ? grt_module_declare(m->parts[i], net, name, in) : *in;
        if (out.rank == 0) {
            return out;
        }
        if (i == 0) {
            first = out;
        } else if (!grt_shape_equal(&first, &out)) {
            return grt_module_refuse(
                module, "%s gives %s, %s %s", m->names ? m->names[0] : "the first branch",
                grt_shape_text(&first, one),
                m->parts[i] ? (m->names ? m->names[i] : "another") : "the input has",
                grt_shape_text(&out, other));
        }
        if (m->parts[i]) {
            m->norm = m->at_once && i == 0 ? grt_batch_norm_last(m->parts[0]) : m->norm;
            bool in_y = m->norm && (i == 0 || grt_batch_norm_last(m->parts[i]));
            m->z[i] = in_y ? NULL : grt_net_activation(net, name, "z", &out);
            if (i > 0) {
                grt_module_meets(m->parts[i], name);
            }
        }
    }
    m->sum = m->at_once ? NULL : grt_net_activation(net, prefix, "sum", &first);
    if (!net->inference && m->act != GRT_ACT_NONE && !module->owns_dy) {
        m->d_sum = grt_net_turn(net, prefix, "dsum", &first);
    }
    module->operations = (double)(grt_shape_count(&first) * m->count);
    return first;
}

static void forward_at_once(struct merge *m, const struct grt_pass *pass,
                            const struct grt_tensor *x, const struct grt_tensor *y) {
    struct grt_tensor z[2] = {*x, *x};
    // The norm at the end of part 0 wants the other part first.
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t i = m->norm ? 1 - k : k;
        bool last = m->norm && i == 0;
        if (last) {
            grt_batch_norm_adds(m->norm, &z[1], m->act);
        }
        if (m->parts[i]) {
            z[i] = m->z[i] ? grt_nn_rows(m->z[i], x->shape[0]) : *y;
            grt_module_forward(m->parts[i], pass, x, &z[i]);
        }
    }
    if (!m->norm) {
        struct grt_tensor a = grt_nn_flat(&z[0]), b = grt_nn_flat(&z[1]), h = grt_nn_flat(y);
        grt_op_block(pass->graph, &(struct grt_block){
                                      .z = &a, .x = &b, .h = &h, .act = m->act, .act_last = true});
    }
    m->y = *y;
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct merge *m = (struct merge *)module;
    uint64_t rows = x->shape[0];
    if (m->at_once) {
        forward_at_once(m, pass, x, y);
        return;
    }
    struct grt_tensor sum = m->act == GRT_ACT_NONE ? *y : grt_nn_rows(m->sum, rows), so_far = *x;
    for (uint32_t i = 0; i < m->count; i++) {
        struct grt_tensor z = m->parts[i] ? grt_nn_rows(m->z[i], rows) : *x;
        if (m->parts[i]) {
            grt_module_forward(m->parts[i], pass, x, &z);
        }
        if (i == 0) {
            so_far = z;
        } else {
            // Only the last sum goes to its place: y may be wider than the net's type elsewhere.
            struct grt_tensor to = i + 1 == m->count ? sum : grt_nn_rows(m->sum, rows);
            grt_nn_add(pass->graph, &to, &so_far, &z);
            so_far = to;
        }
    }
    if (m->act != GRT_ACT_NONE) {
        struct grt_tensor flat = grt_nn_flat(&sum), out = grt_nn_flat(y);
        grt_op_block(pass->graph, &(struct grt_block){.z = &flat, .h = &out, .act = m->act});
    }
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    struct merge *m = (struct merge *)module;
    uint64_t rows = x->shape[0];
    struct grt_tensor d = *dy;
    if (m->act != GRT_ACT_NONE) {
        d = m->d_sum ? grt_nn_rows(m->d_sum, rows) : *dy;
        struct grt_tensor sum = m->at_once ? m->y : grt_nn_rows(m->sum, rows);
        struct grt_tensor z = grt_nn_flat(&sum), dh = grt_nn_flat(dy), dz = grt_nn_flat(&d);
        grt_op_block_backward(pass->graph,
                              &(struct grt_block){.z = &z, .act = m->act, .dh = &dh, .dz = &dz});
    }
    for (uint32_t i = 0; i < m->count; i++) {
        bool add = add_dx || i > 0;
        if (m->parts[i]) {
            grt_module_backward(m->parts[i], pass, x, &d, dx, add);
        } else if (dx && add) {
            grt_nn_add(pass->graph, dx, dx, &d);
        } else if (dx) {
            grt_op_copy(pass->graph, dx, &d);
        }
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct merge *m = (const struct merge *)module;
    struct grt_onnx_value sum = x;
    for (uint32_t i = 0; i < m->count; i++) {
        struct grt_onnx_value z = m->parts[i] ? grt_module_onnx(m->parts[i], to, x) : x;
        sum = i == 0 ? z : grt_nn_onnx_sum(to, sum, z);
    }
    return grt_nn_onnx_act(to, m->act, sum);
}

static void destroy(struct grt_module *module) {
    struct merge *m = (struct merge *)module;
    for (uint32_t i = 0; i < m->count; i++) {
        grt_module_destroy(&m->parts[i]);
    }
    free(m->parts);
    free(m->z);
    free(m);
}

static const struct grt_module_fns residual_fns = {"residual", declare, forward,
                                                   backward,   destroy, onnx};
static const struct grt_module_fns branches_fns = {"branches", declare, forward,
                                                   backward,   destroy, onnx};

static struct grt_module *create(const struct grt_module_fns *fns, const char *const *names,
                                 struct grt_module **parts, uint32_t count, enum grt_act act) {
    struct merge *m = calloc(1, sizeof *m);
    if (m) {
        m->base.fns = fns;
        m->parts = calloc(count, sizeof(struct grt_module *));
        m->z = calloc(count, sizeof(struct grt_tensor *));
    }
    if (!m || !m->parts || !m->z) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        for (uint32_t i = 0; i < count; i++) {
            grt_module_destroy(&parts[i]);
        }
        if (m) {
            destroy(&m->base);
        }
        return NULL;
    }
    memcpy(m->parts, parts, count * sizeof(struct grt_module *));
    m->names = names;
    m->count = count;
    m->act = act;
    m->at_once = count == 2 && (act == GRT_ACT_NONE || act == GRT_ACT_RELU);
    m->base.has_parts = true;
    m->base.adds_dx = !parts[0] || parts[0]->adds_dx;
    return &m->base;
}

struct grt_module *grt_residual_create(struct grt_module *body, struct grt_module *shortcut,
                                       enum grt_act act) {
    static const char *const names[] = {"body", "shortcut"};
    struct grt_module *parts[2] = {body, shortcut};
    if (!body || (unsigned)act >= GRT_ACT_COUNT) {
        grt_fail(GRT_INVALID, "residual: %s", body ? "no such activation" : "no body");
        grt_module_destroy(&parts[0]);
        grt_module_destroy(&parts[1]);
        return NULL;
    }
    return create(&residual_fns, names, parts, 2, act);
}

struct grt_module *grt_branches_create(struct grt_module **parts, uint32_t count) {
    bool whole = parts && count > 1;
    for (uint32_t i = 0; whole && i < count; i++) {
        whole = parts[i] != NULL;
    }
    if (!whole) {
        grt_fail(GRT_INVALID, "branches: fewer than two parts, or one is missing");
        for (uint32_t i = 0; parts && i < count; i++) {
            grt_module_destroy(&parts[i]);
        }
        return NULL;
    }
    return create(&branches_fns, NULL, parts, count, GRT_ACT_NONE);
}
