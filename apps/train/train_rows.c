// SPDX-License-Identifier: Apache-2.0
#include "train_rows.h"

#include <string.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "base/whole_file.h"

// Says the first failure. After it nothing more is written: a table with a hole in it is no better.
static void look_at_output(struct train_rows *rows) {
    struct output *o = &rows->output;
    if (!o->error || o->said) {
        return;
    }
    talk_error("cannot write %s: %s; the training goes on without it",
               o->whole ? o->whole->path : "the results", strerror(o->error));
    o->said = true;
}

int train_rows_open(struct train_rows *rows, const char *path) {
    rows->begun = false;
    return output_open(&rows->output, path);
}

void train_rows_begin(struct train_rows *rows, struct table_desc *desc, const char *title,
                      uint64_t shown) {
    desc->output = &rows->output;
    rows->begun = true;
    if (table_open(&rows->table, desc)) {
        table_section(&rows->table, title, shown, NULL, 0);
    }
    look_at_output(rows);
}

void train_rows_section(struct train_rows *rows, const char *title, uint64_t shown) {
    if (rows->begun && !rows->output.error) {
        table_section(&rows->table, title, shown, NULL, 0);
    }
    look_at_output(rows);
}

void train_rows_add(struct train_rows *rows, const struct table_cell *cells) {
    if (rows->begun && !rows->output.error) {
        table_row(&rows->table, cells);
    }
    look_at_output(rows);
}

int train_rows_close(struct train_rows *rows, int code) {
    if (rows->begun) {
        table_close(&rows->table);
    }
    look_at_output(rows);
    int written = output_close(&rows->output, code == COMMAND_OK || code == COMMAND_RESUMABLE);
    return code ? code : written;
}
