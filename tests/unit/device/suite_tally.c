// SPDX-License-Identifier: Apache-2.0
// What a timeline makes of what it is told: sums, rows, tracks, and its files to the last byte. No
// device is asked: commands and clocks are made up.
#include "harness/harness.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "timeline/timeline.h"

static struct grt_timeline *begin(const struct grt_timeline_desc *desc) {
    struct grt_timeline *t = grt_timeline_start(NULL, desc);
    assert_non_null(t);
    return t;
}

static void expect_file(bool (*write)(const struct grt_timeline *, const char *),
                        const struct grt_timeline *t, const char *want) {
    char path[64], got[8192] = "";
    snprintf(path, sizeof path, "/tmp/gpurt_test_tally.%ld.json", (long)getpid());
    assert_true(write(t, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    assert_string_equal(got, want);
}

static bool same(double a, double b) {
    return fabs(a - b) <= 1e-12 * fmax(1.0, fabs(b));
}

// ---- sums ----

static void rows_and_totals(void **state) {
    (void)state;
    struct grt_timeline *t = begin(NULL);
    const uint32_t a = grt_timeline_name(t, "a"), b = grt_timeline_name(t, "b"),
                   u = grt_timeline_name(t, "(upload)"), c = grt_timeline_name(t, "c");
    assert_true(a != b && grt_timeline_name(t, "a") == a);
    assert_int_equal(grt_timeline_name(t, NULL), 0);
    assert_int_equal(grt_timeline_name(t, ""), 0);
    t->zero -= 1000;  // the wall is no limit here
    const struct grt_command_time told[] = {
        {.name = a,
         .is_kernel = true,
         .calls = 1,
         .stands = 1,
         .begin = 1,
         .end = 3,
         .operations = 10,
         .bytes = 100,
         .samples = 7},
        {.name = a,
         .is_kernel = true,
         .calls = 3,
         .stands = 3,
         .begin = 5,
         .end = 6,
         .operations = 10,
         .bytes = 100,
         .samples = 7},
        {.name = b,
         .is_kernel = true,
         .calls = 1,
         .stands = 1,
         .begin = 4,
         .end = 9,
         .operations = 20,
         .bytes = 1},
        {.name = b, .is_kernel = true, .calls = 1, .stands = 1, .begin = 9, .end = 9.5},
        {.name = u,
         .track = GRT_TRACK_UPLOAD,
         .calls = 2,
         .stands = 1,
         .begin = 0,
         .end = 20,
         .bytes = 64},
        {.name = c, .is_kernel = true, .calls = 4, .begin = NAN, .seconds = 0.25},
        {.name = c, .is_kernel = true, .calls = 1, .stands = 2, .begin = NAN, .seconds = 0.25},
    };
    grt_timeline_commands(t, told, sizeof told / sizeof *told);
    grt_timeline_stop(t);
    // The largest first: 40 = 20 x 2 of one timed; 5.5; 2 + 3 x 1; 5 calls of which two are known.
    static const struct grt_timeline_kernel want[] = {
        {"(upload)", 2, 1, 40, 0, 128, 0, false, false},
        {"b", 2, 2, 5.5, 20, 1, 0, true, false},
        {"a", 4, 2, 5, 40, 400, 28, true, true},
        {"c", 5, 0, 1.25, 0, 0, 0, true, false},
    };
    struct grt_timeline_kernel row;
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(grt_timeline_kernel(t, i, &row));
        assert_string_equal(row.name, want[i].name);
        assert_int_equal(row.calls, want[i].calls);
        assert_int_equal(row.timed, want[i].timed);
        assert_true(same(row.seconds, want[i].seconds));
        assert_true(same(row.operations, want[i].operations));
        assert_true(same(row.bytes, want[i].bytes));
        assert_true(same(row.samples, want[i].samples));
        assert_int_equal(row.is_kernel, want[i].is_kernel);
        assert_int_equal(row.of_operations, want[i].of_operations);
    }
    assert_false(grt_timeline_kernel(t, 4, &row));
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_int_equal(totals.dispatches, 11);
    assert_int_equal(totals.copies, 2);
    assert_int_equal(totals.timed, 5);
    assert_true(same(totals.upload, 40) && same(totals.compute, 11.75));
    assert_true(same(totals.active, 8.5));  // from 1 to 9.5: uploads are not of that queue
    assert_true(same(totals.stages[GRT_STAGE_TRANSFORM], 5));  // of the one with samples
    assert_true(totals.wall > 1000 && totals.wall < 1001);
    assert_true(totals.events == 0 && totals.left_out == 0 && totals.submits == 0);
    grt_timeline_destroy(&t);
    assert_true(grt_timeline_totals(NULL).wall == 0);
}

// Rows of equal seconds stand by their names; a name without calls has no row.
static void equal_rows(void **state) {
    (void)state;
    struct grt_timeline *t = begin(NULL);
    static const char *const names[] = {"n", "m", "none", "z", "b"};
    for (int i = 0; i < 5; i++) {
        uint32_t name = grt_timeline_name(t, names[i]);
        grt_timeline_commands(t,
                              &(struct grt_command_time){.name = name,
                                                         .calls = i == 2 ? 0 : 1,
                                                         .stands = 1,
                                                         .begin = 1,
                                                         .end = i == 3 ? 3 : 2},
                              1);
    }
    t->zero -= 100;
    grt_timeline_stop(t);
    static const char *const want[] = {"z", "b", "m", "n"};
    struct grt_timeline_kernel row;
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(grt_timeline_kernel(t, i, &row));
        assert_string_equal(row.name, want[i]);
    }
    assert_false(grt_timeline_kernel(t, 4, &row));
    grt_timeline_destroy(&t);
}

