// SPDX-License-Identifier: Apache-2.0
// See mlp_reference.h.
#include "mlp_reference.h"

#include <math.h>
#include <stdlib.h>

static uint32_t from_of(const struct grt_mlp_desc *m, uint32_t l) {
    return l == 0 ? m->inputs : m->hidden;
}

static uint32_t to_of(const struct grt_mlp_desc *m, uint32_t l) {
    return l == m->depth ? m->outputs : m->hidden;
}

size_t grt_mlp_reference_at(const struct grt_mlp_desc *m, uint32_t layer) {
    size_t at = 0;
    for (uint32_t l = 0; l < layer; l++) {
        at += ((size_t)from_of(m, l) + 1) * to_of(m, l);
    }
    return at;
}

// ---- numbers ----

// To the nearest of the type, ties to even.
static double rounded(enum grt_dtype type, double v) {
    int digits = type == GRT_F16 ? 11 : type == GRT_BF16 ? 8 : 24, exponent;
    int least = type == GRT_F16 ? -13 : -125;
    if (type == GRT_F32 || v == 0 || !isfinite(v)) {
        return v;
    }
    frexp(v, &exponent);
    double unit = ldexp(1, (exponent > least ? exponent : least) - digits);
    return nearbyint(v / unit) * unit;
}

static double gelu_inner(double z) {
    return 0.7978845608028654 * (z + 0.044715 * z * z * z);
}

static double activation(enum grt_act act, double z) {
    switch (act) {
    case GRT_ACT_RELU:
        return z > 0 ? z : 0;
    case GRT_ACT_GELU:
        return 0.5 * z * (1 + tanh(gelu_inner(z)));
    case GRT_ACT_TANH:
        return tanh(z);
    default:
        return z;
    }
}

// Of the activation that made h of z.
static double slope_of(enum grt_act act, double z, double h) {
    double t = tanh(gelu_inner(z));
    switch (act) {
    case GRT_ACT_RELU:
        return h > 0 ? 1 : 0;
    case GRT_ACT_GELU:
        return 0.5 * (1 + t) +
               0.5 * z * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * z * z);
    case GRT_ACT_TANH:
        return 1 - h * h;
    default:
        return 1;
    }
}

// ---- the loss of sample s: its value, and the gradients of its outputs ----

static double cross_entropy(const struct grt_mlp_reference *r, uint32_t s, const double *y,
                            double *d) {
    uint32_t answer = ((const uint32_t *)r->target)[s];
    double top = y[0];
    for (uint32_t o = 1; o < r->model.outputs; o++) {
        top = fmax(top, y[o]);
    }
    double sum = d[0] = exp(y[0] - top);
    for (uint32_t o = 1; o < r->model.outputs; o++) {
        d[o] = exp(y[o] - top);
        sum += d[o];
    }
    for (uint32_t o = 0; o < r->model.outputs; o++) {
        d[o] = d[o] / sum - (o == answer ? 1 : 0);
    }
    return log(sum) + top - y[answer];
}

static double single_loss(const struct grt_mlp_reference *r, double y, double target, double *d) {
    double e = y - target;
    if (r->loss == GRT_LOSS_BCE) {
        *d = 1 / (1 + exp(-y)) - target;
        return fmax(y, 0) - y * target + log1p(exp(-fabs(y)));
    }
    if (r->loss == GRT_LOSS_HUBER) {
        bool far = fabs(e) > r->delta;
        *d = far ? copysign(r->delta, e) : e;
        return far ? r->delta * (fabs(e) - 0.5 * r->delta) : 0.5 * e * e;
    }
    *d = 2 * e;
    return e * e;
}

// ---- one sample ----

// Units of all layers: what goes into them, the slopes where that came from, gradients of what
// comes out.
struct units {
    double *h, *slopes, *d;
    size_t pitch;  // of a layer
};

static void forward(const struct grt_mlp_reference *r, const double *params, struct units *u,
                    uint32_t s) {
    const struct grt_mlp_desc *m = &r->model;
    for (uint32_t i = 0; i < m->inputs; i++) {
        u->h[i] = rounded(r->dtype, (double)r->x[(size_t)s * m->inputs + i]);
    }
    for (uint32_t l = 0; l <= m->depth; l++) {
        uint32_t from = from_of(m, l), to = to_of(m, l);
        const double *w = params + grt_mlp_reference_at(m, l), *bias = w + (size_t)from * to;
        const double *in = u->h + l * u->pitch;
        double *out = u->h + (l + 1) * u->pitch, *slopes = u->slopes + (l + 1) * u->pitch;
        for (uint32_t j = 0; j < to; j++) {
            double z = bias[j];
            for (uint32_t i = 0; i < from; i++) {
                z += w[(size_t)j * from + i] * in[i];
            }
            out[j] = l == m->depth ? z : rounded(r->dtype, activation(m->act, z));
            slopes[j] = slope_of(m->act, z, out[j]);
        }
    }
}

