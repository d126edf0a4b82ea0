// SPDX-License-Identifier: Apache-2.0
// The oracle of a whole MLP with its loss.
#ifndef ORACLE_MLP_H
#define ORACLE_MLP_H

#include "oracle.h"

#define ORACLE_MLP_LAYERS 16

// `depth` hidden layers and an output layer, widths at most 512. Weights [to][from] hold the
// numbers as they are after rounding to their type.
struct oracle_mlp {
    size_t rows, inputs, depth, hidden, outputs;
    size_t samples;    // that the mean is over
    const char *act;   // "relu", "gelu", "tanh"
    const char *loss;  // "mse", "huber" with delta 1, "bce"; "cross_entropy" has classes
    double scale;      // of the loss, in the gradients
    const double *weight[ORACLE_MLP_LAYERS], *bias[ORACLE_MLP_LAYERS];
    const double *x, *target;
    const uint32_t *classes;
    // Inputs, hidden units and gradients of what layers give are rounded to the format where they
    // are kept.
    bool rounded;
    struct oracle_format format;
};

// Places for the results are the caller's.
struct oracle_mlp_result {
    double loss;
    double *y;
    double *weight[ORACLE_MLP_LAYERS], *bias[ORACLE_MLP_LAYERS];
};

void oracle_mlp(const struct oracle_mlp *m, struct oracle_mlp_result *r);

#endif
