// SPDX-License-Identifier: Apache-2.0
// Reads a sweep's file.
#include "plan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "plan_parts.h"

static const struct sweep_kind kinds[] = {
#define X(name, scope, folder) {#name, GRT_CONFIG_OF_##scope, folder},
    SWEEP_KINDS(X)
#undef X
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const struct sweep_kind *sweep_kind_named(const char *name) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

// ---- values of entries ----

bool plan_wrong(const struct sweep_plan *plan, const struct grt_node *at, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return grt_fail(GRT_CONFIG, "%s:%u:%u: %s", plan->path, at->line, at->column, text);
}

const char *plan_text(const struct sweep_plan *plan, const struct grt_node *entry) {
    if (entry->first->kind == GRT_NODE_TEXT) {
        return entry->first->text;
    }
    plan_wrong(plan, entry->first, "%s wants one value", entry->text);
    return NULL;
}

bool plan_number(const struct sweep_plan *plan, const struct grt_node *entry, double *number) {
    const char *text = plan_text(plan, entry);
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    if (!text) {
        return false;
    }
    if (!*text || *end || !isfinite(value) || strpbrk(text, "xX")) {
        return plan_wrong(plan, entry->first, "%s wants a finite number, not '%.64s'", entry->text,
                          text);
    }
    *number = value;
    return true;
}

bool plan_whole(const struct sweep_plan *plan, const struct grt_node *entry, double min, double max,
                uint64_t *whole) {
    double number = 0;
    if (!plan_number(plan, entry, &number)) {
        return false;
    }
    if (number != floor(number) || number < min || number > max) {
        return plan_wrong(plan, entry->first, "%s wants a whole number from %.16g to %.16g",
                          entry->text, min, max);
    }
    *whole = (uint64_t)number;
    return true;
}

// ---- keys of a sweep ----

static bool read_method(struct sweep_plan *plan, const struct grt_node *entry) {
    const char *word = plan_text(plan, entry);
    if (!word) {
        return false;
    }
    if (strcmp(word, "bayes") == 0) {
        return plan_wrong(plan, entry->first,
                          "method bayes is not taken: method: random with early_terminate searches "
                          "the same ranges");
    }
    plan->method = strcmp(word, "random") == 0 ? SWEEP_RANDOM : SWEEP_GRID;
    return plan->method == SWEEP_RANDOM || strcmp(word, "grid") == 0 ||
           plan_wrong(plan, entry->first, "method is grid or random, not '%s'", word);
}

static bool read_run_cap(struct sweep_plan *plan, const struct grt_node *entry) {
    uint64_t whole = 0;
    bool good = plan_whole(plan, entry, 1, SWEEP_MAX_TRIALS, &whole);
    plan->run_cap = (uint32_t)whole;
    return good;
}

static bool read_retries(struct sweep_plan *plan, const struct grt_node *entry) {
    uint64_t whole = 0;
    bool good = plan_whole(plan, entry, 0, 1000, &whole);
    plan->retries = (uint32_t)whole;
    return good;
}

static bool read_seed(struct sweep_plan *plan, const struct grt_node *entry) {
    return plan_whole(plan, entry, 0, 9007199254740992.0, &plan->seed);
}

static bool read_parameters(struct sweep_plan *plan, const struct grt_node *entry) {
    if (entry->first->kind != GRT_NODE_MAP || !entry->first->first) {
        return plan_wrong(plan, entry, "parameters wants names, such as lr: {values: [0.1, 0.01]}");
    }
    bool good = true;
    for (const struct grt_node *e = entry->first->first; e && good; e = e->next) {
        good = plan_parameter(plan, "", e);
    }
    return good;
}

// Read before all others.
static bool read_nothing(struct sweep_plan *plan, const struct grt_node *entry) {
    (void)plan, (void)entry;
    return true;
}

static bool read_program(struct sweep_plan *plan, const struct grt_node *entry) {
    return plan_wrong(plan, entry,
                      "%s is not taken: trials are `gpurt train`, of `kind: supervised` unless "
                      "another is named; leave it out",
                      entry->text);
}

static const struct key {
    const char *name;
    bool (*read)(struct sweep_plan *plan, const struct grt_node *entry);
    bool both;  // in a training config with lists too
} keys[] = {
    {"method", read_method, true},        {"metric", plan_metric, true},
    {"run_cap", read_run_cap, true},      {"early_terminate", plan_halving, true},
    {"retries", read_retries, true},      {"kind", read_nothing, true},
    {"config", read_nothing, true},       {"parameters", read_parameters, false},
    {"seed", read_seed, false},           {"name", read_nothing, false},
    {"description", read_nothing, false}, {"project", read_nothing, false},
    {"entity", read_nothing, false},      {"program", read_program, true},
    {"command", read_program, true},
};
#define KEY_COUNT (sizeof keys / sizeof *keys)

static const struct key *key_named(const char *name, bool plain) {
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(keys[i].name, name) == 0 && (keys[i].both || !plain)) {
            return &keys[i];
        }
    }
    return NULL;
}

