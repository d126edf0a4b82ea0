// SPDX-License-Identifier: Apache-2.0
// Opening a driver's library, tried in a child process first.
#ifndef GRT_LIBRARY_H
#define GRT_LIBRARY_H

#include <stdbool.h>

// How long a driver may take to answer, from GPURT_PROBE_SECONDS.
double grt_probe_seconds(void);
// Opens and forgets a driver's library. False, with a sentence in `problem` (256 bytes), when that
// does not come back: such a library must not be opened in this process. True says nothing more;
// there may be no such library.
bool grt_probe_library(const char *library, char *problem);

#endif
