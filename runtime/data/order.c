// SPDX-License-Identifier: Apache-2.0
// The order of rows.
#include "order.h"

#include <stdlib.h>  // tells whose C library it is
#include <string.h>

#include "shaders/host.h"
#include "shaders/lib/order_words.k"

// Streams of random keys, so that the same seed gives unrelated permutations.
enum { STREAM_SPLIT = 1, STREAM_UNITS = 2, STREAM_ROWS = 3 };

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct grt_permutation grt_permutation(uint64_t n, uint64_t seed, uint64_t stream) {
    struct grt_permutation p = {.n = n};
    uint32_t bits = 2;
    while (bits < 64 && (n - 1) >> bits != 0 && n > 0) {
        bits++;
    }
    p.low_bits = bits / 2;
    p.high_bits = bits - p.low_bits;
    uint64_t state = mix(seed + 0x9e3779b97f4a7c15u) ^ mix(stream * 0x9e3779b97f4a7c15u + n);
    for (int i = 0; i < 6; i++) {
        p.keys[i] = (uint32_t)(mix(state += 0x9e3779b97f4a7c15u) >> 32);
    }
    p.turn = n > 0 ? mix(state + 0x9e3779b97f4a7c15u) % n : 0;
    return p;
}

static uint32_t scramble(uint32_t x, uint32_t key) {
    x = (x ^ key) * 0x9e3779b1u;
    x = (x ^ x >> 15) * 0x85ebca77u;
    return x ^ x >> 13;
}

uint64_t grt_permute(const struct grt_permutation *p, uint64_t i) {
    if (p->n <= 1) {
        return 0;
    }
    uint32_t low_mask = (uint32_t)((1ull << p->low_bits) - 1);
    uint32_t high_mask = (uint32_t)((1ull << p->high_bits) - 1);
    do {
        uint32_t low = (uint32_t)i & low_mask, high = (uint32_t)(i >> p->low_bits);
        for (int k = 0; k < 6; k += 2) {
            low ^= scramble(high, p->keys[k]) & low_mask;
            high ^= scramble(low, p->keys[k + 1]) & high_mask;
        }
        i = (uint64_t)high << p->low_bits | low;
    } while (i >= p->n);
    return i < p->n - p->turn ? i + p->turn : i - (p->n - p->turn);
}

// ---- many at once ----

#define PIECE 256u

// Where the C library chooses among versions of a function when it is loaded: 2.5 times as fast.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define WIDE_VECTORS
#endif

// One pass through the network of each, without a branch: vector code.
WIDE_VECTORS static void pass(const struct grt_permutation *p, uint32_t *values, uint32_t count) {
    uint32_t bits = p->low_bits, low_mask = (1u << bits) - 1, high_mask = (1u << p->high_bits) - 1;
    const uint32_t *keys = p->keys;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t low = values[i] & low_mask, high = values[i] >> bits;
        low ^= scramble(high, keys[0]) & low_mask;
        high ^= scramble(low, keys[1]) & high_mask;
        low ^= scramble(high, keys[2]) & low_mask;
        high ^= scramble(low, keys[3]) & high_mask;
        low ^= scramble(high, keys[4]) & low_mask;
        high ^= scramble(low, keys[5]) & high_mask;
        values[i] = high << bits | low;
    }
}

static void permute_piece(const struct grt_permutation *p, uint64_t *numbers, uint32_t count) {
    uint32_t values[PIECE] = {0}, walking[PIECE], of[PIECE], left = count;
    for (uint32_t i = 0; i < count; i++) {
        walking[i] = (uint32_t)numbers[i];
        of[i] = i;
    }
    // Those that are not below n go through it again, moved together.
    while (left > 0) {
        uint32_t again = 0;
        pass(p, walking, left);
        for (uint32_t i = 0; i < left; i++) {
            uint32_t value = walking[i], whose = of[i];
            values[whose] = value;
            walking[again] = value;
            of[again] = whose;
            again += value >= p->n;
        }
        left = again;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t turned = values[i] + p->turn;
        numbers[i] = turned >= p->n ? turned - p->n : turned;
    }
}

