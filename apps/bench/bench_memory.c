// SPDX-License-Identifier: Apache-2.0
// `gpurt bench memory`: how fast bytes move.
//
//     source   | slot 0 | slot 1 | ... | slot s-1 |    one run copies slot i mod s for i < copies:
//                  |        |                |         no copy waits for its neighbour, and what
//     target   | slot 0 | slot 1 | ... | slot s-1 |    is read has left all but the largest caches
//
// One run has as many copies as make it long enough for a clock. Before it is timed, the very graph
// that will be timed runs once from a known pattern into a poisoned target, and all it touched is
// compared.
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/talk.h"

#define ALIGN 256ull      // of slots, at least
#define MAX_COPIES 4096u  // of one run
#define CHUNK (4u << 20)  // bytes that the check looks at together
#define SET_SOFTWARE (64ull << 20)
#define SET_HARDWARE (256ull << 20)  // per side; beyond the last-level cache of today's GPUs

static const struct memory_test {
    const char *name;
    enum grt_buf_kind from, to;
    bool by_kernel;
    uint32_t counted;  // bytes that count for each byte copied
} tests[] = {
    {"device copy", GRT_BUF_DEVICE, GRT_BUF_DEVICE, true, 2},
    {"driver copy", GRT_BUF_DEVICE, GRT_BUF_DEVICE, false, 2},
    {"upload", GRT_BUF_UPLOAD, GRT_BUF_DEVICE, false, 1},
    {"readback", GRT_BUF_DEVICE, GRT_BUF_READBACK, false, 1},
};
#define TEST_COUNT (sizeof tests / sizeof *tests)

static bool read_sizes(const char *text, void *into, char why[RANGES_WHY]) {
    return ranges_parse(text, &(struct ranges_rule){.bytes = true, .min = 4}, into, why);
}

const struct option_row bench_memory_options[1] = {
    {.name = "size",
     .value = "LIST",
     .help = "bytes of a copy, e.g. 1MiB-64MiB*4 (default: by device)",
     .read = read_sizes,
     .at = offsetof(struct bench, sizes)},
};

struct memory_run {
    struct bench *bench;
    const struct memory_test *test;
    uint64_t size;    // bytes of one copy, a multiple of 4
    uint64_t stride;  // from slot to slot
    uint64_t slots;
    struct grt_buf *source, *target;
    struct bench_timing timing;
    uint32_t copies;
};

// ---- the check ----

static uint32_t pattern(uint64_t word) {
    uint32_t x = (uint32_t)(word ^ word >> 32) * 2654435761u;
    return x ^ x >> 15;
}

// Goes over the touched part of a buffer: writes the pattern or its opposite, or compares.
enum pass { WRITE_PATTERN, WRITE_POISON, COMPARE };

static enum bench_outcome go_over(struct memory_run *run, struct grt_buf *buf, enum pass pass,
                                  uint32_t *chunk) {
    uint64_t used = run->copies < run->slots ? run->copies : run->slots;
    uint32_t flip = pass == WRITE_POISON ? ~0u : 0u;
    for (uint64_t slot = 0; slot < used; slot++) {
        for (uint64_t done = 0, n = 0; done < run->size; done += n) {
            uint64_t at = slot * run->stride + done;
            n = run->size - done < CHUNK ? run->size - done : CHUNK;
            if (pass == COMPARE && !grt_buf_read(buf, at, chunk, n)) {
                return BENCH_BROKEN;
            }
            for (uint64_t i = 0; i < n / 4; i++) {
                uint32_t want = pattern(at / 4 + i) ^ flip;
                if (pass == COMPARE && chunk[i] != want) {
                    talk_error("%s of %" PRIu64 " bytes: byte %" PRIu64 " of copy %" PRIu64
                               " is wrong",
                               run->test->name, run->size, done + 4 * i, slot);
                    return BENCH_WRONG;
                }
                chunk[i] = want;
            }
            if (pass != COMPARE && !grt_buf_write(buf, at, chunk, n)) {
                return BENCH_BROKEN;
            }
        }
    }
    return BENCH_GOOD;
}

static enum bench_outcome check(struct memory_run *run) {
    uint32_t *chunk = malloc(CHUNK);
    enum bench_outcome outcome = chunk ? BENCH_GOOD : BENCH_TOO_LARGE;
    if (outcome == BENCH_GOOD) {
        outcome = go_over(run, run->source, WRITE_PATTERN, chunk);
    }
    if (outcome == BENCH_GOOD) {
        outcome = go_over(run, run->target, WRITE_POISON, chunk);
    }
    if (outcome == BENCH_GOOD && !grt_graph_finish(run->timing.graph)) {
        outcome = BENCH_BROKEN;
    }
    if (outcome == BENCH_GOOD) {
        outcome = go_over(run, run->target, COMPARE, chunk);
    }
    free(chunk);
    return outcome;
}

// ---- the graph ----

static struct grt_tensor as_tensor(struct grt_range range) {
    return (struct grt_tensor){
        .range = range, .dtype = GRT_U32, .rank = 1, .shape = {range.size / 4}};
}

