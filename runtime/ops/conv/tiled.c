// SPDX-License-Identifier: Apache-2.0
// Convolution in tiles through shared memory, patches gathered on the way, for every GPU:
// shaders/image/lib/conv_tiled.k. The weights' gradient is cut into runs of pixels, so that the
// device is busy, and their sums are added in order.
#include "case.h"

#include <stdio.h>

#include "gpurt/gemm.h"
#include "gpurt/tunable.h"
#include "ops/op_support.h"

#define TILE 64u
#define LANES 256u
#define STEP 16u  // runs of pixels are multiples
#define MOST_PARTS 64u

struct grid {
    uint64_t rows, cols;   // tiles
    uint32_t parts, each;  // runs of pixels of the weights' gradient
};

static uint64_t pixels_of(const struct conv_case *c) {
    return c->rows * conv_pixels(c);
}

static uint64_t tiles(uint64_t extent) {
    return (extent + TILE - 1) / TILE;
}

static struct grid grid_of(const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    struct grid g = {.parts = 1};
    switch (c->desc->pass) {
    case GRT_CONV_FORWARD:
        g.rows = tiles(pixels_of(c));
        g.cols = tiles(c->outputs);
        return g;
    case GRT_CONV_DATA:
        g.rows = tiles((uint64_t)c->rows * w->height * w->width);
        g.cols = tiles(w->channels);
        return g;
    default:
        g.rows = tiles(c->outputs);
        g.cols = tiles(conv_depth(c));
        break;
    }
    uint64_t wanted = 4 * (uint64_t)conv_units(c) / (g.rows * g.cols), pixels = pixels_of(c);
    uint64_t most = pixels / (4 * STEP) < MOST_PARTS ? pixels / (4 * STEP) : MOST_PARTS;
    wanted = wanted < most ? wanted : most;
    uint64_t each = wanted > 1 ? (pixels + wanted - 1) / wanted : pixels;
    each = (each + STEP - 1) / STEP * STEP;
    g.each = (uint32_t)each;
    g.parts = (uint32_t)((pixels + each - 1) / each);
    return g;
}

static uint64_t scratch(const struct conv_case *c) {
    struct grid g = grid_of(c);
    return g.parts > 1 ? g.parts * conv_weights(c) * 4 : 0;
}

static bool usable(const struct conv_case *c) {
    struct grid g = grid_of(c);
    const struct grt_caps *caps = &c->dev->info.caps;
    uint64_t reach = grt_op_reach(c->dev), x = grt_tensor_count(c->desc->x);
    uint64_t y = grt_tensor_count(c->desc->y);
    struct grt_kernel_desc kernel = {"conv_tiled_f32", {{"WG", LANES}}};
    char why[GRT_TUNABLE_WHY];
    return x <= reach && y <= reach && conv_weights(c) * g.parts <= reach &&
           pixels_of(c) <= UINT32_MAX / 2 && g.rows <= caps->max_groups[0] &&
           g.cols <= caps->max_groups[1] && grt_kernel_fits(&c->dev->info, &kernel, why);
}

// A device with matrix units multiplies patches faster than it gathers; CPU drivers change lanes at
// every barrier.
static bool pays(const struct conv_case *c) {
    const struct grt_caps *caps = &c->dev->info.caps;
    const struct grt_tensor t = {.dtype = c->type, .rank = 2, .shape = {4096, 4096}};
    if (caps->software) {
        return false;
    }
    const char *product = grt_gemm_variant(c->dev, grt_gemm_desc(.a = &t, .b = &t, .c = &t), 0);
    return product && (product[0] == 't' || product[0] == 'p');  // tiled, tiny, plain
}

void conv_add_slabs(struct grt_graph *graph, const struct conv_case *c, struct grt_range slabs,
                    uint32_t count) {
    const struct conv_sum_params sum = {(uint32_t)conv_weights(c), count};
    struct grt_pieces pieces = grt_op_pieces(graph, conv_weights(c), 4);
    grt_op_next(&pieces);
    grt_op_stream(graph, &pieces,
                  grt_kernel_desc(.name = "conv_sum", .specs = {{"ADD", c->desc->add}}), &sum,
                  sizeof sum, (const struct grt_range[]){slabs, c->desc->w->range}, 2);
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    const struct grt_conv2d_desc *d = c->desc;
    struct grid g = grid_of(c);
    bool slabs = g.parts > 1;
    struct conv_params params = conv_params_of(c);
    params.parts = g.parts;
    params.bunch = g.each;
    const char *name = c->type == GRT_F32  ? "conv_tiled_f32"
                       : c->out == GRT_F32 ? "conv_tiled_16f32"
                                           : "conv_tiled_16";
    const struct grt_tensor *a = d->pass == GRT_CONV_FORWARD ? d->x : d->y;
    const struct grt_tensor *b = d->pass == GRT_CONV_WEIGHT ? d->x : d->w;
    struct grt_range out = d->pass == GRT_CONV_FORWARD ? d->y->range
                           : d->pass == GRT_CONV_DATA  ? d->x->range
                           : slabs                     ? grt_op_part(d->scratch, 0, scratch(c))
                                                       : d->w->range;
    grt_op_launch(graph,
                  grt_kernel_desc(.name = name, .specs = {{"WG", LANES},
                                                          {"PASS", (uint32_t)d->pass},
                                                          {"KIND", c->type == GRT_BF16},
                                                          {"ADD", d->add && !slabs},
                                                          {"BIAS", d->bias != NULL}}),
                  &params, sizeof params,
                  (const struct grt_range[]){a->range, b->range, out,
                                             d->bias ? d->bias->range : grt_op_unused(graph)},
                  4, (const uint32_t[3]){(uint32_t)g.rows, (uint32_t)g.cols, g.parts});
    grt_graph_operations(graph, conv_operations(c));
    if (slabs) {
        conv_add_slabs(graph, c, out, g.parts);
    }
}

const struct conv_variant conv_variant_tiled = {"tiled", usable, pays, record, scratch, false};
