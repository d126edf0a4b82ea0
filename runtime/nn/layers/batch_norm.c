// SPDX-License-Identifier: Apache-2.0
// y = (x - mean) / sqrt(variance + 1e-5) weight + bias of each feature, as PyTorch's BatchNorm:
// mean and variance are the batch's in training, and those kept since in evaluation.
//
// Passes over the activations, in reading and writing. Norm and relu: forward 3 (x for the
// statistics; x, y) and backward 5 (x, dy for the sums; x, dy, dx) where the activation is the
// norm's own, else 5 and 8. Norm, shortcut and relu: forward 4 by grt_batch_norm_adds(), else 8.
#include <stdlib.h>

#include "base/log.h"
#include "batch_norm.h"
#include "nn/image_ops.h"
#include "sequence.h"

struct batch_norm {
    struct grt_module base;
    struct grt_batch_norm_desc desc;
    enum grt_act act;
    struct grt_tensor shortcut;  // of the next forward; no buffer: none
    enum grt_act last_act;       // behind that
    struct grt_param *weight, *bias, *running_mean, *running_var, *batches;
    struct grt_tensor *stats;   // f32 [2][features]
    struct grt_norm_sync sync;  // without a net: the statistics are those of the batch alone
};

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct batch_norm *n = (struct batch_norm *)module;
    uint64_t width = in->dim[in->rank - 1];
    const uint64_t shape[GRT_MAX_RANK] = {width}, one[GRT_MAX_RANK] = {1};
    n->weight = grt_params_add(net->params, prefix, "weight", shape,
                               n->desc.zero ? GRT_INIT_ZEROS : GRT_INIT_ONES, 0.0f);
    n->bias = grt_params_add(net->params, prefix, "bias", shape, GRT_INIT_ZEROS, 0.0f);
    n->running_mean = grt_params_add_buffer(net->params, prefix, "running_mean", shape, 0.0f);
    n->running_var = grt_params_add_buffer(net->params, prefix, "running_var", shape, 1.0f);
    n->batches = grt_params_add_buffer(net->params, prefix, "num_batches_tracked", one, 0.0f);
    n->stats = grt_net_tensor(
        net, grt_tensor_desc(.label = "stats", .group = "acts", .shape = {2, width}));
    if (net->sync_norms && net->together.ranks > 1) {
        uint64_t ranks = net->together.ranks;
        n->sync.net = net;
        n->sync.own = grt_net_tensor(
            net, grt_tensor_desc(.label = "own sums", .group = "acts", .shape = {2, width}));
        n->sync.all = grt_net_tensor(net, grt_tensor_desc(.label = "sums of ranks", .group = "acts",
                                                          .shape = {ranks, 2, width}));
        grt_net_exchanges(net, 2 * width * sizeof(float));
        net->syncs = true;
    }
    grt_net_scratch(net, grt_block_scratch(net->rows * (grt_shape_count(in) / width), width));
    module->operations = 8 * (double)grt_shape_count(in);
    return *in;
}

static struct grt_block block(const struct batch_norm *n, const struct grt_tensor *z) {
    return (struct grt_block){.z = z,
                              .act = n->act,
                              .weight = n->weight,
                              .bias = n->bias,
                              .stats = n->stats,
                              .by_column = true,
                              .scratch = n->base.net->scratch,
                              .sync = n->sync.net ? &n->sync : NULL};
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    struct batch_norm *n = (struct batch_norm *)module;
    struct grt_tensor z = grt_nn_flat(x), h = grt_nn_flat(y), shortcut = {0};
    grt_op_batch_stats(pass->graph,
                       &(struct grt_batch_stats){.x = &z,
                                                 .stats = n->stats,
                                                 .running_mean = n->running_mean,
                                                 .running_var = n->running_var,
                                                 .batches = n->batches,
                                                 .from = !pass->training ? GRT_STATS_RUNNING
                                                         : pass->again   ? GRT_STATS_OF_BATCH
                                                                         : GRT_STATS_KEPT,
                                                 .scratch = n->base.net->scratch,
                                                 .sync = n->sync.net ? &n->sync : NULL});
    struct grt_block b = block(n, &z);
    b.h = &h;
    if (n->shortcut.range.buf) {
        shortcut = grt_nn_flat(&n->shortcut);
        b.x = &shortcut;
        b.act = n->last_act;
        b.act_last = true;
        n->shortcut.range.buf = NULL;
    }
    grt_op_block(pass->graph, &b);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)add_dx;
    const struct batch_norm *n = (struct batch_norm *)module;
    struct grt_block b = block(n, x);
    grt_nn_block_backward(pass, &b, x, dy, dx);
}

// The activation behind it records itself.
static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct batch_norm *n = (const struct batch_norm *)module;
    x = grt_onnx_planes(to, x);
    x.name = grt_onnx_add(
        to,
        grt_onnx_node(.op = "BatchNormalization",
                      .inputs = {x.name, grt_onnx_param(to, n->weight), grt_onnx_param(to, n->bias),
                                 grt_onnx_param(to, n->running_mean),
                                 grt_onnx_param(to, n->running_var)},
                      .attributes = {{.name = "epsilon", .type = GRT_ONNX_REAL, .real = 1e-5f}}));
    return x;
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns batch_norm_fns = {"batch_norm", declare, forward,
                                                     backward,     destroy, onnx};

static struct batch_norm *norm_of(struct grt_module *module) {
    return module && module->fns == &batch_norm_fns ? (struct batch_norm *)module : NULL;
}

bool grt_batch_norm_takes(struct grt_module *module, enum grt_act act) {
    struct batch_norm *n = norm_of(module);
    if (!n || n->act != GRT_ACT_NONE) {
        return false;
    }
    n->act = act;
    return true;
}

struct grt_module *grt_batch_norm_last(struct grt_module *module) {
    const struct grt_sequence *s = module ? grt_sequence_of(module) : NULL;
    while (s) {
        module = s->parts[s->count - 1];
        s = grt_sequence_of(module);
    }
    const struct batch_norm *n = norm_of(module);
    return n && n->act == GRT_ACT_NONE ? module : NULL;
}

void grt_batch_norm_adds(struct grt_module *norm, const struct grt_tensor *shortcut,
                         enum grt_act act) {
    struct batch_norm *n = (struct batch_norm *)norm;
    n->shortcut = *shortcut;
    n->last_act = act;
}

struct grt_module *grt_batch_norm_create(const struct grt_batch_norm_desc *desc) {
    struct batch_norm *n = calloc(1, sizeof *n);
    if (!n) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    n->base.fns = &batch_norm_fns;
    n->base.dx_on_dy = n->base.forgets_y = true;
    n->desc = desc ? *desc : (struct grt_batch_norm_desc){0};
    return &n->base;
}
