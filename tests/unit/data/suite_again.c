// SPDX-License-Identifier: Apache-2.0
// Data sets a second time: what is remembered of a file and what is not, rows kept in memory again,
// digests again, batches behind a bad row; and samples of rows that are said to be too close.
#include "kits/cache_kit.h"
#include "kits/data_kit.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int begin(void **state) {
    return kit_cache_begin(state) || data_kit_begin(state);
}

static int end(void **state) {
    return data_kit_end(state) || kit_cache_end(state);
}

#define AGAIN_CASE(function)                                                                       \
    { #function, function, begin, end, NULL }

// One number of a set of floats, changed behind everyone's back: same size, same time.
static void change(const char *path, const char *name, uint64_t at, float value) {
    struct stat before;
    assert_int_equal(stat(path, &before), 0);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT),
          set = H5Dopen2(file, name, H5P_DEFAULT);
    haddr_t offset = H5Dget_offset(set) + at * sizeof value;
    H5Dclose(set);
    H5Fclose(file);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pwrite(fd, &value, sizeof value, (off_t)offset) == sizeof value);
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

// From 1 MiB on a file's answers are kept: whether targets are shares, and the largest weight. Of a
// smaller one nothing is.
static void what_is_remembered(void **state) {
    (void)state;
    enum { MOST = 1 << 20, ROWS = 4 };
    for (int large = 0; large < 2; large++) {
        for (int kind = 0; kind < 3; kind++) {
            char name[16];
            snprintf(name, sizeof name, "r%d.h5", 3 * large + kind);
            const char *path = data_kit_path(name);
            double y[ROWS] = {0.75, 0.5, 1, 0};
            // u8, so that nobody looks at them: what is looked at is y.
            data_kit_write(path, true,
                           &(struct data_kit_set){.name = "x",
                                                  .type = H5T_STD_U8LE,
                                                  .shape = {ROWS, large ? MOST / ROWS : 100}});
            data_kit_write(path, false,
                           &(struct data_kit_set){.name = "y", .shape = {ROWS}, .data = y});
            struct stat info;
            assert_int_equal(stat(path, &info), 0);
            assert_int_equal(info.st_size >= MOST, large);
            static const char *const x[] = {"x"};
            struct grt_dataset_desc desc = {.path = path,
                                            .share_targets = kind == 1,
                                            .weights = kind == 2 ? "y" : NULL,
                                            .targets = x,
                                            .target_count = kind == 2};
            struct grt_dataset *data = grt_dataset_open(&desc);
            assert_non_null(data);
            grt_dataset_close(&data);
            change(path, "y", 0, kind == 0 ? NAN : kind == 1 ? 7 : 6);
            if (kind < 2 && !large) {
                TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA,
                             kind ? "row 0 of the targets has 7 (column 0)"
                                  : "row 0 of the targets is not finite");
                continue;
            }
            data = grt_dataset_open(&desc);
            assert_non_null(data);
            if (kind == 2) {
                // 1 was the largest, which is half of 2; 6 is three quarters of 8.
                struct grt_loader *loader = data_kit_load(data, ROWS);
                struct grt_batch batch = {0};
                assert_true(grt_loader_next(loader, &batch));
                uint64_t width = grt_dataset_info(data).y_width;
                assert_true(((const float *)batch.y)[width - 1] == (large ? 3 : 0.75f));
                assert_true(((const float *)batch.y)[2 * width - 1] == (large ? 0.25f : 0.0625f));
                grt_loader_destroy(&loader);
            }
            grt_dataset_close(&data);
        }
    }
}

// ---- digests ----

static bool digest_of(const char *path, uint64_t *digest) {
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path, .check_late = true));
    uint64_t again = 0;
    assert_non_null(data);
    bool good = grt_dataset_digest(data, digest) && grt_dataset_digest(data, &again);
    assert_true(!good || *digest == again);
    grt_dataset_close(&data);
    return good;
}

