// SPDX-License-Identifier: Apache-2.0
// What the files of runtime/ share among themselves.
#ifndef GRT_INTERNAL_H
#define GRT_INTERNAL_H

#include "backends/backend.h"
#include "profile.h"

// False, with a sentence, once the device is lost.
bool grt_dev_usable(struct grt_dev *dev);
// Whether a kernel, with its constants as they stand, builds on the device. Asked of small kernels
// that use the instructions others need; tries once, says nothing, and keeps the answer.
bool grt_kernel_builds(struct grt_dev *dev, const char *name);
// As grt_kernel_get(), and the kernel is built when a graph that it was recorded into is baked: then it is
// known how many there are to build.
const struct grt_kernel *grt_kernel_promise(struct grt_dev *dev,
                                            const struct grt_kernel_desc *desc);
// Builds those that commands have been promised. False with the sentence.
bool grt_kernels_keep_promises(struct grt_dev *dev, struct grt_cmd *cmds, uint32_t count);
void grt_kernel_promises_destroy(struct grt_dev *dev);
// Baked graphs hold the buffers they use.
void grt_buf_ref(struct grt_buf *buf);
void grt_buf_unref(struct grt_buf *buf);
// The backends, in the order of enum grt_backend_id.
extern const struct grt_backend *const grt_backends[GRT_BACKEND_COUNT];
// What keeps a device from running a kernel with these constants, or "", into `why` (256 bytes); no
// driver is asked. False when there is something.
bool grt_kernel_fits(const struct grt_dev_info *info, const struct grt_kernel_desc *desc,
                     char *why);
// True once for each setting of a profile: for what shall be said once.
bool grt_profile_first_time(struct grt_profile *profile, enum grt_profile_key key);

#endif
