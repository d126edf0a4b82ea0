// SPDX-License-Identifier: Apache-2.0
// Loaders: their memory, and the caller's side of the stream of batches.
#include "gpurt/loader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "loader_parts.h"
#include "timeline/timeline.h"

#define SLOT_ALIGN 256u
#define MOST_WORKERS 256u
#define MOST_SLOTS 4096u

const char *grt_cache_text(enum grt_cache cache) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_CACHES(X)
#undef X
    };
    return (unsigned)cache < GRT_CACHE_COUNT ? texts[cache] : "unknown cache";
}

// ---- create ----

static bool check_desc(const struct grt_loader_desc *desc) {
    const char *why =
        !desc                                                   ? "no desc"
        : !desc->data                                           ? "no data set"
        : (unsigned)desc->part >= GRT_PART_COUNT                ? "unknown part"
        : (unsigned)desc->cache >= GRT_CACHE_COUNT              ? "unknown cache"
        : desc->batch == 0                                      ? "a batch of 0 rows"
        : desc->workers > MOST_WORKERS                          ? "over 256 workers"
        : desc->turns > GRT_LOADER_TURNS                        ? "over 2 turns"
        : desc->pin && !desc->dev                               ? "pin, and no device"
        : desc->cache == GRT_CACHE_DEVICE && !desc->dev         ? "no device for the cache"
        : desc->share.of > 0 && desc->cache == GRT_CACHE_DEVICE ? "a share of rows on the device"
        : desc->share.of > 0 && (desc->share.count == 0 || desc->share.first >= desc->share.of ||
                                 desc->share.count > desc->share.of - desc->share.first)
            ? "a share that is no part of the step"
            : NULL;
    return !why || grt_fail(GRT_INVALID, "grt_loader_create: %s", why);
}

static uint64_t aligned(uint64_t bytes) {
    return (bytes + SLOT_ALIGN - 1) & ~(uint64_t)(SLOT_ALIGN - 1);
}

static bool count_rows(struct grt_loader *loader) {
    const struct grt_loader_desc *desc = &loader->desc;
    loader->rows = grt_order_rows(&desc->data->order, desc->part);
    if (desc->limit > 0 && desc->limit < loader->rows) {
        loader->rows = desc->limit;
    }
    // Where ranks share steps out, an epoch has as many as all of them fill together.
    uint64_t rows = (uint64_t)desc->batch * (desc->share.of > 0 ? desc->share.of : 1);
    uint64_t whole = loader->rows / rows;
    loader->per_epoch = desc->drop_last ? whole : whole + (loader->rows % rows != 0);
    loader->per_epoch *= desc->share.of > 0 ? desc->share.count : 1;
    return loader->per_epoch > 0 ||
           grt_fail(GRT_BAD_DATA, "%s: %llu rows for %s do not fill one batch of %u",
                    desc->data->path, (unsigned long long)loader->rows,
                    desc->part == GRT_PART_VALIDATION ? "validation" : "training", desc->batch);
}

static bool create_slot(struct grt_loader *loader, struct grt_slot *slot) {
    const struct grt_loader_desc *desc = &loader->desc;
    uint64_t bytes = loader->x_bytes + loader->y_bytes;
    unsigned char *host;
    if (desc->pin) {
        slot->buf = grt_buf_create(
            desc->dev, grt_buf_desc(.size = bytes, .kind = GRT_BUF_UPLOAD, .label = "batches"));
        host = slot->buf ? grt_buf_host(slot->buf) : NULL;
    } else {
        host = loader->memory + (slot - loader->slots) * (ptrdiff_t)bytes;
    }
    if (!host) {
        return false;
    }
    loader->host_bytes += bytes;
    slot->x = (float *)(void *)host;
    slot->y = loader->y_bytes == 0 ? NULL : (uint32_t *)(void *)(host + loader->x_bytes);
    return true;
}

