// SPDX-License-Identifier: Apache-2.0
// An MLP, its loss and its gradients, sample by sample from the formulas.
#include "mlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double kept(const struct oracle_mlp *m, double v) {
    return m->rounded ? oracle_widen(m->format, oracle_narrow(m->format, v)) : v;
}

static size_t from_of(const struct oracle_mlp *m, size_t l) {
    return l == 0 ? m->inputs : m->hidden;
}

static size_t to_of(const struct oracle_mlp *m, size_t l) {
    return l == m->depth ? m->outputs : m->hidden;
}

static bool is(const char *name, const char *other) {
    return strcmp(name, other) == 0;
}

// The tanh form of gelu.
static double gelu(double z) {
    return 0.5 * z * (1.0 + tanh(sqrt(2.0 / ORACLE_PI) * (z + 0.044715 * z * z * z)));
}

static double activation(const struct oracle_mlp *m, double z) {
    return is(m->act, "tanh") ? tanh(z) : is(m->act, "gelu") ? gelu(z) : z > 0.0 ? z : 0.0;
}

// Of gelu by central differences.
static double slope(const struct oracle_mlp *m, double z) {
    if (is(m->act, "gelu")) {
        return (gelu(z + 1e-5) - gelu(z - 1e-5)) / 2e-5;
    }
    double h = kept(m, activation(m, z));
    return is(m->act, "tanh") ? 1.0 - h * h : h > 0.0 ? 1.0 : 0.0;
}

// The loss of one sample, and the gradients of its outputs; neither is divided by anything yet.
static double loss_of(const struct oracle_mlp *m, size_t row, const double *y, double *g) {
    double loss = 0.0;
    if (is(m->loss, "cross_entropy")) {
        double sum = exp(y[0]);
        for (size_t o = 1; o < m->outputs; o++) {
            sum += exp(y[o]);
        }
        for (size_t o = 0; o < m->outputs; o++) {
            g[o] = exp(y[o]) / sum - (o == m->classes[row] ? 1.0 : 0.0);
        }
        return log(sum) - y[m->classes[row]];
    }
    for (size_t o = 0; o < m->outputs; o++) {
        double t = m->target[row * m->outputs + o], e = y[o] - t;
        if (is(m->loss, "bce")) {
            loss += log(1.0 + exp(y[o])) - t * y[o];
            g[o] = 1.0 / (1.0 + exp(-y[o])) - t;
        } else if (is(m->loss, "mse")) {
            loss += e * e;
            g[o] = 2.0 * e;
        } else {
            loss += fabs(e) > 1.0 ? fabs(e) - 0.5 : 0.5 * e * e;
            g[o] = fabs(e) > 1.0 ? copysign(1.0, e) : e;
        }
    }
    return loss;
}

#define MOST 512

// One sample: what goes into each layer, h[l], the slope where it came from, s[l], then the
// gradient of what comes out, d[l].
static void one_sample(const struct oracle_mlp *m, size_t row, struct oracle_mlp_result *r,
                       double (*h)[MOST], double (*s)[MOST], double (*d)[MOST]) {
    for (size_t i = 0; i < m->inputs; i++) {
        h[0][i] = kept(m, m->x[row * m->inputs + i]);
    }
    for (size_t l = 0; l <= m->depth; l++) {
        for (size_t j = 0; j < to_of(m, l); j++) {
            double z = m->bias[l][j];
            for (size_t i = 0; i < from_of(m, l); i++) {
                z += m->weight[l][j * from_of(m, l) + i] * h[l][i];
            }
            h[l + 1][j] = l == m->depth ? z : kept(m, activation(m, z));
            s[l + 1][j] = slope(m, z);
        }
    }
    size_t shares = is(m->loss, "cross_entropy") ? 1 : m->outputs;
    double share = 1.0 / ((double)m->samples * (double)shares);
    r->loss += share * loss_of(m, row, h[m->depth + 1], d[m->depth]);
    for (size_t o = 0; o < m->outputs; o++) {
        r->y[row * m->outputs + o] = h[m->depth + 1][o];
        d[m->depth][o] = kept(m, d[m->depth][o] * share * m->scale);
    }
    for (size_t l = m->depth; l > 0; l -= 1) {
        for (size_t i = 0; i < m->hidden; i++) {
            double sum = 0.0;
            for (size_t j = 0; j < to_of(m, l); j++) {
                sum += m->weight[l][j * m->hidden + i] * d[l][j];
            }
            d[l - 1][i] = kept(m, sum * s[l][i]);
        }
    }
    for (size_t l = 0; l <= m->depth; l++) {
        for (size_t j = 0; j < to_of(m, l); j++) {
            for (size_t i = 0; i < from_of(m, l); i++) {
                r->weight[l][j * from_of(m, l) + i] += d[l][j] * h[l][i];
            }
            r->bias[l][j] += d[l][j];
        }
    }
}

void oracle_mlp(const struct oracle_mlp *m, struct oracle_mlp_result *r) {
    double(*h)[MOST] = malloc((m->depth + 2) * sizeof *h);
    double(*s)[MOST] = malloc((m->depth + 2) * sizeof *s);
    double(*d)[MOST] = malloc((m->depth + 1) * sizeof *d);
    for (size_t l = 0; l <= m->depth; l++) {
        memset(r->weight[l], 0, from_of(m, l) * to_of(m, l) * sizeof(double));
        memset(r->bias[l], 0, to_of(m, l) * sizeof(double));
    }
    r->loss = 0.0;
    for (size_t row = 0; h && s && d && row < m->rows; row++) {
        one_sample(m, row, r, h, s, d);
    }
    free(h);
    free(s);
    free(d);
}
