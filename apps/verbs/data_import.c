// SPDX-License-Identifier: Apache-2.0
// `gpurt data import`: images and tables of other programs into an HDF5 file.
#include "data_import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/files.h"
#include "cli/talk.h"
#include "gpurt/direct.h"

static void show_progress(uint64_t done, uint64_t of) {
    talk_progress("importing: %" PRIu64 " of %" PRIu64 " images", done, of);
}

static void show_note(const char *text) {
    talk_clear();
    talk_line("%s", text);
}

// ---- tables ----

#define MOST_NAMES 4096

static bool is_table(const char *source) {
    const char *ending = strrchr(source, '.');
    return ending && (strcmp(ending, ".csv") == 0 || strcmp(ending, ".tsv") == 0);
}

// The words between commas, in a copy that is the caller's to free; NULL without host memory.
static char *split(const char *list, const char **words, uint32_t *count) {
    char *copy = malloc(strlen(list) + 1), *rest = copy;
    *count = 0;
    if (copy) {
        memcpy(copy, list, strlen(list) + 1);
    }
    while (rest && *rest && *count < MOST_NAMES) {
        char *comma = strchr(rest, ',');
        words[(*count)++] = rest;
        if (comma) {
            *comma = '\0';
        }
        rest = comma ? comma + 1 : NULL;
    }
    return copy;
}

static bool right_fill(const char *fill) {
    char *end = NULL;
    return !fill || strcmp(fill, "mean") == 0 ||
           (strtod(fill, &end) - strtod(fill, &end) == 0 && end > fill && *end == '\0');
}

// The columns that are named.
struct columns {
    const char **words;  // inputs, then targets from MOST_NAMES on
    char *inputs, *targets;
    uint32_t input_count, target_count;
};

// Returns an exit code, the mistake said.
static int columns_read(const struct data_import *import, struct columns *c) {
    *c = (struct columns){.words = calloc(2 * MOST_NAMES, sizeof *c->words)};
    bool room = c->words != NULL;
    if (room && import->inputs) {
        room = (c->inputs = split(import->inputs, c->words, &c->input_count)) != NULL;
    }
    if (room && import->targets) {
        c->targets = split(import->targets, c->words + MOST_NAMES, &c->target_count);
        room = c->targets != NULL;
    }
    if (!room) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    if (!right_fill(import->fill)) {
        talk_error("--fill is a number or mean, not '%s'", import->fill);
        return COMMAND_USAGE;
    }
    return COMMAND_OK;
}

static void columns_finish(struct columns *c) {
    free(c->inputs);
    free(c->targets);
    free(c->words);
}

const char *data_direct(const struct data_import *import, int *code) {
    struct columns c;
    struct grt_direct direct = {0};
    if (!is_table(import->source) && (import->inputs || import->targets || import->fill)) {
        talk_error("data info: --inputs, --targets and --fill are for .csv and .tsv");
        *code = COMMAND_USAGE;
        return NULL;
    }
    *code = columns_read(import, &c);
    if (!*code &&
        !grt_direct(grt_direct_desc(.path = import->source, .inputs = c.words,
                                    .input_count = c.input_count, .targets = c.words + MOST_NAMES,
                                    .target_count = c.target_count, .fill = import->fill),
                    &direct)) {
        *code = command_exit_of(grt_last_status());
    }
    columns_finish(&c);
    return direct.path;
}

static int import_table(const struct data_import *import) {
    struct grt_table_result result = {0};
    struct columns c;
    int code = columns_read(import, &c);
    const struct grt_table_desc desc = {.source = import->source,
                                        .path = import->output,
                                        .inputs = c.words,
                                        .input_count = c.input_count,
                                        .targets = c.words ? c.words + MOST_NAMES : NULL,
                                        .target_count = c.target_count,
                                        .fill = import->fill};
    if (!code) {
        code = grt_table_import(&desc, &result) ? COMMAND_OK : command_exit_of(grt_last_status());
    }
    if (!code) {
        talk_line("a table: %" PRIu64 " rows of %u inputs in %s", result.rows, result.inputs,
                  import->output);
        if (result.classes > 0) {
            talk_line("y has %u classes; loss=mse takes them for numbers", result.classes);
        }
        if (result.filled > 0) {
            talk_line("%" PRIu64 " missing values were filled", result.filled);
        }
    }
    grt_table_result_finish(&result);
    columns_finish(&c);
    return code;
}

// ---- any ----

bool data_named(const char *path) {
    const char *slash = strrchr(path, '/'), *ending = strrchr(slash ? slash : path, '.');
    if (!ending || strcmp(ending, ".h5") == 0 || strcmp(ending, ".hdf5") == 0) {
        return true;
    }
    talk_error("'%s': the name must end in .h5 or .hdf5", path);
    return false;
}

int data_import(const struct data_import *import) {
    struct grt_import_result result;
    if (!import->output) {
        talk_error("data import: -o FILE says where to");
        return COMMAND_USAGE;
    }
    int code =
        FILES_APART({FILE_READ, "SOURCE", import->source}, {FILE_READ, "LABELS", import->labels},
                    {FILE_WRITTEN, "--output", import->output});
    if (code) {
        return code;
    }
    if (!data_named(import->output)) {
        return COMMAND_USAGE;
    }
    bool table = is_table(import->source);
    if (table ? import->labels || import->size || import->gray
              : import->inputs || import->targets || import->fill) {
        talk_error("data import: %s", table ? "LABELS, --size and --gray are for images"
                                            : "--inputs, --targets and --fill are for .csv and "
                                              ".tsv");
        return COMMAND_USAGE;
    }
    if (table) {
        return import_table(import);
    }
    bool good = grt_data_import(
        grt_import_desc(.source = import->source, .labels = import->labels, .path = import->output,
                        .size = import->size, .gray = import->gray != 0, .threads = import->workers,
                        .stop = talk_stopped, .progress = show_progress, .note = show_note),
        &result);
    talk_clear();
    if (!good) {
        return command_exit_of(grt_last_status());
    }
    talk_line("%s: %" PRIu64 " images of %ux%ux%u, %u classes, in %s", result.kind, result.rows,
              result.height, result.width, result.channels, result.classes, import->output);
    if (result.left_out > 0) {
        talk_line("%" PRIu64 " were left out", result.left_out);
    }
    return COMMAND_OK;
}
