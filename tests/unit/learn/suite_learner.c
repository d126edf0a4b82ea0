// SPDX-License-Identifier: Apache-2.0
// Learners as a whole: the first losses are PyTorch's; a cut batch learns as an uncut one;
// computing activations again changes no bit, nor does running again; data may lie on the device;
// what it learns, it learns by going down. Fused kernels and 16 bits: suite_precision.c.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/torch_losses.h"
#include "data/order.h"

// ---- PyTorch ----

static void check_golden(const char *name, const struct learn_desc *desc, const double *golden) {
    struct learn l = learn_begin(desc, GOLDEN_SAMPLES);
    const uint32_t batches = GOLDEN_SAMPLES / GOLDEN_BATCH;
    struct grt_graph *graph = learn_step(&l, 0, batches);
    learn_run(graph, GOLDEN_STEPS / batches);
    struct grt_learn_row rows[GOLDEN_STEPS];
    uint32_t first = 0;
    assert_int_equal(grt_learner_history(l.learner, &first, rows, GOLDEN_STEPS), GOLDEN_STEPS);
    assert_int_equal(first, 0);
    struct test_compare compare =
        test_compare(test.dev, "losses of %s, %s", name, grt_learner_variant(l.learner));
    for (uint32_t i = 0; i < GOLDEN_STEPS; i++) {
        test_compare_value(&compare, i, rows[i].loss,
                           (struct oracle_value){golden[i], 1e-5 * golden[i]});
    }
    test_compare_end(&compare);
    grt_graph_destroy(&graph);
    learn_end(&l);
}

static void torch_mlp(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.batch = GOLDEN_BATCH;
    check_golden("an mlp", &d, golden_mlp_adamw_mse);
    d.variant = NULL;  // what the device does best
    check_golden("an mlp", &d, golden_mlp_adamw_mse);
    d.optim = grt_optim_defaults(GRT_OPTIM_ADAM);
    d.optim.lr = 2e-3;
    d.optim.weight_decay = 0.01;
    d.optim.max_norm = 0.5;
    d.optim.schedule = GRT_SCHEDULE_COSINE;
    d.optim.total = 20;
    d.optim.min_lr = 1e-4;
    d.loss = GRT_LOSS_HUBER;
    d.huber_delta = 0.5f;
    d.model.act = GRT_ACT_GELU;
    d.model.residual = d.model.layer_norm = true;
    check_golden("residual blocks", &d, golden_blocks_adam_huber);
}

static void torch_points(void **state) {
    (void)state;
    struct learn_desc d = {.model = {.kind = LEARN_POINTS,
                                     .inputs = 3,
                                     .points = 6,
                                     .depth = 2,
                                     .hidden = 16,
                                     .outputs = 4,
                                     .act = GRT_ACT_RELU,
                                     .pool = GRT_POOL_MAX,
                                     .head_depth = 1},
                           .loss = GRT_LOSS_CROSS_ENTROPY,
                           .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                           .batch = GOLDEN_BATCH};
    d.optim.lr = 0.05;
    d.optim.momentum = 0.9;
    d.optim.nesterov = true;
    d.optim.schedule = GRT_SCHEDULE_STEP;
    d.optim.period = 7;
    d.optim.gamma = 0.5;
    check_golden("points", &d, golden_points_sgd_cross_entropy);
    d.model.outputs = 3;
    d.model.act = GRT_ACT_TANH;
    d.model.layer_norm = true;
    d.model.pool = GRT_POOL_MEAN;
    d.model.head_depth = 0;
    d.loss = GRT_LOSS_BCE;
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    d.optim.lr = 0.1;
    d.optim.momentum = 0.5;
    d.optim.dampening = 0.25;
    d.optim.weight_decay = 1e-3;
    check_golden("pooled points", &d, golden_points_sgd_bce);
}

// ---- the same in other ways ----

// Parameters after a few steps, allocated.
static float *trained(const struct learn_desc *desc, uint32_t steps, size_t *count) {
    struct learn l = learn_begin(desc, desc->batch);
    learn_train(&l, steps);
    float *p = learn_parameters(&l, count);
    learn_end(&l);
    return p;
}

