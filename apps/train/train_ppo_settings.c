// SPDX-License-Identifier: Apache-2.0
// Settings of `gpurt train ppo` and `gpurt train uav`: keys of a config, and settings of the
// environment beside them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/talk.h"
#include "train_ppo.h"

#define CPU_COPIES 64
#define GPU_COPIES 4096
#define BATCHES 4  // minibatches of an epoch, unless batch_size says otherwise

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

// A run is told these anew.
static bool is_kept(enum grt_config_key key) {
    static const enum grt_config_key own[] = {
        GRT_CONFIG_ENV,      GRT_CONFIG_BACKEND,     GRT_CONFIG_DEVICE,
        GRT_CONFIG_LOG,      GRT_CONFIG_TENSORBOARD, GRT_CONFIG_MEM_FRACTION,
        GRT_CONFIG_FROM,     GRT_CONFIG_SETTINGS,    GRT_CONFIG_CHECKPOINT_FILE,
        GRT_CONFIG_NUM_UAVS, GRT_CONFIG_MAP,         GRT_CONFIG_NUM_OBSTACLES,
        GRT_CONFIG_WINDOW,   GRT_CONFIG_MAX_TIME,    GRT_CONFIG_PATIENCE};
    bool kept = grt_config_key_scope(key) & GRT_CONFIG_OF_PPO;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        kept = kept && own[i] != key;
    }
    return kept;
}

static void value_name(char name[GRT_ARCHIVE_VALUE_NAME], const char *kind, const char *key) {
    snprintf(name, GRT_ARCHIVE_VALUE_NAME, "%s_%.48s", kind, key);
}

static bool keep_whole(struct grt_archive *archive, enum grt_config_key key, uint32_t value) {
    char name[GRT_ARCHIVE_VALUE_NAME], text[16];
    value_name(name, "config", grt_config_key_info(key)->name);
    snprintf(text, sizeof text, "%u", value);
    return grt_archive_set_text(archive, name, text);
}

bool train_ppo_keep(const struct train_ppo *t, struct grt_archive *archive) {
    const struct grt_config *c = &t->trainer.config.settings;
    char name[GRT_ARCHIVE_VALUE_NAME], text[GRT_CONFIG_TREE_SIZE];
    // First what every checkpoint has, so that a resumed run, which is given it, has it in this
    // order too: what follows from the device, and what who loads the networks elsewhere must know.
    value_name(name, "config", grt_config_key_info(GRT_CONFIG_ACTIVATION)->name);
    bool ok = grt_archive_set_text(archive, "env", t->info->name) &&
              grt_archive_set_text(archive, "env_file", t->env) &&
              grt_archive_set_text(archive, name, c->activation) &&
              keep_whole(archive, GRT_CONFIG_NUM_ENVS, t->copies) &&
              keep_whole(archive, GRT_CONFIG_ROLLOUT_STEPS, t->steps);
    for (uint32_t i = 0; ok && i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        if (!is_kept(key) || !grt_config_given(c, key)) {
            continue;
        }
        value_name(name, "config", grt_config_key_info(key)->name);
        ok = grt_config_value_text(c, key, text, sizeof text) < sizeof text &&
             grt_archive_set_text(archive, name, text);
    }
    double value;
    const char *setting;
    for (uint32_t i = 0; ok && (setting = grt_worlds_setting(t->worlds, i, &value)); i++) {
        value_name(name, "setting", setting);
        ok = grt_archive_set_real(archive, name, value);
    }
    return ok;
}

// A value as a text. A safetensors file does not tell the text 16 from the number, nor 12.0 from
// 12.
static const char *value_text(const struct grt_archive_value *value, char room[32]) {
    if (value->type == GRT_ARCHIVE_TEXT) {
        return value->text;
    }
    if (value->type == GRT_ARCHIVE_WHOLE) {
        snprintf(room, 32, "%lld", (long long)value->whole);
    } else {
        snprintf(room, 32, "%.17g", value->real);
    }
    return room;
}

