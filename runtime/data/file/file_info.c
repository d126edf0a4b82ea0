// SPDX-License-Identifier: Apache-2.0
// Describing a file: every data set in it, and why one would be refused.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "filter.h"
#include "inspect.h"

#define MOST_ARRAYS 1000

struct listing {
    hid_t id;
    const struct grt_file *file;
    struct grt_file_info *info;
    bool no_memory;
};

static void describe_filters(hid_t creation, char *text, size_t size) {
    int n = 0, count = H5Pget_nfilters(creation);
    text[0] = '\0';
    for (int i = 0; i < count && n < (int)size; i++) {
        unsigned flags = 0, config = 0, values[1] = {0};
        size_t value_count = 1;
        H5Z_filter_t id =
            H5Pget_filter2(creation, (unsigned)i, &flags, &value_count, values, 0, NULL, &config);
        const char *gap = i > 0 ? " " : "";
        if (id == H5Z_FILTER_SHUFFLE) {
            n += snprintf(text + n, size - (size_t)n, "%sshuffle", gap);
        } else if (id == H5Z_FILTER_DEFLATE) {
            n += snprintf(text + n, size - (size_t)n, "%sdeflate %u", gap, values[0]);
        } else if (id == H5Z_FILTER_SZIP || id == GRT_FILTER_LZF_ID) {
            n += snprintf(text + n, size - (size_t)n, "%s%s", gap,
                          id == H5Z_FILTER_SZIP ? "szip" : "lzf");
        } else {
            n += snprintf(text + n, size - (size_t)n, "%sfilter %d", gap, (int)id);
        }
    }
}

// What can be said of an array that was found sound.
static void describe(const struct grt_array *array, struct grt_array_info *info) {
    snprintf(info->dtype, sizeof info->dtype, "%s%s", grt_element_text(array->element.type),
             array->element.swapped ? " swapped" : "");
    info->rank = array->rank;
    const uint64_t *from[2] = {array->shape, array->tile};
    uint64_t *to[2] = {info->shape, info->chunk};
    bool chunked = array->tiles[0].stored > 0;
    for (int i = 0; i < (chunked ? 2 : 1); i++) {
        to[i][0] = from[i][0];
        uint64_t width = i == 0 ? array->width : array->tile_width;
        if (array->rank > 2) {
            to[i][1] = array->rank == 4 ? from[i][1] / width : from[i][1];
        }
        if (array->rank == 4) {
            to[i][2] = width;
        }
        if (array->rank > 1) {
            to[i][array->rank - 1] = from[i][2];
        }
    }
    info->bytes =
        array->shape[0] * array->shape[1] * array->shape[2] * grt_element_size(array->element.type);
    info->chunks = chunked ? grt_array_tiles(array) : 0;
    info->stored = chunked ? 0 : info->bytes;
    for (uint64_t i = 0; i < info->chunks; i++) {
        info->stored += array->tiles[i].stored;
    }
}

static void list_array(struct listing *list, const char *name) {
    struct grt_array_info *arrays = list->info->arrays;
    struct grt_array_info *more =
        realloc(arrays, (list->info->count + 1) * sizeof *list->info->arrays);
    list->no_memory = !more;
    if (!more) {
        return;
    }
    list->info->arrays = more;
    struct grt_array_info *info = &more[list->info->count++];
    *info = (struct grt_array_info){0};
    snprintf(info->name, sizeof info->name, "%s", name);
    struct grt_array array;
    struct grt_fault fault = {0};
    if (grt_inspect_array(list->id, list->file, name, NULL, &array, &fault)) {
        describe(&array, info);
    } else {
        snprintf(info->problem, sizeof info->problem, "%.255s", fault.text);
    }
    if (info->problem[0] == '\0') {
        hid_t set = H5Dopen2(list->id, name, H5P_DEFAULT);
        hid_t creation = H5Dget_create_plist(set);
        describe_filters(creation, info->filters, sizeof info->filters);
        H5Pclose(creation);
        H5Dclose(set);
    }
    free(array.tiles);
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *link, void *context) {
    (void)group;
    struct listing *list = context;
    if (link->type != H5L_TYPE_HARD || grt_inspect_is_set(list->id, name)) {
        list_array(list, name);
    }
    return list->no_memory || list->info->count >= MOST_ARRAYS;
}

static bool read_attribute(hid_t id, const char *name, hid_t type, void *into) {
    if (H5Aexists(id, name) <= 0) {
        return false;
    }
    hid_t attribute = H5Aopen(id, name, H5P_DEFAULT);
    hid_t space = H5Aget_space(attribute);
    bool one = H5Sget_simple_extent_npoints(space) == 1 && H5Aread(attribute, type, into) >= 0;
    H5Sclose(space);
    H5Aclose(attribute);
    return one;
}

