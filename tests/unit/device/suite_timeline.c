// SPDX-License-Identifier: Apache-2.0
// Timelines: counts are those that the host knows, times lie within those of the wall and of
// phases, results are the same bits, and the files are what their readers want. Files are read by
// jansson and checked here from what the format says.
#include "harness/graph_kit.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "device/section.h"
#include "gpurt/timeline.h"
#include "timeline/timeline.h"

#define RUNS 11u  // more than there are lists of a segment
#define COPIES 7u
#define WORDS 256u

static bool find(const struct grt_timeline *t, const char *name, struct grt_timeline_kernel *row) {
    for (uint32_t i = 0; grt_timeline_kernel(t, i, row); i++) {
        if (strcmp(row->name, name) == 0) {
            return true;
        }
    }
    *row = (struct grt_timeline_kernel){0};
    return false;
}

// COPIES dispatches that wait for each other or not, a fill, an upload and a readback.
static void record(struct grt_graph *graph, bool phases) {
    if (phases) {
        grt_graph_phase(graph, "up");
    }
    grt_graph_copy(graph, kit_whole(kit.a), kit_whole(kit.up));
    if (phases) {
        grt_graph_phase(graph, "work");
    }
    for (uint32_t i = 0; i < COPIES; i++) {
        struct grt_range y = kit_part(kit.b, i * (uint64_t)kit.step * 4 % KIT_BYTES, WORDS * 4);
        kit_copy(graph, y, kit_part(kit.a, 0, WORDS * 4), WORDS);
    }
    grt_graph_fill(graph, kit_part(kit.a, KIT_BYTES - 64, 64), 5);
    grt_graph_copy(graph, kit_whole(kit.down), kit_whole(kit.b));
    assert_true(grt_graph_bake(graph));
}

static void run_all(struct grt_graph *graph, uint32_t runs) {
    for (uint32_t i = 0; i < runs; i++) {
        assert_true(grt_graph_run(graph));
    }
}

static struct grt_timeline *begin(const struct grt_timeline_desc *desc) {
    struct grt_timeline *t = grt_timeline_begin(test.dev, desc);
    assert_non_null(t);
    return t;
}

static void check_count(const struct grt_timeline *t, const char *name, uint64_t calls) {
    struct grt_timeline_kernel row;
    assert_int_equal(find(t, name, &row), calls > 0);
    assert_int_equal(row.calls, calls);
    assert_int_equal(row.timed, calls);
    assert_true(row.seconds >= 0.0);
}

static void calls_are_those_of_the_host(void **state) {
    (void)state;
    struct grt_graph *before = kit_graph(), *during = kit_graph();
    record(before, false);
    run_all(before, 2);
    struct grt_timeline *t = begin(NULL);
    record(during, true);
    run_all(before, RUNS);
    run_all(during, 3);
    grt_graph_destroy(&during);  // its times are not lost
    assert_true(grt_timeline_end(t));
    run_all(before, 2);  // not counted
    assert_true(grt_dev_wait(test.dev));
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    check_count(t, "copy", COPIES * (RUNS + 3));
    check_count(t, "(upload)", RUNS + 3);
    check_count(t, "(readback)", RUNS + 3);
    check_count(t, "(fill)", RUNS + 3);
    check_count(t, "(copy)", 0);
    assert_int_equal(totals.dispatches, COPIES * (RUNS + 3));
    assert_int_equal(totals.copies, 3 * (RUNS + 3));
    struct grt_timeline_kernel row;
    assert_true(find(t, "copy", &row) && row.is_kernel && !row.of_operations);
    assert_true(row.bytes == 2.0 * WORDS * 4 * COPIES * (RUNS + 3));
    assert_true(find(t, "(upload)", &row) && !row.is_kernel);
    // The largest first, and all together within the wall.
    double sum = 0.0, last = INFINITY;
    for (uint32_t i = 0; grt_timeline_kernel(t, i, &row); i++) {
        assert_true(row.seconds <= last);
        last = row.seconds;
        sum += row.seconds;
    }
    assert_true(sum > 0.0 && sum <= totals.wall);
    assert_true(totals.compute <= totals.active * (1 + 1e-9) && totals.active <= totals.wall);
    assert_int_equal(totals.events, 0);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&before);
}

