// SPDX-License-Identifier: Apache-2.0
// How far a bench has come: a line before a long one, the progress of rows with the time that is
// left, and what is said when it was stopped.
#ifndef APPS_BENCH_PROGRESS_H
#define APPS_BENCH_PROGRESS_H

#include "cli/output/table.h"

struct bench_progress {
    size_t planned;  // rows, of what has begun
    size_t done;
    double begun;
};

// So many rows follow, each of at least so many seconds. A line says how long that takes, where it
// is long.
void bench_progress_plan(struct bench_progress *progress, size_t rows, double seconds);
// Before a row: what is measured, behind its number and the time that is left.
void bench_progress_row(const struct bench_progress *progress, const char *format, ...)
    GRT_PRINTF(2, 3);
// At the end, before the table is closed: after Ctrl-C or SIGTERM says that the rows are not all,
// to people and as "partial": true, and returns the exit code for it; else returns `code`.
int bench_progress_end(const struct bench_progress *progress, struct table *table, int code);

#endif
