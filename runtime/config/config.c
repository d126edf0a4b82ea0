// SPDX-License-Identifier: Apache-2.0
// The keys as a table, finding them by name, and values from the command line.
#include "gpurt/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "base/log.h"
#include "config_parts.h"

const struct config_key config_keys[GRT_CONFIG_KEY_COUNT] = {
#define ROW(scope, field, type, section, fallback, min, max, words, aliases, help)                 \
    {{#field, GRT_CONFIG_IS_##type, section, fallback, min, max, words, aliases, help,             \
      GRT_CONFIG_OF_##scope},                                                                      \
     offsetof(struct grt_config, field),                                                           \
     sizeof((struct grt_config *)0)->field},
#define X(name, ...) [GRT_CONFIG_##name] = ROW(ALL, __VA_ARGS__)
    GRT_CONFIG_SHARED_KEYS(X)
#undef X
#define X(name, ...) [GRT_CONFIG_##name] = ROW(SUPERVISED, __VA_ARGS__)
        GRT_CONFIG_SUPERVISED_KEYS(X)
#undef X
#define X(name, ...) [GRT_CONFIG_##name] = ROW(ES, __VA_ARGS__)
            GRT_CONFIG_ES_KEYS(X)
#undef X
#define X(name, ...) [GRT_CONFIG_##name] = ROW(PPO, __VA_ARGS__)
                GRT_CONFIG_PPO_KEYS(X)
#undef X
#undef ROW
};

// Keys of other lists that PPO takes too.
static const struct {
    enum grt_config_key key;
    const char *fallback;
} ppo_takes[] = {
#define X(name, fallback) {GRT_CONFIG_##name, fallback},
    GRT_CONFIG_PPO_TAKES(X)
#undef X
};

static const char *taken_by_ppo(enum grt_config_key key) {
    for (size_t i = 0; i < sizeof ppo_takes / sizeof ppo_takes[0]; i++) {
        if (ppo_takes[i].key == key) {
            return ppo_takes[i].fallback;
        }
    }
    return NULL;
}

static const char *of_classify(enum grt_config_key key) {
    switch ((unsigned)key) {
#define X(name, fallback)                                                                          \
    case GRT_CONFIG_##name:                                                                        \
        return fallback;
        GRT_CONFIG_CLASSIFY_TAKES(X)
#undef X
    default:
        return NULL;
    }
}

static const struct section {
    const char *name;
} sections[] = {
#define X(name) {name},
    GRT_CONFIG_SECTIONS(X)
#undef X
};
#define SECTION_COUNT (sizeof sections / sizeof *sections)

bool config_is_section(const char *name) {
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (strcmp(name, sections[i].name) == 0) {
            return true;
        }
    }
    return false;
}

const struct grt_config_key_info *grt_config_key_info(enum grt_config_key key) {
    return (unsigned)key < GRT_CONFIG_KEY_COUNT ? &config_keys[key].info : NULL;
}

enum grt_config_scope grt_config_key_scope(enum grt_config_key key) {
    unsigned scope = (unsigned)key < GRT_CONFIG_KEY_COUNT ? config_keys[key].info.scope : 0;
    return (enum grt_config_scope)(scope | (taken_by_ppo(key) ? GRT_CONFIG_OF_PPO : 0u));
}

const char *grt_config_key_fallback(enum grt_config_key key, enum grt_config_scope scope) {
    const char *taken = scope == GRT_CONFIG_OF_PPO        ? taken_by_ppo(key)
                        : scope == GRT_CONFIG_OF_CLASSIFY ? of_classify(key)
                                                          : NULL;
    return taken                                  ? taken
           : (unsigned)key < GRT_CONFIG_KEY_COUNT ? config_keys[key].info.fallback
                                                  : NULL;
}

static const char *scope_text(enum grt_config_scope scope) {
    return scope == GRT_CONFIG_OF_ES           ? "evolution strategies"
           : scope == GRT_CONFIG_OF_PPO        ? "PPO"
           : scope == GRT_CONFIG_OF_CLASSIFY   ? "classification"
           : scope == GRT_CONFIG_OF_SUPERVISED ? "supervised training"
                                               : "another training";
}

