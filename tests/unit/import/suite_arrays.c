// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy, made byte by byte: what is taken, and what is said of what is not. Files as
// programs write them: tests/cli/data/import_sources.py and direct.py.
#include "kits/data_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gpurt/direct.h"
#include "import/import.h"

static const char *put(const char *name, const void *bytes, size_t size) {
    const char *path = data_kit_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

// ---- .npy ----

// A .npy of such a header and as many bytes behind it, 1, 2, 3, ...; its size.
static size_t npy(unsigned char *to, const char *header, size_t bytes) {
    size_t length = strlen(header);
    memcpy(to, "\x93NUMPY\1\0", 8);  // NOLINT(bugprone-not-null-terminated-result): bytes
    to[8] = (unsigned char)length;
    to[9] = (unsigned char)(length >> 8);
    memcpy(to + 10, header, length);  // NOLINT(bugprone-not-null-terminated-result)
    for (size_t i = 0; i < bytes; i++) {
        to[10 + length + i] = (unsigned char)(i + 1);
    }
    return 10 + length + bytes;
}

#define HEAD(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }\n"

static void headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;  // NULL: it is taken
        int rank;
        hsize_t shape[4];
        size_t width;
    } rows[] = {
        {HEAD("|u1", "(3,)"), 3, NULL, 1, {3}, 1},
        {HEAD("|u1", "(3,)"), 9, NULL, 1, {3}, 1},
        {HEAD("|b1", "(3, 1)"), 3, NULL, 2, {3, 1}, 1},
        {HEAD("<f2", "(3, 2)"), 12, NULL, 2, {3, 2}, 2},
        {HEAD(">f4", "(1, 2, 3)"), 24, NULL, 3, {1, 2, 3}, 4},
        {HEAD("=f8", "(1,2,3,1)"), 48, NULL, 4, {1, 2, 3, 1}, 8},
        {HEAD("<i8", "(2,)"), 16, NULL, 1, {2}, 8},
        {HEAD("|u1", "(3,)"), 2, "it ends before its last row", 0, {0}, 0},
        {HEAD("<f4", "(2, 2)"), 15, "it ends before its last row", 0, {0}, 0},
        {HEAD("|u1", "()"),
         3,
         "its header has no descr, fortran_order and shape of 1 to 4",
         0,
         {0},
         0},
        {HEAD("|u1", "(1, 1, 1, 1, 1)"), 3, "its header has no descr", 0, {0}, 0},
        {HEAD("|u1", "[3]"), 3, "its header has no descr", 0, {0}, 0},
        {"{'descr': '|u1', 'shape': (3,), }\n", 3, "its header has no descr", 0, {0}, 0},
        {"{'fortran_order': False, 'shape': (3,), }\n", 3, "its header has no descr", 0, {0}, 0},
        {"{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (3,), }\n",
         3,
         "its header has no descr",
         0,
         {0},
         0},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }\n",
         3,
         "in Fortran's order; numpy.ascontiguousarray turns it",
         0,
         {0},
         0},
        {HEAD("<c8", "(1,)"), 8, "of a type that is not taken", 0, {0}, 0},
        {HEAD("<U3", "(1,)"), 12, "of a type that is not taken", 0, {0}, 0},
        {HEAD("<f16", "(1,)"), 16, "of a type that is not taken", 0, {0}, 0},
        {HEAD("<f0", "(1,)"), 16, "of a type that is not taken", 0, {0}, 0},
        {HEAD("<f3", "(1,)"), 16, "x: of a type that is not taken", 0, {0}, 0},
        {HEAD("!u1", "(1,)"), 1, "of a type that is not taken", 0, {0}, 0},
        {HEAD("|u1", "(0, 3)"), 3, "its shape is empty or too large", 0, {0}, 0},
        {HEAD("|u1", "(3, 0)"), 3, "its shape is empty or too large", 0, {0}, 0},
        {HEAD("<f8", "(4294967296, 1)"), 3, "its shape is empty or too large", 0, {0}, 0},
    };
    unsigned char bytes[1024];
    struct grt_direct direct;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16], says[128];
        snprintf(name, sizeof name, "a%zu.npy", i);
        const char *path = put(name, bytes, npy(bytes, rows[i].header, rows[i].bytes));
        if (rows[i].says) {
            snprintf(says, sizeof says, "%s: %s", name, rows[i].says);
            TEST_REFUSED(grt_direct(grt_direct_desc(.path = path), &direct), GRT_BAD_DATA, says);
            continue;
        }
        assert_true(grt_direct(grt_direct_desc(.path = path), &direct));
        assert_true(direct.columns && !direct.input_names);
        hid_t file = H5Fopen(direct.path, H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t set = H5Dopen2(file, "x", H5P_DEFAULT), space = H5Dget_space(set);
        hid_t type = H5Dget_type(set);
        hsize_t shape[4] = {0};
        assert_int_equal(H5Sget_simple_extent_ndims(space), rows[i].rank);
        H5Sget_simple_extent_dims(space, shape, NULL);
        assert_memory_equal(shape, rows[i].shape, sizeof shape);
        assert_int_equal(H5Tget_size(type), rows[i].width);
        assert_int_equal(H5Tget_order(type) == H5T_ORDER_BE, i == 4);
        unsigned char stored[64];
        assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, stored) >= 0);
        for (size_t k = 0; k < rows[i].width; k++) {
            assert_int_equal(stored[k], k + 1);
        }
        H5Tclose(type);
        H5Sclose(space);
        H5Dclose(set);
        H5Fclose(file);
    }
    // Headers of four bytes of length; what is too short, too long, or no .npy at all.
    size_t size = npy(bytes, HEAD("|u1", "(3,)"), 3);
    memmove(bytes + 12, bytes + 10, size - 10);
    bytes[6] = 2;
    bytes[10] = bytes[11] = 0;
    assert_true(grt_direct(grt_direct_desc(.path = put("two.npy", bytes, size + 2)), &direct));
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = put("n.npy", bytes, 11)), &direct),
                 GRT_BAD_DATA, "n.npy: no .npy");
    npy(bytes, HEAD("|u1", "(3,)"), 3);
    bytes[9] = 2;
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = put("n.npy", bytes, 800)), &direct),
                 GRT_BAD_DATA, "n.npy: its header is too long");
    bytes[1] = 'n';
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = put("n.npy", bytes, 800)), &direct),
                 GRT_BAD_DATA, "n.npy: no .npy");
}