void grt_permute_all(const struct grt_permutation *p, uint64_t *numbers, uint64_t count) {
    bool narrow = p->n > 1 && p->low_bits <= 16 && p->high_bits <= 16;
    for (uint64_t first = 0; first < count; first += PIECE) {
        uint64_t left = count - first;
        uint32_t n = left < PIECE ? (uint32_t)left : PIECE;
        if (narrow) {
            permute_piece(p, numbers + first, n);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            numbers[first + i] = grt_permute(p, numbers[first + i]);
        }
    }
}

uint64_t grt_permute_back(const struct grt_permutation *p, uint64_t i) {
    if (p->n <= 1) {
        return 0;
    }
    uint32_t low_mask = (uint32_t)((1ull << p->low_bits) - 1);
    uint32_t high_mask = (uint32_t)((1ull << p->high_bits) - 1);
    i = i >= p->turn ? i - p->turn : i + (p->n - p->turn);
    do {
        uint32_t low = (uint32_t)i & low_mask, high = (uint32_t)(i >> p->low_bits);
        for (int k = 4; k >= 0; k -= 2) {
            high ^= scramble(low, p->keys[k + 1]) & high_mask;
            low ^= scramble(high, p->keys[k]) & low_mask;
        }
        i = (uint64_t)high << p->low_bits | low;
    } while (i >= p->n);
    return i;
}

struct grt_order grt_order(uint64_t rows, uint64_t unit, double validation_split, uint64_t seed) {
    struct grt_order order = {.rows = rows, .unit = unit < rows ? unit : rows};
    order.unit = order.unit > 0 ? order.unit : 1;
    order.units = rows / order.unit;
    if (validation_split > 0.0 && order.units > 1) {
        uint64_t wanted = (uint64_t)(validation_split * (double)order.units + 0.5);
        order.validation_units = wanted < 1                 ? 1
                                 : wanted > order.units - 1 ? order.units - 1
                                                            : wanted;
    }
    order.split = grt_permutation(order.units, seed, STREAM_SPLIT);
    return order;
}

uint64_t grt_order_rows(const struct grt_order *order, enum grt_part part) {
    uint64_t validation = order->validation_units * order->unit;
    return part == GRT_PART_VALIDATION ? validation
           : part == GRT_PART_TRAIN    ? order->rows - validation
                                       : order->rows;
}

bool grt_order_trains(const struct grt_order *order, uint64_t row) {
    uint64_t unit = row / order->unit;
    return order->validation_units == 0 || unit >= order->units ||
           grt_permute_back(&order->split, unit) < order->units - order->validation_units;
}

// The k-th row of the file that was not dropped.
static uint64_t kept_row(const struct grt_order *order, uint64_t k) {
    uint64_t below = 0, above = order->dropped_count;
    while (below < above) {
        uint64_t middle = below + (above - below) / 2;
        if (order->dropped[middle] - middle <= k) {
            below = middle + 1;
        } else {
            above = middle;
        }
    }
    return k + below;
}

// A part of the rows: its units are neighbours before the split, training first, then validation.
struct part {
    uint64_t begin, units;
    uint64_t whole;  // positions in units; those from here on are the rows that fill none
    bool split;
};

static struct part part_of(const struct grt_order *order, enum grt_part part) {
    uint64_t training = order->units - order->validation_units;
    struct part p = {.units = training};
    if (part == GRT_PART_VALIDATION) {
        p = (struct part){.begin = training, .units = order->validation_units};
    } else if (part == GRT_PART_ALL) {
        p.units = order->units;
    }
    p.whole = p.units * order->unit;
    p.split = part != GRT_PART_ALL && order->validation_units > 0;
    return p;
}

static uint64_t key_of(const struct grt_draw *draw, uint64_t epoch) {
    return draw->seed ^ mix(draw->same ? 0 : epoch);
}

static struct grt_permutation shuffle_units(const struct grt_draw *draw, uint64_t epoch,
                                            uint64_t units) {
    return grt_permutation(units, key_of(draw, epoch), STREAM_UNITS);
}

// Positions `first` and up that are mixed together after their units were shuffled.
struct window {
    uint64_t first, rows;
    struct grt_permutation inner;
};

