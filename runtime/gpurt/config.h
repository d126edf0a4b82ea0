// SPDX-License-Identifier: Apache-2.0
// Settings of a training run: one list says every key with its type, default, range, the names that
// other tools have for it, and its help. The struct, the YAML reader, key=value on the command
// line, the writer, the documentation and the tests all come from the list.
//
//     data:                          sections group keys for the reader's eye and are otherwise
//       batch_size: 4096             flattened: batch_size at the top means the same
//     training:
//       use_amp: true                another tool's name: it is precision, and true is f16
//
// What is unknown, given twice (under whichever names), of the wrong type or out of range is
// refused with file, line and column and, for a misspelt key, the one that was meant.
#ifndef GRT_CONFIG_H
#define GRT_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "config_keys.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_CONFIG_TEXT_SIZE 1024    // bytes of a text, its end included
#define GRT_CONFIG_NAMES 16          // texts of a list
#define GRT_CONFIG_NAME 128          // bytes of one of them
#define GRT_CONFIG_NUMBERS 256       // numbers of a list
#define GRT_CONFIG_TREE_SIZE 8192    // bytes of a list of layers or groups
#define GRT_CONFIG_MAX_BYTES 262144  // of a file
#define GRT_CONFIG_MAX_DEPTH 32      // of nested sections and lists

struct grt_config_names {
    uint32_t count;
    char values[GRT_CONFIG_NAMES][GRT_CONFIG_NAME];
};
struct grt_config_wholes {
    uint32_t count;
    uint64_t values[GRT_CONFIG_NUMBERS];
};
struct grt_config_reals {
    uint32_t count;
    double values[GRT_CONFIG_NUMBERS];
};

// A piece of YAML as it stands in the file, and where it begins there, from 1; text "": there is
// none.
struct grt_config_tree {
    uint32_t line, column;
    uint32_t whole;  // 1: it was written in other words there, such as flip | normalize
    char text[GRT_CONFIG_TREE_SIZE];
};

// What a key can be, and the C types of the fields. A word is one out of a closed set.
typedef uint64_t grt_config_WHOLE;
typedef double grt_config_REAL;
typedef double grt_config_TIME;  // seconds
// From 1 on a number of them, below 1 a share; 0: as without it, which a share of 1.0 is too.
typedef double grt_config_AMOUNT;
typedef bool grt_config_FLAG;
typedef char grt_config_WORD[24];
typedef char grt_config_TEXT[GRT_CONFIG_TEXT_SIZE];
typedef struct grt_config_names grt_config_NAMES;
typedef struct grt_config_wholes grt_config_WHOLES;
typedef struct grt_config_reals grt_config_REALS;
typedef struct grt_config_tree grt_config_TREE;

#define GRT_CONFIG_TYPES(X)                                                                        \
    X(WHOLE, "a whole number")                                                                     \
    X(REAL, "a number")                                                                            \
    X(TIME, "a time such as 90, 90s, 10m, 1.5h or 2d")                                             \
    X(AMOUNT, "a number such as 8, or a share such as 0.25 or 25%")                                \
    X(FLAG, "true or false")                                                                       \
    X(WORD, "a word")                                                                              \
    X(TEXT, "a text")                                                                              \
    X(NAMES, "a list of names")                                                                    \
    X(WHOLES, "a list of whole numbers")                                                           \
    X(REALS, "a list of numbers")                                                                  \
    X(TREE, "a list")

enum grt_config_type {
#define X(name, text) GRT_CONFIG_IS_##name,
    GRT_CONFIG_TYPES(X)
#undef X
        GRT_CONFIG_TYPE_COUNT,
};

enum grt_config_key {
#define X(name, field, ...) GRT_CONFIG_##name,
    GRT_CONFIG_KEYS(X)
#undef X
        GRT_CONFIG_KEY_COUNT,
};

// Whose keys a config takes: of the lists in config_keys.h, the shared ones always.
enum grt_config_scope {
    GRT_CONFIG_OF_SUPERVISED = 1,
    GRT_CONFIG_OF_ES = 2,
    GRT_CONFIG_OF_PPO = 4,
    GRT_CONFIG_OF_ALL = 7,
    GRT_CONFIG_OF_CLASSIFY = 9,  // keys of supervised training with defaults of its own
};

// Where a value was given.
struct grt_config_place {
    uint32_t line, column;              // from 1; both 0: on the command line
    uint32_t value_line, value_column;  // the same of what it was given
    bool given;                         // false: it is the default
    bool file;                          // in the file of grt_config.path, else on the command line
    char name[48];                      // under which name: "use_amp"
};

