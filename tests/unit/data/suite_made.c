// SPDX-License-Identifier: Apache-2.0
// Files of `gpurt data make`.
#include "kits/data_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/make.h"

static void made_data(void **state) {
    (void)state;
    for (int make = 0; make < GRT_MAKE_SHAPES; make++) {  // made_shapes() has those
        for (uint32_t deflate = 0; deflate < 2; deflate++) {
            const char *path = data_kit_path("made.h5"), *again = data_kit_path("again.h5");
            struct grt_make_desc desc = {.path = path,
                                         .make = (enum grt_make)make,
                                         .samples = 3000,
                                         .features = 5,
                                         .points = 4,
                                         .classes = 3,
                                         .noise = -1,
                                         .seed = 9,
                                         .deflate = deflate,
                                         .chunk = deflate * 100};
            assert_true(grt_data_make(&desc));
            desc.path = again;
            assert_true(grt_data_make(&desc));
            float *x = data_kit_read(path, "x"), *x2 = data_kit_read(again, "x");
            size_t floats = 3000 * 5 * (make == GRT_MAKE_POINTS ? 4 : 1);
            assert_memory_equal(x, x2, floats * 4);
            struct grt_file_info *info = grt_file_info_create(path);
            assert_non_null(info);
            assert_int_equal(info->count, 2);
            assert_string_equal(info->arrays[0].name, "x");
            assert_string_equal(info->arrays[0].problem, "");
            assert_int_equal(info->arrays[0].chunk[0], deflate * 100);
            assert_string_equal(info->arrays[0].filters, deflate ? "shuffle deflate 1" : "");
            assert_string_equal(info->made_by, grt_make_text((enum grt_make)make));
            bool classes = make == GRT_MAKE_CLASSIFICATION;
            assert_int_equal(info->classes, classes ? 3 : 0);
            if (classes) {
                assert_true(info->noise_floor >= 0 && info->noise_floor < 0.3);
            } else {
                assert_true(fabs(info->noise_floor - 0.01) < 1e-12);
            }
            grt_file_info_destroy(&info);
            struct grt_dataset *data =
                grt_dataset_open(grt_dataset_desc(.path = path, .class_targets = classes));
            assert_non_null(data);
            assert_int_equal(grt_dataset_info(data).points, make == GRT_MAKE_POINTS ? 4 : 0);
            grt_dataset_close(&data);
            free(x);
            free(x2);
        }
    }
    TEST_REFUSED(grt_data_make(grt_make_desc(.path = data_kit_path("no/where.h5"), .samples = 1,
                                             .features = 1)),
                 GRT_NO_OUTPUT, "where.h5");
    TEST_REFUSED(grt_data_make(grt_make_desc(.path = data_kit_path("huge.h5"),
                                             .samples = 1ull << 40, .features = 1u << 20)),
                 GRT_IO, "are left on the disk");
    TEST_REFUSED(grt_data_make(grt_make_desc(.path = "x", .samples = 0, .features = 1)),
                 GRT_INVALID, "no samples");
    TEST_REFUSED(grt_data_make(NULL), GRT_INVALID, "no desc");
}

// The share of its bounding box that the shape of an image covers; without noise the corner has the
// background's colour, and the shape's is that which is farthest from it.
static double box_share(const float *image, int side) {
    double far = 0, sum = 0;
    int low[2] = {side, side}, high[2] = {-1, -1};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < side * side; i++) {
            double square = 0;
            for (int c = 0; c < 3; c++) {
                square += (image[i * 3 + c] - image[c]) * (image[i * 3 + c] - image[c]);
            }
            far = square > far ? square : far;
            double share = pass == 1 ? sqrt(square / far) : 0;
            sum += share;
            for (int axis = 0; share > 0.5 && axis < 2; axis++) {
                int at = axis == 0 ? i % side : i / side;
                low[axis] = at < low[axis] ? at : low[axis];
                high[axis] = at > high[axis] ? at : high[axis];
            }
        }
    }
    return sum / ((high[0] - low[0] + 1.0) * (high[1] - low[1] + 1.0));
}

// Areas over those of the bounding boxes: disc, square, triangle, plus, ring, frame, diamond,
// cross, bars, pair, by geometry.
static void made_shapes(void **state) {
    (void)state;
    static const double want[10] = {0.785, 1.0, 0.5, 0.51, 0.548, 0.691, 0.5, 0.716, 0.6, 0.727};
    enum { ROWS = 300, SIDE = 48 };
    double sums[10] = {0};
    int counts[10] = {0};
    const char *path = data_kit_path("shapes.h5"), *again = data_kit_path("again.h5");
    struct grt_make_desc desc = {.path = path,
                                 .make = GRT_MAKE_SHAPES,
                                 .samples = ROWS,
                                 .features = 1,
                                 .pixels = SIDE,
                                 .seed = 4};
    assert_true(grt_data_make(&desc));
    desc.path = again;
    desc.chunk = 7;
    desc.deflate = 1;
    assert_true(grt_data_make(&desc));
    float *x = data_kit_read(path, "x"), *x2 = data_kit_read(again, "x");
    float *y = data_kit_read(path, "y");
    assert_memory_equal(x, x2, (size_t)ROWS * SIDE * SIDE * 3 * sizeof *x);
    for (int i = 0; i < ROWS; i++) {
        int class = (int)y[i];
        assert_in_range(class, 0, 9);
        sums[class] += box_share(x + (size_t)i * SIDE * SIDE * 3, SIDE);
        counts[class]++;
    }
    for (int c = 0; c < 10; c++) {
        assert_true(counts[c] > 10);
        if (fabs(sums[c] / counts[c] - want[c]) > 0.04) {
            fail_msg("class %d covers %.3f of its box, not %.3f", c, sums[c] / counts[c], want[c]);
        }
    }
    struct grt_file_info *info = grt_file_info_create(path);
    assert_non_null(info);
    assert_int_equal(info->classes, 10);
    assert_string_equal(info->arrays[0].dtype, "u8");
    assert_true(info->noise_floor < 0);
    grt_file_info_destroy(&info);
    free(x);
    free(x2);
    free(y);
    desc.classes = 11;
    TEST_REFUSED(grt_data_make(&desc), GRT_INVALID, "more than 10 classes");
    desc.classes = 10;
    desc.deflate = 10;
    TEST_REFUSED(grt_data_make(&desc), GRT_INVALID, "deflate above 9");
    desc.classes = 2;
    desc.pixels = 7;
    TEST_REFUSED(grt_data_make(&desc), GRT_INVALID, "pixels a side");
}

static const struct CMUnitTest cases[] = {
    DATA_CASE(made_data),
    DATA_CASE(made_shapes),
};
TEST_SUITE(made, false, cases);
