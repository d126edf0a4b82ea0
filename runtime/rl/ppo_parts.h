// SPDX-License-Identifier: Apache-2.0
// Inside runtime/rl: PPO, and what its files share. ppo.c makes it, ppo_graphs.c records it with
// the networks of ppo_nets.c and ppo_learn.c, ppo_rungs.c chooses the size of its minibatches,
// ppo_run.c runs it, ppo_share.c lets it learn with others, ppo_said.c has what the host reads of
// it, ppo_undo.c takes an iteration back, ppo_phases.c says where its time goes, ppo_host.c runs it
// from the host, ppo_watch.c shows what it does, ppo_archive.c keeps it.
#ifndef GRT_RL_PPO_PARTS_H
#define GRT_RL_PPO_PARTS_H

#include "gpurt/ppo.h"
#include "nn/fused/mlp_rows.h"

// A network with its operands, for as many rows as net.rows.
struct ppo_net {
    struct grt_module *module;
    struct grt_tensor *x;      // [rows][pitch] in the net's type, zeros behind a row's inputs
    struct grt_tensor *tight;  // [rows][inputs], where the network takes no such rows
    struct grt_tensor *y;      // [rows][outputs] f32
    struct grt_tensor *y16;    // the same in the net's type, where the network gives that
    struct grt_tensor *dy;     // in the net's type
    bool whole;                // it sees the whole too
    // Where rows go straight into the network: what it is, its first parameter, and hidden units of
    // a minibatch, unless both networks learn in one launch.
    struct grt_mlp_desc mlp;
    uint32_t first_param;
    struct grt_tensor *hidden;
    bool apart;   // rows go straight into it
    bool learns;  // and back, with the loss, in one launch
};

// By what a network gives (PPO_LEARN_*); and which of them one has.
extern const struct grt_mlp_rows_learner grt_ppo_learners[];
uint32_t grt_ppo_head(const struct grt_ppo *ppo, const struct ppo_net *n);

// A minibatch between its way forward and its way back.
struct ppo_batch {
    uint64_t first, count;
    struct grt_tensor x[2];  // inputs of the actor and of the critic, where they were gathered
};

// Copies that act: those that learn, and those of an evaluation.
struct ppo_actors {
    struct grt_worlds *worlds;
    struct grt_plan *plan;
    uint64_t rows;    // of a step
    uint64_t steps;   // that are kept
    uint64_t stride;  // words of a step in a section of the trajectory
    // Words of a row, and of a step. Observations are in the networks' type.
    uint32_t obs_words, whole_words;
    uint64_t obs_stride, whole_stride;
    uint64_t acts_stride;        // numbers of a step
    struct grt_tensor *control;  // a struct grt_rng_state: the step counts iterations
    struct grt_tensor *traj, *obs, *whole, *acts;
    struct grt_tensor
        *raw;  // of one step: observations before they are normalised; NULL: they are not
    struct grt_tensor *totals;
};

// Something that an iteration changes, and as it was before.
struct ppo_undo {
    const struct grt_tensor *now;
    struct grt_tensor *before;
};
#define PPO_UNDOS 13

struct grt_ppo {
    struct grt_dev *dev;
    struct grt_ppo_desc desc;
    const struct grt_worlds_sizes *sizes;
    struct grt_plan *plan;
    struct grt_params params;
    struct grt_net net;
    struct ppo_net actor, critic;
    struct grt_param *log_std;  // continuous actions
    struct ppo_actors learning, evaluating;
    uint32_t width;    // numbers that the actor gives
    uint64_t count;    // rows of an iteration
    uint32_t batches;  // of an epoch
    uint64_t batch;    // rows of one where all count; the last may have fewer
    uint32_t groups;   // workgroups of what adds up over rows
    uint32_t done;     // iterations

