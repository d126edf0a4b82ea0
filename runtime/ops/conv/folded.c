// SPDX-License-Identifier: Apache-2.0
// 16-bit convolutions with stride 2 over images of few channels, as the first layer of a network
// is: on Hopper's matrix units, by way of folded images (shaders/image/fold_16.k). Four pixels
// become one of 16 numbers, and a window of up to 8x8 taps one of 4x4 with stride 1. Four folded
// pixels side by side are 64 numbers one behind the other: a window of four taps down and one
// across, over 64 channels, from pixels that overlap. Margins are there as zeros.
//
//     scratch   folded images | folded weights, or their gradient | scratch of the convolution
//
// Patches of 7x7x3, written and read again, took 1.7 of 10.2 ms of a step of ResNet-18 with 1024
// images of 96x96 (H200, OpenCL, 2026-11-17).
#include <stdio.h>

#include "case.h"
#include "ops/op_support.h"

#define TAPS 4u    // of a window of folded pixels, each way
#define PIXEL 16u  // numbers of a folded pixel

struct folded {
    struct grt_tensor x, w;
    struct grt_conv2d_desc desc;
    struct conv_case conv, meant;  // of folded images; meant: what the outer case stands for
    const struct conv_variant *by;
    uint32_t before, shift;  // pixels above and left of the image, taps that are not there
    uint32_t height, width;  // of a folded image
    uint64_t x_bytes, w_bytes;
};

static uint64_t aligned(uint64_t bytes) {
    return (bytes + GRT_OP_PART_ALIGN - 1) / GRT_OP_PART_ALIGN * GRT_OP_PART_ALIGN;
}

static void fill_case(struct conv_case *to, const struct conv_case *c,
                      const struct grt_conv2d_desc *desc) {
    const struct grt_window *w = &c->window;
    *to = (struct conv_case){.dev = c->dev,
                             .desc = desc,
                             .window = {.size = TAPS,
                                        .stride = 1,
                                        .height = w->out_height + TAPS - 1,
                                        .width = w->out_width,
                                        .channels = TAPS * PIXEL,
                                        .out_height = w->out_height,
                                        .out_width = w->out_width},
                             .rows = c->rows,
                             .outputs = c->outputs,
                             .type = c->type,
                             .out = c->out,
                             .pixel = PIXEL,
                             .line = (w->out_width + TAPS - 1) * PIXEL};
}

// The first that is usable and pays, else that is usable, or NULL.
static const struct conv_variant *variant_of(const struct conv_case *c) {
    const struct conv_variant *const all[] = {
        &conv_variant_wgmma_w_registers, &conv_variant_wgmma_columns,
        &conv_variant_wgmma_x_registers, &conv_variant_wgmma,
        &conv_variant_wgmma_48k,         NULL};
    for (int any = 0; any < 2; any++) {
        for (uint32_t i = 0; all[i]; i++) {
            if ((any || all[i]->pays(c)) && all[i]->usable(c)) {
                return all[i];
            }
        }
    }
    return NULL;
}

// Where the scratch is known its parts have places.
static void fold(struct folded *f, const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    *f = (struct folded){.shift = w->padding % 2, .desc = *c->desc};
    f->before = w->padding + f->shift;
    f->height = w->out_height + TAPS - 1;
    f->width = w->out_width + TAPS - 1;
    f->x = (struct grt_tensor){.dtype = c->type,
                               .rank = 4,
                               .shape = {c->rows, f->height, f->width, PIXEL},
                               .label = "folded images"};
    f->w = (struct grt_tensor){.dtype = c->desc->w->dtype,
                               .rank = 4,
                               .shape = {c->outputs, TAPS, TAPS, PIXEL},
                               .label = "folded weights"};
    f->x_bytes = aligned(grt_tensor_bytes(&f->x));
    f->w_bytes = aligned(grt_tensor_bytes(&f->w));
    f->x.range = grt_op_part(c->desc->scratch, 0, grt_tensor_bytes(&f->x));
    f->w.range = grt_op_part(c->desc->scratch, f->x_bytes, grt_tensor_bytes(&f->w));
    f->desc.x = &f->x;
    f->desc.w = &f->w;
    f->desc.stride = 1;
    f->desc.padding = 0;
    f->desc.add = false;
    f->desc.variant = NULL;
    fill_case(&f->conv, c, &f->desc);
    if (c->stands_for) {
        fill_case(&f->meant, c->stands_for, &f->desc);
        f->conv.stands_for = &f->meant;
    }
    // A check does with the kernel that it stands for, where few small images allow it.
    const struct conv_variant *meant = c->stands_for ? variant_of(&f->meant) : NULL;
    f->by = meant && meant->usable(&f->conv) ? meant : variant_of(&f->conv);
}

