// SPDX-License-Identifier: Apache-2.0
// Timelines: counts are those that the host knows, times lie within those of the wall and of
// phases, results are the same bits, and the files are what their readers want. Files are read by
// jansson and checked here from what the format says.
#include "kits/timeline_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "device/section.h"
#include "timeline/timeline.h"

static void calls_are_those_of_the_host(void **state) {
    (void)state;
    struct grt_graph *before = kit_graph(), *during = kit_graph();
    kit_record(before, false);
    kit_run_all(before, 2);
    struct grt_timeline *t = kit_timeline(NULL);
    kit_record(during, true);
    kit_run_all(before, KIT_RUNS);
    kit_run_all(during, 3);
    grt_graph_destroy(&during);  // its times are not lost
    assert_true(grt_timeline_end(t));
    kit_run_all(before, 2);  // not counted
    assert_true(grt_dev_wait(test.dev));
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    kit_calls(t, "copy", KIT_COPIES * (KIT_RUNS + 3));
    kit_calls(t, "(upload)", KIT_RUNS + 3);
    kit_calls(t, "(readback)", KIT_RUNS + 3);
    kit_calls(t, "(fill)", KIT_RUNS + 3);
    kit_calls(t, "(copy)", 0);
    assert_int_equal(totals.dispatches, KIT_COPIES * (KIT_RUNS + 3));
    assert_int_equal(totals.copies, 3 * (KIT_RUNS + 3));
    struct grt_timeline_kernel row;
    assert_true(kit_row(t, "copy", &row) && row.is_kernel && !row.of_operations);
    assert_true(row.bytes == 2.0 * KIT_COPIED * 4 * KIT_COPIES * (KIT_RUNS + 3));
    assert_true(kit_row(t, "(upload)", &row) && !row.is_kernel);
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
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.events = true));
    struct grt_graph *graph = kit_graph();
    kit_record(graph, false);
    kit_run_all(graph, 5);
    assert_true(grt_timeline_restart(test.dev));
    kit_run_all(graph, 2);
    assert_true(grt_timeline_end(t));
    kit_calls(t, "copy", 2 * KIT_COPIES);
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_int_equal(totals.dispatches, 2 * KIT_COPIES);
    assert_true(totals.events >= 7 * (KIT_COPIES + 3));  // those stay
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
}

// Phases are timed by other queries and events than commands.
static void commands_fill_their_phases(void **state) {
    (void)state;
    struct grt_phase_time phases[2] = {{0}};
    struct grt_timeline *t = kit_timeline(NULL);
    struct grt_graph *graph = kit_graph();
    kit_record(graph, true);
    kit_run_all(graph, 3);
    assert_true(grt_timeline_restart(test.dev));
    kit_run_all(graph, 1);
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
        struct grt_timeline *t = timed ? kit_timeline(NULL) : NULL;
        struct grt_graph *graph = kit_graph();
        kit_record(graph, true);
        kit_run_all(graph, 6);
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
    struct grt_timeline *t = kit_timeline(NULL);
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

static void a_trace_is_of_the_format(void **state) {
    (void)state;
    struct kit_seen *seen = test_alloc(sizeof *seen);
    memset(seen, 0, sizeof *seen);
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.events = true));
    struct grt_graph *graph = kit_graph();
    double begun = grt_seconds();
    kit_record(graph, true);
    grt_timeline_span("a \"name\"\n\xff\xc3\xa9", begun, begun + 1e-5);
    kit_run_all(graph, KIT_RUNS);
    assert_true(grt_dev_wait(test.dev));
    struct grt_buf *buf = test_buf(test.dev, 4096, GRT_BUF_DEVICE);
    grt_buf_destroy(&buf);
    TEST_REFUSED(grt_timeline_write_trace(t, "/tmp/x"), GRT_INVALID, "has not ended");
    assert_true(grt_timeline_end(t));
    json_t *trace = kit_read_trace(grt_timeline_write_trace, t);
    kit_see_all(trace, seen);
    assert_int_equal(seen->kernels, KIT_COPIES * KIT_RUNS);
    assert_int_equal(seen->uploads, KIT_RUNS);
    assert_int_equal(seen->phases, 2 * KIT_RUNS);
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
            kit_copy(graph, kit_part(kit.b, place, KIT_COPIED * 4),
                     kit_part(kit.a, 0, KIT_COPIED * 4), KIT_COPIED);
        }
    }
    assert_true(grt_graph_bake(graph));
}

