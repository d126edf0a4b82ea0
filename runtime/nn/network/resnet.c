// SPDX-License-Identifier: Apache-2.0
// Networks by name: lists of convolutions, norms, pools and residuals, whose parts have the names
// that the parameters have elsewhere. The list is made when the shape of the images is known.
//
//     resnet        conv1 bn1 relu (maxpool) layer1.0 layer1.1 .. layer4.1 avgpool fc
//                   layer2.0: relu(conv1 bn1 relu conv2 bn2 (relu conv3 bn3) + downsample)
//     wideresnet    conv1 block1.layer.0 .. block3.layer.1 bn1 relu avgpool fc
//                   block1.layer.1: bn1 relu conv1 bn2 relu (dropout) conv2 + x
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/module.h"

#define MOST_PARTS 192
#define MOST_DEPTH 304  // of a wideresnet: 150 blocks
#define SMALL_SIDE 64   // of images that the small stem is chosen for

struct named {
    struct grt_module base;
    struct grt_resnet_desc resnet;
    struct grt_wideresnet_desc wide;
    struct grt_module *inner;
};

// Modules that become a sequence; a missing one, for want of memory, makes all of it fail.
struct parts {
    struct grt_module *list[MOST_PARTS];
    uint32_t count;
    const char *where;
};

static void add(struct parts *p, const char *name, struct grt_module *module) {
    if (module) {
        snprintf(module->name, sizeof module->name, "%s", name);
        snprintf(module->where, sizeof module->where, "%s", p->where);
    }
    p->list[p->count++] = module;
}

static void add_conv(struct parts *p, const char *name, uint32_t outputs, uint32_t size,
                     uint32_t stride) {
    add(p, name,
        grt_conv_create(grt_conv_desc(.outputs = outputs, .size = size, .stride = stride,
                                      .padding = (size - 1) / 2, .no_bias = true,
                                      .kaiming = true)));
}

static void add_norm(struct parts *p, const char *name, bool zero) {
    add(p, name, grt_batch_norm_create(grt_batch_norm_desc(.zero = zero)));
}

static void add_relu(struct parts *p) {
    add(p, "relu", grt_activation_create(GRT_ACT_RELU));
}

// The parts one behind the other, under their names alone.
static struct grt_module *joined(struct parts *p) {
    struct grt_module *made = grt_sequence_create(p->list, p->count);
    if (made) {
        made->nameless = true;
    }
    return made;
}

static void add_residual(struct parts *to, const char *name, struct parts *body,
                         struct grt_module *shortcut, bool missing, enum grt_act act) {
    struct grt_module *inner = joined(body);
    if (!inner || missing) {
        grt_module_destroy(&inner);
        grt_module_destroy(&shortcut);
        add(to, name, NULL);
        return;
    }
    add(to, name, grt_residual_create(inner, shortcut, act));
}

// The mean over the pixels, and a linear layer where there are outputs.
static void add_head(struct parts *p, uint32_t outputs) {
    add(p, "avgpool", grt_pool_create(GRT_POOL_MEAN));
    if (outputs > 0) {
        add(p, "fc", grt_linear_create(grt_linear_desc(.outputs = outputs)));
    }
}

// ---- resnet ----

static const struct {
    uint32_t depth;
    bool bottleneck;  // 1x1, 3x3, 1x1 to four times as many channels; else 3x3, 3x3
    uint32_t blocks[4];
} resnets[] = {
    {18, false, {2, 2, 2, 2}},  {34, false, {3, 4, 6, 3}},  {50, true, {3, 4, 6, 3}},
    {101, true, {3, 4, 23, 3}}, {152, true, {3, 8, 36, 3}},
};

