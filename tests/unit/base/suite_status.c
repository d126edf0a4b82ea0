// SPDX-License-Identifier: Apache-2.0
// Statuses, the newest failure of a thread, and the log.
#include "harness/harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/child.h"
#include "base/log.h"
#include "base/visible.h"
#include "gpurt/unfinished.h"

static void texts(void **state) {
    (void)state;
    for (int i = 0; i < GRT_STATUS_COUNT; i++) {
        const char *text = grt_status_text((enum grt_status)i);
        assert_true(text && text[0]);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(text, grt_status_text((enum grt_status)j));
        }
    }
    assert_string_equal(grt_status_text(GRT_OK), "ok");
    assert_string_equal(grt_status_text((enum grt_status)GRT_STATUS_COUNT), "unknown status");
    assert_string_equal(grt_status_text((enum grt_status) - 1), "unknown status");
    assert_string_equal(grt_log_level_text(GRT_LOG_ERROR), "error");
    assert_string_equal(grt_log_level_text(GRT_LOG_DEBUG), "debug");
    assert_non_null(grt_log_level_text((enum grt_log_level)99));
    assert_non_null(grt_backend_text((enum grt_backend_id)99));
    assert_non_null(grt_dtype_text((enum grt_dtype)99));
    assert_int_equal(grt_dtype_size((enum grt_dtype)99), 0);
    assert_non_null(grt_map_text((enum grt_map)99));
    assert_int_equal(grt_map_arity((enum grt_map)99), 0);
    assert_non_null(grt_reduce_text((enum grt_reduce)99));
    assert_string_equal(grt_version(), "0.1.0");
}

static void failure_sticks_until_the_next(void **state) {
    (void)state;
    TEST_REFUSED(grt_fail(GRT_IO, "disk %d of %s", 7, "nine"), GRT_IO, "disk 7 of nine");
    assert_int_equal(grt_last_status(), GRT_IO);
    TEST_REFUSED(grt_fail(GRT_CONFIG, "again: %s", grt_last_error()), GRT_CONFIG,
                 "again: disk 7 of nine");
}

static void *other_thread(void *context) {
    bool *fresh = context;
    *fresh = grt_last_status() == GRT_OK && grt_last_error()[0] == '\0';
    grt_fail(GRT_LOST, "another thread's");
    return NULL;
}

static void failure_belongs_to_its_thread(void **state) {
    (void)state;
    TEST_REFUSED(grt_fail(GRT_IO, "mine"), GRT_IO, "mine");
    bool fresh = false;
    pthread_t thread;
    test_log.quiet = true;
    test_log.expected++;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &fresh), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(fresh);
    assert_int_equal(grt_last_status(), GRT_IO);
    assert_string_equal(grt_last_error(), "mine");
}

struct seen {
    uint32_t lines;
    enum grt_log_level level;
    char line[4096];
};

static void keep(void *context, enum grt_log_level level, const char *line) {
    struct seen *seen = context;
    seen->lines++;
    seen->level = level;
    snprintf(seen->line, sizeof seen->line, "%s", line);
}

static void levels(void **state) {
    (void)state;
    for (int least = 0; least < GRT_LOG_LEVEL_COUNT; least++) {
        struct seen seen = {0};
        grt_log_set(keep, &seen, (enum grt_log_level)least);
        for (int level = 0; level < GRT_LOG_LEVEL_COUNT; level++) {
            grt_log((enum grt_log_level)level, "line %d", level);
        }
        assert_int_equal(seen.lines, (uint32_t)least + 1);
        assert_int_equal(seen.level, (enum grt_log_level)least);
    }
    struct seen seen = {0};
    grt_log_set(keep, &seen, GRT_LOG_ERROR);
    grt_fail(GRT_INVALID, "%s", "one line");
    assert_int_equal(seen.lines, 1);
    assert_string_equal(seen.line, "one line");
    test_log_install();
}

static void long_lines_are_cut(void **state) {
    (void)state;
    char line[8192];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    struct seen seen = {0};
    grt_log_set(keep, &seen, GRT_LOG_ERROR);
    grt_fail(GRT_INVALID, "%s", line);
    test_log_install();
    assert_int_equal(seen.lines, 1);
    assert_in_range(strlen(grt_last_error()), 256, sizeof line - 1);
    assert_string_equal(grt_last_error(), seen.line);
}

