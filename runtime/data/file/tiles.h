// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: tiles of compressed arrays, decoded once and shared by all threads that need
// rows of them.
#ifndef GRT_TILES_H
#define GRT_TILES_H

#include "array.h"

struct grt_tiles;

// Keeps up to `kept` decoded tiles. NULL when out of memory.
struct grt_tiles *grt_tiles_create(const struct grt_array *array, int fd, uint32_t kept);
void grt_tiles_destroy(struct grt_tiles **tiles);

// The elements of a tile in this machine's byte order, until it is released; NULL with the fault.
// Any number of threads may ask; each holds at most one tile of an array.
const unsigned char *grt_tiles_get(struct grt_tiles *tiles, uint64_t number,
                                   struct grt_fault *fault);
void grt_tiles_release(struct grt_tiles *tiles, uint64_t number);

// Tells the system that these rows of a plain array will be read soon.
void grt_array_announce(const struct grt_array *array, int fd, uint64_t first, uint64_t rows);
// pread() of all the bytes, however the system serves them. A file that ends early is a fault that
// says so.
bool grt_read_bytes(int fd, void *into, uint64_t size, uint64_t offset, struct grt_fault *fault);

#endif
