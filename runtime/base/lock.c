// SPDX-License-Identifier: Apache-2.0
// flock() rather than fcntl(): a second run in the same process is kept out too, and closing
// another descriptor of the file does not end it. Linux carries it over NFS.
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "gpurt/unfinished.h"

// "process 1234 on host", as the holder wrote it.
static void read_holder(int fd, char text[300]) {
    ssize_t length = pread(fd, text, 299, 0);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    bool plain = text[0] != '\0';
    for (const char *c = text; *c; c++) {
        plain = plain && *c >= ' ' && *c < 127;
    }
    if (!plain) {
        snprintf(text, 300, "another process");
    }
}

static void write_holder(int fd) {
    char host[200] = "";
    char text[300];
    if (gethostname(host, sizeof host - 1) != 0 || !host[0]) {
        snprintf(host, sizeof host, "this host");
    }
    int length = snprintf(text, sizeof text, "process %ld on %s\n", (long)getpid(), host);
    // For people only: the lock holds without it.
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length) {
        grt_log(GRT_LOG_DEBUG, "a lock does not say whose it is: %s", strerror(errno));
    }
}

// Whether `path` still is the file that was opened: its holder may have ended in between and
// removed it.
static bool same_file(int fd, const char *path) {
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

bool grt_lock_take(struct grt_lock *lock, const char *path, const char *what) {
    char holder[300];
    int fd = -1;
    *lock = (struct grt_lock){.fd = -1};
    if ((size_t)snprintf(lock->path, sizeof lock->path, "%s", path) >= sizeof lock->path) {
        return grt_fail(GRT_NO_OUTPUT, "%s: the path is too long", what);
    }
    for (bool current = false; !current; current = same_file(fd, path)) {
        if (fd >= 0) {
            close(fd);
        }
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0) {
            return grt_fail(GRT_NO_OUTPUT, "cannot create %s: %s", path, strerror(errno));
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            continue;
        }
        if (errno == EWOULDBLOCK) {
            read_holder(fd, holder);
            close(fd);
            return grt_fail(GRT_NO_OUTPUT,
                            "%s is in use by %s: wait until that run has ended, or name another",
                            what, holder);
        }
        grt_log(GRT_LOG_WARN, "%s cannot be locked (%s): a second run there would not be noticed",
                what, strerror(errno));
        break;
    }
    write_holder(fd);
    grt_unfinished_add(path);
    lock->fd = fd;
    lock->held = true;
    return true;
}

void grt_lock_release(struct grt_lock *lock) {
    if (lock->held) {
        unlink(lock->path);  // before the lock ends: later it may be another's file
        grt_unfinished_remove(lock->path);
        close(lock->fd);
        lock->held = false;
    }
}
