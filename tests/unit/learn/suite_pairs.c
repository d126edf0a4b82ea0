// SPDX-License-Identifier: Apache-2.0
// Contrastive training: learners whose samples are seen twice, one alone and several that share one
// loss.
#include "kits/learn_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/loss.h"
#include "gpurt/network.h"

#define SAMPLES 12
#define WIDTH 6
#define OUTPUTS 5

// Before the network: the second views are other numbers than the first, whatever the batch is cut
// into. It has no parameters.
static struct grt_shape bend_declare(struct grt_module *module, struct grt_net *net,
                                     const char *prefix, const struct grt_shape *in) {
    (void)module;
    (void)net;
    (void)prefix;
    return *in;
}

static void bend_forward(struct grt_module *module, const struct grt_pass *pass,
                         const struct grt_tensor *x, const struct grt_tensor *y) {
    struct grt_range from = x->range, to = y->range;
    (void)module;
    // The features of the second views are turned by one place.
    from.size = to.size = x->range.size / 2;
    grt_graph_copy(pass->graph, to, from);
    for (uint64_t row = x->shape[0] / 2; row < x->shape[0]; row++) {
        uint64_t at = row * WIDTH * 4;
        grt_graph_copy(pass->graph,
                       (struct grt_range){y->range.buf, y->range.offset + at, (WIDTH - 1) * 4},
                       (struct grt_range){x->range.buf, x->range.offset + at + 4, (WIDTH - 1) * 4});
        grt_graph_copy(pass->graph,
                       (struct grt_range){y->range.buf, y->range.offset + at + (WIDTH - 1) * 4, 4},
                       (struct grt_range){x->range.buf, x->range.offset + at, 4});
    }
}

static void bend_backward(struct grt_module *module, const struct grt_pass *pass,
                          const struct grt_tensor *x, const struct grt_tensor *dy,
                          const struct grt_tensor *dx, bool add_dx) {
    (void)module;
    (void)pass;
    (void)x;
    (void)dy;
    (void)add_dx;
    assert_null(dx);
}

static void bend_destroy(struct grt_module *module) {
    free(module);
}

static const struct grt_module_fns bend_fns = {"bend", bend_declare, bend_forward, bend_backward,
                                               bend_destroy};

struct plan {
    const char *text;
    bool bends;
};

static struct grt_module *make_bent(const void *of) {
    const struct plan *plan = of;
    struct grt_module *net = grt_network_create(grt_network_desc(.text = plan->text));
    struct grt_module *bend = plan->bends ? calloc(1, sizeof *bend) : NULL;
    if (!bend) {
        return net;
    }
    bend->fns = &bend_fns;
    struct grt_module *parts[] = {bend, net};
    return grt_sequence_create(parts, 2);
}

struct pair_learner {
    struct grt_learner *learner;
    struct grt_buf *x;
};

static struct pair_learner pair_begin(const struct plan *plan, uint32_t accumulate, bool exact,
                                      struct grt_shape shape) {
    struct grt_optim_desc optim = grt_optim_defaults(GRT_OPTIM_SGD);
    optim.lr = 1e-20;
    uint64_t count = SAMPLES * grt_shape_count(&shape);
    struct pair_learner p = {
        .learner = grt_learner_create(
            test.dev, grt_learner_desc(.make = make_bent, .of = plan, .input = shape,
                                       .loss = GRT_LOSS_NT_XENT, .views = 2, .temperature = 0.4f,
                                       .optim = optim, .batch = SAMPLES, .accumulate = accumulate,
                                       .exact = exact, .seed = 7)),
        .x = test_buf(test.dev, count * 4, GRT_BUF_UPLOAD)};
    assert_non_null(p.learner);
    assert_true(grt_learner_alloc(p.learner));
    learn_set_parameters(p.learner);
    for (uint32_t i = 0; i < count; i++) {
        ((float *)grt_buf_host(p.x))[i] = learn_number(5, i);
    }
    return p;
}

