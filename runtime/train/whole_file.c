// SPDX-License-Identifier: Apache-2.0
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../report.h"

bool whole_file_open(struct whole_file *file, const char *path) {
    // Through a link, so that the link stays one.
    char *real = realpath(path, NULL);
    int length = snprintf(file->path, sizeof file->path, "%s", real ? real : path);
    free(real);
    file->fd = -1;
    if (length < 0 || (size_t)length >= sizeof file->path) {
        return grt_fail(GRT_NO_OUTPUT, "cannot create %.200s...: the path is too long", path);
    }
    snprintf(file->temporary, sizeof file->temporary, "%s.%ld.tmp", file->path, (long)getpid());
    // One of that name is left from a killed process that had the same number.
    unlink(file->temporary);
    file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return file->fd >= 0 || grt_fail(GRT_NO_OUTPUT, "cannot create %s: %s", path, strerror(errno));
}

bool whole_file_write(struct whole_file *file, const void *data, uint64_t size) {
    const char *at = data;
    while (size > 0) {
        ssize_t written = write(file->fd, at, size < 1u << 30 ? size : 1u << 30);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return grt_fail(GRT_IO, "cannot write %s: %s; the file is as it was", file->path,
                            written < 0 ? strerror(errno) : "nothing was written");
        }
        at += written;
        size -= (uint64_t)written;
    }
    return true;
}

// The new name is on the disk only when its folder is.
static bool sync_folder(const char *path) {
    char dir[4096];
    const char *slash = strrchr(path, '/');
    if (slash) {
        snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    } else {
        snprintf(dir, sizeof dir, ".");
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // Some file systems cannot sync a folder and say EINVAL; there is no more to be done then.
    bool done = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    return done || grt_fail(GRT_IO, "cannot bring %s to the disk: %s", dir, strerror(error));
}

bool whole_file_close(struct whole_file *file, bool keep) {
    bool good = true;
    if (file->fd < 0) {
        return false;
    }
    if (keep && fsync(file->fd) != 0) {
        good = grt_fail(GRT_IO, "cannot bring %s to the disk: %s; the file is as it was",
                        file->path, strerror(errno));
    }
    if (close(file->fd) != 0 && keep && good) {
        good = grt_fail(GRT_IO, "cannot write %s: %s; the file is as it was", file->path,
                        strerror(errno));
    }
    file->fd = -1;
    if (keep && good && rename(file->temporary, file->path) != 0) {
        good = grt_fail(GRT_NO_OUTPUT, "cannot create %s: %s", file->path, strerror(errno));
    }
    if (!keep || !good) {
        unlink(file->temporary);
        return good;
    }
    return sync_folder(file->path);
}

bool whole_file_save(const char *path, const void *data, uint64_t size) {
    struct whole_file file = {.fd = -1};
    if (!whole_file_open(&file, path)) {
        return false;
    }
    bool written = whole_file_write(&file, data, size);
    return whole_file_close(&file, written) && written;
}

void *whole_file_read(const char *path, uint64_t most, uint64_t *size) {
    struct stat info;
    char *bytes = NULL;
    // Not blocking: a pipe without a writer would wait for ever.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0) {
        grt_fail(GRT_NO_INPUT, "cannot read %s: %s", path, strerror(errno));
        goto close_file;
    }
    if (!S_ISREG(info.st_mode)) {
        grt_fail(GRT_NO_INPUT, "cannot read %s: it is no regular file", path);
        goto close_file;
    }
    *size = (uint64_t)info.st_size;
    if (*size > most) {
        grt_fail(GRT_BAD_DATA, "%s has %llu bytes, more than the %llu allowed", path,
                 (unsigned long long)*size, (unsigned long long)most);
        goto close_file;
    }
    bytes = malloc(*size + 1);
    if (!bytes) {
        grt_fail(GRT_NO_MEMORY, "no host memory for the %llu bytes of %s",
                 (unsigned long long)*size, path);
        goto close_file;
    }
    for (uint64_t at = 0; at < *size;) {
        ssize_t got = read(fd, bytes + at, *size - at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            grt_fail(GRT_IO, "cannot read %s: %s", path,
                     got < 0 ? strerror(errno) : "it was cut short while it was read");
            free(bytes);
            bytes = NULL;
            goto close_file;
        }
        at += (uint64_t)got;
    }
    bytes[*size] = '\0';
close_file:
    if (fd >= 0) {
        close(fd);
    }
    return bytes;
}
