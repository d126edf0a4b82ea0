// SPDX-License-Identifier: Apache-2.0
// Inside runtime/run and the apps: one run at a time writes a checkpoint. The lock is the system's,
// on a file of its own, so it ends with the process, however that ends. The file says which process
// has it; one that is left behind by a killed process locks nobody out.
#ifndef GRT_LOCK_H
#define GRT_LOCK_H

#include "gpurt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_lock {
    bool held;
    int fd;
    char path[4352];
};

// Takes the lock `path` for `what`, "the folder run1". False with a sentence that names the process
// that has it, or says why the file cannot be made (GRT_NO_OUTPUT). On a file system without locks
// it is taken with a warning.
bool grt_lock_take(struct grt_lock *lock, const char *path, const char *what);
// Removes the file. A lock that is not held is left alone.
void grt_lock_release(struct grt_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
