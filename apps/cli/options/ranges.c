// SPDX-License-Identifier: Apache-2.0
// A recursive-descent reader with one cursor. The first mistake is written down where it happens,
// with its position, and every caller returns at once; nothing is read twice. Each addition and
// multiplication is checked before it is done.
#include "ranges.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct cursor {
    const char *text;
    const char *at;
    char *why;
    bool too_large;  // for 64 bits
};

static const struct unit {
    const char *suffix;
    uint64_t bytes;
} units[] = {
    // clang-format off
    {"B", 1},
    {"K", 1ull << 10}, {"KiB", 1ull << 10}, {"KB", 1000ull},
    {"M", 1ull << 20}, {"MiB", 1ull << 20}, {"MB", 1000ull * 1000},
    {"G", 1ull << 30}, {"GiB", 1ull << 30}, {"GB", 1000ull * 1000 * 1000},
    {"T", 1ull << 40}, {"TiB", 1ull << 40}, {"TB", 1000ull * 1000 * 1000 * 1000},
    // clang-format on
};

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static bool
wrong(struct cursor *c, const char *at, const char *format, ...) {
    int head = snprintf(c->why, RANGES_WHY, "at character %td (%s%.24s%s): ", at - c->text + 1,
                        *at ? "'" : "the end", at, *at ? "'" : "");
    va_list args;
    va_start(args, format);
    if (head > 0 && head < RANGES_WHY) {
        vsnprintf(c->why + head, (size_t)(RANGES_WHY - head), format, args);
    }
    va_end(args);
    return false;
}

static bool too_large(struct cursor *c, const char *start) {
    c->too_large = true;
    return wrong(c, start, "the number is too large");
}

// Decimal digits, at least one.
static bool read_digits(struct cursor *c, uint64_t *value) {
    const char *start = c->at;
    *value = 0;
    for (; isdigit((unsigned char)*c->at); c->at++) {
        uint64_t digit = (uint64_t)(*c->at - '0');
        if (*value > (UINT64_MAX - digit) / 10) {
            return too_large(c, start);
        }
        *value = *value * 10 + digit;
    }
    return c->at > start || wrong(c, start, "a number is missing");
}

// Digits behind the point, as millionths: six of them keep every product below 2^64.
static bool read_millionths(struct cursor *c, uint64_t *millionths) {
    const char *start = c->at;
    uint64_t place = 100000;
    *millionths = 0;
    for (; isdigit((unsigned char)*c->at); c->at++, place /= 10) {
        if (place == 0) {
            return wrong(c, start, "at most 6 digits may follow the point");
        }
        *millionths += place * (uint64_t)(*c->at - '0');
    }
    return c->at > start || wrong(c, start, "digits are missing after the point");
}

static bool read_unit(struct cursor *c, uint64_t *scale) {
    size_t length = 0;
    while (isalpha((unsigned char)c->at[length])) {
        length++;
    }
    *scale = 1;
    if (length == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].suffix) == length && strncasecmp(units[i].suffix, c->at, length) == 0) {
            *scale = units[i].bytes;
            c->at += length;
            return true;
        }
    }
    return wrong(c, c->at,
                 "unknown unit '%.*s'; known are B, KB, MB, GB, TB and KiB, MiB, GiB, TiB",
                 length < 16 ? (int)length : 16, c->at);
}

static bool read_number(struct cursor *c, bool bytes, uint64_t *value) {
    const char *start = c->at;
    uint64_t millionths = 0;
    uint64_t scale = 1;
    if (!read_digits(c, value)) {
        return false;
    }
    if (!bytes) {
        return true;
    }
    if (*c->at == '.') {
        c->at++;
        if (!read_millionths(c, &millionths)) {
            return false;
        }
    }
    if (!read_unit(c, &scale)) {
        return false;
    }
    if (millionths && scale == 1) {
        return wrong(c, start, "a part of a byte needs a unit, as in 1.5GiB");
    }
    uint64_t part = millionths * scale / 1000000;
    if (*value > (UINT64_MAX - part) / scale) {
        return too_large(c, start);
    }
    *value = *value * scale + part;
    return true;
}

