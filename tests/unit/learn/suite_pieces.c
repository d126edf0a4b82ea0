// SPDX-License-Identifier: Apache-2.0
// What several learners share: sums over micro-batches in the order of a tree, and the pieces that
// are exchanged and given back.
#include "kits/centre_kit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learner_parts.h"
#include "learn/share.h"

static const struct centre_shape alone = {false, 2}, behind = {true, 2};

#define GRADS (2 * CENTRE_WIDTH + 2)
#define LOSSES (2 * GRT_LOSS_PARTS)  // of two micro-batches of 5 samples
#define SHARED (GRADS + LOSSES + CENTRE_WIDTH)
#define REST (GRT_NORM_PARTS + LOSSES + CENTRE_WIDTH)
#define LEAVES 4

// The tensors of the learner one behind the other.
static void listed(struct grt_learner *l, const struct grt_tensor *tensors[4]) {
    tensors[0] = grt_learner_tensor(l, GRT_TENSOR_GRAD, 0, NULL);
    tensors[1] = grt_learner_tensor(l, GRT_TENSOR_GRAD, 1, NULL);
    tensors[2] = l->loss_parts;
    tensors[3] = grt_learner_tensor(l, GRT_TENSOR_BUFFER, 0, NULL);
}

// To them, or from them.
static void move(struct grt_learner *l, float *numbers, bool to) {
    const struct grt_tensor *tensors[4];
    listed(l, tensors);
    assert_true(grt_dev_wait(test.dev));
    for (size_t i = 0; i < 4; i++) {
        const struct grt_range *r = &tensors[i]->range;
        uint64_t bytes = grt_tensor_bytes(tensors[i]);
        assert_true(to ? grt_buf_write(r->buf, r->offset, numbers, bytes)
                       : grt_buf_read(r->buf, r->offset, numbers, bytes));
        numbers += bytes / 4;
    }
}

// A graph that leaves made-up numbers as a micro-batch would; `parts` of the loss alone.
static struct grt_graph *made_up(struct grt_learner *l, struct grt_buf *from, uint32_t parts,
                                 const struct grt_graph_tell *tell) {
    struct grt_graph *graph = grt_graph_create(test.dev, "made up");
    const struct grt_tensor *tensors[4];
    uint64_t at = 0;
    listed(l, tensors);
    for (size_t i = 0; i < 4; i++) {
        struct grt_range to = tensors[i]->range;
        uint64_t bytes = grt_tensor_bytes(tensors[i]);
        to.size = i == 2 ? parts * 4 : bytes;
        grt_graph_copy(graph, to, (struct grt_range){from, at, to.size});
        at += bytes;
    }
    if (tell) {
        grt_graph_tell(graph, tell);
    }
    assert_true(grt_graph_bake(graph));
    return graph;
}

// Made-up numbers of three micro-batches and of one without samples, of which the tree is known to
// the bit; the second has one part of two of the loss. What modules keep is as before the step when
// the sums are there, and the mean of what three micro-batches made of it when they were given.
struct made {
    float before[SHARED], leaf[LEAVES][SHARED], sum[SHARED];
    double squares;
};

static struct made *make_up(void) {
    struct made *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (uint32_t i = 0; i < SHARED; i++) {
        m->before[i] = learn_number(1, i);
        for (uint32_t k = 0; k < LEAVES - 1; k++) {
            bool there = k != 1 || i < GRADS + GRT_LOSS_PARTS || i >= GRADS + LOSSES;
            m->leaf[k][i] = there ? learn_number(2 + k, i) : 0;
            m->squares += i < GRADS ? (double)m->leaf[k][i] * (double)m->leaf[k][i] : 0;
        }
        float left = m->leaf[0][i] + m->leaf[1][i], right = m->leaf[2][i] + m->leaf[3][i];
        m->sum[i] = left + right;
    }
    return m;
}

// One step of four micro-batches, the last of which is empty, up to where the host has the pieces.
static void run_leaves(struct grt_learner *l, struct grt_share *share, struct made *m) {
    struct grt_buf *from =
        grt_buf_create(test.dev, grt_buf_desc(.size = sizeof m->leaf[0], .kind = GRT_BUF_UPLOAD));
    assert_non_null(from);
    move(l, m->before, true);
    assert_true(grt_share_begin(share));
    for (uint32_t k = 0; k < LEAVES; k++) {
        struct grt_graph *graph = NULL;
        if (k < LEAVES - 1) {
            graph = made_up(l, from, k == 1 ? GRT_LOSS_PARTS : LOSSES, grt_share_tell(share, k));
            memcpy(grt_buf_host(from), m->leaf[k], sizeof m->leaf[k]);
        }
        assert_true(grt_share_leaf(share, k, graph));
        assert_true(grt_dev_wait(test.dev));
        grt_graph_destroy(&graph);
    }
    grt_buf_destroy(&from);
}

