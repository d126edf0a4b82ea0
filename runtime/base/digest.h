// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: digests of many megabytes. grt_digest() (cache.h) goes byte by byte, each waiting
// for the one before: 0.7 GB/s.
#ifndef GRT_DIGEST_H
#define GRT_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct grt_bytes {
    const void *data;
    size_t size;
};

// grt_digest() of each, several at a time, by several threads where they are many bytes.
void grt_digest_each(const struct grt_bytes *bytes, uint32_t count, uint64_t *digests);
// A digest of its own, 32 bytes at a time.
uint64_t grt_digest_wide(const void *data, size_t size);

#endif
