// SPDX-License-Identifier: Apache-2.0
// Inside runtime/import: arrays of NumPy of any meaning into HDF5.
#ifndef GRT_IMPORT_ARRAYS_H
#define GRT_IMPORT_ARRAYS_H

#include <stdbool.h>

// A .npz, or a .npy as x with `labels` (may be NULL), another one, as y. False with the sentence.
bool arrays_import(const char *source, const char *labels, const char *path);

#endif
