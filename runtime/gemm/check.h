// SPDX-License-Identifier: Apache-2.0
// Inside runtime/: whether a variant computes right on a device.
//
// A driver may build a kernel and still run it wrong. So the first time a variant would be used for a
// combination of types, transpositions and alignment, and again for large products, it does one that is smaller
// but has the tile of the product it stands for, and that is compared with sums in double precision on
// the host. The verdict is kept with the device and, under the driver's
// name and version, in the cache folder: a variant that was wrong stays out until the driver
// changes or the folder is removed, and one that was right is not asked again. One that loses the device is wrong
// from the next start on; where memory was short there is no verdict.
#ifndef GRT_GEMM_CHECK_H
#define GRT_GEMM_CHECK_H

#include "case.h"

// Verdicts of one variant, and so the most variants there is room for.
#define GEMM_VERDICTS_EACH (6u * 4 * 4)  // types, transpositions, size and alignment
#define GEMM_MOST_VARIANTS (GRT_GEMM_VERDICTS / GEMM_VERDICTS_EACH)

// Whether variant number `index` of the table may do this product; warns once when it may not. The plain
// product is taken for right: something has to be.
bool gemm_trusted(const struct gemm_case *g, uint32_t index);

// For tests: from here on, checks of this variant on this device, or of all ("*"), see a wrong
// number. NULL ends it.
void gemm_check_fault(struct grt_dev *dev, const char *variant);

#endif
