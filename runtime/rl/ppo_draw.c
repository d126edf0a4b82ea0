// SPDX-License-Identifier: Apache-2.0
// Parameters at the start: matrices with orthogonal rows or columns (Saxe et al. 2014), as
// implementations of PPO have them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/buffer.h"
#include "ppo_parts.h"

// Beyond this the time of making columns orthogonal is felt; larger matrices keep what the module
// drew.
#define MOST 1024

// SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t next_word(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static double uniform(uint64_t *state) {
    return ((double)(next_word(state) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) {
    double radius = sqrt(-2.0 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

// `count` vectors of `length` >= count numbers: each made orthogonal to those before it, twice
// against rounding, and of length 1.
static void orthogonalise(double *vectors, uint64_t count, uint64_t length) {
    for (uint64_t i = 0; i < count; i++) {
        double *v = vectors + i * length;
        for (uint64_t again = 0; again < 2; again++) {
            for (uint64_t j = 0; j < i; j++) {
                const double *u = vectors + j * length;
                double dot = 0;
                for (uint64_t k = 0; k < length; k++) {
                    dot += u[k] * v[k];
                }
                for (uint64_t k = 0; k < length; k++) {
                    v[k] -= dot * u[k];
                }
            }
        }
        double square = 0;
        for (uint64_t k = 0; k < length; k++) {
            square += v[k] * v[k];
        }
        for (uint64_t k = 0; k < length; k++) {
            v[k] /= sqrt(square);
        }
    }
}

static bool write(const struct grt_param *param, const float *numbers) {
    return grt_buf_write(param->master.range.buf, param->master.range.offset, numbers,
                         param->count * sizeof *numbers);
}

static bool draw_matrix(const struct grt_param *param, double gain, uint64_t *random) {
    uint64_t rows = param->shape[0], cols = param->shape[1];
    uint64_t count = rows < cols ? rows : cols, length = rows < cols ? cols : rows;
    if (count == 0 || count > MOST) {
        return true;
    }
    double *vectors = calloc(count * length, sizeof *vectors);
    float *numbers = calloc(param->count, sizeof *numbers);
    bool ok = vectors && numbers;
    for (uint64_t i = 0; ok && i < count * length; i++) {
        vectors[i] = normal(random);
    }
    if (ok) {
        orthogonalise(vectors, count, length);
        for (uint64_t i = 0; i < param->count; i++) {
            uint64_t row = i / cols, col = i % cols;
            numbers[i] =
                (float)(gain * vectors[rows < cols ? row * length + col : col * length + row]);
        }
        ok = write(param, numbers);
    } else {
        grt_fail(GRT_NO_MEMORY, "no host memory for a matrix");
    }
    free(vectors);
    free(numbers);
    return ok;
}

static bool fill(const struct grt_param *param, float value) {
    float *numbers = malloc(param->count * sizeof *numbers);
    if (!numbers) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a vector");
    }
    for (uint64_t i = 0; i < param->count; i++) {
        numbers[i] = value;
    }
    bool ok = write(param, numbers);
    free(numbers);
    return ok;
}

// The last matrix whose name begins so.
static const struct grt_param *last_matrix(const struct grt_params *params, const char *prefix) {
    const struct grt_param *last = NULL;
    for (uint32_t i = 0; i < params->count; i++) {
        const struct grt_param *p = params->list[i];
        if (p->rank == 2 && strncmp(p->name, prefix, strlen(prefix)) == 0) {
            last = p;
        }
    }
    return last;
}

bool grt_ppo_draw(struct grt_ppo *ppo) {
    struct grt_params *params = &ppo->params;
    const struct grt_param *acts = last_matrix(params, "actor.");
    const struct grt_param *values = last_matrix(params, "critic.");
    uint64_t random = ppo->desc.seed ^ 0x70706f5f64726177u;
    bool ok = grt_params_draw(params, ppo->desc.seed);
    for (uint32_t i = 0; ok && i < params->count; i++) {
        const struct grt_param *p = params->list[i];
        if (p == ppo->log_std) {
            ok = fill(p, (float)ppo->desc.log_std);
        } else if (p->rank == 2) {
            ok = draw_matrix(p, p == acts ? 0.01 : p == values ? 1.0 : sqrt(2.0), &random);
        } else if (p->rank == 1 && p->init == GRT_INIT_UNIFORM) {
            ok = fill(p, 0.0f);
        }
    }
    return ok && grt_params_sync(params);
}
