// SPDX-License-Identifier: Apache-2.0
// Values of trials. A grid is counted through with the last parameter the fastest, as nested loops
// in the order of the file are. Random numbers come from a counter, not from a state: trial 7 is
// the same on every machine, and whatever came before it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

// The finishing steps of splitmix64.
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// FNV-1a: a parameter has its own numbers whatever stands beside it.
static uint64_t hash(const char *name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) {
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    }
    return h;
}

double sweep_random(uint64_t seed, uint32_t trial, const char *name, uint32_t n) {
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    uint64_t x = mix(mix(mix(seed + golden) ^ hash(name)) + golden * ((uint64_t)trial + 1));
    return (double)(mix(x + golden * ((uint64_t)n + 1)) >> 11) * 0x1p-53;
}

void sweep_number_text(double number, char text[SWEEP_VALUE]) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, SWEEP_VALUE, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            return;
        }
    }
}

static uint32_t choice(const struct sweep_parameter *p, double u) {
    if (p->distribution != SWEEP_CATEGORICAL_SHARES) {
        return (uint32_t)(u * p->count);
    }
    uint32_t i = 0;
    for (double sum = p->values[0].share; i + 1 < p->count && u >= sum; sum += p->values[i].share) {
        i++;
    }
    return i;
}

// Box-Muller.
static double normal(const struct sweep_plan *plan, const struct sweep_parameter *p,
                     uint32_t trial) {
    double u = 1 - sweep_random(plan->seed, trial, p->name, 0);
    double v = sweep_random(plan->seed, trial, p->name, 1);
    return p->mu + p->sigma * sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

// A multiple of q; the same number whatever q's binary digits are: 0.3 and not 0.30000000000000004.
static double quantized(const struct sweep_parameter *p, double x) {
    char text[32];
    snprintf(text, sizeof text, "%.12g", round(x / p->q) * p->q);
    return strtod(text, NULL);
}

static double number(const struct sweep_plan *plan, const struct sweep_parameter *p,
                     uint32_t trial) {
    double u = sweep_random(plan->seed, trial, p->name, 0);
    double from = p->min, to = p->max;
    switch (p->distribution) {
    case SWEEP_INT_UNIFORM:
        return from + floor(u * (to - from + 1));
    case SWEEP_UNIFORM:
        return from + u * (to - from);
    case SWEEP_Q_UNIFORM:
        return quantized(p, from + u * (to - from));
    case SWEEP_LOG_UNIFORM:
        return exp(from + u * (to - from));
    case SWEEP_Q_LOG_UNIFORM:
        return quantized(p, exp(from + u * (to - from)));
    case SWEEP_LOG_UNIFORM_VALUES:
        return exp(log(from) + u * (log(to) - log(from)));
    case SWEEP_Q_LOG_UNIFORM_VALUES:
        return quantized(p, exp(log(from) + u * (log(to) - log(from))));
    case SWEEP_NORMAL:
        return normal(plan, p, trial);
    case SWEEP_Q_NORMAL:
        return quantized(p, normal(plan, p, trial));
    case SWEEP_LOG_NORMAL:
        return exp(normal(plan, p, trial));
    case SWEEP_Q_LOG_NORMAL:
        return quantized(p, exp(normal(plan, p, trial)));
    default:
        return 0;
    }
}

// How many values a parameter of a grid has.
static uint32_t ways(const struct sweep_parameter *p) {
    return p->distribution == SWEEP_INT_UNIFORM ? (uint32_t)(p->max - p->min + 1) : p->count;
}

void sweep_sample(const struct sweep_plan *plan, uint32_t parameter, uint32_t trial,
                  char text[SWEEP_VALUE]) {
    const struct sweep_parameter *p = &plan->parameters[parameter];
    if (plan->method == SWEEP_GRID) {
        uint32_t rest = trial;
        for (uint32_t i = plan->parameter_count - 1; i > parameter; i--) {
            rest /= ways(&plan->parameters[i]);
        }
        rest %= ways(p);
        if (p->distribution == SWEEP_INT_UNIFORM) {
            snprintf(text, SWEEP_VALUE, "%.0f", p->min + rest);
        } else {
            snprintf(text, SWEEP_VALUE, "%s", p->values[rest].text);
        }
    } else if (p->count > 0) {
        snprintf(text, SWEEP_VALUE, "%s",
                 p->values[choice(p, sweep_random(plan->seed, trial, p->name, 0))].text);
    } else if (p->distribution == SWEEP_INT_UNIFORM) {
        snprintf(text, SWEEP_VALUE, "%.0f", number(plan, p, trial));
    } else {
        // Seven digits: what libraries of logarithms differ in is beyond them.
        char brief[32];
        snprintf(brief, sizeof brief, "%.7g", number(plan, p, trial));
        sweep_number_text(strtod(brief, NULL), text);
    }
}
