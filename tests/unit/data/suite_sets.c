// SPDX-License-Identifier: Apache-2.0
// What opening a data set allows and refuses, on both sides of every limit, and what it says of the
// set: widths, forms, windows and means.
#include "kits/data_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void descs(void **state) {
    (void)state;
    static const char *const many[17] = {"x", "x", "x", "x", "x", "x", "x", "x", "x",
                                         "x", "x", "x", "x", "x", "x", "x", "x"};
    static const char *const none[2] = {"x", NULL};
    static const struct grt_dataset_target kinds[2] = {{.classes = 1u << 24}, {0}};
    static const struct grt_dataset_target more[2] = {{0}, {.classes = (1u << 24) + 1}};
    const char *path = data_kit_path("d.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {4}});
    data_kit_write(path, false,
                   &(struct data_kit_set){.name = "k", .type = H5T_STD_I32LE, .shape = {4}});
    static const char *const k[] = {"k"};
    static const double one[] = {1};
    static const char *const counts = "more than 16 inputs or targets";
    static const char *const named = "targets named, and no_targets";
    static const char *const split = "validation_split is not from 0 to below 1";
    static const char *const apart = "kinds of each target, and one of all";
    const struct {
        struct grt_dataset_desc desc;
        const char *says;  // NULL: it is opened
    } rows[] = {
        {{.inputs = many, .input_count = 17, .no_targets = true}, counts},
        {{.inputs = many, .input_count = 16, .no_targets = true}, NULL},
        {{.targets = many, .target_count = 17}, counts},
        {{.targets = many, .target_count = 16}, NULL},
        {{.target_count = 1}, "a count of names, and no names"},
        {{.inputs = none, .input_count = 2, .no_targets = true}, "a name is NULL"},
        {{.targets = none, .target_count = 2}, "a name is NULL"},
        {{.targets = k, .target_count = 1, .no_targets = true}, named},
        {{.class_targets = true, .no_targets = true}, named},
        {{.weights = "x", .no_targets = true}, named},
        {{.on_nan = GRT_ON_NAN_COUNT, .no_targets = true}, "unknown on_nan"},
        {{.no_targets = true, .validation_split = -0.01}, split},
        {{.no_targets = true, .validation_split = 1}, split},
        {{.no_targets = true, .validation_split = (double)NAN}, split},
        {{.no_targets = true, .validation_split = 0.999}, NULL},
        {{.targets = k, .target_count = 1, .class_targets = true, .classes = (1u << 24) + 1},
         "more than 16777216 classes"},
        {{.targets = k, .target_count = 1, .class_targets = true, .classes = 1u << 24}, NULL},
        {{.targets = k, .target_count = 1, .class_targets = true, .kinds = kinds}, apart},
        {{.targets = k, .target_count = 1, .share_targets = true, .kinds = kinds}, apart},
        {{.targets = many, .target_count = 2, .kinds = more}, "more than 16777216 classes"},
        {{.targets = k, .target_count = 1, .kinds = kinds}, NULL},
        {{.no_targets = true, .normalise = true, .std = one},
         "mean without std, or std without mean"},
        {{.no_targets = true, .normalise = true, .mean = one, .std = one}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dataset_desc desc = rows[i].desc;
        desc.path = path;
        if (rows[i].says) {
            TEST_REFUSED(grt_dataset_open(&desc), GRT_INVALID, rows[i].says);
            continue;
        }
        struct grt_dataset *data = grt_dataset_open(&desc);
        assert_non_null(data);
        grt_dataset_close(&data);
        assert_null(data);
        grt_dataset_close(&data);
    }
    assert_int_equal(grt_dataset_info(NULL).rows, 0);
    // A file is called what it is shown as.
    data_kit_write(path, false, &(struct data_kit_set){.name = "z", .shape = {5}});
    static const char *const z[] = {"z"};
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .shown = "t.csv", .targets = z,
                                                   .target_count = 1)),
                 GRT_BAD_DATA, "t.csv: 'x' has 4 rows and 'z' has 5");
    TEST_REFUSED(
        grt_dataset_open(grt_dataset_desc(.path = data_kit_path("no.h5"), .shown = "t.csv")),
        GRT_NO_INPUT, "t.csv: cannot be opened: No such file");
}

// A data set of bytes that nobody wrote, which takes no room on the disk.
static void hollow(const char *path, bool create, const char *name, int rank,
                   const hsize_t *shape) {
    hid_t file = create ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                        : H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(rank, shape, NULL);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    hid_t set = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(creation);
    assert_true(H5Fclose(file) >= 0);
}

