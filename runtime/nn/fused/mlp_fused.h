// SPDX-License-Identifier: Apache-2.0
// An MLP's forward pass, loss, backward pass and weight gradients in three launches, or two,
// whatever its depth:
//
//     pass     a workgroup takes a block of rows through all layers and back; leaves in scratch
//              what went into each layer and the gradient of what came out of it
//     grads    dW = d^T h of every layer, rows cut into parts, sums of each part in scratch
//     reduce   parts added in their order: gradients, and the loss
//
// Layer by layer the same takes four launches a layer, and each waits for memory. Which kernels do
// it is the first usable row of one table of variants: "chain" and "coop" (Vulkan's cooperative
// matrices; sums as operands of the next product, and KHR's alone), "mma" (OpenCL with PTX inside)
// for 16-bit products, "wgmma" (PTX, Hopper alone) for layers of 256 and 512 units, "plain" for f32
// on CPU drivers. "step" (PTX, Hopper alone), for layers to 64 units, has pass and grads in one
// launch. All activations and losses; "coop" and "step" have relu only.
//
// Same sums as layer by layer, to rounding; the same bits on every run. The first time that a
// variant would serve a model on a device it is checked, and left out where it computes wrong
// (mlp_check.c).
#ifndef GRT_NN_MLP_FUSED_H
#define GRT_NN_MLP_FUSED_H

#include "gpurt/loss.h"
#include "gpurt/module.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_mlp_fused_desc {
    struct grt_mlp_desc model;  // no residual, no layer norm; outputs at least 1
    enum grt_loss loss;
    float delta;           // of Huber; 0 means 1
    enum grt_dtype dtype;  // of what is multiplied: that of params->copy, or f32
    uint64_t rows;         // of x
    const char *variant;   // this row of the table only, for tests and measurements; or NULL
    uint64_t tiles_for;    // rows that tiles are chosen for, likewise; 0 means those of x
    // workgroups that a pass has at most where each takes several blocks of rows, likewise; 0 means
    // those that run at once
    uint32_t groups;
    bool ordered;  // x and target have all rows there are, and `order` says which are taken

    // Whether it is usable is known from what is above; the scratch also takes the parameters:
    // list[first + 2 l] is the weight of layer l, then comes its bias. The copy and the masters are
    // read, the gradients, still times the loss scale, are written.
    const struct grt_params *params;
    uint32_t first;

    // What is below only grt_op_mlp_fused() looks at.
    // [rows][inputs] f32; or, where rows are ordered, any number of them, and the same of targets
    const struct grt_tensor *x;
    struct grt_range order;  // u32: rows of x, those of this call from order_first on
    uint32_t order_first;
    uint32_t order_ahead;  // numbers behind these: rows of the next call, which may be asked for
    const struct grt_tensor *target;  // [rows][outputs] f32; for cross-entropy u32 [rows]
    const struct grt_tensor *y;       // out, [rows][outputs] f32; or NULL
    bool add;                         // to the gradients that are there
    uint64_t samples;                 // that the mean is over; 0 means the rows
    struct grt_range parts;           // of the loss, as in grt_loss_desc
    struct grt_range state;           // a struct grt_learn_state: its loss scale is read
    struct grt_range scratch;         // grt_mlp_fused_scratch() bytes
    bool phases;                      // times the pass as "forward", the rest as "backward"
};
#define grt_mlp_fused_desc(...) (&(struct grt_mlp_fused_desc){__VA_ARGS__})

// The variants that could do this on this device, best first: the i-th name, or NULL.
const char *grt_mlp_fused_variant(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                                  uint32_t i);
// Whether there is one, and it is the better choice here than layer by layer.
bool grt_mlp_fused_usable(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc);
// Bytes that the op needs until it is over; 0 when no variant can do it.
uint64_t grt_mlp_fused_scratch(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc);
// Where in its scratch the op leaves parts of the gradients' sum of squares, without the loss
// scale, for grt_op_update(), and how many.
struct grt_range grt_mlp_fused_norms(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                                     uint32_t *count);
void grt_op_mlp_fused(struct grt_graph *graph, const struct grt_mlp_fused_desc *desc);

// The way forward alone, one launch: y of x. Of what is below `params` it looks at these and the
// state. Whether it is to be had, and is the better choice.
// `judged`: for grt_op_mlp_judge().
bool grt_mlp_forward_usable(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                            bool judged);
void grt_op_mlp_forward(struct grt_graph *graph, const struct grt_mlp_fused_desc *desc);
// The same to the losses of the targets, summed over elements, in place of y: numbers into
// desc->parts, which are to be added up. Returns how many; at most grt_mlp_judge_numbers().
uint32_t grt_op_mlp_judge(struct grt_graph *graph, const struct grt_mlp_fused_desc *desc);
uint64_t grt_mlp_judge_numbers(uint64_t rows);
// How many it leaves, each of equally many rows, in their order, the last maybe of fewer; 0: there
// is no such op, a block has rows that are not neighbours, or, with `filled`, the last has fewer.
uint32_t grt_mlp_judge_blocks(struct grt_dev *dev, const struct grt_mlp_fused_desc *desc,
                              bool filled);

#ifdef __cplusplus
}
#endif
#endif