// ---- names ----

// Copies the next of some words, divided by spaces, and moves behind it; false at the end.
static bool next_word(const char **words, char *word, size_t capacity) {
    *words += strspn(*words, " ");
    size_t length = strcspn(*words, " ");
    if (length == 0 || length >= capacity) {
        return false;
    }
    memcpy(word, *words, length);
    word[length] = '\0';
    *words += length;
    return true;
}

static bool is_alias(const char *aliases, const char *name) {
    char alias[64];
    while (next_word(&aliases, alias, sizeof alias)) {
        if (strcmp(alias, name) == 0) {
            return true;
        }
    }
    return false;
}

// Whose keys a name is looked for in, one after the other.
enum circle { OWN_LIST, TAKEN, ALL_KINDS };

static bool within(uint32_t i, enum circle circle, enum grt_config_scope scope) {
    return circle == ALL_KINDS ||
           (circle == OWN_LIST ? config_keys[i].info.scope == (scope & GRT_CONFIG_OF_ALL)
                               : grt_config_key_scope((enum grt_config_key)i) & scope);
}

static uint32_t find_within(enum circle circle, enum grt_config_scope scope, const char *section,
                            const char *name) {
    char qualified[128];
    snprintf(qualified, sizeof qualified, "%.60s.%.60s", section, name);
    for (uint32_t i = 0; section[0] && i < GRT_CONFIG_KEY_COUNT; i++) {
        if (within(i, circle, scope) && is_alias(config_keys[i].info.aliases, qualified)) {
            return i;
        }
    }
    uint32_t i = 0;
    while (i < GRT_CONFIG_KEY_COUNT &&
           (strchr(name, '.') || strchr(name, ' ') || !*name || !within(i, circle, scope) ||
            (strcmp(config_keys[i].info.name, name) != 0 &&
             !is_alias(config_keys[i].info.aliases, name)))) {
        i++;
    }
    return i;
}

// A name that belongs to its section ("optimizer.name") comes before one that does not: inside
// `benchmark:` num_workers is a list.
enum grt_config_key config_find(enum grt_config_scope scope, const char *section,
                                const char *name) {
    uint32_t i = GRT_CONFIG_KEY_COUNT;
    for (int circle = OWN_LIST; circle <= ALL_KINDS && i == GRT_CONFIG_KEY_COUNT; circle++) {
        i = find_within((enum circle)circle, scope, section, name);
    }
    return (enum grt_config_key)i;
}

enum grt_config_key grt_config_key_find(enum grt_config_scope scope, const char *name) {
    char section[64] = "";
    const char *dot = name ? strrchr(name, '.') : NULL;
    if (!name) {
        return GRT_CONFIG_KEY_COUNT;
    }
    if (!dot) {
        return config_find(scope, "", name);
    }
    // Of a.b.c the section is b, as in a file.
    const char *begin = dot;
    while (begin > name && begin[-1] != '.') {
        begin--;
    }
    snprintf(section, sizeof section, "%.*s", (int)(dot - begin < 63 ? dot - begin : 63), begin);
    return config_is_section(section) ? config_find(scope, section, dot + 1) : GRT_CONFIG_KEY_COUNT;
}

bool config_takes(const struct grt_config *config, enum grt_config_key key, const char *name,
                  char why[CONFIG_WHY]) {
    if (grt_config_key_scope(key) & config->scope) {
        return true;
    }
    bool network = key == GRT_CONFIG_MODEL || key == GRT_CONFIG_NETWORK;
    snprintf(why, CONFIG_WHY, "%s is a key of %s, and this is a config of %s%s", name,
             scope_text(config_keys[key].info.scope), scope_text(config->scope),
             !network ? ""
             : config->scope == GRT_CONFIG_OF_ES
                 ? ": its network is `policy`"
                 : ": its networks are `actor` and `critic_network`");
    return false;
}

