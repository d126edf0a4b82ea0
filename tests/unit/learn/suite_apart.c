// SPDX-License-Identifier: Apache-2.0
// A training step in two halves, the gradients and the update, and what a host does between them.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learner_parts.h"

static struct grt_graph *gradients(struct learn *l, uint32_t rows, uint32_t part, uint64_t first) {
    struct grt_graph *graph = grt_learner_gradients(
        l->learner, grt_step_desc(.rows = rows, .part = part,
                                  .x = {l->x, first * grt_learner_x_bytes(l->learner), 0},
                                  .y = {l->y, first * grt_learner_y_bytes(l->learner), 0}));
    assert_non_null(graph);
    return graph;
}

static struct grt_graph *update(struct learn *l, uint32_t rows) {
    struct grt_graph *graph = grt_learner_update(l->learner, grt_step_desc(.rows = rows));
    assert_non_null(graph);
    return graph;
}

// ---- together and apart ----

static void same(struct learn *a, struct learn *b, uint32_t steps, bool norms) {
    size_t count = 0;
    float *p = learn_parameters(a, &count), *q = learn_parameters(b, &count);
    test_same_floats(test.dev, "apart and together", p, q, (uint32_t)count);
    struct grt_learn_row one[16], other[16];
    uint32_t first = 0;
    assert_int_equal(grt_learner_history(a->learner, &first, one, 16), steps);
    assert_int_equal(grt_learner_history(b->learner, &first, other, 16), steps);
    for (uint32_t i = 0; i < steps; i++) {
        assert_true(one[i].loss == other[i].loss && one[i].lr == other[i].lr);
        assert_true(!norms || one[i].grad_norm == other[i].grad_norm);
    }
    free(p);
    free(q);
}

// In micro-batches, and with a last batch that is smaller; each micro-batch a graph of its own,
// too.
static void halves(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct learn_desc d = learn_small(i == 1 ? GRT_F16 : GRT_F32);
        d.accumulate = i == 0 ? 3 : 1;
        d.variant = i == 2 ? NULL : "layers";
        d.optim.max_norm = i == 2 ? 0 : 0.3;  // fused kernels may add the norm in another order
        struct learn a = learn_begin(&d, LEARN_BATCH), b = learn_begin(&d, LEARN_BATCH);
        const uint32_t rows[] = {0, 17, LEARN_BATCH / 3};  // the last is one micro-batch of three
        for (int r = 0; r < 3; r++) {
            struct grt_graph *whole = learn_step(&a, rows[r], 1);
            struct grt_graph *after = update(&b, rows[r]);
            struct grt_graph *before[3] = {gradients(&b, rows[r], i == 0 ? 1 : 0, 0)};
            for (uint32_t m = 1; i == 0 && m < 3; m++) {
                uint32_t first = m * LEARN_BATCH / 3;
                before[m] =
                    rows[r] == 0 || first < rows[r] ? gradients(&b, rows[r], m + 1, first) : NULL;
            }
            for (int step = 0; step < 3; step++) {
                learn_run(whole, 1);
                for (int m = 0; m < 3; m++) {
                    learn_run(before[m] ? before[m] : before[0], before[m] ? 1 : 0);
                }
                learn_run(after, 1);
            }
            for (int m = 0; m < 3; m++) {
                grt_graph_destroy(&before[m]);
            }
            grt_graph_destroy(&whole);
            grt_graph_destroy(&after);
        }
        same(&a, &b, 9, i != 2);
        learn_end(&a);
        learn_end(&b);
    }
}

// Weights make gradients a mean by what samples weigh, which is taken once: by the half that makes
// them, or by the update where there are more samples than this learner's.
static void halves_by_weights(void **state) {
    (void)state;
    static const float weights[] = {0.25f, 3.0f};
    for (int later = 0; later < 2; later++) {
        struct learn_desc d = learn_small(GRT_F32);
        d.loss = GRT_LOSS_CROSS_ENTROPY;
        d.class_weights = weights;
        d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
        d.optim.lr = 0.5;
        d.accumulate = 3;
        struct learn a = learn_begin(&d, LEARN_BATCH), b = learn_begin(&d, LEARN_BATCH);
        const struct grt_step_desc desc = {
            .x = {b.x}, .y = {b.y}, .samples = later ? LEARN_BATCH : 0};
        struct grt_graph *whole = learn_step(&a, 0, 1);
        struct grt_graph *before = grt_learner_gradients(b.learner, &desc);
        struct grt_graph *after =
            grt_learner_update(b.learner, grt_step_desc(.samples = desc.samples));
        assert_true(before && after);
        for (int step = 0; step < 3; step++) {
            learn_run(whole, 1);
            learn_run(before, 1);
            learn_run(after, 1);
        }
        same(&a, &b, 3, true);
        grt_graph_destroy(&whole);
        grt_graph_destroy(&before);
        grt_graph_destroy(&after);
        learn_end(&a);
        learn_end(&b);
    }
}

