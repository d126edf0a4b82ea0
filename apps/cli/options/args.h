// SPDX-License-Identifier: Apache-2.0
// The argtable that CMake found. The part of it used here is the same in both versions.
#ifndef APPS_ARGS_H
#define APPS_ARGS_H

#if GPURT_ARGTABLE == 3
#include <argtable3.h>
#else
#include <argtable2.h>
#endif

#endif
