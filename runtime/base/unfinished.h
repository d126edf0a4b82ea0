// SPDX-License-Identifier: Apache-2.0
// Files that must not outlive the process as they are: half written, or locks. Whoever makes one names
// it here and takes the name back when the file is whole or gone. A signal handler that ends the process
// removes the rest.
#ifndef GRT_UNFINISHED_H
#define GRT_UNFINISHED_H

#include "gpurt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// From any thread. A path that finds no room is not remembered: the file is left behind then.
GRT_API void grt_unfinished_add(const char *path);
GRT_API void grt_unfinished_remove(const char *path);
// Removes the files. May be called by a signal handler.
GRT_API void grt_unfinished_unlink(void);

#ifdef __cplusplus
}
#endif
#endif
