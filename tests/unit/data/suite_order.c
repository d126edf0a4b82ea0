// SPDX-License-Identifier: Apache-2.0
// The order of rows: every row once, nothing that a seed does not decide, and no bias that counting
// finds.
#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/order.h"

// Numbers in a row, from the beginning and up to the end, by the call for many.
static void many_are_as_one(const struct grt_permutation *p) {
    uint64_t numbers[700], count = p->n < 700 ? p->n : 700;
    for (int end = 0; end < 2; end++) {
        uint64_t first = end ? p->n - count : 0;
        for (uint64_t i = 0; i < count; i++) {
            numbers[i] = first + i;
        }
        grt_permute_all(p, numbers, count);
        for (uint64_t i = 0; i < count; i++) {
            assert_true(numbers[i] == grt_permute(p, first + i));
        }
    }
}

static void permutations_hold_every_number_once(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100, 1023, 1024, 1025, 40000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t n = sizes[k];
        uint8_t *seen = test_alloc(n);
        memset(seen, 0, n);
        struct grt_permutation p = grt_permutation(n, 7 * k, k);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t j = grt_permute(&p, i);
            assert_true(j < n);
            assert_int_equal(seen[j]++, 0);
            assert_int_equal(grt_permute_back(&p, j), i);
        }
        free(seen);
        many_are_as_one(&p);
    }
    // Large ones can only be sampled.
    struct grt_permutation large = grt_permutation(3000000000000u, 5, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t j = grt_permute(&large, i * 2999999999u);
        assert_true(j < large.n);
        assert_int_equal(grt_permute_back(&large, j), i * 2999999999u);
    }
    many_are_as_one(&large);
    static const uint64_t edges[] = {65535,      65536,      65537,     2000000,
                                     4294967295, 4294967296, 4294967297};
    for (size_t k = 0; k < sizeof edges / sizeof edges[0]; k++) {
        struct grt_permutation p = grt_permutation(edges[k], k, 2);
        many_are_as_one(&p);
    }
}

// How often each number comes at each place, over many seeds: chi-square within six deviations.
static void no_place_prefers_a_number(void **state) {
    (void)state;
    static const uint64_t sizes[] = {2, 3, 5, 16, 17, 40};
    enum { SEEDS = 20000 };
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t n = sizes[k];
        uint32_t *counts = test_alloc(n * n * sizeof *counts);
        memset(counts, 0, n * n * sizeof *counts);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct grt_permutation p = grt_permutation(n, seed, 2);
            for (uint64_t i = 0; i < n; i++) {
                counts[i * n + grt_permute(&p, i)]++;
            }
        }
        double expected = (double)SEEDS / (double)n, chi = 0;
        for (uint64_t i = 0; i < n * n; i++) {
            chi += (counts[i] - expected) * (counts[i] - expected) / expected;
        }
        double freedom = (double)((n - 1) * (n - 1));
        if (fabs(chi - freedom) > 6 * sqrt(2 * freedom) + 6) {
            fail_msg("n = %llu: chi-square %f with %f degrees of freedom", (unsigned long long)n,
                     chi, freedom);
        }
        free(counts);
    }
}

// Neighbours must not stay neighbours: the mean distance of successors is a third of n.
static void neighbours_part(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct grt_permutation p = grt_permutation(10000, seed, 3);
        double sum = 0, together = 0;
        for (uint64_t i = 1; i < p.n; i++) {
            double d = fabs((double)grt_permute(&p, i) - (double)grt_permute(&p, i - 1));
            sum += d;
            together += d == 1;
        }
        assert_true(fabs(sum / 10000 - 10000.0 / 3) < 150);  // deviation of the mean is 24
        assert_true(together < 20);                          // 2 expected
    }
}

struct shape {
    uint64_t rows, unit;
    double split;
    uint64_t dropped;
};
static const struct shape shapes[] = {
    {1, 1, 0, 0},     {10, 1, 0, 0},       {10, 1, 0.3, 0},    {1000, 1, 0.2, 7},
    {1000, 64, 0, 0}, {1000, 64, 0.25, 0}, {1000, 64, 0.5, 3}, {1024, 64, 0.1, 0},
    {63, 64, 0, 0},   {129, 64, 0.4, 0},
};

// Training and validation together hold each row that is not dropped once, in every epoch, shuffled
// or not; asking in pieces gives the same as asking for all.
static void parts_hold_every_row_once(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        const struct shape *s = &shapes[k];
        uint64_t dropped[8], file_rows = s->rows + s->dropped;
        for (uint64_t i = 0; i < s->dropped; i++) {
            dropped[i] = i * i * 9 + i;
        }
        struct grt_order order = grt_order(s->rows, s->unit, s->split, 11);
        order.dropped = dropped;
        order.dropped_count = s->dropped;
        uint64_t *rows = test_alloc(file_rows * sizeof *rows);
        uint64_t *pieces = test_alloc(file_rows * sizeof *pieces);
        for (uint64_t variant = 0; variant < 6; variant++) {
            uint8_t *seen = test_alloc(file_rows);
            memset(seen, 0, file_rows);
            uint64_t total = 0;
            for (int part = GRT_PART_TRAIN; part <= GRT_PART_VALIDATION; part++) {
                struct grt_draw draw = {.part = (enum grt_part)part,
                                        .shuffle = variant % 2 == 1,
                                        .seed = variant,
                                        .window = 3};
                uint64_t count = grt_order_rows(&order, draw.part);
                grt_order_draw(&order, &draw, variant / 2, 0, count, rows);
                for (uint64_t i = 0; i < count; i += 13) {
                    grt_order_draw(&order, &draw, variant / 2, i, count - i < 13 ? count - i : 13,
                                   pieces + i);
                }
                assert_memory_equal(rows, pieces, count * sizeof *rows);
                for (uint64_t i = 0; i < count; i++) {
                    assert_true(rows[i] < file_rows);
                    assert_int_equal(seen[rows[i]]++, 0);
                }
                total += count;
            }
            assert_int_equal(total, s->rows);
            for (uint64_t i = 0; i < s->dropped; i++) {
                assert_int_equal(seen[dropped[i]], 0);
            }
            free(seen);
        }
        free(rows);
        free(pieces);
    }
}

