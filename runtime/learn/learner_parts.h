// SPDX-License-Identifier: Apache-2.0
// Inside runtime/nn: a learner, and what its files share. learner.c makes it, learner_step.c
// records steps, learner_tensors.c lets the host look in, learner_nonfinite.c looks for what is not
// finite.
#ifndef GRT_NN_LEARNER_PARTS_H
#define GRT_NN_LEARNER_PARTS_H

#include "gpurt/learner.h"

struct grt_learner {
    struct grt_dev *dev;
    struct grt_learner_desc desc;  // accumulate filled in; variant points to what is below
    char variant[16];
    struct grt_plan *plan;
    struct grt_params params;
    struct grt_net net;
    struct grt_module *module;
    bool allocated;
    bool fused;
    bool exact;                 // the loss is over all micro-batches at once
    struct grt_whole whole;     // of such a loss; of this learner alone where nobody else shares it
    bool shared;                // it is over several learners or parts
    bool twice;                 // micro-batches go forward again before they go back
    uint64_t micro;             // samples of a micro-batch
    uint64_t views;             // rows of the network for each of them
    uint64_t outputs;           // of a sample
    uint32_t losses;            // 1, or as many as the desc has
    struct grt_tensor *x;       // [micro][input] f32
    struct grt_tensor *x16;     // [views micro][input] in the net's type; NULL: the same as x
    struct grt_tensor *target;  // [micro][outputs] f32, [micro] u32, or words of several losses
    struct grt_tensor *y;       // [views micro][outputs] f32
    struct grt_tensor *y16;  // the same in the net's type, where the network gives that; else NULL
    struct grt_tensor *dy;   // [views micro][outputs] in the net's type
    struct grt_tensor *loss_scratch;  // f32, or NULL
    // Where the loss is exact: of this learner x, of all samples y, a row for each with all its
    // views, and the gradient of y of a batch; else NULL.
    struct grt_tensor *all_x, *all_y, *all_dy;
    struct grt_tensor *kept;     // by the optimizer: f32, one or two times the parameters' range
    struct grt_tensor *state;    // u32 [GRT_LEARN_STATE_WORDS]
    struct grt_tensor *history;  // f32 [GRT_HISTORY][8]
    struct grt_tensor *norm_parts;
    struct grt_tensor *rates;    // of groups of parameters, or NULL
    struct grt_tensor *lengths;  // of LARS, or NULL
    struct grt_tensor *average;  // of the parameters, laid out as they are, or NULL
    struct grt_tensor *average_views;
    struct grt_graph *swap[2];  // gives the network its averaged parameters, and takes them back
    // f32 [accumulate][GRT_LOSS_PARTS], of losses and weights [losses] times that. mass: of
    // weights, or NULL; of several losses the first has it, and the others 0.
    struct grt_tensor *loss_parts, *hits, *near, *mass;
    struct grt_tensor *class_weights;  // f32 [outputs], or NULL
    float *weight_numbers;             // what is in it: desc.class_weights
    float weight_sum;
    struct grt_tensor *fused_scratch;
    struct grt_tensor *judged;      // losses of an evaluation in one op, or NULL
    struct grt_tensor *kept_views;  // of each parameter in each part of kept
    char (*kept_names)[GRT_PARAM_NAME + 24];
};

struct grt_fused_desc;
// The fused op of a learner, without its operands.
struct grt_fused_desc grt_learner_fused(const struct grt_learner *learner, uint64_t rows);
// The same of an evaluation: tiles are those of a whole batch, so that the sums of few rows are the
// same beside others and alone.
struct grt_fused_desc grt_learner_judging(const struct grt_learner *learner, uint64_t rows);
// Whether the losses of an evaluation are one op, which counts no right answers; `ordered`: of rows
// by their numbers.
bool grt_learner_judges(const struct grt_learner *learner, uint64_t rows, bool ordered);
// As grt_learner_evaluate(); `saw` is told of each activation when it is recorded.
typedef void grt_learner_saw_fn(void *context, struct grt_graph *graph,
                                const struct grt_tensor *tensor, const char *name);
struct grt_graph *grt_learner_watched(struct grt_learner *learner, const struct grt_step_desc *desc,
                                      grt_learner_saw_fn *saw, void *context);
// Writes the state of a run that begins.
bool grt_learner_begin(struct grt_learner *learner);

#endif
