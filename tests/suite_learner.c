// SPDX-License-Identifier: Apache-2.0
#include "learn_kit.h"
static void nothing(void **state) {
    (void)state;
}
static const struct CMUnitTest cases[] = {TEST_CASE(nothing)};
TEST_SUITE(learner, true, cases);