// More names than the first table has room for: each keeps its number and its sums.
static void many_names(void **state) {
    (void)state;
    enum { COUNT = 700 };
    struct grt_timeline *t = begin(NULL);
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            char name[16];
            snprintf(name, sizeof name, "name %u", i * 7919);
            assert_int_equal(grt_timeline_name(t, name), 1 + i);
        }
    }
    assert_int_equal(t->name_count, 1 + COUNT);
    grt_timeline_destroy(&t);
}

// Anew: of what was, events that were left out and what a time costs stay.
static void sums_begin_anew(void **state) {
    (void)state;
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true, .most_events = 2));
    const uint32_t a = grt_timeline_name(t, "a");
    t->totals.stamp = 0.125;
    t->zero -= 1000;
    struct grt_command_time c = {
        .name = a, .is_kernel = true, .calls = 1, .stands = 1, .begin = 1, .end = 3};
    for (int i = 0; i < 3; i++) {
        grt_timeline_commands(t, &c, 1);
    }
    grt_timeline_untimed(t);
    grt_timeline_host(t, GRT_HOST_WAIT, "w", 1, 2);
    assert_true(t->untimed > 0 && t->totals.left_out == 2);
    grt_timeline_zero(t);
    assert_true(t->untimed == 0);
    t->zero -= 500;
    c.begin = 10;
    c.end = 11;
    grt_timeline_commands(t, &c, 1);
    grt_timeline_stop(t);
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_true(totals.stamp == 0.125 && totals.waiting == 0);
    assert_true(totals.left_out == 3 && totals.events == 2);
    assert_true(totals.dispatches == 1 && totals.timed == 1);
    assert_true(same(totals.active, 1) && same(totals.compute, 1));
    assert_true(totals.wall > 500 && totals.wall < 501);
    struct grt_timeline_kernel row;
    assert_true(grt_timeline_kernel(t, 0, &row) && row.calls == 1 && same(row.seconds, 1));
    grt_timeline_destroy(&t);
}

// ---- the host ----

static void work_of_the_host(void **state) {
    (void)state;
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true));
    grt_timeline_host(t, GRT_HOST_SUBMIT, "s", 1, 1.5);
    grt_timeline_host(t, GRT_HOST_SUBMIT, "s", 2, 2.25);
    grt_timeline_host(t, GRT_HOST_WAIT, "w", 3, 4);
    grt_timeline_host(t, GRT_HOST_OTHER, "o", 5, 9);
    grt_timeline_span("span", 6, 6);
    grt_timeline_span("backwards", 6, 5);
    assert_int_equal(t->event_count, 5);
    grt_timeline_stop(t);
    grt_timeline_host(t, GRT_HOST_WAIT, "late", 7, 8);
    grt_timeline_span("late", 7, 8);
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_int_equal(totals.submits, 2);
    assert_true(totals.submitting == 0.75 && totals.waiting == 1);
    assert_int_equal(totals.events, 5);
    assert_int_equal(t->event_count, 5);
    grt_timeline_destroy(&t);
    // Without events the sums are the same.
    t = begin(NULL);
    grt_timeline_host(t, GRT_HOST_SUBMIT, "s", 1, 1.5);
    assert_int_equal(t->event_count, 0);
    grt_timeline_stop(t);
    assert_true(grt_timeline_totals(t).submitting == 0.5);
    grt_timeline_destroy(&t);
}

