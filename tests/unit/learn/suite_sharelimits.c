// SPDX-License-Identifier: Apache-2.0
// What a learner shares with others, at its limits: runs of micro-batches, buckets of gradients,
// the rest with weights, memory, and a step that is given up.
#include "kits/centre_kit.h"
#include "kits/ref_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learner_parts.h"
#include "learn/share.h"

static const struct centre_shape alone = {false, 2};

static struct grt_learner *begin(const struct grt_learner_desc *desc) {
    struct grt_learner *l = grt_learner_create(test.dev, desc);
    assert_true(l && grt_learner_alloc(l));
    return l;
}

static struct grt_share *share_of(struct grt_learner *l, uint32_t first, uint32_t leaves,
                                  uint32_t others, uint64_t bucket) {
    struct grt_share *share = grt_share_create(&(struct grt_share_desc){
        .learner = l, .first = first, .leaves = leaves, .others = others, .bucket = bucket});
    assert_non_null(share);
    return share;
}

static void runs(void **state) {
    (void)state;
    static const char *const why =
        "a share wants a learner and micro-batches, alone a power of two of them";
    const struct grt_learner_desc desc = centre_learner(&alone);
    struct grt_learner *l = begin(&desc);
    TEST_REFUSED(grt_share_create(NULL), GRT_INVALID, why);
    const struct {
        struct grt_learner *learner;
        uint32_t first, leaves, others;
        bool taken;
    } rows[] = {{NULL, 0, 1, 0, false},      {l, 0, 0, 1, false},   {l, 0, 4097, 1, false},
                {l, 4097, 1, 1, false},      {l, 4096, 1, 1, true}, {l, 0, 3, 0, false},
                {l, 0, 3, 1, true},          {l, 0, 6, 0, false},   {l, 0, 1, 0, true},
                {l, 0, 8, 0, true},          {l, 7, 5, 2, true},    {l, 0, 4097, 0, false},
                {l, 0, UINT32_MAX, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grt_share_desc d = {.learner = rows[i].learner,
                                         .first = rows[i].first,
                                         .leaves = rows[i].leaves,
                                         .others = rows[i].others};
        if (!rows[i].taken) {
            TEST_REFUSED(grt_share_create(&d), GRT_INVALID, why);
            continue;
        }
        struct grt_share *share = grt_share_create(&d);
        assert_non_null(share);
        // Only the last micro-batch tells of its gradients.
        for (uint32_t k = 0; k < d.leaves; k++) {
            assert_int_equal(grt_share_tell(share, k) != NULL, k + 1 == d.leaves);
        }
        assert_int_equal(grt_share_pieces(share), d.others > 0 ? 2 : 1);
        grt_share_destroy(&share);
        assert_null(share);
        grt_share_destroy(&share);
    }
    grt_share_destroy(NULL);
    grt_learner_destroy(&l);
}

// linear 128, centre, linear: of the last tensor on 2, 256, 128 and 128 * 128 numbers.
static void buckets(void **state) {
    (void)state;
    static const struct centre_shape behind = {true, 2};
    const struct grt_learner_desc desc = centre_learner(&behind);
    struct grt_learner *l = begin(&desc);
    enum { W = CENTRE_WIDTH };
    const uint64_t rest = GRT_NORM_PARTS + 2 * GRT_LOSS_PARTS + W;
    const struct {
        uint64_t bytes;
        uint32_t pieces;
        uint64_t counts[5];
    } rows[] = {
        {1, 5, {2, 2 * W, W, W * W, rest}},         {8, 5, {2, 2 * W, W, W * W, rest}},
        {9, 4, {2 * W + 2, W, W * W, rest}},        {8 * W + 8, 3, {2 * W + 2, W + W * W, rest}},
        {8 * W + 9, 3, {3 * W + 2, W * W, rest}},   {12 * W + 8, 3, {3 * W + 2, W * W, rest}},
        {12 * W + 9, 2, {3 * W + 2 + W * W, rest}}, {0, 2, {3 * W + 2 + W * W, rest}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct grt_share *share = share_of(l, 0, 1, 1, rows[i].bytes);
        assert_int_equal(grt_share_pieces(share), rows[i].pieces);
        assert_int_equal(grt_share_tell(share, 0)->count, rows[i].pieces - 1);
        // A step without samples: all gradients are 0.
        assert_true(grt_share_begin(share) && grt_share_leaf(share, 0, NULL));
        assert_true(grt_share_wait(share) && grt_share_passed(share));
        for (uint32_t k = 0; k < rows[i].pieces; k++) {
            struct grt_share_piece piece;
            assert_true(grt_share_take(share, k, &piece));
            assert_int_equal(piece.count, rows[i].counts[k]);
            for (uint64_t n = 0; n < piece.count; n++) {
                assert_true(piece.down[n] == 0);
            }
        }
        grt_share_destroy(&share);
    }
    grt_learner_destroy(&l);
}

// Sums that wait at once, of a run by hand: a tree of 8 has two before its last, and a run that
// begins in the middle keeps what it cannot join.
static void memory(void **state) {
    (void)state;
    const struct {
        uint32_t first, leaves, sums;
    } rows[] = {{0, 1, 0}, {0, 2, 1}, {0, 3, 1}, {0, 4, 2}, {0, 8, 3}, {1, 2, 1},
                {1, 3, 2}, {1, 4, 2}, {3, 3, 2}, {2, 2, 1}, {5, 1, 0}, {0, 16, 4}};
    for (int kept = 0; kept < 2; kept++) {
        struct grt_learner_desc desc = centre_learner(&alone);
        static const struct grt_mlp_desc mlp = {.depth = 1, .hidden = 7, .outputs = 2};
        if (!kept) {
            desc.make = grt_mlp_make;
            desc.of = &mlp;
        }
        struct grt_learner *l = grt_learner_create(test.dev, &desc);
        assert_non_null(l);
        uint64_t buffers = kept ? l->params.buffer_elements : 0;
        assert_int_equal(buffers > 0, kept);
        // Squares, parts of two losses, and what modules keep.
        uint64_t one = (GRT_NORM_PARTS + 2 * GRT_LOSS_PARTS + buffers) * 4;
        uint64_t at = grt_dev_align_up(test.dev, one);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            assert_int_equal(grt_share_bytes(l, rows[i].first, rows[i].leaves),
                             at + (kept ? grt_tensor_bytes(l->params.buffer) : 0) +
                                 rows[i].sums * (at + l->params.elements * 4));
        }
        grt_learner_destroy(&l);
    }
}

static void put_all(const struct grt_tensor *t, float from) {
    uint64_t count = grt_tensor_count(t);
    float *numbers = test_alloc(count * sizeof *numbers);
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = from + (float)i;
    }
    assert_true(grt_buf_write(t->range.buf, t->range.offset, numbers, count * sizeof *numbers));
    free(numbers);
}

