// SPDX-License-Identifier: Apache-2.0
// The values that stand behind layers.
#include "network_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct grt_tree_source network_source(const struct grt_network_desc *desc, const char *otherwise) {
    return (struct grt_tree_source){.path = desc->path,
                                    .name = desc->name ? desc->name : otherwise,
                                    .line = desc->line,
                                    .column = desc->column,
                                    .whole = desc->whole};
}

struct grt_module *network_wrong(const struct network_reading *r, const struct grt_node *at,
                                 const char *format, ...) {
    char text[384], where[1100];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    grt_tree_where(&r->source, at->line, at->column, where, sizeof where);
    grt_fail(GRT_CONFIG, "%s%s", where, text);
    return NULL;
}

bool network_whole(const struct network_reading *r, const struct grt_node *value, const char *what,
                   uint32_t most, uint32_t *whole) {
    const char *text = value->kind == GRT_NODE_TEXT ? value->text : "";
    char *end = NULL;
    unsigned long number = strspn(text, "0123456789") > 0 ? strtoul(text, &end, 10) : 0;
    if (!end || *end || number == 0 || number > most) {
        return network_wrong(r, value, "%s wants a whole number from 1 to %u%s%.40s", what, most,
                             text[0] ? ", not " : "", text) != NULL;
    }
    *whole = (uint32_t)number;
    return true;
}

bool network_width(const struct network_reading *r, const struct grt_node *value, const char *what,
                   uint32_t *width) {
    if (value->kind == GRT_NODE_TEXT && strcmp(value->text, "out") == 0) {
        *width = r->desc->outputs;
        return *width > 0 || network_wrong(r, value, "%s: nobody says how many `out` are", what);
    }
    return network_whole(r, value, what, NETWORK_MOST_WIDTH, width);
}

int network_word(const struct network_reading *r, const struct grt_node *value, const char *what,
                 const char *const *words, uint32_t count) {
    char list[160] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (value->kind == GRT_NODE_TEXT && strcmp(value->text, words[i]) == 0) {
            return (int)i;
        }
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    network_wrong(r, value, "%s: %.40s is none of %s", what,
                  value->kind == GRT_NODE_TEXT ? value->text : "this", list);
    return -1;
}

const struct grt_node *network_entry(const struct grt_node *map, const char *key) {
    for (const struct grt_node *e = map->first; e; e = e->next) {
        if (strcmp(e->text, key) == 0) {
            return e->first;
        }
    }
    return NULL;
}

bool network_only(const struct network_reading *r, const struct grt_node *map, const char *what,
                  const char *const *keys) {
    for (const struct grt_node *e = map->first; e; e = e->next) {
        uint32_t i = 0;
        while (keys[i] && strcmp(keys[i], e->text) != 0) {
            i++;
        }
        if (!keys[i]) {
            return network_wrong(r, e, "%s has no key '%.40s'", what, e->text) != NULL;
        }
    }
    return true;
}

bool network_flag(const struct network_reading *r, const struct grt_node *map, const char *key,
                  bool *flag) {
    const struct grt_node *value = network_entry(map, key);
    const char *text = value && value->kind == GRT_NODE_TEXT ? value->text : "";
    int given = value ? grt_flag_of(text) : *flag;
    if (given < 0) {
        return network_wrong(r, value, "%s wants true or false, not '%.40s'", key, text) != NULL;
    }
    *flag = given != 0;
    return true;
}

bool network_number(const struct network_reading *r, const struct grt_node *map, const char *key,
                    uint32_t least, uint32_t *number) {
    const struct grt_node *value = network_entry(map, key);
    bool zero =
        value && least == 0 && value->kind == GRT_NODE_TEXT && strcmp(value->text, "0") == 0;
    if (zero) {
        *number = 0;
    }
    return !value || zero || network_whole(r, value, key, NETWORK_MOST_WINDOW, number);
}

bool network_share(const struct network_reading *r, const struct grt_node *value, const char *what,
                   double *share) {
    const char *text = value->kind == GRT_NODE_TEXT ? value->text : "";
    char *end = NULL;
    double p = strtod(text, &end);
    if (!text[0] || *end || strspn(text, "0123456789.eE+-") != strlen(text) || !(p >= 0 && p < 1)) {
        return network_wrong(r, value, "%s wants a probability from 0 to below 1, not '%.40s'",
                             what, text) != NULL;
    }
    *share = p;
    return true;
}
