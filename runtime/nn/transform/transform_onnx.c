// SPDX-License-Identifier: Apache-2.0
// A pass of transforms in evaluation as ONNX: the box in the middle of an image in the size of the
// result is a matrix from the left and one from the right, whose rows are the weights of
// shaders/image/lib/image_taps.k; so no reader's own way of resizing matters.
#include <math.h>
#include <stdlib.h>

#include "shaders/host.h"
#include "transform_parts.h"
#include "shaders/image/lib/transform_params.k"

struct span {  // of a side: where the box begins in it, and how long it is
    uint32_t first, length;
};

// Half of a number, of two wholes the even one, as image_box.k has it.
static uint32_t half(uint32_t d) {
    uint32_t q = d / 2;
    return d % 2 != 0 && q % 2 != 0 ? q + 1 : q;
}

static uint32_t limited(double length, uint32_t most) {
    double whole = nearbyint(length);
    return whole < 1 ? 1 : whole < most ? (uint32_t)whole : most;
}

static void middle(const struct transform_params *p, double log_shape, struct span *down,
                   struct span *along) {
    *down = (struct span){0, p->height};
    *along = (struct span){0, p->width};
    if (p->kind == BOX_MIDDLE || p->kind == BOX_CROP) {
        *down = (struct span){half(p->height - p->out_height), p->out_height};
        *along = (struct span){half(p->width - p->out_width), p->out_width};
    } else if (p->kind == BOX_RESIZED) {
        double ratio = log((double)p->width / p->height);
        down->length =
            ratio < log_shape ? limited(p->width / exp(log_shape), p->height) : p->height;
        along->length =
            ratio > log_shape ? limited(p->height * exp(log_shape), p->width) : p->width;
        down->first = (p->height - down->length) / 2;
        along->first = (p->width - along->length) / 2;
    }
}

// [out][size], or turned [size][out].
static const char *matrix(struct grt_onnx *onnx, uint32_t size, uint32_t out, struct span box,
                          bool turned) {
    const uint64_t shape[2] = {turned ? size : out, turned ? out : size};
    float *m = calloc((size_t)size * out, sizeof *m);
    double scale = (double)box.length / out, support = scale > 1 ? scale : 1;
    for (uint32_t i = 0; m && i < out; i++) {
        double centre = scale * (i + 0.5), sum = 0;
        for (uint32_t pass = 0; pass < 2; pass++) {
            for (uint32_t k = 0; k < box.length; k++) {
                double weight = 1 - fabs(k - centre + 0.5) / support;
                size_t at =
                    turned ? (size_t)(box.first + k) * out + i : (size_t)i * size + box.first + k;
                if (weight > 0 && pass == 0) {
                    sum += weight;
                } else if (weight > 0) {
                    m[at] = (float)(weight / sum);
                }
            }
        }
    }
    const char *name = m ? grt_onnx_reals(onnx, 2, shape, m)
                         : grt_onnx_refuse(onnx, "no host memory for a transform").name;
    free(m);
    return name;
}

static const char *by_channel(struct grt_onnx *onnx, uint32_t channels, const float four[4]) {
    const uint64_t shape[3] = {channels, 1, 1};
    float *all = malloc((channels + 1) * sizeof *all);
    for (uint32_t i = 0; all && i < channels; i++) {
        all[i] = four[i < TRANSFORM_CHANNELS ? i : TRANSFORM_CHANNELS - 1];
    }
    const char *name = all ? grt_onnx_reals(onnx, 3, shape, all)
                           : grt_onnx_refuse(onnx, "no host memory for a transform").name;
    free(all);
    return name;
}

struct grt_onnx_value transform_onnx(struct grt_onnx *onnx, struct grt_onnx_value x,
                                     const struct transform_params *p, double log_shape) {
    const float scale[] = {p->scale0, p->scale1, p->scale2, p->scale3};
    const float shift[] = {p->shift0, p->shift1, p->shift2, p->shift3};
    struct span down, along;
    middle(p, log_shape, &down, &along);
    x = grt_onnx_planes(onnx, x);
    if (down.length != p->out_height || down.length != p->height) {
        const char *left = matrix(onnx, p->height, p->out_height, down, false);
        x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "MatMul", .inputs = {left, x.name}));
    }
    if (along.length != p->out_width || along.length != p->width) {
        const char *right = matrix(onnx, p->width, p->out_width, along, true);
        x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "MatMul", .inputs = {x.name, right}));
    }
    bool normal = false;
    for (uint32_t i = 0; i < TRANSFORM_CHANNELS; i++) {
        normal = normal || scale[i] != 1.0f || shift[i] != 0.0f;
    }
    if (normal) {
        const char *by = by_channel(onnx, p->channels, scale);
        x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "Mul", .inputs = {x.name, by}));
        by = by_channel(onnx, p->channels, shift);
        x.name = grt_onnx_add(onnx, grt_onnx_node(.op = "Add", .inputs = {x.name, by}));
    }
    return x;
}
