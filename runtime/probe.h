// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: asking drivers in a child process what they may not survive.
#ifndef GRT_PROBE_H
#define GRT_PROBE_H

#include "device.h"

// Lists one backend's devices. Returns the number found, -1 with a sentence in `problem` (256
// bytes) when the backend is not usable or its driver crashed or hung. A driver that did and can be
// left out is from here on, in this process; then the others' devices are listed and `problem` says so.
int32_t grt_probe(enum grt_backend_id id, struct grt_dev_info *infos, uint32_t capacity,
                  char *problem);
// Opens and forgets a driver's library. False, with a sentence in `problem` (256 bytes), when that
// does not come back: such a library must not be opened in this process. True says nothing more;
// there may be no such library.
bool grt_probe_library(const char *library, char *problem);

#endif
