// SPDX-License-Identifier: Apache-2.0
// The config of `gpurt train es` and `gpurt train standing`: what no option has given comes from
// KEY=VALUE, then from the file.
#include <string.h>

#include "cli/command.h"
#include "cli/talk.h"
#include "train_config.h"
#include "train_es.h"

static const struct {
    enum grt_config_key key;
    size_t at;
} fields[] = {
#define X(key, field) {GRT_CONFIG_##key, offsetof(struct train_es, field)},
    X(ENV, env) X(PHASE, phase) X(POLICY, policy) X(ALGO, algo) X(NUM_ENVS, num_envs)
        X(NUM_DIRS, num_dirs) X(DIR_CHUNK, dir_chunk) X(TOP_DIRS, top_dirs) X(STEP_SIZE, step_size)
            X(NOISE_STD, noise_std) X(EPISODE_LENGTH, episode_length) X(ITERATIONS, iterations)
                X(UNTIL, until) X(BASELINES, baselines) X(EVALUATE_EVERY, file.evaluate_every)
                    X(CHECKPOINT_FILE, trainer.config.checkpoint)
                        X(CHECKPOINT_EVERY, checkpoint_every) X(EMA, ema)
#undef X
};

// A field that is still zero was given by no option.
static void fill(const struct grt_config *c, enum grt_config_key key, void *field) {
    const struct grt_config_key_info *info = grt_config_key_info(key);
    const void *value = grt_config_value(c, key);
    switch (info->type) {
    case GRT_CONFIG_IS_WHOLE:
        if (*(uint32_t *)field == 0) {
            *(uint32_t *)field = (uint32_t) * (const uint64_t *)value;
        }
        break;
    case GRT_CONFIG_IS_FLAG:
        if (*(uint32_t *)field == 0) {
            *(uint32_t *)field = *(const bool *)value;
        }
        break;
    case GRT_CONFIG_IS_REAL:
        if (*(double *)field == 0) {
            *(double *)field = *(const double *)value;
        }
        break;
    default:  // texts and words
        if (!*(const char **)field) {
            *(const char **)field = value;
        }
        break;
    }
}

int train_es_settings(struct train_es *t, const char *only, const char **words, size_t word_count) {
    struct grt_config *c = &t->trainer.config.settings;
    t->env = only ? only : t->env;
    grt_config_init_for(c, GRT_CONFIG_OF_ES);
    int code = train_config_settings(c, t->trainer.config.config, words, word_count);
    if (code) {
        return code;
    }
    if (only && grt_config_given(c, GRT_CONFIG_ENV) && strcmp(c->env, only) != 0) {
        talk_error("env: %s is not for `gpurt %s`, which trains %s; use `gpurt train es`", c->env,
                   t->trainer.kind->verb, only);
        return COMMAND_CONFIG;
    }
    if (c->seed > UINT32_MAX) {
        talk_error("seed: %llu is above 4294967295, the largest of evolution strategies",
                   (unsigned long long)c->seed);
        return COMMAND_CONFIG;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (grt_config_given(c, fields[i].key)) {
            fill(c, fields[i].key, (char *)t + fields[i].at);
        }
    }
    if (!t->seed_given && grt_config_given(c, GRT_CONFIG_SEED)) {
        t->seed = (uint32_t)c->seed;
        t->seed_given = true;
    }
    // --from and --resume exclude each other; one on the command line stands above `from` in a
    // file.
    if (!t->file.from && !t->file.resume && grt_config_given(c, GRT_CONFIG_FROM)) {
        t->file.from = c->from;
    }
    if (t->directions_path && !grt_config_set(c, GRT_CONFIG_DIRECTIONS, t->directions_path)) {
        return command_exit_of(grt_last_status());
    }
    t->no_normalise = t->no_normalise || !c->normalize_observations;
    // Steps alone mean as many iterations.
    if (!t->iterations && c->max_steps > 0) {
        t->iterations = (uint32_t)(c->max_steps < UINT32_MAX ? c->max_steps : UINT32_MAX);
    }
    t->iterations = t->iterations ? t->iterations : (uint32_t)c->iterations;
    t->checkpoint_every = t->checkpoint_every ? t->checkpoint_every : (uint32_t)c->checkpoint_every;
    train_config_devices(c, &t->trainer.config.common);
    return COMMAND_OK;
}
