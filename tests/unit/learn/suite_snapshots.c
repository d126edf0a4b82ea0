// SPDX-License-Identifier: Apache-2.0
// What snapshots hold, in the queue of the steps and sent beside it; how many are on their way, and
// which is the newest.
#include "kits/learn_kit.h"

#include <stdlib.h>

#include "learn/learner_parts.h"
#include "learn/snapshot.h"

// 5 inputs, 16 hidden units and 3 outputs.
static const struct grt_mlp_desc net = {
    .depth = 1, .hidden = 16, .outputs = 3, .act = GRT_ACT_RELU};

static struct grt_learner *made(double average) {
    struct grt_learner_desc d = {.make = grt_mlp_make,
                                 .of = &net,
                                 .input = {1, {5}},
                                 .loss = GRT_LOSS_MSE,
                                 .optim = grt_optim_defaults(GRT_OPTIM_ADAM),
                                 .batch = 8,
                                 .variant = "layers"};
    d.optim.ema = average;
    struct grt_learner *l = grt_learner_create(test.dev, &d);
    assert_non_null(l);
    assert_true(grt_learner_alloc(l));
    return l;
}

static void snapshots_are(bool beside) {
    struct grt_learner *l = made(0.5);
    struct grt_snapshot *s = grt_snapshot_create(l, beside);
    assert_non_null(s);
    const struct grt_tensor *all[] = {l->params.master, l->kept, l->average};
    struct grt_graph *graph = grt_graph_create(test.dev, "numbers");
    for (uint32_t i = 0; i < 3; i++) {
        grt_graph_fill(graph, all[i]->range, 100 + i);
    }
    grt_graph_fill(graph, l->history->range, 0x40000000);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    struct grt_learn_state told = {.steps = 41, .loss = 0.5f};
    assert_true(grt_learner_set_state(l, &told));
    assert_true(grt_snapshot_take(s, 1, true) && grt_snapshot_wait(s, 1));
    assert_true(grt_snapshot_passed(s, 1));
    // What changes behind it does not show.
    told.steps = 42;
    assert_true(grt_learner_set_state(l, &told));
    assert_int_equal(grt_snapshot_state(s, 1)->steps, 41);
    assert_true(grt_snapshot_state(s, 1)->loss == 0.5f);
    assert_true(grt_snapshot_row(s, 1, 300).loss == 2.0f && grt_snapshot_row(s, 1, 0).lr == 2.0f);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t *words = grt_snapshot_tensor(s, all[i]);
        assert_non_null(words);
        for (uint64_t k = 0; k < grt_tensor_count(all[i]); k++) {
            assert_int_equal(words[k], 100 + i);
        }
    }
    const struct grt_tensor *bias = grt_learner_tensor(l, GRT_TENSOR_PARAM, 1, NULL);
    assert_ptr_equal(grt_snapshot_tensor(s, bias), (char *)grt_snapshot_tensor(s, all[0]) +
                                                       (bias->range.offset - all[0]->range.offset));
    assert_null(grt_snapshot_tensor(s, l->x));
    assert_true(grt_snapshot_take(s, 2, false) && grt_snapshot_wait(s, 2));
    assert_int_equal(grt_snapshot_state(s, 2)->steps, 42);
    assert_int_equal(grt_snapshot_state(s, 1)->steps, 41);
    // Two of four can be lent, and each keeps its own numbers.
    void (*give_back)(void *) = NULL;
    void *lent[2];
    uint32_t *first = grt_snapshot_tensor(s, all[0]);
    for (int i = 0; i < 2; i++) {
        lent[i] = grt_snapshot_lend(s, &give_back);
        assert_non_null(lent[i]);
        assert_true(grt_snapshot_take(s, 0, true) && grt_snapshot_wait(s, 0));
        assert_ptr_not_equal(grt_snapshot_tensor(s, all[0]), first);
    }
    assert_null(grt_snapshot_lend(s, &give_back));
    // Into the place of the one before.
    assert_true(grt_snapshot_take(s, 0, true) && grt_snapshot_wait(s, 0));
    give_back(lent[1]);
    assert_non_null(lent[1] = grt_snapshot_lend(s, &give_back));
    assert_int_equal(first[0], 100);
    assert_true(grt_dev_wait(test.dev));
    give_back(lent[0]);
    give_back(lent[1]);
    grt_snapshot_destroy(&s);
    grt_learner_destroy(&l);
}