static void sums_begin_anew(void **state) {
    (void)state;
    assert_true(grt_timeline_restart(test.dev));  // without a timeline
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true));
    struct grt_graph *graph = kit_graph();
    record(graph, false);
    run_all(graph, 5);
    assert_true(grt_timeline_restart(test.dev));
    run_all(graph, 2);
    assert_true(grt_timeline_end(t));
    check_count(t, "copy", 2 * COPIES);
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_int_equal(totals.dispatches, 2 * COPIES);
    assert_true(totals.events >= 7 * (COPIES + 3));  // those stay
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
}

// Phases are timed by other queries and events than commands.
static void commands_fill_their_phases(void **state) {
    (void)state;
    struct grt_phase_time phases[2] = {{0}};
    struct grt_timeline *t = begin(NULL);
    struct grt_graph *graph = kit_graph();
    record(graph, true);
    run_all(graph, 3);
    assert_true(grt_timeline_restart(test.dev));
    run_all(graph, 1);
    assert_int_equal(grt_graph_times(graph, phases, 2), 2);
    assert_true(grt_timeline_end(t));
    double sum = 0.0, both = phases[0].seconds + phases[1].seconds;
    struct grt_timeline_kernel row;
    for (uint32_t i = 0; grt_timeline_kernel(t, i, &row); i++) {
        sum += row.seconds;
    }
    // Ticks of a clock on either side; phases have gaps besides.
    assert_true(both > 0.0 && sum > 0.0 && sum <= both * 1.01 + 2e-6);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
}

static void results_are_the_same_bits(void **state) {
    (void)state;
    uint32_t words[KIT_WORDS], without[KIT_WORDS] = {0}, with[KIT_WORDS] = {0};
    uint64_t seed = 3;
    for (uint32_t i = 0; i < KIT_WORDS; i++) {
        words[i] = test_next(&seed);
    }
    for (int timed = 0; timed < 2; timed++) {
        const uint32_t zeros[KIT_WORDS] = {0};
        assert_true(grt_buf_write(kit.up, 0, words, sizeof words));
        assert_true(grt_buf_write(kit.b, 0, zeros, sizeof zeros));
        struct grt_timeline *t = timed ? begin(NULL) : NULL;
        struct grt_graph *graph = kit_graph();
        record(graph, true);
        run_all(graph, 6);
        assert_true(grt_dev_wait(test.dev));
        assert_true(grt_buf_read(kit.down, 0, timed ? with : without, sizeof with));
        if (t) {
            assert_true(grt_timeline_end(t));
        }
        grt_timeline_destroy(&t);
        grt_graph_destroy(&graph);
    }
    test_same(test.dev, "a graph under a timeline", with, without, 4, KIT_WORDS);
}

// A product says what it computes, whoever multiplies.
static void operations_make_a_rate(void **state) {
    (void)state;
    const uint64_t m = 24, n = 40, k = 16;
    struct test_tensor a = test_tensor(test.dev, GRT_F32, m, k);
    struct test_tensor b = test_tensor(test.dev, GRT_F32, k, n);
    struct test_tensor c = test_tensor(test.dev, GRT_F32, m, n);
    struct grt_graph *graph = kit_graph();
    grt_graph_samples(graph, 3);  // of no dispatch
    grt_op_gemm(graph, &(struct grt_gemm_desc){.a = &a.tensor, .b = &b.tensor, .c = &c.tensor});
    grt_graph_samples(graph, 5);
    struct grt_timeline *t = begin(NULL);
    assert_true(grt_graph_finish(graph) && grt_graph_run(graph));
    assert_true(grt_timeline_end(t));
    double operations = 0.0;
    double samples = 0.0;
    struct grt_timeline_kernel row;
    for (uint32_t i = 0; grt_timeline_kernel(t, i, &row); i++) {
        operations += row.operations;
        samples += row.samples;
        assert_true(!row.of_operations || strncmp(row.name, "gemm_", 5) == 0);
    }
    assert_true(operations == 2.0 * 2 * m * n * k);  // of two runs
    assert_true(samples == 2 * 5);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
    test_tensor_end(&a);
    test_tensor_end(&b);
    test_tensor_end(&c);
}

// ---- the trace ----

static char path[64];

static json_t *read_back(bool (*write)(const struct grt_timeline *, const char *),
                         const struct grt_timeline *t) {
    snprintf(path, sizeof path, "/tmp/gpurt-timeline-%ld.json", (long)getpid());
    assert_true(write(t, path));
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) {
        print_error("%s:%d: %s\n", path, error.line, error.text);
    }
    assert_non_null(json);
    unlink(path);
    return json;
}

