// SPDX-License-Identifier: Apache-2.0
// Evolution strategies, from the papers' formulas, and the pendulum.
#include <math.h>

#include "oracle.h"

static double better_of(const double *returns, size_t d) {
    return returns[2 * d] > returns[2 * d + 1] ? returns[2 * d] : returns[2 * d + 1];
}

void oracle_ars_weights(const double *returns, size_t dirs, size_t top, double *weight,
                        bool *used) {
    for (size_t d = 0; d < dirs; d++) {
        size_t above = 0;
        for (size_t k = 0; k < dirs; k++) {
            double other = better_of(returns, k), own = better_of(returns, d);
            above += other > own || (other == own && k < d);
        }
        used[d] = above < top;
        weight[d] = used[d] ? returns[2 * d] - returns[2 * d + 1] : 0;
    }
}

double oracle_ars_scale(const double *returns, const bool *used, size_t dirs, double step) {
    double mean = 0, square = 0, count = 0;
    for (size_t i = 0; i < 2 * dirs; i++) {
        mean += used[i / 2] ? returns[i] : 0;
        count += used[i / 2] ? 1 : 0;
    }
    mean /= count;
    for (size_t i = 0; i < 2 * dirs; i++) {
        square += used[i / 2] ? (returns[i] - mean) * (returns[i] - mean) : 0;
    }
    return step / (count / 2 * sqrt(square / count));
}

// Rank 0 is the best; shaped from +1/2 to -1/2.
static double shaped(const double *returns, size_t sides, size_t i) {
    size_t above = 0;
    for (size_t k = 0; k < sides; k++) {
        above += returns[k] > returns[i] || (k < i && returns[k] == returns[i]);
    }
    return 0.5 - (double)above / (double)(sides - 1);
}

void oracle_es_weights(const double *returns, size_t dirs, double *weight) {
    for (size_t d = 0; d < dirs; d++) {
        weight[d] = shaped(returns, 2 * dirs, 2 * d) - shaped(returns, 2 * dirs, 2 * d + 1);
    }
}

double oracle_es_adam(double theta, double g, double *m, double *v, double lr, int step) {
    *m = 0.9 * *m + 0.1 * g;
    *v = 0.999 * *v + 0.001 * g * g;
    return theta + lr * (*m / (1 - pow(0.9, step))) / (sqrt(*v / (1 - pow(0.999, step))) + 1e-8);
}

double oracle_es_noise(uint32_t seed, uint32_t iteration, uint32_t direction, uint32_t index) {
    const uint32_t counter[4] = {index / 4, direction, iteration, 0x65730001u};
    const uint32_t key[2] = {seed, 0};
    uint32_t block[4];
    oracle_philox(counter, key, block);
    const uint32_t *pair = &block[index % 4 / 2 * 2];
    return oracle_normal(pair[0], pair[1], index % 2 == 1).value;
}

struct oracle_pendulum oracle_pendulum_step(struct oracle_pendulum s, double action) {
    double rate = s.rate + 0.05 * (15 * sin(s.angle) + 6 * action);
    rate = fmin(fmax(rate, -8), 8);
    double angle = s.angle + 0.05 * rate;
    if (angle > ORACLE_PI) {
        angle -= 2 * ORACLE_PI;
    }
    if (angle < -ORACLE_PI) {
        angle += 2 * ORACLE_PI;
    }
    return (struct oracle_pendulum){angle, rate};
}

double oracle_pendulum_reward(struct oracle_pendulum s, double action) {
    return -(s.angle * s.angle + 0.1 * s.rate * s.rate + 0.001 * 4 * action * action);
}

double oracle_policy_hidden(const double *w, double b, const double *x, size_t count, bool smooth) {
    for (size_t i = 0; i < count; i++) {
        b += w[i] * x[i];
    }
    return smooth ? tanh(b) : fmax(b, 0);
}
