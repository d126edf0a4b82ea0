// SPDX-License-Identifier: Apache-2.0
// What learners and optimizers say of themselves, all of it from known numbers: every tensor of a
// plan, each word of the state that a run begins with, the phases of a step, and the sentence of
// each refusal with both sides of its limit.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/plan.h"
#include "learn/learner_parts.h"
#include "nn/layer_ops.h"

// 5 inputs, 16 hidden units and 3 outputs: 5 * 16 + 16 + 16 * 3 + 3 parameters.
static const struct grt_mlp_desc net = {
    .depth = 1, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU};

// Layer by layer, so that the plan does not depend on the device.
static struct grt_learner_desc plain(void) {
    return (struct grt_learner_desc){.make = grt_mlp_make,
                                     .of = &net,
                                     .input = {1, {5}},
                                     .loss = GRT_LOSS_MSE,
                                     .optim = grt_optim_defaults(GRT_OPTIM_ADAM),
                                     .batch = 8,
                                     .variant = "layers"};
}

static struct grt_learner *made(const struct grt_learner_desc *d) {
    struct grt_learner *l = grt_learner_create(test.dev, d);
    assert_non_null(l);
    return l;
}

// ---- plans ----

// The tensors of a group, as "label dtype 8x3, ". What is laid out as the parameters are is so many
// times P, which devices align to their liking; so is the table of rates.
static void group_text(const struct grt_learner *l, const char *group, char *text, size_t size) {
    const struct grt_tensor *t;
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; (t = grt_plan_at(l->plan, group, i)); i++) {
        at += (size_t)snprintf(text + at, size - at, "%s%s %s", i > 0 ? ", " : "", t->label,
                               grt_dtype_text(t->dtype));
        uint64_t times = t->shape[0] / l->params.elements;
        if (t->rank == 1 && t->shape[0] == times * l->params.elements) {
            at += (size_t)snprintf(text + at, size - at, " %lluP", (unsigned long long)times);
            continue;
        }
        for (uint32_t k = 0; k < t->rank && strcmp(t->label, "rates") != 0; k++) {
            at += (size_t)snprintf(text + at, size - at, "%s%llu", k > 0 ? "x" : " ",
                                   (unsigned long long)t->shape[k]);
        }
    }
    assert_true(at < size);
}

struct group {
    const char *name, *tensors;
};

static void check_plan(const struct grt_learner_desc *d, const struct group *want, size_t count) {
    struct grt_learner *l = made(d);
    for (size_t i = 0; i < count; i++) {
        char got[1024];
        group_text(l, want[i].name, got, sizeof got);
        assert_string_equal(got, want[i].tensors);
    }
    grt_learner_destroy(&l);
}
#define CHECK_PLAN(d, ...)                                                                         \
    check_plan(d, (const struct group[]){__VA_ARGS__},                                             \
               sizeof((const struct group[]){__VA_ARGS__}) / sizeof(struct group))

#define STATE(parts)                                                                               \
    "state u32 32, history f32 256x8, norm parts f32 256, loss parts f32 " parts                   \
    "x128, hits f32 " parts "x128, near f32 " parts "x128"

