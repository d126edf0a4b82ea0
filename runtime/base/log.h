// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: how a failure or a note is said.
#ifndef GRT_REPORT_H
#define GRT_REPORT_H

#include "gpurt/status.h"

// Keeps status and sentence for grt_last_error(), logs the sentence as an error, returns false.
bool grt_fail(enum grt_status status, const char *format, ...) GRT_PRINTF(2, 3);
// While on, failures of this thread are debug lines and leave no trace in grt_last_error(). Returns
// what it was.
bool grt_quiet(bool on);
// Of the first failure since this thread was made quiet; GRT_OK when there was none.
enum grt_status grt_quiet_status(void);
// Around a fork, in both processes afterwards: no other thread is in the middle of a line, so the child can
// say one too.
void grt_log_hold(void);
void grt_log_release(void);
void grt_log(enum grt_log_level level, const char *format, ...) GRT_PRINTF(2, 3);

#endif
