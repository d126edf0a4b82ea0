// SPDX-License-Identifier: Apache-2.0
// A kernel by itself: the same constants on the device and on the C reading give the same bits.
#ifndef TEST_KERNEL_KIT_H
#define TEST_KERNEL_KIT_H

#include "harness/harness.h"

struct kernel_case {
    struct grt_kernel_desc desc;
    const void *params;
    uint32_t params_size;
    uint32_t groups;
    struct {
        const float *data;  // NULL: written by the kernel, zero before, and compared
        size_t count;       // 0 ends the list
    } buffers[GRT_MAX_BINDINGS];
};

// What the kernel writes, a buffer at each place of `outs` (GRT_MAX_BINDINGS), allocated; places of
// others stay as they are.
void kernel_run(struct grt_dev *dev, const struct kernel_case *c, float **outs);
void kernel_same_as_ref(const struct kernel_case *c);

#endif
