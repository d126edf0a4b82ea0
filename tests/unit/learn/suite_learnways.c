// SPDX-License-Identifier: Apache-2.0
// What learners do at the edges of what suites of whole runs see: calls before memory is there,
// which number is named, samples wherever they lie, weights that come to nothing, ties of classes,
// the second of everything.
#include "kits/learn_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/network.h"
#include "learn/learner_parts.h"

// ---- calls ----

static void calls_without_memory(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    struct grt_learner *l = learn_create(test.dev, &d);
    assert_non_null(l);
    for (int none = 0; none < 2; none++) {
        struct grt_learner *p = none ? NULL : l;
        struct grt_learn_state s = {0};
        struct grt_learn_row row;
        uint32_t first = 3;
        char name[16] = "as it is";
        TEST_REFUSED(grt_learner_state(p, &s), GRT_INVALID,
                     "grt_learner_state: the learner is not allocated");
        TEST_REFUSED(grt_learner_set_state(p, &s), GRT_INVALID,
                     "grt_learner_set_state: the learner is not allocated");
        TEST_REFUSED(grt_learner_sync(p), GRT_INVALID,
                     "grt_learner_sync: the learner is not allocated");
        TEST_REFUSED(grt_learner_average(p, true), GRT_INVALID,
                     "grt_learner_average: the learner is not allocated");
        TEST_REFUSED(grt_learner_history(p, &first, &row, 1) > 0, GRT_INVALID,
                     "grt_learner_state: the learner is not allocated");
        TEST_REFUSED(grt_learner_find_nonfinite(p, NULL, NULL, name, sizeof name), GRT_INVALID,
                     "grt_learner_find_nonfinite: the learner is not allocated");
        assert_true(first == 3 && name[0] == 'a');
        for (uint32_t role = 0; role <= GRT_TENSOR_ROLE_COUNT; role++) {
            assert_null(grt_learner_tensor(p, (enum grt_tensor_role)role, 0, NULL));
        }
        assert_int_equal(grt_learner_parameters(p), none ? 0 : 8 * 16 + 16 + 2 * 272 + 34);
        assert_int_equal(grt_learner_outputs(p), none ? 0 : 2);
        assert_int_equal(grt_learner_x_bytes(p), none ? 0 : 32);
        assert_int_equal(grt_learner_y_bytes(p), none ? 0 : 8);
        assert_int_equal(grt_learner_desc_of(p) != NULL, !none);
        assert_int_equal(grt_learner_input(p) != NULL, !none);
        assert_int_equal(grt_learner_target(p) != NULL, !none);
        assert_int_equal(grt_learner_output(p) != NULL, !none);
        assert_int_equal(grt_learner_layer(p, 0) != NULL, !none);
        assert_null(grt_learner_layer(p, 99));
        assert_false(grt_learner_syncs(p));
        assert_int_equal(grt_learner_bytes(p, NULL) > 0, !none);
        assert_int_equal(grt_learner_bytes(p, "no such group"), 0);
    }
    assert_string_equal(grt_learner_input(l)->label, "input");
    assert_string_equal(grt_learner_target(l)->label, "target");
    assert_string_equal(grt_learner_output(l)->label, "output");
    grt_learner_destroy(&l);
    assert_null(l);
    grt_learner_destroy(&l);
    grt_learner_destroy(NULL);
}

