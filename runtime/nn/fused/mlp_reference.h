// SPDX-License-Identifier: Apache-2.0
// An MLP's loss and gradients in double precision on the host, sample by sample from the formulas:
// what checks of fused kernels compare with. What 16-bit training keeps in 16 bits, inputs, hidden
// units and gradients of sums, is rounded here too, and so are the weights.
#ifndef GRT_NN_MLP_REFERENCE_H
#define GRT_NN_MLP_REFERENCE_H

#include "gpurt/loss.h"
#include "gpurt/module.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_mlp_reference {
    struct grt_mlp_desc model;  // no residual, no layer norm; outputs at least 1
    enum grt_loss loss;
    double delta;          // of Huber
    enum grt_dtype dtype;  // of what is multiplied
    double scale;          // of the loss; the gradients are times it
    const float *params;   // weight and bias of each layer, one behind the other
    // The rows of the batch are these samples over and over.
    uint64_t rows;
    uint32_t period;
    const float *x;      // [period][inputs]
    const void *target;  // f32 [period][outputs]; for cross-entropy u32 [period]

    double *y;  // [period][outputs], filled; or NULL

    // Out:
    double mean;    // loss, not scaled
    double *grads;  // like the parameters; the caller frees them
};

// False without host memory.
bool grt_mlp_reference(struct grt_mlp_reference *reference);
// Numbers of all parameters, and where those of a layer begin.
size_t grt_mlp_reference_at(const struct grt_mlp_desc *model, uint32_t layer);

// The norm of the difference between `got` and `want`, by that of `want`; infinite where `got` is
// not finite.
double grt_mlp_reference_distance(const float *got, const double *want, size_t count);

#ifdef __cplusplus
}
#endif
#endif
