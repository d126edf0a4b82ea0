// SPDX-License-Identifier: Apache-2.0
// What a name leads to that is no data set of ours, in words, with what to do about it.
#include <stdio.h>
#include <string.h>

#include "inspect.h"

// ---- groups ----

#define NAMED 3  // data sets of a group that are named
#define MOST_SETS 1000

bool grt_inspect_is_set(hid_t id, const char *name) {
    hid_t object = H5Oopen(id, name, H5P_DEFAULT);
    bool is = object < 0 || H5Iget_type(object) == H5I_DATASET;
    H5Oclose(object);
    return is;
}

struct group {
    const char *name;
    int length;  // of it, without slashes at its end
    char text[320], first[300];
    uint32_t count;
};

static herr_t visit(hid_t id, const char *name, const H5L_info_t *link, void *context) {
    struct group *group = context;
    if (link->type != H5L_TYPE_HARD || !grt_inspect_is_set(id, name)) {
        return 0;
    }
    if (group->count == 0) {
        snprintf(group->first, sizeof group->first, "%.*s/%s", group->length, group->name, name);
    }
    size_t used = strlen(group->text);
    if (group->count < NAMED) {
        snprintf(group->text + used, sizeof group->text - used, "%s%.*s/%s", used ? ", " : "",
                 group->length, group->name, name);
    }
    return ++group->count >= MOST_SETS;
}

// Whether it is one, with the fault.
static bool refuse_group(hid_t id, const char *name, const char *key, struct grt_fault *fault) {
    hid_t object = H5Gopen2(id, name, H5P_DEFAULT);
    struct group group = {.name = name, .length = (int)strlen(name)};
    if (object < 0) {
        return false;
    }
    while (group.length > 0 && name[group.length - 1] == '/') {
        group.length--;
    }
    H5Lvisit(object, H5_INDEX_NAME, H5_ITER_INC, visit, &group);
    H5Gclose(object);
    if (group.count == 0) {
        grt_fault(fault, GRT_BAD_DATA,
                  "'%.*s' is a group without data sets; `gpurt data info` lists those of the file, "
                  "inputs and targets name the ones to use",
                  group.length, name);
        return true;
    }
    size_t used = strlen(group.text);
    if (group.count > NAMED) {
        snprintf(group.text + used, sizeof group.text - used, " and %s%u more",
                 group.count < MOST_SETS ? "" : "at least ", group.count - NAMED);
    }
    grt_fault(fault, GRT_BAD_DATA, "'%.*s' is a group; it holds %s: %s%s%s", group.length, name,
              group.text, key ? key : "name ", key ? "=" : "", group.first);
    return true;
}

void grt_inspect_refuse(hid_t id, const char *name, const char *key, struct grt_fault *fault) {
    unsigned major = 0, minor = 0, release = 0;
    if (refuse_group(id, name, key, fault)) {
        return;
    }
    H5get_libversion(&major, &minor, &release);
    grt_fault(fault, GRT_BAD_DATA,
              "'%s' is not a data set that HDF5 %u.%u.%u can open; where a newer library "
              "wrote it, let it write an older format (h5py: libver=('earliest', 'v110'))",
              name, major, minor, release);
}
