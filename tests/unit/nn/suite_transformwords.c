// SPDX-License-Identifier: Apache-2.0
// Lists of transforms, word by word: what each step is of its values, by their names, without and
// of none; both sides of every bound; and what a list comes to for images of some size.
#include "kits/ref_kit.h"
#include "kits/transform_kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/transform/transform_parts.h"
#include "shaders/host.h"
#include "shaders/image/lib/transform_params.k"

static bool read(const char *text, struct transform_step *step) {
    const struct grt_network_desc desc = {.text = text};
    const struct network_reading r = {.desc = &desc, .source = {.path = "t"}};
    struct grt_node *tree = grt_tree_create(&r.source, text);
    assert_true(tree && tree->kind == GRT_NODE_LIST && tree->first);
    bool good = transform_step_read(&r, tree->first, step);
    grt_tree_destroy(&tree);
    return good;
}

static struct transform_step step_of(const char *text) {
    struct transform_step step;
    memset(&step, 0xff, sizeof step);
    assert_true(read(text, &step));
    return step;
}

static bool near(double got, double want) {
    return fabs(got - want) <= 1e-12 * fmax(1, fabs(want));
}

// ---- boxes ----

static void boxes(void **state) {
    (void)state;
    static const struct {
        const char *text, *name;
        uint32_t box, height, width, shorter, padding;
        bool reflect;
    } rows[] = {
        {"[{resize: 5}]", "resize", BOX_WHOLE, 5, 5, 5, 0, false},
        {"[{resize: [5, 7]}]", "resize", BOX_WHOLE, 5, 7, 0, 0, false},
        {"[{resize: [5]}]", "resize", BOX_WHOLE, 5, 5, 0, 0, false},
        {"[{resize: {size: 5}}]", "resize", BOX_WHOLE, 5, 5, 5, 0, false},
        {"[{resize: {\"0\": [5, 7]}}]", "resize", BOX_WHOLE, 5, 7, 0, 0, false},
        {"[{center_crop: 4}]", "center_crop", BOX_MIDDLE, 4, 4, 0, 0, false},
        {"[{center_crop: [4, 3]}]", "center_crop", BOX_MIDDLE, 4, 3, 0, 0, false},
        {"[random_crop]", "random_crop", BOX_CROP, 0, 0, 0, 0, false},
        {"[{random_crop: 6}]", "random_crop", BOX_CROP, 6, 6, 0, 0, false},
        {"[{random_crop: {padding: 2, padding_mode: reflect}}]", "random_crop", BOX_CROP, 0, 0, 0,
         2, true},
        {"[{random_crop: {\"0\": [6, 5], \"1\": 2, \"2\": constant}}]", "random_crop", BOX_CROP, 6,
         5, 0, 2, false},
        {"[{random_resized_crop: 6}]", "random_resized_crop", BOX_RESIZED, 6, 6, 0, 0, false},
        {"[{random_resized_crop: {size: [6, 9]}}]", "random_resized_crop", BOX_RESIZED, 6, 9, 0, 0,
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct transform_step s = step_of(rows[i].text);
        assert_int_equal(s.kind, TRANSFORM_BOX);
        assert_string_equal(s.name, rows[i].name);
        assert_int_equal(s.box, rows[i].box);
        assert_int_equal(s.size[0], rows[i].height);
        assert_int_equal(s.size[1], rows[i].width);
        assert_int_equal(s.shorter, rows[i].shorter);
        assert_int_equal(s.padding, rows[i].padding);
        assert_int_equal(s.reflect, rows[i].reflect);
    }
    struct transform_step s = step_of("[{random_resized_crop: 6}]");
    assert_true(s.area[0] == 0.08 && s.area[1] == 1);
    assert_true(s.ratio[0] == 0.75 && s.ratio[1] == 4.0 / 3);
    s = step_of("[{random_resized_crop: {size: 6, scale: [0.25, 0.5], ratio: [2, 3]}}]");
    assert_true(s.area[0] == 0.25 && s.area[1] == 0.5 && s.ratio[0] == 2 && s.ratio[1] == 3);
    s = step_of("[{random_resized_crop: {\"0\": 6, \"1\": [0.5, 0.5], \"2\": [1e-3, 1e3]}}]");
    assert_true(s.area[0] == 0.5 && s.area[1] == 0.5 && s.ratio[0] == 1e-3 && s.ratio[1] == 1e3);
}

// ---- shares ----

static void shares(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum transform_kind kind;
        double p;
    } rows[] = {
        {"[random_horizontal_flip]", TRANSFORM_FLIP, 0.5},
        {"[{random_horizontal_flip: 0.25}]", TRANSFORM_FLIP, 0.25},
        {"[{random_horizontal_flip: {p: 1}}]", TRANSFORM_FLIP, 1},
        {"[{random_horizontal_flip: 0}]", TRANSFORM_FLIP, 0},
        {"[random_grayscale]", TRANSFORM_GREY, 0.1},
        {"[{random_grayscale: 0.3}]", TRANSFORM_GREY, 0.3},
        {"[{random_grayscale: {p: 0.2}}]", TRANSFORM_GREY, 0.2},
        {"[{color_jitter: 0.4}]", TRANSFORM_JITTER, 1},
        {"[{color_jitter: {\"0\": 0.4, p: 0.8}}]", TRANSFORM_JITTER, 0.8},
        {"[{color_jitter: {\"0\": 0.4, \"4\": 0.7}}]", TRANSFORM_JITTER, 0.7},
        {"[{gaussian_blur: 3}]", TRANSFORM_BLUR, 1},
        {"[{gaussian_blur: {\"0\": 3, \"2\": 0.5}}]", TRANSFORM_BLUR, 0.5},
        {"[random_erasing]", TRANSFORM_ERASE, 0.5},
        {"[{random_erasing: 0.25}]", TRANSFORM_ERASE, 0.25},
        {"[{cutout: 5}]", TRANSFORM_ERASE, 1},
        {"[{cutout: {size: 5, p: 0.5}}]", TRANSFORM_ERASE, 0.5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct transform_step s = step_of(rows[i].text);
        assert_int_equal(s.kind, rows[i].kind);
        assert_true(s.p == rows[i].p);
    }
}

// ---- colours ----

static void factors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t operations;
        double range[4][2];
    } rows[] = {
        {"[{color_jitter: 0.5}]", 1, {{0.5, 1.5}, {1, 1}, {1, 1}, {0, 0}}},
        {"[{color_jitter: {contrast: 1.5}}]", 2, {{1, 1}, {0, 2.5}, {1, 1}, {0, 0}}},
        {"[{color_jitter: {saturation: [0.5, 2]}}]", 4, {{1, 1}, {1, 1}, {0.5, 2}, {0, 0}}},
        {"[{color_jitter: {hue: 0.25}}]", 8, {{1, 1}, {1, 1}, {1, 1}, {-0.25, 0.25}}},
        {"[{color_jitter: {hue: [-0.5, -0.25]}}]", 8, {{1, 1}, {1, 1}, {1, 1}, {-0.5, -0.25}}},
        {"[{color_jitter: {\"0\": 0.5, \"1\": 1, \"2\": 0, \"3\": 0.5}}]",
         1 + 2 + 8,
         {{0.5, 1.5}, {0, 2}, {1, 1}, {-0.5, 0.5}}},
        // A range beside what changes nothing is one, also of one number.
        {"[{color_jitter: {brightness: [1, 1.5], contrast: [0.5, 1], saturation: [2, 2]}}]",
         1 + 2 + 4,
         {{1, 1.5}, {0.5, 1}, {2, 2}, {0, 0}}},
        {"[{color_jitter: {brightness: [1, 1], contrast: 1000}}]",
         2,
         {{1, 1}, {0, 1001}, {1, 1}, {0, 0}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct transform_step s = step_of(rows[i].text);
        assert_int_equal(s.operations, rows[i].operations);
        for (int f = 0; f < 4; f++) {
            assert_true(near(s.factors[f][0], rows[i].range[f][0]));
            assert_true(near(s.factors[f][1], rows[i].range[f][1]));
        }
    }
}

static void blurs_and_erasing(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t taps;
        double low, high;
    } blurs[] = {
        {"[{gaussian_blur: 9}]", 9, 0.1, 2},
        {"[{gaussian_blur: {kernel_size: 31, sigma: 0.5}}]", 31, 0.5, 0.5},
        {"[{gaussian_blur: {kernel_size: 1, sigma: [0.25, 4]}}]", 1, 0.25, 4},
        {"[{gaussian_blur: {\"0\": 3, \"1\": [2, 2]}}]", 3, 2, 2},
    };
    for (size_t i = 0; i < sizeof blurs / sizeof *blurs; i++) {
        struct transform_step s = step_of(blurs[i].text);
        assert_int_equal(s.taps, blurs[i].taps);
        assert_true(s.sigma[0] == blurs[i].low && s.sigma[1] == blurs[i].high);
    }
    static const struct {
        const char *text;
        uint32_t kind, side, channels;
        double area[2], ratio[2], fill[4];
    } rows[] = {
        {"[random_erasing]", ERASE_AREA, 0, 0, {0.02, 0.33}, {0.3, 3.3}, {0}},
        {"[{random_erasing: {scale: [0.25, 0.5], ratio: [1, 2], value: 7}}]",
         ERASE_AREA,
         0,
         0,
         {0.25, 0.5},
         {1, 2},
         {7, 7, 7, 7}},
        {"[{random_erasing: {\"1\": [1, 1], \"2\": [3, 3], \"3\": [1, 2, 3, 4]}}]",
         ERASE_AREA,
         0,
         4,
         {1, 1},
         {3, 3},
         {1, 2, 3, 4}},
        {"[{cutout: 5}]", ERASE_SQUARE, 5, 0, {0}, {0}, {0}},
        {"[{cutout: {\"0\": [6, 6], \"2\": [-1, 2]}}]",
         ERASE_SQUARE,
         6,
         2,
         {0},
         {0},
         {-1, 2, 2, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct transform_step s = step_of(rows[i].text);
        assert_int_equal(s.erase, rows[i].kind);
        assert_int_equal(s.size[0], rows[i].side);
        assert_int_equal(s.channels, rows[i].channels);
        for (int k = 0; k < 4; k++) {
            assert_true(k >= 2 || (s.area[k] == rows[i].area[k] && s.ratio[k] == rows[i].ratio[k]));
            assert_true(s.fill[k] == rows[i].fill[k]);
        }
    }
}

// scale 1 / (range std), shift -mean / std: of bytes where no range is given.
static void normalized(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double mean[4], std[4], range;
        uint32_t channels;
    } rows[] = {
        {"[normalize]", {0.485, 0.456, 0.406, 0.5}, {0.229, 0.224, 0.225, 0.25}, 255, 0},
        {"[{normalize: 0.25}]", {0.25, 0.25, 0.25, 0.25}, {0.229, 0.224, 0.225, 0.25}, 255, 0},
        {"[{normalize: {std: 2}}]", {0.485, 0.456, 0.406, 0.5}, {2, 2, 2, 2}, 255, 0},
        {"[{normalize: {mean: [1, 2], std: [3, 4], range: 10}}]",
         {1, 2, 2, 2},
         {3, 4, 4, 4},
         10,
         2},
        {"[{normalize: {\"0\": [1, 2, 3, 4], \"1\": 5, \"2\": 1}}]",
         {1, 2, 3, 4},
         {5, 5, 5, 5},
         1,
         4},
        {"[{normalize: {mean: -6, std: [3, 4, 5]}}]", {-6, -6, -6, -6}, {3, 4, 5, 5}, 255, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct transform_step s = step_of(rows[i].text);
        assert_int_equal(s.kind, TRANSFORM_NORMALIZE);
        assert_int_equal(s.channels, rows[i].channels);
        assert_true(s.range == rows[i].range);
        for (int c = 0; c < 4; c++) {
            assert_true(near(s.scale[c], 1 / (rows[i].range * rows[i].std[c])));
            assert_true(near(s.shift[c], -rows[i].mean[c] / rows[i].std[c]));
        }
    }
    static const struct {
        const char *text;
        double alpha;
        bool cut;
    } mixes[] = {{"[mixup]", 1, false},
                 {"[{mixup: 0.4}]", 0.4, false},
                 {"[{mixup: {alpha: 2}}]", 2, false},
                 {"[cutmix]", 1, true},
                 {"[{cutmix: {\"0\": 0.01}}]", 0.01, true}};
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        struct transform_step s = step_of(mixes[i].text);
        assert_int_equal(s.kind, TRANSFORM_MIX);
        assert_true(s.alpha == mixes[i].alpha && s.cut == mixes[i].cut);
    }
}

// ---- bounds ----

static void bounds(void **state) {
    (void)state;
    static const struct {
        const char *taken, *refused, *why;
    } rows[] = {
        {"[{resize: 16384}]", "[{resize: 16385}]", "resize wants numbers from 1 to 16384"},
        {"[{resize: 1}]", "[{resize: 0.5}]", "resize wants numbers from 1 to 16384, not '0.5'"},
        {"[{resize: [1, 2]}]", "[{resize: [1, 2.5]}]", "t:1:11: resize wants whole pixels"},
        {"[{center_crop: 2}]", "[{center_crop: -2}]", "center_crop wants numbers from 1"},
        {"[{center_crop: 2}]", "[center_crop]", "t:1:2: center_crop wants a size: center_crop(32)"},
        {"[{center_crop: 2}]", "[{center_crop: []}]", "center_crop wants 1 to 2 numbers"},
        {"[{random_crop: {padding: 16384}}]", "[{random_crop: {padding: 16385}}]",
         "padding wants numbers from 0 to 16384, not '16385'"},
        {"[{random_crop: {padding: 0}}]", "[{random_crop: {padding: -1}}]",
         "padding wants numbers from 0"},
        {"[{random_crop: {padding: 2}}]", "[{random_crop: {padding: 2.5}}]",
         "padding wants whole pixels"},
        {"[{random_crop: {padding: [2]}}]", "[{random_crop: {padding: [2, 2]}}]",
         "padding wants 1 to 1 numbers"},
        {"[{random_crop: {padding_mode: constant}}]", "[{random_crop: {padding_mode: [reflect]}}]",
         "padding_mode: this is none of constant, reflect"},
        {"[{random_resized_crop: {size: 2, scale: [1e-6, 1]}}]",
         "[{random_resized_crop: {size: 2, scale: [0, 1]}}]",
         "scale wants numbers from 1e-06 to 1"},
        {"[{random_resized_crop: {size: 2, scale: [0.5, 0.5]}}]",
         "[{random_resized_crop: {size: 2, scale: 0.5}}]", "scale wants two numbers, (0.5, 1)"},
        {"[{random_resized_crop: {size: 2, scale: [0.5, 1]}}]",
         "[{random_resized_crop: {size: 2, scale: [0.5, 1.01]}}]", "not '1.01'"},
        {"[{random_resized_crop: {size: 2, ratio: [1e-3, 1e3]}}]",
         "[{random_resized_crop: {size: 2, ratio: [9e-4, 1]}}]",
         "ratio wants numbers from 0.001 to 1000"},
        {"[{random_resized_crop: {size: 2, ratio: [1, 1]}}]",
         "[{random_resized_crop: {size: 2, ratio: [1, 1001]}}]", "ratio wants numbers from 0.001"},
        {"[{random_resized_crop: {size: 2, ratio: [1, 2]}}]",
         "[{random_resized_crop: {size: 2, ratio: [1, 2, 3]}}]", "ratio wants 1 to 2 numbers"},
        {"[{random_horizontal_flip: 1}]", "[{random_horizontal_flip: 1.001}]", "p wants numbers"},
        {"[{random_horizontal_flip: 0}]", "[{random_horizontal_flip: -0.001}]", "p wants numbers"},
        {"[{random_grayscale: 1}]", "[{random_grayscale: one}]", "not 'one'"},
        {"[{random_grayscale: 1}]", "[{random_grayscale: 0x1}]", "not '0x1'"},
        {"[{random_grayscale: 1}]", "[{random_grayscale: nan}]", "not 'nan'"},
        {"[{random_grayscale: 1}]", "[{random_grayscale: [0.5, 0.5]}]", "p wants 1 to 1 numbers"},
        {"[{color_jitter: 1000}]", "[{color_jitter: 1001}]", "brightness wants numbers from 0 to"},
        {"[{color_jitter: {hue: 0.5}}]", "[{color_jitter: {hue: 0.501}}]",
         "hue wants numbers from 0 to 0.5"},
        {"[{color_jitter: {hue: [-0.5, 0.5]}}]", "[{color_jitter: {hue: [-0.501, 0.5]}}]",
         "hue wants numbers from -0.5 to 0.5, not '-0.501'"},
        {"[{color_jitter: {hue: [0.1, 0.1]}}]", "[{color_jitter: {hue: -0.1}}]",
         "hue wants numbers from 0 to 0.5, not '-0.1'"},
        {"[{color_jitter: {contrast: [0, 1000]}}]", "[{color_jitter: {contrast: [0.5]}}]",
         "contrast wants a strength, or two numbers: (0.5, 1.5)"},
        {"[{color_jitter: {hue: [0, 0.1]}}]", "[{color_jitter: {hue: [0.1]}}]",
         "hue wants a strength, or two numbers: (-0.1, 0.1)"},
        {"[{color_jitter: {saturation: [1, 2]}}]", "[{color_jitter: {saturation: [2, 1]}}]",
         "saturation wants a strength, or two numbers"},
        {"[{color_jitter: 0.1}]", "[{color_jitter: {brightness: 0, contrast: [1, 1], hue: 0}}]",
         "t:1:2: color_jitter changes nothing: color_jitter(0.4, 0.4, 0.4, 0.1)"},
        {"[{gaussian_blur: 31}]", "[{gaussian_blur: 32}]",
         "kernel_size wants numbers from 1 to 31, not '32'"},
        {"[{gaussian_blur: 1}]", "[{gaussian_blur: 0}]", "kernel_size wants numbers from 1"},
        {"[{gaussian_blur: 3}]", "[{gaussian_blur: 2.5}]",
         "kernel_size wants an odd number, not 2.5"},
        {"[{gaussian_blur: 3}]", "[{gaussian_blur: [3, 3]}]", "kernel_size wants 1 to 1 numbers"},
        {"[{gaussian_blur: {\"0\": 3, sigma: 1e-3}}]", "[{gaussian_blur: {\"0\": 3, sigma: 9e-4}}]",
         "sigma wants numbers from 0.001 to 1000"},
        {"[{gaussian_blur: {\"0\": 3, sigma: [1, 1000]}}]",
         "[{gaussian_blur: {\"0\": 3, sigma: [1, 1001]}}]", "sigma wants numbers from 0.001"},
        {"[{gaussian_blur: {\"0\": 3, sigma: [2, 2]}}]",
         "[{gaussian_blur: {\"0\": 3, sigma: [2]}}]", "sigma wants two numbers"},
        {"[{random_erasing: {ratio: [1, 1]}}]", "[{random_erasing: {ratio: [2, 1]}}]",
         "ratio wants two numbers"},
        {"[{random_erasing: {value: [1, 2, 3, 4]}}]",
         "[{random_erasing: {value: [1, 2, 3, 4, 5]}}]", "value wants 1 to 4 numbers"},
        {"[{random_erasing: {value: -1e6}}]", "[{random_erasing: {value: -1000001}}]",
         "value wants numbers from -1e+06 to 1e+06"},
        {"[{cutout: 1}]", "[{cutout: 1.5}]", "cutout wants whole pixels"},
        {"[{cutout: [2, 2]}]", "[{cutout: [2, 1]}]", "t:1:2: cutout wants one size, of a square"},
        {"[{normalize: {mean: [1, 2, 3], std: [1, 2, 3]}}]",
         "[{normalize: {mean: [1, 2, 3], std: [1, 2]}}]",
         "std is for 2 channels, and what stands before for 3"},
        {"[{normalize: {std: 1e-6}}]", "[{normalize: {std: [1, 9e-7]}}]",
         "std wants numbers from 1e-06 to 1e+06, not '9e-7'"},
        {"[{normalize: {mean: 1e6}}]", "[{normalize: {mean: 1000001}}]", "mean wants numbers"},
        {"[{normalize: {range: 1e-6}}]", "[{normalize: {range: 0}}]", "range wants numbers from"},
        {"[{normalize: {range: 1e6}}]", "[{normalize: {range: [1, 2]}}]", "range wants 1 to 1"},
        {"[{mixup: 1000}]", "[{mixup: 1001}]", "alpha wants numbers from 0.01 to 1000, not '1001'"},
        {"[{cutmix: 0.01}]", "[{cutmix: 0.009}]", "alpha wants numbers from 0.01"},
        {"[{resize: {\"0\": 3}}]", "[{resize: {\"1\": 3}}]", "t:1:12: resize has no value '1'"},
        {"[{color_jitter: {\"4\": 1, \"0\": 1}}]", "[{color_jitter: {\"0\": 1, \"5\": 1}}]",
         "color_jitter has no value '5'"},
        {"[normalize]", "[[normalize]]", "a transform is one word, or one word with its values"},
        {"[{resize: 3}]", "[{resize: 3, cutout: 2}]", "a transform is one word, or one word with"},
        {"[{random_crop: {\"0\": 4, padding: 2}}]", "[{random_crop: {\"0\": 4, size: 5}}]",
         "random_crop has two values for size"},
        {"[normalize]", "[normalise]", "no transform 'normalise'; did you mean 'normalize'?"},
        {"[normalize]", "[solarize_all_of_it]",
         "no transform 'solarize_all_of_it'; there are resize, center_crop, random_crop, "
         "random_horizontal_flip, random_resized_crop, color_jitter, random_grayscale, "
         "gaussian_blur, random_erasing, cutout, normalize, mixup, cutmix"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct transform_step step;
        assert_true(read(rows[i].taken, &step));
        TEST_REFUSED(read(rows[i].refused, &step), GRT_CONFIG, rows[i].why);
    }
}

// ---- lists for images ----

static void lists(void **state) {
    (void)state;
    char text[400] = "[normalize";
    for (int i = 1; i <= 16; i++) {
        struct grt_module *module = NULL;
        char whole[408];
        snprintf(whole, sizeof whole, "%s]", text);
        assert_true((module = grt_transform_create(grt_network_desc(.text = whole))) != NULL);
        grt_module_destroy(&module);
        strcat(text, ", normalize");
    }
    strcat(text, "]");
    TEST_REFUSED(grt_transform_create(grt_network_desc(.text = text)), GRT_CONFIG,
                 "transform at character 178: more than 16 transforms");
    TEST_REFUSED(grt_transform_create(grt_network_desc(.path = "t")), GRT_INVALID,
                 "transform: no text");
    TEST_REFUSED(grt_transform_create(grt_network_desc(.text = "normalize", .path = "a.yaml",
                                                       .line = 7, .column = 5)),
                 GRT_CONFIG, "a.yaml:7:5: a list of transforms is wanted");
    struct grt_module *one = grt_transform_create(grt_network_desc(.text = "[normalize]"));
    assert_non_null(one);
    TEST_REFUSED(grt_transform_evaluate(one, NULL), GRT_INVALID,
                 "transform: no text of evaluations");
    TEST_REFUSED(grt_transform_evaluate(one, grt_network_desc(.path = "t")), GRT_INVALID,
                 "transform: no text of evaluations");
    TEST_REFUSED(grt_transform_evaluate(one, grt_network_desc(.text = "[{resize: 0}]")), GRT_CONFIG,
                 "transform at character 11: resize wants");
    assert_null(grt_transform_boxes(one, 0));
    assert_null(grt_transform_colours(one, 0));
    grt_module_destroy(&one);
    one = grt_activation_create(GRT_ACT_RELU);
    TEST_REFUSED(grt_transform_evaluate(one, grt_network_desc(.text = "[normalize]")), GRT_INVALID,
                 "transform: no module");
    grt_transform_plain(one);
    grt_transform_plain(NULL);
    assert_null(grt_transform_boxes(one, 0));
    grt_module_destroy(&one);
}

static void images_that_do_not_fit(void **state) {
    (void)state;
    const struct grt_shape image = {3, {9, 5, 3}}, flat = {1, {45}}, many = {3, {9, 5, 2}};
    const struct grt_shape high = {3, {16385, 1, 1}}, wide = {3, {1, 16385, 1}},
                           deep = {3, {1, 1, 16385}};
    static const struct {
        const char *text, *evaluated, *why;
    } rows[] = {
        {"[{center_crop: [10, 5]}]", NULL,
         "transform: center_crop: 10x5 is more than the image has, 9x5"},
        {"[{random_crop: 6}]", NULL, "random_crop: 6x6 is more than the image has, 9x5"},
        {"[{random_crop: {padding: 5, padding_mode: reflect}}]", NULL,
         "random_crop: an image of 9x5 cannot be mirrored 5 pixels far"},
        {"[{gaussian_blur: 11}]", NULL,
         "gaussian_blur: an image of 9x5 cannot be mirrored 5 pixels far"},
        {"[{resize: [5, 9]}, {gaussian_blur: 11}]", NULL,
         "gaussian_blur: an image of 5x9 cannot be mirrored 5 pixels far"},
        {"[{center_crop: 3}, {center_crop: 4}]", NULL,
         "center_crop: 4x4 is more than the image has, 3x3"},
        {"[normalize, random_grayscale]", NULL, "random_grayscale comes before normalize"},
        {"[normalize, {cutout: 2}, {resize: 4}, {color_jitter: 1}]", NULL,
         "color_jitter comes before normalize"},
        {"[cutmix, mixup]", NULL, "cutmix comes last, once"},
        {"[{normalize: {mean: [1, 2, 3, 4]}}]", NULL,
         "normalize has numbers for 4 channels, and images have 3: give one number for all, or one "
         "each"},
        {"[{resize: [4, 4]}]", "[{resize: 4}]",
         "transform: gives [4][4][3] in training, and [7][4][3] in evaluations by eval_transform"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        transform_refuse(rows[i].text, rows[i].evaluated, &image, rows[i].why);
    }
    transform_refuse("[{color_jitter: 1}]", NULL, &many,
                     "color_jitter is of images of 1 or 3 channels, not 2");
    static const char *const takes = "transform: takes images of [height][width][channels], not ";
    transform_refuse("[normalize]", NULL, &flat, takes);
    transform_refuse("[normalize]", NULL, &high, takes);
    transform_refuse("[normalize]", NULL, &wide, takes);
    transform_refuse("[normalize]", NULL, &deep, takes);
}

// How many passes a list is, and what it gives; the largest that fits.
static void passes_of_lists(void **state) {
    (void)state;
    static const struct {
        const char *text, *evaluated;
        uint32_t passes, coloured;  // bits of passes that change colours
        uint64_t height, width;
    } rows[] = {
        {"[normalize]", NULL, 1, 0, 9, 5},
        {"[{center_crop: [9, 5]}]", NULL, 1, 0, 9, 5},
        {"[{random_crop: {padding: 4, padding_mode: reflect}}]", NULL, 1, 0, 9, 5},
        {"[{gaussian_blur: 9}]", NULL, 1, 1, 9, 5},
        {"[{resize: 10}]", NULL, 1, 0, 18, 10},
        {"[{resize: 3}]", NULL, 1, 0, 5, 3},
        {"[{resize: [3, 4]}, {center_crop: 2}]", NULL, 2, 0, 2, 2},
        {"[random_horizontal_flip, {resize: 3}]", NULL, 2, 0, 5, 3},
        {"[random_horizontal_flip, random_horizontal_flip]", NULL, 2, 0, 9, 5},
        {"[{random_crop: 3}, random_horizontal_flip, {color_jitter: 1}, random_grayscale, "
         "{gaussian_blur: 3}, {cutout: 1}, normalize]",
         NULL, 1, 1, 3, 3},
        {"[normalize, {cutout: 1}]", NULL, 1, 1, 9, 5},
        {"[{cutout: 1}, normalize, {cutout: 1}]", NULL, 2, 3, 9, 5},
        {"[{cutout: 1}, {cutout: 1}]", NULL, 2, 3, 9, 5},
        {"[random_grayscale, {color_jitter: 1}, {random_horizontal_flip: 1}]", NULL, 3, 3, 9, 5},
        {"[{resize: [4, 4]}, mixup]", "[{center_crop: 4}]", 1, 0, 4, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct transform_kit k = transform_begin(GRT_F32, rows[i].text, rows[i].evaluated,
                                                 &(struct grt_shape){3, {9, 5, 3}}, 2);
        assert_true(k.out.dim[0] == rows[i].height && k.out.dim[1] == rows[i].width &&
                    k.out.dim[2] == 3);
        for (uint32_t p = 0; p <= rows[i].passes; p++) {
            assert_int_equal(grt_transform_boxes(k.module, p) != NULL, p < rows[i].passes);
            assert_int_equal(grt_transform_colours(k.module, p) != NULL, rows[i].coloured >> p & 1);
        }
        assert_int_equal(k.net->mix != NULL, i + 1 == sizeof rows / sizeof *rows);
        // Every pass draws from a stream of its own, one with colours from two, and so does mixing.
        uint32_t streams = rows[i].passes + (rows[i].coloured & 1) + (rows[i].coloured >> 1 & 1);
        assert_int_equal(k.net->streams, streams + (rows[i].evaluated ? 2 : 0));
        transform_end(&k);
    }
}

// Pictures are not normalized, but all else is done; other steps of evaluations replace those
// before.
static void plain_and_replaced(void **state) {
    (void)state;
    const struct grt_shape in = {3, {4, 6, 1}};
    for (int plain = 0; plain < 2; plain++) {
        struct grt_module *module = grt_transform_create(
            grt_network_desc(.text =
                                 "[{center_crop: 2}, {normalize: {mean: 1, std: 0.5, range: 1}}]"));
        assert_non_null(module);
        assert_true(grt_transform_evaluate(module, grt_network_desc(.text = "[{resize: 1}]")));
        assert_true(grt_transform_evaluate(
            module, grt_network_desc(.text = "[{center_crop: 2}, {normalize: {mean: 3, std: 1, "
                                             "range: 1}}]")));
        if (plain) {
            grt_transform_plain(module);
        }
        struct grt_params params;
        grt_params_init(&params, test.dev, GRT_F32);
        struct grt_plan *plan = grt_plan_create(test.dev);
        struct grt_net net = {
            .dev = test.dev, .plan = plan, .params = &params, .dtype = GRT_F32, .rows = 1};
        struct grt_shape out = grt_module_declare(module, &net, "", &in);
        assert_true(out.dim[0] == 2 && out.dim[1] == 2);
        const struct grt_tensor *x =
            grt_plan_tensor(plan, grt_tensor_desc(.label = "x", .shape = {1, 4, 6, 1}));
        const struct grt_tensor *y =
            grt_plan_tensor(plan, grt_tensor_desc(.label = "y", .shape = {1, 2, 2, 1}));
        assert_true(grt_plan_alloc(plan));
        float numbers[24], got[4];
        for (int i = 0; i < 24; i++) {
            numbers[i] = (float)i;
        }
        assert_true(grt_buf_write(x->range.buf, x->range.offset, numbers, sizeof numbers));
        struct grt_buf *own = test_buf(test.dev, 128, GRT_BUF_DEVICE);
        for (int training = 0; training < 2; training++) {
            struct grt_graph *graph = grt_graph_create(test.dev, "pictures");
            const struct grt_pass pass = {
                .graph = graph, .training = training == 1, .state = {own, 0, 128}};
            grt_module_forward(module, &pass, x, y);
            assert_true(grt_graph_finish(graph));
            grt_graph_destroy(&graph);
            assert_true(grt_buf_read(y->range.buf, y->range.offset, got, sizeof got));
            static const float middle[] = {8, 9, 14, 15};
            for (int i = 0; i < 4; i++) {
                float want = plain ? middle[i] : training ? 2 * (middle[i] - 1) : middle[i] - 3;
                assert_true(fabsf(got[i] - want) < 1e-4f);
            }
        }
        grt_buf_destroy(&own);
        grt_module_destroy(&module);
        grt_net_finish(&net);
        grt_params_finish(&params);
        grt_plan_destroy(&plan);
    }
}

static const struct CMUnitTest cases[] = {
    REF_CASE(boxes),           REF_CASE(shares),
    REF_CASE(factors),         REF_CASE(blurs_and_erasing),
    REF_CASE(normalized),      REF_CASE(bounds),
    REF_CASE(lists),           REF_CASE(images_that_do_not_fit),
    REF_CASE(passes_of_lists), REF_CASE(plain_and_replaced),
};
TEST_SUITE(transformwords, false, cases);
