// SPDX-License-Identifier: Apache-2.0
// Several losses of one network: each of them, their weighted sum and what a step by its gradient
// changes, against the formulas in double precision and central differences of them. Whole steps,
// short ones, in micro-batches, with weights of samples, smoothed, in 16 bits; and evaluations.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/plan.h"

enum { INPUTS = 4, BATCH = 24, SHORT = 17, ROWS = BATCH + SHORT, MOST_WORDS = 16 };
#define RATE 0.5

struct several {
    const char *name;
    uint32_t count;
    struct grt_loss_share losses[GRT_LOSS_MOST];
    float smoothing, delta;
    bool weighted;
    uint32_t accumulate;
    enum grt_dtype precision;
    double bound;  // of a number around 1
};

// ---- the formulas ----

// Of all rows: x, targets as the learner takes them, and the weight of each.
struct samples {
    float x[ROWS][INPUTS];
    uint32_t words[ROWS][MOST_WORDS];
    double weight[ROWS];
    uint32_t width;
};

static float as_float(uint32_t word) {
    float number;
    memcpy(&number, &word, sizeof number);
    return number;
}

static double of_number(enum grt_loss loss, double y, double t, double delta) {
    double e = fabs(y - t);
    switch (loss) {
    case GRT_LOSS_MSE:
        return e * e;
    case GRT_LOSS_L1:
        return e;
    case GRT_LOSS_HUBER:
        return e <= delta ? e * e / 2 : delta * (e - delta / 2);
    default:  // binary cross-entropy of a logit
        return -(t * -log1p(exp(-y)) + (1 - t) * -log1p(exp(y)));
    }
}

static double of_classes(const double *y, uint32_t cols, uint32_t class, double smoothing) {
    double sum = exp(y[0]), all = 0;
    for (uint32_t k = 1; k < cols; k++) {
        sum += exp(y[k]);
    }
    for (uint32_t k = 0; k < cols; k++) {
        all += log(sum) - y[k];
    }
    return (1 - smoothing) * (log(sum) - y[class]) + smoothing * all / cols;
}

// Means over rows `first` on of each loss, without its scale; returns their weighted sum.
// Parameters are those of a linear layer, [outputs][INPUTS] and [outputs].
static double judge(const struct several *c, const struct samples *s, const double *p,
                    uint32_t first, uint32_t rows, double smoothing, double *each) {
    uint32_t outputs = 0;
    double weights = 0, total = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        outputs += c->losses[k].cols;
        each[k] = 0;
    }
    for (uint32_t r = first; r < first + rows; r++) {
        double y[MOST_WORDS];
        for (uint32_t o = 0; o < outputs; o++) {
            y[o] = p[outputs * INPUTS + o];
            for (uint32_t i = 0; i < INPUTS; i++) {
                y[o] += p[o * INPUTS + i] * (double)s->x[r][i];
            }
        }
        uint32_t at = 0, word = 0;
        for (uint32_t k = 0; k < c->count; k++) {
            const struct grt_loss_share *l = &c->losses[k];
            bool classes = l->loss == GRT_LOSS_CROSS_ENTROPY;
            double loss = classes ? of_classes(y + at, l->cols, s->words[r][word], smoothing) : 0;
            for (uint32_t i = 0; !classes && i < l->cols; i++) {
                double t = (double)as_float(s->words[r][word + i]);
                loss += of_number(l->loss, y[at + i], t, (double)c->delta) / l->cols;
            }
            each[k] += s->weight[r] * loss;
            at += l->cols;
            word += classes ? 1 : l->cols;
        }
        weights += s->weight[r];
    }
    for (uint32_t k = 0; k < c->count; k++) {
        each[k] /= weights;
        total += (double)c->losses[k].scale * each[k];
    }
    return total;
}

// A step of plain descent, the slopes by central differences.
static void descend(const struct several *c, const struct samples *s, double *p, size_t count,
                    uint32_t first, uint32_t rows) {
    const double h = 1e-6;
    double each[GRT_LOSS_MOST], *slope = test_alloc(count * sizeof *slope);
    for (size_t i = 0; i < count; i++) {
        double was = p[i];
        p[i] = was + h;
        double above = judge(c, s, p, first, rows, (double)c->smoothing, each);
        p[i] = was - h;
        slope[i] = (above - judge(c, s, p, first, rows, (double)c->smoothing, each)) / (2 * h);
        p[i] = was;
    }
    for (size_t i = 0; i < count; i++) {
        p[i] -= RATE * slope[i];
    }
    free(slope);
}