// As many as there is room for, all of one fixed length as grt_attribute_put_texts() has them.
static void read_class_names(hid_t id, struct grt_file_info *info) {
    if (H5Aexists(id, "class_names") <= 0) {
        return;
    }
    hid_t attribute = H5Aopen(id, "class_names", H5P_DEFAULT);
    hid_t space = H5Aget_space(attribute), type = H5Aget_type(attribute);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    size_t length = H5Tget_size(type);
    bool texts = H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
    char *all = texts && count > 0 && length > 0 && (size_t)count <= 65536 / length
                    ? calloc((size_t)count, length)
                    : NULL;
    if (all && H5Aread(attribute, type, all) >= 0) {
        info->class_name_count = (uint32_t)(count < GRT_FILE_NAMES ? count : GRT_FILE_NAMES);
        for (uint32_t i = 0; i < info->class_name_count; i++) {
            snprintf(info->class_names[i], GRT_FILE_NAME, "%.*s",
                     (int)(length < GRT_FILE_NAME ? length : GRT_FILE_NAME - 1), all + i * length);
        }
    }
    free(all);
    H5Tclose(type);
    H5Sclose(space);
    H5Aclose(attribute);
}

static void read_attributes(hid_t id, struct grt_file_info *info) {
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, sizeof info->made_by);
    // Fixed length only: what is longer, or lies elsewhere in the file, is not ours.
    if (H5Aexists(id, "gpurt_make") > 0) {
        hid_t attribute = H5Aopen(id, "gpurt_make", H5P_DEFAULT), type = H5Aget_type(attribute);
        if (H5Tis_variable_str(type) <= 0) {
            read_attribute(id, "gpurt_make", text, info->made_by);
        }
        H5Tclose(type);
        H5Aclose(attribute);
    }
    info->made_by[sizeof info->made_by - 1] = '\0';
    H5Tclose(text);
    if (!read_attribute(id, "noise_floor", H5T_NATIVE_DOUBLE, &info->noise_floor)) {
        info->noise_floor = -1;
    }
    if (!read_attribute(id, "classes", H5T_NATIVE_UINT32, &info->classes)) {
        info->classes = 0;
    }
    read_class_names(id, info);
}

static bool ask_info(struct grt_apart *apart, hid_t id, struct grt_fault *fault) {
    struct listing list = {.id = id, .file = apart->file, .info = apart->context};
    list.info->bytes = apart->file->bytes;
    read_attributes(id, list.info);
    if (H5Lvisit(id, H5_INDEX_NAME, H5_ITER_INC, visit, &list) < 0) {
        grt_fault(fault, GRT_BAD_DATA, "its list of data sets is damaged");
    }
    if (list.no_memory) {
        grt_fault(fault, GRT_NO_MEMORY, "no host memory for its list of data sets");
    }
    return fault->status == GRT_OK;
}

static bool send_info(const struct grt_apart *apart, const struct grt_child *parent) {
    const struct grt_file_info *info = apart->context;
    return grt_child_send(parent, info, sizeof *info) &&
           grt_child_send(parent, info->arrays, info->count * sizeof *info->arrays);
}

// Texts end where they should, whatever the child sent.
static void end_texts(struct grt_file_info *info) {
    info->made_by[sizeof info->made_by - 1] = '\0';
    info->class_name_count =
        info->class_name_count < GRT_FILE_NAMES ? info->class_name_count : GRT_FILE_NAMES;
    for (uint32_t i = 0; i < GRT_FILE_NAMES; i++) {
        info->class_names[i][GRT_FILE_NAME - 1] = '\0';
    }
    for (uint32_t i = 0; i < info->count; i++) {
        struct grt_array_info *array = &info->arrays[i];
        array->name[sizeof array->name - 1] = '\0';
        array->dtype[sizeof array->dtype - 1] = '\0';
        array->filters[sizeof array->filters - 1] = '\0';
        array->problem[sizeof array->problem - 1] = '\0';
    }
}

static bool hear_info(struct grt_apart *apart, const struct grt_child *child) {
    struct grt_file_info *info = apart->context;
    struct grt_file_info heard;
    if (!grt_apart_receive(child, &heard, sizeof heard) || heard.count > MOST_ARRAYS) {
        return false;
    }
    heard.arrays = calloc(heard.count + 1u, sizeof *heard.arrays);
    *info = heard;
    bool good =
        info->arrays && grt_apart_receive(child, info->arrays, info->count * sizeof *info->arrays);
    if (good) {
        end_texts(info);
    }
    return good;
}

struct grt_file_info *grt_file_info_create(const char *path) {
    struct grt_fault fault = {0};
    struct grt_file file = {.fd = -1};
    struct grt_file_info *info = path ? calloc(1, sizeof *info) : NULL;
    if (!info) {
        grt_fail(path ? GRT_NO_MEMORY : GRT_INVALID, "grt_file_info_create: %s",
                 path ? "no host memory" : "no path");
        return NULL;
    }
    grt_inspect_apart(&(struct grt_apart){.path = path,
                                          .file = &file,
                                          .ask = ask_info,
                                          .send = send_info,
                                          .hear = hear_info,
                                          .context = info},
                      &fault);
    grt_file_close(&file, NULL, 0);
    if (fault.status != GRT_OK) {
        grt_fail(fault.status, "%s: %s", path, fault.text);
        grt_file_info_destroy(&info);
    }
    return info;
}

void grt_file_info_destroy(struct grt_file_info **info) {
    if (!info || !*info) {
        return;
    }
    free((*info)->arrays);
    free(*info);
    *info = NULL;
}