static double number(const json_t *event, const char *key) {
    const json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

#define MOST_THREADS 4096

struct seen {
    double until[MOST_THREADS];  // of each thread
    bool named[MOST_THREADS];
    uint32_t spans, counters, names, kernels, phases, uploads, waits;
    double kernel_us, end_us;
};

// What the format says of each kind of event, and that spans of a thread are in order and apart.
static void see(const json_t *event, struct seen *seen) {
    const char *kind = json_string_value(json_object_get(event, "ph"));
    const char *name = json_string_value(json_object_get(event, "name"));
    const char *category = json_string_value(json_object_get(event, "cat"));
    assert_true(json_is_integer(json_object_get(event, "pid")));
    if (!kind || !name) {
        fail_msg("an event without a kind or a name");
        return;
    }
    double tid = number(event, "tid");
    assert_true(tid >= 0 && tid < MOST_THREADS);
    size_t thread = (size_t)tid;
    if (strcmp(kind, "M") == 0) {
        assert_true(strcmp(name, "process_name") == 0 || strcmp(name, "thread_name") == 0);
        assert_true(json_is_string(json_object_get(json_object_get(event, "args"), "name")));
        seen->named[thread] = seen->named[thread] || strcmp(name, "thread_name") == 0;
        seen->names++;
        return;
    }
    double at = number(event, "ts");
    assert_true(at >= 0.0);
    if (strcmp(kind, "C") == 0) {
        assert_true(number(json_object_get(event, "args"), "bytes") >= 0.0);
        seen->counters++;
    } else if (strcmp(kind, "i") == 0) {
        seen->end_us = at;
    } else {
        double lasts = number(event, "dur");
        assert_string_equal(kind, "X");
        assert_true(seen->named[thread]);
        category = category ? category : "";
        assert_true(category[0] != 0);
        assert_true(lasts >= 0.0);
        assert_true(at >= seen->until[thread] - 1e-6);  // as far as doubles tell microseconds
        seen->until[thread] = at + lasts;
        seen->spans++;
        bool device = strcmp(category, "device") == 0;
        seen->kernels += device && strcmp(name, "copy") == 0;
        seen->uploads += strcmp(name, "(upload)") == 0;
        seen->phases += strcmp(category, "phase") == 0;
        seen->waits += strcmp(category, "host") == 0 && strcmp(name, "wait") == 0;
        seen->kernel_us += device ? lasts : 0.0;
    }
}

static void see_all(const json_t *trace, struct seen *seen) {
    const json_t *events = json_object_get(trace, "traceEvents");
    size_t i;
    json_t *event;
    assert_true(json_is_array(events));
    json_array_foreach(events, i, event) {
        see(event, seen);
    }
    assert_true(seen->kernel_us <= seen->end_us);
    for (i = 0; i < MOST_THREADS; i++) {
        assert_true(seen->until[i] <= seen->end_us + 1.0);  // clocks are aligned to less than that
    }
}

static void a_trace_is_of_the_format(void **state) {
    (void)state;
    struct seen *seen = test_alloc(sizeof *seen);
    memset(seen, 0, sizeof *seen);
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true));
    struct grt_graph *graph = kit_graph();
    double begun = grt_seconds();
    record(graph, true);
    grt_timeline_span("a \"name\"\n\xff\xc3\xa9", begun, begun + 1e-5);
    run_all(graph, RUNS);
    assert_true(grt_dev_wait(test.dev));
    struct grt_buf *buf = test_buf(test.dev, 4096, GRT_BUF_DEVICE);
    grt_buf_destroy(&buf);
    TEST_REFUSED(grt_timeline_write_trace(t, "/tmp/x"), GRT_INVALID, "has not ended");
    assert_true(grt_timeline_end(t));
    json_t *trace = read_back(grt_timeline_write_trace, t);
    see_all(trace, seen);
    assert_int_equal(seen->kernels, COPIES * RUNS);
    assert_int_equal(seen->uploads, RUNS);
    assert_int_equal(seen->phases, 2 * RUNS);
    assert_int_equal(seen->counters, 2);  // up and down again
    assert_true(seen->waits >= 1);
    // All that is in it, but for names and the end, is counted.
    assert_int_equal(seen->spans, grt_timeline_totals(t).events);
    json_decref(trace);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
    free(seen);
}

