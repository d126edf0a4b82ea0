// SPDX-License-Identifier: Apache-2.0
// NT-Xent and its gradient against the formula in double precision. Learners: suite_pairs.c.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/loss.h"

enum rows_kind { ANY, EQUAL, SOME_ZERO, LARGE };
struct contrast {
    uint32_t rows, cols, block;
    double tau;  // 0: the default
    enum grt_dtype dtype;
    enum rows_kind kind;
};

struct contrast_run {
    const struct contrast *c;
    struct test_tensor y, dy, parts, state;
    struct grt_buf *scratch;
    bool grads;
};

static void record(struct grt_graph *graph, void *context) {
    struct contrast_run *r = context;
    uint64_t bytes = grt_loss_scratch(GRT_LOSS_NT_XENT, r->c->rows, r->c->cols);
    grt_op_loss(graph,
                grt_loss_desc(.loss = GRT_LOSS_NT_XENT, .y = &r->y.tensor,
                              .dy = r->grads ? &r->dy.tensor : NULL, .parts = r->parts.tensor.range,
                              .state = r->state.tensor.range, .block = r->c->block,
                              .temperature = (float)r->c->tau, .scratch = {r->scratch, 0, bytes}));
}

static void fill_rows(const struct contrast *c, float *z) {
    for (uint32_t i = 0; i < c->rows * c->cols; i++) {
        uint32_t row = i / c->cols;
        z[i] = learn_number(3, c->kind == EQUAL ? i % c->cols : i);
        z[i] *= c->kind == LARGE ? 1e6f : 1.0f;
        if (c->kind == SOME_ZERO && row % 3 == 1) {
            z[i] = 0.0f;
        }
    }
}

static double loss_of(struct contrast_run *r) {
    float parts[GRT_LOSS_PARTS];
    double sum = 0;
    test_tensor_read(&r->parts, parts);
    for (int i = 0; i < GRT_LOSS_PARTS; i++) {
        sum += (double)parts[i];
    }
    return sum;
}

