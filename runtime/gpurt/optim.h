// SPDX-License-Identifier: Apache-2.0
// Optimizers with PyTorch's names, defaults and order of
// update, and all that a step decides on the device: unscale, clip by the global norm, skip on
// overflow, learning rate by schedule, loss scale.
//
//     grads --norm, finite?--> parts --decide, update--> params, params16, optim, state
//
// Two launches, whatever the number of parameters; one where the backward op gives partial norms.
// The decision reads and writes the state buffer: a replayed step needs nothing from the host.
#ifndef GRT_NN_OPTIM_H
#define GRT_NN_OPTIM_H

#include "loss.h"
#include "params.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_OPTIMS(X)                                                                              \
    X(SGD, "sgd")                                                                                  \
    X(ADAM, "adam")                                                                                \
    X(ADAMW, "adamw")                                                                              \
    X(LARS, "lars") /* SGD whose steps of matrices are by their lengths: You et al., 2017 */

enum grt_optim {
#define X(name, text) GRT_OPTIM_##name,
    GRT_OPTIMS(X)
#undef X
        GRT_OPTIM_COUNT,
};
GRT_API const char *grt_optim_text(enum grt_optim optim);

#define GRT_SCHEDULES(X)                                                                           \
    X(CONSTANT, "constant")                                                                        \
    X(COSINE, "cosine")       /* from lr to min_lr over `total` steps, then min_lr */              \
    X(STEP, "step")           /* times gamma every `period` steps */                               \
    X(ONE_CYCLE, "one_cycle") /* PyTorch's OneCycleLR, its momentum constant */                    \
    X(LINEAR, "linear")       /* from lr to min_lr over `total` steps in a straight line */

enum grt_schedule {
#define X(name, text) GRT_SCHEDULE_##name,
    GRT_SCHEDULES(X)
#undef X
        GRT_SCHEDULE_COUNT,
};
GRT_API const char *grt_schedule_text(enum grt_schedule schedule);

// What a step does when a gradient or the loss is not finite. f16 always skips and lowers the
// scale; it halts once the scale is below 2^-14.
#define GRT_NONFINITES(X)                                                                          \
    X(HALT, "halt") /* no update in this step and in none after it, until the host clears it */    \
    X(SKIP, "skip") /* no update in this step */

enum grt_nonfinite {
#define X(name, text) GRT_NONFINITE_##name,
    GRT_NONFINITES(X)
#undef X
        GRT_NONFINITE_COUNT,
};

// Parameters with a learning rate or decay of their own, as PyTorch's param_groups: those whose
// names match, and which no group before this one has.
#define GRT_OPTIM_GROUPS 16
struct grt_optim_group {
    char match[GRT_PARAM_NAME];  // name with * and ?: "layers.0.*", "*.bias"
    bool but_last;               // none of the last layer: the last parameter and its siblings
    bool own_lr, own_decay;      // else the optimizer's
    double lr;                   // 0: these parameters stay as they are
    double weight_decay;
    char where[112];  // "run.yaml:7:5: " for messages, or ""
};

// Fields are taken as they are; grt_optim_defaults() has PyTorch's.
struct grt_optim_desc {
    enum grt_optim kind;
    double lr;
    double weight_decay;
    // weight_decay is for parameters of two axes and more: no norms and biases
    bool decay_matrices;
    double momentum, dampening;  // sgd, lars
    bool nesterov;
    double trust;  // lars: steps of parameters of two axes and more are this share of their length
    double beta1, beta2, eps;  // adam, adamw
    double max_norm;           // clip the gradients' global norm to this; 0: no clipping
    enum grt_schedule schedule;
    uint32_t warmup;  // steps over which lr grows from lr / warmup; the schedule begins after it
    uint32_t total;   // cosine, linear, one_cycle: steps in all, warm-up included
    // one_cycle: rises from lr / div over `warmup` steps, falls to lr / div / final_div
    double div, final_div;
    double min_lr;
    uint32_t period;  // step
    double gamma;
    enum grt_nonfinite nonfinite;
    // Loss scaling, f16 only.
    double scale, growth, backoff;
    uint32_t growth_interval;
    double ema;  // a running average of the parameters keeps this much of itself; 0: there is none
    uint32_t group_count;
    struct grt_optim_group groups[GRT_OPTIM_GROUPS];
};
GRT_API struct grt_optim_desc grt_optim_defaults(enum grt_optim kind);
// What is wrong with it, or NULL.
GRT_API const char *grt_optim_mistake(const struct grt_optim_desc *desc);
// lr for a batch of another size: times the square root of the ratio.
GRT_API double grt_lr_for_batch(double lr, uint64_t batch, uint64_t base_batch);