// What was not given now is as in the checkpoint.
static bool recall(struct train_ppo *t) {
    struct grt_config *c = &t->trainer.config.settings;
    char name[GRT_ARCHIVE_VALUE_NAME], room[32];
    bool ok = true;
    for (uint32_t i = 0; ok && t->file.archive && i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        value_name(name, "config", grt_config_key_info(key)->name);
        const struct grt_archive_value *value = grt_archive_value(t->file.archive, name);
        if (value && is_kept(key) && !grt_config_given(c, key)) {
            ok = grt_config_set(c, key, value_text(value, room));
        }
    }
    for (uint32_t i = 0; ok && t->file.archive && i < t->file.archive->value_count; i++) {
        const struct grt_archive_value *value = &t->file.archive->values[i];
        char word[128];
        if (strncmp(value->name, "setting_", 8) != 0) {
            continue;
        }
        snprintf(word, sizeof word, "%s=%.32s", value->name + 8, value_text(value, room));
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

// ---- networks ----

// A list of layers where there is one, else an mlp.
static struct grt_ppo_net net_of(const struct train_ppo *t, enum grt_config_key key,
                                 uint32_t outputs, struct grt_mlp_desc *mlp,
                                 struct grt_network_desc *network) {
    const struct grt_config *c = &t->trainer.config.settings;
    const struct grt_config_tree *list = grt_config_value(c, key);
    *mlp = grt_task_mlp(c, outputs);
    *network = (struct grt_network_desc){.text = list->text,
                                         .path = grt_config_source(c, key),
                                         .line = list->line,
                                         .column = list->column,
                                         .outputs = outputs};
    return list->text[0] ? (struct grt_ppo_net){grt_network_make, network}
                         : (struct grt_ppo_net){grt_mlp_make, mlp};
}

// ---- the learner ----

// How many copies, for how many steps: as given, or by the keys of other programs.
static void size_run(struct train_ppo *t) {
    const struct grt_config *c = &t->trainer.config.settings;
    bool software = grt_dev_info(t->trainer.dev)->caps.software;
    uint64_t workers = c->num_workers > 0 ? c->num_workers : 1;
    uint64_t episodes =
        c->episodes_per_batch > 0 ? c->episodes_per_batch : workers * c->episodes_per_worker;
    t->copies = c->num_envs > 0 ? (uint32_t)c->num_envs : software ? CPU_COPIES : GPU_COPIES;
    t->steps = (uint32_t)c->rollout_steps;
    if (episodes > 0 && !grt_config_given(c, GRT_CONFIG_NUM_ENVS)) {
        t->copies = (uint32_t)episodes;
        if (!grt_config_given(c, GRT_CONFIG_ROLLOUT_STEPS)) {
            t->steps = c->episode_limit > 0 ? (uint32_t)c->episode_limit : t->info->length;
        }
    }
}

// With the schedule over so many updates; false with the sentence.
static bool describe_optimizer(const struct train_ppo *t, uint64_t updates,
                               struct grt_optim_desc *desc) {
    const struct grt_config *c = &t->trainer.config.settings;
    if (!grt_task_optimizer(c, desc)) {
        return false;
    }
    if (strcmp(c->schedule, "step") == 0) {
        talk_error("schedule: step counts epochs over data, which PPO has not; use cosine or "
                   "constant");
        return false;
    }
    desc->schedule =
        strcmp(c->schedule, "cosine") == 0 ? GRT_SCHEDULE_COSINE : GRT_SCHEDULE_CONSTANT;
    desc->total = (uint32_t)(updates < UINT32_MAX ? updates : UINT32_MAX);
    return true;
}

static struct grt_worlds *make_worlds(const struct train_ppo *t, uint32_t copies, bool once) {
    const struct grt_config *c = &t->trainer.config.settings;
    return grt_worlds_create(t->trainer.dev,
                             grt_worlds_desc(.env = t->info, .settings = t->settings,
                                             .setting_count = t->setting_count, .copies = copies,
                                             .phase = (uint32_t)c->phase,
                                             .length = (uint32_t)c->episode_limit, .once = once));
}

int train_ppo_make(struct train_ppo *t) {
    struct grt_config *c = &t->trainer.config.settings;
    if (!grt_task_widths(c)) {
        return COMMAND_CONFIG;
    }
    size_run(t);
    t->worlds = make_worlds(t, t->copies, false);
    t->trials = t->worlds ? make_worlds(t, (uint32_t)c->evaluate_envs, true) : NULL;
    if (!t->trials) {
        return command_exit_of_input(grt_last_status());
    }
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(t->worlds);
    uint64_t rows = (uint64_t)t->copies * sizes->agents * t->steps;
    uint64_t batch = c->batch_size > 0 ? c->batch_size : (rows + BATCHES - 1) / BATCHES;
    struct grt_ppo_desc d = grt_ppo_defaults();
    uint32_t outputs = sizes->choices > 0 ? sizes->choices : sizes->act;
    d.worlds = t->worlds;
    d.actor = net_of(t, GRT_CONFIG_ACTOR, outputs, &t->actor_mlp, &t->actor_list);
    d.critic = net_of(t, GRT_CONFIG_CRITIC_NETWORK, 1, &t->critic_mlp, &t->critic_list);
    d.central =
        strcmp(c->critic, "auto") == 0 ? sizes->global > 0 : strcmp(c->critic, "central") == 0;
    // As given, as the checkpoint was trained, or as suits the environment.
    d.normalise = grt_config_given(c, GRT_CONFIG_NORMALIZE_OBSERVATIONS) ? c->normalize_observations
                  : t->file.archive ? grt_archive_find(t->file.archive, GRT_PPO_NORMALIZER) != NULL
                                    : t->info->normalise != 0;
    d.horizon = t->steps;
    d.batch = (uint32_t)(batch < UINT32_MAX ? batch : UINT32_MAX);
    d.epochs = (uint32_t)c->update_epochs;
    d.gamma = c->discount;
    d.lambda = c->gae_lambda;
    d.clip = c->clip;
    d.value_clip = c->value_clip;
    d.value_weight = c->value_weight;
    d.entropy_weight = c->entropy_weight;
    d.target_kl = c->target_kl;
    d.log_std = c->log_std;
    d.precision = grt_task_precision(c);
    if (!describe_optimizer(t, c->iterations * d.epochs * ((rows + batch - 1) / batch), &d.optim)) {
        return COMMAND_CONFIG;
    }
    d.seed = c->seed;
    d.stop = talk_stopped;
    t->ppo = grt_ppo_create(t->trainer.dev, &d);
    return t->ppo ? COMMAND_OK : command_exit_of_input(grt_last_status());
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
        t->file.archive = model_file_load(config->checkpoint ? config->checkpoint : path);
    }
    if (!t->file.archive) {
        return command_exit_of(grt_last_status());
    }
    if (strcmp(grt_archive_text(t->file.archive, "learner", ""), "ppo") != 0) {
        talk_error("%s holds no policy of `gpurt train ppo`", t->file.archive->path);
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
                  !grt_config_set(&config->settings, GRT_CONFIG_ROLLOUT_STEPS, "1"))) {
        code = COMMAND_USAGE;
    }
    return code;
}

int train_ppo_open_trained(struct train_ppo *t) {
    t->trainer.dev = train_config_device(&t->trainer.config);
    int code = t->trainer.dev ? train_ppo_make(t) : command_exit_of(grt_last_status());
    if (!code && !grt_ppo_load(t->ppo, t->file.archive, GRT_PPO_ACTOR)) {
        code = grt_last_status() == GRT_INVALID ? COMMAND_DATA : command_exit_of(grt_last_status());
    }
    return code;
}

void train_ppo_unmake(struct train_ppo *t) {
    grt_ppo_destroy(&t->ppo);
    grt_worlds_destroy(&t->worlds);
    grt_worlds_destroy(&t->trials);
}

void train_ppo_close(void *self) {
    struct train_ppo *t = self;
    train_ppo_unmake(t);
    grt_archive_destroy(&t->file.archive);
    grt_env_close(&t->info);
}