// Stages add up; a batch's own time is what no stage was told of.
static void stages(void **state) {
    (void)state;
    static const char *const texts[] = {"read",      "inflate", "decode",
                                        "transform", "convert", "wait"};
    for (int i = 0; i < GRT_STAGE_COUNT; i++) {
        assert_string_equal(grt_stage_text((enum grt_stage)i), texts[i]);
    }
    assert_string_equal(grt_stage_text(GRT_STAGE_COUNT), "unknown");
    assert_true(grt_timeline_clock() == 0);
    double none = grt_timeline_staged();
    grt_timeline_stage(GRT_STAGE_READ, 0.0);  // nobody listened when it began
    assert_true(grt_timeline_staged() == none);
    struct grt_timeline *t = begin(NULL);
    double now = grt_timeline_clock();
    assert_true(now > 0);
    double staged = grt_timeline_staged();
    grt_timeline_stage(GRT_STAGE_READ, now - 10);
    grt_timeline_stage(GRT_STAGE_INFLATE, now - 20);
    grt_timeline_stage(GRT_STAGE_WAIT, now - 40);  // is of no batch
    assert_true(fabs(grt_timeline_staged() - staged - 30) < 1);
    grt_timeline_batch(now - 100, staged);
    grt_timeline_batch(0.0, staged);
    grt_timeline_batch(now - 5, staged);  // less than was told: none
    grt_timeline_stop(t);
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_true(fabs(totals.stages[GRT_STAGE_READ] - 10) < 1);
    assert_true(fabs(totals.stages[GRT_STAGE_INFLATE] - 20) < 1);
    assert_true(fabs(totals.stages[GRT_STAGE_WAIT] - 40) < 1);
    assert_true(fabs(totals.stages[GRT_STAGE_CONVERT] - 70) < 1);
    assert_true(totals.stages[GRT_STAGE_DECODE] == 0);
    grt_timeline_destroy(&t);
}

// ---- clocks ----

static void two_clocks(void **state) {
    (void)state;
    struct grt_timeline t = {.device_clock = {10, 20}, .host_clock = {100, 130}};
    assert_true(grt_timeline_at(&t, 12, false) == 12);
    assert_true(same(grt_timeline_at(&t, 12, true), 106));
    assert_true(same(grt_timeline_at(&t, 10, true), 100));
    assert_true(same(grt_timeline_at(&t, 20, true), 130));
    assert_true(same(grt_timeline_at(&t, 9, true), 97));
    t.device_clock[1] = 10;  // read once only
    assert_true(same(grt_timeline_at(&t, 12, true), 102));
}

// ---- files ----

static void *other_thread(void *context) {
    (void)context;
    grt_timeline_thread("a thread with a name of more than 31 bytes");
    grt_timeline_span("beside", 100.00001, 100.00002);
    grt_timeline_thread("worker");
    return NULL;
}

static void a_trace(void **state) {
    (void)state;
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true));
    const uint32_t k = grt_timeline_name(t, "k"), u = grt_timeline_name(t, "(upload)"),
                   p = grt_timeline_name(t, "step");
    t->begin = 100;
    snprintf(t->device, sizeof t->device, "made:0: \"card\"");
    const struct grt_command_time told[] = {
        {.name = k,
         .is_kernel = true,
         .by_device = true,
         .calls = 5,
         .stands = 5,
         .begin = 7.000010,
         .end = 7.000020},
        {.name = k,
         .is_kernel = true,
         .calls = 1,
         .stands = 1,
         .begin = 100.000015,
         .end = 100.0000305},
        {.name = u,
         .track = GRT_TRACK_UPLOAD,
         .calls = 1,
         .stands = 1,
         .begin = 99.5,
         .end = 100.000001},
    };
    grt_timeline_commands(t, told, 3);
    grt_timeline_phase(t, p, 7.00001, 7.00003, true);
    grt_timeline_host(t, GRT_HOST_SUBMIT, "go", 100.000001, 100.0000025);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, NULL);
    t->device_clock[0] = 7;
    t->device_clock[1] = 8;
    t->host_clock[0] = 100;
    t->host_clock[1] = 101;
    grt_timeline_stop(t);
    t->end = 102.5;
    t->totals.left_out = 3;
