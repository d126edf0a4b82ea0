// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: one data set of a file, as the threads that read it see it.
//
// Every shape is brought to three axes: [N] and [N][D] as [N][1][1] and [N][1][D], images
// [N][H][W][C] as [N][H W][C]. What lies
// together in the file is a tile: a chunk, or the whole array when it is contiguous. A tile is
// [t0][t1][t2] elements, so the part of one row in it, the slab, is t1 * t2 elements in one piece:
//
//     array [N][4][5], tiles [2][2][5]:    tile (0,0)  | row 0: 10 elements | row 1: 10 elements |
//                                          tile (0,1)  | row 0: the other 10 ...
//
// Tiles of images may have a part of each line: their middle axis is then counted by lines and
// columns of tiles, and a slab is `tile_width` pixels of each line.
//
// Tiles at the edge are stored in full size, beyond the array's shape.
#ifndef GRT_ARRAY_H
#define GRT_ARRAY_H

#include <stdint.h>

#include "gpurt/status.h"
#include "gpurt/dataset.h"
#include "element.h"

enum grt_filter { GRT_FILTER_SHUFFLE, GRT_FILTER_DEFLATE, GRT_FILTER_LZF, GRT_FILTER_SZIP };
#define GRT_MAX_FILTERS 4

struct grt_tile {
    uint64_t offset;   // in the file
    uint32_t stored;   // bytes there
    uint32_t skipped;  // bit i: filter i was not applied
};

struct grt_array {
    char name[256];
    struct grt_element element;
    uint64_t shape[3];
    uint32_t rank;           // in the file
    uint64_t tile[3];        // shape of a tile
    uint64_t width;          // pixels of a line, of images; else shape[1]
    uint64_t tile_width;     // the same of a tile
    uint64_t grid[3];        // tiles along each axis
    struct grt_tile *tiles;  // [grid0][grid1][grid2]
    uint64_t tile_bytes;     // before filters
    uint64_t slab_bytes;
    uint32_t filter_count;
    enum grt_filter filters[GRT_MAX_FILTERS];  // in the order they were applied
    // Of szip: options, pixels of a block, bits of a pixel, pixels of a line, as HDF5 has them.
    unsigned szip[4];
};

static inline uint64_t grt_array_tiles(const struct grt_array *array) {
    return array->grid[0] * array->grid[1] * array->grid[2];
}

// What went wrong in a thread that must not report by itself; the caller of the loader is told.
struct grt_fault {
    enum grt_status status;  // GRT_OK: nothing
    char text[512];
};
// Keeps the first; returns false.
bool grt_fault(struct grt_fault *fault, enum grt_status status, const char *format, ...)
    GRT_PRINTF(3, 4);

// ---- inspect.c, inspect_apart.c: the HDF5 library, and nowhere else for reading ----

struct grt_file {
    int fd;
    uint64_t bytes;
    uint64_t device, inode;  // which file it is, and its state when it was opened
    int64_t changed, changed_ns;
};

// Opens the file and the arrays named, in their order; checks everything, allocates only their
// lists of tiles. False with nothing left open and the sentence said, in which `keys` has the
// settings that give these names; NULL where none do.
bool grt_file_open(const char *path, const char *shown, const char *const *names,
                   const char *const *keys, uint32_t count, struct grt_file *file,
                   struct grt_array *arrays);
void grt_file_close(struct grt_file *file, struct grt_array *arrays, uint32_t count);

#endif
