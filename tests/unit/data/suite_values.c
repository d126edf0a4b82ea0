// SPDX-License-Identifier: Apache-2.0
// Numbers of data sets that cannot be taken: no classes, no shares, not finite, too close for f32.
// Each is refused with its row, or its row is left out.
#include "kits/data_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/file/element.h"
#include "gpurt/make.h"

static void classes_are_whole_numbers(void **state) {
    (void)state;
    const hid_t types[] = {H5T_STD_U8LE, H5T_STD_I32BE, H5T_STD_I64LE};
    double labels[30];
    for (int i = 0; i < 30; i++) {
        labels[i] = i * 7 % 11;
    }
    for (int t = 0; t < 3; t++) {
        const char *path = data_kit_path("classes.h5");
        data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {30, 2}});
        data_kit_write(path, false,
                       &(struct data_kit_set){
                           .name = "y", .type = types[t], .shape = {30, 1}, .data = labels});
        for (uint32_t told = 0; told <= 11; told += 11) {
            struct grt_dataset *data = grt_dataset_open(
                grt_dataset_desc(.path = path, .class_targets = true, .classes = told));
            assert_non_null(data);
            assert_int_equal(grt_dataset_info(data).classes, 11);
            void *y;
            free(data_kit_rows(data, &y));
            for (int i = 0; i < 30; i++) {
                assert_int_equal(((uint32_t *)y)[i], i * 7 % 11);
            }
            free(y);
            grt_dataset_close(&data);
        }
        // A number that is no class is found before the device would use it as an index.
        TEST_REFUSED(
            grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = true, .classes = 10)),
            GRT_BAD_DATA, "row 3 of 'y' has class 10; classes are 0 to 9");
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = true, .classes = 10,
                                              .check_late = true));
        assert_non_null(data);
        struct grt_loader *loader = data_kit_load(data, 30);
        struct grt_batch batch;
        TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "row 3 of 'y' has class 10");
        TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "row 3 of 'y' has class 10");
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
    }
    // What is no class whatever their number, and what one of ten is not.
    static const struct {
        double label;
        const char *says;
    } wrong[] = {{-1,
                  "row 5 of 'y' has class -1; classes are 0 to 16777215: number classes from 0, "
                  "or `gpurt train supervised` with loss=mse learns numbers"},
                 {1 << 24, "row 5 of 'y' has class 16777216; classes are 0 to 16777215: number "
                           "classes from 0, or `gpurt train"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        labels[5] = wrong[i].label;
        const char *path = data_kit_path("negative.h5");
        data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {30, 2}});
        data_kit_write(path, false,
                       &(struct data_kit_set){
                           .name = "y", .type = H5T_STD_I32LE, .shape = {30}, .data = labels});
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = true)),
                     GRT_BAD_DATA, wrong[i].says);
    }
}

// 200 rows of 3, some of them not finite; y one column, row 150 not finite.
static const char *nan_file(const char *name, int deflate) {
    const char *path = data_kit_path(name);
    double x[600], y[200];
    for (int i = 0; i < 600; i++) {
        x[i] = data_kit_value((uint64_t)i);
    }
    for (int i = 0; i < 200; i++) {
        y[i] = i;
    }
    x[3 * 4 + 1] = NAN;
    x[3 * 60] = INFINITY;
    x[3 * 199 + 2] = 1e300;  // beyond f32
    y[150] = -INFINITY;
    struct data_kit_set set = {
        .name = "x", .type = H5T_IEEE_F64LE, .shape = {200, 3}, .deflate = deflate, .data = x};
    set.chunk[0] = deflate ? 32 : 0;
    set.chunk[1] = 3;
    data_kit_write(path, true, &set);
    data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {200}, .data = y});
    return path;
}

