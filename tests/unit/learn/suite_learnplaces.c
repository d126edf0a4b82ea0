// SPDX-License-Identifier: Apache-2.0
// Places: rows that a loss tells apart and where their gradients go, and memory of snapshots.
#include "kits/learn_kit.h"
#include "kits/ref_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpurt/loss.h"
#include "learn/learner_parts.h"
#include "learn/snapshot.h"

// ---- pairs ----

// Rows that are told apart, those whose losses are wanted, and where their gradients go: the last
// ones that there are, and one further.
static void rows_of_pairs(void **state) {
    (void)state;
    static const char *const rows = "loss nt_xent of 'test': there are no such rows";
    static const char *const pairs = "rows come in pairs, two views of each sample";
    struct test_tensor y = test_tensor(test.dev, GRT_F32, 12, 3);
    struct test_tensor dy = test_tensor(test.dev, GRT_F32, 12, 3);
    struct test_tensor less = test_tensor(test.dev, GRT_F32, 8, 3);
    struct test_tensor parts = test_tensor(test.dev, GRT_F32, GRT_LOSS_PARTS, 0);
    struct test_tensor own = test_tensor(test.dev, GRT_U32, GRT_LEARN_STATE_WORDS, 0);
    struct grt_buf *scratch =
        test_buf(test.dev, grt_loss_scratch(GRT_LOSS_NT_XENT, 12, 3), GRT_BUF_DEVICE);
    snprintf(y.tensor.label, sizeof y.tensor.label, "test");
    const struct {
        struct grt_loss_rows among, own;
        uint64_t dy_first, block;
        const struct grt_tensor *dy;
        const char *why;
    } table[] = {
        {{0, 0}, {0, 0}, 0, 0, &dy.tensor, NULL},
        {{0, 12}, {0, 0}, 0, 4, &dy.tensor, NULL},
        {{2, 10}, {0, 0}, 0, 0, &dy.tensor, NULL},
        {{2, 12}, {0, 0}, 0, 0, &dy.tensor, rows},
        {{4, 10}, {0, 0}, 0, 0, &dy.tensor, rows},
        {{12, 2}, {0, 0}, 0, 0, &dy.tensor, rows},
        {{14, 2}, {0, 0}, 0, 0, NULL, rows},
        {{0, 11}, {0, 0}, 0, 0, &dy.tensor, pairs},
        {{0, 12}, {0, 0}, 0, 3, &dy.tensor, pairs},
        {{0, 12}, {10, 2}, 0, 0, &dy.tensor, NULL},
        {{0, 12}, {10, 3}, 0, 0, &dy.tensor, rows},
        {{4, 8}, {4, 8}, 4, 0, &less.tensor, NULL},
        {{4, 8}, {3, 2}, 3, 0, &less.tensor, rows},
        {{4, 8}, {11, 1}, 4, 0, &less.tensor, NULL},
        {{4, 8}, {12, 1}, 5, 0, &less.tensor, rows},
        {{0, 12}, {4, 8}, 4, 0, &less.tensor, NULL},
        {{0, 12}, {4, 8}, 5, 0, &less.tensor, rows},
        {{0, 12}, {3, 8}, 4, 0, &less.tensor, rows},
        {{0, 12}, {3, 8}, 4, 0, NULL, NULL},
        {{0, 12}, {0, 0}, 0, 0, &less.tensor, "the gradient must be f32, f16 or bf16, one for"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table + 4; i++) {
        size_t k = i < sizeof table / sizeof *table ? i : 0;
        size_t other = i - sizeof table / sizeof *table;  // of what has no rows to do with it
        struct grt_loss_desc d = {.loss = GRT_LOSS_NT_XENT,
                                  .y = &y.tensor,
                                  .dy = table[k].dy,
                                  .parts = parts.tensor.range,
                                  .state = own.tensor.range,
                                  .scratch = {scratch, 0, 0},
                                  .among = table[k].among,
                                  .own = table[k].own,
                                  .dy_first = table[k].dy_first,
                                  .block = table[k].block};
        const char *why = table[k].why;
        if (k != i) {
            d.class_weights = other == 0 ? &y.tensor : NULL;
            d.hits.buf = other == 1 ? scratch : NULL;
            d.temperature = other == 2 ? 0.0249f : 0.025f;
            why = other < 2    ? "there are no classes"
                  : other == 2 ? "the temperature is below 0.025"
                               : NULL;
        }
        struct grt_graph *graph = grt_graph_create(test.dev, "pairs");
        grt_op_loss(graph, &d);
        if (why) {
            TEST_REFUSED(grt_graph_bake(graph), GRT_INVALID, why);
        } else {
            assert_true(grt_graph_bake(graph));
        }
        grt_graph_destroy(&graph);
    }
    struct grt_graph *none = grt_graph_create(test.dev, "none");
    grt_op_loss(none, NULL);
    TEST_REFUSED(grt_graph_bake(none), GRT_INVALID, "loss: no desc");
    grt_graph_destroy(&none);
    grt_buf_destroy(&scratch);
    struct test_tensor *all[] = {&y, &dy, &less, &parts, &own};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        test_tensor_end(all[i]);
    }
}

