// SPDX-License-Identifier: Apache-2.0
// Transforms of images before a network: a list of steps becomes passes over the images, each of
// them one box of an image, a flip, changes of colours and a normalization.
//
//     resize(40) | random_crop(32) | random_horizontal_flip | color_jitter(0.4) | normalize
//     |- pass --||- pass ----------------------------------------------------------------|
//
// In training what is random is drawn anew for each sample and step (shaders/image/image_draw.k,
// image_draw_colour.k); in evaluation nothing is. A pass without colours is one launch over pixels
// (image_take); one with colours has a workgroup for each view (image_view), and a second launch
// for the blur, whose pixels need all of their neighbours (image_blur). It has no parameters, and
// no gradient goes back through it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nn/image_ops.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "transform_parts.h"
#include "shaders/image/lib/mix_params.k"
#include "shaders/image/lib/transform_params.k"

#define MOST_GROUPS 65535  // of a launch: what every device has

struct pass {
    struct transform_params params;  // but for rows and what a step of training has
    struct colour_params colours;    // the same
    struct view_params view;
    float log_shape;           // logarithm of the result's ratio, for evaluations
    int last;                  // rank of its newest step
    bool normal, coloured;     // has a step that changes colours, blurs or erases
    struct grt_tensor *boxes;  // u32 [rows][BOX_WORDS]
    struct grt_tensor *drawn;  // u32 [rows][COLOUR_WORDS], or NULL
    struct grt_tensor *y;      // NULL of the last, but where samples are mixed
};

struct list {
    struct transform_step steps[TRANSFORM_STEPS];
    struct pass passes[TRANSFORM_STEPS];
    uint32_t step_count, pass_count;
    // Behind all passes of training, where the last step mixes samples.
    const struct transform_step *mixes;
    struct mix_draw_params mix;
    struct grt_tensor *mixed_by;  // u32 [MIX_WORDS]
};

struct transform {
    struct grt_module base;
    struct list training, evaluation;  // the second with no steps: as the first
    bool plain;                        // nothing is normalized
};

// ---- passes ----

static struct pass *next_pass(struct list *l, uint64_t height, uint64_t width, uint64_t channels) {
    struct pass *p = &l->passes[l->pass_count++];
    *p = (struct pass){.last = -1,
                       .params = {.height = (uint32_t)height,
                                  .width = (uint32_t)width,
                                  .channels = (uint32_t)channels,
                                  .out_height = (uint32_t)height,
                                  .out_width = (uint32_t)width,
                                  .kind = BOX_WHOLE,
                                  .scale0 = 1,
                                  .scale1 = 1,
                                  .scale2 = 1,
                                  .scale3 = 1}};
    return p;
}

static bool set_box(const struct grt_module *module, struct pass *p,
                    const struct transform_step *s) {
    struct transform_params *m = &p->params;
    uint64_t shorter = m->height < m->width ? m->height : m->width;
    uint32_t h = s->size[0] ? s->size[0] : m->height, w = s->size[1] ? s->size[1] : m->width;
    if (s->shorter > 0) {
        h = (uint32_t)((uint64_t)s->shorter * m->height / shorter);
        w = (uint32_t)((uint64_t)s->shorter * m->width / shorter);
    }
    bool cuts = s->box == BOX_MIDDLE || s->box == BOX_CROP;
    if (cuts && (h > m->height || w > m->width)) {
        return grt_module_refuse(module, "%s: %ux%u is more than the image has, %ux%u", s->name, h,
                                 w, m->height, m->width)
                   .rank > 0;
    }
    if (s->reflect && (s->padding >= m->height || s->padding >= m->width)) {
        return grt_module_refuse(module, "%s: an image of %ux%u cannot be mirrored %u pixels far",
                                 s->name, m->height, m->width, s->padding)
                   .rank > 0;
    }
    m->out_height = h;
    m->out_width = w;
    m->kind = s->box;
    m->padding = s->padding;
    m->reflect = s->reflect;
    m->area_low = (float)s->area[0];
    m->area_high = (float)s->area[1];
    if (s->box == BOX_RESIZED) {
        m->ratio_low = (float)log(s->ratio[0]);
        m->ratio_high = (float)log(s->ratio[1]);
    }
    p->log_shape = (float)log((double)w / h);
    return true;
}

