// SPDX-License-Identifier: Apache-2.0
// What every writer of data files puts into HDF5. Each returns whether HDF5 took it.
#ifndef GRT_HDF5_PUT_H
#define GRT_HDF5_PUT_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#define GRT_ATTRIBUTE_MOST 60000  // bytes: HDF5 keeps attributes below 64 KiB

bool grt_attribute_put(hid_t file, const char *name, hid_t type, const void *value);
bool grt_attribute_put_text(hid_t file, const char *name, const char *text);
// Texts of one length, the shorter ones padded; `fits` (may be NULL) is false, and nothing written,
// where they are too long for an attribute.
bool grt_attribute_put_texts(hid_t file, const char *name, const char *const *texts, uint32_t count,
                             bool *fits);

// f16 as NumPy and h5py write it, which this version of the library has no name for: of the byte
// order of an f32; to be closed.
hid_t grt_half_type(hid_t single);

// Rows of a data set of 1 to 4 axes, the first of them being rows; shape[0] is not read.
bool grt_rows_put(hid_t set, hid_t type, int rank, const hsize_t *shape, uint64_t first,
                  uint64_t count, const void *data);

#endif