// The value of every key, by its name: config.batch_size, config.precision, config.data,
// config.inputs.values[0]. No pointers: a copy is a copy.
struct grt_config {
#define X(name, field, type, ...) grt_config_##type field;
    GRT_CONFIG_KEYS(X)
#undef X
    struct grt_config_place places[GRT_CONFIG_KEY_COUNT];
    char path[GRT_CONFIG_TEXT_SIZE];  // of the file that was read, or ""
    enum grt_config_scope scope;      // keys that a file and key=value may name
};

// Everything at its default: for supervised training, and for the kinds of a scope.
GRT_API void grt_config_init(struct grt_config *config);
GRT_API void grt_config_init_for(struct grt_config *config, enum grt_config_scope scope);
// The same in memory of gpurt's, for who does not know the struct, such as other languages. NULL
// only when out of host memory.
GRT_API struct grt_config *grt_config_create(enum grt_config_scope scope);
GRT_API void grt_config_destroy(struct grt_config **config);
// Reads a file over the defaults; GRT_CONFIG with "path:line:column: what is wrong", GRT_NO_INPUT
// when it cannot be read. One file for each config.
GRT_API bool grt_config_read(struct grt_config *config, const char *path);
// The same of text in memory; `path` only names it in messages.
GRT_API bool grt_config_parse(struct grt_config *config, const char *path, const char *text,
                              size_t size);
// "key=value" of the command line, over what stands in the file; later ones win. The value is
// written as in YAML: 0.001, true, [128, 256] or 128,256.
GRT_API bool grt_config_override(struct grt_config *config, const char *pair);
// One key by its value's text, as if given on the command line.
GRT_API bool grt_config_set(struct grt_config *config, enum grt_config_key key, const char *text);
// The value of a key, and where it was given, from one config to another.
GRT_API void grt_config_copy(struct grt_config *to, const struct grt_config *from,
                             enum grt_config_key key);
// Whether it was given anywhere.
GRT_API bool grt_config_given(const struct grt_config *config, enum grt_config_key key);
// Where a value is from, for messages: the file, or the name that stood on the command line.
GRT_API const char *grt_config_source(const struct grt_config *config, enum grt_config_key key);
// The file, or NULL where it is from none.
GRT_API const char *grt_config_file(const struct grt_config *config, enum grt_config_key key);
// The file with line and column, "run.yaml:3:5: ", or "" for what stood on the command line.
#define GRT_CONFIG_WHERE (GRT_CONFIG_TEXT_SIZE + 32)
GRT_API void grt_config_where(const struct grt_config *config, enum grt_config_key key,
                              char where[GRT_CONFIG_WHERE]);
// False, with a sentence, where a key was given that has no effect beside the others, such as
// huber_delta where the loss is mse. A value that switches off, 0 or false, may always be given.
GRT_API bool grt_config_effective(const struct grt_config *config);
// After all was read: defaults of the kind that other keys leave no place for become those of
// supervised training.
GRT_API void grt_config_settle(struct grt_config *config);
// The field of a key, as a pointer to its C type.
GRT_API const void *grt_config_value(const struct grt_config *config, enum grt_config_key key);
// Writes what was given, in sections, so that grt_config_read() finds the same; `head` (may be
// NULL) becomes comment lines at the top. The file appears whole or not at all.
GRT_API bool grt_config_write(const struct grt_config *config, const char *path, const char *head);
// The value of a key as it would be written; returns the length that it has, as snprintf does.
GRT_API size_t grt_config_value_text(const struct grt_config *config, enum grt_config_key key,
                                     char *text, size_t capacity);

struct grt_config_key_info {
    const char *name;
    enum grt_config_type type;
    const char *section;
    const char *fallback;
    double min, max;
    const char *words;
    const char *aliases;
    const char *help;
    enum grt_config_scope scope;  // of its list; see grt_config_key_scope()
};
// NULL for a number that is no key.
GRT_API const struct grt_config_key_info *grt_config_key_info(enum grt_config_key key);
// The kinds whose configs take it, as bits.
GRT_API enum grt_config_scope grt_config_key_scope(enum grt_config_key key);
// Its fallback in a config of a kind.
GRT_API const char *grt_config_key_fallback(enum grt_config_key key, enum grt_config_scope scope);
// The key of that name or alias (as "section.name" too) in a config of a kind, else in one of
// another, or GRT_CONFIG_KEY_COUNT.
GRT_API enum grt_config_key grt_config_key_find(enum grt_config_scope scope, const char *name);

#ifdef __cplusplus
}
#endif
#endif
