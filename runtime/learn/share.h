// SPDX-License-Identifier: Apache-2.0
// What the micro-batches of a step come to, as numbers that a host adds up over several learners:
//
//     gradients | parts of the loss | what modules keep (running statistics) | squares | weight
//
// The first two are means over samples: each micro-batch counts by its share of the step's. With
// class weights they are means by the weights of the targets: each counts by the sum of its own,
// which is added up too, and the sum over all is divided by. The squares are those of the
// gradients' lengths, one sum over all micro-batches. What modules keep is a mean over
// micro-batches, each of which begins with what was kept before the step.
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

struct grt_share *grt_share_create(struct grt_learner *learner);
void grt_share_destroy(struct grt_share **share);
// f32 numbers of all of it.
uint64_t grt_share_count(const struct grt_share *share);

// Before the first micro-batch of a step.
bool grt_share_begin(struct grt_share *share);
// A step that is given up: modules keep what they kept before it.
bool grt_share_undo(struct grt_share *share);
// Behind the gradients of `rows` samples, of which the step has `all`: waits and reads.
bool grt_share_take(struct grt_share *share, uint32_t rows, uint32_t all, float *numbers);
// Of such a sum over all micro-batches: the sum of the squares of their gradients' lengths, and the
// square of the length of the gradient of the step.
void grt_share_lengths(const struct grt_share *share, const float *numbers, double *each,
                       double *whole);
// Before the update: the sum of what was taken of `count` micro-batches.
bool grt_share_give(struct grt_share *share, uint32_t count, const float *numbers);

#ifdef __cplusplus
}
#endif
#endif
