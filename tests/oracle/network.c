// SPDX-License-Identifier: Apache-2.0
// Networks of layers from their formulas, one sample after the other, in double precision.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

static double activation(const char *name, double v) {
    if (strcmp(name, "relu") == 0) {
        return v > 0 ? v : 0;
    }
    if (strcmp(name, "gelu") == 0) {
        return 0.5 * v * (1 + tanh(sqrt(2 / acos(-1.0)) * (v + 0.044715 * v * v * v)));
    }
    if (strcmp(name, "gelu_exact") == 0) {
        return 0.5 * v * erfc(-v / sqrt(2.0));
    }
    if (strcmp(name, "tanh") == 0) {
        return tanh(v);
    }
    if (strcmp(name, "silu") == 0) {
        return v / (1 + exp(-v));
    }
    if (strcmp(name, "sigmoid") == 0) {
        return 1 / (1 + exp(-v));
    }
    return v;
}

static const struct oracle_layer *end_of(const struct oracle_layer *list) {
    while (list->kind) {
        list++;
    }
    return list;
}

// Values of one sample: [rows][cols].
struct value {
    size_t rows, cols;
    double *v;
};

static struct value value_of(size_t rows, size_t cols) {
    return (struct value){rows, cols, calloc(rows * cols, sizeof(double))};
}

static struct value run(const struct oracle_layer *list, struct value x, double *const **params);

static struct value run_layer(const struct oracle_layer *l, struct value x,
                              double *const **params) {
    size_t count = x.rows * x.cols;
    if (strcmp(l->kind, "linear") == 0) {
        const double *weight = *(*params)++, *bias = *(*params)++;
        struct value y = value_of(x.rows, l->size);
        for (size_t r = 0; r < x.rows; r++) {
            for (size_t o = 0; o < l->size; o++) {
                double sum = bias[o];
                for (size_t i = 0; i < x.cols; i++) {
                    sum += weight[o * x.cols + i] * x.v[r * x.cols + i];
                }
                y.v[r * l->size + o] = sum;
            }
        }
        return y;
    }
    struct value y = value_of(x.rows, x.cols);
    if (strcmp(l->kind, "norm") == 0) {
        const double *weight = *(*params)++, *bias = *(*params)++;
        for (size_t r = 0; r < x.rows; r++) {
            const double *v = x.v + r * x.cols;
            double mean = 0, variance = 0;
            for (size_t i = 0; i < x.cols; i++) {
                mean += v[i] / (double)x.cols;
            }
            for (size_t i = 0; i < x.cols; i++) {
                variance += (v[i] - mean) * (v[i] - mean) / (double)x.cols;
            }
            for (size_t i = 0; i < x.cols; i++) {
                y.v[r * x.cols + i] = (v[i] - mean) / sqrt(variance + 1e-5) * weight[i] + bias[i];
            }
        }
    } else if (strcmp(l->kind, "geglu") == 0) {
        y.cols = x.cols / 2;
        for (size_t r = 0; r < x.rows; r++) {
            for (size_t i = 0; i < y.cols; i++) {
                y.v[r * y.cols + i] =
                    x.v[r * x.cols + i] * activation("gelu", x.v[r * x.cols + y.cols + i]);
            }
        }
    } else if (strcmp(l->kind, "flatten") == 0) {
        memcpy(y.v, x.v, count * sizeof(double));
        y.rows = 1;
        y.cols = count;
    } else if (strcmp(l->kind, "pool") == 0) {
        for (size_t c = 0; c < x.cols; c++) {
            double mean = 0, most = x.v[c];
            for (size_t r = 0; r < x.rows; r++) {
                mean += x.v[r * x.cols + c] / (double)x.rows;
                most = fmax(most, x.v[r * x.cols + c]);
            }
            y.v[c] = strcmp(l->word, "max") == 0 ? most : mean;
        }
        y.rows = 1;
    } else if (strcmp(l->kind, "columns") == 0) {
        y.cols = l->size;
        for (size_t r = 0; r < x.rows; r++) {
            memcpy(y.v + r * y.cols, x.v + r * x.cols + l->from, y.cols * sizeof(double));
        }
    } else if (strcmp(l->kind, "concat") == 0) {
        struct value a = run(l->first, x, params), b = run(l->second, x, params);
        free(y.v);
        y = value_of(a.rows, a.cols + b.cols);
        for (size_t r = 0; r < y.rows; r++) {
            memcpy(y.v + r * y.cols, a.v + r * a.cols, a.cols * sizeof(double));
            memcpy(y.v + r * y.cols + a.cols, b.v + r * b.cols, b.cols * sizeof(double));
        }
        free(a.v);
        free(b.v);
    } else if (strcmp(l->kind, "sum") == 0) {
        // The first list, then the second; none: x itself. Then the activation.
        struct value a = run(l->first, x, params);
        struct value b = l->second ? run(l->second, x, params) : x;
        free(y.v);
        y = value_of(a.rows, a.cols);
        for (size_t i = 0; i < a.rows * a.cols; i++) {
            y.v[i] = activation(l->word ? l->word : "none", a.v[i] + b.v[i]);
        }
        free(a.v);
        if (l->second) {
            free(b.v);
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            y.v[i] = activation(l->kind, x.v[i]);
        }
    }
    return y;
}

