// SPDX-License-Identifier: Apache-2.0
// Looking at every row once, before anything is made for a run: which rows are not finite, which
// targets are none, how many classes there are, mean and deviation of features, all in one pass.
//
//     blocks of rows   0   1   2   3   4   5  ...     taken by threads as they are free,
//     findings         0 + 1 + 2 + 3 ...              added up in the order of the file
//
// Sums are taken in double within a block and joined block after block: the answer, and the row
// that a refusal names, are the same on every run and for every number of threads. Of each row only
// what is asked for is read: class numbers alone cost no inputs.
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "dataset_scan.h"

#define BLOCK_FLOATS (1u << 18)
#define MOST_BLOCK_FLOATS (1u << 24)  // of blocks that are grown to whole chunks
#define MOST_THREADS 16
#define WATCH_SECONDS 0.2

struct scan {
    struct grt_dataset *data;
    const struct grt_scan_desc *desc;
    uint32_t block;  // rows
    uint64_t blocks;
    pthread_mutex_t lock;
    pthread_cond_t joined;
    uint64_t next;  // block that nobody has taken yet
    uint64_t done;  // blocks that are part of `found`
    bool over;      // a block failed, or the caller said stop
    struct grt_fault fault;
    struct grt_findings *found;
};

// ---- findings ----

static bool findings_init(struct grt_findings *f, uint32_t features) {
    *f = (struct grt_findings){.least_class = UINT32_MAX};
    f->mean = features > 0 ? calloc(2 * (size_t)features, sizeof *f->mean) : NULL;
    f->square = f->mean ? f->mean + features : NULL;
    return features == 0 || f->mean;
}

void grt_findings_finish(struct grt_findings *f) {
    free(f->dropped);
    free(f->mean);  // square lies behind it
    *f = (struct grt_findings){0};
}

static bool drop(struct grt_findings *f, uint64_t row, struct grt_fault *fault) {
    if (f->dropped_count == f->capacity) {
        uint64_t capacity = f->capacity ? 2 * f->capacity : 64;
        uint64_t *more = realloc(f->dropped, capacity * sizeof *more);
        if (!more) {
            return grt_fault(fault, GRT_NO_MEMORY, "no host memory for the list of rows left out");
        }
        f->dropped = more;
        f->capacity = capacity;
    }
    f->dropped[f->dropped_count++] = row;
    return true;
}

// Means and sums of squares of two sets of numbers become those of both.
static void join_moments(struct grt_findings *a, const struct grt_findings *b, uint32_t features) {
    double n = (double)a->points + (double)b->points;
    for (uint32_t k = 0; b->points > 0 && k < features; k++) {
        double apart = b->mean[k] - a->mean[k];
        if (a->points == 0) {
            a->mean[k] = b->mean[k];
        } else {
            a->mean[k] += apart * ((double)b->points / n);
        }
        a->square[k] += b->square[k] + apart * apart * ((double)a->points * (double)b->points / n);
    }
    a->points += b->points;
}

static bool join(struct scan *s, const struct grt_findings *part, struct grt_fault *fault) {
    struct grt_findings *all = s->found;
    bool good = true;
    for (uint64_t i = 0; good && i < part->dropped_count; i++) {
        good = drop(all, part->dropped[i], fault);
    }
    all->most_class = part->most_class > all->most_class ? part->most_class : all->most_class;
    all->least_class = part->least_class < all->least_class ? part->least_class : all->least_class;
    all->most_weight = fmaxf(part->most_weight, all->most_weight);
    if (s->desc->moments) {
        join_moments(all, part, s->data->info.features);
    }
    return good;
}

// ---- one block ----

// Rows that are not finite: listed, or the first is the fault. Targets that are no shares are one.
static bool see_values(const struct scan *s, const uint64_t *rows, uint32_t count, const float *x,
                       const void *y, struct grt_findings *part, struct grt_fault *fault) {
    const struct grt_dataset_info *info = &s->data->info;
    uint64_t xw = info->x_width, yw = info->y_width, aims = yw - info->weighted;
    const float *targets = info->classes == 0 ? y : NULL;
    if (!s->desc->drop) {
        return (!x || grt_check_finite(rows, count, x, xw, "inputs", fault)) &&
               (!targets || grt_check_finite(rows, count, targets, yw, "targets", fault)) &&
               (!targets || !s->desc->shares ||
                grt_check_shares(rows, count, targets, aims, yw, NULL, fault));
    }
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        if ((x && grt_not_finite(x + i * xw, xw) < xw) ||
            (targets && grt_not_finite(targets + i * yw, yw) < yw)) {
            good = drop(part, rows[i], fault);
        } else if (targets && s->desc->shares) {
            good = grt_check_shares(rows + i, 1, targets + i * yw, aims, yw, NULL, fault);
        }
    }
    return good;
}