static void plans(void **state) {
    (void)state;
    struct grt_learner_desc d = plain();
    CHECK_PLAN(&d, {"io", "input f32 8x5, target f32 8x3"}, {"state", STATE("1")},
               {"acts", "h.0 f32 8x16, dh.0 f32 8x16, dh.1 f32 8x16, output f32 8x3, output "
                        "gradient f32 8x3"},
               {"optim", "optimizer f32 2P"}, {"params", "params f32 1P"},
               {"grads", "grads f32 1P"}, {"turns", ""});
    // Products that are cut, as on matrix units, add up there.
    if (grt_dev_info(test.dev)->caps.software) {
        CHECK_PLAN(&d, {"scratch", ""});
    }
    // 8 samples in three parts; 16 bits have a copy of the input.
    d.precision = GRT_F16;
    d.accumulate = 3;
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    d.optim.momentum = 0.9;
    d.optim.ema = 0.5;
    CHECK_PLAN(&d, {"io", "input f32 3x5, target f32 3x3"}, {"state", STATE("3")},
               {"acts", "input16 f16 3x5, h.0 f16 3x16, dh.0 f16 3x16, dh.1 f16 3x16, output f32 "
                        "3x3, output gradient f16 3x3"},
               {"optim", "optimizer f32 1P, average f32 1P"});
    // A class and a weight are two words of a target, numbers and a weight one more number.
    static const float weights[] = {1, 2, 0};
    d = plain();
    d.loss = GRT_LOSS_CROSS_ENTROPY;
    d.class_weights = weights;
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    CHECK_PLAN(&d, {"io", "input f32 8x5, target u32 8"},
               {"state", "class weights f32 3, " STATE("1") ", weights f32 1x128"}, {"optim", ""});
    d.sample_weights = true;
    CHECK_PLAN(&d, {"io", "input f32 8x5, target u32 8x2"},
               {"state", "class weights f32 3, " STATE("1") ", weights f32 1x128"});
    d = plain();
    d.sample_weights = true;
    d.optim = grt_optim_defaults(GRT_OPTIM_LARS);
    CHECK_PLAN(&d, {"io", "input f32 8x5, target f32 8x4"},
               {"state", STATE("1") ", weights f32 1x128, lengths f32 128, rates u32"},
               {"optim", ""});
    d = plain();
    d.optim.decay_matrices = true;
    d.optim.weight_decay = 0.1;
    CHECK_PLAN(&d, {"state", STATE("1") ", rates u32"});
    d = plain();
    d.precision = GRT_BF16;
    d.inference = true;
    CHECK_PLAN(&d, {"io", "input f32 8x5, target f32 8x3"}, {"state", STATE("1")},
               {"acts", "input16 bf16 8x5, h.0 bf16 8x16, output f32 8x3"}, {"optim", ""},
               {"grads", ""}, {"params", "params f32 1P"});
}

// Two views of each sample; with parts that are told apart from each other all go forward first.
static void plans_of_pairs(void **state) {
    (void)state;
#define ACTS(rows)                                                                                 \
    "views f32 " rows "x5, h.0 f32 " rows "x16, dh.0 f32 " rows "x16, dh.1 f32 " rows              \
    "x16, output f32 " rows "x3, output gradient f32 " rows "x3, loss f32 512"
    struct grt_learner_desc d = plain();
    d.loss = GRT_LOSS_NT_XENT;
    d.views = 2;
    CHECK_PLAN(&d, {"io", "input f32 8x5, target u32 8"}, {"acts", ACTS("16")});
    d.exact = true;  // of one part it is no other loss
    CHECK_PLAN(&d, {"acts", ACTS("16")});
    d.accumulate = 3;
    CHECK_PLAN(&d, {"io", "input f32 3x5, target u32 3"}, {"state", STATE("3")},
               {"acts", ACTS("6") ", all inputs f32 8x5, all outputs f32 16x3, all output "
                                  "gradients f32 16x3"});
    d.exact = false;
    CHECK_PLAN(&d, {"acts", ACTS("6")});
    d.accumulate = 1;
    d.whole = (struct grt_whole){32, 16, 8, 16};
    CHECK_PLAN(&d, {"acts", ACTS("16") ", all inputs f32 16x5, all outputs f32 64x3, all output "
                                       "gradients f32 16x3"});
    d.whole = (struct grt_whole){32, 16, 8, 8};  // all its samples are one part
    CHECK_PLAN(&d, {"acts", ACTS("16") ", all outputs f32 64x3, all output gradients f32 16x3"});
    // Of 256 rows: twice 3 numbers of each, 3072 bytes, and twice one, 1024.
    d = plain();
    d.loss = GRT_LOSS_NT_XENT;
    d.views = 2;
    d.batch = 128;
    struct grt_learner *l = made(&d);
    assert_int_equal(grt_tensor_bytes(l->loss_scratch), 2 * 3072 + 2 * 1024);
    grt_learner_destroy(&l);
    // Parts of the scratch begin at multiples of 512 bytes.
    assert_int_equal(grt_loss_scratch(GRT_LOSS_NT_XENT, 16, 3), 4 * 512);
    assert_int_equal(grt_loss_scratch(GRT_LOSS_NT_XENT, 64, 64), 2 * 64 * 64 * 4 + 2 * 512);
    assert_int_equal(grt_loss_scratch(GRT_LOSS_MSE, 64, 64), 0);
    // Sums of 64 rows each, 16 of them, of more rows 256; then those of all.
    assert_int_equal(grt_block_scratch(1000, 100), 2 * 6656 + 2 * 512);
    assert_int_equal(grt_block_scratch(100000, 3), 2 * 3072 + 2 * 512);
}

