// SPDX-License-Identifier: Apache-2.0
// Image data sets of other programs into one HDF5 file: x u8 [N][height][width][channels], y i32
// [N] with classes from 0 on. Other parts stand in groups beside them, "test/x" and "test/y",
// "unlabelled/x". What a source is is found by looking at it:
//
//     folder with data_batch_1.bin or train.bin       CIFAR-10, CIFAR-100, binary
//     folder with data_batch_1, or train and meta     the same as Python pickled them
//     folder with train_X.bin                         STL-10, binary
//     folder of folders of .png and .jpg              a class each, or train/ and test/ of such
//     file .npy or .npz                               arrays of NumPy
#ifndef GRT_IMPORT_H
#define GRT_IMPORT_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_import_desc {
    const char *source;
    const char *labels;  // of a source .npy: a second one with them; may be NULL
    const char *path;    // appears under its name when it is complete
    // Folders of images: all become so many pixels wide and high, the shorter side scaled to it
    // and the middle of the longer one taken; 0: as they are, and all alike.
    uint32_t size;
    bool gray;           // folders of images: one channel, else three
    uint32_t threads;    // folders of images: that decode; 0: one for each processor, at most 16
    bool (*stop)(void);  // asked now and then, by any thread; may be NULL
    void (*progress)(uint64_t done, uint64_t of);  // may be NULL
    void (*note)(const char *text);  // told of each image that is left out or changed; may be NULL
};
#define grt_import_desc(...) GRT_DESC(struct grt_import_desc, __VA_ARGS__)

struct grt_import_result {
    char kind[64];  // "CIFAR-10, binary"
    uint64_t rows;  // of all parts
    uint64_t left_out;
    uint32_t height, width, channels, classes;
};

// Attributes of the file: gpurt_make (the kind), classes, class_names. False with the sentence.
GRT_API bool grt_data_import(const struct grt_import_desc *desc, struct grt_import_result *result);

// ---- tables ----

// A text of rows, .csv or .tsv, into x f64 [N][inputs] and y: f64 [N][targets], or i32 [N] where
// the one target has whole numbers from 0 on, or words, which are numbered in the order of their
// bytes. Attributes: columns, the inputs' names; classes and class_names.
struct grt_table_desc {
    const char *source, *path;
    const char *const *inputs;  // columns by name, or by number from 1 on; count 0: all others
    uint32_t input_count;
    const char *const *targets;  // count 0: the last column
    uint32_t target_count;
    bool no_targets;      // inputs alone, for predictions
    const char *weights;  // the column of the samples' weights, into w f64 [N]; NULL: none
    const char *fill;     // what stands for a missing value, a number or "mean"; NULL: refused
    // Words of the target that are known already, in the order of their bytes; count 0: the file's.
    const char *const *class_names;
    uint32_t class_count;
};
#define grt_table_desc(...) GRT_DESC(struct grt_table_desc, __VA_ARGS__)

struct grt_table_result {
    uint64_t rows, filled;
    uint32_t inputs, targets, classes;  // classes 0: y are numbers
    // A line each: of the columns that were taken, and of classes that are words, or NULL.
    char *input_names, *target_names, *class_names;
};
GRT_API void grt_table_result_finish(struct grt_table_result *result);

// False with file, line, column and the reason.
GRT_API bool grt_table_import(const struct grt_table_desc *desc, struct grt_table_result *result);

#ifdef __cplusplus
}
#endif
#endif
