// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: where the rows of one array go, and as what.
#ifndef GRT_SINK_H
#define GRT_SINK_H

#include "data/file/array.h"
#include "data/file/tiles.h"

enum grt_sink_as {
    GRT_SINK_F32,
    GRT_SINK_CLASS,  // u32
    GRT_SINK_DOUBLE,
    GRT_SINK_ELEMENT,  // as in the file
};

struct grt_sink {
    const struct grt_array *array;
    struct grt_tiles *tiles;  // NULL: not compressed
    const unsigned char
        *base;  // the array's bytes in memory, byte 0 of the file first; NULL: on disk
    enum grt_sink_as as;
    unsigned char *out;  // of the first row of the batch, at the array's first feature
    uint64_t width;      // numbers of a row
    uint64_t pitch;      // numbers from one point to the next
    uint32_t size;       // bytes of a number
    uint32_t classes;
    bool counted;                 // cross_entropy(N) says how many classes there are
    const struct grt_norm *norm;  // NULL: not normalised
    uint64_t feature;             // norm: the array's first
    uint64_t step;                // norm: features from one point to the next; 0: points share them
};

// Whether a row is one piece in the file and as it is what goes out.
bool grt_sink_straight(const struct grt_sink *sink);
// The part of a row that lies in tile (b, c) of its kind, to place `at` of the batch. It has this
// machine's byte order.
bool grt_sink_put(const struct grt_sink *sink, uint64_t row, uint64_t at, uint64_t b, uint64_t c,
                  const unsigned char *slab, struct grt_fault *fault);

#endif
