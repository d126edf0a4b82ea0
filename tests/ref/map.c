// SPDX-License-Identifier: Apache-2.0
// Maps from their formulas. Each bound counts the roundings that the formula needs in f32:
//
//     abs relu clamp min max    choose one of the operands: none
//     square mul                one
//     scale add                 one per product, one for the sum
//     the others                units in the last place (each at most 2 u of the value), as stated
//                               below: division and roots are not rounded right on every device
//
// Where a result is a difference of near numbers the bound grows with what was subtracted.
#include "oracle.h"

#include <math.h>
#include <string.h>

// What gpurt promises of its own polynomials and Newton steps. What gelu loses on top, where
// 1 + tanh cancels, is computed below.
#define SQRT_UNITS 1.0
#define RECIP_UNITS 2.0
#define DIV_UNITS 3.0
#define EXP_UNITS 2.0
#define LOG_UNITS 2.0
#define TANH_UNITS 4.0
#define SIGMOID_UNITS 4.0
#define GELU_UNITS 6.0

static struct oracle_value within(double value, double bound) {
    struct oracle_value v = {value, bound + ORACLE_TINY};
    return v;
}

static struct oracle_value units(double value, double count) {
    return within(value, count * 2 * ORACLE_U * fabs(value));
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
    if (strcmp(map, "sqrt") == 0) {
        return units(sqrt(a), SQRT_UNITS);
    }
    if (strcmp(map, "recip") == 0) {
        return units(1.0 / a, RECIP_UNITS);
    }
    if (strcmp(map, "div") == 0) {
        return units(a / b, DIV_UNITS);
    }
    if (strcmp(map, "exp") == 0) {
        return units(exp(a), EXP_UNITS);
    }
    if (strcmp(map, "log") == 0) {
        return units(log(a), LOG_UNITS);
    }
    if (strcmp(map, "tanh") == 0) {
        return units(tanh(a), TANH_UNITS);
    }
    if (strcmp(map, "sigmoid") == 0) {
        return units(1.0 / (1.0 + exp(-a)), SIGMOID_UNITS);
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
    struct oracle_value unknown = {(double)NAN, (double)NAN};
    return unknown;
}
