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