// ---- the learner ----

static void make_samples(const struct several *c, struct samples *s) {
    memset(s, 0, sizeof *s);
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t word = 0;
        for (uint32_t i = 0; i < INPUTS; i++) {
            s->x[r][i] = learn_number(1, r * INPUTS + i);
        }
        for (uint32_t k = 0; k < c->count; k++) {
            const struct grt_loss_share *l = &c->losses[k];
            bool classes = l->loss == GRT_LOSS_CROSS_ENTROPY;
            for (uint32_t i = 0; i < (classes ? 1 : l->cols); i++, word++) {
                float number = learn_number(2 + k, r * MOST_WORDS + i);
                number = l->loss == GRT_LOSS_BCE ? 0.5f + number / 2 : 2 * number;
                memcpy(&s->words[r][word], &number, sizeof number);
                if (classes) {
                    s->words[r][word] = learn_hash(20 + k, r) % l->cols;
                }
            }
        }
        static const float weights[] = {0, 0.25f, 1, 3};
        float weight = c->weighted ? weights[learn_hash(9, r) % 4] : 1;
        s->weight[r] = (double)weight;
        memcpy(&s->words[r][word], &weight, sizeof weight);
        s->width = word + c->weighted;
    }
}

static struct grt_learner_desc desc_of(const struct several *c, struct learn_model *model) {
    model->kind = LEARN_LINEAR;
    model->inputs = INPUTS;
    for (uint32_t k = 0; k < c->count; k++) {
        model->outputs += c->losses[k].cols;
    }
    struct grt_learner_desc d = {.make = learn_make,
                                 .of = model,
                                 .input = {1, {INPUTS}},
                                 .loss_count = c->count,
                                 .huber_delta = c->delta,
                                 .label_smoothing = c->smoothing,
                                 .sample_weights = c->weighted,
                                 .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                 .precision = c->precision,
                                 .batch = BATCH,
                                 .accumulate = c->accumulate};
    memcpy(d.losses, c->losses, sizeof d.losses);
    d.optim.lr = RATE;
    return d;
}

static void check_parts(const struct several *c, const char *what, const double *want,
                        const double *got, double total, double sum) {
    struct test_compare compare = test_compare(test.dev, "%s: %s", c->name, what);
    for (uint32_t k = 0; k < c->count; k++) {
        test_compare_value(&compare, k, (float)got[k],
                           (struct oracle_value){want[k], c->bound * (1 + want[k])});
    }
    test_compare_value(&compare, c->count, (float)sum,
                       (struct oracle_value){total, 4 * c->bound * (1 + total)});
    test_compare_end(&compare);
}

