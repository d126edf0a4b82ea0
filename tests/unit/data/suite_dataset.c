// SPDX-License-Identifier: Apache-2.0
// Data sets: every type, layout and filter against the HDF5 library's own reading; shapes laid side
// by side; normalisation. Rows that are refused: suite_values.c.
#include "kits/data_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/file/tiles.h"
#include "gpurt/direct.h"
#include "gpurt/make.h"

static void compare(const float *got, const float *want, uint64_t count, const char *what) {
    for (uint64_t i = 0; i < count; i++) {
        if (test_as_u32(got[i]) != test_as_u32(want[i]) && !(isnan(got[i]) && isnan(want[i]))) {
            fail_msg("%s: element %llu is %g, wanted %g", what, (unsigned long long)i,
                     (double)got[i], (double)want[i]);
        }
    }
}

static void every_type_layout_and_filter(void **state) {
    (void)state;
    hid_t half = data_kit_half(false), half_big = data_kit_half(true);
    const hid_t types[] = {half,           half_big,       H5T_IEEE_F32LE, H5T_IEEE_F32BE,
                           H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_STD_U8LE,   H5T_STD_I32LE,
                           H5T_STD_I32BE,  H5T_STD_I64LE,  H5T_STD_I64BE,  H5T_STD_I8LE,
                           H5T_STD_I16LE,  H5T_STD_I16BE,  H5T_STD_U16LE,  H5T_STD_U16BE,
                           H5T_STD_U32LE,  H5T_STD_U32BE};
    // Chunks that cut rows, columns and points, and some that reach beyond the edge.
    static const struct {
        hsize_t shape[4], chunk[4];
    } layouts[] = {
        {{41, 6}, {0}},
        {{41, 6}, {8, 6}},
        {{41, 6}, {8, 4}},
        {{41, 6}, {41, 1}},
        {{41, 1}, {5, 1}},
        {{41}, {16}},
        {{41, 5, 3}, {0}},
        {{41, 5, 3}, {4, 5, 3}},
        {{41, 5, 3}, {7, 2, 2}},
        {{41, 5, 3}, {7, 2, 3}},
        {{41, 5, 3}, {41, 5, 1}},
        // Images, whole and cut every way: lines, columns, channels.
        {{41, 4, 5, 3}, {0}},
        {{41, 4, 5, 3}, {1, 4, 5, 3}},
        {{41, 4, 5, 3}, {8, 3, 5, 3}},
        {{41, 4, 5, 3}, {8, 4, 2, 3}},
        {{41, 4, 5, 3}, {6, 3, 2, 2}},
        {{41, 4, 5, 3}, {41, 1, 5, 1}},
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (size_t k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
            for (int filters = 0; filters < (layouts[k].chunk[0] ? 4 : 1); filters++) {
                // A slow checker sees each of them, and a fifth of how they meet.
                if (test.small && (t + k + (size_t)filters) % 5 != 0) {
                    continue;
                }
                const char *path = data_kit_path("types.h5");
                struct data_kit_set set = {.name = "in/deep", .type = types[t]};
                memcpy(set.shape, layouts[k].shape, sizeof set.shape);
                memcpy(set.chunk, layouts[k].chunk, sizeof set.chunk);
                set.name = "x";
                set.shuffle = filters & 1;
                set.deflate = filters & 2 ? 6 : 0;
                data_kit_write(path, true, &set);
                struct grt_dataset *data =
                    grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
                assert_non_null(data);
                struct grt_dataset_info info = grt_dataset_info(data);
                assert_int_equal(info.rows, 41);
                bool image = layouts[k].shape[3] > 0, points = layouts[k].shape[2] > 0;
                assert_int_equal(info.points, image ? 4 * 5 : points ? 5 : 0);
                assert_int_equal(info.height, image ? 4 : 0);
                float *want = data_kit_read(path, "x"), *got = data_kit_rows(data, NULL);
                char what[64];
                snprintf(what, sizeof what, "type %zu, layout %zu, filters %d", t, k, filters);
                compare(got, want, 41ull * info.x_width, what);
                free(want);
                free(got);
                grt_dataset_close(&data);
            }
        }
    }
    H5Tclose(half);
    H5Tclose(half_big);
}

