// SPDX-License-Identifier: Apache-2.0
// What a learner refuses, and both sides of each limit: samples that are not there, rows on the
// device, parts, snapshots, models without fused kernels; and what it says of itself.
#include "kits/learn_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/network.h"
#include "learn/learner_parts.h"
#include "learn/snapshot.h"

static void taken(struct grt_graph *graph) {
    assert_non_null(graph);
    grt_graph_destroy(&graph);
}

// ---- samples ----

static void samples_in_memory(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.accumulate = 3;  // of 8
    struct learn l = learn_begin(&d, LEARN_BATCH);
    struct grt_learner *p = l.learner;
    const uint64_t x = LEARN_BATCH * 8 * 4, y = LEARN_BATCH * 2 * 4;
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.rows = 25, .x = {l.x}, .y = {l.y})),
                 GRT_INVALID, "training step of 25 rows: more rows than the learner's batch");
    TEST_REFUSED(grt_learner_evaluate(p, grt_step_desc(.rows = 25, .x = {l.x}, .y = {l.y})),
                 GRT_INVALID, "evaluation of 25 rows: more rows than the learner's batch");
    static const char *const few =
        "training step of 24 rows: x or y is smaller than the samples of all steps";
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.x = {l.x, 0, x - 1}, .y = {l.y})), GRT_INVALID,
                 few);
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.x = {l.x}, .y = {l.y, 0, y - 1})), GRT_INVALID,
                 few);
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.x = {l.x}, .y = {l.y, y + 1, 0})), GRT_INVALID,
                 few);
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.x = {l.x})), GRT_INVALID, few);
    taken(grt_learner_step(p, grt_step_desc(.x = {l.x, 0, x}, .y = {l.y, 0, y})));
    // Twelve samples twice are there, twice thirteen are not.
    taken(grt_learner_step(p, grt_step_desc(.rows = 12, .steps = 2, .x = {l.x}, .y = {l.y})));
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.rows = 13, .steps = 2, .x = {l.x}, .y = {l.y})),
                 GRT_INVALID, "training step of 13 rows: x or y is smaller");
    // What the learner holds itself is one micro-batch.
    taken(grt_learner_step(p, grt_step_desc(.rows = 8)));
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.rows = 9)), GRT_INVALID,
                 "training step of 9 rows: without x only one micro-batch can be fed");
    TEST_REFUSED(grt_learner_evaluate(p, grt_step_desc(.rows = 9)), GRT_INVALID,
                 "evaluation of 9 rows: without x only one micro-batch can be fed");
    // Steps of the rest are of rows on the device.
    TEST_REFUSED(grt_learner_step(p, grt_step_desc(.x = {l.x}, .y = {l.y}, .rest = 3)), GRT_INVALID,
                 "training step of 24 rows: a step of the rest has fewer rows");
    learn_end(&l);
}

