// SPDX-License-Identifier: Apache-2.0
// `gpurt data import`: image data sets of other programs into an HDF5 file.
#include "data_import.h"

#include <inttypes.h>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/talk.h"
#include "gpurt/import.h"

static void show_progress(uint64_t done, uint64_t of) {
    talk_progress("importing: %" PRIu64 " of %" PRIu64 " images", done, of);
}

static void show_note(const char *text) {
    talk_clear();
    talk_line("%s", text);
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