// All 65,536 halves: the library's conversion is the judge.
static void every_half(void **state) {
    (void)state;
    uint16_t *bits = test_alloc(65536 * sizeof *bits);
    uint32_t finite = 0;
    for (uint32_t i = 0; i < 65536; i++) {
        if ((i & 0x7c00) != 0x7c00) {
            bits[finite++] = (uint16_t)i;
        }
    }
    hid_t half = data_kit_half(false);
    const char *path = data_kit_path("half.h5");
    data_kit_write(
        path, true,
        &(struct data_kit_set){
            .name = "x", .type = half, .shape = {finite}, .mem_type = half, .data = bits});
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
    assert_non_null(data);
    float *want = data_kit_read(path, "x"), *got = data_kit_rows(data, NULL);
    compare(got, want, finite, "half");
    free(want);
    free(got);
    free(bits);
    H5Tclose(half);
    grt_dataset_close(&data);
}

static void inputs_lie_side_by_side(void **state) {
    (void)state;
    const char *path = data_kit_path("many.h5");
    const struct data_kit_set sets[] = {
        {.name = "a", .shape = {20, 4, 3}},
        {.name = "b",
         .type = H5T_IEEE_F64BE,
         .shape = {20, 4, 2},
         .chunk = {6, 3, 2},
         .deflate = 1},
        {.name = "t", .type = H5T_STD_I32LE, .shape = {20}},
        {.name = "u", .shape = {20, 2, 2}, .chunk = {3, 1, 2}},
    };
    float *parts[4];
    for (int i = 0; i < 4; i++) {
        data_kit_write(path, i == 0, &sets[i]);
        parts[i] = data_kit_read(path, sets[i].name);
    }
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .inputs = (const char *const[]){"a", "/b"}, .input_count = 2,
                         .targets = (const char *const[]){"t", "u"}, .target_count = 2));
    assert_non_null(data);
    struct grt_dataset_info info = grt_dataset_info(data);
    assert_int_equal(info.points, 4);
    assert_int_equal(info.features, 5);
    assert_int_equal(info.x_width, 20);
    assert_int_equal(info.y_width, 5);
    assert_int_equal(info.row_bytes, 4 * 3 * 4 + 4 * 2 * 8 + 4 + 16);
    void *y;
    float *x = data_kit_rows(data, &y);
    const float *t = y;
    for (int row = 0; row < 20; row++) {
        for (int p = 0; p < 4; p++) {
            for (int k = 0; k < 5; k++) {
                float want =
                    k < 3 ? parts[0][(row * 4 + p) * 3 + k] : parts[1][(row * 4 + p) * 2 + k - 3];
                assert_true(x[row * 20 + p * 5 + k] == want);
            }
        }
        assert_true(t[row * 5] == parts[2][row]);
        for (int k = 0; k < 4; k++) {
            assert_true(t[row * 5 + 1 + k] == parts[3][row * 4 + k]);
        }
    }
    free(x);
    free(y);
    for (int i = 0; i < 4; i++) {
        free(parts[i]);
    }
    grt_dataset_close(&data);
}