static void samples_of_parts(void **state) {
    (void)state;
    static const char *const none = "no such micro-batch, or several steps, or data on the device";
    struct learn_desc d = learn_small(GRT_F32);
    d.accumulate = 3;
    struct learn l = learn_begin(&d, LEARN_BATCH);
    struct grt_learner *p = l.learner;
    const struct {
        uint32_t rows, part, steps;
        uint64_t x;  // samples that there are
        const char *why;
    } rows[] = {
        {24, 3, 0, 8, NULL},
        {24, 4, 0, 8, none},
        {24, 1, 2, 24, none},
        {16, 2, 0, 8, NULL},
        {16, 3, 0, 8, none},
        {17, 3, 0, 1, NULL},
        {24, 3, 0, 7, "x or y is smaller than the samples of all steps"},
        {18, 3, 0, 1, "x or y is smaller than the samples of all steps"},
        {24, 1, 1, 8, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_step_desc desc = {.rows = rows[i].rows,
                                           .part = rows[i].part,
                                           .steps = rows[i].steps,
                                           .x = {l.x, 0, rows[i].x * 8 * 4},
                                           .y = {l.y, 0, rows[i].x * 2 * 4}};
        if (rows[i].why) {
            TEST_REFUSED(grt_learner_step(p, &desc), GRT_INVALID, rows[i].why);
        } else {
            taken(grt_learner_step(p, &desc));
        }
    }
    learn_end(&l);
}

static void predictions(void **state) {
    (void)state;
    static const char *const small =
        "prediction of 24 rows: out is smaller than what the model gives, or there are several "
        "steps";
    struct learn_desc d = learn_small(GRT_F32);
    struct learn l = learn_begin(&d, 2 * LEARN_BATCH);
    struct grt_buf *out = test_buf(test.dev, 24 * 2 * 4 + 4, GRT_BUF_READBACK);
    const struct grt_step_desc one = {.x = {l.x}}, two = {.steps = 2, .x = {l.x}};
    taken(grt_learner_predict(l.learner, &one, (struct grt_range){out, 4, 0}));
    taken(grt_learner_predict(l.learner, &one, (struct grt_range){out, 0, 192}));
    TEST_REFUSED(grt_learner_predict(l.learner, &one, (struct grt_range){out, 8, 0}), GRT_INVALID,
                 small);
    TEST_REFUSED(grt_learner_predict(l.learner, &one, (struct grt_range){out, 0, 191}), GRT_INVALID,
                 small);
    TEST_REFUSED(grt_learner_predict(l.learner, &one, (struct grt_range){0}), GRT_INVALID, small);
    TEST_REFUSED(grt_learner_predict(l.learner, &two, (struct grt_range){out}), GRT_INVALID, small);
    TEST_REFUSED(grt_learner_predict(NULL, &one, (struct grt_range){out}), GRT_INVALID,
                 "prediction: no desc, or the learner is not allocated");
    TEST_REFUSED(grt_learner_predict(l.learner, NULL, (struct grt_range){out}), GRT_INVALID,
                 "prediction: no desc, or the learner is not allocated");
    grt_buf_destroy(&out);
    learn_end(&l);
}

// Two views of an odd number of 16-bit floats do not lie at whole words.
static void odd_views(void **state) {
    (void)state;
    const struct {
        enum grt_dtype precision;
        uint32_t inputs, rows;
        bool refused;
    } ways[] = {{GRT_F16, 5, 7, true},
                {GRT_F16, 5, 8, false},
                {GRT_F16, 6, 7, false},
                {GRT_BF16, 3, 1, true},
                {GRT_F32, 5, 7, false}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct grt_network_desc network = {.text = "[{linear: 4}]"};
        struct grt_learner *l = grt_learner_create(
            test.dev, grt_learner_desc(.make = grt_network_make, .of = &network,
                                       .input = {1, {ways[i].inputs}}, .loss = GRT_LOSS_NT_XENT,
                                       .views = 2, .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                       .precision = ways[i].precision, .batch = 8));
        assert_true(l && grt_learner_alloc(l));
        if (ways[i].refused) {
            TEST_REFUSED(grt_learner_step(l, grt_step_desc(.rows = ways[i].rows)), GRT_INVALID,
                         "an odd number of samples of an odd number of 16-bit floats cannot be "
                         "seen twice");
        } else {
            taken(grt_learner_step(l, grt_step_desc(.rows = ways[i].rows)));
        }
        grt_learner_destroy(&l);
    }
}

// ---- rows on the device ----

struct on_device {
    struct test_tensor x, y, order, stage_x, stage_y, numbers;
    struct grt_step_rows rows;
};

static void on_device_begin(struct on_device *o) {
    o->x = test_tensor(test.dev, GRT_F32, 50, 8);
    o->y = test_tensor(test.dev, GRT_F32, 50, 2);
    o->order = test_tensor(test.dev, GRT_U32, 64, 0);
    o->stage_x = test_tensor(test.dev, GRT_F32, 4096, 0);
    o->stage_y = test_tensor(test.dev, GRT_F32, 4096, 0);
    o->numbers = test_tensor(test.dev, GRT_U32, 4096, 0);
    o->rows = (struct grt_step_rows){
        .x = o->x.tensor, .y = o->y.tensor, .order = o->order.tensor, .record = 32, .epoch = 50};
}

static void on_device_end(struct on_device *o) {
    struct test_tensor *all[] = {&o->x, &o->y, &o->order, &o->stage_x, &o->stage_y, &o->numbers};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        test_tensor_end(all[i]);
    }
}