static void accumulation(void **state) {
    (void)state;
    // Plain descent: a parameter differs as its gradient does, by the order of sums over the rows.
    struct learn_desc d = learn_small(GRT_F32);
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    d.optim.lr = 0.1;
    size_t count;
    float *whole = trained(&d, 5, &count);
    static const uint32_t cuts[] = {3, 5};  // 5: four of 5 rows and one of 4
    for (int i = 0; i < 2; i++) {
        d.accumulate = cuts[i];
        float *cut = trained(&d, 5, &count);
        struct test_compare compare = test_compare(test.dev, "%u micro-batches", cuts[i]);
        for (size_t k = 0; k < count; k++) {
            test_compare_value(
                &compare, k, cut[k],
                (struct oracle_value){(double)whole[k],
                                      5 * LEARN_BATCH * ORACLE_U * (0.1 + fabs((double)whole[k]))});
        }
        test_compare_end(&compare);
        free(cut);
    }
    free(whole);
}

static void recompute(void **state) {
    (void)state;
    for (int blocks = 0; blocks < 2; blocks++) {
        struct learn_desc d = learn_small(blocks ? GRT_F32 : GRT_F16);
        d.model.depth = 7;
        d.model.residual = d.model.layer_norm = blocks;
        d.model.act = blocks ? GRT_ACT_GELU : GRT_ACT_RELU;
        size_t count;
        float *kept = trained(&d, 3, &count);
        struct grt_learner *l = learn_create(test.dev, &d);
        uint64_t bytes = grt_learner_bytes(l, "acts");
        grt_learner_destroy(&l);
        d.recompute = true;
        l = learn_create(test.dev, &d);
        assert_in_range(grt_learner_bytes(l, "acts"), 1, bytes - 1);
        grt_learner_destroy(&l);
        float *again = trained(&d, 3, &count);
        test_same(test.dev, "computed again", again, kept, 4, count);
        free(kept);
        free(again);
    }
}

static void same_bits_twice(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F16);
    d.batch = 300;
    size_t count;
    float *once = trained(&d, 5, &count);
    float *twice = trained(&d, 5, &count);
    test_same(test.dev, "a run and the same run", twice, once, 4, count);
    free(once);
    free(twice);
}

// The parameters drawn by a seed: other seeds draw others, the same seed the same, also on the C
// reading, in the range PyTorch draws from.
static void drawn_by_seed(void **state) {
    (void)state;
    const struct learn_desc d = learn_small(GRT_F32);
    struct learn l = learn_begin(&d, LEARN_BATCH);
    float *p[4];
    size_t count;
    static const uint64_t seeds[4] = {3, 4, 3, 3 + ((uint64_t)1 << 32)};
    for (int i = 0; i < 4; i++) {
        learn_train(&l, 2);
        assert_true(grt_learner_reset(l.learner, seeds[i]));
        p[i] = learn_parameters(&l, &count);
        assert_int_equal(learn_state(&l).steps, 0);
    }
    test_same(test.dev, "parameters drawn again", p[2], p[0], 4, count);
    assert_true(memcmp(p[1], p[0], count * 4) != 0 && memcmp(p[3], p[0], count * 4) != 0);
    struct grt_learner *ref = learn_create(test.ref, &d);
    assert_true(ref && grt_learner_alloc(ref));
    struct learn on_ref = {.learner = ref};
    float *same = learn_parameters(&on_ref, &count);
    test_same(test.dev, "parameters drawn on the C reading", p[0], same, 4, count);
    grt_learner_destroy(&ref);
    double sum = 0;
    float top = 0;
    for (size_t i = 0; i < 16 * 8; i++) {  // layers.0.weight
        sum += (double)p[0][i];
        top = fmaxf(top, fabsf(p[0][i]));
    }
    assert_true(top <= 1 / sqrtf(8.0f) && top > 0.3f && fabs(sum) < 0.2 * 128);
    for (int i = 0; i < 4; i++) {
        free(p[i]);
    }
    free(same);
    learn_end(&l);
}

