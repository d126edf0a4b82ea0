// SPDX-License-Identifier: Apache-2.0
// A table as HDF5, and its names as texts.
#include "table.h"

#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/whole_file.h"
#include "data/file/hdf5_put.h"

static bool put(hid_t file, const char *name, hid_t type, uint64_t rows, uint32_t columns,
                const void *data, hid_t memory) {
    const hsize_t shape[2] = {rows, columns};
    int rank = columns > 0 ? 2 : 1;
    hid_t space = H5Screate_simple(rank, shape, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool good = set >= 0 && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    H5Sclose(space);
    return set >= 0 && H5Dclose(set) >= 0 && good;
}

static bool put_all(hid_t file, const struct table *t) {
    bool good =
        put(file, "x", H5T_IEEE_F64LE, t->rows, t->input_count, t->x, H5T_NATIVE_DOUBLE) &&
        (t->target_count == 0 ||
         (t->class_count > 0 ? put(file, "y", H5T_STD_I32LE, t->rows, 0, t->y, H5T_NATIVE_DOUBLE)
                             : put(file, "y", H5T_IEEE_F64LE, t->rows, t->target_count, t->y,
                                   H5T_NATIVE_DOUBLE))) &&
        (!t->desc->weights ||
         put(file, "w", H5T_IEEE_F64LE, t->rows, 0, t->w, H5T_NATIVE_DOUBLE)) &&
        grt_attribute_put_text(file, "gpurt_make", "a table");
    const char **names = calloc(t->input_count + 1u, sizeof *names);
    for (uint32_t i = 0; names && i < t->input_count; i++) {
        names[i] = t->names[t->inputs[i]];
    }
    good = good && names && grt_attribute_put_texts(file, "columns", names, t->input_count, NULL) &&
           (t->class_count == 0 ||
            grt_attribute_put(file, "classes", H5T_NATIVE_UINT32, &t->class_count)) &&
           (!t->classes ||
            grt_attribute_put_texts(file, "class_names", (const char *const *)t->classes,
                                    t->class_count, NULL));
    free(names);
    return good;
}

bool table_write(const struct table *t) {
    struct grt_whole_file file;
    bool good = false;
    if (!grt_whole_file_open_named(&file, t->desc->path)) {
        return false;
    }
    errno = 0;
    grt_hdf5_enter();
    H5E_BEGIN_TRY {
        hid_t h5 = H5Fcreate(file.temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        good = h5 >= 0 && put_all(h5, t);
        good = h5 >= 0 && H5Fclose(h5) >= 0 && good;
    }
    H5E_END_TRY;
    grt_hdf5_leave();
    if (!good) {
        grt_fail(GRT_IO, "%s: cannot be written%s%s", t->desc->path, errno ? ": " : "",
                 errno ? strerror(errno) : "");
    }
    return grt_whole_file_close(&file, good) && good;
}

char *table_lines(char *const *names, const uint32_t *which, uint32_t count) {
    size_t bytes = 1, used = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += strlen(names[which ? which[i] : i]) + 1;
    }
    char *text = malloc(bytes);
    for (uint32_t i = 0; text && i < count; i++) {
        const char *name = names[which ? which[i] : i];
        for (; *name; name++) {
            text[used++] = *name;
        }
        text[used++] = '\n';
    }
    if (text) {
        text[used] = '\0';
    }
    return text;
}
