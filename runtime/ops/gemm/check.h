// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: whether a variant computes right on a device (see ops/verdict.h).
//
// A variant is asked for each combination of types, transpositions and alignment, and again for
// large products: it does one that is smaller but has the tile of the product it stands for, and
// that is compared with sums in double precision on the host.
#ifndef GRT_GEMM_CHECK_H
#define GRT_GEMM_CHECK_H

#include "case.h"

// Whether a variant may do this product. Plain is the unchecked baseline.
bool gemm_trusted(const struct gemm_case *g, const struct gemm_variant *variant);

#endif
