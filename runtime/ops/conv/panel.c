// SPDX-License-Identifier: Apache-2.0
// Convolution for OpenCL CPU drivers, in f32, without patches: cl/cpu/conv_panel_f32.k forward and
// for the images' gradient, with the weights packed before it, and cl/cpu/conv_panel_weight_f32.k.
#include "case.h"

#include "ops/op_support.h"

#define BLOCK 64u          // channels of a copy, at most
#define PIXELS 256u        // that a workgroup has at least, where there are as many
#define MOST_ROOM 131072u  // floats of a copy
#define MOST_DY 32768u
#define MOST_SUMS 65536u
#define GROUPS_A_UNIT 4u  // so that cores end at about the same time

// A tile of pixels and vectors in registers.
struct tile {
    uint32_t rows, cols, vector, vectors;
};

struct shape {
    struct tile tile;
    uint32_t block;  // channels of a copy
    uint32_t step;   // pixels of it from one of the tile to the next
    uint32_t room;
    struct conv_panel_params params;
    uint32_t groups[3];
};

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static uint32_t most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

// Sums in flight: 24 of AVX-512's 32 registers, 12 of AVX2's 16, 16 of NEON's 32.
static uint32_t most_pixels(uint32_t vector) {
    return vector >= 16 ? 12 : vector >= 8 ? 6 : 8;
}

static uint32_t vector_of(const struct conv_case *c) {
    uint32_t vector = c->dev->info.caps.vector;
    return vector >= 16 ? 16 : vector >= 8 ? 8 : 4;
}

// The tile that leaves the least of an image unused; two vectors, or one where there are no more
// columns.
static struct tile tile_of(const struct conv_case *c, uint32_t height, uint32_t width,
                           uint32_t columns) {
    static const uint32_t tiles[][2] = {{1, 12}, {2, 6}, {3, 4}, {4, 3}, {1, 8}, {2, 4}, {4, 2},
                                        {8, 1},  {1, 6}, {2, 3}, {3, 2}, {6, 1}, {1, 4}, {2, 2}};
    struct tile best = {.vector = vector_of(c)};
    best.vectors = columns > best.vector ? 2 : 1;
    double least_cost = 0;
    for (uint32_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        uint32_t rows = tiles[i][0], cols = tiles[i][1];
        if (rows * cols > most_pixels(best.vector)) {
            continue;
        }
        // Loading the weights costs as much as two pixels, and so does a row of pixels.
        double cost = (double)conv_ceil_div(height, rows) * conv_ceil_div(width, cols) *
                      (rows * cols + 2 + 0.1 * rows);
        if (least_cost == 0 || cost < least_cost) {
            least_cost = cost;
            best.rows = rows;
            best.cols = cols;
        }
    }
    return best;
}

static uint32_t room_of(const struct conv_case *c, uint32_t used) {
    uint32_t floats = c->dev->info.caps.shmem / 4;
    return floats > used ? least(floats - used, MOST_ROOM) : 0;
}

// How many rows of an image, and of images, a workgroup takes; false where no copy fits. `reach`:
// rows and columns of the copy beside those of the pixels.
static bool cut(struct shape *s, uint32_t height, uint32_t width, uint32_t reach, uint32_t pixels) {
    struct conv_panel_params *p = &s->params;
    uint32_t tr = s->tile.rows, tw = s->tile.cols;
    if (height == 0 || width == 0) {
        return false;
    }
    uint32_t strip = least(most(pixels / width, 1), height);
    p->copy_width = (conv_ceil_div(width, tw) * tw - 1) * s->step + 1 + reach;
    for (;; strip /= 2) {
        strip = strip ? conv_ceil_div(strip, tr) * tr : 0;
        p->copy_height = (strip - 1) * s->step + 1 + reach;
        if (strip > 0 && (uint64_t)p->copy_height * p->copy_width * s->block <= s->room) {
            break;
        }
        if (strip <= tr) {
            return false;
        }
    }
    p->strip = strip;
    p->strips = conv_ceil_div(height, strip);
    uint32_t fit = s->room / (p->copy_height * p->copy_width * s->block);
    p->images = p->strips > 1 ? 1 : most(1, least(fit, pixels / (width * height)));
    p->images = least(p->images, p->rows);
    return true;
}

