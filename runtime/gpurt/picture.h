// SPDX-License-Identifier: Apache-2.0
// Pictures as PNG, of 8 bits for each of red, green and blue.
#ifndef GRT_PICTURE_H
#define GRT_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_PICTURE_SIDE 16384

// The file as bytes, to be freed; NULL with the sentence. rgb [height][width][3].
GRT_API uint8_t *grt_picture_png(uint32_t width, uint32_t height, const uint8_t *rgb, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
