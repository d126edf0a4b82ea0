// SPDX-License-Identifier: Apache-2.0
// The name that a misspelt word meant.
#ifndef GRT_CLOSEST_H
#define GRT_CLOSEST_H

#include <stddef.h>

#include "gpurt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The one of `names` (stride bytes apart, each entry beginning with a const char *) that `word` is
// likely a misspelling of, or NULL.
const char *grt_closest(const char *word, const void *names, size_t count, size_t stride);

#ifdef __cplusplus
}
#endif
#endif
