// SPDX-License-Identifier: Apache-2.0
// Transforms of images: what is taken of each image against the formula in double precision, and
// how it is drawn against torchvision's way of drawing with another generator.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/network.h"
#include "harness/harness.h"
#include "kits/transform_kit.h"
#include "oracle/image.h"

static struct transform_kit begin(const char *text, const struct grt_shape *in, uint64_t rows) {
    return transform_begin(GRT_F32, text, NULL, in, rows);
}

// ---- what is taken ----

struct taken_pass {
    uint32_t height, width;  // of the result
    bool reflect;
    double scale[3], shift[3];
};

static void check_taken(const char *text, const struct grt_shape *in, enum grt_dtype dtype,
                        bool training, const struct taken_pass *passes, uint32_t count) {
    struct transform_kit k = transform_begin(dtype, text, NULL, in, 5);
    uint64_t channels = in->dim[2], height = in->dim[0], width = in->dim[1];
    uint64_t numbers = k.rows * height * width * channels;
    double *from = test_alloc(numbers * sizeof *from), largest = 0;
    k.training = training;
    transform_run(&k, 3);
    for (uint64_t i = 0; i < numbers; i++) {
        from[i] = (double)k.images[i];
    }
    for (uint32_t p = 0; p < count; p++) {
        const struct taken_pass *t = &passes[p];
        uint64_t of_image = (uint64_t)t->height * t->width * channels;
        double *to = test_alloc(k.rows * of_image * sizeof *to);
        int32_t *boxes = transform_boxes(&k, p);
        for (uint64_t row = 0; row < k.rows; row++) {
            oracle_take(&(struct oracle_take){.height = height,
                                              .width = width,
                                              .channels = channels,
                                              .out_height = t->height,
                                              .out_width = t->width,
                                              .box = boxes + row * BOX_SIZE,
                                              .flip = boxes[row * BOX_SIZE + 4] != 0,
                                              .reflect = t->reflect,
                                              .scale = t->scale,
                                              .shift = t->shift},
                        from + row * height * width * channels, to + row * of_image);
        }
        free(boxes);
        free(from);
        from = to;
        height = t->height;
        width = t->width;
        numbers = k.rows * of_image;
    }
    assert_int_equal(k.out.dim[0], height);
    assert_int_equal(k.out.dim[1], width);
    assert_null(grt_transform_boxes(k.module, count));
    for (uint64_t i = 0; i < numbers; i++) {
        largest = fmax(largest, fabs(from[i]));
    }
    float *got = transform_result(&k);
    double bound = dtype == GRT_F32 ? 4e-6 : count * 0x1p-11;
    struct test_compare compare = test_compare(test.dev, "%s, %s", text, grt_dtype_text(dtype));
    for (uint64_t i = 0; i < numbers; i++) {
        test_compare_value(&compare, i, got[i], (struct oracle_value){from[i], bound * largest});
    }
    test_compare_end(&compare);
    free(got);
    free(from);
    transform_end(&k);
}

#define PLAIN                                                                                      \
    {1, 1, 1}, {                                                                                   \
        0, 0, 0                                                                                    \
    }
#define TAKEN(text, in, training, ...)                                                             \
    do {                                                                                           \
        const struct taken_pass passes[] = {__VA_ARGS__};                                          \
        check_taken(text, in, GRT_F32, training, passes, sizeof passes / sizeof *passes);          \
        check_taken(text, in, GRT_F16, training, passes, sizeof passes / sizeof *passes);          \
    } while (0)

static void taken(void **state) {
    (void)state;
    const struct grt_shape small = {3, {12, 10, 3}}, wide = {3, {11, 23, 1}};
    // torchvision's means and deviations, of bytes.
    const double s0 = 1 / (255 * 0.229), s1 = 1 / (255 * 0.224), s2 = 1 / (255 * 0.225);
    const double m0 = -0.485 / 0.229, m1 = -0.456 / 0.224, m2 = -0.406 / 0.225;
    for (int training = 0; training < 2; training++) {
        TAKEN("[normalize]", &small, training, {12, 10, false, {s0, s1, s2}, {m0, m1, m2}});
        TAKEN("[{random_crop: {padding: 4}}]", &small, training, {12, 10, false, PLAIN});
        TAKEN("[{random_crop: {padding: 3, padding_mode: reflect}}, random_horizontal_flip]",
              &small, training, {12, 10, true, PLAIN});
        TAKEN("[{random_crop: 7}, {normalize: {mean: 0.5, std: 2, range: 1}}]", &small, training,
              {7, 7, false, {0.5, 0.5, 0.5}, {-0.25, -0.25, -0.25}});
        TAKEN("[{center_crop: [5, 4]}]", &small, training, {5, 4, false, PLAIN});
        TAKEN("[{resize: 5}]", &wide, training, {5, 10, false, PLAIN});
        TAKEN("[{resize: [30, 7]}]", &wide, training, {30, 7, false, PLAIN});
        TAKEN("[{random_resized_crop: 6}, {random_horizontal_flip: 1}, normalize]", &small,
              training, {6, 6, false, {s0, s1, s2}, {m0, m1, m2}});
        TAKEN("[{random_resized_crop: {size: [9, 20], scale: [0.2, 0.5], ratio: [1, 2]}}]", &wide,
              training, {9, 20, false, PLAIN});
        // A second box, and a box behind a flip, are passes of their own.
        TAKEN("[{resize: [16, 16]}, {random_crop: 13}, random_horizontal_flip, {center_crop: 9}]",
              &small, training, {16, 16, false, PLAIN}, {13, 13, false, PLAIN},
              {9, 9, false, PLAIN});
    }
}

