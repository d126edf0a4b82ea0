// SPDX-License-Identifier: Apache-2.0
// `gpurt bench launch`: what a dispatch costs when it does next to nothing. Each dispatch is one
// workgroup that fills a few numbers, so what is left is the launch.
//
//     independent   dispatch i fills cell i: nothing waits
//     in order      every dispatch fills cell 0: each waits for the former
//     empty         the same, but nothing is written: what is left is the wait alone. On an H200 a
//                   store makes 0.25 us of the 2.0 that a dispatch behind a barrier takes
//     replay        one dispatch: a whole submit and wait
//
// Timed by the wall: where a driver is told of every dispatch again, the cost lies on the host, and
// a device clock would not see it. The check: every cell holds what its last dispatch wrote, which
// in the second case also proves the order; in the third it holds what it held before.
#include "bench.h"

#include <stdlib.h>

#include "cli/talk.h"
#include "shaders/host.h"
#include "shaders/lib/op_params.k"

#define CELL_BYTES 1024u  // apart, a multiple of every alignment met so far
#define CELL_WORDS 32u    // filled by one workgroup of as many lanes
#define SAMPLE_SECONDS 0.002
#define MAX_COUNT 65536

static const struct launch_test {
    const char *name;
    bool same_cell;
    bool empty;  // asks the kernel for no words
    bool once;   // one dispatch whatever --count says
} tests[] = {
    {"independent", false, false, false},
    {"in order", true, false, false},
    {"empty", true, true, false},
    {"replay", false, false, true},
};
#define TEST_COUNT (sizeof tests / sizeof *tests)

static bool read_counts(const char *text, void *into, char why[RANGES_WHY]) {
    return ranges_parse(text, &(struct ranges_rule){.min = 1, .max = MAX_COUNT}, into, why);
}

const struct option_row bench_launch_options[1] = {
    {.name = "count",
     .value = "LIST",
     .help = "dispatches of one replay (default: 1-1024*4)",
     .read = read_counts,
     .at = offsetof(struct bench, counts)},
};

// Never 0.
static uint32_t cells_of(const struct launch_test *test, uint32_t count) {
    return test->same_cell || count == 0 ? 1 : count;
}

// What the last dispatch that fills this cell writes there.
static float value_of(const struct launch_test *test, uint32_t count, uint32_t cell) {
    return (float)(test->same_cell ? count : cell + 1);
}

static bool record(struct grt_graph *graph, struct grt_buf *buf, const struct launch_test *test,
                   uint32_t count) {
    const struct grt_kernel *fill = grt_kernel_get(
        grt_graph_dev(graph), grt_kernel_desc(.name = "fill", .specs = {{"WG", CELL_WORDS}}));
    for (uint32_t i = 0; i < count; i++) {
        const struct fill_params params = {.n = test->empty ? 0 : CELL_WORDS,
                                           .value = (float)(i + 1)};
        uint64_t cell = test->same_cell ? 0 : i;
        grt_graph_dispatch(graph,
                           grt_dispatch(.kernel = fill,
                                        .bindings = {{buf, cell * CELL_BYTES, CELL_WORDS * 4}},
                                        .params = &params, .params_size = sizeof params));
    }
    return grt_graph_bake(graph);
}

static enum bench_outcome check(struct grt_graph *graph, struct grt_buf *buf,
                                const struct launch_test *test, uint32_t count) {
    uint32_t cells = cells_of(test, count);
    size_t bytes = (size_t)cells * CELL_BYTES;
    float *numbers = calloc(cells, CELL_BYTES);
    enum bench_outcome outcome = BENCH_BROKEN;
    if (!numbers) {
        return BENCH_TOO_LARGE;
    }
    if (grt_buf_write(buf, 0, numbers, bytes) && grt_graph_finish(graph) &&
        grt_buf_read(buf, 0, numbers, bytes)) {
        outcome = BENCH_GOOD;
    }
    for (size_t i = 0; outcome == BENCH_GOOD && i < bytes / sizeof *numbers; i++) {
        bool filled = !test->empty && i % (CELL_BYTES / 4) < CELL_WORDS;
        float want = filled ? value_of(test, count, (uint32_t)(i / (CELL_BYTES / 4))) : 0.0f;
        if (numbers[i] != want) {
            talk_error("%s, %u dispatches: number %zu is %g and not %g", test->name, count, i,
                       (double)numbers[i], (double)want);
            outcome = BENCH_WRONG;
        }
    }
    free(numbers);
    return outcome;
}

