// SPDX-License-Identifier: Apache-2.0
// Graphs under a timeline on a backend that is made up: four lists in turn, whose times are read
// before they run again and at the end, the oldest first; under which names they stand. And which
// commands wait for which.
#include "harness/harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "device/graph_parts.h"
#include "device/section.h"
#include "timeline/timeline.h"

static char said[1024];
static uint32_t newest;
static int lists, lists_left;
static bool stamps_good, clocks_good;

static void say(const char *format, ...) GRT_PRINTF(1, 2);
static void say(const char *format, ...) {
    size_t used = strlen(said);
    va_list list;
    va_start(list, format);
    vsnprintf(said + used, sizeof said - used, format, list);
    va_end(list);
}
static void expect_said(const char *want) {
    assert_string_equal(said, want);
    said[0] = '\0';
}

static struct grt_buf *make_buf(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind) {
    (void)dev;
    struct grt_buf *buf = calloc(1, sizeof *buf);
    buf->host = kind == GRT_BUF_DEVICE ? NULL : calloc(1, size);
    return buf;
}
static void end_buf(struct grt_buf *buf) {
    free(buf->host);
    free(buf);
}
static void *make_list(struct grt_dev *dev, const struct grt_cmd *cmds, uint32_t count,
                       uint32_t phase_count, enum grt_lane lane, bool timed) {
    (void)dev, (void)cmds, (void)phase_count, (void)lane;
    if (lists_left-- == 0) {
        grt_fail(GRT_NO_MEMORY, "no list by request");
        return NULL;
    }
    say(" [%u:%u%s]", ++newest, count, timed ? " timed" : "");
    lists++;
    return (void *)(uintptr_t)newest;
}
static void end_list(struct grt_dev *dev, void *list) {
    (void)dev, (void)list;
    lists--;
}
static bool run_list(struct grt_dev *dev, void *list) {
    (void)dev;
    say(" >%u", (unsigned)(uintptr_t)list);
    return true;
}
// Command i of a list runs from 10 i to 10 i + 4.
static bool tell_stamps(struct grt_dev *dev, void *list, struct grt_stamps *stamps) {
    (void)dev;
    say(" t%u", (unsigned)(uintptr_t)list);
    stamps->host = false;
    for (int i = 0; i < 4; i++) {
        stamps->begin[i] = 10.0 * i;
        stamps->end[i] = 10.0 * i + 4;
    }
    return stamps_good || grt_fail(GRT_LOST, "no times by request");
}
static bool tell_clocks(struct grt_dev *dev, double *device, double *host) {
    (void)dev;
    static double now;
    say(" clocks");
    *device = *host = now++;
    return clocks_good || grt_fail(GRT_LOST, "no clock by request");
}
static bool wait_all(struct grt_dev *dev) {
    (void)dev;
    say(" w");
    return true;
}

static struct grt_dev *made_up(void) {
    static const struct grt_dev_fns fns = {.buf_create = make_buf,
                                           .buf_destroy = end_buf,
                                           .cmds_create = make_list,
                                           .cmds_destroy = end_list,
                                           .cmds_run = run_list,
                                           .cmds_stamps = tell_stamps,
                                           .clocks = tell_clocks,
                                           .wait = wait_all};
    static struct grt_dev dev;
    dev = (struct grt_dev){.fns = &fns,
                           .lanes = 2,
                           .info = {.selector = "made:0",
                                    .name = "card",
                                    .caps = {.memory = 1 << 30, .timestamps = 1}},
                           .desc = {.mem_fraction = 1.0, .max_submit_ms = 500}};
    said[0] = '\0';
    newest = 0;
    lists = 0;
    lists_left = -1;
    stamps_good = clocks_good = true;
    return &dev;
}
static struct grt_buf *buf_of(struct grt_dev *dev, enum grt_buf_kind kind) {
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = 4096, .kind = kind));
    assert_non_null(buf);
    return buf;
}

