// SPDX-License-Identifier: Apache-2.0
// Models, losses and optimizers from their formulas, one sample after the other.
#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH 256

// ---- parameters ----

// Linear layers of a stack of hidden layers, then, with an output layer, one more.
static size_t stack_tensors(size_t depth, bool output, bool norm) {
    return 2 * (depth + (output ? 1 : 0)) + (norm ? 2 * depth : 0);
}

static size_t stack_size(const struct oracle_model *m, size_t inputs, size_t depth, bool output,
                         size_t tensor) {
    size_t layers = depth + (output ? 1 : 0);
    if (tensor >= 2 * layers) {
        return m->hidden;  // a norm's weight or bias
    }
    size_t layer = tensor / 2;
    size_t out = layer == depth ? m->outputs : m->hidden;
    return tensor % 2 == 1 ? out : out * (layer == 0 ? inputs : m->hidden);
}

size_t oracle_model_tensors(const struct oracle_model *m) {
    if (m->points == 0) {
        return stack_tensors(m->depth, true, m->norm);
    }
    return stack_tensors(m->depth, false, m->norm) + stack_tensors(m->head_depth, true, m->norm);
}

size_t oracle_model_tensor_size(const struct oracle_model *m, size_t tensor) {
    if (m->points == 0) {
        return stack_size(m, m->inputs, m->depth, true, tensor);
    }
    size_t first = stack_tensors(m->depth, false, m->norm);
    return tensor < first ? stack_size(m, m->inputs, m->depth, false, tensor)
                          : stack_size(m, m->hidden, m->head_depth, true, tensor - first);
}

// ---- forward ----

static double activate(const char *act, double v) {
    if (strcmp(act, "relu") == 0) {
        return v > 0 ? v : 0;
    }
    if (strcmp(act, "gelu") == 0) {
        return 0.5 * v * (1 + tanh(sqrt(2 / ORACLE_PI) * (v + 0.044715 * v * v * v)));
    }
    return strcmp(act, "tanh") == 0 ? tanh(v) : v;
}

static void linear(const double *weight, const double *bias, const double *x, size_t inputs,
                   double *y, size_t outputs) {
    for (size_t o = 0; o < outputs; o++) {
        y[o] = bias[o];
        for (size_t i = 0; i < inputs; i++) {
            y[o] += weight[o * inputs + i] * x[i];
        }
    }
}