static void pair_end(struct pair_learner *p) {
    grt_learner_destroy(&p->learner);
    grt_buf_destroy(&p->x);
}

// A step of `rows` samples in one graph or one for each micro-batch; with the state as it was.
static double pair_step(struct pair_learner *p, uint32_t rows, uint32_t parts) {
    struct grt_learn_state state, after;
    assert_true(grt_learner_state(p->learner, &state));
    uint64_t bytes = grt_learner_x_bytes(p->learner), micro = (SAMPLES + parts - 1) / parts;
    for (uint32_t i = 0; i < parts && i * micro < rows; i++) {
        struct grt_step_desc desc = {.rows = rows, .part = parts > 1 ? i + 1 : 0};
        desc.x = (struct grt_range){p->x, i * micro * bytes, 0};
        struct grt_graph *graph = grt_learner_step(p->learner, &desc);
        assert_non_null(graph);
        learn_run(graph, 1);
        grt_graph_destroy(&graph);
    }
    assert_true(grt_learner_state(p->learner, &after));
    assert_int_equal(after.steps, state.steps + 1);
    assert_true(grt_learner_set_state(p->learner, &state));
    return (double)after.loss;
}

static double loss_of_outputs(const struct pair_learner *p, uint32_t samples) {
    float *y = learn_read(grt_learner_output(p->learner));
    double wide[2 * SAMPLES * OUTPUTS];
    for (uint32_t i = 0; i < 2 * samples * OUTPUTS; i++) {
        wide[i] = (double)y[i];
    }
    free(y);
    return oracle_nt_xent(wide, 2 * samples, OUTPUTS, 2 * samples, (double)0.4f);
}

#define NET "[{linear: 8}, tanh, {linear: 5}]"
#define DROPS "[{linear: 8}, tanh, {dropout: 0.3}, {linear: 5}]"
static const struct grt_shape flat_shape = {1, {WIDTH}};

// The network gives a row for each view, and the step's loss is that of those rows: of a full batch
// and of a smaller one.
static void two_views(void **state) {
    (void)state;
    static const struct plan bent = {NET, true}, drops = {DROPS, false};
    const struct plan *plans[] = {&bent, &drops};
    for (int i = 0; i < 2; i++) {
        struct pair_learner p = pair_begin(plans[i], 1, false, flat_shape);
        assert_int_equal(grt_learner_output(p.learner)->shape[0], 2 * SAMPLES);
        const uint32_t rows[] = {SAMPLES, 7};
        for (int k = 0; k < 2; k++) {
            double loss = pair_step(&p, rows[k], 1), want = loss_of_outputs(&p, rows[k]);
            assert_true(fabs(loss - want) < 1e-5 * want);
            float *y = learn_read(grt_learner_output(p.learner));
            assert_memory_not_equal(y, y + rows[k] * OUTPUTS, OUTPUTS * 4);
            free(y);
        }
        pair_end(&p);
    }
}

