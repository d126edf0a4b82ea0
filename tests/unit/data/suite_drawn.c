// SPDX-License-Identifier: Apache-2.0
// Rows that stay on the device: a kernel finds which one comes when, and must come to what the host
// would have drawn.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "data/order.h"
#include "nn/layer_ops.h"
#include "gpurt/learner.h"

#define MOST_ROWS 3000u
#define MOST_DROPPED 5u
#define EPOCHS 3u  // of a table

// One drawing of an epoch.
struct drawing {
    struct grt_order order;
    struct grt_draw draw;
    uint64_t dropped[MOST_DROPPED];
    uint64_t file_rows, rows;
    uint32_t first_epoch;  // of the table,
    uint32_t epoch;        // and the one in it that is drawn
};

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

// Sizes of all kinds: rows alone, units of compressed chunks with rows that fill none, parts, rows
// left out.
static struct drawing draw_one(uint32_t *seed) {
    struct drawing d = {.first_epoch = next(seed) % 100000, .epoch = next(seed) % EPOCHS};
    uint64_t rows = 1 + next(seed) % (next(seed) % 4 == 0 ? 12 : MOST_ROWS - MOST_DROPPED);
    uint64_t unit = next(seed) % 3 == 0 ? 2 + next(seed) % 90 : 1;
    double split = next(seed) % 2 == 0 ? 0.05 * (1 + next(seed) % 10) : 0;
    d.order = grt_order(rows, unit, split, next(seed));
    d.order.dropped_count = next(seed) % 2 == 0 ? next(seed) % (MOST_DROPPED + 1) : 0;
    d.file_rows = rows + d.order.dropped_count;
    for (uint64_t i = 0; i < d.order.dropped_count; i++) {
        d.dropped[i] = i + (i + 1) * rows / (MOST_DROPPED + 2);
    }
    d.draw = (struct grt_draw){.part = (enum grt_part)(next(seed) % GRT_PART_COUNT),
                               .shuffle = next(seed) % 5 != 0,
                               .seed = next(seed),
                               .window = 1 + next(seed) % 20};
    d.rows = grt_order_rows(&d.order, d.draw.part);
    return d;
}

// A launch: rows `cursor` and up of an epoch.
struct launch {
    struct grt_gathering gathering;
    struct grt_range numbers;
};
static void record_launch(struct grt_graph *graph, void *context) {
    struct launch *launch = context;
    grt_op_gather(graph, &launch->gathering);
    grt_op_draw(graph, &launch->gathering, launch->numbers);
}

// What the device finds at positions cursor .. rows - 1; `file` holds the number of each row.
static void ask_device(const struct drawing *d, const struct grt_tensor *file, uint64_t cursor,
                       uint32_t *got) {
    uint64_t record = grt_order_record(&d->order, &d->draw), count = d->rows - cursor;
    struct test_tensor table = test_tensor(test.dev, GRT_U32, EPOCHS * record, 0);
    struct test_tensor dropped = test_tensor(test.dev, GRT_U32, MOST_DROPPED, 0);
    struct test_tensor to = test_tensor(test.dev, GRT_U32, count, 0);
    struct test_tensor numbers = test_tensor(test.dev, GRT_U32, count, 0);
    struct test_tensor state = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    uint32_t *words = test_alloc(4 * EPOCHS * record), left_out[MOST_DROPPED] = {0};
    for (uint32_t i = 0; i < EPOCHS; i++) {
        grt_order_words(&d->order, &d->draw, d->first_epoch + i, words + i * record);
    }
    for (uint64_t i = 0; i < d->order.dropped_count; i++) {
        left_out[i] = (uint32_t)d->dropped[i];
    }
    struct grt_learn_state learn = {.epoch = d->epoch, .cursor = (uint32_t)cursor};
    test_tensor_write(&table, words);
    test_tensor_write(&dropped, left_out);
    test_tensor_write(&state, &learn);
    struct grt_step_rows rows = {
        .x = *file, .order = table.tensor, .dropped = dropped.tensor, .record = (uint32_t)record};
    struct launch launch = {.gathering = {.from = &rows,
                                          .state = &state.tensor,
                                          .rows = count,
                                          .batch = count,
                                          .x_step = 4 * count,
                                          .x = to.tensor.range},
                            .numbers = numbers.tensor.range};
    test_run(test.dev, record_launch, &launch);
    test_tensor_read(&to, got);
    // What is gathered are the numbers of rows, which can also be had by themselves.
    uint32_t *alone = test_alloc(4 * count);
    test_tensor_read(&numbers, alone);
    assert_memory_equal(alone, got, 4 * count);
    free(alone);
    free(words);
    test_tensor_end(&numbers);
    test_tensor_end(&table);
    test_tensor_end(&dropped);
    test_tensor_end(&to);
    test_tensor_end(&state);
}