// ---- .npz ----

struct entry {
    const char *name, *header;
    size_t bytes;
    bool deflate;
};

static void word(unsigned char *to, size_t at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        to[at + (size_t)i] = (unsigned char)(value >> 8 * i);
    }
}

// A zip archive of arrays; where its directory begins.
static size_t npz(unsigned char *to, const struct entry *entries, uint32_t count, size_t *size) {
    static unsigned char array[8192], packed[8192];
    uint32_t places[80], sizes[80][2];
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(entries[i].name),
               whole = npy(array, entries[i].header, entries[i].bytes);
        z_stream z = {.next_in = array,
                      .avail_in = (uInt)whole,
                      .next_out = packed,
                      .avail_out = sizeof packed};
        if (entries[i].deflate) {
            assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                             Z_OK);
            assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
            deflateEnd(&z);
        }
        size_t stored = entries[i].deflate ? z.total_out : whole;
        places[i] = (uint32_t)at;
        sizes[i][0] = (uint32_t)stored;
        sizes[i][1] = (uint32_t)whole;
        memset(to + at, 0, 30);
        word(to, at, 0x04034b50, 4);
        word(to, at + 26, (uint32_t)length, 2);
        memcpy(to + at + 30, entries[i].name, length);
        memcpy(to + at + 30 + length, entries[i].deflate ? packed : array, stored);
        at += 30 + length + stored;
    }
    size_t directory = at;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(entries[i].name);
        memset(to + at, 0, 46);
        word(to, at, 0x02014b50, 4);
        word(to, at + 10, entries[i].deflate ? 8 : 0, 2);
        word(to, at + 20, sizes[i][0], 4);
        word(to, at + 24, sizes[i][1], 4);
        word(to, at + 28, (uint32_t)length, 2);
        word(to, at + 42, places[i], 4);
        memcpy(to + at + 46, entries[i].name, length);
        at += 46 + length;
    }
    memset(to + at, 0, 22);
    word(to, at, 0x06054b50, 4);
    word(to, at + 8, count, 2);
    word(to, at + 10, count, 2);
    word(to, at + 12, (uint32_t)(at - directory), 4);
    word(to, at + 16, (uint32_t)directory, 4);
    *size = at + 22;
    return directory;
}

