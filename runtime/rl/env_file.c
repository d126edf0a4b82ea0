// SPDX-License-Identifier: Apache-2.0
// Environments from files: the file is the source of all kernels that use environments, and
// describes itself.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpurt/env.h"
#include "shaders/kernels.h"
#include "source/describe.h"
#include "source/source.h"

#define MAX_STATES 4096
#define MAX_WIDTH 1024  // numbers of an observation or action
#define MAX_ROWS 32     // rules, terms
#define MAX_TEXTS (MAX_STATES + 512)

struct env_file {
    struct grt_env_info info;  // first: see grt_env_close()
    struct grt_source *source;
    const char *names[MAX_STATES + 1];
    uint32_t name_count;
    struct grt_describe_env described;
    // Of one in memory; lists end with an empty row.
    struct grt_env_world world;
    struct grt_env_setting settings[GRT_ENV_SETTINGS + 1];
    struct grt_env_rule rules[MAX_ROWS + 1];
    const char *terms[MAX_ROWS + 1];
    uint32_t setting_count, rule_count, term_count;
    char *texts[MAX_TEXTS];  // all of the above, to be freed
    uint32_t text_count;
};

static const char *keep(struct env_file *env, const char *text) {
    char *copy = env->text_count < MAX_TEXTS ? strdup(text) : NULL;
    if (!copy) {
        grt_fail(GRT_NO_MEMORY, "no host memory for what %s says of itself",
                 grt_source_file(env->source));
        return NULL;
    }
    return env->texts[env->text_count++] = copy;
}

static bool is_file(const char *text) {
    size_t length = strlen(text);
    return strchr(text, '/') || (length > 2 && strcmp(text + length - 2, ".k") == 0);
}

static bool take_fact(void *context, const char *name, double value) {
    struct env_file *env = context;
    struct grt_env_info *info = &env->info;
    const struct {
        const char *name;
        uint32_t *whole;
        float *real;
        double least, most;
    } rows[] = {
        {"obs", &info->obs, NULL, 1, MAX_WIDTH},
        {"act", &info->act, NULL, 1, MAX_WIDTH},
        {"state", &info->state, NULL, 1, MAX_STATES},
        {"substeps", &info->substeps, NULL, 1, 1e6},
        {"phases", &info->phases, NULL, 1, 1e6},
        {"length", &info->length, NULL, 1, 1e6},
        {"dt", NULL, &info->dt, 1e-9, 1e9},
        {"operations", &info->operations, NULL, 0, 4e9},
        {"step_size", NULL, &info->step_size, 0, 1e9},
        {"noise_std", NULL, &info->noise_std, 0, 1e9},
        {"normalise", &info->normalise, NULL, 0, 1},
        {"shapes", &info->shapes, NULL, 0, 1000},
    };
    size_t i = 0;
    while (i < sizeof rows / sizeof rows[0] && strcmp(rows[i].name, name) != 0) {
        i++;
    }
    if (i == sizeof rows / sizeof rows[0]) {
        return grt_fail(GRT_BAD_DATA, "%s: an environment has no '%s'",
                        grt_source_file(env->source), name);
    }
    if (!(value >= rows[i].least && value <= rows[i].most) ||
        (rows[i].whole && value != (double)(uint32_t)value)) {
        return grt_fail(GRT_BAD_DATA, "%s: %s of the environment is %g; it must be%s %g to %g",
                        grt_source_file(env->source), name, value,
                        rows[i].whole ? " a whole number from" : "", rows[i].least, rows[i].most);
    }
    if (rows[i].whole) {
        *rows[i].whole = (uint32_t)value;
    } else {
        *rows[i].real = (float)value;
    }
    return true;
}

static bool take_state(void *context, const char *name) {
    struct env_file *env = context;
    if (env->name_count == MAX_STATES) {
        return true;  // the fact says how many there are, and refuses them
    }
    return (env->names[env->name_count++] = keep(env, name)) != NULL;
}

// ---- of one in memory ----

static bool too_many(struct env_file *env, const char *what, uint32_t most) {
    return grt_fail(GRT_BAD_DATA, "%s: more than %u %s", grt_source_file(env->source), most, what);
}