// Two epochs of samples in order and copied by the graph give the same as those from the device,
// where they lie in another order: gathered for each micro-batch (staged 0), or for several steps
// at once, or read by their numbers, which want fused kernels. `rest`: samples of one more step.
static void gathers(uint32_t accumulate, uint32_t staged, uint32_t rest, bool drawn) {
    struct learn_desc d = learn_small(GRT_F32);
    d.batch = 10;
    d.accumulate = accumulate;
    d.variant = drawn ? "fused" : d.variant;
    enum { SAMPLES = 40 };
    const uint32_t steps = rest > 0 ? 3 : 4, samples = 10 * steps + rest;
    struct learn l = learn_begin(&d, SAMPLES);
    struct grt_graph *graph = learn_step(&l, 0, steps), *last = NULL;
    if (rest > 0) {
        uint64_t x_bytes = grt_learner_x_bytes(l.learner), y_bytes = grt_learner_y_bytes(l.learner);
        last = grt_learner_step(
            l.learner, grt_step_desc(.rows = rest, .x = {l.x, 10 * steps * x_bytes, rest * x_bytes},
                                     .y = {l.y, 10 * steps * y_bytes, rest * y_bytes}));
        assert_non_null(last);
    }
    for (int epoch = 0; epoch < 2; epoch++) {
        learn_run(graph, 1);
        if (last) {
            learn_run(last, 1);
        }
    }
    grt_graph_destroy(&graph);
    grt_graph_destroy(&last);
    size_t count;
    float *want = learn_parameters(&l, &count);
    struct grt_order order = grt_order(samples, 1, 0, 3);
    struct grt_draw draw = {.part = GRT_PART_TRAIN, .shuffle = true, .seed = 5, .window = 1};
    uint64_t places[SAMPLES];
    uint32_t words[2 * 64];
    uint64_t record = grt_order_record(&order, &draw);
    assert_true(2 * record <= 2 * 64);
    grt_order_draw(&order, &draw, 9, 0, samples, places);
    grt_order_words(&order, &draw, 9, words);
    grt_order_words(&order, &draw, 9, words + record);
    struct test_tensor x = test_tensor(test.dev, GRT_F32, samples, 8);
    struct test_tensor y = test_tensor(test.dev, GRT_F32, samples, 2);
    struct test_tensor records = test_tensor(test.dev, GRT_U32, 2 * record, 0);
    struct test_tensor stage_x = test_tensor(test.dev, GRT_F32, 4096, 0);
    struct test_tensor stage_y = test_tensor(test.dev, GRT_F32, 4096, 0);
    float xs[SAMPLES * 8], ys[SAMPLES * 2];
    for (uint32_t i = 0; i < samples; i++) {
        memcpy(xs + places[i] * 8, l.data.x + i * 8, 8 * sizeof *xs);
        memcpy(ys + places[i] * 2, l.data.y + i * 2, 2 * sizeof *ys);
    }
    test_tensor_write(&x, xs);
    test_tensor_write(&y, ys);
    test_tensor_write(&records, words);
    assert_true(grt_learner_reset(l.learner, 0));
    learn_set_parameters(l.learner);
    struct grt_step_rows rows = {.x = x.tensor,
                                 .y = y.tensor,
                                 .order = records.tensor,
                                 .record = (uint32_t)record,
                                 .epoch = samples,
                                 .staged = staged,
                                 .stage_x = stage_x.tensor.range,
                                 .stage_y = stage_y.tensor.range};
    if (drawn) {
        assert_true(grt_learner_draws(l.learner, &rows, false));
        rows.drawn = stage_x.tensor.range;
        rows.stage_x = rows.stage_y = (struct grt_range){0};
    }
    graph = grt_learner_step(l.learner, grt_step_desc(.steps = steps, .rest = rest, .data = &rows));
    assert_non_null(graph);
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        learn_run(graph, 1);
        struct grt_learn_state s = learn_state(&l);
        assert_int_equal(s.cursor, 0);
        assert_int_equal(s.epoch, epoch + 1);
    }
    float *got = learn_parameters(&l, &count);
    test_same(test.dev, "data on the device", got, want, 4, count);
    free(got);
    free(want);
    grt_graph_destroy(&graph);
    test_tensor_end(&x);
    test_tensor_end(&y);
    test_tensor_end(&records);
    test_tensor_end(&stage_x);
    test_tensor_end(&stage_y);
    learn_end(&l);
}

