// SPDX-License-Identifier: Apache-2.0
// Schedules: a baked graph gives the bits that its commands give one by one with waits between.
//
// Graphs are made at random over three device buffers, an upload and a readback buffer. Their
// ranges overlap in part, so dependences of every kind arise. On ref the same graph also runs with
// reverse_windows, which turns around the order of all commands that no barrier keeps in place: a
// missing hazard then shows for certain, where a GPU would show it once in a while.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

#define COMMANDS 40
#define BUFFERS 5  // 0 to 2 on the device, 3 upload, 4 readback
#define UPLOAD 3
#define READBACK 4
#define BYTES 16384
#define UNIT 512  // offsets of tensors; a multiple of every device's alignment

enum kind { FILL, COPY, DISPATCH, MAP_ONE, MAP_TWO, IN_PLACE, TRANSPOSE, NARROW, KIND_COUNT };

struct command {
    enum kind kind;
    uint32_t bufs[3];  // y, a, b
    uint32_t offsets[3];
    uint32_t bytes;
    uint32_t value;
};

struct world {
    struct grt_dev *dev;
    struct grt_buf *bufs[BUFFERS];
    const struct grt_kernel *copy;
};

static struct world open_world(struct grt_dev *dev) {
    struct world world = {.dev = dev};
    for (uint32_t i = 0; i < BUFFERS; i++) {
        world.bufs[i] = test_buf(dev, BYTES,
                                 i == UPLOAD     ? GRT_BUF_UPLOAD
                                 : i == READBACK ? GRT_BUF_READBACK
                                                 : GRT_BUF_DEVICE);
    }
    world.copy = grt_kernel_get(dev, grt_kernel_desc(.name = "copy"));
    assert_non_null(world.copy);
    return world;
}

static void close_world(struct world *world) {
    for (uint32_t i = 0; i < BUFFERS; i++) {
        grt_buf_destroy(&world->bufs[i]);
    }
}

// All buffers one behind the other: what a schedule begins with, and what it leaves.
struct contents {
    uint32_t words[BUFFERS][BYTES / 4];
};

static void set_contents(struct world *world, const struct contents *contents) {
    for (uint32_t i = 0; i < BUFFERS; i++) {
        assert_true(grt_buf_write(world->bufs[i], 0, contents->words[i], BYTES));
    }
}

static void get_contents(struct world *world, struct contents *contents) {
    for (uint32_t i = 0; i < BUFFERS; i++) {
        assert_true(grt_buf_read(world->bufs[i], 0, contents->words[i], BYTES));
    }
}

// A pre-fill in every other buffer, small numbers in the rest: NaN alone would hide what moved.
static void make_contents(struct contents *contents, uint64_t seed, uint32_t prefill) {
    uint64_t state = seed * 977 + 5;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        for (uint32_t k = 0; k < BYTES / 4; k++) {
            bool plain = (i + k / 64) % 2 == 0;
            contents->words[i][k] = plain ? test_as_u32(test_float(&state, TEST_PLAIN)) : prefill;
        }
    }
}

static bool overlap(const struct command *c, int i, int k) {
    return c->bufs[i] == c->bufs[k] && c->offsets[i] < c->offsets[k] + c->bytes &&
           c->offsets[k] < c->offsets[i] + c->bytes;
}

// Operands do not overlap one another; which commands conflict is left to chance.
static struct command make_command(uint64_t *state) {
    struct command c;
    bool apart;
    do {
        c.kind = (enum kind)(test_next(state) % KIND_COUNT);
        c.bytes = UNIT * (1 + test_next(state) % 12);
        c.value = test_next(state);
        for (int i = 0; i < 3; i++) {
            c.bufs[i] = test_next(state) % 3;
            c.offsets[i] = UNIT * (test_next(state) % ((BYTES - c.bytes) / UNIT + 1));
        }
        if (c.kind == FILL || c.kind == COPY) {  // these go by words, and to host buffers
            c.bytes -= 4 * (test_next(state) % 32);
            c.offsets[0] += 4 * (test_next(state) % 16);
            c.bufs[0] = c.kind == COPY && c.value % 8 == 0 ? READBACK : c.bufs[0];
            c.bufs[1] = c.kind == COPY && c.value % 8 == 1 ? UPLOAD : c.bufs[1];
        }
        apart = !overlap(&c, 0, 1) && !overlap(&c, 0, 2) && c.offsets[0] + c.bytes <= BYTES;
    } while (!apart);
    return c;
}

