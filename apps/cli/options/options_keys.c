// SPDX-License-Identifier: Apache-2.0
// Keys of a config as options: "--num-envs 64" is "num_envs=64".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

// The row of that name, or one that it abbreviates; NULL: none.
static const struct option_row *row_of(const struct option_list *lists, size_t count,
                                       const char *name, size_t length) {
    const struct option_row *found = NULL;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < lists[i].count; k++) {
            const struct option_row *row = &lists[i].rows[k];
            if (strncmp(row->name, name, length) == 0 && (!found || !row->name[length])) {
                found = row;
            }
        }
    }
    return found;
}

static char *make_word(const char *name, size_t length, const char *value) {
    size_t room = length + strlen(value) + 2;
    char *word = malloc(room);
    if (word) {
        snprintf(word, room, "%.*s=%s", (int)length, name, value);
    }
    for (size_t i = 0; word && i < length; i++) {
        word[i] = word[i] == '-' ? '_' : word[i];
    }
    return word;
}

bool options_keys_begin(struct options_keys *keys, const struct option_list *lists, size_t count,
                        int argc, char **argv) {
    *keys = (struct options_keys){.argv = calloc((size_t)argc + 1, sizeof *argv),
                                  .made = calloc((size_t)argc + 1, sizeof *argv)};
    bool whole = keys->argv && keys->made, options = true;
    for (int i = 0; whole && i < argc; i++) {
        const char *name = argv[i] + 2;
        options = options && strcmp(argv[i], "--") != 0;
        bool is_long = options && i > 0 && strncmp(argv[i], "--", 2) == 0;
        size_t length = is_long ? strcspn(name, "=") : 0;
        bool has_value = is_long && (name[length] == '=' ||
                                     (i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0));
        const struct option_row *row = length > 0 ? row_of(lists, count, name, length) : NULL;
        if (row && row->read && name[length] != '=' && i + 1 < argc) {
            // Its value is no key, whatever it looks like: options_parse() judges it.
            keys->argv[keys->argc++] = argv[i++];
        }
        if (!has_value || length == 0 || row) {
            keys->argv[keys->argc++] = argv[i];
            continue;
        }
        char *word = make_word(name, length, name[length] == '=' ? name + length + 1 : argv[++i]);
        whole = word != NULL;
        keys->made[keys->made_count++] = word;
        keys->argv[keys->argc++] = word;
    }
    return whole;
}

void options_keys_end(struct options_keys *keys) {
    for (size_t i = 0; i < keys->made_count; i++) {
        free(keys->made[i]);
    }
    free(keys->made);
    free(keys->argv);
}