static void check_all(const struct grt_tensor *t, float from, float step) {
    float *numbers = learn_read(t);
    for (uint64_t i = 0; i < grt_tensor_count(t); i++) {
        assert_true(numbers[i] == from + step * (float)i);
    }
    free(numbers);
}

// Parts of weights are shared like parts of losses, and begin as nothing.
static void weights(void **state) {
    (void)state;
    struct grt_learner_desc desc = centre_learner(&alone);
    desc.sample_weights = true;
    struct grt_learner *l = begin(&desc);
    enum {
        PARTS = 2 * GRT_LOSS_PARTS,
        LOSS = GRT_NORM_PARTS,
        MASS = LOSS + PARTS,
        KEPT = MASS + PARTS
    };
    assert_non_null(l->mass);
    const struct grt_tensor *kept = grt_learner_tensor(l, GRT_TENSOR_BUFFER, 0, NULL);
    struct grt_share *share = share_of(l, 0, 1, 1, 0);
    for (int again = 0; again < 2; again++) {
        put_all(l->loss_parts, 5);
        put_all(l->mass, 6);
        put_all(kept, 3);
        assert_true(grt_share_begin(share) && grt_dev_wait(test.dev));
        check_all(l->loss_parts, 0, 0);
        check_all(l->mass, 0, 0);
        check_all(kept, 3, 1);
        // As a micro-batch leaves them.
        struct grt_graph *graph = grt_graph_create(test.dev, "made up");
        grt_graph_tell(graph, grt_share_tell(share, 0));
        grt_graph_fill(graph, l->params.grad->range, test_as_u32(2));
        assert_true(grt_graph_bake(graph));
        put_all(l->loss_parts, 1000);
        put_all(l->mass, 2000);
        put_all(kept, 3000);
        assert_true(grt_share_leaf(share, 0, graph));
        struct grt_share_piece piece;
        assert_int_equal(grt_share_pieces(share), 2);
        assert_true(grt_share_take(share, 0, &piece));
        for (uint64_t n = 0; n < piece.count; n++) {
            assert_true(piece.down[n] == 2);
            piece.up[n] = 4;
        }
        assert_true(grt_share_give(share, 0));
        assert_true(grt_share_take(share, 1, &piece));
        assert_int_equal(piece.count, KEPT + CENTRE_WIDTH);
        for (uint32_t n = 0; n < PARTS; n++) {
            assert_true(piece.down[LOSS + n] == 1000 + (float)n);
            assert_true(piece.down[MASS + n] == 2000 + (float)n);
        }
        for (uint32_t n = 0; n < CENTRE_WIDTH; n++) {
            assert_true(piece.down[KEPT + n] == 3000 + (float)n);
        }
        for (uint64_t n = 0; n < piece.count; n++) {
            piece.up[n] = n < LOSS ? 0.5f : 4 * piece.down[n];
        }
        // The mean of what four micro-batches keep, and the sum of all squares.
        assert_int_equal((int)grt_share_settle(share, 4), GRT_NORM_PARTS / 2);
        check_all(kept, 3, 1);  // as it was before the step, until then
        assert_true(grt_share_give(share, 1) && grt_dev_wait(test.dev));
        check_all(l->loss_parts, 4000, 4);
        check_all(l->mass, 8000, 4);
        check_all(kept, 3000, 1);
        const struct grt_tensor *bias = grt_learner_tensor(l, GRT_TENSOR_GRAD, 1, NULL);
        check_all(bias, 4, 0);
        grt_graph_destroy(&graph);
    }
    grt_share_destroy(&share);
    grt_learner_destroy(&l);
}

