// SPDX-License-Identifier: Apache-2.0
// Inside runtime/ops/conv/: one convolution with all that was checked and derived, and the table of
// variants.
#ifndef GRT_CONV_CASE_H
#define GRT_CONV_CASE_H

#include "gpurt/conv.h"
#include "device/internal.h"
#include "ops/windows.h"
#include "shaders/host.h"
#include "shaders/image/lib/conv_params.k"

struct conv_case {
    struct grt_dev *dev;
    const struct grt_conv2d_desc *desc;
    struct grt_window window;
    uint32_t rows, outputs;
    enum grt_dtype type;  // of images and weights
    enum grt_dtype out;   // of what is written
    // Of folded images (folded.c), whose windows are one tap wide: numbers from a pixel of x to the
    // next, and from a row to the next. Else 0.
    uint32_t pixel, line;
    // In a check: the case that it stands for, whose tile it is to have; else NULL.
    const struct conv_case *stands_for;
};

#define CONV_TILE_TEXT 64

// Extents of a check.
struct conv_extents {
    uint32_t rows, height, width, channels, outputs;
};

// A way to do a convolution. Rows stand in order of preference, and the first that is usable and
// pays does it: patches at the latest.
struct conv_variant {
    const char *name;
    // Whether it can do the case on this device.
    bool (*usable)(const struct conv_case *c);
    // Whether it should, before the rows that follow; NULL: always.
    bool (*pays)(const struct conv_case *c);
    // Records it; a failure is rejected to the graph.
    void (*record)(struct grt_graph *graph, const struct conv_case *c);
    uint64_t (*scratch)(const struct conv_case *c);  // bytes; NULL: none
    bool trusted;                                    // made of ops that are checked themselves
    // Which of its kernels does a case that is usable, in words; NULL: the pass, types, stride and
    // channels tell. Each is checked by itself.
    void (*tile)(const struct conv_case *c, char text[CONV_TILE_TEXT]);
    // Changes those of a check where this case and one so small would have different kernels; NULL:
    // they have the same.
    void (*extents)(const struct conv_case *c, struct conv_extents *e);
};

extern const struct conv_variant *const conv_variants[];
extern const uint32_t conv_variant_count;

extern const struct conv_variant conv_variant_product;
extern const struct conv_variant conv_variant_folded;
extern const struct conv_variant conv_variant_wgmma_w_registers;
extern const struct conv_variant conv_variant_wgmma_x_registers;
extern const struct conv_variant conv_variant_wgmma_columns;
extern const struct conv_variant conv_variant_wgmma;
extern const struct conv_variant conv_variant_wgmma_48k;
extern const struct conv_variant conv_variant_panel;
extern const struct conv_variant conv_variant_widened;
extern const struct conv_variant conv_variant_tiled;
extern const struct conv_variant conv_variant_patches;

// What a convolution of these tensors is; they fit together.
void conv_fill_case(struct conv_case *c, struct grt_dev *dev, const struct grt_conv2d_desc *desc);
// Those of the check of a variant for this case: few and small, and its kernel is the same.
struct conv_extents conv_check_extents(const struct conv_case *c,
                                       const struct conv_variant *variant);
// Whether a variant may do this case (check.c).
bool conv_trusted(const struct conv_case *c, const struct conv_variant *variant);

// A box of pixels in rows of eight, WIDE of each image (cl/nvidia/lib/conv_boxes.k).
struct conv_box {
    uint32_t down, stages;
    double worth;  // of a full one, beside others; then times the share of it that is inside
    bool joined;   // all columns of taps read one box, where rows are of one image
    uint32_t wide;
    uint32_t across, below, deep;  // boxes of all images
};
// The best of `count` ways, whose first line alone is filled in; 3x3, stride 1, padding 1.
struct conv_box conv_box_of(const struct conv_case *c, const struct conv_box *ways, uint32_t count);
// The same box over the images of another case.
struct conv_box conv_box_at(const struct conv_case *c, const struct conv_box *box);
// In words.
void conv_box_text(const struct conv_box *box, char text[CONV_TILE_TEXT]);
// Whether a convolution of 16 bits is of that kind, on a device that runs such kernels.
bool conv_box_suits(const struct conv_case *c);

// Whether kernels have 48 KiB of shared memory and no more, as imported ones on a queue with
// graphics or by an older driver.
static inline bool conv_is_lean(const struct conv_case *c) {
    return c->dev->info.caps.imports == 1;
}

// A tensor as a matrix.
struct grt_tensor conv_matrix(const struct grt_tensor *tensor, uint64_t rows, uint64_t cols);
// Numbers of a patch.
uint64_t conv_depth(const struct conv_case *c);
// Taps of a window across.
uint32_t conv_across(const struct conv_case *c);
// And of all patches, that is of the weights.
uint64_t conv_weights(const struct conv_case *c);
// Compute units of the device, or a guess.
uint32_t conv_units(const struct conv_case *c);
static inline uint32_t conv_ceil_div(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}
// Floating-point operations of a pass: a multiplication and an addition for each tap.
double conv_operations(const struct conv_case *c);
// Pixels of an image of y.
uint64_t conv_pixels(const struct conv_case *c);
// Adds up slabs of a gradient of weights, in their order, into it, or to it as the case asks.
void conv_add_slabs(struct grt_graph *graph, const struct conv_case *c, struct grt_range slabs,
                    uint32_t count);
// What kernels are told of it, boxes and parts aside.
struct conv_params conv_params_of(const struct conv_case *c);

#endif
