// SPDX-License-Identifier: Apache-2.0
// PNG by libpng: palettes and few bits are widened, transparency is dropped.
#include "import.h"

#ifdef GPURT_PNG

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source {
    const uint8_t *at;
    size_t left;
    char *why;
};

static void take(png_structp png, png_bytep to, size_t count) {
    struct source *s = png_get_io_ptr(png);
    if (count > s->left) {
        png_error(png, "it ends too early");
    }
    memcpy(to, s->at, count);
    s->at += count;
    s->left -= count;
}

static void fail(png_structp png, png_const_charp text) {
    snprintf(((struct source *)png_get_error_ptr(png))->why, 160, "PNG: %.140s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void warn(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void convert(png_structp png, png_infop info, uint32_t channels, bool *scaled) {
    int type = png_get_color_type(png, info);
    *scaled = png_get_bit_depth(png, info) == 16;
    png_set_scale_16(png);
    png_set_expand(png);
    png_set_strip_alpha(png);
    if (channels == 3 && !(type & PNG_COLOR_MASK_COLOR)) {
        png_set_gray_to_rgb(png);
    } else if (channels == 1 && (type & PNG_COLOR_MASK_COLOR)) {
        png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    }
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

// What a jump out of libpng leaves is in `image` and freed by the caller.
static bool read_all(png_structp png, png_infop info, uint32_t channels, struct import_image *image,
                     bool *scaled, png_bytep **rows) {
    if (setjmp(png_jmpbuf(png))) {
        return false;
    }
    png_set_user_limits(png, IMPORT_MOST_SIDE, IMPORT_MOST_SIDE);
    png_read_info(png, info);
    convert(png, info, channels, scaled);
    image->height = png_get_image_height(png, info);
    image->width = png_get_image_width(png, info);
    size_t row = png_get_rowbytes(png, info);
    if (row != (size_t)image->width * channels) {
        png_error(png, "its rows are of another length than its width says");
    }
    image->pixels = calloc(image->height, row);
    *rows = calloc(image->height, sizeof **rows);
    if (!image->pixels || !*rows) {
        png_error(png, "no host memory for it");
    }
    for (uint32_t y = 0; y < image->height; y++) {
        (*rows)[y] = image->pixels + y * row;
    }
    png_read_image(png, *rows);
    png_read_end(png, NULL);
    return true;
}

const char *import_decode_png(const uint8_t *bytes, size_t size, uint32_t channels,
                              struct import_image *image, bool *scaled, char why[160]) {
    struct source source = {bytes, size, why};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail, warn);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    png_bytep *rows = NULL;
    bool good = false;
    snprintf(why, 160, "PNG: no host memory for it");
    *image = (struct import_image){0};
    if (info) {
        png_set_read_fn(png, &source, take);
        good = read_all(png, info, channels, image, scaled, &rows);
    }
    free(rows);
    png_destroy_read_struct(&png, &info, NULL);
    if (!good) {
        free(image->pixels);
        image->pixels = NULL;
    }
    return good ? NULL : why;
}

#else

const char *import_decode_png(const uint8_t *bytes, size_t size, uint32_t channels,
                              struct import_image *image, bool *scaled, char why[160]) {
    (void)bytes, (void)size, (void)channels, (void)image, (void)scaled, (void)why;
    return "a PNG, and this gpurt was built without libpng";
}

#endif
