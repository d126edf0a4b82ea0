// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: compiled kernels on disk, under $XDG_CACHE_HOME/gpurt (or ~/.cache/gpurt).
//
//     entry file:  magic | version | key length | payload length | digest | key | payload
//
// The key is text that names everything the payload depends on (device, driver version, source
// digest, options). Its hash is the file name and the whole of it is compared on loading, so a
// damaged or foreign entry is a miss. Entries are written under a temporary name and renamed: two
// processes at once do no harm. Where the folder cannot be written, storing does nothing, said once
// at debug level, and what is there already serves.
#ifndef GRT_CACHE_H
#define GRT_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>

// Where the folder of all caches lies: `xdg`, the value of XDG_CACHE_HOME, or .cache in `home`;
// neither counts unless it begins with a slash. False when there is none. In the header for `gpurt
// doctor`, which asks it of other systems.
static inline bool grt_cache_base(const char *xdg, const char *home, char *base, size_t capacity) {
    int length = 0;
    if (xdg && xdg[0] == '/') {
        length = snprintf(base, capacity, "%s", xdg);
    } else if (home && home[0] == '/') {
        length = snprintf(base, capacity, "%s/.cache", home);
    }
    return length > 0 && (size_t)length < capacity;
}

// The cache folder, created when missing; NULL when there is none to write to. `why` (256 bytes,
// may be NULL) then says why.
const char *grt_cache_dir(char *why);
// For what a process needs on disk where there is no cache folder: one folder per user under the
// temporary one, which nobody else can have prepared for us. False when there is none.
bool grt_cache_temp_dir(char *dir, size_t capacity);
// The payload, to be freed by the caller, or NULL on a miss.
void *grt_cache_load(const char *key, size_t *size);
bool grt_cache_store(const char *key, const void *payload, size_t size);
// 64-bit FNV-1a of some bytes, continued from `seed` (0 begins).
uint64_t grt_digest(const void *data, size_t size, uint64_t seed);

#endif