static void shared(void **state) {
    (void)state;
    struct grt_learner_desc desc = centre_learner(&alone);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_non_null(learner);
    assert_true(grt_learner_alloc(learner));
    struct made *m = make_up();
    // Buckets of one tensor each: the last tensor is the first piece. And a learner by itself.
    for (uint32_t others = 0; others < 2; others++) {
        struct grt_share *share = grt_share_create(&(struct grt_share_desc){
            .learner = learner, .leaves = LEAVES, .others = others, .bucket = 4});
        assert_non_null(share);
        const uint32_t counts[] = {2, 2 * CENTRE_WIDTH, REST}, first[] = {2 * CENTRE_WIDTH, 0, 0};
        uint32_t pieces = grt_share_pieces(share), skipped = others ? 0 : 2;
        assert_int_equal(pieces, 3 - skipped);
        for (int again = 0; again < 2; again++) {
            float found[SHARED];
            run_leaves(learner, share, m);
            move(learner, found, false);
            assert_memory_equal(found + GRADS + LOSSES, m->before + GRADS + LOSSES,
                                CENTRE_WIDTH * 4);
            for (uint32_t i = 0; i < pieces && i + skipped < 3; i++) {
                struct grt_share_piece piece = {0};
                bool rest = i + 1 == pieces;
                assert_true(grt_share_take(share, i, &piece));
                assert_int_equal(piece.count, counts[i + skipped]);
                const float *want = rest ? m->sum + GRADS : m->sum + first[i];
                const float *got = rest ? piece.down + GRT_NORM_PARTS : piece.down;
                uint64_t count = rest ? LOSSES + CENTRE_WIDTH : piece.count;
                assert_memory_equal(got, want, count * 4);
                for (uint64_t k = 0; k < piece.count; k++) {
                    piece.up[k] = 3 * piece.down[k];  // what ranks together would come to
                }
                if (rest) {
                    double squares = grt_share_settle(share, 3);
                    assert_true(fabs(squares - 3 * m->squares) < 1e-5 * m->squares);
                }
                assert_true(grt_share_give(share, i));
            }
            move(learner, found, false);
            for (uint32_t i = 0; i < SHARED; i++) {
                bool kept = i >= GRADS + LOSSES, given = others || i >= GRADS;
                float want = given ? 3 * m->sum[i] : m->sum[i];
                assert_true(found[i] == (kept ? want / 3 : want));
            }
        }
        grt_share_destroy(&share);
        assert_null(share);
    }
    TEST_REFUSED(grt_share_create(&(struct grt_share_desc){.learner = learner, .leaves = 3}),
                 GRT_INVALID, "power of two");
    free(m);
    grt_learner_destroy(&learner);
}

// Numbers of each subtree of micro-batches 1 to 4 of a larger tree: 1, (2 + 3), 4, which is empty.
static float of_subtree(const struct made *m, uint32_t k, uint32_t i) {
    return k == 0 ? m->leaf[0][i] : k == 1 ? m->leaf[1][i] + m->leaf[2][i] : 0;
}

// A run that is no subtree of the tree: the sums of its subtrees, one behind the other, and the
// update sees what is given.
static void shared_run(void **state) {
    (void)state;
    struct grt_learner_desc desc = centre_learner(&alone);
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_true(learner && grt_learner_alloc(learner));
    struct made *m = make_up();
    const uint32_t counts[] = {2, 2 * CENTRE_WIDTH, REST}, first[] = {2 * CENTRE_WIDTH, 0, GRADS};
    for (uint32_t beside = 0; beside < 2; beside++) {
        struct grt_share *share = grt_share_create(&(struct grt_share_desc){.learner = learner,
                                                                            .first = 1,
                                                                            .leaves = LEAVES,
                                                                            .others = 1,
                                                                            .bucket = 4,
                                                                            .beside = beside});
        assert_non_null(share);
        assert_int_equal(grt_share_pieces(share), 3);
        for (int again = 0; again < 2; again++) {
            float found[SHARED];
            double squares = 0;
            run_leaves(learner, share, m);
            for (uint32_t i = 0; i < 3; i++) {
                struct grt_share_piece piece = {0};
                uint32_t skipped = i == 2 ? GRT_NORM_PARTS : 0;
                assert_true(grt_share_take(share, i, &piece));
                assert_int_equal(piece.count, counts[i]);
                for (uint32_t k = 0; k < 3; k++) {
                    const float *got = piece.down + k * piece.count;
                    for (uint32_t n = 0; n < piece.count; n++) {
                        bool known = n >= skipped;
                        squares += known ? 0 : (double)got[n];
                        assert_true(!known || got[n] == of_subtree(m, k, first[i] + n - skipped));
                    }
                }
                for (uint64_t n = 0; n < piece.count; n++) {
                    piece.up[n] = (float)n;
                }
                if (i == 2) {
                    grt_share_settle(share, 1);
                }
                assert_true(grt_share_give(share, i));
            }
            assert_true(fabs(squares - m->squares) < 1e-5 * m->squares);
            move(learner, found, false);
            for (uint32_t n = 0; n < SHARED; n++) {
                uint32_t piece = n < 2 * CENTRE_WIDTH ? 1 : n < GRADS ? 0 : 2;
                float skipped = piece == 2 ? GRT_NORM_PARTS : 0;
                assert_true(found[n] == (float)(n - first[piece]) + skipped);
            }
        }
        grt_share_destroy(&share);
    }
    free(m);
    grt_learner_destroy(&learner);
}