static bool set_colours(const struct grt_module *module, struct pass *p,
                        const struct transform_step *s) {
    struct colour_params *m = &p->colours;
    uint32_t channels = p->params.channels, h = p->params.out_height, w = p->params.out_width;
    if ((s->kind == TRANSFORM_JITTER || s->kind == TRANSFORM_GREY) && channels != 1 &&
        channels != 3) {
        return grt_module_refuse(module, "%s is of images of 1 or 3 channels, not %u", s->name,
                                 channels)
                   .rank > 0;
    }
    if ((s->kind == TRANSFORM_JITTER || s->kind == TRANSFORM_GREY) && p->normal) {
        return grt_module_refuse(module, "%s comes before normalize", s->name).rank > 0;
    }
    if (s->kind == TRANSFORM_BLUR && (s->taps / 2 >= h || s->taps / 2 >= w)) {
        return grt_module_refuse(module, "%s: an image of %ux%u cannot be mirrored %u pixels far",
                                 s->name, h, w, s->taps / 2)
                   .rank > 0;
    }
    p->coloured = true;
    switch (s->kind) {
    case TRANSFORM_JITTER:
        m->jitter = (float)s->p;
        m->operations = s->operations;
        m->brightness_low = (float)s->factors[0][0];
        m->brightness_high = (float)s->factors[0][1];
        m->contrast_low = (float)s->factors[1][0];
        m->contrast_high = (float)s->factors[1][1];
        m->saturation_low = (float)s->factors[2][0];
        m->saturation_high = (float)s->factors[2][1];
        m->hue_low = (float)s->factors[3][0];
        m->hue_high = (float)s->factors[3][1];
        break;
    case TRANSFORM_GREY:
        m->grey = (float)s->p;
        break;
    case TRANSFORM_BLUR:
        p->view.taps = s->taps;
        m->blur = (float)s->p;
        m->sigma_low = (float)s->sigma[0];
        m->sigma_high = (float)s->sigma[1];
        break;
    default:
        m->erase = (float)s->p;
        m->erase_kind = s->erase;
        m->erase_size = s->size[0];
        m->area_low = (float)s->area[0];
        m->area_high = (float)s->area[1];
        if (s->erase == ERASE_AREA) {
            // torchvision's ratio is height over width here
            m->ratio_low = (float)-log(s->ratio[1]);
            m->ratio_high = (float)-log(s->ratio[0]);
        }
        p->view.fill0 = (float)s->fill[0];
        p->view.fill1 = (float)s->fill[1];
        p->view.fill2 = (float)s->fill[2];
        p->view.fill3 = (float)s->fill[3];
    }
    return true;
}

// What was erased before is normalized too.
static void set_normal(struct pass *p, const struct transform_step *s) {
    struct transform_params *m = &p->params;
    float *scales[] = {&m->scale0, &m->scale1, &m->scale2, &m->scale3};
    float *shifts[] = {&m->shift0, &m->shift1, &m->shift2, &m->shift3};
    float *fills[] = {&p->view.fill0, &p->view.fill1, &p->view.fill2, &p->view.fill3};
    for (uint32_t i = 0; i < TRANSFORM_CHANNELS; i++) {
        *scales[i] = (float)s->scale[i];
        *shifts[i] = (float)s->shift[i];
        *fills[i] = (float)((double)*fills[i] * s->scale[i] + s->shift[i]);
    }
    p->normal = true;
}

// Numbers that colours are cut off at: what `normalize` takes for the largest.
static double largest(const struct list *l) {
    for (uint32_t i = 0; i < l->step_count; i++) {
        if (l->steps[i].kind == TRANSFORM_NORMALIZE) {
            return l->steps[i].range;
        }
    }
    return 255;
}