// The widest rows, by the name of what makes them too wide.
static void widths_of_rows(void **state) {
    (void)state;
    enum { MOST = 1 << 24 };
    static const struct {
        const char *name;
        int rank;
        hsize_t shape[4];
        bool fits;
        uint32_t features, width;
    } rows[] = {
        {"x", 2, {1, MOST}, true, MOST, MOST},
        {"x", 2, {1, MOST + 1}, false, 0, 0},
        {"x", 3, {1, 16, MOST}, true, MOST, 16 * MOST},
        {"x", 3, {1, 17, MOST}, false, 0, 0},
        {"x", 4, {1, 4, 4, MOST}, true, MOST, 16 * MOST},
        {"x", 4, {1, 4, 5, MOST}, false, 0, 0},
        {"y", 2, {1, 16 * MOST}, true, 3, 3},
        {"y", 2, {1, 16 * MOST + 1}, false, 0, 0},
        {"y", 3, {1, 16, MOST + 1}, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = data_kit_path("wide.h5");
        bool target = rows[i].name[0] == 'y';
        char says[96];
        hollow(path, true, rows[i].name, rows[i].rank, rows[i].shape);
        if (target) {
            hollow(path, false, "x", 2, (const hsize_t[]){1, 3});
        }
        struct grt_dataset_desc desc = {.path = path, .no_targets = !target};
        if (!rows[i].fits) {
            snprintf(says, sizeof says, "wide.h5: '%s' makes rows of more than 2^28 numbers",
                     rows[i].name);
            TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA, says);
            continue;
        }
        struct grt_dataset *data = grt_dataset_open(&desc);
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).features, rows[i].features);
        assert_int_equal(grt_dataset_info(data).x_width, rows[i].width);
        assert_int_equal(grt_dataset_info(data).y_width, target ? 16 * MOST : 0);
        grt_dataset_close(&data);
    }
    // Of two it is the second that makes them so.
    static const char *const both[] = {"x", "z"};
    const char *path = data_kit_path("two.h5");
    hollow(path, true, "x", 2, (const hsize_t[]){1, MOST});
    hollow(path, false, "z", 2, (const hsize_t[]){1, 1});
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .inputs = both, .input_count = 2,
                                                   .no_targets = true)),
                 GRT_BAD_DATA, "two.h5: 'z' makes rows of more than 2^28 numbers");
}

// Targets that are what is asked for, and what is said of those that are not.
static void kinds_of_targets(void **state) {
    (void)state;
    const char *path = data_kit_path("t.h5");
    const struct data_kit_set sets[] = {
        {.name = "x", .shape = {6, 2}},
        {.name = "one", .type = H5T_STD_I32LE, .shape = {6}},
        {.name = "two", .type = H5T_STD_I32LE, .shape = {6, 2}},
        {.name = "grid", .shape = {6, 2, 3}},
        {.name = "w", .shape = {6, 1}},
        {.name = "real", .shape = {6}},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        data_kit_write(path, i == 0, &sets[i]);
    }
    static const char *const targets[] = {"one", "grid", "two"}, *const two[] = {"two"};
    static const char *const ones[] = {"one", "real"}, *const real[] = {"real"};
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .targets = targets, .target_count = 3, .weights = "w"));
    assert_non_null(data);
    struct grt_dataset_info info = grt_dataset_info(data);
    assert_int_equal(info.y_width, 1 + 6 + 2 + 1);
    assert_int_equal(info.weighted, 1);
    static const uint32_t widths[] = {1, 6, 2, 0};
    assert_memory_equal(info.target_widths, widths, sizeof widths);
    assert_int_equal(info.row_bytes, 4 * (2 + 1 + 6 + 2 + 1));
    assert_int_equal(info.input_count, 1);
    assert_int_equal(info.classes, 0);
    assert_false(info.filtered);
    grt_dataset_close(&data);
    const struct {
        struct grt_dataset_desc desc;
        const char *says;
    } rows[] = {
        {{.targets = two, .target_count = 1, .weights = "grid"},
         "'grid' cannot be sample weights: one number a row is wanted"},
        {{.targets = two, .target_count = 1, .class_targets = true}, "'two' cannot be a class"},
        {{.targets = real, .target_count = 1, .class_targets = true}, "'real' cannot be a class"},
        {{.targets = ones, .target_count = 2, .class_targets = true}, "'one' cannot be a class"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dataset_desc desc = rows[i].desc;
        desc.path = path;
        TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA, rows[i].says);
    }
    // Weights beside a class are none themselves.
    data = grt_dataset_open(grt_dataset_desc(.path = path, .targets = ones, .target_count = 1,
                                             .class_targets = true, .weights = "w"));
    assert_non_null(data);
    assert_int_equal(grt_dataset_info(data).y_width, 2);
    assert_int_equal(grt_dataset_info(data).classes, 186);  // 5 * 37 and one
    grt_dataset_close(&data);
}

