// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t oracle_window_out(size_t extent, const struct oracle_window *w) {
    size_t places = 0;
    // Counted: windows that begin within the padded image and end within it.
    for (size_t first = 0; first + w->size <= extent + 2 * w->padding; first += w->stride) {
        places++;
    }
    return places;
}

static size_t places(const struct oracle_window *w) {
    return w->images * oracle_window_out(w->height, w) * oracle_window_out(w->width, w);
}

// A pixel of an image under a tap of a window; outside the image there is none.
struct tap {
    size_t out, tap;  // place of the output, and the window's own
    size_t at;        // pixel
    size_t next;
};

static bool next_tap(const struct oracle_window *w, struct tap *t) {
    size_t taps = w->size * w->size, wide = oracle_window_out(w->width, w);
    size_t high = oracle_window_out(w->height, w);
    while (t->next < places(w) * taps) {
        t->out = t->next / taps;
        t->tap = t->next % taps;
        t->next++;
        size_t image = t->out / (high * wide);
        long y = (long)(t->out / wide % high * w->stride + t->tap / w->size) - (long)w->padding;
        long x = (long)(t->out % wide * w->stride + t->tap % w->size) - (long)w->padding;
        if (y >= 0 && x >= 0 && y < (long)w->height && x < (long)w->width) {
            t->at = (image * w->height + (size_t)y) * w->width + (size_t)x;
            return true;
        }
    }
    return false;
}

void oracle_conv(const struct oracle_window *w, size_t outputs, const double *x,
                 const double *weight, const double *bias, double *y, double *magnitude) {
    size_t depth = w->size * w->size * w->channels;
    for (size_t i = 0; i < places(w) * outputs; i++) {
        y[i] = bias ? bias[i % outputs] : 0;
        magnitude[i] = fabs(y[i]);
    }
    for (struct tap t = {0}; next_tap(w, &t);) {
        for (size_t i = 0; i < outputs * w->channels; i++) {
            size_t o = i / w->channels, c = i % w->channels;
            double term = weight[o * depth + t.tap * w->channels + c] * x[t.at * w->channels + c];
            y[t.out * outputs + o] += term;
            magnitude[t.out * outputs + o] += fabs(term);
        }
    }
}

void oracle_conv_backward(const struct oracle_window *w, size_t outputs, const double *x,
                          const double *weight, const double *dy,
                          const struct oracle_conv_grads *g) {
    size_t depth = w->size * w->size * w->channels;
    size_t inputs = w->images * w->height * w->width * w->channels;
    memset(g->dx, 0, inputs * sizeof(double));
    memset(g->dx_size, 0, inputs * sizeof(double));
    memset(g->dweight, 0, outputs * depth * sizeof(double));
    memset(g->dweight_size, 0, outputs * depth * sizeof(double));
    memset(g->dbias, 0, outputs * sizeof(double));
    memset(g->dbias_size, 0, outputs * sizeof(double));
    for (size_t i = 0; i < places(w) * outputs; i++) {
        g->dbias[i % outputs] += dy[i];
        g->dbias_size[i % outputs] += fabs(dy[i]);
    }
    for (struct tap t = {0}; next_tap(w, &t);) {
        for (size_t i = 0; i < outputs * w->channels; i++) {
            size_t o = i / w->channels, c = i % w->channels, from = t.at * w->channels + c;
            size_t of = o * depth + t.tap * w->channels + c;
            double d = dy[t.out * outputs + o];
            g->dx[from] += d * weight[of];
            g->dx_size[from] += fabs(d * weight[of]);
            g->dweight[of] += d * x[from];
            g->dweight_size[of] += fabs(d * x[from]);
        }
    }
}

void oracle_window_pool(const struct oracle_window *w, bool largest, const double *x, double *y) {
    for (size_t i = 0; i < places(w) * w->channels; i++) {
        y[i] = largest ? -INFINITY : 0;
    }
    for (struct tap t = {0}; next_tap(w, &t);) {
        for (size_t c = 0; c < w->channels; c++) {
            double v = x[t.at * w->channels + c], *to = &y[t.out * w->channels + c];
            *to = largest ? fmax(*to, v) : *to + v / (double)(w->size * w->size);
        }
    }
}

void oracle_window_pool_backward(const struct oracle_window *w, bool largest, const double *x,
                                 const double *dy, double *dx) {
    memset(dx, 0, w->images * w->height * w->width * w->channels * sizeof(double));
    for (size_t c = 0; c < w->channels; c++) {
        size_t best = 0, of = (size_t)-1;
        for (struct tap t = {0}; next_tap(w, &t);) {
            double share = dy[t.out * w->channels + c];
            size_t at = t.at * w->channels + c;
            if (!largest) {
                dx[at] += share / (double)(w->size * w->size);
            } else if (t.out != of) {
                of = t.out;
                best = at;
                dx[at] += share;
            } else if (x[at] > x[best]) {
                dx[best] -= share;
                dx[at] += share;
                best = at;
            }
        }
    }
}