// Text from anywhere: what acts on a terminal is written out, what is read stays.
static void visible(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"plain text, 100 %", "plain text, 100 %"},
        {"na\033[31mme\a", "na\\x1b[31mme\\x07"},
        {"two\nlines\r\tof it\177", "two\\x0alines\\x0d\\x09of it\\x7f"},
        {"Größe, 大きさ, 😀", "Größe, 大きさ, 😀"},
        {"\302\233"
         "31m",
         "\\xc2\\x9b"
         "31m"},  // CSI as a character of C1
        {"\233"
         "31m",
         "\\x9b"
         "31m"},                                    // and as a bare byte
        {"\342\200\256gnp", "\\xe2\\x80\\xaegnp"},  // right to left
        {"\300\233 \355\240\200 \364\220\200\200",  // a long form, a surrogate, beyond the last
         "\\xc0\\x9b \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80"},
        {"cut \342\200", "cut \\xe2\\x80"},
        {"already \\x1b", "already \\x1b"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char shown[256], again[256];
        assert_int_equal(grt_visible(pairs[i][0], shown, sizeof shown), strlen(pairs[i][1]));
        assert_string_equal(shown, pairs[i][1]);
        grt_visible(shown, again, sizeof again);
        assert_string_equal(shown, again);
        // However little room there is, nothing is cut in its middle and nothing is written behind
        // it.
        for (size_t room = 1; room < strlen(shown) + 4; room++) {
            memset(again, '#', sizeof again);
            size_t length = grt_visible(pairs[i][0], again, room);
            assert_true(length < room && again[length] == '\0' && again[room] == '#');
            assert_memory_equal(again, shown, length);
            assert_true(length == strlen(shown) || ((unsigned char)shown[length] & 0xc0) != 0x80);
        }
    }
    assert_int_equal(grt_visible_width("Größe 大"), 8);
    struct seen seen = {0};
    grt_log_set(keep, &seen, GRT_LOG_ERROR);
    grt_fail(GRT_BAD_DATA, "'%s' is no name", "a\033]0;b\ac\nd");
    test_log_install();
    assert_string_equal(seen.line, "'a\\x1b]0;b\\x07c\\x0ad' is no name");
    assert_string_equal(grt_last_error(), seen.line);
}

// A line takes long to write, so that a fork is likely to fall into one.
static void slow_line(void *context, enum grt_log_level level, const char *line) {
    (void)level, (void)line;
    nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    atomic_fetch_add((atomic_uint *)context, 1);
}

static void *says_lines(void *stop) {
    while (!atomic_load((atomic_bool *)stop)) {
        grt_log(GRT_LOG_INFO, "tick");
        grt_unfinished_add("/nowhere/half-written");
        grt_unfinished_remove("/nowhere/half-written");
    }
    return NULL;
}

static int speaks_in_the_child(struct grt_child *parent, void *context) {
    (void)context;
    grt_log(GRT_LOG_INFO, "a line of the child");
    grt_unfinished_add("/nowhere/of-the-child");
    return grt_child_send(parent, "x", 1) ? 0 : 1;
}

// While other threads write lines, a child can write one too: the locks that it inherits are free.
static void children_can_log(void **state) {
    (void)state;
    atomic_uint lines = 0;
    atomic_bool stop = false;
    pthread_t threads[2];
    grt_log_set(slow_line, &lines, GRT_LOG_INFO);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, says_lines, &stop), 0);
    }
    while (atomic_load(&lines) == 0) {
        sched_yield();
    }
    uint32_t answers = 0;
    for (uint32_t i = 0; i < 20 && answers == i; i++) {
        struct grt_child child;
        char why[256], byte;
        assert_true(grt_child_start(&child, speaks_in_the_child, NULL, why));
        answers += grt_child_receive(&child, &byte, 1, 20, NULL) == GRT_CHILD_ANSWERED;
        grt_child_end(&child, NULL);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    test_log_install();
    assert_int_equal(answers, 20);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(texts),
    TEST_CASE(failure_sticks_until_the_next),
    TEST_CASE(failure_belongs_to_its_thread),
    TEST_CASE(levels),
    TEST_CASE(long_lines_are_cut),
    TEST_CASE(visible),
    TEST_CASE(children_can_log),
};
TEST_SUITE(status, false, cases);
