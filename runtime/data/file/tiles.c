// SPDX-License-Identifier: Apache-2.0
// Decoded tiles. One thread reads and inflates a tile, others that want it wait; the tile that was
// not used for longest makes room. The lock is held only to look things up: decoding takes
// milliseconds.
#include "tiles.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filter.h"
#include "map.h"
#include "timeline/timeline.h"

enum state { EMPTY, LOADING, READY };

struct entry {
    enum state state;
    uint32_t users;
    uint64_t number;  // of its tile, unless empty
    uint64_t used;    // when it was last asked for
    unsigned char *data;
};

struct grt_tiles {
    const struct grt_array *array;
    int fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int32_t *where;  // entry of each tile, or -1
    uint64_t clock;
    uint32_t count;
    struct entry entries[];
};

struct grt_tiles *grt_tiles_create(const struct grt_array *array, int fd, uint32_t kept) {
    struct grt_tiles *tiles = calloc(1, sizeof *tiles + kept * sizeof tiles->entries[0]);
    uint64_t count = grt_array_tiles(array);
    int32_t *where = malloc(count * sizeof *where);
    if (!tiles || !where) {
        free(tiles);
        free(where);
        return NULL;
    }
    for (uint64_t i = 0; i < count; i++) {
        where[i] = -1;
    }
    tiles->array = array;
    tiles->fd = fd;
    tiles->where = where;
    tiles->count = kept;
    pthread_mutex_init(&tiles->lock, NULL);
    pthread_cond_init(&tiles->changed, NULL);
    return tiles;
}

void grt_tiles_destroy(struct grt_tiles **tiles) {
    struct grt_tiles *t = *tiles;
    if (!t) {
        return;
    }
    *tiles = NULL;
    for (uint32_t i = 0; i < t->count; i++) {
        free(t->entries[i].data);
    }
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    free(t->where);
    free(t);
}

void grt_array_announce(const struct grt_array *array, int fd, uint64_t first, uint64_t rows) {
    uint64_t columns = array->grid[1] * array->grid[2], end = first + rows;
    end = end < array->shape[0] ? end : array->shape[0];
    while (first < end) {
        uint64_t a = first / array->tile[0], here = (a + 1) * array->tile[0];
        here = here < end ? here : end;
        for (uint64_t c = 0; c < columns; c++) {
            posix_fadvise(fd,
                          (off_t)(array->tiles[a * columns + c].offset +
                                  (first - a * array->tile[0]) * array->slab_bytes),
                          (off_t)((here - first) * array->slab_bytes), POSIX_FADV_WILLNEED);
        }
        first = here;
    }
}

bool grt_read_bytes(int fd, void *into, uint64_t size, uint64_t offset, struct grt_fault *fault) {
    unsigned char *at = into;
    double begun = grt_timeline_clock();
    while (size > 0) {
        ssize_t got = pread(fd, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return grt_fault(fault, GRT_IO, "reading %llu bytes at %llu failed: %s",
                             (unsigned long long)size, (unsigned long long)offset, strerror(errno));
        }
        if (got == 0) {
            // It may end well before what was asked for.
            struct stat now;
            bool before = fstat(fd, &now) == 0 && (uint64_t)now.st_size < offset;
            uint64_t end = before ? (uint64_t)now.st_size : offset;
            return grt_fault_truncated(fault, end, offset + size - end);
        }
        at += got;
        offset += (uint64_t)got;
        size -= (uint64_t)got;
    }
    grt_timeline_stage(GRT_STAGE_READ, begun);
    return true;
}

static bool load(const struct grt_tiles *tiles, uint64_t number, unsigned char *data,
                 struct grt_fault *fault) {
    const struct grt_array *array = tiles->array;
    const struct grt_tile *tile = &array->tiles[number];
    unsigned char *stored = malloc(tile->stored);
    unsigned char *spare = malloc(array->tile_bytes);
    bool good = stored && spare ? true : grt_fault(fault, GRT_NO_MEMORY, "no host memory");
    good = good && grt_read_bytes(tiles->fd, stored, tile->stored, tile->offset, fault);
    double begun = grt_timeline_clock();
    good = good && grt_filter_undo(array, tile, stored, data, spare, fault);
    grt_timeline_stage(GRT_STAGE_INFLATE, begun);
    if (good && array->element.swapped) {
        uint32_t size = grt_element_size(array->element.type);
        grt_element_swap(data, size, array->tile_bytes / size);
    }
    free(stored);
    free(spare);
    return good;
}

// An entry for another tile: the one unused for longest, or NULL when all are in use.
static struct entry *make_room(struct grt_tiles *tiles) {
    struct entry *oldest = NULL;
    for (uint32_t i = 0; i < tiles->count; i++) {
        struct entry *e = &tiles->entries[i];
        if (e->users == 0 && (!oldest || e->used < oldest->used)) {
            oldest = e;
        }
    }
    if (oldest && oldest->state == READY) {
        tiles->where[oldest->number] = -1;
    }
    return oldest;
}

// Begins and ends with the lock held.
static bool fill(struct grt_tiles *tiles, struct entry *entry, uint64_t number,
                 struct grt_fault *fault) {
    entry->state = LOADING;
    entry->number = number;
    entry->users = 1;
    tiles->where[number] = (int32_t)(entry - tiles->entries);
    pthread_mutex_unlock(&tiles->lock);
    if (!entry->data) {
        entry->data = malloc(tiles->array->tile_bytes);
    }
    bool good = entry->data ? load(tiles, number, entry->data, fault)
                            : grt_fault(fault, GRT_NO_MEMORY, "no host memory for a chunk");
    pthread_mutex_lock(&tiles->lock);
    entry->state = good ? READY : EMPTY;
    if (!good) {
        tiles->where[number] = -1;
        entry->users = 0;
    }
    pthread_cond_broadcast(&tiles->changed);
    return good;
}

const unsigned char *grt_tiles_get(struct grt_tiles *tiles, uint64_t number,
                                   struct grt_fault *fault) {
    struct entry *entry = NULL;
    bool good = true;
    pthread_mutex_lock(&tiles->lock);
    while (good && !entry) {
        int32_t at = tiles->where[number];
        if (at >= 0 && tiles->entries[at].state == READY) {
            entry = &tiles->entries[at];
            entry->users++;
        } else if (at < 0 && (entry = make_room(tiles)) != NULL) {
            good = fill(tiles, entry, number, fault);
        } else {
            pthread_cond_wait(&tiles->changed, &tiles->lock);
        }
    }
    if (good) {
        entry->used = ++tiles->clock;
    }
    pthread_mutex_unlock(&tiles->lock);
    return good ? entry->data : NULL;
}

void grt_tiles_release(struct grt_tiles *tiles, uint64_t number) {
    pthread_mutex_lock(&tiles->lock);
    struct entry *entry = &tiles->entries[tiles->where[number]];
    if (--entry->users == 0) {
        pthread_cond_broadcast(&tiles->changed);
    }
    pthread_mutex_unlock(&tiles->lock);
}
