// SPDX-License-Identifier: Apache-2.0
// What a file is said to hold: names and links, types, shapes, chunks, filters and attributes, and
// what is no part of it.
#include "kits/cache_kit.h"
#include "kits/data_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int begin(void **state) {
    return kit_cache_begin(state) || data_kit_begin(state);
}

static int end(void **state) {
    return data_kit_end(state) || kit_cache_end(state);
}

static struct grt_dataset *open_named(const char *path, const char *name) {
    return grt_dataset_open(
        grt_dataset_desc(.path = path, .inputs = &name, .input_count = 1, .no_targets = true));
}

// Links of one file lead to a data set from beside it and from its root, up to eight of them, as
// parts of a path too; names have up to 255 characters.
static void links_that_are_followed(void **state) {
    (void)state;
    const char *path = data_kit_path("l.h5");
    char longest[300], name[300], says[400];
    memset(longest, 'n', sizeof longest);
    longest[255] = '\0';
    data_kit_write(path, true, &(struct data_kit_set){.name = longest, .shape = {3}});
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, longest, group, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("x", group, "beside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/g/x", group, "root", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("g", file, "folder", H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 1; i <= 9; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "link%d", i);
        snprintf(to, sizeof to, i == 1 ? "g/x" : "link%d", i - 1);
        H5Lcreate_soft(to, file, from, H5P_DEFAULT, H5P_DEFAULT);
    }
    H5Gclose(group);
    H5Fclose(file);
    const char *const good[] = {longest,       "g/x",      "/g/x",  "g/beside", "g/root",
                                "folder/root", "folder/x", "link1", "link8",    "//link2"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct grt_dataset *data = open_named(path, good[i]);
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).rows, 3);
        grt_dataset_close(&data);
    }
    TEST_REFUSED(open_named(path, "link9"), GRT_BAD_DATA, "'link1' is a link that leads nowhere");
    TEST_REFUSED(open_named(path, "folder/y"), GRT_BAD_DATA, "a link leads to 'g/y', which is not");
    longest[255] = 'n';
    longest[256] = '\0';
    TEST_REFUSED(open_named(path, longest), GRT_BAD_DATA, "a name of 256 characters");
    snprintf(name, sizeof name, "%.250s", longest);
    snprintf(says, sizeof says, "l.h5: has no data set '%s'; `gpurt data info` lists", name);
    TEST_REFUSED(open_named(path, name), GRT_BAD_DATA, says);
}

static hid_t two_of(const char *first, int8_t a, const char *second, int8_t b) {
    hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(type, first, &a);
    H5Tenum_insert(type, second, &b);
    return type;
}

// h5py's bool is an enum of FALSE and TRUE; others are no type of ours.
static void bools(void **state) {
    (void)state;
    static const int8_t bytes[] = {0, 1, 1, 0, 1};
    hid_t types[] = {two_of("FALSE", 0, "TRUE", 1), two_of("TRUE", 0, "FALSE", 1),
                     two_of("NO", 0, "YES", 1), two_of("FALSE", 0, "TRUE", 2)};
    for (int i = 0; i < 4; i++) {
        const char *path = data_kit_path("b.h5");
        data_kit_write(
            path, true,
            &(struct data_kit_set){
                .name = "x", .type = types[i], .shape = {5}, .mem_type = types[i], .data = bytes});
        struct grt_file_info *info = grt_file_info_create(path);
        assert_non_null(info);
        assert_string_equal(info->arrays[0].dtype, i == 0 ? "bool" : "");
        assert_int_equal(info->arrays[0].problem[0] != '\0', i > 0);
        grt_file_info_destroy(&info);
        assert_null(info);
        if (i > 0) {
            TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA,
                         "'x' has names of an enumeration, and f16, f32, f64, i8, i16, i32, i64, "
                         "u8, u16, u32 and bool can be read: store their numbers as i32");
            continue;
        }
        struct grt_dataset *data = data_kit_open_x(path);
        assert_non_null(data);
        float *x = data_kit_rows(data, NULL);
        for (int k = 0; k < 5; k++) {
            assert_true(x[k] == (float)bytes[k]);
        }
        free(x);
        grt_dataset_close(&data);
    }
    for (int i = 0; i < 4; i++) {
        H5Tclose(types[i]);
    }
}

