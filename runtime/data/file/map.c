// SPDX-License-Identifier: Apache-2.0
// Files as memory, and the handler that keeps a truncated one from ending the process.
//
//     maps[]   | file a | file b |  -  | ...     places that the handler may look at any time: a
//                                                place is in use while its first byte is not 0
#include "map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MOST_MAPS 64

struct grt_file_map {
    atomic_uintptr_t first;
    uint64_t bytes;
    int fd;
    atomic_bool torn;
};

static struct grt_file_map maps[MOST_MAPS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t map_count;
static struct sigaction before;

// Passes a fault that is not ours on. Without a handler the default is set, under which the
// instruction that comes again ends the process.
static void pass_on(int number, siginfo_t *info, void *context) {
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        signal(number, SIG_DFL);
    }
}

// Only what a handler may do: atomics, and mmap(), which is a plain system call.
static void on_fault(int number, siginfo_t *info, void *context) {
    uintptr_t at = (uintptr_t)info->si_addr;
    int error = errno;
    for (uint32_t i = 0; i < MOST_MAPS; i++) {
        uintptr_t first = atomic_load(&maps[i].first);
        if (first == 0 || at < first || at - first >= maps[i].bytes) {
            continue;
        }
        atomic_store(&maps[i].torn, true);
        void *zeros = mmap((void *)first, maps[i].bytes, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        errno = error;
        if (zeros != MAP_FAILED) {
            return;
        }
    }
    pass_on(number, info, context);
}

static bool is_installed(void) {
    struct sigaction now;
    return sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_fault;
}

// With the lock held. Somebody may have put another handler in the place of ours: LLVM does when it
// compiles a kernel, one that is good for a single thread's fault.
static bool install(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    return is_installed() || sigaction(SIGBUS, &action, map_count == 0 ? &before : NULL) == 0;
}

// A place for the file, with the lock held; NULL when all are taken.
static struct grt_file_map *place_map(void *memory, int fd, uint64_t bytes) {
    for (uint32_t i = 0; i < MOST_MAPS; i++) {
        if (atomic_load(&maps[i].first) != 0) {
            continue;
        }
        maps[i].bytes = bytes;
        maps[i].fd = fd;
        atomic_store(&maps[i].torn, false);
        atomic_store(&maps[i].first, (uintptr_t)memory);
        map_count++;
        return &maps[i];
    }
    return NULL;
}

struct grt_file_map *grt_map_create(int fd, uint64_t bytes) {
    if (bytes == 0 || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct grt_file_map *map = install() ? place_map(memory, fd, bytes) : NULL;
    pthread_mutex_unlock(&lock);
    if (!map) {
        munmap(memory, bytes);
    }
    return map;
}

void grt_map_destroy(struct grt_file_map **map) {
    struct grt_file_map *m = *map;
    if (!m) {
        return;
    }
    *map = NULL;
    pthread_mutex_lock(&lock);
    void *memory = (void *)atomic_exchange(&m->first, 0);
    munmap(memory, m->bytes);
    if (--map_count == 0 && is_installed()) {
        sigaction(SIGBUS, &before, NULL);
    }
    pthread_mutex_unlock(&lock);
}

const unsigned char *grt_map_bytes(const struct grt_file_map *map) {
    return (const unsigned char *)atomic_load(&map->first);
}

// A file that ends within a page has zeros behind its end and no fault: its size is asked for too,
// behind the faults. One that is cut between the two questions would else be a fault of the disk.
bool grt_map_check(const struct grt_file_map *map, struct grt_fault *fault) {
    struct stat now;
    bool torn = atomic_load(&map->torn);
    if (!is_installed()) {
        pthread_mutex_lock(&lock);
        install();
        pthread_mutex_unlock(&lock);
    }
    if (fstat(map->fd, &now) == 0 && (uint64_t)now.st_size < map->bytes) {
        return grt_fault_truncated(fault, (uint64_t)now.st_size,
                                   map->bytes - (uint64_t)now.st_size);
    }
    return !torn ||
           grt_fault(fault, GRT_IO, "reading failed: the disk does not give a part of the file");
}
