// SPDX-License-Identifier: Apache-2.0
// Baking and replaying: barriers stand where a dependence is and nowhere else, and a graph runs as
// often as it is asked to.
#include "kits/graph_kit.h"

#include <string.h>

#include "base/log.h"

// ---- hazards ----

static uint32_t barriers_of(struct grt_graph *graph) {
    assert_true(grt_graph_finish(graph));
    uint32_t barriers = grt_graph_stats(graph).barriers;
    grt_graph_destroy(&graph);
    return barriers;
}

// Two commands over ranges [x, x + size) and [y, y + size) of one buffer.
static uint32_t pair(bool first_writes, uint64_t x, bool second_writes, uint64_t y, uint64_t size) {
    struct grt_graph *graph = kit_graph();
    uint64_t offsets[2] = {x, y};
    bool writing[2] = {first_writes, second_writes};
    for (int i = 0; i < 2; i++) {
        struct grt_range range = kit_part(kit.a, offsets[i], size);
        // Reads go to places of b that no other command touches.
        struct grt_range aside = kit_part(kit.b, (uint64_t)i * KIT_BYTES / 2, size);
        grt_graph_copy(graph, writing[i] ? range : aside, writing[i] ? aside : range);
    }
    return barriers_of(graph);
}

static void dependences_by_byte_range(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        for (int second = 0; second < 2; second++) {
            uint32_t conflict = first || second ? 1 : 0;
            assert_int_equal(pair(first, 0, second, 0, 64), conflict);
            assert_int_equal(pair(first, 0, second, 60, 64), conflict);  // one word in common
            assert_int_equal(pair(first, 60, second, 0, 64), conflict);
            assert_int_equal(pair(first, 0, second, 64, 64), 0);  // neighbours
            assert_int_equal(pair(first, 64, second, 0, 64), 0);
            assert_int_equal(pair(first, 0, second, 4096, 64), 0);
        }
    }
}

static void dependences_of_dispatches(void **state) {
    (void)state;
    uint32_t n = kit.step / 4;
    struct grt_graph *graph = kit_graph();
    kit_copy(graph, kit_part(kit.b, 0, kit.step), kit_part(kit.a, 0, kit.step), n);
    kit_copy(graph, kit_part(kit.b, kit.step, kit.step), kit_part(kit.a, 0, kit.step),
             n);  // reads the same: none
    kit_copy(graph, kit_part(kit.a, kit.step, kit.step), kit_part(kit.b, kit.step, kit.step),
             n);  // RAW
    kit_copy(graph, kit_part(kit.b, 2 * kit.step, kit.step), kit_part(kit.a, 0, kit.step),
             n);  // none
    kit_copy(graph, kit_part(kit.a, 0, kit.step), kit_part(kit.b, 3 * kit.step, kit.step),
             n);                                                                     // WAR
    grt_graph_fill(graph, kit_part(kit.a, 0, 4), 1);                                 // WAW
    grt_graph_copy(graph, kit_part(kit.a, 4 * kit.step, 4), kit_part(kit.a, 0, 4));  // RAW
    assert_int_equal(barriers_of(graph), 4);
}

// A barrier covers all that came before it: no second one for an older dependence.
static void one_barrier_serves_all_before(void **state) {
    (void)state;
    struct grt_graph *graph = kit_graph();
    for (uint32_t i = 0; i < 8; i++) {
        grt_graph_fill(graph, kit_part(kit.a, i * 64, 64), i);
    }
    for (uint32_t i = 0; i < 8; i++) {
        grt_graph_copy(graph, kit_part(kit.b, i * 64, 64), kit_part(kit.a, i * 64, 64));
    }
    assert_true(grt_graph_bake(graph));
    struct grt_graph_stats stats = grt_graph_stats(graph);
    assert_int_equal(stats.commands, 16);
    assert_int_equal(stats.dispatches, 0);
    assert_int_equal(stats.phases, 0);
    assert_int_equal(stats.segments, 1);
    assert_int_equal(stats.runs, 0);
    assert_int_equal(barriers_of(graph), 1);
}

// ---- running ----

static void upload_compute_readback(void **state) {
    (void)state;
    uint32_t *from = grt_buf_host(kit.up);
    uint32_t *to = grt_buf_host(kit.down);
    struct grt_graph *graph = kit_graph();
    grt_graph_copy(graph, kit_whole(kit.a), kit_whole(kit.up));
    kit_copy(graph, kit_whole(kit.b), kit_whole(kit.a), KIT_WORDS);
    grt_graph_fill(graph, kit_part(kit.b, 4, 8), 0xdeadbeef);
    grt_graph_copy(graph, kit_whole(kit.down), kit_whole(kit.b));
    assert_true(grt_graph_bake(graph));
    for (uint32_t run = 0; run < 20; run++) {
        for (uint32_t i = 0; i < KIT_WORDS; i++) {
            from[i] = i * 77 + run;
        }
        assert_true(grt_graph_run(graph));
        assert_true(grt_dev_wait(test.dev));
        for (uint32_t i = 0; i < KIT_WORDS; i++) {
            assert_int_equal(to[i], i == 1 || i == 2 ? 0xdeadbeef : i * 77 + run);
        }
    }
    assert_int_equal(grt_graph_stats(graph).runs, 20);
    grt_graph_destroy(&graph);
}

