// SPDX-License-Identifier: Apache-2.0
// Notes how files reach the disk: the linker turns gpurt's calls of fsync() and rename() to these
// (--wrap, see CMakeLists.txt). A test may have fsync() fail, or wait. Files are written by threads
// too: what they note is behind a lock.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

struct test_files test_files;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

static void note(char what) {
    size_t length = strlen(test_files.done);
    if (length + 1 < sizeof test_files.done) {
        test_files.done[length] = what;
        test_files.done[length + 1] = '\0';
    }
}

static void wait_for_release(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    test_files.held = true;
    while (test_files.hold && !test_files.late) {
        test_files.late = pthread_cond_timedwait(&released, &lock, &until) == ETIMEDOUT;
    }
    test_files.hold = false;
}

void test_files_release(void) {
    pthread_mutex_lock(&lock);
    test_files.hold = false;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

bool test_files_held(void) {
    pthread_mutex_lock(&lock);
    bool held = test_files.held;
    pthread_mutex_unlock(&lock);
    return held;
}

// Whether that fsync() is to fail.
static bool sync_noted(char what) {
    pthread_mutex_lock(&lock);
    note(what);
    bool fails = test_files.fail == what;
    if (fails && test_files.fails > 0 && --test_files.fails == 0) {
        test_files.fail = 0;
    }
    if (what == 'f' && test_files.hold) {
        wait_for_release();
    }
    pthread_mutex_unlock(&lock);
    return fails;
}

// The linker's names.
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

int __wrap_fsync(int fd) {
    struct stat info;
    bool folder = fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    if (sync_noted(folder ? 'd' : 'f')) {
        errno = test_files.error ? test_files.error : EIO;
        return -1;
    }
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to) {
    pthread_mutex_lock(&lock);
    note('r');
    pthread_mutex_unlock(&lock);
    return __real_rename(from, to);
}