// linear, batch norm, relu, linear.
static struct grt_module *make_normed(const void *of) {
    (void)of;
    struct grt_module *parts[] = {grt_linear_create(grt_linear_desc(.outputs = CENTRE_WIDTH)),
                                  grt_batch_norm_create(NULL), grt_activation_create(GRT_ACT_RELU),
                                  grt_linear_create(grt_linear_desc(.outputs = 2))};
    return grt_sequence_create(parts, 4);
}

// What other learners have is three times what this one has, so that sums are exact.
static void exchange_with_like(struct grt_share *share) {
    uint32_t pieces = grt_share_pieces(share);
    for (uint32_t i = 0; i < pieces; i++) {
        struct grt_share_piece piece;
        assert_true(grt_share_take(share, i, &piece));
        for (uint64_t n = 0; n < piece.count; n++) {
            piece.up[n] = 4 * piece.down[n];
        }
        if (i + 1 == pieces) {
            grt_share_settle(share, 8);
        }
        assert_true(grt_share_give(share, i));
    }
}

// Backward of a batch norm reads the gradients of its weight and bias: the bucket that has them is
// added up behind that. So two micro-batches of the same samples come to twice the gradients of
// one, to the bit; and to eight times, of four such learners, whichever way they are copied.
static void share_with_norm(const struct grt_share_desc *others) {
    const struct network_case c = {"", {NULL, 1, CENTRE_WIDTH, "mse", 0}, 2, 0, true};
    struct network_samples s = network_samples_make(&c, GRT_F32);
    struct grt_learner_desc desc = centre_learner(&behind);
    desc.make = make_normed;
    desc.accumulate = 1;
    struct grt_learner *learner = grt_learner_create(test.dev, &desc);
    assert_true(learner && grt_learner_alloc(learner));
    struct grt_share_desc with = *others;
    with.learner = learner;
    with.leaves = 2;
    with.bucket = 4;  // of a parameter each
    struct grt_share *share = grt_share_create(&with);
    assert_non_null(share);
    assert_int_equal(grt_share_pieces(share), with.others > 0 ? 7 : 1);
    float times = with.others > 0 ? 8 : 2;
    struct grt_graph *leaves[2];
    for (uint32_t k = 0; k < 2; k++) {
        leaves[k] = grt_learner_gradients(learner, grt_step_desc(.x = {s.bx}, .y = {s.by},
                                                                 .rows = NETWORK_SAMPLES,
                                                                 .samples = 2 * NETWORK_SAMPLES,
                                                                 .tell = grt_share_tell(share, k)));
        assert_non_null(leaves[k]);
    }
    enum { TENSORS = 6 };
    const struct grt_tensor *grad;
    float *once[TENSORS];
    learn_run(leaves[0], 1);
    for (uint32_t i = 0; i < TENSORS; i++) {
        grad = grt_learner_tensor(learner, GRT_TENSOR_GRAD, i, NULL);
        assert_non_null(grad);
        once[i] = learn_read(grad);
    }
    assert_null(grt_learner_tensor(learner, GRT_TENSOR_GRAD, TENSORS, NULL));
    for (uint32_t again = 0; again < 2; again++) {
        assert_true(grt_share_begin(share));
        for (uint32_t k = 0; k < 2; k++) {
            assert_true(grt_share_leaf(share, k, leaves[k]));
        }
        if (with.others > 0) {
            exchange_with_like(share);
        }
        for (uint32_t i = 0; i < TENSORS; i++) {
            grad = grt_learner_tensor(learner, GRT_TENSOR_GRAD, i, NULL);
            float *sum = learn_read(grad);
            bool any = false;
            for (uint64_t n = 0; n < grt_tensor_count(grad); n++) {
                assert_true(sum[n] == times * once[i][n]);
                any |= sum[n] != 0;
            }
            assert_true(any);
            free(sum);
        }
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        free(once[i]);
    }
    for (uint32_t k = 0; k < 2; k++) {
        grt_graph_destroy(&leaves[k]);
    }
    grt_share_destroy(&share);
    grt_learner_destroy(&learner);
    network_samples_end(&s);
}

static void shared_with_norm(void **state) {
    (void)state;
    share_with_norm(&(struct grt_share_desc){.others = 0});
    share_with_norm(&(struct grt_share_desc){.others = 3});
    share_with_norm(&(struct grt_share_desc){.others = 3, .beside = true});
}

static const struct CMUnitTest cases[] = {TEST_CASE(shared), TEST_CASE(shared_run),
                                          TEST_CASE(shared_with_norm)};
TEST_SUITE(pieces, true, cases);
