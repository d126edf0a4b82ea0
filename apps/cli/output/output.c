// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "files.h"
#include "cli/talk.h"
#include "base/visible.h"
#include "base/whole_file.h"

int output_open(struct output *output, const char *path) {
    *output = (struct output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) {
        return COMMAND_OK;
    }
    *output = (struct output){0};
    int code = FILES_APART({FILE_WRITTEN, "--output", path});
    if (code) {
        return code;
    }
    output->whole = malloc(sizeof *output->whole);
    if (!output->whole) {
        talk_error("out of memory");
        return COMMAND_INTERNAL;
    }
    if (!grt_whole_file_open(output->whole, path)) {
        goto undo_whole;
    }
    // A descriptor of its own, so that closing the stream leaves the other for what comes last.
    int fd = dup(output->whole->fd);
    output->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (output->file) {
        return COMMAND_OK;
    }
    talk_error("cannot create '%s': %s", path, strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    grt_whole_file_close(output->whole, false);
undo_whole:
    free(output->whole);
    output->whole = NULL;
    return COMMAND_CANNOT_CREATE;
}

void output_line(FILE *file, const char *format, ...) {
    char line[4096], visible[2 * sizeof line];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    grt_visible(line, visible, sizeof visible);
    fprintf(file, "%s\n", visible);
}

bool output_flush(struct output *output) {
    // A stream remembers that a write failed but not why, so the reason is taken at once.
    errno = 0;
    if (!output->error && (fflush(output->file) != 0 || ferror(output->file))) {
        output->error = errno ? errno : EIO;
    }
    return !output->error;
}

// Everything printed is with the system, or the error is kept.
static bool finish(struct output *output) {
    output_flush(output);
    if (output->file == stdout) {
        clearerr(stdout);  // reported here; main looks at stdout again
    } else if (fclose(output->file) != 0 && !output->error) {
        output->error = errno;
    }
    return !output->error;
}

int output_close(struct output *output, bool keep) {
    int code = COMMAND_OK;
    if (!output->file) {
        return code;
    }
    bool whole = finish(output);
    if (!whole && output->said) {
        code = COMMAND_IO;
    } else if (!whole && output->error != EPIPE) {
        talk_error("cannot write %s: %s", output->whole ? output->whole->path : "the results",
                   strerror(output->error));
        code = COMMAND_IO;
    }
    if (output->whole && !grt_whole_file_close(output->whole, whole && keep)) {
        code = command_exit_of(grt_last_status());
    }
    free(output->whole);
    *output = (struct output){0};
    return code;
}

int output_end(struct output *output, bool keep, int code) {
    bool failed = output->error != 0;
    int written = output_close(output, keep);
    return !code || (failed && code == COMMAND_INTERNAL) ? written : code;
}