// Bytes of ten rows where they are kept.
static void forms_of_kept_rows(void **state) {
    (void)state;
    hid_t half = data_kit_half(false);
    const hid_t types[] = {H5T_STD_U8LE, half, H5T_STD_I8LE, H5T_IEEE_F64LE, H5T_STD_U8LE, half};
    static const char *const names[] = {"bytes", "halves", "small", "wide", "more", "others"};
    for (int i = 0; i < 6; i++) {
        data_kit_write(
            data_kit_path("forms.h5"), i == 0,
            &(struct data_kit_set){.name = names[i], .type = types[i], .shape = {10, i % 4 + 1}});
    }
    // Widths: bytes 1, halves 2, small 3, wide 4, more 1, others 2.
    static const struct {
        int x[2], y[2];  // -1: none
        bool classes, weights, kinds, normalise;
        uint64_t bytes;
    } rows[] = {
        {{0, -1}, {-1, -1}, false, false, false, false, 10},
        {{1, -1}, {-1, -1}, false, false, false, false, 40},
        {{1, -1}, {-1, -1}, false, false, false, true, 40},
        {{2, -1}, {-1, -1}, false, false, false, false, 120},
        {{3, -1}, {-1, -1}, false, false, false, false, 160},
        {{0, 4}, {-1, -1}, false, false, false, false, 20},
        {{1, 5}, {-1, -1}, false, false, false, false, 80},
        {{0, 1}, {-1, -1}, false, false, false, false, 120},
        {{1, 0}, {-1, -1}, false, false, false, false, 120},
        {{0, -1}, {1, -1}, false, false, false, false, 10 + 40},
        {{0, -1}, {0, 4}, false, false, false, false, 10 + 20},
        {{0, -1}, {0, 1}, false, false, false, false, 10 + 120},
        {{0, -1}, {4, -1}, true, false, false, false, 10 + 40},
        {{0, -1}, {4, -1}, false, true, false, false, 10 + 80},
        {{0, -1}, {4, -1}, false, false, true, false, 10 + 40},
        {{0, -1}, {1, 5}, false, false, true, false, 10 + 160},
    };
    static const struct grt_dataset_target kinds[2] = {{0}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const char *inputs[2], *targets[2];
        uint32_t in = 0, out = 0;
        for (int i = 0; i < 2; i++) {
            if (rows[k].x[i] >= 0) {
                inputs[in++] = names[rows[k].x[i]];
            }
            if (rows[k].y[i] >= 0) {
                targets[out++] = names[rows[k].y[i]];
            }
        }
        struct grt_dataset *data = grt_dataset_open(
            grt_dataset_desc(.path = data_kit_path("forms.h5"), .inputs = inputs, .input_count = in,
                             .targets = targets, .target_count = out, .no_targets = out == 0,
                             .class_targets = rows[k].classes,
                             .weights = rows[k].weights ? "bytes" : NULL,
                             .kinds = rows[k].kinds ? kinds : NULL,
                             .normalise = rows[k].normalise));
        assert_non_null(data);
        if (grt_dataset_info(data).kept_bytes != rows[k].bytes) {
            fail_msg("row %zu: %llu bytes are kept, not %llu", k,
                     (unsigned long long)grt_dataset_info(data).kept_bytes,
                     (unsigned long long)rows[k].bytes);
        }
        grt_dataset_close(&data);
    }
    H5Tclose(half);
}

