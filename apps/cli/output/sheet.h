// SPDX-License-Identifier: Apache-2.0
// Sheets of images: cells of one size in lines, as a PNG, or as an SVG with a text beside each
// line.
#ifndef APPS_SHEET_H
#define APPS_SHEET_H

#include <stdbool.h>
#include <stdint.h>

struct sheet {
    uint32_t lines, cells;   // of a line
    uint32_t height, width;  // of a cell in pixels of the images, without the zoom
    uint32_t zoom;           // pixels of the picture that a pixel is, both ways
    uint8_t *rgb;            // of the whole picture
    char (*texts)[160];      // of each line
};

#define SHEET_GAP 2  // pixels between cells and around them

// Whether a name ends in .png or .svg; else the mistake is said.
bool sheet_named(const char *verb, const char *path);
// Empty; false with the mistake said, where the picture would be too large. Freed by
// sheet_finish(), also then.
bool sheet_init(struct sheet *sheet, uint32_t lines, uint32_t cells, uint32_t height,
                uint32_t width);
// An image [height][width][channels] of 1 or 3 channels and numbers from 0 to `most` into a cell.
void sheet_put(const struct sheet *sheet, uint32_t line, uint32_t cell, const float *image,
               uint32_t height, uint32_t width, uint32_t channels, double most);
// Returns an exit code; a mistake is said.
int sheet_save(const struct sheet *sheet, const char *path);
void sheet_finish(struct sheet *sheet);

#endif