// Steps go into the newest pass as long as they come in its order, which is that of their kinds;
// erasing may stand behind the normalization too.
static bool make_passes(const struct grt_module *module, struct list *l,
                        const struct grt_shape *in) {
    struct pass *p = next_pass(l, in->dim[0], in->dim[1], in->dim[2]);
    bool good = true, normal = false;
    for (uint32_t i = 0; good && i < l->step_count; i++) {
        const struct transform_step *s = &l->steps[i];
        if (s->channels > 0 && s->channels != in->dim[2]) {
            return grt_module_refuse(
                       module,
                       "%s has numbers for %u channels, and images have %llu: give one "
                       "number for all, or one each",
                       s->name, s->channels, (unsigned long long)in->dim[2])
                       .rank > 0;
        }
        if (s->kind == TRANSFORM_MIX) {
            l->mixes = s;
            return i + 1 == l->step_count ||
                   grt_module_refuse(module, "%s comes last, once", s->name).rank > 0;
        }
        int rank = s->kind == TRANSFORM_ERASE && p->normal && p->colours.erase_kind == ERASE_NONE
                       ? TRANSFORM_NORMALIZE + 1
                       : (int)s->kind;
        if (rank <= p->last) {
            p = next_pass(l, p->params.out_height, p->params.out_width, in->dim[2]);
            p->normal = normal;
            rank = (int)s->kind;
        }
        p->last = rank;
        if (s->kind == TRANSFORM_BOX) {
            good = set_box(module, p, s);
        } else if (s->kind == TRANSFORM_FLIP) {
            p->params.flip = (float)s->p;
        } else if (s->kind == TRANSFORM_NORMALIZE) {
            if (!((const struct transform *)module)->plain) {
                set_normal(p, s);
            }
            p->normal = normal = true;
        } else {
            good = set_colours(module, p, s);
        }
    }
    return good;
}

// What a view shares with the box that it is of.
static struct view_params view_of(const struct pass *p, double most) {
    struct view_params view = p->view;
    const struct transform_params *m = &p->params;
    view.height = m->height;
    view.width = m->width;
    view.channels = m->channels;
    view.out_height = m->out_height;
    view.out_width = m->out_width;
    view.reflect = m->reflect;
    view.most = (float)most;
    view.scale0 = m->scale0;
    view.scale1 = m->scale1;
    view.scale2 = m->scale2;
    view.scale3 = m->scale3;
    view.shift0 = m->shift0;
    view.shift1 = m->shift1;
    view.shift2 = m->shift2;
    view.shift3 = m->shift3;
    return view;
}

// ---- the module ----

static struct grt_shape declare_list(struct grt_module *module, struct list *l, struct grt_net *net,
                                     const char *prefix, const struct grt_shape *in) {
    struct grt_shape out = *in;
    if (!make_passes(module, l, in)) {
        return (struct grt_shape){0};
    }
    for (uint32_t i = 0; i < l->pass_count; i++) {
        struct pass *p = &l->passes[i];
        out = (struct grt_shape){3, {p->params.out_height, p->params.out_width, in->dim[2]}};
        p->params.stream = net->streams++;
        p->boxes =
            grt_net_tensor(net, grt_tensor_desc(.label = "boxes", .group = "acts", .dtype = GRT_U32,
                                                .shape = {net->rows, BOX_WORDS}));
        if (p->coloured) {
            p->colours.out_height = p->params.out_height;
            p->colours.out_width = p->params.out_width;
            p->colours.stream = net->streams++;
            p->drawn = grt_net_tensor(net, grt_tensor_desc(.label = "colours", .group = "acts",
                                                           .dtype = GRT_U32,
                                                           .shape = {net->rows, COLOUR_WORDS}));
            p->view = view_of(p, largest(l));
            grt_net_scratch(net, net->inference ? 0 : net->rows * grt_shape_count(&out) * 4);
        }
        p->y =
            i + 1 < l->pass_count || l->mixes ? grt_net_activation(net, prefix, "y", &out) : NULL;
        module->operations +=
            (p->coloured ? 64.0 + 4 * p->view.taps : 16.0) * (double)grt_shape_count(&out);
    }
    if (l->mixes) {
        l->mix = (struct mix_draw_params){.stream = net->streams++,
                                          .height = (uint32_t)out.dim[0],
                                          .width = (uint32_t)out.dim[1],
                                          .cut = l->mixes->cut,
                                          .alpha = (float)l->mixes->alpha};
        l->mixed_by = grt_net_tensor(
            net, grt_tensor_desc(.label = "mix", .group = "acts", .shape = {MIX_WORDS}));
    }
    return out;
}

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct transform *t = (struct transform *)module;
    char text[GRT_SHAPE_TEXT], other[GRT_SHAPE_TEXT];
    if (in->rank != 3 || in->dim[0] > TRANSFORM_SIDE || in->dim[1] > TRANSFORM_SIDE ||
        in->dim[2] > TRANSFORM_SIDE) {
        return grt_module_refuse(module, "takes images of [height][width][channels], not %s",
                                 grt_shape_text(in, text));
    }
    struct grt_shape out = declare_list(module, &t->training, net, prefix, in);
    if (out.rank > 0) {
        net->mix = t->training.mixed_by;
    }
    if (out.rank == 0 || t->evaluation.step_count == 0) {
        return out;
    }
    struct grt_shape evaluated = declare_list(module, &t->evaluation, net, prefix, in);
    if (evaluated.rank > 0 && !grt_shape_equal(&evaluated, &out)) {
        return grt_module_refuse(module,
                                 "gives %s in training, and %s in evaluations by eval_transform",
                                 grt_shape_text(&out, text), grt_shape_text(&evaluated, other));
    }
    return evaluated;
}

