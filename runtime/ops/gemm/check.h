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

// Rows, columns and k of the product that stands for this one.
void gemm_check_extents(const struct gemm_case *g, uint32_t mnk[3]);
// Which of a variant's kernels serves, in words: its tile, and whether k is cut. Each has a verdict
// of its own.
void gemm_check_kernel(const struct gemm_case *g, const struct gemm_variant *variant, char *text,
                       size_t size);

#endif