// Phases of a trace are those of the sections, from the first of their commands to the last, and
// cover all; names cost no barrier.
static void sections_hold_their_commands(void **state) {
    (void)state;
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.events = true));
    struct grt_graph *plain = kit_graph(), *graph = grt_graph_create(test.dev, "test");
    record_sections(plain, false);
    record_sections(graph, true);
    assert_int_equal(grt_graph_stats(graph).barriers, grt_graph_stats(plain).barriers);
    assert_int_equal(grt_graph_stats(graph).commands, grt_graph_stats(plain).commands);
    kit_run_all(graph, KIT_RUNS);
    assert_true(grt_timeline_end(t));
    json_t *trace = kit_read_trace(grt_timeline_write_trace, t), *event;
    double begins[KIT_RUNS * 10] = {0}, ends[KIT_RUNS * 10] = {0};
    uint32_t commands = 0, phases = 0, command = 0;
    size_t i;
    // Tracks stand one behind the other: commands before phases.
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const char *category = json_string_value(json_object_get(event, "cat"));
        if (category && strcmp(category, "device") == 0) {
            assert_true(commands < KIT_RUNS * 10);
            begins[commands] = kit_number(event, "ts");
            ends[commands++] = kit_number(event, "ts") + kit_number(event, "dur");
        } else if (category && strcmp(category, "phase") == 0) {
            const char *name = json_string_value(json_object_get(event, "name"));
            uint32_t last = command + sections[phases % SECTIONS].commands - 1;
            assert_string_equal(name ? name : "", sections[phases % SECTIONS].name);
            assert_true(last < commands);
            assert_true(fabs(kit_number(event, "ts") - begins[command]) < 2e-3);
            double end = 0.0;  // commands may overlap: the latest, which need not be the last
            for (; command <= last; command++) {
                end = fmax(end, ends[command]);
            }
            assert_true(fabs(kit_number(event, "ts") + kit_number(event, "dur") - end) < 2e-3);
            phases++;
        }
    }
    assert_int_equal(commands, KIT_RUNS * 10);
    assert_int_equal(command, commands);
    assert_int_equal(phases, KIT_RUNS * SECTIONS);
    json_decref(trace);
    grt_timeline_destroy(&t);
    grt_graph_destroy(&graph);
    grt_graph_destroy(&plain);
}

// How many commands lie on the host's clock between the call that ran them and its wait.
static uint32_t aligned(void) {
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.events = true));
    struct grt_graph *graph = kit_graph();
    kit_record(graph, false);
    kit_run_all(graph, 3);
    assert_true(grt_dev_wait(test.dev));
    usleep(2000);
    double before = grt_seconds();
    kit_run_all(graph, 1);
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
    for (int i = 0; i < 20 && within != KIT_COPIES + 3; i++) {
        within = aligned();
    }
    assert_int_equal(within, KIT_COPIES + 3);
}

// Times that no device gives: overlapping, and more than are kept.
static void overlaps_go_to_a_track_of_their_own(void **state) {
    (void)state;
    struct kit_seen *seen = test_alloc(sizeof *seen);
    memset(seen, 0, sizeof *seen);
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.events = true, .most_events = 40));
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
    json_t *trace = kit_read_trace(grt_timeline_write_trace, t);
    json_t *events = json_object_get(trace, "traceEvents");
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event) {
        kit_see(event, seen);
    }
    assert_int_equal(seen->kernels, 40);
    assert_true(fabs(seen->kernel_us - 40 * 15.0) < 0.1);  // none is cut
    assert_int_equal(kit_number(json_object_get(trace, "otherData"), "left_out"), 20);
    json_decref(trace);
    grt_timeline_destroy(&t);
    free(seen);
}

// ---- memory ----

static void a_snapshot_has_the_bytes_of_the_plan(void **state) {
    (void)state;
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.memory = true));
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
    json_t *json = kit_read_trace(grt_timeline_write_memory, t);
    const json_t *list = json_object_get(json, "allocations");
    assert_string_equal(json_string_value(json_object_get(json, "schema")), "gpurt.memory/1");
    assert_int_equal(json_array_size(list), 3);
    uint64_t sum = 0, tensors = 0;
    size_t i, k;
    json_t *row, *tensor;
    json_array_foreach(list, i, row) {
        bool device = strcmp(json_string_value(json_object_get(row, "kind")), "device") == 0;
        double size = kit_number(row, "size"), used = 0.0;
        sum += device ? (uint64_t)size : 0;
        if (strcmp(json_string_value(json_object_get(row, "label")), "params") == 0) {
            assert_int_equal(size, params);
            assert_int_equal(json_array_size(json_object_get(row, "tensors")), 2);
        }
        json_array_foreach(json_object_get(row, "tensors"), k, tensor) {
            assert_true(kit_number(tensor, "offset") >= used);  // in order, apart, within
            used = kit_number(tensor, "offset") + kit_number(tensor, "size");
            assert_true(used <= size);
            tensors += (uint64_t)kit_number(tensor, "size");
        }
        // The plan is gone, the host's buffer is not.
        bool ended = !json_is_null(json_object_get(row, "end"));
        assert_int_equal(ended, device);
        assert_true(!ended || kit_number(row, "end") >= kit_number(row, "begin"));
        assert_true(kit_number(row, "begin") >= 0.0);
    }
    assert_int_equal(sum, planned);
    assert_int_equal(tensors, (30 + 7 + 500) * 4);
    assert_int_equal(kit_number(json, "peak"), peak);
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
    t = kit_timeline(grt_timeline_desc(.events = true));
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
    t = kit_timeline(NULL);
    grt_timeline_destroy(&t);
    struct grt_graph *graph = kit_graph();
    kit_record(graph, false);
    kit_run_all(graph, 2);
    assert_true(grt_dev_wait(test.dev));
    grt_graph_destroy(&graph);
}

static const struct CMUnitTest cases[] = {
    KIT_CASE(calls_are_those_of_the_host),
    KIT_CASE(sums_begin_anew),
    KIT_CASE(commands_fill_their_phases),
    KIT_CASE(results_are_the_same_bits),
    KIT_CASE(operations_make_a_rate),
    KIT_CASE(a_trace_is_of_the_format),
    KIT_CASE(sections_hold_their_commands),
    KIT_CASE(clocks_are_aligned),
    KIT_CASE(overlaps_go_to_a_track_of_their_own),
    KIT_CASE(a_snapshot_has_the_bytes_of_the_plan),
    KIT_CASE(mistakes_are_said),
};
TEST_SUITE(timeline, true, cases);