    struct grt_tensor *tallies, *list;  // of rows that count: see ppo_tally and ppo_list
    struct grt_tensor *order;           // of an epoch: positions of rows, [batches][batch] at most
    struct grt_tensor *records;         // [count][PPO_SECTIONS]: ppo_records; NULL: not wanted
    struct grt_tensor *sums, *norms, *stats;
    struct grt_tensor *dlog_std;
    struct grt_tensor *norm;     // [3][obs]: mean, 1 / deviation, variance; NULL: not normalised
    struct grt_tensor *counts;   // [obs]: rows that they are of
    struct grt_tensor *moments;  // sums of an iteration for them: ppo_moment_sums
    struct grt_tensor *kept, *state, *history, *norm_parts;
    struct grt_tensor *average;  // of the parameters, laid out as they are, or NULL
    struct grt_buf *said;        // of an iteration, for the host: ppo_said.c
    struct grt_graph *keep, *collect;
    struct grt_graph *trials[GRT_PPO_TRIAL_COUNT];  // a step of evaluating, each
    struct grt_graph **epochs;  // [rung][epoch], made when they are first needed: ppo_rungs.c
    uint32_t rung;              // of the newest iteration
    // Of a learner with others: what follows from the sums of all, [rung][minibatch] gradients to
    // the host, an update from the host, and the host's side of these.
    struct grt_graph *settle, **shared, *apply;
    struct grt_buf *down, *up;
    double place_seconds;  // of an epoch, for each of its places; 0: not known
    struct ppo_undo undos[PPO_UNDOS];
    uint32_t undo_count;
    double pace;              // seconds of the newest iteration; 0: none was done
    bool fresh;               // the newest iteration was done here, and nothing was loaded since
    struct grt_graph *alone;  // the environment's part of an iteration
    struct grt_graph **host;  // see ppo_host.c
    uint32_t host_count;
};

// The first rows of a matrix.
struct grt_tensor grt_ppo_rows(const struct grt_tensor *t, uint64_t rows);
// Whether a network takes rows from where they lie, and room for it. When all parameters are
// declared, and the sizes of what the copies see are known.
void grt_ppo_declare_apart(struct grt_ppo *ppo, struct ppo_net *n);
void grt_ppo_declare_hidden(struct grt_ppo *ppo, struct ppo_net *n);
// A network over the rows of a minibatch, of the order from `first` on, where they go straight into
// it.
struct grt_mlp_rows_desc grt_ppo_apart_batch(const struct grt_ppo *ppo, const struct ppo_net *n,
                                             uint64_t first, uint64_t count);
// Whether both networks learn in one launch each; what that needs: words of a row side by side; and
// a minibatch of it. Slopes of log_std are left in so many rows.
bool grt_ppo_learns(const struct grt_ppo *ppo);
void grt_ppo_record_records(const struct grt_ppo *ppo, struct grt_graph *graph);
uint64_t grt_ppo_learn_batch(struct grt_ppo *ppo, struct grt_graph *graph, uint32_t batch,
                             uint64_t first, uint64_t count);
// What the actor gives for rows of a step, or the critic for those from a position of all steps on:
// in their y.
void grt_ppo_forward_actor(struct grt_ppo *ppo, struct ppo_actors *a, struct grt_graph *graph,
                           uint64_t step, uint64_t first, uint64_t count);
void grt_ppo_forward_critic(struct grt_ppo *ppo, struct grt_graph *graph, uint64_t first,
                            uint64_t count);
// What both give for a minibatch, rows of the order from `first` on, and from the gradients in
// their dy those of the parameters.
void grt_ppo_forward_batch(struct grt_ppo *ppo, struct grt_graph *graph, uint64_t first,
                           uint64_t count, struct ppo_batch *batch);
void grt_ppo_backward_batch(struct grt_ppo *ppo, struct grt_graph *graph,
                            const struct ppo_batch *batch);
// What the host reads of an iteration, norms, stats, state and totals: room for it; the copy of one
// to host memory, by the graph that makes it; and what the newest graph said.
bool grt_ppo_said_make(struct grt_ppo *ppo);
void grt_ppo_say(const struct grt_ppo *ppo, struct grt_graph *graph,
                 const struct grt_tensor *tensor);