// Four commands: one of no section, two of one, one of another.
static struct grt_graph *record(struct grt_dev *dev, struct grt_buf *a, struct grt_buf *up) {
    struct grt_graph *graph = grt_graph_create(dev, "whole");
    grt_graph_fill(graph, (struct grt_range){a, 0, 64}, 1);
    grt_graph_section(graph, "one");
    grt_graph_copy(graph, (struct grt_range){a, 64, 16}, (struct grt_range){up, 0, 16});
    grt_graph_copy(graph, (struct grt_range){a, 128, 32}, (struct grt_range){a, 64, 32});
    grt_graph_section(graph, "two");
    grt_graph_fill(graph, (struct grt_range){a, 256, 4}, 1);
    assert_true(grt_graph_bake(graph));
    graph->calibrated = true;
    return graph;
}

static void lists_take_turns(void **state) {
    (void)state;
    struct grt_dev *dev = made_up();
    struct grt_buf *a = buf_of(dev, GRT_BUF_DEVICE), *up = buf_of(dev, GRT_BUF_UPLOAD);
    struct grt_timeline *t = grt_timeline_begin(dev, grt_timeline_desc(.events = true));
    assert_non_null(t);
    expect_said(" w clocks");
    assert_string_equal(t->device, "made:0: card");
    struct grt_graph *graph = record(dev, a, up);
    expect_said(" [1:4 timed] [2:4 timed] [3:4 timed] [4:4 timed]");
    for (int i = 0; i < 6; i++) {
        assert_true(grt_graph_run(graph));
    }
    // The first to run is the second list; times are read of a run four runs ago.
    expect_said(" >2 >3 >4 >1 t2 >2 t3 >3");
    assert_true(grt_timeline_end(t));
    expect_said(" w t4 t1 t2 t3 clocks");
    struct grt_timeline_totals totals = grt_timeline_totals(t);
    assert_int_equal(totals.copies, 24);
    assert_int_equal(totals.dispatches, 0);
    assert_int_equal(totals.timed, 24);
    assert_int_equal(totals.submits, 6);
    static const struct {
        const char *name;
        double bytes;
        uint64_t calls;
    } want[] = {{"(fill)", 6 * (64 + 4), 12}, {"(upload)", 6 * 32, 6}, {"(copy)", 6 * 64, 6}};
    for (uint32_t i = 0; i < 3; i++) {
        struct grt_timeline_kernel row;
        bool found = false;
        for (uint32_t k = 0; grt_timeline_kernel(t, k, &row) && !found; k++) {
            found = strcmp(row.name, want[i].name) == 0;
            if (found) {
                assert_true(row.bytes == want[i].bytes && row.calls == want[i].calls);
                assert_true(fabs(row.seconds - 4.0 * (double)row.calls) < 1e-9);
            }
        }
        assert_true(found);
    }
    // Phases of each run: from the first of their commands to the last.
    static const struct {
        const char *name;
        double begin, end;
    } phases[] = {{"whole", 0, 4}, {"one", 10, 24}, {"two", 30, 34}};
    uint32_t seen = 0;
    for (uint64_t i = 0; i < t->event_count; i++) {
        const struct grt_event *e = &t->events[i];
        if (e->track == GRT_TRACK_PHASES) {
            assert_string_equal(t->names[e->name].text, phases[seen % 3].name);
            assert_true(e->begin == phases[seen % 3].begin && e->end == phases[seen % 3].end);
            assert_true(e->by_device);
            seen++;
        }
    }
    assert_int_equal(seen, 18);
    grt_timeline_destroy(&t);
    // Without it the next run has a list of its own, without times.
    assert_true(grt_graph_run(graph));
    expect_said(" w [5:4] >5");
    assert_int_equal(lists, 1);
    grt_graph_destroy(&graph);
    assert_int_equal(lists, 0);
    grt_buf_destroy(&a);
    grt_buf_destroy(&up);
    assert_int_equal(dev->objects, 0);
}