// Names and places of all that a checkpoint holds.
static void tensors_by_name(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.optim.ema = 0.5;
    struct learn l = learn_begin(&d, LEARN_BATCH);
    struct grt_learner *p = l.learner;
    static const struct {
        enum grt_tensor_role role;
        uint32_t i;
        const char *name;  // NULL: there is none
    } rows[] = {
        {GRT_TENSOR_PARAM, 0, "layers.0.weight"},
        {GRT_TENSOR_PARAM, 7, "layers.3.bias"},
        {GRT_TENSOR_PARAM, 8, NULL},
        {GRT_TENSOR_GRAD, 7, "layers.3.bias"},
        {GRT_TENSOR_GRAD, 8, NULL},
        {GRT_TENSOR_AVERAGE, 0, "layers.0.weight"},
        {GRT_TENSOR_AVERAGE, 7, "layers.3.bias"},
        {GRT_TENSOR_AVERAGE, 8, NULL},
        {GRT_TENSOR_OPTIM, 0, "exp_avg.layers.0.weight"},
        {GRT_TENSOR_OPTIM, 7, "exp_avg.layers.3.bias"},
        {GRT_TENSOR_OPTIM, 8, "exp_avg_sq.layers.0.weight"},
        {GRT_TENSOR_OPTIM, 15, "exp_avg_sq.layers.3.bias"},
        {GRT_TENSOR_OPTIM, 16, NULL},
        {GRT_TENSOR_STATE, 0, "state"},
        {GRT_TENSOR_STATE, 1, NULL},
        {GRT_TENSOR_BUFFER, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = "as it was";
        const struct grt_tensor *t = grt_learner_tensor(p, rows[i].role, rows[i].i, &name);
        assert_int_equal(t != NULL, rows[i].name != NULL);
        assert_string_equal(name, rows[i].name ? rows[i].name : "as it was");
    }
    // Views lie in their own group, each as far from its begin as its parameter from the masters'.
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t at = p->params.list[i]->first * 4;
        const struct {
            const struct grt_tensor *view, *group;
            uint64_t more;
        } views[] = {
            {grt_learner_tensor(p, GRT_TENSOR_PARAM, i, NULL), p->params.master, 0},
            {grt_learner_tensor(p, GRT_TENSOR_GRAD, i, NULL), p->params.grad, 0},
            {grt_learner_tensor(p, GRT_TENSOR_AVERAGE, i, NULL), p->average, 0},
            {grt_learner_tensor(p, GRT_TENSOR_OPTIM, i, NULL), p->kept, 0},
            {grt_learner_tensor(p, GRT_TENSOR_OPTIM, 8 + i, NULL), p->kept, p->params.elements * 4},
        };
        for (int k = 0; k < 5; k++) {
            assert_ptr_equal(views[k].view->range.buf, views[k].group->range.buf);
            assert_int_equal(views[k].view->range.offset,
                             views[k].group->range.offset + at + views[k].more);
            assert_int_equal(grt_tensor_count(views[k].view), p->params.list[i]->count);
        }
    }
    struct grt_learn_row row;
    uint32_t first = 0;
    assert_int_equal(grt_learner_history(p, NULL, &row, 1), 0);
    assert_int_equal(grt_learner_history(p, &first, NULL, 1), 0);
    learn_end(&l);
    // Momentum is one tensor, and SGD without it none; without an average there is nothing to turn.
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    for (int momentum = 0; momentum < 2; momentum++) {
        const char *name = NULL;
        d.optim.momentum = momentum ? 0.5 : 0;
        l = learn_begin(&d, LEARN_BATCH);
        const struct grt_tensor *t = grt_learner_tensor(l.learner, GRT_TENSOR_OPTIM, 7, &name);
        assert_int_equal(t != NULL, momentum);
        assert_true(!t || strcmp(name, "momentum_buffer.layers.3.bias") == 0);
        assert_null(grt_learner_tensor(l.learner, GRT_TENSOR_OPTIM, 8, NULL));
        assert_null(grt_learner_tensor(l.learner, GRT_TENSOR_AVERAGE, 0, NULL));
        size_t count;
        float *was = learn_parameters(&l, &count);
        assert_true(grt_learner_average(l.learner, true) && grt_dev_wait(test.dev));
        float *is = learn_parameters(&l, &count);
        assert_memory_equal(was, is, count * 4);
        free(was);
        free(is);
        learn_end(&l);
    }
}

// ---- what is not finite ----

static void put(const struct grt_tensor *t, uint64_t i, float number) {
    assert_true(grt_buf_write(t->range.buf, t->range.offset + 4 * i, &number, 4));
}

