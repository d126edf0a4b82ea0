// SPDX-License-Identifier: Apache-2.0
// Cases that are of the host, and want a device all the same: the C reading, for each anew.
#ifndef TEST_REF_KIT_H
#define TEST_REF_KIT_H

#include "harness/harness.h"

int ref_kit_begin(void **state);
int ref_kit_end(void **state);
#define REF_CASE(function)                                                                         \
    { #function, function, ref_kit_begin, ref_kit_end, NULL }

#endif
