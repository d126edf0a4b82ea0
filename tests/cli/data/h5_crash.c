// SPDX-License-Identifier: Apache-2.0
// Stands before the HDF5 library (LD_PRELOAD) and crashes where a damaged file made it: on opening.
#include <signal.h>
#include <stdint.h>

__attribute__((visibility("default"))) int64_t H5Fopen(const char *name, unsigned flags,
                                                       int64_t access);

int64_t H5Fopen(const char *name, unsigned flags, int64_t access) {
    (void)name;
    (void)flags;
    (void)access;
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return -1;
}
