// SPDX-License-Identifier: Apache-2.0
// The settings of an environment in memory, and its sizes: expressions of them, worked out on the
// host.
#include <math.h>
#include <string.h>

#include "base/closest.h"
#include "base/log.h"
#include "source/expression.h"
#include "worlds_parts.h"

#define MAX_AGENTS 65536
#define MAX_NUMBERS (1 << 20)  // of an observation
#define MAX_WORDS (1 << 26)
#define MAX_CHOICES 32

// The value of a setting that is known by now.
static bool known(void *context, const char *name, size_t length, double *value) {
    const struct grt_worlds *worlds = context;
    for (uint32_t i = 0; i < worlds->setting_count; i++) {
        const char *own = worlds->env->world->settings[i].name;
        if (strlen(own) == length && memcmp(own, name, length) == 0) {
            *value = worlds->settings[i];
            return true;
        }
    }
    return false;
}

static bool evaluate(struct grt_worlds *worlds, const char *what, const char *text, double *value) {
    char why[128];
    return grt_expression(text, known, worlds, value, why) ||
           grt_fail(GRT_BAD_DATA, "environment '%s': %s is no number: %s", worlds->env->name, what,
                    why);
}

// What a user set the i-th setting to; the last word counts. NULL: nothing.
static const struct grt_env_value *given(const struct grt_worlds_desc *desc, const char *name) {
    const struct grt_env_value *value = NULL;
    for (uint32_t i = 0; i < desc->setting_count; i++) {
        if (desc->settings[i].name && strcmp(desc->settings[i].name, name) == 0) {
            value = &desc->settings[i];
        }
    }
    return value;
}

static bool take(struct grt_worlds *worlds, const struct grt_worlds_desc *desc,
                 const struct grt_env_setting *setting) {
    double least = 0, most = 0, value = 0;
    const struct grt_env_value *own = given(desc, setting->name);
    if (!evaluate(worlds, setting->name, setting->value, &value) ||
        !evaluate(worlds, setting->name, setting->least, &least) ||
        !evaluate(worlds, setting->name, setting->most, &most)) {
        return false;
    }
    value = own ? own->value : value;
    if (!(value >= least && value <= most) || (setting->whole && value != floor(value))) {
        return grt_fail(own ? GRT_CONFIG : GRT_BAD_DATA,
                        "environment '%s': %s is %g; it must be%s %g to %g (%s)", worlds->env->name,
                        setting->name, value, setting->whole ? " a whole number from" : "", least,
                        most, setting->text);
    }
    worlds->settings[worlds->setting_count++] = value;
    return true;
}

static bool all_known(const struct grt_worlds *worlds, const struct grt_worlds_desc *desc) {
    const struct grt_env_world *world = worlds->env->world;
    const char *names[GRT_ENV_SETTINGS + 1] = {NULL};
    uint32_t count = 0;
    for (; world && count < GRT_ENV_SETTINGS && world->settings[count].name; count++) {
        names[count] = world->settings[count].name;
    }
    for (uint32_t i = 0; i < desc->setting_count; i++) {
        const char *name = desc->settings[i].name ? desc->settings[i].name : "";
        uint32_t k = 0;
        while (k < count && strcmp(names[k], name) != 0) {
            k++;
        }
        if (k < count) {
            continue;
        }
        const char *closest = grt_closest(name, names, count, sizeof *names);
        if (count == 0) {
            return grt_fail(GRT_CONFIG, "environment '%s' has no settings; '%s' cannot be set",
                            worlds->env->name, name);
        }
        return grt_fail(GRT_CONFIG, "environment '%s' has no setting '%s'; %s '%s'%s",
                        worlds->env->name, name, closest ? "did you mean" : "its first is",
                        closest ? closest : names[0], closest ? "?" : "");
    }
    return true;
}

static bool size_up(struct grt_worlds *worlds) {
    const struct grt_env_world *world = worlds->env->world;
    struct grt_worlds_sizes *sizes = &worlds->sizes;
    const struct {
        const char *name, *text;
        uint32_t *size;
        double least, most;
    } rows[] = {{"ENV_AGENTS", world->agents, &sizes->agents, 1, MAX_AGENTS},
                {"ENV_OBS", world->obs, &sizes->obs, 1, MAX_NUMBERS},
                {"ENV_GLOBAL", world->global, &sizes->global, 0, MAX_NUMBERS},
                {"ENV_ACT", world->act, &sizes->act, 0, MAX_NUMBERS},
                {"ENV_CHOICES", world->choices, &sizes->choices, 0, MAX_CHOICES},
                {"ENV_WORDS", world->words, &sizes->words, 1, MAX_WORDS},
                {"ENV_SHAPES", world->shapes, &sizes->shapes, 0, MAX_NUMBERS},
                {"ENV_BITS", world->bits, &worlds->bits, 0, MAX_NUMBERS}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double value = 0;
        if (!evaluate(worlds, rows[i].name, rows[i].text, &value)) {
            return false;
        }
        if (!(value >= rows[i].least && value <= rows[i].most) || value != floor(value)) {
            return grt_fail(GRT_BAD_DATA,
                            "environment '%s': %s, %s, is %g; it must be a whole number from %g to "
                            "%g",
                            worlds->env->name, rows[i].name, rows[i].text, value, rows[i].least,
                            rows[i].most);
        }
        *rows[i].size = (uint32_t)value;
    }
    if ((sizes->act > 0) == (sizes->choices > 0)) {
        return grt_fail(GRT_BAD_DATA,
                        "environment '%s': ENV_ACT is %u and ENV_CHOICES %u; one of them is 0",
                        worlds->env->name, sizes->act, sizes->choices);
    }
    if (worlds->bits > sizes->obs) {
        return grt_fail(GRT_BAD_DATA,
                        "environment '%s': ENV_BITS is %u, more than the %u numbers of ENV_OBS",
                        worlds->env->name, worlds->bits, sizes->obs);
    }
    while (world->terms[sizes->terms]) {
        sizes->terms++;
    }
    return true;
}

bool grt_worlds_settle(struct grt_worlds *worlds, const struct grt_worlds_desc *desc) {
    const struct grt_env_info *env = worlds->env;
    if (!all_known(worlds, desc)) {
        return false;
    }
    if (!env->world) {
        // As shaders/rl/worlds_state.k has it.
        worlds->sizes = (struct grt_worlds_sizes){.agents = 1,
                                                  .obs = env->obs,
                                                  .act = env->act,
                                                  .words = env->state + env->act + 3,
                                                  .terms = 1};
        return true;
    }
    for (uint32_t i = 0; env->world->settings[i].name; i++) {
        if (!take(worlds, desc, &env->world->settings[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; env->world->rules[i].holds; i++) {
        double holds = 0;
        const struct grt_env_rule *rule = &env->world->rules[i];
        if (!evaluate(worlds, "a rule", rule->holds, &holds)) {
            return false;
        }
        if (holds == 0) {
            return grt_fail(GRT_CONFIG, "environment '%s': %s: %s does not hold", env->name,
                            rule->otherwise, rule->holds);
        }
    }
    return size_up(worlds);
}
