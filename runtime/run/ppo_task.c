// SPDX-License-Identifier: Apache-2.0
#include "gpurt/ppo_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/model_file.h"
#include "gpurt/network.h"
#include "gpurt/task.h"
#include "run_ranks.h"

#define CPU_COPIES 64
#define GPU_COPIES 4096
#define BATCHES 4  // minibatches of an epoch, unless batch_size says otherwise

struct task {
    struct grt_ppo_task base;  // first
    struct grt_config *config;
    const struct grt_env_info *env;
    struct grt_mlp_desc actor_mlp, critic_mlp;
    struct grt_network_desc actor_list, critic_list;
    // Of each part of this rank; the first are those of base.
    struct grt_worlds **worlds;
    struct grt_ppo **learners;
    uint32_t count;
    struct grt_ppo_team *team;  // NULL: there is one part
};

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

bool grt_ppo_task_save(const struct grt_ppo_task *base, const char *env,
                       struct grt_archive *archive) {
    if (!base || !env || !archive) {
        return grt_fail(GRT_INVALID, "a task of PPO, its environment and an archive are wanted");
    }
    const struct task *t = (const struct task *)base;
    const struct grt_config *c = t->config;
    char name[GRT_ARCHIVE_VALUE_NAME], text[GRT_CONFIG_TREE_SIZE];
    // First what every checkpoint has, so that a resumed run, which is given it, has it in this
    // order too: what follows from the device, and what who loads the networks elsewhere must know.
    value_name(name, "config", grt_config_key_info(GRT_CONFIG_ACTIVATION)->name);
    bool ok = (t->team ? grt_ppo_team_save(t->team, archive) : grt_ppo_save(base->ppo, archive)) &&
              grt_archive_set_text(archive, "env", t->env->name) &&
              grt_archive_set_text(archive, "env_file", env) &&
              grt_archive_set_text(archive, name, c->activation) &&
              keep_whole(archive, GRT_CONFIG_NUM_ENVS, base->copies) &&
              keep_whole(archive, GRT_CONFIG_ROLLOUT_STEPS, base->steps) &&
              keep_whole(archive, GRT_CONFIG_MICRO_BATCHES, base->parts);
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
    for (uint32_t i = 0; ok && (setting = grt_worlds_setting(base->worlds, i, &value)); i++) {
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

// With another average it would be another run; with none the average would go on as the networks.
static bool same_average(const struct grt_config *config, const struct grt_archive *archive) {
    char name[GRT_ARCHIVE_VALUE_NAME], room[32], text[64];
    value_name(name, "config", grt_config_key_info(GRT_CONFIG_EMA)->name);
    const struct grt_archive_value *value = grt_archive_value(archive, name);
    grt_config_value_text(config, GRT_CONFIG_EMA, text, sizeof text);
    double made = value ? strtod(value_text(value, room), NULL) : 0, here = strtod(text, NULL);
    return made == here ||
           grt_fail(GRT_CONFIG, "%s was made with ema=%g; here it is %g, which is another run",
                    archive->path[0] ? archive->path : "checkpoint", made, here);
}

bool grt_ppo_task_recall(struct grt_config *config, const struct grt_archive *archive,
                         bool resume) {
    char name[GRT_ARCHIVE_VALUE_NAME], room[32];
    if (!config || !archive) {
        return grt_fail(GRT_INVALID, "a config and a checkpoint of PPO are wanted");
    }
    bool ok = true;
    for (uint32_t i = 0; ok && i < GRT_CONFIG_KEY_COUNT; i++) {
        enum grt_config_key key = (enum grt_config_key)i;
        value_name(name, "config", grt_config_key_info(key)->name);
        const struct grt_archive_value *value = grt_archive_value(archive, name);
        bool parts = key == GRT_CONFIG_MICRO_BATCHES;
        if (!is_kept(key) || grt_config_given(config, key) || (parts && !resume)) {
            continue;
        }
        if (value || parts) {  // a file without their number has one part
            ok = grt_config_set(config, key, value ? value_text(value, room) : "1");
        }
    }
    return ok && (!resume || same_average(config, archive));
}

bool grt_ppo_task_setting(const struct grt_archive *archive, uint32_t i,
                          struct grt_env_value *setting) {
    static const char begin[] = "setting_";
    char room[32];
    for (uint32_t at = 0; archive && setting && at < archive->value_count; at++) {
        const struct grt_archive_value *value = &archive->values[at];
        if (strncmp(value->name, begin, sizeof begin - 1) == 0 && i-- == 0) {
            setting->name = value->name + sizeof begin - 1;
            setting->value = strtod(value_text(value, room), NULL);
            return true;
        }
    }
    return false;
}

// ---- networks ----

// A list of layers where there is one, else an mlp.
static struct grt_ppo_net net_of(const struct grt_config *c, enum grt_config_key key,
                                 uint32_t outputs, struct grt_mlp_desc *mlp,
                                 struct grt_network_desc *network) {
    const struct grt_config_tree *list = grt_config_value(c, key);
    *mlp = grt_task_mlp(c, outputs);
    *network = (struct grt_network_desc){.text = list->text,
                                         .path = grt_config_file(c, key),
                                         .name = grt_config_source(c, key),
                                         .line = list->line,
                                         .column = list->column,
                                         .whole = list->whole,
                                         .outputs = outputs};
    return list->text[0] ? (struct grt_ppo_net){grt_network_make, network}
                         : (struct grt_ppo_net){grt_mlp_make, mlp};
}

// ---- the learner ----

// How many copies, for how many steps: as given, or by the keys of other programs.
static void size_run(struct task *t, const struct grt_dev_info *info) {
    const struct grt_config *c = t->config;
    uint64_t workers = c->num_workers > 0 ? c->num_workers : 1;
    uint64_t episodes =
        c->episodes_per_batch > 0 ? c->episodes_per_batch : workers * c->episodes_per_worker;
    t->base.copies = c->num_envs > 0       ? (uint32_t)c->num_envs
                     : info->caps.software ? CPU_COPIES
                                           : GPU_COPIES;
    t->base.steps = (uint32_t)c->rollout_steps;
    if (episodes > 0 && !grt_config_given(c, GRT_CONFIG_NUM_ENVS)) {
        t->base.copies = (uint32_t)episodes;
        if (!grt_config_given(c, GRT_CONFIG_ROLLOUT_STEPS)) {
            t->base.steps = c->episode_limit > 0 ? (uint32_t)c->episode_limit : t->env->length;
        }
    }
}

// With the schedule over so many updates; false with the sentence.
static bool describe_optimizer(const struct grt_config *c, uint64_t updates,
                               struct grt_optim_desc *desc) {
    if (!grt_task_optimizer(c, desc)) {
        return false;
    }
    static const enum grt_schedule known[] = {GRT_SCHEDULE_CONSTANT, GRT_SCHEDULE_COSINE,
                                              GRT_SCHEDULE_LINEAR};
    size_t i = 0, count = sizeof known / sizeof *known;
    while (i < count && strcmp(c->schedule, grt_schedule_text(known[i])) != 0) {
        i++;
    }
    if (i == count) {
        return grt_fail(GRT_CONFIG,
                        "schedule: %s is for epochs over data, which PPO has not; use "
                        "cosine, linear or constant",
                        c->schedule);
    }
    desc->schedule = known[i];
    desc->total = (uint32_t)(updates < UINT32_MAX ? updates : UINT32_MAX);
    return true;
}

// Cuts the copies into parts, and shares these out.
static bool size_parts(struct task *t, const struct grt_comm *comm) {
    uint32_t ranks = grt_comm_ranks(comm), copies = t->base.copies;
    uint64_t parts = t->config->micro_batches > 0 ? t->config->micro_batches : ranks;
    if (!grt_run_parts_good(parts, ranks)) {
        return false;
    }
    if (copies % parts != 0) {
        return grt_fail(GRT_CONFIG,
                        "num_envs: %u copies are not cut into %llu equal parts (micro_batches, or "
                        "one for each rank)",
                        copies, (unsigned long long)parts);
    }
    t->base.parts = (uint32_t)parts;
    t->count = (uint32_t)parts / ranks;
    t->worlds = calloc(t->count, sizeof(struct grt_worlds *));
    t->learners = calloc(t->count, sizeof(struct grt_ppo *));
    return (t->worlds && t->learners) || grt_fail(GRT_NO_MEMORY, "no host memory for PPO");
}

static bool make_worlds(struct task *t, const struct grt_ppo_task_desc *desc) {
    const struct grt_config *c = t->config;
    uint32_t copies = t->base.copies / t->base.parts;
    struct grt_worlds_desc of = {.env = desc->env,
                                 .settings = desc->settings,
                                 .setting_count = desc->setting_count,
                                 .copies = copies,
                                 .phase = (uint32_t)c->phase,
                                 .length = (uint32_t)c->episode_limit};
    for (uint32_t i = 0; i < t->count; i++) {
        of.first = (grt_comm_rank(desc->comm) * t->count + i) * copies;
        t->worlds[i] = grt_worlds_create(desc->dev, &of);
        if (!t->worlds[i]) {
            return false;
        }
    }
    of.copies = (uint32_t)c->evaluate_envs;
    of.first = 0;
    of.once = true;
    t->base.worlds = t->worlds[0];
    t->base.trials = grt_worlds_create(desc->dev, &of);
    return t->base.trials != NULL;
}

static bool make_learners(struct task *t, const struct grt_ppo_task_desc *desc,
                          struct grt_ppo_desc *d) {
    // Of one rank that was given a comm nevertheless, iterations are those of ranks.
    bool several = t->base.parts > 1 || desc->comm, ok = true;
    for (uint32_t i = 0; ok && i < t->count; i++) {
        d->worlds = t->worlds[i];
        d->parts = several ? t->base.parts : 0;
        d->part = several ? grt_comm_rank(desc->comm) * t->count + i : 0;
        t->learners[i] = grt_ppo_create(desc->dev, d);
        ok = t->learners[i] != NULL;
    }
    t->base.ppo = t->learners[0];
    if (ok && several) {
        t->team = grt_ppo_team_create(
            grt_ppo_team_desc(.comm = desc->comm, .learners = t->learners, .count = t->count));
    }
    return ok && (!several || t->team);
}

// What every rank has to have alike.
static bool agree(const struct task *t, const struct grt_ppo_task_desc *desc) {
    char text[GRT_ENV_SETTINGS * 96] = "", digest[GRT_ENV_DIGEST];
    size_t used = 0;
    if (grt_comm_ranks(desc->comm) == 1) {
        return true;
    }
    for (uint32_t i = 0; i < desc->setting_count && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%.64s=%.17g ",
                                 desc->settings[i].name, desc->settings[i].value);
    }
    grt_env_digest(desc->env, digest);
    return grt_run_agree_keys(desc->comm, t->config) &&
           grt_comm_agree(desc->comm, "environment", digest) &&
           grt_comm_agree(desc->comm, "settings of the environment", text);
}

static bool make(struct task *t, const struct grt_ppo_task_desc *desc) {
    const struct grt_config *c = t->config;
    if (!agree(t, desc) || !grt_task_widths(t->config)) {
        return false;
    }
    size_run(t, grt_dev_info(desc->dev));
    // The number of copies that nobody gave is that of the first rank's device.
    if (!grt_comm_lead(desc->comm, &t->base.copies, sizeof t->base.copies) ||
        !size_parts(t, desc->comm) || !make_worlds(t, desc)) {
        return false;
    }
    const struct grt_worlds_sizes *sizes = grt_worlds_sizes(t->base.worlds);
    // Rows of a part, and those of its share of a minibatch.
    uint64_t rows = (uint64_t)t->base.copies / t->base.parts * sizes->agents * t->base.steps;
    uint64_t batch = c->batch_size > 0 ? (c->batch_size + t->base.parts - 1) / t->base.parts
                                       : (rows + BATCHES - 1) / BATCHES;
    struct grt_ppo_desc d = grt_ppo_defaults();
    uint32_t outputs = sizes->choices > 0 ? sizes->choices : sizes->act;
    d.actor = net_of(c, GRT_CONFIG_ACTOR, outputs, &t->actor_mlp, &t->actor_list);
    d.critic = net_of(c, GRT_CONFIG_CRITIC_NETWORK, 1, &t->critic_mlp, &t->critic_list);
    d.central =
        strcmp(c->critic, "auto") == 0 ? sizes->global > 0 : strcmp(c->critic, "central") == 0;
    // As given, as the checkpoint was trained, or as suits the environment.
    d.normalise = grt_config_given(c, GRT_CONFIG_NORMALIZE_OBSERVATIONS) ? c->normalize_observations
                  : desc->archive ? grt_archive_find(desc->archive, GRT_PPO_NORMALIZER) != NULL
                                  : desc->env->normalise != 0;
    d.horizon = t->base.steps;
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
    if (!describe_optimizer(c, c->iterations * d.epochs * ((rows + batch - 1) / batch), &d.optim)) {
        return false;
    }
    d.seed = c->seed;
    d.stop = desc->stop;
    return make_learners(t, desc, &d);
}

struct grt_ppo_task *grt_ppo_task_create(const struct grt_ppo_task_desc *desc) {
    if (!desc || !desc->dev || !desc->config || !desc->env) {
        grt_fail(GRT_INVALID, "a device, a config and an environment are wanted");
        return NULL;
    }
    struct task *t = calloc(1, sizeof *t);
    if (!t) {
        grt_fail(GRT_NO_MEMORY, "no host memory for PPO");
        return NULL;
    }
    t->config = desc->config;
    t->env = desc->env;
    struct grt_ppo_task *made = &t->base;
    if (!make(t, desc)) {
        grt_ppo_task_destroy(&made);
    }
    return made;
}

void grt_ppo_task_destroy(struct grt_ppo_task **task) {
    struct grt_ppo_task *t = task ? *task : NULL;
    if (!t) {
        return;
    }
    struct task *own = (struct task *)t;
    grt_ppo_team_destroy(&own->team);
    for (uint32_t i = 0; own->learners && i < own->count; i++) {
        grt_ppo_destroy(&own->learners[i]);
    }
    for (uint32_t i = 0; own->worlds && i < own->count; i++) {
        grt_worlds_destroy(&own->worlds[i]);
    }
    grt_worlds_destroy(&t->trials);
    free(own->learners);
    free(own->worlds);
    free(own);
    *task = NULL;
}

// ---- learning ----

bool grt_ppo_task_iterate(struct grt_ppo_task *task, struct grt_ppo_report *report) {
    struct task *t = (struct task *)task;
    return t && t->team ? grt_ppo_team_iterate(t->team, report)
                        : grt_ppo_iterate(t ? task->ppo : NULL, report);
}

bool grt_ppo_task_environment(struct grt_ppo_task *task, double *seconds) {
    struct task *t = (struct task *)task;
    return t && t->team ? grt_ppo_team_environment(t->team, seconds)
                        : grt_ppo_environment(t ? task->ppo : NULL, seconds);
}

// ---- a checkpoint that does not fit ----

// What a run was made with and this one was not, on two sides: "num_uavs=3", "num_uavs=4".
struct sides {
    char there[256], here[256];
};

static void add_side(char side[256], const char *name, const char *value) {
    size_t used = strlen(side);
    snprintf(side + used, 256 - used, "%s%s=%.60s", used ? ", " : "", name, value);
}

static void compare(struct sides *s, const char *name, const char *there, const char *here) {
    if (strcmp(there, here) != 0) {
        add_side(s->there, name, there);
        add_side(s->here, name, here);
    }
}

// Keys that shape networks; what nobody gave is as it is without a config.
static void compare_keys(struct sides *s, const struct grt_config *c,
                         const struct grt_archive *archive) {
    static const enum grt_config_key keys[] = {GRT_CONFIG_HIDDEN,         GRT_CONFIG_DEPTH,
                                               GRT_CONFIG_LAYER_NORM,     GRT_CONFIG_ACTOR,
                                               GRT_CONFIG_CRITIC_NETWORK, GRT_CONFIG_CRITIC};
    char name[GRT_ARCHIVE_VALUE_NAME], room[32], there[GRT_CONFIG_TREE_SIZE],
        here[GRT_CONFIG_TREE_SIZE];
    struct grt_config *otherwise = malloc(sizeof *otherwise);  // too large for the stack
    if (!otherwise) {
        return;
    }
    grt_config_init_for(otherwise, GRT_CONFIG_OF_PPO);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *key = grt_config_key_info(keys[i])->name;
        value_name(name, "config", key);
        const struct grt_archive_value *value = grt_archive_value(archive, name);
        grt_config_value_text(otherwise, keys[i], there, sizeof there);
        grt_config_value_text(c, keys[i], here, sizeof here);
        compare(s, key, value ? value_text(value, room) : there, here);
    }
    free(otherwise);
}