static bool take_size(struct env_file *env, const char *const texts[GRT_DESCRIBE_TEXTS]) {
    static const char *const defined[] = {"ENV_AGENTS", "ENV_OBS", "ENV_WORDS"};
    struct grt_env_world *world = &env->world;
    const struct {
        const char *name;
        const char **text;
    } rows[] = {{"agents", &world->agents},   {"obs", &world->obs},
                {"global", &world->global},   {"act", &world->act},
                {"choices", &world->choices}, {"words", &world->words},
                {"shapes", &world->shapes},   {"bits", &world->bits}};
    for (size_t i = 0; i < sizeof defined / sizeof defined[0]; i++) {
        if (strcmp(texts[1], defined[i]) == 0) {
            return grt_fail(GRT_BAD_DATA,
                            "%s: the environment defines neither ENV_STATE, for a state in "
                            "registers, nor %s, for one in memory",
                            grt_source_file(env->source), defined[i]);
        }
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(texts[0], rows[i].name) == 0) {
            return (*rows[i].text = keep(env, texts[1])) != NULL;
        }
    }
    return grt_fail(GRT_BAD_DATA, "%s: an environment has no size '%s'",
                    grt_source_file(env->source), texts[0]);
}

static bool take_setting(struct env_file *env, const char *const texts[GRT_DESCRIBE_TEXTS]) {
    const char *file = grt_source_file(env->source);
    if (env->setting_count == GRT_ENV_SETTINGS) {
        return too_many(env, "settings in ENV_SETTINGS", GRT_ENV_SETTINGS);
    }
    bool whole = strcmp(texts[0], "uint") == 0;
    if (!whole && strcmp(texts[0], "float") != 0) {
        return grt_fail(GRT_BAD_DATA, "%s: setting %s is of '%s'; there are uint and float", file,
                        texts[1], texts[0]);
    }
    struct grt_env_setting *setting = &env->settings[env->setting_count++];
    *setting = (struct grt_env_setting){.name = keep(env, texts[1]),
                                        .whole = whole,
                                        .value = keep(env, texts[2]),
                                        .least = keep(env, texts[3]),
                                        .most = keep(env, texts[4]),
                                        .text = keep(env, texts[5])};
    return setting->name && setting->value && setting->least && setting->most && setting->text;
}

static bool take_rule(struct env_file *env, const char *const texts[GRT_DESCRIBE_TEXTS]) {
    if (env->rule_count == MAX_ROWS) {
        return too_many(env, "rules in ENV_RULES", MAX_ROWS);
    }
    struct grt_env_rule *rule = &env->rules[env->rule_count++];
    *rule = (struct grt_env_rule){keep(env, texts[0]), keep(env, texts[1])};
    return rule->holds && rule->otherwise;
}

static bool take_term(struct env_file *env, const char *const texts[GRT_DESCRIBE_TEXTS]) {
    if (env->term_count == MAX_ROWS) {
        return too_many(env, "terms in ENV_TERMS", MAX_ROWS);
    }
    return (env->terms[env->term_count++] = keep(env, texts[0])) != NULL;
}

static bool take_row(void *context, const char *list, const char *const texts[GRT_DESCRIBE_TEXTS],
                     uint32_t count) {
    struct env_file *env = context;
    const struct {
        const char *list, *defined;
        uint32_t parts;
        bool (*take)(struct env_file *env, const char *const texts[GRT_DESCRIBE_TEXTS]);
    } rows[] = {{"grt_size", "sizes", 2, take_size},
                {"grt_setting", "ENV_SETTINGS", 6, take_setting},
                {"grt_rule", "ENV_RULES", 2, take_rule},
                {"grt_term", "ENV_TERMS", 1, take_term}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(list, rows[i].list) == 0) {
            return count == rows[i].parts
                       ? rows[i].take(env, texts)
                       : grt_fail(GRT_BAD_DATA, "%s: a row of %s has %u parts and not %u: %s",
                                  grt_source_file(env->source), rows[i].defined, count,
                                  rows[i].parts, texts[0]);
        }
    }
    return grt_fail(GRT_BAD_DATA, "%s: '%s' in the lists of the environment",
                    grt_source_file(env->source), list);
}

// ---- functions ----

