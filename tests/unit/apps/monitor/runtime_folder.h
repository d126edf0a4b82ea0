// SPDX-License-Identifier: Apache-2.0
// A folder of the test's own where running processes say of themselves: begin and end of a group.
#ifndef TEST_RUNTIME_FOLDER_H
#define TEST_RUNTIME_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

static char root[64];

static int begin(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/gpurt_test_run.XXXXXX");
    return mkdtemp(root) && setenv("XDG_RUNTIME_DIR", root, 1) == 0 ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

#endif
