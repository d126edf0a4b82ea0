// SPDX-License-Identifier: Apache-2.0
// HDF5 files for tests: a folder for each case, data sets written through the library, and the
// library's own reading of them as the oracle.
#ifndef TEST_DATA_KIT_H
#define TEST_DATA_KIT_H

#include <hdf5.h>

#include "harness/harness.h"
#include "gpurt/dataset.h"
#include "gpurt/loader.h"

// Set-up and end of a case: its folder, and the library's messages off.
int data_kit_begin(void **state);
int data_kit_end(void **state);
#define DATA_CASE(function)                                                                        \
    { #function, function, data_kit_begin, data_kit_end, NULL }

// A path in the case's folder; the newest 8 stay valid.
const char *data_kit_path(const char *name);

struct data_kit_set {
    const char *name;
    hid_t type;        // in the file; 0: f32
    hsize_t shape[4];  // ends at the first 0
    hsize_t chunk[4];  // all 0: contiguous
    int deflate;       // level; 0: none
    bool shuffle;
    hid_t mem_type;    // of data; 0: double
    const void *data;  // NULL: data_kit_value()
};
// Creates the file, or adds to it.
void data_kit_write(const char *path, bool create, const struct data_kit_set *set);
// What element i holds unless told otherwise: whole numbers that every type but u8 has exactly, and
// u8 up to 255.
double data_kit_value(uint64_t i);
// IEEE half precision, little-endian; closed by the caller.
hid_t data_kit_half(bool big_endian);
// All of a data set as the library reads it, as floats; freed by the caller.
float *data_kit_read(const char *path, const char *name);

// The file with x as its inputs and no targets.
struct grt_dataset *data_kit_open_x(const char *path);
// A loader of all rows in order.
struct grt_loader *data_kit_load(struct grt_dataset *data, uint32_t batch);
// All rows in order, through a loader with batches of 7 rows: x into the array returned, y into *y
// (may be NULL).
float *data_kit_rows(struct grt_dataset *data, void **y);

#endif