// Rows of 100 that are mixed at a time: 16 pieces of at least two rows each, unless all are.
static void windows_by_what_is_asked(void **state) {
    (void)state;
    static const uint64_t rows[][2] = {{0, 0},   {1, 32},  {2, 32},  {31, 32}, {32, 32}, {33, 32},
                                       {47, 32}, {48, 48}, {99, 96}, {100, 0}, {101, 0}};
    const char *path = data_kit_path("windows.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {100, 1}});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_dataset *data = grt_dataset_open(
            grt_dataset_desc(.path = path, .no_targets = true, .shuffle_window = rows[i][0]));
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).window_rows, rows[i][1]);
        grt_dataset_close(&data);
    }
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {3, 1}});
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true,
                                                   .shuffle_window = 2, .validation_split = 0.5)),
                 GRT_BAD_DATA,
                 "its 3 rows lie in one piece of a window and cannot be split for validation; give "
                 "a smaller shuffle_window");
    // Of compressed data, chunks that take 64 MiB together, of the tallest array.
    enum { CHUNK = 8 << 20 };
    unsigned char *zeros = calloc(1, CHUNK);
    uLongf length = compressBound(CHUNK);
    unsigned char *packed = test_alloc(length);
    assert_int_equal(compress2(packed, &length, zeros, CHUNK, 1), Z_OK);
    free(zeros);
    path = data_kit_path("chunks.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, (const hsize_t[]){128, 1 << 20}, NULL);
    H5Pset_chunk(creation, 2, (const hsize_t[]){8, 1 << 20});
    H5Pset_deflate(creation, 1);
    hid_t set = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    for (hsize_t row = 0; row < 128; row += 8) {
        assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){row, 0}, length, packed) >= 0);
    }
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(creation);
    H5Fclose(file);
    free(packed);
    data_kit_write(
        path, false,
        &(struct data_kit_set){
            .name = "y", .type = H5T_STD_U8LE, .shape = {128, 1}, .chunk = {20, 1}, .deflate = 1});
    for (int targets = 0; targets < 2; targets++) {
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = targets == 0));
        assert_non_null(data);
        assert_true(grt_dataset_info(data).filtered);
        assert_int_equal(grt_dataset_info(data).window_rows, targets ? 3 * 20 : 8 * 8);
        grt_dataset_close(&data);
    }
}

// Rows of a window come from as many pieces as are asked for, else from 16.
static void windows_of_pieces(void **state) {
    (void)state;
    enum { MANY = 150, PIECE = 3 };
    const char *path = data_kit_path("w.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {MANY, 1}});
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .no_targets = true, .shuffle_window = 16 * PIECE));
    static const uint32_t windows[][2] = {{1, 1}, {2, 2}, {0, 16}, {16, 16}, {99, 50}};
    assert_non_null(data);
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .batch = 5, .shuffle = true, .seed = 1,
                                              .window = windows[i][0]));
        uint32_t rows[MANY], pieces = 0, count = windows[i][1] * PIECE;
        bool seen[MANY / PIECE] = {false};
        assert_true(loader && grt_loader_order(loader, 0, 0, count, rows));
        for (uint32_t k = 0; k < count; k++) {
            pieces += !seen[rows[k] / PIECE];
            seen[rows[k] / PIECE] = true;
        }
        assert_int_equal(pieces, windows[i][1]);
        grt_loader_destroy(&loader);
    }
    grt_dataset_close(&data);
}

// ---- numbers ----

// Means are kept as f32 has them, but of doubles and large whole numbers; each of its own feature.
static void means_of_two_types(void **state) {
    (void)state;
    enum { N = 30, POINTS = 2 };
    double narrow[N][POINTS][2], wide[N][POINTS][1];
    for (int i = 0; i < N; i++) {
        for (int p = 0; p < POINTS; p++) {
            narrow[i][p][0] = i + 0.25 * p;
            narrow[i][p][1] = 1000 + i * i;
            wide[i][p][0] = 1e9 + i / 7.0 + p;
        }
    }
    const char *path = data_kit_path("means.h5");
    data_kit_write(path, true,
                   &(struct data_kit_set){.name = "a", .shape = {N, POINTS, 2}, .data = narrow});
    data_kit_write(path, false,
                   &(struct data_kit_set){
                       .name = "b", .type = H5T_IEEE_F64LE, .shape = {N, POINTS, 1}, .data = wide});
    static const char *const orders[2][2] = {{"a", "b"}, {"b", "a"}};
    for (int k = 0; k < 2; k++) {
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .inputs = orders[k], .input_count = 2,
                                              .no_targets = true, .normalise = true));
        assert_non_null(data);
        struct grt_dataset_info info = grt_dataset_info(data);
        double far = info.mean[k ? 0 : 2], first = info.mean[k], second = info.mean[k + 1];
        // 1e9 + 29/14 + 1/2, 29/2 + 1/8, and 1000 + the mean of squares.
        assert_true(fabs(far - (1e9 + 29.0 / 14 + 0.5)) < 1e-6);
        assert_true(first == (double)(float)(29.0 / 2 + 0.125));
        assert_true(second == (double)(float)(1000 + 29.0 * 59 / 6));
        for (int f = 0; f < 3; f++) {
            assert_true(info.std[f] == (double)(float)info.std[f]);
        }
        grt_dataset_close(&data);
    }
}

