// SPDX-License-Identifier: Apache-2.0
// Data sets in HDF5 files: what the rows of a file look like, which of them there are to draw, and
// refusal of everything that is not plain numbers in the file itself.
//
//     file            inputs "pos" [N][3], "vel" [N][3]      targets "y" [N][2]
//     a sample        x: pos | vel, 6 floats                 y: 2 floats, or one class, and
//                                                            its weight where they have one
//
// Inputs are laid side by side in the order they are named, and so are targets; [N], [N][D],
// [N][P][D] (point sets) and [N][H][W][C] (images) are known shapes. Point sets of one P lie side
// by side point by point, and so do pixels of images of one size; others one behind the other, each
// as a whole. Elements are f16, f32, f64, i8, i16, i32, i64, u8, u16, u32 or bool of either byte
// order, contiguous or in chunks, plain or with the filters shuffle and deflate, lzf or szip; they
// become f32, or class numbers of 32 bits. Where x is normalised, whole numbers of 32 and 64 bits
// and doubles are so before they become f32: what is alike to f32 next to a large mean stays apart.
//
// The HDF5 library opens the file, is asked where the bytes lie, and is closed again: from then on
// rows are read with pread() by any number of threads, since the library serialises its calls.
// External storage, virtual data sets, external links, unknown filters, and sizes that the file
// cannot hold are refused before anything is allocated. So are values that are not allowed: opening
// looks at every row once, with a thread for each processor, and remembers the answer for as long
// as the file is unchanged. Two cores look through 2 GB a second of f32 that are in memory already;
// a disk sets its own pace. Whole numbers are always finite and cost nothing.
#ifndef GRT_DATASET_H
#define GRT_DATASET_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_DATA_MAX_ARRAYS 16  // inputs, and targets, of one data set
#define GRT_DATA_MAX_RANK 4

// What a row that is not finite (NaN, an infinity, or a double beyond f32) means.
#define GRT_ON_NANS(X)                                                                             \
    X(ERROR, "error") /* the data set is refused, and the row named */                             \
    X(DROP, "drop")   /* it is left out */

enum grt_on_nan {
#define X(name, text) GRT_NAN_##name,
    GRT_ON_NANS(X)
#undef X
        GRT_ON_NAN_COUNT,
};

#define GRT_PARTS(X)                                                                               \
    X(TRAIN, "train")                                                                              \
    X(VALIDATION, "validation")                                                                    \
    X(ALL, "all")

enum grt_part {
#define X(name, text) GRT_PART_##name,
    GRT_PARTS(X)
#undef X
        GRT_PART_COUNT,
};

// Told when a look at all rows begins, then several times a second, how far it has come, 0 to 1;
// false ends it.
typedef bool grt_dataset_watch_fn(void *context, double share);

// What one of several targets is: classes, one integer below this a row; else numbers, 0: of any
// size, or `shares` from 0 to 1.
struct grt_dataset_target {
    uint32_t classes;
    bool shares;
};

struct grt_dataset_desc {
    const char *path;
    const char *shown;          // what messages call it; NULL: its path
    const char *const *inputs;  // names, "/group/name" or "name"; count 0: "x"
    uint32_t input_count;
    const char *const *targets;  // count 0: "y"
    uint32_t target_count;
    bool no_targets;      // for predictions: x alone
    const char *weights;  // of samples: a number from 0 on for each row; NULL: none
    bool class_targets;   // the one target is a class number, of an integer type
    uint32_t classes;     // class_targets: 0: the largest number in the file, and one more
    bool share_targets;   // targets are 0 to 1, as binary cross-entropy wants them
    const struct grt_dataset_target *kinds;  // of each target, in place of these; NULL: none
    enum grt_on_nan on_nan;                  // GRT_NAN_ERROR
    bool normalise;           // x becomes (x - mean) / std, per feature, over the rows trained on
    double validation_split;  // share of the rows that are kept for validation, 0 to below 1
    uint64_t seed;            // decides which rows those are
    // of data that are not compressed: rows that are mixed at a time; 0: all
    uint64_t shuffle_window;
    const double *mean, *std;  // normalise with these [features], of a checkpoint; NULL: computed
    uint32_t
        features;      // how many of each these are: other data are refused; 0: as many as the data
    bool check_late;   // values are looked at when they are read, and refused then: for who reads
                       // each row once, or only some
    uint32_t threads;  // that look at rows; 0: one for each processor, at most 16
    grt_dataset_watch_fn *watch;  // may be NULL
    void *context;
};
#define grt_dataset_desc(...) GRT_DESC(struct grt_dataset_desc, __VA_ARGS__)

