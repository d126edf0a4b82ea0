// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE  // sync_file_range
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "gpurt/unfinished.h"

#define MOST_LINKS 40              // as many as the kernel follows
#define PIECE ((uint64_t)8 << 20)  // after which the disk may begin

bool grt_whole_file_refuse(const char *path, int error) {
    const char *slash = strrchr(path, '/');
    char folder[1024];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (error == ENOENT && folder[0] && access(folder, F_OK) != 0) {
        return grt_fail(GRT_NO_OUTPUT,
                        "cannot create %.1000s: there is no folder %s; make it first", path,
                        folder);
    }
    return grt_fail(GRT_NO_OUTPUT, "cannot create %.1000s: %s", path, strerror(error));
}

static bool cannot_write(const struct grt_whole_file *file, int error) {
    return grt_fail(GRT_IO, "cannot write %.1000s: %s%s", file->path, strerror(error),
                    file->temporary[0] && file->sink < 0 ? "; the file is as it was" : "");
}

// ---- what a path names ----

// The descriptor that a path is another name of, or -1. /dev/stdout is a link to such a path.
static int descriptor_of(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0) {
        return STDOUT_FILENO;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        const char *number = path + length;
        if (strncmp(path, folders[i], length) == 0 && *number && strlen(number) < 9 &&
            strspn(number, "0123456789") == strlen(number)) {
            return (int)strtol(number, NULL, 10);
        }
    }
    return -1;
}

// Length of the part before the name, with the slash; 0 without one.
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

enum kind { BAD_PATH, DESCRIPTOR, IN_PLACE, REGULAR, NEW };

// Puts what the links of the last part lead to into `target`, whether it exists or not. The
// descriptor that they end at, -1 without one, or -2 with errno set.
static int follow_links(const char *path, char target[GRT_WHOLE_FILE_PATH]) {
    errno = ENAMETOOLONG;
    if (strlen(path) >= GRT_WHOLE_FILE_PATH) {
        return -2;
    }
    memcpy(target, path, strlen(path) + 1);
    for (int hops = 0; hops <= MOST_LINKS; hops++) {
        char link[GRT_WHOLE_FILE_PATH];
        int descriptor = descriptor_of(target);
        ssize_t length = descriptor < 0 ? readlink(target, link, sizeof link - 1) : -1;
        if (length < 0) {
            return descriptor;  // no link, or nothing there
        }
        link[length] = '\0';
        size_t keep = link[0] == '/' ? 0 : folder_length(target);
        errno = ENAMETOOLONG;
        if (keep + (size_t)length >= GRT_WHOLE_FILE_PATH) {
            return -2;
        }
        memcpy(target + keep, link, (size_t)length + 1);
    }
    errno = ELOOP;
    return -2;
}

// What a path names: its target, stat() of one that is there, and the number of a descriptor.
static enum kind look_at(const char *path, char target[GRT_WHOLE_FILE_PATH], struct stat *info,
                         int *descriptor) {
    *descriptor = follow_links(path, target);
    if (*descriptor != -1) {
        return *descriptor >= 0 ? DESCRIPTOR : BAD_PATH;
    }
    return stat(target, info) != 0 ? NEW : S_ISREG(info->st_mode) ? REGULAR : IN_PLACE;
}

bool grt_whole_file_replaces(const char *path, char target[GRT_WHOLE_FILE_PATH]) {
    struct stat info;
    int descriptor = -1;
    return look_at(path, target, &info, &descriptor) == REGULAR;
}

// stat() of the folder that a path lies in; its length is cut off at the name.
static bool stat_folder(const char *path, struct stat *info) {
    char folder[GRT_WHOLE_FILE_PATH];
    size_t length = folder_length(path);
    snprintf(folder, sizeof folder, "%.*s.", (int)length, path);
    return stat(folder, info) == 0;
}