// What each command is for, and how many there are of it, in a run of record_sections().
static const struct {
    const char *name;
    uint32_t commands;
} sections[] = {{"test", 1}, {"one", 2}, {"two", 1}, {"one", 2}, {"one", 1}, {"two", 3}};
enum { SECTIONS = sizeof sections / sizeof *sections };

static void record_sections(struct grt_graph *graph, bool named) {
    for (uint32_t i = 0; i < SECTIONS; i++) {
        if (i == 4) {
            grt_graph_phase(graph, sections[i].name);  // a mark: begins anew
        } else if (i > 0 && named) {
            grt_graph_section(graph, sections[i].name);
        }
        for (uint32_t k = 0; k < sections[i].commands; k++) {
            uint64_t place = (i * 4 + k) % 4 * (uint64_t)kit.step * 4;
            kit_copy(graph, kit_part(kit.b, place, WORDS * 4), kit_part(kit.a, 0, WORDS * 4),
                     WORDS);
        }
    }
    assert_true(grt_graph_bake(graph));
}

// Phases of a trace are those of the sections, from the first of their commands to the last, and
// cover all; names cost no barrier.
static void sections_hold_their_commands(void **state) {
    (void)state;
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true));
    struct grt_graph *plain = kit_graph(), *graph = grt_graph_create(test.dev, "test");
    record_sections(plain, false);
    record_sections(graph, true);
    assert_int_equal(grt_graph_stats(graph).barriers, grt_graph_stats(plain).barriers);
    assert_int_equal(grt_graph_stats(graph).commands, grt_graph_stats(plain).commands);
    run_all(graph, RUNS);
    assert_true(grt_timeline_end(t));
    json_t *trace = read_back(grt_timeline_write_trace, t), *event;
    double begins[RUNS * 10], ends[RUNS * 10];
    uint32_t commands = 0, phases = 0, command = 0;
    size_t i;
    // Tracks stand one behind the other: commands before phases.
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const char *category = json_string_value(json_object_get(event, "cat"));
        if (category && strcmp(category, "device") == 0) {
            assert_true(commands < RUNS * 10);
            begins[commands] = number(event, "ts");
            ends[commands++] = number(event, "ts") + number(event, "dur");
        } else if (category && strcmp(category, "phase") == 0) {
            const char *name = json_string_value(json_object_get(event, "name"));
            uint32_t last = command + sections[phases % SECTIONS].commands - 1;
            assert_string_equal(name ? name : "", sections[phases % SECTIONS].name);
            assert_true(last < commands);
            assert_true(fabs(number(event, "ts") - begins[command]) < 2e-3);
            assert_true(fabs(number(event, "ts") + number(event, "dur") - ends[last]) < 2e-3);
            command = last + 1;
            phases++;
        }
    }
    assert_int_equal(commands, RUNS * 10);
    assert_int_equal(command, commands);
    assert_int_equal(phases, RUNS * SECTIONS);
    json_decref(trace);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
    grt_graph_destroy(&plain);
}

// How many commands lie on the host's clock between the call that ran them and its wait.
static uint32_t aligned(void) {
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true));
    struct grt_graph *graph = kit_graph();
    record(graph, false);
    run_all(graph, 3);
    assert_true(grt_dev_wait(test.dev));
    usleep(2000);
    double before = grt_seconds();
    run_all(graph, 1);
    assert_true(grt_dev_wait(test.dev));
    double after = grt_seconds();
    usleep(2000);
    assert_true(grt_timeline_end(t));
    uint32_t within = 0;
    for (uint64_t i = 0; i < t->event_count; i++) {
        const struct grt_event *e = &t->events[i];
        double from = grt_timeline_at(t, e->begin, e->by_device);
        double to = grt_timeline_at(t, e->end, e->by_device);
        within += e->track == GRT_TRACK_COMPUTE && from >= before - 2.5e-4 && to <= after + 2.5e-4;
    }
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
    return within;
}

// A loaded machine may come between the readings of two clocks: then it is tried again.
static void clocks_are_aligned(void **state) {
    (void)state;
    uint32_t within = 0;
    for (int i = 0; i < 20 && within != COPIES + 3; i++) {
        within = aligned();
    }
    assert_int_equal(within, COPIES + 3);
}

