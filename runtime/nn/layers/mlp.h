// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: a multi-layer perceptron, and what other modules and variants need of it.
#ifndef GRT_NN_MLP_H
#define GRT_NN_MLP_H

#include "linear.h"

#define GRT_MLP_MAX_DEPTH 256

// What a module is an mlp of; NULL: it is none.
const struct grt_mlp_desc *grt_mlp_desc_of(const struct grt_module *module);

struct grt_mlp {
    struct grt_module base;
    struct grt_mlp_desc desc;
    char prefix[GRT_PARAM_NAME];
    uint64_t rows_each;         // rows of x for one row of the net
    struct grt_linear *layers;  // depth, and one more with outputs
    struct grt_param **norms;   // weight and bias of each hidden layer's norm; NULL: there are none
    uint32_t layer_count;
    // [rows][hidden] each. Kept for backward, or shared between layers whose h is computed again.
    struct grt_tensor **h;      // output of each hidden layer
    struct grt_tensor **z;      // its product, where that is not h's own
    struct grt_tensor **stats;  // f32 [rows][2], with norms
    struct grt_tensor *dh[2], *dz;
    uint32_t segment;        // hidden layers computed again together; 0: none
    struct grt_tensor x, y;  // of the newest forward
};

#endif
