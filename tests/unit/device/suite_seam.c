// SPDX-License-Identifier: Apache-2.0
// What the runtime asks of a backend, on one that is made up: which lists a graph becomes, where it
// is cut, what is waited for, held and given back. A word for each call:
//
//     [3 P0 F F1]   list 3 is made of a phase and two fills, of which the last waits for command 1
//     >3  w  h1     it is run; the device is waited for; lists are held from here on
#include "harness/harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "device/graph_parts.h"

static char said[1024];
static int lists, buffers;  // alive
static uint32_t newest;
static int lists_left;  // until one is refused; below 0: never
static double run_seconds;
static uint64_t unused_memory;
static double phase_begin[8], phase_end[8];

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
    buffers++;
    return buf;
}
static void end_buf(struct grt_buf *buf) {
    free(buf->host);
    free(buf);
    buffers--;
}
static void *make_list(struct grt_dev *dev, const struct grt_cmd *cmds, uint32_t count,
                       uint32_t phase_count, enum grt_lane lane, bool timed) {
    (void)dev;
    if (lists_left-- == 0) {
        grt_fail(GRT_NO_MEMORY, "no list by request");
        return NULL;
    }
    say(" [%u", ++newest);
    uint32_t phases = 0;
    for (uint32_t i = 0; i < count; i++) {
        static const char letters[] = "DCFP";
        say(" %c", letters[cmds[i].kind]);
        if (cmds[i].kind == GRT_CMD_PHASE) {
            say("%u", cmds[i].phase);
            phases++;
        } else if (cmds[i].sync >= 0) {
            say("%d", cmds[i].sync);
        }
    }
    assert_int_equal(phases, phase_count);
    say("%s%s]", lane == GRT_LANE_ASIDE ? " aside" : "", timed ? " timed" : "");
    lists++;
    return (void *)(uintptr_t)newest;
}
static void end_list(struct grt_dev *dev, void *list) {
    (void)dev;
    say(" -%u", (unsigned)(uintptr_t)list);
    lists--;
}
static bool run_list(struct grt_dev *dev, void *list) {
    (void)dev;
    say(" >%u", (unsigned)(uintptr_t)list);
    double begun = grt_seconds();
    while (grt_seconds() < begun + run_seconds) {
    }
    return true;
}
static bool list_times(struct grt_dev *dev, void *list, double *begin, double *end) {
    (void)dev;
    say(" t%u", (unsigned)(uintptr_t)list);
    memcpy(begin, phase_begin, 2 * sizeof *begin);
    memcpy(end, phase_end, 2 * sizeof *end);
    return true;
}
static bool wait_all(struct grt_dev *dev) {
    (void)dev;
    say(" w");
    return true;
}
static bool hold(struct grt_dev *dev, bool on) {
    (void)dev;
    say(" h%d", on);
    return true;
}
static uint64_t mark(struct grt_dev *dev, enum grt_lane lane) {
    (void)dev;
    say(" mark%d", lane);
    return 7;
}
static bool after(struct grt_dev *dev, enum grt_lane lane, uint64_t at) {
    (void)dev;
    say(" after%d.%llu", lane, (unsigned long long)at);
    return true;
}
static bool passed(struct grt_dev *dev, enum grt_lane lane, uint64_t at) {
    (void)dev;
    say(" passed%d.%llu", lane, (unsigned long long)at);
    return at < 5;
}
static bool wait_for(struct grt_dev *dev, enum grt_lane lane, uint64_t at) {
    (void)dev;
    say(" wait%d.%llu", lane, (unsigned long long)at);
    return true;
}
static uint64_t mem_free(struct grt_dev *dev) {
    (void)dev;
    return unused_memory;
}

static const struct grt_dev_fns all = {.buf_create = make_buf,
                                       .buf_destroy = end_buf,
                                       .cmds_create = make_list,
                                       .cmds_destroy = end_list,
                                       .cmds_run = run_list,
                                       .cmds_times = list_times,
                                       .wait = wait_all,
                                       .hold = hold,
                                       .lane_mark = mark,
                                       .lane_after = after,
                                       .lane_passed = passed,
                                       .lane_wait = wait_for};
