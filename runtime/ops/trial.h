// SPDX-License-Identifier: Apache-2.0
// Inside runtime/ops/: numbers for the small cases that variants are checked with (verdict.h).
#ifndef GRT_OP_TRIAL_H
#define GRT_OP_TRIAL_H

#include "gpurt/plan.h"

// Fills a tensor from `seed` on, by way of `bytes`, and `values` with the same numbers: of 24 bits
// for f32, of 6 for the others, exact in every type, as are their sums in f32, but not in 16 bits,
// so that a wrong way of rounding shows too.
bool grt_trial_fill(const struct grt_tensor *tensor, uint64_t seed, double *values,
                    unsigned char *bytes);
// A number of this type that lies at `bytes`.
double grt_trial_number(enum grt_dtype dtype, const unsigned char *bytes);

#endif