// Times that no device gives: overlapping, and more than are kept.
static void overlaps_go_to_a_track_of_their_own(void **state) {
    (void)state;
    struct seen *seen = test_alloc(sizeof *seen);
    memset(seen, 0, sizeof *seen);
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true, .most_events = 40));
    double now = grt_seconds();
    for (uint32_t i = 0; i < 60; i++) {
        struct grt_command_time c = {
            .name = grt_timeline_name(t, "copy"),
            .is_kernel = true,
            .calls = 1,
            .stands = 1,
            .begin = now + 1e-5 * (59 - i),
            .end = now + 1e-5 * (59 - i) + 1.5e-5,
        };
        grt_timeline_commands(t, &c, 1);
    }
    usleep(1000);
    assert_true(grt_timeline_end(t));
    assert_int_equal(grt_timeline_totals(t).events, 40);
    assert_int_equal(grt_timeline_totals(t).left_out, 20);
    json_t *trace = read_back(grt_timeline_write_trace, t);
    json_t *events = json_object_get(trace, "traceEvents");
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event) {
        see(event, seen);
    }
    assert_int_equal(seen->kernels, 40);
    assert_true(fabs(seen->kernel_us - 40 * 15.0) < 0.1);  // none is cut
    assert_int_equal(number(json_object_get(trace, "otherData"), "left_out"), 20);
    json_decref(trace);
    grt_timeline_destroy(&t);
    free(seen);
}

// ---- runs without times ----

// Timestamps that would cost a second each. Where lists are timed whole the first run is timed,
// then one in 64; else all of a first run as short as this, and what was taken ahead is not timed
// again for long. The others are counted, and take as long as those.
static void dear_times_are_taken_of_some_runs(void **state) {
    (void)state;
    const uint32_t runs = 1 + 64 + 5, timed = test.dev->fns->cmds_choose ? 1 : 2;
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true, .overhead = 0.02));
    t->totals.stamp = 1.0;
    struct grt_graph *graph = kit_graph();
    record(graph, true);
    run_all(graph, runs);
    assert_true(grt_timeline_end(t));
    struct grt_timeline_kernel row;
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_true(find(t, "copy", &row));
    assert_int_equal(row.calls, runs * COPIES);
    assert_int_equal(row.timed, timed * COPIES);
    assert_true(fabs(row.bytes - 2.0 * WORDS * 4 * COPIES * runs) < 1.0);
    assert_int_equal(totals.dispatches, runs * COPIES);
    assert_int_equal(totals.copies, runs * 3);
    assert_true(totals.timed >= COPIES + 3 && totals.timed <= 2 * (COPIES + 3));
    assert_true(totals.compute > 0.0);
    json_t *trace = read_back(grt_timeline_write_trace, t);
    assert_int_equal(number(json_object_get(trace, "otherData"), "untimed"),
                     runs * (COPIES + 3) - totals.timed);
    json_decref(trace);
    grt_timeline_destroy(&t);
    // Sums that begin anew begin with a run that is timed.
    t = begin(grt_timeline_desc(.overhead = 0.02));
    t->totals.stamp = 1.0;
    run_all(graph, 3);
    assert_true(grt_timeline_restart(test.dev));
    run_all(graph, 3);
    assert_true(grt_timeline_end(t));
    assert_true(find(t, "copy", &row) && row.calls == 3 * COPIES && row.timed == COPIES);
    grt_timeline_destroy(&t);
    // Times that cost nothing are taken of every run.
    t = begin(grt_timeline_desc(.overhead = 0.02));
    t->totals.stamp = 0.0;
    run_all(graph, runs);
    assert_true(grt_timeline_end(t));
    check_count(t, "copy", runs * COPIES);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
}

static struct {
    const struct grt_dev_fns *own;
    uint32_t reads;
} without;

static bool stamps_without_the_first(struct grt_dev *dev, void *native, struct grt_stamps *stamps) {
    bool good = without.own->cmds_stamps(dev, native, stamps);
    stamps->begin[0] = NAN;
    without.reads++;
    return good;
}

