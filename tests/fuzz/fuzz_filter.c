// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as the stored bytes of a chunk, under any filters and element type.
// HDF5's own structures are the library's to read; this is what is left to us.
#include <stdlib.h>
#include <string.h>

#include "data/file/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) {
        return 0;
    }
    struct grt_array array = {.name = "x", .tile_bytes = 64, .filter_count = data[1] & 3u};
    array.element.type = (enum grt_element_type)(data[0] % GRT_ELEMENT_COUNT);
    for (uint32_t i = 0; i < array.filter_count; i++) {
        static const enum grt_filter packers[] = {GRT_FILTER_DEFLATE, GRT_FILTER_LZF};
        bool packed = data[1] >> (2 + i) & 1;
        array.filters[i] = packed ? packers[data[0] >> 7] : GRT_FILTER_SHUFFLE;
    }
    const struct grt_tile tile = {.stored = (uint32_t)(size - 2), .skipped = data[1] >> 5};
    // Of their exact size, so that a byte too many is found.
    unsigned char *stored = malloc(size - 2), *out = malloc(64), *spare = malloc(64);
    struct grt_fault fault = {0};
    if (!stored || !out || !spare) {
        abort();
    }
    memcpy(stored, data + 2, size - 2);
    bool good = grt_filter_undo(&array, &tile, stored, out, spare, &fault);
    if (good == (fault.status != GRT_OK) || memcmp(stored, data + 2, size - 2) != 0) {
        abort();
    }
    float numbers[64];
    uint32_t classes[64];
    int64_t bad = 0;
    if (good) {
        size_t count = 64 / grt_element_size(array.element.type);
        grt_element_swap(out, grt_element_size(array.element.type), count);
        grt_element_to_f32(array.element.type, numbers, out, count);
        grt_not_finite(numbers, count);
        size_t classed = grt_element_to_class(array.element.type, classes, out, count, 10, &bad);
        for (size_t i = 0; i < classed; i++) {
            if (classes[i] >= 10) {
                abort();
            }
        }
    }
    free(stored);
    free(out);
    free(spare);
    return 0;
}
