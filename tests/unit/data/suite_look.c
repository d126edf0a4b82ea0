// SPDX-License-Identifier: Apache-2.0
// The look at every row that opening a data set begins with: what it refuses, that threads change
// nothing, that an unchanged file is not looked through twice, and that it can be stopped.
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kits/cache_kit.h"
#include "kits/data_kit.h"

#define ROWS 60000u
#define WIDTH 8u

static double values[ROWS * WIDTH];

static int begin(void **state) {
    return kit_cache_begin(state) || data_kit_begin(state);
}

static int end(void **state) {
    return data_kit_end(state) || kit_cache_end(state);
}

// 60000 rows of 8, more than a block and over a megabyte, so that answers are kept.
static const char *write_rows(const char *name, bool chunks) {
    const char *path = data_kit_path(name);
    struct data_kit_set x = {.name = "x", .shape = {ROWS, WIDTH}, .data = values};
    if (chunks) {
        x.chunk[0] = 1000;
        x.chunk[1] = WIDTH;
        x.deflate = 1;
    }
    data_kit_write(path, true, &x);
    data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {ROWS}});
    return path;
}

static void fill(void) {
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
        values[i] = 1000 + sin(i * 0.7) * (1 + i % WIDTH);
    }
}

static struct grt_dataset *look(const char *path, uint32_t threads, enum grt_on_nan on_nan) {
    return grt_dataset_open(grt_dataset_desc(.path = path, .normalise = true, .threads = threads,
                                             .validation_split = 0.2, .on_nan = on_nan));
}

// Of several bad rows, in several blocks, it is the first that is named, whoever finds it.
static void the_first_bad_row(void **state) {
    (void)state;
    fill();
    values[40001 * WIDTH + 2] = NAN;
    values[40900 * WIDTH] = INFINITY;
    values[(ROWS - 1) * WIDTH] = -INFINITY;
    for (int chunks = 0; chunks < 2; chunks++) {
        const char *path = write_rows(chunks ? "c.h5" : "p.h5", chunks);
        for (uint32_t threads = 0; threads <= 5; threads++) {
            TEST_REFUSED(look(path, threads, GRT_NAN_ERROR), GRT_BAD_DATA,
                         "row 40001 of the inputs is not finite (column 2 is nan); on_nan: drop");
            struct grt_dataset *data = look(path, threads, GRT_NAN_DROP);
            assert_non_null(data);
            assert_int_equal(grt_dataset_info(data).rows, ROWS - 3);
            grt_dataset_close(&data);
        }
    }
}

static void threads_change_no_bit(void **state) {
    (void)state;
    fill();
    for (int drop = 0; drop < 2; drop++) {
        values[50000 * WIDTH] = drop ? NAN : 0;
        double want[2 * WIDTH] = {0};
        for (uint32_t threads = 1; threads <= 4; threads++) {
            // Written anew: nothing is remembered of it.
            const char *path = write_rows("t.h5", false);
            struct grt_dataset *data = look(path, threads, drop ? GRT_NAN_DROP : GRT_NAN_ERROR);
            assert_non_null(data);
            struct grt_dataset_info info = grt_dataset_info(data);
            if (threads == 1) {
                memcpy(want, info.mean, sizeof want / 2);
                memcpy(want + WIDTH, info.std, sizeof want / 2);
            }
            assert_memory_equal(info.mean, want, sizeof want / 2);
            assert_memory_equal(info.std, want + WIDTH, sizeof want / 2);
            for (uint32_t k = 0; k < WIDTH; k++) {
                assert_true(fabs(want[k] - 1000) < 0.1 * (1 + k));
                assert_true(fabs(want[WIDTH + k] / ((1 + k) * sqrt(0.5)) - 1) < 0.1 ||
                            (k == 0 && !drop));  // row 50000 has a 0 there
            }
            grt_dataset_close(&data);
        }
    }
}

// Of the first block one row is left, of others all: it counts as one.
static void one_row_of_a_block(void **state) {
    (void)state;
    fill();
    for (uint32_t i = 0; i < 32768; i++) {
        values[i * WIDTH + 1] = i == 5 ? 5000 : NAN;
    }
    const char *path = write_rows("one.h5", false);
    struct grt_dataset *data =
        grt_dataset_open(grt_dataset_desc(.path = path, .normalise = true, .on_nan = GRT_NAN_DROP));
    assert_non_null(data);
    struct grt_dataset_info info = grt_dataset_info(data);
    const uint32_t left = ROWS - 32768 + 1;
    assert_int_equal(info.rows, left);
    for (uint32_t k = 0; k < WIDTH; k++) {
        double mean = values[5 * WIDTH + k] / left, square = 0;
        for (uint32_t i = 32768; i < ROWS; i++) {
            mean += values[i * WIDTH + k] / left;
        }
        square = (values[5 * WIDTH + k] - mean) * (values[5 * WIDTH + k] - mean);
        for (uint32_t i = 32768; i < ROWS; i++) {
            square += (values[i * WIDTH + k] - mean) * (values[i * WIDTH + k] - mean);
        }
        assert_true(fabs(info.mean[k] - mean) < 1e-6 * fabs(mean));
        assert_true(fabs(info.std[k] - sqrt(square / left)) < 1e-5 * sqrt(square / left));
    }
    grt_dataset_close(&data);
}

