// SPDX-License-Identifier: Apache-2.0
// What suites of fused perceptrons share: drawn parameters on the device, and as doubles.
#ifndef TEST_MLP_KIT_H
#define TEST_MLP_KIT_H

#include "gpurt/module.h"
#include "harness/harness.h"
#include "oracle/mlp.h"

#define MLP_KIT_PARAMS (2 * ORACLE_MLP_LAYERS)

// Weight and bias of each layer, with gaps between them that are NaN: nothing may look there.
struct mlp_kit {
    enum grt_dtype dtype;
    struct grt_params params;
    struct grt_param param[MLP_KIT_PARAMS], *list[MLP_KIT_PARAMS];
    struct test_tensor master, copy, grad;  // copy: in 16 bits alone
    double *value[MLP_KIT_PARAMS];          // as products see them
};

struct oracle_format mlp_kit_format(enum grt_dtype dtype);
double mlp_kit_rounded(enum grt_dtype dtype, double v);
// `kit` is in its place: the parameters point into it.
void mlp_kit_begin(struct mlp_kit *kit, enum grt_dtype dtype, const struct grt_mlp_desc *model,
                   uint64_t seed);
void mlp_kit_end(struct mlp_kit *kit);

#endif
