// SPDX-License-Identifier: Apache-2.0
// Inflate by zlib, LZF as h5py writes it, szip by its library, and HDF5's shuffle, which stores the
// first bytes of all elements, then all second bytes, and so on; bytes that do not fill an element
// follow as they are.
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

// Runs of up to 32 bytes as they are, and pieces of what came before, 3 to 264 bytes, from up to
// 8192 bytes back.
static bool unpack_lzf(const struct grt_array *array, const unsigned char *in, uint64_t in_size,
                       unsigned char *out, struct grt_fault *fault) {
    uint64_t at = 0, done = 0, all = array->tile_bytes;
    bool good = true;
    while (good && at < in_size) {
        uint32_t head = in[at++], length = head >> 5;
        if (length == 0) {
            length = head + 1;
            good = length <= in_size - at && length <= all - done;
            if (good) {
                memcpy(out + done, in + at, length);
                at += length;
                done += length;
            }
            continue;
        }
        bool more = length == 7;
        good = in_size - at >= 1u + more;
        if (!good) {
            break;
        }
        length += (more ? in[at] : 0) + 2;
        at += more;
        uint64_t back = ((uint64_t)(head & 31) << 8) + in[at++] + 1;
        good = back <= done && length <= all - done;
        for (uint32_t i = 0; good && i < length; i++, done++) {
            out[done] = out[done - back];
        }
    }
    return (good && done == all) ||
           grt_fault(fault, GRT_BAD_DATA, "a chunk of '%s' is damaged: %llu of %llu bytes of lzf",
                     array->name, (unsigned long long)done, (unsigned long long)all);
}

static bool unpack(enum grt_filter filter, const struct grt_array *array, const unsigned char *in,
                   uint64_t in_size, unsigned char *out, struct grt_fault *fault) {
    return filter == GRT_FILTER_DEFLATE ? inflate_tile(array, in, (uint32_t)in_size, out, fault)
           : filter == GRT_FILTER_LZF   ? unpack_lzf(array, in, in_size, out, fault)
                                        : grt_filter_szip(array, in, in_size, out, fault);
}

uint64_t grt_filter_most(const struct grt_array *array) {
    // zlib's format has 258 bytes for 2 bits; LZF 264 for 3 bytes; szip 64 blocks of 32 pixels of 8
    // bytes for some bits.
    static const uint64_t most[] = {1, 1032, 88, 1 << 16};
    return array->filter_count > 0 ? most[array->filters[array->filter_count - 1]] : 1;
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
        if (array->filters[i] != GRT_FILTER_SHUFFLE) {
            if (!unpack(array->filters[i], array, from, size, to, fault)) {
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
