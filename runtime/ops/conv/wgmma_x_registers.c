// SPDX-License-Identifier: Apache-2.0
// 16-bit convolutions of many channels on Hopper's matrix units, forward and back to x, with the
// pixels in registers: cl/nvidia/lib/conv_wgmma_x_registers.k. For Vulkan, as PTX, where there
// are 48 KiB of shared memory, and for tiles of 160 channels; on OpenCL it runs for tests.
//
//     scratch   forward, the weights transposed
//
// us forward and back by this / by wgmma_48k / by wgmma on OpenCL (H200, driver 580.159.04,
// 2026-11-18 and, the others, 2026-11-17): 1024 images of 8x8x256 146 143 / 194 191 / 118 117,
// 4x4x512 122 112 / 160 159 / 92 93; 512 of 32x32x160 507 505 / - / 490 621, 16x16x320 471 468 /
// - / 381 388, 8x8x640 458 445 / - / 333 337.
#include "gpurt/ops.h"
#include "ops/op_support.h"
#include "wgmma.h"

#define MOST_SIZE 5u  // of windows: their taps are bits of a word
#define COUNT(array) (sizeof(array) / sizeof *(array))

// Microseconds of a step of 32 channels and of a tile's ends, fitted to bench conv (H200, Vulkan,
// driver 580.159.04, 2026-11-18); those of 64 and 128x128 are estimates.
static const struct conv_way ways[] = {
    {{256, 160, 1, 0.602, 4.5}, 7, 384, 32},  {{256, 128, 1, 0.494, 4.2}, 10, 384, 32},
    {{128, 256, 1, 0.423, 5.5}, 5, 384, 32},  {{128, 160, 1, 0.351, 3.5}, 7, 384, 32},
    {{128, 128, 1, 0.290, 3.2}, 10, 384, 32}, {{256, 64, 1, 0.290, 3.5}, 20, 384, 32},
    {{128, 64, 1, 0.180, 2.8}, 20, 384, 32},
};
static const struct conv_kind kind = {
    .lean = true, .registers = true, .ways = ways, .way_count = COUNT(ways)};

static bool is_back(const struct conv_case *c) {
    return c->desc->pass == GRT_CONV_DATA;
}

static bool usable(const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    uint64_t most = (uint64_t)1 << 31;
    return c->desc->pass != GRT_CONV_WEIGHT && w->size <= MOST_SIZE && conv_choice_suits(c) &&
           (uint64_t)w->height * w->width * w->channels < most &&
           conv_pixels(c) * c->outputs < most &&
           c->rows * conv_pixels(c) * c->outputs / 8 <= UINT32_MAX &&
           (uint64_t)c->rows * w->height * w->width * w->channels / 8 <= UINT32_MAX &&
           grt_kernel_builds(c->dev, "probe_wgmma_48k");
}

static bool pays(const struct conv_case *c) {
    uint32_t from = is_back(c) ? c->outputs : c->window.channels;
    uint32_t to = is_back(c) ? c->window.channels : c->outputs;
    // With all of the shared memory 160 channels still gain: 512 images of 32x32x160 take 511 us
    // forward and 514 back by this, 567 and 646 by wgmma; 16x16x320 471 and 467, 446 and 468 (H200,
    // Vulkan, driver 580.159.04, 2026-11-18).
    bool gains = c->dev->info.caps.imports && to > 128 && to <= 160;
    return (conv_is_lean(c) || gains) && from >= 16 && to >= 16;
}

static uint64_t scratch(const struct conv_case *c) {
    return is_back(c) ? 0 : conv_weights(c) * grt_dtype_size(c->type);
}

// Times 32 channels that are loaded ahead: sums leave room for as many.
static uint32_t ahead_of(const struct gemm_tile *tile) {
    return tile->bm == 128 ? 3 : tile->bn <= 128 ? 2 : 1;
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    const struct grt_conv2d_desc *d = c->desc;
    struct conv_choice choice = conv_choose(c, &kind);
    struct conv_params params = conv_choice_params(c, &choice);
    const struct conv_way *way = &choice.way;
    bool back = is_back(c);
    struct grt_tensor w = conv_matrix(d->w, c->outputs, conv_depth(c));
    if (!back) {
        struct grt_tensor turned = conv_matrix(d->w, conv_depth(c), c->outputs);
        turned.range = grt_op_part(d->scratch, 0, scratch(c));
        grt_op_transpose(graph, &turned, &w);
        w = turned;
    }
    const uint32_t groups[3] = {choice.schedule.groups, 1, 1};
    grt_op_launch(graph,
                  grt_kernel_desc(.name = "conv_wgmma_x_registers_16",
                                  .specs = {{"WG", way->lanes},
                                            {"BACK", back},
                                            {"KIND", c->type == GRT_BF16},
                                            {"BETA", d->add},
                                            {"BIAS", d->bias != NULL},
                                            {"BN", way->tile.bn},
                                            {"STAGES", way->stages},
                                            {"SPLIT", choice.schedule.parts > 1},
                                            {"BM", way->tile.bm},
                                            {"AHEAD", ahead_of(&way->tile)}}),
                  &params, sizeof params,
                  (const struct grt_range[]){back ? d->y->range : d->x->range, w.range,
                                             back ? d->x->range : d->y->range,
                                             d->bias ? d->bias->range : grt_op_unused(graph)},
                  4, groups);
    grt_graph_operations(graph, conv_operations(c));
}

static void tile(const struct conv_case *c, char text[CONV_TILE_TEXT]) {
    conv_choice_text(c, &kind, text);
}

static void extents(const struct conv_case *c, struct conv_extents *e) {
    conv_choice_extents(c, &kind, e);
}

const struct conv_variant conv_variant_wgmma_x_registers = {
    "wgmma_x_registers", usable, pays, record, scratch, false, tile, extents};
