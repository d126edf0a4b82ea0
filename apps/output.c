// SPDX-License-Identifier: Apache-2.0
// A regular file is written as NAME.PID.tmp beside its final name and renamed when every byte is on
// disk: a full disk or Ctrl-C leaves the old file as it was. Whatever is no regular file
// (/dev/null, a pipe) is written in place, since a rename would replace it.
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "talk.h"

static int cannot_create(const char *path) {
    talk_error("cannot create '%s': %s", path, strerror(errno));
    return COMMAND_CANNOT_CREATE;
}

// The path itself, or what it links to, so that a link stays a link.
static char *target_of(const char *path) {
    char *real = realpath(path, NULL);
    return real ? real : strdup(path);
}

int output_open(struct output *output, const char *path) {
    struct stat info;
    *output = (struct output){.file = stdout};
    if (!path || !strcmp(path, "-"))
        return COMMAND_OK;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        output->file = fopen(path, "w");
        return output->file ? COMMAND_OK : cannot_create(path);
    }
    output->path = target_of(path);
    size_t size = output->path ? strlen(output->path) + 32 : 0;
    output->temporary = size ? malloc(size) : NULL;
    if (!output->temporary) {
        talk_error("out of memory");
        goto undo_path;
    }
    snprintf(output->temporary, size, "%s.%ld.tmp", output->path, (long)getpid());
    int fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        cannot_create(path);
        goto undo_temporary;
    }
    output->file = fdopen(fd, "w");
    if (output->file)
        return COMMAND_OK;
    cannot_create(path);
    close(fd);
    unlink(output->temporary);
undo_temporary:
    free(output->temporary);
undo_path:
    free(output->path);
    *output = (struct output){0};
    return COMMAND_CANNOT_CREATE;
}

bool output_flush(struct output *output) {
    // A stream remembers that a write failed but not why, so the reason is taken at once.
    errno = 0;
    if (!output->error && (fflush(output->file) != 0 || ferror(output->file)))
        output->error = errno ? errno : EIO;
    return !output->error;
}

static bool finish(struct output *output) {
    output_flush(output);
    if (output->temporary && !output->error && fsync(fileno(output->file)) != 0)
        output->error = errno;
    if (output->file == stdout)
        clearerr(stdout);  // reported here; main looks at stdout again
    else if (fclose(output->file) != 0 && !output->error)
        output->error = errno;
    return !output->error;
}

int output_close(struct output *output, bool keep) {
    int code = COMMAND_OK;
    if (!output->file)
        return code;
    bool whole = finish(output);
    if (!whole && output->error != EPIPE) {
        talk_error("cannot write %s: %s", output->path ? output->path : "the results",
                   strerror(output->error));
        code = COMMAND_IO;
    }
    if (output->temporary && whole && keep && rename(output->temporary, output->path) != 0) {
        code = cannot_create(output->path);
        keep = false;
    }
    if (output->temporary && !(whole && keep))
        unlink(output->temporary);
    free(output->temporary);
    free(output->path);
    *output = (struct output){0};
    return code;
}

int output_end(struct output *output, bool keep, int code) {
    bool failed = output->error != 0;
    int written = output_close(output, keep);
    return !code || (failed && code == COMMAND_INTERNAL) ? written : code;
}

bool output_spares(const char *path, const char *input) {
    struct stat out, in;
    if (!path || !input || stat(path, &out) != 0 || stat(input, &in) != 0 ||
        !S_ISREG(out.st_mode) || out.st_dev != in.st_dev || out.st_ino != in.st_ino)
        return true;
    talk_error("'%s' is read and would be overwritten: name another file for the results", path);
    return false;
}
