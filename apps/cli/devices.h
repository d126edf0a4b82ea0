// SPDX-License-Identifier: Apache-2.0
// A device as JSON describes it, the same in `gpurt devices` and in the head of every result.
#ifndef APPS_DEVICES_H
#define APPS_DEVICES_H

#include <jansson.h>

#include "gpurt/gpurt.h"

// NULL when out of memory.
json_t *devices_json(const struct grt_dev_info *info);

#endif
