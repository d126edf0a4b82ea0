// SPDX-License-Identifier: Apache-2.0
// Transforms of images before a network: a list of steps becomes passes over the images, each of
// them one box of an image, a flip and a normalization.
//
//     resize(40) | random_crop(32) | random_horizontal_flip | normalize
//     |- pass --||- pass -------------------------------------------|
//
// In training what is random is drawn anew for each sample and step (shaders/image/image_draw.k);
// in evaluation nothing is. It has no parameters, and no gradient goes back through it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "base/log.h"
#include "image_ops.h"
#include "network_parts.h"
#include "ops/op_support.h"
#include "shaders/host.h"
#include "shaders/image/lib/transform_params.k"

#define MOST_STEPS 16
#define CHANNELS 4  // with numbers of their own; the last of them serves all behind it
#define MOST_SIDE 16384

enum step_kind { STEP_BOX, STEP_FLIP, STEP_NORMALIZE };

// Of a step what its kind has.
struct step {
    enum step_kind kind;
    const char *name;
    uint32_t box;
    uint32_t size[2];  // height and width; 0: as the image
    uint32_t shorter;  // of resize: of the shorter side
    uint32_t padding;
    bool reflect;
    double flip, area[2], ratio[2];
    double scale[CHANNELS], shift[CHANNELS];
};

struct pass {
    struct transform_params params;  // but for rows and what a step of training has
    float log_shape;                 // logarithm of the result's ratio, for evaluations
    bool boxed, normal;
    struct grt_tensor *boxes;  // u32 [rows][BOX_WORDS]
    struct grt_tensor *y;      // NULL of the last
};

struct transform {
    struct grt_module base;
    struct step steps[MOST_STEPS];
    struct pass passes[MOST_STEPS];
    uint32_t step_count, pass_count;
};

// ---- the list ----

// The value of a step by its name, or by its number where it has none.
static const struct grt_node *argument(const struct grt_node *map, const char *key,
                                       const char *number) {
    const struct grt_node *named = map ? network_entry(map, key) : NULL;
    return named || !map ? named : network_entry(map, number);
}

// As many numbers as there are, or `least` of one; 0 with the sentence said.
static uint32_t read_reals(const struct network_reading *r, const struct grt_node *value,
                           const char *what, double low, double high, double *numbers,
                           uint32_t most) {
    const struct grt_node *one = value->kind == GRT_NODE_LIST ? value->first : value;
    uint32_t count = 0;
    for (; one && count < most; one = value->kind == GRT_NODE_LIST ? one->next : NULL) {
        const char *text = one->kind == GRT_NODE_TEXT ? one->text : "";
        char *end = NULL;
        double number = strtod(text, &end);
        if (!text[0] || *end || strspn(text, "0123456789.eE+-") != strlen(text) ||
            !(number >= low && number <= high)) {
            network_wrong(r, one, "%s wants numbers from %g to %g, not '%.40s'", what, low, high,
                          text);
            return 0;
        }
        numbers[count++] = number;
    }
    if (one || count == 0) {
        network_wrong(r, value, "%s wants 1 to %u numbers", what, most);
        return 0;
    }
    return count;
}

// Two numbers, the second not below the first.
static bool read_range(const struct network_reading *r, const struct grt_node *value,
                       const char *what, double low, double high, double range[2]) {
    if (!value) {
        return true;
    }
    uint32_t count = read_reals(r, value, what, low, high, range, 2);
    return count == 2 && range[0] <= range[1]
               ? true
               : count > 0 && network_wrong(r, value, "%s wants two numbers, (0.5, 1)", what);
}

static bool read_size(const struct network_reading *r, const struct grt_node *value,
                      const struct step *step, uint32_t size[2]) {
    double sides[2] = {0};
    uint32_t count = read_reals(r, value, step->name, 1, MOST_SIDE, sides, 2);
    if (count > 0 && (sides[0] != floor(sides[0]) || sides[1] != floor(sides[1]))) {
        return network_wrong(r, value, "%s wants whole pixels", step->name) != NULL;
    }
    size[0] = (uint32_t)sides[0];
    size[1] = (uint32_t)sides[count == 2];
    return count > 0;
}

static bool wants_size(const struct network_reading *r, const struct grt_node *at,
                       const struct grt_node *map, struct step *step) {
    const struct grt_node *size = argument(map, "size", "0");
    return size ? read_size(r, size, step, step->size)
                : network_wrong(r, at, "%s wants a size: %s(32)", step->name, step->name) != NULL;
}

static bool read_resize(const struct network_reading *r, const struct grt_node *at,
                        const struct grt_node *map, struct step *step) {
    const struct grt_node *size = argument(map, "size", "0");
    step->box = BOX_WHOLE;
    if (!wants_size(r, at, map, step)) {
        return false;
    }
    if (size->kind != GRT_NODE_LIST) {
        step->shorter = step->size[0];
    }
    return true;
}

