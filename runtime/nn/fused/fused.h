// SPDX-License-Identifier: Apache-2.0
// Fused steps: forward, loss, backward and weight gradients of a network and a loss as one op. A
// row of a table for each family of networks that has one; a network that no row takes goes layer
// by layer.
#ifndef GRT_NN_FUSED_H
#define GRT_NN_FUSED_H

#include "gpurt/loss.h"
#include "gpurt/module.h"

struct grt_fused_desc {
    const struct grt_module *module;
    struct grt_shape input;  // of a sample
    enum grt_loss loss;
    float delta;
    enum grt_dtype dtype;
    uint64_t rows;
    bool ordered;                     // rows of x by their numbers
    uint64_t tiles_for;               // see mlp_fused.h
    const struct grt_params *params;  // the module's, from the first on

    // What is below only grt_op_fused() looks at: see mlp_fused.h.
    const struct grt_tensor *x, *target, *y;
    bool add;
    uint64_t samples;
    struct grt_range parts, state, scratch, order;
    uint32_t order_first, order_ahead;
    bool phases;
};

// Whether there is such an op here, and, unless `any` will do, it is the better choice.
bool grt_fused_usable(struct grt_dev *dev, const struct grt_fused_desc *desc, bool any);
// The kernels that do it, "chain" or "mma"; NULL: there are none.
const char *grt_fused_kernels(struct grt_dev *dev, const struct grt_fused_desc *desc);
uint64_t grt_fused_scratch(struct grt_dev *dev, const struct grt_fused_desc *desc);
// Where the op leaves parts of the gradients' sum of squares.
struct grt_range grt_fused_norms(struct grt_dev *dev, const struct grt_fused_desc *desc,
                                 uint32_t *count);
void grt_op_fused(struct grt_graph *graph, const struct grt_fused_desc *desc);
// The way forward alone: y of x, without a scratch. Whether there is such an op, and it is the
// better choice; `judged`: for grt_op_fused_judge().
bool grt_fused_forward_usable(struct grt_dev *dev, const struct grt_fused_desc *desc, bool judged);
void grt_op_fused_forward(struct grt_graph *graph, const struct grt_fused_desc *desc);
// To the losses, see grt_op_mlp_judge().
uint32_t grt_op_fused_judge(struct grt_graph *graph, const struct grt_fused_desc *desc);
uint64_t grt_fused_judge_numbers(uint64_t rows);
// How many numbers it leaves, see grt_mlp_judge_blocks().
uint32_t grt_fused_judge_blocks(struct grt_dev *dev, const struct grt_fused_desc *desc,
                                bool filled);

#endif
