// SPDX-License-Identifier: Apache-2.0
// Inside runtime/import: a table as it was read (table.c), for who writes it (table_write.c).
#ifndef GRT_IMPORT_TABLE_H
#define GRT_IMPORT_TABLE_H

#include "import.h"

struct field {
    const char *at;  // without its quotes
    size_t length;
    bool quoted;
};

struct table {
    const struct grt_table_desc *desc;
    char *bytes;
    const char *end;
    char separator;
    char **names;      // of all columns
    uint32_t columns;  // of the file
    uint32_t *inputs, *targets;
    uint32_t input_count, target_count;
    uint32_t weights;     // the column of weights, where there is one
    double *x, *y, *w;    // [rows][inputs], [rows][targets], [rows]; NaN: missing
    struct field *words;  // of the one target, [rows]
    bool wordy;           // it has a word
    uint64_t rows, room;
    uint64_t filled;
    char **classes;  // names of classes, or NULL
    uint32_t class_count;
};

// Into the HDF5 file of its desc; false with the sentence.
bool table_write(const struct table *table);
// Names, a line each, to be freed; NULL without host memory.
char *table_lines(char *const *names, const uint32_t *which, uint32_t count);

#endif