static bool read_center_crop(const struct network_reading *r, const struct grt_node *at,
                             const struct grt_node *map, struct step *step) {
    step->box = BOX_MIDDLE;
    return wants_size(r, at, map, step);
}

static bool read_random_crop(const struct network_reading *r, const struct grt_node *at,
                             const struct grt_node *map, struct step *step) {
    static const char *const modes[] = {"constant", "reflect"};
    const struct grt_node *size = argument(map, "size", "0");
    const struct grt_node *padding = argument(map, "padding", "1");
    const struct grt_node *mode = argument(map, "padding_mode", "2");
    double around = 0;
    int word = mode ? network_word(r, mode, "padding_mode", modes, 2) : 0;
    (void)at;
    step->box = BOX_CROP;
    if (word < 0 || (size && !read_size(r, size, step, step->size)) ||
        (padding && read_reals(r, padding, "padding", 0, MOST_SIDE, &around, 1) == 0)) {
        return false;
    }
    step->reflect = word == 1;
    step->padding = (uint32_t)around;
    return true;
}

static bool read_flip(const struct network_reading *r, const struct grt_node *at,
                      const struct grt_node *map, struct step *step) {
    const struct grt_node *p = argument(map, "p", "0");
    (void)at;
    step->kind = STEP_FLIP;
    step->flip = 0.5;
    return !p || read_reals(r, p, "p", 0, 1, &step->flip, 1) > 0;
}

static bool read_resized_crop(const struct network_reading *r, const struct grt_node *at,
                              const struct grt_node *map, struct step *step) {
    step->box = BOX_RESIZED;
    step->area[0] = 0.08;
    step->area[1] = 1;
    step->ratio[0] = 3.0 / 4;
    step->ratio[1] = 4.0 / 3;
    return wants_size(r, at, map, step) &&
           read_range(r, argument(map, "scale", "1"), "scale", 1e-6, 1, step->area) &&
           read_range(r, argument(map, "ratio", "2"), "ratio", 1e-3, 1e3, step->ratio);
}

// One number for all channels, or one each.
static bool read_channels(const struct network_reading *r, const struct grt_node *value,
                          const char *what, double low, double numbers[CHANNELS]) {
    uint32_t count = value ? read_reals(r, value, what, low, 1e6, numbers, CHANNELS) : CHANNELS;
    for (uint32_t i = count; count > 0 && i < CHANNELS; i++) {
        numbers[i] = numbers[count - 1];
    }
    return count > 0;
}

// Numbers of bytes are from 0 to 255; torchvision's mean and std are of numbers from 0 to 1.
static bool read_normalize(const struct network_reading *r, const struct grt_node *at,
                           const struct grt_node *map, struct step *step) {
    double mean[CHANNELS] = {0.485, 0.456, 0.406, 0.5}, std[CHANNELS] = {0.229, 0.224, 0.225, 0.25};
    double range = 255;
    const struct grt_node *most = argument(map, "range", "2");
    (void)at;
    step->kind = STEP_NORMALIZE;
    if (!read_channels(r, argument(map, "mean", "0"), "mean", -1e6, mean) ||
        !read_channels(r, argument(map, "std", "1"), "std", 1e-6, std) ||
        (most && read_reals(r, most, "range", 1e-6, 1e6, &range, 1) == 0)) {
        return false;
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        step->scale[i] = 1 / (range * std[i]);
        step->shift[i] = -mean[i] / std[i];
    }
    return true;
}

// A step is a row here.
static const struct step_row {
    const char *name;
    const char *const keys[5];  // the numbers stand for those that come first
    bool (*read)(const struct network_reading *r, const struct grt_node *at,
                 const struct grt_node *map, struct step *step);
} step_rows[] = {
    {"resize", {"size", "0"}, read_resize},
    {"center_crop", {"size", "0"}, read_center_crop},
    {"random_crop", {"size", "padding", "padding_mode", "0"}, read_random_crop},
    {"random_horizontal_flip", {"p", "0"}, read_flip},
    {"random_resized_crop", {"size", "scale", "ratio", "0"}, read_resized_crop},
    {"normalize", {"mean", "std", "range", "0"}, read_normalize},
};
#define ROW_COUNT (sizeof step_rows / sizeof *step_rows)

static bool unknown(const struct network_reading *r, const struct grt_node *at, const char *name) {
    const char *closest = grt_closest(name, step_rows, ROW_COUNT, sizeof *step_rows);
    char list[160] = "";
    size_t used = 0;
    for (size_t i = 0; i < ROW_COUNT && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 step_rows[i].name);
    }
    return closest ? network_wrong(r, at, "no transform '%.40s'; did you mean '%s'?", name, closest)
                   : network_wrong(r, at, "no transform '%.40s'; there are %s", name, list);
}