// All that is listed of a data set.
static void what_is_listed(void **state) {
    (void)state;
    hid_t half = data_kit_half(false);
    const struct {
        struct data_kit_set set;
        const char *dtype;
        uint32_t rank;
        uint64_t chunks;
        const char *filters;
    } rows[] = {
        {{.name = "a", .type = half, .shape = {7}}, "f16", 1, 0, ""},
        {{.name = "b", .type = H5T_IEEE_F32BE, .shape = {7, 5}}, "f32 swapped", 2, 0, ""},
        {{.name = "c", .type = H5T_STD_U8BE, .shape = {7, 5}, .chunk = {3, 2}}, "u8", 2, 9, ""},
        {{.name = "d", .type = H5T_STD_I64LE, .shape = {7}, .chunk = {4}, .deflate = 9},
         "i64",
         1,
         2,
         "deflate 9"},
        {{.name = "e", .shape = {7, 5, 3}, .chunk = {2, 5, 2}, .shuffle = true, .deflate = 1},
         "f32",
         3,
         8,
         "shuffle deflate 1"},
        {{.name = "f", .shape = {7, 4, 6, 3}, .chunk = {7, 3, 4, 3}, .shuffle = true},
         "f32",
         4,
         4,
         "shuffle"},
        {{.name = "g", .type = H5T_STD_U16BE, .shape = {7, 4, 6, 2}}, "u16 swapped", 4, 0, ""},
    };
    enum { COUNT = sizeof rows / sizeof *rows };
    const char *path = data_kit_path("list.h5");
    for (int i = COUNT - 1; i >= 0; i--) {
        data_kit_write(path, i == COUNT - 1, &rows[i].set);
    }
    struct stat state_of;
    assert_int_equal(stat(path, &state_of), 0);
    struct grt_file_info *info = grt_file_info_create(path);
    assert_non_null(info);
    assert_int_equal(info->bytes, state_of.st_size);
    assert_int_equal(info->count, COUNT);
    assert_string_equal(info->made_by, "");
    assert_true(info->noise_floor < 0);
    assert_int_equal(info->classes, 0);
    assert_int_equal(info->class_name_count, 0);
    for (int i = 0; i < COUNT; i++) {
        const struct grt_array_info *a = &info->arrays[i];
        hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t set = H5Dopen2(file, rows[i].set.name, H5P_DEFAULT), type = H5Dget_type(set);
        uint64_t numbers = 1;
        assert_string_equal(a->name, rows[i].set.name);
        assert_string_equal(a->dtype, rows[i].dtype);
        assert_string_equal(a->filters, rows[i].filters);
        assert_string_equal(a->problem, "");
        assert_int_equal(a->rank, rows[i].rank);
        for (uint32_t k = 0; k < GRT_DATA_MAX_RANK; k++) {
            assert_int_equal(a->shape[k], rows[i].set.shape[k]);
            assert_int_equal(a->chunk[k], rows[i].set.chunk[k]);
            numbers *= k < rows[i].rank ? rows[i].set.shape[k] : 1;
        }
        assert_int_equal(a->chunks, rows[i].chunks);
        assert_int_equal(a->bytes, numbers * H5Tget_size(type));
        assert_int_equal(a->stored, H5Dget_storage_size(set));
        H5Tclose(type);
        H5Dclose(set);
        H5Fclose(file);
    }
    grt_file_info_destroy(&info);
    H5Tclose(half);
}

static void attribute(hid_t file, const char *name, hid_t type, hsize_t count, const void *value) {
    hid_t space = count > 0 ? H5Screate_simple(1, &count, NULL) : H5Screate(H5S_SCALAR);
    hid_t id = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(id >= 0 && H5Awrite(id, type, value) >= 0);
    H5Aclose(id);
    H5Sclose(space);
}