// Counts on the device: each run must see what the one before it wrote.
static void replayed_without_waiting(void **state) {
    (void)state;
    uint32_t runs = test.small ? 20 : 1000;
    const struct grt_kernel *tick = grt_kernel_get(test.dev, grt_kernel_desc(.name = "tick"));
    assert_non_null(tick);
    uint32_t zero[4] = {0};
    assert_true(grt_buf_write(kit.a, 0, zero, sizeof zero));
    struct grt_graph *graph = kit_graph();
    uint32_t params[1] = {3};
    grt_graph_dispatch(graph, grt_dispatch(.kernel = tick, .bindings = {kit_whole(kit.a)},
                                           .params = params, .params_size = sizeof params));
    kit_copy(graph, kit_whole(kit.b), kit_whole(kit.a), KIT_WORDS);
    assert_true(grt_graph_bake(graph));
    for (uint32_t i = 0; i < runs; i++) {
        assert_true(grt_graph_run(graph));
    }
    uint32_t words[4] = {0};
    assert_true(grt_buf_read(kit.b, 0, words, sizeof words));  // waits
    assert_int_equal(words[2], 3 * runs);
    assert_int_equal(grt_graph_stats(graph).runs, runs);
    grt_graph_destroy(&graph);
}

// After its first runs, which may cut it anew, a graph takes no memory of the host's or the
// device's.
static void runs_without_allocating(void **state) {
    (void)state;
    struct test_tensor x = test_tensor(test.dev, GRT_F32, 1000, 0);
    struct test_tensor sum = test_tensor(test.dev, GRT_F32, 1, 0);
    struct grt_reduce_desc desc = {.reduce = GRT_REDUCE_SUM, .y = &sum.tensor, .x = &x.tensor};
    uint64_t bytes = grt_op_reduce_scratch(test.dev, &desc);
    struct grt_buf *scratch = test_buf(test.dev, bytes > 4 ? bytes : 4, GRT_BUF_DEVICE);
    desc.scratch = (struct grt_range){scratch, 0, 0};
    struct grt_graph *graph = kit_graph();
    grt_graph_phase(graph, "data");
    grt_graph_copy(graph, kit_whole(kit.a), kit_whole(kit.up));
    kit_copy(graph, kit_whole(kit.b), kit_whole(kit.a), KIT_WORDS);
    grt_graph_phase(graph, "sum");
    grt_op_fill(graph, &x.tensor, 0.5f);
    grt_op_reduce(graph, &desc);  // has shared memory
    grt_graph_copy(graph, kit_whole(kit.down), kit_whole(kit.b));
    assert_true(grt_graph_bake(graph));
    struct grt_phase_time times[2] = {0};
    uint64_t before = 0;
    struct grt_mem_use use = {0};
    for (int run = 0; run < 20; run++) {
        if (run == 4) {
            before = test_allocations();
            use = grt_dev_mem_use(test.dev, NULL);
        }
        assert_true(grt_graph_run(graph) && grt_graph_run(graph) && grt_dev_wait(test.dev));
        grt_graph_times(graph, times, 2);
    }
    assert_true(before > 0);
    assert_int_equal(test_allocations() - before, 0);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).buffers, use.buffers);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).peak, use.peak);
    float got = 0;
    test_tensor_read(&sum, &got);
    assert_true(got == 500.0f);
    grt_graph_destroy(&graph);
    grt_buf_destroy(&scratch);
    test_tensor_end(&x);
    test_tensor_end(&sum);
}

// Two graphs in turn, queued without waits: in order of their runs.
static void graphs_follow_each_other(void **state) {
    (void)state;
    struct grt_graph *forth = kit_graph();
    struct grt_graph *back = kit_graph();
    grt_graph_fill(forth, kit_part(kit.a, 0, 4), 17);
    grt_graph_copy(forth, kit_part(kit.a, 4, KIT_BYTES - 4), kit_part(kit.b, 0, KIT_BYTES - 4));
    grt_graph_copy(back, kit_whole(kit.b), kit_whole(kit.a));
    assert_true(grt_graph_bake(forth) && grt_graph_bake(back));
    for (int i = 0; i < 64; i++) {
        assert_true(grt_graph_run(forth) && grt_graph_run(back));
    }
    uint32_t words[64];
    assert_true(grt_buf_read(kit.b, 0, words, sizeof words));
    for (int i = 0; i < 64; i++) {
        assert_int_equal(words[i], 17);
    }
    grt_graph_destroy(&forth);
    grt_graph_destroy(&back);
}

