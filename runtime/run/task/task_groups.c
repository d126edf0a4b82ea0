// SPDX-License-Identifier: Apache-2.0
// Groups of parameters out of a config: [{match: "*.bias", weight_decay: 0}, ...].
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/tree.h"
#include "task_parts.h"

static bool wrong(const struct grt_config *c, const struct grt_node *at, const char *format, ...)
    GRT_PRINTF(3, 4);

static struct grt_tree_source source_of(const struct grt_config *c) {
    return (struct grt_tree_source){.path = grt_config_file(c, GRT_CONFIG_GROUPS),
                                    .name = grt_config_source(c, GRT_CONFIG_GROUPS),
                                    .line = c->groups.line,
                                    .column = c->groups.column};
}

static void place_text(const struct grt_config *c, const struct grt_node *at, char *text,
                       size_t capacity) {
    const struct grt_tree_source source = source_of(c);
    grt_tree_where(&source, at->line, at->column, text, capacity);
}

static bool wrong(const struct grt_config *c, const struct grt_node *at, const char *format, ...) {
    char text[384], place[112];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    place_text(c, at, place, sizeof place);
    return grt_fail(GRT_CONFIG, "%s%s", place, text);
}

// A number from 0 on that the key of the whole run would take too.
static bool read_rate(const struct grt_config *c, const struct grt_node *value,
                      enum grt_config_key key, double *number) {
    const struct grt_config_key_info *info = grt_config_key_info(key);
    const char *text = value->kind == GRT_NODE_TEXT ? value->text : "";
    char *end = NULL;
    double read = strtod(text, &end);
    if (!text[0] || *end || strspn(text, "0123456789.eE+-") != strlen(text) ||
        !(read >= 0 && read <= info->max)) {
        return wrong(c, value, "groups: %s wants a number from 0 to %g%s%.40s", info->name,
                     info->max, text[0] ? ", not " : "", text);
    }
    *number = read;
    return true;
}

static bool read_match(const struct grt_config *c, const struct grt_node *value,
                       struct grt_optim_group *group) {
    if (value->kind != GRT_NODE_TEXT || !value->text[0] ||
        strlen(value->text) >= sizeof group->match) {
        return wrong(c, value, "groups: match wants a name with * and ?, such as \"layers.0.*\"");
    }
    snprintf(group->match, sizeof group->match, "%s", value->text);
    place_text(c, value, group->where, sizeof group->where);
    return true;
}

static bool read_group(const struct grt_config *c, const struct grt_node *node,
                       struct grt_optim_group *group) {
    *group = (struct grt_optim_group){0};
    if (node->kind != GRT_NODE_MAP) {
        return wrong(c, node,
                     "groups: an entry is {match: NAME, learning_rate: R, weight_decay: D}");
    }
    for (const struct grt_node *e = node->first; e; e = e->next) {
        enum grt_config_key key = grt_config_key_find(GRT_CONFIG_OF_SUPERVISED, e->text);
        bool match = strcmp(e->text, "match") == 0;
        bool lr = key == GRT_CONFIG_LEARNING_RATE, decay = key == GRT_CONFIG_WEIGHT_DECAY;
        if (!match && !lr && !decay) {
            return wrong(c, e,
                         "groups: no key '%.40s'; there are match, learning_rate and "
                         "weight_decay",
                         e->text);
        }
        if ((match && group->match[0]) || (lr && group->own_lr) || (decay && group->own_decay)) {
            return wrong(c, e, "groups: '%.40s' was given already", e->text);
        }
        group->own_lr |= lr;
        group->own_decay |= decay;
        if (!(match ? read_match(c, e->first, group)
                    : read_rate(c, e->first, key, lr ? &group->lr : &group->weight_decay))) {
            return false;
        }
    }
    if (!group->match[0] || (!group->own_lr && !group->own_decay)) {
        return wrong(c, node, "groups: an entry wants %s",
                     group->match[0] ? "learning_rate or weight_decay" : "match");
    }
    return true;
}

// A group with rate 0 for each name; they come before the others.
bool task_freeze(const struct grt_config *c, struct grt_optim_desc *optim) {
    for (uint32_t i = 0; i < c->freeze.count; i++) {
        bool body = strcmp(c->freeze.values[i], "body") == 0;
        struct grt_optim_group *g = &optim->groups[optim->group_count];
        if (optim->group_count == GRT_OPTIM_GROUPS ||
            strlen(c->freeze.values[i]) >= sizeof g->match) {
            return grt_fail(GRT_CONFIG,
                            "freeze: at most %d names of up to %zu characters are taken",
                            GRT_OPTIM_GROUPS, sizeof g->match - 1);
        }
        *g = (struct grt_optim_group){.own_lr = true, .but_last = body};
        snprintf(g->match, sizeof g->match, "%.95s", body ? "*" : c->freeze.values[i]);
        snprintf(g->where, sizeof g->where, "freeze: ");
        optim->group_count++;
    }
    return true;
}

bool task_groups(const struct grt_config *c, struct grt_optim_desc *optim) {
    const struct grt_config_tree *text = &c->groups;
    if (!grt_config_given(c, GRT_CONFIG_GROUPS)) {
        return true;
    }
    const struct grt_tree_source source = source_of(c);
    struct grt_node *tree = grt_tree_create(&source, text->text);
    bool good = tree && (tree->kind == GRT_NODE_LIST ||
                         wrong(c, tree, "groups wants a list, such as %s",
                               grt_config_key_info(GRT_CONFIG_GROUPS)->words));
    for (const struct grt_node *e = good ? tree->first : NULL; good && e; e = e->next) {
        good = optim->group_count < GRT_OPTIM_GROUPS
                   ? read_group(c, e, &optim->groups[optim->group_count])
                   : wrong(c, e, "groups: at most %d are taken", GRT_OPTIM_GROUPS);
        optim->group_count += good;
    }
    grt_tree_destroy(&tree);
    return good;
}
