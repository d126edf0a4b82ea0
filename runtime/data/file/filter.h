// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: undoing the filters of a chunk.
#ifndef GRT_FILTER_H
#define GRT_FILTER_H

#include "array.h"

#define GRT_FILTER_LZF_ID 32000  // h5py's, registered with the HDF Group

// Turns the stored bytes of a tile into its elements, into `out` (tile_bytes). Any input is safe:
// false, with the fault, when the bytes are not what filters made of a tile of this size. `spare`
// has tile_bytes too; `stored` is left alone.
bool grt_filter_undo(const struct grt_array *array, const struct grt_tile *tile,
                     const unsigned char *stored, unsigned char *out, unsigned char *spare,
                     struct grt_fault *fault);

// How many times its stored bytes a tile may have at most.
uint64_t grt_filter_most(const struct grt_array *array);

// szip is in a library of its own, which HDF5 brings along where it has it: whether it is there,
// and whether such parameters make sense to it too.
bool grt_filter_szip_found(void);
bool grt_filter_szip_usable(const unsigned szip[4]);
bool grt_filter_szip(const struct grt_array *array, const unsigned char *in, uint64_t in_size,
                     unsigned char *out, struct grt_fault *fault);

#endif