bool grt_ppo_hear(const struct grt_ppo *ppo, const struct grt_tensor *tensor, void *data);
// Words of a section.
uint64_t grt_ppo_section(const struct ppo_actors *actors);
// Declares what copies need to act for so many steps.
bool grt_ppo_declare_actors(const struct grt_ppo *ppo, struct ppo_actors *actors,
                            struct grt_plan *plan, uint64_t steps);
// Whether each tensor of the copies, and all of a plan, fit into the device's memory; if not, with
// the sentence that says what to lower.
bool grt_ppo_actors_fit(const struct grt_ppo *ppo, const struct ppo_actors *actors);
bool grt_ppo_plan_fits(const struct grt_ppo *ppo, const struct ppo_actors *actors,
                       const struct grt_plan *plan);
// How actions are chosen.
enum ppo_choice { PPO_DRAWN, PPO_GREEDY, PPO_RANDOM };
// The observation of a step of the trajectory.
void grt_ppo_record_observe(const struct grt_ppo *ppo, struct ppo_actors *actors,
                            struct grt_graph *graph, uint64_t step);
// One step of the copies, from the observation on.
void grt_ppo_record_step(struct grt_ppo *ppo, struct ppo_actors *actors, struct grt_graph *graph,
                         uint64_t step, enum ppo_choice choice);
// With optim.ema the networks have their averaged parameters, or their own again: around trials. No
// minibatch may come between, and gradients are lost.
bool grt_ppo_average(struct grt_ppo *ppo, bool in);
// Begins an evaluation: its worlds are reset with the seed, and ppo->trials[trial] is a step of it.
bool grt_ppo_begin_trial(struct grt_ppo *ppo, struct grt_worlds *worlds, enum grt_ppo_trial trial,
                         uint32_t seed);
// Its parts: actions from the observation, and what follows from them.
void grt_ppo_record_actions(struct grt_ppo *ppo, struct ppo_actors *actors, struct grt_graph *graph,
                            uint64_t step, enum ppo_choice choice);
void grt_ppo_record_world(struct grt_ppo *ppo, struct ppo_actors *actors, struct grt_graph *graph,
                          uint64_t step);
// Of a step: the actions, or a section of the trajectory.
struct grt_range grt_ppo_actions(const struct grt_ppo *ppo, const struct ppo_actors *actors,
                                 uint64_t step);
struct grt_range grt_ppo_part(const struct ppo_actors *actors, uint32_t section, uint64_t step);
// What an iteration begins with, what follows its last step, and what its rows are worth.
void grt_ppo_record_begin(struct grt_ppo *ppo, struct grt_graph *graph);
void grt_ppo_record_end(struct grt_ppo *ppo, struct grt_graph *graph);
void grt_ppo_record_worth(struct grt_ppo *ppo, struct grt_graph *graph);
// An epoch: its minibatches have so many places in the order, the last one what is left.
struct ppo_epoch {
    uint32_t number;
    uint64_t rows;    // places of a minibatch
    uint64_t places;  // of all
};
struct grt_graph *grt_ppo_make_epoch(struct grt_ppo *ppo, const struct ppo_epoch *epoch);
struct grt_graph *grt_ppo_make_batch(struct grt_ppo *ppo, const struct ppo_epoch *epoch,
                                     uint32_t batch);
// The parts of a minibatch: gradients, whose rows have places of the order; the update by them.
void grt_ppo_record_gradients(struct grt_ppo *ppo, struct grt_graph *graph,
                              const struct ppo_epoch *epoch, uint32_t batch);
void grt_ppo_record_update(struct grt_ppo *ppo, struct grt_graph *graph);
// Parts of the loss of the newest minibatch.
struct grt_range grt_ppo_losses(const struct grt_ppo *ppo);
// Norms of the advantages and moments of the observations, from so many rows of sums of each.
void grt_ppo_record_settle(struct grt_ppo *ppo, struct grt_graph *graph, uint32_t sums_of,
                           uint32_t moments_from);
