// SPDX-License-Identifier: Apache-2.0
// Inflate by zlib, and HDF5's shuffle, which stores the first bytes of all elements, then all
// second bytes, and so on; bytes that do not fill an element follow as they are.
#include "filter.h"

#include <string.h>

#include <zlib.h>

static bool inflate_tile(const struct grt_array *array, const unsigned char *in, uint32_t in_size,
                         unsigned char *out, struct grt_fault *fault) {
    z_stream stream = {.next_in = (unsigned char *)in, .avail_in = in_size, .next_out = out};
    if (inflateInit(&stream) != Z_OK) {
        return grt_fault(fault, GRT_NO_MEMORY, "no host memory to inflate '%s'", array->name);
    }
    stream.avail_out = (uInt)array->tile_bytes;
    int code = inflate(&stream, Z_FINISH);
    bool whole = code == Z_STREAM_END && stream.total_out == array->tile_bytes;
    uint64_t got = stream.total_out;
    inflateEnd(&stream);
    return whole ||
           grt_fault(fault, GRT_BAD_DATA,
                     "a chunk of '%s' is damaged: %llu of %llu bytes could be inflated",
                     array->name, (unsigned long long)got, (unsigned long long)array->tile_bytes);
}

// One pass for each byte of an element: reads run on, writes step by the size of an element.
static void unshuffle(const unsigned char *in, unsigned char *out, uint64_t bytes, uint32_t size) {
    uint64_t count = bytes / size;
    for (uint32_t k = 0; k < size; k++) {
        const unsigned char *from = in + k * count;
        for (uint64_t i = 0; i < count; i++) {
            out[i * size + k] = from[i];
        }
    }
    memcpy(out + count * size, in + count * size, bytes - count * size);
}

bool grt_filter_undo(const struct grt_array *array, const struct grt_tile *tile,
                     const unsigned char *stored, unsigned char *out, unsigned char *spare,
                     struct grt_fault *fault) {
    // Every filter that was applied moves the bytes on; the last of them must land in `out`.
    uint32_t left = 0;
    for (uint32_t i = 0; i < array->filter_count; i++) {
        left += !(tile->skipped >> i & 1);
    }
    const unsigned char *from = stored;
    uint64_t size = tile->stored;
    for (uint32_t i = array->filter_count; i-- > 0;) {
        if (tile->skipped >> i & 1) {
            continue;
        }
        unsigned char *to = --left % 2 == 0 ? out : spare;
        if (array->filters[i] == GRT_FILTER_DEFLATE) {
            if (!inflate_tile(array, from, (uint32_t)size, to, fault)) {
                return false;
            }
        } else {
            if (size != array->tile_bytes) {
                break;
            }
            unshuffle(from, to, size, grt_element_size(array->element.type));
        }
        from = to;
        size = array->tile_bytes;
    }
    if (size != array->tile_bytes) {
        return grt_fault(fault, GRT_BAD_DATA, "a chunk of '%s' has %llu bytes in place of %llu",
                         array->name, (unsigned long long)size,
                         (unsigned long long)array->tile_bytes);
    }
    if (from == stored) {
        memcpy(out, stored, size);
    }
    return true;
}
