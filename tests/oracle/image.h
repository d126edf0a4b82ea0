// SPDX-License-Identifier: Apache-2.0
// Layers of images from their formulas, in double precision: convolution, pooling of windows, batch
// norm, boxes of images. Images are [height][width][channels], one behind the other.
#ifndef ORACLE_IMAGE_H
#define ORACLE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oracle_window {
    size_t images, height, width, channels;
    size_t size, stride, padding;
};
size_t oracle_window_out(size_t extent, const struct oracle_window *w);

// y[n][oy][ox][o] = bias[o] + sum over ky, kx, c of weight[o][ky][kx][c] x[n][..][..][c], x being 0
// outside the image. bias may be NULL. magnitude: the same with all numbers positive.
void oracle_conv(const struct oracle_window *w, size_t outputs, const double *x,
                 const double *weight, const double *bias, double *y, double *magnitude);
// Gradients of sum of dy y; each with its magnitude, which may be NULL as a whole.
struct oracle_conv_grads {
    double *dx, *dweight, *dbias;
    double *dx_size, *dweight_size, *dbias_size;
};
void oracle_conv_backward(const struct oracle_window *w, size_t outputs, const double *x,
                          const double *weight, const double *dy,
                          const struct oracle_conv_grads *grads);

// The mean of each window, padding being zeros, or the largest of its pixels in the image.
void oracle_window_pool(const struct oracle_window *w, bool largest, const double *x, double *y);
// dx of sum of dy y; the first of equals is the largest.
void oracle_window_pool_backward(const struct oracle_window *w, bool largest, const double *x,
                                 const double *dy, double *dx);

// Batch norm of x [rows][cols] in training: y, and what the batch's mean and variance are.
void oracle_batch_norm(size_t rows, size_t cols, const double *x, const double *weight,
                       const double *bias, double *y, double *mean, double *variance);
// dx of sum of dy y by central differences would lose digits: the derivative of each y to each x,
// summed.
void oracle_batch_norm_backward(size_t rows, size_t cols, const double *x, const double *weight,
                                const double *dy, double *dx, double *dweight, double *dbias);

// A box of an image in another size, bilinear with antialiasing as PyTorch's interpolate, turned
// round where it is flipped, then scale and shift of each channel. Outside of the image are zeros,
// or its mirror image.
struct oracle_take {
    size_t height, width, channels, out_height, out_width;
    const int32_t *box;  // top, left, height, width
    bool flip, reflect;
    const double *scale, *shift;
};
void oracle_take(const struct oracle_take *take, const double *x, double *y);

#endif