static void check(const struct contrast *c) {
    const float scale = c->dtype == GRT_F16 ? 256.0f : 1.0f;
    const double tau = c->tau > 0 ? c->tau : 0.5;
    size_t count = (size_t)c->rows * c->cols, block = c->block ? c->block : c->rows;
    struct contrast_run r = {
        .c = c,
        .y = test_tensor(test.dev, GRT_F32, c->rows, c->cols),
        .dy = test_tensor(test.dev, c->dtype, c->rows, c->cols),
        .parts = test_tensor(test.dev, GRT_F32, GRT_LOSS_PARTS, 0),
        .state = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0),
        .scratch = test_buf(test.dev, grt_loss_scratch(GRT_LOSS_NT_XENT, c->rows, c->cols),
                            GRT_BUF_DEVICE),
        .grads = true};
    struct grt_learn_state state = {.loss_scale = scale};
    uint32_t words[GRT_LEARN_STATE_WORDS] = {0};
    memcpy(words, &state, sizeof state);
    test_tensor_write(&r.state, words);
    float *z = test_alloc(count * sizeof *z);
    double *wide = test_alloc(count * sizeof *wide);
    fill_rows(c, z);
    test_tensor_write(&r.y, z);
    for (size_t i = 0; i < count; i++) {
        wide[i] = (double)z[i];
    }
    // The same bits under every pre-fill.
    void *grads = test_run_filled(&r.dy, record, &r);
    double want = oracle_nt_xent(wide, c->rows, c->cols, block, tau), got = loss_of(&r);
    struct test_compare compare =
        test_compare(test.dev, "nt_xent %ux%u, block %u, tau %g, kind %d, %s", c->rows, c->cols,
                     c->block, c->tau, (int)c->kind, grt_dtype_text(c->dtype));
    // Cosines are sums over a row, exponents 1 / tau times their error.
    double bound = (64 + 4 * c->cols) * ORACLE_U * (1 + 2 / tau);
    test_compare_value(&compare, 0, (float)got, (struct oracle_value){want, bound});
    for (size_t i = 0; i < count; i++) {
        size_t row = i / c->cols;
        double length = 0;
        for (size_t k = row * c->cols; k < (row + 1) * c->cols; k++) {
            length += wide[k] * wide[k];
        }
        // A row without a direction has no gradient. Slopes of long rows are as small as the
        // errors of differences: the row's own length is the unit.
        length = sqrt(length);
        double slope = 0;
        if (length > 0) {
            double unit = length > 100 ? length : 1;
            double *scaled = test_alloc(count * sizeof *scaled);
            for (size_t k = 0; k < count; k++) {
                scaled[k] = wide[k] / (k / c->cols == row ? unit : 1);
            }
            slope = oracle_nt_xent_slope(scaled, c->rows, c->cols, block, tau, i) / unit;
            free(scaled);
        }
        double error = length > 0 ? (bound * 4 / tau / c->rows + 1e-9) / fmin(length, 1e9) : 0;
        float number = 0;
        if (c->dtype == GRT_F32) {
            number = ((float *)grads)[i];
        } else {
            struct oracle_format f = c->dtype == GRT_F16 ? oracle_f16 : oracle_bf16;
            number = (float)(oracle_widen(f, ((uint16_t *)grads)[i]) / (double)scale);
            error += fabs(slope) * (c->dtype == GRT_F16 ? 0x1p-11 : 0x1p-8) + 0x1p-24 / scale;
        }
        test_compare_value(&compare, i + 1, number, (struct oracle_value){slope, error});
    }
    test_compare_end(&compare);
    // Without a gradient the loss has the same bits.
    r.grads = false;
    test_run(test.dev, record, &r);
    assert_true(loss_of(&r) == got);
    free(grads);
    free(z);
    free(wide);
    test_tensor_end(&r.y);
    test_tensor_end(&r.dy);
    test_tensor_end(&r.parts);
    test_tensor_end(&r.state);
    grt_buf_destroy(&r.scratch);
}

// Rows and columns below, at and above tiles of 8 and 16; blocks that end early; one pair, whose
// loss is 0 whatever it is.
static void losses(void **state) {
    (void)state;
    static const struct contrast cases[] = {
        {2, 4, 0, 0.5, GRT_F32, ANY},        {18, 3, 6, 0.5, GRT_F32, ANY},
        {6, 1, 0, 0.5, GRT_F32, ANY},        {14, 5, 0, 0, GRT_F32, ANY},
        {16, 16, 0, 0.2, GRT_F32, ANY},      {34, 17, 0, 0.5, GRT_F32, ANY},
        {34, 8, 12, 0.2, GRT_F32, ANY},      {18, 9, 4, 0.5, GRT_F16, ANY},
        {18, 33, 0, 0.1, GRT_BF16, ANY},     {12, 6, 0, 0.5, GRT_F32, EQUAL},
        {12, 6, 0, 0.5, GRT_F32, SOME_ZERO}, {12, 6, 4, 0.2, GRT_F16, SOME_ZERO},
        {10, 7, 0, 0.5, GRT_F32, LARGE},     {8, 3, 0, 0.025, GRT_F32, ANY},
        {6, 131, 0, 0.5, GRT_F32, ANY},
    };
    for (size_t i = 0; i < (test.small ? 2 : sizeof cases / sizeof *cases); i++) {
        check(&cases[i]);
    }
}

