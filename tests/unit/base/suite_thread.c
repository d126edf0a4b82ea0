// SPDX-License-Identifier: Apache-2.0
// Work that is shared among threads: every item once, whatever the number of items and cores.
#include "harness/harness.h"

#include <stdatomic.h>

#include "base/thread.h"

#define MOST 300

struct work {
    atomic_uint times[MOST];
    atomic_uint parts, smallest;
};

static void part(void *context, uint64_t first, uint64_t count) {
    struct work *work = context;
    for (uint64_t i = first; i < first + count; i++) {
        atomic_fetch_add(&work->times[i], 1);
    }
    atomic_fetch_add(&work->parts, 1);
    if (count < atomic_load(&work->smallest)) {
        atomic_store(&work->smallest, (unsigned)count);
    }
}

static void every_item_once(void **state) {
    (void)state;
    static const uint64_t least[] = {0, 1, 7, 1000};
    for (uint64_t count = 0; count <= MOST; count += count < 40 ? 1 : 13) {
        for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
            struct work work = {.smallest = MOST};
            grt_thread_share(count, least[i], part, &work);
            for (uint64_t k = 0; k < MOST; k++) {
                assert_int_equal(atomic_load(&work.times[k]), k < count);
            }
            // Parts are as large as asked for, unless there is but one.
            unsigned parts = atomic_load(&work.parts);
            assert_in_range(parts, 1, 16);
            assert_true(parts == 1 || atomic_load(&work.smallest) >= least[i]);
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(every_item_once),
};
TEST_SUITE(thread, false, cases);
