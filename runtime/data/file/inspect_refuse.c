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

// ---- types of elements ----

// h5py's complex numbers: two floats called r and i.
static bool is_complex(hid_t type) {
    static const char *const names[] = {"r", "i"};
    bool is = H5Tget_nmembers(type) == 2;
    for (unsigned i = 0; is && i < 2; i++) {
        char *name = H5Tget_member_name(type, i);
        is = name && strcmp(name, names[i]) == 0 && H5Tget_member_class(type, i) == H5T_FLOAT;
        H5free_memory(name);
    }
    return is;
}

static const struct type_words {
    H5T_class_t class;
    const char *has, *remedy;
} known[] = {
    {H5T_STRING, "strings", "store numbers instead, classes as 0, 1, 2 and so on"},
    {H5T_COMPOUND, "records of several fields", "store each field as a data set"},
    {H5T_ENUM, "names of an enumeration", "store their numbers as i32"},
    {H5T_INTEGER, "whole numbers of an unusual form", "store them as i32 or i64"},
    {H5T_FLOAT, "floating-point numbers of an unusual form", "store them as f32 or f64"},
    {H5T_VLEN, "lists of any length", "fill them up to one length"},
    {H5T_ARRAY, "arrays", "store them as further axes"},
    {H5T_REFERENCE, "references", "name what they lead to"},
};

static struct type_words words_of(hid_t type) {
    H5T_class_t class = H5Tget_class(type);
    if (class == H5T_COMPOUND && is_complex(type)) {
        return (struct type_words){class, "complex numbers",
                                   "store real and imaginary parts as two columns"};
    }
    if (class == H5T_INTEGER &&
        (H5Tequal(type, H5T_STD_U64LE) > 0 || H5Tequal(type, H5T_STD_U64BE) > 0)) {
        return (struct type_words){class, "u64", "store them as i64"};
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].class == class) {
            return known[i];
        }
    }
    return (struct type_words){class, "elements that are no numbers", "store numbers"};
}

void grt_inspect_refuse_type(hid_t type, const char *name, struct grt_fault *fault) {
    struct type_words words = words_of(type);
    grt_fault(fault, GRT_BAD_DATA,
              "'%s' has %s, and f16, f32, f64, i8, i16, i32, i64, u8, u16, u32 and bool can be "
              "read: %s",
              name, words.has, words.remedy);
}
