// SPDX-License-Identifier: Apache-2.0
// The update that ends a training step, by itself: two parameters whose gradients the host writes.
#ifndef TEST_OPTIM_KIT_H
#define TEST_OPTIM_KIT_H

#include "harness/harness.h"
#include "gpurt/optim.h"

#define COUNT_A 37
#define COUNT_B 2107
#define COUNT (COUNT_A + COUNT_B)

struct rig {
    struct grt_plan *plan;
    struct grt_params params;
    struct grt_tensor *kept, *state, *history, *norm_parts, *loss_parts;
    struct grt_tensor *rates;              // of groups, or NULL
    struct grt_tensor *average, *lengths;  // with ema, of lars; or NULL
    struct grt_graph *graph;
    struct grt_optim_desc optim;
};

// In place: the graph keeps the address of the desc's optimizer only while it is recorded.
void rig_begin(struct rig *r, const struct grt_optim_desc *optim, enum grt_dtype type);
void rig_end(struct rig *r);
struct grt_learn_state rig_state(struct rig *r);
void rig_set(struct rig *r, float scale);
void rig_write_all(const struct grt_tensor *t, const void *data);
void rig_read_all(const struct grt_tensor *t, void *data);
// Numbers of both parameters one behind the other.
void rig_gather(struct rig *r, const struct grt_tensor *whole, uint64_t first, float *v);
void rig_set_grads(struct rig *r, const float *g);
void rig_step(struct rig *r);

// The defaults of a kind with a learning rate.
struct grt_optim_desc rig_desc(enum grt_optim kind, double lr);

#endif