// ---- snapshots ----

// Places of whole snapshots, all of what is small. A tensor of none of them is none, and a failed
// loan is not loud.
static void places_of_snapshots(void **state) {
    (void)state;
    const struct grt_mlp_desc net = {.outputs = 3};
    struct grt_learner *l = grt_learner_create(
        test.dev, grt_learner_desc(.make = grt_mlp_make, .of = &net, .input = {1, {2}},
                                   .optim = grt_optim_defaults(GRT_OPTIM_SGD), .batch = 1));
    assert_true(l && grt_learner_alloc(l));
    struct grt_snapshot *s = grt_snapshot_create(l, false);
    assert_non_null(s);
    assert_int_equal(grt_dev_mem_use(test.dev, "snapshots").buffers, GRT_SNAPSHOT_SLOTS + 4);
    assert_true(grt_snapshot_take(s, 3, true) && grt_snapshot_wait(s, 3));
    const struct grt_tensor *bias = grt_learner_tensor(l, GRT_TENSOR_PARAM, 1, NULL);
    const struct grt_tensor *first = grt_learner_tensor(l, GRT_TENSOR_PARAM, 0, NULL);
    float *now = learn_read(bias);
    assert_memory_equal(grt_snapshot_tensor(s, bias), now, grt_tensor_bytes(bias));
    assert_ptr_equal((char *)grt_snapshot_tensor(s, first) + l->params.list[1]->first * 4,
                     grt_snapshot_tensor(s, bias));
    assert_null(grt_snapshot_tensor(s, grt_learner_tensor(l, GRT_TENSOR_GRAD, 0, NULL)));
    assert_null(grt_snapshot_tensor(s, grt_learner_tensor(l, GRT_TENSOR_STATE, 0, NULL)));
    free(now);
    void (*give_back)(void *) = NULL;
    void *lent[2];
    for (int i = 0; i < 2; i++) {
        lent[i] = grt_snapshot_lend(s, &give_back);
        assert_true(lent[i] && grt_snapshot_take(s, 0, true) && grt_snapshot_wait(s, 0));
    }
    assert_null(grt_snapshot_lend(s, &give_back));
    TEST_REFUSED(grt_learner_alloc(l), GRT_INVALID, "grt_learner_alloc: called twice");
    for (int i = 0; i < 2; i++) {
        give_back(lent[i]);
    }
    grt_snapshot_destroy(&s);
    assert_null(s);
    grt_snapshot_destroy(&s);
    grt_snapshot_destroy(NULL);
    grt_learner_destroy(&l);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(rows_of_pairs),
    REF_CASE(places_of_snapshots),
};
TEST_SUITE(learnplaces, false, cases);