static uint64_t scratch_of(const struct folded *f) {
    return f->by->scratch ? f->by->scratch(&f->conv) : 0;
}

static uint64_t scratch(const struct conv_case *c) {
    struct folded f;
    fold(&f, c);
    return f.x_bytes + f.w_bytes + scratch_of(&f);
}

static bool usable(const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    bool sixteen = c->type == GRT_F16 || c->type == GRT_BF16;
    if (!sixteen || c->desc->pass == GRT_CONV_DATA || w->stride != 2 || w->channels > PIXEL / 4 ||
        w->size + w->padding % 2 > 2 * TAPS ||
        (uint64_t)c->rows * w->height * w->width * w->channels > grt_op_reach(c->dev)) {
        return false;
    }
    struct folded f;
    fold(&f, c);
    return f.x_bytes / 4 <= grt_op_reach(c->dev) && f.by != NULL;
}

static bool pays(const struct conv_case *c) {
    return c->window.size >= 5 && c->outputs % 64 == 0;
}

static void record_weights(struct grt_graph *graph, const struct conv_case *c,
                           const struct folded *f, bool back, const struct grt_tensor *from,
                           const struct grt_tensor *to) {
    const struct fold_weights_params params = {.n = (uint32_t)grt_tensor_count(to)};
    struct grt_pieces pieces = grt_op_pieces(graph, params.n, 4);
    grt_op_next(&pieces);
    grt_op_stream(graph, &pieces,
                  grt_kernel_desc(.name = back ? "fold_weights_f32" : "fold_weights_16",
                                  .specs = {{"KIND", c->type == GRT_BF16},
                                            {"BACK", back},
                                            {"ADD", c->desc->add},
                                            {"SIZE", c->window.size},
                                            {"CHANNELS", c->window.channels},
                                            {"SHIFT", f->shift}}),
                  &params, sizeof params, (const struct grt_range[]){from->range, to->range}, 2);
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    struct folded f;
    fold(&f, c);
    uint64_t more = scratch_of(&f);
    if (more) {
        f.desc.scratch = grt_op_part(c->desc->scratch, f.x_bytes + f.w_bytes, more);
    }
    const struct fold_params params = {.n = (uint32_t)(grt_tensor_count(&f.x) / 8),
                                       .height = c->window.height,
                                       .width = c->window.width,
                                       .fold_height = f.height,
                                       .fold_width = f.width};
    struct grt_pieces pieces = grt_op_pieces(graph, params.n, 16);
    grt_op_next(&pieces);
    grt_op_stream(graph, &pieces,
                  grt_kernel_desc(.name = "fold_16", .specs = {{"CHANNELS", c->window.channels},
                                                               {"BEFORE", f.before}}),
                  &params, sizeof params, (const struct grt_range[]){c->desc->x->range, f.x.range},
                  2);
    bool forward = c->desc->pass == GRT_CONV_FORWARD;
    if (forward) {
        record_weights(graph, c, &f, false, c->desc->w, &f.w);
    }
    f.by->record(graph, &f.conv);
    if (!forward) {
        record_weights(graph, c, &f, true, &f.w, c->desc->w);
    }
}

static void tile(const struct conv_case *c, char text[CONV_TILE_TEXT]) {
    struct folded f;
    char inner[CONV_TILE_TEXT] = "";
    fold(&f, c);
    if (f.by->tile) {
        f.by->tile(&f.conv, inner);
    }
    snprintf(text, CONV_TILE_TEXT, "%.20s %.40s", f.by->name, inner);
}

const struct conv_variant conv_variant_folded = {"folded", usable, pays, record,
                                                 scratch,  false,  tile};
