// SPDX-License-Identifier: Apache-2.0
#include "window.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#define MAGIC 0x67707277u
#define HEAD 4096u
#define FILE_BYTES (HEAD + 2ull * WINDOW_BOX)
// A rank that is about to come is waited for awake: to sleep and to be woken costs more.
#define LOOKS 64
#define SLEEP_NANOSECONDS 20000000

struct lane {
    _Atomic uint32_t came;      // so often
    _Atomic uint32_t sleepers;  // that wait for this one
    char apart[120];            // cache lines of its own
};

struct head {
    uint32_t magic, rank;
    uint64_t token;
    _Atomic uint32_t left;  // comes no more
    char apart[108];
    struct lane lanes[WINDOW_LANES];
};
_Static_assert(sizeof(struct head) <= HEAD, "the boxes begin behind the head");

struct window {
    uint32_t rank, ranks, lanes;
    uint32_t box[WINDOW_LANES];
    int file;
    struct head **heads;  // of all ranks, with the boxes behind them
};

// ---- the system ----

// A file without a name; below 0: there are none here.
static int open_unnamed(void) {
#ifdef __linux__
    return (int)syscall(SYS_memfd_create, "gpurt ranks", 1u);  // 1: not for children
#else
    return -1;
#endif
}

// A number that nobody else has; false: the system draws none.
static bool draw(uint64_t *token) {
#ifdef __linux__
    return syscall(SYS_getrandom, token, sizeof *token, 0) == (long)sizeof *token;
#else
    (void)token;
    return false;
#endif
}

static void wake_all(_Atomic uint32_t *word) {
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
#else
    (void)word;
#endif
}

// While the word has this value, and not for long.
static void sleep_on(_Atomic uint32_t *word, uint32_t value) {
    const struct timespec most = {.tv_nsec = SLEEP_NANOSECONDS};
#ifdef __linux__
    syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
#else
    (void)word, (void)value;
    nanosleep(&most, NULL);
#endif
}

static void *map(int file) {
    void *at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

// ---- making ----

struct window *window_create(uint32_t rank, uint32_t ranks) {
    struct window *w = calloc(1, sizeof *w);
    if (!w) {
        return NULL;
    }
    w->rank = rank;
    w->ranks = ranks;
    w->lanes = 1;
    w->heads = calloc(ranks, sizeof(struct head *));
    w->file = open_unnamed();
    // Taken at once: memory that is missing is found out here, and not by a signal in an exchange.
    uint64_t token = 0;
    bool good = w->heads && w->file >= 0 && draw(&token) &&
                posix_fallocate(w->file, 0, (off_t)FILE_BYTES) == 0;
    if (good) {
        w->heads[rank] = map(w->file);
    }
    if (!good || !w->heads[rank]) {
        window_destroy(&w);
        return NULL;
    }
    w->heads[rank]->magic = MAGIC;
    w->heads[rank]->rank = rank;
    w->heads[rank]->token = token;
    return w;
}

void window_destroy(struct window **window) {
    if (!window || !*window) {
        return;
    }
    struct window *w = *window;
    for (uint32_t r = 0; w->heads && r < w->ranks; r++) {
        if (w->heads[r]) {
            munmap(w->heads[r], FILE_BYTES);
        }
    }
    if (w->file >= 0) {
        close(w->file);
    }
    free(w->heads);
    free(w);
    *window = NULL;
}

struct window_key window_key(const struct window *w) {
    return (struct window_key){.pid = (int32_t)getpid(),
                               .file = w ? w->file : -1,
                               .token = w ? w->heads[w->rank]->token : 0};
}

bool window_open(struct window *w, const struct window_key *keys) {
    char path[64];
    for (uint32_t r = 0; w && r < w->ranks; r++) {
        if (r == w->rank) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)keys[r].pid, (int)keys[r].file);
        int file = keys[r].file >= 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
        if (file < 0) {
            return false;
        }
        // Of a file that is shorter, which is another's, no byte may be touched.
        bool whole = lseek(file, 0, SEEK_END) == (off_t)FILE_BYTES;
        struct head *head = whole ? map(file) : NULL;
        close(file);
        if (!head) {
            return false;
        }
        if (head->magic != MAGIC || head->rank != r || head->token != keys[r].token) {
            munmap(head, FILE_BYTES);
            return false;
        }
        w->heads[r] = head;
    }
    return w != NULL;
}

// ---- exchanges ----

void window_cut(struct window *w, uint32_t lanes) {
    w->lanes = lanes < 1 ? 1 : lanes < WINDOW_LANES ? lanes : WINDOW_LANES;
}

uint32_t window_lanes(const struct window *w) {
    return w->lanes;
}

uint64_t window_room(const struct window *w) {
    return WINDOW_BOX / w->lanes / 64 * 64;
}

static char *box(const struct window *w, uint32_t lane, uint32_t rank) {
    return (char *)w->heads[rank] + HEAD + (uint64_t)w->box[lane] * WINDOW_BOX +
           lane * window_room(w);
}

void *window_own(struct window *w, uint32_t lane) {
    return box(w, lane, w->rank);
}

const void *window_box(const struct window *w, uint32_t lane, uint32_t rank) {
    return box(w, lane, rank);
}

void window_come(struct window *w, uint32_t lane) {
    struct lane *own = &w->heads[w->rank]->lanes[lane];
    atomic_fetch_add(&own->came, 1);
    if (atomic_load(&own->sleepers) > 0) {
        wake_all(&own->came);
    }
}

bool window_all_came(struct window *w, uint32_t lane) {
    uint32_t wanted = atomic_load(&w->heads[w->rank]->lanes[lane].came);
    for (uint32_t r = 0; r < w->ranks; r++) {
        struct lane *other = &w->heads[r]->lanes[lane];
        uint32_t came = atomic_load(&other->came);
        for (uint32_t i = 0; i < LOOKS && (int32_t)(came - wanted) < 0; i++) {
            sched_yield();
            came = atomic_load(&other->came);
        }
        if ((int32_t)(came - wanted) >= 0) {
            continue;
        }
        // Who comes looks for sleepers behind it, so one of both sees the other.
        atomic_fetch_add(&other->sleepers, 1);
        sleep_on(&other->came, came);
        atomic_fetch_sub(&other->sleepers, 1);
        if ((int32_t)(atomic_load(&other->came) - wanted) < 0) {
            return false;
        }
    }
    return true;
}

void window_leave(struct window *w) {
    atomic_store(&w->heads[w->rank]->left, 1);
}

bool window_left(const struct window *w) {
    bool left = false;
    for (uint32_t r = 0; r < w->ranks; r++) {
        left = left || atomic_load(&w->heads[r]->left) != 0;
    }
    return left;
}

void window_turn(struct window *w, uint32_t lane) {
    w->box[lane] ^= 1u;
}