// A command that never gets a time is waited for once, and not in every run.
static void a_time_that_never_comes(void **state) {
    (void)state;
    if (!test.dev->fns->cmds_stamps) {
        return;
    }
    struct grt_dev_fns fns = *test.dev->fns;
    fns.cmds_stamps = stamps_without_the_first;
    without.own = test.dev->fns;
    without.reads = 0;
    struct grt_timeline *t = begin(grt_timeline_desc(.overhead = 0.02));
    t->totals.stamp = 1.0;
    struct grt_graph *graph = kit_graph();
    grt_graph_fill(graph, kit_part(kit.a, 0, 64), 5);
    grt_graph_fill(graph, kit_part(kit.b, 0, 128), 5);
    assert_true(grt_graph_bake(graph));
    test.dev->fns = &fns;
    for (uint32_t runs = 1; runs <= 70; runs++) {
        run_all(graph, 1);
        // The second run asks for the first one's times; run 66 could ask for those of run 65.
        assert_int_equal(without.reads, runs > 1);
    }
    assert_true(grt_timeline_end(t));
    test.dev->fns = without.own;
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
}

// A list of 300 dispatches and two phases. Where commands can be timed apart a first run times some
// 64 of them and the single fill, and the runs behind it next to none: they pay that back. Phases
// are in the trace all the same.
static void a_long_list_is_timed_by_windows(void **state) {
    (void)state;
    const uint32_t dispatches = 300, runs = 9;
    bool apart = test.dev->fns->cmds_choose != NULL;
    struct seen *seen = test_alloc(sizeof *seen);
    memset(seen, 0, sizeof *seen);
    struct grt_timeline *t = begin(grt_timeline_desc(.events = true, .overhead = 1.0));
    struct grt_graph *graph = kit_graph();
    grt_graph_phase(graph, "up");
    grt_graph_fill(graph, kit_part(kit.a, KIT_BYTES - 64, 64), 5);
    for (uint32_t i = 0; i < dispatches; i++) {
        if (i == dispatches / 2) {
            grt_graph_phase(graph, "work");
        }
        kit_copy(graph, kit_part(kit.b, 0, WORDS * 4), kit_part(kit.a, 0, WORDS * 4), WORDS);
    }
    t->totals.stamp = 1.0;  // a thousand times what a run takes
    assert_true(grt_graph_bake(graph));
    run_all(graph, 2);
    assert_true(grt_timeline_restart(test.dev));
    run_all(graph, runs);
    assert_true(grt_timeline_end(t));
    struct grt_timeline_kernel row;
    assert_true(find(t, "copy", &row));
    assert_int_equal(row.calls, runs * dispatches);
    assert_true(row.seconds > 0.0);
    assert_true(apart ? row.timed < dispatches / 3 : row.timed == dispatches);
    assert_true(fabs(row.bytes - 2.0 * WORDS * 4 * dispatches * runs) < 1.0);
    assert_true(find(t, "(fill)", &row) && row.calls == runs && row.timed == 1);
    json_t *trace = read_back(grt_timeline_write_trace, t);
    see_all(trace, seen);
    assert_true(seen->phases >= 4);
    json_decref(trace);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
    free(seen);
}

// A command that begins so long after `now`, lasts so long or has no time, with its calls.
static void tell(struct grt_timeline *t, struct grt_command_time c, double now, double lasts) {
    c.stands = isnan(lasts) ? 0.0 : (double)c.calls;
    c.begin = isnan(lasts) ? NAN : now + c.begin;
    c.end = c.begin + lasts;
    grt_timeline_commands(t, &c, 1);
}

// Runs of 1 ms, then one of 2 ms that stands for ten, then four without a time: 21 ms for eleven.
static void a_timed_run_stands_for_others(void **state) {
    (void)state;
    struct grt_timeline *t = begin(NULL);
    double now = grt_seconds();
    struct grt_command_time c = {
        .name = grt_timeline_name(t, "image"), .is_kernel = true, .calls = 1, .samples = 3};
    tell(t, c, now, 0.001);
    c.begin = 0.01;
    c.calls = 10;
    tell(t, c, now, 0.002);
    c.calls = 4;
    tell(t, c, now, NAN);
    assert_true(grt_timeline_end(t));
    struct grt_timeline_kernel row;
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_true(find(t, "image", &row) && row.calls == 15 && row.timed == 2);
    assert_true(fabs(row.seconds - 0.021 / 11 * 15) < 1e-9);
    assert_true(fabs(row.samples - 45) < 1e-9);
    assert_true(fabs(totals.compute - row.seconds) < 1e-12);
    assert_true(fabs(totals.stages[GRT_STAGE_TRANSFORM] - row.seconds) < 1e-12);
    grt_timeline_destroy(&t);
}