static struct grt_tensor tensor_of(const struct world *world, const struct command *c, int i,
                                   enum grt_dtype dtype) {
    uint64_t count = c->bytes / 4;
    return (struct grt_tensor){
        .range = {world->bufs[c->bufs[i]], c->offsets[i], count * grt_dtype_size(dtype)},
        .dtype = dtype,
        .rank = 1,
        .shape = {count},
        .label = "random"};
}

static void record_transpose(struct grt_graph *graph, struct grt_tensor y, struct grt_tensor x) {
    uint64_t count = x.shape[0];
    y.rank = x.rank = 2;
    x.shape[0] = y.shape[1] = 16;
    x.shape[1] = y.shape[0] = count / 16;
    grt_op_transpose(graph, &y, &x);
}

static void record(struct grt_graph *graph, const struct world *world, const struct command *c) {
    struct grt_tensor y = tensor_of(world, c, 0, GRT_F32);
    struct grt_tensor a = tensor_of(world, c, 1, GRT_F32);
    struct grt_tensor b = tensor_of(world, c, 2, GRT_F32);
    uint32_t words[1] = {c->bytes / 4};
    switch (c->kind) {
    case FILL:
        grt_graph_fill(graph, y.range, c->value);
        break;
    case COPY:
        grt_graph_copy(graph, y.range, a.range);
        break;
    case DISPATCH:
        grt_graph_dispatch(graph, grt_dispatch(.kernel = world->copy,
                                               .bindings = {a.range, y.range}, .params = words,
                                               .params_size = sizeof words, .groups = {3}));
        break;
    case MAP_ONE:
        grt_op_map(graph, grt_map_desc(.map = GRT_MAP_SCALE, .y = &y, .a = &a, .alpha = 0.5f,
                                       .beta = 1.0f));
        break;
    case MAP_TWO:
        grt_op_map(graph, grt_map_desc(.map = GRT_MAP_MIN, .y = &y, .a = &a, .b = &b));
        break;
    case IN_PLACE:
        grt_op_map(graph, grt_map_desc(.map = GRT_MAP_ADD, .y = &y, .a = &y, .b = &b));
        break;
    case TRANSPOSE:
        record_transpose(graph, y, a);
        break;
    case NARROW:
        y = tensor_of(world, c, 0, GRT_F16);
        grt_op_convert(graph, &y, &a);
        break;
    case KIND_COUNT:
        break;
    }
}

static void run_one_by_one(struct world *world, const struct command *commands) {
    for (uint32_t i = 0; i < COMMANDS; i++) {
        struct grt_graph *graph = grt_graph_create(world->dev, "one");
        assert_non_null(graph);
        record(graph, world, &commands[i]);
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
    }
}

static struct grt_graph *bake(struct world *world, const struct command *commands) {
    struct grt_graph *graph = grt_graph_create(world->dev, "all");
    assert_non_null(graph);
    for (uint32_t i = 0; i < COMMANDS; i++) {
        record(graph, world, &commands[i]);
    }
    assert_true(grt_graph_bake(graph));
    return graph;
}

static void same_contents(const struct grt_dev *dev, const struct contents *got,
                          const struct contents *want) {
    static const char *const names[BUFFERS] = {"buffer 0", "buffer 1", "buffer 2", "upload",
                                               "readback"};
    for (uint32_t i = 0; i < BUFFERS; i++) {
        test_same(dev, names[i], got->words[i], want->words[i], 4, BYTES / 4);
    }
}

