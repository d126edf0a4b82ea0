// SPDX-License-Identifier: Apache-2.0
// Inside `gpurt train es` and `gpurt train standing`: a run, its options, its checkpoint.
#ifndef APPS_TRAIN_ES_H
#define APPS_TRAIN_ES_H

#include "gpurt/config.h"
#include "gpurt/es.h"
#include "gpurt/limits.h"
#include "cli/options.h"
#include "base/lock.h"
#include "gpurt/runlog.h"
#include "train_rows.h"

#define TRAIN_ES_PATH 1024
#define TRAIN_ES_JUDGED "patience_judged"  // t->judged in a checkpoint

struct train_es {
    struct options common;  // first: see options.h
    const char *env, *policy, *algo;
    uint32_t phase, num_envs, num_dirs, dir_chunk, top_dirs, episode_length;
    double step_size, noise_std;
    uint32_t iterations, seed, no_normalise;
    bool seed_given;
    const char *checkpoint, *resume, *from;
    uint32_t checkpoint_every, evaluate_every;
    double until;
    uint32_t baselines;
    const char *log, *tensorboard;
    const char *config;  // --config
    uint32_t keys;
    struct grt_config settings;

    const char *verb;                 // "train es"
    bool one_env;                     // the verb is of one environment
    char path[TRAIN_ES_PATH];         // of the checkpoint
    bool written;                     // by this run
    uint32_t done, saved;             // iterations: in all, and those of the newest checkpoint
    const struct grt_env_info *info;  // of env
    struct grt_dev *dev;
    struct grt_es *es;
    struct grt_runlog *runlog;
    struct train_rows rows;
    struct grt_lock lock;  // on the checkpoint
    struct grt_limits limits;
    struct grt_patience patience;
    uint32_t judged;      // iteration of the newest trial that patience has counted
    double spent, start;  // seconds of training before this process; when this one began
    bool reached;         // the newest trial reached a target
    enum grt_ending ended;
};

#define TRAIN_ES_ENV_OPTIONS_COUNT 1
extern const struct option_row train_es_env_options[TRAIN_ES_ENV_OPTIONS_COUNT];
#define TRAIN_ES_OPTIONS_COUNT 12
extern const struct option_row train_es_options[TRAIN_ES_OPTIONS_COUNT];
#define TRAIN_ES_RUN_OPTIONS_COUNT 12
extern const struct option_row train_es_run_options[TRAIN_ES_RUN_OPTIONS_COUNT];

// Seconds of training so far.
double train_es_seconds(const struct train_es *t);
// Fills what no option has given from --config and the words KEY=VALUE. Returns an exit code, the mistake said.
int train_es_settings(struct train_es *t, const char **words, size_t word_count);
// Fills t->path and takes it for this run, before the work begins: what cannot be written would be found
// out after it. t->lock is to be released. Returns an exit code, the mistake said.
int train_es_claim(struct train_es *t, const char *path);
// The checkpoint of so many iterations. An earlier run's is moved aside before the first. Returns an
// exit code, the mistake said.
int train_es_save(struct train_es *t, uint32_t iteration);

#endif
