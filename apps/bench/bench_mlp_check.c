// SPDX-License-Identifier: Apache-2.0
// See bench_mlp_check.h.
#include "bench_mlp_check.h"

#include <stdlib.h>

#include "nn/fused/mlp_reference.h"

// Of tensor `got` from the numbers at `want`.
static double distance(const struct grt_tensor *got, const double *want) {
    uint64_t count = grt_tensor_count(got);
    float *values = malloc(count * sizeof *values);
    double distance = -1;
    if (values && grt_buf_read(got->range.buf, got->range.offset, values, count * sizeof *values)) {
        distance = grt_mlp_reference_distance(values, want, count);
    }
    free(values);
    return distance;
}

double mlp_check(struct grt_learner *learner, const struct grt_mlp_desc *model, const float *before,
                 const struct mlp_samples *samples, double scale) {
    const struct grt_learner_desc *desc = grt_learner_desc_of(learner);
    struct grt_mlp_reference reference = {
        .model = *model,
        .loss = desc->loss,
        .dtype = desc->precision,
        .scale = scale,
        .params = before,
        .rows = desc->batch,
        .period = samples->period,
        .x = samples->x,
        .target = samples->y,
    };
    if (!grt_mlp_reference(&reference)) {
        return -1;
    }
    double worst = 0;
    const struct grt_tensor *grad;
    const char *name;
    uint64_t at = 0;
    for (uint32_t i = 0;
         worst >= 0 && (grad = grt_learner_tensor(learner, GRT_TENSOR_GRAD, i, &name)); i++) {
        double d = distance(grad, reference.grads + at);
        worst = d < 0 ? d : d > worst ? d : worst;
        at += grt_tensor_count(grad);
    }
    free(reference.grads);
    return worst;
}