const char *config_closest(enum grt_config_scope scope, const char *name) {
    const char *names[GRT_CONFIG_KEY_COUNT];
    size_t count = 0;
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        if (grt_config_key_scope((enum grt_config_key)i) & scope) {
            names[count++] = config_keys[i].info.name;
        }
    }
    const char *closest = grt_closest(name, names, count, sizeof *names);
    if (!closest) {
        closest = grt_closest(name, sections, SECTION_COUNT, sizeof *sections);
    }
    // Aliases are words of a text, so each is tried on its own.
    static _Thread_local char alias[64];
    for (uint32_t i = 0; !closest && i < GRT_CONFIG_KEY_COUNT; i++) {
        const char *aliases = config_keys[i].info.aliases;
        while ((grt_config_key_scope((enum grt_config_key)i) & scope) && !closest &&
               next_word(&aliases, alias, sizeof alias)) {
            const char *entry = alias;
            closest = strchr(alias, '.') ? NULL : grt_closest(name, &entry, 1, sizeof entry);
        }
    }
    return closest;
}

// ---- values ----

enum grt_config_key config_key_for(enum grt_config_key key, const char *text) {
    bool layers = !text || text[strspn(text, " ")] == '[' || strchr(text, '(');
    return key == GRT_CONFIG_MODEL && layers ? GRT_CONFIG_NETWORK : key;
}

// A list of layers and a kind of model are two ways to say one thing: the later counts.
static void forget_other(struct grt_config *config, enum grt_config_key key) {
    if (key == GRT_CONFIG_MODEL) {
        config->network.text[0] = '\0';
        config->places[GRT_CONFIG_NETWORK].given = false;
    } else if (key == GRT_CONFIG_NETWORK) {
        snprintf(config->model, sizeof config->model, "%s",
                 grt_config_key_fallback(GRT_CONFIG_MODEL, config->scope));
        config->places[GRT_CONFIG_MODEL].given = false;
    }
}

static bool set(struct grt_config *config, enum grt_config_key key, const char *name,
                const char *text) {
    char why[CONFIG_WHY];
    key = config_key_for(key, text);
    if (!config_read_value(config, key, &(struct config_given){.texts = &text, .count = 1}, why)) {
        return grt_fail(GRT_CONFIG, "%s=%.200s: %s", name, text, why);
    }
    forget_other(config, key);
    struct grt_config_place *place = &config->places[key];
    *place = (struct grt_config_place){.given = true};
    snprintf(place->name, sizeof place->name, "%.47s", name);
    return true;
}

void grt_config_init(struct grt_config *config) {
    grt_config_init_for(config, GRT_CONFIG_OF_SUPERVISED);
}

void grt_config_init_for(struct grt_config *config, enum grt_config_scope scope) {
    memset(config, 0, sizeof *config);
    config->scope = scope;
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        const char *fallback = grt_config_key_fallback((enum grt_config_key)i, scope);
        char why[CONFIG_WHY];
        // A number out of its range stands for "chosen by something else", and is left zero.
        if (fallback[0]) {
            config_read_value(config, (enum grt_config_key)i,
                              &(struct config_given){.texts = &fallback, .count = 1}, why);
        }
    }
}

struct grt_config *grt_config_create(enum grt_config_scope scope) {
    struct grt_config *config = malloc(sizeof *config);
    if (!config) {
        grt_fail(GRT_NO_MEMORY, "no host memory for a config");
        return NULL;
    }
    grt_config_init_for(config, scope);
    return config;
}

void grt_config_destroy(struct grt_config **config) {
    if (config) {
        free(*config);
        *config = NULL;
    }
}

static void fall_back(struct grt_config *config, enum grt_config_key key) {
    const char *text = grt_config_key_fallback(key, GRT_CONFIG_OF_SUPERVISED);
    char why[CONFIG_WHY];
    if (!config->places[key].given) {
        config_read_value(config, key, &(struct config_given){.texts = &text, .count = 1}, why);
    }
}

