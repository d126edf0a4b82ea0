// SPDX-License-Identifier: Apache-2.0
// Files that lie: each is made here with the HDF5 library, and must be refused with a sentence,
// before memory for the data is asked for and without another file being opened.
#include "kits/data_kit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "data/file/filter.h"

static hid_t create(const char *path) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

// A data set "x" that is never written.
static void empty_set(hid_t file, hid_t type, int rank, const hsize_t *shape, hid_t creation) {
    hid_t space = rank > 0 ? H5Screate_simple(rank, shape, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

static void not_there_and_not_hdf5(void **state) {
    (void)state;
    TEST_REFUSED(data_kit_open_x(data_kit_path("nothing.h5")), GRT_NO_INPUT, "No such file");
    TEST_REFUSED(data_kit_open_x(data_kit_path("")), GRT_NO_INPUT, "is a folder: name");
    const char *pipe = data_kit_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    TEST_REFUSED(data_kit_open_x(pipe), GRT_NO_INPUT, "not a file");
    const char *text = data_kit_path("text.h5");
    FILE *file = fopen(text, "w");
    fputs("x,y\n1,2\n", file);
    fclose(file);
    TEST_REFUSED(data_kit_open_x(text), GRT_BAD_DATA, "not an HDF5 file");
    file = fopen(text, "w");
    fclose(file);
    TEST_REFUSED(data_kit_open_x(text), GRT_BAD_DATA, "not an HDF5 file");
}

static void external_storage(void **state) {
    (void)state;
    const char *secret = data_kit_path("secret");
    FILE *out = fopen(secret, "w");
    fputs("sixteen bytes!!!", out);
    fclose(out);
    const char *path = data_kit_path("external.h5");
    hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_external(creation, secret, 0, 16) >= 0);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){2, 2}, creation);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "external storage");
}

static void virtual_data_set(void **state) {
    (void)state;
    const char *source = data_kit_path("source.h5"), *path = data_kit_path("virtual.h5");
    data_kit_write(source, true, &(struct data_kit_set){.name = "x", .shape = {4, 2}});
    hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, (hsize_t[]){4, 2}, NULL);
    assert_true(H5Pset_virtual(creation, space, source, "x", space) >= 0);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, creation);
    H5Sclose(space);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "virtual data set");
}

static void links(void **state) {
    (void)state;
    const char *other = data_kit_path("other.h5"), *path = data_kit_path("links.h5");
    data_kit_write(other, true, &(struct data_kit_set){.name = "x", .shape = {4, 2}});
    hid_t file = create(path);
    H5Lcreate_external(other, "x", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(other, "/", file, "group", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/group/x", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("round", file, "round", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/nothing", file, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    hid_t inner = H5Gcreate2(file, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/", inner, "loop", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(inner);
    H5Fclose(file);
    static const struct {
        const char *name, *says;
    } rows[] = {
        {"x", "'x' is an external link"},
        {"group/x", "'group' is an external link"},
        {"soft", "'/group' is an external link"},
        {"inner/loop/inner/loop/soft", "'/group' is an external link"},
        {"round", "leads nowhere"},
        {"dangling", "a link leads to '/nothing'"},
        {"inner", "'inner' is a group without data sets; `gpurt data info` lists"},
        {"inner/nothing", "no data set 'inner/nothing'"},
        {"nothing", "no data set 'nothing'"},
        {"/", "without a name"},
        {"", "without a name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .inputs = &rows[i].name,
                                                       .input_count = 1, .no_targets = true)),
                     GRT_BAD_DATA, rows[i].says);
    }
    char name[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *names[] = {name};
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .inputs = names, .input_count = 1,
                                                   .no_targets = true)),
                 GRT_BAD_DATA, "399 characters");
    // Listing names the links and follows none; a cycle of groups ends.
    struct grt_file_info *info = grt_file_info_create(path);
    assert_non_null(info);
    assert_true(info->count >= 3);
    for (uint32_t i = 0; i < info->count; i++) {
        assert_non_null(strstr(info->arrays[i].problem, "link"));
    }
    grt_file_info_destroy(&info);
}

