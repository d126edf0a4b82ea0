// SPDX-License-Identifier: Apache-2.0
// Matrix products from the formula, each element by itself. Bounds, with u = 2^-24:
//
//     the sum of k products   (2 k + 8) u sum |a||b|: whatever the order, each product may be
//                             rounded and each addition be off by a whole unit in the last place, 2
//                             u, as in matrix units that cut off where they should round; products
//                             of 16-bit numbers are exact. Of the 8, some are for sums put together
//                             from parts
//     what follows            one rounding for each operation, on top of what its operands carry
//     a 16-bit result         half the spacing of its type, more
#include "oracle.h"

#include <math.h>
#include <string.h>

#define GELU_STEEPEST 1.13  // largest slope of gelu

// The result of one operation in f32 whose operands were already off by `bound` together.
static struct oracle_value rounded(double value, double bound) {
    struct oracle_value v = {value, bound + ORACLE_U * (fabs(value) + bound) + ORACLE_TINY};
    return v;
}

static struct oracle_value plus(struct oracle_value x, struct oracle_value y) {
    return rounded(x.value + y.value, x.bound + y.bound);
}

static struct oracle_value times(struct oracle_value x, struct oracle_value y) {
    double bound = fabs(x.value) * y.bound + fabs(y.value) * x.bound + x.bound * y.bound;
    return rounded(x.value * y.value, bound);
}

static struct oracle_value given(double value) {
    struct oracle_value v = {value, 0};
    return v;
}

static struct oracle_value product_sum(const struct oracle_gemm *g, size_t row, size_t col) {
    double sum = 0;
    double absolute = 0;
    for (size_t l = 0; l < g->k; l++) {
        double a = g->a_transposed ? g->a[l * g->m + row] : g->a[row * g->k + l];
        double b = g->b_transposed ? g->b[col * g->k + l] : g->b[l * g->n + col];
        sum += a * b;
        absolute += fabs(a * b);
    }
    double k = (double)g->k;
    double u = g->sum_u > 0 ? g->sum_u : ORACLE_U;
    struct oracle_value v = {sum, (2 * k + 8) * u * absolute + k * ORACLE_TINY};
    return v;
}

static struct oracle_value activation(const char *act, struct oracle_value x) {
    if (strcmp(act, "none") == 0) {
        return x;
    }
    struct oracle_value y = oracle_map(act, x.value, 0, 0, 0);
    y.bound += (strcmp(act, "gelu") == 0 ? GELU_STEEPEST : 1.0) * x.bound;
    return y;
}

static struct oracle_value gelu_slope(double s) {
    const double u = ORACLE_U;
    double c = sqrt(2.0 / ORACLE_PI);
    double inner = c * (s + 0.044715 * s * s * s);
    double t = tanh(inner);
    double steep = 1 - t * t;
    // tanh's own error, and that of its argument, which took six operations.
    double off = oracle_map("tanh", inner, 0, 0, 0).bound + steep * 6 * u * fabs(inner);
    double factor = 0.5 * s * c * (1 + 3 * 0.044715 * s * s);
    struct oracle_value first = rounded(0.5 * (1 + t), 0.5 * off + u);
    struct oracle_value second = {factor * steep, fabs(factor) * (2 * off + off * off + 2 * u) +
                                                      8 * u * fabs(factor * steep)};
    return plus(first, second);
}

static struct oracle_value slope(const char *act, double s) {
    if (strcmp(act, "relu") == 0) {
        return given(s > 0 ? 1 : 0);
    }
    if (strcmp(act, "tanh") == 0) {
        return rounded(1 - s * s, ORACLE_U * s * s);
    }
    if (strcmp(act, "gelu") == 0) {
        return gelu_slope(s);
    }
    return given(1);
}

struct oracle_value oracle_gemm(const struct oracle_gemm *g, size_t row, size_t col) {
    size_t at = row * g->n + col;
    struct oracle_value v = times(given(g->alpha), product_sum(g, row, col));
    if (g->beta != 0) {
        v = plus(v, times(given(g->beta), given(g->c[at])));
    }
    if (g->bias) {
        v = plus(v, given(g->bias[col]));
    }
    v = activation(g->act, v);
    if (g->add) {
        v = plus(v, given(g->add[at]));
    }
    if (g->saved) {
        v = times(v, slope(g->grad_act, g->saved[at]));
    }
    if (g->out.mantissa_bits < oracle_f32.mantissa_bits) {
        int lowest =
            2 - (1 << (g->out.exponent_bits - 1));  // exponent of the smallest normal number
        v.bound += ldexp(fabs(v.value) + v.bound, -1 - g->out.mantissa_bits);
        v.bound += ldexp(1.0, lowest - 1 - g->out.mantissa_bits);
    }
    return v;
}