// ---- the beginning ----

static void first_state(void **state) {
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct grt_learner_desc d = plain();
        d.precision = half ? GRT_F16 : GRT_F32;
        d.optim.scale = 512;
        d.optim.ema = 0.5;
        d.seed = 3;
        struct grt_learner *l = made(&d);
        TEST_REFUSED(grt_learner_reset(l, 1), GRT_INVALID,
                     "grt_learner_reset: the learner is not allocated");
        assert_true(grt_learner_alloc(l));
        TEST_REFUSED(grt_learner_alloc(l), GRT_INVALID, "grt_learner_alloc: called twice");
        float *drawn = learn_read(l->params.master);
        for (int again = 0; again < 2; again++) {
            struct grt_learn_state got,
                want = {.loss_scale = half ? 512.0f : 1.0f, .lr_factor = 1.0f};
            assert_true(grt_learner_state(l, &got));
            assert_memory_equal(&got, &want, sizeof got);
            // What is kept is 0, the average is what there is.
            float *kept = learn_read(l->kept), *history = learn_read(l->history);
            float *average = learn_read(l->average), *params = learn_read(l->params.master);
            for (uint64_t i = 0; i < grt_tensor_count(l->kept); i++) {
                assert_true(kept[i] == 0.0f);
            }
            for (uint64_t i = 0; i < grt_tensor_count(l->history); i++) {
                assert_true(history[i] == 0.0f);
            }
            assert_memory_equal(average, params, grt_tensor_bytes(l->average));
            assert_memory_equal(params, drawn, grt_tensor_bytes(l->average));
            assert_true(params[0] != 0.0f && params[0] != params[1]);
            free(kept);
            free(history);
            free(average);
            free(params);
            // A run that went on begins anew.
            got = (struct grt_learn_state){.steps = 7, .cursor = 5, .eval_loss = 2};
            assert_true(grt_learner_set_state(l, &got));
            struct grt_graph *graph = grt_graph_create(test.dev, "other numbers");
            grt_graph_fill(graph, l->kept->range, 0x3f800000);
            grt_graph_fill(graph, l->history->range, 0x3f800000);
            grt_graph_fill(graph, l->average->range, 0x3f800000);
            assert_true(grt_graph_finish(graph));
            grt_graph_destroy(&graph);
            assert_true(grt_learner_reset(l, 3));
        }
        free(drawn);
        grt_learner_destroy(&l);
    }
    TEST_REFUSED(grt_learner_alloc(NULL), GRT_INVALID, "grt_learner_alloc: no learner");
    assert_int_equal(grt_learner_bytes(NULL, NULL), 0);
}

// Tensors of one shape are drawn apart: layers that begin alike would learn alike.
static void layers_begin_apart(void **state) {
    (void)state;
    struct grt_mlp_desc deep = net;
    deep.depth = 3;
    struct grt_learner_desc d = plain();
    d.of = &deep;
    struct grt_learner *l = made(&d);
    assert_true(grt_learner_alloc(l));
    const char *one, *other;
    const struct grt_tensor *a = grt_learner_tensor(l, GRT_TENSOR_PARAM, 2, &one);
    const struct grt_tensor *b = grt_learner_tensor(l, GRT_TENSOR_PARAM, 4, &other);
    assert_string_equal(one, "layers.1.weight");
    assert_string_equal(other, "layers.2.weight");
    float *x = learn_read(a), *y = learn_read(b);
    uint32_t same = 0;
    for (uint32_t i = 0; i < 16 * 16; i++) {
        same += x[i] == y[i];
    }
    assert_true(same < 3);
    free(x);
    free(y);
    grt_learner_destroy(&l);
}

// ---- sentences ----

#define REFUSED(change, sentence)                                                                  \
    do {                                                                                           \
        struct grt_learner_desc d = plain();                                                       \
        change;                                                                                    \
        TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_INVALID, sentence);                     \
    } while (0)
