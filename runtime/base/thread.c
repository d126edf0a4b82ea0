// SPDX-License-Identifier: Apache-2.0
#include "thread.h"

#include <signal.h>

bool grt_thread_start(pthread_t *thread, void *(*fn)(void *), void *context) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, fn, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
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
