// SPDX-License-Identifier: Apache-2.0
// `gpurt train KIND --keys`: every key of its config, from the list that the reader itself uses.
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output/table.h"
#include "train_config.h"

// X(name, key, heading)
#define KEY_COLUMNS(X)                                                                             \
    X(KEY, "key", "key")                                                                           \
    X(SECTION, "section", "section")                                                               \
    X(FALLBACK, "default", "default")                                                              \
    X(VALUES, "values", "values")                                                                  \
    X(OTHERS, "other_names", "in other tools")                                                     \
    X(HELP, "help", "meaning")

enum key_column {
#define X(name, key, heading) KEY_##name,
    KEY_COLUMNS(X)
#undef X
        KEY_COLUMN_COUNT,
};

static const struct table_column columns[] = {
#define X(name, key, heading) {key, heading, NULL, TABLE_TEXT, 0, 0, 0},
    KEY_COLUMNS(X)
#undef X
};

// "f32|f16|bf16" without synonyms, or a range.
void train_key_values(const struct grt_config_key_info *info, char text[128]) {
    size_t used = 0;
    text[0] = '\0';
    if (info->type == GRT_CONFIG_IS_FLAG) {
        snprintf(text, 128, "true|false");
    } else if (info->type == GRT_CONFIG_IS_TIME) {
        snprintf(text, 128, "seconds, or 90s, 10m, 1.5h, 2d");
    } else if (info->type == GRT_CONFIG_IS_AMOUNT) {
        snprintf(text, 128, "a number, or a share such as 0.1 or 10%%");
    } else if (info->max > info->min) {
        snprintf(text, 128, "%.12g to %.12g", info->min, info->max);
    }
    if (info->type == GRT_CONFIG_IS_TREE) {
        snprintf(text, 128, "such as %s", info->words);
        return;
    }
    for (const char *word = info->words; *word && used < 100;) {
        used += (size_t)snprintf(text + used, 128 - used, "%s%.*s", used ? "|" : "",
                                 (int)strcspn(word, "=|"), word);
        word += strcspn(word, "|");
        word += *word == '|';
    }
}

// What it takes where there is neither a range nor a word: "a text".
static const char *type_text(const struct grt_config_key_info *info) {
    static const char *const texts[] = {
#define X(name, text) text,
        GRT_CONFIG_TYPES(X)
#undef X
    };
    return texts[info->type];
}

// What stands when a key is not given: what its help says behind "default: ", where that depends on
// other things, or the fallback that the reader itself uses.
const char *train_key_fallback(enum grt_config_key key, enum grt_config_scope scope) {
    const char *depends = strstr(grt_config_key_info(key)->help, "default: ");
    return depends ? depends + strlen("default: ") : grt_config_key_fallback(key, scope);
}

static struct table_cell cell(const char *text) {
    return (struct table_cell){.known = *text != '\0', .text = text};
}

int train_print_keys(const struct options *options, const char *verb, enum grt_config_scope scope,
                     int argc, char **argv) {
    struct output output;
    struct table table;
    struct table_cell rows[GRT_CONFIG_KEY_COUNT][KEY_COLUMN_COUNT];
    static char values[GRT_CONFIG_KEY_COUNT][128];
    int code = output_open(&output, options->output);
    if (code) {
        return code;
    }
    size_t count = 0;
    for (uint32_t key = 0; key < GRT_CONFIG_KEY_COUNT; key++) {
        const struct grt_config_key_info *info = grt_config_key_info((enum grt_config_key)key);
        if (!(grt_config_key_scope((enum grt_config_key)key) & scope)) {
            continue;
        }
        size_t i = count++;
        train_key_values(info, values[i]);
        rows[i][KEY_KEY] = TABLE_CELL(.text = info->name);
        rows[i][KEY_SECTION] = TABLE_CELL(.text = info->section);
        rows[i][KEY_FALLBACK] = cell(train_key_fallback((enum grt_config_key)key, scope));
        rows[i][KEY_VALUES] = cell(values[i][0] ? values[i] : type_text(info));
        rows[i][KEY_OTHERS] = cell(info->aliases);
        rows[i][KEY_HELP] = cell(info->help);
    }
    struct table_desc desc = {.output = &output,
                              .format = options->format,
                              .columns = columns,
                              .column_count = KEY_COLUMN_COUNT,
                              .schema = "gpurt.keys/1",
                              .verb = verb,
                              .argc = argc,
                              .argv = argv,
                              .blocks = options->format == TABLE_PLAIN};
    bool good = table_open(&table, &desc) &&
                table_section(&table, NULL, (1ull << KEY_COLUMN_COUNT) - 1, NULL, 0);
    for (size_t i = 0; good && i < count; i++) {
        good = table_row(&table, rows[i]);
    }
    table_close(&table);
    return output_close(&output, true);
}