#define NAME(what, pid, tid, name)                                                                 \
    "{\"name\": \"" what "\", \"ph\": \"M\", \"pid\": " pid ", \"tid\": " tid                      \
    ", \"args\": {\"name\": \"" name "\"}},\n"
#define EVENT(name, cat, pid, tid, ts, dur)                                                        \
    "{\"name\": \"" name "\", \"cat\": \"" cat "\", \"ph\": \"X\", \"pid\": " pid                  \
    ", \"tid\": " tid ", \"ts\": " ts ", \"dur\": " dur "},\n"
    expect_file(
        grt_timeline_write_trace, t,
        "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"left_out\": 3, \"untimed\": 4},\n"
        "\"traceEvents\": [\n" NAME("process_name", "1", "0", "host") NAME(
            "process_name", "2", "0", "made:0: \\u0022card\\u0022") NAME("thread_name", "2", "1",
                                                                         "compute queue")
            NAME("thread_name", "2", "2", "compute queue, overlapping") NAME(
                "thread_name", "2", "9", "upload queue") NAME("thread_name", "2", "17", "phases")
                NAME("thread_name", "1", "25", "host") NAME("thread_name", "1", "33", "worker")
                    EVENT("k", "device", "2", "1", "10.000", "10.000")
                        EVENT("k", "device", "2", "2", "15.000", "15.500")
                            EVENT("(upload)", "upload", "2", "9", "0.000", "1.000")
                                EVENT("step", "phase", "2", "17", "10.000", "20.000")
                                    EVENT("go", "host", "1", "25", "1.000", "1.500")
                                        EVENT("beside", "host", "1", "33", "10.000",
                                              "10.000") "{\"name\": \"end\", \"ph\": \"i\", \"s\": "
                                                        "\"g\", \"pid\": 1, \"tid\": 0, "
                                                        "\"ts\": 2500000.000}\n]}\n");
    grt_timeline_destroy(&t);
}