// A step that is given up in the middle of a micro-batch leaves what modules keep as it was; where
// they keep nothing there is nothing to do. The next step is whole.
static void given_up(void **state) {
    (void)state;
    const struct grt_learner_desc desc = centre_learner(&alone);
    struct grt_learner *l = begin(&desc);
    const struct grt_tensor *kept = grt_learner_tensor(l, GRT_TENSOR_BUFFER, 0, NULL);
    struct grt_share *share = share_of(l, 0, 2, 1, 0);
    for (int again = 0; again < 2; again++) {
        float from = again ? 70 : 7;
        put_all(kept, from);
        assert_true(grt_share_begin(share) && grt_share_leaf(share, 0, NULL));
        assert_true(grt_dev_wait(test.dev));
        check_all(kept, from, 1);
        put_all(kept, -5);
        assert_true(grt_share_undo(share) && grt_dev_wait(test.dev));
        check_all(kept, from, 1);
        // From the beginning: what the first half had left is not in it.
        assert_true(grt_share_begin(share) && grt_share_leaf(share, 0, NULL) &&
                    grt_share_leaf(share, 1, NULL));
        struct grt_share_piece piece;
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(grt_share_take(share, i, &piece));
            for (uint64_t n = 0; n < piece.count; n++) {
                assert_true(piece.down[n] == 0);
            }
        }
    }
    grt_share_destroy(&share);
    grt_learner_destroy(&l);
    static const struct grt_mlp_desc mlp = {.depth = 1, .hidden = 7, .outputs = 2};
    struct grt_learner_desc bare = centre_learner(&alone);
    bare.make = grt_mlp_make;
    bare.of = &mlp;
    l = begin(&bare);
    share = share_of(l, 0, 2, 1, 0);
    assert_true(grt_share_begin(share) && grt_share_undo(share));
    grt_share_destroy(&share);
    grt_learner_destroy(&l);
}

// A tensor to a place of a host buffer and back: how many bytes, and nothing beside them.
static void copies(void **state) {
    (void)state;
    struct test_tensor t = test_tensor(test.dev, GRT_F32, 5, 3);
    struct grt_buf *down = test_buf(test.dev, 200, GRT_BUF_READBACK);
    struct grt_buf *up = test_buf(test.dev, 200, GRT_BUF_UPLOAD);
    float numbers[15], *host = grt_buf_host(down), *back = grt_buf_host(up);
    for (int i = 0; i < 15; i++) {
        numbers[i] = (float)i;
    }
    for (int i = 0; i < 50; i++) {
        host[i] = -1;
        back[i] = (float)(100 + i);
    }
    test_tensor_write(&t, numbers);
    struct grt_graph *graph = grt_graph_create(test.dev, "down");
    assert_int_equal(grt_share_copy(graph, &t.tensor, down, 16, true), 60);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    for (int i = 0; i < 50; i++) {
        assert_true(host[i] == (i >= 4 && i < 19 ? (float)(i - 4) : -1));
    }
    graph = grt_graph_create(test.dev, "up");
    assert_int_equal(grt_share_copy(graph, &t.tensor, up, 8, false), 60);
    assert_true(grt_graph_finish(graph));
    grt_graph_destroy(&graph);
    test_tensor_read(&t, numbers);
    for (int i = 0; i < 15; i++) {
        assert_true(numbers[i] == (float)(102 + i));
    }
    grt_buf_destroy(&down);
    grt_buf_destroy(&up);
    test_tensor_end(&t);
}

static const struct CMUnitTest cases[] = {
    REF_CASE(runs),    REF_CASE(buckets),  REF_CASE(memory),
    REF_CASE(weights), REF_CASE(given_up), REF_CASE(copies),
};
TEST_SUITE(sharelimits, false, cases);