static bool create_slots(struct grt_loader *loader) {
    const struct grt_loader_desc *desc = &loader->desc;
    const struct grt_dataset_info *info = &desc->data->info;
    uint64_t count = (uint64_t)desc->workers * desc->prefetch + desc->held;
    count = count < MOST_SLOTS ? count : MOST_SLOTS;
    // A multiple of the turns: a slot always goes to the same place, by one graph.
    loader->slot_count = (uint32_t)(count + count % desc->turns);
    loader->x_bytes = aligned((uint64_t)desc->batch * info->x_width * 4);
    loader->y_bytes = aligned((uint64_t)desc->batch * info->y_width * 4);
    loader->slots = calloc(loader->slot_count, sizeof *loader->slots);
    if (!loader->slots) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for a loader");
    }
    uint64_t bytes = loader->x_bytes + loader->y_bytes;
    loader->memory = desc->pin ? NULL : grt_pages_alloc(loader->slot_count * bytes);
    if (!desc->pin && !loader->memory) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %u batches of %.1f MB",
                        loader->slot_count, (double)bytes / 1e6);
    }
    for (uint32_t i = 0; i < loader->slot_count; i++) {
        if (!create_slot(loader, &loader->slots[i])) {
            return false;
        }
    }
    return true;
}

// `workers`: as they were asked for; a loader of rows on the device has none afterwards.
static bool fill_cache(struct grt_loader *loader, uint32_t workers) {
    const struct grt_loader_desc *desc = &loader->desc;
    uint32_t threads = workers > 0 ? workers : 1;
    if (desc->cache == GRT_CACHE_DEVICE) {
        return grt_loader_to_device(loader, threads);
    }
    if (desc->cache == GRT_CACHE_RAM) {
        loader->kept_rows = grt_rows_keep(desc->data, threads);
        loader->host_bytes += desc->data->form_x.tile_bytes + desc->data->form_y.tile_bytes;
        return loader->kept_rows;
    }
    return true;
}

static uint64_t number_of(const struct grt_loader *loader, struct grt_loader_position position) {
    return position.epoch * loader->per_epoch + position.batch;
}

static struct grt_loader_position position_of(const struct grt_loader *loader, uint64_t number) {
    return (struct grt_loader_position){number / loader->per_epoch, number % loader->per_epoch};
}

static bool good_position(const struct grt_loader *loader, struct grt_loader_position position) {
    if (position.batch < loader->per_epoch && position.epoch < UINT64_MAX / 2 / loader->per_epoch) {
        return true;
    }
    return grt_fail(GRT_INVALID, "position %llu of epoch %llu: an epoch has %llu batches",
                    (unsigned long long)position.batch, (unsigned long long)position.epoch,
                    (unsigned long long)loader->per_epoch);
}

static void go_to(struct grt_loader *loader, uint64_t number) {
    loader->next_made = loader->next_given = number;
    loader->epoch_end = loader->desc.short_workers
                            ? (number / loader->per_epoch + 1) * loader->per_epoch
                            : UINT64_MAX;
    for (uint32_t i = 0; i < loader->slot_count; i++) {
        loader->slots[i].state = GRT_SLOT_FREE;
        loader->slots[i].given = false;
    }
}

// With a worker for every processor the caller waits for one, and workers for slots that it has not
// given back. 16 of them on 16 processors: 30 and 35 GB/s with two ahead, 41 with four (2026-11).
static uint32_t batches_ahead(uint32_t workers) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 && workers >= (uint64_t)processors ? 4 : 2;
}

struct grt_loader *grt_loader_create(const struct grt_loader_desc *desc) {
    if (!check_desc(desc)) {
        return NULL;
    }
    struct grt_loader *loader = calloc(1, sizeof *loader);
    if (!loader) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a loader");
        return NULL;
    }
    loader->desc = *desc;
    loader->desc.prefetch = desc->prefetch > 0 ? desc->prefetch : batches_ahead(desc->workers);
    loader->desc.held = desc->held > 0 ? desc->held : 2;
    loader->desc.turns = desc->turns > 0 ? desc->turns : 1;
    loader->draw = (struct grt_draw){
        .part = desc->part,
        .shuffle = desc->shuffle,
        .same = desc->same,
        .seed = desc->seed,
        .window = desc->window > 0 ? desc->window : grt_dataset_window(desc->data),
    };
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->made, NULL);
    pthread_cond_init(&loader->freed, NULL);
    bool on_device = desc->cache == GRT_CACHE_DEVICE;
    if (on_device) {
        loader->desc.workers = 0;
    }
    bool good = count_rows(loader) && good_position(loader, desc->start) &&
                (on_device || create_slots(loader)) && fill_cache(loader, desc->workers);
    if (good && loader->desc.workers == 0 && !on_device) {
        loader->reader = grt_reader_create(desc->data);
        loader->drawn = malloc(desc->batch * sizeof *loader->drawn);
        good = (loader->reader && loader->drawn) ||
               grt_fail(GRT_NO_MEMORY, "no host memory for a loader");
    }
    if (good) {
        go_to(loader, number_of(loader, desc->start));
    }
    if (!good || !grt_loader_start(loader)) {
        grt_loader_destroy(&loader);
    }
    return loader;
}

