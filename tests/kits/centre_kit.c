// SPDX-License-Identifier: Apache-2.0
#include "centre_kit.h"

#include <stdlib.h>

#include "gpurt/ops.h"

struct centre {
    struct grt_module base;
    struct grt_param *running;
    struct grt_tensor *mean;
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct centre *c = (struct centre *)module;
    const uint64_t shape[GRT_MAX_RANK] = {in->dim[0]};
    const struct grt_tensor x = {.rank = 2, .shape = {net->rows, in->dim[0]}};
    c->running = grt_params_add_buffer(net->params, prefix, "running_mean", shape, 0.25f);
    c->mean = grt_net_tensor(
        net, grt_tensor_desc(.label = "mean", .group = "acts", .shape = {in->dim[0]}));
    grt_net_scratch(net, grt_op_colsum_scratch(net->dev, grt_colsum_desc(.x = &x)));
    return *in;
}

static struct grt_tensor row(const struct grt_tensor *t, uint64_t i) {
    struct grt_tensor r = {.rank = 1, .shape = {t->shape[1]}};
    uint64_t bytes = t->shape[1] * 4;
    r.range = (struct grt_range){t->range.buf, t->range.offset + i * bytes, bytes};
    return r;
}

static void less(const struct grt_pass *pass, const struct grt_tensor *x,
                 const struct grt_tensor *mean, const struct grt_tensor *y) {
    for (uint64_t i = 0; i < x->shape[0]; i++) {
        struct grt_tensor from = row(x, i), to = row(y, i);
        grt_op_map(pass->graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &to, .a = &from, .b = mean,
                                             .alpha = 1.0f, .beta = -1.0f));
    }
}

static void take_mean(const struct centre *c, const struct grt_pass *pass,
                      const struct grt_tensor *x) {
    const struct grt_tensor *scratch = c->base.net->scratch;
    grt_op_colsum(pass->graph,
                  grt_colsum_desc(.y = c->mean, .x = x,
                                  .scratch = scratch ? scratch->range : (struct grt_range){0}));
    grt_op_map(pass->graph, grt_map_desc(.map = GRT_MAP_SCALE, .y = c->mean, .a = c->mean,
                                         .alpha = 1.0f / (float)x->shape[0]));
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct centre *c = (struct centre *)module;
    if (pass->training) {
        take_mean(c, pass, x);
    }
    if (pass->training && !pass->again) {
        grt_op_map(pass->graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &c->running->master,
                                             .a = &c->running->master, .b = c->mean,
                                             .alpha = 1.0f - CENTRE_SHARE, .beta = CENTRE_SHARE));
    }
    less(pass, x, pass->training ? c->mean : &c->running->master, y);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    const struct centre *c = (struct centre *)module;
    (void)x;
    assert_false(add_dx);
    if (dx) {
        take_mean(c, pass, dy);
        less(pass, dy, c->mean, dx);
    }
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns centre_fns = {"centre", declare, forward, backward, destroy};

struct grt_module *centre_make(const void *of) {
    const struct centre_shape *shape = of;
    struct centre *c = calloc(1, sizeof *c);
    c->base.fns = &centre_fns;
    struct grt_module *parts[] = {grt_linear_create(grt_linear_desc(.outputs = CENTRE_WIDTH)),
                                  &c->base,
                                  grt_linear_create(grt_linear_desc(.outputs = shape->outputs))};
    if (!shape->first) {
        grt_module_destroy(&parts[0]);
    }
    if (shape->more) {
        struct grt_module *list[7] = {parts[0], parts[1]};
        for (uint32_t i = 2; i < 6; i++) {
            list[i] = i % 2 == 1 ? grt_activation_create(GRT_ACT_TANH)
                                 : grt_linear_create(grt_linear_desc(.outputs = CENTRE_WIDTH));
        }
        list[6] = parts[2];
        return grt_sequence_create(list, 7);
    }
    return grt_sequence_create(parts + !shape->first, shape->first ? 3 : 2);
}

struct grt_learner_desc centre_learner(const struct centre_shape *shape) {
    return (struct grt_learner_desc){.make = centre_make,
                                     .of = shape,
                                     .input = {1, {CENTRE_WIDTH}},
                                     .optim = grt_optim_defaults(GRT_OPTIM_ADAMW),
                                     .batch = NETWORK_SAMPLES,
                                     .accumulate = 2};
}
