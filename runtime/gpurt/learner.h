// SPDX-License-Identifier: Apache-2.0
// A learner: a network, a loss, an optimizer and a precision as one object that gives baked
// training steps.
//
//     create   declares every tensor; nothing is allocated, bytes are known
//     alloc    allocates, draws the parameters by seed
//     step     a baked graph: input, forward, loss, backward (each micro-batch), then one update;
//              or both halves apart
//     run      grt_graph_run(), again and again; the host reads the small state when it likes
//
//     batch of 256, accumulate 2:   | micro-batch of 128 | micro-batch of 128 | -> update
//
// Same seed, device and driver: same bits. Samples are of any shape, in f32; targets are f32 like
// what the network gives, or one u32 class, and the sample's weight where it has one; without
// targets, a word that nobody reads.
#ifndef GRT_NN_LEARNER_H
#define GRT_NN_LEARNER_H

#include "loss.h"
#include "module.h"
#include "optim.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_learner_desc {
    // Makes the network, once for each learner; `of` is handed through, and both are used during
    // the create call only. grt_mlp_make() with a struct grt_mlp_desc, grt_network_make() with a
    // list of layers, or your own.
    struct grt_module *(*make)(const void *of);
    const void *of;
    struct grt_shape input;  // of a sample
    uint32_t outputs;  // numbers that the network must give for a sample; 0: whatever it gives
    enum grt_loss loss;
    // Or several, whose means, times their scales, are added up; `loss` is then MSE. 0: one.
    uint32_t loss_count;
    struct grt_loss_share losses[GRT_LOSS_MOST];
    float huber_delta;      // 0 means 1
    float label_smoothing;  // of cross-entropy: share of the target that all classes get alike
    // Of cross-entropy: a weight from 0 on for each class, and the loss of a step is the weighted
    // mean; NULL: 1 each. The learner has a copy. Evaluations have neither weights nor smoothing.
    const float *class_weights;
    // The last word of a target is the weight of its sample, f32 from 0 on: losses, also those of
    // evaluations, and accuracies are weighted means. With class_weights both are multiplied.
    bool sample_weights;
    struct grt_optim_desc optim;
    enum grt_dtype precision;  // f32; f16 and bf16 with f32 masters
    uint32_t batch;            // samples of a step
    uint32_t accumulate;       // micro-batches a step is cut into; 0 means 1
    // How often the network sees each sample of a batch, as rows of their own that draw their own
    // random numbers: first all samples, then all again. 0 means 1; NT-Xent wants 2.
    uint32_t views;
    float temperature;  // of NT-Xent; 0 means 0.5
    // Of NT-Xent: rows are told apart from those of all micro-batches, as in one large batch
    // (GradCache, arXiv 2101.06983): all go forward, then comes the loss, then each goes forward
    // again, with the same random numbers, and back. Norms over a batch stay those of a
    // micro-batch.
    bool exact;
    // NT-Xent over the samples of several learners, or of several parts that one takes in turn:
    // each learner makes its samples go forward (grt_learner_embed()), all get what all made of
    // them (grt_learner_meet()), then each goes back with its own (grt_learner_gradients()).
    struct grt_whole {
        uint32_t samples;     // of a step of all; 0: the learner's batch is all
        uint32_t batch;       // so many, one behind the other, are told apart from each other
        uint32_t first, own;  // those of this learner, in all its parts
    } whole;
    struct grt_together together;  // with other processes
    // Batch norms take the statistics of the same micro-batch of all processes, and so do their
    // gradients: each process records and runs the same graphs, of as many rows.
    bool sync_norms;
    bool recompute;  // activation checkpointing
    bool inference;  // no gradients, no optimizer: evaluate and predict only
    uint64_t seed;
    const char *variant;  // "layers" or "fused" only, for tests and measurements; NULL: the best
};
#define grt_learner_desc(...) GRT_DESC(struct grt_learner_desc, __VA_ARGS__)

struct grt_learner;

// Declares; allocates nothing on the device. NULL with a sentence when the desc makes no sense.
GRT_API struct grt_learner *grt_learner_create(struct grt_dev *dev,
                                               const struct grt_learner_desc *desc);
GRT_API void grt_learner_destroy(struct grt_learner **learner);
// Bytes of device memory that grt_learner_alloc() takes: all of them (NULL), or of one group
// ("params", "grads", "optim", "acts", ...).
GRT_API uint64_t grt_learner_bytes(const struct grt_learner *learner, const char *group);
// Allocates and draws the parameters. False, with the numbers, when it does not fit
// (GRT_NO_MEMORY).
GRT_API bool grt_learner_alloc(struct grt_learner *learner);

