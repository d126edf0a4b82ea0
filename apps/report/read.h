// SPDX-License-Identifier: Apache-2.0
// Reading into a report what `gpurt bench --format json` and jsonl write, and logs of training.
// Files come from anywhere: a size, a depth and a count bound each of them, duplicate keys are
// refused, and whatever is wrong is one sentence with the place.
#ifndef APPS_REPORT_READ_H
#define APPS_REPORT_READ_H

#include "model.h"

#define REPORT_MAX_FILE (64u << 20)
#define REPORT_WHY 600

// Reads a file; with `baseline` its contenders are those that others are compared with. Returns an
// exit code, 0 when read; a failure is said.
int report_read(struct report *report, const char *path, bool baseline);

// The same of a text; false with what is wrong in `why`.
bool report_read_text(struct report *report, const char *name, const char *text, size_t size,
                      bool baseline, char why[REPORT_WHY]);

#endif
