// SPDX-License-Identifier: Apache-2.0
// A clock that a test may set: the linker turns gpurt's calls of grt_seconds() to this (--wrap, see
// CMakeLists.txt). Threads of a run read it too.
#include "base/clock.h"
#include "harness.h"

static _Atomic double set = -1;

void test_clock_set(double seconds) {
    set = seconds;
}

// The linker's names.
double __real_grt_seconds(void);
double __wrap_grt_seconds(void);

double __wrap_grt_seconds(void) {
    double seconds = set;
    return seconds < 0 ? __real_grt_seconds() : seconds;
}
