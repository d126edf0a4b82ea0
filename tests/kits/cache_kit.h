// SPDX-License-Identifier: Apache-2.0
// Cases with a cache folder of their own, empty at first and gone with the case.
#ifndef TEST_CACHE_KIT_H
#define TEST_CACHE_KIT_H

#include "harness/harness.h"

extern char kit_cache[256];  // the folder: what XDG_CACHE_HOME is

int kit_cache_begin(void **state);
int kit_cache_end(void **state);
#define CACHE_CASE(function)                                                                       \
    { #function, function, kit_cache_begin, kit_cache_end, NULL }

// Removes a folder and all that is in it.
void kit_remove_tree(const char *path);

#endif
