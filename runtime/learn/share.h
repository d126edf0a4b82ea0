// SPDX-License-Identifier: Apache-2.0
// What the micro-batches of a step come to, added up on the device in a tree, and its pieces in
// the host's memory, to be added up over several learners:
//
//     micro-batches   a   b   c   d       each is a share of the step's means: the graph of its
//     sums           (a + b) + (c + d)    gradients has .samples of the step (learner.h)
//
//     backward of d   | layer 3 | layer 2 | layer 1 |
//     pieces                    | 0       | 1       | 2, the rest
//     host, beside it             sum, give | ...
//
// The gradients are cut into buckets, those of the last layers first: a piece can be waited for,
// exchanged while backward is still on its way to the first layers. The last piece
// is the rest: squares of the gradients' lengths, parts of the loss, of weights, and what
// modules keep (running statistics). What they keep is a mean over micro-batches, each of which
// begins with what was kept before the step. A learner that shares with nobody has the rest alone.
#ifndef GRT_LEARN_SHARE_H
#define GRT_LEARN_SHARE_H

#include "gpurt/learner.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_share;

// Records the copy of a tensor of 4-byte numbers to a place of a host buffer, or back; how many
// bytes.
uint64_t grt_share_copy(struct grt_graph *graph, const struct grt_tensor *tensor,
                        struct grt_buf *host, uint64_t at, bool down);

struct grt_share_desc {
    struct grt_learner *learner;
    // Micro-batches of this learner, a run of the tree of all: alone a power of two, from 0 on.
    uint32_t first, leaves;
    uint32_t others;  // learners besides this one
    // Bytes of gradients from which on a bucket is full; 0: 4 MiB.
    uint64_t bucket;
    bool beside;  // copies run beside compute also where the device is a processor, for tests
};
// Bytes of device memory that it takes for such a run of micro-batches of a learner, which need not
// be allocated.
uint64_t grt_share_bytes(const struct grt_learner *learner, uint32_t first, uint32_t leaves);
struct grt_share *grt_share_create(const struct grt_share_desc *desc);
void grt_share_destroy(struct grt_share **share);

// Before the first micro-batch of a step.
bool grt_share_begin(struct grt_share *share);
// A step that is given up: modules keep what they kept before it.
bool grt_share_undo(struct grt_share *share);
// What the graph of the gradients of the last micro-batch is to tell; NULL for those before.
const struct grt_graph_tell *grt_share_tell(const struct grt_share *share, uint32_t leaf);
// Queues the graph of a micro-batch, and what adds it up. NULL: it has no samples.
bool grt_share_leaf(struct grt_share *share, uint32_t leaf, struct grt_graph *graph);

// Behind the last micro-batch: the pieces one by one. What `up` gets is what the update sees.
struct grt_share_piece {
    const float *down;  // as many sums as grt_comm_subtrees() says of the run, as comm.h has them
    float *up;
    uint64_t count;  // of numbers of each
};
uint32_t grt_share_pieces(const struct grt_share *share);
// Waits until the device has it.
bool grt_share_take(struct grt_share *share, uint32_t i, struct grt_share_piece *piece);
// Whether the device has all gradients of the last micro-batch.
bool grt_share_passed(const struct grt_share *share);
bool grt_share_wait(struct grt_share *share);  // until it has
// Sends it back, behind backward: what is queued from here on has it.
bool grt_share_give(struct grt_share *share, uint32_t i);
// Of the last piece, before it is given: what modules keep becomes the mean over so many
// micro-batches. Returns the sum of the squares of the micro-batches' gradients.
double grt_share_settle(struct grt_share *share, uint32_t leaves);

#ifdef __cplusplus
}
#endif
#endif
