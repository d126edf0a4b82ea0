// SPDX-License-Identifier: Apache-2.0
// Inside runtime/config: what the files of the config share.
#ifndef GRT_CONFIG_PARTS_H
#define GRT_CONFIG_PARTS_H

#include "gpurt/config.h"

#define CONFIG_WHY 512

// A key with the place of its field.
struct config_key {
    struct grt_config_key_info info;
    size_t offset, size;
};
extern const struct config_key config_keys[GRT_CONFIG_KEY_COUNT];

// The key that a name means inside a section ("" at the top) of a config of this kind, or
// GRT_CONFIG_KEY_COUNT.
enum grt_config_key config_find(enum grt_config_scope scope, const char *section, const char *name);
bool config_is_section(const char *name);
// What an unknown name likely means: a key, an alias or a section; NULL: nothing is close.
const char *config_closest(enum grt_config_scope scope, const char *name);
// Whether a config takes that key, which was given by this name; else what is wrong.
bool config_takes(const struct grt_config *config, enum grt_config_key key, const char *name,
                  char why[CONFIG_WHY]);

// Texts that a value was given as: one of a scalar, or those of a list.
struct config_given {
    const char *const *texts;
    size_t count;
    bool list;
    uint32_t line, column;  // of a tree's text in the file
};
// The key that takes such a value: `model` with a list of layers, or with a name and what stands
// behind it in parentheses, is `network`. `text` is NULL of a list.
enum grt_config_key config_key_for(enum grt_config_key key, const char *text);
// "a(b=1) | c" as the list that it means, "[{a: {b: 1}}, c]", or what is wrong.
bool config_calls(const char *text, char *list, size_t capacity, char why[CONFIG_WHY]);
// Sets a field, or says in `why` what is wanted. One text for a key that is a list is split at
// commas.
bool config_read_value(struct grt_config *config, enum grt_config_key key,
                       const struct config_given *given, char why[CONFIG_WHY]);

#endif
