// SPDX-License-Identifier: Apache-2.0
// A fixed table: a signal handler may neither allocate nor wait for a lock. Threads take turns by
// the lock; the handler reads rows whose `ready` is set, which is so only while the path is whole.
#include "gpurt/unfinished.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROWS 80  // 64 tables that a process has taken (runtime/import/direct.c), and files of a run

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct row {
    atomic_bool ready;
    char path[4352];
} rows[ROWS];

static void lock(void) {
    pthread_mutex_lock(&mutex);
}

static void unlock(void) {
    pthread_mutex_unlock(&mutex);
}

// Makes fork() wait for the mutex: the child has a copy of it, and must find it unlocked.
static void guard_forks(void) {
    pthread_atfork(lock, unlock, unlock);
}

void grt_unfinished_add(const char *path) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, guard_forks);
    lock();
    struct row *row = rows;
    while (row < rows + ROWS && row->ready) {
        row++;
    }
    if (row < rows + ROWS && strlen(path) < sizeof row->path) {
        snprintf(row->path, sizeof row->path, "%s", path);
        row->ready = true;
    }
    unlock();
}

void grt_unfinished_remove(const char *path) {
    lock();
    for (struct row *row = rows; row < rows + ROWS; row++) {
        if (row->ready && strcmp(row->path, path) == 0) {
            row->ready = false;
            break;
        }
    }
    unlock();
}

void grt_unfinished_unlink(void) {
    for (struct row *row = rows; row < rows + ROWS; row++) {
        if (row->ready) {
            unlink(row->path);
        }
    }
}
