// SPDX-License-Identifier: Apache-2.0
// The check of `gpurt bench mlp`: the gradients of one step in double precision.
#ifndef APPS_BENCH_MLP_CHECK_H
#define APPS_BENCH_MLP_CHECK_H

#include "gpurt/learner.h"

// A batch is these samples over and over, so that its gradients can be had from few.
struct mlp_samples {
    uint32_t period;  // samples
    float *x, *y;     // [period][inputs], [period][outputs]
};

// The largest relative difference, by the norm, between the gradients that the newest step of the
// learner left and those in double precision; `before` are the parameters it started from, one
// behind the other in the learner's order. Negative when a call failed.
double mlp_check(struct grt_learner *learner, const struct grt_mlp_desc *model, const float *before,
                 const struct mlp_samples *samples, double scale);

#endif