// A whole step, a short one, and an evaluation of both; parameters by the oracle's own descent.
static float *check(const struct several *c, size_t *count) {
    struct learn_model model = {0};
    struct samples *s = test_alloc(sizeof *s);
    make_samples(c, s);
    struct grt_learner_desc desc = desc_of(c, &model);
    struct learn l = {.learner = grt_learner_create(test.dev, &desc)};
    assert_non_null(l.learner);
    assert_true(grt_learner_alloc(l.learner));
    learn_set_parameters(l.learner);
    assert_int_equal(grt_learner_y_bytes(l.learner), 4 * s->width);
    l.x = test_buf(test.dev, sizeof s->x, GRT_BUF_UPLOAD);
    l.y = test_buf(test.dev, (size_t)ROWS * s->width * 4, GRT_BUF_UPLOAD);
    memcpy(grt_buf_host(l.x), s->x, sizeof s->x);
    for (uint32_t r = 0; r < ROWS; r++) {
        memcpy((uint32_t *)grt_buf_host(l.y) + r * s->width, s->words[r], s->width * 4);
    }
    float *now = learn_parameters(&l, count);
    double *p = test_alloc(*count * sizeof *p);
    for (size_t i = 0; i < *count; i++) {
        p[i] = (double)now[i];
    }
    free(now);
    for (uint32_t step = 0; step < 2; step++) {
        uint32_t first = step * BATCH, rows = step ? SHORT : BATCH;
        const struct grt_step_desc samples = {.rows = rows,
                                              .x = {l.x, (uint64_t)first * INPUTS * 4, 0},
                                              .y = {l.y, (uint64_t)first * s->width * 4, 0}};
        struct grt_graph *graph = grt_learner_step(l.learner, &samples);
        assert_non_null(graph);
        learn_run(graph, 1);
        grt_graph_destroy(&graph);
        struct grt_learn_row row;
        uint32_t newest = step;
        assert_int_equal(grt_learner_history(l.learner, &newest, &row, 1), 1);
        assert_int_equal(newest, step);
        double want[GRT_LOSS_MOST], got[GRT_LOSS_MOST];
        double total = judge(c, s, p, first, rows, (double)c->smoothing, want);
        for (uint32_t k = 0; k < c->count; k++) {
            got[k] = (double)row.parts[k] / (double)c->losses[k].scale;
        }
        check_parts(c, step ? "a short step" : "a step", want, got, total, (double)row.loss);
        descend(c, s, p, *count, first, rows);
    }
    now = learn_parameters(&l, count);
    struct test_compare compare = test_compare(test.dev, "%s: parameters", c->name);
    for (size_t i = 0; i < *count; i++) {
        test_compare_value(&compare, i, now[i],
                           (struct oracle_value){p[i], 4 * c->bound * (1 + fabs(p[i]))});
    }
    test_compare_end(&compare);
    // Evaluations add up, and are not smoothed.
    for (uint32_t step = 0; step < 2; step++) {
        uint32_t first = step * BATCH;
        struct grt_graph *graph = grt_learner_evaluate(
            l.learner,
            grt_step_desc(.rows = step ? SHORT : BATCH, .x = {l.x, (uint64_t)first * INPUTS * 4, 0},
                          .y = {l.y, (uint64_t)first * s->width * 4, 0}));
        assert_non_null(graph);
        learn_run(graph, 1);
        grt_graph_destroy(&graph);
    }
    struct grt_learn_state state = learn_state(&l);
    double want[GRT_LOSS_MOST], got[GRT_LOSS_MOST], seen = (double)state.eval_samples;
    double total = judge(c, s, p, 0, ROWS, 0, want);
    for (uint32_t k = 0; k < c->count; k++) {
        got[k] = (double)state.eval_parts[k] / (double)c->losses[k].scale / seen;
    }
    check_parts(c, "an evaluation", want, got, total, (double)state.eval_loss / seen);
    free(p);
    free(s);
    learn_end(&l);
    return now;
}

static const struct several four = {
    .name = "four losses",
    .count = 4,
    .losses = {{GRT_LOSS_CROSS_ENTROPY, 5, 0.5f},
               {GRT_LOSS_MSE, 2, 0.25f},
               {GRT_LOSS_BCE, 3, 2},
               {GRT_LOSS_HUBER, 1, 1.5f}},
    .delta = 0.5f,
    .bound = 2e-6,
};

static void each_and_all(void **state) {
    (void)state;
    size_t count;
    free(check(&four, &count));
    const struct several two = {
        .name = "numbers before classes",
        .count = 2,
        .losses = {{GRT_LOSS_L1, 2, 1}, {GRT_LOSS_CROSS_ENTROPY, 7, 0.125f}},
        .delta = 1,
        .bound = 2e-6};
    free(check(&two, &count));
    const struct several same = {.name = "classes twice",
                                 .count = 3,
                                 .losses = {{GRT_LOSS_CROSS_ENTROPY, 2, 3},
                                            {GRT_LOSS_CROSS_ENTROPY, 6, 1},
                                            {GRT_LOSS_MSE, 1, 1}},
                                 .delta = 1,
                                 .bound = 2e-6};
    free(check(&same, &count));
}

static void smoothed(void **state) {
    (void)state;
    struct several c = four;
    size_t count;
    c.name = "four losses, smoothed";
    c.smoothing = 0.2f;
    free(check(&c, &count));
}

static void weighted(void **state) {
    (void)state;
    static const uint32_t cuts[] = {1, 3, 5};
    struct several c = four;
    c.name = "four losses, weighted samples";
    c.weighted = true;
    c.smoothing = 0.1f;
    for (int i = 0; i < 3; i++) {
        size_t count;
        c.accumulate = cuts[i];
        free(check(&c, &count));
    }
}