// x stays.
static struct value run(const struct oracle_layer *list, struct value x, double *const **params) {
    struct value now = value_of(x.rows, x.cols);
    memcpy(now.v, x.v, x.rows * x.cols * sizeof(double));
    for (const struct oracle_layer *l = list; l < end_of(list); l++) {
        struct value next = run_layer(l, now, params);
        free(now.v);
        now = next;
    }
    return now;
}

double oracle_network_loss(const struct oracle_network *n, double *const *params, const double *x,
                           const double *target, size_t samples) {
    double sum = 0, weight = 0;
    for (size_t s = 0; s < samples; s++) {
        double *const *at = params;
        struct value in = {n->rows, n->cols, (double *)(x + s * n->rows * n->cols)};
        struct value y = run(n->layers, in, &at);
        size_t count = y.rows * y.cols;
        if (strcmp(n->loss, "cross_entropy") == 0) {
            double total = exp(y.v[0]), all = y.v[0];
            for (size_t i = 1; i < count; i++) {
                total += exp(y.v[i]);
                all += y.v[i];
            }
            if (n->weights) {
                // As PyTorch's documentation has it: sums over classes of weight, wanted share and
                // -log p.
                for (size_t i = 0; i < count; i++) {
                    double wanted = n->smoothing / (double)count +
                                    (i == (size_t)target[s] ? 1 - n->smoothing : 0);
                    sum += n->weights[i] * wanted * (log(total) - y.v[i]);
                }
                weight += n->weights[(size_t)target[s]];
                free(y.v);
                continue;
            }
            sum += (log(total) - (1 - n->smoothing) * y.v[(size_t)target[s]] -
                    n->smoothing * all / (double)count) /
                   (double)samples;
        } else {
            for (size_t i = 0; i < count; i++) {
                double d = y.v[i] - target[s * count + i];
                sum += (strcmp(n->loss, "l1") == 0 ? fabs(d) : d * d) / (double)(count * samples);
            }
        }
        free(y.v);
    }
    return n->weights ? sum / weight : sum;
}

double oracle_network_slope(const struct oracle_network *n, double *const *params, size_t tensor,
                            size_t i, const double *x, const double *target, size_t samples) {
    double kept = params[tensor][i], step = 1e-6 * (1 + fabs(kept));
    params[tensor][i] = kept + step;
    double above = oracle_network_loss(n, params, x, target, samples);
    params[tensor][i] = kept - step;
    double below = oracle_network_loss(n, params, x, target, samples);
    params[tensor][i] = kept;
    return (above - below) / (2 * step);
}