static struct grt_graph *record(void *context, uint32_t copies) {
    struct memory_run *run = context;
    struct grt_graph *graph = grt_graph_create(run->bench->dev, "bench memory");
    if (!graph) {
        return NULL;
    }
    if (run->timing.device_timer) {
        grt_graph_phase(graph, run->test->name);
    }
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t at = i % run->slots * run->stride;
        struct grt_range from = {run->source, at, run->size};
        struct grt_range to = {run->target, at, run->size};
        struct grt_tensor x = as_tensor(from);
        struct grt_tensor y = as_tensor(to);
        if (run->test->by_kernel) {
            grt_op_copy(graph, &y, &x);
        } else {
            grt_graph_copy(graph, to, from);
        }
    }
    if (!grt_graph_bake(graph)) {
        grt_graph_destroy(&graph);
    }
    return graph;
}

// ---- rows ----

static enum bench_outcome measure(struct memory_run *run, struct stats *stats) {
    struct grt_dev *dev = run->bench->dev;
    uint64_t bytes = run->slots * run->stride;
    enum bench_outcome outcome = BENCH_BROKEN;
    run->source = grt_buf_create(
        dev, grt_buf_desc(.size = bytes, .kind = run->test->from, .label = "bench source"));
    if (!run->source) {
        return bench_failure();
    }
    run->target = grt_buf_create(
        dev, grt_buf_desc(.size = bytes, .kind = run->test->to, .label = "bench target"));
    if (!run->target) {
        outcome = bench_failure();
        goto undo_source;
    }
    run->copies = bench_fill_run(&run->timing, MAX_COPIES, record, run);
    if (run->copies) {
        outcome = check(run);
        if (outcome == BENCH_GOOD && !bench_time(run->bench, &run->timing, stats)) {
            outcome = BENCH_BROKEN;
        }
    }
    grt_graph_destroy(&run->timing.graph);
    grt_buf_destroy(&run->target);
undo_source:
    grt_buf_destroy(&run->source);
    return outcome;
}

static bool print_one(struct bench *bench, const struct memory_test *test, uint64_t size) {
    const struct grt_caps *caps = &grt_dev_info(bench->dev)->caps;
    uint64_t set = caps->software ? SET_SOFTWARE : SET_HARDWARE;
    uint64_t limit = grt_dev_mem_left(bench->dev) / 4;
    struct memory_run run = {.bench = bench,
                             .test = test,
                             .timing = {.replays = 1, .device_timer = caps->timestamps != 0}};
    struct stats stats = {0};
    run.size = (size + 3) / 4 * 4;
    uint64_t align = caps->align > ALIGN ? caps->align : ALIGN;
    run.stride = (run.size + align - 1) / align * align;
    if (set > limit) {
        set = limit;
    }
    if (caps->max_buffer && set > caps->max_buffer) {
        set = caps->max_buffer;
    }
    run.slots = set / run.stride > 1 ? set / run.stride : 1;
    enum bench_outcome outcome = measure(&run, &stats);
    // What one run touches, if it has fewer copies than there are slots.
    uint64_t touched = run.copies < run.slots ? run.copies : run.slots;
    double bytes = (double)run.size * run.copies * test->counted;
    struct table_cell cells[BENCH_COLUMN_COUNT] = {
        [BENCH_KIND] = TABLE_CELL(.text = "memory"),
        [BENCH_TEST] = TABLE_CELL(.text = test->name),
        [BENCH_SIZE] = TABLE_CELL(.count = run.size),
        [BENCH_SET] = {.known = touched != 0, .count = touched * run.size},
        [BENCH_GB_PER_S] = TABLE_CELL(.number = bytes / stats.median / 1e9),
    };
    return bench_row(bench, cells, outcome, &stats, run.timing.device_timer);
}

// Sizes that show the ramp and the plateau; the quick look has the plateau and one step below.
static bool default_sizes(struct bench *bench) {
    static const char *const texts[2][2] = {{"1MiB-1GiB*4", "64MiB,1GiB"},
                                            {"1MiB-64MiB*4", "4MiB,32MiB"}};
    uint64_t limit = grt_dev_mem_left(bench->dev) / 4;
    char why[RANGES_WHY];
    bool software = grt_dev_info(bench->dev)->caps.software != 0;
    if (!read_sizes(texts[software][bench->quick], &bench->sizes, why)) {
        talk_error("%s", why);
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < bench->sizes.count; i++) {
        if (bench->sizes.values[i] <= limit || i == 0) {
            bench->sizes.values[kept++] = bench->sizes.values[i];
        }
    }
    bench->sizes.count = kept;
    return true;
}

bool bench_memory(struct bench *bench) {
    uint64_t shown = BENCH_BIT(TEST) | BENCH_BIT(SIZE) | BENCH_BIT(SET) | BENCH_BIT(GB_PER_S) |
                     BENCH_BIT(SPREAD) | BENCH_BIT(SAMPLES) | BENCH_BIT(TIMER) | BENCH_BIT(CHECK);
    if (!bench->sizes.count && !default_sizes(bench)) {
        return bench_row(bench, NULL, BENCH_BROKEN, NULL, false);
    }
    if (!bench_section(bench, "memory", shown)) {
        return false;
    }
    bench_progress_plan(&bench->progress, TEST_COUNT * bench->sizes.count, bench->seconds);
    for (size_t t = 0; t < TEST_COUNT; t++) {
        for (size_t i = 0; i < bench->sizes.count; i++) {
            char size[TABLE_TEXT_SIZE];
            table_bytes_text(bench->sizes.values[i], size);
            bench_progress_row(&bench->progress, "memory: %s of %s", tests[t].name, size);
            if (!print_one(bench, &tests[t], bench->sizes.values[i])) {
                return false;
            }
        }
    }
    return true;
}
