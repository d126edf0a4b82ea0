// SPDX-License-Identifier: Apache-2.0
// Results in rows, written in the form that was asked for.
//
//     columns   every value a row can have, in any section: CSV has one header, JSON one key each
//     section   a title and the columns people see below it; programs get all that are known
//     row       one cell per column; a zero cell is unknown: "-" for people, nothing for programs
//
// A terminal that is too narrow for all columns of a section gets the most important ones; files,
// pipes and other forms get all.
//
// table, md, csv and jsonl rows appear as they are given; json appears as one object when the table
// is closed.
#ifndef APPS_TABLE_H
#define APPS_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output.h"

#define TABLE_FORMATS(X)                                                                           \
    X(PLAIN, "table")                                                                              \
    X(MD, "md")                                                                                    \
    X(CSV, "csv")                                                                                  \
    X(JSON, "json")                                                                                \
    X(JSONL, "jsonl")

enum table_format {
#define X(name, text) TABLE_##name,
    TABLE_FORMATS(X)
#undef X
};

enum table_type {
    TABLE_TEXT,
    TABLE_FLAG,  // yes or no
    TABLE_COUNT,
    TABLE_BYTES,  // people see "64 MiB"
    TABLE_NUMBER,
    TABLE_SHARE,  // 0.02; people see "2.0%"
};

struct table_column {
    const char *key;      // in CSV and JSON; NULL: for people only
    const char *heading;  // for people
    const char *unit;     // or NULL
    enum table_type type;
    int precision;  // digits after the point, for people
    int width;      // least width in a plain table; 0: the heading's
    int limit;      // longer text is cut in a plain table; 0: never
};

// A row of a list X(name, key, heading, unit, type, precision, width) as a number, and as a column.
#define TABLE_ENTRY(name, key, heading, unit, type, precision, width) COLUMN_##name,
#define TABLE_COLUMN(name, key, heading, unit, type, precision, width)                             \
    {key, heading, unit, TABLE_##type, precision, width, 0},

#define TABLE_MAX_COLUMNS 64  // a section's columns are bits of a number

struct table_cell {
    bool known;
    const char *text;
    uint64_t count;  // flag, count and bytes
    double number;   // number and share
    json_t *json;    // what JSON gets in place of the rest, known or not; borrowed
};
#define TABLE_CELL(...) ((struct table_cell){.known = true, __VA_ARGS__})

struct table_desc {
    struct output *output;
    enum table_format format;
    const struct table_column *columns;
    size_t column_count;
    const char *schema;  // "gpurt.bench/1"
    const char *verb;    // what argv[0] stands for: "bench mlp"; NULL: itself
    int argc;            // the command line, for the record
    char **argv;
    json_t *head;  // members of the JSON head besides those; the table takes it; may be NULL
    bool blocks;   // plain: each row as a block of lines that shows every column
    int fit;       // plain: columns of the terminal it is for; 0: asked of the output
};

struct table {
    struct table_desc desc;
    uint64_t shown;  // columns of the section
    int width[TABLE_MAX_COLUMNS];
    size_t last;     // of a narrow terminal: the last column of the section,
    int last_limit;  // and the longest text that fits there; 0: any
    bool begun;      // something was printed
    json_t *head;
    json_t *rows;  // json only
};

// Each returns false when writing failed or memory ran out, and output_close() says which.
bool table_open(struct table *table, const struct table_desc *desc);
bool table_close(struct table *table);

// Begins a section. Rows that are known already (may be NULL) decide how wide its columns are.
bool table_section(struct table *table, const char *title, uint64_t shown,
                   const struct table_cell *rows, size_t row_count);
bool table_row(struct table *table, const struct table_cell *cells);

// Something beside the rows, for programs: a member of the JSON object, or a line {key: value} of
// jsonl; nothing in other formats. The table takes the value.
bool table_note(struct table *table, const char *key, json_t *value);

// The known cells as one object, for rows and for whoever describes a thing outside a table; NULL
// when out of memory.
json_t *table_object(const struct table_column *columns, size_t count,
                     const struct table_cell *cells);
// A string for JSON out of any bytes: drivers do not always name things in UTF-8.
json_t *table_json_text(const char *text);

#define TABLE_TEXT_SIZE 1024
// A cell as people read it.
void table_cell_text(const struct table_column *column, const struct table_cell *cell,
                     char text[TABLE_TEXT_SIZE]);
// "64 MiB"
void table_bytes_text(uint64_t bytes, char text[TABLE_TEXT_SIZE]);
// "1:05:07", and of a rate "12.3k/s"; "" where it is not known.
#define TABLE_SHORT_SIZE 32
void table_time_text(double seconds, char text[TABLE_SHORT_SIZE]);
void table_rate_text(double rate, char text[TABLE_SHORT_SIZE]);

#endif
