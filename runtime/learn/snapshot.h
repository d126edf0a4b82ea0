// SPDX-License-Identifier: Apache-2.0
// Snapshots: what a learner holds at a place of the queue, for a host that reads behind the device
// instead of waiting for it.
//
//     main lane   | steps | take 0 | steps | take 1 | steps | ...
//     host            queues ...       wait 0, reads it       wait 1, ...
//
// A few slots hold the state and the newest rows of the history. Parameters, buffers and what the
// optimizer keeps go to one place, for checkpoints: there is one such snapshot at a time.
#ifndef GRT_NN_SNAPSHOT_H
#define GRT_NN_SNAPSHOT_H

#include "gpurt/learner.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_SNAPSHOT_SLOTS 4

struct grt_snapshot;

struct grt_snapshot *grt_snapshot_create(struct grt_learner *learner);
void grt_snapshot_destroy(struct grt_snapshot **snapshot);

// Queues it behind all that was queued; `whole`: with the tensors. What the slot held is gone.
bool grt_snapshot_take(struct grt_snapshot *snapshot, uint32_t slot, bool whole);
// Waits until the device has come to it.
bool grt_snapshot_wait(struct grt_snapshot *snapshot, uint32_t slot);

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
const void *grt_snapshot_tensor(const struct grt_snapshot *snapshot,
                                const struct grt_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
