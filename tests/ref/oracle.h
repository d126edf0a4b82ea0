// SPDX-License-Identifier: Apache-2.0
// Oracles: what the right answer is, in double precision, by plain loops from the formula.
//
// Nothing here includes a header of gpurt, so an error in gpurt cannot hide in both places. Where
// the right answer is a range, the oracle says so: a value and how far from it a device may be. The
// bound comes from the element type and the number of roundings, never from the device:
//
//     u     2^-24    half the gap between 1 and the next float: one rounding to nearest
//     tiny  2^-126   smallest normal float: devices may flush what is smaller to zero
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORACLE_U 0x1p-24
#define ORACLE_TINY 0x1p-126
#define ORACLE_PI 3.14159265358979323846

struct oracle_value {
    double value;
    double bound;
};

// Whether a float may stand for the value: within the bound, NaN for NaN, and infinite only where
// the bound reaches past the largest float.
bool oracle_agrees(float got, struct oracle_value want);

// ---- conversions (convert.c) ----

// A binary floating point format: sign, exponent, mantissa; the exponent's top value is infinity and NaN.
struct oracle_format {
    int exponent_bits;
    int mantissa_bits;
};
extern const struct oracle_format oracle_f16;
extern const struct oracle_format oracle_bf16;
extern const struct oracle_format oracle_f32;

double oracle_widen(struct oracle_format format, uint32_t bits);
// To nearest, ties to even; beyond the largest number to infinity; NaN gives some NaN.
uint32_t oracle_narrow(struct oracle_format format, double value);
bool oracle_is_nan(struct oracle_format format, uint32_t bits);

// ---- maps (map.c) ----

// A map by its name, "scale" to "max"; value and bound are NaN for a name that is not known.
struct oracle_value oracle_map(const char *map, double a, double b, double alpha, double beta);

// ---- reductions (reduce.c) ----

// A reduction by its name: "sum", "mean", "max" (NaN if any is), "norm".
struct oracle_value oracle_reduce(const char *reduce, const float *x, size_t count);
// First index of the largest.
size_t oracle_argmax(const float *x, size_t count);

// ---- matrix products (gemm.c) ----

// c = (act(alpha op(a) op(b) + beta c + bias) + add) * act'(saved), one product. Operands hold the
// numbers as they are after rounding to their type; those that are NULL take no part.
struct oracle_gemm {
    size_t m, n, k;
    bool a_transposed, b_transposed;
    const double *a, *b;  // as stored: [m][k] and [k][n], or the other way round
    double alpha, beta;
    const double *c;     // [m][n], before
    const double *bias;  // [n]
    const char *act;     // "none", "relu", "gelu", "tanh"
    const double *add;   // [m][n]
    const char *grad_act;
    const double *saved;  // [m][n]: the output of relu and tanh, the argument of gelu
    struct oracle_format out;
    double sum_u;  // half the gap above 1 of what sums are kept in; 0: ORACLE_U
};
struct oracle_value oracle_gemm(const struct oracle_gemm *g, size_t row, size_t col);

// ---- rows and columns (nn.c) ----

// y[i] for every i of a row.
void oracle_softmax(const float *x, size_t count, struct oracle_value *y);

// What a row is normed by: its mean, and 1 / sqrt(variance + eps).
struct oracle_norm {
    struct oracle_value mean, rstd;
};
struct oracle_norm oracle_norm(const float *x, size_t count, double eps);
// (x - mean) rstd weight + bias
struct oracle_value oracle_layer_norm(const struct oracle_norm *norm, double x, double weight,
                                      double bias);

// Sum of x[row][col] over the rows.
struct oracle_value oracle_colsum(const float *x, size_t rows, size_t cols, size_t col);

// ---- shapes (shape.c) ----

// y[j][i] = x[i][j] of elements of `size` bytes.
void oracle_transpose(void *y, const void *x, size_t rows, size_t cols, size_t size);

// ---- random numbers (random.c) ----

// Philox4x32-10: the block of random words that a counter and a key stand for.
void oracle_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t block[4]);
// Element i of a tensor: word i%4 of the block with counter (i/4, stream, step).
uint32_t oracle_bits(const uint32_t seed[2], const uint32_t step[2], uint32_t stream, uint64_t i);
// The same element as a number in [0, 1); exact.
double oracle_uniform(uint32_t word);
// One of a pair of normal numbers by Box and Muller; second: the one made with the sine.
struct oracle_value oracle_normal(uint32_t word0, uint32_t word1, bool second);

// ---- cart-pole (cartpole.c) ----

// Cart position and speed, pole angle and angular speed.
struct oracle_cartpole {
    double x, x_dot, theta, theta_dot;
};
// One Euler step of 0.02 s; right pushes with +10 N, else -10 N.
struct oracle_cartpole oracle_cartpole_step(struct oracle_cartpole s, bool right);

#endif