// Each as a whole, whatever chunks cut; normalised, each number by its own mean and deviation.
static void inputs_of_different_points(void **state) {
    (void)state;
    const char *path = data_kit_path("mixed.h5");
    const struct data_kit_set sets[] = {
        {.name = "flat", .type = H5T_IEEE_F64LE, .shape = {20, 3}},
        {.name = "grid of 4", .shape = {20, 4, 3}, .chunk = {6, 3, 2}, .deflate = 1},
        {.name = "one", .type = H5T_STD_I32LE, .shape = {20}},
        {.name = "grid of 2", .type = H5T_STD_U8LE, .shape = {20, 2, 5}, .chunk = {7, 1, 5}},
    };
    const char *const names[] = {"flat", "/grid of 4", "one", "grid of 2"};
    const uint32_t firsts[] = {0, 3, 15, 16}, points[] = {0, 4, 0, 2}, features[] = {3, 3, 1, 5};
    const int sizes[] = {3, 12, 1, 10};
    float *parts[4];
    for (int i = 0; i < 4; i++) {
        data_kit_write(path, i == 0, &sets[i]);
        parts[i] = data_kit_read(path, sets[i].name);
    }
    for (int normalise = 0; normalise < 2; normalise++) {
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .inputs = names, .input_count = 4,
                                              .no_targets = true, .normalise = normalise));
        assert_non_null(data);
        struct grt_dataset_info info = grt_dataset_info(data);
        assert_int_equal(info.points, 0);
        assert_int_equal(info.features, 26);
        assert_int_equal(info.x_width, 26);
        assert_int_equal(info.input_count, 4);
        float *x = data_kit_rows(data, NULL);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(info.inputs[i].first, firsts[i]);
            assert_int_equal(info.inputs[i].points, points[i]);
            assert_int_equal(info.inputs[i].features, features[i]);
            for (int at = 0; at < 20 * sizes[i]; at++) {
                int row = at / sizes[i], k = (int)firsts[i] + at % sizes[i];
                double want = (double)parts[i][at], got = (double)x[row * 26 + k];
                want = normalise ? (want - info.mean[k]) / info.std[k] : want;
                assert_true(normalise ? fabs(got - want) <= 1e-5 * (1 + fabs(want)) : got == want);
            }
        }
        free(x);
        grt_dataset_close(&data);
    }
    for (int i = 0; i < 4; i++) {
        free(parts[i]);
    }
}

// Images lie pixel by pixel beside those of the same sides, and one behind the other beside those
// that only have as many pixels.
static void images_of_other_sides(void **state) {
    (void)state;
    const char *path = data_kit_path("sides.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "a", .shape = {5, 2, 8, 3}});
    data_kit_write(path, false, &(struct data_kit_set){.name = "b", .shape = {5, 4, 4, 3}});
    data_kit_write(path, false, &(struct data_kit_set){.name = "c", .shape = {5, 2, 8, 1}});
    static const char *const names[2][2] = {{"a", "b"}, {"a", "c"}};
    for (int k = 0; k < 2; k++) {
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .inputs = names[k], .input_count = 2,
                                              .no_targets = true));
        assert_non_null(data);
        struct grt_dataset_info info = grt_dataset_info(data);
        assert_int_equal(info.height, k ? 2 : 0);
        assert_int_equal(info.points, k ? 16 : 0);
        assert_int_equal(info.features, k ? 4 : 2 * 48);
        float *x = data_kit_rows(data, NULL);
        for (uint64_t i = 0; i < 5 * 48; i++) {
            uint64_t row = i / 48, at = i % 48;
            float got = k ? x[row * 64 + at / 3 * 4 + at % 3] : x[row * 96 + at];
            assert_true((double)got == data_kit_value(i));
            assert_true(k || (double)x[row * 96 + 48 + at] == data_kit_value(i));
        }
        free(x);
        grt_dataset_close(&data);
    }
}

// Whole numbers and doubles that are far from zero and near each other are told apart once their
// mean is off, whatever type they have.
static void normalised_from_afar(void **state) {
    (void)state;
    enum { N = 64 };
    const struct {
        hid_t type;
        double from;
    } types[] = {{H5T_STD_U32LE, 4e9},
                 {H5T_STD_U32BE, 4e9},
                 {H5T_STD_I32LE, -2e9},
                 {H5T_STD_I64LE, 1e15},
                 {H5T_IEEE_F64LE, 1e15}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        double numbers[N], squares = 0;
        for (int i = 0; i < N; i++) {
            numbers[i] = types[t].from + i;
            squares += (i - (N - 1) / 2.0) * (i - (N - 1) / 2.0) / N;
        }
        const char *path = data_kit_path("afar.h5");
        data_kit_write(path, true,
                       &(struct data_kit_set){
                           .name = "x", .type = types[t].type, .shape = {N, 1}, .data = numbers});
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true, .normalise = true));
        assert_non_null(data);
        float *x = data_kit_rows(data, NULL);
        for (int i = 0; i < N; i++) {
            assert_true(fabs((double)x[i] - (i - (N - 1) / 2.0) / sqrt(squares)) < 1e-5);
        }
        free(x);
        grt_dataset_close(&data);
    }
}

