// SPDX-License-Identifier: Apache-2.0
// The gradient of the weights of 16-bit convolutions on Hopper's matrix units, 3x3 or of folded
// images, all taps of a block at once: cl/nvidia/lib/conv_wgmma_columns.k. On OpenCL and, as PTX,
// on Vulkan. The pixels are cut into runs, so that the device is busy, and their sums are added in
// order.
//
// TFLOP/s by this, with one box of x for all columns of taps / one for each / by wgmma or wgmma_48k
// (H200, driver 580.159.04, 2026-11-17 and, the first, 2026-11-18):
//
//                     OpenCL              Vulkan
//     32x32x64        604 / 576 / 368     574 / 462 / 269
//     16x16x128       668 / 646 / 395     658 / 502 / 291
//     8x8x256         686 / 674 / 565     681 / 505 / 245
//     8x8x640         665 / 637           650 / 503
#include "case.h"
#include "cl/nvidia/lib/wgmma_limits.k"
#include "ops/op_support.h"

#define BLOCK 64u  // channels
#define COUNT(array) (sizeof(array) / sizeof *(array))

struct runs {
    uint32_t parts, each;  // boxes
};

// Lanes of a workgroup, 128 of which feed the others; of windows one tap across, whose sums take
// more registers, there are fewer.
static uint32_t lanes_of(const struct conv_case *c) {
    return conv_across(c) == 1 ? 384 : 512;
}

// Slabs of a run: of windows one tap across every warpgroup has its own.
static uint32_t slabs_of(const struct conv_case *c) {
    return conv_across(c) == 1 ? lanes_of(c) / 128 - 1 : 1;
}

static uint32_t tiles_of(const struct conv_case *c) {
    return conv_ceil_div(c->outputs, BLOCK) * conv_ceil_div(c->window.channels, BLOCK);
}

// Lean ones within 48 KiB.
static struct conv_box box_of(const struct conv_case *c) {
    static const struct conv_box ways[] = {{.down = 8, .stages = 8, .worth = 1.02, .joined = true},
                                           {.down = 4, .stages = 14, .worth = 1.01, .joined = true},
                                           {.down = 2, .stages = 14, .worth = 1, .joined = true},
                                           {.down = 8, .stages = 3, .worth = 1},
                                           {.down = 4, .stages = 8, .worth = 0.98},
                                           {.down = 2, .stages = 8, .worth = 0.9}};
    static const struct conv_box lean_ways[] = {
        {.down = 2, .stages = 6, .worth = 1.4, .joined = true},
        {.down = 4, .stages = 2, .worth = 1},
        {.down = 2, .stages = 3, .worth = 0.93}};
    static const struct conv_box folded_ways[] = {{.down = 8, .stages = 9, .worth = 1},
                                                  {.down = 4, .stages = 12, .worth = 0.98}};
    static const struct conv_box lean_folded_ways[] = {{.down = 4, .stages = 4, .worth = 1},
                                                       {.down = 8, .stages = 2, .worth = 0.98}};
    if (c->pixel > 0) {
        bool lean = conv_is_lean(c);
        return conv_box_of(c, lean ? lean_folded_ways : folded_ways, COUNT(folded_ways));
    }
    if (conv_is_lean(c)) {
        return conv_box_of(c, lean_ways, COUNT(lean_ways));
    }
    return conv_box_of(c, ways, COUNT(ways));
}

// As many that the last round of workgroups is nearly full, and no more: slabs take time too.
static struct runs runs_of(const struct conv_case *c, const struct conv_box *box) {
    uint32_t units = conv_units(c);
    uint32_t tiles = tiles_of(c), boxes = box->across * box->below * box->deep, best = 1;
    double least = conv_ceil_div(tiles, units);
    for (uint32_t parts = 2; parts * tiles <= MOST_GROUPS && parts <= boxes; parts++) {
        double time = (double)conv_ceil_div(parts * tiles, units) / parts;
        if (time < 0.95 * least) {
            best = parts;
            least = time;
        }
    }
    uint32_t each = conv_ceil_div(boxes, best);
    return (struct runs){conv_ceil_div(boxes, each), each};
}

static struct conv_box own_box(const struct conv_case *c) {
    struct conv_box box = box_of(c->stands_for ? c->stands_for : c);
    return conv_box_at(c, &box);
}

// Slabs of sums; one run writes a slab too, where the sums are added to what is there.
static uint64_t scratch(const struct conv_case *c) {
    struct conv_box box = own_box(c);
    uint64_t parts = (uint64_t)runs_of(c, &box).parts * slabs_of(c);
    return parts > 1 || c->desc->add ? parts * conv_weights(c) * 4 : 0;
}

static bool usable(const struct conv_case *c) {
    return c->desc->pass == GRT_CONV_WEIGHT && tiles_of(c) <= MOST_GROUPS && conv_box_suits(c) &&
           scratch(c) / 4 <= grt_op_reach(c->dev);
}

// Blocks that are not full too: 32x32x160, 512 images, 0.69 of them, 454 and 460 us, by wgmma 940
// and by wgmma_48k 1780.
static bool pays(const struct conv_case *c) {
    double full = (double)c->window.channels * c->outputs / ((double)tiles_of(c) * BLOCK * BLOCK);
    return full >= 0.65 && box_of(c).worth >= 0.7;
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    const struct grt_conv2d_desc *d = c->desc;
    struct conv_box box = own_box(c);
    struct runs runs = runs_of(c, &box);
    bool slabs = scratch(c) > 0;
    struct conv_params params = conv_params_of(c);
    params.boxes_w = box.across;
    params.boxes_h = box.below;
    params.parts = runs.parts;
    params.bunch = runs.each;
    struct grt_range out = slabs ? grt_op_part(d->scratch, 0, scratch(c)) : d->w->range;
    const uint32_t groups[3] = {tiles_of(c) * runs.parts, 1, 1};
    grt_op_launch(
        graph,
        grt_kernel_desc(.name = "conv_wgmma_columns_16f32", .specs = {{"WG", lanes_of(c)},
                                                                      {"KIND", c->type == GRT_BF16},
                                                                      {"WIDE", box.wide},
                                                                      {"DOWN", box.down},
                                                                      {"STAGES", box.stages},
                                                                      {"JOINED", box.joined},
                                                                      {"HIGH", c->window.size},
                                                                      {"BROAD", conv_across(c)}}),
        &params, sizeof params, (const struct grt_range[]){d->x->range, d->y->range, out}, 3,
        groups);
    grt_graph_operations(graph, conv_operations(c));
    if (slabs) {
        conv_add_slabs(graph, c, out, runs.parts * slabs_of(c));
    }
}

static void tile(const struct conv_case *c, char text[CONV_TILE_TEXT]) {
    struct conv_box box = box_of(c);
    conv_box_text(&box, text);
}

const struct conv_variant conv_variant_wgmma_columns = {"wgmma_columns", usable, pays, record,
                                                        scratch,         false,  tile};
