// SPDX-License-Identifier: Apache-2.0
#include "hdf5_put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool put(hid_t file, const char *name, hid_t type, hid_t space, const void *value) {
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    H5Aclose(attribute);
    H5Sclose(space);
    return good;
}

bool grt_attribute_put(hid_t file, const char *name, hid_t type, const void *value) {
    return put(file, name, type, H5Screate(H5S_SCALAR), value);
}

bool grt_attribute_put_text(hid_t file, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    bool good = grt_attribute_put(file, name, type, text);
    H5Tclose(type);
    return good;
}

bool grt_attribute_put_texts(hid_t file, const char *name, const char *const *texts, uint32_t count,
                             bool *fits) {
    size_t longest = 1;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(texts[i]) + 1;
        longest = length > longest ? length : longest;
    }
    bool enough = longest * count <= GRT_ATTRIBUTE_MOST;
    if (fits) {
        *fits = enough;
    }
    if (!enough) {
        return true;
    }
    char *all = calloc(count + 1u, longest);
    for (uint32_t i = 0; all && i < count; i++) {
        snprintf(all + i * longest, longest, "%s", texts[i]);
    }
    hsize_t shape = count;
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, longest);
    bool good = all && put(file, name, type, H5Screate_simple(1, &shape, NULL), all);
    H5Tclose(type);
    free(all);
    return good;
}

bool grt_rows_put(hid_t set, hid_t type, int rank, const hsize_t *shape, uint64_t first,
                  uint64_t count, const void *data) {
    hsize_t start[4] = {first}, extent[4] = {count};
    for (int i = 1; i < rank; i++) {
        extent[i] = shape[i];
    }
    hid_t whole = H5Dget_space(set), piece = H5Screate_simple(rank, extent, NULL);
    bool good = H5Sselect_hyperslab(whole, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0 &&
                H5Dwrite(set, type, piece, whole, H5P_DEFAULT, data) >= 0;
    H5Sclose(piece);
    H5Sclose(whole);
    return good;
}

hid_t grt_half_type(hid_t single) {
    hid_t half = H5Tcopy(single);
    if (half >= 0 && (H5Tset_fields(half, 15, 10, 5, 0, 10) < 0 || H5Tset_size(half, 2) < 0 ||
                      H5Tset_ebias(half, 15) < 0)) {
        H5Tclose(half);
        return -1;
    }
    return half;
}