static bool has(const char *path, const char *name) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    char group[32];
    snprintf(group, sizeof group, "%.*s", (int)strcspn(name, "/"), name);
    bool is = H5Lexists(file, group, H5P_DEFAULT) > 0 && H5Lexists(file, name, H5P_DEFAULT) > 0;
    H5Fclose(file);
    return is;
}

static void archives(void **state) {
    (void)state;
    static unsigned char bytes[65536];
    static const struct entry arrays[] = {
        {"x_train.npy", HEAD("<f4", "(3, 2)"), 24, true},
        {"y_train.npy", HEAD("<i4", "(3,)"), 12, false},
        {"x_test.npy", HEAD("<f4", "(1, 2)"), 8, true},
        {"words.npy", HEAD("<U3", "(1,)"), 12, false},
        {"more.npy", HEAD("<f4", "(5,)"), 20, true},
    };
    struct grt_direct direct;
    size_t size, directory = npz(bytes, arrays, 5, &size);
    const char *path = put("a.npz", bytes, size);
    assert_true(grt_direct(grt_direct_desc(.path = path), &direct));
    assert_false(direct.columns);
    static const char *const there[] = {"x_train", "x", "y_train", "y", "x_test", "test/x", "more"};
    for (int i = 0; i < 7; i++) {
        assert_true(has(direct.path, there[i]));
    }
    assert_false(has(direct.path, "words") || has(direct.path, "test/y"));
    float *x = data_kit_read(direct.path, "x");
    assert_int_equal(test_as_u32(x[5]), 0x18171615);
    free(x);
    // What is wanted must be of numbers, by its own name or the common one.
    static const char *const words[] = {"words"}, *const y[] = {"y"};
    TEST_REFUSED(
        grt_direct(grt_direct_desc(.path = path, .inputs = words, .input_count = 1), &direct),
        GRT_BAD_DATA, "a.npz: words.npy: of a type that is not taken");
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = path, .weights = "words"), &direct),
                 GRT_BAD_DATA, "a.npz: words.npy: of a type that is not taken");
    for (int wanted = 0; wanted < 2; wanted++) {
        static const struct entry bad[] = {{"images.npy", HEAD("|u1", "(2,)"), 2, false},
                                           {"labels.npy", HEAD("<U3", "(1,)"), 12, false}};
        npz(bytes, bad, 2, &size);
        const char *other = put("b.npz", bytes, size);
        if (wanted) {
            TEST_REFUSED(grt_direct(grt_direct_desc(.path = other, .targets = y, .target_count = 1),
                                    &direct),
                         GRT_BAD_DATA, "b.npz: labels.npy: of a type that is not taken");
        } else {
            assert_true(grt_direct(grt_direct_desc(.path = other, .no_targets = true), &direct));
            assert_true(has(direct.path, "x") && !has(direct.path, "y"));
        }
    }
    // Damage, each by one change of the bytes: where, behind the directory's begin or the file's.
    static const struct {
        long at;  // below 0: before the end of the file
        uint32_t value;
        int bytes;
        bool in_file;
        const char *says;
    } rows[] = {
        {-22, 0, 4, false, "a.npz: no .npz: it has no directory at its end"},
        {-12, 6, 2, false, "a.npz: its directory is damaged"},
        {-6, 60000, 4, false, "a.npz: its directory is damaged"},
        {0, 0, 1, false, "a.npz: its directory is damaged"},
        {28, 60000, 2, false, "a.npz: its directory is damaged"},
        {10, 12, 2, false, "x_train.npy: a damaged entry, or one that is packed in another way"},
        {42, 60000, 4, false, "x_train.npy: a damaged entry, or one that is packed"},
        {20, 60000, 4, false, "x_train.npy: a damaged entry, or one that is packed"},
        {24, 5, 4, false, "x_train.npy: cannot be inflated"},
        {24, 500, 4, false, "x_train.npy: cannot be inflated"},
        {10, 0, 2, false, "x_train.npy: a damaged entry, or one that is packed"},
        {41, 0xff, 1, true, "x_train.npy: cannot be inflated"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        directory = npz(bytes, arrays, 5, &size);
        size_t at = rows[i].in_file ? 0 : rows[i].at < 0 ? size : directory;
        word(bytes, (size_t)((long)at + rows[i].at), rows[i].value, rows[i].bytes);
        path = put("a.npz", bytes, size);
        TEST_REFUSED(grt_direct(grt_direct_desc(.path = path), &direct), GRT_BAD_DATA,
                     rows[i].says);
    }
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = put("a.npz", bytes, 21)), &direct),
                 GRT_BAD_DATA, "a.npz: no .npz");
    npz(bytes, arrays, 0, &size);
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = put("none.npz", bytes, size)), &direct),
                 GRT_BAD_DATA, "none.npz: ");
    // Names that are none, and the most arrays.
    static const char *const names[] = {"/a.npy", "a/../b.npy", ""};
    for (int i = 0; i < 3; i++) {
        const struct entry one = {names[i], HEAD("|u1", "(1,)"), 1, false};
        npz(bytes, &one, 1, &size);
        TEST_REFUSED(grt_direct(grt_direct_desc(.path = put("a.npz", bytes, size)), &direct),
                     GRT_BAD_DATA, "a.npz: more than 64 arrays, or a name that is none");
    }
    struct entry many[65];
    char texts[65][8];
    for (uint32_t i = 0; i < 65; i++) {
        snprintf(texts[i], sizeof texts[i], "n%u.npy", i);
        many[i] = (struct entry){texts[i], HEAD("|u1", "(1,)"), 1, false};
    }
    npz(bytes, many, 64, &size);
    assert_true(grt_direct(grt_direct_desc(.path = put("64.npz", bytes, size)), &direct));
    assert_true(has(direct.path, "n63"));
    npz(bytes, many, 65, &size);
    TEST_REFUSED(grt_direct(grt_direct_desc(.path = put("65.npz", bytes, size)), &direct),
                 GRT_BAD_DATA, "65.npz: more than 64 arrays");
}

