// SPDX-License-Identifier: Apache-2.0
// A fixed table: a signal handler may neither allocate nor wait for a lock. Threads take turns by the
// lock; the handler reads rows whose `ready` is set, which is so only while the path is whole.
#include "unfinished.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROWS 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct row {
    atomic_bool ready;
    char path[4352];
} rows[ROWS];

void grt_unfinished_add(const char *path) {
    pthread_mutex_lock(&lock);
    struct row *row = rows;
    while (row < rows + ROWS && row->ready) {
        row++;
    }
    if (row < rows + ROWS && strlen(path) < sizeof row->path) {
        snprintf(row->path, sizeof row->path, "%s", path);
        row->ready = true;
    }
    pthread_mutex_unlock(&lock);
}

void grt_unfinished_remove(const char *path) {
    pthread_mutex_lock(&lock);
    for (struct row *row = rows; row < rows + ROWS; row++) {
        if (row->ready && strcmp(row->path, path) == 0) {
            row->ready = false;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void grt_unfinished_unlink(void) {
    for (struct row *row = rows; row < rows + ROWS; row++) {
        if (row->ready) {
            unlink(row->path);
        }
    }
}