static struct grt_dev_fns fns;

static struct grt_dev *made_up(double max_submit_ms) {
    static struct grt_dev dev;
    fns = all;
    dev = (struct grt_dev){
        .fns = &fns,
        .lanes = 2,
        .info = {.selector = "made:0", .caps = {.memory = 1 << 30, .software = 1, .timestamps = 1}},
        .desc = {.mem_fraction = 1.0, .max_submit_ms = max_submit_ms}};
    said[0] = '\0';
    lists = buffers = 0;
    newest = 0;
    lists_left = -1;
    run_seconds = 0;
    unused_memory = 0;
    return &dev;
}
static struct grt_buf *buf_of(struct grt_dev *dev, uint64_t size, enum grt_buf_kind kind) {
    struct grt_buf *buf = grt_buf_create(dev, grt_buf_desc(.size = size, .kind = kind));
    assert_non_null(buf);
    return buf;
}

// So many fills that touch nothing in common.
static struct grt_graph *of_fills(struct grt_dev *dev, struct grt_buf *buf, uint32_t count) {
    struct grt_graph *graph = grt_graph_create(dev, "fills");
    for (uint32_t i = 0; i < count; i++) {
        grt_graph_fill(graph, (struct grt_range){buf, 4096 * i, 4096}, i);
    }
    return graph;
}

// ---- cuts ----