void grt_config_settle(struct grt_config *config) {
    if (!config || config->scope != GRT_CONFIG_OF_CLASSIFY) {
        return;
    }
    if (strncmp(config->optimizer, "adam", 4) == 0) {
        static const enum grt_config_key of_sgd[] = {GRT_CONFIG_LEARNING_RATE, GRT_CONFIG_MOMENTUM,
                                                     GRT_CONFIG_NESTEROV, GRT_CONFIG_WEIGHT_DECAY};
        for (size_t i = 0; i < sizeof of_sgd / sizeof *of_sgd; i++) {
            fall_back(config, of_sgd[i]);
        }
    }
    if (config->places[GRT_CONFIG_TRANSFORM].given) {
        fall_back(config, GRT_CONFIG_NORMALIZE);
    }
    if (config->places[GRT_CONFIG_WARMUP_STEPS].given ||
        strcmp(config->schedule, "one_cycle") == 0) {
        fall_back(config, GRT_CONFIG_WARMUP_RATIO);
    }
}

bool grt_config_set(struct grt_config *config, enum grt_config_key key, const char *text) {
    if (!config || !text || (unsigned)key >= GRT_CONFIG_KEY_COUNT) {
        return grt_fail(GRT_INVALID, "a config, a key and a text are wanted");
    }
    return set(config, key, config_keys[key].info.name, text);
}

bool grt_config_override(struct grt_config *config, const char *pair) {
    const char *equals = pair ? strchr(pair, '=') : NULL;
    char name[128];
    if (!config || !pair) {
        return grt_fail(GRT_INVALID, "a config and key=value are wanted");
    }
    if (!equals || equals == pair || equals - pair >= (ptrdiff_t)sizeof name) {
        return grt_fail(GRT_CONFIG, "'%.200s' is not of the form key=value", pair);
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - pair), pair);
    enum grt_config_key key = grt_config_key_find(config->scope, name);
    if (key == GRT_CONFIG_KEY_COUNT) {
        const char *dot = strrchr(name, '.');
        const char *closest = config_closest(config->scope, dot ? dot + 1 : name);
        return grt_fail(GRT_CONFIG, "%.200s: no key '%s'%s%s%s", pair, name,
                        closest ? "; did you mean '" : "", closest ? closest : "",
                        closest ? "'?" : "");
    }
    char why[CONFIG_WHY];
    if (!config_takes(config, key, name, why)) {
        return grt_fail(GRT_CONFIG, "%.200s: %s", pair, why);
    }
    return set(config, key, name, equals + 1);
}

void grt_config_copy(struct grt_config *to, const struct grt_config *from,
                     enum grt_config_key key) {
    const struct config_key *k = &config_keys[key];
    memcpy((char *)to + k->offset, (const char *)from + k->offset, k->size);
    to->places[key] = from->places[key];
}

const void *grt_config_value(const struct grt_config *config, enum grt_config_key key) {
    return config && (unsigned)key < GRT_CONFIG_KEY_COUNT
               ? (const char *)config + config_keys[key].offset
               : NULL;
}

bool grt_config_given(const struct grt_config *config, enum grt_config_key key) {
    return config && (unsigned)key < GRT_CONFIG_KEY_COUNT && config->places[key].given;
}

const char *grt_config_file(const struct grt_config *config, enum grt_config_key key) {
    bool known = config && (unsigned)key < GRT_CONFIG_KEY_COUNT && config->places[key].file;
    return known && config->path[0] ? config->path : NULL;
}

const char *grt_config_source(const struct grt_config *config, enum grt_config_key key) {
    if (!config || (unsigned)key >= GRT_CONFIG_KEY_COUNT) {
        return "";
    }
    const struct grt_config_place *place = &config->places[key];
    const char *file = grt_config_file(config, key);
    return file ? file : place->name[0] ? place->name : config_keys[key].info.name;
}
