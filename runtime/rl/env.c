// SPDX-License-Identifier: Apache-2.0
// Environments by name.
#include "gpurt/env.h"

#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "base/log.h"
#include "shaders/envs.h"

#define MAX_ENVS 64
#define MAX_LIST 512

const struct grt_env_info *grt_env_at(uint32_t i) {
    uint32_t k = 0;
    while (k < i && grt_env_table[k]) {
        k++;
    }
    return grt_env_table[k];
}

const struct grt_env_info *grt_env_find(const char *name) {
    const char *names[MAX_ENVS];
    char list[MAX_LIST] = "";
    size_t used = 0;
    uint32_t count = 0;
    const struct grt_env_info *env;
    while (count < MAX_ENVS && (env = grt_env_at(count))) {
        if (name && strcmp(env->name, name) == 0) {
            return env;
        }
        if (used < sizeof list) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "",
                                     env->name);
        }
        names[count++] = env->name;
    }
    const char *closest = name ? grt_closest(name, names, count, sizeof *names) : NULL;
    if (closest) {
        grt_fail(GRT_INVALID, "no environment '%s'; did you mean '%s'?", name, closest);
    } else {
        grt_fail(GRT_INVALID, "no environment '%s'; there are %s, and files such as ./%s.k",
                 name ? name : "", list, name && *name ? name : "mine");
    }
    return NULL;
}

bool grt_env_in_registers(const struct grt_env_info *env, const char *who) {
    return !env->world ||
           grt_fail(
               GRT_INVALID,
               "environment '%s' keeps its state in device memory, and %s needs one that holds "
               "it in registers (shaders/env/state.k)",
               env->name, who);
}