// As many commands as add up to the limit, and not one more.
static void cut_at_the_limit(void **state) {
    (void)state;
    static const struct {
        double ms;
        const char *made;
    } rows[] = {
        {375.0, " -1 [2 F F F] [3 F F F] [4 F F] >2 >3 >4"},
        {374.9, " -1 [2 F F] [3 F F] [4 F F] [5 F F] >2 >3 >4 >5"},
        {124.0, " -1 [2 F] [3 F] [4 F] [5 F] [6 F] [7 F] [8 F] [9 F]"
                " >2 >3 >4 >5 >6 >7 >8 >9"},
        {1000.0, " >1"},
        {999.0, " -1 [2 F F F F F F F] [3 F] >2 >3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev *dev = made_up(rows[i].ms);
        struct grt_buf *buf = buf_of(dev, 8 * 4096, GRT_BUF_DEVICE);
        struct grt_graph *graph = of_fills(dev, buf, 8);
        assert_true(grt_graph_bake(graph));
        expect_said(" [1 F F F F F F F F]");
        assert_true(grt_graph_expect(graph, 1.0) && grt_graph_run(graph));
        expect_said(rows[i].made);
        said[0] = '\0';
        assert_true(grt_graph_run(graph));
        assert_null(strchr(said, '['));  // once
        grt_graph_destroy(&graph);
        assert_int_equal(lists, 0);
        grt_buf_destroy(&buf);
        assert_int_equal(buffers, 0);
        assert_int_equal(dev->objects, 0);
    }
}

// Before anything is known: by the bytes, and what kind of device it is.
static void cut_by_guesses(void **state) {
    (void)state;
    // 8 x 4096 bytes at 1, 10 and 100 GB/s: 32.8, 3.3 and 0.33 us.
    static const struct {
        bool software, integrated;
        double ms;
        uint32_t segments;
    } rows[] = {
        {true, true, 33e-3, 1},     {true, false, 32e-3, 2},  {true, false, 4.2e-3, 8},
        {false, true, 3.4e-3, 1},   {false, true, 3.2e-3, 2}, {false, false, 0.34e-3, 1},
        {false, false, 0.32e-3, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev *dev = made_up(rows[i].ms);
        dev->info.caps.software = rows[i].software;
        dev->info.caps.integrated = rows[i].integrated;
        struct grt_buf *buf = buf_of(dev, 8 * 4096, GRT_BUF_DEVICE);
        struct grt_graph *graph = of_fills(dev, buf, 8);
        assert_true(grt_graph_bake(graph));
        assert_int_equal(grt_graph_stats(graph).segments, rows[i].segments);
        grt_graph_destroy(&graph);
        grt_buf_destroy(&buf);
    }
}

// The first run waits behind each list. What takes long is cut anew when it did so twice, what
// takes no time at once.
static void cut_by_the_first_run(void **state) {
    (void)state;
    struct grt_dev *dev = made_up(1.0);
    struct grt_buf *buf = buf_of(dev, 8 * 4096, GRT_BUF_DEVICE);
    struct grt_graph *graph = of_fills(dev, buf, 8);
    assert_true(grt_graph_bake(graph));
    run_seconds = 2e-3;
    said[0] = '\0';
    for (int i = 0; i < 2; i++) {
        assert_true(grt_graph_run(graph));
        expect_said(" w >1 w");
    }
    run_seconds = 0;
    assert_true(grt_graph_run(graph));
    assert_true(grt_graph_stats(graph).segments >= 2);
    assert_null(strchr(said, 'w'));
    grt_graph_destroy(&graph);
    // One that was slow in its first run alone stays as it is.
    graph = of_fills(dev, buf, 8);
    assert_true(grt_graph_bake(graph));
    run_seconds = 2e-3;
    assert_true(grt_graph_run(graph));
    run_seconds = 0;
    dev->desc.max_submit_ms = 1e6;  // whatever a loaded machine does
    for (int i = 0; i < 2; i++) {
        assert_true(grt_graph_run(graph));
        assert_int_equal(grt_graph_stats(graph).segments, 1);
    }
    said[0] = '\0';
    assert_true(grt_graph_run(graph));
    assert_null(strchr(said, 'w'));
    grt_graph_destroy(&graph);
    // Guessed at 20 s each, and quick.
    dev->desc.max_submit_ms = 10e3;
    graph = of_fills(dev, buf, 8);
    assert_true(grt_graph_bake(graph) && grt_graph_expect(graph, 160.0));
    graph->calibrated = false;
    newest = 0;
    said[0] = '\0';
    assert_true(grt_graph_run(graph));
    assert_int_equal(grt_graph_stats(graph).segments, 8);
    assert_true(grt_graph_run(graph));
    assert_int_equal(grt_graph_stats(graph).segments, 1);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
}

// ---- phases ----

// A phase goes on in the next list under a mark of its own; its times add up.
static void phases_go_on(void **state) {
    (void)state;
    struct grt_dev *dev = made_up(250.0);
    struct grt_buf *buf = buf_of(dev, 8 * 4096, GRT_BUF_DEVICE);
    struct grt_graph *graph = grt_graph_create(dev, "phases");
    struct grt_phase_time times[3] = {{0}};
    grt_graph_fill(graph, (struct grt_range){buf, 0, 4096}, 1);
    grt_graph_phase(graph, "one");
    for (int i = 0; i < 5; i++) {
        grt_graph_fill(graph, (struct grt_range){buf, 4096, 4096}, 1);
    }
    grt_graph_phase(graph, "two");
    grt_graph_fill(graph, (struct grt_range){buf, 0, 4096}, 1);
    grt_graph_fill(graph, (struct grt_range){buf, 8192, 4096}, 1);
    assert_true(grt_graph_bake(graph));
    expect_said(" [1 F P0 F F2 F3 F4 F5 P1 F F]");
    assert_int_equal(grt_graph_times(graph, times, 3), 0);  // it has not run
    expect_said("");
    assert_true(grt_graph_expect(graph, 1.0) && grt_graph_run(graph));
    // By twos; marks cost nothing and go with what is before them.
    expect_said(" -1 [2 F P0 F] [3 P0 F F1] [4 P0 F F1 P1] [5 P0 F F] >2 >3 >4 >5");
    phase_begin[0] = 1, phase_end[0] = 3, phase_begin[1] = 10, phase_end[1] = 15;
    assert_int_equal(grt_graph_times(graph, times, 3), 2);
    expect_said(" w t2 t3 t4 t5");
    assert_string_equal(times[0].name, "one");
    assert_string_equal(times[1].name, "two");
    assert_true(times[0].seconds == 2 + 2 + 2 && times[1].seconds == 5 + 2);
    dev->info.caps.timestamps = 0;
    assert_int_equal(grt_graph_times(graph, times, 3), 0);
    dev->info.caps.timestamps = 1;
    assert_int_equal(grt_graph_times(graph, NULL, 1), 0);
    assert_int_equal(grt_graph_times(graph, NULL, 0), 2);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
}

// ---- what is refused ----

// Whichever list the backend refuses, the others are given back, and another try can be made.
static void lists_refused(void **state) {
    (void)state;
    struct grt_dev *dev = made_up(0.005);
    struct grt_buf *buf = buf_of(dev, 4 * 4096, GRT_BUF_DEVICE);
    for (int refused = 0; refused < 4; refused++) {
        struct grt_graph *graph = of_fills(dev, buf, 4);
        lists_left = refused;
        TEST_REFUSED(grt_graph_bake(graph), GRT_NO_MEMORY, "no list by request");
        assert_int_equal(lists, 0);
        assert_int_equal(buf->refs, 1);
        TEST_REFUSED(grt_graph_run(graph), GRT_INVALID, "bake the graph first");
        lists_left = -1;
        assert_true(grt_graph_bake(graph));
        assert_int_equal(lists, 4);
        assert_int_equal(buf->refs, 5);
        // The same when it is cut anew in the middle of its life.
        assert_true(grt_graph_expect(graph, 1.0));
        lists_left = refused;
        TEST_REFUSED(grt_graph_run(graph), GRT_NO_MEMORY, "no list by request");
        assert_int_equal(lists, 0);
        lists_left = -1;
        assert_true(grt_graph_run(graph));
        assert_int_equal(lists, 4);
        grt_graph_destroy(&graph);
        assert_int_equal(lists, 0);
        assert_int_equal(buf->refs, 1);
    }
    grt_buf_destroy(&buf);
    assert_int_equal(dev->objects, 0);
}

// Beside other work: copies up and down, and no others.
static void what_runs_aside(void **state) {
    (void)state;
    struct grt_dev *dev = made_up(500.0);
    struct grt_buf *bufs[3] = {buf_of(dev, 64, GRT_BUF_DEVICE), buf_of(dev, 64, GRT_BUF_UPLOAD),
                               buf_of(dev, 64, GRT_BUF_READBACK)};
    static const struct {
        int dst, src;
        bool good;
    } rows[] = {{0, 1, true}, {2, 0, true}, {2, 1, false}, {0, 0, false}};
    for (int i = 0; i < 4; i++) {
        struct grt_graph *graph = grt_graph_create(dev, "aside");
        grt_graph_aside(graph);
        grt_graph_copy(graph, (struct grt_range){bufs[rows[i].dst], 0, 16},
                       (struct grt_range){bufs[rows[i].src], 32, 16});
        if (rows[i].good) {
            newest = 0;
            assert_true(grt_graph_bake(graph));
            expect_said(" [1 C aside]");
            assert_true(grt_graph_run(graph));  // not waited for, the first time either
            expect_said(" >1");
            grt_graph_aside(graph);
            TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "moved aside after the bake");
        } else {
            TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID,
                         "graph 'aside': beside other work only copies from upload to device");
        }
        grt_graph_destroy(&graph);
        said[0] = '\0';
    }
    for (int i = 0; i < 3; i++) {
        grt_buf_destroy(&bufs[i]);
    }
}