static void names_of_arrays(void **state) {
    (void)state;
    static const char *const names[] = {
        "x",
        "x",
        "images",
        "x",
        "data",
        "x",
        "x_train",
        "x",
        "train_x",
        "x",
        "train_images",
        "x",
        "train_data",
        "x",
        "arr_0",
        "x",
        "y",
        "y",
        "labels",
        "y",
        "targets",
        "y",
        "y_train",
        "y",
        "train_y",
        "y",
        "train_labels",
        "y",
        "train_targets",
        "y",
        "arr_1",
        "y",
        "x_test",
        "test/x",
        "test_x",
        "test/x",
        "test_images",
        "test/x",
        "test_data",
        "test/x",
        "y_test",
        "test/y",
        "test_y",
        "test/y",
        "test_labels",
        "test/y",
        "test_targets",
        "test/y",
        "x_val",
        "validation/x",
        "val_x",
        "validation/x",
        "val_images",
        "validation/x",
        "val_data",
        "validation/x",
        "y_val",
        "validation/y",
        "val_y",
        "validation/y",
        "val_labels",
        "validation/y",
        "val_targets",
        "validation/y",
        "x.npy",
        "x",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i += 2) {
        const char *role = import_array_role(names[i]);
        assert_string_equal(role ? role : "none", names[i + 1]);
    }
    static const char *const others[] = {"", "X", "xx", "image", "x_tests", "arr_2", "val", "x y"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_null(import_array_role(others[i]));
    }
}

// ---- images ----

static bool import(const char *source, struct grt_import_result *result) {
    return grt_data_import(grt_import_desc(.source = source, .path = data_kit_path("i.h5")),
                           result);
}