#define ALLOWED(change)                                                                            \
    do {                                                                                           \
        struct grt_learner_desc d = plain();                                                       \
        change;                                                                                    \
        struct grt_learner *l = made(&d);                                                          \
        grt_learner_destroy(&l);                                                                   \
    } while (0)

static void sentences(void **state) {
    (void)state;
    static const float weights[] = {1, 2, 3}, bad[] = {1, -2, 3}, none[] = {0, 0, 0},
                       endless[] = {1, INFINITY, 3};
    TEST_REFUSED(grt_learner_create(test.dev, NULL), GRT_INVALID, "learner: no desc");
    REFUSED(d.make = NULL, "learner: no network");
    REFUSED(d.loss = GRT_LOSS_COUNT, "learner: no such loss");
    REFUSED(d.batch = 0, "learner: samples and batch must be at least 1");
    REFUSED(d.input.rank = 0, "learner: samples and batch must be at least 1");
    REFUSED(d.precision = GRT_U32, "learner: precision must be f32, f16 or bf16");
    REFUSED(d.accumulate = 9, "learner: more micro-batches than samples");
    ALLOWED(d.accumulate = 8);
    REFUSED(d.views = 2, "learner: nt_xent wants two views of each sample");
    ALLOWED(d.views = 1);
    REFUSED(d.exact = true, "learner: nt_xent wants two views of each sample");
    REFUSED(d.whole.samples = 8, "learner: nt_xent wants two views of each sample");
    REFUSED((d.loss = GRT_LOSS_NT_XENT, d.views = 3), "learner: nt_xent wants two views");
    ALLOWED((d.loss = GRT_LOSS_NT_XENT, d.inference = true));
    REFUSED(d.huber_delta = -0.5f, "learner: huber_delta must not be below 0");
    REFUSED(d.huber_delta = NAN, "learner: huber_delta must not be below 0");
    REFUSED(d.label_smoothing = -0.5f, "learner: label_smoothing must be from 0 to below 1");
    REFUSED(d.label_smoothing = 1.0f, "learner: label_smoothing must be from 0 to below 1");
    REFUSED(d.class_weights = weights, "learner: class_weights are for cross_entropy");
    REFUSED((d.loss = GRT_LOSS_NT_XENT, d.views = 2, d.sample_weights = true),
            "learner: sample_weights are for losses with targets");
    REFUSED(d.variant = "layer", "learner: variant must be layers or fused");
    REFUSED((d.loss = GRT_LOSS_CROSS_ENTROPY, d.class_weights = bad),
            "learner: a class weight of -2");
    REFUSED((d.loss = GRT_LOSS_CROSS_ENTROPY, d.class_weights = endless),
            "learner: a class weight of inf");
    REFUSED((d.loss = GRT_LOSS_CROSS_ENTROPY, d.class_weights = none),
            "learner: every class weight is 0");
    ALLOWED((d.loss = GRT_LOSS_CROSS_ENTROPY, d.class_weights = weights));
    REFUSED(d.optim.lr = 0, "learner: lr must be above 0");
    ALLOWED((d.optim.lr = 0, d.inference = true));
#define WHOLE(...)                                                                                 \
    (d.loss = GRT_LOSS_NT_XENT, d.views = 2, d.whole = (struct grt_whole){__VA_ARGS__})
#define FEW "learner: the samples of a step of all are fewer than those of one"
    ALLOWED(WHOLE(32, 16, 24, 8));
    REFUSED(WHOLE(32, 16, 25, 8), FEW);
    REFUSED(WHOLE(32, 16, 0, 7), FEW);
    REFUSED(WHOLE(32, 16, 0, 33), FEW);
    REFUSED(WHOLE(32, 0, 0, 8), FEW);
    ALLOWED(WHOLE(8, 99, 0, 8));
    REFUSED((WHOLE(32, 16, 0, 8), d.temperature = 0.0249f), "the temperature is below 0.025");
    ALLOWED((WHOLE(32, 16, 0, 8), d.temperature = 0.025f));
    REFUSED(d.together.ranks = 2, "learner: other processes cannot be reached");
    struct grt_learner_desc d = plain();
    d.outputs = 4;
    TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_CONFIG,
                 "the network gives [3] for a sample, and the targets want [4]");
    d.outputs = 3;
    struct grt_learner *l = made(&d);
    assert_int_equal(grt_learner_outputs(l), 3);
    assert_int_equal(grt_learner_x_bytes(l), 20);
    assert_int_equal(grt_learner_y_bytes(l), 12);
    assert_int_equal(grt_learner_parameters(l), 5 * 16 + 16 + 16 * 3 + 3);
    assert_string_equal(grt_learner_variant(l), "layers");
    assert_int_equal(grt_learner_desc_of(l)->accumulate, 1);
    grt_learner_destroy(&l);
}

