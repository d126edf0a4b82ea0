// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: undoing the filters of a chunk.
#ifndef GRT_FILTER_H
#define GRT_FILTER_H

#include "array.h"

// Turns the stored bytes of a tile into its elements, into `out` (tile_bytes). Any input is safe:
// false, with the fault, when the bytes are not what filters made of a tile of this size. `spare`
// has tile_bytes too; `stored` is left alone.
bool grt_filter_undo(const struct grt_array *array, const struct grt_tile *tile,
                     const unsigned char *stored, unsigned char *out, unsigned char *spare,
                     struct grt_fault *fault);

#endif
