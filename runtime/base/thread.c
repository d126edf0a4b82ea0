// SPDX-License-Identifier: Apache-2.0
#include "thread.h"

#include <signal.h>
#include <unistd.h>

#define MOST_PARTS 16

bool grt_thread_start(pthread_t *thread, void *(*fn)(void *), void *context) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, fn, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct part {
    void (*run)(void *context, uint64_t first, uint64_t count);
    void *context;
    uint64_t first, count;
};

static void *run_part(void *context) {
    const struct part *p = context;
    p->run(p->context, p->first, p->count);
    return NULL;
}

void grt_thread_share(uint64_t count, uint64_t least,
                      void (*part)(void *context, uint64_t first, uint64_t count), void *context) {
    struct part parts[MOST_PARTS];
    pthread_t threads[MOST_PARTS];
    bool beside[MOST_PARTS] = {false};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t most = cores < 1 ? 1 : cores < MOST_PARTS ? (uint64_t)cores : MOST_PARTS;
    uint64_t worth = count / (least > 0 ? least : 1);
    most = worth < 1 ? 1 : worth < most ? worth : most;
    for (uint64_t i = 0; i < most; i++) {
        uint64_t first = count * i / most;
        parts[i] = (struct part){part, context, first, count * (i + 1) / most - first};
        beside[i] = i > 0 && grt_thread_start(&threads[i], run_part, &parts[i]);
    }
    for (uint64_t i = 0; i < most; i++) {
        if (beside[i]) {
            pthread_join(threads[i], NULL);
        } else {
            run_part(&parts[i]);
        }
    }
}

// ---- HDF5 ----

static pthread_mutex_t hdf5;

static void make_mutex(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&hdf5, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

// A child gets a new mutex: one that knows its owner cannot be unlocked by another process.
static void prepare(void) {
    make_mutex();
    pthread_atfork(grt_hdf5_enter, grt_hdf5_leave, make_mutex);
}

void grt_hdf5_enter(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    pthread_mutex_lock(&hdf5);
}

void grt_hdf5_leave(void) {
    pthread_mutex_unlock(&hdf5);
}
