// SPDX-License-Identifier: Apache-2.0
// Environments from files: the file is the source of all kernels that use environments, and describes itself.
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

struct env_file {
    struct grt_env_info info;  // first: see grt_env_close()
    struct grt_source *source;
    char *names[MAX_STATES + 1];
    uint32_t name_count;
    struct grt_describe_env described;
};

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
    if (env->name_count < MAX_STATES) {
        env->names[env->name_count++] = strdup(name);
    }
    return true;
}

// Whether all functions are there: a compiler would say it of the kernel that calls them.
static bool has_functions(const char *file, const char *text) {
    static const char *const names[] = {"env_reset",  "env_step", "env_observe",
                                        "env_reward", "env_done", "env_good"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char call[32];
        snprintf(call, sizeof call, "%s (", names[i]);
        if (!strstr(text, call)) {
            return grt_fail(GRT_BAD_DATA, "%s: the environment has no function %s()", file,
                            names[i]);
        }
    }
    return true;
}

// What the environment says of itself comes before its kernels: what is wrong is said of it, not of a kernel.
static bool describe(struct env_file *env, const char *file) {
    char *text = grt_source_describe(env->source, "env/info.k");
    env->described =
        (struct grt_describe_env){.fact = take_fact, .state = take_state, .context = env};
    bool ok = text && grt_describe_env(&env->described, file, text) && has_functions(file, text);
    free(text);
    return ok;
}

static const struct grt_env_info *open_file(const char *file) {
#define BEFORE_all NULL
#define BEFORE_wide "cpu/lib/wide.k"
#define OPENCL_ONLY_all false
#define OPENCL_ONLY_wide true
#define X(readings, folder, env, user)                                                             \
    {BEFORE_##readings, #folder "/" #user ".k", OPENCL_ONLY_##readings},
    static const struct grt_source_unit units[] = {GRT_ENV_KERNELS(X, env)};
#undef X
    struct env_file *env = calloc(1, sizeof *env);
    if (!env) {
        grt_fail(GRT_NO_MEMORY, "no host memory for an environment");
        return NULL;
    }
    env->source = grt_source_read(file, NULL);
    if (!env->source || !describe(env, file) ||
        !grt_source_set_units(env->source, units, sizeof units / sizeof units[0])) {
        const struct grt_env_info *info = &env->info;
        grt_env_close(&info);
        return NULL;
    }
    env->info.name = env->described.name;
    env->info.state_names = (const char *const *)env->names;
    env->info.source = env->source;
    return &env->info;
}

const struct grt_env_info *grt_env_open(const char *text) {
    return text && is_file(text) ? open_file(text) : grt_env_find(text);
}

void grt_env_close(const struct grt_env_info **env) {
    const struct grt_env_info *own = NULL;
    for (uint32_t i = 0; env && (own = grt_env_at(i)) && own != *env; i++) {
    }
    if (env && *env && !own) {
        struct env_file *file = (struct env_file *)(uintptr_t)*env;
        for (uint32_t i = 0; i < file->name_count; i++) {
            free(file->names[i]);
        }
        grt_source_unref(file->source);
        free(file);
    }
    if (env) {
        *env = NULL;
    }
}