// Whether all functions are there: a compiler would say it of the kernel that calls them.
static bool has_functions(const struct env_file *env, const char *file, const char *text) {
    const struct grt_env_world *world = &env->world;
    bool memory = world->words != NULL;
    bool discrete = memory && strcmp(world->choices, "0") != 0;
    const struct {
        const char *name;
        bool wanted;
    } rows[] = {{"env_reset", !memory},
                {"env_step", !memory},
                {"env_observe", !memory},
                {"env_reward", !memory},
                {"env_done", !memory},
                {"env_good", !memory},
                {"world_reset", memory},
                {"world_choose", discrete},
                {"world_mask", discrete},
                {"world_act", memory && !discrete},
                {"world_step", memory},
                {"world_reward", memory},
                {"world_out", memory},
                {"world_done", memory},
                {"world_observe", memory},
                {"world_global", memory && strcmp(world->global, "0") != 0},
                {"world_bits", memory && strcmp(world->bits, "0") != 0},
                {"world_draw", memory && strcmp(world->shapes, "0") != 0},
                {"world_term", env->term_count > 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char call[32];
        snprintf(call, sizeof call, "%s (", rows[i].name);
        if (rows[i].wanted && !strstr(text, call)) {
            return grt_fail(GRT_BAD_DATA, "%s: the environment has no function %s()", file,
                            rows[i].name);
        }
    }
    return true;
}

// What the environment says of itself comes before its kernels: what is wrong is said of it, not of
// a kernel.
static bool describe(struct env_file *env, const char *file) {
    char *text = grt_source_describe(env->source, "env/info.k");
    env->described = (struct grt_describe_env){
        .fact = take_fact, .state = take_state, .row = take_row, .context = env};
    bool ok =
        text && grt_describe_env(&env->described, file, text) && has_functions(env, file, text);
    free(text);
    return ok;
}

static bool set_units(struct env_file *env) {
#define BEFORE_all NULL
#define BEFORE_wide "cpu/lib/wide.k"
#define OPENCL_ONLY_all false
#define OPENCL_ONLY_wide true
#define X(readings, folder, env, user)                                                             \
    {BEFORE_##readings, #folder "/" #user ".k", OPENCL_ONLY_##readings},
    static const struct grt_source_unit registers[] = {GRT_OF_ENV(X, registers, env)};
    static const struct grt_source_unit memory[] = {GRT_OF_ENV(X, memory, env)};
#undef X
    return env->info.world
               ? grt_source_set_units(env->source, memory, sizeof memory / sizeof memory[0])
               : grt_source_set_units(env->source, registers,
                                      sizeof registers / sizeof registers[0]);
}

static const struct grt_env_info *open_file(const char *file) {
    struct env_file *env = calloc(1, sizeof *env);
    if (!env) {
        grt_fail(GRT_NO_MEMORY, "no host memory for an environment");
        return NULL;
    }
    const struct grt_env_info *info = &env->info;
    env->source = grt_source_read(file, NULL);
    bool ok = env->source && describe(env, file);
    env->info.world = env->world.words ? &env->world : NULL;
    if (!ok || !set_units(env)) {
        grt_env_close(&info);
        return NULL;
    }
    env->world.settings = env->settings;
    env->world.rules = env->rules;
    env->world.terms = env->terms;
    env->info.name = env->described.name;
    env->info.state_names = env->names;
    env->info.source = env->source;
    return info;
}

const struct grt_env_info *grt_env_open(const char *text) {
    return text && is_file(text) ? open_file(text) : grt_env_find(text);
}

void grt_env_digest(const struct grt_env_info *env, char digest[GRT_ENV_DIGEST]) {
    digest[0] = '\0';
    if (env->source) {
        snprintf(digest, GRT_ENV_DIGEST, "%016" PRIx64, grt_source_digest(env->source));
    }
}

void grt_env_close(const struct grt_env_info **env) {
    const struct grt_env_info *own = NULL;
    for (uint32_t i = 0; env && (own = grt_env_at(i)) && own != *env; i++) {
    }
    if (env && *env && !own) {
        struct env_file *file = (struct env_file *)(uintptr_t)*env;
        for (uint32_t i = 0; i < file->text_count; i++) {
            free(file->texts[i]);
        }
        grt_source_unref(file->source);
        free(file);
    }
    if (env) {
        *env = NULL;
    }
}
