// SPDX-License-Identifier: Apache-2.0
// Softmax, layer norm and column sums from their formulas. Bounds count roundings, u = 2^-24 each,
// and what gpurt promises of its own functions: exp and 1/x within 2 units in the last place (4 u),
// square roots within 1 (2 u). A sum whose elements pass through at most h additions is off by h u
// sum |x|:
//
//     a row of n       up to 1024 may be added one after the other, h = n; longer ones by 16 lanes
//                      or more and a tree over them, h = n / 16 + 4
//     a column of n    chunks, then their sums: h = n where that is few, else n / 256 + 512
#include "oracle.h"

#include <math.h>
#include <string.h>

static double row_height(size_t count) {
    return count <= 1024 ? (double)count : ceil((double)count / 16) + 4;
}

void oracle_softmax(const float *x, size_t count, struct oracle_value *y) {
    const double u = ORACLE_U;
    double top = (double)-INFINITY;
    for (size_t i = 0; i < count; i++) {
        double v = (double)x[i];
        top = v > top || isnan(v) ? v : top;
    }
    double sum = 0;
    double off = 0;  // of the sum, from its terms: x - top is rounded, then exp
    for (size_t i = 0; i < count; i++) {
        double d = (double)x[i] - top;
        sum += exp(d);
        off += exp(d) * (isinf(d) ? 0 : (fabs(d) + 4) * u);
    }
    for (size_t i = 0; i < count; i++) {
        double d = (double)x[i] - top;
        double relative =
            (isinf(d) ? 0 : (fabs(d) + 4) * u) + off / sum + row_height(count) * u + 5 * u;
        y[i].value = exp(d) / sum;
        y[i].bound = y[i].value * relative * (1 + relative) + 2 * ORACLE_TINY;
    }
}

struct oracle_norm oracle_norm(const float *x, size_t count, double eps) {
    const double u = ORACLE_U;
    double n = (double)count;
    double h = row_height(count);
    double sum = 0;
    double absolute = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)x[i];
        absolute += fabs((double)x[i]);
    }
    // 1/n is rounded, and the product with it.
    struct oracle_norm norm = {.mean = {sum / n, (h + 3) * u * absolute / n + ORACLE_TINY}};
    double squares = 0;
    double off = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)x[i] - norm.mean.value;
        double wrong = norm.mean.bound + u * (fabs(d) + norm.mean.bound);
        squares += d * d;
        off += 2 * fabs(d) * wrong + wrong * wrong;
    }
    double variance = squares / n + eps;
    off = off / n + (h + 4) * u * variance;
    // |1/sqrt(v + off) - 1/sqrt(v)| is at most off/v of 1/sqrt(v) where off is below v/2; then the
    // root, and its inverse.
    norm.rstd.value = 1 / sqrt(variance);
    norm.rstd.bound =
        off < variance / 2 ? norm.rstd.value * (off / variance + 7 * u) : (double)INFINITY;
    return norm;
}

struct oracle_value oracle_layer_norm(const struct oracle_norm *norm, double x, double weight,
                                      double bias) {
    const double u = ORACLE_U;
    double d = x - norm->mean.value;
    double off = norm->mean.bound + u * (fabs(d) + norm->mean.bound);
    double r = norm->rstd.value;
    double normed = d * r;
    double wrong = off * r + (fabs(d) + off) * norm->rstd.bound;
    wrong += u * (fabs(normed) + wrong);
    struct oracle_value y = {normed * weight + bias, 0};
    y.bound = wrong * fabs(weight) + 2 * u * (fabs(normed * weight) + wrong * fabs(weight)) +
              u * fabs(bias) + ORACLE_TINY;
    return y;
}

struct oracle_value oracle_colsum(const float *x, size_t rows, size_t cols, size_t col) {
    double sum = 0;
    double absolute = 0;
    for (size_t i = 0; i < rows; i++) {
        sum += (double)x[i * cols + col];
        absolute += fabs((double)x[i * cols + col]);
    }
    double h = rows <= 512 ? (double)rows : (double)rows / 256 + 512;
    struct oracle_value v = {sum, h * ORACLE_U * absolute * (1 + h * ORACLE_U) + ORACLE_TINY};
    return v;
}
