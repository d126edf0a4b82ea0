// SPDX-License-Identifier: Apache-2.0
// What went wrong in a thread that must not report by itself.
#include <stdarg.h>
#include <stdio.h>

#include "array.h"

bool grt_fault(struct grt_fault *fault, enum grt_status status, const char *format, ...) {
    if (fault->status != GRT_OK)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    fault->status = status;
    return false;
}
