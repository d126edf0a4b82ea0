// SPDX-License-Identifier: Apache-2.0
// Transforms of colours: each view against the formulas in double precision with the numbers that
// were drawn for it, against torchvision with given numbers, and how the numbers are drawn.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/torchvision_colours.h"
#include "gpurt/network.h"
#include "harness/harness.h"
#include "kits/transform_kit.h"
#include "oracle/colour.h"
#include "oracle/image.h"

// The words of a view.
struct colours {
    uint32_t order;
    float factors[4];
    uint32_t grey;
    float sigma;
    int32_t erase[4];
    uint32_t unused;
};

// ---- what is made of a view ----

// A view of bytes goes through some ten roundings of 2^-24 of 255, which the factors of contrast
// and saturation stretch: ref, PoCL and lavapipe pass at 1e-6 of 255, and twice that is allowed. In
// f16 the result is rounded once, 2^-11.
#define BOUND (255 * 2e-6)

struct made {
    const char *text;
    struct grt_shape in, out;
    uint32_t taps;
    double most;          // of colours; 0: 255
    double scale, shift;  // of all channels
    double fill;          // of what is erased
    bool erase_is_last;   // behind the normalization
};

static void change(const struct oracle_image *image, const struct colours *c) {
    static void (*const operations[])(const struct oracle_image *, double) = {
        oracle_brightness, oracle_contrast, oracle_saturation, oracle_hue};
    for (uint32_t order = c->order; order != 0; order >>= 4) {
        uint32_t operation = (order & 15) - 1;
        assert_true(operation < 4);
        operations[operation](image, (double)c->factors[operation]);
    }
    if (c->grey) {
        oracle_grey(image);
    }
}

static void check_made(const struct made *m, enum grt_dtype dtype) {
    struct transform_kit k = transform_begin(dtype, m->text, NULL, &m->in, 6);
    size_t channels = (size_t)m->in.dim[2], from = grt_shape_count(&m->in);
    size_t count = grt_shape_count(&m->out);
    double most = m->most > 0 ? m->most : 255, *x = test_alloc(from * sizeof *x);
    double scale = m->scale != 0 ? m->scale : 1;
    const double ones[] = {1, 1, 1, 1, 1}, zeros[5] = {0};
    transform_run(&k, 3);
    assert_true(grt_shape_equal(&k.out, &m->out));
    int32_t *boxes = transform_boxes(&k, 0);
    struct colours *drawn = (struct colours *)transform_colours(&k, 0);
    float *got = transform_result(&k);
    struct test_compare compare = test_compare(test.dev, "%s, %s", m->text, grt_dtype_text(dtype));
    for (uint64_t row = 0; row < k.rows; row++) {
        struct oracle_image image = {(size_t)m->out.dim[0], (size_t)m->out.dim[1], channels, most,
                                     test_alloc(count * sizeof(double))};
        double fill[5];
        for (size_t i = 0; i < from; i++) {
            x[i] = (double)k.images[row * from + i];
        }
        oracle_take(&(struct oracle_take){.height = (size_t)m->in.dim[0],
                                          .width = (size_t)m->in.dim[1],
                                          .channels = channels,
                                          .out_height = image.height,
                                          .out_width = image.width,
                                          .box = boxes + row * BOX_SIZE,
                                          .flip = boxes[row * BOX_SIZE + 4] != 0,
                                          .scale = ones,
                                          .shift = zeros},
                    x, image.v);
        change(&image, &drawn[row]);
        if (drawn[row].sigma > 0) {
            oracle_blur(&image, m->taps, (double)drawn[row].sigma);
        }
        for (size_t i = 0; i < 5; i++) {
            fill[i] = m->fill;
        }
        if (!m->erase_is_last) {
            oracle_erase(&image, drawn[row].erase, fill);
        }
        for (size_t i = 0; i < count; i++) {
            image.v[i] = image.v[i] * scale + m->shift;
        }
        if (m->erase_is_last) {
            oracle_erase(&image, drawn[row].erase, fill);
        }
        for (size_t i = 0; i < count; i++) {
            double bound = BOUND * scale + 4e-7 * fabs(m->shift);
            bound += dtype == GRT_F32 ? 0 : 0x1p-11 * fabs(image.v[i]) + 1e-7;
            test_compare_value(&compare, row * count + i, got[row * count + i],
                               (struct oracle_value){image.v[i], bound});
        }
        free(image.v);
    }
    test_compare_end(&compare);
    free(x);
    free(boxes);
    free(drawn);
    free(got);
    transform_end(&k);
}

