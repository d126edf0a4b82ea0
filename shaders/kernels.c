// SPDX-License-Identifier: Apache-2.0
// The table of kernels, from the list of kernels.
#include "kernels.h"

#include "backends/backend.h"

#define X(readings, folder, name) extern const struct grt_kernel_info grt_kernel_##name;
GRT_KERNELS(X)
#undef X

const struct grt_kernel_info *const grt_kernel_table[] = {
#define X(readings, folder, name) &grt_kernel_##name,
    GRT_KERNELS(X)
#undef X
        NULL,
};
