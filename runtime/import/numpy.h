// SPDX-License-Identifier: Apache-2.0
// Inside runtime/import: arrays of NumPy in memory (numpy_read.c).
#ifndef GRT_IMPORT_NUMPY_H
#define GRT_IMPORT_NUMPY_H

#include <stdbool.h>
#include <stdint.h>

#define NUMPY_AXES 4

struct numpy_array {
    const uint8_t *bytes;
    uint8_t *own;  // the same where it was inflated, or read by itself; to be freed
    uint64_t size;
    char kind;       // b, i, u or f, as NumPy has them
    bool swapped;    // of big bytes first
    uint32_t width;  // bytes of an element
    uint32_t rank;
    uint64_t shape[NUMPY_AXES];
    bool spare;  // given: where it is no array of numbers it is left out
    bool left;   // it was
};

// A whole .npy. Each of these is false with the sentence.
bool numpy_read(const char *path, struct numpy_array *array);
// Every array of a .npz: `fn` is told its name, with ".npy", and says where it is read to, or NULL
// in *array. *bytes is the file, which arrays may point into; to be freed in any case.
typedef bool numpy_fn(void *context, const char *name, struct numpy_array **array);
bool numpy_each(const char *path, uint8_t **bytes, numpy_fn *fn, void *context);

uint64_t numpy_number(const uint8_t *at, uint32_t bytes);
bool numpy_wrong(const char *path, const char *name, const char *what);

#endif
