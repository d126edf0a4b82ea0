// SPDX-License-Identifier: Apache-2.0
// Lanes: uploads beside the main work land where and when marks say, whatever runs meanwhile.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 1 << 14, ROUNDS = 40, HOLD = 12 };

// Two places take turns. The main lane copies what it finds in a place into a log, behind work that
// holds it up; so an upload that came too early, or a copy that did not wait, leaves a wrong word.
struct turns {
    struct grt_buf *sources[ROUNDS], *place[2], *log, *ballast[2];
    struct grt_graph *up[ROUNDS], *keep[ROUNDS];
};

static void make_turns(struct turns *t) {
    const uint64_t bytes = 4ull * WORDS;
    t->log = test_buf(test.dev, ROUNDS * bytes, GRT_BUF_DEVICE);
    for (int i = 0; i < 2; i++) {
        t->place[i] = test_buf(test.dev, bytes, GRT_BUF_DEVICE);
        t->ballast[i] = test_buf(test.dev, bytes, GRT_BUF_DEVICE);
    }
    for (uint32_t k = 0; k < ROUNDS; k++) {
        t->sources[k] = test_buf(test.dev, bytes, GRT_BUF_UPLOAD);
        uint32_t *words = grt_buf_host(t->sources[k]);
        for (uint32_t i = 0; i < WORDS; i++) {
            words[i] = k << 16 ^ i;
        }
        t->up[k] = grt_graph_create(test.dev, "up");
        grt_graph_aside(t->up[k]);
        grt_graph_copy(t->up[k], (struct grt_range){t->place[k % 2]},
                       (struct grt_range){t->sources[k]});
        t->keep[k] = grt_graph_create(test.dev, "keep");
        for (uint32_t i = 0; i < HOLD; i++) {
            grt_graph_copy(t->keep[k], (struct grt_range){t->ballast[i % 2]},
                           (struct grt_range){t->ballast[1 - i % 2]});
        }
        grt_graph_copy(t->keep[k], (struct grt_range){t->log, k * bytes, bytes},
                       (struct grt_range){t->place[k % 2]});
        assert_true(grt_graph_bake(t->up[k]) && grt_graph_bake(t->keep[k]));
    }
}

static void end_turns(struct turns *t) {
    for (uint32_t k = 0; k < ROUNDS; k++) {
        grt_graph_destroy(&t->up[k]);
        grt_graph_destroy(&t->keep[k]);
        grt_buf_destroy(&t->sources[k]);
    }
    for (int i = 0; i < 2; i++) {
        grt_buf_destroy(&t->place[i]);
        grt_buf_destroy(&t->ballast[i]);
    }
    grt_buf_destroy(&t->log);
}

static void uploads_take_turns(void **state) {
    (void)state;
    struct turns t;
    make_turns(&t);
    uint32_t *got = test_alloc(4ull * ROUNDS * WORDS);
    // The first round times each graph and waits for it; in the others all are in flight, in the
    // last two held where nothing lies between.
    for (int round = 0; round < 4; round++) {
        assert_true(grt_dev_hold(test.dev, round >= 2));
        uint64_t read[2] = {0};
        memset(got, 0xff, 4ull * ROUNDS * WORDS);
        assert_true(grt_buf_write(t.log, 0, got, 4ull * ROUNDS * WORDS));
        for (uint32_t k = 0; k < ROUNDS; k++) {
            assert_true(grt_dev_after(test.dev, GRT_LANE_ASIDE, read[k % 2]));
            assert_true(grt_graph_run(t.up[k]));
            uint64_t sent = grt_dev_mark(test.dev, GRT_LANE_ASIDE);
            assert_true(grt_dev_after(test.dev, GRT_LANE_MAIN, sent));
            assert_true(grt_graph_run(t.keep[k]));
            read[k % 2] = grt_dev_mark(test.dev, GRT_LANE_MAIN);
        }
        assert_true(grt_dev_hold(test.dev, round == 2));
        assert_true(grt_dev_wait(test.dev));
        assert_true(grt_dev_passed(test.dev, GRT_LANE_MAIN, read[0]) &&
                    grt_dev_passed(test.dev, GRT_LANE_MAIN, read[1]));
        assert_true(grt_buf_read(t.log, 0, got, 4ull * ROUNDS * WORDS));
        struct test_compare c = test_compare(test.dev, "lanes, round %d", round);
        for (uint64_t i = 0; i < (uint64_t)ROUNDS * WORDS; i++) {
            test_compare_bits(&c, i, got[i], (uint32_t)(i / WORDS) << 16 ^ (uint32_t)(i % WORDS));
        }
        test_compare_end(&c);
    }
    free(got);
    end_turns(&t);
}

