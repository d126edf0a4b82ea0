// SPDX-License-Identifier: Apache-2.0
// The table of a training. A row that cannot be written (no reader, a full disk, stdout closed) is
// said once and ends no training: hours of work do not depend on it. The exit code at the end
// tells.
#ifndef APPS_TRAIN_ROWS_H
#define APPS_TRAIN_ROWS_H

#include "cli/output/output.h"
#include "cli/output/table.h"

struct train_rows {
    struct output output;
    struct table table;
    bool begun;
};

// Opens the output, path NULL is stdout. Returns an exit code, the failure said.
int train_rows_open(struct train_rows *rows, const char *path);
// The head of the table; desc->output is filled in.
void train_rows_begin(struct train_rows *rows, struct table_desc *desc, const char *title,
                      uint64_t shown);
// Rows of other columns follow.
void train_rows_section(struct train_rows *rows, const char *title, uint64_t shown);
void train_rows_add(struct train_rows *rows, const struct table_cell *cells);
// Ends the table and the output of a training that has come to `code`; returns the command's. A
// file is kept when the run was done or can be resumed.
int train_rows_close(struct train_rows *rows, int code);

#endif
