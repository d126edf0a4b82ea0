// SPDX-License-Identifier: Apache-2.0
// Shapes of a matrix unit in words.
#ifndef APPS_MATRIX_TEXT_H
#define APPS_MATRIX_TEXT_H

#include "gpurt/device.h"

#include <stddef.h>

// All of them into `whole`, "f16 16x16x16>f32, i8 16x16x32>i32", and the first with the count of
// the others into `brief`, "f16 16x16x16>f32 +1". Both empty where there are none; cut off where
// there is no room.
void matrix_text(const struct grt_caps *caps, char *brief, size_t brief_size, char *whole,
                 size_t whole_size);

#endif