// The gradient of a step against differences of its loss, parameter by parameter: with dropout each
// view has its own mask, and going forward again has the same one. In one batch, in micro-batches
// whose rows are told apart from their own alone, and exact; and by graphs for each micro-batch.
static void slopes(void **state) {
    (void)state;
    static const struct plan plans[] = {{DROPS, true}, {DROPS, false}};
    static const struct {
        uint32_t accumulate, rows, parts;
        bool exact;
    } ways[] = {{1, 12, 1, false}, {3, 12, 1, false}, {3, 12, 1, true},
                {3, 11, 3, true},  {2, 7, 2, true},   {3, 3, 1, true}};
    const float h = 1.0f / 256;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct pair_learner p =
            pair_begin(&plans[w % 2], ways[w].accumulate, ways[w].exact, flat_shape);
        struct test_compare compare = test_compare(test.dev, "slopes, way %d", (int)w);
        const struct grt_tensor *t;
        for (uint32_t k = 0; (t = grt_learner_tensor(p.learner, GRT_TENSOR_PARAM, k, NULL)); k++) {
            pair_step(&p, ways[w].rows, ways[w].parts);
            float *params = learn_read(t);
            float *grads = learn_read(grt_learner_tensor(p.learner, GRT_TENSOR_GRAD, k, NULL));
            for (uint64_t i = 0; i < grt_tensor_count(t); i += test.small ? 35 : 7) {
                double loss[2];
                const float was = params[i];
                for (int side = 0; side < 2; side++) {
                    float v = was + (side ? h : -h);
                    assert_true(grt_buf_write(t->range.buf, t->range.offset + 4 * i, &v, 4));
                    assert_true(grt_learner_sync(p.learner));
                    loss[side] = pair_step(&p, ways[w].rows, ways[w].parts);
                }
                assert_true(grt_buf_write(t->range.buf, t->range.offset + 4 * i, &was, 4));
                assert_true(grt_learner_sync(p.learner));
                // Differences of f32 losses: their rounding over the step, and its square.
                double want = (loss[1] - loss[0]) / (2 * (double)h);
                test_compare_value(&compare, 1000 * k + i, grads[i],
                                   (struct oracle_value){want, 1e-3});
            }
            free(params);
            free(grads);
        }
        test_compare_end(&compare);
        pair_end(&p);
    }
}

// Exact micro-batches are the large batch where nothing depends on who else is in a batch.
static void exact(void **state) {
    (void)state;
    static const struct plan bent = {NET, true};
    const uint32_t rows[] = {SAMPLES, 9};
    for (int k = 0; k < 2; k++) {
        struct pair_learner whole = pair_begin(&bent, 1, false, flat_shape);
        struct pair_learner cut = pair_begin(&bent, 3, true, flat_shape);
        struct pair_learner plain = pair_begin(&bent, 3, false, flat_shape);
        double want = pair_step(&whole, rows[k], 1), got = pair_step(&cut, rows[k], 1);
        double fewer = pair_step(&plain, rows[k], 1);
        assert_true(fabs(got - want) < 1e-6 * want);
        assert_true(fewer < 0.9 * want);  // fewer rows to be told apart from
        struct test_compare compare = test_compare(test.dev, "exact, %u samples", rows[k]);
        const struct grt_tensor *a, *b;
        for (uint32_t i = 0; (a = grt_learner_tensor(whole.learner, GRT_TENSOR_GRAD, i, NULL));
             i++) {
            b = grt_learner_tensor(cut.learner, GRT_TENSOR_GRAD, i, NULL);
            float *large = learn_read(a), *small = learn_read(b);
            for (uint64_t n = 0; n < grt_tensor_count(a); n++) {
                test_compare_value(&compare, 1000 * i + n, small[n],
                                   (struct oracle_value){(double)large[n], 2e-6});
            }
            free(large);
            free(small);
        }
        test_compare_end(&compare);
        pair_end(&whole);
        pair_end(&cut);
        pair_end(&plain);
    }
}

// Running statistics move once for each micro-batch, though each goes forward twice; and what is
// random of images is drawn for each view.
static void norms_once(void **state) {
    (void)state;
    static const struct plan norms = {"[{linear: 8}, {norm: batch}, tanh, {linear: 5}]", true};
    struct pair_learner p = pair_begin(&norms, 3, true, flat_shape);
    struct pair_learner q = pair_begin(&norms, 3, false, flat_shape);
    pair_step(&p, SAMPLES, 1);
    pair_step(&q, SAMPLES, 1);
    const struct grt_tensor *a, *b;
    const char *name = NULL;
    uint32_t i = 0;
    for (; (a = grt_learner_tensor(p.learner, GRT_TENSOR_BUFFER, i, &name)); i++) {
        b = grt_learner_tensor(q.learner, GRT_TENSOR_BUFFER, i, NULL);
        float *exactly = learn_read(a), *plainly = learn_read(b);
        test_same_floats(test.dev, name, exactly, plainly, grt_tensor_count(a));
        free(exactly);
        free(plainly);
    }
    assert_int_equal(i, 3);
    pair_end(&p);
    pair_end(&q);
}

