// SPDX-License-Identifier: Apache-2.0
// Timelines whose runs are not all timed: which ones are, and what the others are taken for.
#include "kits/timeline_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "timeline/timeline.h"

// Timestamps that would cost a second each. Where lists are timed whole the first run is timed,
// then one in 64; else all of a first run as short as this, and what was taken ahead is not timed
// again for long. The others are counted, and take as long as those.
static void dear_times_are_taken_of_some_runs(void **state) {
    (void)state;
    const uint32_t runs = 1 + 64 + 5, timed = test.dev->fns->cmds_choose ? 1 : 2;
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.events = true, .overhead = 0.02));
    t->totals.stamp = 1.0;
    struct grt_graph *graph = kit_graph();
    kit_record(graph, true);
    kit_run_all(graph, runs);
    assert_true(grt_timeline_end(t));
    struct grt_timeline_kernel row;
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_true(kit_row(t, "copy", &row));
    assert_int_equal(row.calls, runs * KIT_COPIES);
    assert_int_equal(row.timed, timed * KIT_COPIES);
    assert_true(fabs(row.bytes - 2.0 * KIT_COPIED * 4 * KIT_COPIES * runs) < 1.0);
    assert_int_equal(totals.dispatches, runs * KIT_COPIES);
    assert_int_equal(totals.copies, runs * 3);
    assert_true(totals.timed >= KIT_COPIES + 3 && totals.timed <= 2 * (KIT_COPIES + 3));
    assert_true(totals.compute > 0.0);
    json_t *trace = kit_read_trace(grt_timeline_write_trace, t);
    assert_int_equal(kit_number(json_object_get(trace, "otherData"), "untimed"),
                     runs * (KIT_COPIES + 3) - totals.timed);
    json_decref(trace);
    grt_timeline_destroy(&t);
    // Sums that begin anew begin with a run that is timed.
    t = kit_timeline(grt_timeline_desc(.overhead = 0.02));
    t->totals.stamp = 1.0;
    kit_run_all(graph, 3);
    assert_true(grt_timeline_restart(test.dev));
    kit_run_all(graph, 3);
    assert_true(grt_timeline_end(t));
    assert_true(kit_row(t, "copy", &row) && row.calls == 3 * KIT_COPIES && row.timed == KIT_COPIES);
    grt_timeline_destroy(&t);
    // Times that cost nothing are taken of every run.
    t = kit_timeline(grt_timeline_desc(.overhead = 0.02));
    t->totals.stamp = 0.0;
    kit_run_all(graph, runs);
    assert_true(grt_timeline_end(t));
    kit_calls(t, "copy", runs * KIT_COPIES);
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
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.overhead = 0.02));
    t->totals.stamp = 1.0;
    struct grt_graph *graph = kit_graph();
    grt_graph_fill(graph, kit_part(kit.a, 0, 64), 5);
    grt_graph_fill(graph, kit_part(kit.b, 0, 128), 5);
    assert_true(grt_graph_bake(graph));
    test.dev->fns = &fns;
    for (uint32_t runs = 1; runs <= 70; runs++) {
        kit_run_all(graph, 1);
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
    struct kit_seen *seen = test_alloc(sizeof *seen);
    memset(seen, 0, sizeof *seen);
    struct grt_timeline *t = kit_timeline(grt_timeline_desc(.events = true, .overhead = 1.0));
    struct grt_graph *graph = kit_graph();
    grt_graph_phase(graph, "up");
    grt_graph_fill(graph, kit_part(kit.a, KIT_BYTES - 64, 64), 5);
    for (uint32_t i = 0; i < dispatches; i++) {
        if (i == dispatches / 2) {
            grt_graph_phase(graph, "work");
        }
        kit_copy(graph, kit_part(kit.b, 0, KIT_COPIED * 4), kit_part(kit.a, 0, KIT_COPIED * 4),
                 KIT_COPIED);
    }
    t->totals.stamp = 1.0;  // a thousand times what a run takes
    assert_true(grt_graph_bake(graph));
    kit_run_all(graph, 2);
    assert_true(grt_timeline_restart(test.dev));
    kit_run_all(graph, runs);
    assert_true(grt_timeline_end(t));
    struct grt_timeline_kernel row;
    assert_true(kit_row(t, "copy", &row));
    assert_int_equal(row.calls, runs * dispatches);
    assert_true(row.seconds > 0.0);
    assert_true(apart ? row.timed < dispatches / 3 : row.timed == dispatches);
    assert_true(fabs(row.bytes - 2.0 * KIT_COPIED * 4 * dispatches * runs) < 1.0);
    assert_true(kit_row(t, "(fill)", &row) && row.calls == runs && row.timed == 1);
    json_t *trace = kit_read_trace(grt_timeline_write_trace, t);
    kit_see_all(trace, seen);
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
    struct grt_timeline *t = kit_timeline(NULL);
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
    assert_true(kit_row(t, "image", &row) && row.calls == 15 && row.timed == 2);
    assert_true(fabs(row.seconds - 0.021 / 11 * 15) < 1e-9);
    assert_true(fabs(row.samples - 45) < 1e-9);
    assert_true(fabs(totals.compute - row.seconds) < 1e-12);
    assert_true(fabs(totals.stages[GRT_STAGE_TRANSFORM] - row.seconds) < 1e-12);
    grt_timeline_destroy(&t);
}

// Times that stand for more than there was time for are fitted to it, and those of uploads are not.
static void what_stands_for_others_fits_the_wall(void **state) {
    (void)state;
    struct grt_timeline *t = kit_timeline(NULL);
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
    assert_true(kit_row(t, "a", &a) && kit_row(t, "b", &b) && kit_row(t, "up", &up));
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
    struct grt_timeline *t = kit_timeline(NULL);
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

static const struct CMUnitTest cases[] = {
    KIT_CASE(dear_times_are_taken_of_some_runs),    KIT_CASE(a_time_that_never_comes),
    KIT_CASE(a_long_list_is_timed_by_windows),      KIT_CASE(a_timed_run_stands_for_others),
    KIT_CASE(what_stands_for_others_fits_the_wall), KIT_CASE(a_name_on_two_queues),
};
TEST_SUITE(timed, true, cases);
