// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: failures that are expected and handled. grt_fail() and grt_log() are in
// gpurt/status.h.
#ifndef GRT_LOG_H
#define GRT_LOG_H

#include "gpurt/status.h"

// While on, failures of this thread are debug lines and leave no trace in grt_last_error(). Returns
// what it was.
bool grt_quiet(bool on);
// Of the first failure since this thread was made quiet; GRT_OK when there was none.
enum grt_status grt_quiet_status(void);
// Its sentence: "" when there was none.
const char *grt_quiet_error(void);

#endif
