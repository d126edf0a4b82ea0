// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: a loader from within.
//
//     next_made   the batch that the next free worker takes       both only grow; a batch may be
//     next_given  the batch that the caller gets next             taken while its slot is free
//
//     slot states:  FREE -> MAKING (a worker) -> MADE (or FAILED) -> GIVEN (the caller) -> FREE
#ifndef GRT_LOADER_PARTS_H
#define GRT_LOADER_PARTS_H

#include <pthread.h>

#include "dataset_parts.h"
#include "gpurt/loader.h"

#define GRT_LOADER_TURNS 2

enum grt_slot_state { GRT_SLOT_FREE, GRT_SLOT_MAKING, GRT_SLOT_MADE, GRT_SLOT_GIVEN };

struct grt_upload {
    struct grt_graph *graph;
};

struct grt_slot {
    enum grt_slot_state state;
    bool given;           // the caller has it; nobody else looks at this
    uint64_t number;      // of its batch, counted through all epochs
    struct grt_buf *buf;  // pin; else NULL
    float *x;
    uint32_t *y;
    struct grt_fault fault;      // of a batch that could not be made
    struct grt_upload *uploads;  // each uploads a part of the slot; made by grt_loader_bind()
};

struct grt_loader {
    struct grt_loader_desc desc;  // defaults filled in
    struct grt_draw draw;
    uint64_t rows;  // of an epoch, as drawn
    uint64_t per_epoch;
    uint64_t host_bytes;
    uint64_t x_bytes;  // of a slot; y begins there
    uint64_t y_bytes;
    uint32_t slot_count;
    struct grt_slot *slots;
    unsigned char *memory;      // of all slots; NULL with pin
    struct grt_reader *reader;  // workers 0
    uint64_t *drawn;            // workers 0: row numbers of a batch
    bool kept_rows;             // holds a share of the rows kept in memory
    bool on_device;             // holds a share of those on the device
    struct grt_tensor bound_x[GRT_LOADER_TURNS], bound_y[GRT_LOADER_TURNS];
    bool bound[GRT_LOADER_TURNS];
    uint32_t part_rows, part_count;  // that batches are cut into on their way to the device

    pthread_mutex_t lock;
    pthread_cond_t made;            // the slot that is wanted was made
    pthread_cond_t freed;           // a slot was freed, or workers shall end
    const struct grt_slot *wanted;  // the caller waits for it; else NULL
    uint32_t waiting;               // workers, for a slot
    uint64_t next_made, next_given;
    uint64_t epoch_end;  // short_workers: batches from here on wait for their epoch
    bool ending;
    uint32_t thread_count;
    uint32_t threads_named;  // in timelines, from 1 on
    uint64_t threads_started;
    pthread_t *threads;
};

// The rows of a batch, by its number within the epoch: the first, and how many there are.
static inline uint32_t grt_loader_rows(const struct grt_loader *loader, uint64_t batch,
                                       uint64_t *first) {
    const struct grt_loader_share *share = &loader->desc.share;
    if (share->of > 0) {
        batch = batch / share->count * share->of + share->first + batch % share->count;
    }
    *first = batch * loader->desc.batch;
    uint64_t left = *first < loader->rows ? loader->rows - *first : 0;
    return left < loader->desc.batch ? (uint32_t)left : loader->desc.batch;
}

// loader_work.c
// Fills a slot with its batch; the fault is the slot's.
void grt_loader_make(struct grt_loader *loader, struct grt_slot *slot, struct grt_reader *reader,
                     uint64_t *drawn);
bool grt_loader_start(struct grt_loader *loader);
void grt_loader_stop(struct grt_loader *loader);

// loader_device.c
// Puts every row on the device, read by `threads`; false with the sentence.
bool grt_loader_to_device(struct grt_loader *loader, uint32_t threads);
void grt_loader_off_device(struct grt_loader *loader);
void grt_loader_unbind(struct grt_loader *loader);

#endif