// Images that are cut into parts of lines, each number by the mean of its own feature: of a channel
// where all inputs are images of one size, of its own place beside others.
static void parts_of_images(void **state) {
    (void)state;
    enum { N = 11, NUMBERS = 4 * 5 * 3 };
    static const hsize_t chunks[][4] = {{4, 4, 5, 3}, {4, 3, 5, 2}, {11, 2, 2, 3}, {3, 1, 3, 2}};
    static const char *const names[] = {"image", "row"};
    for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++) {
        const char *path = data_kit_path("images.h5");
        struct data_kit_set set = {.name = "image", .shape = {N, 4, 5, 3}};
        memcpy(set.chunk, chunks[k], sizeof set.chunk);
        set.deflate = k % 2 == 1;
        data_kit_write(path, true, &set);
        data_kit_write(path, false, &(struct data_kit_set){.name = "row", .shape = {N, 2}});
        for (uint32_t count = 1; count <= 2; count++) {
            struct grt_dataset *data = grt_dataset_open(
                grt_dataset_desc(.path = path, .inputs = names, .input_count = count,
                                 .no_targets = true, .normalise = true));
            assert_non_null(data);
            struct grt_dataset_info info = grt_dataset_info(data);
            assert_int_equal(info.features, count == 1 ? 3 : NUMBERS + 2);
            assert_int_equal(info.inputs[0].height, 4);
            float *x = data_kit_rows(data, NULL);
            for (uint32_t i = 0; i < N * NUMBERS; i++) {
                uint32_t row = i / NUMBERS, at = i % NUMBERS, f = count == 1 ? at % 3 : at;
                double mean = 0, square = 0, of = 0;
                for (uint32_t j = 0; j < N * NUMBERS; j++) {
                    if (j % (count == 1 ? 3 : NUMBERS) == f) {
                        mean += data_kit_value(j);
                        square += data_kit_value(j) * data_kit_value(j);
                        of++;
                    }
                }
                mean /= of;
                double want = (data_kit_value(i) - mean) / sqrt(square / of - mean * mean);
                assert_true(fabs((double)x[row * info.x_width + at] - want) < 1e-4);
            }
            free(x);
            grt_dataset_close(&data);
        }
    }
}

// Rows that are left out, down to the last one.
static void no_row_is_left(void **state) {
    (void)state;
    double x[3] = {(double)NAN, 1, (double)INFINITY};
    const char *path = data_kit_path("left.h5");
    struct grt_dataset_desc desc = {
        .path = path, .no_targets = true, .on_nan = GRT_NAN_DROP, .validation_split = 0.5};
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {3}, .data = x});
    TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA, "one row cannot be split for validation");
    desc.validation_split = 0;
    struct grt_dataset *data = grt_dataset_open(&desc);
    assert_non_null(data);
    assert_int_equal(grt_dataset_info(data).rows, 1);
    assert_int_equal(grt_dataset_info(data).file_rows, 3);
    grt_dataset_close(&data);
    x[1] = -INFINITY;
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {3}, .data = x});
    TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA,
                 "left.h5: every row has a number that is not finite");
}

static void weights_that_are_none(void **state) {
    (void)state;
    static const struct {
        double weight;
        const char *says;
    } rows[] = {
        {-1, "row 2 of the sample weights is -1; weights are finite, from 0 on"},
        {-1e-30, "row 2 of the sample weights is -1e-30; weights"},
        {(double)NAN, "row 2 of the sample weights is nan; weights"},
        {(double)INFINITY, "row 2 of the sample weights is inf; weights"},
        {1e39, "row 2 of the sample weights is inf; weights"},
        {3.4028234e38, NULL},
        {0, "the sample weights are all 0, so no sample counts"},
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        double w[4] = {0, 0, rows[i / 2].weight, 0};
        const char *path = data_kit_path("w.h5");
        data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {4}});
        data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {4}});
        data_kit_write(
            path, false,
            &(struct data_kit_set){.name = "w", .type = H5T_IEEE_F64LE, .shape = {4}, .data = w});
        // They are looked at late too, and no row is left out for them.
        struct grt_dataset_desc desc = {.path = path,
                                        .weights = "w",
                                        .check_late = i % 2 == 0,
                                        .on_nan = i % 2 ? GRT_NAN_DROP : GRT_NAN_ERROR};
        if (rows[i / 2].says) {
            TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA, rows[i / 2].says);
        } else {
            struct grt_dataset *data = grt_dataset_open(&desc);
            assert_non_null(data);
            grt_dataset_close(&data);
        }
    }
}