GRT_API const struct grt_learner_desc *grt_learner_desc_of(const struct grt_learner *learner);
// "layers" or "fused": how forward and backward are done.
GRT_API const char *grt_learner_variant(const struct grt_learner *learner);
// Which fused kernels, "coop" for example; NULL where layers are computed one by one.
GRT_API const char *grt_learner_fused_kernels(const struct grt_learner *learner);
GRT_API uint64_t grt_learner_parameters(const struct grt_learner *learner);
// Whether it has norms over the rows of all processes (sync_norms): each needs as many rows.
GRT_API bool grt_learner_syncs(const struct grt_learner *learner);
// The i-th of its modules, compositions before their parts; NULL past the last.
GRT_API const struct grt_net_layer *grt_learner_layer(const struct grt_learner *learner,
                                                      uint32_t i);
// Numbers that the network gives for a sample.
GRT_API uint64_t grt_learner_outputs(const struct grt_learner *learner);
// Bytes of one sample's input and target as a step takes them.
GRT_API uint64_t grt_learner_x_bytes(const struct grt_learner *learner);
GRT_API uint64_t grt_learner_y_bytes(const struct grt_learner *learner);

// Rows that stay on the device. Steps take them in the order of the records, from the state's
// cursor on, which each moves by its samples: to the end of the epoch, then from the begin of the
// next record. Evaluations have a cursor of their own and the first record.
struct grt_step_rows {
    // All rows, u8 and f16, which are gathered as f32, or elements of 4 bytes; y without a buffer:
    // no targets.
    struct grt_tensor x, y;
    // f32 [2][features]: u8 and f16 x less the first, times the second; or none
    struct grt_range norm;
    struct grt_tensor order;    // u32: records of epochs (shaders/lib/order.k)
    struct grt_tensor dropped;  // u32: rows left out; no buffer: none
    uint32_t record;            // words of a record
    uint32_t epoch;             // samples of an epoch
    // Room for the samples of `staged` steps, grt_learner_stage() bytes each: gathered by one
    // launch. 0: each micro-batch is gathered where the model reads it.
    uint32_t staged;
    struct grt_range stage_x, stage_y;
    // Or, where grt_learner_draws() says so, room for the numbers of their rows alone, u32: the
    // kernels read rows where they lie. `known`: those of this graph's steps are there already.
    struct grt_range drawn;
    bool known;
};
// Whether steps of such rows, or evaluations, can take `drawn` in place of a stage.
GRT_API bool grt_learner_draws(const struct grt_learner *learner, const struct grt_step_rows *rows,
                               bool evaluates);
// Where the x or y of a step begins in a stage, in bytes, and what all of `step` of them take.
GRT_API uint64_t grt_learner_stage(const struct grt_learner *learner, bool y, uint64_t step);

struct grt_step_desc {
    const char *label;
    uint32_t rows;   // samples of a step; 0 means the learner's batch; less for the end of an epoch
    uint32_t steps;  // in one run; 0 means 1
    uint32_t rest;   // with `data`: samples of one more step behind them, less than `rows`; 0: none
    // Samples and targets of all steps one behind the other, in upload or device buffers: copied,
    // or read in place where they lie on the device as a binding may. The run has read them when it
    // is over.
    struct grt_range x, y;
    // 0, or the number, from 1 on, of the one micro-batch that the graph is for: x and y hold its
    // samples alone. The graphs of all of a step's micro-batches, run one behind the other, are the
    // step.
    uint32_t part;
    // What the numbers of its micro-batches begin with, which random numbers are drawn by: those of
    // other ranks come before.
    uint32_t micro_first;
    // Of a loss over the samples of several learners: how many there are, 0: as many as the
    // learner's desc says, and where among them those of this graph begin.
    uint32_t whole, place;
    // Samples that loss and gradients are means over, where these are a share of a larger step's,
    // to be added up; 0: rows. By weights only the update of such a step then divides.
    uint32_t samples;
    const struct grt_graph_tell *tell;  // of the gradients' graph (graph.h), or NULL
    const struct grt_step_rows *data;   // or rows on the device; not past the end of an epoch
    // Times of the phases "input", "forward", "backward" and "optimizer" (grt_graph_times(); one
    // name may come several times: add). What the fused variant does for single rows, back through
    // the layers too, counts as forward. Costs barriers; 32 phases at most, 3 a micro-batch and 1
    // a step.
    bool phases;
};
#define grt_step_desc(...) GRT_DESC(struct grt_step_desc, __VA_ARGS__)

// A baked training step, or NULL. The caller runs it any number of times and destroys it before the
// learner. Neither x nor data: the step reads what grt_learner_input() holds; only with one
// micro-batch.
GRT_API struct grt_graph *grt_learner_step(struct grt_learner *learner,
                                           const struct grt_step_desc *desc);