// ---- how it is drawn ----

// torchvision's get_params() of random_resized_crop.
static void torchvision_box(uint64_t *seed, double height, double width, double box[4]) {
    for (int i = 0; i < 10; i++) {
        double area = height * width * (0.08 + 0.92 * transform_uniform(seed));
        double ratio = exp(log(3.0 / 4) + (log(4.0 / 3) - log(3.0 / 4)) * transform_uniform(seed));
        double w = rint(sqrt(area * ratio)), h = rint(sqrt(area / ratio));
        if (w > 0 && w <= width && h > 0 && h <= height) {
            box[0] = floor(transform_uniform(seed) * (height - h + 1));
            box[1] = floor(transform_uniform(seed) * (width - w + 1));
            box[2] = h;
            box[3] = w;
            return;
        }
    }
    double ratio = width / height;
    double h = ratio < 3.0 / 4 ? rint(width / (3.0 / 4)) : height;
    double w = ratio > 4.0 / 3 ? rint(height * (4.0 / 3)) : width;
    box[0] = floor((height - h) / 2);
    box[1] = floor((width - w) / 2);
    box[2] = h;
    box[3] = w;
}

// Images of a long shape too, for which many tries fail.
static void resized_crops(void **state) {
    (void)state;
    enum { ROWS = 4000, PEER = 40000 };
    const struct grt_shape shapes[] = {{3, {48, 48, 1}}, {3, {12, 60, 1}}};
    for (size_t s = 0; s < 2; s++) {
        struct transform_kit k = begin("[{random_resized_crop: 2}]", &shapes[s], ROWS);
        double height = (double)shapes[s].dim[0], width = (double)shapes[s].dim[1];
        double *ours = test_alloc(ROWS * sizeof *ours), *theirs = test_alloc(PEER * sizeof *theirs);
        uint64_t seed = 9;
        double(*peer)[4] = test_alloc(PEER * sizeof *peer);
        transform_run(&k, 0);
        int32_t *boxes = transform_boxes(&k, 0);
        for (size_t i = 0; i < PEER; i++) {
            torchvision_box(&seed, height, width, peer[i]);
        }
        static const char *const what[] = {"top", "left", "height", "width", "area"};
        for (int w = 0; w < 5; w++) {
            for (size_t i = 0; i < ROWS; i++) {
                const int32_t *b = boxes + i * BOX_SIZE;
                ours[i] = w < 4 ? b[w] : (double)b[2] * b[3];
                assert_true(b[0] >= 0 && b[1] >= 0 && b[2] > 0 && b[3] > 0 &&
                            b[0] + b[2] <= (int32_t)height && b[1] + b[3] <= (int32_t)width);
            }
            for (size_t i = 0; i < PEER; i++) {
                theirs[i] = w < 4 ? peer[i][w] : peer[i][2] * peer[i][3];
            }
            transform_alike(what[w], ours, ROWS, theirs, PEER);
        }
        free(peer);
        free(ours);
        free(theirs);
        free(boxes);
        transform_end(&k);
    }
}

