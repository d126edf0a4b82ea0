// SPDX-License-Identifier: Apache-2.0
// Images in files, by their first bytes, and their size.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "import.h"

const char *import_decode(const uint8_t *bytes, size_t size, uint32_t channels,
                          struct import_image *image, bool *scaled, char why[160]) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
    if (size > sizeof png && memcmp(bytes, png, sizeof png) == 0) {
        return import_decode_png(bytes, size, channels, image, scaled, why);
    }
    if (size > sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0) {
        return import_decode_jpeg(bytes, size, channels, image, scaled, why);
    }
    return "neither PNG nor JPEG";
}

// Where pixel i of `out` takes from `in` pixels: the first, how many, and the sum of the weights.
struct taps {
    uint32_t first, count;
    double centre, width, sum;
};

static double weight(const struct taps *t, uint32_t k) {
    double x = fabs(((double)(t->first + k) - t->centre + 0.5) / t->width);
    return x < 1 ? 1 - x : 0;
}

// As PyTorch's interpolate with antialias.
static struct taps taps_of(uint32_t in, uint32_t out, uint32_t i) {
    double scale = (double)in / out, support = scale > 1 ? scale : 1;
    struct taps t = {.centre = scale * (i + 0.5), .width = support};
    double low = floor(t.centre - support + 0.5), high = floor(t.centre + support + 0.5);
    t.first = low > 0 ? (uint32_t)low : 0;
    t.count = (high < in ? (uint32_t)high : in) - t.first;
    for (uint32_t k = 0; k < t.count; k++) {
        t.sum += weight(&t, k);
    }
    return t;
}

bool import_fit(const struct import_image *image, uint32_t channels, uint32_t side, uint8_t *to) {
    uint32_t h = image->height, w = image->width, shorter = h < w ? h : w;
    uint32_t height = (uint32_t)((uint64_t)side * h / shorter);
    uint32_t width = (uint32_t)((uint64_t)side * w / shorter);
    uint32_t top = (height - side) / 2, left = (width - side) / 2;
    float *rows = calloc((size_t)h * side * channels, sizeof *rows);
    if (!rows) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for an image");
    }
    for (uint32_t x = 0; x < side; x++) {
        struct taps t = taps_of(w, width, left + x);
        for (uint64_t i = 0; i < (uint64_t)h * channels; i++) {
            uint64_t y = i / channels, c = i % channels;
            double sum = 0;
            for (uint32_t k = 0; k < t.count; k++) {
                sum += weight(&t, k) * image->pixels[(y * w + t.first + k) * channels + c];
            }
            rows[(y * side + x) * channels + c] = (float)(sum / t.sum);
        }
    }
    for (uint32_t y = 0; y < side; y++) {
        struct taps t = taps_of(h, height, top + y);
        for (uint64_t i = 0; i < (uint64_t)side * channels; i++) {
            double sum = 0;
            for (uint32_t k = 0; k < t.count; k++) {
                sum += weight(&t, k) * (double)rows[(uint64_t)(t.first + k) * side * channels + i];
            }
            to[(uint64_t)y * side * channels + i] = (uint8_t)(sum / t.sum + 0.5);
        }
    }
    free(rows);
    return true;
}