static void draw_boxes(const struct grt_pass *pass, const struct transform_params *p,
                       struct grt_range boxes) {
    struct grt_pieces pieces = grt_op_pieces(pass->graph, p->rows, BOX_WORDS * 4);
    grt_op_next(&pieces);
    grt_op_stream(pass->graph, &pieces,
                  grt_kernel_desc(.name = "image_draw", .specs = {{"TRAIN", pass->training}}), p,
                  sizeof *p,
                  (const struct grt_range[]){
                      pass->training ? pass->state : grt_op_unused(pass->graph), boxes},
                  2);
}

static void take(const struct grt_pass *pass, const struct transform_params *p,
                 struct grt_range boxes, const struct grt_tensor *x, const struct grt_tensor *y) {
    char name[GRT_NN_KERNEL];
    struct grt_pieces pieces =
        grt_op_pieces(pass->graph, (uint64_t)p->rows * p->out_height * p->out_width, 4);
    grt_op_next(&pieces);
    grt_op_stream(pass->graph, &pieces,
                  grt_kernel_desc(.name = grt_nn_kernel(name, "image_take", x),
                                  .specs = {{"KIND", grt_nn_kind(x)}}),
                  p, sizeof *p, (const struct grt_range[]){x->range, boxes, y->range}, 3);
    grt_graph_samples(pass->graph, p->rows);
}

static uint32_t groups_of(uint64_t count) {
    return (uint32_t)(count < MOST_GROUPS ? count : MOST_GROUPS);
}