// Replays that make one sample long enough for the clock.
static bool choose_replays(struct bench_timing *timing) {
    double seconds = 0;
    timing->replays = 1;
    // The first one finds the device asleep.
    if (!bench_sample(timing, &seconds) || !bench_sample(timing, &seconds)) {
        return false;
    }
    double replays = SAMPLE_SECONDS / (seconds + 1e-9);
    timing->replays = replays < 1 ? 1 : replays > 10000 ? 10000 : (uint32_t)replays;
    return true;
}

static enum bench_outcome measure(struct bench *bench, const struct launch_test *test,
                                  uint32_t count, struct stats *stats) {
    enum bench_outcome outcome = BENCH_BROKEN;
    struct grt_buf *buf = grt_buf_create(
        bench->dev, grt_buf_desc(.size = (uint64_t)cells_of(test, count) * CELL_BYTES,
                                 .label = "bench launch"));
    struct grt_graph *graph = buf ? grt_graph_create(bench->dev, "bench launch") : NULL;
    if (!graph) {
        outcome = bench_failure();
        goto undo_buf;
    }
    if (record(graph, buf, test, count)) {
        struct bench_timing timing = {.graph = graph};
        outcome = check(graph, buf, test, count);
        if (outcome == BENCH_GOOD &&
            !(choose_replays(&timing) && bench_time(bench, &timing, stats))) {
            outcome = BENCH_BROKEN;
        }
    }
    grt_graph_destroy(&graph);
undo_buf:
    grt_buf_destroy(&buf);
    return outcome;
}

static bool print_one(struct bench *bench, const struct launch_test *test, uint32_t count) {
    struct stats stats = {0};
    bench_progress_row(&bench->progress, "launch: %s, %u dispatches", test->name, count);
    enum bench_outcome outcome = measure(bench, test, count, &stats);
    struct table_cell cells[BENCH_COLUMN_COUNT] = {
        [BENCH_KIND] = TABLE_CELL(.text = "launch"),
        [BENCH_TEST] = TABLE_CELL(.text = test->name),
        [BENCH_COUNT] = TABLE_CELL(.count = count),
        [BENCH_US] = TABLE_CELL(.number = 1e6 * stats.median / count),
    };
    return bench_row(bench, cells, outcome, &stats, false);
}

// Without --count: from one to where the cost of the replay itself is spread thin.
static bool default_counts(struct bench *bench) {
    char why[RANGES_WHY];
    if (read_counts(bench->quick ? "1,64,1024" : "1-1024*4", &bench->counts, why)) {
        return true;
    }
    talk_error("%s", why);
    return false;
}

bool bench_launch(struct bench *bench) {
    uint64_t shown = BENCH_BIT(TEST) | BENCH_BIT(COUNT) | BENCH_BIT(US) | BENCH_BIT(SPREAD) |
                     BENCH_BIT(SAMPLES) | BENCH_BIT(TIMER) | BENCH_BIT(CHECK);
    if (!bench->counts.count && !default_counts(bench)) {
        return bench_row(bench, NULL, BENCH_BROKEN, NULL, false);
    }
    if (!bench_section(bench, "launch", shown)) {
        return false;
    }
    size_t planned = 0;
    for (size_t t = 0; t < TEST_COUNT; t++) {
        planned += tests[t].once ? 1 : bench->counts.count;
    }
    bench_progress_plan(&bench->progress, planned, bench->seconds);
    for (size_t t = 0; t < TEST_COUNT; t++) {
        size_t rows = tests[t].once ? 1 : bench->counts.count;
        for (size_t i = 0; i < rows; i++) {
            uint32_t count = tests[t].once ? 1 : (uint32_t)bench->counts.values[i];
            if (!print_one(bench, &tests[t], count)) {
                return false;
            }
        }
    }
    return true;
}
