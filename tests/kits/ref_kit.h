// SPDX-License-Identifier: Apache-2.0
// Cases of suites that run once: the C reading is the device under test while they run.
#ifndef TEST_REF_KIT_H
#define TEST_REF_KIT_H

#include "harness/harness.h"

int ref_case_begin(void **state);
int ref_case_end(void **state);
#define REF_CASE(function)                                                                         \
    { #function, function, ref_case_begin, ref_case_end, NULL }

#endif