static void made(void **state) {
    (void)state;
#define SHAPE(h, w, c)                                                                             \
    {                                                                                              \
        3, {                                                                                       \
            h, w, c                                                                                \
        }                                                                                          \
    }
    const struct made rows[] = {
        {"[{color_jitter: {\"0\": 0.8, \"1\": 0.8, \"2\": 0.8, \"3\": 0.2}}]", SHAPE(12, 10, 3),
         SHAPE(12, 10, 3)},
        {"[{random_resized_crop: 9}, random_horizontal_flip, "
         "{color_jitter: {\"0\": 0.8, \"1\": 0.8, \"2\": 0.8, \"3\": 0.2, p: 0.8}}, "
         "{random_grayscale: 0.4}, {gaussian_blur: 5}, {normalize: {mean: 0.5, std: 0.25}}]",
         SHAPE(12, 10, 3), SHAPE(9, 9, 3), .taps = 5, .scale = 1 / (0.25 * 255), .shift = -2},
        // One channel has no hue and no saturation.
        {"[{color_jitter: {\"0\": 0.5, \"1\": 0.5, \"2\": 0.5, \"3\": 0.5}}, random_grayscale]",
         SHAPE(5, 7, 1), SHAPE(5, 7, 1)},
        // Numbers that `normalize` takes for a thousandth: all is cut off at 1, but for 0.
        {"[{color_jitter: {brightness: [0.5, 2], hue: [0.1, 0.4]}}, "
         "{normalize: {mean: 0, std: 1, range: 300}}]",
         SHAPE(4, 6, 3), SHAPE(4, 6, 3), .most = 300, .scale = 1.0 / 300},
        // Blurs of several tiles, of ragged ones, of other channels, as wide as there is room for.
        {"[{gaussian_blur: {kernel_size: 31, sigma: [3, 6]}}]", SHAPE(40, 67, 1), SHAPE(40, 67, 1),
         .taps = 31},
        {"[{gaussian_blur: {kernel_size: 3, sigma: 0.7, p: 0.5}}]", SHAPE(33, 2, 5),
         SHAPE(33, 2, 5), .taps = 3},
        {"[{gaussian_blur: 1}]", SHAPE(1, 1, 2), SHAPE(1, 1, 2), .taps = 1},
        {"[{color_jitter: {contrast: 0.9}}]", SHAPE(1, 1, 3), SHAPE(1, 1, 3)},
        // What is erased, before and behind the normalization.
        {"[{random_erasing: {p: 0.9, value: 7}}, {normalize: {mean: 0, std: 0.5, range: 1}}]",
         SHAPE(12, 10, 2), SHAPE(12, 10, 2), .most = 1, .scale = 2, .fill = 7},
        {"[{normalize: {mean: 0, std: 0.5, range: 1}}, {random_erasing: {p: 0.9, value: 7}}]",
         SHAPE(12, 10, 3), SHAPE(12, 10, 3), .most = 1, .scale = 2, .fill = 7,
         .erase_is_last = true},
        {"[{gaussian_blur: 3}, {cutout: 5}]", SHAPE(9, 8, 4), SHAPE(9, 8, 4), .taps = 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_made(&rows[i], GRT_F32);
        check_made(&rows[i], GRT_F16);
    }
#undef SHAPE
}

// The bytes of tests/peers/torchvision_colours.py.
static uint32_t golden_byte(uint32_t i) {
    uint32_t x = i * 2654435761u + 12345u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return x & 255;
}

// torchvision rounds as often as the kernels: each is within 1e-6 of 255 of the formula, and twice
// the sum is allowed.
static void torchvision(void **state) {
    (void)state;
    static const float first[] = {0, 0, 0, 255, 255, 255, 200, 200, 10};
    const struct grt_shape in = {3, {GOLDEN_HEIGHT, GOLDEN_WIDTH, 3}};
    enum { ROWS = 96, COUNT = GOLDEN_HEIGHT * GOLDEN_WIDTH * 3 };
    float *images = test_alloc((size_t)ROWS * COUNT * sizeof *images);
    for (uint32_t i = 0; i < ROWS * COUNT; i++) {
        images[i] = i % COUNT < 9 ? first[i % COUNT] : (float)golden_byte(i % COUNT);
    }
    for (size_t g = 0; g < sizeof golden_colours / sizeof *golden_colours; g++) {
        const struct golden_colours *golden = &golden_colours[g];
        // One row will do where nothing is drawn; of 24 orders each comes up in 96 rows here.
        uint64_t rows = golden->order ? ROWS : 1;
        struct transform_kit k = transform_begin(GRT_F32, golden->text, NULL, &in, rows);
        assert_true(grt_buf_write(k.x->range.buf, k.x->range.offset, images,
                                  rows * COUNT * sizeof *images));
        transform_run(&k, 1);
        struct colours *drawn = (struct colours *)transform_colours(&k, 0);
        float *got = transform_result(&k);
        struct test_compare compare = test_compare(test.dev, "%s", golden->text);
        uint32_t found = 0;
        for (uint64_t row = 0; row < rows; row++) {
            if (golden->order != 0 && drawn[row].order != golden->order) {
                continue;
            }
            found++;
            for (uint32_t i = 0; i < COUNT; i++) {
                test_compare_value(&compare, i, got[row * COUNT + i],
                                   (struct oracle_value){(double)golden->y[i], 255 * 4e-6});
            }
        }
        test_compare_end(&compare);
        assert_true(found > 0);
        free(drawn);
        free(got);
        transform_end(&k);
    }
    free(images);
}

// ---- how it is drawn ----

// Within four deviations.
static void check_share(const char *what, double count, double of, double share) {
    double apart = fabs(count - share * of);
    if (apart > 4 * sqrt(share * (1 - share) * of)) {
        fail_msg("%s: %g of %g, and %g of all are wanted", what, count, of, share);
    }
}

static void check_uniform(const char *what, double *values, size_t n, double low, double high) {
    double *grid = test_alloc(20 * n * sizeof *grid);
    for (size_t i = 0; i < 20 * n; i++) {
        grid[i] = low + (high - low) * ((double)i + 0.5) / (double)(20 * n);
    }
    transform_alike(what, values, n, grid, 20 * n);
    free(grid);
}

enum { DRAWN = 6000 };

static struct colours *draw(const char *text, const struct grt_shape *in) {
    struct transform_kit k = transform_begin(GRT_F32, text, NULL, in, DRAWN);
    transform_run(&k, 2);
    struct colours *drawn = (struct colours *)transform_colours(&k, 0);
    transform_end(&k);
    return drawn;
}

static void factors(void **state) {
    (void)state;
    static const char *const names[] = {"brightness", "contrast", "saturation", "hue"};
    static const double range[4][2] = {{0.2, 1.8}, {0.7, 1.3}, {0, 2.5}, {-0.2, 0.2}};
    struct colours *drawn =
        draw("[{color_jitter: {brightness: 0.8, contrast: [0.7, 1.3], saturation: 1.5, hue: 0.2, "
             "p: 0.8}}, {random_grayscale: {p: 0.2}}, {gaussian_blur: {kernel_size: 1, p: 0.5}}]",
             &(struct grt_shape){3, {1, 1, 3}});
    uint32_t orders[0x10000 / 16] = {0}, jittered = 0, grey = 0, grey_jittered = 0, blurred = 0;
    double *values = test_alloc(DRAWN * sizeof *values), chi = 0;
    for (size_t i = 0; i < DRAWN; i++) {
        // An order of all four has one digit left when the three first are known.
        jittered += drawn[i].order != 0;
        orders[drawn[i].order & 0xfff]++;
        grey += drawn[i].grey;
        grey_jittered += drawn[i].grey && drawn[i].order != 0;
        if (drawn[i].sigma > 0) {
            values[blurred++] = (double)drawn[i].sigma;
        }
    }
    check_share("jittered", jittered, DRAWN, 0.8);
    check_share("grey", grey, DRAWN, 0.2);
    check_share("grey of the jittered", grey_jittered, jittered, 0.2);
    check_share("blurred", blurred, DRAWN, 0.5);
    check_uniform("sigma", values, blurred, 0.1, 2);
    uint32_t seen = 0;
    for (uint32_t i = 1; i < sizeof orders / sizeof *orders; i++) {
        double apart = orders[i] - jittered / 24.0;
        seen += orders[i] > 0;
        chi += orders[i] > 0 ? apart * apart / (jittered / 24.0) : 0;
    }
    assert_int_equal(seen, 24);
    assert_true(chi > 5 && chi < 56);  // 23 degrees of freedom: one in ten thousand either way
    for (int f = 0; f < 4; f++) {
        for (size_t i = 0; i < DRAWN; i++) {
            values[i] = (double)drawn[i].factors[f];
        }
        double low = range[f][0], high = range[f][1];
        // 1 - 1.5 is below 0, which torchvision cuts off
        check_uniform(names[f], values, DRAWN, low, high);
    }
    free(values);
    free(drawn);
}

// torchvision's RandomErasing.
static bool peer_erase(uint64_t *seed, double height, double width, double box[4]) {
    for (int i = 0; i < 10; i++) {
        double area = height * width * (0.02 + 0.31 * transform_uniform(seed));
        double ratio = exp(log(0.3) + (log(3.3) - log(0.3)) * transform_uniform(seed));
        double h = rint(sqrt(area * ratio)), w = rint(sqrt(area / ratio));
        if (h < height && w < width) {
            box[0] = floor(transform_uniform(seed) * (height - h + 1));
            box[1] = floor(transform_uniform(seed) * (width - w + 1));
            box[2] = h;
            box[3] = w;
            return true;
        }
    }
    return false;
}

static void erased(void **state) {
    (void)state;
    enum { PEER = 60000 };
    static const char *const what[] = {"top", "left", "height", "width"};
    const struct grt_shape in = {3, {9, 30, 1}};
    struct colours *drawn = draw("[{random_erasing: 0.7}]", &in);
    double *ours = test_alloc(DRAWN * sizeof *ours), *theirs = test_alloc(PEER * sizeof *theirs);
    uint32_t count = 0;
    for (size_t i = 0; i < DRAWN; i++) {
        count += drawn[i].erase[2] > 0;
    }
    check_share("erased", count, DRAWN, 0.7);
    for (int w = 0; w < 4; w++) {
        uint64_t seed = 4;
        size_t n = 0, m = 0;
        for (size_t i = 0; i < DRAWN; i++) {
            if (drawn[i].erase[2] > 0) {
                ours[n++] = drawn[i].erase[w];
            }
        }
        while (m < PEER) {
            double box[4];
            if (peer_erase(&seed, 9, 30, box)) {
                theirs[m++] = box[w];
            }
        }
        transform_alike(what[w], ours, n, theirs, m);
    }
    free(drawn);
    // Squares: their middle is any pixel.
    drawn = draw("[{cutout: {size: 4, p: 1}}]", &in);
    for (int w = 0; w < 2; w++) {
        for (size_t i = 0; i < DRAWN; i++) {
            ours[i] = drawn[i].erase[w] + 2;
            assert_true(drawn[i].erase[2] == 4 && drawn[i].erase[3] == 4);
        }
        uint64_t seed = 8;
        for (size_t i = 0; i < PEER; i++) {
            theirs[i] = floor(transform_uniform(&seed) * (w == 0 ? 9 : 30));
        }
        transform_alike(w == 0 ? "row" : "column", ours, DRAWN, theirs, PEER);
    }
    free(drawn);
    free(ours);
    free(theirs);
}

// By step, micro-batch and place alone; evaluations change no colours.
static void counters(void **state) {
    (void)state;
    enum { ROWS = 40 };
    const struct grt_shape in = {3, {4, 5, 3}};
    const size_t bytes = (size_t)ROWS * 4 * 5 * 3 * 4;
    struct transform_kit k = transform_begin(
        GRT_F32, "[{color_jitter: 0.9}, {gaussian_blur: 3}, {cutout: 2}]", NULL, &in, ROWS);
    transform_run(&k, 5);
    float *first = transform_result(&k);
    transform_run(&k, 6);
    float *later = transform_result(&k);
    k.micro = 1;
    transform_run(&k, 5);
    float *other = transform_result(&k);
    k.micro = 0;
    transform_run(&k, 5);
    float *again = transform_result(&k);
    k.training = false;
    transform_run(&k, 5);
    float *still = transform_result(&k);
    uint32_t same = 0;
    for (size_t i = 0; i < ROWS; i++) {
        same += memcmp((const char *)(first + i * 60), (const char *)(later + i * 60), 60 * 4) == 0;
        same += memcmp((const char *)(first + i * 60), (const char *)(other + i * 60), 60 * 4) == 0;
    }
    assert_int_equal(same, 0);
    assert_memory_equal(first, again, bytes);
    assert_memory_equal(still, k.images, bytes);
    free(first);
    free(later);
    free(other);
    free(again);
    free(still);
    transform_end(&k);
}

// Evaluations with steps of their own.
static void evaluated(void **state) {
    (void)state;
    const struct grt_shape in = {3, {8, 8, 1}};
    struct transform_kit k =
        transform_begin(GRT_F32, "[{random_resized_crop: 4}]", "[{center_crop: 4}]", &in, 2);
    k.training = false;
    transform_run(&k, 0);
    float *got = transform_result(&k);
    for (size_t i = 0; i < 32; i++) {
        size_t row = i / 4 % 4 + 2, column = i % 4 + 2;
        assert_true(got[i] == k.images[i / 16 * 64 + row * 8 + column]);
    }
    free(got);
    transform_end(&k);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[color_jitter]", "color_jitter changes nothing"},
        {"[{color_jitter: {hue: 0.6}}]", "hue wants numbers from 0 to 0.5, not '0.6'"},
        {"[{color_jitter: {hue: [0.2, -0.2]}}]", "hue wants a strength, or two numbers"},
        {"[{color_jitter: {brightness: [1, 2, 3]}}]", "brightness wants 1 to 2 numbers"},
        {"[{color_jitter: {brightness: -1}}]", "brightness wants numbers from 0"},
        {"[{color_jitter: {\"5\": 1}}]", "color_jitter has no value '5'"},
        {"[{random_grayscale: 1.5}]", "p wants numbers from 0 to 1"},
        {"[gaussian_blur]", "gaussian_blur wants a size: gaussian_blur(9)"},
        {"[{gaussian_blur: 4}]", "kernel_size wants an odd number, not 4"},
        {"[{gaussian_blur: 33}]", "kernel_size wants numbers from 1 to 31"},
        {"[{gaussian_blur: {\"0\": 3, sigma: [2, 1]}}]", "sigma wants two numbers"},
        {"[{gaussian_blur: {\"0\": 3, sigma: 0}}]", "sigma wants numbers from 0.001"},
        {"[cutout]", "cutout wants a size"},
        {"[{cutout: [2, 3]}]", "cutout wants one size"},
        {"[{random_erasing: {scale: 2}}]", "scale wants numbers from 1e-06 to 1"},
        {"[{normalize: {mean: [1, 2], std: [1, 2, 3]}}]", "std is for 3 channels"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TEST_REFUSED(grt_transform_create(grt_network_desc(.text = rows[i].text)), GRT_CONFIG,
                     rows[i].why);
    }
    const struct grt_shape two = {3, {8, 8, 2}}, small = {3, {3, 8, 3}};
    transform_refuse("[{color_jitter: 0.5}]", NULL, &two, "images of 1 or 3 channels, not 2");
    transform_refuse("[random_grayscale]", NULL, &two, "images of 1 or 3 channels, not 2");
    transform_refuse("[{normalize: {mean: [0.5, 0.5]}}]", NULL, &small,
                     "normalize has numbers for 2 channels, and images have 3");
    transform_refuse("[{normalize: {mean: 0.5, std: [1, 2, 3]}}]", NULL, &two,
                     "normalize has numbers for 3 channels, and images have 2");
    transform_refuse("[{cutout: {\"0\": 2, value: [1, 2, 3]}}]", NULL, &two,
                     "cutout has numbers for 3 channels, and images have 2");
    transform_refuse("[{gaussian_blur: 7}]", NULL, &small, "cannot be mirrored 3 pixels far");
    transform_refuse("[normalize, {color_jitter: 0.5}]", NULL, &small, "comes before normalize");
    transform_refuse("[{resize: [4, 4]}]", "[{resize: [4, 5]}]", &small,
                     "gives [4][4][3] in training, and [4][5][3] in evaluations");
    TEST_REFUSED(grt_transform_evaluate(NULL, NULL), GRT_INVALID, "transform: no module");
    assert_null(grt_transform_colours(NULL, 0));
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(made),     TEST_CASE(torchvision), TEST_CASE(factors), TEST_CASE(erased),
    TEST_CASE(counters), TEST_CASE(evaluated),   TEST_CASE(refused)};
TEST_SUITE(colours, true, cases);