static void moments(size_t rows, size_t cols, const double *x, size_t c, double *mean,
                    double *variance) {
    *mean = *variance = 0;
    for (size_t r = 0; r < rows; r++) {
        *mean += x[r * cols + c] / (double)rows;
    }
    for (size_t r = 0; r < rows; r++) {
        *variance += (x[r * cols + c] - *mean) * (x[r * cols + c] - *mean) / (double)rows;
    }
}

void oracle_batch_norm(size_t rows, size_t cols, const double *x, const double *weight,
                       const double *bias, double *y, double *mean, double *variance) {
    for (size_t c = 0; c < cols; c++) {
        moments(rows, cols, x, c, &mean[c], &variance[c]);
        for (size_t r = 0; r < rows; r++) {
            y[r * cols + c] =
                (x[r * cols + c] - mean[c]) / sqrt(variance[c] + 1e-5) * weight[c] + bias[c];
        }
    }
}

void oracle_batch_norm_backward(size_t rows, size_t cols, const double *x, const double *weight,
                                const double *dy, double *dx, double *dweight, double *dbias) {
    double n = (double)rows;
    for (size_t c = 0; c < cols; c++) {
        double mean, variance;
        moments(rows, cols, x, c, &mean, &variance);
        double deviation = sqrt(variance + 1e-5);
        dweight[c] = dbias[c] = 0;
        for (size_t r = 0; r < rows; r++) {
            double sum = 0, from = x[r * cols + c] - mean;
            for (size_t k = 0; k < rows; k++) {
                // dy_k/dx_r = weight ((k == r) - 1/n) / s - weight (x_k - m) (x_r - m) / (n s^3)
                double to = x[k * cols + c] - mean, same = k == r ? 1 : 0;
                sum += dy[k * cols + c] * weight[c] *
                       ((same - 1 / n) / deviation - to * from / (n * pow(deviation, 3)));
            }
            dx[r * cols + c] = sum;
            dweight[c] += dy[r * cols + c] * from / deviation;
            dbias[c] += dy[r * cols + c];
        }
    }
}

// ---- boxes ----

// The weights of all pixels of a box for pixel i of the result, [size].
static void take_weights(size_t size, size_t out, size_t i, double *weights) {
    double scale = (double)size / (double)out, support = scale > 1 ? scale : 1, sum = 0;
    double centre = scale * ((double)i + 0.5);
    double low = centre - support + 0.5, high = centre + support + 0.5;
    size_t first = low > 0 ? (size_t)low : 0, last = high < (double)size ? (size_t)high : size;
    for (size_t j = 0; j < size; j++) {
        double away = fabs(((double)j - centre + 0.5) / support);
        weights[j] = j >= first && j < last && away < 1 ? 1 - away : 0;
        sum += weights[j];
    }
    for (size_t j = 0; j < size; j++) {
        weights[j] /= sum;
    }
}

// A pixel of the image or of what is around it.
static double take_pixel(const struct oracle_take *t, const double *x, long row, long column,
                         size_t c) {
    long h = (long)t->height, w = (long)t->width;
    if (t->reflect) {
        row = row < 0 ? -row : row >= h ? 2 * (h - 1) - row : row;
        column = column < 0 ? -column : column >= w ? 2 * (w - 1) - column : column;
    }
    bool inside = row >= 0 && row < h && column >= 0 && column < w;
    return inside ? x[(size_t)(row * w + column) * t->channels + c] : 0;
}

void oracle_take(const struct oracle_take *t, const double *x, double *y) {
    size_t h = (size_t)t->box[2], w = (size_t)t->box[3];
    double *down = calloc(h, sizeof *down), *along = calloc(w, sizeof *along);
    for (size_t i = 0; down && along && i < t->out_height * t->out_width; i++) {
        size_t column = i % t->out_width;
        take_weights(h, t->out_height, i / t->out_width, down);
        take_weights(w, t->out_width, t->flip ? t->out_width - 1 - column : column, along);
        for (size_t c = 0; c < t->channels; c++) {
            double sum = 0;
            for (size_t j = 0; j < h * w; j++) {
                double weight = down[j / w] * along[j % w];
                sum += weight == 0 ? 0
                                   : weight * take_pixel(t, x, t->box[0] + (long)(j / w),
                                                         t->box[1] + (long)(j % w), c);
            }
            y[i * t->channels + c] = sum * t->scale[c] + t->shift[c];
        }
    }
    free(down);
    free(along);
}