// ---- one loss over several learners ----

struct rank {
    struct grt_learner *learner;
    unsigned char theirs[2][2 * SAMPLES * OUTPUTS * 4];  // of each rank
    uint32_t number;
};

static bool hand_over(void *context, void *all, uint64_t each) {
    struct rank *r = context;
    memcpy(r->theirs[r->number], (char *)all + r->number * each, each);
    memcpy((char *)all + (1 - r->number) * each, r->theirs[1 - r->number], each);
    return true;
}

// Runs a graph of a part, `first` being its first sample, and lets go of it.
static void part_run(struct grt_graph *graph) {
    assert_non_null(graph);
    learn_run(graph, 1);
    grt_graph_destroy(&graph);
}

static struct grt_step_desc part_of(uint32_t place, uint32_t part, uint32_t rows,
                                    uint32_t accumulate) {
    uint32_t left = rows > place ? rows - place : 0;
    return (struct grt_step_desc){.rows = left < part ? left : part,
                                  .micro_first = place / part * accumulate,
                                  .whole = rows,
                                  .place = place};
}

// Two learners that each have half of a step's samples, in parts of their own, come to the loss and
// the gradient of one that has all: of all samples, and of batches of them; of a full step, and of
// one whose last parts are short or empty.
static void shared_out(void **state) {
    (void)state;
    static const struct plan bent = {NET, true};
    static const struct {
        uint32_t part, accumulate, batch, rows;
    } ways[] = {{6, 1, 12, 12}, {6, 2, 12, 12}, {3, 1, 12, 11},
                {3, 1, 6, 12},  {6, 2, 3, 12},  {3, 2, 12, 5}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        uint32_t part = ways[w].part, rows = ways[w].rows;
        struct pair_learner one = pair_begin(&bent, SAMPLES / ways[w].batch, false, flat_shape);
        double want = pair_step(&one, rows, 1), got = 0;
        struct rank ranks[2] = {0};
        for (uint32_t r = 0; r < 2; r++) {
            struct grt_learner_desc d = *grt_learner_desc_of(one.learner);
            ranks[r].number = d.together.rank = r;
            d.batch = part;
            d.accumulate = ways[w].accumulate;
            d.whole = (struct grt_whole){SAMPLES, ways[w].batch, r * SAMPLES / 2, SAMPLES / 2};
            d.together = (struct grt_together){r, 2, hand_over, &ranks[r]};
            ranks[r].learner = grt_learner_create(test.dev, &d);
            assert_non_null(ranks[r].learner);
            assert_true(grt_learner_alloc(ranks[r].learner));
            learn_set_parameters(ranks[r].learner);
            for (uint32_t at = r * SAMPLES / 2; at < (r + 1) * SAMPLES / 2; at += part) {
                struct grt_step_desc desc = part_of(at, part, rows, ways[w].accumulate);
                desc.x = (struct grt_range){one.x, at * WIDTH * 4, 0};
                if (desc.rows > 0) {
                    part_run(grt_learner_embed(ranks[r].learner, &desc));
                }
            }
        }
        // There is one process: the first hears of the second when it asks again.
        for (uint32_t turn = 0; turn < 3; turn++) {
            part_run(grt_learner_meet(ranks[turn % 2].learner));
            memcpy(ranks[1 - turn % 2].theirs[turn % 2], ranks[turn % 2].theirs[turn % 2],
                   sizeof ranks->theirs[0]);
        }
        uint64_t count = grt_learner_parameters(one.learner), at = 0;
        double *sum = calloc(count, sizeof *sum);
        assert_non_null(sum);
        const struct grt_tensor *t;
        for (uint32_t place = 0; place < rows; place += part) {
            struct grt_learner *l = ranks[place / (SAMPLES / 2)].learner;
            struct grt_step_desc desc = part_of(place, part, rows, ways[w].accumulate);
            double share = (double)desc.rows / rows;
            struct grt_learn_state after;
            part_run(grt_learner_gradients(l, &desc));
            at = 0;
            for (uint32_t i = 0; (t = grt_learner_tensor(l, GRT_TENSOR_GRAD, i, NULL)); i++) {
                float *grads = learn_read(t);
                for (uint64_t n = 0; n < grt_tensor_count(t); n++) {
                    sum[at++] += share * (double)grads[n];
                }
                free(grads);
            }
            part_run(grt_learner_update(l, grt_step_desc(.rows = part)));
            assert_true(grt_learner_state(l, &after));
            got += share * (double)after.loss;
        }
        assert_int_equal(at, count);
        assert_true(fabs(got - want) < 1e-6 * want);
        struct test_compare compare = test_compare(test.dev, "shared out, way %d", (int)w);
        at = 0;
        for (uint32_t i = 0; (t = grt_learner_tensor(one.learner, GRT_TENSOR_GRAD, i, NULL)); i++) {
            float *grads = learn_read(t);
            for (uint64_t n = 0; n < grt_tensor_count(t); n++) {
                test_compare_value(&compare, at, (float)sum[at],
                                   (struct oracle_value){(double)grads[n], 2e-6});
                at++;
            }
            free(grads);
        }
        test_compare_end(&compare);
        free(sum);
        grt_learner_destroy(&ranks[0].learner);
        grt_learner_destroy(&ranks[1].learner);
        pair_end(&one);
    }
}

