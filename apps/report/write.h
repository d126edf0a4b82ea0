// SPDX-License-Identifier: Apache-2.0
// The forms of a report. Each writes to a stream whatever happens; the caller looks at the stream.
#ifndef APPS_REPORT_WRITE_H
#define APPS_REPORT_WRITE_H

#include <stdio.h>

#include "compare.h"
#include "summary.h"

struct report_view {
    const struct report *report;  // settled
    const struct report_summary *summary;
    const struct report_changes *changes;  // NULL: there is no baseline
    double fail_under;                     // 0: nothing was asked for
    const char *title;
};

// What a job summary takes is 1,024 kB; the last rows are left out, and counted, where they would
// not fit.
#define REPORT_MARKDOWN_MOST 1000000
void report_write_markdown(FILE *file, const struct report_view *view);
// Every row, one line each; figures in the base unit that stands beside them.
void report_write_csv(FILE *file, const struct report_view *view);
// One file that needs nothing else.
void report_write_html(FILE *file, const struct report_view *view);
// The part of it that has what compilers said; nothing where no row is static.
void report_write_static(FILE *file, const struct report *report);
// A few lines for a terminal.
void report_write_plain(FILE *file, const struct report_view *view);

#endif