// The largest class of every type of whole numbers, which is found in the file or told; one below 0
// is none.
static void classes_of_every_type(void **state) {
    (void)state;
    const struct {
        hid_t type;
        int32_t most;
        bool below;
    } types[] = {
        {H5T_STD_I8LE, 127, true},     {H5T_STD_U8LE, 255, false},    {H5T_STD_I16LE, 32767, true},
        {H5T_STD_U16LE, 65535, false}, {H5T_STD_U16BE, 65535, false}, {H5T_STD_I32LE, 70000, true},
        {H5T_STD_U32LE, 70000, false}, {H5T_STD_I64BE, 70000, true},
    };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        double labels[4] = {3, types[t].most, 2, types[t].most - 1};
        struct data_kit_set y = {.name = "y", .type = types[t].type, .shape = {4}, .data = labels};
        const char *path = data_kit_path("most.h5");
        data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {4, 2}});
        data_kit_write(path, false, &y);
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = true));
        void *got;
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).classes, types[t].most + 1);
        assert_int_equal(grt_dataset_info(data).least_class, 2);
        free(data_kit_rows(data, &got));
        for (int i = 0; i < 4; i++) {
            assert_int_equal(((const uint32_t *)got)[i], (uint32_t)labels[i]);
        }
        free(got);
        grt_dataset_close(&data);
        if (types[t].below) {
            labels[2] = -1;
            data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {4, 2}});
            data_kit_write(path, false, &y);
            TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = true)),
                         GRT_BAD_DATA, "row 2 of 'y' has class -1");
        }
    }
}

static void rows_that_are_not_finite(void **state) {
    (void)state;
    for (int deflate = 0; deflate < 2; deflate++) {
        const char *path = nan_file("nan.h5", deflate);
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path)), GRT_BAD_DATA,
                     "row 4 of the inputs is not finite (column 1 is nan)");
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .check_late = true));
        assert_non_null(data);
        struct grt_loader *loader = data_kit_load(data, 8);
        struct grt_batch batch;
        TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "row 4 of the inputs");
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .normalise = true)),
                     GRT_BAD_DATA, "row 4 of the inputs");

        data = grt_dataset_open(grt_dataset_desc(.path = path, .on_nan = GRT_NAN_DROP));
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).file_rows, 200);
        assert_int_equal(grt_dataset_info(data).rows, 196);
        void *y;
        free(data_kit_rows(data, &y));
        for (int i = 0, row = 0; i < 196; i++, row++) {
            row += row == 4 || row == 60 || row == 150;
            assert_true(((float *)y)[i] == (float)row);
        }
        free(y);
        grt_dataset_close(&data);
    }
}

static bool both_batches(struct grt_loader *loader) {
    struct grt_batch batch;
    for (int i = 0; i < 2; i++) {
        if (!grt_loader_next(loader, &batch)) {
            return false;
        }
        grt_loader_release(loader, &batch);
    }
    return true;
}

// Files that nobody has looked at: whoever reads a row finds what is wrong in it, be it read in
// order or far apart, whatever its width, wherever it stands.
static void late_rows_that_are_not_finite(void **state) {
    (void)state;
    enum { ROWS = 64, MOST = 37 };
    static double x[ROWS * MOST], y[ROWS * MOST];
    static const int widths[] = {1, 3, 16, MOST};
    const double values[] = {NAN, INFINITY, -INFINITY};
    for (int trial = 0; trial < 96; trial++) {
        int width = widths[trial % 4], deflate = trial / 4 % 2, shuffle = trial / 8 % 2;
        bool target = trial / 16 % 2;
        uint64_t row = (uint64_t)(trial * 29 % ROWS);
        int column = trial % 3 == 0 ? width - 1 : trial * 5 % width;
        for (int i = 0; i < ROWS * MOST; i++) {
            x[i] = y[i] = data_kit_value((uint64_t)i);
        }
        (target ? y : x)[row * (uint64_t)width + (uint64_t)column] = values[trial / 32];
        const char *path = data_kit_path("late.h5");
        struct data_kit_set set = {
            .name = "x", .shape = {ROWS, (hsize_t)width}, .deflate = deflate, .data = x};
        set.chunk[0] = deflate ? 9 : 0;
        set.chunk[1] = (hsize_t)width;
        data_kit_write(path, true, &set);
        set.name = "y";
        set.data = y;
        data_kit_write(path, false, &set);
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .check_late = true));
        assert_non_null(data);
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .part = GRT_PART_ALL, .batch = ROWS / 2,
                                              .shuffle = shuffle > 0));
        assert_non_null(loader);
        char text[96];
        snprintf(text, sizeof text, "row %llu of the %s is not finite (column %d",
                 (unsigned long long)row, target ? "targets" : "inputs", column);
        TEST_REFUSED(both_batches(loader), GRT_BAD_DATA, text);
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
    }
}