// Forward, and the images' gradient.
static bool shape_of(const struct conv_case *c, struct shape *s) {
    const struct grt_window *w = &c->window, *real = c->stands_for ? &c->stands_for->window : w;
    bool data = c->desc->pass == GRT_CONV_DATA;
    uint32_t step = data ? w->stride : 1;
    *s = (struct shape){.step = data ? 1 : w->stride};
    uint32_t columns = data ? w->channels : c->outputs;
    s->tile = tile_of(c, conv_ceil_div(data ? real->height : real->out_height, step),
                      conv_ceil_div(data ? real->width : real->out_width, step), columns);
    s->block = data ? c->outputs : w->channels;
    s->block = least(BLOCK, conv_ceil_div(s->block, 4) * 4);
    s->params = (struct conv_panel_params){
        .rows = c->rows,
        .in_height = data ? w->out_height : w->height,
        .in_width = data ? w->out_width : w->width,
        .in_channels = data ? c->outputs : w->channels,
        .out_height = data ? w->height : w->out_height,
        .out_width = data ? w->width : w->out_width,
        .outputs = columns,
        .size = w->size,
        .padding = w->padding,
        .out_step = step,
        .margin =
            data ? conv_ceil_div(w->size - 1 - least(w->padding, w->size - 1), step) : w->padding};
    uint32_t nr = s->tile.vector * s->tile.vectors;
    s->room = room_of(c, s->tile.rows * s->tile.cols * nr);
    uint32_t reach =
        s->params.margin + (data ? (step - 1 + w->padding) / step : w->size - 1 - w->padding);
    if (!cut(s, conv_ceil_div(s->params.out_height, step), conv_ceil_div(s->params.out_width, step),
             reach, PIXELS)) {
        return false;
    }
    uint32_t units = most(c->dev->info.caps.compute_units, 1), panels = conv_ceil_div(columns, nr);
    s->groups[0] = conv_ceil_div(c->rows, s->params.images) * s->params.strips;
    uint32_t cuts = least(panels, conv_ceil_div(GROUPS_A_UNIT * units, s->groups[0] * step * step));
    s->params.panels = conv_ceil_div(panels, cuts);
    s->groups[1] = conv_ceil_div(panels, s->params.panels);
    s->groups[2] = step * step;
    return true;
}

// The weights' gradient: a tile is a row of outputs.
static bool weight_shape_of(const struct conv_case *c, struct shape *s) {
    const struct grt_window *w = &c->window;
    uint32_t vector = vector_of(c), units = most(c->dev->info.caps.compute_units, 1);
    *s = (struct shape){.step = w->stride,
                        .tile = {1, 1, vector, w->channels > vector ? 2 : 1},
                        .params = {.rows = c->rows,
                                   .in_height = w->height,
                                   .in_width = w->width,
                                   .in_channels = w->channels,
                                   .out_height = w->out_height,
                                   .out_width = w->out_width,
                                   .outputs = c->outputs,
                                   .size = w->size,
                                   .padding = w->padding,
                                   .out_step = 1,
                                   .margin = w->padding}};
    uint32_t nr = vector * s->tile.vectors, mr = vector >= 16 ? 8 : vector >= 8 ? 6 : 8;
    s->block = least(BLOCK / nr * nr, conv_ceil_div(w->channels, nr) * nr);
    s->room = room_of(c, MOST_DY + MOST_SUMS);
    if (!cut(s, w->out_height, w->out_width, w->size - 1, PIXELS)) {
        return false;
    }
    uint32_t taps = w->size * w->size, panels = conv_ceil_div(c->outputs, mr);
    uint32_t pixels = s->params.images * s->params.strip * w->out_width;
    uint32_t fit = least(MOST_SUMS / (taps * mr * s->block), MOST_DY / (pixels * mr));
    if (fit == 0) {
        return false;
    }
    s->groups[0] = conv_ceil_div(w->channels, s->block);
    // Fewer than forward: each copies all of x.
    uint32_t cuts = conv_ceil_div(GROUPS_A_UNIT / 2 * units, s->groups[0]);
    s->params.panels = least(fit, most(1, panels / least(panels, cuts)));
    s->groups[1] = conv_ceil_div(panels, s->params.panels);
    s->groups[2] = 1;
    s->tile.cols = mr;
    return true;
}

