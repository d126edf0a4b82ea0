// SPDX-License-Identifier: Apache-2.0
// The other measure of a loader: what memory gives. As many bytes as its batches have, one behind
// the other in memory, copied with memcpy() to as many places as the loader has slots, by as many
// threads.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "loader_parts.h"

#define MOST_THREADS 256
#define MOST_SOURCE (1ull << 30)  // bytes; more than any processor's caches hold

struct grt_copier {
    uint64_t batch_bytes, batch_rows;
    uint64_t source_batches;
    uint32_t slots;
    unsigned char *source, *places;
    atomic_ullong next;  // batch
    uint64_t end;
};

struct grt_copier *grt_copier_create(const struct grt_loader *loader) {
    struct grt_copier *c = calloc(1, sizeof *c);
    if (!loader || !c) {
        free(c);
        grt_fail(GRT_INVALID, "grt_copier_create: no loader, or no host memory");
        return NULL;
    }
    const struct grt_dataset_info *info = &loader->desc.data->info;
    c->batch_rows = loader->desc.batch;
    c->batch_bytes = c->batch_rows * (info->x_width + (uint64_t)info->y_width) * 4;
    c->source_batches = MOST_SOURCE / c->batch_bytes;
    c->source_batches =
        c->source_batches < loader->per_epoch ? c->source_batches : loader->per_epoch;
    c->source_batches = c->source_batches > 0 ? c->source_batches : 1;
    c->slots = loader->slot_count;
    c->source = grt_pages_alloc(c->source_batches * c->batch_bytes);
    c->places = grt_pages_alloc(c->slots * c->batch_bytes);
    if (!c->source || !c->places) {
        grt_copier_destroy(&c);
        grt_fail(GRT_NO_MEMORY, "no host memory to measure memcpy()");
        return NULL;
    }
    memset(c->source, 1, c->source_batches * c->batch_bytes);
    memset(c->places, 0, c->slots * c->batch_bytes);
    return c;
}

void grt_copier_destroy(struct grt_copier **copier) {
    if (!copier || !*copier) {
        return;
    }
    free((*copier)->source);
    free((*copier)->places);
    free(*copier);
    *copier = NULL;
}

static void *work(void *context) {
    struct grt_copier *c = context;
    uint64_t number;
    while ((number = atomic_fetch_add(&c->next, 1)) < c->end) {
        memcpy(c->places + number % c->slots * c->batch_bytes,
               c->source + number % c->source_batches * c->batch_bytes, c->batch_bytes);
    }
    return NULL;
}

bool grt_copier_run(struct grt_copier *c, uint32_t threads, uint64_t batches,
                    struct grt_loader_raw *answer) {
    pthread_t ids[MOST_THREADS];
    uint32_t count = 0;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    c->end = c->next + batches;
    double begun = grt_seconds();
    while (count + 1 < threads && pthread_create(&ids[count], NULL, work, c) == 0) {
        count++;
    }
    work(c);
    while (count > 0) {
        pthread_join(ids[--count], NULL);
    }
    answer->seconds = grt_seconds() - begun;
    answer->rows = batches * c->batch_rows;
    answer->bytes = batches * c->batch_bytes;
    c->next = c->end;  // each thread took one beyond it
    return true;
}