// Numbers that f32 cannot tell apart are said, with how many of how many: three steps of 64 hold
// all of one column, the others are apart.
static void numbers_too_close_for_f32(void **state) {
    (void)state;
    double x[120];
    for (int i = 0; i < 40; i++) {
        x[3 * i] = x[3 * i + 2] = i;
        x[3 * i + 1] = 1e9 + 3.0 * i;
    }
    const char *path = data_kit_path("close.h5");
    data_kit_write(
        path, true,
        &(struct data_kit_set){.name = "x", .type = H5T_IEEE_F64LE, .shape = {40, 3}, .data = x});
    test_log.quiet = true;
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
    test_log.quiet = false;
    assert_non_null(data);
    assert_non_null(strstr(test_log.newest,
                           "f32 tells 3 of 40 values apart in input column 1 (by a sample of rows; "
                           "such columns: 1)"));
    grt_dataset_close(&data);
    // One far from all others, which a deviation does not help against.
    for (int i = 0; i < 120; i++) {
        x[i] = i == 60 ? 1e15 : i * 1e-6;
    }
    data_kit_write(
        path, true,
        &(struct data_kit_set){.name = "x", .type = H5T_IEEE_F64LE, .shape = {40, 3}, .data = x});
    test_log.quiet = true;
    data = grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true, .normalise = true));
    test_log.quiet = false;
    assert_non_null(data);
    assert_non_null(
        strstr(test_log.newest, "a few values lie far from the others: take those out"));
    grt_dataset_close(&data);
    // Rows that are more numbers than a sample has.
    data_kit_write(
        path, true,
        &(struct data_kit_set){.name = "x", .type = H5T_IEEE_F64LE, .shape = {2, 20000}});
    data = grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
    assert_non_null(data);
    grt_dataset_close(&data);
}

// Which columns are told of: those of which fewer than half of the values stay apart, inputs as
// targets; weights of samples, which nobody learns, never.
static void which_numbers_are_too_close(void **state) {
    (void)state;
    enum { N = 40 };
    static const struct {
        int apart;          // values that f32 tells apart
        bool target, fits;  // the column is a target; nothing is told
        const char *told;
    } trials[] = {
        {20, false, true, NULL},
        {19, false, false,
         "f32 tells 19 of 40 values apart in input column 1 (by a sample of rows; "
         "such columns: 1); normalize: true keeps them apart"},
        {20, true, true, NULL},
        {19, true, false,
         "f32 tells 19 of 40 values apart in target column 1 (by a sample of "
         "rows; such columns: 2); subtract an offset from it in the file"},
    };
    for (size_t k = 0; k < sizeof trials / sizeof *trials; k++) {
        double x[N][2], y[N][3], w[N];
        for (int i = 0; i < N; i++) {
            // Steps of f32 are 64 there; the values within one differ by 1.
            int step = i < trials[k].apart ? i : trials[k].apart - 1;
            double close = 1e9 + 64.0 * step + (i - step);
            x[i][0] = y[i][0] = i;
            x[i][1] = trials[k].target ? i : close;
            y[i][1] = y[i][2] = trials[k].target ? close : i;
            w[i] = 1e9 + i;
        }
        const char *path = data_kit_path("half.h5");
        struct data_kit_set set = {.name = "x", .type = H5T_IEEE_F64LE, .shape = {N, 2}, .data = x};
        data_kit_write(path, true, &set);
        set =
            (struct data_kit_set){.name = "y", .type = H5T_IEEE_F64LE, .shape = {N, 3}, .data = y};
        data_kit_write(path, false, &set);
        set = (struct data_kit_set){.name = "w", .type = H5T_IEEE_F64LE, .shape = {N}, .data = w};
        data_kit_write(path, false, &set);
        uint32_t before = test_log.lines[GRT_LOG_WARN];
        test_log.quiet = true;
        struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path, .weights = "w"));
        test_log.quiet = false;
        assert_non_null(data);
        assert_int_equal(test_log.lines[GRT_LOG_WARN] - before, !trials[k].fits);
        assert_true(trials[k].fits || strstr(test_log.newest, trials[k].told));
        grt_dataset_close(&data);
    }
}