// The state of a run that is not in tensors: words of a device buffer (shaders/nn/lib/nn_state.k
// has their numbers).
struct grt_learn_state {
    uint32_t steps;    // done, skipped ones too: the schedule's clock
    uint32_t updates;  // of the parameters: Adam's step
    uint32_t skipped;  // steps without an update
    uint32_t halted;   // 0, or 1 + the number of the step that was not finite
    float loss_scale;  // 1 without loss scaling
    uint32_t good;     // steps since the scale changed
    float lr_factor;   // multiplies every learning rate; 1, for the host to change
    uint32_t cursor;   // next sample of the epoch, data on the device
    float loss;        // of the newest step, from here on
    float grad_norm;   // before clipping
    float lr;
    uint32_t finite;  // 1: was updated
    // Copies of what the newest step found (shaders/nn/lib/nn_state.k).
    uint32_t found_steps, found_updates, found_halted;
    float found_loss_scale;
    float eval_loss;     // sums over the evaluations since they were cleared: of losses,
    float eval_samples;  // samples
    float eval_hits;     // and right answers of a classification
    float found_lr_factor;
    uint32_t epoch;        // data on the device: the epoch's record in the order
    uint32_t eval_cursor;  // next sample of an evaluation
    float eval_near;       // of a classification: answers among the five likeliest
    uint32_t idle;         // 1: the samples of the step that comes to its end weigh nothing
    float eval_parts[GRT_LOSS_MOST];  // of several losses: the sum of each
    uint32_t reserved[4];
};
#define GRT_LEARN_STATE_WORDS (sizeof(struct grt_learn_state) / 4)

#define GRT_HISTORY 256
// One row a step, in a ring: step s is in row s % GRT_HISTORY.
struct grt_learn_row {
    float loss;
    float grad_norm;  // -1 when the samples of the step weighed nothing
    float lr;
    float loss_scale;            // 0 minus it when the step was skipped
    float parts[GRT_LOSS_MOST];  // of several losses: each, times its scale
};

#define GRT_NORM_PARTS 256

// How many tensors like the masters the optimizer keeps ("optim": exp_avg and exp_avg_sq, or
// momentum_buffer), and the i-th one's name.
GRT_API uint32_t grt_optim_tensors(const struct grt_optim_desc *desc);
GRT_API const char *grt_optim_tensor_name(const struct grt_optim_desc *desc, uint32_t i);

// The table of rates that an update with groups reads: its words, 0 where all parameters have the
// same rates; and what is in them (NULL: only the check). False with the sentence: no parameter
// matches a group.
// LARS has a row for each parameter.
GRT_API uint64_t grt_optim_rate_rows(const struct grt_optim_desc *desc,
                                     const struct grt_params *params);
GRT_API uint64_t grt_optim_rate_words(const struct grt_optim_desc *desc,
                                      const struct grt_params *params);
GRT_API bool grt_optim_rates(const struct grt_optim_desc *desc, const struct grt_params *params,
                             uint32_t *words);

// Floats of the scratch that LARS wants; 0 of others.
GRT_API uint64_t grt_optim_lengths(const struct grt_optim_desc *desc,
                                   const struct grt_params *params);

// Sums of the squares of gradients, without the loss scale: parts[first] on, at most so many.
// Returns how many. They also leave in the state what the update wants to have found.
struct grt_squares_desc {
    const struct grt_tensor *grads;  // f32
    const struct grt_tensor *state;  // u32 [GRT_LEARN_STATE_WORDS]
    const struct grt_tensor *parts;  // f32
    uint32_t first, most;
};
GRT_API uint32_t grt_op_squares(struct grt_graph *graph, const struct grt_squares_desc *desc);

struct grt_update_desc {
    const struct grt_optim_desc *optim;
    const struct grt_params *params;
    const struct grt_tensor *kept;     // f32, grt_optim_tensors() times the range
    const struct grt_tensor *state;    // u32 [GRT_LEARN_STATE_WORDS]
    const struct grt_tensor *history;  // f32 [GRT_HISTORY][8]
    struct grt_range loss_parts;       // f32, added in order for the step's loss
    uint32_t loss_part_count;
    const struct grt_tensor *norm_parts;  // f32 [GRT_NORM_PARTS], scratch
    // Optional partial norms from the backward op: sums of the gradients' squares, without the loss
    // scale. Such an op also copies the state for the update (NN_LEAVE_FOUND). buf NULL: both are
    // done here.
    struct grt_range norms;
    uint32_t norm_count;
    uint32_t cursor_step;              // added to the cursor
    uint32_t cursor_end;               // samples of an epoch, behind which it begins anew; 0: never
    bool scaling;                      // loss scaling on
    const struct grt_tensor *rates;    // u32 [grt_optim_rate_words()]; NULL where that is 0
    const struct grt_tensor *average;  // f32, with ema: laid out as the masters
    const struct grt_tensor *lengths;  // f32 [grt_optim_lengths()], scratch of lars
};
#define grt_update_desc(...) GRT_DESC(struct grt_update_desc, __VA_ARGS__)
// Ends a step: norm and check; decision and update.
GRT_API void grt_op_update(struct grt_graph *graph, const struct grt_update_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