static bool see_weights(const struct scan *s, const uint64_t *rows, uint32_t count,
                        const uint32_t *y, struct grt_findings *part, struct grt_fault *fault) {
    uint64_t width = s->data->info.y_width;
    if (!grt_check_weights(rows, count, y, width, fault)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        float weight;
        memcpy(&weight, &y[(i + 1) * width - 1], sizeof weight);
        part->most_weight = fmaxf(part->most_weight, weight);
    }
    return true;
}

// Sums about the block's first row, which loses nothing where all values are far from zero.
static void see_moments(const struct grt_dataset *data, const uint64_t *rows, uint32_t count,
                        const double *x, struct grt_findings *part) {
    uint32_t features = data->info.features;
    uint64_t xw = data->info.x_width;
    const struct grt_order *order = &data->order;
    uint64_t dropped = 0;  // rows before this one
    const double *shift = NULL;
    memset(part->mean, 0, 2 * (size_t)features * sizeof *part->mean);
    part->points = 0;
    for (uint32_t i = 0; i < count; i++) {
        while (dropped < order->dropped_count && order->dropped[dropped] < rows[i]) {
            dropped++;
        }
        bool here = dropped == order->dropped_count || order->dropped[dropped] != rows[i];
        if (!here || !grt_order_trains(order, rows[i] - dropped)) {
            continue;
        }
        const double *row = x + i * xw, *end = row + xw;
        for (shift = shift ? shift : row; row < end; row += features) {
            for (uint32_t k = 0; k < features; k++) {
                double d = row[k] - shift[k];
                part->mean[k] += d;
                part->square[k] += d * d;
            }
            part->points++;
        }
    }
    for (uint32_t k = 0; shift && part->points > 0 && k < features; k++) {
        double mean = part->mean[k] / (double)part->points;
        part->square[k] -= part->mean[k] * mean;
        part->mean[k] = shift[k] + mean;
    }
}

// The inputs as doubles: what f32 has is widened, the rest is read again.
static bool widen(const struct scan *s, struct grt_reader *reader, const uint64_t *rows,
                  uint32_t count, const float *x, double *wide, struct grt_fault *fault) {
    for (uint32_t i = 0; i < s->data->input_count; i++) {
        if (grt_element_is_wide(s->data->arrays[i].element.type)) {
            return grt_reader_read(reader, GRT_READ_WIDE, rows, count, wide, NULL, fault);
        }
    }
    for (uint64_t i = 0; i < (uint64_t)count * s->data->info.x_width; i++) {
        wide[i] = x[i];
    }
    return true;
}

static bool see_block(const struct scan *s, struct grt_reader *reader, uint64_t *rows,
                      uint64_t number, float *x, double *wide, uint32_t *y,
                      struct grt_findings *part, struct grt_fault *fault) {
    uint64_t first = number * s->block, left = s->data->info.file_rows - first;
    uint32_t count = left < s->block ? (uint32_t)left : s->block;
    part->dropped_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = first + i;
    }
    if (!grt_reader_read(reader, GRT_READ_ANY, rows, count, x, y, fault) ||
        (s->desc->weights && y && !see_weights(s, rows, count, y, part, fault)) ||
        (s->desc->values && !see_values(s, rows, count, x, y, part, fault))) {
        return false;
    }
    for (uint32_t i = 0; s->desc->classes && y && i < count; i++) {
        uint32_t of_row = y[i * (uint64_t)s->data->info.y_width];
        part->most_class = of_row > part->most_class ? of_row : part->most_class;
        part->least_class = of_row < part->least_class ? of_row : part->least_class;
    }
    if (!s->desc->moments || !x || !wide || !part->mean) {
        return true;
    }
    bool good = widen(s, reader, rows, count, x, wide, fault);
    if (good) {
        see_moments(s->data, rows, count, wide, part);
    }
    return good;
}

// ---- threads ----

// The next block, or false when there is none left to take.
static bool take(struct scan *s, uint64_t *number) {
    pthread_mutex_lock(&s->lock);
    bool there = !s->over && s->next < s->blocks;
    if (there) {
        *number = s->next++;
    }
    pthread_mutex_unlock(&s->lock);
    return there;
}

// Adds a block's findings when all before it are in; false when the scan is over.
static bool hand_in(struct scan *s, uint64_t number, const struct grt_findings *part, bool good,
                    struct grt_fault *fault) {
    pthread_mutex_lock(&s->lock);
    while (s->done != number && !s->over) {
        pthread_cond_wait(&s->joined, &s->lock);
    }
    if (!s->over) {
        if (!good || !join(s, part, fault)) {
            s->fault = *fault;
            s->over = true;
        }
        s->done++;
    }
    bool on = !s->over;
    pthread_cond_broadcast(&s->joined);
    pthread_mutex_unlock(&s->lock);
    return on;
}