// Returns the loss.
static double backward(const struct grt_mlp_reference *r, const double *params, struct units *u,
                       uint32_t s) {
    const struct grt_mlp_desc *m = &r->model;
    const double *y = u->h + (m->depth + 1) * u->pitch;
    double *d = u->d + m->depth * u->pitch, loss = 0;
    bool classes = r->loss == GRT_LOSS_CROSS_ENTROPY;
    double share = 1 / ((double)r->rows * (classes ? 1 : m->outputs));
    if (classes) {
        loss = cross_entropy(r, s, y, d);
    }
    for (uint32_t o = 0; o < m->outputs; o++) {
        const float *target = (const float *)r->target + (size_t)s * m->outputs;
        loss += classes ? 0 : single_loss(r, y[o], (double)target[o], &d[o]);
        d[o] = rounded(r->dtype, d[o] * share * r->scale);
    }
    for (uint32_t l = m->depth; l > 0; l--) {
        uint32_t from = from_of(m, l), to = to_of(m, l);
        const double *w = params + grt_mlp_reference_at(m, l), *above = u->d + l * u->pitch;
        double *below = u->d + (l - 1) * u->pitch;
        for (uint32_t i = 0; i < from; i++) {
            below[i] = 0;
        }
        for (uint32_t j = 0; j < to; j++) {
            for (uint32_t i = 0; above[j] != 0 && i < from; i++) {
                below[i] += w[(size_t)j * from + i] * above[j];
            }
        }
        for (uint32_t i = 0; i < from; i++) {
            below[i] = rounded(r->dtype, below[i] * u->slopes[l * u->pitch + i]);
        }
    }
    return loss * share;
}

static void add_gradients(const struct grt_mlp_reference *r, const struct units *u, double copies) {
    const struct grt_mlp_desc *m = &r->model;
    for (uint32_t l = 0; l <= m->depth; l++) {
        uint32_t from = from_of(m, l), to = to_of(m, l);
        double *w = r->grads + grt_mlp_reference_at(m, l), *bias = w + (size_t)from * to;
        for (uint32_t j = 0; j < to; j++) {
            double d = copies * u->d[l * u->pitch + j];
            for (uint32_t i = 0; d != 0 && i < from; i++) {
                w[(size_t)j * from + i] += d * u->h[l * u->pitch + i];
            }
            bias[j] += d;
        }
    }
}

// The parameters as products see them: biases are added to sums in f32.
static void widen(const struct grt_mlp_reference *r, double *params) {
    const struct grt_mlp_desc *m = &r->model;
    for (uint32_t l = 0; l <= m->depth; l++) {
        size_t at = grt_mlp_reference_at(m, l), weights = (size_t)from_of(m, l) * to_of(m, l);
        for (size_t i = 0; i < weights + to_of(m, l); i++) {
            double v = (double)r->params[at + i];
            params[at + i] = i < weights ? rounded(r->dtype, v) : v;
        }
    }
}

bool grt_mlp_reference(struct grt_mlp_reference *r) {
    const struct grt_mlp_desc *m = &r->model;
    size_t count = grt_mlp_reference_at(m, m->depth + 1), pitch = m->inputs;
    pitch = m->hidden > pitch ? m->hidden : pitch;
    pitch = m->outputs > pitch ? m->outputs : pitch;
    size_t of_layers = pitch * (m->depth + 2);
    double *work = calloc(count + 3 * of_layers + 1, sizeof *work);
    r->grads = calloc(count > 0 ? count : 1, sizeof *r->grads);
    r->mean = 0;
    if (!work || !r->grads) {
        free(work);
        free(r->grads);
        r->grads = NULL;
        return false;
    }
    struct units u = {work + count, work + count + of_layers, work + count + 2 * of_layers, pitch};
    widen(r, work);
    for (uint32_t s = 0; s < r->period && s < r->rows; s++) {
        uint64_t copies = r->rows / r->period + (s < r->rows % r->period ? 1 : 0);
        forward(r, work, &u, s);
        for (uint32_t o = 0; r->y && o < m->outputs; o++) {
            r->y[(size_t)s * m->outputs + o] = u.h[(m->depth + 1) * pitch + o];
        }
        r->mean += (double)copies * backward(r, work, &u, s);
        add_gradients(r, &u, (double)copies);
    }
    free(work);
    return true;
}

double grt_mlp_reference_distance(const float *got, const double *want, size_t count) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        double e = (double)got[i] - want[i];
        difference += e * e;
        norm += want[i] * want[i];
    }
    return isfinite(difference) ? sqrt(difference) / (sqrt(norm) + 1e-30) : INFINITY;
}