static bool read_value(struct cursor *c, const struct ranges_rule *rule, uint64_t *value) {
    const char *start = c->at;
    uint64_t max = rule->max ? rule->max : rule->bytes ? RANGES_MAX_BYTES : UINT64_MAX;
    bool negative = *c->at == '-';
    bool read = !negative && read_number(c, rule->bytes, value);
    if (!read && !negative && !c->too_large) {
        return false;
    }
    if (!read || *value < rule->min || *value > max) {
        return wrong(c, start, "it lies outside %" PRIu64 " to %" PRIu64, rule->min, max);
    }
    return true;
}

static bool append(struct cursor *c, const char *item, struct ranges *list, uint64_t value) {
    if (list->count == RANGES_MAX) {
        return wrong(c, item, "the list has more than %d values", RANGES_MAX);
    }
    // Grown by doubling: capacity is the next power of two, so it needs no field of its own.
    if ((list->count & (list->count - 1)) == 0) {
        size_t capacity = list->count ? 2 * list->count : 1;
        uint64_t *grown = realloc(list->values, capacity * sizeof *grown);
        if (!grown) {
            return wrong(c, item, "out of memory");
        }
        list->values = grown;
    }
    list->values[list->count++] = value;
    return true;
}

static bool read_item(struct cursor *c, const struct ranges_rule *rule, struct ranges *list) {
    const char *item = c->at;
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t step = 1;
    bool by_factor = false;
    if (!read_value(c, rule, &first)) {
        return false;
    }
    if (*c->at != '-') {
        return append(c, item, list, first);
    }
    c->at++;
    const char *end = c->at;
    if (!read_value(c, rule, &last)) {
        return false;
    }
    if (last < first) {
        return wrong(c, end, "the end of a range lies before its start");
    }
    if (*c->at == '+' || *c->at == '*') {
        by_factor = *c->at++ == '*';
        const char *start = c->at;
        if (!read_number(c, rule->bytes && !by_factor, &step)) {
            return false;
        }
        if (by_factor && step < 2) {
            return wrong(c, start, "the factor must be 2 or more");
        }
        if (step < 1) {
            return wrong(c, start, "the step must be 1 or more");
        }
    }
    if (by_factor && first == 0) {
        return wrong(c, item, "a range by factors cannot start at 0");
    }
    for (uint64_t value = first;;) {
        if (!append(c, item, list, value)) {
            return false;
        }
        // Both tests say "the next value is beyond the end" without computing it.
        if (by_factor ? value > last / step : last - value < step) {
            return true;
        }
        value = by_factor ? value * step : value + step;
    }
}

static bool read_list(struct cursor *c, const struct ranges_rule *rule, struct ranges *list) {
    for (;; c->at++) {
        if (!read_item(c, rule, list)) {
            return false;
        }
        if (*c->at == '\0') {
            return true;
        }
        if (*c->at != ',') {
            return wrong(c, c->at, "'%c' is not expected here", *c->at);
        }
    }
}

bool ranges_parse(const char *text, const struct ranges_rule *rule, struct ranges *list,
                  char why[RANGES_WHY]) {
    struct cursor c = {.text = text, .at = text, .why = why};
    *list = (struct ranges){0};
    if (read_list(&c, rule, list)) {
        return true;
    }
    ranges_destroy(list);
    return false;
}

void ranges_destroy(struct ranges *list) {
    free(list->values);
    *list = (struct ranges){0};
}

bool ranges_parse_size(const char *text, uint64_t *bytes, char why[RANGES_WHY]) {
    struct cursor c = {.text = text, .at = text, .why = why};
    if (!read_value(&c, &(struct ranges_rule){.bytes = true}, bytes)) {
        return false;
    }
    return *c.at == '\0' || wrong(&c, c.at, "'%c' is not expected here", *c.at);
}
