// SPDX-License-Identifier: Apache-2.0
// Looking at every row once: which are not finite, how many classes there are, mean and deviation of
// features. Rows are read in the order of the file, sums are taken in that order in double, so the
// answer is the same on every run. It is kept beside compiled kernels, under a key that names the file's
// identity and state, for files large enough that it matters.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cache.h"
#include "../report.h"
#include "dataset_parts.h"

#define BLOCK_FLOATS (1u << 18)
#define KEEP_FROM (1u << 20)  // bytes of a file: smaller ones are scanned in no time

// Sees `count` rows from `first` on; false ends the scan.
typedef bool scan_fn(void *context, const struct grt_dataset *data, uint64_t first, uint32_t count,
                     const float *x, const void *y);

static bool scan(struct grt_dataset *data, bool with_y, scan_fn *see, void *context) {
    const struct grt_dataset_info *info = &data->info;
    uint64_t widest = info->x_width + (uint64_t)info->y_width;
    uint32_t block = (uint32_t)(BLOCK_FLOATS / widest < 1 ? 1 : BLOCK_FLOATS / widest);
    struct grt_reader *reader = grt_reader_create(data);
    float *x = malloc(block * (uint64_t)info->x_width * sizeof *x);
    uint32_t *y = malloc((block * (uint64_t)info->y_width + 1) * sizeof *y);
    uint64_t *rows = malloc(block * sizeof *rows);
    struct grt_fault fault = {0};
    bool good = reader && x && y && rows;
    if (!good)
        grt_fault(&fault, GRT_NO_MEMORY, "no host memory to look through the rows");
    for (uint64_t first = 0; good && first < info->file_rows; first += block) {
        uint64_t left = info->file_rows - first;
        uint32_t count = left < block ? (uint32_t)left : block;
        for (uint32_t i = 0; i < count; i++)
            rows[i] = first + i;
        uint32_t *into = with_y && info->y_width > 0 ? y : NULL;
        good = grt_reader_read(reader, GRT_READ_ANY, rows, count, x, into, &fault) &&
               see(context, data, first, count, x, into);
    }
    free(x);
    free(y);
    free(rows);
    grt_reader_destroy(&reader);
    if (fault.status != GRT_OK)
        grt_fail(fault.status, "%s: %s", data->path, fault.text);
    return good;
}

// ---- answers kept ----

static void make_key(const struct grt_dataset *data, const char *what, char *key, size_t size) {
    const struct grt_file *file = &data->file;
    int n = snprintf(key, size, "gpurt scan 1 %s\n%llu %llu %llu %lld.%09lld\n%llu %llu %llu\n",
                     what, (unsigned long long)file->device, (unsigned long long)file->inode,
                     (unsigned long long)file->bytes, (long long)file->changed,
                     (long long)file->changed_ns, (unsigned long long)data->order.units,
                     (unsigned long long)data->order.validation_units,
                     (unsigned long long)data->order.split.keys[0]);
    for (uint32_t i = 0; i < data->input_count + data->target_count && n < (int)size; i++)
        n += snprintf(key + n, size - (size_t)n, "%s\n", data->arrays[i].name);
}
#define KEY_SIZE 9216

static void *recall(const struct grt_dataset *data, const char *what, size_t *size) {
    char key[KEY_SIZE];
    if (data->file.bytes < KEEP_FROM)
        return NULL;
    make_key(data, what, key, sizeof key);
    return grt_cache_load(key, size);
}

static void keep(const struct grt_dataset *data, const char *what, const void *answer,
                 size_t size) {
    char key[KEY_SIZE];
    if (data->file.bytes < KEEP_FROM)
        return;
    make_key(data, what, key, sizeof key);
    grt_cache_store(key, answer, size);
}

// ---- rows that are not finite ----

struct drops {
    uint64_t *rows;
    uint64_t count, capacity;
};

static bool see_drops(void *context, const struct grt_dataset *data, uint64_t first, uint32_t count,
                      const float *x, const void *y) {
    struct drops *drops = context;
    uint64_t xw = data->info.x_width, yw = data->info.y_width;
    const float *floats = data->info.classes == 0 ? y : NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (grt_not_finite(x + i * xw, xw) == xw &&
            (!floats || grt_not_finite(floats + i * yw, yw) == yw))
            continue;
        if (drops->count == drops->capacity) {
            drops->capacity = drops->capacity ? 2 * drops->capacity : 64;
            uint64_t *more = realloc(drops->rows, drops->capacity * sizeof *more);
            if (!more)
                return grt_fail(GRT_NO_MEMORY, "no host memory for the list of rows left out");
            drops->rows = more;
        }
        drops->rows[drops->count++] = first + i;
    }
    return true;
}