// A share for validation is rounded to whole units: one at least, and one is left to train on.
static void sizes_of_parts(void **state) {
    (void)state;
    static const struct {
        uint64_t rows, unit;
        double split;
        uint64_t validation;
    } parts[] = {
        {10, 1, 0, 0},          {10, 1, 0.25, 3},      {10, 1, 0.24, 2}, {10, 1, 0.01, 1},
        {10, 1, 0.99, 9},       {2, 1, 0.999, 1},      {1, 1, 0.5, 0},   {1300, 64, 0.125, 3 * 64},
        {1300, 64, 0.12, 128},  {1300, 64, 0.001, 64}, {64, 64, 0.5, 0}, {63, 64, 0.5, 0},
        {1300, 64, 0.99, 1216},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct grt_order order = grt_order(parts[i].rows, parts[i].unit, parts[i].split, 5);
        assert_int_equal(grt_order_rows(&order, GRT_PART_VALIDATION), parts[i].validation);
        assert_int_equal(grt_order_rows(&order, GRT_PART_TRAIN),
                         parts[i].rows - parts[i].validation);
        assert_int_equal(grt_order_rows(&order, GRT_PART_ALL), parts[i].rows);
    }
}

// The split follows its own seed, whatever shuffles.
static void the_split_is_fixed(void **state) {
    (void)state;
    struct grt_order order = grt_order(1000, 1, 0.2, 3);
    assert_int_equal(grt_order_rows(&order, GRT_PART_VALIDATION), 200);
    uint8_t valid[1000] = {0};
    uint64_t rows[200];
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        struct grt_draw draw = {
            .part = GRT_PART_VALIDATION, .shuffle = epoch > 0, .seed = epoch, .window = 1};
        grt_order_draw(&order, &draw, epoch, 0, 200, rows);
        for (int i = 0; i < 200; i++) {
            assert_int_equal(grt_order_trains(&order, rows[i]), false);
            valid[rows[i]]++;
        }
    }
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(valid[i], grt_order_trains(&order, i) ? 0 : 3);
    }
}

static void epochs_differ(void **state) {
    (void)state;
    struct grt_order order = grt_order(1000, 1, 0, 0);
    struct grt_draw draw = {.part = GRT_PART_TRAIN, .shuffle = true, .seed = 1, .window = 1};
    uint64_t a[1000], b[1000], same = 0;
    grt_order_draw(&order, &draw, 0, 0, 1000, a);
    grt_order_draw(&order, &draw, 1, 0, 1000, b);
    for (int i = 0; i < 1000; i++) {
        same += a[i] == b[i];
    }
    assert_true(same < 20);  // 1 expected
    draw.seed = 2;
    grt_order_draw(&order, &draw, 0, 0, 1000, b);
    for (int i = same = 0; i < 1000; i++) {
        same += a[i] == b[i];
    }
    assert_true(same < 20);
    draw.shuffle = false;
    grt_order_draw(&order, &draw, 0, 0, 1000, b);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(b[i], i);
    }
}

// With one unit there is nothing to shuffle but the rows of a window: they too come anew.
static void rows_of_a_window_differ(void **state) {
    (void)state;
    enum { ROWS = 64 };
    struct grt_order order = grt_order(ROWS, ROWS, 0, 3);
    const struct grt_draw draw = {.part = GRT_PART_ALL, .shuffle = true, .seed = 5, .window = 1};
    uint64_t one[ROWS], other[ROWS];
    bool seen[ROWS] = {false};
    uint32_t same = 0;
    grt_order_draw(&order, &draw, 0, 0, ROWS, one);
    grt_order_draw(&order, &draw, 1, 0, ROWS, other);
    for (uint32_t i = 0; i < ROWS; i++) {
        same += one[i] == other[i];
        assert_true(other[i] < ROWS && !seen[other[i]]);
        seen[other[i]] = true;
    }
    assert_true(same < ROWS / 4);
    // Nor are the windows of an epoch mixed alike.
    uint64_t all[4 * ROWS];
    order = grt_order(4ull * ROWS, ROWS, 0, 3);
    grt_order_draw(&order, &draw, 0, 0, 4ull * ROWS, all);
    for (uint32_t window = 1; window < 4; window++) {
        same = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            same += all[i] % ROWS == all[window * ROWS + i] % ROWS;
        }
        assert_true(same < ROWS / 4);
    }
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(permutations_hold_every_number_once),
    TEST_CASE(no_place_prefers_a_number),
    TEST_CASE(neighbours_part),
    TEST_CASE(parts_hold_every_row_once),
    TEST_CASE(sizes_of_parts),
    TEST_CASE(the_split_is_fixed),
    TEST_CASE(epochs_differ),
    TEST_CASE(rows_of_a_window_differ),
};
TEST_SUITE(order, false, cases);