// Of 4096 rows every one is in a digest, of one more 256 are: rows 0, 16, 32, ... to the last. So
// are targets, types, shapes and the number of rows; and rows that cannot be read have none.
static void rows_of_a_digest(void **state) {
    (void)state;
    enum { MOST = 4097 };
    static double x[MOST], y[MOST];
    static const struct {
        uint32_t rows, changed;
        bool target, seen;
    } trials[] = {
        {4096, 0, false, true},   {4096, 1, false, true},   {4096, 4095, false, true},
        {4096, 2049, true, true}, {4097, 0, false, true},   {4097, 1, false, false},
        {4097, 16, false, true},  {4097, 4096, true, true}, {4097, 4095, true, false},
    };
    for (size_t k = 0; k < sizeof trials / sizeof *trials; k++) {
        uint64_t digests[2];
        for (int i = 0; i < 2; i++) {
            for (uint32_t row = 0; row < MOST; row++) {
                x[row] = y[row] = row;
            }
            (trials[k].target ? y : x)[trials[k].changed] += i;
            const char *path = data_kit_path("g.h5");
            data_kit_write(
                path, true,
                &(struct data_kit_set){.name = "x", .shape = {trials[k].rows, 1}, .data = x});
            data_kit_write(
                path, false,
                &(struct data_kit_set){.name = "y", .shape = {trials[k].rows, 1}, .data = y});
            assert_true(digest_of(path, &digests[i]));
        }
        assert_int_equal(digests[0] != digests[1], trials[k].seen);
    }
    // The same zeros in other shapes and types.
    static const struct {
        hid_t *type;
        hsize_t shape[4];
    } zeros[] = {
        {&H5T_IEEE_F32LE_g, {6}},   {&H5T_IEEE_F32LE_g, {6, 2}}, {&H5T_IEEE_F32LE_g, {6, 2, 1}},
        {&H5T_STD_I32LE_g, {6, 2}}, {&H5T_IEEE_F32LE_g, {6, 3}}, {&H5T_STD_U32LE_g, {6, 2}},
    };
    enum { COUNT = sizeof zeros / sizeof *zeros };
    uint64_t digests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        static const double nothing[18];
        struct data_kit_set set = {.name = "x", .type = *zeros[i].type, .data = nothing};
        memcpy(set.shape, zeros[i].shape, sizeof set.shape);
        data_kit_write(data_kit_path("z.h5"), true, &set);
        set = (struct data_kit_set){.name = "y", .shape = {6}};
        data_kit_write(data_kit_path("z.h5"), false, &set);
        assert_true(digest_of(data_kit_path("z.h5"), &digests[i]));
        for (int other = 0; other < i; other++) {
            assert_true(digests[i] != digests[other]);
        }
    }
    const char *path = data_kit_path("cut.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "y", .shape = {4}});
    data_kit_write(path, false, &(struct data_kit_set){.name = "x", .shape = {4000, 2}});
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
    uint64_t digest = 5;
    assert_non_null(data);
    assert_int_equal(truncate(path, 10000), 0);
    TEST_REFUSED(grt_dataset_digest(data, &digest), GRT_BAD_DATA, "cut.h5: the file ends at byte");
    assert_int_equal(digest, 0);
    grt_dataset_close(&data);
}

// ---- rows in memory ----