// Every place is as likely as another, flips come by their share, and neither knows of the other.
static void crops_and_flips(void **state) {
    (void)state;
    enum { ROWS = 8100, PLACES = 9 };
    struct transform_kit k =
        begin("[{random_crop: {padding: 4}}, {random_horizontal_flip: {p: 0.3}}]",
              &(struct grt_shape){3, {6, 5, 1}}, ROWS);
    transform_run(&k, 12);
    int32_t *boxes = transform_boxes(&k, 0);
    uint32_t places[PLACES][PLACES] = {{0}}, flips = 0, high_flips = 0, high = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const int32_t *b = boxes + i * BOX_SIZE;
        assert_true(b[0] >= -4 && b[0] <= 4 && b[1] >= -4 && b[1] <= 4 && b[2] == 6 && b[3] == 5);
        places[b[0] + 4][b[1] + 4]++;
        flips += b[4] == 1;
        high += b[0] > 0;
        high_flips += b[0] > 0 && b[4] == 1;
    }
    double mean = (double)ROWS / (PLACES * PLACES), chi = 0;
    for (int i = 0; i < PLACES; i++) {
        for (int j = 0; j < PLACES; j++) {
            double apart = (double)places[i][j] - mean;
            chi += apart * apart / mean;
        }
    }
    assert_true(chi > 40 && chi < 133);  // 80 degrees of freedom: one in ten thousand either way
    assert_true(fabs(flips - 0.3 * ROWS) < 4 * sqrt(0.21 * ROWS));
    assert_true(fabs(high_flips - 0.3 * high) < 4 * sqrt(0.21 * high));
    free(boxes);
    transform_end(&k);
}

// By step, micro-batch and place alone.
static void counters(void **state) {
    (void)state;
    enum { ROWS = 64 };
    struct transform_kit k =
        begin("[{random_crop: {padding: 9}}]", &(struct grt_shape){3, {10, 10, 1}}, ROWS);
    transform_run(&k, 5);
    int32_t *first = transform_boxes(&k, 0);
    transform_run(&k, 6);
    int32_t *later = transform_boxes(&k, 0);
    k.micro = 1;
    transform_run(&k, 5);
    int32_t *other = transform_boxes(&k, 0);
    k.micro = 0;
    transform_run(&k, 5);
    int32_t *again = transform_boxes(&k, 0);
    k.training = false;
    transform_run(&k, 5);
    int32_t *still = transform_boxes(&k, 0);
    uint32_t same_later = 0, same_other = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const size_t at = i * BOX_SIZE;
        same_later += first[at] == later[at] && first[at + 1] == later[at + 1];
        same_other += first[at] == other[at] && first[at + 1] == other[at + 1];
        assert_true(still[at] == 0 && still[at + 1] == 0 && still[at + 4] == 0);
    }
    assert_true(same_later < 4 && same_other < 4);
    assert_memory_equal(first, again, ROWS * BOX_SIZE * 4);
    free(first);
    free(later);
    free(other);
    free(again);
    free(still);
    transform_end(&k);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[]", "a list of transforms is wanted"},
        {"[resizes]", "at character 2: no transform 'resizes'; did you mean 'resize'?"},
        {"[tint]", "no transform 'tint'; there are resize, center_crop"},
        {"[resize]", "at character 2: resize wants a size: resize(32)"},
        {"[{resize: 0}]", "at character 11: resize wants numbers from 1 to 16384, not '0'"},
        {"[{resize: 2.5}]", "resize wants whole pixels"},
        {"[{resize: [1, 2, 3]}]", "resize wants 1 to 2 numbers"},
        {"[{resize: {sise: 3}}]", "at character 12: resize has no value 'sise'"},
        {"[{random_horizontal_flip: 2}]", "p wants numbers from 0 to 1, not '2'"},
        {"[{random_resized_crop: {size: 3, scale: [1, 0.5]}}]", "scale wants two numbers"},
        {"[{random_crop: {padding_mode: odd}}]", "padding_mode: odd is none of constant, reflect"},
        {"[{normalize: {std: 0}}]", "std wants numbers from 1e-06"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TEST_REFUSED(grt_transform_create(grt_network_desc(.text = rows[i].text)), GRT_CONFIG,
                     rows[i].why);
    }
    // Too far for one side is too far.
    for (int turned = 0; turned < 2; turned++) {
        const struct grt_shape long_side = {3, {turned ? 4 : 9, turned ? 9 : 4, 3}};
        transform_refuse("[{random_crop: {padding: 4, padding_mode: reflect}}]", NULL, &long_side,
                         turned ? "an image of 4x9 cannot be mirrored 4 pixels far"
                                : "an image of 9x4 cannot be mirrored 4 pixels far");
    }
    TEST_REFUSED(grt_transform_create(NULL), GRT_INVALID, "transform: no desc");
    assert_null(grt_transform_boxes(NULL, 0));
}

static const struct CMUnitTest cases[] = {TEST_CASE(taken), TEST_CASE(resized_crops),
                                          TEST_CASE(crops_and_flips), TEST_CASE(counters),
                                          TEST_CASE(refused)};
TEST_SUITE(transform, true, cases);