// ---- optimizers ----

static void defaults_of_optimizers(void **state) {
    (void)state;
    static const enum grt_optim kinds[] = {GRT_OPTIM_SGD, GRT_OPTIM_ADAM, GRT_OPTIM_ADAMW,
                                           GRT_OPTIM_LARS};
    for (int i = 0; i < 4; i++) {
        struct grt_optim_desc d = grt_optim_defaults(kinds[i]);
        assert_int_equal(d.kind, kinds[i]);
        assert_true(d.lr == 1e-3 && d.weight_decay == (i == 2 ? 1e-2 : 0.0));
        assert_true(d.beta1 == 0.9 && d.beta2 == 0.999 && d.eps == 1e-8 && d.gamma == 0.1);
        assert_true(d.trust == 1e-3 && d.div == 25 && d.final_div == 1e4 && d.momentum == 0);
        assert_true(d.scale == 65536 && d.growth == 2 && d.backoff == 0.5 && d.ema == 0);
        assert_int_equal(d.growth_interval, 2000);
        assert_true(d.max_norm == 0 && d.min_lr == 0 && d.dampening == 0 && !d.nesterov);
        assert_int_equal(d.warmup + d.total + d.period + d.group_count, 0);
        assert_null(grt_optim_mistake(&d));
        bool adam = i == 1 || i == 2;
        assert_int_equal(grt_optim_tensors(&d), adam ? 2 : 0);
        d.momentum = 0.5;
        assert_int_equal(grt_optim_tensors(&d), adam ? 2 : 1);
        assert_string_equal(grt_optim_tensor_name(&d, 0), adam ? "exp_avg" : "momentum_buffer");
        assert_true(adam ? strcmp(grt_optim_tensor_name(&d, 1), "exp_avg_sq") == 0
                         : !grt_optim_tensor_name(&d, 1));
        assert_null(grt_optim_tensor_name(&d, 2));
    }
    assert_true(grt_lr_for_batch(0.5, 256, 64) == 1.0 && grt_lr_for_batch(0.5, 64, 256) == 0.25);
    assert_true(grt_lr_for_batch(0.5, 0, 64) == 0.5 && grt_lr_for_batch(0.5, 64, 0) == 0.5);
    assert_string_equal(grt_optim_text(GRT_OPTIM_COUNT), "unknown optimizer");
    assert_string_equal(grt_schedule_text(GRT_SCHEDULE_COUNT), "unknown schedule");
}

#define MISTAKE(of, change, sentence)                                                              \
    do {                                                                                           \
        struct grt_optim_desc d = grt_optim_defaults(of);                                          \
        change;                                                                                    \
        assert_non_null(grt_optim_mistake(&d));                                                    \
        assert_string_equal(grt_optim_mistake(&d), sentence);                                      \
    } while (0)
#define FINE(of, change)                                                                           \
    do {                                                                                           \
        struct grt_optim_desc d = grt_optim_defaults(of);                                          \
        change;                                                                                    \
        assert_null(grt_optim_mistake(&d));                                                        \
    } while (0)

