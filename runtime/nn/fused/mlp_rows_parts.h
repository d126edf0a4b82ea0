// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn/fused: what the files of an MLP over rows share.
#ifndef GRT_NN_MLP_ROWS_PARTS_H
#define GRT_NN_MLP_ROWS_PARTS_H

#include "mlp_rows.h"

#define MLP_ROWS_OUTPUTS 16u  // at most

// Whether the kernels compute right here for such a model (mlp_rows_check.c); warns once when they
// do not.
bool mlp_rows_trusted(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc);
bool mlp_rows_learner_trusted(struct grt_dev *dev, const struct grt_mlp_rows_desc *desc,
                              const struct grt_mlp_rows_learner *learner);

#endif