// A group in the place of a data set: what lies in it is named, with the setting that takes it.
static void groups(void **state) {
    (void)state;
    const char *path = data_kit_path("groups.h5");
    const struct data_kit_set sets[] = {
        {.name = "x", .shape = {4, 2}}, {.name = "y", .shape = {4}}, {.name = "w", .shape = {4}}};
    for (int i = 0; i < 3; i++) {
        data_kit_write(path, i == 0, &sets[i]);
    }
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t one = H5Gcreate2(file, "one", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t two = H5Gcreate2(one, "two", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t many = H5Gcreate2(file, "many", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "x", two, "a", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/x", one, "soft", H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        H5Lcreate_hard(file, "x", many, name, H5P_DEFAULT, H5P_DEFAULT);
    }
    H5Gclose(many);
    H5Gclose(two);
    H5Gclose(one);
    H5Fclose(file);
    const struct {
        const char *input, *target, *weights, *says;
    } rows[] = {
        {"one", "y", NULL, "groups.h5: 'one' is a group; it holds one/two/a: inputs=one/two/a"},
        {"/one/", "y", NULL, "groups.h5: 'one' is a group; it holds one/two/a: inputs=one/two/a"},
        {"x", "one/two", NULL, "'one/two' is a group; it holds one/two/a: targets=one/two/a"},
        {"x", "y", "one", "'one' is a group; it holds one/two/a: sample_weights=one/two/a"},
        {"many", "y", NULL,
         "'many' is a group; it holds many/s0, many/s1, many/s2 and 2 more: inputs=many/s0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TEST_REFUSED(
            grt_dataset_open(grt_dataset_desc(.path = path, .inputs = &rows[i].input,
                                              .input_count = 1, .targets = &rows[i].target,
                                              .target_count = 1, .weights = rows[i].weights)),
            GRT_BAD_DATA, rows[i].says);
    }
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .inputs = (const char *const[]){"one/two/a"},
                         .input_count = 1));
    assert_non_null(data);
    grt_dataset_close(&data);
}

static size_t keep_bytes(unsigned flags, size_t cd_count, const unsigned cd[], size_t bytes,
                         size_t *size, void **buf) {
    (void)flags, (void)cd_count, (void)cd, (void)size, (void)buf;
    return bytes;
}

static void filters(void **state) {
    (void)state;
    const H5Z_class2_t class = {H5Z_CLASS_T_VERS, 333, 1, 1, "ours alone", NULL, NULL, keep_bytes};
    assert_true(H5Zregister(&class) >= 0);
    static const struct {
        int filters[5];  // -1: fletcher32
        const char *says;
    } rows[] = {
        {{333}, "filter 333 (ours alone)"},
        {{H5Z_FILTER_DEFLATE, 333}, "filter 333"},
        {{-1}, "filter 3"},
        {{H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE}, "unusual order"},
        {{H5Z_FILTER_DEFLATE, H5Z_FILTER_DEFLATE}, "unusual order"},
        {{H5Z_FILTER_SHUFFLE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_SHUFFLE,
          H5Z_FILTER_SHUFFLE},
         "unusual order"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = data_kit_path("filters.h5");
        hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(creation, 2, (hsize_t[]){2, 2});
        for (int k = 0; k < 5 && rows[i].filters[k]; k++) {
            const unsigned level[] = {4};
            if (rows[i].filters[k] < 0) {
                H5Pset_fletcher32(creation);
            } else {
                H5Pset_filter(creation, rows[i].filters[k], 0, 1, level);
            }
        }
        empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, creation);
        H5Pclose(creation);
        H5Fclose(file);
        TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, rows[i].says);
    }
    H5Zunregister(333);
}

static void types_and_shapes(void **state) {
    (void)state;
    hid_t text = H5Tcopy(H5T_C_S1), list = H5Tvlen_create(H5T_NATIVE_FLOAT);
    H5Tset_size(text, H5T_VARIABLE);
    hid_t pair = H5Tcreate(H5T_COMPOUND, 8), odd = H5Tcopy(H5T_STD_I32LE);
    H5Tinsert(pair, "a", 0, H5T_NATIVE_FLOAT);
    H5Tset_precision(odd, 20);
    hid_t complex = H5Tcreate(H5T_COMPOUND, 8), arrays = H5Tarray_create2(pair, 1, (hsize_t[]){3});
    hid_t half = H5Tcopy(H5T_IEEE_F32LE), opaque = H5Tcreate(H5T_OPAQUE, 8);
    H5Tinsert(complex, "r", 0, H5T_NATIVE_FLOAT);
    H5Tinsert(complex, "i", 4, H5T_NATIVE_FLOAT);
    H5Tset_ebias(half, 100);
    const struct {
        hid_t type;
        const char *has, *remedy;
    } types[] = {
        {text, "strings", "store numbers instead, classes as 0, 1, 2 and so on"},
        {list, "lists of any length", "fill them up to one length"},
        {pair, "records of several fields", "store each field as a data set"},
        {complex, "complex numbers", "store real and imaginary parts as two columns"},
        {odd, "whole numbers of an unusual form", "store them as i32 or i64"},
        {H5T_STD_U64LE, "u64", "store them as i64"},
        {H5T_STD_U64BE, "u64", "store them as i64"},
        {half, "floating-point numbers of an unusual form", "store them as f32 or f64"},
        {arrays, "arrays", "store them as further axes"},
        {opaque, "elements that are no numbers", "store numbers"},
        {H5T_STD_REF_OBJ, "references", "name what they lead to"},
    };
    const char *path = data_kit_path("types.h5");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        hid_t file = create(path);
        empty_set(file, types[i].type, 1, (hsize_t[]){4}, H5P_DEFAULT);
        H5Fclose(file);
        char says[256];
        snprintf(says, sizeof says,
                 "types.h5: 'x' has %s, and f16, f32, f64, i8, i16, i32, i64, u8, u16, u32 and "
                 "bool can be read: %s",
                 types[i].has, types[i].remedy);
        TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, says);
    }
    static const struct {
        int rank;
        hsize_t shape[5];
        const char *says;
    } shapes[] = {
        {0, {0}, "0 axes"},
        {5, {2, 2, 2, 2, 2}, "5 axes"},
        {2, {0, 3}, "no rows"},
        {2, {3, 0}, "no rows or no columns"},
        {2, {1ull << 40, 1ull << 40}, "more than can be counted"},
        {3, {1ull << 30, 1ull << 30, 1ull << 30}, "more than can be counted"},
        {4, {2, 1ull << 40, 1ull << 40, 2}, "more than can be counted"},
        {4, {2, 3, 0, 2}, "no rows or no columns"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        hid_t file = create(path), creation = H5Pcreate(H5P_DATASET_CREATE);
        hsize_t chunk[5] = {1, 1, 1, 1, 1};
        if (shapes[i].rank > 0) {
            H5Pset_chunk(creation, shapes[i].rank, chunk);
        }
        empty_set(file, H5T_IEEE_F32LE, shapes[i].rank, shapes[i].shape, creation);
        H5Pclose(creation);
        H5Fclose(file);
        TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, shapes[i].says);
    }
    H5Tclose(text);
    H5Tclose(list);
    H5Tclose(pair);
    H5Tclose(odd);
    H5Tclose(complex);
    H5Tclose(arrays);
    H5Tclose(half);
    H5Tclose(opaque);
}