static void images_of_arrays(void **state) {
    (void)state;
    static unsigned char bytes[65536];
    struct grt_import_result result;
    size_t size;
    // Planes before pixels where there are at most four, and lines of more than four.
    static const struct {
        const char *header;
        size_t bytes;
        uint32_t height, width, channels;
        uint8_t second;  // number of the first pixel
    } shapes[] = {
        {HEAD("|u1", "(1, 5, 6)"), 30, 5, 6, 1, 2},
        {HEAD("|u1", "(1, 5, 6, 3)"), 90, 5, 6, 3, 2},
        {HEAD("|u1", "(1, 3, 6, 5)"), 90, 6, 5, 3, 31},
        {HEAD("|u1", "(1, 4, 2, 5)"), 40, 2, 5, 4, 11},
        {HEAD("|u1", "(1, 5, 2, 5)"), 50, 5, 2, 5, 2},
        {HEAD("|u1", "(1, 3, 6, 4)"), 72, 3, 6, 4, 2},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const char *path = put("i.npy", bytes, npy(bytes, shapes[i].header, shapes[i].bytes));
        assert_true(import(path, &result));
        assert_string_equal(result.kind, "NumPy");
        assert_int_equal(result.rows, 1);
        assert_true(result.height == shapes[i].height && result.width == shapes[i].width &&
                    result.channels == shapes[i].channels && result.classes == 0);
        float *x = data_kit_read(data_kit_path("i.h5"), "x");
        assert_true(x[0] == 1 && x[1] == (float)shapes[i].second);
        free(x);
    }
#define IMAGE                                                                                      \
    { "x.npy", HEAD("|u1", "(2, 5, 6)"), 60, false }
    static const struct {
        struct entry arrays[3];
        uint32_t count;
        const char *says;
    } rows[] = {
        {{IMAGE, {"images.npy", HEAD("|u1", "(2, 5, 6)"), 60, false}},
         2,
         "images.npy: a second array of that meaning"},
        {{{"y.npy", HEAD("|u1", "(2,)"), 2, false}},
         1,
         "no array of images, such as x, images or x_train"},
        {{{"x.npy", HEAD("<i2", "(2, 5, 6)"), 120, false}}, 1, "images: u8 of [N][H][W]"},
        {{{"x.npy", HEAD("|u1", "(2, 5)"), 10, false}}, 1, "images: u8 of [N][H][W]"},
        {{{"x.npy", HEAD("|u1", "(1, 5, 1, 65)"), 325, false}},
         1,
         "images: more than 16384 pixels wide or high, or 64 channels"},
        {{{"x.npy", HEAD("|u1", "(1, 1, 16385)"), 0, false}}, 0, NULL},
        {{IMAGE, {"x_test.npy", HEAD("|u1", "(1, 6, 5)"), 30, false}},
         2,
         "images: of another shape than those to train on"},
        {{IMAGE, {"y.npy", HEAD("|u1", "(3,)"), 3, false}},
         2,
         "labels: a whole number for each image is wanted"},
        {{IMAGE, {"y.npy", HEAD(">i2", "(2,)"), 4, false}}, 2, "labels: a whole number for each"},
        {{IMAGE, {"y.npy", HEAD("<f4", "(2,)"), 8, false}}, 2, "labels: a whole number for each"},
        {{IMAGE, {"y.npy", HEAD("|u1", "(2, 2)"), 4, false}}, 2, "labels: a whole number for each"},
        {{IMAGE, {"y.npy", HEAD("<i4", "(2,)"), 8, false}},
         2,
         "labels: one is below 0 or above a million"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].says) {
            npz(bytes, rows[i].arrays, rows[i].count, &size);
            TEST_REFUSED(import(put("i.npz", bytes, size), &result), GRT_BAD_DATA, rows[i].says);
        }
    }
    static const struct entry good[] = {IMAGE, {"y.npy", HEAD("|u1", "(2, 1)"), 2, true}};
    npz(bytes, good, 2, &size);
    assert_true(import(put("i.npz", bytes, size), &result));
    assert_true(result.rows == 2 && result.classes == 3);
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(headers),
    DATA_CASE(archives),
    DATA_CASE(names_of_arrays),
    DATA_CASE(images_of_arrays),
};
TEST_SUITE(arrays, false, cases);
