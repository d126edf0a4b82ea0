// SPDX-License-Identifier: Apache-2.0
// Making batches, and the threads that do it ahead of time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "loader_parts.h"
#include "timeline/timeline.h"

// ---- windows of a file ----

#define PROBES 256u  // positions of a window, of which the units are found
#define MOST_UNITS 16u

// Tells the system which pieces of the file a window will be read from.
static void announce(const struct grt_loader *loader, uint64_t epoch, uint64_t position) {
    const struct grt_dataset *data = loader->desc.data;
    uint64_t rows[PROBES], units[MOST_UNITS], unit = data->order.unit;
    uint64_t left = position < loader->rows ? loader->rows - position : 0;
    uint32_t known = 0, count = left < PROBES ? (uint32_t)left : PROBES;
    grt_order_draw(&data->order, &loader->draw, epoch, position, count, rows);
    for (uint32_t i = 0; i < count && known < MOST_UNITS; i++) {
        uint32_t k = 0;
        while (k < known && units[k] != rows[i] / unit) {
            k++;
        }
        if (k < known) {
            continue;
        }
        units[known++] = rows[i] / unit;
        for (uint32_t a = 0; a < data->input_count + data->target_count; a++) {
            grt_array_announce(&data->arrays[a], data->file.fd, rows[i] / unit * unit, unit);
        }
    }
}

// The window behind each that begins in the batch; at the beginning its own too.
static void read_ahead(const struct grt_loader *loader, uint64_t epoch, uint64_t first,
                       uint64_t rows) {
    uint64_t window = loader->draw.window * loader->desc.data->order.unit;
    if (first == 0) {
        announce(loader, epoch, 0);
    }
    for (uint64_t begin = (first + window - 1) / window * window; begin < first + rows;
         begin += window) {
        announce(loader, epoch, begin + window);
    }
}

// ---- batches ----

void grt_loader_make(struct grt_loader *loader, struct grt_slot *slot, struct grt_reader *reader,
                     uint64_t *drawn) {
    struct grt_dataset *data = loader->desc.data;
    uint32_t batch = loader->desc.batch;
    uint64_t epoch = slot->number / loader->per_epoch, first;
    uint32_t rows = grt_loader_rows(loader, slot->number % loader->per_epoch, &first);
    double begun = grt_timeline_clock(), staged = grt_timeline_staged();
    slot->fault = (struct grt_fault){0};
    if (rows > 0) {
        grt_order_draw(&data->order, &loader->draw, epoch, first, rows, drawn);
    }
    if (rows > 0 && data->order.unit > 1 && !data->info.filtered && loader->desc.shuffle &&
        !data->ram.x) {
        read_ahead(loader, epoch, first, rows);
    }
    uint64_t xw = data->info.x_width, yw = data->info.y_width;
    if (rows > 0) {
        grt_reader_read(reader, GRT_READ_CHECKED, drawn, rows, slot->x, slot->y, &slot->fault);
    }
    memset(slot->x + rows * xw, 0, (batch - rows) * xw * 4);
    if (slot->y) {
        memset(slot->y + rows * yw, 0, (batch - rows) * yw * 4);
    }
    grt_timeline_batch(begun, staged);
}

// With the lock held: the slot of the next batch to be made, or NULL when workers shall end.
static struct grt_slot *take(struct grt_loader *loader) {
    for (;;) {
        if (loader->ending || loader->next_made >= loader->epoch_end) {
            return NULL;
        }
        struct grt_slot *slot = &loader->slots[loader->next_made % loader->slot_count];
        if (slot->state == GRT_SLOT_FREE) {
            slot->state = GRT_SLOT_MAKING;
            slot->number = loader->next_made++;
            return slot;
        }
        loader->waiting++;
        pthread_cond_wait(&loader->freed, &loader->lock);
        loader->waiting--;
    }
}

static void *work(void *context) {
    struct grt_loader *loader = context;
    struct grt_reader *reader = grt_reader_create(loader->desc.data);
    uint64_t *drawn = malloc(loader->desc.batch * sizeof *drawn);
    struct grt_slot *slot;
    pthread_mutex_lock(&loader->lock);
    char name[32];
    snprintf(name, sizeof name, "data worker %u", ++loader->threads_named);
    grt_timeline_thread(name);
    while ((slot = take(loader)) != NULL) {
        pthread_mutex_unlock(&loader->lock);
        if (reader && drawn) {
            grt_loader_make(loader, slot, reader, drawn);
        } else {
            slot->fault = (struct grt_fault){0};
            grt_fault(&slot->fault, GRT_NO_MEMORY, "no host memory for a worker");
        }
        pthread_mutex_lock(&loader->lock);
        slot->state = GRT_SLOT_MADE;
        if (slot == loader->wanted) {
            pthread_cond_signal(&loader->made);
        }
    }
    pthread_mutex_unlock(&loader->lock);
    grt_reader_destroy(&reader);
    free(drawn);
    return NULL;
}

bool grt_loader_start(struct grt_loader *loader) {
    uint32_t wanted = loader->desc.workers;
    if (wanted == 0) {
        return true;
    }
    loader->ending = false;
    loader->threads_named = 0;
    loader->threads = calloc(wanted, sizeof *loader->threads);
    if (!loader->threads) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u workers", wanted);
    }
    while (loader->thread_count < wanted &&
           grt_thread_start(&loader->threads[loader->thread_count], work, loader)) {
        loader->thread_count++;
    }
    loader->threads_started += loader->thread_count;
    if (loader->thread_count == 0) {
        free(loader->threads);
        loader->threads = NULL;
        return grt_fail(GRT_NO_MEMORY, "the system refuses to start a worker thread");
    }
    if (loader->thread_count < wanted) {
        grt_log(GRT_LOG_WARN, "only %u of %u workers could be started", loader->thread_count,
                wanted);
    }
    return true;
}

void grt_loader_stop(struct grt_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->ending = true;
    pthread_cond_broadcast(&loader->freed);
    pthread_mutex_unlock(&loader->lock);
    while (loader->thread_count > 0) {
        pthread_join(loader->threads[--loader->thread_count], NULL);
    }
    free(loader->threads);
    loader->threads = NULL;
}