// The halves of a step, for whatever is to happen between, such as a mean over several learners:
// the gradients of all its micro-batches, which GRT_TENSOR_GRAD then has, times the loss scale of
// the state; and the update by them, which takes `rows` and `data` as the gradients had them, and
// no samples. One behind the other they are grt_learner_step() of one step, to the same bits; only
// the norm of fused kernels is added up in another order, so that clipping by it may differ in the
// last bit.
GRT_API struct grt_graph *grt_learner_gradients(struct grt_learner *learner,
                                                const struct grt_step_desc *desc);
GRT_API struct grt_graph *grt_learner_update(struct grt_learner *learner,
                                             const struct grt_step_desc *desc);
// Where the loss is over the samples of several learners (struct grt_whole), before the gradients,
// which take the same desc without samples: what the network makes of them is kept; and, behind all
// of a step, it is exchanged.
GRT_API struct grt_graph *grt_learner_embed(struct grt_learner *learner,
                                            const struct grt_step_desc *desc);
GRT_API struct grt_graph *grt_learner_meet(struct grt_learner *learner);
// The same without learning: adds loss, samples and hits to the eval_ sums of the state.
GRT_API struct grt_graph *grt_learner_evaluate(struct grt_learner *learner,
                                               const struct grt_step_desc *desc);
// y = model(x) for desc->rows samples of desc->x (at most a micro-batch), copied to `out`: a
// readback or device range of rows * outputs f32.
GRT_API struct grt_graph *grt_learner_predict(struct grt_learner *learner,
                                              const struct grt_step_desc *desc,
                                              struct grt_range out);

// The micro-batch's tensors: x [micro][...] f32, y [micro][outputs] f32 or u32 [micro], and what
// the network gave, f32, a row for each view.
GRT_API const struct grt_tensor *grt_learner_input(const struct grt_learner *learner);
GRT_API const struct grt_tensor *grt_learner_target(const struct grt_learner *learner);
GRT_API const struct grt_tensor *grt_learner_output(const struct grt_learner *learner);

// Waits for what is queued, then reads or writes the state.
GRT_API bool grt_learner_state(struct grt_learner *learner, struct grt_learn_state *state);
GRT_API bool grt_learner_set_state(struct grt_learner *learner,
                                   const struct grt_learn_state *state);
// The newest rows of the history, oldest first: steps `first` on, at most `count`, and no more than
// GRT_HISTORY back. Returns how many were written; *first becomes the step of the first.
GRT_API uint32_t grt_learner_history(struct grt_learner *learner, uint32_t *first,
                                     struct grt_learn_row *rows, uint32_t count);

#define GRT_TENSOR_ROLES(X)                                                                        \
    X(PARAM, "param")   /* "layers.0.weight", in the order of a state_dict */                      \
    X(OPTIM, "optim")   /* "exp_avg.layers.0.weight", ... */                                       \
    X(STATE, "state")   /* "state": the words of struct grt_learn_state; not of the model */       \
    X(GRAD, "grad")     /* "layers.0.weight" again: gradients of the newest step, still scaled */  \
    X(BUFFER, "buffer") /* "1.running_mean": what modules keep besides parameters (params.h) */    \
    X(AVERAGE, "average") /* "layers.0.weight" again: the running average, with optim.ema */

enum grt_tensor_role {
#define X(name, text) GRT_TENSOR_##name,
    GRT_TENSOR_ROLES(X)
#undef X
        GRT_TENSOR_ROLE_COUNT,
};
// The i-th tensor of a role, with its name; NULL past the last. What a checkpoint holds are
// params, buffers, averages, optim and state. They may be read and written with grt_buf_read() and
// grt_buf_write(); after writing parameters, grt_learner_sync().
GRT_API const struct grt_tensor *grt_learner_tensor(const struct grt_learner *learner,
                                                    enum grt_tensor_role role, uint32_t i,
                                                    const char **name);
GRT_API bool grt_learner_sync(struct grt_learner *learner);
// Queues that the network has its averaged parameters, or its own again: around evaluations. No
// step may come between, and gradients are lost. Does nothing without optim.ema.
GRT_API bool grt_learner_average(struct grt_learner *learner, bool in);
// Draws the parameters again by seed, clears optimizer and state.
GRT_API bool grt_learner_reset(struct grt_learner *learner, uint64_t seed);
// The first tensor that holds a number that is not finite, in the order parameters, input, target,
// activations layer by layer, output, gradients; into `name`. The samples are those of x and y (y
// may be NULL when x is: then what the learner's own tensors hold). The samples go through the
// network again, once for each activation. False: there is none.
GRT_API bool grt_learner_find_nonfinite(struct grt_learner *learner, const struct grt_tensor *x,
                                        const struct grt_tensor *y, char *name, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