static void targets_that_are_no_shares(void **state) {
    (void)state;
    const char *path = data_kit_path("shares.h5");
    assert_true(grt_data_make(grt_make_desc(.path = path, .samples = 64, .features = 2)));
    float *y = data_kit_read(path, "y");
    uint64_t bad = 0;
    while (y[bad] >= 0 && y[bad] <= 1) {
        assert_true(++bad < 64);
    }
    free(y);
    char row[64];
    snprintf(row, sizeof row, "row %llu of the targets", (unsigned long long)bad);
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .share_targets = true)),
                 GRT_BAD_DATA, row);
    for (int shares = 0; shares < 2; shares++) {
        struct grt_dataset *data = grt_dataset_open(
            grt_dataset_desc(.path = path, .share_targets = shares > 0, .check_late = true));
        assert_non_null(data);
        struct grt_loader *loader = data_kit_load(data, 64);
        struct grt_batch batch;
        if (shares) {
            TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, row);
        } else {
            assert_true(grt_loader_next(loader, &batch));
        }
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
    }
    assert_true(grt_data_make(grt_make_desc(.path = path, .samples = 1, .features = 2)));
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .validation_split = 0.1)),
                 GRT_BAD_DATA, "one row cannot be split");
}

// A number that is no share is found by its row and column, whatever type it has, before training
// or by who reads it, from the file or on its way to memory.
static void shares_of_every_type(void **state) {
    (void)state;
    enum { ROWS = 6, WIDTH = 3 };
    hid_t half = data_kit_half(false);
    const hid_t types[] = {H5T_IEEE_F32LE, H5T_STD_U8LE, half, H5T_STD_I32LE};
    for (int trial = 0; trial < 16; trial++) {
        bool late = trial % 2 > 0, ram = trial / 2 % 2 > 0;
        double y[ROWS * WIDTH];
        for (int i = 0; i < ROWS * WIDTH; i++) {
            y[i] = i % 2;
        }
        y[4 * WIDTH + 1] = 3;
        const char *path = data_kit_path("shares.h5");
        data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {ROWS, 2}});
        data_kit_write(
            path, false,
            &(struct data_kit_set){
                .name = "y", .type = types[trial / 4], .shape = {ROWS, WIDTH}, .data = y});
        static const char *const told = "row 4 of the targets has 3 (column 1); bce wants 0 to 1";
        struct grt_dataset_desc desc = {.path = path, .share_targets = true, .check_late = late};
        if (!late) {
            TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA, told);
            continue;
        }
        struct grt_dataset *data = grt_dataset_open(&desc);
        assert_non_null(data);
        const struct grt_loader_desc load = {
            .data = data, .part = GRT_PART_ALL, .batch = ROWS, .cache = ram ? GRT_CACHE_RAM : 0};
        if (ram) {
            TEST_REFUSED(grt_loader_create(&load), GRT_BAD_DATA, told);
        } else {
            struct grt_loader *loader = grt_loader_create(&load);
            struct grt_batch batch;
            assert_non_null(loader);
            TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, told);
            grt_loader_destroy(&loader);
        }
        grt_dataset_close(&data);
    }
    H5Tclose(half);
}

// Rows of a step, or of a validation, that other ranks have are not finite: who reads its own
// alone does not notice.
static void rows_of_other_ranks(void **state) {
    (void)state;
    enum { ROWS = 61, WIDTH = 3, BATCH = 4 };
    static const struct grt_loader_share shares[] = {
        {0, 2, 4}, {2, 2, 4}, {1, 1, 4}, {0, 8, 16}, {8, 8, 16}};
    static double x[ROWS * WIDTH], y[ROWS];
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
        struct grt_loader_share own = shares[k], other = own;
        other.first = own.first > 0 ? 0 : own.count;
        uint32_t owned = 0, seen = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            uint32_t place = i / BATCH % own.of;
            bool mine = place >= own.first && place < own.first + own.count;
            owned += mine;
            y[i] = mine ? (double)i : NAN;
            for (uint32_t c = 0; c < WIDTH; c++) {
                x[i * WIDTH + c] = mine ? (double)(i * WIDTH + c) : NAN;
            }
        }
        const char *path = data_kit_path("own.h5");
        data_kit_write(path, true,
                       &(struct data_kit_set){.name = "x", .shape = {ROWS, WIDTH}, .data = x});
        data_kit_write(path, false,
                       &(struct data_kit_set){.name = "y", .shape = {ROWS, 1}, .data = y});
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .check_late = true));
        assert_non_null(data);
        struct grt_loader_desc desc = {
            .data = data, .part = GRT_PART_ALL, .batch = BATCH, .workers = 2, .share = own};
        struct grt_loader *loader = grt_loader_create(&desc);
        assert_non_null(loader);
        uint64_t batches = grt_loader_info(loader).batches_per_epoch;
        for (uint64_t b = 0; b < 2 * batches; b++) {
            struct grt_batch batch;
            assert_true(grt_loader_next(loader, &batch));
            for (uint32_t i = 0; i < batch.rows; i++) {
                uint32_t row = (uint32_t)((const float *)batch.y)[i];
                assert_true(batch.x[i * WIDTH + 2] == (float)(row * WIDTH + 2));
                seen++;
            }
            grt_loader_release(loader, &batch);
        }
        assert_int_equal(seen, 2 * owned);
        grt_loader_destroy(&loader);
        desc.share = other;
        desc.workers = 0;
        loader = grt_loader_create(&desc);
        struct grt_batch batch;
        TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "is not finite");
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
    }
}