// A view of each image, with its colours.
static void see(const struct transform *t, const struct pass *of, const struct grt_pass *pass,
                struct grt_range boxes, const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct grt_dev *dev = grt_graph_dev(pass->graph);
    struct colour_params c = of->colours;
    struct view_params v = of->view;
    uint64_t rows = x->shape[0], seed = t->base.net->seed;
    struct grt_range drawn = grt_op_part(of->drawn->range, 0, rows * COLOUR_WORDS * 4);
    struct grt_range z = grt_op_part(t->base.net->scratch->range, 0,
                                     rows * v.out_height * v.out_width * v.channels * 4);
    char name[GRT_NN_KERNEL];
    c.rows = v.rows = (uint32_t)rows;
    c.micro = pass->micro;
    c.seed0 = (uint32_t)seed;
    c.seed1 = (uint32_t)(seed >> 32);
    struct grt_pieces pieces = grt_op_pieces(pass->graph, rows, COLOUR_WORDS * 4);
    grt_op_next(&pieces);
    grt_op_stream(pass->graph, &pieces, grt_kernel_desc(.name = "image_draw_colour"), &c, sizeof c,
                  (const struct grt_range[]){pass->state, drawn}, 2);
    grt_op_launch(pass->graph,
                  grt_kernel_desc(.name = grt_nn_kernel(name, "image_view", x),
                                  .specs = {{"WG", grt_op_tree_wg(dev)}, {"KIND", grt_nn_kind(x)}}),
                  &v, sizeof v, (const struct grt_range[]){x->range, boxes, drawn, z, y->range}, 5,
                  (const uint32_t[3]){groups_of(rows), 1, 1});
    grt_graph_samples(pass->graph, rows);
    if (v.taps == 0) {
        return;
    }
    uint64_t down = (v.out_height + BLUR_TILE - 1) / BLUR_TILE;
    uint64_t across = (v.out_width + BLUR_TILE - 1) / BLUR_TILE;
    grt_op_launch(pass->graph,
                  grt_kernel_desc(.name = grt_nn_kernel(name, "image_blur", x),
                                  .specs = {{"WG", grt_op_tree_wg(dev)}, {"KIND", grt_nn_kind(x)}}),
                  &v, sizeof v, (const struct grt_range[]){drawn, z, y->range}, 3,
                  (const uint32_t[3]){groups_of(rows * v.channels * down * across), 1, 1});
    grt_graph_samples(pass->graph, rows);
}

static void run_pass(const struct transform *t, const struct pass *of, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *y) {
    struct transform_params p = of->params;
    uint64_t seed = t->base.net->seed, rows = x->shape[0];
    struct grt_range boxes = grt_op_part(of->boxes->range, 0, rows * BOX_WORDS * 4);
    if (!grt_nn_reachable(pass->graph, x) || !grt_nn_reachable(pass->graph, y)) {
        return;
    }
    p.rows = (uint32_t)rows;
    p.micro = pass->micro;
    p.seed0 = (uint32_t)seed;
    p.seed1 = (uint32_t)(seed >> 32);
    if (!pass->training) {
        p.ratio_low = p.ratio_high = of->log_shape;
    }
    draw_boxes(pass, &p, boxes);
    if (of->coloured && pass->training) {
        see(t, of, pass, boxes, x, y);
    } else {
        take(pass, &p, boxes, x, y);
    }
}

static void mix(const struct transform *t, const struct list *l, const struct grt_pass *pass,
                const struct grt_tensor *x, const struct grt_tensor *y) {
    struct mix_draw_params draw = l->mix;
    const struct mix_params p = {.rows = (uint32_t)x->shape[0],
                                 .height = (uint32_t)x->shape[1],
                                 .width = (uint32_t)x->shape[2],
                                 .channels = (uint32_t)x->shape[3],
                                 .cut = draw.cut};
    uint64_t seed = t->base.net->seed;
    char name[GRT_NN_KERNEL];
    draw.micro = pass->micro;
    draw.seed0 = (uint32_t)seed;
    draw.seed1 = (uint32_t)(seed >> 32);
    grt_op_launch(pass->graph, grt_kernel_desc(.name = "image_mix_draw"), &draw, sizeof draw,
                  (const struct grt_range[]){pass->state, l->mixed_by->range}, 2,
                  (const uint32_t[3]){1, 1, 1});
    struct grt_pieces pieces = grt_op_pieces(pass->graph, grt_tensor_count(x), 4);
    grt_op_next(&pieces);
    grt_op_stream(pass->graph, &pieces,
                  grt_kernel_desc(.name = grt_nn_kernel(name, "image_mix", x),
                                  .specs = {{"KIND", grt_nn_kind(x)}}),
                  &p, sizeof p, (const struct grt_range[]){x->range, l->mixed_by->range, y->range},
                  3);
    grt_graph_samples(pass->graph, p.rows);
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct transform *t = (const struct transform *)module;
    const struct list *l =
        pass->training || t->evaluation.step_count == 0 ? &t->training : &t->evaluation;
    struct grt_tensor from = *x;
    for (uint32_t i = 0; i < l->pass_count; i++) {
        bool inner = i + 1 < l->pass_count || (l->mixes && pass->training);
        struct grt_tensor to = inner ? grt_nn_rows(l->passes[i].y, x->shape[0]) : *y;
        run_pass(t, &l->passes[i], pass, &from, &to);
        from = to;
    }
    if (l->mixes && pass->training) {
        mix(t, l, pass, &from, y);
    }
}