void grt_loader_destroy(struct grt_loader **loader) {
    if (!loader || !*loader) {
        return;
    }
    struct grt_loader *l = *loader;
    *loader = NULL;
    grt_loader_stop(l);
    grt_loader_unbind(l);
    for (uint32_t i = 0; l->slots && i < l->slot_count; i++) {
        grt_buf_destroy(&l->slots[i].buf);
    }
    grt_loader_off_device(l);
    if (l->kept_rows) {
        grt_rows_drop(l->desc.data);
    }
    grt_reader_destroy(&l->reader);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->made);
    pthread_cond_destroy(&l->freed);
    free(l->drawn);
    free(l->slots);
    free(l->memory);
    free(l);
}

struct grt_loader_info grt_loader_info(const struct grt_loader *loader) {
    if (!loader) {
        return (struct grt_loader_info){0};
    }
    const struct grt_loader_share *share = &loader->desc.share;
    uint64_t delivered = loader->per_epoch * loader->desc.batch;
    delivered = share->of > 0 ? delivered / share->count * share->of : delivered;
    const struct grt_dataset *data = loader->desc.data;
    return (struct grt_loader_info){
        .rows = delivered < loader->rows ? delivered : loader->rows,
        .batches_per_epoch = loader->per_epoch,
        .slots = loader->slot_count,
        .threads_started = loader->threads_started,
        .host_bytes = loader->host_bytes,
        .device_bytes = loader->on_device ? data->form_x.tile_bytes + data->form_y.tile_bytes : 0,
        .next = position_of(loader, loader->next_given),
    };
}

// ---- the stream ----

static void describe(const struct grt_loader *loader, const struct grt_slot *slot,
                     struct grt_batch *batch) {
    const struct grt_dataset_info *info = &loader->desc.data->info;
    struct grt_loader_position position = position_of(loader, slot->number);
    uint64_t first;
    uint32_t rows = grt_loader_rows(loader, position.batch, &first);
    *batch = (struct grt_batch){
        .position = position,
        .rows = rows,
        .slot = (uint32_t)(slot - loader->slots),
        .x = slot->x,
        .y = slot->y,
    };
    if (slot->buf) {
        uint64_t batch_rows = loader->desc.batch;
        batch->x_range = (struct grt_range){slot->buf, 0, batch_rows * info->x_width * 4};
        if (slot->y) {
            batch->y_range =
                (struct grt_range){slot->buf, loader->x_bytes, batch_rows * info->y_width * 4};
        }
    }
}

// With the lock held: wakes workers when half of the batches ahead are used up, all at once, so
// that not every batch is a call to the system.
static void wake_workers(struct grt_loader *loader, bool now) {
    uint64_t ahead = loader->next_made - loader->next_given;
    if (loader->waiting > 0 && (now || ahead <= loader->slot_count / 2)) {
        pthread_cond_broadcast(&loader->freed);
    }
}

// With the lock held: waits until the slot holds its batch.
static void wait_for(struct grt_loader *loader, struct grt_slot *slot, uint64_t number) {
    loader->wanted = slot;
    while (slot->state != GRT_SLOT_MADE || slot->number != number) {
        wake_workers(loader, true);
        pthread_cond_wait(&loader->made, &loader->lock);
    }
    loader->wanted = NULL;
}