// Weights count by their shares of a sum: a power of two brings the largest below 1, from far above
// as from far below, and changes no share.
static void weights_of_any_unit(void **state) {
    (void)state;
    static const double weights[] = {1.5, 6, 0, 4, 0.75};
    static const struct {
        double unit, scaled;
    } units[] = {{1, 0.125}, {0x1p100, 0x1p-103}, {0x1p-100, 0x1p97}, {0x1p-3, 1}};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        const char *path = data_kit_path("weights.h5");
        double w[5];
        for (int i = 0; i < 5; i++) {
            w[i] = weights[i] * units[u].unit;
        }
        data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {5, 2}});
        data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {5}});
        data_kit_write(path, false, &(struct data_kit_set){.name = "w", .shape = {5}, .data = w});
        struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path, .weights = "w"));
        void *y;
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).y_width, 2);
        free(data_kit_rows(data, &y));
        for (int i = 0; i < 5; i++) {
            assert_true((double)((const float *)y)[2 * i] == data_kit_value((uint64_t)i));
            assert_true((double)((const float *)y)[2 * i + 1] == w[i] * units[u].scaled);
        }
        free(y);
        grt_dataset_close(&data);
    }
}

// Rows of every width from 1 to 80 numbers, where lines of a cache begin and elsewhere: the same
// bytes, not one more, and the one number that is not finite is found wherever it is.
static void copies_find_what_is_not_finite(void **state) {
    (void)state;
    enum { MOST = 80 };
    _Alignas(64) uint32_t to[MOST + 32];
    uint32_t from[MOST + 1];
    static const uint32_t odd[] = {0x7f800000u, 0xff800000u, 0x7fc00001u, 0xffffffffu};
    for (uint32_t count = 1; count <= MOST; count++) {
        for (uint32_t bad = 0; bad <= count; bad++) {  // the last time none
            uint32_t shift = bad % 2 == 0 ? 0 : 3, *out = to + shift;
            for (uint32_t i = 0; i < count; i++) {
                from[1 + i] = i == bad ? odd[(bad + count) % 4] : 0xff7fffffu - 77 * i;
            }
            memset(to, 0xa5, sizeof to);
            assert_int_equal(grt_copy_finite(out, from + 1, count), bad == count);
            grt_copies_seen();
            assert_memory_equal(out, from + 1, count * 4);
            for (uint32_t i = 0; i < MOST + 32; i++) {
                assert_true((i >= shift && i < shift + count) || to[i] == 0xa5a5a5a5u);
            }
        }
    }
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(classes_are_whole_numbers),
    DATA_CASE(rows_that_are_not_finite),
    DATA_CASE(late_rows_that_are_not_finite),
    DATA_CASE(numbers_too_close_for_f32),
    DATA_CASE(targets_that_are_no_shares),
    DATA_CASE(rows_of_other_ranks),
    DATA_CASE(weights_of_any_unit),
    DATA_CASE(which_numbers_are_too_close),
    DATA_CASE(classes_of_every_type),
    DATA_CASE(shares_of_every_type),
    DATA_CASE(copies_find_what_is_not_finite),
};
TEST_SUITE(values, false, cases);