static void never_written(void **state) {
    (void)state;
    const char *path = data_kit_path("empty.h5");
    hid_t file = create(path);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, H5P_DEFAULT);
    H5Fclose(file);
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "never written");
    // A small file that claims 2^40 floats, and one of whose chunks some are missing.
    static const hsize_t shapes[2][2] = {{1ull << 40, 1}, {64, 8}};
    static const char *const says[] = {"claims", "0 of its 8 chunks"};
    for (int i = 0; i < 2; i++) {
        file = create(path);
        hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(creation, 2, (hsize_t[]){8, i == 0 ? 1 : 8});
        H5Pset_deflate(creation, 1);
        empty_set(file, H5T_IEEE_F32LE, 2, shapes[i], creation);
        H5Pclose(creation);
        H5Fclose(file);
        TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, says[i]);
    }
    file = create(path);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(creation, H5D_COMPACT);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, creation);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "compact");
    creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(creation, 512);
    file = H5Fcreate(path, H5F_ACC_TRUNC, creation, H5P_DEFAULT);
    empty_set(file, H5T_IEEE_F32LE, 2, (hsize_t[]){4, 2}, H5P_DEFAULT);
    H5Pclose(creation);
    H5Fclose(file);
    TEST_REFUSED(data_kit_open_x(path), GRT_BAD_DATA, "user block of 512 bytes");
}

// Numbers that szip's library would be given: bits of a pixel, pixels of a block and of a line.
// What it does not know is not handed to it.
static void numbers_of_szip(void **state) {
    (void)state;
    static const struct {
        unsigned szip[4];  // options, block, bits, line
        bool usable;
    } cases[] = {
        {{4, 8, 1, 16}, true},    {{4, 8, 24, 16}, true},  {{4, 8, 32, 16}, true},
        {{4, 8, 64, 16}, true},   {{4, 8, 0, 16}, false},  {{4, 8, 25, 16}, false},
        {{4, 8, 31, 16}, false},  {{4, 8, 33, 16}, false}, {{4, 8, 65, 16}, false},
        {{4, 2, 8, 1}, true},     {{4, 32, 8, 1}, true},   {{4, 0, 8, 1}, false},
        {{4, 3, 8, 1}, false},    {{4, 34, 8, 1}, false},  {{4, 8, 8, 4096}, true},
        {{4, 8, 8, 4097}, false}, {{4, 8, 8, 0}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        // Without the library none is.
        bool want = cases[i].usable && grt_filter_szip_found();
        assert_int_equal(grt_filter_szip_usable(cases[i].szip), want);
    }
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(not_there_and_not_hdf5),
    DATA_CASE(external_storage),
    DATA_CASE(virtual_data_set),
    DATA_CASE(links),
    DATA_CASE(groups),
    DATA_CASE(filters),
    DATA_CASE(types_and_shapes),
    DATA_CASE(never_written),
    DATA_CASE(numbers_of_szip),
};
TEST_SUITE(hostile, false, cases);