// Times that stand for more than there was time for are fitted to it, and those of uploads are not.
static void what_stands_for_others_fits_the_wall(void **state) {
    (void)state;
    struct grt_timeline *t = begin(NULL);
    double now = grt_seconds();
    struct grt_command_time c = {
        .name = grt_timeline_name(t, "a"), .is_kernel = true, .calls = 3000};
    tell(t, c, now, 1.0);
    c.name = grt_timeline_name(t, "b");
    c.calls = 1000;
    tell(t, c, now, 1.0);
    c = (struct grt_command_time){
        .name = grt_timeline_name(t, "up"), .track = GRT_TRACK_UPLOAD, .calls = 500};
    tell(t, c, now, 1.0);
    grt_timeline_untimed(t);
    assert_true(grt_timeline_end(t));
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    struct grt_timeline_kernel a = {0}, b = {0}, up = {0};
    assert_true(find(t, "a", &a) && find(t, "b", &b) && find(t, "up", &up));
    assert_true(totals.wall > 0.0 && totals.wall < 3000.0);
    assert_true(fabs(a.seconds + b.seconds - totals.wall) < 1e-9 * totals.wall);
    assert_true(fabs(a.seconds - 3.0 * b.seconds) < 1e-9 * totals.wall);
    assert_true(fabs(up.seconds - 500.0) < 1e-6 && fabs(totals.upload - 500.0) < 1e-6);
    assert_true(fabs(totals.compute - totals.wall) < 1e-9 * totals.wall);
    assert_true(a.calls == 3000 && b.calls == 1000);
    grt_timeline_destroy(&t);
}

// One name on both queues: the seconds of each count where they were, and the compute queue is in
// use from its first command on, whatever that lasts.
static void a_name_on_two_queues(void **state) {
    (void)state;
    struct grt_timeline *t = begin(NULL);
    double now = grt_seconds();
    struct grt_command_time c = {.name = grt_timeline_name(t, "(upload)"), .calls = 1};
    const double begins[] = {0.001, 0.002, 0.010, 0.020}, lasts[] = {0, 0.003, 0.004, 0.005};
    for (uint32_t i = 0; i < 4; i++) {
        c.track = i % 2 == 0 ? GRT_TRACK_COMPUTE : GRT_TRACK_UPLOAD;
        c.begin = begins[i];
        tell(t, c, now, lasts[i]);
    }
    assert_true(grt_timeline_end(t));
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_true(fabs(totals.upload - 0.008) < 1e-6 && fabs(totals.compute - 0.004) < 1e-6);
    assert_true(fabs(totals.active - 0.013) < 1e-6);
    grt_timeline_destroy(&t);
}

// ---- memory ----

static void a_snapshot_has_the_bytes_of_the_plan(void **state) {
    (void)state;
    struct grt_timeline *t = begin(grt_timeline_desc(.memory = true));
    struct grt_plan *plan = grt_plan_create(test.dev);
    grt_plan_tensor(plan, grt_tensor_desc(.label = "w \"0\"", .group = "params", .shape = {10, 3}));
    grt_plan_tensor(plan, grt_tensor_desc(.label = "b", .group = "params", .shape = {7}));
    grt_plan_tensor(plan, grt_tensor_desc(.label = "h", .group = "acts", .shape = {100, 5}));
    assert_true(grt_plan_alloc(plan));
    uint64_t planned = grt_plan_bytes(plan, NULL), params = grt_plan_bytes(plan, "params");
    struct grt_buf *host = test_buf(test.dev, 1000, GRT_BUF_UPLOAD);
    uint64_t peak = grt_dev_mem_use(test.dev, NULL).current;
    grt_plan_destroy(&plan);
    assert_true(grt_timeline_end(t));
    json_t *json = read_back(grt_timeline_write_memory, t);
    const json_t *list = json_object_get(json, "allocations");
    assert_string_equal(json_string_value(json_object_get(json, "schema")), "gpurt.memory/1");
    assert_int_equal(json_array_size(list), 3);
    uint64_t sum = 0, tensors = 0;
    size_t i, k;
    json_t *row, *tensor;
    json_array_foreach(list, i, row) {
        bool device = strcmp(json_string_value(json_object_get(row, "kind")), "device") == 0;
        double size = number(row, "size"), used = 0.0;
        sum += device ? (uint64_t)size : 0;
        if (strcmp(json_string_value(json_object_get(row, "label")), "params") == 0) {
            assert_int_equal(size, params);
            assert_int_equal(json_array_size(json_object_get(row, "tensors")), 2);
        }
        json_array_foreach(json_object_get(row, "tensors"), k, tensor) {
            assert_true(number(tensor, "offset") >= used);  // in order, apart, within
            used = number(tensor, "offset") + number(tensor, "size");
            assert_true(used <= size);
            tensors += (uint64_t)number(tensor, "size");
        }
        // The plan is gone, the host's buffer is not.
        bool ended = !json_is_null(json_object_get(row, "end"));
        assert_int_equal(ended, device);
        assert_true(!ended || number(row, "end") >= number(row, "begin"));
        assert_true(number(row, "begin") >= 0.0);
    }
    assert_int_equal(sum, planned);
    assert_int_equal(tensors, (30 + 7 + 500) * 4);
    assert_int_equal(number(json, "peak"), peak);
    json_decref(json);
    grt_timeline_destroy(&t);
    grt_buf_destroy(&host);
}