static void end_scan(struct scan *s, const struct grt_fault *fault) {
    pthread_mutex_lock(&s->lock);
    if (!s->over) {
        s->fault = *fault;
    }
    s->over = true;
    pthread_cond_broadcast(&s->joined);
    pthread_mutex_unlock(&s->lock);
}

static void tell(struct scan *s, double share) {
    struct grt_fault fault = {0};
    if (s->desc->watch && !s->desc->watch(s->desc->context, share)) {
        grt_fault(&fault, GRT_IO, "stopped while its rows were looked through");
        end_scan(s, &fault);
    }
}

// Takes blocks until there are none; `watched` is the caller's own thread, which tells of progress.
static void work(struct scan *s, bool watched) {
    const struct grt_dataset_info *info = &s->data->info;
    struct grt_fault fault = {0};
    struct grt_findings part;
    struct grt_reader *reader = grt_reader_create(s->data);
    uint64_t *rows = malloc(s->block * sizeof *rows);
    float *x = s->desc->x ? malloc(s->block * (uint64_t)info->x_width * sizeof *x) : NULL;
    double *wide =
        s->desc->moments ? malloc(s->block * (uint64_t)info->x_width * sizeof *wide) : NULL;
    uint32_t *y = s->desc->y ? malloc(s->block * (uint64_t)info->y_width * sizeof *y) : NULL;
    bool ready = findings_init(&part, s->desc->moments ? info->features : 0);
    double told = grt_seconds();
    uint64_t number;
    if (!ready || !reader || !rows || (s->desc->x && !x) || (s->desc->y && !y) ||
        (s->desc->moments && !wide)) {
        grt_fault(&fault, GRT_NO_MEMORY, "no host memory to look through the rows");
        end_scan(s, &fault);
    }
    while (take(s, &number)) {
        bool good = see_block(s, reader, rows, number, x, wide, y, &part, &fault);
        if (!hand_in(s, number, &part, good, &fault)) {
            break;
        }
        if (watched && grt_seconds() - told > WATCH_SECONDS) {
            told = grt_seconds();
            tell(s, (double)(number + 1) / (double)s->blocks);
        }
    }
    grt_findings_finish(&part);
    free(x);
    free(wide);
    free(y);
    free(rows);
    grt_reader_destroy(&reader);
}

static void *work_beside(void *context) {
    work(context, false);
    return NULL;
}

static uint32_t threads_for(const struct scan *s) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = s->desc->threads > 0 ? s->desc->threads
                     : processors > 0     ? (uint64_t)processors
                                          : 1;
    count = count < MOST_THREADS ? count : MOST_THREADS;
    return (uint32_t)(count < s->blocks ? count : s->blocks);
}

// Whole chunks where rows are compressed, so that a chunk is inflated for one block.
static uint32_t block_rows(const struct scan *s) {
    const struct grt_dataset_info *info = &s->data->info;
    uint64_t width = (s->desc->x ? info->x_width : 0) + (uint64_t)(s->desc->y ? info->y_width : 0);
    width = width < 1 ? 1 : width;
    uint64_t rows = BLOCK_FLOATS / width, unit = s->data->order.unit;
    rows = rows < 1 ? 1 : rows;
    uint64_t whole = (rows + unit - 1) / unit * unit;
    return (uint32_t)(whole <= MOST_BLOCK_FLOATS / width ? whole : rows);
}

bool grt_scan(struct grt_dataset *data, const struct grt_scan_desc *desc,
              struct grt_findings *found) {
    struct scan s = {.data = data, .desc = desc, .found = found};
    pthread_t threads[MOST_THREADS];
    uint32_t count = 0;
    if (!findings_init(found, desc->moments ? data->info.features : 0)) {
        return grt_fail(GRT_NO_MEMORY, "no host memory to look through the rows");
    }
    s.block = block_rows(&s);
    s.blocks = (data->info.file_rows + s.block - 1) / s.block;
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.joined, NULL);
    tell(&s, 0);
    for (uint32_t most = s.over ? 0 : threads_for(&s);
         count + 1 < most && pthread_create(&threads[count], NULL, work_beside, &s) == 0;) {
        count++;
    }
    work(&s, true);
    while (count > 0) {
        pthread_join(threads[--count], NULL);
    }
    pthread_mutex_destroy(&s.lock);
    pthread_cond_destroy(&s.joined);
    if (s.fault.status == GRT_OK) {
        return true;
    }
    grt_findings_finish(found);
    return grt_fail(s.fault.status, "%s: %s", data->path, s.fault.text);
}
