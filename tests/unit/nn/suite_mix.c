// SPDX-License-Identifier: Apache-2.0
// Samples mixed in pairs: images and loss against the formulas in double precision, and the share
// against Beta numbers made in another way.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/learner.h"
#include "gpurt/loss.h"
#include "harness/harness.h"
#include "kits/learn_kit.h"
#include "kits/transform_kit.h"

struct mix {
    float own;
    int32_t box[4];
    uint32_t unused[3];
};

static struct mix mix_of(const struct transform_kit *k) {
    struct mix mix;
    assert_non_null(k->net->mix);
    assert_true(grt_buf_read(k->net->mix->range.buf, k->net->mix->range.offset, &mix, sizeof mix));
    return mix;
}

enum { IMAGES = 5, H = 9, W = 7, C = 3, SIZE = H * W * C };

static void check_images(struct transform_kit *k, bool cut, uint32_t step) {
    transform_run(k, step);
    struct mix mix = mix_of(k);
    float *got = transform_result(k);
    struct test_compare compare = test_compare(test.dev, "cut %d, step %u", cut, step);
    double own = (double)mix.own, area = (double)mix.box[2] * mix.box[3];
    assert_true(own >= 0 && own <= 1 && mix.box[0] >= 0 && mix.box[1] >= 0 &&
                mix.box[0] + mix.box[2] <= H && mix.box[1] + mix.box[3] <= W);
    assert_true(!cut || fabs(own - (1 - area / (H * W))) < 1e-6);
    for (uint32_t i = 0; i < IMAGES * SIZE; i++) {
        uint32_t other = (i + (IMAGES - 1) * SIZE) % (IMAGES * SIZE);
        int line = (int)(i % SIZE / (W * C)), column = (int)(i / C % W);
        bool inside = line >= mix.box[0] && line < mix.box[0] + mix.box[2] &&
                      column >= mix.box[1] && column < mix.box[1] + mix.box[3];
        double a = (double)k->images[i], b = (double)k->images[other];
        double both = own * a + (1 - own) * b, want = cut ? (inside ? b : a) : both;
        double bound = cut ? 0 : 1e-4 + (k->y->dtype == GRT_F16 ? want * 0x1p-11 : 0);
        test_compare_value(&compare, i, got[i], (struct oracle_value){want, bound});
    }
    test_compare_end(&compare);
    free(got);
}

static void images(void **state) {
    (void)state;
    const struct grt_shape in = {3, {H, W, C}};
    const char *const texts[] = {"[{normalize: {mean: 0, std: 1, range: 1}}, {mixup: 0.4}]",
                                 "[{cutmix: 1}]"};
    for (int i = 0; i < 4; i++) {
        bool cut = i / 2 == 1;
        struct transform_kit k =
            transform_begin(i % 2 ? GRT_F16 : GRT_F32, texts[cut], NULL, &in, IMAGES);
        for (uint32_t step = 0; step < 3; step++) {
            check_images(&k, cut, step);
        }
        // Evaluations mix nothing.
        k.training = false;
        transform_run(&k, 1);
        float *got = transform_result(&k);
        assert_memory_equal(got, k.images, (size_t)IMAGES * SIZE * 4);
        free(got);
        transform_end(&k);
    }
}

// Johnk's way to a Beta number: u^(1/a) and v^(1/a) whose sum is at most 1.
static double beta(uint64_t *seed, double alpha) {
    for (;;) {
        double x = pow(transform_uniform(seed), 1 / alpha);
        double y = pow(transform_uniform(seed), 1 / alpha);
        if (x + y <= 1 && x + y > 0) {
            return x / (x + y);
        }
    }
}

static void shares(void **state) {
    (void)state;
    enum { STEPS = 120, PEER = 20000 };
    static const double alphas[] = {0.2, 2};
    static const char *const texts[] = {"[{mixup: {alpha: 0.2}}]", "[{mixup: {alpha: 2}}]"};
    double *ours = test_alloc(STEPS * sizeof *ours), *theirs = test_alloc(PEER * sizeof *theirs);
    for (int a = 0; a < 2; a++) {
        struct transform_kit k =
            transform_begin(GRT_F32, texts[a], NULL, &(struct grt_shape){3, {1, 1, 1}}, 1);
        uint64_t seed = 11;
        k.micro = 1;
        transform_run(&k, 0);
        double other = (double)mix_of(&k).own;
        k.micro = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            transform_run(&k, step);
            ours[step] = (double)mix_of(&k).own;
        }
        double first = ours[0];
        transform_run(&k, 0);
        assert_true((double)mix_of(&k).own == first && other != first);
        for (size_t i = 0; i < PEER; i++) {
            theirs[i] = beta(&seed, alphas[a]);
        }
        transform_alike(texts[a], ours, STEPS, theirs, PEER);
        transform_end(&k);
    }
    free(ours);
    free(theirs);
}

// ---- the loss ----