static void data_on_the_device(void **state) {
    (void)state;
    gathers(2, 0, 0, false);
    gathers(1, 0, 0, false);
    gathers(1, 3, 0, false);  // three steps at once, then the fourth
    gathers(1, 4, 0, false);
    gathers(1, 0, 6, false);
    gathers(1, 2, 6, false);  // two at once, then the third and the rest
    gathers(1, 3, 6, false);
    gathers(1, 4, 6, false);
    if (grt_dev_info(test.dev)->caps.software) {  // whose fused kernels are for f32
        gathers(1, 3, 0, true);
        gathers(1, 4, 0, true);
        gathers(1, 2, 6, true);
    }
}

// ---- learning ----

// Whether a model learns the sum of squares of its inputs to a tenth of the loss it begins with.
static bool learns(uint64_t seed, float direction) {
    struct learn_desc d = learn_small(GRT_F32);
    d.model.outputs = 1;
    d.batch = 128;
    d.seed = seed;
    d.optim.lr = 0.01;
    struct learn l = learn_begin(&d, d.batch);
    assert_true(grt_learner_reset(l.learner, seed));
    float *y = grt_buf_host(l.y);
    for (size_t i = 0; i < l.data.samples; i++) {
        y[i] = 0;
        for (size_t k = 0; k < 8; k++) {
            y[i] += l.data.x[i * 8 + k] * l.data.x[i * 8 + k];
        }
    }
    struct grt_learn_state s = learn_state(&l);
    s.lr_factor = direction;
    assert_true(grt_learner_set_state(l.learner, &s));
    learn_train(&l, 1);
    float begin = learn_state(&l).loss;
    learn_train(&l, 150);
    float end = learn_state(&l).loss;
    learn_end(&l);
    return end < 0.1f * begin;
}

static void learns_downhill(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (test.small ? 1 : 3); seed++) {
        assert_true(learns(seed, 1.0f));
    }
    assert_false(learns(0, -1.0f));  // an optimizer of the wrong sign
}

// ---- looking at it ----

static void evaluate_and_predict(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.model.outputs = 8;
    d.loss = GRT_LOSS_CROSS_ENTROPY;
    d.accumulate = 3;
    enum { ROWS = 19, OUT = 8 };
    struct learn l = learn_begin(&d, ROWS);
    const struct grt_step_desc step = {.rows = ROWS, .x = {l.x}, .y = {l.y}};
    struct grt_buf *out = test_buf(test.dev, ROWS * OUT * 4, GRT_BUF_READBACK);
    struct grt_graph *predict = grt_learner_predict(l.learner, &step, (struct grt_range){out});
    struct grt_graph *evaluate = grt_learner_evaluate(l.learner, &step);
    assert_true(predict && evaluate);
    learn_run(predict, 1);
    learn_run(evaluate, 2);
    const float *y = grt_buf_host(out);
    double loss = 0;
    uint32_t hits = 0, near = 0;
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0;
        size_t best = 0, above = 0;
        for (size_t c = 0; c < OUT; c++) {
            sum += exp((double)y[r * OUT + c]);
            best = y[r * OUT + c] > y[r * OUT + best] ? c : best;
            above += y[r * OUT + c] > y[r * OUT + l.data.classes[r]];
        }
        near += above < 5;
        loss += log(sum) - (double)y[r * OUT + l.data.classes[r]];
        hits += best == l.data.classes[r];
    }
    struct grt_learn_state s = learn_state(&l);
    assert_true(s.eval_samples == 2.0f * ROWS);
    assert_true(s.eval_hits == 2.0f * (float)hits);
    assert_true(s.eval_near == 2.0f * (float)near && near > hits && near < ROWS);
    assert_true(fabs((double)s.eval_loss - 2 * loss) < 1e-4);
    assert_int_equal(s.steps, 0);
    // A learner without gradients says the same.
    d.inference = true;
    struct grt_learner *again = learn_create(test.dev, &d);
    assert_true(again && grt_learner_alloc(again));
    assert_in_range(grt_learner_bytes(again, NULL), 1, grt_learner_bytes(l.learner, NULL) - 1);
    learn_set_parameters(again);
    float first[ROWS * OUT];
    memcpy(first, y, sizeof first);
    memset(grt_buf_host(out), 0xff, sizeof first);
    struct grt_graph *other = grt_learner_predict(again, &step, (struct grt_range){out});
    assert_non_null(other);
    learn_run(other, 1);
    test_same(test.dev, "inference", y, first, 4, (size_t)ROWS * OUT);
    TEST_REFUSED(grt_learner_step(again, &step), GRT_INVALID, "inference");
    grt_graph_destroy(&other);
    grt_graph_destroy(&predict);
    grt_graph_destroy(&evaluate);
    grt_learner_destroy(&again);
    grt_buf_destroy(&out);
    learn_end(&l);
}