// `normalize`, or `resize: {size: 32}`, or `resize: 32`.
static bool read_step(const struct network_reading *r, const struct grt_node *node,
                      struct step *step) {
    const struct grt_node *one = node->kind == GRT_NODE_MAP ? node->first : NULL;
    if (node->kind == GRT_NODE_LIST || (node->kind == GRT_NODE_MAP && (!one || one->next))) {
        return network_wrong(r, node, "a transform is one word, or one word with its values") !=
               NULL;
    }
    const char *name = one ? one->text : node->text;
    const struct step_row *row = step_rows;
    while (row < step_rows + ROW_COUNT && strcmp(row->name, name) != 0) {
        row++;
    }
    if (row == step_rows + ROW_COUNT) {
        return unknown(r, node, name);
    }
    // A value alone is the first one.
    struct grt_node first = {.kind = GRT_NODE_MAP, .text = (char[]){"0"}};
    struct grt_node alone = {.kind = GRT_NODE_MAP, .first = &first};
    const struct grt_node *map = one ? one->first : NULL;
    if (map && map->kind != GRT_NODE_MAP) {
        first.first = (struct grt_node *)(uintptr_t)map;
        map = &alone;
    }
    for (const struct grt_node *e = map ? map->first : NULL; e; e = e->next) {
        bool known = strspn(e->text, "0123") == strlen(e->text) && strlen(e->text) == 1;
        for (size_t i = 0; row->keys[i]; i++) {
            known = known || strcmp(row->keys[i], e->text) == 0;
        }
        if (!known) {
            return network_wrong(r, e, "%s has no value '%.40s'", name, e->text) != NULL;
        }
    }
    *step = (struct step){.name = row->name};
    return row->read(r, node, map, step);
}

// ---- passes ----

