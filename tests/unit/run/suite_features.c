// SPDX-License-Identifier: Apache-2.0
// What features are worth: nearest neighbours against a search by plain loops, and a linear layer
// on classes that one can and cannot tell. tests/cli/train/simclr.sh takes features from networks.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>

#include "gpurt/features.h"

#define CLASSES 5

// Rows around a direction for each class, at lengths from 0.1 to 100, so that only cosines tell.
static struct grt_features rows_of(uint32_t stream, uint64_t rows, uint64_t width, float spread) {
    struct grt_features f = {.rows = rows,
                             .width = width,
                             .x = test_alloc(rows * width * sizeof *f.x),
                             .classes = test_alloc(rows * sizeof *f.classes)};
    for (uint32_t i = 0; i < rows; i++) {
        f.classes[i] = learn_hash(stream, i) % CLASSES;
        float length = powf(10.0f, 1.5f * learn_number(stream + 1, i) + 0.5f);
        for (uint32_t k = 0; k < width; k++) {
            float direction = learn_number(99, f.classes[i] * (uint32_t)width + k);
            float other = learn_number(stream + 2, i * (uint32_t)width + k);
            f.x[i * width + k] = length * (direction + spread * other);
        }
    }
    return f;
}

static double share_by_search(const struct grt_features *bank, const struct grt_features *queries,
                              size_t k, double tau) {
    size_t right = 0;
    for (uint64_t i = 0; i < queries->rows; i++) {
        right += oracle_knn(bank->x, bank->classes, bank->rows, queries->x + i * queries->width,
                            bank->width, k, tau) == queries->classes[i];
    }
    return (double)right / (double)queries->rows;
}

