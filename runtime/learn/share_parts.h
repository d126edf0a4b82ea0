// SPDX-License-Identifier: Apache-2.0
// A share from within.
//
//     share_graphs.c   what copies gradients, adds them up and gives them back, recorded once
//     share.c          memory and buckets, and the calls of a step
#ifndef GRT_LEARN_SHARE_PARTS_H
#define GRT_LEARN_SHARE_PARTS_H

#include "base/pile.h"
#include "learner_parts.h"
#include "share.h"

// A piece: parameters that lie side by side, or, behind all buckets, the rest.
struct bucket {
    uint32_t first, end;      // parameters
    struct grt_tensor range;  // of their gradients, with what is between
    uint64_t at, count;       // numbers in the host's memory: how they lie on a device is its own
    struct grt_graph *take, *give;
    struct grt_graph *fetch;  // beside compute, from `out`; NULL: `take` brings it to `down`
    struct grt_buf *out;      // beside compute: what it reads
    uint64_t mark;            // behind which it is taken
    uint64_t fetched;         // beside compute: behind which `down` has it; 0: not begun
};

// Sums of micro-batches that wait for their neighbours: gradients as the parameters lie, and rests.
struct level {
    struct grt_buf *buf;
    struct grt_tensor grads, rest;
};

struct grt_share {
    struct grt_learner *learner;
    struct grt_dev *dev;
    uint32_t first, leaves;  // of the tree of all learners
    uint32_t subtrees;       // of them, the last of which has the last micro-batch
    bool alone, beside;      // beside: copies run so
    uint64_t kept;           // numbers of the rest that modules keep: its last ones
    uint32_t bucket_count;
    struct bucket *buckets;    // and behind them the rest
    struct grt_range *ranges;  // of the buckets' gradients
    struct grt_graph_tell tell;
    struct grt_buf *down, *up, *before;
    // Where copies run beside compute: what they write, as the gradients lie, since two queues may
    // not have one buffer at a time (OpenCL); what they read is a buffer of each bucket. NULL:
    // copies are between steps of compute.
    struct grt_buf *in;
    struct grt_graph *settle;            // from `in` to the gradients
    uint64_t given;                      // beside compute: behind which `in` has all
    float *rest;                         // what is given of it: uploads are slow to read
    float *taken;                        // what is taken of it, packed
    struct level own;                    // the rest of the micro-batch that is on its way
    struct level levels[GRT_PILE_MOST];  // of the pile of those before, as many as it is high
    uint32_t height;
    struct grt_graph *undo;              // or NULL
    struct grt_graph *begin, *empty[2];  // of a micro-batch before the last, and of that
    struct grt_graph **keep;             // of each micro-batch before the last
};

// Numbers of the rest as learners exchange it, of them those that modules keep, and numbers of it
// as it lies on a device, which is that device's own.
uint64_t grt_share_rest(const struct grt_learner *l);
uint64_t grt_share_kept(const struct grt_learner *l);
uint64_t grt_share_wide(const struct grt_learner *l);
// Between both, on the host.
void grt_share_pack(const struct grt_learner *l, const float *wide, float *packed);
void grt_share_spread(const struct grt_learner *l, const float *packed, float *wide);
// The pile of the micro-batches before this one, and how many of its sums this one is added to.
uint32_t grt_share_pile(const struct grt_share *s, uint32_t leaf, struct grt_pile *pile);
// All graphs of a share whose memory is there; false with the sentence.
bool grt_share_graphs(struct grt_share *s);

#endif
