// SPDX-License-Identifier: Apache-2.0
// Loaders: batches of a data set, in an order that a seed decides, made ahead by worker threads.
//
//     batch 0   1   2   3   4  ...     numbered through all epochs; what is in each follows from
//       |   |   |   |                  seed, epoch and number alone, whoever makes it
//     slot 0  1   2   3   0   ...      memory of one batch; workers x prefetch + held of them
//
// A batch lands as f32 (classes: u32) where the device can copy from (pin), or in plain memory.
// Workers read ahead across the ends of epochs. The stream never ends: a caller stops after
// batches_per_epoch batches, or goes on.
#ifndef GRT_LOADER_H
#define GRT_LOADER_H

#include "plan.h"
#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_CACHES(X)                                                                              \
    X(NONE, "none")     /* every batch is read from the file */                                    \
    X(RAM, "ram")       /* all rows are read once and kept in host memory */                       \
    X(DEVICE, "device") /* the same in device memory: see grt_loader_device() */

enum grt_cache {
#define X(name, text) GRT_CACHE_##name,
    GRT_CACHES(X)
#undef X
        GRT_CACHE_COUNT,
};
GRT_API const char *grt_cache_text(enum grt_cache cache);
// Whether all rows fit where a cache keeps them, with nothing else there; else `why` says what is
// missing.
#define GRT_CACHE_WHY 192
GRT_API bool grt_cache_fits(const struct grt_dataset *data, struct grt_dev *dev,
                            enum grt_cache cache, char why[GRT_CACHE_WHY]);

// Where a loader stands: the batch that comes next. Stored in checkpoints.
struct grt_loader_position {
    uint64_t epoch;
    uint64_t batch;  // within the epoch
};

struct grt_loader_desc {
    struct grt_dataset *data;
    struct grt_dev *dev;  // needed by pin, cache device and grt_loader_upload()
    enum grt_part part;
    uint32_t batch;        // rows
    uint32_t workers;      // threads; 0: batches are made within grt_loader_next()
    uint32_t prefetch;     // batches that each worker makes ahead; 0: 2, 4 with no processor left
    uint32_t held;         // batches not yet released at any time; 0: 2
    uint32_t turns;        // places on the device that batches go to in turn; 0: 1, at most 2
    bool pin;              // batches land in upload buffers
    enum grt_cache cache;  // "ram" and "device" are shared by all loaders of a data set
    bool shuffle;          // anew each epoch
    bool same;             // shuffled, but every epoch as the first
    uint64_t limit;        // rows of an epoch at most, the first of its order; 0: all
    bool drop_last;        // leave out the rows that do not fill a batch
    bool short_workers;    // threads end with their epoch and are started anew
    uint64_t seed;         // of the shuffling
    uint32_t window;       // compressed data: chunks whose rows are mixed; 0: 16
    struct grt_loader_position start;
    // Batches of `of` that make a step together, of which this loader gives `count` from `first`
    // on; the others are those of other ranks, and their rows are not read. A batch behind the last
    // row of an epoch has no rows. of 0: all.
    struct grt_loader_share {
        uint32_t first, count, of;
    } share;
};
#define grt_loader_desc(...) GRT_DESC(struct grt_loader_desc, __VA_ARGS__)

struct grt_batch {
    struct grt_loader_position position;
    uint32_t rows;             // the rest of a last batch that is not full is zero
    uint32_t slot;             // 0 .. slots - 1
    const float *x;            // [rows][x_width]
    const void *y;             // [rows][y_width], f32 or u32; NULL without targets
    struct grt_range x_range;  // pin: where x and y lie in an upload buffer; else no buffer
    struct grt_range y_range;
    double waited;  // seconds that grt_loader_next() took
};

struct grt_loader;

GRT_API struct grt_loader *grt_loader_create(const struct grt_loader_desc *desc);
GRT_API void grt_loader_destroy(struct grt_loader **loader);

struct grt_loader_info {
    uint64_t rows;               // of an epoch, as delivered, by all ranks
    uint64_t batches_per_epoch;  // 0 when drop_last leaves nothing: grt_loader_create() refuses
    uint32_t slots;
    uint64_t threads_started;  // workers so far; short ones are started for each epoch
    uint64_t host_bytes;       // slots and caches
    uint64_t device_bytes;     // cache device
    struct grt_loader_position next;
};
GRT_API struct grt_loader_info grt_loader_info(const struct grt_loader *loader);

