// SPDX-License-Identifier: Apache-2.0
// What the suites of PPO share: a learner of small networks, and what lies on its device.
#ifndef TEST_PPO_KIT_H
#define TEST_PPO_KIT_H

#include "gpurt/ppo.h"
#include "harness/harness.h"
#include "oracle/ppo.h"

#define PPO_DEPTH 2
#define PPO_HIDDEN 6

struct ppo_maker {
    const char *env;                  // by its name, or
    const struct grt_env_info *info;  // an own one
    struct grt_env_value settings[4];
    uint32_t setting_count, copies, length;
    uint32_t hidden;  // units of a layer; 0: PPO_HIDDEN
    bool tight;       // networks that take no rows with zeros behind them
    struct grt_ppo_desc desc;
};

struct ppo_made {
    struct grt_worlds *worlds;
    struct grt_mlp_desc actor, critic;
    struct grt_ppo *ppo;
};

// Everything that an iteration collected, by row and step without padding.
struct ppo_collected {
    size_t rows, steps, count, width, obs, seen_width;
    double *own, *seen;  // [count + rows][...]: one step more
    uint32_t *mask, *action, *end;
    double *acts, *logp, *value, *reward, *advantage, *returns;
    bool *counts;
};

// Discrete actions, three agents, a central critic; episodes end, are cut and have idle rows.
struct ppo_maker ppo_uavs(void);
// Continuous actions.
struct ppo_maker ppo_pendulums(void);
struct grt_worlds *ppo_make_worlds(const struct ppo_maker *m, uint32_t copies, bool once);
struct ppo_made ppo_make(const struct ppo_maker *m);
void ppo_end(struct ppo_made *made);
// All of a tensor (allocated).
void *ppo_read(const struct grt_tensor *t);
// Runs an epoch over what was collected.
void ppo_run_epoch(struct grt_ppo *ppo, uint32_t number);
// Fails the case unless the newest iteration left so many rows out that its minibatches were
// smaller.
void ppo_was_smaller(const struct grt_ppo *ppo);
// Rows that minibatches of the iteration learnt from so far.
double ppo_learnt_rows(const struct grt_ppo *ppo);
struct ppo_collected ppo_collect(const struct grt_ppo *ppo);
void ppo_collected_end(struct ppo_collected *c);
// A group of the parameters in double precision, at the places of the whole range (allocated).
double *ppo_widened(const struct grt_tensor *t);
const struct grt_param *ppo_param(const struct grt_ppo *ppo, const char *name);
// Everything that was collected as one batch, with these parameters.
struct oracle_ppo ppo_batch_of(const struct grt_ppo *ppo, const struct ppo_collected *c,
                               double *params);
// The slope of the batch's loss by parameter i, by central differences; `params` are those of the
// batch.
double ppo_slope(const struct oracle_ppo *batch, double *params, size_t i);
// Fails the case unless they are that near.
void ppo_near(const char *what, size_t i, double got, double want, double bound);

#endif
