// SPDX-License-Identifier: Apache-2.0
// Settings of `gpurt train ppo` and `gpurt train uav`: keys of a config, and settings of the
// environment beside them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "gpurt/model_file.h"
#include "cli/talk.h"
#include "train_ppo.h"

// ---- settings of the environment ----

// Words that are no keys of a config may be settings: the environment will say.
static bool is_key(const char *word) {
    char name[128];
    const char *equals = strchr(word, '=');
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - word : 0), word);
    enum grt_config_key key = grt_config_key_find(GRT_CONFIG_OF_PPO, name);
    return !equals || key != GRT_CONFIG_KEY_COUNT;
}

static bool add_setting(struct train_ppo *t, const char *word) {
    const char *equals = strchr(word, '=');
    char *end = NULL;
    double value = equals ? strtod(equals + 1, &end) : 0;
    size_t length = equals ? (size_t)(equals - word) : 0;
    if (!equals || end == equals + 1 || *end || length == 0 || length >= sizeof *t->names ||
        t->setting_count >= TRAIN_PPO_SETTINGS - 1) {
        talk_error("%.100s: a setting of the environment is NAME=NUMBER, and %d of them at most",
                   word, TRAIN_PPO_SETTINGS);
        return false;
    }
    // One that was given before has its value now.
    uint32_t i = 0;
    while (i < t->setting_count &&
           (strncmp(t->names[i], word, length) != 0 || t->names[i][length])) {
        i++;
    }
    memcpy(t->names[i], word, length);
    t->names[i][length] = '\0';
    t->settings[i] = (struct grt_env_value){t->names[i], value};
    t->setting_count += i == t->setting_count;
    return true;
}

static bool add_key(struct train_ppo *t, enum grt_config_key key, uint64_t value) {
    char word[96];
    snprintf(word, sizeof word, "%s=%llu", grt_config_key_info(key)->name,
             (unsigned long long)value);
    return !grt_config_given(&t->trainer.config.settings, key) || add_setting(t, word);
}

// Of the config.
static bool collect_settings(struct train_ppo *t) {
    const struct grt_config *c = &t->trainer.config.settings;
    bool ok = true;
    for (size_t i = 0; ok && i < c->settings.count; i++) {
        ok = add_setting(t, c->settings.values[i]);
    }
    ok = ok && add_key(t, GRT_CONFIG_NUM_UAVS, c->num_uavs) &&
         add_key(t, GRT_CONFIG_NUM_OBSTACLES, c->num_obstacles) &&
         add_key(t, GRT_CONFIG_MAP, c->map) && add_key(t, GRT_CONFIG_WINDOW, c->window);
    return ok;
}

// ---- the environment ----

static int open_env(struct train_ppo *t, const char *only) {
    const struct grt_config *c = &t->trainer.config.settings;
    const char *given = grt_config_given(c, GRT_CONFIG_ENV) ? c->env : NULL;
    if (only && given && strcmp(given, only) != 0) {
        talk_error("env: %s is not for `gpurt %s`, which trains %s; use `gpurt train ppo`", given,
                   t->trainer.kind->verb, only);
        return COMMAND_CONFIG;
    }
    const char *env = only ? only : t->env ? t->env : given;
    if (!env && t->file.archive) {
        env = grt_archive_text(t->file.archive, "env_file",
                               grt_archive_text(t->file.archive, "env", NULL));
    }
    if (!env) {
        talk_error("which environment? --env NAME; see `gpurt %s --help`", t->trainer.kind->verb);
        return COMMAND_USAGE;
    }
    t->env = env;
    t->info = grt_env_open(env);
    return t->info ? COMMAND_OK : command_exit_of_input(grt_last_status());
}

// ---- what a checkpoint says ----

// What was not given now is as in the checkpoint.
static bool recall(struct train_ppo *t) {
    struct grt_env_value setting;
    bool ok = !t->file.archive || grt_ppo_task_recall(&t->trainer.config.settings, t->file.archive,
                                                      t->file.resume != NULL);
    for (uint32_t i = 0; ok && grt_ppo_task_setting(t->file.archive, i, &setting); i++) {
        char word[128];
        snprintf(word, sizeof word, "%s=%.17g", setting.name, setting.value);
        ok = add_setting(t, word);
    }
    return ok;
}

static bool is_setting(const struct train_ppo *t, const char *word) {
    const struct grt_env_world *world = t->info->world;
    size_t length = strcspn(word, "=");
    for (uint32_t i = 0; world && world->settings[i].name; i++) {
        const char *name = world->settings[i].name;
        if (strlen(name) == length && strncmp(name, word, length) == 0) {
            return true;
        }
    }
    return false;
}

