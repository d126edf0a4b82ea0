// SPDX-License-Identifier: Apache-2.0
// Writes a config as YAML: what was given, in sections, each key with its help behind it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/whole_file.h"
#include "config_parts.h"

// Every line of `head` as a comment.
static void write_head(FILE *out, const char *head) {
    while (*head) {
        size_t length = strcspn(head, "\n");
        fprintf(out, "# %.*s\n", (int)length, head);
        head += length + (head[length] == '\n');
    }
}

static void write_keys(FILE *out, const struct grt_config *config) {
    static const char *const sections[] = {
#define X(name) name,
        GRT_CONFIG_SECTIONS(X)
#undef X
    };
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        bool begun = false;
        for (uint32_t key = 0; key < GRT_CONFIG_KEY_COUNT; key++) {
            const struct grt_config_key_info *info = &config_keys[key].info;
            if (!config->places[key].given || strcmp(info->section, sections[s]) != 0) {
                continue;
            }
            char value[2 * GRT_CONFIG_TREE_SIZE];  // the longest, every character in quotes
            grt_config_value_text(config, (enum grt_config_key)key, value, sizeof value);
            if (!begun) {
                fprintf(out, "%s:\n", sections[s]);
            }
            begun = true;
            fprintf(out, "  %s: %s\n", info->name, value);
        }
    }
}

bool grt_config_write(const struct grt_config *config, const char *path, const char *head) {
    if (!config || !path) {
        return grt_fail(GRT_INVALID, "a config and a path are wanted");
    }
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    }
    write_head(out, head ? head : "");
    write_keys(out, config);
    bool good = fclose(out) == 0 ? grt_whole_file_save(path, text, size)
                                 : grt_fail(GRT_NO_MEMORY, "no host memory for %s", path);
    free(text);
    return good;
}