// Against sums in the plainest form, over exactly the rows that are trained on.
// A feature that never changes, or by less than f32 has, stays what it is, less its mean; one that
// changes by a little more is divided by its deviation.
static void features_that_hardly_move(void **state) {
    (void)state;
    static const double moves[] = {0, 1e-40, 0x1p-124, 1};  // the least of f32 is 2^-126
    double x[8][4];
    for (int i = 0; i < 8 * 4; i++) {
        x[i / 4][i % 4] = i / 4 % 2 * moves[i % 4];
    }
    const char *path = data_kit_path("still.h5");
    data_kit_write(
        path, true,
        &(struct data_kit_set){.name = "x", .type = H5T_IEEE_F64LE, .shape = {8, 4}, .data = x});
    struct grt_dataset *data =
        grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true, .normalise = true));
    assert_non_null(data);
    struct grt_dataset_info info = grt_dataset_info(data);
    for (int k = 0; k < 4; k++) {
        double want = k < 2 ? 1 : moves[k] / 2;
        assert_true(fabs(info.std[k] - want) < 1e-6 * want);
    }
    grt_dataset_close(&data);
}

static void normalisation(void **state) {
    (void)state;
    for (int points = 0; points < 2; points++) {
        const char *path = data_kit_path(points ? "np.h5" : "n.h5");
        struct data_kit_set set = {.name = "x", .shape = {100, 6}};
        if (points) {
            set.shape[1] = 2;
            set.shape[2] = 3;
        }
        data_kit_write(path, true, &set);
        struct grt_dataset *data =
            grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true, .normalise = true,
                                              .validation_split = 0.25, .seed = 4));
        struct grt_dataset *plain =
            grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true,
                                              .validation_split = 0.25, .seed = 4));
        assert_true(data && plain);
        struct grt_dataset_info info = grt_dataset_info(data);
        assert_int_equal(info.part_rows[GRT_PART_TRAIN], 75);
        struct grt_loader *loader = grt_loader_create(grt_loader_desc(.data = plain, .batch = 75));
        struct grt_loader *scaled = grt_loader_create(grt_loader_desc(.data = data, .batch = 75));
        struct grt_batch raw = {0}, got = {0};
        if (!loader || !scaled || !grt_loader_next(loader, &raw) ||
            !grt_loader_next(scaled, &got) || !raw.x || !got.x) {
            fail();
            return;
        }
        uint32_t f = info.features, count = 75 * 6 / f;
        for (uint32_t k = 0; k < f; k++) {
            double mean = 0, square = 0;
            for (uint32_t i = 0; i < count; i++) {
                mean += raw.x[i * f + k] / (double)count;
            }
            for (uint32_t i = 0; i < count; i++) {
                square += pow(raw.x[i * f + k] - mean, 2) / (double)count;
            }
            assert_true(fabs(info.mean[k] - mean) < 1e-4);
            assert_true(fabs(info.std[k] - sqrt(square)) < 1e-4);
            for (uint32_t i = 0; i < count; i++) {
                assert_true(fabs(got.x[i * f + k] - (raw.x[i * f + k] - mean) / sqrt(square)) <
                            1e-5);
            }
        }
        grt_loader_destroy(&loader);
        grt_loader_destroy(&scaled);
        // A checkpoint's numbers win over those of the file.
        struct grt_dataset *told =
            grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true, .normalise = true,
                                              .mean = (double[]){1, 1, 1, 1, 1, 1},
                                              .std = (double[]){2, 2, 2, 2, 2, 2}));
        assert_non_null(told);
        float *x = data_kit_rows(told, NULL), *want = data_kit_read(path, "x");
        for (int i = 0; i < 600; i++) {
            assert_true(x[i] == (want[i] - 1) / 2);
        }
        free(x);
        free(want);
        grt_dataset_close(&told);
        grt_dataset_close(&plain);
        grt_dataset_close(&data);
    }
}

// The answer is what the attribute says: the residual of the teacher is the noise.
static const unsigned char zeros[80u << 20];

