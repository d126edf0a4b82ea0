// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn/fused: a small case by which kernels are checked (ops/verdict.h): a model with
// drawn parameters and other tensors in one plan, and its gradients beside wanted ones.
#ifndef GRT_NN_MLP_TRIAL_H
#define GRT_NN_MLP_TRIAL_H

#include "gpurt/module.h"

struct mlp_trial {
    struct grt_plan *plan;
    struct grt_params params;
    float *values;  // of all parameters, one behind the other
};

// Declares the parameters.
bool mlp_trial_begin(struct mlp_trial *t, struct grt_dev *dev, const struct grt_mlp_desc *model,
                     enum grt_dtype dtype);
struct grt_tensor *mlp_trial_tensor(struct mlp_trial *t, const char *label, enum grt_dtype dtype,
                                    uint64_t rows, uint64_t cols);
// When all is declared: memory, and numbers in the parameters.
bool mlp_trial_alloc(struct mlp_trial *t);
void mlp_trial_end(struct mlp_trial *t);

// [-1, 1), of 24 bits.
float mlp_trial_next(uint64_t *state);
bool mlp_trial_write(const struct grt_tensor *to, const void *from);
bool mlp_trial_read(const struct grt_tensor *from, void *into);
// Whether each parameter's gradient is no farther from the wanted one than the bound, by the norm
// of that. `fault`: one of its numbers is taken for wrong. `room` is for the largest parameter.
bool mlp_trial_agrees(struct mlp_trial *t, const double *want, double bound, float *room,
                      bool fault);

#endif