static void rows_on_the_device(void **state) {
    (void)state;
    static const char *const wanted = "data on the device want an order and targets, and no x";
    static const char *const others = "the data's samples are not the learner's";
    static const char *const stage =
        "the stage is smaller than its steps, or steps are cut into micro-batches";
    struct learn_desc d = learn_small(GRT_F32);
    d.batch = 10;
    struct learn l = learn_begin(&d, 20);
    struct grt_learner *p = l.learner;
    struct on_device o;
    on_device_begin(&o);
    // 10 samples of 32 and of 8 bytes, each at a multiple of what a binding may begin at.
    uint64_t x = grt_dev_align_up(test.dev, 320), y = grt_dev_align_up(test.dev, 80);
    assert_int_equal(grt_learner_stage(p, false, 3), 3 * x);
    assert_int_equal(grt_learner_stage(p, true, 2), 2 * y);
    assert_int_equal(grt_learner_stage(p, true, 0), 0);
#define ROWS(change, why)                                                                          \
    do {                                                                                           \
        struct grt_step_rows rows = o.rows;                                                        \
        struct grt_step_desc desc = {.data = &rows};                                               \
        change;                                                                                    \
        const char *said = why;                                                                    \
        if (said) {                                                                                \
            TEST_REFUSED(grt_learner_step(p, &desc), GRT_INVALID, said);                           \
        } else {                                                                                   \
            taken(grt_learner_step(p, &desc));                                                     \
        }                                                                                          \
    } while (0)
    ROWS((void)0, NULL);
    ROWS(desc.x.buf = l.x, wanted);
    ROWS(rows.order.range.buf = NULL, wanted);
    ROWS(rows.y.range.buf = NULL, wanted);
    ROWS(rows.order.dtype = GRT_F32, others);
    ROWS(rows.x.shape[1] = 7, others);
    ROWS(rows.x.shape[1] = 9, others);
    ROWS(rows.y.shape[1] = 1, others);
    ROWS((rows.y.shape[1] = 3), others);
    ROWS(desc.part = 1, "no such micro-batch, or several steps, or data on the device");
    static const char *const rest = "a step of the rest has fewer rows than the others";
    ROWS(desc.rest = 10, rest);
    ROWS(desc.rest = 9, NULL);
    ROWS((desc.rows = 7, desc.rest = 7), rest);
    ROWS((desc.rows = 7, desc.rest = 6), NULL);
#define STAGED(x_bytes, y_bytes)                                                                   \
    (rows.staged = 2, rows.stage_x = o.stage_x.tensor.range, rows.stage_x.size = (x_bytes),        \
     rows.stage_y = o.stage_y.tensor.range, rows.stage_y.size = (y_bytes))
    ROWS(STAGED(2 * x, 2 * y), NULL);
    ROWS(STAGED(2 * x - 1, 2 * y), stage);
    ROWS(STAGED(2 * x, 2 * y - 1), stage);
    ROWS((STAGED(2 * x, 2 * y), rows.stage_x.buf = NULL), stage);
    ROWS((STAGED(2 * x, 2 * y), rows.staged = 3), stage);
#undef STAGED
#undef ROWS
    // A prediction wants no targets.
    struct grt_step_rows bare = o.rows;
    bare.y.range.buf = NULL;
    taken(grt_learner_predict(p, grt_step_desc(.data = &bare), o.numbers.tensor.range));
    learn_end(&l);
    d.accumulate = 2;
    l = learn_begin(&d, 20);
    struct grt_step_rows rows = o.rows;
    rows.staged = 1;
    rows.stage_x = o.stage_x.tensor.range;
    rows.stage_y = o.stage_y.tensor.range;
    TEST_REFUSED(grt_learner_step(l.learner, grt_step_desc(.data = &rows)), GRT_INVALID, stage);
    on_device_end(&o);
    learn_end(&l);
}