bool grt_scan_dropped(struct grt_dataset *data) {
    struct drops drops = {0};
    size_t size = 0;
    uint64_t *known = recall(data, "dropped", &size);
    // The first number is how many follow: no payload is empty.
    bool good = known && size == (known[0] + 1) * sizeof *known;
    if (good) {
        drops.count = known[0];
        memmove(known, known + 1, size - sizeof *known);
        drops.rows = known;
        known = NULL;
    }
    free(known);
    if (!good) {
        if (!scan(data, true, see_drops, &drops)) {
            free(drops.rows);
            return false;
        }
        uint64_t *payload = malloc((drops.count + 1) * sizeof *payload);
        if (payload) {
            payload[0] = drops.count;
            if (drops.count > 0)
                memcpy(payload + 1, drops.rows, drops.count * sizeof *payload);
            keep(data, "dropped", payload, (drops.count + 1) * sizeof *payload);
        }
        free(payload);
    }
    data->dropped = drops.rows;
    data->order.dropped = drops.rows;
    data->order.dropped_count = drops.count;
    return true;
}

// ---- classes ----

static bool see_classes(void *context, const struct grt_dataset *data, uint64_t first,
                        uint32_t count, const float *x, const void *y) {
    (void)data, (void)first, (void)x;
    uint32_t *most = context;
    const uint32_t *classes = y;
    for (uint32_t i = 0; i < count; i++)
        *most = classes[i] > *most ? classes[i] : *most;
    return true;
}

bool grt_scan_classes(struct grt_dataset *data, uint32_t *classes) {
    size_t size = 0;
    uint32_t *known = recall(data, "classes", &size);
    uint32_t most = 0;
    if (known && size == sizeof *known) {
        most = *known;
    } else {
        // Any number that could be a class passes; x is not needed, yet reading y alone is rare
        // enough to have no path of its own.
        data->info.classes = 1u << 24;
        bool good = scan(data, true, see_classes, &most);
        data->info.classes = 0;
        if (!good) {
            free(known);
            return false;
        }
        keep(data, "classes", &most, sizeof most);
    }
    free(known);
    *classes = most + 1;
    return true;
}

// ---- mean and deviation ----

struct moments {
    double *shift, *sum, *square;  // [features]; sums are about the first row's value
    uint64_t points;
    uint64_t kept;     // rows seen that are not dropped
    uint64_t dropped;  // rows seen that are
};

static bool see_moments(void *context, const struct grt_dataset *data, uint64_t first,
                        uint32_t count, const float *x, const void *y) {
    (void)y;
    struct moments *m = context;
    uint32_t features = data->info.features;
    uint64_t xw = data->info.x_width;
    const struct grt_order *order = &data->order;
    for (uint32_t i = 0; i < count; i++) {
        if (m->dropped < order->dropped_count && order->dropped[m->dropped] == first + i) {
            m->dropped++;
            continue;
        }
        if (!grt_order_trains(order, m->kept++))
            continue;
        const float *row = x + i * xw;
        uint64_t bad = grt_not_finite(row, xw);
        if (bad < xw)
            return grt_fail(GRT_BAD_DATA,
                            "%s: row %llu of the inputs is not finite (column %llu); on_nan: drop "
                            "leaves such rows out",
                            data->path, (unsigned long long)first + i, (unsigned long long)bad);
        for (uint64_t k = 0; m->points == 0 && k < features; k++)
            m->shift[k] = row[k];
        for (const float *end = row + xw; row < end; row += features) {
            for (uint32_t k = 0; k < features; k++) {
                double d = row[k] - m->shift[k];
                m->sum[k] += d;
                m->square[k] += d * d;
            }
            m->points++;
        }
    }
    return true;
}

bool grt_scan_moments(struct grt_dataset *data) {
    uint32_t features = data->info.features;
    size_t bytes = 2 * features * sizeof(float), size = 0;
    float *known = recall(data, "moments", &size);
    if (known && size == bytes) {
        memcpy(data->mean, known, bytes / 2);
        memcpy(data->std, known + features, bytes / 2);
        free(known);
        return true;
    }
    free(known);
    double *sums = calloc(3 * (size_t)features, sizeof *sums);
    float *answer = malloc(bytes);
    if (!sums || !answer) {
        free(sums);
        free(answer);
        return grt_fail(GRT_NO_MEMORY, "no host memory to normalise");
    }
    struct moments m = {sums, sums + features, sums + 2 * (size_t)features, 0, 0, 0};
    bool good = scan(data, false, see_moments, &m);
    for (uint32_t k = 0; good && k < features; k++) {
        double mean = m.sum[k] / (double)m.points;
        double variance = m.square[k] / (double)m.points - mean * mean;
        data->mean[k] = answer[k] = (float)(m.shift[k] + mean);
        // A feature that never changes stays what it is, less its mean.
        double deviation = sqrt(variance > 0 ? variance : 0);
        data->std[k] = answer[features + k] = deviation > 0 ? (float)deviation : 1.0f;
    }
    if (good)
        keep(data, "moments", answer, bytes);
    free(sums);
    free(answer);
    return good;
}
