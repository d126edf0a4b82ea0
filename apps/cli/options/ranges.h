// SPDX-License-Identifier: Apache-2.0
// Numbers as people write them on a command line: sizes, lists and ranges. Pure functions.
//
//     list  = item { "," item }
//     item  = number | number "-" number [ "+" step | "*" factor ]     the end is included when hit
//     number of bytes = digits [ "." digits ] [ suffix ]                K = KiB = 1024, KB = 1000
//
//     "32,64"  "1-4" = 1 2 3 4  "1-8+3" = 1 4 7  "32-1024*2"  "4KB-256MB*4"  "1MiB,1.5GiB"
#ifndef APPS_RANGES_H
#define APPS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX 10000  // values of one list
#define RANGES_WHY 160    // bytes of an explanation
// A size is no larger than this, 1 PiB: sums of sizes cannot overflow.
#define RANGES_MAX_BYTES (1ull << 50)

// What a list may hold.
struct ranges_rule {
    bool bytes;    // numbers may have a suffix of size
    uint64_t min;  // of every value
    uint64_t max;  // 0: RANGES_MAX_BYTES of sizes, else all of 64 bits
};

struct ranges {
    uint64_t *values;
    size_t count;
};

// False with a sentence in `why` that names the position, counted from 1, and the text found there;
// `list` is then empty.
bool ranges_parse(const char *text, const struct ranges_rule *rule, struct ranges *list,
                  char why[RANGES_WHY]);
void ranges_destroy(struct ranges *list);

// One number of bytes, the whole text. False with a sentence in `why`.
bool ranges_parse_size(const char *text, uint64_t *bytes, char why[RANGES_WHY]);

#endif