// Rows by their numbers: where fused kernels read rows as they lie.
static void rows_by_numbers(void **state) {
    (void)state;
    static const char *const room = "rows by their numbers want room for them and fused kernels";
    struct on_device o;
    on_device_begin(&o);
    const struct {
        const char *variant;
        uint32_t accumulate;
        bool steps, evaluates;
    } learners[] = {{"fused", 1, true, true},
                    {"layers", 1, false, false},
                    {"fused", 2, false, false},
                    {NULL, 1, true, true}};
    for (size_t i = 0; i < sizeof learners / sizeof *learners; i++) {
        struct learn_desc d = learn_small(GRT_F32);
        d.batch = 10;
        d.variant = learners[i].variant;
        d.accumulate = learners[i].accumulate;
        struct learn l = learn_begin(&d, 20);
        assert_int_equal(grt_learner_draws(l.learner, &o.rows, false), learners[i].steps);
        assert_int_equal(grt_learner_draws(l.learner, &o.rows, true), learners[i].evaluates);
        struct grt_step_rows rows = o.rows;
        rows.staged = 2;
        rows.drawn = o.numbers.tensor.range;
        if (!learners[i].steps) {
            TEST_REFUSED(grt_learner_step(l.learner, grt_step_desc(.data = &rows)), GRT_INVALID,
                         room);
        } else {
            // A number of 4 bytes for each of 10 rows of two steps.
            for (int few = 0; few < 2; few++) {
                rows.drawn.size = few ? 79 : 80;
                if (few) {
                    TEST_REFUSED(grt_learner_step(l.learner, grt_step_desc(.data = &rows)),
                                 GRT_INVALID, room);
                } else {
                    taken(grt_learner_step(l.learner, grt_step_desc(.data = &rows)));
                }
            }
            rows.drawn.size = 80;
            rows.staged = 0;
            TEST_REFUSED(grt_learner_step(l.learner, grt_step_desc(.data = &rows)), GRT_INVALID,
                         room);
        }
        // Rows that are not what the model takes as they are.
        for (int change = 0; change < 6; change++) {
            struct grt_step_rows other = o.rows;
            other.x.dtype = change == 0 ? GRT_U8 : change == 1 ? GRT_U32 : GRT_F32;
            other.y.dtype = change == 2 ? GRT_U8 : change == 3 ? GRT_F16 : GRT_F32;
            other.y.range.buf = change == 4 ? NULL : other.y.range.buf;
            other.norm.buf = change == 5 ? o.numbers.tensor.range.buf : NULL;
            assert_false(grt_learner_draws(l.learner, &other, false));
            assert_false(grt_learner_draws(l.learner, &other, true));
        }
        assert_false(grt_learner_draws(l.learner, NULL, false));
        assert_false(grt_learner_draws(NULL, &o.rows, false));
        learn_end(&l);
    }
    on_device_end(&o);
}

// ---- what wants no samples ----