// Where all logits are equal the first class is the answer, and where none is a number no class is.
static void ties_are_no_hits(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.model.outputs = 4;
    d.loss = GRT_LOSS_CROSS_ENTROPY;
    enum { ROWS = 19 };
    struct learn l = learn_begin(&d, ROWS);
    const struct grt_step_desc step = {.rows = ROWS, .x = {l.x}, .y = {l.y}};
    struct grt_graph *evaluate = grt_learner_evaluate(l.learner, &step);
    assert_non_null(evaluate);
    uint32_t firsts = 0;
    for (size_t r = 0; r < ROWS; r++) {
        firsts += l.data.classes[r] == 0;
    }
    assert_in_range(firsts, 1, ROWS - 1);
    for (int nan = 0; nan < 2; nan++) {
        const struct grt_tensor *t;
        for (uint32_t i = 0; (t = grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, i, NULL)); i++) {
            float *numbers = test_alloc(grt_tensor_bytes(t));
            for (uint64_t k = 0; k < grt_tensor_count(t); k++) {
                numbers[k] = nan ? NAN : 0.0f;
            }
            assert_true(grt_buf_write(t->range.buf, t->range.offset, numbers, grt_tensor_bytes(t)));
            free(numbers);
        }
        assert_true(grt_learner_sync(l.learner));
        struct grt_learn_state before = learn_state(&l);
        learn_run(evaluate, 1);
        float hits = learn_state(&l).eval_hits - before.eval_hits;
        assert_true(hits == (nan ? 0.0f : (float)firsts));
    }
    grt_graph_destroy(&evaluate);
    learn_end(&l);
}

static void names_and_phases(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    struct learn l = learn_begin(&d, LEARN_BATCH);
    static const char *const names[] = {"layers.0.weight", "layers.0.bias", "layers.1.weight"};
    const char *name;
    for (uint32_t i = 0; i < 3; i++) {
        assert_non_null(grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, i, &name));
        assert_string_equal(name, names[i]);
    }
    const struct grt_tensor *t = grt_learner_tensor(l.learner, GRT_TENSOR_OPTIM, 8, &name);
    assert_non_null(t);
    assert_string_equal(name, "exp_avg_sq.layers.0.weight");
    assert_int_equal(grt_tensor_count(t), 128);
    assert_null(grt_learner_tensor(l.learner, GRT_TENSOR_OPTIM, 16, NULL));
    // Each byte is of one of these groups.
    static const char *const groups[] = {"params", "grads", "optim", "acts",
                                         "turns",  "state", "io",    "scratch"};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        bytes += grt_learner_bytes(l.learner, groups[i]);
    }
    assert_int_equal(bytes, grt_learner_bytes(l.learner, NULL));
    assert_int_equal(grt_learner_parameters(l.learner), 8 * 16 + 16 + 2 * (256 + 16) + 32 + 2);
    struct grt_graph *graph =
        grt_learner_step(l.learner, grt_step_desc(.x = {l.x}, .y = {l.y}, .phases = true));
    assert_non_null(graph);
    learn_run(graph, 3);
    struct grt_phase_time times[8];
    uint32_t count = grt_graph_times(graph, times, 8);
    if (grt_dev_info(test.dev)->caps.timestamps) {
        static const char *const phases[] = {"input", "forward", "backward", "optimizer"};
        assert_int_equal(count, 4);
        for (int i = 0; i < 4; i++) {
            assert_string_equal(times[i].name, phases[i]);
            assert_true(times[i].seconds >= 0);
        }
    }
    grt_graph_destroy(&graph);
    learn_end(&l);
}

