// SPDX-License-Identifier: Apache-2.0
// All rows in host memory, checked: u8 and f16 as they are in the file, all else as batches will
// want it, f32 and normalised.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pages.h"
#include "dataset_parts.h"

#define BLOCK 4096  // rows that a thread reads at once
#define MOST_THREADS 64

struct filling {
    struct grt_dataset *data;
    unsigned char *x, *y;
    atomic_ullong next;  // row
    pthread_mutex_t lock;
    struct grt_fault fault;
};

// Bytes the system could still give without swapping, or 0 when it does not say.
static uint64_t memory_available(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    unsigned long long kib = 0;
    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "MemAvailable: %llu", &kib) != 1) {
        continue;
    }
    if (file) {
        fclose(file);
    }
    return kib * 1024;
}

// Rows that were dropped are left zero: nobody asks for them.
static uint32_t block_rows(const struct grt_dataset *data, uint64_t first, uint64_t *rows,
                           uint64_t *dropped) {
    uint64_t end = first + BLOCK < data->info.file_rows ? first + BLOCK : data->info.file_rows;
    uint32_t count = 0;
    const struct grt_order *order = &data->order;
    while (*dropped < order->dropped_count && order->dropped[*dropped] < first) {
        ++*dropped;
    }
    for (uint64_t row = first; row < end; row++) {
        if (*dropped < order->dropped_count && order->dropped[*dropped] == row) {
            break;
        }
        rows[count++] = row;
    }
    return count;
}

static bool fill_block(struct filling *f, struct grt_reader *reader, uint64_t first,
                       struct grt_fault *fault) {
    const struct grt_dataset *data = f->data;
    uint64_t end = first + BLOCK < data->info.file_rows ? first + BLOCK : data->info.file_rows;
    uint64_t rows[BLOCK], dropped = 0;
    bool good = true;
    while (good && first < end) {
        uint32_t count = block_rows(data, first, rows, &dropped);
        count = count < end - first ? count : (uint32_t)(end - first);
        if (count > 0) {
            good = grt_reader_read(reader, GRT_READ_KEPT, rows, count,
                                   f->x + first * data->form_x.slab_bytes,
                                   f->y ? f->y + first * data->form_y.slab_bytes : NULL, fault);
        }
        first += count > 0 ? count : 1;
    }
    return good;
}

static void *fill_blocks(void *context) {
    struct filling *f = context;
    struct grt_fault fault = {0};
    struct grt_reader *reader = grt_reader_create(f->data);
    if (!reader) {
        grt_fault(&fault, GRT_NO_MEMORY, "no host memory to read rows");
    }
    uint64_t first;
    while (reader && fault.status == GRT_OK &&
           (first = atomic_fetch_add(&f->next, BLOCK)) < f->data->info.file_rows) {
        fill_block(f, reader, first, &fault);
    }
    grt_reader_destroy(&reader);
    if (fault.status != GRT_OK) {
        atomic_store(&f->next, f->data->info.file_rows);
        pthread_mutex_lock(&f->lock);
        grt_fault(&f->fault, fault.status, "%s", fault.text);
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

static bool fill(struct filling *f, uint32_t threads) {
    pthread_t ids[MOST_THREADS];
    uint32_t count = 0;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    pthread_mutex_init(&f->lock, NULL);
    while (count + 1 < threads && pthread_create(&ids[count], NULL, fill_blocks, f) == 0) {
        count++;
    }
    fill_blocks(f);
    while (count > 0) {
        pthread_join(ids[--count], NULL);
    }
    pthread_mutex_destroy(&f->lock);
    return f->fault.status == GRT_OK ||
           grt_fail(f->fault.status, "%s: %s", f->data->path, f->fault.text);
}

static double all_bytes(const struct grt_dataset *data) {
    return (double)data->info.file_rows *
           ((double)data->form_x.slab_bytes + (double)data->form_y.slab_bytes);
}

bool grt_rows_fit(const struct grt_dataset *data, char why[GRT_CACHE_WHY]) {
    double bytes = all_bytes(data);
    uint64_t available = memory_available();
    if (data->ram.users > 0 ||
        (bytes <= 1e18 && (available == 0 || bytes <= 0.9 * (double)available))) {
        return true;
    }
    snprintf(why, GRT_CACHE_WHY, "%.1f MB, and %.1f MB of the host's memory are free", bytes / 1e6,
             (double)available / 1e6);
    return false;
}

// Zeros, in large pages: rows are drawn from all over.
static unsigned char *allocate(uint64_t bytes) {
    unsigned char *memory = grt_pages_alloc(bytes);
    if (memory) {
        memset(memory, 0, bytes);
    }
    return memory;
}

bool grt_rows_keep(struct grt_dataset *data, uint32_t threads) {
    const struct grt_dataset_info *info = &data->info;
    char why[GRT_CACHE_WHY];
    if (data->ram.users > 0) {
        data->ram.users++;
        return true;
    }
    if (!grt_rows_fit(data, why)) {
        return grt_fail(GRT_NO_MEMORY, "%s: %s; use cache: none", data->path, why);
    }
    struct filling f = {.data = data};
    f.x = allocate(data->form_x.tile_bytes);
    f.y = info->y_width ? allocate(data->form_y.tile_bytes) : NULL;
    bool good = f.x && (f.y || info->y_width == 0)
                    ? fill(&f, threads)
                    : grt_fail(GRT_NO_MEMORY, "%s: no host memory for %.1f GB of rows", data->path,
                               all_bytes(data) / 1e9);
    if (!good) {
        free(f.x);
        free(f.y);
        return false;
    }
    data->ram = (struct grt_rows_kept){1, f.x, f.y};
    return true;
}

void grt_rows_drop(struct grt_dataset *data) {
    if (data->ram.users == 0 || --data->ram.users > 0) {
        return;
    }
    free(data->ram.x);
    free(data->ram.y);
    data->ram = (struct grt_rows_kept){0};
}
