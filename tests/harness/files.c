// SPDX-License-Identifier: Apache-2.0
// Notes how files reach the disk: the linker turns gpurt's calls of fsync() and rename() to these
// (--wrap, see CMakeLists.txt). A test may have fsync() fail.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

struct test_files test_files;

static void note(char what) {
    size_t length = strlen(test_files.done);
    if (length + 1 < sizeof test_files.done) {
        test_files.done[length] = what;
        test_files.done[length + 1] = '\0';
    }
}

// The linker's names.
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

int __wrap_fsync(int fd) {
    struct stat info;
    bool folder = fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    note(folder ? 'd' : 'f');
    if (test_files.fail == (folder ? 'd' : 'f')) {
        errno = EIO;
        return -1;
    }
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to) {
    note('r');
    return __real_rename(from, to);
}