// ---- several learners ----

// The mean of the gradients of both, in both.
static void share(struct grt_learner *a, struct grt_learner *b) {
    const struct grt_tensor *t, *u;
    for (uint32_t k = 0; (t = grt_learner_tensor(a, GRT_TENSOR_GRAD, k, NULL)); k++) {
        u = grt_learner_tensor(b, GRT_TENSOR_GRAD, k, NULL);
        float *p = learn_read(t), *q = learn_read(u);
        for (uint64_t i = 0; i < grt_tensor_count(t); i++) {
            p[i] = 0.5f * (p[i] + q[i]);
        }
        assert_true(grt_buf_write(t->range.buf, t->range.offset, p, grt_tensor_bytes(t)));
        assert_true(grt_buf_write(u->range.buf, u->range.offset, p, grt_tensor_bytes(u)));
        free(p);
        free(q);
    }
}

// Two learners with half of the batch each are one with all of it.
static void two_learners(void **state) {
    (void)state;
    enum { STEPS = 8 };
    struct learn_desc d = learn_small(GRT_F32);
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    d.optim.lr = 0.1;
    d.optim.momentum = 0.5;
    d.optim.max_norm = 0.4;
    struct learn whole = learn_begin(&d, LEARN_BATCH);
    d.batch = LEARN_BATCH / 2;
    struct learn half[2] = {learn_begin(&d, LEARN_BATCH), learn_begin(&d, LEARN_BATCH)};
    struct grt_graph *before[2], *after[2];
    for (uint32_t i = 0; i < 2; i++) {
        before[i] = gradients(&half[i], 0, 0, i * d.batch);
        after[i] = update(&half[i], 0);
    }
    learn_train(&whole, STEPS);
    for (uint32_t step = 0; step < STEPS; step++) {
        learn_run(before[0], 1);
        learn_run(before[1], 1);
        share(half[0].learner, half[1].learner);
        learn_run(after[0], 1);
        learn_run(after[1], 1);
    }
    size_t count = 0;
    float *want = learn_parameters(&whole, &count), *got[2];
    got[0] = learn_parameters(&half[0], &count);
    got[1] = learn_parameters(&half[1], &count);
    test_same_floats(test.dev, "both learners", got[0], got[1], (uint32_t)count);
    struct test_compare compare = test_compare(test.dev, "two learners and one");
    for (size_t i = 0; i < count; i++) {
        double bound = STEPS * LEARN_BATCH * ORACLE_U * (0.1 + fabs((double)want[i]));
        test_compare_value(&compare, i, got[0][i], (struct oracle_value){(double)want[i], bound});
    }
    // The loss of the whole batch is the mean of the halves'; the norm is that of the shared
    // gradients.
    struct grt_learn_state all = learn_state(&whole),
                           s[2] = {learn_state(&half[0]), learn_state(&half[1])};
    double loss = 0.5 * ((double)s[0].loss + (double)s[1].loss);
    test_compare_value(&compare, 0, all.loss, (struct oracle_value){loss, 1e-5 * loss});
    test_compare_value(&compare, 1, s[0].grad_norm,
                       (struct oracle_value){(double)all.grad_norm, 1e-4 * (double)all.grad_norm});
    assert_true(fabsf(s[0].loss - s[1].loss) > 1e-3f);
    test_compare_end(&compare);
    for (uint32_t i = 0; i < 2; i++) {
        free(got[i]);
        grt_graph_destroy(&before[i]);
        grt_graph_destroy(&after[i]);
        learn_end(&half[i]);
    }
    free(want);
    learn_end(&whole);
}

// Gradients that the host clears teach nothing.
static void cleared(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    d.optim = grt_optim_defaults(GRT_OPTIM_SGD);
    d.variant = NULL;
    struct learn l = learn_begin(&d, LEARN_BATCH);
    struct grt_graph *before = gradients(&l, 0, 0, 0), *after = update(&l, 0);
    const struct grt_tensor *w = grt_learner_tensor(l.learner, GRT_TENSOR_PARAM, 2, NULL);
    const struct grt_tensor *g = grt_learner_tensor(l.learner, GRT_TENSOR_GRAD, 2, NULL);
    float *was = learn_read(w);
    float *zeros = calloc((size_t)grt_tensor_count(g), sizeof *zeros);
    size_t count = 0;
    float *start = learn_parameters(&l, &count);
    learn_run(before, 1);
    assert_true(grt_buf_write(g->range.buf, g->range.offset, zeros, grt_tensor_bytes(g)));
    learn_run(after, 1);
    float *is = learn_read(w), *end = learn_parameters(&l, &count);
    test_same_floats(test.dev, "a weight without gradients", is, was,
                     (uint32_t)grt_tensor_count(w));
    assert_true(memcmp(start, end, count * sizeof *end) != 0);
    free(was);
    free(is);
    free(start);
    free(end);
    free(zeros);
    grt_graph_destroy(&before);
    grt_graph_destroy(&after);
    learn_end(&l);
}

