// SPDX-License-Identifier: Apache-2.0
// To be preloaded: a system that refuses every allocation of 128 MiB or more, and no other. A limit
// of the address space would hit whichever allocation comes last, often one that a driver cannot do
// without.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SEEN __attribute__((visibility("default")))

static bool refused(size_t size) {
    return size >= (size_t)128 << 20;
}

// The next function of this name; ISO C has no cast from an object's address to a function's.
#define NEXT(name)                                                                                 \
    static union {                                                                                 \
        void *address;                                                                             \
        __typeof__(&name) call;                                                                    \
    } next;                                                                                        \
    if (!next.address) {                                                                           \
        next.address = dlsym(RTLD_NEXT, #name);                                                    \
    }

SEEN void *malloc(size_t size) {
    NEXT(malloc)
    if (refused(size)) {
        errno = ENOMEM;
        return NULL;
    }
    return next.call(size);
}

SEEN void *aligned_alloc(size_t alignment, size_t size) {
    NEXT(aligned_alloc)
    if (refused(size)) {
        errno = ENOMEM;
        return NULL;
    }
    return next.call(alignment, size);
}

SEEN int posix_memalign(void **memory, size_t alignment, size_t size) {
    NEXT(posix_memalign)
    return refused(size) ? ENOMEM : next.call(memory, alignment, size);
}

// Mesa 24.3 and later have the memory of a device in a file that they map.
SEEN void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    NEXT(mmap)
    if (refused(size) && file >= 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return next.call(address, size, protection, flags, file, offset);
}