// It stands before all parameters.
static void backward(struct grt_module *module, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *dy,
                     const struct grt_tensor *dx, bool add_dx) {
    (void)module;
    (void)x;
    (void)dy;
    if (dx && !add_dx) {
        grt_graph_fill(pass->graph, dx->range, 0);
    }
}

static struct grt_onnx_value onnx(const struct grt_module *module, struct grt_onnx *to,
                                  struct grt_onnx_value x) {
    const struct transform *t = (const struct transform *)module;
    const struct list *l = t->evaluation.step_count == 0 ? &t->training : &t->evaluation;
    for (uint32_t i = 0; i < l->pass_count; i++) {
        x = transform_onnx(to, x, &l->passes[i].params, (double)l->passes[i].log_shape);
    }
    return x;
}

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns transform_fns = {"transform", declare, forward,
                                                    backward,    destroy, onnx};

static bool read_list(const struct grt_network_desc *desc, struct transform *t, struct list *l) {
    struct network_reading r = {.desc = desc, .source = network_source(desc, "transform")};
    struct grt_node *tree = grt_tree_create(&r.source, desc->text);
    bool good = tree != NULL;
    if (good && (tree->kind != GRT_NODE_LIST || !tree->first)) {
        good = network_wrong(&r, tree, "a list of transforms is wanted") != NULL;
    }
    for (const struct grt_node *node = good ? tree->first : NULL; good && node; node = node->next) {
        good = l->step_count < TRANSFORM_STEPS
                   ? transform_step_read(&r, node, &l->steps[l->step_count++])
                   : network_wrong(&r, node, "more than %d transforms", TRANSFORM_STEPS) != NULL;
    }
    if (good && l == &t->training) {
        r.source.whole = true;
        grt_tree_where(&r.source, tree->line, tree->column, t->base.where, sizeof t->base.where);
    }
    grt_tree_destroy(&tree);
    return good;
}

struct grt_module *grt_transform_create(const struct grt_network_desc *desc) {
    if (!desc || !desc->text) {
        grt_fail(GRT_INVALID, "transform: no %s", desc ? "text" : "desc");
        return NULL;
    }
    struct transform *t = calloc(1, sizeof *t);
    if (!t) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
        return NULL;
    }
    t->base.fns = &transform_fns;
    t->base.adds_dx = true;
    if (!read_list(desc, t, &t->training)) {
        free(t);
        return NULL;
    }
    return &t->base;
}

static struct transform *transform_of(const struct grt_module *module) {
    return module && module->fns == &transform_fns ? (struct transform *)(uintptr_t)module : NULL;
}

bool grt_transform_evaluate(struct grt_module *module, const struct grt_network_desc *desc) {
    struct transform *t = transform_of(module);
    if (!t || !desc || !desc->text) {
        return grt_fail(GRT_INVALID, "transform: no %s", t ? "text of evaluations" : "module");
    }
    t->evaluation = (struct list){0};
    return read_list(desc, t, &t->evaluation);
}

void grt_transform_plain(struct grt_module *module) {
    struct transform *t = transform_of(module);
    if (t) {
        t->plain = true;
    }
}

const struct grt_tensor *grt_transform_boxes(const struct grt_module *module, uint32_t pass) {
    const struct transform *t = transform_of(module);
    return t && pass < t->training.pass_count ? t->training.passes[pass].boxes : NULL;
}

const struct grt_tensor *grt_transform_colours(const struct grt_module *module, uint32_t pass) {
    const struct transform *t = transform_of(module);
    return t && pass < t->training.pass_count ? t->training.passes[pass].drawn : NULL;
}