struct turns {
    uint32_t count, fails_at;
    uint64_t numbers[8];
};

// What the device wrote before is there, and what the host writes is read after.
static bool add_one(void *context, uint64_t number) {
    struct turns *t = context;
    *(uint32_t *)grt_buf_host(kit.up) = *(uint32_t *)grt_buf_host(kit.down) + 1;
    t->numbers[t->count++ % 8] = number;
    return t->count != t->fails_at;
}

// A host that counts on: before the first command, between commands, twice in a row, and behind the
// last.
static void turns_of_the_host(void **state) {
    (void)state;
    struct turns turns = {0};
    struct grt_range a = kit_part(kit.a, 0, 4);
    uint32_t word = 0;
    *(uint32_t *)grt_buf_host(kit.down) = 0;
    assert_true(grt_buf_write(kit.a, 0, &word, 4));
    struct grt_graph *graph = kit_graph();
    grt_graph_host(graph, add_one, &turns, 7);
    for (uint32_t i = 0; i < 2; i++) {
        grt_graph_copy(graph, kit_part(kit.down, 0, 4), a);
        grt_graph_host(graph, add_one, &turns, i);
        grt_graph_copy(graph, a, kit_part(kit.up, 0, 4));
    }
    grt_graph_host(graph, add_one, &turns, 8);
    grt_graph_host(graph, add_one, &turns, 9);
    assert_true(grt_graph_bake(graph));
    assert_int_equal(grt_graph_stats(graph).hosts, 5);
    assert_int_equal(grt_graph_stats(graph).segments, 3);
    static const uint64_t numbers[] = {7, 0, 1, 8, 9};
    for (uint32_t run = 1; run <= 4; run++) {
        turns.count = 0;
        assert_true(grt_graph_run(graph));
        assert_int_equal(turns.count, 5);
        assert_memory_equal(turns.numbers, numbers, sizeof numbers);
        assert_true(grt_buf_read(kit.a, 0, &word, 4));
        assert_int_equal(word, 2 * run);
    }
    // One that fails ends the run: what comes behind it is not done.
    turns = (struct turns){.fails_at = 2};
    assert_false(grt_graph_run(graph));
    assert_int_equal(turns.count, 2);
    assert_true(grt_buf_read(kit.a, 0, &word, 4));
    assert_int_equal(word, 8);
    grt_graph_destroy(&graph);
    graph = kit_graph();
    grt_graph_host(graph, NULL, NULL, 0);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "nothing to call");
    grt_graph_destroy(&graph);
    graph = kit_graph();
    grt_graph_aside(graph);
    grt_graph_copy(graph, a, kit_part(kit.up, 0, 4));
    grt_graph_host(graph, add_one, &turns, 0);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "the host has no turn");
    grt_graph_destroy(&graph);
}

static void phases(void **state) {
    (void)state;
    static const char *const names[3] = {"first", "second", "empty"};
    struct grt_graph *graph = kit_graph();
    grt_graph_fill(graph, kit_whole(kit.a), 1);  // before any phase
    grt_graph_phase(graph, names[0]);
    kit_copy(graph, kit_whole(kit.b), kit_whole(kit.a), KIT_WORDS);
    grt_graph_phase(graph, names[1]);
    kit_copy(graph, kit_whole(kit.a), kit_whole(kit.b), KIT_WORDS);
    grt_graph_phase(graph, names[2]);
    struct grt_phase_time times[4] = {0};
    assert_true(grt_graph_bake(graph));
    assert_int_equal(grt_graph_stats(graph).phases, 3);
    for (int run = 0; run < 3; run++) {
        assert_true(grt_graph_run(graph));
        uint32_t count = grt_graph_times(graph, times, 4);
        assert_int_equal(count, grt_dev_info(test.dev)->caps.timestamps ? 3 : 0);
        for (uint32_t i = 0; i < count && i < 3; i++) {
            assert_string_equal(times[i].name, names[i]);
            assert_true(times[i].seconds >= 0 && times[i].seconds < 60);
        }
        times[1].name = NULL;
        assert_int_equal(grt_graph_times(graph, times, 1), count);
        assert_null(times[1].name);  // capacity is kept
    }
    grt_graph_destroy(&graph);
    graph = kit_graph();
    grt_graph_fill(graph, kit_whole(kit.a), 1);
    assert_true(grt_graph_finish(graph));
    assert_int_equal(grt_graph_times(graph, times, 4), 0);
    grt_graph_destroy(&graph);
}