bool grt_whole_file_same(const char *a, const char *b) {
    char target[2][GRT_WHOLE_FILE_PATH];
    struct stat info[2];
    int descriptor = -1;
    enum kind kind = look_at(a, target[0], &info[0], &descriptor);
    if (kind != look_at(b, target[1], &info[1], &descriptor) || (kind != REGULAR && kind != NEW)) {
        return false;
    }
    // Of what is not there yet, the folder and the name are all that there is.
    if (kind == NEW &&
        (strcmp(target[0] + folder_length(target[0]), target[1] + folder_length(target[1])) != 0 ||
         !stat_folder(target[0], &info[0]) || !stat_folder(target[1], &info[1]))) {
        return false;
    }
    return info[0].st_dev == info[1].st_dev && info[0].st_ino == info[1].st_ino;
}

bool grt_whole_file_makes(const char *path, char target[GRT_WHOLE_FILE_PATH]) {
    struct stat info;
    int descriptor = -1;
    enum kind kind = look_at(path, target, &info, &descriptor);
    return kind == REGULAR || kind == NEW;
}

int grt_whole_file_obstacle(const char *path) {
    char target[GRT_WHOLE_FILE_PATH];
    struct stat info;
    int descriptor = -1;
    switch (look_at(path, target, &info, &descriptor)) {
    case BAD_PATH:
        return errno;
    case DESCRIPTOR:
        return fcntl(descriptor, F_GETFL) < 0 ? errno : 0;
    case IN_PLACE:
        return S_ISDIR(info.st_mode) ? EISDIR : access(target, W_OK) != 0 ? errno : 0;
    case REGULAR:
        if (access(target, W_OK) != 0) {
            return errno;
        }
        break;
    case NEW:
        break;
    }
    size_t length = folder_length(target);
    snprintf(target + length, GRT_WHOLE_FILE_PATH - length, ".");
    return access(target, W_OK | X_OK) != 0 ? errno : 0;
}

// Another descriptor of what stands open already. What was printed before stays before.
static int open_again(int descriptor) {
    if (descriptor == STDOUT_FILENO) {
        fflush(stdout);
    }
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return -1;
    }
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
}

// Opens beside the target what will replace it, with the permissions of the old one (NULL: it is
// new).
static int open_beside(struct grt_whole_file *file, const struct stat *old) {
    snprintf(file->temporary, sizeof file->temporary, "%s.%ld.tmp", file->target, (long)getpid());
    // One of that name is left from a killed process that had the same number.
    unlink(file->temporary);
    grt_unfinished_add(file->temporary);
    int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        int error = errno;
        grt_unfinished_remove(file->temporary);
        errno = error;
    }
    if (fd >= 0 && old) {
        (void)!fchown(fd, old->st_uid, old->st_gid);  // only root may give a file away
        (void)!fchmod(fd, old->st_mode & 0777);
    }
    return fd;
}

bool grt_whole_file_open(struct grt_whole_file *file, const char *path) {
    struct stat old;
    int descriptor = -1;
    file->fd = file->sink = -1;
    file->temporary[0] = '\0';
    file->twin = NULL;
    snprintf(file->path, sizeof file->path, "%s", path);
    switch (look_at(path, file->target, &old, &descriptor)) {
    case BAD_PATH:
        break;
    case DESCRIPTOR:
        file->fd = open_again(descriptor);
        break;
    case IN_PLACE:
        file->fd = open(file->target, O_WRONLY | O_CLOEXEC);  // of a folder this fails
        break;
    case REGULAR:
        file->fd = access(file->target, W_OK) == 0 ? open_beside(file, &old) : -1;
        break;
    case NEW:
        file->fd = open_beside(file, NULL);
        break;
    }
    return file->fd >= 0 || grt_whole_file_refuse(path, errno);
}

int grt_temporary_file(char *path, size_t capacity) {
    const char *given = getenv("TMPDIR");
    const char *folder = given && *given ? given : "/tmp";
    int length = snprintf(path, capacity, "%s/gpurt-XXXXXX", folder);
    bool fits = length > 0 && (size_t)length < capacity;
    errno = ENAMETOOLONG;
    int fd = fits ? mkstemp(path) : -1;
    if (fd >= 0) {
        grt_unfinished_add(path);
    } else {
        path[0] = '\0';
        grt_fail(GRT_NO_OUTPUT,
                 "no temporary file can be made in %.1000s: %s; TMPDIR names another folder",
                 folder, strerror(errno));
    }
    return fd;
}