// Puts a value into the file behind everyone's back; `told`: with a new time of change, of the same
// second.
static void change(const char *path, float value, bool told) {
    struct stat before;
    assert_int_equal(stat(path, &before), 0);
    float *x = data_kit_read(path, "x");
    unsigned char bytes[8192];
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    size_t at = 0;  // of the first row
    while (at + 32 < sizeof bytes && memcmp(bytes + at, (const char *)x, 32) != 0) {
        at++;
    }
    assert_true(at + 32 < sizeof bytes);
    // The last value of the first row: the rest still finds it.
    assert_int_equal(pwrite(fd, &value, sizeof value, (off_t)at + 32 + 4 * 5), sizeof value);
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    times[1].tv_nsec = (times[1].tv_nsec + told) % 1000000000;
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
    free(x);
}

static void an_unchanged_file_is_remembered(void **state) {
    (void)state;
    fill();
    const char *path = write_rows("r.h5", false);
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path));
    assert_non_null(data);
    grt_dataset_close(&data);
    // Same size, same time: the look is left out, and reading still refuses the row.
    change(path, NAN, false);
    data = grt_dataset_open(grt_dataset_desc(.path = path, .seed = 7, .validation_split = 0.1));
    assert_non_null(data);
    grt_dataset_close(&data);
    data = grt_dataset_open(grt_dataset_desc(.path = path));
    assert_non_null(data);
    struct grt_loader *loader = grt_loader_create(grt_loader_desc(.data = data, .batch = 64));
    struct grt_batch batch;
    assert_non_null(loader);
    TEST_REFUSED(grt_loader_next(loader, &batch), GRT_BAD_DATA, "row 1 of the inputs");
    grt_loader_destroy(&loader);
    grt_dataset_close(&data);
    // A new time: looked through again. A refusal is not remembered.
    change(path, NAN, true);
    for (int i = 0; i < 2; i++) {
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path)), GRT_BAD_DATA,
                     "row 1 of the inputs is not finite (column 5 is nan)");
    }
    change(path, 3, true);
    data = grt_dataset_open(grt_dataset_desc(.path = path));
    assert_non_null(data);
    grt_dataset_close(&data);
}

// Classes, rows left out and moments are the same from memory as when they were looked for.
static void findings_are_remembered(void **state) {
    (void)state;
    fill();
    values[5 * WIDTH + 1] = NAN;
    values[(ROWS - 1) * WIDTH] = INFINITY;
    static double labels[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        labels[i] = 2 + i % 9;
    }
    const char *path = write_rows("f.h5", false);
    data_kit_write(path, false,
                   &(struct data_kit_set){
                       .name = "k", .type = H5T_STD_I32LE, .shape = {ROWS}, .data = labels});
    const char *const names[] = {"k"};
    struct grt_dataset_desc desc = {.path = path,
                                    .targets = names,
                                    .target_count = 1,
                                    .class_targets = true,
                                    .normalise = true,
                                    .on_nan = GRT_NAN_DROP};
    double first = 0;
    for (int i = 0; i < 3; i++) {
        struct grt_dataset *data = grt_dataset_open(&desc);
        assert_non_null(data);
        struct grt_dataset_info info = grt_dataset_info(data);
        assert_int_equal(info.classes, 11);
        assert_int_equal(info.least_class, 2);
        assert_int_equal(info.rows, ROWS - 2);
        first = i == 0 ? info.mean[1] : first;
        assert_true(info.mean[1] == first);
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .part = GRT_PART_ALL, .batch = 9));
        struct grt_batch batch;
        assert_true(loader && grt_loader_next(loader, &batch));
        for (uint32_t k = 0; k < 9; k++) {
            assert_int_equal(((const uint32_t *)batch.y)[k], 2 + (k + (k >= 5)) % 9);
        }
        grt_loader_destroy(&loader);
        grt_dataset_close(&data);
    }
    desc.classes = 10;
    TEST_REFUSED(grt_dataset_open(&desc), GRT_BAD_DATA, "has class 10");
}