// Compressed data that are kept inflated are drawn and split row by row, be they one chunk; what is
// too large for that is split by chunks.
static void small_compressed_data(void **state) {
    (void)state;
    const char *path = data_kit_path("one.h5");
    data_kit_write(
        path, true,
        &(struct data_kit_set){.name = "x", .shape = {300, 1}, .chunk = {300, 1}, .deflate = 1});
    struct grt_dataset *data = grt_dataset_open(
        grt_dataset_desc(.path = path, .no_targets = true, .validation_split = 0.1));
    assert_non_null(data);
    assert_int_equal(grt_dataset_info(data).part_rows[GRT_PART_VALIDATION], 30);
    double sum = 0, want = 0;
    for (int part = 0; part < 2; part++) {
        struct grt_loader *loader =
            grt_loader_create(grt_loader_desc(.data = data, .batch = 300,
                                              .part = (enum grt_part)part, .shuffle = true));
        struct grt_batch batch = {0};
        assert_true(loader && grt_loader_next(loader, &batch));
        assert_int_equal(batch.rows, part == GRT_PART_TRAIN ? 270 : 30);
        for (uint32_t i = 0; i < batch.rows; i++) {
            sum += sqrt((double)batch.x[i]);  // each row once: a sum that others do not have
        }
        grt_loader_destroy(&loader);
    }
    for (uint64_t i = 0; i < 300; i++) {
        want += sqrt(data_kit_value(i));
    }
    assert_true(fabs(sum - want) < 1e-6);
    grt_dataset_close(&data);
    path = data_kit_path("large.h5");
    data_kit_write(path, true,
                   &(struct data_kit_set){.name = "x",
                                          .type = H5T_STD_U8LE,
                                          .shape = {80, 1u << 20},
                                          .chunk = {80, 1u << 20},
                                          .mem_type = H5T_NATIVE_UINT8,
                                          .data = zeros,
                                          .deflate = 1});
    TEST_REFUSED(grt_dataset_open(
                     grt_dataset_desc(.path = path, .no_targets = true, .validation_split = 0.5)),
                 GRT_BAD_DATA, "lie in one compressed chunk");
    // A window is one chunk at least, however large.
    data = grt_dataset_open(grt_dataset_desc(.path = path, .no_targets = true));
    assert_non_null(data);
    assert_int_equal(grt_dataset_info(data).window_rows, 80);
    grt_dataset_close(&data);
}