static const struct grt_node *find(const struct grt_node *map, const char *name) {
    const struct grt_node *e = map->first;
    while (e && strcmp(e->text, name) != 0) {
        e = e->next;
    }
    return e;
}

static bool no_doubles(const struct sweep_plan *plan, const struct grt_node *map) {
    for (const struct grt_node *e = map->first; e; e = e->next) {
        const struct grt_node *first = find(map, e->text);
        if (first != e) {
            return plan_wrong(plan, e, "%s was given in line %u already", e->text, first->line);
        }
    }
    return true;
}

// ---- a training config with lists ----

static bool takes_list(const struct sweep_plan *plan, const char *name) {
    enum grt_config_key key = grt_config_key_find(plan->kind->scope, name);
    const struct grt_config_key_info *info = grt_config_key_info(key);
    return info && (info->type == GRT_CONFIG_IS_NAMES || info->type == GRT_CONFIG_IS_WHOLES ||
                    info->type == GRT_CONFIG_IS_REALS || info->type == GRT_CONFIG_IS_TREE);
}

static bool holds_lists(const struct grt_node *list) {
    for (const struct grt_node *e = list->first; e; e = e->next) {
        if (e->kind != GRT_NODE_LIST) {
            return false;
        }
    }
    return list->first != NULL;
}

static bool read_devices(struct sweep_plan *plan, const struct grt_node *entry) {
    for (const struct grt_node *e = entry->first->first; e; e = e->next) {
        if (e->kind != GRT_NODE_TEXT || !*e->text || strlen(e->text) >= SWEEP_NAME ||
            plan->device_count == SWEEP_DEVICES) {
            return plan_wrong(plan, e, "device: a list of at most %d devices is wanted",
                              SWEEP_DEVICES);
        }
        snprintf(plan->devices[plan->device_count++], SWEEP_NAME, "%s", e->text);
    }
    return plan->device_count > 0 || plan_wrong(plan, entry, "device: the list is empty");
}

// A key of the config, at the top or in a section.
static bool read_setting(struct sweep_plan *plan, const char *section,
                         const struct grt_node *entry) {
    char name[2 * SWEEP_NAME], value[GRT_CONFIG_TREE_SIZE];
    const struct grt_node *v = entry->first;
    snprintf(name, sizeof name, "%.*s%s%.*s", SWEEP_NAME - 2, section, *section ? "." : "",
             SWEEP_NAME - 2, entry->text);
    if (v->kind == GRT_NODE_MAP && !*section) {
        bool good = true;
        for (const struct grt_node *e = v->first; e && good; e = e->next) {
            good = read_setting(plan, entry->text, e);
        }
        return good;
    }
    bool device = grt_config_key_find(plan->kind->scope, name) == GRT_CONFIG_DEVICE;
    if (v->kind == GRT_NODE_LIST && device) {
        return read_devices(plan, entry);
    }
    if (v->kind == GRT_NODE_LIST && (!takes_list(plan, name) || holds_lists(v))) {
        return plan_list(plan, section, entry);
    }
    size_t length = v->kind == GRT_NODE_TEXT ? (size_t)snprintf(value, sizeof value, "%s", v->text)
                                             : grt_tree_text(v, value, sizeof value);
    if (length >= sizeof value) {
        return plan_wrong(plan, v, "%s has more than %zu characters", name, sizeof value - 1);
    }
    return sweep_config_leaf(&plan->base, plan->path,
                             &(struct sweep_leaf){.name = name,
                                                  .value = value,
                                                  .line = entry->line,
                                                  .column = entry->column,
                                                  .value_line = v->line,
                                                  .value_column = v->column});
}

// ---- the whole ----

static bool read_first(struct sweep_plan *plan, const struct grt_node *map) {
    const struct grt_node *kind = find(map, "kind"), *config = find(map, "config");
    static const struct grt_node top = {.line = 1, .column = 1};
    const char *word = kind ? plan_text(plan, kind) : "supervised";
    const char *path = config ? plan_text(plan, config) : "";
    if (!word || !path) {
        return false;
    }
    plan->kind = sweep_kind_named(word);
    if (!plan->kind) {
#define X(name, scope, folder) " " #name
        return plan_wrong(plan, kind ? kind->first : &top,
                          "no kind of training '%s'; there are" SWEEP_KINDS(X), word);
#undef X
    }
    if (strlen(path) >= sizeof plan->config) {
        return plan_wrong(plan, config->first, "config: the path is too long");
    }
    snprintf(plan->config, sizeof plan->config, "%s", path);
    grt_config_init_for(&plan->base, plan->kind->scope);
    plan->scratch = plan->base;
    if (*path && !grt_config_read(&plan->base, path)) {
        return false;
    }
    plan->base.path[0] = '\0';
    for (uint32_t i = 0; i < GRT_CONFIG_KEY_COUNT; i++) {
        plan->base.places[i].file = false;
    }
    return true;
}

