// SPDX-License-Identifier: Apache-2.0
// Inside `gpurt train es` and `gpurt train standing`: their options and settings.
#ifndef APPS_TRAIN_ES_H
#define APPS_TRAIN_ES_H

#include "gpurt/es.h"
#include "train_es_directions.h"
#include "train_file.h"

struct train_es {
    struct trainer trainer;  // first: see trainer.h
    const char *env, *policy, *algo;
    uint32_t phase, num_envs, num_dirs, dir_chunk, top_dirs, episode_length;
    double step_size, noise_std;
    double ema;
    uint32_t iterations, seed, no_normalise;
    bool seed_given;
    struct train_file file;
    uint32_t checkpoint_every;
    double until;
    uint32_t baselines;

    const struct grt_env_info *info;  // of env
    struct grt_es *es;
    char policy_text[GRT_POLICY_TEXT];
    const char *directions_path;  // of --directions, or NULL
    struct es_directions directions;
};

#define TRAIN_ES_ENV_OPTIONS_COUNT 1
extern const struct option_row train_es_env_options[TRAIN_ES_ENV_OPTIONS_COUNT];
#define TRAIN_ES_OPTIONS_COUNT 12
extern const struct option_row train_es_options[TRAIN_ES_OPTIONS_COUNT];
#define TRAIN_ES_RUN_OPTIONS_COUNT 10
extern const struct option_row train_es_run_options[TRAIN_ES_RUN_OPTIONS_COUNT];

// Fills what no option has given from --config and the words KEY=VALUE. `only` is the environment
// of a verb that has one, or NULL. Returns an exit code, the mistake said.
int train_es_settings(struct train_es *t, const char *only, const char **words, size_t word_count);

#endif