// Names of classes, as many and as much of each as there is room for; what is no number, or
// several, is none.
static void attributes(void **state) {
    (void)state;
    const char *path = data_kit_path("attributes.h5");
    static const struct {
        uint32_t count, length, listed, shown;
    } rows[] = {{3, 5, 3, 5}, {128, 31, 128, 31}, {129, 32, 128, 31}, {2, 200, 2, 31}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t text = H5Tcopy(H5T_C_S1);
        uint32_t count = rows[i].count, classes = 7;
        char *all = test_alloc((size_t)count * rows[i].length);
        H5Tset_size(text, rows[i].length);
        H5Tset_strpad(text, H5T_STR_NULLPAD);
        for (uint32_t k = 0; k < count * rows[i].length; k++) {
            all[k] = (char)('a' + k / rows[i].length % 26);
        }
        attribute(file, "class_names", text, count, all);
        attribute(file, "classes", H5T_NATIVE_UINT32, 0, &classes);
        attribute(file, "noise_floor", H5T_NATIVE_DOUBLE, 0, &(double){0.25});
        H5Fclose(file);
        struct grt_file_info *info = grt_file_info_create(path);
        assert_non_null(info);
        assert_int_equal(info->count, 0);
        assert_int_equal(info->classes, 7);
        assert_true(info->noise_floor == 0.25);
        assert_int_equal(info->class_name_count, rows[i].listed);
        for (uint32_t k = 0; k < rows[i].listed; k++) {
            assert_int_equal(strlen(info->class_names[k]), rows[i].shown);
            assert_int_equal(info->class_names[k][rows[i].shown - 1], 'a' + k % 26);
        }
        grt_file_info_destroy(&info);
        H5Tclose(text);
        free(all);
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t text = H5Tcopy(H5T_C_S1);
    const char *word = "a word";
    H5Tset_size(text, H5T_VARIABLE);
    attribute(file, "class_names", text, 1, &word);
    attribute(file, "gpurt_make", text, 0, &word);
    attribute(file, "classes", H5T_NATIVE_UINT32, 2, (const uint32_t[]){3, 4});
    attribute(file, "noise_floor", H5T_NATIVE_DOUBLE, 2, (const double[]){3, 4});
    H5Fclose(file);
    struct grt_file_info *info = grt_file_info_create(path);
    assert_non_null(info);
    assert_int_equal(info->class_name_count, 0);
    assert_string_equal(info->made_by, "");
    assert_int_equal(info->classes, 0);
    assert_true(info->noise_floor == -1);
    grt_file_info_destroy(&info);
    H5Tclose(text);
}

// Files that hold a thousand data sets, or one more, list a thousand.
static void very_many_data_sets(void **state) {
    (void)state;
    const char *path = data_kit_path("many.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, (const hsize_t[]){2}, NULL);
    for (int i = 0; i < 1001; i++) {
        char name[16];
        snprintf(name, sizeof name, "set%04d", i);
        H5Dclose(
            H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    H5Sclose(space);
    H5Fclose(file);
    struct grt_file_info *info = grt_file_info_create(path);
    assert_non_null(info);
    assert_int_equal(info->count, 1000);
    assert_string_equal(info->arrays[999].name, "set0999");
    assert_non_null(strstr(info->arrays[0].problem, "'set0000' was never written"));
    assert_string_equal(info->arrays[0].filters, "");
    grt_file_info_destroy(&info);
}

// A list of very many chunks is kept for the next run, and of another file it is another.
static void lists_of_chunks(void **state) {
    (void)state;
    enum { ROWS = 2048 };
    for (int k = 0; k < 2; k++) {
        const char *path = data_kit_path(k ? "two.h5" : "one.h5");
        data_kit_write(path, true,
                       &(struct data_kit_set){.name = "x",
                                              .type = H5T_STD_U8LE,
                                              .shape = {ROWS + k, 3},
                                              .chunk = {1, 3},
                                              .deflate = 1 + 5 * k});
        for (int again = 0; again < 2; again++) {
            struct grt_dataset *data = data_kit_open_x(path);
            assert_non_null(data);
            float *x = data_kit_rows(data, NULL);
            for (uint64_t i = 0; i < (ROWS + (uint64_t)k) * 3; i++) {
                assert_true((double)x[i] == data_kit_value(i));
            }
            free(x);
            grt_dataset_close(&data);
        }
    }
}

// Shapes of chunks that cannot be, and filters that can be four.
static void chunks_and_filters(void **state) {
    (void)state;
    const char *path = data_kit_path("c.h5");
    for (int shuffles = 0; shuffles <= 4; shuffles++) {
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
        hid_t space = H5Screate_simple(1, (const hsize_t[]){100}, NULL);
        H5Pset_chunk(creation, 1, (const hsize_t[]){40});
        for (int i = 0; i < shuffles; i++) {
            assert_true(H5Pset_filter(creation, H5Z_FILTER_SHUFFLE, 0, 1, (unsigned[]){4}) >= 0);
        }
        H5Pset_deflate(creation, 1);
        float numbers[100];
        for (int i = 0; i < 100; i++) {
            numbers[i] = (float)(i % 4);
        }
        hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, 0);
        assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, 0, numbers) >= 0);
        H5Dclose(set);
        H5Sclose(space);
        H5Pclose(creation);
        H5Fclose(file);
        if (shuffles == 4) {
            TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "in an unusual order");
            continue;
        }
        struct grt_dataset *data = data_kit_open_x(path);
        assert_non_null(data);
        float *x = data_kit_rows(data, NULL);
        assert_memory_equal(x, numbers, sizeof numbers);
        free(x);
        grt_dataset_close(&data);
    }
    // As many chunks as can be read, and one more.
    static const char *const says[] = {
        "'x' claims 4194304 bytes and the file has",
        "'x' claims 4194305 chunks of 1 bytes; 4194304 chunks of up to 4 GiB can be read"};
    for (hsize_t more = 0; more < 2; more++) {
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
        hid_t space = H5Screate_simple(1, (const hsize_t[]){(1 << 22) + more}, NULL);
        H5Pset_chunk(creation, 1, (const hsize_t[]){1});
        H5Dclose(H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
        H5Sclose(space);
        H5Pclose(creation);
        H5Fclose(file);
        TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, says[more]);
    }
}

#define FILES_CASE(function)                                                                       \
    { #function, function, begin, end, NULL }

static const struct CMUnitTest cases[] = {
    FILES_CASE(links_that_are_followed), FILES_CASE(bools),
    FILES_CASE(what_is_listed),          FILES_CASE(attributes),
    FILES_CASE(very_many_data_sets),     FILES_CASE(lists_of_chunks),
    FILES_CASE(chunks_and_filters),
};
TEST_SUITE(files, false, cases);
