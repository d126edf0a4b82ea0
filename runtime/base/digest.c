// SPDX-License-Identifier: Apache-2.0
#include "digest.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "cache.h"
#include "thread.h"

// ---- several at a time ----

#define LANES 4
#define THREAD_BYTES (2u << 20)  // worth a thread

// What is to be done; each thread takes the next that nobody has.
struct each {
    const struct grt_bytes *bytes;
    uint64_t *digests;
    uint32_t count;
    atomic_uint next;
};

struct lane {
    const unsigned char *at;
    size_t left;
    uint64_t hash;
    uint32_t which;
};

// The next one that has bytes into a lane; false when there is none. Those without are done.
static bool take(struct lane *lane, struct each *all) {
    for (uint32_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) {
        all->digests[i] = grt_digest(NULL, 0, 0);
        if (all->bytes[i].size > 0) {
            *lane = (struct lane){all->bytes[i].data, all->bytes[i].size, all->digests[i], i};
            return true;
        }
    }
    return false;
}

static void step(struct lane *lanes, size_t count) {
    uint64_t a = lanes[0].hash, b = lanes[1].hash, c = lanes[2].hash, d = lanes[3].hash;
    for (size_t i = 0; i < count; i++) {
        a = (a ^ lanes[0].at[i]) * 0x100000001b3u;
        b = (b ^ lanes[1].at[i]) * 0x100000001b3u;
        c = (c ^ lanes[2].at[i]) * 0x100000001b3u;
        d = (d ^ lanes[3].at[i]) * 0x100000001b3u;
    }
    lanes[0].hash = a;
    lanes[1].hash = b;
    lanes[2].hash = c;
    lanes[3].hash = d;
    for (uint32_t i = 0; i < LANES; i++) {
        lanes[i].at += count;
        lanes[i].left -= count;
    }
}

// Of a thread.
static void work(void *context, uint64_t first, uint64_t count) {
    struct each *all = context;
    struct lane lanes[LANES];
    uint32_t active = 0;
    (void)first;
    (void)count;
    while (active < LANES && take(&lanes[active], all)) {
        active++;
    }
    while (active > 0) {
        size_t least = lanes[0].left;
        for (uint32_t i = 1; i < active; i++) {
            least = lanes[i].left < least ? lanes[i].left : least;
        }
        // Lanes without work of their own do that of the first.
        for (uint32_t i = active; i < LANES; i++) {
            lanes[i] = lanes[0];
        }
        step(lanes, least);
        for (uint32_t i = 0; i < active; i++) {
            if (lanes[i].left > 0) {
                continue;
            }
            all->digests[lanes[i].which] = lanes[i].hash;
            if (!take(&lanes[i], all)) {
                lanes[i--] = lanes[--active];
            }
        }
    }
}

void grt_digest_each(const struct grt_bytes *bytes, uint32_t count, uint64_t *digests) {
    struct each all = {.bytes = bytes, .digests = digests, .count = count};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += bytes[i].size;
    }
    grt_thread_share(sum, THREAD_BYTES, work, &all);
}

// ---- 32 bytes at a time ----

#define FIRST 0x9e3779b185ebca87u
#define SECOND 0xc2b2ae3d27d4eb4fu

static uint64_t turned(uint64_t word, uint32_t by) {
    return word << by | word >> (64 - by);
}

static uint64_t word_at(const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static void add_block(uint64_t sums[4], const unsigned char *block) {
    for (uint32_t i = 0; i < 4; i++) {
        sums[i] = turned(sums[i] + word_at(block + 8 * i) * SECOND, 31) * FIRST;
    }
}

uint64_t grt_digest_wide(const void *data, size_t size) {
    const unsigned char *bytes = data;
    unsigned char last[32] = {0};
    uint64_t sums[4] = {1, 2, 3, 4}, digest = size;
    size_t whole = size / sizeof last * sizeof last;
    for (size_t i = 0; i < whole; i += sizeof last) {
        add_block(sums, bytes + i);
    }
    if (size > whole) {
        memcpy(last, bytes + whole, size - whole);
        add_block(sums, last);
    }
    for (uint32_t i = 0; i < 4; i++) {
        digest = turned(digest ^ sums[i], 27) * FIRST + SECOND;
        digest ^= digest >> 29;
    }
    return digest;
}
