// SPDX-License-Identifier: Apache-2.0
// What tests of estimates share: a card of round numbers, and the suites by their names.
#ifndef TEST_ROUND_CARD_H
#define TEST_ROUND_CARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "estimate/estimate.h"

// 10 units at 1 GHz, 1 TFLOP/s, 8 TFLOP/s of matrix units, 100 GB/s.
static const struct card round_card = {.id = "round",
                                       .name = "Round Card",
                                       .vendor = "nvidia",
                                       .source = "made up",
                                       .units = 10,
                                       .clock = 1e9,
                                       .plain = 1e12,
                                       .matrix = 8e12,
                                       .bandwidth = 1e11,
                                       .memory = 1e9};

static inline void near_(double a, double b, int line) {
    if (!(fabs(a - b) <= 1e-9 * fabs(b))) {
        fail_msg("line %d: %.12g is not %.12g", line, a, b);
    }
}
#define NEAR(a, b) near_(a, b, __LINE__)

static inline const struct suite *suite_of(const char *name) {
    for (size_t i = 0; i < suite_count; i++) {
        if (strcmp(suites[i].name, name) == 0) {
            return &suites[i];
        }
    }
    fail_msg("no suite %s", name);
    return NULL;
}

#endif
