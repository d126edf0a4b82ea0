// SPDX-License-Identifier: Apache-2.0
// Proximal policy optimization by its formulas: advantages as sums of temporal differences, the
// loss of a batch.
#include "ppo.h"

#include <math.h>

#define MOST 256

double oracle_ppo_advantage(const struct oracle_ppo_path *p, size_t t) {
    double sum = 0, factor = 1;
    for (size_t k = t; k < p->steps; k++) {
        bool worth = !p->last[k] || p->cut[k];
        double ahead = worth ? p->value[k + 1] : 0;
        sum += factor * (p->reward[k] + p->gamma * ahead - p->value[k]);
        if (p->last[k]) {
            break;
        }
        factor *= p->gamma * p->lambda;
    }
    return sum;
}

void oracle_ppo_net(const struct oracle_ppo_net *n, const double *x, double *y) {
    double a[MOST], b[MOST];
    size_t width = n->inputs;
    for (size_t i = 0; i < width; i++) {
        a[i] = x[i];
    }
    for (size_t layer = 0; layer <= n->depth; layer++) {
        size_t to = layer == n->depth ? n->outputs : n->hidden;
        for (size_t j = 0; j < to; j++) {
            double sum = n->bias[layer][j];
            for (size_t i = 0; i < width; i++) {
                sum += n->weight[layer][j * width + i] * a[i];
            }
            b[j] = layer == n->depth ? sum : tanh(sum);
        }
        for (size_t j = 0; j < to; j++) {
            a[j] = b[j];
        }
        width = to;
    }
    for (size_t j = 0; j < width; j++) {
        y[j] = a[j];
    }
}

double oracle_ppo_probability(const double *logits, size_t width, uint32_t mask, size_t action) {
    double top = -INFINITY, sum = 0;
    for (size_t j = 0; j < width; j++) {
        top = mask >> j & 1 && logits[j] > top ? logits[j] : top;
    }
    for (size_t j = 0; j < width; j++) {
        sum += mask >> j & 1 ? exp(logits[j] - top) : 0;
    }
    return mask >> action & 1 ? exp(logits[action] - top) / sum : 0;
}

// log p of the action that was taken, and the policy's entropy.
static double log_probability(const struct oracle_ppo *c, size_t row, const double *given,
                              double *entropy) {
    double logp = 0;
    *entropy = 0;
    if (c->action) {
        for (size_t j = 0; j < c->width; j++) {
            double p = oracle_ppo_probability(given, c->width, c->mask[row], j);
            *entropy -= p > 0 ? p * log(p) : 0;
        }
        return log(oracle_ppo_probability(given, c->width, c->mask[row], c->action[row]));
    }
    for (size_t j = 0; j < c->width; j++) {
        double deviation = exp(c->log_std[j]);
        double z = (c->acts[row * c->width + j] - given[j]) / deviation;
        logp += -z * z / 2 - log(deviation) - log(2 * ORACLE_PI) / 2;
        *entropy += log(deviation) + log(2 * ORACLE_PI * exp(1)) / 2;
    }
    return logp;
}

static double clamp(double x, double low, double high) {
    return fmin(fmax(x, low), high);
}

struct oracle_ppo_result oracle_ppo(const struct oracle_ppo *c) {
    double mean = 0, square = 0, count = 0, rows = 0;
    for (size_t i = 0; i < c->rows; i++) {
        if (c->counts[i]) {
            rows += !c->in || c->in[i];
            mean += c->advantage[i];
            square += c->advantage[i] * c->advantage[i];
            count++;
        }
    }
    mean /= count;
    double deviation = sqrt(fmax(square / count - mean * mean, 0)) + 1e-8;
    struct oracle_ppo_result r = {0};
    for (size_t i = 0; i < c->rows; i++) {
        if (!c->counts[i] || (c->in && !c->in[i])) {
            continue;
        }
        double given[MOST], v, entropy;
        oracle_ppo_net(&c->actor, c->own + i * c->actor.inputs, given);
        oracle_ppo_net(&c->critic, c->seen + i * c->critic.inputs, &v);
        double ratio = exp(log_probability(c, i, given, &entropy) - c->logp[i]);
        double a = (c->advantage[i] - mean) / deviation;
        double policy = fmax(-a * ratio, -a * clamp(ratio, 1 - c->clip, 1 + c->clip));
        double error = (v - c->returns[i]) * (v - c->returns[i]);
        if (c->value_clip > 0) {
            double held =
                c->value[i] + clamp(v - c->value[i], -c->value_clip, c->value_clip) - c->returns[i];
            error = fmax(error, held * held);
        }
        r.policy += policy / rows;
        r.value += error / 2 / rows;
        r.entropy += entropy / rows;
        r.kl += (ratio - 1 - log(ratio)) / rows;
        r.clipped += (fabs(ratio - 1) > c->clip) / rows;
    }
    r.loss = r.policy + c->value_weight * r.value - c->entropy_weight * r.entropy;
    return r;
}