// Rows left out at the edges of what a thread reads at once, first, last and side by side: from
// memory come the same numbers as from the file.
static void rows_left_out_of_memory(void **state) {
    (void)state;
    enum { ROWS = 12300 };
    static double x[ROWS];
    static const uint32_t bad[] = {0, 1, 4094, 4095, 4096, 8191, 8193, ROWS - 1};
    enum { LEFT = ROWS - sizeof bad / sizeof *bad };
    for (uint32_t i = 0; i < ROWS; i++) {
        x[i] = i;
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        x[bad[i]] = NAN;
    }
    const char *path = data_kit_path("m.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {ROWS, 1}, .data = x});
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .no_targets = true, .on_nan = GRT_NAN_DROP));
    assert_non_null(data);
    for (uint32_t workers = 0; workers < 4; workers += 3) {
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .part = GRT_PART_ALL, .batch = LEFT,
                                              .cache = GRT_CACHE_RAM, .workers = workers));
        struct grt_batch batch = {0};
        assert_true(loader && grt_loader_next(loader, &batch));
        assert_int_equal(batch.rows, LEFT);
        for (uint32_t i = 0, row = 0; i < LEFT; i++, row++) {
            while (isnan(x[row])) {
                row++;
            }
            assert_true(batch.x[i] == (float)row);
        }
        grt_loader_destroy(&loader);
    }
    uint32_t rows[sizeof bad / sizeof *bad] = {0};
    struct grt_loader *loader = data_kit_load(data, 5);
    assert_int_equal(grt_loader_dropped(loader, NULL), sizeof bad / sizeof *bad);
    assert_int_equal(grt_loader_dropped(loader, rows), sizeof bad / sizeof *bad);
    assert_memory_equal(rows, bad, sizeof bad);
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
}

// Numbers of two bytes that stay so in memory are looked at on their way there, each by its row and
// column, inputs and targets.
static void halves_on_their_way(void **state) {
    (void)state;
    enum { ROWS = 20, WIDTH = 3 };
    hid_t half = data_kit_half(false);
    for (int target = 0; target < 2; target++) {
        double x[ROWS * WIDTH];
        for (int i = 0; i < ROWS * WIDTH; i++) {
            x[i] = i;
        }
        x[13 * WIDTH + 2] = INFINITY;
        const char *path = data_kit_path("h.h5");
        data_kit_write(
            path, true,
            &(struct data_kit_set){
                .name = target ? "y" : "x", .type = half, .shape = {ROWS, WIDTH}, .data = x});
        data_kit_write(path, false,
                       &(struct data_kit_set){
                           .name = target ? "x" : "y", .type = half, .shape = {ROWS, WIDTH}});
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .check_late = true));
        assert_non_null(data);
        TEST_REFUSED(
            grt_loader_create(grt_loader_desc(.data = data, .batch = 5, .cache = GRT_CACHE_RAM)),
            GRT_BAD_DATA,
            target ? "h.h5: row 13 of the targets is not finite (column 2 is inf)"
                   : "h.h5: row 13 of the inputs is not finite (column 2 is inf)");
        grt_dataset_close(&data);
    }
    H5Tclose(half);
}

// When nobody uses them any more rows are given up: who wants them then reads the file again, and
// is told what is wrong with it now, as often as it asks.
static void rows_are_read_again(void **state) {
    (void)state;
    const char *path = data_kit_path("a.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {5000, 3}});
    struct grt_dataset *data = data_kit_open_x(path);
    assert_non_null(data);
    const struct grt_loader_desc desc = {.data = data, .batch = 9, .cache = GRT_CACHE_RAM};
    struct grt_loader *first = grt_loader_create(&desc), *second = grt_loader_create(&desc);
    assert_true(first && second);
    grt_loader_destroy(&first);
    assert_int_equal(truncate(path, 5000), 0);
    first = grt_loader_create(&desc);  // the second still has them
    struct grt_batch batch = {0};
    assert_true(first && grt_loader_next(first, &batch));
    assert_true((double)batch.x[26] == data_kit_value(26));
    grt_loader_destroy(&first);
    grt_loader_destroy(&second);
    for (int i = 0; i < 2; i++) {
        TEST_REFUSED(grt_loader_create(&desc), GRT_BAD_DATA, "a.h5: the file ends at byte 5000");
    }
    grt_dataset_close(&data);
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {5000, 3}});
    data = data_kit_open_x(path);
    char why[GRT_CACHE_WHY] = "before";
    assert_true(grt_cache_fits(data, NULL, GRT_CACHE_NONE, why));
    assert_string_equal(why, "");
    memcpy(why, "before", 7);
    assert_true(grt_cache_fits(data, NULL, GRT_CACHE_RAM, why));
    assert_string_equal(why, "");
    grt_dataset_close(&data);
}

// ---- numbers too close for f32 ----

