// SPDX-License-Identifier: Apache-2.0
// Work that is shared among threads: every item once, whatever the number of items and cores. And
// children that are asked.
#include "harness/harness.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/child.h"
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

// ---- children ----

static int answers(struct grt_child *parent, void *context) {
    char word[5] = "";
    (void)context;
    while (grt_child_receive(parent, word, 4, 60, NULL) == GRT_CHILD_ANSWERED) {
        for (int i = 0; i < 4; i++) {
            word[i]++;
        }
        grt_child_send(parent, word, 4);
    }
    return 0;
}

static bool at_once(void) {
    return true;
}

static bool never(void) {
    return false;
}

// Requests and answers, and the ways in which none comes: late, stopped, at an end.
static void children_that_answer(void **state) {
    (void)state;
    struct grt_child child;
    char why[256], word[5] = "", how[160];
    assert_true(grt_child_start(&child, answers, NULL, why));
    assert_true(child.pid > 0);
    for (int i = 0; i < 2; i++) {
        assert_true(grt_child_send(&child, "HAL8", 4));
        assert_int_equal(grt_child_receive(&child, word, 4, i ? 60 : 0, never), GRT_CHILD_ANSWERED);
        assert_string_equal(word, "IBM9");
    }
    assert_int_equal(grt_child_receive(&child, word, 4, 0.02, NULL), GRT_CHILD_LATE);
    assert_int_equal(grt_child_receive(&child, word, 4, 60, at_once), GRT_CHILD_STOPPED);
    grt_child_end(&child, how);
    assert_int_equal(child.pid, -1);
    assert_true(grt_child_start(&child, answers, NULL, why));
    int to = child.to;
    assert_true(dup2(STDERR_FILENO, to) == to);  // its requests have ended
    assert_int_equal(grt_child_receive(&child, word, 4, 60, NULL), GRT_CHILD_ENDED);
    grt_child_end(&child, how);
    assert_string_equal(how, "ended the process (exit code 0)");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(every_item_once),
    TEST_CASE(children_that_answer),
};
TEST_SUITE(thread, false, cases);
