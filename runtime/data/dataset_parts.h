// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: a data set from within, and reading rows of it.
#ifndef GRT_DATASET_PARTS_H
#define GRT_DATASET_PARTS_H

#include "data/file/array.h"
#include "gpurt/loader.h"
#include "data/file/map.h"
#include "order.h"
#include "data/file/tiles.h"

// All rows, in host memory or on a device, as form_x and form_y say; shared by the loaders that
// asked for it.
struct grt_rows_kept {
    uint32_t users;
    unsigned char *x, *y;  // y NULL without targets
};
struct grt_rows_on_device {
    uint32_t users;
    struct grt_dev *dev;
    struct grt_buf *x, *y;  // as above
    struct grt_buf
        *norm;  // f32 [2][features]: mean and scale of x that is normalised on use, or NULL
};

#define DATASET_ARRAYS (2 * GRT_DATA_MAX_ARRAYS + 1)

struct grt_dataset {
    char *path;
    struct grt_file file;
    uint32_t input_count, target_count;
    struct grt_array arrays[DATASET_ARRAYS];  // inputs, then targets, weights the last of them
    struct grt_tiles *tiles[DATASET_ARRAYS];  // of those with filters
    uint32_t feature_at[DATASET_ARRAYS];      // first feature, or first word of y
    bool flat;  // inputs have different numbers of points: each lies in x as a whole
    enum grt_on_nan on_nan;
    bool share_targets;
    int weight_exponent;  // the largest weight of a sample is from 0.5 to 1 times 2 to this
    bool mixed;           // each target is what its kind says
    struct grt_dataset_target kinds[GRT_DATA_MAX_ARRAYS];
    struct grt_dataset_info info;
    struct grt_order order;
    uint64_t *dropped;
    double *mean, *std;  // [features], or NULL
    struct grt_norm norm;
    struct grt_file_map *map;  // NULL: rows are read with pread()
    // Rows as they are kept: one piece, [N][points][features] and [N][1][y_width]. u8 and f16 stay
    // what they are in the file; all else is f32, normalised, or the words of classes.
    struct grt_array form_x, form_y;
    struct grt_rows_kept ram;
    struct grt_rows_on_device device;
};

// Units whose rows are mixed when nothing else is asked for: up to 16, and 64 MiB of them.
uint32_t grt_dataset_window(const struct grt_dataset *data);

// Reads rows; one for each thread. The data set outlives it.
struct grt_reader;
struct grt_reader *grt_reader_create(struct grt_dataset *data);
void grt_reader_destroy(struct grt_reader **reader);

enum grt_read_mode {
    GRT_READ_CHECKED,  // what batches are: normalised, weights scaled; not finite is a fault
    GRT_READ_ANY,      // as it is in the file, as f32; classes among other targets as words
    GRT_READ_WIDE,     // as it is in the file, as double: class numbers too
    GRT_READ_KEPT,     // checked, in the form in which rows are kept
};
// Rows of the file, in this order: x [count][x_width] and y [count][y_width]. y may be NULL, and x
// with GRT_READ_ANY and GRT_READ_WIDE.
bool grt_reader_read(struct grt_reader *reader, enum grt_read_mode mode, const uint64_t *rows,
                     uint32_t count, void *x, void *y, struct grt_fault *fault);

// What is wrong with the numbers of rows: `width` values each, all finite, or all from 0 to 1,
// `pitch` from one row to the next; `name`: of their data set, NULL for all targets.
bool grt_check_finite(const uint64_t *rows, uint32_t count, const float *values, uint64_t width,
                      const char *of, struct grt_fault *fault);
bool grt_check_shares(const uint64_t *rows, uint32_t count, const float *values, uint64_t width,
                      uint64_t pitch, const char *name, struct grt_fault *fault);
// The last of the `width` words of each row: a weight, from 0 on.
bool grt_check_weights(const uint64_t *rows, uint32_t count, const void *words, uint64_t width,
                       struct grt_fault *fault);

// dataset_look.c: what only a look at every row tells, kept for the next run. First rows that are
// not to be trained on, classes, and, where no row is left out, moments; then moments, with the
// order settled.
bool grt_look_values(struct grt_dataset *data, const struct grt_dataset_desc *desc);
bool grt_look_moments(struct grt_dataset *data, const struct grt_dataset_desc *desc);

// dataset_distinct.c: says so where what is read of a column has lost more than half of the
// distinct values that a sample of its rows has in the file. False with the sentence when they
// cannot be read.
bool grt_look_distinct(struct grt_dataset *data);

// dataset_ram.c: all rows in memory, read by `threads`; false with the sentence.
bool grt_rows_keep(struct grt_dataset *data, uint32_t threads);
// Whether there is room for them; else `why` says how much there is.
bool grt_rows_fit(const struct grt_dataset *data, char why[GRT_CACHE_WHY]);
void grt_rows_drop(struct grt_dataset *data);

#endif