enum { ROWS = 7, COLS = 5 };

struct loss_kit {
    struct grt_plan *plan;
    struct grt_tensor *y, *target, *dy, *mix;
    struct grt_buf *state, *parts;
    float smoothing;
};

static void record_loss(struct grt_graph *graph, void *context) {
    const struct loss_kit *k = context;
    grt_op_loss(graph,
                grt_loss_desc(.loss = GRT_LOSS_CROSS_ENTROPY, .label_smoothing = k->smoothing,
                              .mix = k->mix, .y = k->y, .target = k->target, .dy = k->dy,
                              .parts = {k->parts, 0, GRT_LOSS_PARTS * 4},
                              .state = {k->state, 0, sizeof(struct grt_learn_state)}));
}

static void check_loss(struct loss_kit *k, const float *y, const uint32_t *target, double own) {
    float parts[GRT_LOSS_PARTS];
    double loss = 0, got = 0, s = (double)k->smoothing;
    test_run(test.dev, record_loss, k);
    assert_true(grt_buf_read(k->parts, 0, parts, sizeof parts));
    float *dy = learn_read(k->dy);
    struct test_compare compare = test_compare(test.dev, "mixed, smoothing %g", s);
    for (uint32_t row = 0; row < ROWS; row++) {
        double sum = 0;
        for (uint32_t c = 0; c < COLS; c++) {
            sum += exp((double)y[row * COLS + c]);
        }
        for (uint32_t c = 0; c < COLS; c++) {
            double v = (double)y[row * COLS + c];
            double wanted =
                own * (c == target[row]) + (1 - own) * (c == target[(row + ROWS - 1) % ROWS]);
            wanted = (1 - s) * wanted + s / COLS;
            loss += wanted * (log(sum) - v) / ROWS;
            test_compare_value(&compare, row * COLS + c, dy[row * COLS + c],
                               (struct oracle_value){(exp(v) / sum - wanted) / ROWS, 1e-6});
        }
    }
    for (uint32_t i = 0; i < GRT_LOSS_PARTS; i++) {
        got += (double)parts[i];
    }
    test_compare_value(&compare, ROWS * COLS, (float)got, (struct oracle_value){loss, 3e-6});
    test_compare_end(&compare);
    free(dy);
}

static void losses(void **state) {
    (void)state;
    const uint32_t target[ROWS] = {0, 4, 4, 1, 2, 3, 1};
    const struct grt_learn_state learn = {.loss_scale = 1};
    struct loss_kit k = {.plan = grt_plan_create(test.dev)};
    struct grt_tensor_desc logits = {.label = "y", .shape = {ROWS, COLS}};
    float y[ROWS * COLS], mix[8] = {0.3f};
    k.y = grt_plan_tensor(k.plan, &logits);
    k.dy = grt_plan_tensor(k.plan, &logits);
    k.target =
        grt_plan_tensor(k.plan, grt_tensor_desc(.label = "t", .dtype = GRT_U32, .shape = {ROWS}));
    k.mix = grt_plan_tensor(k.plan, grt_tensor_desc(.label = "mix", .shape = {8}));
    assert_true(grt_plan_alloc(k.plan));
    k.state = test_buf(test.dev, sizeof(struct grt_learn_state), GRT_BUF_DEVICE);
    k.parts = test_buf(test.dev, GRT_LOSS_PARTS * 4, GRT_BUF_DEVICE);
    for (uint32_t i = 0; i < ROWS * COLS; i++) {
        y[i] = 3 * learn_number(4, i);
    }
    assert_true(grt_buf_write(k.state, 0, &learn, sizeof learn));
    assert_true(grt_buf_write(k.y->range.buf, k.y->range.offset, y, sizeof y));
    assert_true(grt_buf_write(k.mix->range.buf, k.mix->range.offset, mix, sizeof mix));
    assert_true(grt_buf_write(k.target->range.buf, k.target->range.offset, target, sizeof target));
    for (int smooth = 0; smooth < 2; smooth++) {
        k.smoothing = smooth ? 0.1f : 0;
        check_loss(&k, y, target, (double)mix[0]);
    }
    grt_plan_destroy(&k.plan);
    grt_buf_destroy(&k.state);
    grt_buf_destroy(&k.parts);
}

static void refused(void **state) {
    (void)state;
    const struct grt_shape in = {3, {2, 2, 3}};
    TEST_REFUSED(grt_transform_create(grt_network_desc(.text = "[{mixup: 0}]")), GRT_CONFIG,
                 "alpha wants numbers from 0.01 to 1000");
    transform_refuse("[mixup, normalize]", NULL, &in, "mixup comes last, once");
    transform_refuse("[mixup, cutmix]", NULL, &in, "mixup comes last, once");
}

static const struct CMUnitTest cases[] = {TEST_CASE(images), TEST_CASE(shares), TEST_CASE(losses),
                                          TEST_CASE(refused)};
TEST_SUITE(mix, true, cases);
