// SPDX-License-Identifier: Apache-2.0
// Inside runtime/data: what the HDF5 library is asked. Callers silence it with H5E_BEGIN_TRY.
//
// A damaged file can make the library crash (1.10 does: a byte of a good file is enough), so it is
// asked in a child process only. What it found comes back in plain structs; its end costs one
// sentence.
#ifndef GRT_INSPECT_H
#define GRT_INSPECT_H

#include <hdf5.h>

#include "base/child.h"
#include "array.h"

// Our own descriptor in file->fd, and which file it is; the library is not asked. False with the
// fault.
bool grt_inspect_file(const char *path, struct grt_file *file, struct grt_fault *fault);
// The library's id of that file; negative with the fault and nothing open.
hid_t grt_inspect_open(const char *path, const struct grt_file *file, struct grt_fault *fault);
// Checks one data set and lists its tiles. The name need not begin with a slash; `key` is the
// setting that gives it, or NULL.
bool grt_inspect_array(hid_t id, const struct grt_file *file, const char *name, const char *key,
                       struct grt_array *array, struct grt_fault *fault);

// ---- inspect_refuse.c ----

// Whether a hard link leads to a data set, or to what cannot be opened, as one of a newer format;
// opening a group or a type does no harm.
bool grt_inspect_is_set(hid_t id, const char *name);
// The fault of a name that is there and cannot be opened as a data set.
void grt_inspect_refuse(hid_t id, const char *name, const char *key, struct grt_fault *fault);
// The fault of a data set whose elements have a type that is none of ours.
void grt_inspect_refuse_type(hid_t type, const char *name, struct grt_fault *fault);

// ---- inspect_apart.c ----

// A question in three parts: `ask` asks the library, in the child; `send` tells the parent what was
// found, unless there was a fault, which is told without it; `hear` receives the same and says
// whether it makes sense. False with the fault.
struct grt_apart {
    const char *path;
    struct grt_file *file;  // opened first, here
    bool (*ask)(struct grt_apart *apart, hid_t id, struct grt_fault *fault);
    bool (*send)(const struct grt_apart *apart, const struct grt_child *parent);
    bool (*hear)(struct grt_apart *apart, const struct grt_child *child);
    void *context;
};
bool grt_inspect_apart(struct grt_apart *apart, struct grt_fault *fault);
// For `hear`: receives, with the time that all of it may take.
bool grt_apart_receive(const struct grt_child *child, void *data, size_t size);

#endif
