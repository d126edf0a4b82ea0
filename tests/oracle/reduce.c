// SPDX-License-Identifier: Apache-2.0
// Reductions, summed in double. The bound of a sum in f32 whatever its order: an element passes
// through h additions, each with a relative error of at most u, so
//
//     |computed - exact| <= ((1 + u)^h - 1) * sum |x|,   about h u sum |x|
//
// where h is the height of the tree of additions. A workgroup of 16 lanes, each of which adds its
// elements one after the other, and a tree over the lanes, has h = n / 16 + 4; splitting a long
// vector into rows, and more lanes, only make it lower, but for the few additions of the second
// pass. The error of the double sum itself, n 2^-53 sum |x|, is added.
#include "oracle.h"

#include <math.h>
#include <string.h>

#define LANES 16.0

static double height(size_t count) {
    return ceil((double)count / LANES) + 4 + ceil(log2((double)count + 1));
}

static double growth(double h) {
    return expm1(h * log1p(ORACLE_U));
}

struct oracle_value oracle_reduce(const char *reduce, const float *x, size_t count) {
    double sum = 0;
    double absolute = 0;
    double squares = 0;
    double largest = (double)-INFINITY;
    bool nan = false;
    for (size_t i = 0; i < count; i++) {
        double v = (double)x[i];
        sum += v;
        absolute += fabs(v);
        squares += v * v;
        nan = nan || isnan(v);
        largest = v > largest ? v : largest;
    }
    double h = height(count);
    double own = (double)count * 0x1p-53;
    double sum_bound = (growth(h) + own) * absolute;
    struct oracle_value r = {(double)NAN, (double)NAN};
    if (strcmp(reduce, "sum") == 0) {
        r.value = sum;
        r.bound = sum_bound + ORACLE_TINY;
    } else if (strcmp(reduce, "mean") == 0) {
        // 1/n is rounded once, the product with it once more.
        double n = (double)count;
        r.value = sum / n;
        r.bound = sum_bound / n * (1 + 3 * ORACLE_U) + 3 * ORACLE_U * fabs(sum / n) + ORACLE_TINY;
    } else if (strcmp(reduce, "max") == 0) {
        r.value = nan ? (double)NAN : largest;
        r.bound = 0;
    } else if (strcmp(reduce, "norm") == 0) {
        // Each square is rounded once more; a square root halves a relative error and has one unit
        // in the last place (2 u) of its own. Squares below `tiny` may vanish.
        double lost = sqrt((double)count * ORACLE_TINY);
        r.value = sqrt(squares);
        r.bound = (growth(h + 1) / 2 * (1 + growth(h + 1)) + own + 2 * ORACLE_U) * r.value;
        r.bound += r.value < lost ? lost : (double)count * ORACLE_TINY / r.value;
    }
    return r;
}

size_t oracle_argmax(const float *x, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (x[i] > x[best]) {
            best = i;
        }
    }
    return best;
}