// Moments that are kept are those of the rows that are trained on: another seed of the split, and
// another share, have others, the same as in a file that nobody has looked at yet.
static void moments_are_of_their_split(void **state) {
    (void)state;
    static const struct {
        uint64_t seed;
        double split;
    } splits[] = {{1, 0.5}, {2, 0.5}, {2, 0.25}, {2, 0}};
    enum { SPLITS = sizeof splits / sizeof *splits };
    double first[SPLITS] = {0};
    fill();
    for (int again = 0; again < 2; again++) {
        const char *path = write_rows(again ? "anew.h5" : "split.h5", false);
        for (int i = 0; i < SPLITS; i++) {
            int k = again ? SPLITS - 1 - i : i;
            struct grt_dataset *data = grt_dataset_open(
                grt_dataset_desc(.path = path, .normalise = true, .seed = splits[k].seed,
                                 .validation_split = splits[k].split));
            assert_non_null(data);
            double mean = grt_dataset_info(data).mean[3];
            grt_dataset_close(&data);
            assert_true(!again || mean == first[k]);
            first[k] = mean;
            for (int other = 0; !again && other < k; other++) {
                assert_true(mean != first[other]);
            }
        }
    }
}

// What is kept of a file is of the arrays that were looked at; and that rows may be left out is no
// answer to who does not allow it.
static void answers_are_of_what_was_asked(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t classes;
    } targets[] = {{"many", 11}, {"few", 3}, {"some", 5}};
    static double labels[ROWS];
    fill();
    const char *path = write_rows("asked.h5", false);
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            labels[i] = i % targets[k].classes;
        }
        data_kit_write(
            path, false,
            &(struct data_kit_set){
                .name = targets[k].name, .type = H5T_STD_I32LE, .shape = {ROWS}, .data = labels});
    }
    for (int i = 0; i < 6; i++) {
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .targets = &targets[i % 3].name,
                                              .target_count = 1, .class_targets = true));
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).classes, targets[i % 3].classes);
        grt_dataset_close(&data);
    }
    values[7 * WIDTH + 1] = NAN;
    path = write_rows("left.h5", false);
    for (int i = 0; i < 2; i++) {
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .on_nan = GRT_NAN_DROP));
        assert_non_null(data);
        assert_int_equal(grt_dataset_info(data).rows, ROWS - 1);
        grt_dataset_close(&data);
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path)), GRT_BAD_DATA,
                     "row 7 of the inputs is not finite (column 1 is nan)");
    }
}

// Mean and deviation are of the rows that a loader trains on, also where rows before them are left
// out: the first column has the number of the row.
static void moments_of_rows_that_are_left(void **state) {
    (void)state;
    fill();
    for (uint32_t i = 0; i < ROWS; i++) {
        values[i * WIDTH] = i;
        values[i * WIDTH + 1] = i < 9 || i % 1000 == 17 ? NAN : 1;
    }
    const char *path = write_rows("left.h5", false);
    struct grt_dataset_desc desc = {
        .path = path, .validation_split = 0.5, .seed = 3, .on_nan = GRT_NAN_DROP};
    struct grt_dataset *plain = grt_dataset_open(&desc);
    desc.normalise = true;
    struct grt_dataset *data = grt_dataset_open(&desc);
    assert_true(plain && data);
    struct grt_loader *loader =
        grt_loader_create(grt_loader_desc(.data = plain, .part = GRT_PART_TRAIN, .batch = 1000));
    assert_non_null(loader);
    double sum = 0, squares = 0, rows = (double)grt_loader_info(loader).rows;
    assert_int_equal(grt_dataset_info(plain).rows, ROWS - 9 - ROWS / 1000);
    for (uint64_t i = grt_loader_info(loader).batches_per_epoch; i > 0; i--) {
        struct grt_batch batch;
        assert_true(grt_loader_next(loader, &batch));
        for (uint32_t k = 0; k < batch.rows; k++) {
            double number = (double)batch.x[k * WIDTH];
            sum += number;
            squares += number * number;
        }
        grt_loader_release(loader, &batch);
    }
    double mean = sum / rows, deviation = sqrt(squares / rows - mean * mean);
    struct grt_dataset_info info = grt_dataset_info(data);
    assert_true(fabs(info.mean[0] - mean) < 1e-6 * mean);
    assert_true(fabs(info.std[0] - deviation) < 1e-6 * deviation);
    grt_loader_destroy(&loader);
    grt_dataset_close(&plain);
    grt_dataset_close(&data);
}