// The last number of each tensor, in the order in which they are named; any kind that is none.
static void which_is_named(void **state) {
    (void)state;
    static const float kinds[] = {NAN, INFINITY, -INFINITY};
    const struct grt_network_desc network = {.text = "[{linear: 4}, {norm: batch}, {linear: 2}]"};
    struct grt_learner *l = grt_learner_create(
        test.dev, grt_learner_desc(.make = grt_network_make, .of = &network, .input = {1, {3}},
                                   .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 5));
    assert_true(l && grt_learner_alloc(l));
    char name[64] = "";
    assert_false(grt_learner_find_nonfinite(l, NULL, NULL, name, sizeof name));
    assert_string_equal(name, "");
    const struct {
        const struct grt_tensor *of;
        const char *name;
    } rows[] = {
        {grt_learner_tensor(l, GRT_TENSOR_GRAD, 5, NULL), "gradient 2.bias"},
        {grt_learner_tensor(l, GRT_TENSOR_GRAD, 0, NULL), "gradient 0.weight"},
        {l->target, "target"},
        {l->x, "input"},
        {grt_learner_tensor(l, GRT_TENSOR_BUFFER, 1, NULL), "buffer 1.running_var"},
        {grt_learner_tensor(l, GRT_TENSOR_BUFFER, 0, NULL), "buffer 1.running_mean"},
        {grt_learner_tensor(l, GRT_TENSOR_PARAM, 5, NULL), "parameter 2.bias"},
        {grt_learner_tensor(l, GRT_TENSOR_PARAM, 1, NULL), "parameter 0.bias"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put(rows[i].of, grt_tensor_count(rows[i].of) - 1, kinds[i % 3]);
        assert_true(grt_learner_find_nonfinite(l, NULL, NULL, name, sizeof name));
        assert_string_equal(name, rows[i].name);
    }
    // A name has as much of it as there is room.
    char few[10];
    assert_true(grt_learner_find_nonfinite(l, NULL, NULL, few, sizeof few));
    assert_string_equal(few, "parameter");
    TEST_REFUSED(grt_learner_find_nonfinite(l, NULL, NULL, NULL, 0), GRT_INVALID,
                 "grt_learner_find_nonfinite: no name, or x without y");
    TEST_REFUSED(grt_learner_find_nonfinite(l, l->x, NULL, name, sizeof name), GRT_INVALID,
                 "grt_learner_find_nonfinite: no name, or x without y");
    // The largest numbers are finite.
    assert_true(grt_learner_reset(l, 1));
    put(l->target, 0, 3.4e38f);
    put(l->x, 0, -1e-45f);
    assert_false(grt_learner_find_nonfinite(l, NULL, NULL, name, sizeof name));
    grt_learner_destroy(&l);
}

// Layers by name, and what the last one gives; in 16 bits at their own largest number.
static void layers_are_named(void **state) {
    (void)state;
    const struct grt_network_desc network = {.text = "[{linear: 3}, tanh, {linear: 2}]"};
    static const struct grt_mlp_desc mlp = {
        .depth = 1, .hidden = 3, .outputs = 2, .act = GRT_ACT_RELU};
    const struct {
        bool list;
        enum grt_dtype precision;
        uint32_t param;
        float number;
        const char *name;  // NULL: all is finite
    } rows[] = {
        {true, GRT_F32, 0, 3e38f, "activations of 0 (linear)"},
        {true, GRT_F32, 2, 3e38f, "activations of 2 (linear)"},
        {true, GRT_F32, 2, 1e38f, NULL},
        {false, GRT_F32, 0, 3e38f, "activations of layers.0"},
        {false, GRT_F32, 2, 3e38f, "output"},
        {true, GRT_F16, 0, 6e4f, "activations of 0 (linear)"},
        {true, GRT_F16, 0, 2e4f, NULL},
        {true, GRT_BF16, 0, 3e38f, "activations of 0 (linear)"},
        {true, GRT_BF16, 0, 1e38f, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_learner *l = grt_learner_create(
            test.dev, grt_learner_desc(.make = rows[i].list ? grt_network_make : grt_mlp_make,
                                       .of = rows[i].list ? (const void *)&network : &mlp,
                                       .input = {1, {2}}, .precision = rows[i].precision,
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 4));
        assert_true(l && grt_learner_alloc(l));
        for (uint32_t k = 0; k < 4; k++) {
            const struct grt_tensor *t = grt_learner_tensor(l, GRT_TENSOR_PARAM, k, NULL);
            for (uint64_t n = 0; n < grt_tensor_count(t); n++) {
                put(t, n, k == rows[i].param ? rows[i].number : k % 2 == 0 ? 1.0f : 0.0f);
            }
        }
        assert_true(grt_learner_sync(l));
        for (uint64_t n = 0; n < 8; n++) {
            put(l->x, n, 1.0f);
        }
        char name[64] = "";
        assert_int_equal(grt_learner_find_nonfinite(l, NULL, NULL, name, sizeof name),
                         rows[i].name != NULL);
        assert_string_equal(name, rows[i].name ? rows[i].name : "");
        grt_learner_destroy(&l);
    }
}

// ---- where samples lie ----

// In memory of the device at any word, in parts: the same bits as from the host's.
static void samples_on_the_device(void **state) {
    (void)state;
    enum { STEPS = 2 };
    static const uint64_t shifts[] = {0, 4, 64, 12};
    struct learn_desc d = learn_small(GRT_F32);
    d.accumulate = 3;
    struct learn l = learn_begin(&d, STEPS * LEARN_BATCH);
    struct grt_graph *graph = learn_step(&l, 0, STEPS);
    learn_run(graph, 1);
    grt_graph_destroy(&graph);
    size_t count;
    float *want = learn_parameters(&l, &count);
    uint64_t x_bytes = STEPS * LEARN_BATCH * 32, y_bytes = STEPS * LEARN_BATCH * 8;
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        struct grt_buf *x = test_buf(test.dev, x_bytes + 64, GRT_BUF_DEVICE);
        struct grt_buf *y = test_buf(test.dev, y_bytes + 64, GRT_BUF_DEVICE);
        assert_true(grt_buf_write(x, shifts[i], l.data.x, x_bytes) &&
                    grt_buf_write(y, shifts[3 - i], l.data.y, y_bytes));
        assert_true(grt_learner_reset(l.learner, 0));
        learn_set_parameters(l.learner);
        graph =
            grt_learner_step(l.learner, grt_step_desc(.steps = STEPS, .x = {x, shifts[i], x_bytes},
                                                      .y = {y, shifts[3 - i], y_bytes}));
        assert_non_null(graph);
        learn_run(graph, 1);
        float *got = learn_parameters(&l, &count);
        test_same(test.dev, "samples on the device", got, want, 4, count);
        free(got);
        grt_graph_destroy(&graph);
        grt_buf_destroy(&x);
        grt_buf_destroy(&y);
    }
    free(want);
    learn_end(&l);
}

// Predictions in parts, and of a last part that is short, each to its place.
static void predicted_in_parts(void **state) {
    (void)state;
    enum { ROWS = 19 };
    struct learn_desc d = learn_small(GRT_F32);
    d.accumulate = 3;
    struct learn l = learn_begin(&d, LEARN_BATCH);
    struct grt_buf *out = test_buf(test.dev, 2 * ROWS * 8, GRT_BUF_READBACK);
    float *y = grt_buf_host(out);
    struct grt_graph *whole = grt_learner_predict(
        l.learner, grt_step_desc(.rows = ROWS, .x = {l.x}), (struct grt_range){out, 0, ROWS * 8});
    assert_non_null(whole);
    learn_run(whole, 1);
    grt_graph_destroy(&whole);
    memset(y + ROWS * 2, 0xff, ROWS * 8);
    for (uint32_t part = 1; part <= 3; part++) {
        struct grt_graph *graph = grt_learner_predict(
            l.learner,
            grt_step_desc(.rows = ROWS, .part = part, .x = {l.x, (part - 1) * 8 * 32, 0}),
            (struct grt_range){out, ROWS * 8, 0});
        assert_non_null(graph);
        learn_run(graph, 1);
        grt_graph_destroy(&graph);
        uint32_t done = part < 3 ? part * 8 : ROWS;
        assert_memory_equal(y + ROWS * 2, y, done * 8);
        assert_true(part == 3 || isnan(y[(ROWS + done) * 2]));
    }
    grt_buf_destroy(&out);
    learn_end(&l);
}

// Two views of samples in 16 bits are the same rows twice, also of fewer samples.
static void views_of_sixteen_bits(void **state) {
    (void)state;
    const struct grt_network_desc network = {.text = "[{linear: 3}]"};
    for (int half = 0; half < 2; half++) {
        struct grt_learner *l = grt_learner_create(
            test.dev, grt_learner_desc(.make = grt_network_make, .of = &network, .input = {1, {4}},
                                       .loss = GRT_LOSS_NT_XENT, .views = 2,
                                       .precision = half ? GRT_F16 : GRT_BF16, .batch = 6,
                                       .optim = grt_optim_defaults(GRT_OPTIM_SGD)));
        assert_true(l && grt_learner_alloc(l));
        for (uint64_t i = 0; i < 24; i++) {
            put(l->x, i, learn_number(3, (uint32_t)i));
        }
        static const uint32_t rows[] = {6, 5, 1};
        for (int r = 0; r < 3; r++) {
            struct grt_graph *graph = grt_learner_step(l, grt_step_desc(.rows = rows[r]));
            assert_non_null(graph);
            learn_run(graph, 1);
            float *y = learn_read(grt_learner_output(l));
            assert_memory_equal(y, y + rows[r] * 3, rows[r] * 12);
            assert_true(y[0] != 0 && (rows[r] == 1 || y[0] != y[3]));
            free(y);
            grt_graph_destroy(&graph);
        }
        grt_learner_destroy(&l);
    }
}

// ---- weights ----

// What a learner was given is copied, and a step whose samples all weigh nothing is seen by its
// row, changes nothing but decay, and is over with the next one.
static void weights_of_nothing(void **state) {
    (void)state;
    float classes[] = {1, 2, 4};
    static const struct grt_mlp_desc net = {.depth = 1, .hidden = 4, .outputs = 3};
    struct grt_learner_desc d = {.make = grt_mlp_make,
                                 .of = &net,
                                 .input = {1, {2}},
                                 .loss = GRT_LOSS_CROSS_ENTROPY,
                                 .class_weights = classes,
                                 .sample_weights = true,
                                 .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                 .batch = 4};
    d.optim.lr = 0.5;
    struct grt_learner *l = grt_learner_create(test.dev, &d);
    assert_non_null(l);
    classes[0] = 77;
    assert_true(grt_learner_alloc(l));
    float *held = learn_read(l->class_weights);
    assert_true(held[0] == 1 && held[1] == 2 && held[2] == 4 && l->weight_sum == 7);
    assert_ptr_not_equal(grt_learner_desc_of(l)->class_weights, classes);
    free(held);
    struct grt_graph *graph = grt_learner_step(l, grt_step_desc(.rows = 4));
    assert_non_null(graph);
    for (uint64_t i = 0; i < 8; i++) {
        put(l->x, i, learn_number(3, (uint32_t)i));
    }
    for (uint32_t step = 0; step < 3; step++) {
        uint32_t words[8];
        float *was = learn_read(l->params.master);
        for (uint32_t i = 0; i < 4; i++) {
            words[2 * i] = i % 3;
            words[2 * i + 1] = test_as_u32(step == 1 ? 0.0f : 1.0f);
        }
        assert_true(grt_buf_write(l->target->range.buf, l->target->range.offset, words, 32));
        learn_run(graph, 1);
        struct grt_learn_row row;
        uint32_t first = step;
        assert_int_equal(grt_learner_history(l, &first, &row, 1), 1);
        struct grt_learn_state s;
        assert_true(grt_learner_state(l, &s));
        float *is = learn_read(l->params.master);
        bool same = memcmp(was, is, grt_tensor_bytes(l->params.master)) == 0;
        assert_int_equal(same, step == 1);
        assert_true(step == 1 ? row.grad_norm == -1 && row.loss == 0 && s.grad_norm == 0
                              : row.grad_norm > 0 && row.loss > 0);
        assert_true(s.idle == 0 && s.updates == step + 1 && s.finite == 1);
        free(was);
        free(is);
    }
    grt_graph_destroy(&graph);
    grt_learner_destroy(&l);
}

// ---- classes ----

// Right answers and those among the five likeliest, where logits are equal: the earlier class
// stands before the later one. And a class that there is none of is no number.
static void ties_of_classes(void **state) {
    (void)state;
    enum { ROWS = 8, COLS = 7 };
    static const float logits[ROWS][COLS] = {{1, 1, 1, 1, 1, 1, 1},  {1, 1, 1, 1, 1, 1, 1},
                                             {1, 1, 1, 1, 1, 1, 1},  {5, 4, 3, 2, 1, 0, -1},
                                             {5, 4, 3, 2, 1, 0, -1}, {0, 9, 0, 9, 0, 0, 0},
                                             {0, 9, 0, 9, 0, 0, 0},  {-1, -2, -3, -4, -5, -6, -6}};
    static const uint32_t answers[ROWS] = {0, 4, 5, 4, 5, 1, 3, 0};
    static const float weights[ROWS] = {1, 2, 4, 8, 16, 32, 64, 128};
    const float right = 1 + 32 + 128, near = 1 + 2 + 8 + 32 + 64 + 128;
    struct test_tensor y = test_tensor(test.dev, GRT_F32, ROWS, COLS);
    struct test_tensor target = test_tensor(test.dev, GRT_U32, ROWS, 2);
    struct test_tensor room = test_tensor(test.dev, GRT_F32, 4, GRT_LOSS_PARTS);
    struct test_tensor own = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    struct grt_learn_state s = {.loss_scale = 1};
    uint32_t words[ROWS][2];
    test_tensor_write(&y, logits);
    test_tensor_write(&own, &s);
    for (int wrong = 0; wrong < 2; wrong++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            words[i][0] = wrong && i == 2 ? COLS : answers[i];
            words[i][1] = test_as_u32(weights[i]);
        }
        test_tensor_write(&target, words);
        struct grt_range part[4];
        for (uint32_t i = 0; i < 4; i++) {
            part[i] = (struct grt_range){room.tensor.range.buf,
                                         room.tensor.range.offset + i * GRT_LOSS_PARTS * 4,
                                         GRT_LOSS_PARTS * 4};
        }
        struct grt_graph *graph = grt_graph_create(test.dev, "ties");
        grt_op_loss(graph,
                    grt_loss_desc(.loss = GRT_LOSS_CROSS_ENTROPY, .y = &y.tensor,
                                  .target = &target.tensor, .words = 2, .sampled = true,
                                  .samples = 2, .parts = part[0], .hits = part[1], .near = part[2],
                                  .mass = part[3], .state = own.tensor.range));
        assert_true(grt_graph_finish(graph));
        grt_graph_destroy(&graph);
        float numbers[4][GRT_LOSS_PARTS], sums[4] = {0};
        test_tensor_read(&room, numbers);
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < GRT_LOSS_PARTS; i++) {
                sums[k] += numbers[k][i];
            }
        }
        assert_true(sums[1] == right && sums[2] == near && sums[3] == 255.0f / 2);
        assert_int_equal(isnan(sums[0]), wrong);
    }
    test_tensor_end(&y);
    test_tensor_end(&target);
    test_tensor_end(&room);
    test_tensor_end(&own);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(calls_without_memory),  REF_CASE(tensors_by_name),       REF_CASE(which_is_named),
    REF_CASE(layers_are_named),      REF_CASE(samples_on_the_device), REF_CASE(predicted_in_parts),
    REF_CASE(views_of_sixteen_bits), REF_CASE(weights_of_nothing),    REF_CASE(ties_of_classes),
};
TEST_SUITE(learnways, false, cases);
