// SPDX-License-Identifier: Apache-2.0
// Proximal policy optimization (Schulman et al. 2017), environment and learning on the device.
//
//     collect   horizon times: observe -> actor -> draw an action -> step; then values, advantages
//     update    epochs times: shuffle -> each minibatch: actor, critic, loss, backward, optimizer
//
// An iteration is a few baked graphs; the host reads some numbers of it. All agents of an
// environment share one actor, which sees an agent's own observation. The critic sees that and,
// with `central`, the observation of the whole (multi-agent PPO, Yu et al. 2022); it is not needed
// to act. Rows that do not count (worlds.h) take no part in losses and means: minibatches leave
// them out, and have so many rows fewer.
//
// Same desc, device and driver: same bits, also when it was stopped and resumed.
#ifndef GRT_PPO_H
#define GRT_PPO_H

#include "archive.h"
#include "module.h"
#include "optim.h"
#include "worlds.h"

#ifdef __cplusplus
extern "C" {
#endif

// A network, made once: as in struct grt_learner_desc.
struct grt_ppo_net {
    struct grt_module *(*make)(const void *of);
    const void *of;
};

struct grt_ppo_desc {
    struct grt_worlds *worlds;  // not declared yet; belongs to the caller, who keeps it as long
    struct grt_ppo_net actor;   // obs numbers in; choices or act numbers out
    struct grt_ppo_net critic;  // obs, and global where central, numbers in; one out
    bool normalise;    // observations: by mean and deviation of all so far; not those of the whole
    bool central;      // where the environment has an observation of the whole
    uint32_t horizon;  // steps of each copy in an iteration
    uint32_t batch;    // rows of a minibatch, where all count; 0: all rows of an iteration
    uint32_t epochs;   // passes over the rows of an iteration
    double gamma, lambda;  // discount, and generalised advantage estimation
    double clip;           // of the ratio of probabilities
    double value_clip;     // of the change of a value; 0: not clipped
    double value_weight, entropy_weight;
    double target_kl;  // ends the epochs of an iteration when exceeded; 0: never
    double log_std;    // at the start; continuous actions
    struct grt_optim_desc optim;
    enum grt_dtype precision;  // f32; f16 and bf16 with f32 masters
    // For tests and measurements: "layers" alone, or "rows": networks over rows, the loss apart.
    // NULL: the best.
    const char *variant;
    // One of `parts` learners that learn together (ppo_team.h), each with copies of its own; parts
    // 0: alone.
    uint32_t part, parts;
    uint64_t seed;
    // Asked in iterations and evaluations that take longer than half a second, which then are given
    // up; may be NULL.
    bool (*stop)(void);
};
#define grt_ppo_desc(...) GRT_DESC(struct grt_ppo_desc, __VA_ARGS__)
// What most use: horizon 128, batch 0, 4 epochs, gamma 0.99, lambda 0.95, clip 0.2, value weight
// 0.5, entropy weight 0.01, Adam at 3e-4 with eps 1e-5, gradients clipped to a norm of 0.5.
GRT_API struct grt_ppo_desc grt_ppo_defaults(void);

struct grt_ppo;

// Declares, allocates, draws (matrices with orthogonal rows or columns: gain sqrt 2, the actor's
// last 0.01, the critic's last 1), records. NULL with a sentence.
GRT_API struct grt_ppo *grt_ppo_create(struct grt_dev *dev, const struct grt_ppo_desc *desc);
GRT_API void grt_ppo_destroy(struct grt_ppo **ppo);
GRT_API const struct grt_ppo_desc *grt_ppo_desc_of(const struct grt_ppo *ppo);

struct grt_ppo_size {
    uint64_t parameters;  // of actor and critic
    uint64_t rows;        // agent steps of an iteration
    uint32_t batches;     // minibatches of an epoch
    uint64_t bytes;       // of device memory
};
GRT_API struct grt_ppo_size grt_ppo_size(const struct grt_ppo *ppo);

#define GRT_PPO_TERMS 8  // of an environment, in reports
struct grt_ppo_report {
    bool stopped;        // given up: the learner is as before, and nothing else here is known
    uint32_t iteration;  // how many are done
    double rows;         // agent steps that counted
    // Of the episodes that ended; 0 without one. Terms are means of the environment's own.
    double episodes, mean_return, length, terms[GRT_PPO_TERMS];
    // Means over all minibatches.
    double policy_loss, value_loss, entropy, kl, clip_rate;
    double explained;  // share of the returns' variance that the values explain, before the update
    double grad_norm, lr;
    uint32_t epochs;  // done; fewer than wanted after target_kl
    double seconds;   // on the wall
    // Seconds of the device: steps with their actions, values and advantages, epochs; 0: it has no
    // clock.
    double acting, valuing, update;
};
// One iteration. False: the device, or a loss or gradient that is not finite (GRT_INVALID).
GRT_API bool grt_ppo_iterate(struct grt_ppo *ppo, struct grt_ppo_report *report);

// Where the time of an iteration goes.
#define GRT_PPO_PHASES(X)                                                                          \
    X(ENVIRONMENT, "environment")  /* its steps */                                                 \
    X(ACTIONS, "action selection") /* observations, the actor, drawing */                          \
    X(ADVANTAGES, "advantages")    /* values and the scan over them */                             \
    X(UPDATE, "update")

enum grt_ppo_phase {
#define X(name, text) GRT_PPO_PHASE_##name,
    GRT_PPO_PHASES(X)
#undef X
        GRT_PPO_PHASE_COUNT,
};
GRT_API const char *grt_ppo_phase_text(enum grt_ppo_phase phase);

// Seconds of the device for the environment's part of `acting` in the newest iteration: its steps
// run once more, alone, from the same state with the same actions, and have to end in the same
// state. So nothing changes. 0: it has no clock.
GRT_API bool grt_ppo_environment(struct grt_ppo *ppo, double *seconds);

// An iteration of the same bits with the host in every step, for comparison: so programs do it
// whose environment is on the CPU. Observations go to the host and back before the actor sees them,
// actions before the environment takes them; rewards are read; each of these waits.
struct grt_ppo_times {
    double seconds[GRT_PPO_PHASE_COUNT];  // on the wall
    double busy[GRT_PPO_PHASE_COUNT];     // of the device; 0: it has no clock
};
GRT_API bool grt_ppo_iterate_by_host(struct grt_ppo *ppo, struct grt_ppo_report *report,
                                     struct grt_ppo_times *times);

#define GRT_PPO_TRIALS(X)                                                                          \
    X(POLICY, "the policy")     /* its most likely actions */                                      \
    X(RANDOM, "random actions") /* each allowed one alike */

enum grt_ppo_trial {
#define X(name, text) GRT_PPO_TRY_##name,
    GRT_PPO_TRIALS(X)
#undef X
        GRT_PPO_TRIAL_COUNT,
};
GRT_API const char *grt_ppo_trial_text(enum grt_ppo_trial trial);
// Takes the memory that evaluations on `worlds` need. They take it themselves; a run that asks
// before it begins does not end at its first.
GRT_API bool grt_ppo_prepare(struct grt_ppo *ppo, struct grt_worlds *worlds);
// Each copy of `worlds`, which was made with `once` and is not declared yet, or was given here
// before, plays one episode. Fills rows, episodes, mean_return, length, terms and seconds. Nothing
// is learnt.
GRT_API bool grt_ppo_evaluate(struct grt_ppo *ppo, struct grt_worlds *worlds,
                              enum grt_ppo_trial trial, uint32_t seed,
                              struct grt_ppo_report *report);

// What one copy does, step by step, in host memory that lasts until the next step.
struct grt_ppo_moment {
    uint32_t step;                         // that are done; 0: the start, which has no rows
    const uint32_t *state;                 // [words] after it
    const struct grt_drawn_shape *shapes;  // [shapes] after it; NULL: the environment has none
    // Rows of the step, [agents].
    const float *obs;         // [agents][obs], seen before it
    const uint32_t *mask;     // allowed choices; NULL: actions are continuous
    const uint32_t *choices;  // NULL: actions are continuous
    const float *acts;        // [agents][act]; NULL: actions are discrete
    const float *rewards;
    const uint32_t *ends;  // GRT_ROW_*
};
// False ends it.
typedef bool (*grt_ppo_look)(void *self, const struct grt_ppo_moment *moment);
// As grt_ppo_evaluate(), with all that copy number `copy` does shown to `look`: its start, the
// steps of its episode, and one step more, whose rows are idle and whose actions are those that
// would follow. The report is about this copy; without the end of its episode, episodes and terms
// are 0.
GRT_API bool grt_ppo_watch(struct grt_ppo *ppo, struct grt_worlds *worlds, enum grt_ppo_trial trial,
                           uint32_t seed, uint32_t copy, grt_ppo_look look, void *self,
                           struct grt_ppo_report *report);

// Everything that a later run needs to go on with the same bits: "model/actor.layers.0.weight",
// "model/critic....", "model/log_std", "normalizer/...", "optimizer/...", "worlds/...". What is not
// loaded begins anew.
enum grt_ppo_part {
    GRT_PPO_ALL,       // to go on
    GRT_PPO_NETWORKS,  // to begin with them
    GRT_PPO_ACTOR,     // to act: the critic's shape may be another, as with other numbers of agents
};
#define GRT_PPO_NORMALIZER "normalizer/mean_rstd_variance"  // f32 [3][obs], with `normalise`
GRT_API bool grt_ppo_save(const struct grt_ppo *ppo, struct grt_archive *archive);
GRT_API bool grt_ppo_load(struct grt_ppo *ppo, const struct grt_archive *archive,
                          enum grt_ppo_part part);

#ifdef __cplusplus
}
#endif
#endif
