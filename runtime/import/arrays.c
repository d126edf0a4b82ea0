// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy into HDF5 as they are: each under its name, of its type and shape. The arrays of
// common names, x_train or labels, are x and y too.
#include "arrays.h"

#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/whole_file.h"
#include "data/file/hdf5_put.h"
#include "import.h"
#include "numpy.h"

#define MOST_ARRAYS 64

struct entry {
    char name[64];
    struct numpy_array array;
};

struct arrays {
    const struct grt_direct_desc *desc;
    const char *source;
    uint8_t *file;
    uint32_t count;
    struct entry entries[MOST_ARRAYS];
};

// The type in the file, which is the one in memory; below 0: there is none. Truth values are bytes
// of 0 and 1.
static hid_t type_of(const struct numpy_array *a) {
    const hid_t types[] = {H5T_STD_I8LE,   H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE,
                           H5T_STD_U8LE,   H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE,
                           H5T_IEEE_F32LE, H5T_IEEE_F64LE};
    int log = a->width == 1 ? 0 : a->width == 2 ? 1 : a->width == 4 ? 2 : a->width == 8 ? 3 : -1;
    bool real = a->kind == 'f';
    hid_t type = -1;
    if (log >= 0 && (!real || log >= 2) && (a->kind != 'b' || log == 0)) {
        type = H5Tcopy(real ? types[8 + log - 2] : types[(a->kind == 'i' ? 0 : 4) + log]);
    } else if (real && log == 1) {
        type = grt_half_type(H5T_IEEE_F32LE);
    }
    if (type >= 0 && a->swapped) {
        H5Tset_order(type, H5T_ORDER_BE);
    }
    return type;
}

static bool put(hid_t file, const struct entry *e, const char *source) {
    hsize_t shape[NUMPY_AXES];
    char name[sizeof e->name];
    hid_t type = e->array.left ? -1 : type_of(&e->array);
    if (type < 0) {
        return e->array.spare || numpy_wrong(source, e->name, "of a type that is not taken");
    }
    for (uint32_t i = 0; i < e->array.rank; i++) {
        shape[i] = e->array.shape[i];
    }
    memcpy(name, e->name, sizeof name);
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t space = H5Screate_simple((int)e->array.rank, shape, NULL);
    H5Pset_create_intermediate_group(links, 1);
    hid_t set = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    bool good = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, e->array.bytes) >= 0;
    good = set >= 0 && H5Dclose(set) >= 0 && good;
    H5Sclose(space);
    H5Pclose(links);
    H5Tclose(type);
    return good;
}

// x and y of the first part under their common names, where nothing else is called so.
static void name_again(hid_t file, const struct arrays *a) {
    for (uint32_t i = 0; i < a->count; i++) {
        const char *to = import_array_role(a->entries[i].name);
        if (to && !a->entries[i].array.left && H5Lexists(file, to, H5P_DEFAULT) <= 0) {
            hid_t links = H5Pcreate(H5P_LINK_CREATE);
            H5Pset_create_intermediate_group(links, 1);
            H5Lcreate_hard(file, a->entries[i].name, file, to, links, H5P_DEFAULT);
            H5Pclose(links);
        }
    }
}

static bool write_file(const struct arrays *a, const char *path) {
    struct grt_whole_file file;
    bool good = false;
    if (!grt_whole_file_open_named(&file, path)) {
        return false;
    }
    errno = 0;
    grt_hdf5_enter();
    H5E_BEGIN_TRY {
        hid_t h5 = H5Fcreate(file.temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        good = h5 >= 0;
        for (uint32_t i = 0; good && i < a->count; i++) {
            good = put(h5, &a->entries[i], a->source);
        }
        if (good) {
            name_again(h5, a);
        }
        good = good && grt_attribute_put_text(h5, "gpurt_make", "arrays of NumPy");
        good = h5 >= 0 && H5Fclose(h5) >= 0 && good;
    }
    H5E_END_TRY;
    grt_hdf5_leave();
    if (!good && grt_last_status() == GRT_OK) {
        grt_fail(GRT_IO, "%s: cannot be written%s%s", path, errno ? ": " : "",
                 errno ? strerror(errno) : "");
    }
    return grt_whole_file_close(&file, good) && good;
}

static bool add(struct arrays *a, const char *name, struct numpy_array **array) {
    size_t length = strlen(name);
    const char *dot = strrchr(name, '.');
    bool ends = dot && strcmp(dot, ".npy") == 0;
    if (a->count == MOST_ARRAYS || length >= sizeof a->entries[0].name || length == 0 ||
        name[0] == '/' || strstr(name, "..")) {
        return numpy_wrong(a->source, "", "more than 64 arrays, or a name that is none");
    }
    struct entry *e = &a->entries[a->count++];
    snprintf(e->name, sizeof e->name, "%.*s", (int)(ends ? length - 4 : length), name);
    *array = &e->array;
    return true;
}

static bool has(const char *const *names, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// Whether inputs or targets mean the array: by its name or the common one, x and y by default.
static bool is_wanted(const struct grt_direct_desc *d, const char *name) {
    const char *role = import_array_role(name);
    bool x = role && role[strlen(role) - 1] == 'x';
    role = role ? role : name;
    return (d->input_count == 0 && x) || (d->weights && strcmp(d->weights, name) == 0) ||
           has(d->inputs, d->input_count, name) || has(d->inputs, d->input_count, role) ||
           (!d->no_targets &&
            ((d->target_count == 0 && role != name && !x) ||
             has(d->targets, d->target_count, name) || has(d->targets, d->target_count, role)));
}

static bool find(void *context, const char *name, struct numpy_array **array) {
    struct arrays *a = context;
    bool good = add(a, name, array);
    if (good) {
        (*array)->spare = !is_wanted(a->desc, a->entries[a->count - 1].name);
    }
    return good;
}

static bool is_npz(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".npz") == 0;
}

bool arrays_import(const struct grt_direct_desc *desc, const char *labels, const char *path) {
    const char *source = desc->path;
    struct arrays *a = calloc(1, sizeof *a);
    struct numpy_array *x = NULL, *y = NULL, *w = NULL;
    if (!a) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for arrays");
    }
    a->desc = desc;
    a->source = source;
    bool good;
    if (is_npz(source)) {
        good = numpy_each(source, &a->file, find, a) &&
               (a->count > 0 || numpy_wrong(source, "", "it has no arrays"));
    } else {
        good = add(a, "x", &x) && numpy_read(source, x) &&
               (!labels || (add(a, "y", &y) && numpy_read(labels, y))) &&
               (!desc->weights || (add(a, "w", &w) && numpy_read(desc->weights, w)));
    }
    good = good && write_file(a, path);
    for (uint32_t i = 0; i < a->count; i++) {
        free(a->entries[i].array.own);
    }
    free(a->file);
    free(a);
    return good;
}
