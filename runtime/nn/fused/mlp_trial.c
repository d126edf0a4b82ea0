// SPDX-License-Identifier: Apache-2.0
#include "mlp_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mlp_reference.h"

static void add_parameters(struct grt_params *params, const struct grt_mlp_desc *m) {
    for (uint32_t l = 0; l <= m->depth; l++) {
        uint32_t from = l == 0 ? m->inputs : m->hidden, to = l == m->depth ? m->outputs : m->hidden;
        const uint64_t weight[GRT_MAX_RANK] = {to, from}, bias[GRT_MAX_RANK] = {to};
        char prefix[16];
        snprintf(prefix, sizeof prefix, "%u.", l);
        grt_params_add(params, prefix, "weight", weight, GRT_INIT_UNIFORM,
                       1.6f / sqrtf((float)from));
        grt_params_add(params, prefix, "bias", bias, GRT_INIT_UNIFORM, 0.5f);
    }
}

bool mlp_trial_begin(struct mlp_trial *t, struct grt_dev *dev, const struct grt_mlp_desc *model,
                     enum grt_dtype dtype) {
    t->plan = grt_plan_create(dev);
    t->values = calloc(grt_mlp_reference_at(model, model->depth + 1), sizeof *t->values);
    grt_params_init(&t->params, dev, dtype);
    add_parameters(&t->params, model);
    if (!t->plan || !t->values || t->params.failed) {
        return false;
    }
    grt_params_declare(&t->params, t->plan, true);
    return true;
}

struct grt_tensor *mlp_trial_tensor(struct mlp_trial *t, const char *label, enum grt_dtype dtype,
                                    uint64_t rows, uint64_t cols) {
    return grt_plan_tensor(t->plan,
                           grt_tensor_desc(.label = label, .dtype = dtype, .shape = {rows, cols}));
}

bool mlp_trial_alloc(struct mlp_trial *t) {
    if (!grt_plan_alloc(t->plan)) {
        return false;
    }
    grt_params_place(&t->params);
    bool good = grt_params_draw(&t->params, 3);
    float *at = t->values;
    for (uint32_t i = 0; good && i < t->params.count; i++) {
        good = mlp_trial_read(&t->params.list[i]->master, at);
        at += t->params.list[i]->count;
    }
    return good;
}

void mlp_trial_end(struct mlp_trial *t) {
    grt_plan_destroy(&t->plan);
    grt_params_finish(&t->params);
    free(t->values);
}

float mlp_trial_next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) * 0x1p-23 - 1.0);
}

bool mlp_trial_write(const struct grt_tensor *to, const void *from) {
    return grt_buf_write(to->range.buf, to->range.offset, from, grt_tensor_bytes(to));
}

bool mlp_trial_read(const struct grt_tensor *from, void *into) {
    return grt_buf_read(from->range.buf, from->range.offset, into, grt_tensor_bytes(from));
}

bool mlp_trial_agrees(struct mlp_trial *t, const double *want, double bound, float *room,
                      bool fault) {
    for (uint32_t i = 0; i < t->params.count; i++) {
        uint64_t count = t->params.list[i]->count;
        if (!mlp_trial_read(&t->params.list[i]->grad, room)) {
            return false;
        }
        room[count / 2] += fault && i == 0 ? 1e6f : 0.0f;
        if (!(grt_mlp_reference_distance(room, want, count) <= bound)) {
            return false;
        }
        want += count;
    }
    return true;
}
