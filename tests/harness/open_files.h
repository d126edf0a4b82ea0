// SPDX-License-Identifier: Apache-2.0
// How many descriptors this process has open, for cases in which none may be left behind.
#ifndef TEST_OPEN_FILES_H
#define TEST_OPEN_FILES_H

#include <dirent.h>
#include <stdint.h>

static inline uint32_t open_files(void) {
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

#endif