static bool resolve(const struct conv_case *c, struct shape *s) {
    return c->desc->pass == GRT_CONV_WEIGHT ? weight_shape_of(c, s) : shape_of(c, s);
}

static uint32_t panels_of(const struct shape *s) {
    return conv_ceil_div(s->params.outputs, s->tile.vector * s->tile.vectors);
}

static uint64_t scratch(const struct conv_case *c) {
    struct shape s;
    if (c->desc->pass == GRT_CONV_WEIGHT || !resolve(c, &s)) {
        return 0;
    }
    return (uint64_t)panels_of(&s) * s.tile.vector * s.tile.vectors * s.params.size *
           s.params.size * s.params.in_channels * 4;
}

static bool usable(const struct conv_case *c) {
    const struct grt_dev_info *info = &c->dev->info;
    uint64_t reach = grt_op_reach(c->dev);
    struct shape s;
    return info->backend == GRT_BACKEND_OPENCL && info->caps.software && c->type == GRT_F32 &&
           grt_tensor_count(c->desc->x) <= reach && grt_tensor_count(c->desc->y) <= reach &&
           c->window.height <= 1u << 16 && c->window.width <= 1u << 16 && resolve(c, &s) &&
           s.groups[0] <= info->caps.max_groups[0] && s.groups[1] <= info->caps.max_groups[1];
}

// Few columns leave the vectors empty, where patches put taps and channels side by side.
static bool pays(const struct conv_case *c) {
    uint32_t vector = vector_of(c);
    return (c->desc->pass == GRT_CONV_FORWARD ? c->outputs : c->window.channels) >= vector;
}

static void record_weight(struct grt_graph *graph, const struct conv_case *c,
                          const struct shape *s) {
    const struct grt_conv2d_desc *d = c->desc;
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "conv_panel_weight_f32", .specs = {{"WG", 1},
                                                                   {"ADD", d->add},
                                                                   {"VW", s->tile.vector},
                                                                   {"NV", s->tile.vectors},
                                                                   {"MR", s->tile.cols},
                                                                   {"CB", s->block},
                                                                   {"STEP", s->step},
                                                                   {"ROOM", s->room},
                                                                   {"ROOM_DY", MOST_DY},
                                                                   {"ROOM_SUMS", MOST_SUMS}}),
        &s->params, sizeof s->params,
        (const struct grt_range[]){d->x->range, d->y->range, d->w->range}, 3, s->groups);
    grt_graph_operations(graph, conv_operations(c));
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    const struct grt_conv2d_desc *d = c->desc;
    struct shape s;
    resolve(c, &s);
    if (d->pass == GRT_CONV_WEIGHT) {
        record_weight(graph, c, &s);
        return;
    }
    bool data = d->pass == GRT_CONV_DATA;
    const struct conv_pack_params pack = {c->window.size * c->window.size, c->window.channels,
                                          c->outputs};
    struct grt_range packed = grt_op_part(d->scratch, 0, scratch(c));
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "conv_pack_f32", .specs = {{"WG", 1},
                                                           {"PASS", data},
                                                           {"NR", s.tile.vector * s.tile.vectors}}),
        &pack, sizeof pack, (const struct grt_range[]){d->w->range, packed}, 2,
        (const uint32_t[3]){pack.taps, panels_of(&s), 1});
    const struct grt_tensor *in = data ? d->y : d->x, *out = data ? d->x : d->y;
    grt_op_launch(graph,
                  grt_kernel_desc(.name = "conv_panel_f32", .specs = {{"WG", 1},
                                                                      {"PASS", data},
                                                                      {"ADD", d->add},
                                                                      {"BIAS", d->bias != NULL},
                                                                      {"VW", s.tile.vector},
                                                                      {"NV", s.tile.vectors},
                                                                      {"TR", s.tile.rows},
                                                                      {"TW", s.tile.cols},
                                                                      {"CB", s.block},
                                                                      {"STEP", s.step},
                                                                      {"ROOM", s.room}}),
                  &s.params, sizeof s.params,
                  (const struct grt_range[]){in->range, packed, out->range,
                                             d->bias ? d->bias->range : grt_op_unused(graph)},
                  4, s.groups);
    grt_graph_operations(graph, conv_operations(c));
}

const struct conv_variant conv_variant_panel = {"panel", usable, pays, record, scratch, false};