static void add_block(struct parts *to, const char *name, uint32_t channels, uint32_t stride,
                      bool bottleneck, bool shortcut, bool zero) {
    struct parts body = {.where = to->where}, other = {.where = to->where};
    uint32_t outputs = bottleneck ? 4 * channels : channels;
    add_conv(&body, "conv1", channels, bottleneck ? 1 : 3, bottleneck ? 1 : stride);
    add_norm(&body, "bn1", false);
    add_relu(&body);
    add_conv(&body, "conv2", channels, 3, bottleneck ? stride : 1);
    add_norm(&body, "bn2", zero && !bottleneck);
    if (bottleneck) {
        add_relu(&body);
        add_conv(&body, "conv3", outputs, 1, 1);
        add_norm(&body, "bn3", zero);
    }
    struct grt_module *made = NULL;
    if (shortcut) {
        add_conv(&other, "0", outputs, 1, stride);
        add_norm(&other, "1", false);
        made = grt_sequence_create(other.list, other.count);
        if (made) {
            snprintf(made->name, sizeof made->name, "downsample");
        }
    }
    add_residual(to, name, &body, made, shortcut && !made, GRT_ACT_RELU);
}

static struct grt_module *make_resnet(const struct named *n, const struct grt_net *net,
                                      const struct grt_shape *in) {
    struct parts p = {.where = n->base.where};
    size_t kind = 0;
    while (resnets[kind].depth != n->resnet.depth) {
        kind++;
    }
    bool small =
        n->resnet.stem == GRT_STEM_SMALL ||
        (n->resnet.stem == GRT_STEM_AUTO && in->dim[0] <= SMALL_SIDE && in->dim[1] <= SMALL_SIDE);
    // What lies before the pool is four times as large as all behind it. In training its gradients
    // lie over activations; else, as a part of its own, it has the memory of those inside the other
    // parts.
    bool apart = !small && (net->inference || net->recompute);
    struct parts stem = {.where = n->base.where}, *first = apart ? &stem : &p;
    add_conv(first, "conv1", 64, small ? 3 : 7, small ? 1 : 2);
    add_norm(first, "bn1", false);
    add_relu(first);
    if (!small) {
        add(first, "maxpool",
            grt_window_pool_create(
                grt_window_pool_desc(.pool = GRT_POOL_MAX, .size = 3, .stride = 2, .padding = 1)));
    }
    if (apart) {
        add(&p, "", joined(&stem));
    }
    for (uint32_t stage = 0; stage < 4; stage++) {
        for (uint32_t i = 0; i < resnets[kind].blocks[stage]; i++) {
            char name[24];
            bool begins = i == 0, bottleneck = resnets[kind].bottleneck;
            snprintf(name, sizeof name, "layer%u.%u", stage + 1, i);
            add_block(&p, name, 64u << stage, begins && stage > 0 ? 2 : 1, bottleneck,
                      begins && (bottleneck || stage > 0), n->resnet.zero_init);
        }
    }
    add_head(&p, n->resnet.outputs);
    return joined(&p);
}

// ---- wideresnet ----

static void add_wide_convs(struct parts *p, const struct named *n, uint32_t channels,
                           uint32_t stride) {
    add_conv(p, "conv1", channels, 3, stride);
    add_norm(p, "bn2", false);
    add_relu(p);
    if (n->wide.dropout > 0) {
        add(p, "dropout", grt_dropout_create(n->wide.dropout));
    }
    add_conv(p, "conv2", channels, 3, 1);
}

// Where the channels change, the shortcut too takes what the first norm gives.
static void add_wide_block(struct parts *to, const char *name, const struct named *n,
                           uint32_t channels, uint32_t stride, bool changes) {
    struct parts body = {.where = to->where}, all = {.where = to->where},
                 other = {.where = to->where};
    struct parts *first = changes ? &all : &body;
    add_norm(first, "bn1", false);
    add_relu(first);
    add_wide_convs(&body, n, channels, stride);
    if (!changes) {
        add_residual(to, name, &body, NULL, false, GRT_ACT_NONE);
        return;
    }
    add_conv(&other, "convShortcut", channels, 1, stride);
    add_residual(&all, "", &body, other.list[0], !other.list[0], GRT_ACT_NONE);
    struct grt_module *sum = all.list[all.count - 1];
    if (sum) {
        sum->nameless = true;
    }
    add(to, name, grt_sequence_create(all.list, all.count));
}