// Seeds 1 to 20 on `dev`, against the same commands one by one on `calm`.
static uint32_t check_schedules(struct grt_dev *dev, struct grt_dev *calm) {
    static struct contents start, want, got;
    struct world world = open_world(dev);
    struct world calm_world = open_world(calm);
    uint32_t seeds = test.small ? 3 : 20;
    uint32_t segments = 0;
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        uint64_t state = seed;
        struct command commands[COMMANDS];
        for (uint32_t i = 0; i < COMMANDS; i++) {
            commands[i] = make_command(&state);
        }
        struct grt_graph *graph = bake(&world, commands);
        for (int fill = 0; fill < TEST_PREFILLS; fill++) {
            make_contents(&start, seed, test_prefills[fill]);
            set_contents(&calm_world, &start);
            run_one_by_one(&calm_world, commands);
            get_contents(&calm_world, &want);
            // Twice: the first run of a graph is timed piece by piece, later ones are not.
            for (int run = 0; run < 2; run++) {
                set_contents(&world, &start);
                assert_true(grt_graph_run(graph));
                get_contents(&world, &got);
                same_contents(dev, &got, &want);
            }
        }
        struct grt_graph_stats stats = grt_graph_stats(graph);
        assert_in_range(stats.barriers, 1, stats.commands - 1);
        segments = stats.segments > segments ? stats.segments : segments;
        grt_graph_destroy(&graph);
    }
    close_world(&world);
    close_world(&calm_world);
    return segments;
}

static void baked_equals_one_by_one(void **state) {
    (void)state;
    assert_int_equal(check_schedules(test.dev, test.dev), 1);
}

static void opposite_order_where_it_may(void **state) {
    (void)state;
    struct grt_dev *reverse =
        grt_dev_create(grt_dev_desc(.device = "ref:0", .reverse_windows = true));
    assert_non_null(reverse);
    check_schedules(reverse, test.ref);
    grt_dev_destroy(&reverse);
}

// Submits of almost no length: every command is its own.
static void split_into_submits(void **state) {
    (void)state;
    struct grt_dev *split = grt_dev_create(grt_dev_desc(.device = grt_dev_info(test.dev)->selector,
                                                        .validate = true, .max_submit_ms = 1e-6));
    assert_non_null(split);
    assert_in_range(check_schedules(split, test.dev), 2, 100 * COMMANDS);
    assert_int_equal(grt_dev_complaints(split), 0);
    grt_dev_destroy(&split);
}

