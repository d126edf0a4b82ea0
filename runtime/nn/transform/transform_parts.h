// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: the steps of a list of transforms, as transform_steps.c reads them and
// transform.c makes passes of them.
#ifndef GRT_NN_TRANSFORM_PARTS_H
#define GRT_NN_TRANSFORM_PARTS_H

#include "nn/network/network_parts.h"

#define TRANSFORM_STEPS 16
#define TRANSFORM_CHANNELS 4  // with numbers of their own; the last of them serves all behind it
#define TRANSFORM_SIDE 16384

enum transform_kind {
    TRANSFORM_BOX,
    TRANSFORM_FLIP,
    TRANSFORM_JITTER,
    TRANSFORM_GREY,
    TRANSFORM_BLUR,
    TRANSFORM_ERASE,
    TRANSFORM_NORMALIZE,
    TRANSFORM_MIX,  // of all samples at once
};

// Of a step what its kind has.
struct transform_step {
    enum transform_kind kind;
    const char *name;
    uint32_t box;
    uint32_t size[2];  // height and width; 0: as the image. Of an erased square both sides
    uint32_t shorter;  // of resize: of the shorter side
    uint32_t padding;
    bool reflect;
    double p;  // share of the samples that it happens to
    double area[2], ratio[2];
    uint32_t operations;   // of color_jitter: bits of those that have a range
    double factors[4][2];  // their ranges, in the order of COLOUR_BRIGHTNESS and on
    uint32_t taps;         // of the blur
    double sigma[2];
    uint32_t erase;
    double alpha;  // of mixup and cutmix
    bool cut;
    uint32_t channels;  // that its numbers are given for; 0: any
    double fill[TRANSFORM_CHANNELS];
    double scale[TRANSFORM_CHANNELS], shift[TRANSFORM_CHANNELS], range;
};

// One step of a list; false with the sentence said.
bool transform_step_read(const struct network_reading *r, const struct grt_node *node,
                         struct transform_step *step);

struct transform_params;
// One pass of evaluations into an ONNX file (transform_onnx.c).
struct grt_onnx_value transform_onnx(struct grt_onnx *onnx, struct grt_onnx_value x,
                                     const struct transform_params *pass, double log_shape);

#endif