static void halves_and_meetings(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    struct learn l = learn_begin(&d, 2 * LEARN_BATCH);
    static const char *const between = "several steps want an update between them";
    static const char *const alone = "the loss is over this learner's samples alone";
    struct grt_step_desc two = {.steps = 2, .x = {l.x}, .y = {l.y}};
    TEST_REFUSED(grt_learner_gradients(l.learner, &two), GRT_INVALID, between);
    TEST_REFUSED(grt_learner_update(l.learner, &two), GRT_INVALID, between);
    TEST_REFUSED(grt_learner_embed(l.learner, &two), GRT_INVALID, alone);
    TEST_REFUSED(grt_learner_meet(l.learner), GRT_INVALID, "meeting of 1 rows: the loss is over");
    taken(grt_learner_update(l.learner, grt_step_desc(.rows = LEARN_BATCH)));
    TEST_REFUSED(grt_learner_update(l.learner, grt_step_desc(.rows = LEARN_BATCH + 1)), GRT_INVALID,
                 "update of 25 rows: more rows than the learner's batch");
    learn_end(&l);
    d.inference = true;
    l = learn_begin(&d, LEARN_BATCH);
    const struct grt_step_desc one = {.x = {l.x}, .y = {l.y}};
    TEST_REFUSED(grt_learner_step(l.learner, &one), GRT_INVALID,
                 "training step: the learner was made for inference");
    TEST_REFUSED(grt_learner_gradients(l.learner, &one), GRT_INVALID,
                 "gradients: the learner was made for inference");
    TEST_REFUSED(grt_learner_embed(l.learner, &one), GRT_INVALID,
                 "embedding: the learner was made for inference");
    TEST_REFUSED(grt_learner_meet(l.learner), GRT_INVALID,
                 "meeting: the learner was made for inference");
    // It has parameters and buffers, and nothing of training.
    assert_non_null(grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, 0, NULL));
    for (uint32_t role = 0; role < GRT_TENSOR_ROLE_COUNT; role++) {
        bool there = role == GRT_TENSOR_PARAM || role == GRT_TENSOR_STATE;
        assert_int_equal(grt_learner_tensor(l.learner, (enum grt_tensor_role)role, 0, NULL) != NULL,
                         there);
    }
    learn_end(&l);
}