// The loss of rows whose number `at` is `number`.
static double loss_with(const struct contrast *c, size_t at, float number, double *want) {
    struct contrast_run r = {.c = c,
                             .y = test_tensor(test.dev, GRT_F32, c->rows, c->cols),
                             .parts = test_tensor(test.dev, GRT_F32, GRT_LOSS_PARTS, 0),
                             .state = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0)};
    size_t count = (size_t)c->rows * c->cols;
    float *z = test_alloc(count * sizeof *z);
    double *wide = test_alloc(count * sizeof *wide);
    uint32_t words[GRT_LEARN_STATE_WORDS] = {0};
    r.scratch =
        test_buf(test.dev, grt_loss_scratch(GRT_LOSS_NT_XENT, c->rows, c->cols), GRT_BUF_DEVICE);
    test_tensor_write(&r.state, words);
    fill_rows(c, z);
    z[at] = number;
    for (size_t i = 0; i < count; i++) {
        wide[i] = (double)z[i];
    }
    test_tensor_write(&r.y, z);
    test_run(test.dev, record, &r);
    *want = oracle_nt_xent(wide, c->rows, c->cols, c->block ? c->block : c->rows, c->tau);
    double loss = loss_of(&r);
    free(z);
    free(wide);
    test_tensor_end(&r.y);
    test_tensor_end(&r.parts);
    test_tensor_end(&r.state);
    grt_buf_destroy(&r.scratch);
    return loss;
}

// More rows than GRT_LOSS_PARTS workgroups of tiles of 8 take at once; on GPUs they take 2048.
static void many_rows(void **state) {
    (void)state;
    bool software = grt_dev_info(test.dev)->caps.software;
    struct contrast c = {software ? 1036 : 2100, 2, 300, 0.5, GRT_F32, ANY};
    double want = 0, got = loss_with(&c, 0, 0.5f, &want);
    assert_true(fabs(got - want) < 1e-5 * want);
}

// A row that is not finite, or whose length is not, is seen in the loss.
static void not_finite(void **state) {
    (void)state;
    static const struct contrast c = {12, 3, 0, 0.5, GRT_F32, ANY};
    static const float wrong[] = {NAN, INFINITY, 1e30f};
    for (int i = 0; i < 3; i++) {
        double want = 0;
        assert_true(isnan(loss_with(&c, 5, wrong[i], &want)));
    }
}

// What is no pair of views is refused.
static void refused(void **state) {
    (void)state;
    struct contrast c = {4, 3, 0, 0.5, GRT_F32, ANY};
    struct contrast_run r = {.c = &c,
                             .y = test_tensor(test.dev, GRT_F32, 4, 3),
                             .dy = test_tensor(test.dev, GRT_F32, 4, 3),
                             .parts = test_tensor(test.dev, GRT_F32, GRT_LOSS_PARTS, 0),
                             .state = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0)};
    r.scratch = test_buf(test.dev, grt_loss_scratch(GRT_LOSS_NT_XENT, 4, 3), GRT_BUF_DEVICE);
    static const char *const sentences[] = {"rows come in pairs", "there are no targets",
                                            "the temperature is below 0.025",
                                            "needs 2048 bytes of scratch, given 64"};
    for (int i = 0; i < 4; i++) {
        struct grt_graph *graph = grt_graph_create(test.dev, "refused");
        struct grt_loss_desc d = {.loss = GRT_LOSS_NT_XENT,
                                  .y = &r.y.tensor,
                                  .dy = &r.dy.tensor,
                                  .parts = r.parts.tensor.range,
                                  .state = r.state.tensor.range,
                                  .scratch = {r.scratch, 0, 0}};
        struct grt_tensor odd = r.y.tensor;
        odd.shape[0] = 3;
        odd.range.size = 36;
        d.y = i == 0 ? &odd : d.y;
        d.dy = i == 0 ? &odd : d.dy;
        d.target = i == 1 ? &r.y.tensor : NULL;
        d.temperature = i == 2 ? 0.01f : 0.5f;
        d.scratch.size = i == 3 ? 64 : 0;
        grt_op_loss(graph, &d);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, sentences[i]);
        grt_graph_destroy(&graph);
    }
    test_tensor_end(&r.y);
    test_tensor_end(&r.dy);
    test_tensor_end(&r.parts);
    test_tensor_end(&r.state);
    grt_buf_destroy(&r.scratch);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(losses),
    TEST_CASE(many_rows),
    TEST_CASE(not_finite),
    TEST_CASE(refused),
};
TEST_SUITE(contrast, true, cases);