int train_ppo_settings(struct train_ppo *t, const char *only, const char **words, size_t count) {
    struct grt_config *c = &t->trainer.config.settings;
    grt_config_init_for(c, GRT_CONFIG_OF_PPO);
    // Keys first; what is none may be a setting, which the environment knows.
    size_t keys = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_key(words[i])) {
            const char *other = words[keys];
            words[keys++] = words[i];
            words[i] = other;
        }
    }
    int code = train_config_settings(c, t->trainer.config.config, words, keys);
    // Those that come later stand above: of a checkpoint, of the file, of the command line.
    if (!code && (!recall(t) || !collect_settings(t))) {
        code = COMMAND_CONFIG;
    }
    if (!code) {
        code = open_env(t, only);
    }
    for (size_t i = keys; !code && i < count; i++) {
        bool ok =
            is_setting(t, words[i]) ? add_setting(t, words[i]) : grt_config_override(c, words[i]);
        code = ok ? COMMAND_OK : COMMAND_CONFIG;
    }
    if (!code && c->seed > UINT32_MAX) {
        talk_error("seed: %llu is above 4294967295, the largest of PPO",
                   (unsigned long long)c->seed);
        code = COMMAND_CONFIG;
    }
    train_config_devices(c, &t->trainer.config.common);
    return code;
}

// ---- the learner ----

int train_ppo_make(struct train_ppo *t) {
    t->task = grt_ppo_task_create(
        grt_ppo_task_desc(.dev = t->trainer.dev, .config = &t->trainer.config.settings,
                          .env = t->info, .settings = t->settings,
                          .setting_count = t->setting_count, .archive = t->file.archive,
                          .stop = talk_stopped, .comm = t->trainer.comm));
    t->steps = t->task ? t->task->steps : (uint32_t)t->trainer.config.settings.rollout_steps;
    return t->task ? COMMAND_OK : command_exit_of_input(grt_last_status());
}

// ---- a policy that is used ----

int train_ppo_trained(struct train_ppo *t, const char **words, size_t count, uint32_t episodes) {
    struct train_config *config = &t->trainer.config;
    char path[TRAIN_FILE_PATH], text[32];
    // Where `gpurt train ppo` has left it: a file is named as the environment in it, usually.
    const char *slash = strrchr(words[0], '/'), *name = slash ? slash + 1 : words[0];
    const char *end = strrchr(name, '.');
    snprintf(path, sizeof path, "%.*s-ppo.h5", end ? (int)(end - name) : (int)strlen(name), name);
    if (!t->file.archive) {
        t->file.archive = grt_model_load(config->checkpoint ? config->checkpoint : path);
    }
    if (!t->file.archive) {
        return command_exit_of(grt_last_status());
    }
    char holds[GRT_MODEL_TEXT];
    enum grt_model_maker maker = grt_model_maker(t->file.archive, holds);
    if (maker != GRT_MODEL_OF_PPO) {
        bool es = maker == GRT_MODEL_OF_ES;
        talk_error("%s holds %s, %s `gpurt train ppo`%s%s%s%s%s", t->file.archive->path, holds,
                   es ? "and eval takes those of" : "no policy of", es ? ": `gpurt play " : "",
                   es ? grt_archive_text(t->file.archive, "env", "ENV") : "",
                   es ? " --checkpoint " : "", es ? t->file.archive->path : "",
                   es ? " -o FILE.svg` shows what it does" : "");
        return COMMAND_DATA;
    }
    int code = train_ppo_settings(t, words[0], words + 1, count - 1);
    if (!code && strcmp(grt_archive_text(t->file.archive, "env", ""), t->info->name) != 0) {
        talk_error("%s: a policy for '%s' and not for '%s'", t->file.archive->path,
                   grt_archive_text(t->file.archive, "env", "nothing"), t->info->name);
        code = COMMAND_DATA;
    }
    snprintf(text, sizeof text, "%u", episodes);
    // Nothing is learnt: the least that makes a learner is enough.
    if (!code && (!grt_config_set(&config->settings, GRT_CONFIG_EVALUATE_ENVS, text) ||
                  !grt_config_set(&config->settings, GRT_CONFIG_NUM_ENVS, "1") ||
                  !grt_config_set(&config->settings, GRT_CONFIG_ROLLOUT_STEPS, "1") ||
                  !grt_config_set(&config->settings, GRT_CONFIG_MICRO_BATCHES, "1"))) {
        code = COMMAND_USAGE;
    }
    return code;
}

int train_ppo_open_trained(struct train_ppo *t) {
    t->trainer.dev = train_config_device(&t->trainer.config);
    int code = t->trainer.dev ? train_ppo_make(t) : command_exit_of(grt_last_status());
    if (!code && !grt_ppo_task_load(t->task, t->file.archive, GRT_PPO_ACTOR)) {
        code = grt_last_status() == GRT_INVALID ? COMMAND_DATA : command_exit_of(grt_last_status());
    }
    return code;
}

void train_ppo_unmake(struct train_ppo *t) {
    grt_ppo_task_destroy(&t->task);
}

void train_ppo_close(void *self) {
    struct train_ppo *t = self;
    train_ppo_unmake(t);
    grt_archive_destroy(&t->file.archive);
    grt_env_close(&t->info);
}