// Of many rows 32 runs of 64 are a sample. Values that come again in every run are many for each of
// them, and few for the whole: the worse counts. Rows that are left out are in no run.
static void runs_of_a_sample(void **state) {
    (void)state;
    enum { RUNS = 32, RUN = 64, STEP = 100, ROWS = RUNS * STEP };
    static double x[ROWS][2];
    for (int dropped = 0; dropped < 2; dropped++) {
        for (int i = 0; i < ROWS; i++) {
            int run = i / STEP, at = i % STEP;
            // Far apart between the runs, and in the last one; else all in one step of f32.
            x[i][0] = at >= RUN || run == RUNS - 1 ? 4096.0 * i : 1e9 + at / 2.0;
            x[i][1] = i;
        }
        for (int i = 0; dropped && i < 5; i++) {
            x[(RUNS - 1) * STEP + 10 * i][1] = NAN;
        }
        const char *path = data_kit_path("runs.h5");
        data_kit_write(path, true,
                       &(struct data_kit_set){
                           .name = "x", .type = H5T_IEEE_F64LE, .shape = {ROWS, 2}, .data = x});
        uint32_t warnings = test_log.lines[GRT_LOG_WARN];
        test_log.quiet = true;
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true,
                                              .on_nan = dropped ? GRT_NAN_DROP : GRT_NAN_ERROR));
        test_log.quiet = false;
        assert_non_null(data);
        assert_int_equal(test_log.lines[GRT_LOG_WARN] - warnings, 1);
        test_log.lines[GRT_LOG_WARN] = warnings;
        // 31 runs of one value each and one of 64, of 64 each. With 59 in the last run, the whole:
        // these and one, of these and 64.
        assert_non_null(strstr(test_log.newest,
                               dropped ? "f32 tells 60 of 123 values apart in input column 0"
                                       : "f32 tells 95 of 2048 values apart in input column 0"));
        grt_dataset_close(&data);
    }
}

// A row that cannot be used ends its batch alone: elsewhere the same places hold good ones.
static void a_bad_row_ends_its_batch_alone(void **state) {
    (void)state;
    enum { ROWS = 500, WIDTH = 5, BATCH = 50 };
    const char *path = data_kit_path("bad.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {ROWS, WIDTH}});
    struct grt_dataset *data = data_kit_open_x(path);
    assert_non_null(data);
    float *want = data_kit_rows(data, NULL);
    change(path, "x", 130 * WIDTH + 2, NAN);
    for (uint32_t workers = 0; workers < 3; workers++) {
        struct grt_loader *loader = grt_loader_create(
            grt_loader_desc(.data = data, .batch = BATCH, .workers = workers, .prefetch = 1));
        assert_non_null(loader);
        struct grt_batch batch;
        for (uint32_t round = 0; round < 2; round++) {
            assert_true(grt_loader_seek(loader, (struct grt_loader_position){round, 2}));
            TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA,
                         "row 130 of the inputs is not finite (column 2 is nan)");
            // More batches than there are places, and none of them with that row.
            assert_true(grt_loader_seek(loader, (struct grt_loader_position){round, 3}));
            for (uint32_t i = 3; i < 12; i++) {
                assert_true(grt_loader_next(loader, &batch));
                assert_memory_equal(batch.x, want + i % 10 * BATCH * WIDTH, BATCH * WIDTH * 4);
                grt_loader_release(loader, &batch);
            }
        }
        grt_loader_destroy(&loader);
    }
    free(want);
    grt_dataset_close(&data);
}

static const struct CMUnitTest cases[] = {
    AGAIN_CASE(what_is_remembered),
    AGAIN_CASE(rows_of_a_digest),
    AGAIN_CASE(rows_left_out_of_memory),
    AGAIN_CASE(halves_on_their_way),
    AGAIN_CASE(rows_are_read_again),
    AGAIN_CASE(runs_of_a_sample),
    AGAIN_CASE(a_bad_row_ends_its_batch_alone),
};
TEST_SUITE(again, false, cases);
