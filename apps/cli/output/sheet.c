// SPDX-License-Identifier: Apache-2.0
#include "sheet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "gpurt/gpurt.h"
#include "base/visible.h"
#include "gpurt/picture.h"
#include "markup.h"
#include "output.h"
#include "cli/talk.h"

#define SMALL 96        // pixels that a cell is at least as long
#define TEXT_WIDTH 280  // of an SVG, beside the picture

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

bool sheet_named(const char *verb, const char *path) {
    if (ends_in(path, ".png") || ends_in(path, ".svg")) {
        return true;
    }
    talk_error("%s: '%s': the name must end in .png or .svg", verb, path);
    return false;
}

static uint32_t sheet_width(const struct sheet *s) {
    return s->cells * (s->width * s->zoom + SHEET_GAP) + SHEET_GAP;
}

static uint32_t sheet_height(const struct sheet *s) {
    return s->lines * (s->height * s->zoom + SHEET_GAP) + SHEET_GAP;
}

bool sheet_init(struct sheet *s, uint32_t lines, uint32_t cells, uint32_t height, uint32_t width) {
    uint32_t longer = height > width ? height : width;
    *s = (struct sheet){lines, cells, height, width, longer < SMALL ? SMALL / longer : 1,
                        NULL,  NULL};
    uint64_t wide = (uint64_t)cells * (width * s->zoom + SHEET_GAP) + SHEET_GAP;
    uint64_t high = (uint64_t)lines * (height * s->zoom + SHEET_GAP) + SHEET_GAP;
    if (wide > GRT_PICTURE_SIDE || high > GRT_PICTURE_SIDE) {
        talk_error("%u lines of %u images of %ux%u are a picture of more than %d pixels a side",
                   lines, cells, height, width, GRT_PICTURE_SIDE);
        return false;
    }
    s->rgb = malloc((size_t)(3 * wide * high));
    s->texts = calloc(lines, sizeof *s->texts);
    if (!s->rgb || !s->texts) {
        talk_error("out of memory");
        return false;
    }
    memset(s->rgb, 255, (size_t)(3 * wide * high));
    return true;
}

void sheet_put(const struct sheet *s, uint32_t line, uint32_t cell, const float *image,
               uint32_t height, uint32_t width, uint32_t channels, double most) {
    uint32_t top = SHEET_GAP + line * (s->height * s->zoom + SHEET_GAP);
    uint32_t left = SHEET_GAP + cell * (s->width * s->zoom + SHEET_GAP);
    for (uint32_t y = 0; y < height * s->zoom; y++) {
        for (uint32_t x = 0; x < width * s->zoom; x++) {
            const float *pixel = image + ((uint64_t)(y / s->zoom) * width + x / s->zoom) * channels;
            uint8_t *to = s->rgb + 3 * ((uint64_t)(top + y) * sheet_width(s) + left + x);
            for (uint32_t c = 0; c < 3; c++) {
                double v = (double)pixel[channels == 3 ? c : 0] / most * 255;
                to[c] = (uint8_t)lrint(v >= 0 ? (v < 255 ? v : 255) : 0);
            }
        }
    }
}

static void put_base64(FILE *file, const uint8_t *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t word = 0;
        for (size_t k = 0; k < 3; k++) {
            word = word << 8 | (i + k < size ? bytes[i + k] : 0);
        }
        for (size_t k = 0; k < 4; k++) {
            fputc(i + k <= size ? digits[word >> (18 - 6 * k) & 63] : '=', file);
        }
    }
}

static void put_svg(FILE *file, const struct sheet *s, const uint8_t *png, size_t size) {
    uint32_t width = sheet_width(s), height = sheet_height(s);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<image width=\"%u\" height=\"%u\" href=\"data:image/png;base64,",
            width + TEXT_WIDTH, height, width, height);
    put_base64(file, png, size);
    fputs("\"/>\n", file);
    for (uint32_t i = 0; i < s->lines; i++) {
        uint32_t top = SHEET_GAP + i * (s->height * s->zoom + SHEET_GAP);
        fprintf(file,
                "<text x=\"%u\" y=\"%u\" font-family=\"sans-serif\" font-size=\"12\" "
                "fill=\"#222\">",
                width + 6, top + 14);
        char text[2 * sizeof s->texts[i]];
        grt_visible(s->texts[i], text, sizeof text);
        markup_text(file, text);
        fputs("</text>\n", file);
    }
    fputs("</svg>\n", file);
}

int sheet_save(const struct sheet *s, const char *path) {
    struct output output = {0};
    size_t size = 0;
    uint8_t *png = grt_picture_png(sheet_width(s), sheet_height(s), s->rgb, &size);
    int code = png ? output_open(&output, path) : command_exit_of(grt_last_status());
    if (png && !code) {
        if (ends_in(path, ".svg")) {
            put_svg(output.file, s, png, size);
        } else {
            fwrite(png, 1, size, output.file);
        }
        code = output_close(&output, true);
    }
    free(png);
    return code;
}

void sheet_finish(struct sheet *s) {
    free(s->rgb);
    free(s->texts);
    *s = (struct sheet){0};
}
