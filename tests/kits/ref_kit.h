// SPDX-License-Identifier: Apache-2.0
// The C reading as the device of a case, for suites of facts that are the host's own: they run
// once, and not once for each driver.
#ifndef TEST_REF_KIT_H
#define TEST_REF_KIT_H

#include "harness/harness.h"

// As TEST_CASE() with test.dev and test.ref, a device opened for the case alone.
int ref_case_begin(void **state);
// The same, taken for a GPU with memory of its own.
int ref_gpu_case_begin(void **state);
int ref_case_end(void **state);
#define REF_CASE(function)                                                                         \
    { #function, function, ref_case_begin, ref_case_end, NULL }
#define REF_GPU_CASE(function)                                                                     \
    { #function, function, ref_gpu_case_begin, ref_case_end, NULL }

#endif
