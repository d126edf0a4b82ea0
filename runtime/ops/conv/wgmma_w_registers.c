// SPDX-License-Identifier: Apache-2.0
// 16-bit convolutions 3x3 that read few channels, on Hopper's matrix units with the weights in
// registers: cl/nvidia/lib/conv_wgmma_w_registers.k. On OpenCL and, as PTX, on Vulkan.
//
// TFLOP/s forward, back by this / by wgmma or wgmma_48k (H200, driver 580.159.04, 2026-11-17):
//
//                     OpenCL                  Vulkan
//     32x32x64        528 532 / 381 387       509 502 / 132 133
//     24x24x64        505 492 / 383 384       472 474 / 141 148
//     16x16x128       544 548 / 573 567       508 498 / 311 308
#include "case.h"
#include "cl/nvidia/lib/wgmma_limits.k"
#include "ops/op_support.h"

#define LANES 256u
#define BLOCK 64u  // channels
#define MOST_CHANNELS 128u
#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_back(const struct conv_case *c) {
    return c->desc->pass == GRT_CONV_DATA;
}

static uint32_t from_of(const struct conv_case *c) {
    return is_back(c) ? c->outputs : c->window.channels;
}

static uint32_t to_of(const struct conv_case *c) {
    return is_back(c) ? c->window.channels : c->outputs;
}

// Windows of folded images (folded.c).
static bool is_folded(const struct conv_case *c) {
    return c->pixel > 0;
}

static bool usable(const struct conv_case *c) {
    return c->desc->pass != GRT_CONV_WEIGHT && c->out == c->type && !c->desc->add &&
           from_of(c) <= (is_folded(c) ? BLOCK : MOST_CHANNELS) &&
           conv_ceil_div(to_of(c), BLOCK) <= MOST_GROUPS && conv_box_suits(c);
}

// Lean ones within 48 KiB.
static struct conv_box box_of(const struct conv_case *c) {
    static const struct conv_box ways[] = {{.down = 16, .stages = 2, .worth = 1.02},
                                           {.down = 8, .stages = 4, .worth = 1}};
    static const struct conv_box lean_ways[] = {{.down = 16, .stages = 1, .worth = 1.02},
                                                {.down = 8, .stages = 2, .worth = 1},
                                                {.down = 12, .stages = 1, .worth = 0.99}};
    static const struct conv_box folded_ways[] = {{.down = 16, .stages = 3, .worth = 1.02},
                                                  {.down = 8, .stages = 4, .worth = 1}};
    static const struct conv_box lean_folded_ways[] = {{.down = 16, .stages = 1, .worth = 1.02},
                                                       {.down = 8, .stages = 1, .worth = 1}};
    bool lean = conv_is_lean(c);
    if (is_folded(c)) {
        return conv_box_of(c, lean ? lean_folded_ways : folded_ways, COUNT(folded_ways));
    }
    return lean ? conv_box_of(c, lean_ways, COUNT(lean_ways)) : conv_box_of(c, ways, COUNT(ways));
}

static bool pays(const struct conv_case *c) {
    uint32_t from = from_of(c);
    bool full = from % BLOCK == 0 && to_of(c) % BLOCK == 0;
    bool few = from <= (conv_is_lean(c) ? MOST_CHANNELS : BLOCK);
    return full && few && box_of(c).worth >= 0.75;
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    const struct grt_conv2d_desc *d = c->desc;
    const struct conv_case *meant = c->stands_for ? c->stands_for : c;
    struct conv_box box = box_of(meant);
    box = conv_box_at(c, &box);
    struct conv_params params = conv_params_of(c);
    params.boxes_w = box.across;
    params.boxes_h = box.below;
    uint32_t units = conv_units(c);
    uint32_t blocks = conv_ceil_div(to_of(c), BLOCK), boxes = box.across * box.below * box.deep;
    uint32_t runs = units / blocks > 0 ? units / blocks : 1;
    runs = boxes < runs ? boxes : runs;
    const uint32_t groups[3] = {runs * blocks, 1, 1};
    bool back = is_back(c);
    grt_op_launch(graph,
                  grt_kernel_desc(.name = "conv_wgmma_w_registers_16",
                                  .specs = {{"WG", LANES},
                                            {"BACK", back},
                                            {"KIND", c->type == GRT_BF16},
                                            {"BIAS", d->bias != NULL},
                                            {"WIDE", box.wide},
                                            {"DOWN", box.down},
                                            {"STAGES", box.stages},
                                            {"CHUNKS", conv_ceil_div(from_of(meant), BLOCK)},
                                            {"HIGH", c->window.size},
                                            {"BROAD", conv_across(c)}}),
                  &params, sizeof params,
                  (const struct grt_range[]){back ? d->y->range : d->x->range, d->w->range,
                                             back ? d->x->range : d->y->range,
                                             d->bias ? d->bias->range : grt_op_unused(graph)},
                  4, groups);
    grt_graph_operations(graph, conv_operations(c));
}

static void tile(const struct conv_case *c, char text[CONV_TILE_TEXT]) {
    struct conv_box box = box_of(c);
    conv_box_text(&box, text);
}

const struct conv_variant conv_variant_wgmma_w_registers = {
    "wgmma_w_registers", usable, pays, record, NULL, false, tile};
