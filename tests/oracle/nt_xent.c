// SPDX-License-Identifier: Apache-2.0
// NT-Xent as it is written: cosines of all pairs, the logarithm of a sum, the mean.
#include <math.h>
#include <stdlib.h>

#include "oracle.h"

static double cosine(const double *a, const double *b, size_t cols) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t k = 0; k < cols; k++) {
        ab += a[k] * b[k];
        aa += a[k] * a[k];
        bb += b[k] * b[k];
    }
    // A row without a direction is as far from all others as a right angle.
    return aa < 1e-24 || bb < 1e-24 ? 0 : ab / sqrt(aa * bb);
}

double oracle_nt_xent(const double *z, size_t rows, size_t cols, size_t block, double tau) {
    double loss = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t begin = i - i % block, end = begin + block < rows ? begin + block : rows;
        size_t half = (end - begin) / 2, pair = i < begin + half ? i + half : i - half;
        double near = cosine(z + i * cols, z + pair * cols, cols) / tau, sum = exp(near);
        for (size_t j = 0; j < rows; j++) {
            sum += j == i || j == pair ? 0 : exp(cosine(z + i * cols, z + j * cols, cols) / tau);
        }
        loss += log(sum) - near;
    }
    return loss / (double)rows;
}

double oracle_nt_xent_slope(double *z, size_t rows, size_t cols, size_t block, double tau,
                            size_t i) {
    const double h = 1e-5, was = z[i];
    z[i] = was + h;
    double after = oracle_nt_xent(z, rows, cols, block, tau);
    z[i] = was - h;
    double before = oracle_nt_xent(z, rows, cols, block, tau);
    z[i] = was;
    return (after - before) / (2 * h);
}