static void normalise(const double *weight, const double *bias, double *v, size_t count) {
    double mean = 0;
    double variance = 0;
    for (size_t i = 0; i < count; i++) {
        mean += v[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        variance += (v[i] - mean) * (v[i] - mean) / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        v[i] = (v[i] - mean) / sqrt(variance + 1e-5) * weight[i] + bias[i];
    }
}

// Hidden layers, and the output layer where there is one; y is hidden or outputs wide.
static void stack(const struct oracle_model *m, double *const *params, size_t depth, bool output,
                  const double *x, size_t inputs, double *y) {
    double h[MAX_WIDTH];
    double z[MAX_WIDTH];
    const size_t norms = 2 * (depth + (output ? 1 : 0));
    memcpy(h, x, inputs * sizeof *h);
    for (size_t l = 0; l < depth; l++) {
        linear(params[2 * l], params[2 * l + 1], h, l == 0 ? inputs : m->hidden, z, m->hidden);
        if (m->norm) {
            normalise(params[norms + 2 * l], params[norms + 2 * l + 1], z, m->hidden);
        }
        for (size_t i = 0; i < m->hidden; i++) {
            h[i] = activate(m->act, z[i]) + (m->residual && l > 0 ? h[i] : 0);
        }
    }
    if (output) {
        linear(params[2 * depth], params[2 * depth + 1], h, depth == 0 ? inputs : m->hidden, y,
               m->outputs);
    } else {
        memcpy(y, h, m->hidden * sizeof *y);
    }
}

static void model(const struct oracle_model *m, double *const *params, const double *x, double *y) {
    if (m->points == 0) {
        stack(m, params, m->depth, true, x, m->inputs, y);
        return;
    }
    double pooled[MAX_WIDTH] = {0};
    double features[MAX_WIDTH];
    for (size_t p = 0; p < m->points; p++) {
        stack(m, params, m->depth, false, x + p * m->inputs, m->inputs, features);
        for (size_t i = 0; i < m->hidden; i++) {
            if (!m->pool_max) {
                pooled[i] += features[i] / (double)m->points;
            } else if (p == 0 || features[i] > pooled[i]) {
                pooled[i] = features[i];
            }
        }
    }
    stack(m, params + stack_tensors(m->depth, false, m->norm), m->head_depth, true, pooled,
          m->hidden, y);
}

// ---- losses ----

static double element_loss(const struct oracle_model *m, double y, double t) {
    double d = y - t;
    if (strcmp(m->loss, "mse") == 0) {
        return d * d;
    }
    if (strcmp(m->loss, "huber") == 0) {
        return fabs(d) <= m->delta ? 0.5 * d * d : m->delta * (fabs(d) - 0.5 * m->delta);
    }
    return fmax(y, 0) - y * t + log1p(exp(-fabs(y)));
}

static double sample_loss(const struct oracle_model *m, const double *y, const double *t) {
    double sum = 0;
    if (strcmp(m->loss, "cross_entropy") == 0) {
        sum = exp(y[0]);
        for (size_t i = 1; i < m->outputs; i++) {
            sum += exp(y[i]);
        }
        return log(sum) - y[(size_t)t[0]];
    }
    for (size_t i = 0; i < m->outputs; i++) {
        sum += element_loss(m, y[i], t[i]);
    }
    return sum / (double)m->outputs;
}

double oracle_model_loss(const struct oracle_model *m, double *const *params, const double *x,
                         const double *target, size_t rows) {
    size_t sample = m->inputs * (m->points > 0 ? m->points : 1);
    size_t targets = strcmp(m->loss, "cross_entropy") == 0 ? 1 : m->outputs;
    double sum = 0;
    for (size_t r = 0; r < rows; r++) {
        double y[MAX_WIDTH] = {0};
        model(m, params, x + r * sample, y);
        sum += sample_loss(m, y, target + r * targets);
    }
    return sum / (double)rows;
}

double oracle_model_slope(const struct oracle_model *m, double *const *params, size_t tensor,
                          size_t i, const double *x, const double *target, size_t rows) {
    const double h = 1e-6;
    double kept = params[tensor][i];
    params[tensor][i] = kept + h;
    double above = oracle_model_loss(m, params, x, target, rows);
    params[tensor][i] = kept - h;
    double below = oracle_model_loss(m, params, x, target, rows);
    params[tensor][i] = kept;
    return (above - below) / (2 * h);
}

// ---- optimizers ----

void oracle_optim_step(const struct oracle_optim *o, size_t t, size_t count, const double *grad,
                       double *param, double *first, double *second) {
    double norm = 0;
    for (size_t i = 0; i < count; i++) {
        norm += grad[i] * grad[i];
    }
    double clip = o->max_norm > 0 ? fmin(1, o->max_norm / (sqrt(norm) + 1e-6)) : 1;
    bool lars = strcmp(o->kind, "lars") == 0;
    double length = 0, local = 1;
    for (size_t i = 0; i < count; i++) {
        length += param[i] * param[i];
    }
    if (lars && length > 0 && norm > 0) {
        local = o->trust * sqrt(length) / (clip * sqrt(norm) + o->weight_decay * sqrt(length));
    }
    for (size_t i = 0; i < count; i++) {
        double g = grad[i] * clip;
        if (strcmp(o->kind, "adamw") == 0) {
            param[i] -= o->lr * o->weight_decay * param[i];
        } else {
            g += o->weight_decay * param[i];
        }
        g *= local;
        if (strcmp(o->kind, "sgd") == 0 || lars) {
            if (o->momentum != 0) {
                first[i] = t == 1 ? g : o->momentum * first[i] + (1 - o->dampening) * g;
                g = o->nesterov ? g + o->momentum * first[i] : first[i];
            }
            param[i] -= o->lr * g;
            continue;
        }
        first[i] = o->beta1 * first[i] + (1 - o->beta1) * g;
        second[i] = o->beta2 * second[i] + (1 - o->beta2) * g * g;
        double m_hat = first[i] / (1 - pow(o->beta1, (double)t));
        double v_hat = second[i] / (1 - pow(o->beta2, (double)t));
        param[i] -= o->lr * m_hat / (sqrt(v_hat) + o->eps);
    }
}
