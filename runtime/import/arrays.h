// SPDX-License-Identifier: Apache-2.0
// Inside runtime/import: arrays of NumPy of any meaning into HDF5.
#ifndef GRT_IMPORT_ARRAYS_H
#define GRT_IMPORT_ARRAYS_H

#include "gpurt/direct.h"

// A .npz, or a .npy as x with `labels` (may be NULL), another one, as y. Of a .npz, arrays that
// cannot be taken and that nobody has named are left out. False with the sentence.
bool arrays_import(const struct grt_direct_desc *desc, const char *labels, const char *path);

#endif
