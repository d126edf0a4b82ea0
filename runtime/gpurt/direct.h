// SPDX-License-Identifier: Apache-2.0
// Data files of other forms, taken as they are: .csv, .tsv, .npy and .npz are read once a process,
// into a temporary HDF5 file that goes with it.
#ifndef GRT_DIRECT_H
#define GRT_DIRECT_H

#include "import.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_direct_desc {
    const char *path;
    // Of tables columns; of .npz names of arrays; of .npy the one target may be another .npy. Count
    // 0: as of grt_table_desc, and x and y of arrays.
    const char *const *inputs;
    uint32_t input_count;
    const char *const *targets;
    uint32_t target_count;
    bool no_targets;
    const char *weights;  // of samples: a column, a name, or another .npy; NULL: none
    const char *fill;     // of tables; NULL or "": a missing value is refused
    const char *const *class_names;
    uint32_t class_count;
};
#define grt_direct_desc(...) GRT_DESC(struct grt_direct_desc, __VA_ARGS__)

struct grt_direct {
    const char *path;  // of HDF5: the same, where that is what it is
    bool columns;      // x, y and w of that file are what inputs, targets and weights have named
    // Of tables, a line each; class_names NULL where classes are no words. NULL of others.
    const char *input_names, *target_names, *class_names;
};
// All texts live as long as the process, or until 64 other files were taken. False with the
// sentence.
GRT_API bool grt_direct(const struct grt_direct_desc *desc, struct grt_direct *direct);
// The same for who wants to look at the file alone; NULL with the sentence.
GRT_API const char *grt_direct_path(const char *path);
// Whether a file may be of a form that is read; false with the remedy: Parquet is not.
GRT_API bool grt_direct_known(const char *path);

#ifdef __cplusplus
}
#endif
#endif
