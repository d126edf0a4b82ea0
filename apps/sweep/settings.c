// SPDX-License-Identifier: Apache-2.0
// Trials as training configs. The reader of configs judges every value: it is given a text in which
// key and value stand at the places that they have in the sweep's file, so that what it says names
// them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static void put_many(FILE *file, char c, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        fputc(c, file);
    }
}

// A list as it is, words too, whatever else in quotes.
static void put_value(FILE *file, const char *value) {
    bool plain = value[0] == '[' || value[0] == '{' ||
                 (value[0] && value[0] != '-' &&
                  strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_.+-") == strlen(value));
    fputs(plain ? "" : "\"", file);
    for (; *value; value++) {
        fputs(!plain && (*value == '"' || *value == '\\') ? "\\" : "", file);
        fputc(*value, file);
    }
    fputs(plain ? "" : "\"", file);
}

// "section:" stands in the line above its key, or, where there is none, before it.
static void put_leaf(FILE *file, const struct sweep_leaf *leaf) {
    const char *dot = strrchr(leaf->name, '.'), *key = dot ? dot + 1 : leaf->name;
    uint32_t at = leaf->column;
    if (dot && leaf->line > 1) {
        put_many(file, '\n', 2, leaf->line);
        fprintf(file, "%.*s:\n", (int)(dot - leaf->name), leaf->name);
        at = at < 2 ? 2 : at;
        put_many(file, ' ', 1, at);
        fprintf(file, "%s:", key);
    } else {
        put_many(file, '\n', 1, leaf->line);
        put_many(file, ' ', 1, at);
        if (dot) {
            fprintf(file, "%.*s: {", (int)(dot - leaf->name), leaf->name);
        }
        fprintf(file, "%s:", key);
    }
    uint32_t end = at + (uint32_t)strlen(key) + 1;
    bool below = leaf->value_line > leaf->line;
    put_many(file, '\n', leaf->line, leaf->value_line);
    put_many(file, ' ', below ? 1 : end,
             below ? (leaf->value_column > at ? leaf->value_column : at + 1)
                   : (leaf->value_column > end ? leaf->value_column : end + 1));
    put_value(file, leaf->value);
    fputs(dot && leaf->line <= 1 ? "}\n" : "\n", file);
}

bool sweep_config_leaf(struct grt_config *config, const char *path, const struct sweep_leaf *leaf) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    }
    put_leaf(file, leaf);
    config->path[0] = '\0';
    bool good = (fclose(file) == 0 && text) || grt_fail(GRT_NO_MEMORY, "no host memory");
    good = good && grt_config_parse(config, path, text, size);
    config->path[0] = '\0';
    free(text);
    return good;
}

bool sweep_takes(struct sweep_plan *plan, const struct sweep_parameter *p, const char *value,
                 uint32_t line, uint32_t column) {
    enum grt_config_key key = grt_config_key_find(plan->kind->scope, p->name);
    if (key != GRT_CONFIG_KEY_COUNT) {
        plan->scratch.places[key].file = false;
        plan->scratch.places[GRT_CONFIG_NETWORK].file = false;  // `model` may be it
    }
    return sweep_config_leaf(&plan->scratch, plan->path,
                             &(struct sweep_leaf){.name = p->name,
                                                  .value = value,
                                                  .line = p->line,
                                                  .column = p->column,
                                                  .value_line = line,
                                                  .value_column = column});
}

bool sweep_settings(struct sweep_plan *plan, uint32_t trial, struct grt_config *config) {
    *config = plan->base;
    for (uint32_t i = 0; i < plan->parameter_count; i++) {
        const struct sweep_parameter *p = &plan->parameters[i];
        char value[SWEEP_VALUE], pair[SWEEP_NAME + SWEEP_VALUE + 2];
        sweep_sample(plan, i, trial, value);
        snprintf(pair, sizeof pair, "%s=%s", p->name, value);
        if (!sweep_takes(plan, p, value, p->line, p->column) ||
            !grt_config_override(config, pair)) {
            return false;
        }
        // From there on messages name the sweep's file.
        enum grt_config_key key = grt_config_key_find(plan->kind->scope, p->name);
        for (uint32_t k = 0; k < 2; k++) {
            struct grt_config_place *place = &config->places[k ? GRT_CONFIG_NETWORK : key];
            if (place->given && !place->file && place->line == 0) {
                place->file = true;
                place->line = p->line;
                place->column = p->column;
            }
        }
    }
    snprintf(config->path, sizeof config->path, "%s", plan->path);
    return grt_config_effective(config);
}