static void bad_descs(void **state) {
    (void)state;
    const char *path = data_kit_path("d.h5");
    data_kit_write(path, true, &(struct data_kit_set){.name = "x", .shape = {4, 2}});
    data_kit_write(path, false, &(struct data_kit_set){.name = "y", .shape = {4}});
    data_kit_write(path, false, &(struct data_kit_set){.name = "z", .shape = {5}});
    TEST_REFUSED(grt_dataset_open(NULL), GRT_INVALID, "no path");
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = "")), GRT_INVALID, "no path");
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .validation_split = 1)),
                 GRT_INVALID, "validation_split");
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .input_count = 1)), GRT_INVALID,
                 "no names");
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = true)),
                 GRT_BAD_DATA, "cannot be a class");
    const char *const z[] = {"z"};
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .targets = z, .target_count = 1)),
                 GRT_BAD_DATA, "'x' has 4 rows and 'z' has 5");
    static const double one[] = {1, 1}, none[] = {1, 0}, odd[] = {(double)NAN, 1}, less[] = {1, -1};
    const double *const stds[] = {none, odd, less};
    for (int i = 0; i < 3; i++) {
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .normalise = true, .mean = one,
                                                       .std = stds[i])),
                     GRT_INVALID, "a std that is not above 0");
    }
    // Numbers of another count are not read beyond their end.
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .normalise = true, .mean = one,
                                                   .std = one, .features = 1)),
                 GRT_BAD_DATA, "normalize with are of 1");
    TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .normalise = true, .mean = one)),
                 GRT_INVALID, "mean without std, or std without mean");
    // Of several targets a class is one whole number.
    const char *const aims[] = {"y", "wide"};
    const struct grt_dataset_target kinds[2][2] = {{{.classes = 300}}, {{0}, {.classes = 300}}};
    data_kit_write(path, false,
                   &(struct data_kit_set){.name = "wide", .type = H5T_STD_I32LE, .shape = {4, 2}});
    for (int i = 0; i < 2; i++) {
        TEST_REFUSED(grt_dataset_open(grt_dataset_desc(.path = path, .targets = aims,
                                                       .target_count = 2, .kinds = kinds[i])),
                     GRT_BAD_DATA,
                     i ? "'wide' cannot be a class: one integer a row"
                       : "'y' cannot be a class: one integer a row");
    }
    struct grt_dataset *data = grt_dataset_open(grt_dataset_desc(.path = path));
    assert_non_null(data);
    static const struct grt_loader_share no_shares[] = {{0, 0, 4}, {4, 1, 4}, {2, 3, 4}, {0, 5, 4}};
    for (int i = 0; i < 4; i++) {
        TEST_REFUSED(
            grt_loader_create(grt_loader_desc(.data = data, .batch = 1, .share = no_shares[i])),
            GRT_INVALID, "a share that is no part of the step");
    }
    TEST_REFUSED(grt_loader_create(NULL), GRT_INVALID, "no desc");
    TEST_REFUSED(grt_loader_create(grt_loader_desc(.batch = 1)), GRT_INVALID, "no data set");
    TEST_REFUSED(grt_loader_create(grt_loader_desc(.data = data)), GRT_INVALID, "0 rows");
    TEST_REFUSED(grt_loader_create(grt_loader_desc(.data = data, .batch = 5, .drop_last = true)),
                 GRT_BAD_DATA, "do not fill");
    TEST_REFUSED(grt_loader_create(grt_loader_desc(.data = data, .batch = 1, .pin = true)),
                 GRT_INVALID, "no device");
    TEST_REFUSED(
        grt_loader_create(grt_loader_desc(.data = data, .batch = 2, .start = {.batch = 2})),
        GRT_INVALID, "an epoch has 2 batches");
    TEST_REFUSED(
        grt_loader_create(grt_loader_desc(.data = data, .batch = 2, .part = GRT_PART_VALIDATION)),
        GRT_BAD_DATA, "0 rows for validation");
    grt_dataset_close(&data);
}

// A table is taken once, as long as it is the same and the same is wanted of it.
static void tables_are_taken_once(void **state) {
    (void)state;
    char path[] = "/tmp/gpurt-table-XXXXXX.csv";
    int fd = mkstemps(path, 4);
    static const char text[] = "a,b,c\n1,,3\n4,5,6\n";
    assert_true(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)(sizeof text - 1));
    const char *const a[] = {"a"}, *const b[] = {"b"}, *const c[] = {"c"};
    const struct grt_direct_desc descs[] = {
        {.path = path, .fill = "7"},
        {.path = path, .fill = "8"},
        {.path = path, .fill = "mean"},
        {.path = path, .fill = "7", .inputs = a, .input_count = 1},
        {.path = path, .fill = "7", .inputs = b, .input_count = 1},
        {.path = path, .fill = "7", .targets = a, .target_count = 1},
        {.path = path, .fill = "7", .no_targets = true},
        {.path = path, .fill = "7", .weights = "a"},
        {.path = path, .fill = "7", .weights = "c", .targets = a, .target_count = 1},
        {.path = path, .fill = "7", .inputs = c, .input_count = 1, .targets = a, .target_count = 1},
    };
    enum { COUNT = sizeof descs / sizeof *descs };
    struct grt_direct direct = {.path = ""}, again = direct;
    char first[COUNT][128] = {{0}};
    for (int i = 0; i < COUNT; i++) {
        assert_true(grt_direct(&descs[i], &direct) && grt_direct(&descs[i], &again));
        assert_ptr_equal(direct.path, again.path);
        snprintf(first[i], sizeof first[i], "%s", direct.path);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(first[i], first[k]);
        }
    }
    // The file is written anew within the same second, as long as before.
    struct timespec times[2] = {{.tv_sec = 1700000000, .tv_nsec = 1},
                                {.tv_sec = 1700000000, .tv_nsec = 1}};
    assert_int_equal(futimens(fd, times), 0);
    assert_true(grt_direct(&descs[0], &direct));
    times[1].tv_nsec = 2;
    assert_int_equal(futimens(fd, times), 0);
    assert_true(grt_direct(&descs[0], &again));
    assert_string_not_equal(direct.path, first[0]);
    assert_string_not_equal(direct.path, again.path);
    close(fd);
    unlink(path);
}

