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

// A binary floating point format: sign, exponent, mantissa; the exponent's top value is infinity
// and NaN.
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

// ---- NT-Xent (nt_xent.c) ----

// The loss of rows in blocks, in which the row half a block further is the other view; and its
// slope along the i-th number, by central differences.
double oracle_nt_xent(const double *z, size_t rows, size_t cols, size_t block, double tau);
double oracle_nt_xent_slope(double *z, size_t rows, size_t cols, size_t block, double tau,
                            size_t i);

// ---- nearest neighbours (knn.c) ----

// The class that the k rows of the bank with the largest cosines vote for, with weights exp(cosine
// / tau): of rows with equal cosines the first ones, of equal votes the first class.
uint32_t oracle_knn(const float *bank, const uint32_t *classes, size_t rows, const float *query,
                    size_t width, size_t k, double tau);

// ---- elementary functions (math.c) ----

// A function of shaders/lib/math.k: recip, div (of two), sqrt, exp, log, tanh, sigmoid, sin, cos,
// sin_turn, cos_turn. Value and bound are NaN for a name that is not known.
struct oracle_value oracle_math(const char *function, double a, double b);

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

// ---- learning (learn.c) ----

// A model by its parts. points 0: an mlp over the inputs; else the same hidden layers over each
// point, pooled, then head_depth hidden layers and the output.
struct oracle_model {
    size_t inputs, points, depth, hidden, outputs, head_depth;
    const char *act;  // "none", "relu", "gelu", "tanh"
    bool residual, norm;
    bool pool_max;
    const char *loss;  // "mse", "huber", "cross_entropy", "bce"
    double delta;      // of Huber
};
// How many parameter tensors it has, and the elements of each, in the order of a state_dict:
// weights and biases of the layers, then those of the norms; for points first those over each
// point.
size_t oracle_model_tensors(const struct oracle_model *m);
size_t oracle_model_tensor_size(const struct oracle_model *m, size_t tensor);
// Mean loss over `rows` samples; targets are classes as numbers for cross-entropy.
double oracle_model_loss(const struct oracle_model *m, double *const *params, const double *x,
                         const double *target, size_t rows);
// Its derivative to element i of a tensor, by central differences.
double oracle_model_slope(const struct oracle_model *m, double *const *params, size_t tensor,
                          size_t i, const double *x, const double *target, size_t rows);

// A network as a list of layers, ended by a kind of NULL. Kinds: linear (size), norm, flatten, pool
// (word: mean or max), columns (size of them, the first by `from`), concat (of two lists), sum (of
// two lists, the second NULL: of what comes in; then the activation `word`), and the activations by
// name.
struct oracle_layer {
    const char *kind;
    size_t size;
    const char *word;
    const struct oracle_layer *first, *second;
    size_t from;
};
struct oracle_network {
    const struct oracle_layer *layers;
    size_t rows, cols;      // of a sample
    const char *loss;       // "mse", "l1", "cross_entropy"
    double smoothing;       // of cross_entropy
    const double *weights;  // of its classes: the mean is weighted; NULL: 1 each
};
// Mean loss over the samples. Parameters in their order: weight and bias of each linear layer and
// norm.
double oracle_network_loss(const struct oracle_network *n, double *const *params, const double *x,
                           const double *target, size_t samples);
// Its derivative to element i of a tensor, by central differences.
double oracle_network_slope(const struct oracle_network *n, double *const *params, size_t tensor,
                            size_t i, const double *x, const double *target, size_t samples);

// One step of an optimizer over `count` numbers, from the formulas of PyTorch's documentation; of
// LARS from those of You et al., arXiv 1708.03888, the numbers being one layer.
struct oracle_optim {
    const char *kind;  // "sgd", "adam", "adamw", "lars"
    double lr, weight_decay;
    double momentum, dampening;
    bool nesterov;
    double beta1, beta2, eps;
    double max_norm;  // 0: no clipping
    double trust;     // lars
};
// t counts from 1. first and second: what is kept, zero before the first step.
void oracle_optim_step(const struct oracle_optim *o, size_t t, size_t count, const double *grad,
                       double *param, double *first, double *second);

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
// An episode ends beyond these, in metres and rad.
#define ORACLE_CARTPOLE_X 2.4
#define ORACLE_CARTPOLE_THETA (12 * ORACLE_PI / 180)
// One Euler step of 0.02 s; right pushes with +10 N, else -10 N.
struct oracle_cartpole oracle_cartpole_step(struct oracle_cartpole s, bool right);

// ---- the Ant (ant.c) ----

// MuJoCo's order: position, quaternion, hips and ankles of legs 1 to 4; velocity in the world,
// angular rate along the torso's axes, rates of the hinges.
struct oracle_ant {
    double position[3], turn[4], hinge[8];
    double velocity[3], rate[3], hinge_rate[8];
};
struct oracle_ant_sums {
    double mass;
    double center[3];
    double momentum[3];
    double angular[3];  // momentum about the center
    double kinetic;     // energy, with the hinges' armature
};
struct oracle_ant_sums oracle_ant_sums(const struct oracle_ant *s);

// ---- evolution strategies (es.c) ----

// Augmented random search: the `top` directions by the better of their two returns [dirs][2], and
// what each weighs; ties go to the first. Then the factor before the weighed sum of their noise.
void oracle_ars_weights(const double *returns, size_t dirs, size_t top, double *weight, bool *used);
double oracle_ars_scale(const double *returns, const bool *used, size_t dirs, double step);
// Ranks spread evenly from 1/2 (the best) to -1/2; a direction weighs the difference of its sides.
void oracle_es_weights(const double *returns, size_t dirs, double *weight);
// One step of Adam uphill; step counts from 1.
double oracle_es_adam(double theta, double g, double *m, double *v, double lr, int step);
// Number `index` of a direction's noise.
double oracle_es_noise(uint32_t seed, uint32_t iteration, uint32_t direction, uint32_t index);

struct oracle_pendulum {
    double angle, rate;
};
struct oracle_pendulum oracle_pendulum_step(struct oracle_pendulum s, double action);
// Of a step from s.
double oracle_pendulum_reward(struct oracle_pendulum s, double action);
// act(w . x + b), act being tanh or relu.
double oracle_policy_hidden(const double *w, double b, const double *x, size_t count, bool smooth);

#endif
