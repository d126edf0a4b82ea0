// SPDX-License-Identifier: Apache-2.0
// A list of transforms by itself, over images of whole numbers from 0 to 255 that follow from their
// index, and what it drew.
#ifndef TEST_TRANSFORM_KIT_H
#define TEST_TRANSFORM_KIT_H

#include "harness/harness.h"
#include "gpurt/network.h"

#define BOX_SIZE 8      // words of a box
#define COLOUR_SIZE 12  // of what was done to colours

struct transform_kit {
    struct grt_module *module;
    struct grt_params *params;
    struct grt_plan *plan;
    struct grt_net *net;  // the module keeps its place
    struct grt_shape in, out;
    uint64_t rows;
    struct grt_tensor *x, *y;
    struct grt_buf *state;
    float *images;
    bool training;
    uint32_t micro;
};
// `evaluated`: the steps of evaluations, or NULL.
struct transform_kit transform_begin(enum grt_dtype dtype, const char *text, const char *evaluated,
                                     const struct grt_shape *in, uint64_t rows);
void transform_run(struct transform_kit *kit, uint32_t step);
// The result, f32 or f16, in f32.
float *transform_result(const struct transform_kit *kit);
// Of each row, to be freed.
int32_t *transform_boxes(const struct transform_kit *kit, uint32_t pass);
uint32_t *transform_colours(const struct transform_kit *kit, uint32_t pass);
void transform_end(struct transform_kit *kit);
// That a list is refused when it is declared, with this sentence.
void transform_refuse(const char *text, const char *evaluated, const struct grt_shape *in,
                      const char *why);

// A number in [0, 1) of another generator than the kernels'.
double transform_uniform(uint64_t *seed);
// Whether two samples are of one distribution: Kolmogorov and Smirnov's distance, at one in a
// thousand. Sorts both.
void transform_alike(const char *what, double *a, size_t n, double *b, size_t m);

#endif