static void the_device_draws_what_the_host_does(void **state) {
    (void)state;
    uint32_t seed = 20, got[MOST_ROWS], later[MOST_ROWS];
    uint64_t want[MOST_ROWS];
    struct test_tensor numbers = test_tensor(test.dev, GRT_U32, MOST_ROWS, 0);
    for (uint32_t i = 0; i < MOST_ROWS; i++) {
        got[i] = i;
    }
    test_tensor_write(&numbers, got);
    for (int k = 0; k < 200; k++) {
        struct drawing d = draw_one(&seed);
        d.order.dropped = d.dropped;
        if (d.rows == 0) {
            continue;
        }
        uint8_t seen[MOST_ROWS] = {0};
        uint64_t cursor = d.rows / 3;
        ask_device(&d, &numbers.tensor, 0, got);
        ask_device(&d, &numbers.tensor, cursor, later);
        grt_order_draw(&d.order, &d.draw, d.first_epoch + d.epoch, 0, d.rows, want);
        for (uint64_t i = 0; i < d.rows; i++) {
            if (got[i] != want[i] || got[i] >= d.file_rows || seen[got[i]]++) {
                fail_msg(
                    "case %d, %llu rows of %llu, unit %llu: position %llu has row %u, the host "
                    "says %llu",
                    k, (unsigned long long)d.rows, (unsigned long long)d.file_rows,
                    (unsigned long long)d.order.unit, (unsigned long long)i, got[i],
                    (unsigned long long)want[i]);
            }
        }
        assert_memory_equal(later, got + cursor, 4 * (d.rows - cursor));
    }
    test_tensor_end(&numbers);
}

// More rows than a float, or half of a word, can count.
static void large_orders_are_the_same(void **state) {
    (void)state;
    static const uint64_t sizes[] = {65537, 2000003, 16777219};
    enum { ASKED = 300 };
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct drawing d = {
            .order = grt_order(sizes[k], 1, 0.25, 3), .first_epoch = 77, .epoch = 1};
        d.draw = (struct grt_draw){.part = GRT_PART_TRAIN, .shuffle = true, .seed = 4, .window = 1};
        d.rows = grt_order_rows(&d.order, d.draw.part);
        uint32_t *numbers = test_alloc(4 * sizes[k]), got[ASKED];
        uint64_t want[ASKED];
        for (uint32_t i = 0; i < sizes[k]; i++) {
            numbers[i] = i;
        }
        struct test_tensor file = test_tensor(test.dev, GRT_U32, sizes[k], 0);
        test_tensor_write(&file, numbers);
        ask_device(&d, &file.tensor, d.rows - ASKED, got);
        grt_order_draw(&d.order, &d.draw, 78, d.rows - ASKED, ASKED, want);
        for (int i = 0; i < ASKED; i++) {
            assert_int_equal(got[i], want[i]);
        }
        test_tensor_end(&file);
        free(numbers);
    }
}

static void record_wide(struct grt_graph *graph, void *context) {
    grt_op_gather(graph, context);
}

// Rows of widths around what a workgroup takes together, down to one row, in steps that lie apart.
static void wide_rows_come_whole(void **state) {
    (void)state;
    static const uint64_t widths[] = {1, 15, 17, 40, 255, 257, 1000, 5003};
    enum { ROWS = 70, BATCH = 30, STEPS = 2, PAD = 64 };
    for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
        uint64_t width = widths[k], step = BATCH * width + PAD;
        struct grt_order order = grt_order(ROWS, 1, 0, 3);
        struct grt_draw draw = {.part = GRT_PART_ALL, .shuffle = true, .seed = 11 + k, .window = 1};
        uint64_t record = grt_order_record(&order, &draw), want[STEPS * BATCH];
        struct test_tensor file = test_tensor(test.dev, GRT_U32, ROWS, width);
        struct test_tensor to = test_tensor(test.dev, GRT_U32, STEPS * step, 0);
        struct test_tensor table = test_tensor(test.dev, GRT_U32, record, 0);
        struct test_tensor learn = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
        uint32_t *numbers = test_alloc(4 * ROWS * width), *got = test_alloc(4 * STEPS * step);
        uint32_t *words = test_alloc(4 * record);
        struct grt_learn_state at = {.cursor = 5};
        for (uint64_t i = 0; i < ROWS * width; i++) {
            numbers[i] = (uint32_t)(i * 2654435761u);
        }
        grt_order_words(&order, &draw, 0, words);
        test_tensor_write(&file, numbers);
        test_tensor_write(&table, words);
        test_tensor_write(&learn, &at);
        struct grt_step_rows rows = {
            .x = file.tensor, .order = table.tensor, .record = (uint32_t)record};
        struct grt_gathering g = {.from = &rows,
                                  .state = &learn.tensor,
                                  .rows = STEPS * BATCH,
                                  .batch = BATCH,
                                  .x_step = 4 * step,
                                  .x = to.tensor.range};
        test_run(test.dev, record_wide, &g);
        test_tensor_read(&to, got);
        grt_order_draw(&order, &draw, 0, at.cursor, STEPS * BATCH, want);
        for (uint64_t i = 0; i < STEPS * BATCH; i++) {
            if (memcmp(got + i / BATCH * step + i % BATCH * width, numbers + want[i] * width,
                       4 * width) != 0) {
                fail_msg("width %llu: row %llu differs", (unsigned long long)width,
                         (unsigned long long)i);
            }
        }
        free(numbers);
        free(got);
        free(words);
        test_tensor_end(&file);
        test_tensor_end(&to);
        test_tensor_end(&table);
        test_tensor_end(&learn);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(the_device_draws_what_the_host_does),
    TEST_CASE(large_orders_are_the_same),
    TEST_CASE(wide_rows_come_whole),
};
TEST_SUITE(drawn, true, cases);
