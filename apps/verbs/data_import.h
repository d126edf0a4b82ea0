// SPDX-License-Identifier: Apache-2.0
// `gpurt data import`.
#ifndef APPS_DATA_IMPORT_H
#define APPS_DATA_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

struct data_import {
    const char *source, *labels, *output;
    const char *inputs, *targets, *fill;  // of tables
    uint32_t size, gray, workers;
};

// Whether what is made may have this name: HDF5's, or one without an ending. False with the
// sentence.
bool data_named(const char *path);

int data_import(const struct data_import *import);

// Where a data file can be read as HDF5, with the columns and the fill of a table. NULL with the
// sentence said; *code is the exit code then.
const char *data_direct(const struct data_import *import, int *code);

#endif
