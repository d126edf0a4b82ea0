// SPDX-License-Identifier: Apache-2.0
// Changes of the colours of an image [height][width][channels] from their formulas, in double
// precision; numbers are from 0 to `most`.
#ifndef ORACLE_COLOUR_H
#define ORACLE_COLOUR_H

#include <stddef.h>

struct oracle_image {
    size_t height, width, channels;
    double most;
    double *v;
};
// f x + (1 - f) 0, the mean grey of the image, and the grey of each pixel.
void oracle_brightness(const struct oracle_image *image, double f);
void oracle_contrast(const struct oracle_image *image, double f);
void oracle_saturation(const struct oracle_image *image, double f);
// The hue turned by a share of a whole turn.
void oracle_hue(const struct oracle_image *image, double turn);
void oracle_grey(const struct oracle_image *image);
// A Gaussian of an odd number of taps, both ways, mirrored at the edges.
void oracle_blur(const struct oracle_image *image, size_t taps, double sigma);
// All pixels of the image within a box become fill[channel].
void oracle_erase(const struct oracle_image *image, const int box[4], const double *fill);

#endif
