// SPDX-License-Identifier: Apache-2.0
// Kernels of gpurt itself, and whether a device can run them; for whatever records them.
#ifndef GRT_KERNELS_H
#define GRT_KERNELS_H

#include "gpurt/kernel.h"

// False, with a sentence, once the device is lost.
bool grt_dev_usable(struct grt_dev *dev);
// Whether a kernel, with its constants as they stand, builds on the device. Asked of small kernels
// that use the instructions others need; tries once, says nothing, and keeps the answer.
bool grt_kernel_builds(struct grt_dev *dev, const char *name);
// Whether kernels in PTX may have all shared memory of Hopper's processors, and not 48 KiB.
bool grt_kernels_roomy(struct grt_dev *dev);
// As grt_kernel_get(), and the kernel is built when a graph that it was recorded into is baked:
// then it is known how many there are to build.
const struct grt_kernel *grt_kernel_promise(struct grt_dev *dev,
                                            const struct grt_kernel_desc *desc);
// Whether the device's backend can run the kernel that a desc names, its constants aside.
bool grt_kernel_known(const struct grt_dev *dev, const struct grt_kernel_desc *desc);
// What keeps a device from running a kernel with these constants, or "", into `why` (256 bytes); no
// driver is asked. False when there is something.
bool grt_kernel_fits(const struct grt_dev_info *info, const struct grt_kernel_desc *desc,
                     char *why);

#endif