// What a learner with others has besides; nothing of one that is alone.
bool grt_ppo_share_make(struct grt_ppo *ppo);
void grt_ppo_share_end(struct grt_ppo *ppo);
// Numbers of its gradients and losses, as they go to the host and back.
uint64_t grt_ppo_share_count(const struct grt_ppo *ppo);
// Begins with the graphs of the full size; ends with all that were made.
bool grt_ppo_rungs_begin(struct grt_ppo *ppo);
void grt_ppo_rungs_end(struct grt_ppo *ppo);
// Takes the rung for the rows that were collected.
bool grt_ppo_take_rung(struct grt_ppo *ppo);
// Makes the first graph of the rungs below, where it is not made: while the device is busy.
void grt_ppo_foresee(struct grt_ppo *ppo);
// An epoch on that rung, and its graph; NULL with a sentence.
struct ppo_epoch grt_ppo_epoch_of(const struct grt_ppo *ppo, uint32_t number);
struct grt_graph *grt_ppo_epoch(struct grt_ppo *ppo, uint32_t number);
// The gradients of a minibatch on that rung, as grt_ppo_make_batch() makes them.
struct grt_graph *grt_ppo_batch(struct grt_ppo *ppo, uint32_t batch);
// Makes all graphs of an iteration, those of epochs for the full size.
bool grt_ppo_record(struct grt_ppo *ppo);
// Declares room for what an iteration changes, when all of that is declared.
bool grt_ppo_undo_declare(struct grt_ppo *ppo);
// Keeps it; run before anything is changed.
void grt_ppo_undo_record(const struct grt_ppo *ppo, struct grt_graph *graph);
// Takes the iteration back.
bool grt_ppo_undo(struct grt_ppo *ppo);
// Records the way back for tensors from `first` on. Those of the worlds are the last.
void grt_ppo_undo_back(const struct grt_ppo *ppo, struct grt_graph *graph, uint32_t first);
uint32_t grt_ppo_undo_worlds(const struct grt_ppo *ppo);
// The epochs of an iteration, and what there is to say of it. `begun`: when, on the wall.
bool grt_ppo_update(struct grt_ppo *ppo, struct grt_ppo_report *report);
bool grt_ppo_conclude(struct grt_ppo *ppo, double begun, struct grt_ppo_report *report);
// A graph of an iteration. One that takes long is run with a wait after each submit, so that a
// stop is seen.
bool grt_ppo_run(struct grt_ppo *ppo, struct grt_graph *graph, struct grt_ppo_report *report);
// Sums of the losses of the iteration's epochs so far, over all workgroups: PPO_STATS of them.
bool grt_ppo_stats(const struct grt_ppo *ppo, double *sums);
// Whether the policy has moved so far, by such sums, that the iteration's epochs end.
bool grt_ppo_moved(const struct grt_ppo *ppo, uint32_t epochs, const double *sums);
// Fills a report from sums of episodes, and from those of losses; false where a number is not
// finite.
void grt_ppo_report_totals(const float *totals, uint32_t terms, struct grt_ppo_report *report);
bool grt_ppo_report_losses(const struct grt_ppo *ppo, const double *sums,
                           struct grt_ppo_report *report);
// In an archive and back: all but the worlds.
bool grt_ppo_save_own(const struct grt_ppo *ppo, struct grt_archive *archive);
bool grt_ppo_load_own(struct grt_ppo *ppo, const struct grt_archive *archive,
                      enum grt_ppo_part part);
// Adds the seconds of a graph's phases to the places that they have.
void grt_ppo_add_times(struct grt_graph *graph, double *const seconds[], uint32_t places);
// Draws all parameters: orthogonal matrices, biases of 0.
bool grt_ppo_draw(struct grt_ppo *ppo);

#endif