struct grt_dataset;

// NULL with the sentence: GRT_NO_INPUT when the file cannot be opened, GRT_BAD_DATA when it is not
// what the desc says or is not to be trusted, GRT_IO when reading failed.
GRT_API struct grt_dataset *grt_dataset_open(const struct grt_dataset_desc *desc);
// After every loader of it.
GRT_API void grt_dataset_close(struct grt_dataset **data);

// An input of a data set, as a part of x.
struct grt_dataset_input {
    const char *name;   // as in the desc; lives as long as the data set
    uint32_t first;     // feature of x that it begins with
    uint32_t points;    // P of [N][P][D], pixels of [N][H][W][C], or 0
    uint32_t height;    // H of [N][H][W][C], or 0
    uint32_t features;  // of a point, or of the row when there are no points
};

struct grt_dataset_info {
    uint64_t file_rows;     // N
    uint64_t rows;          // without those dropped
    uint64_t part_rows[3];  // by enum grt_part
    uint32_t points;        // P of [N][P][D], H W of images, the same for all inputs; or 0
    uint32_t height;        // H of [N][H][W][C], or 0
    uint32_t features;      // of a point, or of the row when there are no points
    uint32_t x_width;       // floats of a row's x: features, or points times features
    uint32_t y_width;       // words of a row's y; 0 without targets
    uint32_t classes;       // y is one u32 below this; 0: y is f32
    uint32_t least_class;   // the smallest in the file; 0 also where nobody looked
    uint32_t target_widths[GRT_DATA_MAX_ARRAYS];  // words of each target
    uint32_t weighted;     // 1: the last word of y is the sample's weight, f32, scaled by a power
                           // of two that brings the file's largest below 1; else 0
    uint64_t row_bytes;    // of one row in the file, before filters
    uint64_t kept_bytes;   // of all rows where they are kept, in memory or on the device
    bool filtered;         // some array is compressed: rows come in chunks
    uint64_t window_rows;  // that are mixed at a time; 0: all
    const double *mean,
        *std;  // [features] with normalise, else NULL; store them beside the weights
    uint32_t input_count;
    struct grt_dataset_input inputs[GRT_DATA_MAX_ARRAYS];
};
GRT_API struct grt_dataset_info grt_dataset_info(const struct grt_dataset *data);
// A sample in words: "12x12 pixels of 3 features", "24 points of 3 features", "7 features".
#define GRT_SAMPLE_TEXT 80
GRT_API void grt_sample_text(int64_t height, int64_t points, int64_t features,
                             char text[GRT_SAMPLE_TEXT]);
// Names, types, shapes and the numbers of a sample of rows in one number: whether two runs have the
// same data. False with the sentence when rows cannot be read.
GRT_API bool grt_dataset_digest(struct grt_dataset *data, uint64_t *digest);

// ---- looking at a file ----

// One data set of a file, as `gpurt data info` shows it.
struct grt_array_info {
    char name[256];
    char dtype[16];                     // "f32", "f32 swapped", or "" when it is none of ours
    uint32_t rank;                      // of the file; shape has the first GRT_DATA_MAX_RANK
    uint64_t shape[GRT_DATA_MAX_RANK];  // 0 past the rank
    uint64_t chunk[GRT_DATA_MAX_RANK];  // all 0: contiguous
    uint64_t chunks;                    // in the file
    uint64_t bytes;                     // of all elements
    uint64_t stored;                    // in the file, after filters
    char filters[64];                   // "shuffle deflate 4", or ""
    char problem[256];                  // why it is refused, or ""
};

#define GRT_FILE_NAMES 128
#define GRT_FILE_NAME 32
struct grt_file_info {
    uint32_t count;
    struct grt_array_info *arrays;
    uint64_t bytes;  // of the file
    char made_by[64];
    double noise_floor;  // of files of grt_data_make(); negative: none
    uint32_t classes;    // the same; 0: none
    // The names of classes, the first of them, as much of each as there is room for.
    uint32_t class_name_count;
    char class_names[GRT_FILE_NAMES][GRT_FILE_NAME];
};
// NULL with the sentence. Data sets that would be refused are listed, with the reason.
GRT_API struct grt_file_info *grt_file_info_create(const char *path);
GRT_API void grt_file_info_destroy(struct grt_file_info **info);

#ifdef __cplusplus
}
#endif
#endif
