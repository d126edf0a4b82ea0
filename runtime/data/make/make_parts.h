// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: random numbers of made data, and images of shapes.
#ifndef GRT_MAKE_PARTS_H
#define GRT_MAKE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpurt/make.h"

// A generator with a state of 64 bits for each row, so a row does not depend on those before it.
struct grt_make_source {
    uint64_t state;
    double spare;
    bool has_spare;
};
struct grt_make_source grt_make_source(uint64_t seed, uint64_t row);
double grt_make_uniform(struct grt_make_source *source);  // between 0 and 1, neither of them
double grt_make_normal(struct grt_make_source *source);

extern const char *const grt_make_shape_names[GRT_MAKE_SHAPE_COUNT];
// Writes [pixels][pixels][3]. `noise` is a deviation in parts of 255.
void grt_make_shape(struct grt_make_source *source, uint32_t shape, uint32_t pixels, double noise,
                    uint8_t *image);

#endif
