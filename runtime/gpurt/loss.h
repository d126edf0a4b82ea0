// SPDX-License-Identifier: Apache-2.0
// Losses: the mean over a batch and its gradient with respect
// to what the model gave, in one kernel. Names, defaults and means are PyTorch's: over all
// elements, for cross-entropy over samples, for NT-Xent over rows.
//
// The kernel's workgroups leave partial sums; whoever finishes the step adds them in order. They
// are already shares of the mean: the loss of a step is the sum of the parts of all its
// micro-batches.
#ifndef GRT_NN_LOSS_H
#define GRT_NN_LOSS_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_LOSSES(X)                                                                              \
    X(MSE, "mse")                                                                                  \
    X(HUBER, "huber")                                                                              \
    X(CROSS_ENTROPY, "cross_entropy") /* y: logits; targets: u32 classes, one a sample */          \
    X(BCE, "bce")                     /* y: logits */                                              \
    X(L1, "l1")                                                                                    \
    X(NT_XENT, "nt_xent") /* y: two views of each sample; no targets */

enum grt_loss {
#define X(name, text) GRT_LOSS_##name,
    GRT_LOSSES(X)
#undef X
        GRT_LOSS_COUNT,
};
GRT_API const char *grt_loss_text(enum grt_loss loss);
// Whether it compares what the model gave with something that the data have.
GRT_API bool grt_loss_has_targets(enum grt_loss loss);

// One of several losses of a model: `cols` of its outputs, one behind the other, each with as many
// words of the target, or one that is the class.
#define GRT_LOSS_MOST 4
struct grt_loss_share {
    enum grt_loss loss;
    uint32_t cols;
    float scale;  // what its mean counts in the sum
};

#define GRT_LOSS_PARTS 128  // partial sums of one micro-batch: GRT_OP_PART_ALIGN bytes of them

struct grt_loss_desc {
    enum grt_loss loss;
    float delta;            // of Huber; 0 means 1
    float label_smoothing;  // of cross-entropy, as PyTorch's; below 1
    // Of cross-entropy: f32, one from 0 on for each class, and their sum; or NULL. Loss and
    // gradient are then to be divided by the mean weight: grt_op_weighted_mean(), when all
    // micro-batches are there.
    const struct grt_tensor *class_weights;
    float weight_sum;
    // Of cross-entropy without class weights: samples are mixed, each with the one before it, the
    // first with the last; the share of a sample itself, f32; or NULL.
    const struct grt_tensor *mix;
    const struct grt_tensor *y;       // [rows][outputs] f32
    const struct grt_tensor *target;  // like y; for cross-entropy u32 [rows]; NULL for NT-Xent
    // like y, f32, f16 or bf16: gradient times the loss scale; or NULL
    const struct grt_tensor *dy;
    uint64_t samples;        // that the mean is over; 0 means the rows of y
    struct grt_range parts;  // GRT_LOSS_PARTS f32, all written
    struct grt_range state;  // a struct grt_learn_state: its loss scale is read
    // Cross-entropy: beside each part the number of samples whose largest logit is the target, as
    // f32, GRT_LOSS_PARTS of them; or buf NULL, where dy is wanted.
    struct grt_range hits;
    // With weights of classes or samples: GRT_LOSS_PARTS f32, the weights as shares of their mean.
    struct grt_range mass;
    // Of NT-Xent: 0 means 0.5, at least GRT_LEAST_TEMPERATURE; the rows of a block, 0: all of them;
    // and grt_loss_scratch() bytes. In a block, which has an even number of rows and of which the
    // last may be shorter, the row half of it further is the other view of the same sample. All
    // other rows of all blocks are what it is told apart from.
    float temperature;
    uint64_t block;
    struct grt_range scratch;
    // Of NT-Xent: rows of y that are told apart from each other, 0: all; and those of them whose
    // losses and gradients are wanted, 0: all of them. Their pairs are among them too. The first
    // row of dy is that of row dy_first of y.
    struct grt_loss_rows {
        uint64_t first, count;
    } among, own;
    uint64_t dy_first;
    // The same for samples whose target is among the five largest logits; or buf NULL.
    struct grt_range near;
    // Targets of other losses or weights beside those of this one: the words of a row of `target`,
    // of whatever type, and the first that this one has; words 0: none besides.
    uint32_t words, word_first;
    // The last word of a row of targets is the weight of the sample, f32 from 0 on, by which loss,
    // gradient, hits and near are multiplied. Both are to be divided, as with class_weights.
    bool sampled;
    // Numbers of a row of y that the loss is of, from the first on; cols 0: all.
    uint32_t first, cols;
    float scale;  // what it counts among others, in loss and gradient; 0 means 1
};
// Exponents of f32 reach no further: exp(-2 / 0.025).
#define GRT_LEAST_TEMPERATURE 0.025
#define grt_loss_desc(...) GRT_DESC(struct grt_loss_desc, __VA_ARGS__)
GRT_API void grt_op_loss(struct grt_graph *graph, const struct grt_loss_desc *desc);
// Bytes that a loss of y [rows][cols] needs besides; 0 for most.
GRT_API uint64_t grt_loss_scratch(enum grt_loss loss, uint64_t rows, uint64_t cols);
// Divides gradients and `count` parts of a loss by the sum of as many parts of the targets'
// weights; by nothing, to 0, where that is 0: then the row of the step says so (optim.h).
GRT_API void grt_op_weighted_mean(struct grt_graph *graph, const struct grt_tensor *grads,
                                  const struct grt_tensor *state, struct grt_range losses,
                                  struct grt_range weights, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif
