// SPDX-License-Identifier: Apache-2.0
// Inside runtime/rl: PPO, and what its files share. ppo.c makes it, ppo_graphs.c records it,
// ppo_run.c runs it, ppo_watch.c shows what it does, ppo_archive.c keeps it.
#ifndef GRT_RL_PPO_PARTS_H
#define GRT_RL_PPO_PARTS_H

#include "gpurt/ppo.h"

// A network with its operands, for as many rows as net.rows.
struct ppo_net {
    struct grt_module *module;
    struct grt_tensor *x;    // [rows][inputs] in the net's type
    struct grt_tensor *y;    // [rows][outputs] f32
    struct grt_tensor *y16;  // the same in the net's type, where the network gives that
    struct grt_tensor *dy;   // in the net's type
};

// Copies that act: those that learn, and those of an evaluation.
struct ppo_actors {
    struct grt_worlds *worlds;
    struct grt_plan *plan;
    uint64_t rows;    // of a step
    uint64_t steps;   // that are kept
    uint64_t stride;  // words of a step in a section of the trajectory
    uint64_t obs_stride, whole_stride, acts_stride;  // numbers of a step
    struct grt_tensor *control;  // a struct grt_rng_state: the step counts iterations
    struct grt_tensor *traj, *obs, *whole, *acts;
    struct grt_tensor *totals;
};

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
    uint64_t batch;    // rows of one; the last may have fewer
    uint32_t done;     // iterations
    struct grt_tensor *order, *sums, *norms, *stats;
    struct grt_tensor *dlog_std;
    struct grt_tensor *kept, *state, *history, *norm_parts;
    struct grt_graph *collect;
    struct grt_graph *trials[GRT_PPO_TRIAL_COUNT];  // a step of evaluating, each
    struct grt_graph **epochs;
};

// Words of a section.
uint64_t grt_ppo_section(const struct ppo_actors *actors);
// Declares what copies need to act for so many steps.
bool grt_ppo_declare_actors(const struct grt_ppo *ppo, struct ppo_actors *actors,
                            struct grt_plan *plan, uint64_t steps);
// How actions are chosen.
enum ppo_choice { PPO_DRAWN, PPO_GREEDY, PPO_RANDOM };
// The observation of a step of the trajectory.
void grt_ppo_record_observe(struct ppo_actors *actors, struct grt_graph *graph, uint64_t step);
// One step of the copies, from the observation on.
void grt_ppo_record_step(struct grt_ppo *ppo, struct ppo_actors *actors, struct grt_graph *graph,
                         uint64_t step, enum ppo_choice choice);
// Begins an evaluation: its worlds are reset with the seed, and ppo->trials[trial] is a step of it.
bool grt_ppo_begin_trial(struct grt_ppo *ppo, struct grt_worlds *worlds, enum grt_ppo_trial trial,
                         uint32_t seed);
// Makes all graphs of an iteration.
bool grt_ppo_record(struct grt_ppo *ppo);
// Draws all parameters: orthogonal matrices, biases of 0.
bool grt_ppo_draw(struct grt_ppo *ppo);

#endif
