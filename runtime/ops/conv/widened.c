// SPDX-License-Identifier: Apache-2.0
// 16-bit convolutions on OpenCL CPU drivers, which compute in f32 anyway: what is read is widened,
// panel.c does the rest, and what it writes is narrowed. Patches, gathered and multiplied in 16
// bits, took a step of ResNet-18 of 8 images 5 times as long as in f32 (PoCL, two cores,
// 2026-11-17).
#include "case.h"

#include "gpurt/ops.h"
#include "ops/op_support.h"

enum { X, W, Y, COUNT };

// The same convolution in f32.
struct wide {
    struct grt_tensor tensors[COUNT];
    struct grt_conv2d_desc desc;
    struct conv_case conv;
    bool held[COUNT];  // in the scratch
    uint64_t bytes;    // of those
};

static uint64_t part_bytes(const struct grt_tensor *tensor) {
    uint64_t bytes = grt_tensor_count(tensor) * 4;
    return (bytes + GRT_OP_PART_ALIGN - 1) / GRT_OP_PART_ALIGN * GRT_OP_PART_ALIGN;
}

// Where the scratch is known its parts have places.
static void widen(struct wide *wide, const struct conv_case *c) {
    const struct grt_tensor *tensors[COUNT] = {c->desc->x, c->desc->w, c->desc->y};
    *wide = (struct wide){.desc = *c->desc};
    for (uint32_t i = 0; i < COUNT; i++) {
        wide->tensors[i] = *tensors[i];
        wide->held[i] = tensors[i]->dtype != GRT_F32;
        if (!wide->held[i]) {
            continue;
        }
        wide->tensors[i].dtype = GRT_F32;
        wide->tensors[i].range =
            grt_op_part(c->desc->scratch, wide->bytes, grt_tensor_count(tensors[i]) * 4);
        wide->bytes += part_bytes(tensors[i]);
    }
    wide->desc.x = &wide->tensors[X];
    wide->desc.w = &wide->tensors[W];
    wide->desc.y = &wide->tensors[Y];
    wide->desc.variant = NULL;
    conv_fill_case(&wide->conv, c->dev, &wide->desc);
}

static bool usable(const struct conv_case *c) {
    struct wide wide;
    widen(&wide, c);
    return c->type != GRT_F32 && conv_variant_panel.usable(&wide.conv);
}

static bool pays(const struct conv_case *c) {
    struct wide wide;
    widen(&wide, c);
    return c->type != GRT_F32 && conv_variant_panel.pays(&wide.conv);
}

static uint64_t scratch(const struct conv_case *c) {
    struct wide wide;
    widen(&wide, c);
    return wide.bytes + conv_variant_panel.scratch(&wide.conv);
}

static void record(struct grt_graph *graph, const struct conv_case *c) {
    const struct grt_tensor *tensors[COUNT] = {c->desc->x, c->desc->w, c->desc->y};
    uint32_t written = c->desc->pass == GRT_CONV_FORWARD ? Y
                       : c->desc->pass == GRT_CONV_DATA  ? X
                                                         : W;
    struct wide wide;
    widen(&wide, c);
    uint64_t more = conv_variant_panel.scratch(&wide.conv);
    wide.desc.scratch = more ? grt_op_part(c->desc->scratch, wide.bytes, more) : c->desc->scratch;
    for (uint32_t i = 0; i < COUNT; i++) {
        if (wide.held[i] && (i != written || c->desc->add)) {
            grt_op_convert(graph, &wide.tensors[i], tensors[i]);
        }
    }
    conv_variant_panel.record(graph, &wide.conv);
    if (wide.held[written]) {
        grt_op_convert(graph, tensors[written], &wide.tensors[written]);
    }
}

const struct conv_variant conv_variant_widened = {"widened", usable, pays, record, scratch, false};
