// SPDX-License-Identifier: Apache-2.0
// The measure of a loader: the same rows read with pread() and nothing else, by as many threads.
// Rows of plain arrays with one call each, in the order drawn; compressed arrays chunk by chunk,
// each once.
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/clock.h"
#include "loader_parts.h"

#define MOST_THREADS 256

struct raw {
    const struct grt_loader *loader;
    uint64_t end;  // of the batches
    atomic_ullong next;
    atomic_ullong next_tile;  // of all compressed arrays, one behind the other
    atomic_ullong bytes, rows;
    pthread_mutex_t lock;
    struct grt_fault fault;
};

static bool read_rows(const struct grt_dataset *data, const uint64_t *rows, uint64_t count,
                      unsigned char *into, uint64_t *bytes, struct grt_fault *fault) {
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        uint64_t columns = array->grid[1] * array->grid[2];
        if (data->tiles[i]) {
            continue;
        }
        for (uint64_t k = 0; k < count; k++) {
            uint64_t a = rows[k] / array->tile[0];
            for (uint64_t c = 0; c < columns; c++) {
                uint64_t offset = array->tiles[a * columns + c].offset +
                                  (rows[k] - a * array->tile[0]) * array->slab_bytes;
                if (!grt_read_bytes(data->file.fd, into + k * array->slab_bytes, array->slab_bytes,
                                    offset, fault)) {
                    return false;
                }
            }
        }
        *bytes += count * columns * array->slab_bytes;
    }
    return true;
}

// The next tile of any compressed array, or NULL.
static const struct grt_tile *take_tile(struct raw *raw) {
    const struct grt_dataset *data = raw->loader->desc.data;
    uint64_t number = atomic_fetch_add(&raw->next_tile, 1);
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        uint64_t count = data->tiles[i] ? grt_array_tiles(&data->arrays[i]) : 0;
        if (number < count) {
            return &data->arrays[i].tiles[number];
        }
        number -= count;
    }
    return NULL;
}

static bool read_tiles(struct raw *raw, unsigned char *into, uint64_t *bytes,
                       struct grt_fault *fault) {
    const struct grt_tile *tile;
    bool good = true;
    while (good && (tile = take_tile(raw)) != NULL) {
        good = grt_read_bytes(raw->loader->desc.data->file.fd, into, tile->stored, tile->offset,
                              fault);
        *bytes += tile->stored;
    }
    return good;
}

// Bytes that a thread reads into: a batch of the widest array, or the largest tile.
static uint64_t room(const struct grt_loader *loader) {
    const struct grt_dataset *data = loader->desc.data;
    uint64_t most = 1;
    for (uint32_t i = 0; i < data->input_count + data->target_count; i++) {
        const struct grt_array *array = &data->arrays[i];
        uint64_t plain = loader->desc.batch * array->slab_bytes;
        most = !data->tiles[i] && plain > most ? plain : most;
        for (uint64_t t = 0; data->tiles[i] && t < grt_array_tiles(array); t++) {
            most = array->tiles[t].stored > most ? array->tiles[t].stored : most;
        }
    }
    return most;
}

static void *work(void *context) {
    struct raw *raw = context;
    const struct grt_loader *loader = raw->loader;
    struct grt_fault fault = {0};
    unsigned char *into = malloc(room(loader));
    uint64_t *rows = malloc(loader->desc.batch * sizeof *rows);
    uint64_t bytes = 0, number;
    bool good = into && rows ? true : grt_fault(&fault, GRT_NO_MEMORY, "no host memory");
    while (good && (number = atomic_fetch_add(&raw->next, 1)) < raw->end) {
        uint64_t first = number % loader->per_epoch * loader->desc.batch;
        uint64_t left = loader->rows - first;
        uint64_t count = left < loader->desc.batch ? left : loader->desc.batch;
        grt_order_draw(&loader->desc.data->order, &loader->draw, number / loader->per_epoch, first,
                       count, rows);
        good = read_rows(loader->desc.data, rows, count, into, &bytes, &fault);
        atomic_fetch_add(&raw->rows, count);
    }
    good = good && read_tiles(raw, into, &bytes, &fault);
    atomic_fetch_add(&raw->bytes, bytes);
    if (!good) {
        pthread_mutex_lock(&raw->lock);
        grt_fault(&raw->fault, fault.status, "%s", fault.text);
        pthread_mutex_unlock(&raw->lock);
    }
    free(into);
    free(rows);
    return NULL;
}

bool grt_loader_raw(const struct grt_loader *loader, uint32_t threads, uint64_t batches,
                    struct grt_loader_raw *answer) {
    if (!loader || !answer) {
        return grt_fail(GRT_INVALID, "grt_loader_raw: no loader, or nowhere to put the answer");
    }
    bool all = batches == 0 || batches > loader->per_epoch || loader->desc.data->info.filtered;
    // Batches that no worker has read just now: what is in the CPU's caches flatters.
    uint64_t first = loader->next_given + loader->slot_count;
    struct raw raw = {
        .loader = loader, .next = first, .end = first + (all ? loader->per_epoch : batches)};
    pthread_t ids[MOST_THREADS];
    uint32_t count = 0;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    pthread_mutex_init(&raw.lock, NULL);
    double begun = grt_seconds();
    while (count + 1 < threads && pthread_create(&ids[count], NULL, work, &raw) == 0) {
        count++;
    }
    work(&raw);
    while (count > 0) {
        pthread_join(ids[--count], NULL);
    }
    answer->seconds = grt_seconds() - begun;
    answer->bytes = raw.bytes;
    answer->rows = raw.rows;
    pthread_mutex_destroy(&raw.lock);
    return raw.fault.status == GRT_OK ||
           grt_fail(raw.fault.status, "%s: %s", loader->desc.data->path, raw.fault.text);
}
