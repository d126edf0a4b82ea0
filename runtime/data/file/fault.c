// SPDX-License-Identifier: Apache-2.0
// What went wrong in a thread that must not report by itself.
#include <stdarg.h>
#include <stdio.h>

#include "array.h"
#include "map.h"

bool grt_fault(struct grt_fault *fault, enum grt_status status, const char *format, ...) {
    if (fault->status != GRT_OK) {
        return false;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    fault->status = status;
    return false;
}

bool grt_fault_truncated(struct grt_fault *fault, uint64_t end, uint64_t missing) {
    return grt_fault(fault, GRT_BAD_DATA,
                     "the file ends at byte %llu, %llu bytes before the end of its data: it was "
                     "truncated while it was being read",
                     (unsigned long long)end, (unsigned long long)missing);
}