// Eight tracks of a kind; what overlaps still is cut, on the last.
static void cut_on_the_last_track(void **state) {
    (void)state;
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true));
    t->begin = 0;
    const uint32_t k = grt_timeline_name(t, "k");
    for (int i = 0; i < 10; i++) {
        const struct grt_command_time c = {
            .name = k, .calls = 1, .stands = 1, .begin = 1e-6 * i, .end = 20e-6 + 1e-6 * i};
        grt_timeline_commands(t, &c, 1);
    }
    grt_timeline_stop(t);
    char path[64], line[512];
    uint32_t tracks[9] = {0}, events = 0;
    snprintf(path, sizeof path, "/tmp/gpurt_test_tally.%ld.json", (long)getpid());
    assert_true(grt_timeline_write_trace(t, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    double begins[10] = {0}, lasts[10] = {0};
    while (fgets(line, sizeof line, file)) {
        unsigned track = 0;
        const char *at = strstr(line, "\"cat\": \"device\"");
        if (at && events < 10 &&
            sscanf(strstr(at, "\"tid\""), "\"tid\": %u, \"ts\": %lf, \"dur\": %lf", &track,
                   &begins[events], &lasts[events]) == 3 &&
            track <= 8) {
            tracks[track]++;
            events++;
        }
    }
    fclose(file);
    unlink(path);
    assert_int_equal(events, 10);
    for (uint32_t i = 1; i <= 8; i++) {
        assert_int_equal(tracks[i], i < 8 ? 1 : 3);
    }
    // 7 to 27, then what is left of 8 to 28 and 9 to 29.
    assert_true(begins[7] == 7 && lasts[7] == 20);
    assert_true(begins[8] == 27 && lasts[8] == 1 && begins[9] == 28 && lasts[9] == 1);
    grt_timeline_destroy(&t);
}

static void a_snapshot(void **state) {
    (void)state;
    struct grt_timeline *t = begin(grt_timeline_desc(.memory = true));
    struct grt_dev *const other = (struct grt_dev *)(uintptr_t)8;
    snprintf(t->name, sizeof t->name, "card");
    snprintf(t->backend, sizeof t->backend, "made");
    uint64_t a = grt_timeline_alloc(NULL, "a", GRT_BUF_DEVICE, 64, 64);
    uint64_t b = grt_timeline_alloc(NULL, "b", GRT_BUF_UPLOAD, 8, 64);
    uint64_t c = grt_timeline_alloc(NULL, NULL, GRT_BUF_DEVICE, 100, 164);
    assert_int_equal(grt_timeline_alloc(other, "of another", GRT_BUF_DEVICE, 1, 1), 0);
    assert_true(a > 0 && b > 0 && c > 0 && a != b && b != c);
    grt_timeline_part(a, "w", 0, 16);
    grt_timeline_part(c, "x", 4, 8);
    grt_timeline_part(a, "v", 16, 48);
    grt_timeline_part(c + 1, "of none", 0, 1);
    grt_timeline_part(0, "of none", 0, 1);
    grt_timeline_free(a, 100);
    grt_timeline_free(b, 100);
    uint64_t d = grt_timeline_alloc(NULL, "d", GRT_BUF_DEVICE, 4, 164);  // as much again, later
    assert_true(d > 0);
    grt_timeline_free(a ^ (uint64_t)1 << 32, 9999);  // of another timeline
    assert_int_equal(t->level_count, 4);
    grt_timeline_stop(t);
    // Times that can be told.
    t->begin = 10;
    t->end = 14;
    const double begins[] = {10.5, 11, 12}, levels[] = {10.5, 12, 13};
    for (int i = 0; i < 3; i++) {
        t->allocations[i].begin = begins[i];
        t->levels[i].at = levels[i];
    }
    t->allocations[3].begin = t->levels[3].at = 13.5;
    t->allocations[0].end = 13;
    t->allocations[1].end = 13.25;
    char want[1024];
    snprintf(want, sizeof want,
             "{\"schema\": \"gpurt.memory/1\", \"gpurt\": \"%s\", \"device\": {\"name\": \"card\", "
             "\"backend\": \"made\"}, \"seconds\": 4.000000000, "
             "\"peak\": 164, \"peak_at\": 2.000000000,\n \"allocations\": [\n"
             "  {\"label\": \"a\", \"kind\": \"device\", \"size\": 64, \"begin\": 0.500000000, "
             "\"end\": 3.000000000, \"tensors\": [\n"
             "   {\"label\": \"w\", \"offset\": 0, \"size\": 16},\n"
             "   {\"label\": \"v\", \"offset\": 16, \"size\": 48}]},\n"
             "  {\"label\": \"b\", \"kind\": \"upload\", \"size\": 8, \"begin\": 1.000000000, "
             "\"end\": 3.250000000, \"tensors\": []},\n"
             "  {\"label\": \"unnamed\", \"kind\": \"device\", \"size\": 100, "
             "\"begin\": 2.000000000, \"end\": null, \"tensors\": [\n"
             "   {\"label\": \"x\", \"offset\": 4, \"size\": 8}]},\n"
             "  {\"label\": \"d\", \"kind\": \"device\", \"size\": 4, "
             "\"begin\": 3.500000000, \"end\": null, \"tensors\": []}]}\n",
             grt_version());
    expect_file(grt_timeline_write_memory, t, want);
    grt_timeline_destroy(&t);
    // Who wants sums alone keeps nothing of memory; who wants events keeps levels.
    t = begin(NULL);
    assert_int_equal(grt_timeline_alloc(NULL, "a", GRT_BUF_DEVICE, 64, 64), 0);
    grt_timeline_destroy(&t);
    t = begin(grt_timeline_desc(.events = true));
    a = grt_timeline_alloc(NULL, "a", GRT_BUF_DEVICE, 64, 64);
    grt_timeline_part(a, "w", 0, 16);
    assert_true(a > 0 && t->level_count == 1 && t->part_count == 0);
    grt_timeline_destroy(&t);
    grt_timeline_free(a, 0);  // nobody listens
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(rows_and_totals), TEST_CASE(equal_rows),       TEST_CASE(many_names),
    TEST_CASE(sums_begin_anew), TEST_CASE(work_of_the_host), TEST_CASE(stages),
    TEST_CASE(two_clocks),      TEST_CASE(a_trace),          TEST_CASE(cut_on_the_last_track),
    TEST_CASE(a_snapshot),
};
TEST_SUITE(tally, false, cases);
