// SPDX-License-Identifier: Apache-2.0
// Images of one shape each. Place, size and both colours are drawn for each image, and either
// colour may be the brighter one: no pixel by itself tells the class, so neither a linear model of
// the pixels nor the nearest image says much.
#include <math.h>

#include "make_parts.h"

#define SAMPLES 4      // of a side of a pixel: edges are smooth
#define CONTRAST 0.45  // least distance of the two colours in the unit cube

const char *const grt_make_shape_names[GRT_MAKE_SHAPE_COUNT] = {
    "disc", "square", "triangle", "plus", "ring", "frame", "diamond", "cross", "bars", "pair"};

// Whether (u, v) lies in the shape, which fills about the square from -1 to 1. v grows downwards.
static bool inside(uint32_t shape, double u, double v) {
    double a = fabs(u), b = fabs(v), radius = sqrt(u * u + v * v), larger = a > b ? a : b;
    switch (shape) {
    case 0:
        return radius <= 1.0;
    case 1:
        return larger <= 0.85;
    case 2:
        return b <= 0.9 && a <= (v + 0.9) / 1.8;
    case 3:
        return larger <= 1.0 && (a <= 0.3 || b <= 0.3);
    case 4:
        return radius <= 1.0 && radius >= 0.55;
    case 5:
        return larger <= 0.9 && larger >= 0.5;
    case 6:
        return a + b <= 1.1;
    case 7:
        return larger <= 0.9 && (fabs(u - v) <= 0.42 || fabs(u + v) <= 0.42);
    case 8:
        return larger <= 0.95 && (b <= 0.19 || b >= 0.57);
    default:
        return (a - 0.52) * (a - 0.52) + v * v <= 0.2;
    }
}

// The share of a pixel that the shape covers.
static double covered(uint32_t shape, double x, double y, double radius) {
    int count = 0;
    for (int j = 0; j < SAMPLES; j++) {
        for (int i = 0; i < SAMPLES; i++) {
            count += inside(shape, (x + (i + 0.5) / SAMPLES) / radius,
                            (y + (j + 0.5) / SAMPLES) / radius);
        }
    }
    return (double)count / (SAMPLES * SAMPLES);
}

static void draw_colours(struct grt_make_source *source, double colours[2][3]) {
    double square = 0;
    while (square < CONTRAST * CONTRAST) {
        square = 0;
        for (int c = 0; c < 3; c++) {
            colours[0][c] = grt_make_uniform(source);
            colours[1][c] = grt_make_uniform(source);
            square += (colours[0][c] - colours[1][c]) * (colours[0][c] - colours[1][c]);
        }
    }
}

void grt_make_shape(struct grt_make_source *source, uint32_t shape, uint32_t pixels, double noise,
                    uint8_t *image) {
    double colours[2][3] = {{0}};
    double radius = pixels * (0.22 + 0.2 * grt_make_uniform(source));
    double free_side = pixels - 2 * radius;
    double left = radius + free_side * grt_make_uniform(source);
    double top = radius + free_side * grt_make_uniform(source);
    draw_colours(source, colours);
    for (uint32_t y = 0; y < pixels; y++) {
        for (uint32_t x = 0; x < pixels; x++) {
            double share = covered(shape, x - left, y - top, radius);
            for (int c = 0; c < 3; c++) {
                double value = colours[0][c] + share * (colours[1][c] - colours[0][c]) +
                               noise * grt_make_normal(source);
                value = value < 0 ? 0 : value > 1 ? 1 : value;
                *image++ = (uint8_t)(255 * value + 0.5);
            }
        }
    }
}