// Whatever is refused, nothing is left, and the timeline can be ended.
static void refusals(void **state) {
    (void)state;
    struct grt_dev *dev = made_up();
    struct grt_buf *a = buf_of(dev, GRT_BUF_DEVICE), *up = buf_of(dev, GRT_BUF_UPLOAD);
    clocks_good = false;
    TEST_REFUSED(grt_timeline_begin(dev, NULL), GRT_LOST, "no clock by request");
    clocks_good = true;
    struct grt_timeline *t = grt_timeline_begin(dev, NULL);
    assert_non_null(t);  // the one before is gone
    for (int refused = 0; refused < 4; refused++) {
        struct grt_graph *graph = grt_graph_create(dev, "refused");
        grt_graph_fill(graph, (struct grt_range){a, 0, 64}, 1);
        lists_left = refused;
        TEST_REFUSED(grt_graph_bake(graph), GRT_NO_MEMORY, "no list by request");
        assert_int_equal(lists, 0);
        assert_null(dev->timed_graphs);
        lists_left = -1;
        grt_graph_destroy(&graph);
    }
    struct grt_graph *graph = record(dev, a, up), *other = record(dev, a, up);
    assert_true(dev->timed_graphs && dev->timed_graphs->next_timed);
    assert_true(grt_graph_run(graph));
    grt_graph_destroy(&other);
    assert_ptr_equal(dev->timed_graphs, graph);
    assert_null(graph->next_timed);
    stamps_good = false;
    TEST_REFUSED(grt_timeline_end(t), GRT_LOST, "no times by request");
    grt_timeline_destroy(&t);
    stamps_good = true;
    grt_graph_destroy(&graph);
    assert_null(dev->timed_graphs);
    assert_int_equal(lists, 0);
    grt_buf_destroy(&a);
    grt_buf_destroy(&up);
}

// ---- who waits for whom ----

static void waits(void **state) {
    (void)state;
    static const struct grt_arg_info args[] = {{"r", "float", GRT_READ}, {"w", "float", GRT_WRITE}};
    static const struct grt_kernel_info info = {.name = "k", .args = args, .arg_count = 2};
    struct grt_kernel kernel = {.info = &info};
    struct grt_buf x = {.size = 1024}, y = {.size = 1024};
#define KERNEL(from, to)                                                                           \
    {                                                                                              \
        .kind = GRT_CMD_DISPATCH, .kernel = &kernel, .bindings = { {&x, from, 64}, {&y, to, 64} }  \
    }
#define FILL(b, at)                                                                                \
    {                                                                                              \
        .kind = GRT_CMD_FILL, .dst = { b, at, 64 }                                                 \
    }
#define COPY(to, from)                                                                             \
    {                                                                                              \
        .kind = GRT_CMD_COPY, .dst = {&x, to, 64}, .src = { &y, from, 64 }                         \
    }
#define MARK                                                                                       \
    { .kind = GRT_CMD_PHASE }
    struct {
        struct grt_cmd cmds[6];
        uint32_t count, barriers;
        int32_t sync[6];
    } rows[] = {
        // The newest that conflicts; what came before its barrier is settled.
        {{FILL(&x, 0), FILL(&x, 64), KERNEL(0, 0), KERNEL(64, 64)}, 4, 1, {-1, -1, 0, -1}},
        {{FILL(&x, 0), FILL(&x, 64), KERNEL(64, 0), KERNEL(0, 64)}, 4, 1, {-1, -1, 1, -1}},
        {{KERNEL(0, 0), KERNEL(0, 64), KERNEL(0, 0)}, 3, 1, {-1, -1, 0}},
        {{KERNEL(0, 0), FILL(&x, 0), FILL(&x, 0)}, 3, 2, {-1, 0, 1}},
        {{COPY(0, 0), KERNEL(64, 64), COPY(128, 64)}, 3, 1, {-1, -1, 1}},
        {{COPY(0, 0), COPY(64, 0), COPY(0, 64)}, 3, 1, {-1, -1, 0}},
        {{FILL(&x, 0), FILL(&y, 0), FILL(&x, 63), FILL(&x, 128)}, 4, 1, {-1, -1, 0, -1}},
        // A mark is a barrier in itself.
        {{FILL(&x, 0), MARK, FILL(&x, 0), FILL(&x, 0)}, 4, 1, {-1, -1, -1, 2}},
        {{MARK, MARK, FILL(&x, 0)}, 3, 0, {-1, -1, -1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(grt_find_hazards(rows[i].cmds, rows[i].count), rows[i].barriers);
        for (uint32_t k = 0; k < rows[i].count; k++) {
            if (rows[i].cmds[k].sync != rows[i].sync[k]) {
                fail_msg("row %zu, command %u: %d", i, k, rows[i].cmds[k].sync);
            }
        }
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(lists_take_turns),
    TEST_CASE(refusals),
    TEST_CASE(waits),
};
TEST_SUITE(stamped, false, cases);