static struct pass *next_pass(struct transform *t, uint64_t height, uint64_t width,
                              uint64_t channels) {
    struct pass *p = &t->passes[t->pass_count++];
    *p = (struct pass){.params = {.height = (uint32_t)height,
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

static bool set_box(struct transform *t, struct pass *p, const struct step *s) {
    struct transform_params *m = &p->params;
    uint64_t shorter = m->height < m->width ? m->height : m->width;
    uint32_t h = s->size[0] ? s->size[0] : m->height, w = s->size[1] ? s->size[1] : m->width;
    if (s->shorter > 0) {
        h = (uint32_t)((uint64_t)s->shorter * m->height / shorter);
        w = (uint32_t)((uint64_t)s->shorter * m->width / shorter);
    }
    bool cuts = s->box == BOX_MIDDLE || s->box == BOX_CROP;
    if (cuts && (h > m->height || w > m->width)) {
        return grt_module_refuse(&t->base, "%s: %ux%u is more than the image has, %ux%u", s->name,
                                 h, w, m->height, m->width)
                   .rank > 0;
    }
    if (s->reflect && (s->padding >= m->height || s->padding >= m->width)) {
        return grt_module_refuse(&t->base, "%s: an image of %ux%u cannot be mirrored %u pixels far",
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
    p->boxed = true;
    return true;
}

static void set_normal(struct pass *p, const struct step *s) {
    struct transform_params *m = &p->params;
    float *scales[] = {&m->scale0, &m->scale1, &m->scale2, &m->scale3};
    float *shifts[] = {&m->shift0, &m->shift1, &m->shift2, &m->shift3};
    for (uint32_t i = 0; i < CHANNELS; i++) {
        *scales[i] = (float)s->scale[i];
        *shifts[i] = (float)s->shift[i];
    }
    p->normal = true;
}

// Steps go into the newest pass as long as they come in its order: box, flip, normalization.
static bool make_passes(struct transform *t, const struct grt_shape *in) {
    struct pass *p = next_pass(t, in->dim[0], in->dim[1], in->dim[2]);
    for (uint32_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        bool flips = p->params.flip > 0;
        bool full = s->kind == STEP_BOX    ? p->boxed || flips || p->normal
                    : s->kind == STEP_FLIP ? flips || p->normal
                                           : p->normal;
        if (full) {
            p = next_pass(t, p->params.out_height, p->params.out_width, in->dim[2]);
        }
        if (s->kind == STEP_BOX && !set_box(t, p, s)) {
            return false;
        }
        if (s->kind == STEP_FLIP) {
            p->params.flip = (float)s->flip;
        } else if (s->kind == STEP_NORMALIZE) {
            set_normal(p, s);
        }
    }
    return true;
}

// ---- the module ----

static struct grt_shape declare(struct grt_module *module, struct grt_net *net, const char *prefix,
                                const struct grt_shape *in) {
    struct transform *t = (struct transform *)module;
    char text[GRT_SHAPE_TEXT];
    if (in->rank != 3 || in->dim[0] > MOST_SIDE || in->dim[1] > MOST_SIDE ||
        in->dim[2] > MOST_SIDE) {
        return grt_module_refuse(module, "takes images of [height][width][channels], not %s",
                                 grt_shape_text(in, text));
    }
    if (!make_passes(t, in)) {
        return (struct grt_shape){0};
    }
    struct grt_shape out = *in;
    for (uint32_t i = 0; i < t->pass_count; i++) {
        struct pass *p = &t->passes[i];
        out = (struct grt_shape){3, {p->params.out_height, p->params.out_width, in->dim[2]}};
        p->params.stream = net->streams++;
        p->boxes =
            grt_net_tensor(net, grt_tensor_desc(.label = "boxes", .group = "acts", .dtype = GRT_U32,
                                                .shape = {net->rows, BOX_WORDS}));
        p->y = i + 1 < t->pass_count ? grt_net_activation(net, prefix, "y", &out) : NULL;
        module->operations += 16.0 * (double)grt_shape_count(&out);
    }
    return out;
}

static void run_pass(const struct transform *t, const struct pass *of, const struct grt_pass *pass,
                     const struct grt_tensor *x, const struct grt_tensor *y) {
    struct transform_params p = of->params;
    uint64_t seed = t->base.net->seed, rows = x->shape[0];
    struct grt_range boxes = grt_op_part(of->boxes->range, 0, rows * BOX_WORDS * 4);
    char name[GRT_NN_KERNEL];
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
    struct grt_pieces pieces = grt_op_pieces(pass->graph, rows, BOX_WORDS * 4);
    grt_op_next(&pieces);
    grt_op_stream(pass->graph, &pieces,
                  grt_kernel_desc(.name = "image_draw", .specs = {{"TRAIN", pass->training}}), &p,
                  sizeof p,
                  (const struct grt_range[]){
                      pass->training ? pass->state : grt_op_unused(pass->graph), boxes},
                  2);
    pieces = grt_op_pieces(pass->graph, rows * p.out_height * p.out_width, 4);
    grt_op_next(&pieces);
    grt_op_stream(pass->graph, &pieces,
                  grt_kernel_desc(.name = grt_nn_kernel(name, "image_take", x),
                                  .specs = {{"KIND", grt_nn_kind(x)}}),
                  &p, sizeof p, (const struct grt_range[]){x->range, boxes, y->range}, 3);
}

static void forward(struct grt_module *module, const struct grt_pass *pass,
                    const struct grt_tensor *x, const struct grt_tensor *y) {
    const struct transform *t = (const struct transform *)module;
    struct grt_tensor from = *x;
    for (uint32_t i = 0; i < t->pass_count; i++) {
        struct grt_tensor to = t->passes[i].y ? grt_nn_rows(t->passes[i].y, x->shape[0]) : *y;
        run_pass(t, &t->passes[i], pass, &from, &to);
        from = to;
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

static void destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns transform_fns = {"transform", declare, forward, backward,
                                                    destroy};

struct grt_module *grt_transform_create(const struct grt_network_desc *desc) {
    if (!desc || !desc->text) {
        grt_fail(GRT_INVALID, "transform: no %s", desc ? "text" : "desc");
        return NULL;
    }
    struct network_reading r = {.desc = desc, .path = desc->path ? desc->path : "transform"};
    struct transform *t = calloc(1, sizeof *t);
    struct grt_node *tree = t ? grt_tree_create(r.path, desc->text, desc->line ? desc->line : 1,
                                                desc->column ? desc->column : 1)
                              : NULL;
    bool good = tree != NULL;
    if (good && (tree->kind != GRT_NODE_LIST || !tree->first)) {
        good = network_wrong(&r, tree, "a list of transforms is wanted") != NULL;
    }
    for (const struct grt_node *node = good ? tree->first : NULL; good && node; node = node->next) {
        good = t->step_count < MOST_STEPS
                   ? read_step(&r, node, &t->steps[t->step_count++])
                   : network_wrong(&r, node, "more than %d transforms", MOST_STEPS) != NULL;
    }
    if (!t) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a module");
    } else if (good) {
        snprintf(t->base.where, sizeof t->base.where, "%.80s:%u:%u: ", r.path, tree->line,
                 tree->column);
        t->base.fns = &transform_fns;
        t->base.adds_dx = true;
    }
    grt_tree_destroy(&tree);
    if (!good) {
        free(t);
        return NULL;
    }
    return &t->base;
}

const struct grt_tensor *grt_transform_boxes(const struct grt_module *module, uint32_t pass) {
    const struct transform *t =
        module && module->fns == &transform_fns ? (const struct transform *)module : NULL;
    return t && pass < t->pass_count ? t->passes[pass].boxes : NULL;
}