// What is not a part of it is refused, and so is a step that needs the others.
static void shares_refused(void **state) {
    (void)state;
    static const struct plan net = {NET, false};
    struct pair_learner one = pair_begin(&net, 1, false, flat_shape);
    struct grt_step_desc desc = {.rows = 6, .place = 6, .x = {one.x, 0, 0}};
    TEST_REFUSED(grt_learner_embed(one.learner, &desc), GRT_INVALID,
                 "this learner's samples alone");
    TEST_REFUSED(grt_learner_meet(one.learner), GRT_INVALID, "this learner's samples alone");
    struct grt_learner_desc d = *grt_learner_desc_of(one.learner);
    d.batch = 6;
    d.whole = (struct grt_whole){SAMPLES, SAMPLES, 6, 3};
    TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_INVALID, "fewer than those of one");
    d.whole.own = 6;
    d.together.ranks = 2;
    TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_INVALID, "cannot be reached");
    d.together.ranks = 0;
    struct grt_learner *l = grt_learner_create(test.dev, &d);
    assert_non_null(l);
    assert_true(grt_learner_alloc(l));
    TEST_REFUSED(grt_learner_step(l, &desc), GRT_INVALID, "the samples of several learners");
    desc.place = 5;
    TEST_REFUSED(grt_learner_embed(l, &desc), GRT_INVALID, "not among this learner's samples");
    desc.place = 6;
    desc.whole = 11;
    TEST_REFUSED(grt_learner_gradients(l, &desc), GRT_INVALID, "not among this learner's samples");
    grt_learner_destroy(&l);
    pair_end(&one);
}

static void learners_refused(void **state) {
    (void)state;
    static const struct plan net = {NET, false};
    struct grt_learner_desc d = {.make = make_bent,
                                 .of = &net,
                                 .input = flat_shape,
                                 .loss = GRT_LOSS_NT_XENT,
                                 .optim = grt_optim_defaults(GRT_OPTIM_SGD),
                                 .batch = 4};
    TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_INVALID, "two views of each sample");
    d.views = 2;
    d.temperature = 0.001f;
    TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_INVALID, "the temperature is below 0.025");
    d.loss = GRT_LOSS_MSE;
    TEST_REFUSED(grt_learner_create(test.dev, &d), GRT_INVALID, "two views of each sample");
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(two_views),        TEST_CASE(slopes),     TEST_CASE(exact),
    TEST_CASE(norms_once),       TEST_CASE(shared_out), TEST_CASE(shares_refused),
    TEST_CASE(learners_refused),
};
TEST_SUITE(pairs, true, cases);
