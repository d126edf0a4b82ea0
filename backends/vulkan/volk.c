// SPDX-License-Identifier: Apache-2.0
// volk, compiled once: it finds libvulkan.so.1 at run time, so gpurt starts where there is none.
#define VOLK_IMPLEMENTATION
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#endif
#include <volk.h>
