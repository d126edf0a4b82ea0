// SPDX-License-Identifier: Apache-2.0
// Maps from their formulas. Each bound counts the roundings that the formula needs in f32:
//
//     abs relu clamp min max    choose one of the operands: none
//     square mul                one
//     scale add                 one per product, one for the sum
//     sqrt to sigmoid, div      as math.c says of gpurt's own functions; where results below the
//                               smallest normal number may be 0
//
// Where a result is a difference of near numbers the bound grows with what was subtracted.
#include "oracle.h"

#include <math.h>
#include <string.h>

// Units in the last place of what gelu is made of, each at most 2 u of the value. What it loses on
// top, where 1 + tanh cancels, is computed below.
#define TANH_UNITS 1.57
#define GELU_UNITS 6.0

static struct oracle_value within(double value, double bound) {
    struct oracle_value v = {value, bound + ORACLE_TINY};
    return v;
}

static struct oracle_value exact(double value) {
    struct oracle_value v = {value, 0};
    return v;
}

static struct oracle_value gelu(double a) {
    double c = sqrt(2.0 / ORACLE_PI);
    double inner = c * (a + 0.044715 * a * a * a);
    // a (1 + tanh t) / 2 = a / (1 + exp(-2 t)): an error of a few u in t is amplified by 2 |t|
    // relative to the result where exp(-2 t) is large.
    double value = 0.5 * a * (1.0 + tanh(inner));
    if (inner < -1) {  // 1 + tanh cancels in double as well
        value = a / (1.0 + exp(-2.0 * inner));
    }
    double relative = fabs(value) * (GELU_UNITS * 2 + 8 * fabs(inner)) * ORACLE_U;
    // A device may form 1 + tanh with tanh rounded to f32: an absolute error of a few u of a.
    double cancelled = 2 * TANH_UNITS * ORACLE_U * fabs(0.5 * a);
    return within(value, relative + cancelled);
}

struct oracle_value oracle_map(const char *map, double a, double b, double alpha, double beta) {
    const double u = ORACLE_U;
    if (strcmp(map, "scale") == 0) {
        double y = alpha * a + beta;
        return within(y, u * (fabs(alpha * a) + fabs(y)) * (1 + u));
    }
    if (strcmp(map, "add") == 0) {
        double y = alpha * a + beta * b;
        return within(y, u * (fabs(alpha * a) + fabs(beta * b) + fabs(y)) * (1 + u));
    }
    if (strcmp(map, "abs") == 0) {
        return exact(fabs(a));
    }
    if (strcmp(map, "square") == 0) {
        return within(a * a, u * a * a);
    }
    if (strcmp(map, "mul") == 0) {
        return within(a * b, u * fabs(a * b));
    }
    if (strcmp(map, "gelu") == 0) {
        return gelu(a);
    }
    if (strcmp(map, "relu") == 0) {
        return exact(isnan(a) ? a : (a > 0 ? a : 0));
    }
    if (strcmp(map, "clamp") == 0) {
        return exact(isnan(a) ? a : (a < alpha ? alpha : (a > beta ? beta : a)));
    }
    if (strcmp(map, "min") == 0) {
        return exact(isnan(a) || isnan(b) ? (double)NAN : (b < a ? b : a));
    }
    if (strcmp(map, "max") == 0) {
        return exact(isnan(a) || isnan(b) ? (double)NAN : (b > a ? b : a));
    }
    struct oracle_value v = oracle_math(map, a, b);
    return within(v.value, v.bound);
}