static struct grt_module *make_wide(const struct named *n, const struct grt_shape *in) {
    struct parts p = {.where = n->base.where};
    (void)in;
    add_conv(&p, "conv1", 16, 3, 1);
    for (uint32_t stage = 0; stage < 3; stage++) {
        for (uint32_t i = 0; i < (n->wide.depth - 4) / 6; i++) {
            char name[24];
            snprintf(name, sizeof name, "block%u.layer.%u", stage + 1, i);
            add_wide_block(&p, name, n, (16u << stage) * n->wide.width, i == 0 && stage > 0 ? 2 : 1,
                           i == 0 && (stage > 0 || n->wide.width > 1));
        }
    }
    add_norm(&p, "bn1", false);
    add_relu(&p);
    add_head(&p, n->wide.outputs);
    return joined(&p);
}

// ---- the module ----

// The list has no row of its own in the net's layers: the module's row is it.
static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct named *n = (struct named *)module;
    char text[GRT_SHAPE_TEXT];
    if (in->rank != 3) {
        return grt_module_refuse(module, "takes images of [height][width][channels], not %s",
                                 grt_shape_text(in, text));
    }
    n->inner = n->resnet.depth > 0 ? make_resnet(n, net, in) : make_wide(n, in);
    if (!n->inner) {
        return (struct grt_shape){0};
    }
    n->inner->net = net;
    n->inner->in = *in;
    n->inner->out = n->inner->fns->declare(n->inner, net, prefix, in);
    return n->inner->out;
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    grt_module_forward(((struct named *)module)->inner, pass, x, y);
}

static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    grt_module_backward(((struct named *)module)->inner, pass, x, dy, dx, add_dx);
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    return grt_module_onnx(((const struct named *)module)->inner, to, x);
}

static void destroy(struct grt_module *module) {
    struct named *n = (struct named *)module;
    grt_module_destroy(&n->inner);
    free(n);
}

static const struct grt_module_fns resnet_fns = {"resnet", declare, forward,
                                                 backward, destroy, onnx};
static const struct grt_module_fns wide_fns = {"wideresnet", declare, forward,
                                               backward,     destroy, onnx};

static struct grt_module *create(const struct grt_module_fns *fns, const struct named *of) {
    struct named *n = calloc(1, sizeof *n);
    if (!n) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    *n = *of;
    n->base.fns = fns;
    n->base.has_parts = n->base.adds_dx = true;
    n->base.f32_output = of->resnet.outputs > 0 || of->wide.outputs > 0;
    return &n->base;
}

struct grt_module *grt_resnet_create(const struct grt_resnet_desc *desc) {
    bool known = false;
    for (size_t i = 0; desc && i < sizeof resnets / sizeof *resnets; i++) {
        known = known || resnets[i].depth == desc->depth;
    }
    if (!known || (unsigned)desc->stem >= GRT_STEM_COUNT) {
        grt_fail(GRT_INVALID, "resnet: %s",
                 !desc   ? "no desc"
                 : known ? "no such stem"
                         : "depth is 18, 34, 50, 101 or 152");
        return NULL;
    }
    return create(&resnet_fns, &(struct named){.resnet = *desc});
}

struct grt_module *grt_wideresnet_create(const struct grt_wideresnet_desc *desc) {
    struct grt_wideresnet_desc d = desc ? *desc : (struct grt_wideresnet_desc){0};
    d.depth = d.depth > 0 ? d.depth : 28;
    d.width = d.width > 0 ? d.width : 10;
    const char *why = !desc                                ? "no desc"
                      : d.depth < 10 || d.depth % 6 != 4   ? "depth is 10, 16, 22, 28, ..."
                      : d.depth > MOST_DEPTH               ? "depth is at most 304"
                      : d.width > 1024                     ? "width is at most 1024"
                      : !(d.dropout >= 0 && d.dropout < 1) ? "dropout is from 0 to below 1"
                                                           : NULL;
    if (why) {
        grt_fail(GRT_INVALID, "wideresnet: %s", why);
        return NULL;
    }
    return create(&wide_fns, &(struct named){.wide = d});
}
