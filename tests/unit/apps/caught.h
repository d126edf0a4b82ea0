// SPDX-License-Identifier: Apache-2.0
// What a piece of a test says on stdout and stderr, as text.
#ifndef TEST_APPS_CAUGHT_H
#define TEST_APPS_CAUGHT_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char caught[1 << 16];
static FILE *caught_file;
static int caught_streams[2];

static inline void catch_begin(void) {
    caught_file = tmpfile();
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        caught_streams[i] = dup(i + 1);
        dup2(fileno(caught_file), i + 1);
    }
}

static inline const char *catch_end(void) {
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        dup2(caught_streams[i], i + 1);
        close(caught_streams[i]);
    }
    rewind(caught_file);
    caught[fread(caught, 1, sizeof caught - 1, caught_file)] = '\0';
    fclose(caught_file);
    return caught;
}

#endif
