// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: which row comes when. Every answer is computed from seed, epoch and position
// alone, in constant memory, so a run can be continued anywhere and any thread can ask.
//
//     position -shuffle by epoch-> place -split by seed-> unit -rows left out-> row of the file
//
// A unit is one row where rows can be read alone, and the rows of a chunk where they are
// compressed: then units are shuffled, and rows among the `window` units that lie together after
// that.
#ifndef GRT_ORDER_H
#define GRT_ORDER_H

#include "gpurt/dataset.h"

// A permutation of 0 .. n - 1 that a key chooses: a Feistel network over the bits of n - 1, walked
// until the number is below n, then turned, which makes every number as likely at every place even
// where there are few bits.
struct grt_permutation {
    uint64_t n;
    uint64_t turn;  // below n
    uint32_t low_bits, high_bits;
    uint32_t keys[6];
};
struct grt_permutation grt_permutation(uint64_t n, uint64_t seed, uint64_t stream);
uint64_t grt_permute(const struct grt_permutation *p, uint64_t i);
// The same for many numbers, in place.
void grt_permute_all(const struct grt_permutation *p, uint64_t *numbers, uint64_t count);
uint64_t grt_permute_back(const struct grt_permutation *p, uint64_t i);

struct grt_order {
    uint64_t rows;              // to draw from
    uint64_t unit;              // rows of a unit
    uint64_t units;             // whole ones; the rows that are left belong to training
    uint64_t validation_units;  // of them
    struct grt_permutation split;
    const uint64_t *dropped;  // rows of the file left out, ascending
    uint64_t dropped_count;
};

struct grt_order grt_order(uint64_t rows, uint64_t unit, double validation_split, uint64_t seed);
uint64_t grt_order_rows(const struct grt_order *order, enum grt_part part);
// Whether a row, counted without those dropped, is trained on.
bool grt_order_trains(const struct grt_order *order, uint64_t row);

struct grt_draw {
    enum grt_part part;
    bool shuffle;
    bool same;  // every epoch as the first
    uint64_t seed;
    uint64_t window;  // units
};
// The rows of the file at positions first .. first + count - 1 of an epoch.
void grt_order_draw(const struct grt_order *order, const struct grt_draw *draw, uint64_t epoch,
                    uint64_t first, uint64_t count, uint64_t *rows);

// The same for kernels, which find the row at a position for themselves (shaders/lib/order.k): the
// record of an epoch, and how many words one has. Only for fewer than 2^32 rows of the file.
uint64_t grt_order_record(const struct grt_order *order, const struct grt_draw *draw);
void grt_order_words(const struct grt_order *order, const struct grt_draw *draw, uint64_t epoch,
                     uint32_t *words);

#endif