static void refusals(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F32);
    struct learn l = learn_begin(&d, 2 * LEARN_BATCH);
    TEST_REFUSED(
        grt_learner_gradients(l.learner, grt_step_desc(.steps = 2, .x = {l.x}, .y = {l.y})),
        GRT_INVALID, "several steps want an update between them");
    TEST_REFUSED(grt_learner_update(l.learner, grt_step_desc(.steps = 2)), GRT_INVALID,
                 "several steps want an update between them");
    TEST_REFUSED(grt_learner_update(l.learner, grt_step_desc(.rows = LEARN_BATCH + 1)), GRT_INVALID,
                 "more rows than the learner's batch");
    TEST_REFUSED(grt_learner_update(NULL, grt_step_desc(.rows = 1)), GRT_INVALID, "no desc");
    learn_end(&l);
    d.inference = true;
    l = learn_begin(&d, LEARN_BATCH);
    TEST_REFUSED(grt_learner_update(l.learner, grt_step_desc(.rows = 1)), GRT_INVALID,
                 "update: the learner was made for inference");
    learn_end(&l);
}

// ---- between steps ----

// The newest 256 rows, each by the number of its step, from any step on.
static void histories(void **state) {
    (void)state;
    static const uint32_t steps[] = {0, 5, GRT_HISTORY, GRT_HISTORY + 1, 3 * GRT_HISTORY + 7};
    static struct grt_learn_row rows[GRT_HISTORY], told[GRT_HISTORY + 1];
    struct learn_desc d = learn_small(GRT_F32);
    struct learn kit = learn_begin(&d, LEARN_BATCH);
    struct grt_learner *l = kit.learner;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        uint32_t oldest = steps[i] > GRT_HISTORY ? steps[i] - GRT_HISTORY : 0;
        for (uint32_t step = oldest; step < steps[i]; step++) {
            rows[step % GRT_HISTORY] = (struct grt_learn_row){.loss = (float)step};
        }
        struct grt_learn_state now = {.steps = steps[i]};
        assert_true(grt_learner_set_state(l, &now));
        assert_true(
            grt_buf_write(l->history->range.buf, l->history->range.offset, rows, sizeof rows));
        const uint32_t from[] = {0, oldest, oldest + 1, steps[i] - (steps[i] > 0), steps[i] + 1};
        for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
            uint32_t first = from[k], wanted = from[k] > oldest ? from[k] : oldest;
            uint32_t count = grt_learner_history(l, &first, told, GRT_HISTORY + 1);
            assert_int_equal(first, wanted);
            assert_int_equal(count, wanted < steps[i] ? steps[i] - wanted : 0);
            for (uint32_t r = 0; r < count; r++) {
                assert_true(told[r].loss == (float)(wanted + r));
            }
            assert_int_equal(grt_learner_history(l, &first, told, 2), count < 2 ? count : 2);
        }
    }
    learn_end(&kit);
}

// The words of a tensor are all this one; of 16 bits it is there twice.
static void check_words(const struct grt_tensor *t, uint32_t word) {
    uint64_t bytes = grt_tensor_bytes(t);
    uint32_t *words = test_alloc(bytes);
    assert_true(grt_buf_read(t->range.buf, t->range.offset, words, bytes));
    for (uint64_t i = 0; i < bytes / 4; i++) {
        assert_int_equal(words[i], word);
    }
    free(words);
}

// An average takes the place of the parameters, and of their 16-bit copy, and both come back.
static void averages_take_turns(void **state) {
    (void)state;
    struct learn_desc d = learn_small(GRT_F16);
    d.optim.ema = 0.5;
    struct learn kit = learn_begin(&d, LEARN_BATCH);
    struct grt_learner *l = kit.learner;
    struct grt_graph *graph = grt_graph_create(test.dev, "numbers");
    grt_graph_fill(graph, l->params.master->range, 0x3f800000);
    grt_graph_fill(graph, l->average->range, 0x40000000);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    assert_true(grt_learner_sync(l));
    for (int turn = 0; turn < 4; turn++) {
        bool in = turn % 2 == 0;
        assert_true(grt_learner_average(l, in) && grt_dev_wait(test.dev));
        check_words(l->params.master, in ? 0x40000000 : 0x3f800000);
        check_words(l->params.copy, in ? 0x40004000 : 0x3c003c00);
        check_words(l->average, 0x40000000);
        check_words(l->params.grad, in ? 0x3f800000 : 0);
    }
    learn_end(&kit);
}

static const struct CMUnitTest cases[] = {TEST_CASE(halves),
                                          TEST_CASE(halves_by_weights),
                                          TEST_CASE(two_learners),
                                          TEST_CASE(cleared),
                                          TEST_CASE(refusals),
                                          TEST_CASE(histories),
                                          TEST_CASE(averages_take_turns)};
TEST_SUITE(apart, true, cases);