static struct window window_of(const struct grt_order *order, const struct grt_draw *draw,
                               uint64_t epoch, uint64_t whole, uint64_t number) {
    uint64_t rows = draw->window * order->unit;
    struct window w = {.first = number * rows};
    w.rows = whole - w.first < rows ? whole - w.first : rows;
    w.inner = grt_permutation(w.rows, key_of(draw, epoch), STREAM_ROWS + (number << 2));
    return w;
}

void grt_order_draw(const struct grt_order *order, const struct grt_draw *draw, uint64_t epoch,
                    uint64_t first, uint64_t count, uint64_t *rows) {
    uint64_t unit = order->unit;
    struct part part = part_of(order, draw->part);
    struct grt_permutation outer = shuffle_units(draw, epoch, part.units);
    if (unit == 1) {
        for (uint64_t i = 0; i < count; i++) {
            rows[i] = first + i;
        }
        if (draw->shuffle) {
            grt_permute_all(&outer, rows, count);
        }
        for (uint64_t i = 0; part.split && i < count; i++) {
            rows[i] += part.begin;
        }
        if (part.split) {
            grt_permute_all(&order->split, rows, count);
        }
        for (uint64_t i = 0; order->dropped_count > 0 && i < count; i++) {
            rows[i] = kept_row(order, rows[i]);
        }
        return;
    }
    struct window window = {0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t position = first + i, row;
        if (position >= part.whole) {
            row = order->units * unit + (position - part.whole);
        } else {
            if (draw->shuffle) {
                if (window.rows == 0 || position - window.first >= window.rows) {
                    window =
                        window_of(order, draw, epoch, part.whole, position / (draw->window * unit));
                }
                position = window.first + grt_permute(&window.inner, position - window.first);
            }
            uint64_t place = position / unit;
            if (draw->shuffle) {
                place = grt_permute(&outer, place);
            }
            if (part.split) {
                place = grt_permute(&order->split, part.begin + place);
            }
            row = place * unit + position % unit;
        }
        rows[i] = order->dropped_count > 0 ? kept_row(order, row) : row;
    }
}

// ---- for kernels ----

static uint64_t window_count(const struct grt_order *order, const struct grt_draw *draw) {
    uint64_t rows = draw->window * order->unit;
    bool mixed = draw->shuffle && order->unit > 1;
    return mixed ? (part_of(order, draw->part).whole + rows - 1) / rows : 0;
}

uint64_t grt_order_record(const struct grt_order *order, const struct grt_draw *draw) {
    return ORDER_HEAD + (2 + window_count(order, draw)) * ORDER_PERMUTATION;
}

static uint32_t *write_permutation(uint32_t *words, const struct grt_permutation *p) {
    words[ORDER_N] = (uint32_t)p->n;
    words[ORDER_TURN] = (uint32_t)p->turn;
    words[ORDER_LOW_BITS] = p->low_bits;
    words[ORDER_HIGH_BITS] = p->high_bits;
    memcpy(words + ORDER_KEYS, p->keys, sizeof p->keys);
    return words + ORDER_PERMUTATION;
}

void grt_order_words(const struct grt_order *order, const struct grt_draw *draw, uint64_t epoch,
                     uint32_t *words) {
    struct part part = part_of(order, draw->part);
    struct grt_permutation outer = shuffle_units(draw, epoch, part.units);
    uint64_t windows = window_count(order, draw);
    uint64_t mixed = draw->window * order->unit;
    words[ORDER_WHOLE] = (uint32_t)part.whole;
    words[ORDER_UNIT] = (uint32_t)order->unit;
    words[ORDER_SHUFFLE] = draw->shuffle;
    words[ORDER_WINDOW] = windows > 0 ? (uint32_t)(mixed < part.whole ? mixed : part.whole) : 0;
    words[ORDER_SPLIT] = part.split;
    words[ORDER_BEGIN] = (uint32_t)part.begin;
    words[ORDER_REST] = (uint32_t)(order->units * order->unit);
    words[ORDER_DROPPED] = (uint32_t)order->dropped_count;
    words = write_permutation(words + ORDER_HEAD, &outer);
    words = write_permutation(words, &order->split);
    for (uint64_t i = 0; i < windows; i++) {
        struct window window = window_of(order, draw, epoch, part.whole, i);
        words = write_permutation(words, &window.inner);
    }
}
