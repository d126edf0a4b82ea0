// SPDX-License-Identifier: Apache-2.0
// The files that a command line names, and the one rule about them: what is written is neither read
// by the same command nor written twice. A verb lists its inputs and outputs and asks before it
// opens any.
#ifndef APPS_FILES_H
#define APPS_FILES_H

#include <stddef.h>

enum file_use {
    FILE_READ,
    FILE_WRITTEN,  // a file, made or replaced
    // written, and what is there before is moved aside or gone on with: it may be read too
    FILE_KEPT,
    // a folder of checkpoints, both read and written; what else lies there is no matter
    FILE_FOLDER,
};

struct file_named {
    enum file_use use;
    const char *by;    // "--data", or the word's place: "IN"
    const char *path;  // NULL or "": not given
};

// COMMAND_OK, or COMMAND_USAGE when two of them clash, which is said with both names. The same file
// is one of the same path or number, through links too; devices and pipes clash with nothing, for
// they are not replaced. The profile that GPURT_PROFILE names is read by every verb.
int files_apart(const struct file_named *files, size_t count);
#define FILES_APART(...)                                                                           \
    files_apart((const struct file_named[]){__VA_ARGS__},                                          \
                sizeof(const struct file_named[]){__VA_ARGS__} / sizeof(struct file_named))
// Those of struct options that are written beside the results (watch.h).
#define FILES_WATCHED(options)                                                                     \
    {FILE_WRITTEN, "--trace", (options)->trace}, {                                                 \
        FILE_WRITTEN, "--memory-snapshot", (options)->memory_snapshot                              \
    }

#endif
