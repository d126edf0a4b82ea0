// SPDX-License-Identifier: Apache-2.0
// What the files next to the seam, those of runtime/device and runtime/ops, share: the backends'
// side of a device.
#ifndef GRT_INTERNAL_H
#define GRT_INTERNAL_H

#include "backends/backend.h"
#include "gpurt/profile.h"
#include "kernels.h"

// Builds those that commands have been promised. False with the sentence.
bool grt_kernels_keep_promises(struct grt_dev *dev, struct grt_cmd *cmds, uint32_t count);
void grt_kernels_destroy(struct grt_dev *dev);
// Baked graphs hold the buffers they use.
void grt_buf_ref(struct grt_buf *buf);
void grt_buf_unref(struct grt_buf *buf);
// Around a wait of the host, for the timeline that is going on the device, if any.
double grt_timed_clock(const struct grt_dev *dev);
void grt_timed_waited(const struct grt_dev *dev, double begun);
// The backends, in the order of enum grt_backend_id.
extern const struct grt_backend *const grt_backends[GRT_BACKEND_COUNT];

#endif
