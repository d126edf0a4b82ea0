// SPDX-License-Identifier: Apache-2.0
// What a config makes of proximal policy optimization: copies of the environment to learn in and to
// be tried in, networks, and the learner (ppo.h). Its checkpoints have the keys that were given, so
// that who goes on with one, or uses its policy, need not be told them again.
#ifndef GRT_PPO_TASK_H
#define GRT_PPO_TASK_H

#include "config.h"
#include "ppo_team.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grt_ppo_task_desc {
    struct grt_dev *dev;
    // Of GRT_CONFIG_OF_PPO; used as long as the task lives. Its depth becomes the number of widths
    // of `hidden`.
    struct grt_config *config;
    const struct grt_env_info *env;
    const struct grt_env_value *settings;  // of the environment
    uint32_t setting_count;
    // A checkpoint that is gone on with: where the config does not say, observations are normalised
    // as there. May be NULL.
    const struct grt_archive *archive;
    bool (*stop)(void);  // as in struct grt_ppo_desc
    // Ranks that learn together; may be NULL. Then all of them make the task, with the same
    // settings.
    struct grt_comm *comm;
};
#define grt_ppo_task_desc(...) GRT_DESC(struct grt_ppo_task_desc, __VA_ARGS__)

struct grt_ppo_task {
    struct grt_ppo *ppo;                 // the learner, or this rank's first of several
    struct grt_worlds *worlds, *trials;  // to learn in; for grt_ppo_evaluate()
    uint32_t copies, steps;              // of an iteration, of all ranks
    uint32_t parts;                      // of all ranks: `micro_batches`, or one for each
};

// NULL with the sentence.
GRT_API struct grt_ppo_task *grt_ppo_task_create(const struct grt_ppo_task_desc *desc);
GRT_API void grt_ppo_task_destroy(struct grt_ppo_task **task);

// As those of one learner, and of a team where there are several parts. What does not fit is
// refused with what the checkpoint was made with and this run was not.
GRT_API bool grt_ppo_task_iterate(struct grt_ppo_task *task, struct grt_ppo_report *report);
GRT_API bool grt_ppo_task_environment(struct grt_ppo_task *task, double *seconds);
GRT_API bool grt_ppo_task_load(struct grt_ppo_task *task, const struct grt_archive *archive,
                               enum grt_ppo_part part);

// Everything for a later run: grt_ppo_save(), the keys that were given, and the environment with
// its settings; `env` is the text that it was opened by. Of several ranks all save at once.
GRT_API bool grt_ppo_task_save(const struct grt_ppo_task *task, const char *env,
                               struct grt_archive *archive);
// Keys that the config was not given become those of such a checkpoint. The number of parts does
// where the run is resumed: another run has ranks and copies of its own.
GRT_API bool grt_ppo_task_recall(struct grt_config *config, const struct grt_archive *archive,
                                 bool resume);
// The i-th setting of the environment in such a checkpoint; false past the last.
GRT_API bool grt_ppo_task_setting(const struct grt_archive *archive, uint32_t i,
                                  struct grt_env_value *setting);

#ifdef __cplusplus
}
#endif
#endif