// The slot of the next batch once it is made, with its fault if it has one; NULL with the sentence
// when the caller holds too many.
static struct grt_slot *make_next(struct grt_loader *loader) {
    uint64_t number = loader->next_given;
    struct grt_slot *slot = &loader->slots[number % loader->slot_count];
    // Slots become GIVEN and are freed by the caller alone.
    if (slot->given) {
        grt_fail(GRT_INVALID, "grt_loader_next: %u batches are held, the desc's `held` is %u",
                 loader->slot_count, loader->desc.held);
        return NULL;
    }
    if (loader->desc.workers == 0) {
        if (slot->state == GRT_SLOT_FREE) {
            slot->number = number;
            grt_loader_make(loader, slot, loader->reader, loader->drawn);
            slot->state = GRT_SLOT_MADE;
        }
        return slot;
    }
    if (number >= loader->epoch_end) {  // short workers have ended with their epoch
        grt_loader_stop(loader);
        loader->epoch_end += loader->per_epoch;
        if (!grt_loader_start(loader)) {
            return NULL;
        }
    }
    pthread_mutex_lock(&loader->lock);
    wait_for(loader, slot, number);
    pthread_mutex_unlock(&loader->lock);
    return slot;
}

bool grt_loader_peek(struct grt_loader *loader) {
    const struct grt_slot *slot = loader && loader->slots ? make_next(loader) : NULL;
    return slot && slot->fault.status == GRT_OK;
}

bool grt_loader_next(struct grt_loader *loader, struct grt_batch *batch) {
    if (!loader || !batch) {
        return grt_fail(GRT_INVALID, "grt_loader_next: no %s", loader ? "batch" : "loader");
    }
    if (!loader->slots) {
        return grt_fail(GRT_INVALID, "grt_loader_next: its rows are on the device, see "
                                     "grt_loader_device()");
    }
    double begun = grt_seconds();
    struct grt_slot *slot = make_next(loader);
    if (!slot) {
        return false;
    }
    if (slot->fault.status != GRT_OK) {
        return grt_fail(slot->fault.status, "%s: %s", loader->desc.data->path, slot->fault.text);
    }
    pthread_mutex_lock(&loader->lock);
    slot->state = GRT_SLOT_GIVEN;
    loader->next_given++;
    pthread_mutex_unlock(&loader->lock);
    slot->given = true;
    describe(loader, slot, batch);
    batch->waited = grt_seconds() - begun;
    if (grt_timeline_on()) {
        grt_timeline_stage(GRT_STAGE_WAIT, begun);
        if (loader->thread_count > 0) {
            grt_timeline_span("wait for a batch", begun, begun + batch->waited);
        }
    }
    return true;
}

void grt_loader_release(struct grt_loader *loader, const struct grt_batch *batch) {
    if (!loader || !batch || batch->slot >= loader->slot_count) {
        return;
    }
    struct grt_slot *slot = &loader->slots[batch->slot];
    pthread_mutex_lock(&loader->lock);
    if (slot->state == GRT_SLOT_GIVEN) {
        slot->state = GRT_SLOT_FREE;
    }
    slot->given = false;
    wake_workers(loader, false);
    pthread_mutex_unlock(&loader->lock);
}

bool grt_loader_seek(struct grt_loader *loader, struct grt_loader_position position) {
    if (!loader) {
        return grt_fail(GRT_INVALID, "grt_loader_seek: no loader");
    }
    if (!good_position(loader, position)) {
        return false;
    }
    bool held = false;
    pthread_mutex_lock(&loader->lock);
    for (uint32_t i = 0; i < loader->slot_count; i++) {
        held = held || loader->slots[i].state == GRT_SLOT_GIVEN;
    }
    pthread_mutex_unlock(&loader->lock);
    if (held) {
        return grt_fail(GRT_INVALID, "grt_loader_seek: a batch is held");
    }
    grt_loader_stop(loader);
    go_to(loader, number_of(loader, position));
    return grt_loader_start(loader);
}

bool grt_loader_order(const struct grt_loader *loader, uint64_t epoch, uint64_t first,
                      uint64_t count, uint32_t *rows) {
    if (!loader || !rows || first > loader->rows || count > loader->rows - first) {
        return grt_fail(GRT_INVALID, "grt_loader_order: %s",
                        loader && rows ? "more rows than an epoch has" : "no loader or no rows");
    }
    uint64_t drawn[256];
    for (uint64_t done = 0; done < count; done += 256) {
        uint64_t n = count - done < 256 ? count - done : 256;
        grt_order_draw(&loader->desc.data->order, &loader->draw, epoch, first + done, n, drawn);
        for (uint64_t i = 0; i < n; i++) {
            rows[done + i] = (uint32_t)drawn[i];
        }
    }
    return true;
}