// A class, shares and numbers of one row, with its weight: the same words from the file and from
// memory, and the name of the one that is wrong.
static void targets_of_several_kinds(void **state) {
    (void)state;
    enum { N = 9 };
    static const struct grt_dataset_target kinds[] = {{.classes = 5}, {.shares = true}, {0}};
    static const char *const names[] = {"k", "s", "n"};
    for (int wrong = 0; wrong < 6; wrong++) {
        double k[N], s[N][2], n[N], w[N];
        for (int i = 0; i < N; i++) {
            k[i] = i % 5;
            s[i][0] = i / 8.0;
            s[i][1] = i % 2;
            n[i] = 100 * i - 300;
            w[i] = i == 4 ? 3 : 1;  // 2 is the power that brings 3 below 1
        }
        k[3] = wrong == 1 ? 5 : wrong == 2 ? -1 : k[3];
        s[2][1] = wrong == 3 ? 1.5 : wrong == 4 ? -0.5 : s[2][1];
        n[7] = wrong == 5 ? (double)NAN : n[7];
        const char *path = data_kit_path("kinds.h5");
        const struct data_kit_set sets[] = {
            {.name = "x", .shape = {N, 3}},
            {.name = "k", .type = H5T_STD_I16LE, .shape = {N}, .data = k},
            {.name = "s", .shape = {N, 2}, .data = s},
            {.name = "n", .shape = {N}, .data = n},
            {.name = "w", .shape = {N}, .data = w},
        };
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            data_kit_write(path, i == 0, &sets[i]);
        }
        static const char *const says[] = {
            NULL,
            "row 3 of 'k' has class 5; classes are 0 to 4: cross_entropy(N) says how many",
            "row 3 of 'k' has class -1; classes are 0 to 4: number classes from 0, or learn",
            "row 2 of the targets 's' has 1.5 (column 1); bce wants 0 to 1",
            "row 2 of the targets 's' has -0.5 (column 1); bce wants 0 to 1",
            "row 7 of the targets is not finite (column 3 is nan)",
        };
        struct grt_dataset *data = grt_dataset_open(
            grt_dataset_desc(.path = path, .targets = names, .target_count = 3, .kinds = kinds,
                             .weights = wrong ? NULL : "w", .check_late = true));
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).classes, 0);
        for (int way = 0; way < 3; way++) {
            const struct grt_loader_desc desc = {.data = data,
                                                 .part = GRT_PART_ALL,
                                                 .batch = N,
                                                 .shuffle = way == 2,
                                                 .cache = way == 1 ? GRT_CACHE_RAM : 0};
            if (wrong && way == 1) {
                TEST_REFUSED(grt_loader_create(&desc), GRT_BAD_DATA, says[wrong]);
                continue;
            }
            struct grt_loader *loader = grt_loader_create(&desc);
            struct grt_batch batch = {0};
            uint32_t rows[N];
            assert_non_null(loader);
            if (wrong) {
                TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, says[wrong]);
                grt_loader_destroy(&loader);
                continue;
            }
            assert_true(grt_loader_next(loader, &batch) && grt_loader_order(loader, 0, 0, N, rows));
            for (int i = 0; i < N; i++) {
                const uint32_t *words = (const uint32_t *)batch.y + (size_t)i * 5;
                uint32_t row = rows[i];
                assert_int_equal(words[0], row % 5);
                assert_true((double)test_as_f32(words[1]) == s[row][0] &&
                            (double)test_as_f32(words[2]) == s[row][1] &&
                            (double)test_as_f32(words[3]) == n[row] &&
                            (double)test_as_f32(words[4]) == w[row] / 4);
            }
            grt_loader_destroy(&loader);
        }
        grt_dataset_close(&data);
    }
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(descs),
    DATA_CASE(widths_of_rows),
    DATA_CASE(kinds_of_targets),
    DATA_CASE(forms_of_kept_rows),
    DATA_CASE(windows_by_what_is_asked),
    DATA_CASE(windows_of_pieces),
    DATA_CASE(means_of_two_types),
    DATA_CASE(parts_of_images),
    DATA_CASE(no_row_is_left),
    DATA_CASE(weights_that_are_none),
    DATA_CASE(targets_of_several_kinds),
};
TEST_SUITE(sets, false, cases);