// Cut or not, the same formulas; and the same bits again.
static void micro_batches(void **state) {
    (void)state;
    static const uint32_t cuts[] = {3, 5};  // 5: four of 5 rows and one of 4
    struct several c = four;
    c.name = "four losses, in micro-batches";
    for (int i = 0; i < 2; i++) {
        size_t count;
        c.accumulate = cuts[i];
        float *once = check(&c, &count), *twice = check(&c, &count);
        test_same(test.dev, "several losses again", twice, once, 4, count);
        free(once);
        free(twice);
    }
}

// Gradients go back times the loss scale, of each loss alike.
static void sixteen_bits(void **state) {
    (void)state;
    struct several c = four;
    size_t count;
    c.name = "four losses in f16";
    c.precision = GRT_F16;
    c.bound = 2e-3;
    free(check(&c, &count));
    c.name = "four losses in bf16, weighted";
    c.precision = GRT_BF16;
    c.weighted = true;
    c.accumulate = 3;
    c.bound = 1e-2;
    free(check(&c, &count));
}

static void refused(void **state) {
    (void)state;
    static const float weights[11] = {1};
    for (int i = 0; i < 10; i++) {
        struct learn_model model = {0};
        struct grt_learner_desc d = desc_of(&four, &model);
        const char *said = "loss_count is 2 to 4; for one loss leave it 0";
        enum grt_status status = GRT_INVALID;
        d.loss_count = i == 0 ? 1 : i == 1 ? 5 : 4;
        if (i == 2) {
            d.loss = GRT_LOSS_HUBER;
            said = "with several losses `loss` stays MSE";
        } else if (i == 3) {
            d.class_weights = weights;
            said = "class_weights are for cross_entropy";
        } else if (i >= 4 && i <= 7) {
            said = "a scale above 0";
            d.losses[1].scale = i == 4 ? 0 : i == 5 ? -1 : i == 6 ? NAN : 1;
            d.losses[1].loss = i == 7 ? GRT_LOSS_NT_XENT : GRT_LOSS_MSE;
        } else if (i == 8) {
            d.losses[3].cols = 2;
            said = "the losses want 12 numbers for a sample, not [11]";
            status = GRT_CONFIG;
        } else if (i == 9) {
            d.variant = "fused";
            said = "no fused kernels";
            status = GRT_UNSUPPORTED;
        }
        TEST_REFUSED(grt_learner_create(test.dev, &d), status, said);
    }
}