// Fewer decoded chunks are kept than a file has: whatever the order they are asked for in, each is
// the one that it was asked for, and one that is held stays where it is.
static void chunks_that_make_room(void **state) {
    (void)state;
    enum { ROWS = 40, COLUMNS = 3, HIGH = 5, CHUNKS = ROWS / HIGH };
    static const char *const names[] = {"x"};
    const char *path = data_kit_path("room.h5");
    data_kit_write(path, true,
                   &(struct data_kit_set){.name = "x",
                                          .type = H5T_IEEE_F32BE,
                                          .shape = {ROWS, COLUMNS},
                                          .chunk = {HIGH, COLUMNS},
                                          .deflate = 1});
    struct grt_file file;
    struct grt_array array = {0};
    struct grt_fault fault = {0};
    assert_true(grt_file_open(path, path, names, NULL, 1, &file, &array));
    assert_int_equal(grt_array_tiles(&array), CHUNKS);
    for (uint32_t kept = 1; kept <= CHUNKS; kept++) {
        struct grt_tiles *tiles = grt_tiles_create(&array, file.fd, kept);
        assert_non_null(tiles);
        bool holds = kept > 1;
        const unsigned char *held = holds ? grt_tiles_get(tiles, 3, &fault) : NULL;
        for (uint32_t i = 0; i < 60; i++) {
            uint64_t number = i < 20 ? i % CHUNKS : (uint64_t)i * i % CHUNKS;
            const unsigned char *got = grt_tiles_get(tiles, number, &fault);
            assert_non_null(got);
            for (uint64_t k = 0; k < HIGH * COLUMNS; k++) {
                float value;
                memcpy(&value, got + 4 * k, sizeof value);
                assert_true((double)value == data_kit_value(number * HIGH * COLUMNS + k));
            }
            assert_true(!holds || (got == held) == (number == 3));
            grt_tiles_release(tiles, number);
        }
        if (holds) {
            grt_tiles_release(tiles, 3);
        }
        grt_tiles_destroy(&tiles);
        assert_null(tiles);
    }
    grt_file_close(&file, &array, 1);
    // One that cannot be read takes no place from the others, however often it is asked for.
    hid_t h5 = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), set = H5Dopen2(h5, "x", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, (hsize_t[]){2 * HIGH, 0}, 4, "\1\2\3\4") >= 0);
    H5Dclose(set);
    H5Fclose(h5);
    assert_true(grt_file_open(path, path, names, NULL, 1, &file, &array));
    struct grt_tiles *tiles = grt_tiles_create(&array, file.fd, 2);
    assert_non_null(tiles);
    for (uint64_t i = 0; i < 3 * CHUNKS; i++) {
        uint64_t number = i % 2 ? 2 : i / 2 % CHUNKS;
        fault = (struct grt_fault){0};
        const unsigned char *got = grt_tiles_get(tiles, number, &fault);
        assert_int_equal(got != NULL, number != 2);
        assert_int_equal(fault.status, number == 2 ? GRT_BAD_DATA : GRT_OK);
        if (got) {
            grt_tiles_release(tiles, number);
        }
    }
    grt_tiles_destroy(&tiles);
    grt_file_close(&file, &array, 1);
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(chunks_that_make_room),
    DATA_CASE(every_type_layout_and_filter),
    DATA_CASE(every_half),
    DATA_CASE(inputs_lie_side_by_side),
    DATA_CASE(inputs_of_different_points),
    DATA_CASE(images_of_other_sides),
    DATA_CASE(normalised_from_afar),
    DATA_CASE(normalisation),
    DATA_CASE(features_that_hardly_move),
    DATA_CASE(small_compressed_data),
    DATA_CASE(bad_descs),
    TEST_CASE(tables_are_taken_once),
};
TEST_SUITE(dataset, false, cases);
