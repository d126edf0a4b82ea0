// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: asking drivers in a child process what they may not survive.
#ifndef GRT_PROBE_H
#define GRT_PROBE_H

#include "gpurt/device.h"

// Lists one backend's devices. Returns the number found, -1 with a sentence in `problem` (256
// bytes) when the backend is not usable or its driver crashed or hung. A driver that did and can be
// left out is from here on, in this process; then the others' devices are listed and `problem` says
// so.
int32_t grt_probe(enum grt_backend_id id, struct grt_dev_info *infos, uint32_t capacity,
                  char *problem);

#endif
