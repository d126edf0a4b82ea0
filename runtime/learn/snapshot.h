// SPDX-License-Identifier: Apache-2.0
// Snapshots: what a learner holds at a place of the queue, for a host that reads behind the device
// instead of waiting for it.
//
//     main lane   | steps | take 0 | steps | take 1 | steps | ...
//     beside it                   | send 0 |        | send 1 | ...
//     host            queues ...       wait 0, reads it       wait 1, ...
//
// A few slots hold the state and the newest rows of the history. Parameters, buffers and what the
// optimizer keeps, the whole, go to a place of their own, for checkpoints. One or two such
// snapshots are on their way at a time; those before may be lent to who writes them. Small ones
// are put aside on a GPU, and sent to the host while the next step runs.
#ifndef GRT_NN_SNAPSHOT_H
#define GRT_NN_SNAPSHOT_H

#include "gpurt/learner.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_SNAPSHOT_SLOTS 4

struct grt_snapshot;

// `beside`: small ones are sent beside the steps where the device has a queue for that.
struct grt_snapshot *grt_snapshot_create(struct grt_learner *learner, bool beside);
void grt_snapshot_destroy(struct grt_snapshot **snapshot);

// How many whole ones may be on their way: taken, and not waited for.
uint32_t grt_snapshot_most(const struct grt_snapshot *snapshot);
// Queues it behind all that was queued; `whole`: with the tensors. What the slot held is gone, and
// the newest whole unless that is lent.
bool grt_snapshot_take(struct grt_snapshot *snapshot, uint32_t slot, bool whole);
// Waits until the host has it. A whole one is the newest then.
bool grt_snapshot_wait(struct grt_snapshot *snapshot, uint32_t slot);
// Nobody will wait for those on their way.
void grt_snapshot_forget(struct grt_snapshot *snapshot);

// Whether it has; does not wait.
bool grt_snapshot_passed(const struct grt_snapshot *snapshot, uint32_t slot);

// After the wait, until the slot is taken again:
const struct grt_learn_state *grt_snapshot_state(const struct grt_snapshot *snapshot,
                                                 uint32_t slot);
// The row of a step, one of the newest GRT_HISTORY.
struct grt_learn_row grt_snapshot_row(const struct grt_snapshot *snapshot, uint32_t slot,
                                      uint32_t step);
// The numbers of a tensor of the learner (PARAM, BUFFER, OPTIM, AVERAGE) in the newest whole
// snapshot; NULL when it is none of these.
void *grt_snapshot_tensor(const struct grt_snapshot *snapshot, const struct grt_tensor *tensor);
// Lends the newest whole snapshot: its numbers stay as they are until it is given back, by
// *give_back with the result, before the snapshots are destroyed. NULL where the next ones,
// grt_snapshot_most() of them, would have no places then: copy it.
void *grt_snapshot_lend(struct grt_snapshot *snapshot, void (**give_back)(void *lent));

#ifdef __cplusplus
}
#endif
#endif
