// SPDX-License-Identifier: Apache-2.0
// Files that must not outlive the process as they are: half written ones, and locks. The list
// belongs to the process. The library adds each such file while it exists; a program may add its
// own. A signal handler that ends the process calls grt_unfinished_unlink().
#ifndef GRT_UNFINISHED_H
#define GRT_UNFINISHED_H

#include "status.h"

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