static void compare_settings(struct sides *s, const struct grt_ppo_task *task,
                             const struct grt_archive *archive) {
    struct grt_env_value there;
    char texts[2][32];
    double here;
    const char *name;
    for (uint32_t i = 0; grt_ppo_task_setting(archive, i, &there); i++) {
        for (uint32_t k = 0; (name = grt_worlds_setting(task->worlds, k, &here)); k++) {
            snprintf(texts[0], sizeof texts[0], "%g", there.value);
            snprintf(texts[1], sizeof texts[1], "%g", here);
            if (strcmp(name, there.name) == 0) {
                compare(s, name, texts[0], texts[1]);
            }
        }
    }
}

// Copies of the environment are of a run, not of its networks.
static void compare_copies(struct sides *s, const struct grt_ppo_task *task,
                           const struct grt_archive *archive) {
    char name[GRT_ARCHIVE_VALUE_NAME], room[32], here[32];
    const char *key = grt_config_key_info(GRT_CONFIG_NUM_ENVS)->name;
    value_name(name, "config", key);
    const struct grt_archive_value *value = grt_archive_value(archive, name);
    snprintf(here, sizeof here, "%u", task->copies);
    if (value) {
        compare(s, key, value_text(value, room), here);
    }
}

// With what is likely the reason.
static bool fail_to_load(const struct task *t, const struct grt_archive *archive,
                         enum grt_ppo_part part, enum grt_status status, const char *why) {
    struct sides s = {"", ""};
    char holds[GRT_MODEL_TEXT];
    enum grt_model_maker maker = grt_model_maker(archive, holds);
    const char *env = grt_archive_text(archive, "env", t->env->name);
    if (maker == GRT_MODEL_OF_SUPERVISED || maker == GRT_MODEL_OF_ES) {
        return grt_fail(status, "%s holds %s, and none of `gpurt train ppo`",
                        archive->path[0] ? archive->path : "the archive", holds);
    }
    if (strcmp(env, t->env->name) != 0) {
        return grt_fail(status, "%s: it is of a policy for '%.100s', and this is one for '%s'", why,
                        env, t->env->name);
    }
    compare_settings(&s, &t->base, archive);
    compare_keys(&s, t->config, archive);
    if (part == GRT_PPO_ALL) {
        compare_copies(&s, &t->base, archive);
    }
    return grt_fail(status, "%s%s%s%s%s%s", why, s.there[0] ? ": it was made with " : "", s.there,
                    s.there[0] ? ", here " : "", s.here,
                    s.there[0] ? "; what is left out is as it was there" : "");
}

bool grt_ppo_task_load(struct grt_ppo_task *task, const struct grt_archive *archive,
                       enum grt_ppo_part part) {
    struct task *t = (struct task *)task;
    bool quiet = grt_quiet(true);
    bool ok = t && t->team ? grt_ppo_team_load(t->team, archive, part)
                           : grt_ppo_load(t ? task->ppo : NULL, archive, part);
    char why[1024];
    enum grt_status status = grt_quiet_status();
    snprintf(why, sizeof why, "%s", grt_quiet_error());
    grt_quiet(quiet);
    if (!ok && status == GRT_BAD_DATA && t && archive) {
        return fail_to_load(t, archive, part, status, why);
    }
    return ok || (status != GRT_OK && grt_fail(status, "%s", why));
}