// A graph that is known to take so long is cut by that: of eight equal commands as many go into a
// submit as fit, by their share of the time.
static void cut_by_what_is_known(void **state) {
    (void)state;
    static const struct {
        double seconds;
        uint32_t segments;
    } rows[] = {{0.05, 1}, {0.1, 1}, {0.19, 2}, {0.39, 4}, {0.79, 8}, {8, 8}};
    struct grt_dev *dev = grt_dev_create(
        grt_dev_desc(.device = grt_dev_info(test.dev)->selector, .max_submit_ms = 100));
    assert_non_null(dev);
    struct grt_buf *buf = test_buf(dev, 8 << 12, GRT_BUF_DEVICE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_graph *graph = grt_graph_create(dev, "known");
        for (uint32_t k = 0; k < 8; k++) {
            grt_graph_fill(graph, (struct grt_range){buf, (uint64_t)k << 12, 1 << 12}, k);
        }
        assert_true(grt_graph_bake(graph));
        assert_true(grt_graph_expect(graph, rows[i].seconds));
        assert_true(grt_graph_run(graph) && grt_dev_wait(dev));
        assert_int_equal(grt_graph_stats(graph).segments, rows[i].segments);
        uint32_t got[8 << 10];
        assert_true(grt_buf_read(buf, 0, got, sizeof got));
        for (uint32_t k = 0; k < 8 << 10; k++) {
            assert_int_equal(got[k], k >> 10);
        }
        TEST_REFUSED(grt_graph_expect(graph, 0), GRT_INVALID, "no time");
        grt_graph_destroy(&graph);
    }
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

// Phases across submits: each is timed, and none twice.
static void phases_across_submits(void **state) {
    (void)state;
    struct grt_dev *split = grt_dev_create(
        grt_dev_desc(.device = grt_dev_info(test.dev)->selector, .max_submit_ms = 1e-6));
    assert_non_null(split);
    struct world world = open_world(split);
    struct grt_graph *graph = grt_graph_create(split, "phases");
    for (uint32_t p = 0; p < 3; p++) {
        static const char *const names[3] = {"zero", "one", "two"};
        grt_graph_phase(graph, names[p]);
        for (uint32_t i = 0; i < 4; i++) {
            grt_graph_fill(graph, (struct grt_range){world.bufs[0], i * 1024, 1024}, p);
        }
    }
    struct grt_phase_time times[3] = {0};
    for (int run = 0; run < 3; run++) {
        assert_true(grt_graph_finish(graph));
        uint32_t count = grt_graph_times(graph, times, 3);
        assert_true(count == (grt_dev_info(split)->caps.timestamps ? 3u : 0u));
        for (uint32_t i = 0; i < count; i++) {
            assert_true(times[i].name && times[i].seconds >= 0);
        }
    }
    assert_in_range(grt_graph_stats(graph).segments, 2, 15);
    grt_graph_destroy(&graph);
    close_world(&world);
    grt_dev_destroy(&split);
}

// The negative control: with a hazard left out on purpose, the reversed order must show it.
static void a_missing_hazard_is_found(void **state) {
    (void)state;
    struct grt_dev *reverse =
        grt_dev_create(grt_dev_desc(.device = "ref:0", .reverse_windows = true));
    assert_non_null(reverse);
    struct grt_buf *buf = test_buf(reverse, 16, GRT_BUF_DEVICE);
    struct grt_cmd cmds[2] = {
        {.kind = GRT_CMD_FILL, .sync = -1, .dst = {buf, 0, 4}, .value = 5},
        {.kind = GRT_CMD_COPY, .sync = 0, .dst = {buf, 4, 4}, .src = {buf, 0, 4}},
    };
    for (int missing = 0; missing < 2; missing++) {
        const uint32_t zero[4] = {0};
        assert_true(grt_buf_write(buf, 0, zero, sizeof zero));
        cmds[1].sync = missing ? -1 : 0;
        void *native = reverse->fns->cmds_create(reverse, cmds, 2, 0, GRT_LANE_MAIN, false);
        assert_non_null(native);
        assert_true(reverse->fns->cmds_run(reverse, native));
        assert_true(reverse->fns->wait(reverse));
        reverse->fns->cmds_destroy(reverse, native);
        uint32_t got[4];
        assert_true(grt_buf_read(buf, 0, got, sizeof got));
        assert_int_equal(got[1], missing ? 0 : 5);
    }
    grt_buf_destroy(&buf);
    grt_dev_destroy(&reverse);
}

// The other negative control: a command that Vulkan forbids draws a message, which is counted. It
// is translated and not run.
static void validation_sees_a_mistake(void **state) {
    (void)state;
    struct grt_dev *dev =
        grt_dev_create(grt_dev_desc(.device = grt_dev_info(test.dev)->selector, .validate = true));
    assert_non_null(dev);
    // Only a machine that is known to have no layer may go without.
    bool watched = grt_dev_validated(dev);
    assert_true(watched || grt_dev_info(dev)->backend != GRT_BACKEND_VULKAN ||
                getenv("GPURT_TEST_NO_LAYER"));
    struct grt_buf *buf = test_buf(dev, 64, GRT_BUF_DEVICE);
    struct grt_cmd cmd = {.kind = GRT_CMD_FILL, .sync = -1, .dst = {buf, 2, 4}, .value = 5};
    uint32_t before = test_log.lines[GRT_LOG_ERROR];
    test_log.quiet = true;
    void *native = watched ? dev->fns->cmds_create(dev, &cmd, 1, 0, GRT_LANE_MAIN, false) : NULL;
    test_log.quiet = false;
    if (native) {
        dev->fns->cmds_destroy(dev, native);
    }
    test_log.expected += test_log.lines[GRT_LOG_ERROR] - before;
    assert_true(watched == (grt_dev_complaints(dev) > 0));
    // In the layer's words.
    assert_true(!watched || (strncmp(test_log.newest, "Vulkan validation: ", 19) == 0 &&
                             strstr(test_log.newest, "vkCmdFillBuffer")));
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(baked_equals_one_by_one),   TEST_CASE(opposite_order_where_it_may),
    TEST_CASE(split_into_submits),        TEST_CASE(cut_by_what_is_known),
    TEST_CASE(phases_across_submits),     TEST_CASE(a_missing_hazard_is_found),
    TEST_CASE(validation_sees_a_mistake),
};
TEST_SUITE(schedule, true, cases);
