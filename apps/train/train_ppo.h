// SPDX-License-Identifier: Apache-2.0
// Inside `gpurt train ppo` and `gpurt train uav`: their values, and how settings become a learner.
#ifndef APPS_TRAIN_PPO_H
#define APPS_TRAIN_PPO_H

#include "gpurt/ppo_task.h"
#include "train_file.h"

#define TRAIN_PPO_SETTINGS 24
#define TRAIN_PPO_TRIALS 32343  // seed of starts that training never sees

struct train_ppo {
    struct trainer trainer;  // first: see trainer.h
    const char *env;         // --env
    struct train_file file;

    const struct grt_env_info *info;
    // Settings of the environment that were given.
    struct grt_env_value settings[TRAIN_PPO_SETTINGS];
    char names[TRAIN_PPO_SETTINGS][64];
    uint32_t setting_count;

    struct grt_ppo_task *task;
    uint32_t steps;  // of an iteration, of the newest task too that could not be made
    // Of the iterations of this process: how many, the newest, and sums.
    uint32_t turns;
    struct grt_ppo_report newest, sum;
};

// Fills the values from --config and the words, and opens the environment. `only` is the
// environment of a verb that has one, or NULL. Returns an exit code, the mistake said.
int train_ppo_settings(struct train_ppo *t, const char *only, const char **words, size_t count);
// Makes worlds, networks and the learner. Returns an exit code, the mistake said.
int train_ppo_make(struct train_ppo *t);
// Frees them; they can be made anew, after other settings.
void train_ppo_unmake(struct train_ppo *t);
// For verbs that use a policy: fills the values from the checkpoint, t->file.archive or else the
// one that is named (by itself ENV-ppo.h5), for so many episodes. words[0] is the environment; the
// others are KEY=VALUE and change its settings. Returns an exit code, the mistake said.
int train_ppo_trained(struct train_ppo *t, const char **words, size_t count, uint32_t episodes);
// Opens the device, and makes the learner with the checkpoint's networks. Returns an exit code, the
// mistake said.
int train_ppo_open_trained(struct train_ppo *t);
// Frees what the values hold, but for the trainer's own.
void train_ppo_close(void *self);

#endif