// Of 12 samples, 6 of this learner from 6 on: parts of 4.
static void parts_of_a_step(void **state) {
    (void)state;
    static const char *const not = "they are not among this learner's samples of the step";
    const struct grt_network_desc network = {.text = "[{linear: 4}]"};
    struct grt_learner *l = grt_learner_create(
        test.dev,
        grt_learner_desc(.make = grt_network_make, .of = &network, .input = {1, {5}},
                         .loss = GRT_LOSS_NT_XENT, .views = 2, .batch = 4,
                         .optim = grt_optim_defaults(GRT_OPTIM_SGD), .whole = {12, 12, 6, 6}));
    assert_true(l && grt_learner_alloc(l));
    const struct {
        uint32_t rows, place, whole, part;
        bool refused;
    } rows[] = {{4, 6, 0, 0, false}, {4, 8, 0, 0, false},  {4, 9, 0, 0, true},
                {4, 5, 0, 0, true},  {3, 9, 0, 0, false},  {4, 6, 10, 0, false},
                {4, 7, 10, 0, true}, {4, 6, 12, 0, false}, {4, 6, 13, 0, true},
                {4, 6, 0, 1, true},  {1, 11, 0, 0, false}, {1, 12, 0, 0, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_step_desc desc = {.rows = rows[i].rows,
                                           .place = rows[i].place,
                                           .whole = rows[i].whole,
                                           .part = rows[i].part};
        if (rows[i].refused) {
            TEST_REFUSED(grt_learner_embed(l, &desc), GRT_INVALID, not );
            TEST_REFUSED(grt_learner_gradients(l, &desc), GRT_INVALID, not );
        } else {
            taken(grt_learner_embed(l, &desc));
            taken(grt_learner_gradients(l, &desc));
        }
    }
    TEST_REFUSED(grt_learner_step(l, grt_step_desc(.rows = 4, .place = 6)), GRT_INVALID,
                 "training step of 4 rows: the loss is over the samples of several learners: it is "
                 "taken in parts");
    taken(grt_learner_meet(l));
    grt_learner_destroy(&l);
}

// ---- fused or not ----

static uint32_t launches_of_evaluation(struct grt_learner *l) {
    assert_true(grt_learner_alloc(l));
    struct grt_graph *graph = grt_learner_evaluate(l, grt_step_desc(.rows = 8));
    assert_non_null(graph);
    uint32_t launches = grt_graph_stats(graph).dispatches;
    grt_graph_destroy(&graph);
    return launches;
}

// Each thing that fused kernels cannot do, on a model that they can.
static void fused_or_layers(void **state) {
    (void)state;
    static const struct grt_mlp_desc net = {
        .depth = 2, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU};
    static const float weights[] = {1, 2, 3};
    for (int i = 0; i < 12; i++) {
        struct grt_mlp_desc model = net;
        struct grt_learner_desc d = {.make = grt_mlp_make,
                                     .of = &model,
                                     .input = {1, {5}},
                                     .loss = GRT_LOSS_CROSS_ENTROPY,
                                     .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                     .batch = 8};
        d.inference = i == 1;
        d.recompute = i == 2;
        d.label_smoothing = i == 3 ? 0.1f : 0;
        d.class_weights = i == 4 ? weights : NULL;
        d.sample_weights = i == 5;
        d.precision = i == 6 ? GRT_F16 : GRT_F32;
        if (i == 7) {
            d.loss = GRT_LOSS_MSE;
            d.loss_count = 2;
            d.losses[0] = (struct grt_loss_share){GRT_LOSS_MSE, 1, 1};
            d.losses[1] = (struct grt_loss_share){GRT_LOSS_L1, 2, 1};
        }
        d.loss = i == 8 ? GRT_LOSS_L1 : i >= 10 ? GRT_LOSS_MSE : d.loss;
        model.layer_norm = i == 9;
        model.hidden = i == 11 ? 24 : 16;
        bool fused = i == 0 || i == 10;
        struct grt_learner *l = grt_learner_create(test.dev, &d);
        assert_non_null(l);
        assert_string_equal(grt_learner_variant(l), fused ? "fused" : "layers");
        const char *kernels = grt_learner_fused_kernels(l);
        assert_true(fused ? kernels && strcmp(kernels, "plain") == 0 : !kernels);
        assert_int_equal(grt_learner_bytes(l, "acts") > 0, true);
        // Losses of an evaluation in one op: of numbers, and not of classes.
        assert_int_equal(l->judged != NULL, i == 10);
        uint32_t whole = launches_of_evaluation(l);
        grt_learner_destroy(&l);
        d.variant = "layers";
        l = grt_learner_create(test.dev, &d);
        assert_non_null(l);
        assert_string_equal(grt_learner_variant(l), "layers");
        assert_null(l->judged);
        // Also where nothing is trained: each layer by itself.
        assert_true(launches_of_evaluation(l) >= whole + (fused ? 2 : 0));
        grt_learner_destroy(&l);
        d.variant = "fused";
        if (!fused) {
            TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_UNSUPPORTED,
                         i == 6 ? "learner: no fused kernels for such a model in f16 on ref:0"
                                : "learner: no fused kernels for such a model in f32 on ref:0");
        }
    }
    assert_null(grt_learner_fused_kernels(NULL));
    assert_string_equal(grt_learner_variant(NULL), "layers");
}

static const struct CMUnitTest cases[] = {
    REF_CASE(samples_in_memory),   REF_CASE(samples_of_parts),   REF_CASE(predictions),
    REF_CASE(odd_views),           REF_CASE(rows_on_the_device), REF_CASE(rows_by_numbers),
    REF_CASE(halves_and_meetings), REF_CASE(parts_of_a_step),    REF_CASE(fused_or_layers),
};
TEST_SUITE(learnlimits, false, cases);