// A loss without one of its operands, or with others than it takes, each by its sentence.
static void operands(void **state) {
    (void)state;
    struct grt_plan *plan = grt_plan_create(test.dev);
    const struct grt_tensor_desc descs[] = {
        {.label = "y", .shape = {6, 4}},
        {.label = "y16", .dtype = GRT_F16, .shape = {6, 4}},
        {.label = "few", .shape = {6, 3}},
        {.label = "dy", .shape = {6, 4}},
        {.label = "classes", .dtype = GRT_U32, .shape = {6}},
        {.label = "pairs", .dtype = GRT_U32, .shape = {6, 2}},
        {.label = "whole", .dtype = GRT_I32, .shape = {6, 2}},
        {.label = "numbers", .shape = {6, 4}},
        {.label = "parts", .shape = {4, GRT_LOSS_PARTS}},
        {.label = "state", .dtype = GRT_U32, .shape = {32}},
        {.label = "weights", .shape = {4}},
    };
    enum { Y, Y16, FEW, DY, CLASSES, PAIRS, WHOLE, NUMBERS, PARTS, STATE, WEIGHTS, COUNT };
    const struct grt_tensor *t[COUNT];
    assert_non_null(plan);
    for (int i = 0; i < COUNT; i++) {
        t[i] = grt_plan_tensor(plan, &descs[i]);
        assert_non_null(t[i]);
    }
    assert_true(grt_plan_alloc(plan));
    const struct grt_range room = t[PARTS]->range;
    const struct grt_loss_desc ce = {.loss = GRT_LOSS_CROSS_ENTROPY,
                                     .y = t[Y],
                                     .target = t[CLASSES],
                                     .dy = t[DY],
                                     .parts = room,
                                     .state = t[STATE]->range};
    struct grt_loss_desc mse = ce, two = ce;
    mse.loss = GRT_LOSS_MSE;
    mse.target = t[NUMBERS];
    two.target = t[PAIRS];
    two.words = 2;
#define REFUSED(of, change, sentence)                                                              \
    do {                                                                                           \
        struct grt_loss_desc d = of;                                                               \
        change;                                                                                    \
        struct grt_graph *graph = grt_graph_create(test.dev, "loss");                              \
        grt_op_loss(graph, &d);                                                                    \
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, sentence);                                \
        grt_graph_destroy(&graph);                                                                 \
    } while (0)
    static const char *const few = "targets are fewer words than the loss wants";
    static const char *const mixed =
        "samples that are mixed have neither weights nor other targets";
    static const char *const weighs =
        "class weights are f32, one for each output of a cross-entropy with gradient";
    REFUSED(ce, d.loss = GRT_LOSS_COUNT, "no such loss");
    REFUSED(ce, d.y = t[Y16], "what the model gave must be [rows][outputs] of f32");
    REFUSED(ce, d.y = t[WEIGHTS], "what the model gave must be [rows][outputs] of f32");
    REFUSED(ce, d.dy = t[FEW], "the gradient must be f32, f16 or bf16, one for each output");
    REFUSED(two, d.dy = t[PAIRS], "the gradient must be f32, f16 or bf16, one for each output");
    REFUSED(ce, d.parts.buf = NULL, "no room for the parts, or no state");
    REFUSED(ce, d.state.buf = NULL, "no room for the parts, or no state");
    REFUSED(ce, d.target = NULL, "no tensor target");
    REFUSED(ce, (d.first = 1, d.cols = 4), "it is of more numbers than the model gives");
    REFUSED(two, d.word_first = 2, few);
    REFUSED(two, (d.word_first = 1, d.sampled = true, d.mass = room), few);
    REFUSED(two, d.words = 3, few);
    REFUSED(ce, (d.sampled = true, d.mass = room), few);
    REFUSED(ce, d.word_first = 1, few);
    REFUSED(two, d.target = t[WHOLE], "targets beside others must be words, u32 or f32");
    REFUSED(two, d.sampled = true, "weights want room for the parts of their sum");
    REFUSED(ce, d.class_weights = t[WEIGHTS], "weights want room for the parts of their sum");
    REFUSED(ce, d.target = t[NUMBERS], "targets must be one u32 a row");
    REFUSED(mse, d.target = t[CLASSES], "targets must be f32, one for each output");
    REFUSED(mse, d.target = t[FEW], "targets must be f32, one for each output");
    REFUSED(ce, d.dy = NULL, "neither gradient nor hits are wanted");
    REFUSED(ce, (d.class_weights = t[Y], d.mass = room), weighs);
    REFUSED(mse, (d.class_weights = t[WEIGHTS], d.mass = room), weighs);
    REFUSED(ce, (d.class_weights = t[WEIGHTS], d.mass = d.hits = room, d.dy = NULL), weighs);
    REFUSED(ce, (d.class_weights = t[WEIGHTS], d.mass = room, d.mix = t[Y]), mixed);
    REFUSED(two, (d.sampled = true, d.mass = room, d.mix = t[Y]), mixed);
    REFUSED(two, d.mix = t[Y], mixed);
    REFUSED(mse, d.near = room, "answers that are near are those of classes");
    REFUSED(mse, d.delta = -1, "delta is below 0");
    REFUSED(mse, d.delta = NAN, "delta is below 0");
#undef REFUSED
    const struct grt_loss_desc *const taken[] = {&ce, &mse, &two};
    struct grt_graph *graph = grt_graph_create(test.dev, "loss");
    for (int i = 0; i < 3; i++) {
        grt_op_loss(graph, taken[i]);
    }
    assert_true(grt_graph_bake(graph));
    grt_graph_destroy(&graph);
    grt_plan_destroy(&plan);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(each_and_all), TEST_CASE(smoothed), TEST_CASE(weighted), TEST_CASE(micro_batches),
    TEST_CASE(sixteen_bits), TEST_CASE(refused),  TEST_CASE(operands),
};
TEST_SUITE(losses, true, cases);
