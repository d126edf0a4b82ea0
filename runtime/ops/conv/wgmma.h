// SPDX-License-Identifier: Apache-2.0
// Inside runtime/ops/conv/: how convolutions whose tiles are boxes of pixels are laid out
// (cl/nvidia/lib/conv_boxes.k).
#ifndef GRT_CONV_WGMMA_H
#define GRT_CONV_WGMMA_H

#include "case.h"
#include "ops/gemm/case.h"

// Boxes of pixels, by powers of two, and how many of them images are.
struct conv_boxes {
    uint32_t w, h, images;
    uint32_t across, down, deep;
    uint64_t steps;  // boxes times taps that read something
};

struct conv_way {
    struct gemm_tile tile;  // bm pixels, or outputs
    uint32_t stages, lanes;
    uint32_t depth;  // numbers of a step
};

struct conv_choice {
    struct conv_way way;
    struct conv_boxes boxes;
    struct gemm_schedule schedule;
};

// The ways of a variant.
struct conv_kind {
    bool lean;       // in 48 KiB of shared memory
    bool registers;  // and pixels are in registers, weights alone in shared memory
    const struct conv_way *ways, *weight_ways;
    uint32_t way_count, weight_way_count;
};

// The quickest way, or the one that the profile sets; in a check, that of the case that it stands
// for.
struct conv_choice conv_choose(const struct conv_case *c, const struct conv_kind *kind);
// Its kernel in words: the tile, and what else it is made for.
void conv_choice_text(const struct conv_case *c, const struct conv_kind *kind,
                      char text[CONV_TILE_TEXT]);
// See struct conv_variant.
void conv_choice_extents(const struct conv_case *c, const struct conv_kind *kind,
                         struct conv_extents *e);
// What a kernel is told.
struct conv_params conv_choice_params(const struct conv_case *c, const struct conv_choice *choice);
// Whether the copy engine and boxes of pixels can do a convolution: of 16 bits, and so on.
bool conv_choice_suits(const struct conv_case *c);

#endif
