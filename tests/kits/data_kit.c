// SPDX-License-Identifier: Apache-2.0
// HDF5 files for tests.
#include "data_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[256];

static void remove_folder(const char *path) {
    DIR *dir = opendir(path);
    for (struct dirent *row = dir ? readdir(dir) : NULL; row; row = readdir(dir)) {
        if (strcmp(row->d_name, ".") != 0 && strcmp(row->d_name, "..") != 0) {
            char inside[1024];
            snprintf(inside, sizeof inside, "%.600s/%.255s", path, row->d_name);
            remove_folder(inside);
        }
    }
    if (dir) {
        closedir(dir);
    }
    remove(path);
}

int data_kit_begin(void **state) {
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.200s/gpurt-data-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        return -1;
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return test_case_begin(state);
}

int data_kit_end(void **state) {
    remove_folder(folder);
    return test_case_end(state);
}

const char *data_kit_path(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

double data_kit_value(uint64_t i) {
    return (double)(i * 37 % 251);
}

hid_t data_kit_half(bool big_endian) {
    hid_t half = H5Tcopy(big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    return half;
}

void data_kit_write(const char *path, bool create, const struct data_kit_set *set) {
    hid_t file = create ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                        : H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    int rank = 0;
    uint64_t count = 1;
    while (rank < 4 && set->shape[rank] > 0) {
        count *= set->shape[rank++];
    }
    hid_t space = H5Screate_simple(rank, set->shape, NULL);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (set->chunk[0] > 0) {
        H5Pset_chunk(creation, rank, set->chunk);
    }
    if (set->shuffle) {
        H5Pset_shuffle(creation);
    }
    if (set->deflate > 0) {
        H5Pset_deflate(creation, (unsigned)set->deflate);
    }
    hid_t type = set->type ? set->type : H5T_IEEE_F32LE;
    hid_t id = H5Dcreate2(file, set->name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(id >= 0);
    double *values = NULL;
    if (!set->data) {
        values = test_alloc(count * sizeof *values);
        for (uint64_t i = 0; i < count; i++) {
            values[i] = data_kit_value(i);
        }
    }
    hid_t mem_type = set->data && set->mem_type ? set->mem_type : H5T_NATIVE_DOUBLE;
    assert_true(
        H5Dwrite(id, mem_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values ? values : set->data) >= 0);
    free(values);
    H5Dclose(id);
    H5Pclose(creation);
    H5Sclose(space);
    assert_true(H5Fclose(file) >= 0);
}

float *data_kit_read(const char *path, const char *name) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(id);
    float *values = test_alloc((size_t)H5Sget_simple_extent_npoints(space) * sizeof *values);
    assert_true(H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Sclose(space);
    H5Dclose(id);
    H5Fclose(file);
    return values;
}

struct grt_dataset *data_kit_open_x(const char *path) {
    return grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
}

struct grt_loader *data_kit_load(struct grt_dataset *data, uint32_t batch) {
    struct grt_loader *loader =
        grt_loader_create(grt_loader_desc(.data = data, .part = GRT_PART_ALL, .batch = batch));
    assert_non_null(loader);
    return loader;
}

float *data_kit_rows(struct grt_dataset *data, void **y) {
    struct grt_dataset_info info = grt_dataset_info(data);
    struct grt_loader *loader = data_kit_load(data, 7);
    float *x = test_alloc(info.rows * info.x_width * 4);
    char *targets = test_alloc(info.rows * info.y_width * 4 + 1);
    uint64_t done = 0;
    while (done < info.rows) {
        struct grt_batch batch;
        assert_true(grt_loader_next(loader, &batch));
        memcpy(x + done * info.x_width, batch.x, batch.rows * (uint64_t)info.x_width * 4);
        if (info.y_width > 0) {
            memcpy(targets + done * info.y_width * 4, batch.y,
                   batch.rows * (uint64_t)info.y_width * 4);
        }
        done += batch.rows;
        grt_loader_release(loader, &batch);
    }
    assert_int_equal(done, info.rows);
    grt_loader_destroy(&loader);
    if (y) {
        *y = targets;
    } else {
        free(targets);
    }
    return x;
}