// ---- mistakes ----

static void mistakes_are_said(void **state) {
    (void)state;
    struct grt_timeline_kernel row;
    TEST_REFUSED(grt_timeline_end(NULL), GRT_INVALID, "no timeline");
    struct grt_timeline *t = grt_timeline_begin(NULL, NULL);  // the host alone
    TEST_REFUSED(grt_timeline_begin(test.dev, NULL), GRT_INVALID, "one at a time");
    assert_true(grt_timeline_end(t));
    grt_timeline_destroy(&t);
    t = begin(grt_timeline_desc(.events = true));
    TEST_REFUSED(grt_timeline_begin(test.dev, NULL), GRT_INVALID, "one at a time");
    assert_false(grt_timeline_kernel(t, 0, &row));  // has not ended
    assert_true(grt_timeline_end(t));
    TEST_REFUSED(grt_timeline_end(t), GRT_INVALID, "called twice");
    TEST_REFUSED(grt_timeline_write_trace(t, NULL), GRT_INVALID, "no path");
    TEST_REFUSED(grt_timeline_write_trace(NULL, "/tmp/x"), GRT_INVALID, "no timeline");
    TEST_REFUSED(grt_timeline_write_trace(t, "/nowhere/x"), GRT_NO_OUTPUT, "/nowhere/x");
    TEST_REFUSED(grt_timeline_write_trace(t, "/dev/full"), GRT_IO, "/dev/full");
    TEST_REFUSED(grt_timeline_write_memory(t, "/nowhere/x"), GRT_NO_OUTPUT, "/nowhere/x");
    TEST_REFUSED(grt_timeline_write_memory(t, "/dev/full"), GRT_IO, "/dev/full");
    assert_false(grt_timeline_kernel(NULL, 0, &row));
    assert_false(grt_timeline_kernel(t, 0, NULL));
    grt_timeline_destroy(&t);
    grt_timeline_destroy(NULL);
    grt_timeline_span("nobody listens", 0.0, 1.0);
    // Another one begins from nothing; one that was not ended is destroyed all the same.
    t = begin(NULL);
    grt_timeline_destroy(&t);
    struct grt_graph *graph = kit_graph();
    record(graph, false);
    run_all(graph, 2);
    assert_true(grt_dev_wait(test.dev));
    grt_graph_destroy(&graph);
}

static const struct CMUnitTest cases[] = {
    KIT_CASE(calls_are_those_of_the_host),
    KIT_CASE(sums_begin_anew),
    KIT_CASE(commands_fill_their_phases),
    KIT_CASE(results_are_the_same_bits),
    KIT_CASE(operations_make_a_rate),
    KIT_CASE(dear_times_are_taken_of_some_runs),
    KIT_CASE(a_time_that_never_comes),
    KIT_CASE(a_long_list_is_timed_by_windows),
    KIT_CASE(a_timed_run_stands_for_others),
    KIT_CASE(what_stands_for_others_fits_the_wall),
    KIT_CASE(a_name_on_two_queues),
    KIT_CASE(a_trace_is_of_the_format),
    KIT_CASE(sections_hold_their_commands),
    KIT_CASE(clocks_are_aligned),
    KIT_CASE(overlaps_go_to_a_track_of_their_own),
    KIT_CASE(a_snapshot_has_the_bytes_of_the_plan),
    KIT_CASE(mistakes_are_said),
};
TEST_SUITE(timeline, true, cases);
