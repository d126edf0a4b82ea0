// SPDX-License-Identifier: Apache-2.0
// See bench_mlp_check.h. Forward and backward by the formulas, sample by sample; what 16-bit training keeps in
// 16 bits, inputs, hidden units and gradients of sums, is rounded here too, and so are the weights.
#include "bench_mlp_check.h"

#include <math.h>
#include <stdlib.h>

#define MAX_LAYERS 64

struct net {
    enum grt_dtype kept;
    uint32_t layers;
    uint32_t from[MAX_LAYERS], to[MAX_LAYERS];
    size_t first[MAX_LAYERS];  // of the layer's weights, its biases behind them
    double *all;               // parameters, their gradients, then h and d of each layer
    size_t grads, h[MAX_LAYERS + 2], d[MAX_LAYERS];  // where these begin
};

// To the nearest of the type, ties to even.
static double rounded(enum grt_dtype type, double v) {
    int digits = type == GRT_F16 ? 11 : type == GRT_BF16 ? 8 : 24, exponent;
    int least = type == GRT_F16 ? -13 : -125;
    if (type == GRT_F32 || v == 0 || !isfinite(v))
        return v;
    frexp(v, &exponent);
    double unit = ldexp(1, (exponent > least ? exponent : least) - digits);
    return nearbyint(v / unit) * unit;
}

static void one_sample(struct net *n, const float *x, const float *y, double slope) {
    for (uint32_t i = 0; i < n->from[0]; i++)
        n->all[n->h[0] + i] = rounded(n->kept, (double)x[i]);
    for (uint32_t l = 0; l < n->layers; l++) {
        const double *w = n->all + n->first[l], *b = w + (size_t)n->from[l] * n->to[l];
        for (uint32_t j = 0; j < n->to[l]; j++) {
            double z = b[j];
            for (uint32_t i = 0; i < n->from[l]; i++)
                z += w[(size_t)j * n->from[l] + i] * n->all[n->h[l] + i];
            bool last = l + 1 == n->layers;
            n->all[n->h[l + 1] + j] = last ? z : rounded(n->kept, z > 0 ? z : 0);
        }
    }
    uint32_t last = n->layers - 1;
    for (uint32_t o = 0; o < n->to[last]; o++)
        n->all[n->d[last] + o] =
            rounded(n->kept, 2 * slope * (n->all[n->h[n->layers] + o] - (double)y[o]));
    for (uint32_t l = last; l > 0; l--) {
        const double *w = n->all + n->first[l];
        for (uint32_t i = 0; i < n->from[l]; i++) {
            double sum = 0;
            for (uint32_t j = 0; j < n->to[l]; j++)
                sum += w[(size_t)j * n->from[l] + i] * n->all[n->d[l] + j];
            n->all[n->d[l - 1] + i] = n->all[n->h[l] + i] > 0 ? rounded(n->kept, sum) : 0;
        }
    }
}

static void add_gradients(struct net *n, double copies) {
    for (uint32_t l = 0; l < n->layers; l++) {
        double *w = n->all + n->grads + n->first[l], *b = w + (size_t)n->from[l] * n->to[l];
        for (uint32_t j = 0; j < n->to[l]; j++) {
            double d = copies * n->all[n->d[l] + j];
            for (uint32_t i = 0; d != 0 && i < n->from[l]; i++)
                w[(size_t)j * n->from[l] + i] += d * n->all[n->h[l] + i];
            b[j] += d;
        }
    }
}

static bool begin(struct net *n, const struct grt_learner_desc *desc, const float *before) {
    const struct grt_model_desc *m = &desc->model;
    size_t count = 0, units = m->inputs;
    *n = (struct net){.kept = desc->precision, .layers = m->depth + 1};
    for (uint32_t l = 0; l < n->layers; l++) {
        n->from[l] = l == 0 ? m->inputs : m->hidden;
        n->to[l] = l == m->depth ? m->outputs : m->hidden;
        n->first[l] = count;
        count += (size_t)n->from[l] * n->to[l] + n->to[l];
        units += 2 * (size_t)n->to[l];
    }
    n->all = calloc(2 * count + units, sizeof(double));
    if (!n->all)
        return false;
    n->grads = count;
    n->h[0] = 2 * count;
    n->h[1] = n->h[0] + m->inputs;
    for (uint32_t l = 0; l < n->layers; l++) {
        n->d[l] = n->h[l + 1] + n->to[l];
        if (l + 1 < n->layers)
            n->h[l + 2] = n->d[l] + n->to[l];
    }
    for (uint32_t l = 0; l < n->layers; l++) {
        size_t weights = (size_t)n->from[l] * n->to[l];
        for (size_t i = 0; i < weights + n->to[l]; i++) {
            double v = (double)before[n->first[l] + i];
            // Biases are added to sums in f32.
            n->all[n->first[l] + i] = i < weights ? rounded(n->kept, v) : v;
        }
    }
    return true;
}

// Of tensor `got` from the `count` numbers at `want`, relative to their norm.
static double distance(const struct grt_tensor *got, const double *want, size_t count) {
    float *values = malloc(count * sizeof *values);
    double difference = 0, norm = 0;
    if (!values || grt_tensor_count(got) != count ||
        !grt_buf_read(got->range.buf, got->range.offset, values, count * sizeof *values)) {
        free(values);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        double e = (double)values[i] - want[i];
        difference += e * e;
        norm += want[i] * want[i];
    }
    free(values);
    return isfinite(difference) ? sqrt(difference) / (sqrt(norm) + 1e-30) : INFINITY;
}

double mlp_check(struct grt_learner *learner, const float *before,
                 const struct mlp_samples *samples, double scale) {
    const struct grt_learner_desc *desc = grt_learner_desc_of(learner);
    const struct grt_model_desc *m = &desc->model;
    struct net n = {0};
    double worst = -1;
    if (m->depth + 1 <= MAX_LAYERS && begin(&n, desc, before)) {
        double slope = scale / ((double)desc->batch * m->outputs);
        for (uint32_t s = 0; s < samples->period && s < desc->batch; s++) {
            uint32_t copies = desc->batch / samples->period + (s < desc->batch % samples->period);
            one_sample(&n, samples->x + (size_t)s * m->inputs, samples->y + (size_t)s * m->outputs,
                       slope);
            add_gradients(&n, copies);
        }
        worst = 0;
        for (uint32_t i = 0; worst >= 0 && i < 2 * n.layers; i++) {
            const char *name;
            size_t weights = (size_t)n.from[i / 2] * n.to[i / 2];
            double d = distance(grt_learner_tensor(learner, GRT_TENSOR_GRAD, i, &name),
                                n.all + n.grads + n.first[i / 2] + (i % 2 ? weights : 0),
                                i % 2 ? n.to[i / 2] : weights);
            worst = d < 0 ? d : d > worst ? d : worst;
        }
    }
    free(n.all);
    return worst;
}