static void refusals(void **state) {
    (void)state;
    struct learn_desc rows[6];
    for (int i = 0; i < 6; i++) {
        rows[i] = learn_small(GRT_F32);
    }
    rows[0].batch = 0;
    rows[1].huber_delta = -1;
    rows[2].optim.lr = -1;
    rows[3].precision = GRT_I8;
    rows[4].accumulate = LEARN_BATCH + 1;
    rows[5].variant = "best";
    for (int i = 0; i < 6; i++) {
        TEST_REFUSED(learn_create(test.dev, &rows[i]), GRT_INVALID, "learner: ");
    }
    TEST_REFUSED(learn_create(NULL, &rows[0]), GRT_INVALID, "no device");
    // More than there is: known before anything is taken, and said with numbers.
    struct learn_desc d = learn_small(GRT_F32);
    d.batch = 1u << 31;
    d.model.hidden = 1u << 16;
    struct grt_learner *huge = learn_create(test.dev, &d);
    assert_non_null(huge);
    assert_true(grt_learner_bytes(huge, NULL) > (uint64_t)1 << 45);
    uint64_t taken = grt_dev_mem_use(test.dev, NULL).current;
    test_log.quiet = true;
    TEST_REFUSED(grt_learner_alloc(huge), GRT_NO_MEMORY, "");
    test_log.quiet = false;
    assert_int_equal(grt_dev_mem_use(test.dev, NULL).current, taken);
    TEST_REFUSED(grt_learner_step(huge, grt_step_desc(.rows = 1)), GRT_INVALID, "not allocated");
    grt_learner_destroy(&huge);
    d = learn_small(GRT_F32);
    struct learn l = learn_begin(&d, LEARN_BATCH);
    TEST_REFUSED(grt_learner_step(l.learner, grt_step_desc(.rows = LEARN_BATCH + 1)), GRT_INVALID,
                 "more rows");
    TEST_REFUSED(grt_learner_step(l.learner, grt_step_desc(.steps = 2, .x = {l.x}, .y = {l.y})),
                 GRT_INVALID, "smaller than");
    // From one sample on there is one too few, of either.
    for (int y = 0; y < 2; y++) {
        struct grt_step_desc step = {.x = {l.x}, .y = {l.y}};
        (y ? &step.y : &step.x)->offset =
            y ? grt_learner_y_bytes(l.learner) : grt_learner_x_bytes(l.learner);
        TEST_REFUSED(grt_learner_step(l.learner, &step), GRT_INVALID,
                     "x or y is smaller than the samples of all steps");
        step.rows = LEARN_BATCH - 1;
        struct grt_graph *graph = grt_learner_step(l.learner, &step);
        assert_non_null(graph);
        grt_graph_destroy(&graph);
    }
    learn_end(&l);
    test_usable(test.dev);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(torch_mlp),          TEST_CASE(torch_points),     TEST_CASE(accumulation),
    TEST_CASE(recompute),          TEST_CASE(same_bits_twice),  TEST_CASE(drawn_by_seed),
    TEST_CASE(data_on_the_device), TEST_CASE(learns_downhill),  TEST_CASE(evaluate_and_predict),
    TEST_CASE(ties_are_no_hits),   TEST_CASE(names_and_phases), TEST_CASE(refusals),
};
TEST_SUITE(learner, true, cases);
