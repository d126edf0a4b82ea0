// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: what the HDF5 library is asked. Callers silence it with H5E_BEGIN_TRY.
#ifndef GRT_INSPECT_H
#define GRT_INSPECT_H

#include <hdf5.h>

#include "array.h"

// The library's id, and our own descriptor in file->fd; negative with the fault and nothing open.
hid_t grt_inspect_open(const char *path, struct grt_file *file, struct grt_fault *fault);
// id may be negative.
void grt_inspect_close(hid_t id, struct grt_file *file);
// Checks one data set and lists its tiles. The name need not begin with a slash.
bool grt_inspect_array(hid_t id, const struct grt_file *file, const char *name,
                       struct grt_array *array, struct grt_fault *fault);

#endif
