// SPDX-License-Identifier: Apache-2.0
// Boxes of rows of eight pixels, of kernels that read a column of three taps at once.
#include <stdio.h>

#include "case.h"

#define NARROWEST 2u  // pixels of an image in a row of eight

struct conv_box conv_box_at(const struct conv_case *c, const struct conv_box *box) {
    struct conv_box b = *box;
    b.across = conv_ceil_div(c->window.out_width, b.wide);
    b.below = conv_ceil_div(c->window.out_height, b.down);
    b.deep = conv_ceil_div(c->rows, 8 / b.wide);
    return b;
}

// Rows of eight are of one image, two or four, where one is as narrow.
struct conv_box conv_box_of(const struct conv_case *c, const struct conv_box *ways,
                            uint32_t count) {
    const struct grt_window *w = &c->window;
    struct conv_box best = {0};
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t wide = 8; wide >= (ways[i].joined ? 8 : NARROWEST); wide /= 2) {
            struct conv_box b = ways[i];
            b.wide = wide;
            b = conv_box_at(c, &b);
            double pixels = (double)b.across * wide * b.below * b.down;
            b.worth *= (double)w->out_width * w->out_height / pixels;
            best = b.worth > best.worth ? b : best;
        }
    }
    return best;
}

void conv_box_text(const struct conv_box *box, char text[CONV_TILE_TEXT]) {
    snprintf(text, CONV_TILE_TEXT, "%ux%u pixels%s, %u stages", box->wide, box->down,
             box->joined ? " joined" : "", box->stages);
}

bool conv_box_suits(const struct conv_case *c) {
    const struct grt_window *w = &c->window;
    bool sixteen = c->type == GRT_F16 || c->type == GRT_BF16;
    bool folded = c->pixel > 0 && c->desc->pass != GRT_CONV_DATA;
    bool plain = c->pixel == 0 && w->size == 3 && w->stride == 1 && w->padding == 1;
    return sixteen && (plain || folded) && (w->channels | c->outputs) % 8 == 0 &&
           (uint64_t)c->rows * w->height * w->width < 1u << 30 &&
           grt_kernel_builds(c->dev, "probe_wgmma_48k");
}