static void mistakes_of_optimizers(void **state) {
    (void)state;
    static const char *const what = "no such optimizer, schedule or reaction";
    MISTAKE(GRT_OPTIM_COUNT, (void)0, what);
    MISTAKE(GRT_OPTIM_SGD, d.schedule = GRT_SCHEDULE_COUNT, what);
    MISTAKE(GRT_OPTIM_SGD, d.nonfinite = GRT_NONFINITE_COUNT, what);
    MISTAKE(GRT_OPTIM_SGD, d.lr = 0, "lr must be above 0");
    MISTAKE(GRT_OPTIM_SGD, d.lr = (double)INFINITY, "lr must be above 0");
    static const char *const below = "weight_decay, max_norm and min_lr must not be below 0";
    MISTAKE(GRT_OPTIM_SGD, d.weight_decay = -1, below);
    MISTAKE(GRT_OPTIM_SGD, d.max_norm = -1, below);
    MISTAKE(GRT_OPTIM_SGD, d.min_lr = -1, below);
    static const char *const moment =
        "momentum must not be below 0, and Nesterov's wants momentum and no dampening";
    MISTAKE(GRT_OPTIM_SGD, d.momentum = -0.5, moment);
    MISTAKE(GRT_OPTIM_SGD, d.nesterov = true, moment);
    MISTAKE(GRT_OPTIM_SGD, (d.nesterov = true, d.momentum = 0.5, d.dampening = 0.5), moment);
    FINE(GRT_OPTIM_SGD, (d.nesterov = true, d.momentum = 0.5));
    FINE(GRT_OPTIM_SGD, (d.momentum = 0.5, d.dampening = 0.5));
    MISTAKE(GRT_OPTIM_LARS, d.trust = 0, "the trust coefficient of lars must be above 0");
    FINE(GRT_OPTIM_SGD, d.trust = 0);
    MISTAKE(GRT_OPTIM_SGD, d.ema = 1, "ema must lie in [0, 1)");
    MISTAKE(GRT_OPTIM_SGD, d.ema = -0.5, "ema must lie in [0, 1)");
    static const char *const betas = "beta1 and beta2 must lie in [0, 1), eps must not be below 0";
    static const enum grt_optim adams[] = {GRT_OPTIM_ADAM, GRT_OPTIM_ADAMW};
    for (int i = 0; i < 2; i++) {
        MISTAKE(adams[i], d.beta1 = 1, betas);
        MISTAKE(adams[i], d.beta2 = 1, betas);
        MISTAKE(adams[i], d.beta1 = -0.5, betas);
        MISTAKE(adams[i], d.beta2 = -0.5, betas);
        MISTAKE(adams[i], d.eps = -1, betas);
        FINE(adams[i], d.beta1 = d.beta2 = d.eps = 0);
    }
    FINE(GRT_OPTIM_SGD, d.beta1 = 1);
    static const char *const falls =
        "cosine and linear want more steps in all than the warm-up has";
    static const enum grt_schedule falling[] = {GRT_SCHEDULE_COSINE, GRT_SCHEDULE_LINEAR};
    for (int i = 0; i < 2; i++) {
        MISTAKE(GRT_OPTIM_SGD, (d.schedule = falling[i], d.total = d.warmup = 5), falls);
        FINE(GRT_OPTIM_SGD, (d.schedule = falling[i], d.warmup = 5, d.total = 6));
    }
    FINE(GRT_OPTIM_SGD, d.total = d.warmup = 5);
    static const char *const cycle =
        "one_cycle wants steps that rise and steps that fall, and divisors of at least 1";
#define CYCLE d.schedule = GRT_SCHEDULE_ONE_CYCLE, d.warmup = 1, d.total = 2
    FINE(GRT_OPTIM_SGD, (CYCLE, d.div = d.final_div = 1));
    MISTAKE(GRT_OPTIM_SGD, (CYCLE, d.warmup = 0), cycle);
    MISTAKE(GRT_OPTIM_SGD, (CYCLE, d.total = 1), cycle);
    MISTAKE(GRT_OPTIM_SGD, (CYCLE, d.div = 0.5), cycle);
    MISTAKE(GRT_OPTIM_SGD, (CYCLE, d.final_div = 0.5), cycle);
    static const char *const stairs = "step wants a period of at least 1 and gamma above 0";
    MISTAKE(GRT_OPTIM_SGD, d.schedule = GRT_SCHEDULE_STEP, stairs);
    MISTAKE(GRT_OPTIM_SGD, (d.schedule = GRT_SCHEDULE_STEP, d.period = 1, d.gamma = 0), stairs);
    FINE(GRT_OPTIM_SGD, (d.schedule = GRT_SCHEDULE_STEP, d.period = 1));
    static const char *const scale =
        "the loss scale must be above 0, growth at least 1, back-off in (0, 1), the interval at "
        "least 1";
    MISTAKE(GRT_OPTIM_SGD, d.scale = 0, scale);
    MISTAKE(GRT_OPTIM_SGD, d.growth = 0.5, scale);
    MISTAKE(GRT_OPTIM_SGD, d.backoff = 0, scale);
    MISTAKE(GRT_OPTIM_SGD, d.backoff = 1, scale);
    MISTAKE(GRT_OPTIM_SGD, d.growth_interval = 0, scale);
    FINE(GRT_OPTIM_SGD, (d.growth = 1, d.growth_interval = 1));
    MISTAKE(GRT_OPTIM_SGD, d.group_count = 17, "more than 16 groups of parameters");
    MISTAKE(GRT_OPTIM_SGD, d.group_count = 1, "a group of parameters without a pattern of names");
    static const char *const group = "lr and weight_decay of a group must not be below 0";
#define GROUP(...)                                                                                 \
    d.group_count = 1, d.groups[0] = (struct grt_optim_group){.match = "*", __VA_ARGS__}
    FINE(GRT_OPTIM_SGD, (GROUP(.own_lr = true, .own_decay = true)));
    FINE(GRT_OPTIM_SGD, (GROUP(.lr = -1, .weight_decay = -1)));
    MISTAKE(GRT_OPTIM_SGD, (GROUP(.own_lr = true, .lr = -1)), group);
    MISTAKE(GRT_OPTIM_SGD, (GROUP(.own_lr = true, .lr = (double)INFINITY)), group);
    MISTAKE(GRT_OPTIM_SGD, (GROUP(.own_decay = true, .weight_decay = -1)), group);
}

