// SPDX-License-Identifier: Apache-2.0
// Statuses, the newest failure of a thread, and the log.
#include "harness/harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/closest.h"
#include "base/log.h"
#include "base/visible.h"
#include "gpurt/es.h"
#include "gpurt/limits.h"
#include "gpurt/loader.h"
#include "gpurt/loss.h"
#include "gpurt/make.h"
#include "gpurt/module.h"
#include "gpurt/ppo.h"
#include "gpurt/profile.h"
#include "gpurt/tunable.h"
#include "gpurt/unfinished.h"
#include "harness/open_files.h"

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

// A part that is quiet keeps its first failure, also where a quiet part within it has others, and
// the last failure stays what it was.
static void quiet_parts(void **state) {
    (void)state;
    TEST_REFUSED(grt_fail(GRT_IO, "before"), GRT_IO, "before");
    assert_false(grt_quiet(true));
    assert_int_equal(grt_quiet_status(), GRT_OK);
    assert_false(grt_fail(GRT_CONFIG, "first of %d", 3));
    bool within = grt_quiet(true);
    assert_true(within);
    assert_false(grt_fail(GRT_BAD_DATA, "second"));
    assert_true(grt_quiet(within));
    assert_false(grt_fail(GRT_NO_MEMORY, "third"));
    assert_int_equal(grt_quiet_status(), GRT_CONFIG);
    assert_string_equal(grt_quiet_error(), "first of 3");
    assert_true(grt_quiet(false));
    assert_int_equal(grt_last_status(), GRT_IO);
    assert_string_equal(grt_last_error(), "before");
    // The next one begins with none.
    assert_false(grt_quiet(true));
    assert_int_equal(grt_quiet_status(), GRT_OK);
    assert_string_equal(grt_quiet_error(), "");
    assert_true(grt_quiet(false));
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

// Behind the last of a closed set, and before its first, stands the word for none of them.
static void texts_end(void **state) {
    (void)state;
#define ENDS(function, type, count, none)                                                          \
    do {                                                                                           \
        assert_string_equal(function((enum type)(count)), none);                                   \
        assert_string_equal(function((enum type) - 1), none);                                      \
        assert_string_not_equal(function((enum type)((count)-1)), none);                           \
    } while (0)
    ENDS(grt_backend_text, grt_backend_id, GRT_BACKEND_COUNT, "unknown backend");
    ENDS(grt_dtype_text, grt_dtype, GRT_DTYPE_COUNT, "unknown type");
    ENDS(grt_act_text, grt_act, GRT_ACT_COUNT, "unknown activation");
    ENDS(grt_loss_text, grt_loss, GRT_LOSS_COUNT, "unknown loss");
    ENDS(grt_log_level_text, grt_log_level, GRT_LOG_LEVEL_COUNT, "unknown level");
    ENDS(grt_map_text, grt_map, GRT_MAP_COUNT, "unknown map");
    ENDS(grt_reduce_text, grt_reduce, GRT_REDUCE_COUNT, "unknown reduction");
    ENDS(grt_conv_pass_text, grt_conv_pass, GRT_CONV_PASS_COUNT, "?");
    ENDS(grt_pool_text, grt_pool, GRT_POOL_COUNT, "unknown pooling");
    ENDS(grt_profile_level_text, grt_profile_level, GRT_PROFILE_LEVEL_COUNT, "unknown level");
    ENDS(grt_size_class_text, grt_size_class, GRT_SIZE_COUNT, "unknown size");
    ENDS(grt_cache_text, grt_cache, GRT_CACHE_COUNT, "unknown cache");
    ENDS(grt_make_text, grt_make, GRT_MAKE_COUNT, "unknown kind of data");
    ENDS(grt_es_algo_text, grt_es_algo, GRT_ES_ALGO_COUNT, "unknown");
    ENDS(grt_ppo_trial_text, grt_ppo_trial, GRT_PPO_TRIAL_COUNT, "");
    ENDS(grt_ppo_phase_text, grt_ppo_phase, GRT_PPO_PHASE_COUNT, "");
    ENDS(grt_optim_text, grt_optim, GRT_OPTIM_COUNT, "unknown optimizer");
    ENDS(grt_schedule_text, grt_schedule, GRT_SCHEDULE_COUNT, "unknown schedule");
    ENDS(grt_ending_text, grt_ending, GRT_ENDING_COUNT, "");
#undef ENDS
    assert_int_equal(grt_dtype_size(GRT_DTYPE_COUNT), 0);
}

// What types and backends are called in files and on the command line, and bytes of an element.
static void names(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t size;
    } types[GRT_DTYPE_COUNT] = {
        [GRT_F32] = {"f32", 4}, [GRT_F16] = {"f16", 2}, [GRT_BF16] = {"bf16", 2},
        [GRT_U32] = {"u32", 4}, [GRT_I32] = {"i32", 4}, [GRT_I8] = {"i8", 1},
        [GRT_U8] = {"u8", 1},
    };
    for (int i = 0; i < GRT_DTYPE_COUNT; i++) {
        assert_string_equal(grt_dtype_text((enum grt_dtype)i), types[i].text);
        assert_int_equal(grt_dtype_size((enum grt_dtype)i), types[i].size);
    }
    assert_string_equal(grt_backend_text(GRT_BACKEND_VULKAN), "vulkan");
    assert_string_equal(grt_backend_text(GRT_BACKEND_OPENCL), "opencl");
    assert_string_equal(grt_backend_text(GRT_BACKEND_REF), "ref");
    static const char *const levels_of[] = {"error", "warning", "note", "debug"};
    for (int i = 0; i < GRT_LOG_LEVEL_COUNT; i++) {
        assert_string_equal(grt_log_level_text((enum grt_log_level)i), levels_of[i]);
    }
}