// Inputs are not read where nothing of them is asked: class numbers alone are looked at.
static void whole_numbers_cost_nothing(void **state) {
    (void)state;
    const char *path = data_kit_path("u8.h5");
    double classes[64];
    for (int i = 0; i < 64; i++) {
        classes[i] = i % 5;
    }
    struct data_kit_set x = {
        .name = "x", .type = H5T_STD_U8LE, .shape = {64, 3}, .chunk = {16, 3}, .deflate = 1};
    data_kit_write(path, true, &x);
    data_kit_write(
        path, false,
        &(struct data_kit_set){.name = "y", .type = H5T_STD_I64LE, .shape = {64}, .data = classes});
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), set = H5Dopen2(file, "x", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){16, 0}, 4, "\1\2\3\4") >= 0);
    H5Dclose(set);
    H5Fclose(file);
    struct grt_dataset *data =
        grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = true));
    assert_non_null(data);
    assert_int_equal(grt_dataset_info(data).classes, 5);
    grt_dataset_close(&data);
}

static bool halt(void *context, double share) {
    assert_true(share >= 0 && share <= 1);
    ++*(int *)context;
    return false;
}

static void it_can_be_stopped(void **state) {
    (void)state;
    fill();
    const char *path = write_rows("s.h5", false);
    int asked = 0;
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .watch = halt, .context = &asked)),
                 GRT_IO, "stopped while its rows were looked through");
    assert_int_equal(asked, 1);
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path));
    assert_non_null(data);
    grt_dataset_close(&data);
    // Nothing to look at, nobody asked.
    data = grt_dataset_open(grt_dataset_desc(.path = path, .watch = halt, .context = &asked));
    assert_non_null(data);
    grt_dataset_close(&data);
    assert_int_equal(asked, 1);
}

static uint64_t digest_of(const char *path, bool targets) {
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .no_targets = !targets, .check_late = true));
    uint64_t digest = 0;
    assert_non_null(data);
    assert_true(grt_dataset_digest(data, &digest));
    grt_dataset_close(&data);
    return digest;
}

// A digest depends on numbers, types and shapes, and not on how they are stored.
static void a_digest_tells_data_apart(void **state) {
    (void)state;
    fill();
    uint64_t plain = digest_of(write_rows("p.h5", false), true);
    assert_true(digest_of(write_rows("q.h5", true), true) == plain);
    assert_true(digest_of(write_rows("p.h5", false), false) != plain);
    // The first and the last row are in every sample.
    const uint32_t rows[] = {0, ROWS - 1};
    for (uint32_t i = 0; i < 2; i++) {
        values[rows[i] * WIDTH + 5] += 1;
        assert_true(digest_of(write_rows("r.h5", i == 1), true) != plain);
        fill();
    }
    // Of a small file every row is.
    const char *path = data_kit_path("small.h5");
    struct data_kit_set small = {.name = "x", .shape = {4096, WIDTH}, .data = values};
    data_kit_write(path, true, &small);
    uint64_t whole = digest_of(path, false);
    values[1234 * WIDTH] += 1;
    data_kit_write(path, true, &small);
    assert_true(digest_of(path, false) != whole);
    fill();
    // The same numbers under another name are other data.
    data_kit_write(path, true, &small);
    small.name = "z";
    data_kit_write(path, false, &small);
    small.name = "x";
    const char *const other[] = {"z"};
    struct grt_dataset *named =
        grt_dataset_open(grt_dataset_desc(.path = path, .inputs = other, .input_count = 1,
                                          .no_targets = true, .check_late = true));
    uint64_t renamed = 0;
    assert_non_null(named);
    assert_true(grt_dataset_digest(named, &renamed) && renamed != whole);
    grt_dataset_close(&named);
    assert_true(digest_of(path, false) == whole);
    small.type = H5T_IEEE_F64LE;
    data_kit_write(path, true, &small);
    assert_true(digest_of(path, false) != whole);
}

#define LOOK_CASE(function)                                                                        \
    { #function, function, begin, end, NULL }

static const struct CMUnitTest cases[] = {
    LOOK_CASE(the_first_bad_row),
    LOOK_CASE(threads_change_no_bit),
    LOOK_CASE(one_row_of_a_block),
    LOOK_CASE(an_unchanged_file_is_remembered),
    LOOK_CASE(findings_are_remembered),
    LOOK_CASE(whole_numbers_cost_nothing),
    LOOK_CASE(it_can_be_stopped),
    LOOK_CASE(a_digest_tells_data_apart),
    LOOK_CASE(moments_are_of_their_split),
    LOOK_CASE(answers_are_of_what_was_asked),
    LOOK_CASE(moments_of_rows_that_are_left),
};
TEST_SUITE(look, false, cases);