// In the queue of the steps, and put aside and sent beside it.
static void snapshots(void **state) {
    (void)state;
    snapshots_are(false);
    snapshots_are(true);
}

static uint32_t first_word(const struct grt_snapshot *s, const struct grt_tensor *t) {
    return *(const uint32_t *)grt_snapshot_tensor(s, t);
}

// Two whole ones are on their way: the first that is waited for is the newest until the second is.
static void two_are_out(bool beside) {
    struct grt_learner *l = made(0);
    struct grt_snapshot *s = grt_snapshot_create(l, beside);
    assert_non_null(s);
    assert_int_equal(grt_snapshot_most(s), 2);
    // What is sent beside has a second place on the device, for each slot and whole one.
    uint32_t places = beside && grt_dev_lanes(test.dev) > 1 ? 2 : 1;
    assert_int_equal(grt_dev_mem_use(test.dev, "snapshots").buffers,
                     places * (GRT_SNAPSHOT_SLOTS + 4));
    struct grt_graph *fills[4];
    for (uint32_t i = 0; i < 4; i++) {
        fills[i] = grt_graph_create(test.dev, "numbers");
        grt_graph_fill(fills[i], l->params.master->range, 100 + i);
        assert_true(grt_graph_bake(fills[i]) && grt_graph_expect(fills[i], 1e-6));
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(grt_graph_run(fills[i]) && grt_snapshot_take(s, i, true));
    }
    assert_true(grt_graph_run(fills[2]) && grt_snapshot_take(s, 2, false));
    assert_true(grt_snapshot_wait(s, 0));
    assert_int_equal(first_word(s, l->params.master), 100);
    void (*give_back)(void *) = NULL;
    void *lent = grt_snapshot_lend(s, &give_back);
    assert_non_null(lent);
    const uint32_t *words = grt_snapshot_tensor(s, l->params.master);
    assert_true(grt_graph_run(fills[3]) && grt_snapshot_take(s, 0, true));
    assert_true(grt_snapshot_wait(s, 1));
    assert_int_equal(first_word(s, l->params.master), 101);
    // One with no tensors changes nothing of that.
    assert_true(grt_snapshot_wait(s, 2));
    assert_int_equal(first_word(s, l->params.master), 101);
    assert_true(grt_snapshot_wait(s, 0));
    assert_int_equal(first_word(s, l->params.master), 103);
    assert_int_equal(words[0], 100);
    // Those that nobody waits for leave their places, all but the one that is lent.
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(grt_snapshot_take(s, i, true));
        }
        TEST_REFUSED(grt_snapshot_take(s, 3, true), GRT_INVALID, "all places");
        grt_snapshot_forget(s);
    }
    assert_true(grt_snapshot_take(s, 3, true) && grt_snapshot_wait(s, 3));
    assert_int_equal(first_word(s, l->params.master), 103);
    assert_int_equal(words[0], 100);
    // With all lent that are lent, as many as may be on their way find places.
    void *more = grt_snapshot_lend(s, &give_back);
    assert_non_null(more);
    assert_true(grt_snapshot_take(s, 0, true) && grt_snapshot_wait(s, 0));
    assert_null(grt_snapshot_lend(s, &give_back));
    assert_true(grt_snapshot_take(s, 0, true) && grt_snapshot_take(s, 1, true));
    assert_true(grt_snapshot_wait(s, 0) && grt_snapshot_wait(s, 1));
    give_back(more);
    give_back(lent);
    for (uint32_t i = 0; i < 4; i++) {
        grt_graph_destroy(&fills[i]);
    }
    grt_snapshot_destroy(&s);
    grt_learner_destroy(&l);
}

static void two_snapshots_are_out(void **state) {
    (void)state;
    two_are_out(false);
    two_are_out(true);
}

static const struct CMUnitTest cases[] = {
    TEST_CASE(snapshots),
    TEST_CASE(two_snapshots_are_out),
};
TEST_SUITE(snapshots, true, cases);