static void means(const char *word, const char *want) {
    static const char *const names[] = {"train",
                                        "bench",
                                        "devices",
                                        "report",
                                        "data",
                                        "trail",
                                        "evaluate",
                                        "evaluation",
                                        "geglu",
                                        "gelu",
                                        "learning_rate_of_the_whole_net",
                                        "a_name_of_more_than_thirty_one_letters"};
    const char *got = grt_closest(word, names, sizeof names / sizeof *names, sizeof *names);
    assert_string_equal(got ? got : "none", want ? want : "none");
}

// What a misspelt word was meant to be.
static void closest(void **state) {
    (void)state;
    means("bench", "bench");
    means("bnech", "bench");   // neighbours in each other's place are one slip
    means("bnehc", "bench");   // two of them
    means("benc", "bench");    // one is missing
    means("beench", "bench");  // one too many
    means("bensh", "bench");   // one for another
    means("bxnxh", "bench");   // two of five
    means("bxnxx", NULL);      // three
    means("xxxench", NULL);    // three too many
    means("ench", "bench");    // the first
    means("abench", "bench");
    means("dat", "data");
    means("dxtx", NULL);  // half of four
    means("train", "train");
    means("trais", "train");  // one slip from either: the first
    means("traik", "train");
    means("trial", "trail");  // the nearer one
    means("gellu", "gelu");   // a letter too many is nearer than a wrong one
    means("gegu", "geglu");
    means("geglo", "geglu");
    means("dev", "devices");  // cut short
    means("de", NULL);        // too short
    means("reports_of_all", "report");
    means("eval", NULL);  // of two
    means("evaluat", "evaluate");
    means("learning_rate_of_the_whole_nat", "learning_rate_of_the_whole_net");
    means("learning_rate_of_the_whole_nett", "learning_rate_of_the_whole_net");
    means("a_name_of_more_than_thirty_one_lettars", NULL);
    means("", NULL);
}

// ---- how a child ended ----

static int leaves(struct grt_child *parent, void *context) {
    (void)parent;
    if (!context) {
        raise(SIGKILL);
    }
    return context ? *(const int *)context : 0;
}

static int stays(struct grt_child *parent, void *context) {
    char byte;
    (void)context;
    return grt_child_receive(parent, &byte, 1, 600, NULL) == GRT_CHILD_ANSWERED ? 0 : 1;
}

static void does_nothing(void *context) {
    (void)context;
}

static void takes_long(void *context) {
    (void)context;
    sleep(600);
}

// What is said of one that went by itself, of one that was killed, and of one that waits, which is
// ended here and of which nothing is said; nor of one that was never there.
static void children_end(void **state) {
    (void)state;
    const int seven = 7;
    char why[256], byte;
    uint32_t before = open_files();
    const char *said[2] = {"ended the process (exit code 7)", "crashed (signal 9, Killed)"};
    for (int i = 0; i < 2; i++) {
        struct grt_child child;
        char how[128] = "of the one before";
        assert_true(grt_child_start(&child, leaves, i == 0 ? (void *)&seven : NULL, why));
        assert_int_not_equal(grt_child_receive(&child, &byte, 1, 60, NULL), GRT_CHILD_ANSWERED);
        grt_child_end(&child, how);
        assert_string_equal(how, said[i]);
        // It is gone: the second time there is nothing to end.
        memcpy(how, "again", 6);
        grt_child_end(&child, how);
        assert_string_equal(how, "");
    }
    struct grt_child child;
    char how[128] = "of the one before";
    assert_true(grt_child_start(&child, stays, NULL, why));
    pid_t pid = child.pid;
    grt_child_end(&child, how);
    assert_string_equal(how, "");
    assert_int_equal(kill(pid, 0), -1);
    // One that is tried and comes back, and one that is late, as well.
    assert_true(grt_child_survives(does_nothing, NULL, 60, how));
    assert_false(grt_child_survives(takes_long, NULL, 0.05, how));
    assert_string_equal(how, "did not come back within 0.05 s");
    assert_int_equal(open_files(), before);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(texts),        TEST_CASE(texts_end),
    TEST_CASE(closest),      TEST_CASE(failure_sticks_until_the_next),
    TEST_CASE(quiet_parts),  TEST_CASE(failure_belongs_to_its_thread),
    TEST_CASE(levels),       TEST_CASE(long_lines_are_cut),
    TEST_CASE(visible),      TEST_CASE(children_can_log),
    TEST_CASE(children_end), TEST_CASE(names),
};
TEST_SUITE(status, false, cases);