// ---- updates ----

// An update that lacks one of its operands, each by its name.
static void operands_of_updates(void **state) {
    (void)state;
    struct grt_learner_desc d = plain();
    struct grt_learner *l = made(&d);
    assert_true(grt_learner_alloc(l));
    struct grt_params none = l->params, bare = l->params;
    none.master = NULL;
    bare.grad = NULL;
    struct grt_optim_desc wrong = d.optim;
    wrong.lr = 0;
    struct grt_tensor few = *l->kept, rates = *l->state;
    few.shape[0] -= 1;
    const struct grt_update_desc good = {.optim = &d.optim,
                                         .params = &l->params,
                                         .kept = l->kept,
                                         .state = l->state,
                                         .history = l->history,
                                         .loss_parts = l->loss_parts->range,
                                         .loss_part_count = GRT_LOSS_PARTS,
                                         .norm_parts = l->norm_parts};
    for (int i = 0; i < 11; i++) {
        struct grt_update_desc u = good;
        const char *want = NULL;
        switch (i) {
        case 0:
            u.optim = NULL, want = "update: no desc, optimizer or parameters";
            break;
        case 1:
            u.params = &none, want = "update: no desc, optimizer or parameters";
            break;
        case 2:
            u.optim = &wrong, want = "update: lr must be above 0";
            break;
        case 3:
            u.kept = NULL, want = "update: what the optimizer keeps has too few";
            break;
        case 4:
            u.kept = &few, want = "update: what the optimizer keeps has too few";
            break;
        case 5:
            u.params = &bare, want = "update: no tensor grads";
            break;
        case 6:
            u.state = NULL, want = "update: no tensor state";
            break;
        case 7:
            u.history = NULL, want = "update: no tensor history";
            break;
        case 8:
            u.norm_parts = NULL, want = "update: no tensor norm_parts";
            break;
        case 9:
            u.loss_part_count = 0, want = "update: no parts of a loss";
            break;
        default:
            u.rates = &rates, want = "update: groups of parameters want 0 words of rates";
        }
        struct grt_graph *graph = grt_graph_create(test.dev, "update");
        grt_op_update(graph, &u);
        TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, want);
        grt_graph_destroy(&graph);
    }
    struct grt_graph *graph = grt_graph_create(test.dev, "update");
    grt_op_update(graph, &good);
    assert_true(grt_graph_bake(graph));
    grt_graph_destroy(&graph);
    grt_learner_destroy(&l);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(plans),
    TEST_CASE(plans_of_pairs),
    TEST_CASE(first_state),
    TEST_CASE(layers_begin_apart),
    TEST_CASE(sentences),
    TEST_CASE(defaults_of_optimizers),
    TEST_CASE(mistakes_of_optimizers),
    TEST_CASE(operands_of_updates),
};
TEST_SUITE(learnfacts, true, cases);