// The next batch, waiting until it is made. False with the sentence when the file failed under the
// workers (truncated, damaged, NaN): the position stays, and every later call fails the same way.
GRT_API bool grt_loader_next(struct grt_loader *loader, struct grt_batch *batch);
// Waits until the next batch is made, and says whether grt_loader_next() will give it; says no
// sentence.
GRT_API bool grt_loader_peek(struct grt_loader *loader);
// Gives the slot back. What copies from it on the device must have finished.
GRT_API void grt_loader_release(struct grt_loader *loader, const struct grt_batch *batch);
// Goes to another place of the stream. No batch may be held.
GRT_API bool grt_loader_seek(struct grt_loader *loader, struct grt_loader_position position);

// Where grt_loader_upload() puts the batches of a turn: x f32 and y f32 or u32 (NULL without
// targets). With fewer rows than a batch has, batches are cut into parts of so many, which go to
// the turns one after the other; all turns are bound alike. With pin, bakes a graph that copies for
// each slot and part.
GRT_API bool grt_loader_bind(struct grt_loader *loader, uint32_t turn, const struct grt_tensor *x,
                             const struct grt_tensor *y);
// Queues the transfer of a part of a batch (0: the only one) to the bound tensors and returns. With
// two turns it runs on the upload queue (device.h), and the caller orders it with the steps that
// use the tensors. Without pin it waits for all that is queued, then writes.
GRT_API bool grt_loader_upload(struct grt_loader *loader, const struct grt_batch *batch,
                               uint32_t part);
// The turn that a part of a batch goes to.
GRT_API uint32_t grt_loader_turn(const struct grt_loader *loader, const struct grt_batch *batch,
                                 uint32_t part);

// cache device: all rows of the file, x [N][features] or [N][points][features] and y [N][y_width]
// (or [N] classes; no buffer without targets), u8 and f16 as in the file, all else f32, and what u8
// and f16 x are to be normalised with, f32 [2][features] of means and scales (or no buffer), for
// steps that gather by themselves in the order of grt_loader_order(). Such a loader has no workers
// and no batches of its own.
GRT_API bool grt_loader_device(const struct grt_loader *loader, struct grt_tensor *x,
                               struct grt_tensor *y, struct grt_range *norm);
// Rows of the file at positions first .. first + count - 1 of an epoch; any loader.
GRT_API bool grt_loader_order(const struct grt_loader *loader, uint64_t epoch, uint64_t first,
                              uint64_t count, uint32_t *rows);
// cache device: the same for kernels, which find rows for themselves (shaders/lib/order.k): words
// of an epoch's record, the record, and the rows left out, whose number is returned (rows may be
// NULL).
GRT_API uint64_t grt_loader_record(const struct grt_loader *loader);
GRT_API void grt_loader_words(const struct grt_loader *loader, uint64_t epoch, uint32_t *words);
GRT_API uint64_t grt_loader_dropped(const struct grt_loader *loader, uint32_t *rows);

// For benchmarks: what reading alone would take.
struct grt_loader_raw {
    uint64_t rows, bytes;
    double seconds;
};
// The rows of the next `batches` batches (0: an epoch of them) read with plain pread() calls by
// this many threads, one call for each row and array, nothing converted or kept; the loader stays
// where it is. Compressed arrays are read chunk by chunk, and then the batches are always an epoch.
GRT_API bool grt_loader_raw(const struct grt_loader *loader, uint32_t threads, uint64_t batches,
                            struct grt_loader_raw *raw);
// As many bytes as `batches` of a loader's batches have, copied with memcpy() by this many threads
// out of as much memory as an epoch takes (1 GiB at most), one behind the other, to as many places
// as it has slots.
struct grt_copier;
GRT_API struct grt_copier *grt_copier_create(const struct grt_loader *loader);
GRT_API void grt_copier_destroy(struct grt_copier **copier);
GRT_API bool grt_copier_run(struct grt_copier *copier, uint32_t threads, uint64_t batches,
                            struct grt_loader_raw *raw);

#ifdef __cplusplus
}
#endif
#endif