// One and many neighbours, more than there are, of one and several blocks of queries and of the
// bank, and of two groups of queries, large ones and, with many neighbours, small ones; rows that
// occur twice, and rows of zeros.
static void neighbours(void **state) {
    (void)state;
    static const struct {
        uint64_t bank, queries, width;
        uint32_t k;
        double tau;
    } cases[] = {{40, 30, 7, 1, 0.1},   {40, 30, 7, 9, 0.5},    {300, 270, 17, 20, 0},
                 {60, 20, 3, 0, 0},     {9000, 270, 3, 5, 0},   {1, 3, 4, 200, 0.1},
                 {50, 40, 5, 12, 0.02}, {30, 16500, 5, 3, 0.1}, {9000, 1000, 3, 9000, 0.1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct grt_features bank = rows_of(10, cases[c].bank, cases[c].width, 1.5f);
        struct grt_features queries = rows_of(20, cases[c].queries, cases[c].width, 1.5f);
        for (uint64_t k = 0; bank.rows > 20 && k < bank.width; k++) {
            bank.x[3 * bank.width + k] = 2 * bank.x[7 * bank.width + k];
            bank.x[11 * bank.width + k] = 0;
            queries.x[k] = 0;
        }
        // The nearest rows of a large bank stand in its second block. Where all are neighbours that
        // tells nothing, and of equal rows a heap takes the longest.
        bool behind = bank.rows > 8192 && cases[c].k < bank.rows;
        for (uint64_t i = 0; behind && i < 8192 * bank.width; i++) {
            bank.x[i] = 0;
        }
        double got = -1;
        struct grt_knn_desc desc = {.k = cases[c].k, .temperature = cases[c].tau};
        assert_true(grt_knn(test.dev, &bank, &queries, &desc, &got));
        double want = share_by_search(&bank, &queries, cases[c].k > 0 ? cases[c].k : 200,
                                      cases[c].tau > 0 ? cases[c].tau : 0.1);
        // Cosines of f32 may put one query on the other side of a tie.
        double one = 1.01 / (double)queries.rows;
        if (!(fabs(got - want) <= one)) {
            fail_msg("case %d: %g, wanted %g", (int)c, got, want);
        }
        assert_true(queries.rows < 20 || (want > 0.3 && want < 0.999));
        grt_features_finish(&bank);
        grt_features_finish(&queries);
    }
}

// Classes by the side of a plane, in numbers of very different sizes, are found; classes that
// depend on nothing are not.
static void linear_layer(void **state) {
    (void)state;
    enum { ROWS = 300, WIDTH = 4 };
    for (int any = 0; any < 2; any++) {
        struct grt_features sets[2];
        for (uint32_t s = 0; s < 2; s++) {
            sets[s] = rows_of(30 + 10 * s, ROWS, WIDTH, 1);
            for (uint32_t i = 0; i < ROWS; i++) {
                float *x = sets[s].x + (size_t)i * WIDTH;
                for (uint32_t k = 0; k < WIDTH; k++) {
                    x[k] = learn_number(50 + s, i * WIDTH + k);
                }
                sets[s].classes[i] = any ? learn_hash(60 + s, i) % 2 : x[0] + x[1] > 0.2f;
                x[0] = 1e4f * x[0] + 3e5f;
                x[1] *= 1e-3f;
                x[3] = 7;  // never another
            }
        }
        double accuracy = 0, again = 0;
        struct grt_linear_probe_desc desc = {.epochs = test.small ? 3 : 60, .learning_rate = 0.03};
        assert_true(grt_linear_probe(test.dev, &sets[0], &sets[1], &desc, &accuracy));
        assert_true(test.small || (any ? accuracy > 0.35 && accuracy < 0.65 : accuracy > 0.96));
        assert_true(grt_linear_probe(test.dev, &sets[0], &sets[1], &desc, &again));
        assert_true(accuracy == again);
        grt_features_finish(&sets[0]);
        grt_features_finish(&sets[1]);
    }
}

static struct grt_module *make_linear(const void *of) {
    return grt_linear_create(of);
}

// A rate of nothing leaves the layer as it was drawn: the share is that of the largest outputs, in
// double, of a layer of the same seed, also where all of them are below 0.
static void linear_layer_as_drawn(void **state) {
    (void)state;
    enum { ROWS = 200, WIDTH = 5, KINDS = 2 };
    uint32_t below = 0;
    struct grt_linear_desc linear = {.outputs = KINDS};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct grt_features sets[2] = {rows_of(70, ROWS, WIDTH, 1), rows_of(80, ROWS, WIDTH, 1)};
        for (uint32_t i = 0; i < ROWS; i++) {
            sets[0].classes[i] %= KINDS;
            sets[1].classes[i] %= KINDS;
        }
        struct grt_learner *l = grt_learner_create(
            test.dev, grt_learner_desc(.make = make_linear, .of = &linear, .input = {1, {WIDTH}},
                                       .outputs = KINDS, .loss = GRT_LOSS_CROSS_ENTROPY,
                                       .optim = grt_optim_defaults(GRT_OPTIM_ADAMW), .batch = 8,
                                       .seed = seed));
        assert_true(l && grt_learner_alloc(l));
        float *weights = learn_read(grt_learner_tensor(l, GRT_TENSOR_PARAM, 0, NULL));
        float *bias = learn_read(grt_learner_tensor(l, GRT_TENSOR_PARAM, 1, NULL));
        double mean[WIDTH] = {0}, squares[WIDTH] = {0};
        for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
            mean[i % WIDTH] += (double)sets[0].x[i] / ROWS;
        }
        for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
            double d = (double)sets[0].x[i] - mean[i % WIDTH];
            squares[i % WIDTH] += d * d / ROWS;
        }
        uint32_t right = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            double outputs[KINDS];
            uint32_t best = 0;
            for (uint32_t c = 0; c < KINDS; c++) {
                outputs[c] = (double)bias[c];
                for (uint32_t k = 0; k < WIDTH; k++) {
                    double x = ((double)sets[1].x[i * WIDTH + k] - mean[k]) / sqrt(squares[k]);
                    outputs[c] += (double)weights[c * WIDTH + k] * x;
                }
                best = outputs[c] > outputs[best] ? c : best;
            }
            right += best == sets[1].classes[i];
            below += best > 0 && outputs[best] < 0;
        }
        struct grt_linear_probe_desc desc = {.epochs = 1, .learning_rate = 1e-30, .seed = seed};
        double share = -1;
        assert_true(grt_linear_probe(test.dev, &sets[0], &sets[1], &desc, &share));
        assert_true(fabs(share - (double)right / ROWS) < 1e-9);
        free(weights);
        free(bias);
        grt_learner_destroy(&l);
        grt_features_finish(&sets[0]);
        grt_features_finish(&sets[1]);
    }
    assert_true(below > 0);
}

static void refused(void **state) {
    (void)state;
    struct grt_features a = rows_of(1, 8, 3, 1), b = rows_of(2, 8, 4, 1), none = {0};
    double share = 0;
    TEST_REFUSED(grt_knn(test.dev, &a, &b, NULL, &share), GRT_INVALID, "of one width");
    TEST_REFUSED(grt_knn(test.dev, &none, &a, NULL, &share), GRT_INVALID, "of one width");
    static const double odd[] = {-1, (double)NAN};
    for (int i = 0; i < 2; i++) {
        const struct grt_knn_desc desc = {.temperature = odd[i]};
        TEST_REFUSED(grt_knn(test.dev, &a, &a, &desc, &share), GRT_INVALID, "are wanted");
    }
    TEST_REFUSED(grt_linear_probe(test.dev, &a, &b, NULL, &share), GRT_INVALID, "of one width");
    free(a.classes);
    a.classes = NULL;
    TEST_REFUSED(grt_knn(test.dev, &a, &a, NULL, &share), GRT_INVALID, "their classes");
    grt_features_finish(&a);
    grt_features_finish(&b);
}

static const struct CMUnitTest cases[] = {TEST_CASE(neighbours), TEST_CASE(linear_layer),
                                          TEST_CASE(linear_layer_as_drawn), TEST_CASE(refused)};
TEST_SUITE(features, true, cases);
