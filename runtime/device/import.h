// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: kernels in PTX, for Vulkan devices whose caps say `imports`.
#ifndef GRT_IMPORT_H
#define GRT_IMPORT_H

#include "backends/backend.h"

// As the slot kernel_create() of the seam.
struct grt_kernel *grt_import_kernel(struct grt_dev *dev, const struct grt_kernel_info *info,
                                     const uint32_t *values);

// Bytes of shared memory that the arrays of a PTX text have.
uint64_t grt_ptx_shared(const char *ptx);

#endif
