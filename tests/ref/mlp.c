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

static double activation(const struct oracle_mlp *m, double z) {
    return m->tanh ? tanh(z) : z > 0.0 ? z : 0.0;
}

static double slope(const struct oracle_mlp *m, double h) {
    return m->tanh ? 1.0 - h * h : h > 0.0 ? 1.0 : 0.0;
}

#define MOST 128

// One sample: what goes into each layer, h[l], then the gradient of what comes out, d[l].
static void one_sample(const struct oracle_mlp *m, size_t row, struct oracle_mlp_result *r,
                       double (*h)[MOST], double (*d)[MOST]) {
    for (size_t i = 0; i < m->inputs; i += 1) {
        h[0][i] = kept(m, m->x[row * m->inputs + i]);
    }
    for (size_t l = 0; l <= m->depth; l += 1) {
        for (size_t j = 0; j < to_of(m, l); j += 1) {
            double z = m->bias[l][j];
            for (size_t i = 0; i < from_of(m, l); i += 1) {
                z += m->weight[l][j * from_of(m, l) + i] * h[l][i];
            }
            h[l + 1][j] = l == m->depth ? z : kept(m, activation(m, z));
        }
    }
    double share = 1.0 / ((double)m->samples * (double)m->outputs);
    for (size_t o = 0; o < m->outputs; o += 1) {
        double e = h[m->depth + 1][o] - m->target[row * m->outputs + o];
        bool far = m->huber > 0.0 && fabs(e) > m->huber;
        double loss = m->huber == 0.0 ? e * e
                      : far           ? m->huber * (fabs(e) - 0.5 * m->huber)
                                      : 0.5 * e * e;
        double g = m->huber == 0.0 ? 2.0 * e : far ? copysign(m->huber, e) : e;
        r->y[row * m->outputs + o] = h[m->depth + 1][o];
        r->loss += loss * share;
        d[m->depth][o] = kept(m, g * share * m->scale);
    }
    for (size_t l = m->depth; l > 0; l -= 1) {
        for (size_t i = 0; i < m->hidden; i += 1) {
            double sum = 0.0;
            for (size_t j = 0; j < to_of(m, l); j += 1) {
                sum += m->weight[l][j * m->hidden + i] * d[l][j];
            }
            d[l - 1][i] = kept(m, sum * slope(m, h[l][i]));
        }
    }
    for (size_t l = 0; l <= m->depth; l += 1) {
        for (size_t j = 0; j < to_of(m, l); j += 1) {
            for (size_t i = 0; i < from_of(m, l); i += 1) {
                r->weight[l][j * from_of(m, l) + i] += d[l][j] * h[l][i];
            }
            r->bias[l][j] += d[l][j];
        }
    }
}

void oracle_mlp(const struct oracle_mlp *m, struct oracle_mlp_result *r) {
    double(*h)[MOST] = malloc((m->depth + 2) * sizeof *h);
    double(*d)[MOST] = malloc((m->depth + 1) * sizeof *d);
    for (size_t l = 0; l <= m->depth; l += 1) {
        memset(r->weight[l], 0, from_of(m, l) * to_of(m, l) * sizeof(double));
        memset(r->bias[l], 0, to_of(m, l) * sizeof(double));
    }
    r->loss = 0.0;
    for (size_t row = 0; h && d && row < m->rows; row += 1) {
        one_sample(m, row, r, h, d);
    }
    free(h);
    free(d);
}
