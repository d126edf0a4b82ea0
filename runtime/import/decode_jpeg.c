// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg-turbo. What the library only warns of, such as an early end, is a fault here.
#include "import.h"

#ifdef GPURT_JPEG

#include <stdio.h>
// Its header wants that one before it.
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>

struct fault {
    struct jpeg_error_mgr base;
    jmp_buf back;
    char *why;
};

static void fail(j_common_ptr common) {
    struct fault *f = (struct fault *)common->err;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    snprintf(f->why, 160, "JPEG: %.140s", text);
    longjmp(f->back, 1);
}

static void warned(j_common_ptr common, int level) {
    if (level < 0) {
        fail(common);
    }
}

static const char *check(const struct jpeg_decompress_struct *jpeg) {
    return jpeg->num_components == 4 ? "JPEG: CMYK, which is not taken"
           : jpeg->image_width > IMPORT_MOST_SIDE || jpeg->image_height > IMPORT_MOST_SIDE
               ? "JPEG: more than 16384 pixels wide or high"
               : NULL;
}

// What a jump out of the library leaves is in `image` and freed by the caller.
static const char *read_all(struct jpeg_decompress_struct *jpeg, struct fault *fault,
                            const uint8_t *bytes, size_t size, uint32_t channels,
                            struct import_image *image) {
    if (setjmp(fault->back)) {
        return fault->why;
    }
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, bytes, size);
    jpeg_read_header(jpeg, TRUE);
    const char *wrong = check(jpeg);
    if (wrong) {
        return wrong;
    }
    jpeg->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(jpeg);
    image->height = jpeg->output_height;
    image->width = jpeg->output_width;
    size_t row = (size_t)image->width * channels;
    image->pixels = calloc(image->height, row);
    if (!image->pixels) {
        return "JPEG: no host memory for it";
    }
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW to = image->pixels + jpeg->output_scanline * row;
        jpeg_read_scanlines(jpeg, &to, 1);
    }
    jpeg_finish_decompress(jpeg);
    return NULL;
}

const char *import_decode_jpeg(const uint8_t *bytes, size_t size, uint32_t channels,
                               struct import_image *image, bool *scaled, char why[160]) {
    struct jpeg_decompress_struct jpeg = {0};
    struct fault fault = {.why = why};
    (void)scaled;
    *image = (struct import_image){0};
    jpeg.err = jpeg_std_error(&fault.base);
    fault.base.error_exit = fail;
    fault.base.emit_message = warned;
    const char *wrong = read_all(&jpeg, &fault, bytes, size, channels, image);
    jpeg_destroy_decompress(&jpeg);
    if (wrong) {
        free(image->pixels);
        image->pixels = NULL;
    }
    return wrong;
}

#else

const char *import_decode_jpeg(const uint8_t *bytes, size_t size, uint32_t channels,
                               struct import_image *image, bool *scaled, char why[160]) {
    (void)bytes, (void)size, (void)channels, (void)image, (void)scaled, (void)why;
    return "a JPEG, and this gpurt was built without libjpeg";
}

#endif
