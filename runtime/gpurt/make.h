// SPDX-License-Identifier: Apache-2.0
// Data with a known answer, for benchmarks, tests and first steps: HDF5 files with x and y, and the
// loss that the best possible model reaches as an attribute.
#ifndef GRT_MAKE_H
#define GRT_MAKE_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_MAKES(X)                                                                               \
    X(REGRESSION, "regression")         /* x [N][D] normal; y [N][1] smooth in x, plus noise */    \
    X(CLASSIFICATION, "classification") /* x [N][D] around one centre a class; y [N] i32 */        \
    X(POINTS, "points") /* x [N][P][D]; y [N][1] the same for any order of points */               \
    X(SHAPES, "shapes") /* x [N][S][S][3] u8, one shape of any place, size, colour; y [N] i32 */

enum grt_make {
#define X(name, text) GRT_MAKE_##name,
    GRT_MAKES(X)
#undef X
        GRT_MAKE_COUNT,
};
GRT_API const char *grt_make_text(enum grt_make make);
#define GRT_MAKE_SHAPE_COUNT 10  // kinds of shapes, each a class

struct grt_make_desc {
    const char *path;  // appears under its name when it is complete
    enum grt_make make;
    uint64_t samples;
    uint32_t features;
    uint32_t points;   // points: 0: 64
    uint32_t classes;  // classification, shapes (at most 10): 0: 10
    uint32_t pixels;   // shapes: of a side, 8 to 1024; 0: 16
    double noise;      // standard deviation of what no model can know; negative: 0.1, classes 1;
                       // of shapes in parts of 255
    uint64_t seed;
    uint64_t chunk;      // rows of a chunk; 0: contiguous, or 1024 with deflate
    uint32_t deflate;    // 0 to 9; 0: none. Shuffle goes with it
    bool (*stop)(void);  // asked now and then; may be NULL
    void (*progress)(uint64_t done, uint64_t of);  // may be NULL
};
#define grt_make_desc(...) GRT_DESC(struct grt_make_desc, __VA_ARGS__)

// Writes /x and /y. Attributes of the file: gpurt_make ("regression"), seed, noise, classes,
// class_names (of shapes), and noise_floor (not of shapes): the mean squared error, or the share of
// rows taken for another class, that no model goes below but by luck.
GRT_API bool grt_data_make(const struct grt_make_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
