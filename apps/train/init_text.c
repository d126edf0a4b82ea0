// SPDX-License-Identifier: Apache-2.0
// The file of `gpurt init`. Meanings come from the list of keys that the reader itself uses.
#include <stdlib.h>
#include <string.h>

#include "init.h"
#include "train_config.h"

#define COLUMNS 98

// Text as a comment, broken between words.
static void print_comment(FILE *file, const char *indent, const char *text) {
    size_t used = 0;
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (used > 0 && used + 1 + length > COLUMNS) {
            fputc('\n', file);
            used = 0;
        }
        used += (size_t)fprintf(file, "%s%.*s", used ? " " : indent, (int)length, text);
        text += length;
        if (*text == '\n') {
            fputc('\n', file);
            used = 0;
        }
        text += *text != '\0';
    }
    if (used > 0) {
        fputc('\n', file);
    }
}

static void print_key(FILE *file, const struct grt_config *config, enum grt_config_key key) {
    const struct grt_config_key_info *info = grt_config_key_info(key);
    char values[128], value[2 * GRT_CONFIG_TREE_SIZE];
    print_comment(file, "  # ", info->help);
    if (grt_config_given(config, key)) {
        grt_config_value_text(config, key, value, sizeof value);
        fprintf(file, "  %s: %s\n", info->name, value);
        return;
    }
    train_key_values(info, values);
    // A default that depends on other things stands in the meaning.
    bool depends = strstr(info->help, "default: ") != NULL;
    const char *fallback = depends ? "" : train_key_fallback(key, config->scope);
    fprintf(file, "  # %s:%s%s%s%s\n", info->name, *fallback ? " " : "", fallback,
            values[0] ? "  # " : "", values);
}

static bool takes(const struct grt_config *config, enum grt_config_key key, const char *section) {
    return (grt_config_key_scope(key) & config->scope) &&
           strcmp(grt_config_key_info(key)->section, section) == 0;
}

void init_print(FILE *file, const struct grt_config *config, const char *head) {
    static const char *const sections[] = {
#define X(name) name,
        GRT_CONFIG_SECTIONS(X)
#undef X
    };
    print_comment(file, "# ", head);
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        bool any = false, given = false;
        for (uint32_t key = 0; key < GRT_CONFIG_KEY_COUNT; key++) {
            bool here = takes(config, (enum grt_config_key)key, sections[s]);
            any = any || here;
            given = given || (here && grt_config_given(config, (enum grt_config_key)key));
        }
        if (!any) {
            continue;
        }
        // A section without keys would be a key without a value.
        fprintf(file, "\n%s%s:\n", given ? "" : "# ", sections[s]);
        for (uint32_t key = 0; key < GRT_CONFIG_KEY_COUNT; key++) {
            if (takes(config, (enum grt_config_key)key, sections[s])) {
                print_key(file, config, (enum grt_config_key)key);
            }
        }
    }
}
