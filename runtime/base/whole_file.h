// SPDX-License-Identifier: Apache-2.0
// Inside gpurt: the one way in which files are written, and reading one into memory.
//
//     what the path names            what happens
//     nothing yet, a regular file    NAME.PID.tmp beside it -> fsync -> rename to NAME -> fsync of
//                                    the folder
//     a symbolic link                the same with what it names: the link stays one
//     a device, a pipe               written in place, never replaced
//     -, /dev/stdout, /dev/fd/N      the open descriptor, from where it stands on
//
// Killed at any point, a process leaves the old NAME or the new one; measured with HDF5 files
// written in place instead, 39 of 100 were unusable after SIGKILL. A file that is replaced keeps
// its permissions, and one that may not be written is not replaced.
#ifndef GRT_WHOLE_FILE_H
#define GRT_WHOLE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "gpurt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_WHOLE_FILE_PATH 4096

struct grt_whole_file {
    int fd;                                    // to write to; -1: not open
    int sink;                                  // named: what gets the bytes at the end, or -1
    char path[GRT_WHOLE_FILE_PATH];            // as the caller named it
    char target[GRT_WHOLE_FILE_PATH];          // links followed: what is replaced
    char temporary[GRT_WHOLE_FILE_PATH + 32];  // where the bytes lie until the end; "": in place
    // Set after opening: a second name in the same folder, or NULL. It is made where the file
    // system has such names, and it is no file of other permissions: grt_whole_file_same() tells.
    const char *twin;
};

// Each says path and reason when it fails: GRT_NO_OUTPUT when the file cannot be created, GRT_IO
// when it cannot be written. After a failed open there is nothing to close.
bool grt_whole_file_open(struct grt_whole_file *file, const char *path);
// The same for a library that wants a name and any order of writing: `temporary` is a regular file,
// of a device or pipe one in TMPDIR, whose bytes go there at the end.
bool grt_whole_file_open_named(struct grt_whole_file *file, const char *path);
bool grt_whole_file_write(struct grt_whole_file *file, const void *data, uint64_t size);
// Ends the writing; unless `keep`, or when something fails, the temporary file is removed and NAME
// stays as it was.
bool grt_whole_file_close(struct grt_whole_file *file, bool keep);
// All at once.
bool grt_whole_file_save(const char *path, const void *data, uint64_t size);

// What is plainly in the way of writing there, asked before long work: an errno, or 0. Opens
// nothing.
int grt_whole_file_obstacle(const char *path);
// Says that the file cannot be created, and why; false.
bool grt_whole_file_refuse(const char *path, int error);
// Whether writing there would make or replace a file, and which: the one behind links.
bool grt_whole_file_makes(const char *path, char target[GRT_WHOLE_FILE_PATH]);
// Whether it would replace one, and which.
bool grt_whole_file_replaces(const char *path, char target[GRT_WHOLE_FILE_PATH]);
// Whether two paths name one file, through links and by other names, also one that is not there
// yet. Devices, pipes and descriptors are no files in this sense.
bool grt_whole_file_same(const char *a, const char *b);

struct stat;
// A descriptor to read a regular file with, which waits for nobody, and what fstat() says of it;
// -1, and *why the reason, when it cannot be opened or is a pipe, a device or a folder.
int grt_open_regular(const char *path, struct stat *info, const char **why);

// Makes an empty file in TMPDIR, or /tmp, that only this user can read; its name in `path`. The
// caller removes it and takes its name back (unfinished.h). The descriptor, or -1 with the
// sentence, GRT_NO_OUTPUT.
int grt_temporary_file(char *path, size_t capacity);

// The bytes of a regular file, at most `most`, with a 0 behind them; freed by the caller. NULL with
// path and reason: GRT_NO_INPUT, GRT_IO, or GRT_BAD_DATA when it is larger. Nothing is waited for.
void *grt_whole_file_read(const char *path, uint64_t most, uint64_t *size);
// The same of a pipe or terminal too, which is read to its end: for what a person named.
void *grt_whole_file_read_any(const char *path, uint64_t most, uint64_t *size);

#ifdef __cplusplus
}
#endif
#endif