// Graphs that are held run in order, more than go out together too, and every mark is reached by
// whoever waits for it or asks.
static void held_graphs_run(void **state) {
    (void)state;
    enum { GRAPHS = 70 };
    struct grt_buf *bufs[GRAPHS + 1];
    struct grt_graph *graphs[GRAPHS];
    uint64_t marks[GRAPHS];
    uint32_t got = 0;
    bufs[0] = test_buf(test.dev, 64, GRT_BUF_DEVICE);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        bufs[i + 1] = test_buf(test.dev, 64, GRT_BUF_DEVICE);
        graphs[i] = grt_graph_create(test.dev, "chain");
        grt_graph_copy(graphs[i], (struct grt_range){bufs[i + 1]}, (struct grt_range){bufs[i]});
        assert_true(grt_graph_finish(graphs[i]) && grt_graph_finish(graphs[i]));
    }
    for (uint32_t round = 1; round <= 3; round++) {
        uint32_t words[16] = {round};
        assert_true(grt_buf_write(bufs[0], 0, words, sizeof words));
        assert_true(grt_dev_hold(test.dev, true));
        for (uint32_t i = 0; i < GRAPHS; i++) {
            assert_true(grt_graph_run(graphs[i]));
            marks[i] = grt_dev_mark(test.dev, GRT_LANE_MAIN);
            assert_true(i == 0 || marks[i] >= marks[i - 1]);
        }
        if (round == 1) {
            assert_true(grt_dev_wait_for(test.dev, GRT_LANE_MAIN, marks[GRAPHS - 1]));
            assert_true(grt_dev_passed(test.dev, GRT_LANE_MAIN, marks[0]));
        } else if (round == 2) {
            while (!grt_dev_passed(test.dev, GRT_LANE_MAIN, marks[GRAPHS - 1])) {
            }
        }
        assert_true(grt_dev_hold(test.dev, false));
        assert_true(grt_buf_read(bufs[GRAPHS], 0, &got, sizeof got));
        assert_int_equal(got, round);
    }
    for (uint32_t i = 0; i < GRAPHS; i++) {
        grt_graph_destroy(&graphs[i]);
        grt_buf_destroy(&bufs[i]);
    }
    grt_buf_destroy(&bufs[GRAPHS]);
}

// What goes to the driver together takes no longer than a submit may, by what is known of it.
static void held_graphs_keep_the_limit(void **state) {
    (void)state;
    enum { COMMANDS = 8, RUNS = 4, WIDE = 256 };
    static const struct {
        double seconds;  // of one run
        uint32_t segments, submits;
    } rows[] = {{0.01, 1, 1}, {0.03, 1, 2}, {0.07, 1, 4}, {0.19, 2, 8}, {0.79, 8, 32}, {8, 8, 32}};
    bool counts = grt_dev_info(test.dev)->backend == GRT_BACKEND_VULKAN;  // marks count submits
    struct grt_dev *dev = grt_dev_create(
        grt_dev_desc(.device = grt_dev_info(test.dev)->selector, .max_submit_ms = 100));
    assert_non_null(dev);
    struct grt_buf *buf = test_buf(dev, WIDE * COMMANDS, GRT_BUF_DEVICE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_graph *graph = grt_graph_create(dev, "known");
        for (uint32_t k = 0; k < COMMANDS; k++) {
            grt_graph_fill(graph, (struct grt_range){buf, (uint64_t)WIDE * k, WIDE},
                           (uint32_t)i + k);
        }
        assert_true(grt_graph_bake(graph) && grt_graph_expect(graph, rows[i].seconds));
        uint64_t before = grt_dev_mark(dev, GRT_LANE_MAIN);
        assert_true(grt_dev_hold(dev, true));
        for (int run = 0; run < RUNS; run++) {
            assert_true(grt_graph_run(graph));
        }
        assert_true(grt_dev_hold(dev, false));
        uint64_t after = grt_dev_mark(dev, GRT_LANE_MAIN);
        assert_int_equal(grt_graph_stats(graph).segments, rows[i].segments);
        assert_true(!counts || after - before == rows[i].submits);
        uint32_t got[COMMANDS * WIDE / 4];
        assert_true(grt_buf_read(buf, 0, got, sizeof got));
        for (uint32_t k = 0; k < COMMANDS * WIDE / 4; k++) {
            assert_int_equal(got[k], i + k / (WIDE / 4));
        }
        grt_graph_destroy(&graph);
    }
    grt_buf_destroy(&buf);
    grt_dev_destroy(&dev);
}

// A blocking transfer comes after both lanes.
static void reading_waits_for_both(void **state) {
    (void)state;
    struct grt_buf *from = test_buf(test.dev, 64, GRT_BUF_UPLOAD);
    struct grt_buf *to = test_buf(test.dev, 64, GRT_BUF_DEVICE);
    struct grt_graph *graph = grt_graph_create(test.dev, "up");
    grt_graph_copy(graph, (struct grt_range){to}, (struct grt_range){from});
    grt_graph_aside(graph);
    assert_true(grt_graph_bake(graph));
    for (uint32_t i = 1; i < 50; i++) {
        uint32_t *words = grt_buf_host(from), got[16];
        for (uint32_t k = 0; k < 16; k++) {
            words[k] = i * k;
        }
        assert_true(grt_graph_run(graph));
        assert_true(grt_buf_read(to, 0, got, sizeof got));
        assert_memory_equal(got, words, sizeof got);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&from);
    grt_buf_destroy(&to);
}

