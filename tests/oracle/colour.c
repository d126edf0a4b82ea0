// SPDX-License-Identifier: Apache-2.0
#include "colour.h"

#include <math.h>
#include <stdlib.h>

static size_t pixels(const struct oracle_image *m) {
    return m->height * m->width;
}

static double grey_of(const struct oracle_image *m, size_t i) {
    const double *v = m->v + i * m->channels;
    return m->channels == 1 ? v[0] : 0.2989 * v[0] + 0.587 * v[1] + 0.114 * v[2];
}

static double cut(const struct oracle_image *m, double v) {
    return fmax(0, fmin(v, m->most));
}

static void blend(const struct oracle_image *m, size_t i, double f, double other) {
    for (size_t c = 0; c < m->channels; c++) {
        double *v = &m->v[i * m->channels + c];
        *v = cut(m, f * *v + (1 - f) * other);
    }
}

void oracle_brightness(const struct oracle_image *m, double f) {
    for (size_t i = 0; i < pixels(m); i++) {
        blend(m, i, f, 0);
    }
}

void oracle_contrast(const struct oracle_image *m, double f) {
    double sum = 0;
    for (size_t i = 0; i < pixels(m); i++) {
        sum += grey_of(m, i);
    }
    for (size_t i = 0; i < pixels(m); i++) {
        blend(m, i, f, sum / (double)pixels(m));
    }
}

void oracle_saturation(const struct oracle_image *m, double f) {
    for (size_t i = 0; m->channels == 3 && i < pixels(m); i++) {
        blend(m, i, f, grey_of(m, i));
    }
}

// Colours of hue h, in turns: k(n) = (n + 6 h) mod 6, v - v s max(0, min(k, 4 - k, 1)) with n of 5,
// 3 and 1 for red, green and blue.
void oracle_hue(const struct oracle_image *m, double turn) {
    static const double n[] = {5, 3, 1};
    for (size_t i = 0; m->channels == 3 && i < pixels(m); i++) {
        double *v = m->v + i * 3;
        double high = fmax(v[0], fmax(v[1], v[2])), low = fmin(v[0], fmin(v[1], v[2]));
        double span = high - low;
        if (span == 0) {
            continue;
        }
        double sixths = high == v[0]   ? (v[1] - v[2]) / span
                        : high == v[1] ? 2 + (v[2] - v[0]) / span
                                       : 4 + (v[0] - v[1]) / span;
        double h = sixths / 6 + turn;
        for (int c = 0; c < 3; c++) {
            double k = fmod(fmod(n[c] + 6 * h, 6) + 6, 6);
            v[c] = cut(m, high - span * fmax(0, fmin(k, fmin(4 - k, 1))));
        }
    }
}

void oracle_grey(const struct oracle_image *m) {
    for (size_t i = 0; i < pixels(m); i++) {
        double grey = grey_of(m, i);
        for (size_t c = 0; c < m->channels; c++) {
            m->v[i * m->channels + c] = grey;
        }
    }
}

static size_t mirrored(long at, size_t size) {
    long last = (long)size - 1;
    return (size_t)(at < 0 ? -at : at > last ? 2 * last - at : at);
}

// The sum over all pixels under the square, at once.
void oracle_blur(const struct oracle_image *m, size_t taps, double sigma) {
    size_t count = pixels(m) * m->channels;
    long r = (long)taps / 2;
    double *y = malloc(count * sizeof *y);
    for (size_t i = 0; y && i < count; i++) {
        size_t c = i % m->channels, column = i / m->channels % m->width;
        size_t row = i / m->channels / m->width;
        double sum = 0, weights = 0;
        for (long k = 0; k < (long)(taps * taps); k++) {
            long dy = k / (long)taps - r, dx = k % (long)taps - r;
            double weight = exp(-(double)(dx * dx + dy * dy) / (2 * sigma * sigma));
            size_t from = mirrored((long)row + dy, m->height) * m->width +
                          mirrored((long)column + dx, m->width);
            sum += weight * m->v[from * m->channels + c];
            weights += weight;
        }
        y[i] = sum / weights;
    }
    for (size_t i = 0; y && i < count; i++) {
        m->v[i] = y[i];
    }
    free(y);
}

void oracle_erase(const struct oracle_image *m, const int box[4], const double *fill) {
    for (int row = box[0]; row < box[0] + box[2]; row++) {
        for (int column = box[1]; column < box[1] + box[3]; column++) {
            if (row < 0 || column < 0 || row >= (int)m->height || column >= (int)m->width) {
                continue;
            }
            for (size_t c = 0; c < m->channels; c++) {
                m->v[((size_t)row * m->width + (size_t)column) * m->channels + c] = fill[c];
            }
        }
    }
}