bool grt_whole_file_open_named(struct grt_whole_file *file, const char *path) {
    if (!grt_whole_file_open(file, path)) {
        return false;
    }
    if (file->temporary[0]) {
        return true;
    }
    file->sink = file->fd;
    file->fd = grt_temporary_file(file->temporary, sizeof file->temporary);
    if (file->fd < 0) {
        close(file->sink);
        file->sink = -1;
    }
    return file->fd >= 0;
}

// ---- writing ----

static bool write_all(struct grt_whole_file *file, int fd, const char *at, uint64_t size) {
    while (size > 0) {
        ssize_t written = write(fd, at, size < 1u << 30 ? size : 1u << 30);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return cannot_write(file, written < 0 ? errno : EIO);
        }
        at += written;
        size -= (uint64_t)written;
    }
    return true;
}

bool grt_whole_file_write(struct grt_whole_file *file, const void *data, uint64_t size) {
    const char *at = data;
    bool good = true;
    for (; good && size > PIECE; at += PIECE, size -= PIECE) {
        good = write_all(file, file->fd, at, PIECE);
        // The disk begins, and fsync() at the end waits for less. Where this is refused, as of a
        // pipe, nothing is lost.
        sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    return good && write_all(file, file->fd, at, size);
}

// The bytes of the temporary file, to the device or pipe.
static bool pour(struct grt_whole_file *file) {
    char block[1 << 16];
    int from = open(file->temporary, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    bool good = from >= 0;
    while (good && (got = read(from, block, sizeof block)) > 0) {
        good = write_all(file, file->sink, block, (uint64_t)got);
    }
    if (from < 0 || got < 0) {
        good = cannot_write(file, errno);
    }
    if (from >= 0) {
        close(from);
    }
    return good;
}

// The new name is on the disk only when its folder is.
static bool sync_folder(const char *path) {
    char folder[GRT_WHOLE_FILE_PATH];
    size_t length = folder_length(path);
    snprintf(folder, sizeof folder, "%.*s", (int)(length ? length : 1), length ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // Some file systems cannot sync a folder and say EINVAL; there is no more to be done then. Nor
    // is there with a folder that may be written and not read.
    bool done = fd >= 0 ? fsync(fd) == 0 || errno == EINVAL : errno == EACCES;
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    return done ||
           grt_fail(GRT_IO, "cannot bring %.1000s to the disk: %s", folder, strerror(error));
}

// Makes `path` another name of a whole file, if it can be.
static void name_too(const char *whole, const char *path) {
    struct stat from, there;
    char temporary[GRT_WHOLE_FILE_PATH + 32];
    bool any = lstat(path, &there) == 0;
    if (stat(whole, &from) != 0 || !S_ISREG(from.st_mode) ||
        (any && (there.st_mode != from.st_mode || access(path, W_OK) != 0))) {
        return;
    }
    snprintf(temporary, sizeof temporary, "%.4096s.%ld.tmp", path, (long)getpid());
    unlink(temporary);
    grt_unfinished_add(temporary);
    if (link(whole, temporary) == 0) {
        (void)!rename(temporary, path);
    }
    unlink(temporary);  // still there where both were names of one file already
    grt_unfinished_remove(temporary);
}

static bool replace(struct grt_whole_file *file) {
    if (rename(file->temporary, file->target) != 0) {
        return grt_whole_file_refuse(file->path, errno);
    }
    grt_unfinished_remove(file->temporary);
    file->temporary[0] = '\0';
    if (file->twin) {
        name_too(file->target, file->twin);
    }
    return sync_folder(file->target);
}

bool grt_whole_file_close(struct grt_whole_file *file, bool keep) {
    if (file->fd < 0) {
        return false;
    }
    bool replaces = file->temporary[0] && file->sink < 0;
    bool good = !keep || !replaces || fsync(file->fd) == 0 || cannot_write(file, errno);
    good = (close(file->fd) == 0 || !keep || !good || cannot_write(file, errno)) && good;
    file->fd = -1;
    if (file->sink >= 0) {
        good = good && (!keep || pour(file));
        good = (close(file->sink) == 0 || !keep || !good || cannot_write(file, errno)) && good;
    } else if (replaces && keep && good) {
        good = replace(file);
    }
    if (file->temporary[0]) {
        unlink(file->temporary);
        grt_unfinished_remove(file->temporary);
    }
    file->temporary[0] = '\0';
    file->sink = -1;
    return good;
}

bool grt_whole_file_save(const char *path, const void *data, uint64_t size) {
    struct grt_whole_file file;
    if (!grt_whole_file_open(&file, path)) {
        return false;
    }
    bool written = grt_whole_file_write(&file, data, size);
    return grt_whole_file_close(&file, written) && written;
}

// ---- reading ----

static void too_large(const char *path, uint64_t most) {
    grt_fail(GRT_BAD_DATA, "%.1000s has more than the %llu bytes allowed", path,
             (unsigned long long)most);
}

// All up to the end, at most `most`; a regular file's size is known before. NULL with the sentence.
static char *read_all(int fd, const char *path, uint64_t known, uint64_t most, uint64_t *size) {
    uint64_t room = known > 0 ? known : 1 << 16;
    char *bytes = malloc(room + 1);
    *size = 0;
    while (bytes) {
        ssize_t got = read(fd, bytes + *size, room - *size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0 && (got < 0 || *size < known)) {
            grt_fail(GRT_IO, "cannot read %.1000s: %s", path,
                     got < 0 ? strerror(errno) : "it was cut short while it was read");
            goto undo;
        }
        *size += (uint64_t)got;
        if (got == 0 || *size == known) {
            bytes[*size] = '\0';
            return bytes;
        }
        if (*size > most) {
            too_large(path, most);
            goto undo;
        }
        if (*size == room) {
            char *more = realloc(bytes, 2 * room + 1);
            if (!more) {
                break;
            }
            bytes = more;
            room *= 2;
        }
    }
    grt_fail(GRT_NO_MEMORY, "no host memory for the bytes of %.1000s", path);
undo:
    free(bytes);
    return NULL;
}

int grt_open_regular(const char *path, struct stat *info, const char **why) {
    // Not blocking: a pipe without a writer would wait for ever.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *why = fd < 0 || fstat(fd, info) != 0 ? strerror(errno)
           : !S_ISREG(info->st_mode)      ? "it is no regular file"
                                          : NULL;
    if (*why && fd >= 0) {
        close(fd);
        errno = EINVAL;
        fd = -1;
    }
    return fd;
}

// The same of whatever can be read, waiting where there is something to wait for.
static int open_any(const char *path, struct stat *info, const char **why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *why = fd < 0 || fstat(fd, info) != 0 ? strerror(errno)
           : S_ISDIR(info->st_mode)       ? "it is no regular file"
                                          : NULL;
    return fd;
}

static void *read_file(const char *path, uint64_t most, uint64_t *size, bool any) {
    struct stat info = {0};
    const char *why = NULL;
    void *bytes = NULL;
    int fd = any ? open_any(path, &info, &why) : grt_open_regular(path, &info, &why);
    if (why) {
        grt_fail(GRT_NO_INPUT, "cannot read %.1000s: %s", path, why);
    } else if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > most) {
        too_large(path, most);
    } else {
        bytes = read_all(fd, path, S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0, most, size);
    }
    if (fd >= 0) {
        close(fd);
    }
    return bytes;
}

void *grt_whole_file_read(const char *path, uint64_t most, uint64_t *size) {
    return read_file(path, most, size, false);
}

void *grt_whole_file_read_any(const char *path, uint64_t most, uint64_t *size) {
    return read_file(path, most, size, true);
}