// A baked graph keeps its buffers: also when their owner lets go first.
static void buffer_destroyed_before_its_graph(void **state) {
    (void)state;
    uint64_t before = grt_dev_mem_use(test.dev, NULL).current;
    struct grt_buf *middle = test_buf(test.dev, KIT_BYTES, GRT_BUF_DEVICE);
    struct grt_graph *graph = kit_graph();
    grt_graph_fill(graph, kit_whole(middle), 99);
    kit_copy(graph, kit_whole(kit.b), kit_whole(middle), KIT_WORDS);
    assert_true(grt_graph_bake(graph));
    grt_buf_destroy(&middle);
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before + KIT_BYTES);
    assert_true(grt_graph_run(graph));
    assert_true(grt_graph_run(graph));
    grt_graph_destroy(&graph);  // waits for the runs
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, before);
    uint32_t word = 0;
    assert_true(grt_buf_read(kit.b, KIT_BYTES - 4, &word, 4));
    assert_int_equal(word, 99);
}

// ---- told while it runs ----

struct listener {
    struct grt_graph *look;  // copies the first words of a
    const uint32_t *words;
    uint32_t count, numbers[3], seen[3][3];
    bool refuses;
};

static bool hear(void *context, uint32_t number) {
    struct listener *l = context;
    assert_true(l->count < 3);
    assert_true(grt_graph_finish(l->look));
    memcpy(l->seen[l->count], l->words, sizeof l->seen[0]);
    l->numbers[l->count++] = number;
    return !l->refuses || grt_fail(GRT_IO, "no more");
}

// Behind the last command that uses a range, and before the next: what is queued then sees the
// former and not the latter. A range that is only read counts as used, and one that nobody uses is
// told of, too.
static void told_behind_last_use(void **state) {
    (void)state;
    struct grt_buf *back = grt_buf_create(
        test.dev, grt_buf_desc(.size = 12, .kind = GRT_BUF_READBACK, .label = "test"));
    struct listener l = {.look = kit_graph(), .words = grt_buf_host(back)};
    grt_graph_copy(l.look, (struct grt_range){back, 0, 12}, kit_part(kit.a, 0, 12));
    const struct grt_range ranges[] = {kit_part(kit.a, 4, 4), kit_part(kit.a, 0, 4),
                                       kit_part(kit.a, 12, 4)};
    struct grt_graph *graph = kit_graph();
    const uint32_t places[] = {0, 4, 0, 4, 8};
    for (uint32_t i = 0; i < 5; i++) {
        grt_graph_fill(graph, kit_part(kit.a, places[i], 4), i + 1);
        if (i == 3) {
            grt_graph_copy(graph, kit_part(kit.b, 0, 4), kit_part(kit.a, 0, 4));
        }
    }
    grt_graph_tell(graph, &(struct grt_graph_tell){ranges, 3, hear, &l});
    assert_true(grt_graph_bake(graph));
    for (int run = 0; run < 3; run++) {  // the first is timed, the second cut anew
        const uint32_t zero[3] = {0};
        assert_true(grt_buf_write(kit.a, 0, zero, sizeof zero));
        l.count = 0;
        assert_true(grt_graph_run(graph));
        const uint32_t numbers[] = {2, 0, 1}, seen[3][3] = {{1, 0, 0}, {3, 4, 0}, {3, 4, 0}};
        assert_int_equal(l.count, 3);
        assert_memory_equal(l.numbers, numbers, sizeof numbers);
        assert_memory_equal(l.seen, seen, sizeof seen);
    }
    l.refuses = true;
    l.count = 0;
    TEST_REFUSED(grt_graph_run(graph), GRT_IO, "no more");
    assert_int_equal(l.count, 1);
    grt_graph_destroy(&graph);
    graph = kit_graph();
    grt_graph_tell(graph, NULL);
    TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, "tell: no ranges");
    grt_graph_destroy(&graph);
    grt_graph_destroy(&l.look);
    grt_buf_destroy(&back);
}

static const struct CMUnitTest cases[] = {
    KIT_CASE(dependences_by_byte_range),
    KIT_CASE(dependences_of_dispatches),
    KIT_CASE(one_barrier_serves_all_before),
    KIT_CASE(upload_compute_readback),
    KIT_CASE(replayed_without_waiting),
    KIT_CASE(runs_without_allocating),
    KIT_CASE(graphs_follow_each_other),
    KIT_CASE(phases),
    KIT_CASE(buffer_destroyed_before_its_graph),
    KIT_CASE(turns_of_the_host),
    KIT_CASE(told_behind_last_use),
};
TEST_SUITE(graph, true, cases);