static bool is_section(const char *name) {
#define X(section)                                                                                 \
    if (strcmp(name, section) == 0) {                                                              \
        return true;                                                                               \
    }
    GRT_CONFIG_SECTIONS(X)
#undef X
    return false;
}

static bool read_entries(struct sweep_plan *plan, const struct grt_node *map, bool plain) {
    bool good = true;
    for (const struct grt_node *e = map->first; e && good; e = e->next) {
        const struct key *key = key_named(e->text, plain);
        const char *close = grt_closest(e->text, keys, KEY_COUNT, sizeof *keys);
        bool setting = grt_config_key_find(plan->kind->scope, e->text) != GRT_CONFIG_KEY_COUNT;
        if (key) {
            good = key->read(plan, e);
        } else if (plain && (setting || is_section(e->text) || !close)) {
            good = read_setting(plan, "", e);
        } else {
            good =
                plan_wrong(plan, e, "no key '%s' of a sweep%s%s%s%s", e->text,
                           close ? "; did you mean '" : "", close ? close : "", close ? "'?" : "",
                           setting ? "; of a training it stands below `parameters`, or in the "
                                     "file that `config` names"
                                   : "");
        }
    }
    return good;
}

// How many trials there are; false where that is too many or not said.
static bool count_trials(struct sweep_plan *plan, const struct grt_node *map) {
    double all = 1;
    const struct grt_node *at = map->first;
    if (plan->method == SWEEP_RANDOM) {
        plan->trials = plan->run_cap;
        return plan->run_cap > 0 ||
               plan_wrong(plan, find(map, "method"),
                          "method random wants run_cap: N, how many trials there are to be");
    }
    for (uint32_t i = 0; i < plan->parameter_count; i++) {
        const struct sweep_parameter *p = &plan->parameters[i];
        if (p->count == 0 && p->distribution != SWEEP_INT_UNIFORM) {
            struct grt_node place = {.line = p->line, .column = p->column};
            return plan_wrong(plan, &place,
                              "%s: method grid wants values or whole bounds; method: random takes "
                              "%s",
                              p->name, sweep_distribution_word(p->distribution));
        }
        all *= p->count > 0 ? p->count : p->max - p->min + 1;
        if (p->count == 0 && p->max - p->min >= SWEEP_MAX_TRIALS) {
            all = INFINITY;
        }
    }
    if (!(all <= 4e9) || (plan->run_cap == 0 && all > SWEEP_MAX_TRIALS)) {
        return plan_wrong(plan, at,
                          "the grid has %.10g trials; %d are the most: fewer values, or method: "
                          "random with run_cap",
                          all, SWEEP_MAX_TRIALS);
    }
    plan->trials = plan->run_cap > 0 && plan->run_cap < all ? plan->run_cap : (uint32_t)all;
    return true;
}

static bool read_map(struct sweep_plan *plan, const struct grt_node *map) {
    if (map->kind != GRT_NODE_MAP || !map->first) {
        return plan_wrong(plan, map, "keys with values are wanted, as in 'method: grid'");
    }
    bool plain = !find(map, "parameters");
    if (!no_doubles(plan, map) || !read_first(plan, map)) {
        return false;
    }
    plan_metric_default(plan);
    if (!read_entries(plan, map, plain)) {
        return false;
    }
    if (plan->parameter_count == 0) {
        return plan_wrong(plan, map->first,
                          "nothing to sweep: `parameters`, or a list on a key, such as lr: [0.1, "
                          "0.01]");
    }
    if (plain && plan->method == SWEEP_RANDOM) {
        return plan_wrong(plan, find(map, "method"),
                          "lists on keys make a grid; method random wants them below `parameters`, "
                          "as lr: {values: [0.1, 0.01]}");
    }
    return count_trials(plan, map);
}

bool sweep_plan_read(struct sweep_plan *plan, const char *path, const char *text) {
    memset(plan, 0, sizeof *plan);
    snprintf(plan->path, sizeof plan->path, "%s", path);
    plan->retries = 2;
    struct grt_node *tree = grt_tree_create(&(struct grt_tree_source){.path = path}, text);
    bool good = tree && read_map(plan, tree);
    grt_tree_destroy(&tree);
    return good;
}

void sweep_plan_finish(struct sweep_plan *plan) {
    for (uint32_t i = 0; i < plan->parameter_count; i++) {
        for (uint32_t k = 0; k < plan->parameters[i].count; k++) {
            free(plan->parameters[i].values[k].text);
        }
        free(plan->parameters[i].values);
    }
    plan->parameter_count = 0;
}