// ---- runs ----

static int stops_at;  // the question that is answered yes
static bool stop(void) {
    say(" ?");
    return stops_at-- == 0;
}

// A run that may be stopped waits behind each list, and none of those behind is run.
static void stopped_between_lists(void **state) {
    (void)state;
    struct grt_dev *dev = made_up(0.005);
    struct grt_buf *buf = buf_of(dev, 3 * 4096, GRT_BUF_DEVICE);
    struct grt_graph *graph = of_fills(dev, buf, 3);
    assert_true(grt_graph_bake(graph));
    graph->calibrated = true;
    static const char *const words[] = {" ?", " ? >1 w ?", " ? >1 w ? >2 w ?",
                                        " ? >1 w ? >2 w ? >3 w"};
    for (int i = 0; i < 4; i++) {
        bool stopped = i == 3;
        stops_at = i;
        said[0] = '\0';
        assert_true(grt_graph_run_until(graph, stop, &stopped));
        expect_said(words[i]);
        assert_int_equal(stopped, i < 3);
        assert_int_equal(grt_graph_stats(graph).runs, i + 1);
    }
    stops_at = 0;
    assert_true(grt_graph_run_until(graph, stop, NULL));
    assert_true(grt_graph_run(graph));
    grt_graph_destroy(&graph);
    // In a first run too.
    graph = of_fills(dev, buf, 3);
    newest = 0;
    bool stopped = false;
    stops_at = 1;
    assert_true(grt_graph_bake(graph));
    said[0] = '\0';
    assert_true(grt_graph_run_until(graph, stop, &stopped) && stopped);
    expect_said(" w ? >1 w ?");
    assert_false(graph->calibrated);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
}

