// SPDX-License-Identifier: Apache-2.0
// PNG needs no more than zlib: a signature, then chunks of length, name, bytes and their sum.
#include "gpurt/picture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/log.h"

static uint8_t *put_word(uint8_t *to, uint32_t word) {
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(word >> (24 - 8 * i));
    }
    return to + 4;
}

// The bytes of the chunk lie where they belong already, behind its length and name.
static uint8_t *put_chunk(uint8_t *to, const char *name, uint32_t size) {
    put_word(to, size);
    memcpy(to + 4, name, 4);
    return put_word(to + 8 + size, (uint32_t)crc32(0, to + 4, size + 4));
}

uint8_t *grt_picture_png(uint32_t width, uint32_t height, const uint8_t *rgb, size_t *size) {
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (!rgb || !size || width == 0 || height == 0 || width > GRT_PICTURE_SIDE ||
        height > GRT_PICTURE_SIDE) {
        grt_fail(GRT_INVALID, "a picture is of 1 to %d pixels a side, not %ux%u", GRT_PICTURE_SIDE,
                 width, height);
        return NULL;
    }
    // A line begins with the number of its filter: none.
    size_t line = 3 * (size_t)width, raw = (line + 1) * height;
    uLongf packed = compressBound(raw);
    uint8_t *lines = malloc(raw), *file = malloc(packed + 128);
    for (uint32_t y = 0; lines && file && y < height; y++) {
        lines[y * (line + 1)] = 0;
        memcpy(lines + y * (line + 1) + 1, rgb + y * line, line);
    }
    bool good = lines && file;
    if (good) {
        memcpy(file, signature, sizeof signature);
        uint8_t *head = file + sizeof signature;
        put_word(put_word(head + 8, width), height);
        memcpy(head + 16, (const uint8_t[]){8, 2, 0, 0, 0}, 5);
        uint8_t *data = put_chunk(head, "IHDR", 13);
        good = compress2(data + 8, &packed, lines, raw, 6) == Z_OK && packed < 0x7fffffff;
        if (good) {
            uint8_t *end = put_chunk(data, "IDAT", (uint32_t)packed);
            *size = (size_t)(put_chunk(end, "IEND", 0) - file);
        }
    }
    free(lines);
    if (!good) {
        free(file);
        grt_fail(GRT_NO_MEMORY, "no host memory for a picture of %ux%u", width, height);
        return NULL;
    }
    return file;
}
