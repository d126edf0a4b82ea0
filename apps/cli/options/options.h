// SPDX-License-Identifier: Apache-2.0
// Options of verbs, declared once: a row says name, value, help and default, and reading, checking
// and --help all come from it.
//
// A verb has a struct of values that begins with struct options; rows name a field of it by offset,
// so the tables are constant and the ones shared by all verbs fit every such struct:
//
//     struct bench { struct options common; struct ranges sizes; ... };
//     {.name = "size", .value = "LIST", .read = read_sizes, .at = offsetof(struct bench, sizes)}
#ifndef APPS_OPTIONS_H
#define APPS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/output/table.h"
#include "gpurt/config.h"
#include "gpurt/gpurt.h"
#include "ranges.h"

// Turns the text into the value at `into`; false with what is allowed said in `why`.
typedef bool options_read_fn(const char *text, void *into, char why[RANGES_WHY]);

struct option_row {
    const char *name;    // "output"
    const char *letter;  // "o", or NULL
    const char *value;   // "FILE"; NULL for a flag, which counts how often it is given (uint32_t)
    const char *help;
    const char *env;        // variable that gives the default, or NULL
    const char *fallback;   // default, read like a value; NULL leaves the field zero
    options_read_fn *read;  // NULL for a flag
    size_t at;              // offset of the field
    bool each;              // of several on the command line each is read, not the last alone
};

// Rows under one heading of --help.
struct option_list {
    const char *title;
    const struct option_row *rows;
    size_t count;
    const char *given;  // out: name of a row that stood on the command line, or NULL
    bool hidden;        // read, but not shown by --help
};
#define OPTION_LIST(heading, table)                                                                \
    { heading, table, sizeof(table) / sizeof *(table), NULL, false }

// Values of the shared lists.
struct options {
    uint32_t help, verbose, quiet;
    const char *backend;
    const char *device;
    uint32_t require_gpu;
    double mem_fraction;
    uint64_t mem_limit;
    double max_submit_ms;
    enum table_format format;
    const char *output;               // NULL: stdout
    uint32_t kernels, every_command;  // see watch.h
    const char *trace, *memory_snapshot;
    uint32_t monitor;
    const char *metrics;  // NULL: none
    const char *verb;     // "train supervised": filled by options_parse()
};

#define OPTIONS_SUBMIT_MS 500  // without --max-submit-ms

#define OPTIONS_GENERAL_COUNT 3
#define OPTIONS_DEVICE_COUNT 6
#define OPTIONS_OUTPUT_COUNT 2
extern const struct option_row options_general[OPTIONS_GENERAL_COUNT];
extern const struct option_row options_device[OPTIONS_DEVICE_COUNT];  // begins with --backend
extern const struct option_row options_output[OPTIONS_OUTPUT_COUNT];

// What a verb takes.
struct options_desc {
    const char *verb;
    const char *words;  // what may stand besides options: "[KIND...]"; NULL: nothing
    const char *about;  // paragraph for --help, lines ended
    struct option_list *lists;
    size_t list_count;
    enum grt_config_scope keys;  // of KEY=VALUE; 0: those of supervised training
};

// Fills the values; `words` (argc of them have room) gets the arguments that are no options.
// Returns -1 to go on, or the exit code to return with: help was printed, or the mistake was said.
int options_parse(const struct options_desc *desc, int argc, char **argv, struct options *values,
                  const char **words, size_t *word_count);

// What --help does instead of printing: completion and the man page read the tables this way.
// NULL: it prints again.
typedef void options_show_fn(const struct options_desc *desc, void *context);
void options_show_by(options_show_fn *show, void *context);

// For verbs whose keys are options too: arguments in which "--key VALUE" and "--key=VALUE", where
// no row has that name, have become "key=VALUE". False: out of memory. Words live until the end.
struct options_keys {
    int argc;
    char **argv;
    char **made;
    size_t made_count;
};
bool options_keys_begin(struct options_keys *keys, const struct option_list *lists, size_t count,
                        int argc, char **argv);
void options_keys_end(struct options_keys *keys);

// The device that the options ask for, or NULL with the sentence said. From there on the process is
// seen by `gpurt monitor`: publish/publish.h.
struct grt_dev *options_open_device(const struct options *options);
struct grt_dev_desc options_device_desc(const struct options *options);

// A number above 0, into a double. None has a use for more than OPTIONS_MOST, and none overflows
// below it.
#define OPTIONS_MOST 1e9
options_read_fn options_read_positive;
options_read_fn options_read_fraction;  // above 0 and up to 1
// A text that is not empty, into a const char *.
options_read_fn options_read_text;
// One whole number from 1, into a uint32_t.
options_read_fn options_read_count;
// What readers with bounds or words of their own are made of: one whole number from min to max (0:
// no bound), and words with commas between, each the bit of its place among the names.
bool options_whole(const char *text, uint64_t min, uint64_t max, uint64_t *into,
                   char why[RANGES_WHY]);
bool options_bits(const char *text, const char *const *names, size_t count, uint32_t *into,
                  char why[RANGES_WHY]);

#endif