// What is held goes out before it would pass the limit; one list alone never waits for itself.
static void held_up_to_the_limit(void **state) {
    (void)state;
    struct grt_dev *dev = made_up(500.0);
    struct grt_buf *buf = buf_of(dev, 4096, GRT_BUF_DEVICE);
    struct grt_graph *graph = of_fills(dev, buf, 1);
    assert_true(grt_graph_bake(graph) && grt_graph_expect(graph, 0.25));
    said[0] = '\0';
    assert_true(grt_dev_hold(dev, true));
    for (int i = 0; i < 5; i++) {
        assert_true(grt_graph_run(graph));
    }
    expect_said(" h1 >1 >1 h1 >1 >1 h1 >1");
    assert_true(dev->held == 0.25);
    assert_true(grt_dev_hold(dev, false) && dev->held == 0);
    assert_true(grt_graph_run(graph) && dev->held == 0);
    expect_said(" h0 >1");
    dev->desc.max_submit_ms = 100;
    assert_true(grt_dev_hold(dev, true) && grt_graph_run(graph) && grt_graph_run(graph));
    expect_said(" h1 >1 h1 >1");
    fns.hold = NULL;
    assert_true(grt_dev_hold(dev, true) && !dev->holds);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
}

// ---- lanes ----

static void marks(void **state) {
    (void)state;
    struct grt_dev *dev = made_up(500.0);
    assert_int_equal(grt_dev_mark(dev, GRT_LANE_ASIDE), 7);
    assert_true(grt_dev_after(dev, GRT_LANE_ASIDE, 3) && grt_dev_after(dev, GRT_LANE_ASIDE, 0));
    assert_true(grt_dev_passed(dev, GRT_LANE_MAIN, 4) && !grt_dev_passed(dev, GRT_LANE_MAIN, 5));
    assert_true(grt_dev_passed(dev, GRT_LANE_MAIN, 0));
    assert_true(grt_dev_wait_for(dev, GRT_LANE_MAIN, 6) && grt_dev_wait_for(dev, GRT_LANE_MAIN, 0));
    expect_said(" mark1 after1.3 passed0.4 passed0.5 wait0.6");
    dev->lanes = 1;
    assert_true(grt_dev_after(dev, GRT_LANE_ASIDE, 3));
    assert_int_equal(grt_dev_lanes(dev), 1);
    dev->lanes = 0;
    assert_int_equal(grt_dev_lanes(dev), 1);
    fns.lane_mark = NULL;
    fns.lane_passed = NULL;
    fns.lane_wait = NULL;
    assert_int_equal(grt_dev_mark(dev, GRT_LANE_MAIN), 0);
    assert_true(grt_dev_passed(dev, GRT_LANE_MAIN, 9) && grt_dev_wait_for(dev, GRT_LANE_MAIN, 9));
    expect_said("");
    fns = all;
    dev->status = GRT_LOST;
    assert_int_equal(grt_dev_mark(dev, GRT_LANE_MAIN), 0);
    TEST_REFUSED(grt_dev_after(dev, GRT_LANE_MAIN, 1), GRT_LOST, "made:0 failed earlier");
    TEST_REFUSED(grt_dev_wait_for(dev, GRT_LANE_MAIN, 1), GRT_LOST, "made:0 failed earlier");
    expect_said("");
    TEST_REFUSED(grt_dev_mark(dev, GRT_LANE_COUNT), GRT_INVALID, "grt_dev_mark: no such lane");
    TEST_REFUSED(grt_dev_mark(NULL, GRT_LANE_MAIN), GRT_INVALID, "grt_dev_mark: no such device");
    TEST_REFUSED(grt_dev_wait_for(dev, GRT_LANE_COUNT, 1), GRT_INVALID,
                 "grt_dev_wait_for: no such");
    TEST_REFUSED(grt_dev_passed(dev, GRT_LANE_COUNT, 1), GRT_INVALID, "grt_dev_passed: no such");
}

