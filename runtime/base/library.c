// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "child.h"

#define PROBE_SECONDS 10.0

double grt_probe_seconds(void) {
    const char *text = getenv("GPURT_PROBE_SECONDS");
    double seconds = text ? strtod(text, NULL) : 0.0;
    return seconds > 0.0 ? seconds : PROBE_SECONDS;
}

static void open_library(void *context) {
    dlopen(context, RTLD_LAZY | RTLD_LOCAL);
}

bool grt_probe_library(const char *library, char *problem) {
    char how[160], name[4200];
    snprintf(name, sizeof name, "%s", library);
    if (grt_child_survives(open_library, name, grt_probe_seconds(), how)) {
        return true;
    }
    snprintf(problem, 256, "the library %.80s %.100s when it was opened; it is left out", library,
             how);
    return false;
}
