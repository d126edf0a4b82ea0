// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE  // sched_getaffinity
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

#define MOST 7
// The next bucket of gradients is often there by then: to sleep and to be woken takes longer.
#define LOOKS 512
#define REST_NANOSECONDS 5000000

struct team {
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    void (*part)(void *context, uint32_t number);
    void *context;
    uint32_t parts, next;   // of the work; the part that nobody has taken yet
    _Atomic uint32_t work;  // its number
    _Atomic uint32_t left;  // of its parts
    bool ending;
    uint32_t count;
    pthread_t threads[MOST];
};

// Half of the cores: the others are for what reads the data, and for drivers. A launcher may bind
// each rank to cores of its own.
uint32_t team_size(uint32_t ranks) {
    cpu_set_t set;
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    long own = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : all;
    long cores = all > 0 ? all / (ranks > 0 ? ranks : 1) : 1;
    uint32_t each = (uint32_t)(own < cores ? own : cores) / 2;
    return each < 1 ? 1 : each < MOST + 1 ? each : MOST + 1;
}

// A part of the present work; 0: none is left.
static uint32_t take(struct team *t) {
    return t->next <= t->parts ? t->next++ : 0;
}

static void *work(void *context) {
    struct team *t = context;
    pthread_mutex_lock(&t->lock);
    while (!t->ending) {
        uint32_t seen = atomic_load(&t->work), part = take(t);
        if (part == 0) {
            pthread_mutex_unlock(&t->lock);
            for (uint32_t i = 0; i < LOOKS && atomic_load(&t->work) == seen; i++) {
                sched_yield();
            }
            pthread_mutex_lock(&t->lock);
            while (!t->ending && atomic_load(&t->work) == seen) {
                pthread_cond_wait(&t->begun, &t->lock);
            }
            continue;
        }
        pthread_mutex_unlock(&t->lock);
        t->part(t->context, part);
        pthread_mutex_lock(&t->lock);
        if (atomic_fetch_sub(&t->left, 1) == 1) {
            pthread_cond_signal(&t->ended);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct team *team_create(uint32_t threads) {
    struct team *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begun, NULL);
    pthread_cond_init(&t->ended, NULL);
    t->next = 1;
    while (t->count < threads && t->count < MOST &&
           grt_thread_start(&t->threads[t->count], work, t)) {
        t->count++;
    }
    if (t->count == 0) {
        team_destroy(&t);
    }
    return t;
}

void team_destroy(struct team **team) {
    if (!team || !*team) {
        return;
    }
    struct team *t = *team;
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->count; i++) {
        pthread_join(t->threads[i], NULL);
    }
    pthread_cond_destroy(&t->begun);
    pthread_cond_destroy(&t->ended);
    pthread_mutex_destroy(&t->lock);
    free(t);
    *team = NULL;
}

void team_begin(struct team *t, uint32_t parts, void (*part)(void *context, uint32_t number),
                void *context) {
    pthread_mutex_lock(&t->lock);
    t->part = part;
    t->context = context;
    t->parts = parts;
    t->next = 1;
    atomic_store(&t->left, parts);
    atomic_fetch_add(&t->work, 1);
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->lock);
}

bool team_rests(struct team *t) {
    for (uint32_t i = 0; i < LOOKS && atomic_load(&t->left) > 0; i++) {
        sched_yield();
    }
    if (atomic_load(&t->left) == 0) {
        return true;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += REST_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->left) > 0 && pthread_cond_timedwait(&t->ended, &t->lock, &until) == 0) {
    }
    pthread_mutex_unlock(&t->lock);
    return atomic_load(&t->left) == 0;
}