// ---- memory ----

static void memory_left(void **state) {
    (void)state;
    static const struct {
        uint64_t memory, limit, free, left, most;
        double fraction;
    } rows[] = {
        {1000, 0, 0, 800, 1000, 1.0},  // 200 are taken
        {1000, 0, 0, 300, 500, 0.5},     {1000, 0, 0, 0, 100, 0.1},
        {1000, 600, 0, 400, 600, 1.0},   {1000, 1001, 0, 800, 1000, 1.0},
        {1000, 100, 0, 0, 100, 1.0},     {1000, 0, 640, 640, 1000, 1.0},
        {1000, 0, 640, 320, 500, 0.5},   {1000, 700, 640, 500, 700, 1.0},
        {1000, 900, 640, 640, 900, 1.0}, {0, 700, 0, 0, 700, 1.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dev *dev = made_up(500.0);
        struct grt_buf *buf = buf_of(dev, 200, GRT_BUF_DEVICE);
        fns.mem_free = mem_free;
        unused_memory = rows[i].free;
        dev->info.caps.memory = rows[i].memory;
        dev->desc.mem_limit = rows[i].limit;
        dev->desc.mem_fraction = rows[i].fraction;
        assert_int_equal(grt_dev_mem_left(dev), rows[i].left);
        assert_int_equal(grt_dev_mem_most(dev), rows[i].most);
        if (rows[i].left > 0) {
            struct grt_buf *rest = buf_of(dev, rows[i].left, GRT_BUF_DEVICE);
            grt_buf_destroy(&rest);
        }
        TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = rows[i].left + 4)), GRT_NO_MEMORY,
                     "does not fit: made:0 has ");
        grt_buf_destroy(&buf);
    }
    struct grt_dev *dev = made_up(500.0);
    dev->info.caps.max_buffer = 4000000;
    struct grt_buf *buf = buf_of(dev, 4000000, GRT_BUF_DEVICE);
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = 4000001, .label = "wing")), GRT_NO_MEMORY,
                 "buffer 'wing' of 4.0 MB: made:0 makes buffers of at most 4.0 MB");
    struct grt_buf *host = buf_of(dev, 4000004, GRT_BUF_UPLOAD);
    assert_int_equal(grt_buf_kind(host), GRT_BUF_UPLOAD);
    assert_int_equal(grt_buf_kind(NULL), GRT_BUF_DEVICE);
    TEST_REFUSED(grt_buf_create(dev, grt_buf_desc(.size = 0)), GRT_INVALID,
                 "size is 0, a buffer has at least 1 byte");
    assert_int_equal(buffers, 2);
    grt_buf_destroy(&host);
    grt_buf_destroy(&buf);
    assert_int_equal(buffers, 0);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(cut_at_the_limit),
    TEST_CASE(cut_by_guesses),
    TEST_CASE(cut_by_the_first_run),
    TEST_CASE(phases_go_on),
    TEST_CASE(lists_refused),
    TEST_CASE(what_runs_aside),
    TEST_CASE(stopped_between_lists),
    TEST_CASE(held_up_to_the_limit),
    TEST_CASE(marks),
    TEST_CASE(memory_left),
};
TEST_SUITE(seam, false, cases);