// Parts of buffers, from anywhere to anywhere else: a lane of a driver on a CPU copies by itself.
static void parts_of_buffers(void **state) {
    (void)state;
    struct grt_buf *from = test_buf(test.dev, 4096, GRT_BUF_UPLOAD);
    struct grt_buf *to = test_buf(test.dev, 4096, GRT_BUF_DEVICE);
    uint32_t *words = grt_buf_host(from), got[1024], want[1024];
    for (uint32_t i = 0; i < 1024; i++) {
        words[i] = 1000 + i;
        want[i] = i;
    }
    assert_true(grt_buf_write(to, 0, want, sizeof want));
    struct grt_graph *graph = grt_graph_create(test.dev, "parts");
    grt_graph_aside(graph);
    static const uint32_t parts[][3] = {{64, 256, 16}, {512, 0, 48}, {960, 704, 64}};
    for (size_t i = 0; i < 3; i++) {
        uint64_t dst = 4 * parts[i][0], src = 4 * parts[i][1], size = 4 * parts[i][2];
        grt_graph_copy(graph, (struct grt_range){to, dst, size},
                       (struct grt_range){from, src, size});
        memcpy(want + parts[i][0], words + parts[i][1], size);
    }
    assert_true(grt_graph_bake(graph) && grt_graph_run(graph));
    assert_true(grt_buf_read(to, 0, got, sizeof got));
    assert_memory_equal(got, want, sizeof got);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&from);
    grt_buf_destroy(&to);
}

// Between two buffers of the host, more than a driver takes at once, not from the beginning.
static void from_host_to_host(void **state) {
    (void)state;
    const uint64_t size = (5ull << 20) + 64, from_at = 128, to_at = 256;
    struct grt_buf *from = test_buf(test.dev, size + 512, GRT_BUF_UPLOAD);
    struct grt_buf *to = test_buf(test.dev, size + 512, GRT_BUF_READBACK);
    uint32_t *words = grt_buf_host(from), *got = grt_buf_host(to);
    for (uint32_t i = 0; i < (size + 512) / 4; i++) {
        words[i] = i * 2654435761u;
        got[i] = 7;
    }
    struct grt_graph *graph = grt_graph_create(test.dev, "from host to host");
    grt_graph_copy(graph, (struct grt_range){to, to_at, size},
                   (struct grt_range){from, from_at, size});
    assert_true(grt_graph_finish(graph));
    assert_memory_equal((char *)got + to_at, (const char *)words + from_at, size);
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(got[i], 7);
        assert_int_equal(got[(to_at + size) / 4 + i], 7);
    }
    grt_graph_destroy(&graph);
    grt_buf_destroy(&from);
    grt_buf_destroy(&to);
}

static void refusals(void **state) {
    (void)state;
    struct grt_buf *buf = test_buf(test.dev, 64, GRT_BUF_DEVICE);
    struct grt_graph *graph = grt_graph_create(test.dev, "not a copy");
    grt_graph_aside(graph);
    grt_graph_fill(graph, (struct grt_range){buf}, 1);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "only copies from upload to device");
    grt_graph_destroy(&graph);
    grt_buf_destroy(&buf);
    TEST_REFUSED(grt_dev_after(test.dev, GRT_LANE_COUNT, 1), GRT_INVALID, "no such lane");
    TEST_REFUSED(grt_dev_hold(NULL, true), GRT_INVALID, "no device");
    TEST_REFUSED(grt_dev_passed(NULL, GRT_LANE_MAIN, 1), GRT_INVALID, "no such device");
    assert_true(grt_dev_lanes(test.dev) >= 1 && grt_dev_lanes(test.dev) <= 2);
    // PoCL and lavapipe have a lane for uploads; the C reading does all in order.
    enum grt_backend_id backend = grt_dev_info(test.dev)->backend;
    assert_true(backend != GRT_BACKEND_REF || grt_dev_lanes(test.dev) == 1);
    assert_true(backend != GRT_BACKEND_OPENCL || grt_dev_lanes(test.dev) == 2);
    assert_true(grt_dev_passed(test.dev, GRT_LANE_ASIDE, 0));
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(uploads_take_turns),
    TEST_CASE(held_graphs_run),
    TEST_CASE(held_graphs_keep_the_limit),
    TEST_CASE(reading_waits_for_both),
    TEST_CASE(parts_of_buffers),
    TEST_CASE(from_host_to_host),
    TEST_CASE(refusals),
};
TEST_SUITE(lanes, true, cases);
